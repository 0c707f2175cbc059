"""The tables of the lesson of locality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.notes import note
from gpuctl.core.results import Column, ResultTable, ends
from gpuctl.lessons import savings
from gpuctl.lessons.rules import HOUR_S, gpu_hours_saved, wait_saved
from gpuctl.lessons.slowdowns import BUCKETS, ENOUGH_UNITS, LEVELS, Slowdowns, bucket, speed_of
from gpuctl.lessons.utilization import LEAST_SAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.lessons.lesson_input import Case, Jobs
    from gpuctl.lessons.rules import Rule
    from gpuctl.replay.models.records import Floats

SECTION = "locality"
ALL = "all"

_SPEEDS = (
    Column("size_bucket", "-", "GPUs of the gang."),
    Column("placement", "-", "more nodes: than the fewest that can hold it, in one rack; several racks."),
    Column("attempts", "attempts", "So placed, with similar attempts on the fewest nodes (see lesson_inputs)."),
    Column("clusters", "-", "Users (kinds of jobs, where users are few) with such attempts."),
    Column("ratio", "-", "GPU utilization, for that on the fewest nodes; taken for speed."),
    *ends("ratio_{}", "-"),
    Column("origin", "-", "measured: on gangs of this size; extrapolated: replays use that of all sizes."),
)
_CURVE = (
    Column("rule", "-", "time: minutes a level of locality; tries: failed attempts a level (philly: "
           "three); retry, never, adaptive: see the policy philly."),
    Column("threshold", "-", "Minutes (time) or attempts (tries, philly); empty: it has none."),
    Column("size_bucket", "-", "GPUs of the job."),
    Column("jobs", "jobs", "That end."),
    Column("wait_h", "h", "Mean wait."),
    Column("run_h", "h", "Mean run time, at the speed of its places."),
    Column("gpu_hours", "GPU-h", "GPU-hours held."),
    Column("jct_h", "h", "Mean time from submission to end."),
    *ends("jct_{}_h", "h", "; empty: the trace is too short to tell"),
    Column("wait_saved_h", "h", "Mean hours of waiting saved, job by job, against philly."),
    *ends("wait_saved_{}_h", "h"),
    Column("gpu_hours_saved", "GPU-h", "GPU-hours saved, job by job, against philly."),
    *ends("gpu_hours_saved_{}", "GPU-h", ", at the measured speeds"),
    Column("spread_pct", "%", "Attempts of gangs on more than the fewest nodes, all sizes."),
)  # fmt: skip
_BEST = (
    Column("size_bucket", "-", "GPUs of the gang."),
    Column("jobs", "jobs", "That end under the baseline."),
    Column("speed", "-", "Taken for these gangs on more nodes, for that on the fewest."),
    Column("origin", "-", "Of the speed: measured, extrapolated from all sizes, or assumed."),
    Column("best_rule", "-", "Fixed rule with the least mean time from submission to end, of these gangs."),
    Column("best_threshold", "-", "Its minutes (time) or attempts (tries, philly)."),
    Column("best_jct_h", "h", "Mean time from submission to end under it."),
    Column("adaptive_jct_h", "h", "Under the adaptive rule."),
    Column("philly_jct_h", "h", "Under the baseline."),
    Column("never_jct_h", "h", "If gangs wait for the fewest nodes."),
    Column("now_jct_h", "h", "If gangs start at once, anywhere."),
)


@dataclass(frozen=True)
class LocalityReplay:
    """Result of a rule.

    Attributes:
        rule: which.
        jobs: of each job.
        spread_pct: share of attempts of gangs that were on more nodes than the fewest, or in several racks.
    """

    rule: Rule
    jobs: Jobs
    spread_pct: float


def speeds(measured: Slowdowns) -> ResultTable:
    """How much slower gangs are on more nodes."""
    every = [(ALL, at + 1, ratio) for at, ratio in enumerate(measured.all_sizes)]
    every += [(size, level, ratio) for (size, level), ratio in measured.by_size.items()]
    rows = [
        (size, LEVELS[level - 1], ratio.units, ratio.clusters, ratio.estimate.value, ratio.estimate.low,
         ratio.estimate.high, "measured" if size == ALL or ratio.units >= ENOUGH_UNITS else "extrapolated")
        for size, level, ratio in every if ratio.units
    ]  # fmt: skip
    return ResultTable(
        name="locality_speed",
        section=SECTION,
        title="Speed by number of nodes",
        question="How much slower is a gang on more nodes?",
        population=note(
            "{gangs:,} attempt{gangs||s} of 2 GPUs and more with at least {least:,} sample{least||s} of telemetry, "
            "{spread:,} of them on "
            "more nodes than needed.",
            gangs=measured.gangs, least=LEAST_SAMPLES, spread=measured.spread,
        ),
        notes=(note("Sizes and placements without similar attempts to compare have no row."),),
        columns=_SPEEDS,
        frame=as_frame(rows, _SPEEDS, {"size_bucket", "placement", "origin"}, {"attempts", "clusters"}),
    )  # fmt: skip


def curve(case: Case, done: Sequence[LocalityReplay]) -> ResultTable:
    """Waits, run times and GPU-hours over the threshold."""
    block, _ = case.blocks()
    base = done[0].jobs
    rows = []
    for one in done:
        wait, gpu = wait_saved(base, one.jobs), gpu_hours_saved(base, one.jobs)
        for name, here in _sizes(case):
            ended = here & np.isfinite(one.jobs.gpu_s)
            if not ended.any():
                continue
            hours = np.where(here, one.jobs.jct_s / HOUR_S, np.nan)
            jct = savings.waited(hours, hours, one.jobs)
            level = (base.wait_s + one.jobs.wait_s) / 2 / HOUR_S
            saved = savings.waited(np.where(here, wait, np.nan), level, base, one.jobs)
            held = savings.total(gpu[here], block[here])
            rows.append(
                (one.rule.name, one.rule.threshold, name, int(ended.sum()), _mean(one.jobs.wait_s, ended),
                 _mean(one.jobs.run_s, ended), float(one.jobs.gpu_s[ended].sum()) / HOUR_S, jct.value, jct.low,
                 jct.high,
                 saved.value, saved.low, saved.high, held.value, held.low, held.high, one.spread_pct)
            )  # fmt: skip
    return ResultTable(
        name="locality_curve",
        section=SECTION,
        title="Waits, run times and GPU-hours by rule and threshold",
        question="What does waiting longer for locality cost, and what does it save?",
        population=population(case),
        notes=(note("GPUs that are held idle while a gang is gathered (philly, tries, retry) are not in gpu_hours."),),
        columns=_CURVE,
        frame=as_frame(rows, _CURVE, {"rule", "size_bucket"}, {"jobs"}),
        first_columns=8,
    )


def best_by_size(case: Case, done: Sequence[LocalityReplay], measured: Slowdowns | None) -> ResultTable:
    """The best threshold per gang size, compared with the adaptive rule."""
    fixed = [one for one in done if one.rule.threshold is not None]
    named = {one.rule.name: one for one in done if one.rule.threshold is None} | {"philly": done[0]}
    named["now"] = next(one for one in done if one.rule.name == "time" and one.rule.threshold == 0)
    rows = []
    for name, here in _sizes(case):
        if name in {ALL, BUCKETS[0]} or not (here & np.isfinite(done[0].jobs.gpu_s)).any():
            continue
        speed, origin = (1.0, "assumed") if measured is None else speed_of(measured, name, 1)
        best = fixed[int(np.argmin([_mean(one.jobs.jct_s, here) for one in fixed]))]
        means = [_mean(named[rule].jobs.jct_s, here) for rule in ("adaptive", "philly", "never", "now")]
        rows.append(
            (name, int((here & np.isfinite(done[0].jobs.gpu_s)).sum()), speed, origin, best.rule.name,
             best.rule.threshold, _mean(best.jobs.jct_s, here), *means)
        )  # fmt: skip
    return ResultTable(
        name="locality_best",
        section=SECTION,
        title="Best threshold by size of gang",
        question="For how long should gangs of each size wait for locality?",
        population=population(case),
        notes=(
            note("All sizes are under one rule in each replay. The best of several rules on the jobs that it was "
                 "chosen on looks better than it will be: the table lessons has it chosen on other weeks."),
        ),
        columns=_BEST,
        frame=as_frame(rows, _BEST, {"size_bucket", "origin", "best_rule"}, {"jobs"}),
    )  # fmt: skip


def _sizes(case: Case) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    number = bucket(case.workload.gpus)
    yield ALL, np.ones(number.size, bool)
    for at, name in enumerate(BUCKETS):
        yield name, number == at


def population(case: Case) -> Note:
    """The population: jobs replayed, and the nodes."""
    return note("{n:,} job{n||s}, replayed under each rule on {nodes:,} node{nodes||s} with {gpus:,} "
                "GPU{gpus||s}.",
                n=case.workload.size,
                nodes=len(case.nodes.nodes), gpus=case.nodes.total_gpus)  # fmt: skip


def _mean(seconds: Floats, here: NDArray[np.bool_]) -> float:
    return float(np.nanmean(seconds[here])) / HOUR_S


def as_frame(
    rows: Sequence[tuple[object, ...]], columns: Sequence[Column], texts: set[str], counts: set[str]
) -> pl.DataFrame:
    """Rows as a frame: columns are numbers, except texts and counts."""
    kinds = {c.name: pl.String if c.name in texts else pl.Int64 if c.name in counts else pl.Float64 for c in columns}
    return pl.DataFrame(rows, schema=kinds, orient="row")
