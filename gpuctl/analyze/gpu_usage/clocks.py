"""The offset between a node's clock and the scheduler's, from GPU activity outside of jobs.

The method is gpuctl's: cost(d) is the active GPU-time outside of all jobs, after samples are shifted by -d. Programs
warm up before their first kernel but are busy to their last second, so the least cost is a plateau, and its lower end,
at which busy spans end with their jobs, is the offset.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

Arrays = list["NDArray[np.float64]"]
REACH_S = 600
"""Offsets past this are no skew: a zone, or another clock."""
_SHIFTS = 2 * REACH_S + 1
"""Offsets that are compared: every second within the reach."""
LEAST_BOUNDARIES = 5
"""Fewer ends of jobs with activity near them show nothing."""
NEAR_S = 900
RATIO = 5
INTERVALS = 3
MOST_HOURS = 14
"""No time zone is further from UTC."""
_DRAWS = 200
_SURE = 0.99
_MOST_HOLDS = 2000


class Clock(NamedTuple):
    """The estimate for a node; seconds.

    Attributes:
        offset: how far its clock is ahead: the lower end of the plateau.
        high: the upper end.
        cost: GPU-seconds of activity outside of jobs, after the correction.
        uncorrected: the same without the correction.
        boundaries: ends of jobs with activity near them.
        strong: whether the evidence suffices for a correction.
    """

    offset: float
    high: float
    cost: float
    uncorrected: float
    boundaries: int
    strong: bool


def estimate(active: Arrays, starts: Arrays, ends: Arrays, interval: float) -> Clock | None:
    """Estimate the offset of a node's clock.

    Args:
        active: by GPU, the times at which it was active, in order (s).
        starts: by GPU, the starts of holdings, in order (s).
        ends: their ends.
        interval: between samples (s).

    Returns:
        None if too few jobs ended with activity near their ends.
    """
    within = np.zeros(_SHIFTS, np.int64)
    by_hold: list[NDArray[np.int64]] = []
    near = total = holds = 0
    for times, begin, end in zip(active, starts, ends, strict=True):
        total += len(times)
        few = max(0, _MOST_HOLDS - holds)
        inside = _inside(times, begin, end, few)
        near += inside.near
        holds += len(inside.by_hold)
        within += inside.all
        by_hold.append(inside.by_hold)
    if near < LEAST_BOUNDARIES:
        return None
    best = int(within.max())
    low, high = _plateau(within, best)
    cost, uncorrected = (total - best) * interval, (total - int(within[REACH_S])) * interval
    times_drawn = np.random.default_rng(0).multinomial(holds, np.full(holds, 1 / holds), _DRAWS)
    # as floating-point numbers: NumPy multiplies matrices of integers without BLAS
    draws = times_drawn.astype(np.float64) @ np.concatenate(by_hold).astype(np.float64)
    beaten = float((draws[:, REACH_S] < draws.max(axis=1)).mean())
    strong = uncorrected >= RATIO * cost and uncorrected - cost >= INTERVALS * interval and beaten >= _SURE
    found = Clock(low - REACH_S, high - REACH_S, cost, uncorrected, near, strong and low != REACH_S)
    return found if strong else _zone(active, starts, ends, interval, found)


class _Inside(NamedTuple):
    """The active samples of a GPU within its holdings, by offset.

    Attributes:
        all: their number.
        by_hold: of the first holdings that have samples within reach; holdings x offsets.
        near: holdings with samples near their end.
    """

    all: NDArray[np.int64]
    by_hold: NDArray[np.int64]
    near: int


def _inside(times: NDArray[np.float64], begin: NDArray[np.float64], end: NDArray[np.float64], most: int) -> _Inside:
    """Count samples within holdings at each offset, the first `most` holdings also one by one."""
    low, high = np.searchsorted(times, begin - REACH_S), np.searchsorted(times, end + REACH_S)
    some = high > low
    begin, end, low, high = begin[some], end[some], low[some], high[some]
    close = np.searchsorted(times, end - NEAR_S, "right"), np.searchsorted(times, end + NEAR_S)
    near = int((np.minimum(close[1], high) > np.maximum(close[0], low)).sum())
    # samples further than the reach from both ends are inside at every offset
    deep_from = np.maximum(np.searchsorted(times, begin + REACH_S + 1, "right"), low)
    deep_to = np.minimum(np.searchsorted(times, end - REACH_S - 1), high)
    deep = deep_to > deep_from
    deep_from, deep_to = np.where(deep, deep_from, high), np.where(deep, deep_to, high)
    holds = np.arange(len(begin))
    at = np.concatenate([_ranges(low, deep_from), _ranges(deep_to, high)])
    of = np.concatenate([np.repeat(holds, deep_from - low), np.repeat(holds, high - deep_to)])
    # shifted by -d, a sample lies inside for d in (t - end, t - begin]
    first, past = (
        np.clip(np.floor(times[at] - bound[of]) + 1, -REACH_S, REACH_S + 1).astype(np.int64) + REACH_S
        for bound in (end, begin)
    )
    every = np.bincount(first, minlength=_SHIFTS + 1) - np.bincount(past, minlength=_SHIFTS + 1)
    every[0] += (deep_to - deep_from).sum()
    few = min(most, len(begin))
    own = of < few
    cells = of[own] * (_SHIFTS + 1)
    size = few * (_SHIFTS + 1)
    steps = np.bincount(cells + first[own], minlength=size) - np.bincount(cells + past[own], minlength=size)
    of_holds = steps.reshape(few, _SHIFTS + 1)
    of_holds[:, 0] += (deep_to - deep_from)[:few]
    return _Inside(np.cumsum(every)[:_SHIFTS], np.cumsum(of_holds, axis=1)[:, :_SHIFTS], near)


def _ranges(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers from each low to below its high, one range after the other."""
    sizes = high - low
    return np.repeat(low - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes) + np.arange(sizes.sum())


def _zone(active: Arrays, starts: Arrays, ends: Arrays, interval: float, skew: Clock) -> Clock:
    """Estimate an offset of whole hours, which is a time zone: it is reported, never corrected."""
    costs = dict.fromkeys(range(-MOST_HOURS, MOST_HOURS + 1), 0.0)
    for times, begin, end in zip(active, starts, ends, strict=True):
        if not len(begin):
            continue
        first, past = _united(begin, end)
        for hours in costs:
            low, high = (np.searchsorted(times, bound + 3600 * hours) for bound in (first, past))
            costs[hours] += float(len(times) - (high - low).sum()) * interval
    best = min(costs, key=lambda hours: (costs[hours], abs(hours)))
    clear = costs[0] >= RATIO * costs[best] and costs[0] - costs[best] >= INTERVALS * interval
    if not best or not clear or costs[best] * RATIO > skew.cost:
        return skew
    return Clock(3600.0 * best, 3600.0 * best, costs[best], costs[0], skew.boundaries, strong=False)


def _united(begin: NDArray[np.float64], end: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Unite holdings, in order of their starts, that overlap."""
    latest = np.maximum.accumulate(end)
    new = np.append(True, begin[1:] > latest[:-1])
    return begin[new], latest[np.append(np.flatnonzero(new)[1:] - 1, len(end) - 1)]


def _plateau(within: NDArray[np.int64], best: int) -> tuple[int, int]:
    """Return the longest run of offsets with the least cost."""
    at = np.flatnonzero(within == best)
    runs = np.split(at, np.flatnonzero(np.diff(at) > 1) + 1)
    longest = max(runs, key=len)
    return int(longest[0]), int(longest[-1])
