"""Makes curves small: as many points as a figure can show, and no fewer than it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]


def thin_curve(x: Floats, y: Floats, limit: int) -> Indices:
    """Choose points of a rising curve so that no gap between neighbours is wide, sideways or upward.

    Args:
        x: rising positions as they are drawn (logarithms on a logarithmic axis), shape (n,).
        y: rising heights, shape (n,).
        limit: at most so many points; at least 2.

    Returns:
        Indices of the points to keep, rising, first and last among them. The length of the curve in units
        of the figure's width and height is at most 2, so neighbours are at most 2/(limit - 1) of it apart
        but for the curve's own jumps.
    """
    count = len(x)
    if count <= limit:
        return np.arange(count)
    length = np.concatenate(([0.0], np.cumsum(_share_of_range(x) + _share_of_range(y))))
    marks = np.linspace(0.0, length[-1], limit)
    return np.unique(np.minimum(np.searchsorted(length, marks, side="left"), count - 1))


def _share_of_range(values: Floats) -> Floats:
    steps = np.abs(np.diff(values))
    total = float(steps.sum())
    return steps / total if total > 0 else steps


def mean_by_bin(at: Floats, values: Floats, edges: Floats) -> Floats:
    """Return the mean over time of a step function, one for each bin.

    Args:
        at: rising times at which the function takes a new value, shape (n,).
        values: the values, each held until the next time, shape (n,).
        edges: rising bin edges within the first and last time, shape (m + 1,).

    Returns:
        Means, shape (m,).
    """
    area = np.concatenate(([0.0], np.cumsum(values[:-1] * np.diff(at))))
    return np.diff(np.interp(edges, at, area)) / np.diff(edges)
