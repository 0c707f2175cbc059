"""What counters of a GPU come to: energy between two times, and counters of activity that stand still."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from gpuctl.analyze.gpu_usage.spans import GAP

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.analyze.gpu_usage.spans import Held, Samples

STUCK_PCT = 50
"""Above this utilization in all of an hour, engines that were at 0 throughout were not counted."""


class Energy(NamedTuple):
    """Energy of each of some holds.

    Attributes:
        joules: NaN where samples do not bracket the hold, or a gap lies at one of its ends.
        resets: falls of the counter within holds.
    """

    joules: NDArray[np.float64]
    resets: int


def energy(some: Samples, held: Held) -> Energy:
    """Energy between the start and the end of each hold, by a counter that is interpolated there.

    A fall is a reset: what came after it is added, and the time between the two samples has none.

    Args:
        some: of the counter (J).
        held: who held the lanes.
    """
    joules = np.full(len(held.lane), np.nan)
    resets = 0
    for lane in np.unique(some.lane):
        of_lane = slice(int(np.searchsorted(some.lane, lane)), int(np.searchsorted(some.lane, lane, "right")))
        t, steps = some.t[of_lane], np.diff(some.value[of_lane])
        if len(t) < 2:
            continue
        fell = steps < 0
        total = np.concatenate([[0.0], np.cumsum(np.where(fell, 0.0, steps))])
        longest = GAP * np.nan_to_num(some.interval[of_lane])
        for at in np.flatnonzero(held.lane == lane):
            ends = held.start[at], held.end[at]
            # the sample at or before each end, and the one after it
            before = np.searchsorted(t, ends, "right") - 1
            if before[0] < 0 or t[-1] < ends[1]:
                continue
            after = np.minimum(before + 1, len(t) - 1)
            if (t[after] - t[before] > longest[after]).any():
                continue
            joules[at] = float(np.diff(np.interp(ends, t, total))[0])
            resets += int(fell[before[0] : after[1]].sum())
    return Energy(joules, resets)


def without_stuck(rows: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Clear sm_pct and tensor_pct in hours in which the counters of a busy GPU stood at 0 throughout.

    They stop after some faults, and while a profiler holds them (NVIDIA/DCGM 303, 202, 16).

    Args:
        rows: samples with ``lane``, ``t`` (s), ``kind`` of the series, ``util``, ``sm_pct``, ``tensor_pct``.

    Returns:
        the rows, and of how many hours of lanes the values were cleared.
    """
    if not (rows["kind"] == "engine").any() or not (
        rows["sm_pct"].is_not_null().any() or rows["tensor_pct"].is_not_null().any()
    ):
        return rows, 0
    engine, kernel = (pl.col("util").filter((pl.col("kind") == "engine") == wanted) for wanted in (True, False))
    hour = (pl.col("t") // 3600).cast(pl.Int64).alias("hour")
    stuck = (
        rows.group_by("lane", hour)
        .agg(idle=engine.max() == 0, busy=kernel.min() > STUCK_PCT)
        .filter(pl.col("idle") & pl.col("busy"))
        .select("lane", "hour", stuck=pl.lit(value=True))
    )
    if not stuck.height:
        return rows, 0
    marked = rows.with_columns(hour).join(stuck, on=["lane", "hour"], how="left", maintain_order="left")
    clear = [pl.when(pl.col("stuck").is_null()).then(name).alias(name) for name in ("sm_pct", "tensor_pct")]
    return marked.with_columns(clear).drop("hour", "stuck"), stuck.height
