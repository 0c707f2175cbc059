"""Bounds of a job's utilization on a shared node, if the GPUs that the job held are unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Bound(NamedTuple):
    """Sums over one holding.

    Attributes:
        low: lowest utilization x GPU-seconds.
        high: highest.
        covered: GPU-seconds that samples cover.
        rounds: times with a sample.
    """

    low: float
    high: float
    covered: float
    rounds: int


class Rounds(NamedTuple):
    """The samples of a node.

    Attributes:
        t: times (s).
        table: utilization by time and GPU of the node; NaN: unknown.
        interval: between times (s).
        known: by time and GPU, whether a job is known to hold it.
    """

    t: NDArray[np.float64]
    table: NDArray[np.float64]
    interval: float
    known: NDArray[np.bool_]


def bound(node: Rounds, span: tuple[float, float], count: int, others: NDArray[np.int64]) -> Bound:
    """Bound the utilization of `count` GPUs that a job held for a span of time.

    GPUs that nobody holds show 0, so the job's are among the busiest held GPUs.

    Args:
        node: its samples.
        span: span of the holding, from and to (s).
        count: GPUs of the job on the node.
        others: by time, GPUs held by others with unknown numbers.
    """
    start, end = span
    t, interval = node.t, node.interval
    mine = slice(int(np.searchsorted(t, start)), int(np.searchsorted(t, end)))
    at, values = t[mine], node.table[mine]
    if not len(at):
        return Bound(0.0, 0.0, 0.0, 0)
    half = interval / 2
    weight = np.minimum(end, at + half) - np.maximum(start, at - half)
    taken = node.known[mine]
    absent = np.isnan(values)
    # a GPU without a value may have been idle or busy
    low = np.sort(np.where(taken, -1.0, np.where(absent, 0.0, values)), axis=1)[:, ::-1]
    high = np.sort(np.where(taken, -1.0, np.where(absent, 100.0, values)), axis=1)[:, ::-1]
    held = np.minimum(others[mine] + count, values.shape[1])
    sums = np.concatenate([np.zeros((len(at), 1)), np.cumsum(np.clip(low, 0, None), axis=1)], axis=1)
    rows = np.arange(len(at))
    least = sums[rows, held] - sums[rows, np.clip(held - count, 0, None)]
    most = np.clip(high, 0, None)[:, :count].sum(axis=1)
    share = 1 - absent.mean(axis=1)
    return Bound(
        float((weight * least).sum()), float((weight * most).sum()), float((weight * share).sum() * count), len(at)
    )
