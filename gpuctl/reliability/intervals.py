"""Sums over intervals of many nodes at once: time that nodes were busy, GPU-seconds that they held."""

from __future__ import annotations

import numpy as np
import polars as pl

DAY = 86_400.0
_MS = 1000
_SHIFT = 1 << 40
"""A node's instants lie within so many milliseconds: 34 years."""


def keys(node: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """One ascending number for (node, seconds since the begin of the window), to the millisecond."""
    instant: np.ndarray = np.clip(np.rint(seconds * _MS), 0, _SHIFT - 1).astype(np.int64)
    return instant + node.astype(np.int64) * _SHIFT


class Held:
    """How much intervals come to until an instant, node by node.

    Args:
        node: number of the node of each interval.
        start: seconds since the begin of the window, 0 or more.
        end: seconds, at least `start`.
        weight: of each interval, e.g. its GPUs.
    """

    def __init__(self, node: np.ndarray, start: np.ndarray, end: np.ndarray, weight: np.ndarray) -> None:
        self._edges = [_Edges(node, at, weight) for at in (start, end)]

    def until(self, node: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Weight times seconds before `at`, for each (node, instant)."""
        difference: np.ndarray = np.subtract(*(edges.until(node, at) for edges in self._edges))
        return difference

    def between(self, node: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Weight times seconds from `start` to `end`."""
        difference: np.ndarray = np.subtract(self.until(node, end), self.until(node, start))
        return difference


class _Edges:
    def __init__(self, node: np.ndarray, at: np.ndarray, weight: np.ndarray) -> None:
        key = keys(node, at)
        order = np.argsort(key, kind="stable")
        self._key = key[order]
        self._weight = np.append(0.0, np.cumsum(weight[order]))
        self._moment = np.append(0.0, np.cumsum((weight * at)[order]))

    def until(self, node: np.ndarray, at: np.ndarray) -> np.ndarray:
        first = np.searchsorted(self._key, keys(node, np.zeros(len(node))))
        last = np.searchsorted(self._key, keys(node, at), "right")
        weight, moment = (sums[last] - sums[first] for sums in (self._weight, self._moment))
        difference: np.ndarray = np.subtract(at * weight, moment)
        return difference


def on_rows(height: int, row: pl.Series, values: pl.DataFrame) -> pl.DataFrame:
    """Values of some rows as columns of all `height` rows: null elsewhere. A join would copy all other columns.

    Args:
        height: rows of the result.
        row: number of each of `values`, from 0; each at most once.
        values: of these rows.
    """
    place = np.full(height, -1, np.int64)
    place[row.to_numpy()] = np.arange(len(row))
    index = pl.select(at=pl.Series(place)).select(pl.when(pl.col("at") >= 0).then("at")).to_series()
    return values.select(pl.all().gather(index))


def union(node: np.ndarray, start: np.ndarray, end: np.ndarray) -> pl.DataFrame:
    """Join intervals of a node that meet: ``node``, ``start``, ``end``, in order."""
    some = np.flatnonzero(end > start)
    order = some[np.lexsort((start[some], node[some]))]
    node, start, end = node[order], start[order], end[order]
    first = np.flatnonzero(np.diff(node, prepend=-1))
    latest = np.empty(len(end))
    for begin, until in zip(first, [*first[1:], len(end)][: len(first)], strict=True):
        np.maximum.accumulate(end[begin:until], out=latest[begin:until])
    new = np.append(True, start[1:] > latest[:-1])[: len(start)]
    new[first] = True
    begins = np.flatnonzero(new)
    ends = np.append(begins[1:], len(end))[: len(begins)] - 1
    return pl.DataFrame({"node": node[begins], "start": start[begins], "end": latest[ends]})


def first_within(key: np.ndarray, node: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Of each (node, start, end) the place in ascending `keys` of the first instant from `start` to `end`; -1: none."""
    if not len(key):
        return np.full(len(node), -1)
    place = np.searchsorted(key, keys(node, start))
    found = key[np.minimum(place, len(key) - 1)]
    inside = (place < len(key)) & (found <= keys(node, end))
    return np.where(inside, place, -1)


def before(start: np.ndarray, end: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Seconds of all intervals together before each of ascending instants."""
    sums = []
    for edge in (np.sort(start), np.sort(end)):
        passed = np.searchsorted(edge, at, "right")
        sums.append(passed * at - np.append(0.0, np.cumsum(edge))[passed])
    seconds: np.ndarray = np.subtract(*sums)
    return seconds
