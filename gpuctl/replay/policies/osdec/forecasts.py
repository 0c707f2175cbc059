"""Forecasts of leftover capacity: quantiles of what it was at the same time of the last days."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

DAYS = 7
"""Most days back."""

QUANTILES = (10, 50, 90)
"""Percentiles used by the learned rule."""


def quantile(values: Ints, per_cent: int) -> int:
    """The value at place per_cent x (n - 1) / 100, rounded down, of n values in ascending order."""
    return int(np.sort(values)[per_cent * (values.size - 1) // 100])


def of_days(leftover: Ints, season: int, per_cent: int) -> Ints:
    """The quantile, per slot, of its value and those at the same time of the `DAYS` - 1 days before [slots].

    That of slot y is the forecast of the slots y + season, y + 2 season ... up to `season` slots after the present one.
    """
    found = np.empty(leftover.size, np.int64)
    for phase in range(min(season, leftover.size)):
        values = leftover[phase::season]
        for k in range(values.size):
            found[phase + k * season] = quantile(values[max(0, k - DAYS + 1) : k + 1], per_cent)
    return found


def forecast(leftover: Ints, now: int, slot: int, per_cent: int, season: int) -> int:
    """GPUs left in a slot, as estimated in slot `now`: the known value, a quantile of the past, or the present one."""
    if slot <= now:
        return int(leftover[slot])
    back = np.arange(slot - season, -1, -season)
    back = back[back <= now][:DAYS]
    return quantile(leftover[back], per_cent) if back.size else int(leftover[now])
