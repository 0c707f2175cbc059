"""Lesson 4: stop converged jobs, if they log their loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.analyze.run import analyze
from gpuctl.core.notes import note
from gpuctl.core.results import Column, ResultTable, ends
from gpuctl.lessons import savings
from gpuctl.lessons.finding import UNKNOWN, Answer, Estimate, Finding, Input
from gpuctl.lessons.lesson_input import jobs_of
from gpuctl.lessons.rules import wait_estimate
from gpuctl.lessons.stopping import RULES, stopped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.notes import Note
    from gpuctl.lessons.lesson_input import Case
    from gpuctl.lessons.stopping import Rule, Stopped
    from gpuctl.replay.models.records import Floats, Ints, Workload

KEY = "converged"
TABLES = ("stopping_rules",)
ANSWERED = ("hindsight", "patience 5", "extrapolated")
HOUR = 3600.0
WORDS = {
    "hindsight": note("stop at the first point within 0.1 % of the lowest loss: known only afterwards, an upper bound"),
    "patience 3": note("stop when 3 points have brought the lowest loss down by 0.1 % or less"),
    "patience 5": note("stop when 5 points have brought the lowest loss down by 0.1 % or less"),
    "patience 10": note("stop when 10 points have brought the lowest loss down by 0.1 % or less"),
    "extrapolated": note("stop when the lowest loss is within 0.1 % of the limit that the curve so far goes to"),
}


@dataclass(frozen=True)
class Curves:
    """The loss curves of the jobs to replay.

    Attributes:
        job: number of each curve's job.
        start: (curves + 1), where each begins.
        loss: at each point.
        gpu_s: GPU-seconds held by the job up to each point; NaN unknown.
        inferred: curves whose points are spread evenly over the GPU time.
        others: curves of jobs that cannot be replayed.
    """

    job: Ints
    start: Ints
    loss: Floats
    gpu_s: Floats
    inferred: int
    others: int


def learn(case: Case) -> Finding:
    """Stop jobs by their losses, and replay the shortened jobs."""
    curves = read(case)
    if curves is None:
        return Finding(warnings=(note("No job logs a loss at three points or more: when to stop is not known."),))
    return finding_of(case, curves)


def finding_of(case: Case, curves: Curves) -> Finding:
    """The lesson's finding for these curves."""
    found = [(rule, stopped(rule, curves.loss, curves.gpu_s, curves.start)) for rule in RULES]
    return Finding(
        answers=_answers(case, curves, [each for each in found if each[0].key in ANSWERED]),
        inputs=_inputs(case, curves),
        tables=(_table(case, curves, found),),
    )


def read(case: Case) -> Curves | None:
    """The curves; None where no job has one with a known time."""
    made = analyze(case.store, replace(case.options, sections=(), tables=("loss_curves",)))
    tables = [table for table in made.tables if table.name == "loss_curves"]
    if not tables or not tables[0].frame.height:
        return None
    number = pl.DataFrame({"job": case.workload.ids, "number": np.arange(case.workload.size)})
    every = (
        tables[0]
        .frame.select("job", "point", "loss", "gpu_hours", "placed")
        .join(number.with_columns(pl.col("job").cast(pl.String)), on="job", how="left", maintain_order="left")
    )
    usable = pl.col("number").is_not_null().all() & pl.col("gpu_hours").is_not_null().all()
    usable_rows = every.filter(usable.over("job")).sort("number", "point")
    curves = usable_rows.group_by("number", maintain_order=True).agg(pl.len(), even=(pl.col("placed") == "even").any())
    if not curves.height:
        return None
    return Curves(
        job=curves["number"].to_numpy().astype(np.int64),
        start=np.append(0, np.cumsum(curves["len"].to_numpy())).astype(np.int64),
        loss=usable_rows["loss"].to_numpy().astype(np.float64),
        gpu_s=usable_rows["gpu_hours"].to_numpy().astype(np.float64) * HOUR,
        inferred=int(curves["even"].sum()),
        others=every["job"].n_unique() - curves.height,
    )


def _of_jobs(case: Case, curves: Curves, values: Floats) -> Floats:
    """One value per job; NaN: it has no curve."""
    made = np.full(case.workload.size, np.nan)
    made[curves.job] = values
    return made


def _answers(case: Case, curves: Curves, found: Sequence[tuple[Rule, Stopped]]) -> tuple[Answer, ...]:
    block = case.blocks()[0]
    held = float((curves.gpu_s[curves.start[1:] - 1]).sum())
    [base] = case.replays([{}])
    before = jobs_of(base)
    answers = []
    for rule, what in found:
        hours = savings.total(_of_jobs(case, curves, what.net / HOUR), block)
        [mine] = case.replays([{}], workload=_shortened(case.workload, curves, what))
        wait = wait_estimate(before, jobs_of(mine))
        share = None if hours.value is None or not held else 100 * HOUR * hours.value / held
        answers.append(
            Answer(KEY, WORDS[rule.key], curves.job.size, hours, wait, _because(what, curves), share_pct=share)
        )
    return tuple(answers)


def _because(what: Stopped, curves: Curves) -> Note:
    return note(
        "{early:.1%} of {n:,} job{n||s} would stop more than 0.1 % above their lowest loss, and are taken to run "
        "again; "
        "mean regret {regret:.2%}; share of the GPU-hours of jobs with a loss curve",
        early=float(what.early.mean()), n=curves.job.size, regret=float(what.regret.mean()),
    )  # fmt: skip


def _shortened(workload: Workload, curves: Curves, what: Stopped) -> Workload:
    """The same jobs, shortened by a rule's savings; jobs stopped too early are longer by what they had spent."""
    seconds = workload.segment_s.copy()
    change = what.net / workload.gpus[curves.job]
    for job, saved in zip(curves.job.tolist(), change.tolist(), strict=True):
        first, segment = int(workload.segment_start[job]), int(workload.segment_start[job + 1]) - 1
        left = saved
        while left > 0 and segment >= first:
            some = min(left, max(float(seconds[segment]) - 1.0, 0.0))
            seconds[segment] -= some
            left -= some
            segment -= 1
        if saved < 0:
            seconds[segment] -= saved
    return replace(workload, segment_s=seconds)


def _inputs(case: Case, curves: Curves) -> tuple[Input, ...]:
    w = case.workload
    held = float((w.segment_s * np.repeat(w.gpus, np.diff(w.segment_start))).sum())
    logged = float(curves.gpu_s[curves.start[1:] - 1].sum())
    return (
        Input(KEY, note("GPU-hours of jobs with a loss curve, share of all"), "-",
              Estimate(logged / held if held else None), "measured",
              note("{n:,} job{n||s}; the others are not covered; {others:,} more cannot be replayed",
                   n=curves.job.size, others=curves.others)),
        Input(KEY, note("jobs whose points are spread evenly over their GPU time, share"), "-",
              Estimate(curves.inferred / curves.job.size), "inferred",
              note("neither timestamps nor elapsed times record when their points were reached")),
    )  # fmt: skip


COLUMNS = (
    Column("rule", "-", "When a job stops; hindsight: at the first point within 0.1 % of its lowest loss."),
    Column("online", "-", "yes: the rule uses only what has been logged; no: the whole curve."),
    Column("jobs", "jobs", "Jobs with a loss curve."),
    Column("stopped", "jobs", "Stopped before their last point."),
    Column("gpu_hours_saved", "GPU-h", "GPU-hours after the stop, less what jobs stopped too early had spent."),
    *ends("{}", "GPU-h"),
    Column("saved_pct", "%", "Share of the GPU-hours of these jobs."),
    Column("well_gpu_hours", "GPU-h", "Of this, after the stop of jobs within 0.1 % of their lowest loss."),
    Column("early_gpu_hours", "GPU-h", "And spent by jobs stopped too early, which run again."),
    Column("early_pct", "%", "Jobs stopped more than 0.1 % above their lowest loss."),
    Column("regret_mean_pct", "%", "Mean relative excess of the lowest loss up to the stop over the lowest of all."),
    Column("regret_p95_pct", "%", "95th percentile."),
)


def _table(case: Case, curves: Curves, found: Sequence[tuple[Rule, Stopped]]) -> ResultTable:
    block = case.blocks()[0]
    held = float(curves.gpu_s[curves.start[1:] - 1].sum()) / HOUR
    rows = []
    for rule, what in found:
        hours = savings.total(_of_jobs(case, curves, what.net / HOUR), block) if curves.job.size else UNKNOWN
        well, early = ~what.early, what.early
        rows.append(
            (rule.key, "yes" if rule.online else "no", curves.job.size, int((what.saved > 0).sum()), hours.value,
             hours.low, hours.high, 100 * hours.value / held if held and hours.value is not None else None,
             float(what.saved[well].sum()) / HOUR, float(what.spent[early].sum()) / HOUR, 100 * float(early.mean()),
             100 * float(what.regret.mean()), 100 * float(np.quantile(what.regret, 0.95)))
        )  # fmt: skip
    kinds = {"rule": pl.String, "online": pl.String, "jobs": pl.Int64, "stopped": pl.Int64}
    return ResultTable(
        name="stopping_rules",
        section=KEY,
        title="Rules of stopping",
        question="What would have been saved by stopping when the loss hardly falls, and at what regret?",
        population=note(
            "{n:,} job{n||s} that log a loss at three points or more and can be replayed; docs/how-to/progress.md "
            "defines "
            "a point.",
            n=curves.job.size,
        ),
        notes=(note("GPU-hours after the last logged point are not counted: no rule knows when training is over."),),
        columns=COLUMNS,
        frame=pl.DataFrame(rows, schema={c.name: kinds.get(c.name, pl.Float64) for c in COLUMNS}, orient="row"),
        key_columns=("rule", "online", "jobs", "gpu_hours_saved", "low", "high", "early_pct", "regret_mean_pct"),
    )
