"""Spans of GPU samples: intervals, holders, weights, idle runs. Arrays, without stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from numpy.typing import NDArray

GAP = 1.5
"""A gap is longer than this many intervals."""
DAY = 86_400.0


class Held(NamedTuple):
    """Holdings of lanes, sorted by lane and start; seconds.

    Attributes:
        lane: number of the lane.
        start: its start.
        end: its end.
    """

    lane: NDArray[np.int64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]


class Samples(NamedTuple):
    """Samples of one metric, sorted by lane and time, without duplicates.

    Attributes:
        lane: number of the lane.
        t: time (s).
        value: value of the metric.
        interval: I, the median spacing of the lane on that day (s); NaN: a single sample.
    """

    lane: NDArray[np.int64]
    t: NDArray[np.float64]
    value: NDArray[np.float64]
    interval: NDArray[np.float64]


def samples(
    lane: NDArray[np.int64], t: NDArray[np.float64], value: NDArray[np.float64], like: Samples | None = None
) -> tuple[Samples, int]:
    """Take samples sorted by lane and time; of duplicates the last counts.

    Args:
        lane: number of the lane.
        t: time (s).
        value: value of the metric.
        like: samples of another metric with the same lanes and times.

    Returns:
        the samples, and the number left out because another one of the same lane and time has a different value.
    """
    if not len(t):
        empty = np.empty(0)
        return Samples(lane, t, value, empty), 0
    if like is not None and len(like.t) == len(t):
        return like._replace(value=value), 0
    last = np.append((lane[1:] != lane[:-1]) | (t[1:] != t[:-1]), True)
    differ = int((~last[:-1] & (value[1:] != value[:-1])).sum())
    lane, t, value = lane[last], t[last], value[last]
    return Samples(lane, t, value, _intervals(lane, t) if like is None else like.interval), differ


def _intervals(lane: NDArray[np.int64], t: NDArray[np.float64]) -> NDArray[np.float64]:
    steps = np.append(np.diff(t), np.nan)
    steps[np.append(lane[1:] != lane[:-1], True)] = np.nan
    day = np.floor(t / DAY)
    of_day = _medians(steps, np.append(True, (lane[1:] != lane[:-1]) | (day[1:] != day[:-1])))
    if not np.isnan(of_day).any():
        return of_day
    of_lane = _medians(steps, np.append(True, lane[1:] != lane[:-1]))
    known = steps[~np.isnan(steps)]
    of_all = np.median(known) if len(known) else np.nan
    return np.where(~np.isnan(of_day), of_day, np.where(~np.isnan(of_lane), of_lane, of_all))


def _medians(steps: NDArray[np.float64], new: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return, per step, the median of its run, which begins where `new` is true; NaN: the run has no step."""
    run = pl.Series(np.cumsum(new))
    rows = pl.DataFrame({"run": run, "step": pl.Series(steps, nan_to_null=True)})
    found = rows.group_by("run", maintain_order=True).agg(pl.col("step").median(), pl.len())
    return np.repeat(found["step"].fill_null(np.nan).to_numpy(), found["len"].to_numpy())


def holders(some: Samples, held: Held) -> NDArray[np.int64]:
    """Return the index in `held` of each sample's holder at start <= t < end; -1: none."""
    if not len(held.lane) or not len(some.t):
        return np.full(len(some.t), -1)
    order = _starts_before(some, held)
    at = np.repeat(np.arange(-1, len(held.lane)), np.diff(order, prepend=0, append=len(some.t)))
    known = np.clip(at, 0, None)
    return np.where((at >= 0) & (held.lane[known] == some.lane) & (some.t < held.end[known]), known, -1)


def _starts_before(some: Samples, held: Held) -> NDArray[np.int64]:
    """Return, by holding, the number of samples that precede it by lane and time."""
    found = np.searchsorted(some.lane, held.lane)
    past = np.searchsorted(some.lane, held.lane, side="right")
    for block in np.split(np.arange(len(held.lane)), np.flatnonzero(np.diff(held.lane)) + 1):
        low, high = found[block[0]], past[block[0]]
        found[block] = low + np.searchsorted(some.t[low:high], held.start[block])
    return found


def weights(some: Samples, holder: NDArray[np.int64], held: Held) -> NDArray[np.float64]:
    """Return the seconds that each sample represents: I around it, within its holding and half-way to neighbours."""
    if not len(some.t):
        return np.empty(0)
    half = np.nan_to_num(some.interval) / 2
    before, after = _neighbours(some)
    known = np.clip(holder, 0, None)
    longest = GAP * 2 * half
    from_s = np.where(some.t - before > longest, some.t - half, (before + some.t) / 2)
    to_s = np.where(after - some.t > longest, some.t + half, (after + some.t) / 2)
    if len(held.lane):
        from_s, to_s = np.maximum(from_s, held.start[known]), np.minimum(to_s, held.end[known])
    return np.where(holder >= 0, np.clip(to_s - from_s, 0, None), 0.0)


def _neighbours(some: Samples) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    same = some.lane[1:] == some.lane[:-1]
    before = np.concatenate([[-np.inf], np.where(same, some.t[:-1], -np.inf)])
    after = np.concatenate([np.where(same, some.t[1:], np.inf), [np.inf]])
    return before, after


def idle(some: Samples, holder: NDArray[np.int64], held: Held, least_s: float) -> NDArray[np.float64]:
    """Return, by holding, the seconds in runs of samples at exactly 0 without a gap, of at least `least_s` each."""
    zero = (some.value == 0) & (holder >= 0)
    at = np.flatnonzero(zero)
    if not len(at):
        return np.zeros(len(held.lane))
    one, two = at[:-1], at[1:]
    gap = some.t[two] - some.t[one] > GAP * np.nan_to_num(some.interval[two])
    new = np.append(True, (two != one + 1) | (holder[two] != holder[one]) | gap)
    first = at[new]
    last = at[np.append(np.flatnonzero(new)[1:] - 1, len(at) - 1)]
    who = holder[first]
    half = np.nan_to_num(some.interval) / 2
    begin = np.maximum(some.t[first] - half[first], held.start[who])
    end = np.minimum(some.t[last] + half[last], held.end[who])
    length = end - begin
    return np.bincount(who, np.where(length >= least_s, length, 0.0), len(held.lane)).astype(np.float64)
