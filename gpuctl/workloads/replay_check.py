"""Replays the trace and synthetic jobs on the same nodes at the same load, to compare their waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.models.records import Workload
from gpuctl.replay.run import replay
from gpuctl.workloads.quality import halves, of_values

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuctl.workloads.jobs import Floats, Jobs
    from gpuctl.workloads.quality import Score

POLICIES = ("fifo", "easy")
LARGE_QUANTILE = 0.9
_HOUR_S = 3600.0


def workload_of(jobs: Jobs) -> Workload:
    """Return the jobs for a replay, in one queue; planning policies use run times if there is no limit."""
    n = jobs.count
    none = np.zeros(0, np.int64)
    own = np.full(n, -1, np.int64)
    planned = np.where(np.isfinite(jobs.limit_s), np.maximum(jobs.limit_s, jobs.run_s), jobs.run_s)
    return Workload(
        name=jobs.name or "jobs", ids=tuple(map(str, range(n))), submit=jobs.submit_s, eligible=jobs.submit_s,
        gpus=jobs.size, queue=np.zeros(n, np.int64), user=own, time_limit=jobs.limit_s, gpu_type=own,
        app=np.arange(n, dtype=np.int64), depends=np.zeros((0, 2), np.int64),
        segment_start=np.arange(n + 1, dtype=np.int64), segment_s=jobs.run_s, segment_fails=np.zeros(n, np.bool_),
        recorded_start=np.full(n, np.nan), piece_start=np.zeros(n + 1, np.int64), piece_node=none, piece_gpus=none,
        state=("",) * n, queues=("jobs",), users=(), gpu_types=(), planned=planned,
    )  # fmt: skip


def waits(jobs: Jobs, capacity: int, load: float, policies: Sequence[str] = POLICIES) -> dict[str, dict[str, float]]:
    """Replay jobs on a pool at a load, and measure.

    Args:
        jobs: jobs larger than the pool are left out.
        capacity: of the pool.
        load: times between submissions are divided by a common factor to reach this load.
        policies: names.

    Returns:
        for each policy its measures (`MEASURES`), hours and shares; NaN if all jobs arrive at once, which has no load.
    """
    fit = jobs.take(jobs.size <= capacity)
    if fit.span_s <= 0:
        return {name: dict.fromkeys(MEASURES, np.nan) for name in policies}
    fit = fit.at_load(load, capacity)
    work = workload_of(fit)
    outcomes = replay(work, parse_cluster(f"pool:{capacity}", work), [(name, {}) for name in policies], processes=1)
    return {outcome.policy: _measures(fit, outcome.jobs["wait_s"].to_numpy(), capacity) for outcome in outcomes}


MEASURES = {
    "mean wait, h": "Mean time from submission to start.",
    "median wait, h": "Half of the jobs wait no longer.",
    "p95 wait, h": "95 % of the jobs wait no longer.",
    "hours waited by large jobs, share": "Size times wait of the jobs above the 90 % quantile of sizes, of all.",
    "most jobs waiting": "The most jobs that wait at once.",
    "utilization until the last submission, share": "Units held from the first to the last submission.",
}


def _measures(jobs: Jobs, wait: Floats, capacity: int) -> dict[str, float]:
    held = jobs.size * wait
    large = jobs.size > np.quantile(jobs.size, LARGE_QUANTILE)
    start = jobs.submit_s + wait
    last = jobs.submit_s[-1]
    inside = jobs.size * np.clip(np.minimum(start + jobs.run_s, last) - start, 0, None)
    p50, p95 = np.quantile(wait, [0.5, 0.95]) / _HOUR_S
    values = (
        float(wait.mean()) / _HOUR_S, float(p50), float(p95),
        float(held[large].sum() / held.sum()) if held.sum() > 0 else np.nan, _most_waiting(jobs.submit_s, start),
        float(inside.sum()) / (capacity * max(jobs.span_s, 1.0)),
    )  # fmt: skip
    return dict(zip(MEASURES, values, strict=True))


def _most_waiting(submit: Floats, start: Floats) -> float:
    times = np.concatenate([submit, start])
    change = np.concatenate([np.ones(submit.size), -np.ones(start.size)])
    order = np.lexsort((change, times))
    return float(np.maximum(np.cumsum(change[order]), 0).max())


def scores(
    trace: Jobs, drawn: Sequence[Jobs], capacity: int, load: float, on_progress: Callable[[float], None] | None = None
) -> list[Score]:
    """Compare the replays of a trace, its halves, and synthetic jobs; all at one load on one pool.

    Args:
        trace: its jobs.
        drawn: synthetic ones, one per seed.
        capacity: of the pool.
        load: of all of them.
        on_progress: called with the completed share.
    """
    runs = []
    for number, jobs in enumerate((trace, *halves(trace), *drawn)):
        runs.append(waits(jobs, capacity, load))
        if on_progress is not None:
            on_progress((number + 1) / (3 + len(drawn)))
    return [
        of_values(
            "replay",
            measure,
            policy,
            [run[policy][measure] for run in runs[:3]],
            [run[policy][measure] for run in runs[3:]],
        )
        for policy in POLICIES
        for measure in MEASURES
    ]
