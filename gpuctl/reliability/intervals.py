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


def union(node: np.ndarray, start: np.ndarray, end: np.ndarray) -> pl.DataFrame:
    """Join intervals of a node that meet: ``node``, ``start``, ``end``, in order."""
    rows = pl.DataFrame({"node": node, "start": start, "end": end}).filter(pl.col("end") > pl.col("start"))
    rows = rows.sort("node", "start")
    before = pl.col("end").cum_max().shift().over("node")
    parts = rows.with_columns(part=(before.is_null() | (pl.col("start") > before)).cum_sum())
    joined = parts.group_by("part", maintain_order=True).agg(
        pl.col("node").first(), pl.col("start").first(), pl.col("end").max()
    )
    return joined.drop("part")


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
