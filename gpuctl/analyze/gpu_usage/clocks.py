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
LEAST_BOUNDARIES = 5
"""Fewer ends of jobs with activity near them show nothing."""
NEAR_S = 900
RATIO = 5
INTERVALS = 3
MOST_HOURS = 14
"""No time zone is further from UTC."""
_THINNED = 20_000
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
    inside: list[NDArray[np.int64]] = []
    total = 0
    near = 0
    for times, begin, end in zip(active, starts, ends, strict=True):
        total += len(times)
        for one, other in zip(begin, end, strict=True):
            some = times[np.searchsorted(times, one - REACH_S) : np.searchsorted(times, other + REACH_S)]
            if not len(some):
                continue
            near += bool(((some > other - NEAR_S) & (some < other + NEAR_S)).any())
            # shifted by -d, a sample lies inside for d in (t - end, t - start]
            first = np.clip(np.floor(some - other) + 1, -REACH_S, REACH_S + 1).astype(np.int64) + REACH_S
            past = np.clip(np.floor(some - one) + 1, -REACH_S, REACH_S + 1).astype(np.int64) + REACH_S
            size = 2 * REACH_S + 2
            steps = np.bincount(first, minlength=size) - np.bincount(past, minlength=size)
            inside.append(np.cumsum(steps)[: 2 * REACH_S + 1])
    if near < LEAST_BOUNDARIES:
        return None
    by_hold = np.stack(inside[:_MOST_HOLDS])
    within = np.sum(inside, axis=0)
    best = int(within.max())
    low, high = _plateau(within, best)
    cost, uncorrected = (total - best) * interval, (total - int(within[REACH_S])) * interval
    draws = (
        np.random.default_rng(0).multinomial(len(by_hold), np.full(len(by_hold), 1 / len(by_hold)), _DRAWS) @ by_hold
    )
    beaten = float((draws[:, REACH_S] < draws.max(axis=1)).mean())
    strong = uncorrected >= RATIO * cost and uncorrected - cost >= INTERVALS * interval and beaten >= _SURE
    found = Clock(low - REACH_S, high - REACH_S, cost, uncorrected, near, strong and low != REACH_S)
    return found if strong else _zone(active, starts, ends, interval, found)


def _zone(active: Arrays, starts: Arrays, ends: Arrays, interval: float, skew: Clock) -> Clock:
    """Estimate an offset of whole hours, which is a time zone: it is reported, never corrected."""
    costs = dict.fromkeys(range(-MOST_HOURS, MOST_HOURS + 1), 0.0)
    for times, begin, end in zip(active, starts, ends, strict=True):
        if not len(begin):
            continue
        thin = max(1, len(times) // _THINNED)
        some = times[::thin]
        for hours in costs:
            moved = some - 3600 * hours
            at = np.searchsorted(begin, moved, side="right") - 1
            inside = (at >= 0) & (moved < end[np.clip(at, 0, None)])
            costs[hours] += float((~inside).sum()) * thin * interval
    best = min(costs, key=lambda hours: (costs[hours], abs(hours)))
    clear = costs[0] >= RATIO * costs[best] and costs[0] - costs[best] >= INTERVALS * interval
    if not best or not clear or costs[best] * RATIO > skew.cost:
        return skew
    return Clock(3600.0 * best, 3600.0 * best, costs[best], costs[0], skew.boundaries, strong=False)


def _plateau(within: NDArray[np.int64], best: int) -> tuple[int, int]:
    """Return the longest run of offsets with the least cost."""
    at = np.flatnonzero(within == best)
    runs = np.split(at, np.flatnonzero(np.diff(at) > 1) + 1)
    longest = max(runs, key=len)
    return int(longest[0]), int(longest[-1])
