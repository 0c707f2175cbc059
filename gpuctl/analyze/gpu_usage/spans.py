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


def samples(lane: NDArray[np.int64], t: NDArray[np.float64], value: NDArray[np.float64]) -> tuple[Samples, int]:
    """Take samples sorted by lane and time; of duplicates the last counts.

    Returns:
        the samples, and the number left out because another one of the same lane and time has a different value.
    """
    if not len(t):
        empty = np.empty(0)
        return Samples(lane, t, value, empty), 0
    last = np.append((lane[1:] != lane[:-1]) | (t[1:] != t[:-1]), True)
    differ = int((~last[:-1] & (value[1:] != value[:-1])).sum())
    lane, t, value = lane[last], t[last], value[last]
    return Samples(lane, t, value, _intervals(lane, t)), differ


def _intervals(lane: NDArray[np.int64], t: NDArray[np.float64]) -> NDArray[np.float64]:
    steps = np.append(np.diff(t), np.nan)
    steps[np.append(lane[1:] != lane[:-1], True)] = np.nan
    rows = pl.DataFrame({"lane": lane, "day": np.floor(t / DAY).astype(np.int32), "step": steps}).with_columns(
        pl.col("step").fill_nan(None)
    )
    daily = pl.col("step").median().over("lane", "day")
    whole = pl.col("step").median().over("lane")
    return (
        rows.select(daily.fill_null(whole).fill_null(pl.col("step").median())).to_series().fill_null(np.nan).to_numpy()
    )


def holders(some: Samples, held: Held) -> NDArray[np.int64]:
    """Return the index in `held` of each sample's holder at start <= t < end; -1: none."""
    if not len(held.lane) or not len(some.t):
        return np.full(len(some.t), -1)
    origin = min(some.t[:: max(1, len(some.t) - 1)].min(), held.start.min(), some.t.min())
    reach = max(some.t.max(), held.start.max()) - origin + 1
    # lanes one after the other on one axis
    at = (
        np.searchsorted(held.lane * reach + (held.start - origin), some.lane * reach + (some.t - origin), side="right")
        - 1
    )
    known = np.clip(at, 0, None)
    return np.where((at >= 0) & (held.lane[known] == some.lane) & (some.t < held.end[known]), known, -1)


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
