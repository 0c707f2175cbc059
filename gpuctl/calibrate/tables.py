"""Tables of a calibration: the rules, and the distance of each set of rules to the trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.calibrate.run import MINUTE_S
from gpuctl.core.notes import NamedValue, literal, note
from gpuctl.core.numbers import lasting
from gpuctl.core.results import Analysis, Column, ResultTable
from gpuctl.replay.policies import find
from gpuctl.replay.results.metrics import SIZES, size_class

if TYPE_CHECKING:
    from gpuctl.calibrate.run import Candidate, Fit
    from gpuctl.core.notes import Note
    from gpuctl.core.results import SourceInfo
    from gpuctl.replay.models.records import Floats

TABLES = ("calibration_scores", "calibration_rules")
SECTIONS = (("calibrate", "How near a replay comes to the trace"),)
ALL = "all"
FEW_WAITED = 10
"""Fewest scored jobs that had to wait for a verdict on the rules."""
FOUND_PCT, NEAR_PCT = 95.0, 60.0
"""Shares of waiting jobs that start within a minute if the rules explain all of them, or many."""

_SCORES = (
    Column("rules", "-", "calibrated: as found; the policy's defaults; other policies; recorded: the trace itself."),
    Column("by", "-", "Scope of the row: all jobs, jobs that waited, a gang size (size_bucket) or a queue."),
    Column("value", "-", "The size or queue."),
    Column("jobs", "jobs", "Jobs that rules were not fitted to, with a recorded start and one in the replay."),
    Column("within_1min_pct", "%", "Share of them that start at most 1 minute from the recorded start."),
    Column("within_10min_pct", "%", "At most 10 minutes."),
    Column("error_p50_s", "s", "Median distance from the recorded start."),
    Column("error_mean_s", "s", "Mean of replayed - recorded start; positive: too late."),
    Column("error_abs_mean_s", "s", "Mean distance from the recorded start."),
    Column("delay_mean_s", "s", "Mean wait until the first start, replayed."),
    Column("recorded_delay_mean_s", "s", "The same, recorded."),
    Column("delay_p95_s", "s", "95th percentile of the wait until the first start, replayed."),
    Column("recorded_delay_p95_s", "s", "The same, recorded."),
)
_RULES = (
    Column("name", "-", "A parameter of the policy; quota QUEUE: GPUs; locality: whether scattered jobs run slower."),
    Column("value", "-", "As found."),
    Column("default", "-", "Of the policy; empty: it has none."),
    Column("text", "-", "What it does."),
)


def scores(fit: Fit) -> ResultTable:
    """Return the distance of each set of rules to the trace: all jobs, waiting jobs, by size and by queue."""
    rows = [row for candidate in fit.candidates for row in _of(fit, candidate)]
    frame = pl.DataFrame(rows, schema={c.name: _kind(c) for c in _SCORES}, orient="row")
    return ResultTable(
        name="calibration_scores",
        section="calibrate",
        title="How near",
        question="How near do replays come to the recorded starts that nothing was fitted to?",
        population=note(
            "{scored:,} of {jobs:,} job{jobs||s} of {name}: the last ones submitted. The rules were "
            "fitted to the others, which no figure includes.",
            scored=fit.scored.size, jobs=fit.workload.size, name=NamedValue("cluster", fit.workload.name),
        ),
        notes=(verdict(fit),),
        columns=_SCORES,
        frame=frame,
        key_columns=("rules", "by", "value", "jobs", "within_1min_pct", "within_10min_pct", "delay_mean_s",
                     "recorded_delay_mean_s"),
    )  # fmt: skip


def _kind(column: Column) -> type[pl.DataType]:
    return {"-": pl.String, "jobs": pl.Int64}.get(column.unit, pl.Float64)


def _times(fit: Fit, candidate: Candidate) -> tuple[Floats, Floats, Floats]:
    """Return submission, replayed and recorded first start of the scored jobs, in seconds."""
    workload = fit.workload
    first = workload.recorded_start[workload.segment_start[:-1]]
    start = candidate.outcome.jobs["start_s"].to_numpy().astype(np.float64)
    return workload.submit[fit.scored], start[fit.scored], first[fit.scored]


def _of(fit: Fit, candidate: Candidate) -> list[tuple[Any, ...]]:
    jobs = candidate.outcome.jobs.with_columns(size_class())[fit.scored.tolist()]
    submit, here, there = _times(fit, candidate)
    size, queue = jobs["size_bucket"].to_numpy(), np.array(jobs["queue"].fill_null("").to_list(), object)
    waited = (there - submit > MINUTE_S) | (here - submit > MINUTE_S)
    groups = [(ALL, ALL, np.ones(here.size, bool)), ("waited", "over a minute", waited)]
    groups += [("size_bucket", each, size == each) for each in SIZES]
    groups += [("queue", each, queue == each) for each in sorted(set(queue.tolist()))]
    both = np.isfinite(here)
    return [
        (candidate.name, by, value, *_figures(submit[some & both], here[some & both], there[some & both]))
        for by, value, some in groups if (some & both).any()
    ]  # fmt: skip


def _figures(submit: Floats, here: Floats, there: Floats) -> tuple[float, ...]:
    apart = np.abs(here - there)
    return (
        here.size, 100 * float((apart <= MINUTE_S).mean()), 100 * float((apart <= 10 * MINUTE_S).mean()),
        float(np.median(apart)), float((here - there).mean()), float(apart.mean()),
        float((here - submit).mean()), float((there - submit).mean()),
        float(np.quantile(here - submit, 0.95)), float(np.quantile(there - submit, 0.95)),
    )  # fmt: skip


def rules(fit: Fit) -> ResultTable:
    """Return the rules that were found."""
    found = fit.calibration
    kind = {parameter.name: parameter for parameter in find(found.policy).parameters}
    rows = [(name, value, str(kind[name].default) if name in kind else "", kind[name].text if name in kind else "")
            for name, value in found.params.items()]  # fmt: skip
    rows += [(f"quota {queue}", f"{gpus:g}", "", "GPUs of the queue") for queue, gpus in found.quotas.items()]
    rows.append(("locality", str(found.locality).lower(), "false", "whether scattered jobs run slower, as assumed"))
    return ResultTable(
        name="calibration_rules",
        section="calibrate",
        title="Rules",
        question="Which rules bring a replay nearest to the trace?",
        population=note(
            "Parameters of {policy} that differ from its defaults, after {trials:,} replay{trials||s} of the first "
            "{share:.0%} of the jobs.",
            policy=NamedValue("policy", found.policy), trials=fit.trials, share=found.fitted,
        ),
        notes=(_NO_RACKS,) if found.policy == "philly" and not fit.racks else (),
        columns=_RULES,
        frame=pl.DataFrame(rows, schema=[c.name for c in _RULES], orient="row"),
    )  # fmt: skip


_NO_RACKS = note(
    "All nodes count as one rack: racks are not inferred, and rules on racks (places, rack_after) show only with "
    "--racks."
)


def near_s(fit: Fit) -> float:
    """Return the tolerance of a correct start in seconds: a twentieth of the mean recorded wait, 1 to 60 s."""
    submit, _, there = _times(fit, fit.candidates[0])
    return float(np.clip((there - submit).mean() / 20, 1.0, MINUTE_S)) if submit.size else MINUTE_S


def waited_pct(fit: Fit) -> tuple[int, float]:
    """Return how many jobs waited over `near_s` in trace or replay, and their share that starts within it."""
    submit, here, there = _times(fit, fit.candidates[0])
    near = near_s(fit)
    waited = (there - submit > near) | ~(here - submit <= near)
    if not waited.any():
        return 0, 100.0
    return int(waited.sum()), 100 * float((np.abs(here - there)[waited] <= near).mean())


def _found(fit: Fit) -> bool:
    jobs, near = waited_pct(fit)
    return jobs >= FEW_WAITED and near >= FOUND_PCT


def verdict(fit: Fit) -> Note:
    """Return whether the rules are the trace's, judged by jobs that waited: others start at once under any rules."""
    jobs, near = waited_pct(fit)
    policy = NamedValue("policy", fit.calibration.policy)
    head = note(
        "Of {jobs:,} job{jobs||s} that nothing was fitted to and that had to wait for over {within}, {near:.0f} "
        "% start within {within} of the recorded start",
        jobs=jobs, near=near, within=literal(lasting(near_s(fit))),
    )  # fmt: skip
    if 0 < jobs < FEW_WAITED:
        return note("{head}: too few to tell whether {policy} is what this trace ran under.", head=head, policy=policy)
    if not jobs:
        return note("No job that nothing was fitted to had to wait: whether {policy} is what this trace ran under does "
                    "not show.", policy=policy)  # fmt: skip
    if near >= FOUND_PCT:
        return note("{head}: the trace's rules are found.", head=head)
    if near >= NEAR_PCT:
        return note("{head}: most of the trace's rules are found, not all.", head=head)
    return note(
        "{head}: these are not the trace's rules. Its scheduler has others than {policy} can be given here, or knows "
        "what the trace does not say.",
        head=head, policy=policy,
    )  # fmt: skip


def result(fit: Fit, *, sources: tuple[SourceInfo, ...], command: str) -> Analysis:
    """Return the tables of a calibration."""
    return Analysis(
        cluster=note("{name}", name=NamedValue("cluster", fit.workload.name)),
        tables=(scores(fit), rules(fit)),
        sections=SECTIONS,
        sources=sources,
        settings={
            "policy": note("{policy}", policy=NamedValue("policy", fit.calibration.policy)),
            "fitted": note("{share:.0%} of the jobs, in order of submission", share=fit.calibration.fitted),
            "trials": note("{trials:,} replay{trials||s}", trials=fit.trials),
            "distance": literal(f"mean of ln(1 + minutes between replayed and recorded start): {fit.distance:.4g}"),
            "verdict": verdict(fit),
        },
        command=command,
        warnings=() if _found(fit) else (verdict(fit),),
    )
