"""Work of jobs that shared GPUs, recomputed from placements over time, for conformance."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.replay.results.timelines import paced_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.models.records import Floats, Outcome, Workload

    Bools = NDArray[np.bool_]

SLACK = 1e-6


def in_company(
    outcome: Outcome, workload: Workload, settings: Settings, scale: Callable[[int, int], float]
) -> list[str]:
    """Jobs that did more or less work than possible next to the jobs on their GPUs.

    The log does not record which jobs were packed and which took turns: a job's work lies between the slower and the
    faster of the two. Jobs with overhead or loss, or whose speed depends on place, are left out.

    Args:
        outcome: of the replay.
        workload: the jobs.
        settings: with the speeds.
        scale: speed of a job, by number, on a number of GPUs, relative to its gang.
    """
    rows = outcome.jobs
    plain = ((rows["overhead_gpu_s"] == 0) & (rows["lost_gpu_s"] == 0) & (rows["state"] == "finished")).to_numpy()
    # a job without GPUs loses no GPU-seconds
    plain &= (settings.rates.speed == 1).all(axis=1) & (settings.overhead.charge == 0) & (workload.gpus > 0)
    if settings.rates.types is not None or "gather" in outcome.decisions["decision"]:
        return []
    if outcome.turns is not None:
        return _by_turns(outcome, workload, plain, scale)
    low, high = np.zeros(workload.size), np.zeros(workload.size)
    attempts = outcome.attempts.with_row_index("row").with_columns(
        outcome.attempts["end_s"].fill_null(outcome.end_s).alias("end_s")
    )
    for part in attempts.partition_by("group", maintain_order=True):
        job, gpus = part["job"].to_list(), part["gpus"].to_list()
        start, end = part["start_s"].to_numpy(), part["end_s"].to_numpy()
        for begin, until in pairwise(np.unique(np.concatenate([start, end])).tolist()):
            there = np.flatnonzero((start <= begin) & (end >= until)).tolist()
            for k in there:
                slow, fast = _speeds(settings, job[k], [job[other] for other in there if other != k])
                done = (until - begin) * scale(job[k], gpus[k])
                low[job[k]] += done * slow
                high[job[k]] += done * fast
    work = workload.true_run_time
    wrong = plain & ((work < low - SLACK * (1 + low)) | (work > high + SLACK * (1 + high)))
    return [
        f"{workload.ids[k]}: beside others its GPUs did {low[k]:g} to {high[k]:g} s of work, it has {work[k]:g} s"
        for k in np.flatnonzero(wrong).tolist()
    ]


def _by_turns(outcome: Outcome, workload: Workload, plain: Bools, scale: Callable[[int, int], float]) -> list[str]:
    """Jobs on crowded nodes whose work is not the integral of their reduced speed."""
    job, gpus = outcome.attempts["job"].to_numpy(), outcome.attempts["gpus"].to_list()
    speed = np.array([scale(*pair) for pair in zip(job.tolist(), gpus, strict=True)])
    done = np.bincount(job, weights=paced_seconds(outcome) * speed, minlength=workload.size)
    wrong = plain & ~np.isclose(done, workload.true_run_time, rtol=SLACK, atol=SLACK)
    return [
        f"{workload.ids[k]}: in its turns it did {done[k]:g} s of work, it has {workload.true_run_time[k]:g} s"
        for k in np.flatnonzero(wrong).tolist()
    ]


def _speeds(settings: Settings, job: int, others: list[int]) -> tuple[float, float]:
    """A job's lower and higher speed of the two: packed with others, or taking turns with them."""
    if not others:
        return 1.0, 1.0
    turns = settings.slice_s / (settings.slice_s + settings.switch_s) / (len(others) + 1)
    table, row = settings.rates.pairs, settings.rates.row
    packed = float(settings.rates.pack[job])
    if table is not None and row is not None:
        pair_speeds: Floats = table[row[job], row[others]]
        packed = float(pair_speeds.prod())
        if (pair_speeds == 0).any() or (table[row[others], row[job]] == 0).any():
            return turns, turns
    return min(turns, packed), max(turns, packed)
