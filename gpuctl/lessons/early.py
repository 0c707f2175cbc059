"""Lesson 3: catch failures early by a first run on one GPU, and skip retries that fail again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.errors import UsageError
from gpuctl.core.notes import note
from gpuctl.core.results import Column, ResultTable, ends
from gpuctl.lessons import savings
from gpuctl.lessons.early_costs import (
    ALONE,
    CAUGHT,
    FATES,
    MAY_PASS,
    REFUSED,
    UNKNOWN,
    UNSURE,
    Rule,
    caught_gpu_s,
    compare,
    fates,
    pool_for,
    refused_gpu_s,
    retries,
)
from gpuctl.lessons.finding import Answer, Estimate, Finding, Input

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.notes import Note
    from gpuctl.lessons.early_costs import RuleEffect
    from gpuctl.lessons.lesson_input import Case
    from gpuctl.replay.models.records import Failures, Floats

KEY = "failures"
TABLES = ("early_failure_rules", "early_failures", "refused_retries")

FIRST_S = (300.0, 600.0, 1800.0)
"""Seconds of a first run, replayed with pools of half, one and two times `pool_for` GPUs …"""
USUAL_S = 600.0
"""… of which the answers use this one."""
SURE = (0.5, 0.8, 0.95)
"""Confidences from which a retry is refused, replayed …"""
USUAL_SURE = 0.8
"""… of which the answers use this one."""
HOUR = 3600.0


def learn(case: Case) -> Finding:
    """Replay first runs and refused retries."""
    known = case.workload.failures
    failed = int(case.workload.segment_fails.sum())
    if known is None or not failed:
        return Finding(warnings=(note("No attempt failed in this log: there is nothing to catch early."),))
    if not (known.reason >= 0).any():
        why = note("Why attempts failed is not known (no job logs): nor whether failures show on one GPU.")
        return Finding(inputs=_inputs(case, known), warnings=(why,))
    rules = _rules(case, known)
    done = replayed(case, rules)
    left = sorted({rule.pool for rule in rules} - {rule.pool for rule, _ in done})
    warnings: tuple[Note, ...] = ()
    if left:
        text = note(
            "First runs on {pools:,} pool{pools||s} of {least:,} GPU{least||s} or more are left out: too few would "
            "remain for the largest gang.",
            pools=len(left), least=min(left),
        )  # fmt: skip
        warnings = (text,)
    return Finding(
        answers=tuple(sorted((answer(case, *each) for each in done if each[0] in _usual(rules)), key=_best_first)),
        inputs=_inputs(case, known),
        tables=(_rule_table(case, done), _failure_table(case, known), _retry_table(case, known)),
        warnings=warnings,
    )


def _rules(case: Case, known: Failures) -> tuple[Rule, ...]:
    first = []
    for seconds in FIRST_S:
        pool = pool_for(case.workload, known, seconds)
        first += [Rule(seconds, size) for size in dict.fromkeys((max(pool // 2, 1), pool, 2 * pool))]
    usual = pool_for(case.workload, known, USUAL_S)
    return (*first, *(Rule(retry=sure) for sure in SURE), Rule(USUAL_S, usual, USUAL_SURE))


def _usual(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules that the answers cover: first runs, refused retries, both."""
    both = rules[-1]
    return Rule(both.first_s, both.pool), Rule(retry=both.retry), both


def replayed(case: Case, rules: Sequence[Rule]) -> list[tuple[Rule, RuleEffect]]:
    """Replay each rule; rules whose pool leaves too few GPUs are left out."""
    [base] = case.replays([{}])
    done = []
    for rule in rules:
        try:
            [mine] = case.replays([rule.params])
        except UsageError:
            if not rule.pool:
                raise
            continue
        done.append((rule, compare(case.workload, base, mine)))
    return done


def _rule_text(rule: Rule) -> Note:
    first = {"minutes": rule.first_s / 60, "pool": rule.pool}
    if rule.first_s and rule.retry:
        return note(
            "gangs first run {minutes:g} min on one GPU of a pool of {pool:,}; no retry where one is {sure:.0%} sure "
            "that it fails again",
            **first, sure=rule.retry,
        )  # fmt: skip
    if rule.first_s:
        return note("gangs first run {minutes:g} min on one GPU of a pool of {pool:,}", **first)
    return note("no retry where one is {sure:.0%} sure that it fails again", sure=rule.retry)


def answer(case: Case, rule: Rule, found: RuleEffect) -> Answer:
    """A rule's total savings and waiting saved per job."""
    block = case.blocks()[0]
    gpu_hours = savings.total(found.saved_gpu_s / HOUR, block)
    known = np.isfinite(found.saved_gpu_s)
    ended, again = int(found.ended.sum()), int(found.again.sum())
    because = note(
        "{ended:,} job{ended||s} {ended|is|are} ended in place of a retry; the {again:,} of them that did not fail "
        "in the end are taken to "
        "be submitted again",
        ended=ended, again=again,
    )  # fmt: skip
    if rule.first_s:
        late = found.delay_s[np.isfinite(found.delay_s)] / 60
        because = note(
            "{jobs:,} gang{jobs||s} start {delay:.1f} min later on average; {ended:,} job{ended||s} {ended|is|are} "
            "ended in place of a retry",
            jobs=late.size, delay=float(late.mean()) if late.size else 0.0, ended=ended,
        )  # fmt: skip
    return Answer(
        KEY, _rule_text(rule), int(known.sum()), gpu_hours, found.wait_h, because,
        share_pct=_share(case, gpu_hours.value),
    )  # fmt: skip


def _best_first(answer: Answer) -> float:
    return -(answer.gpu_hours.value or 0.0)


def _gpu_s(case: Case) -> Floats:
    """GPU-seconds of each segment."""
    w = case.workload
    return np.asarray(w.segment_s * np.repeat(w.gpus, np.diff(w.segment_start)))


def _by_job(case: Case, values: Floats) -> Floats:
    """Sums of values of segments."""
    w = case.workload
    owner = np.repeat(np.arange(w.size), np.diff(w.segment_start))
    return np.bincount(owner, values, w.size).astype(np.float64)


def _share(case: Case, hours: float | None) -> float | None:
    whole = float(_gpu_s(case).sum()) / HOUR
    return None if hours is None or not whole else 100 * hours / whole


def _inputs(case: Case, known: Failures) -> tuple[Input, ...]:
    w = case.workload
    fails = w.segment_fails
    known_reason = fails & (known.reason >= 0)
    block = case.blocks()[0]
    owner = np.repeat(np.arange(w.size), np.diff(w.segment_start))
    fate = fates(w, known, USUAL_S)
    unknown = fails & (fate == FATES.index("not known")) & (w.segment_s <= USUAL_S)
    more = _by_job(case, np.where(unknown, w.segment_s * (w.gpus[owner] - 1), 0.0)) / HOUR
    share = float(known_reason.sum() / max(fails.sum(), 1))
    sure = float(known.confidence[known_reason].mean()) if known_reason.any() else None
    return (
        Input(KEY, note("failed attempts whose reason is known, share"), "-", Estimate(share), "measured",
              note("{n:,} of {fails:,}, by logs and the scheduler", n=int(known_reason.sum()), fails=int(fails.sum()))),
        Input(KEY, note("confidence of these reasons, mean"), "-", Estimate(sure), "measured",
              note("the classifier's own; taken as the probability that the reason shows on one GPU")),
        Input(KEY, note("time until a failure shows on one GPU, for that on the gang"), "-", Estimate(1.0), "assumed",
              note("mistakes in a program show at its start; were it as many times as long as the gang has GPUs, a "
                   "first run would save nothing")),
        Input(KEY, note("not counted: failures of unknown reason in the first {m:g} min", m=USUAL_S / 60), "GPU-h",
              savings.total(more, block), "unknown",
              note("what a first run would save more, if all of them showed on one GPU")),
    )  # fmt: skip


RULES = (
    Column("rule", "-", "The rule in short; the next three columns are its numbers."),
    Column("first_run_min", "min", "Length of the first run on one GPU; 0: there is none."),
    Column("pool", "GPUs", "GPUs reserved for first runs."),
    Column("retry_sure", "-", "Confidence from which a reason that no retry overcomes ends its job; 0: never."),
    Column("gpu_hours_saved", "GPU-h", "GPU-hours that jobs hold less, first runs counted."),
    *ends("{}", "GPU-h"),
    Column("saved_pct", "%", "Share of the GPU-hours of all attempts."),
    Column("pool_busy_pct", "%", "Share of the pool's GPU time in use, from the first submission to the last."),
    Column("gangs", "jobs", "Gangs of 2 GPUs or more that start under this rule and without it."),
    Column("delay_mean_min", "min", "By how much later they start on all of their GPUs, mean."),
    *ends("delay_{}_min", "min"),
    Column("delay_p50_min", "min", "Median."),
    Column("delay_p90_min", "min", "90th percentile."),
    Column("delay_p99_min", "min", "99th percentile."),
    Column("wait_saved_h", "h", "Hours that a job waits less, mean; passed first runs count as waiting."),
    Column("jobs_ended", "jobs", "Jobs ended in place of a retry."),
    Column("ended_that_passed", "jobs", "Of these, jobs that did not fail in the end: taken to be submitted again."),
)


def _short(rule: Rule) -> str:
    first = f"first run {rule.first_s / 60:g} min, pool {rule.pool}" if rule.first_s else ""
    sure = f"no retry from {100 * rule.retry:g} %" if rule.retry else ""
    return "; ".join(part for part in (first, sure) if part)


def _rule_table(case: Case, done: Sequence[tuple[Rule, RuleEffect]]) -> ResultTable:
    block = case.blocks()[0]
    span = float(np.ptp(case.workload.submit))
    rows = []
    for rule, found in done:
        hours = savings.total(found.saved_gpu_s / HOUR, block)
        delay = found.delay_s / 60
        late = savings.mean(delay, block)
        some = delay[np.isfinite(delay)]
        parts = np.quantile(some, (0.5, 0.9, 0.99)).tolist() if some.size else [None] * 3
        busy = 100 * found.pool_gpu_s / (rule.pool * span) if rule.pool and span else None
        wait = found.wait_h
        rows.append(
            (_short(rule), rule.first_s / 60, rule.pool,
             rule.retry, hours.value, hours.low, hours.high, _share(case, hours.value),
             busy, some.size, late.value, late.low, late.high, *parts, wait.value, int(found.ended.sum()),
             int(found.again.sum()))
        )  # fmt: skip
    counts = {"pool", "gangs", "jobs_ended", "ended_that_passed"}
    kinds = {c.name: pl.Int64 if c.name in counts else pl.Float64 for c in RULES} | {"rule": pl.String}
    return ResultTable(
        name="early_failure_rules",
        section=KEY,
        title="First runs and refused retries",
        question="What would other first runs, pools and rules of retrying have saved, and what delay would they add?",
        population=note("{n:,} job{n||s}, each rule compared job by job with philly's defaults.", n=case.workload.size),
        notes=(
            note("Pools are half, one and two times as large as the mean number of first runs, and two roots of it, "
                 "ask for: known only afterwards. Their GPUs are taken from the cluster's smallest nodes."),
        ),
        columns=RULES,
        frame=pl.DataFrame(rows, schema=kinds, orient="row"),
        key_columns=("rule", "gpu_hours_saved", "low", "high", "delay_mean_min",
                     "delay_p90_min"),
    )  # fmt: skip


FAILED = (
    Column("category", "-", "Possible origin of the failure; not known: no reason; all: every failure."),
    Column("trials", "attempts", "Failed attempts."),
    Column("gpu_hours", "GPU-h", "Held by them, as recorded."),
    Column("caught", "attempts", "Ended by a first run."),
    Column("saved_gpu_hours", "GPU-h", "Saved by that: the other GPUs of the gang."),
    *ends("saved_{}", "GPU-h"),
    Column("late_gpu_hours", "GPU-h", "Held by failures that slip through: later than the first run."),
    Column("several_gpu_hours", "GPU-h", "Needs several GPUs to show."),
    Column("machine_gpu_hours", "GPU-h", "A node or a service failed, which a first run does not foresee."),
    Column("unknown_gpu_hours", "GPU-h", "The reason is not known."),
    Column("doubted_gpu_hours", "GPU-h", "Drawn as misclassified, by the classifier's confidence."),
    Column("not_first_gpu_hours", "GPU-h", "Had passed a first run before."),
    Column("one_gpu_gpu_hours", "GPU-h", "Jobs of one GPU, which have no first run."),
)


def _failure_table(case: Case, known: Failures) -> ResultTable:
    w = case.workload
    fate = fates(w, known, USUAL_S)
    block, held, saved = case.blocks()[0], _gpu_s(case) / HOUR, caught_gpu_s(w, fate) / HOUR
    named = np.where(known.reason >= 0, known.category, -1)
    rows = []
    for code in (*np.unique(named[fate >= 0]).tolist(), None):
        here = (fate >= 0) & ((named == code) if code is not None else True)
        name = "all" if code is None else known.categories[code] if code >= 0 else "not known"
        own = savings.total(_by_job(case, np.where(here, saved, 0.0)), block)
        slipped = [float(held[here & (fate == what)].sum()) for what in range(1, ALONE + 1)]
        rows.append(
            (name, int(here.sum()), float(held[here].sum()), int((here & (fate == CAUGHT)).sum()), own.value, own.low,
             own.high, *slipped)
        )  # fmt: skip
    rows.sort(key=_last_all)
    kinds = {"category": pl.String, "trials": pl.Int64, "caught": pl.Int64}
    return ResultTable(
        name="early_failures",
        section=KEY,
        title="Failures that a first run catches, and those that slip through",
        question="Which failures would a first run of 10 minutes on one GPU have caught, and why not the others?",
        population=note(
            "{trials:,} failed attempt{trials||s} of the {n:,} job{n||s}. What becomes of each by its reason and "
            "the time to failure, "
            "whatever waits for the pool.",
            trials=int((fate >= 0).sum()), n=w.size,
        ),
        notes=(note("Which reason shows where is inferred from what it means: docs/how-to/lessons.md has the list."),),
        columns=FAILED,
        frame=pl.DataFrame(rows, schema={c.name: kinds.get(c.name, pl.Float64) for c in FAILED}, orient="row"),
        key_columns=("category", "trials", "gpu_hours", "caught", "saved_gpu_hours", "late_gpu_hours",
                     "several_gpu_hours", "machine_gpu_hours"),
    )  # fmt: skip


RETRIED = (
    Column(
        "category", "-", "Possible origin of the failure that was tried again; not known: no reason; all: every one."
    ),
    Column("retries", "attempts", "Attempts after a failure, as recorded."),
    Column("gpu_hours", "GPU-h", "Held by them."),
    Column("passed", "attempts", "Of them, attempts that did not fail."),
    Column("refused", "attempts", "Failures at which the job ends in place of a retry."),
    Column("refused_passed", "jobs", "Of these, jobs that did not fail in the end: submitted again, nothing is saved."),
    Column("saved_gpu_hours", "GPU-h", "All later attempts of the others."),
    *ends("saved_{}", "GPU-h"),
    Column("may_pass_gpu_hours", "GPU-h", "Held by retries that are made: the reason may pass (a node, a service)."),
    Column("unsure_gpu_hours", "GPU-h", "No retry gets past the reason, but the classifier is not sure enough of it."),
    Column("unknown_gpu_hours", "GPU-h", "The reason is not known."),
)


def _retry_table(case: Case, known: Failures) -> ResultTable:
    w = case.workload
    fate = retries(w, known, USUAL_SURE)
    block, saved = case.blocks()[0], refused_gpu_s(w, fate) / HOUR
    after = np.append(_gpu_s(case)[1:], 0.0) / HOUR
    well = ~np.append(w.segment_fails[1:], True)
    completes = np.repeat(~w.segment_fails[np.maximum(w.segment_start[1:] - 1, 0)], np.diff(w.segment_start))
    named = np.where(known.reason >= 0, known.category, -1)
    rows = []
    for code in (*np.unique(named[fate >= 0]).tolist(), None):
        here = (fate >= 0) & ((named == code) if code is not None else True)
        refused = here & (fate == REFUSED)
        name = "all" if code is None else known.categories[code] if code >= 0 else "not known"
        own = savings.total(_by_job(case, np.where(here, saved, 0.0)), block)
        made = [float(after[here & (fate == what)].sum()) for what in (MAY_PASS, UNSURE, UNKNOWN)]
        rows.append(
            (name, int(here.sum()), float(after[here].sum()), int((here & well).sum()), int(refused.sum()),
             int((refused & completes).sum()), own.value, own.low, own.high, *made)
        )  # fmt: skip
    rows.sort(key=_last_all)
    counts = dict.fromkeys(("retries", "passed", "refused", "refused_passed"), pl.Int64)
    kinds: dict[str, type[pl.DataType]] = {"category": pl.String, **counts}
    return ResultTable(
        name="refused_retries",
        section=KEY,
        title="Retries, and those that are not worth making",
        question="Which retries could have been spared, and why are the others made?",
        population=note(
            "{n:,} attempt{n||s} after a failed one. Refused: no retry gets past the reason, and the classifier is "
            "at least "
            "{sure:.0%} sure of it.",
            n=int((fate >= 0).sum()), sure=USUAL_SURE,
        ),
        notes=(),
        columns=RETRIED,
        frame=pl.DataFrame(rows, schema={c.name: kinds.get(c.name, pl.Float64) for c in RETRIED}, orient="row"),
        key_columns=("category", "retries", "gpu_hours", "passed", "refused", "refused_passed", "saved_gpu_hours",
                     "may_pass_gpu_hours"),
    )  # fmt: skip


def _last_all(row: tuple[object, ...]) -> tuple[bool, float]:
    return row[0] == "all", -float(str(row[2]))
