"""Byte counts of one job over time, on an even grid, from samples at any times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

COARSEST_S = 10.0
"""Samples further apart than this are no profile to find epochs in: a bound of ours."""
MOST_POINTS = 1 << 20
_GAP = 3.0
"""A sample that covers more than so many usual steps is a gap: its bytes count, their course within it is not known."""


@dataclass(frozen=True)
class Series:
    """Bytes that a job received from storage, evenly sampled.

    Attributes:
        start: second at which the first step begins.
        step: seconds of a step.
        bytes: received in each step [n].
        known: whether a sample covers the step, rather than a gap's mean [n].
    """

    start: float
    step: float
    bytes: Floats
    known: NDArray[np.bool_]

    @property
    def total(self) -> Floats:
        """Return the bytes up to the beginning of each step, and to the end of the last one [n + 1]."""
        return np.append(0.0, np.add.accumulate(self.bytes))

    @property
    def seconds(self) -> float:
        """Return the seconds that it covers."""
        return self.step * self.bytes.size

    def until(self, seconds: float) -> Series:
        """Return the series cut after some seconds."""
        count = int(seconds / self.step)
        return Series(self.start, self.step, self.bytes[:count], self.known[:count])


def series(t: Floats, received: Floats, seconds: Floats | None = None) -> Series:
    """Resample to an even grid; the bytes of a sample are spread evenly over the time that it covers.

    Args:
        t: when each sample was taken, seconds, ascending [n].
        received: bytes since the previous sample [n].
        seconds: time that each sample covers; NaN or omitted: since the previous sample, the usual length for the first
            one.

    Returns:
        a grid of the usual step, at least 0.1 s, with as many bytes as the samples have.

    Raises:
        ValueError: fewer than two samples, or times that do not ascend.
    """
    if t.size < 2:
        raise ValueError(f"{t.size} samples; at least 2 are needed")
    between = np.diff(t)
    if not (between > 0).all():
        raise ValueError("the times of the samples do not ascend")
    usual = float(np.median(between))
    spans = np.append(np.nan, between)
    if seconds is not None:
        spans = np.where(np.isnan(seconds), spans, np.minimum(seconds, np.where(np.isnan(spans), np.inf, spans)))
    spans = np.where(np.isnan(spans), usual, spans)
    step = max(usual, 0.1, float(t[-1] - t[0] + spans[0]) / MOST_POINTS)
    start = float(t[0] - spans[0])
    count = max(1, round(float(t[-1] - start) / step))
    edges = start + step * np.arange(count + 1)
    edges[-1] = max(edges[-1], t[-1])
    # no bytes between the samples' spans; a sum that only rises, at the spans' ends
    at = np.stack([t - spans, t], axis=1).reshape(-1)
    total = np.stack([np.append(0.0, np.add.accumulate(received)[:-1]), np.add.accumulate(received)], axis=1).reshape(
        -1
    )
    grid = np.diff(np.interp(edges, at, total))
    wide = spans > _GAP * usual
    known = np.ones(count, bool)
    for begin, end in zip((t - spans)[wide], t[wide], strict=True):
        known[int(np.ceil((begin - start) / step)) : int((end - start) / step)] = False
    return Series(start, step, grid, known)
