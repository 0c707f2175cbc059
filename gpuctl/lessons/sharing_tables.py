"""The tables of the lesson on dedicated nodes and migrations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.notes import note
from gpuctl.core.results import Column, ResultTable, ends
from gpuctl.lessons import savings
from gpuctl.lessons.locality_tables import as_frame, population
from gpuctl.lessons.rules import HOUR_S, gpu_hours_saved, wait_estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.lessons.lesson_input import Case, Jobs
    from gpuctl.lessons.rules import Rule
    from gpuctl.lessons.slowdowns import Slowdowns
    from gpuctl.replay.models.records import Floats

SECTION = "sharing"

_INTERFERENCE = (
    Column("attempts", "attempts", "With samples both with a neighbour and alone."),
    Column("clusters", "-", "Users (attempts, where users are few) with such attempts."),
    Column("ratio", "-", "GPU utilization with a neighbour, relative to alone; taken for speed."),
    *ends("ratio_{}", "-"),
)
_RULES = (
    Column("rule", "-", "philly: the baseline; small: jobs of one GPU apart from gangs; server: a node for each job; "
           "defragment: jobs are moved for gangs."),
    Column("jobs", "jobs", "That end."),
    Column("wait_h", "h", "Mean wait."),
    Column("locality_wait_h", "h", "Mean wait for locality alone: enough GPUs free, the queue within its quota."),
    Column("utilization_pct", "%", "GPUs held, of those there were."),
    Column("beside_pct", "%", "GPU-hours held with a neighbour on the node."),
    Column("beside_lost_gpu_hours", "GPU-h", "Of these, lost at the measured ratio; empty: not known."),
    Column("migrations_per_day", "1/day", "Jobs moved a day."),
    Column("moved_gpu_hours", "GPU-h", "GPU-hours that the moves cost."),
    Column("gpu_hours_saved", "GPU-h", "GPU-hours held less, job by job, against philly, by placement alone."),
    *ends("gpu_hours_saved_{}", "GPU-h", ", over resampled weeks"),
    Column("wait_saved_h", "h", "Mean hours of waiting saved, job by job, against philly."),
    *ends("wait_saved_{}_h", "h"),
)  # fmt: skip
_MIGRATION = (
    Column("cost_s", "s", "What a migration costs a job, on all its GPUs; empty: by the cost model (--overhead)."),
    Column("migrations_per_day", "1/day", "Jobs moved a day."),
    Column("moved_gpu_hours", "GPU-h", "GPU-hours that the moves cost."),
    Column("locality_wait_h", "h", "Mean wait for locality alone."),
    Column("waited_gpu_hours_saved", "GPU-h", "Hours of waiting saved times requested GPUs, all jobs, against philly."),
    *ends("waited_gpu_hours_saved_{}", "GPU-h", "; empty: the trace is too short to tell"),
    Column("break_even_s", "s", "Cost of a migration at which these moves cost as much GPU time as they spare gangs of "
           "waiting."),
    *ends("break_even_{}_s", "s"),
)  # fmt: skip


@dataclass(frozen=True)
class SharingReplay:
    """Result of a rule.

    Attributes:
        rule: which.
        jobs: of each job.
        shared_s: GPU-seconds that each job held with a neighbour.
        locality_s: seconds that each job waited for locality alone.
        busy_pct: GPUs in use, of those there were.
        migrations: how many.
        moved_gpu_s: GPU-seconds that they cost.
        moved_gpus: GPUs moved, counted each time.
        days: that the replay lasted.
        cost_s: seconds per migration, if set; None: by the cost model.
    """

    rule: Rule
    jobs: Jobs
    shared_s: Floats
    locality_s: Floats
    busy_pct: float | None
    migrations: int
    moved_gpu_s: float
    moved_gpus: float
    days: float
    cost_s: float | None = None


def interference(measured: Slowdowns) -> ResultTable:
    """How much slower jobs are with neighbours."""
    shared = measured.shared
    estimate = shared.estimate
    rows = (
        [(shared.units, shared.clusters, estimate.value, estimate.low, estimate.high)]
        if estimate.value is not None
        else []
    )
    return ResultTable(
        name="sharing_interference",
        section=SECTION,
        title="Speed with a neighbour",
        question="How much slower is a job while another one has GPUs on its node?",
        population=note("{n:,} attempt{n||s} with telemetry.", n=measured.attempts),
        notes=(note("The same attempt before and after a neighbour came or left, whatever that neighbour is."),),
        columns=_INTERFERENCE,
        frame=as_frame(rows, _INTERFERENCE, set(), {"attempts", "clusters"}),
    )


def rules(case: Case, done: Sequence[SharingReplay], speed: float | None) -> ResultTable:
    """The result of each rule."""
    block, _ = case.blocks()
    base = done[0]
    rows = []
    for one in done:
        ended = np.isfinite(one.jobs.gpu_s)
        wait = wait_estimate(base.jobs, one.jobs)
        gpu = savings.total(gpu_hours_saved(base.jobs, one.jobs), block)
        held, shared = float(one.jobs.gpu_s[ended].sum()), float(one.shared_s[ended].sum())
        rows.append(
            (one.rule.name, int(ended.sum()), float(np.nanmean(one.jobs.wait_s)) / HOUR_S,
             float(one.locality_s.mean()) / HOUR_S, one.busy_pct, 100 * shared / max(held, 1.0),
             None if speed is None else shared * (1 - speed) / HOUR_S, one.migrations / one.days,
             one.moved_gpu_s / HOUR_S, gpu.value, gpu.low, gpu.high, wait.value, wait.low, wait.high)
        )  # fmt: skip
    return ResultTable(
        name="sharing_rules",
        section=SECTION,
        title="Nodes of their own, and migrations",
        question="What do nodes of their own and migrations cost, and what do they save?",
        population=population(case),
        notes=(
            note("Replays do not model neighbours: their cost is computed from the replay at the measured "
                 "ratio, to first order."),
        ),
        columns=_RULES,
        frame=as_frame(rows, _RULES, {"rule"}, {"jobs"}),
        first_columns=9,
    )  # fmt: skip


def migration(case: Case, done: Sequence[SharingReplay], costs: Sequence[SharingReplay]) -> ResultTable:
    """Migrations at several costs."""
    base = done[0]
    rows = []
    for one in (done[-1], *costs):
        saved = wait_estimate(base.jobs, one.jobs, gpus=case.workload.gpus)
        ends = (saved.value, saved.low, saved.high)
        even = [None if end is None or one.moved_gpus <= 0 else max(end, 0.0) * HOUR_S / one.moved_gpus for end in ends]
        rows.append(
            (one.cost_s, one.migrations / one.days, one.moved_gpu_s / HOUR_S, float(one.locality_s.mean()) / HOUR_S,
             *ends, *even)
        )  # fmt: skip
    return ResultTable(
        name="sharing_migration",
        section=SECTION,
        title="Migrations by what they cost",
        question="How much may a migration cost before it does not pay?",
        population=population(case),
        notes=(note("Jobs are moved only if that is expected to pay, so that expensive migrations are few."),),
        columns=_MIGRATION,
        frame=as_frame(rows, _MIGRATION, set(), set()),
    )
