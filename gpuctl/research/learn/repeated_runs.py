"""Helpers for generated runs over several seeds: numbers from a seed, and the interval of a mean."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def u(seed: int, place: object, tag: str) -> float:
    """Return a number between 0 and 1 that depends on its arguments alone, the same on every machine.

    CRC-32 is linear: the numbers of two seeds differ by one mask, so they are not independent samples.
    """
    return (crc32(f"{seed}:{place}:{tag}".encode()) + 0.5) / 2**32


def student_interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the mean of some values and its 95 % interval by Student's t; NaN ends for one value."""
    mean = float(values.mean())
    if values.size < 2:
        return mean, math.nan, math.nan
    from scipy.special import stdtrit

    half = float(stdtrit(values.size - 1, 0.975)) * float(values.std(ddof=1)) / math.sqrt(values.size)
    return mean, mean - half, mean + half
