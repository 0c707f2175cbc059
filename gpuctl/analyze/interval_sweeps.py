"""Quantities on each interval between change points, computed for all intervals at once: maxima, counts, seconds.

``times[k]`` begins interval k, which lasts until ``times[k + 1]``; the last one is empty. The functions sweep whole
arrays, not single events: that needs no compiler, which takes longer to load than most logs take to sweep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Numbers = NDArray[np.signedinteger[Any]]
    Bools = NDArray[np.bool_]


def lengths(times: Floats) -> Floats:
    """Return the seconds that each interval lasts."""
    return np.diff(times, append=times[-1:])


def grouped(number: Numbers) -> Ints:
    """Return the order that sorts by number, none negative, and is stable."""
    # for numbers of 16 bits, NumPy counts instead of comparing
    small = number.max(initial=0) < 1 << 16
    return np.argsort(number.astype(np.uint16) if small else number, kind="stable")


def highest(intervals: int, first: Ints, last: Ints, value: Floats, least: float) -> Floats:
    """Return the highest of the values that hold on each interval, `least` if there is none.

    Args:
        intervals: number of intervals.
        first: first interval of each value.
        last: interval after its last one.
        value: the values.
        least: a value below all others.
    """
    some = last > first
    first, last, value = first[some], last[some], value[some]
    power = np.frexp((last - first).astype(np.float64))[1] - 1
    found = np.full(intervals, least)
    for exponent in range(int(power.max(initial=0)), -1, -1):
        # here `found` holds at i for 2 ** exponent intervals from i on; two such blocks cover the span of a value
        ours, block = power == exponent, 1 << exponent
        np.maximum.at(found, first[ours], value[ours])
        np.maximum.at(found, last[ours] - block, value[ours])
        if exponent:
            half = block >> 1
            shifted = found[:-half].copy()
            np.maximum(found[half:], shifted, out=found[half:])
    return found


def covered(times: Floats, begin: Floats, end: Floats) -> Floats:
    """Return the seconds of each interval that spans of time cover, summed over the spans.

    Args:
        times: beginnings of the intervals, seconds.
        begin: begin of each span, not before the first interval.
        end: end of each span, after its begin, not after the last interval.
    """
    low = np.searchsorted(times, begin, side="right") - 1
    high = np.searchsorted(times, end, side="left") - 1
    count = np.cumsum(
        np.bincount(low, minlength=times.size) - np.bincount(high + 1, minlength=times.size + 1)[: times.size]
    )
    whole = count * lengths(times)
    return np.asarray(
        whole
        - np.bincount(low, weights=begin - times[low], minlength=times.size)
        - np.bincount(high, weights=times[high + 1] - end, minlength=times.size)
    )


class Ranked:
    """Intervals grouped by a value of each, to sum over those of a range with the same value."""

    def __init__(self, value: Floats) -> None:
        self._order = np.argsort(value, kind="stable")
        self._values, rank = np.unique(value, return_inverse=True)
        self._size = value.size + 1
        self._keys = rank.reshape(-1)[self._order] * self._size + self._order

    def sums(self, weight: Floats, value: Floats, first: Ints, last: Ints) -> Floats:
        """Return the weight of the intervals from `first` to before `last` whose value is `value`, elementwise."""
        before = np.concatenate([[0.0], np.cumsum(weight[self._order])])
        rank = np.searchsorted(self._values, value)
        known = self._values[np.minimum(rank, self._values.size - 1)] == value
        low, high = (np.searchsorted(self._keys, rank * self._size + k) for k in (first, last))
        return np.where(known, before[high] - before[low], 0.0)


def open_racks(  # noqa: PLR0917
    intervals: int, rack: Numbers, k: Numbers, before: Numbers, after: Numbers, at_first: Ints, demands: list[int]
) -> dict[int, Bools]:
    """Return whether each interval has a rack in which the fewest nodes that can hold a gang are free.

    Args:
        intervals: number of intervals.
        rack: of each change of a node's free GPUs, ascending.
        k: interval that each change begins, ascending within a rack.
        before: free GPUs of the node before each change.
        after: free GPUs of the node after it.
        at_first: (racks, sizes): nodes of each rack with 0, 1, 2 … GPUs, all free.
        demands: gang sizes, each at least 1.
    """
    racks, sizes = at_first.shape
    largest = sizes - 1
    # nodes of each rack with at least this many free GPUs
    least = np.cumsum(at_first[:, ::-1], axis=1)[:, ::-1]
    begins = np.searchsorted(rack, np.arange(racks))
    # of changes of a rack at the same interval, the result of the last one counts
    shown = np.flatnonzero(np.append((rack[1:] != rack[:-1]) | (k[1:] != k[:-1]), True)[: rack.size] & (k < intervals))
    first = np.append(True, rack[shown][1:] != rack[shown][:-1])[: shown.size]

    def nodes(free: int) -> Ints:
        sums = np.zeros(rack.size + 1, np.int32)
        np.cumsum((after >= free).view(np.int8) - (before >= free).view(np.int8), dtype=np.int32, out=sums[1:])
        return np.asarray(sums[shown + 1] - sums[begins[rack[shown]]] + least[rack[shown], free])

    found = {}
    for demand in demands:
        needed = -(-demand // largest)
        if demand <= largest:
            fits, initially = nodes(demand) > 0, least[:, demand] > 0
        elif demand == needed * largest:
            fits, initially = nodes(largest) >= needed, least[:, largest] >= needed
        else:
            fits = sum(np.minimum(nodes(free), needed) for free in range(1, sizes)) >= demand
            initially = np.minimum(least[:, 1:], needed).sum(axis=1) >= demand
        was = np.where(first, initially[rack[shown]], np.append(False, fits[:-1])[: fits.size])
        changed = np.flatnonzero(fits != was)
        weights = np.where(fits[changed], 1.0, -1.0)
        number = np.cumsum(np.bincount(k[shown[changed]], weights=weights, minlength=intervals))
        found[demand] = number + initially.sum() > 0
    return found
