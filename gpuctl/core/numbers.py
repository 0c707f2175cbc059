"""The single rule for numbers that people read; files for programs (JSON, CSV, Parquet) hold the values themselves.

- Three significant digits, no more than three decimals, no meaningless zeros; all digits before the point, with a
  comma between thousands: ``13,703``, ``298``, ``81.6``, ``4.49``, ``0.168``, ``<0.001``.
- Shares have one decimal: ``72.1 %``, ``<0.1 %`` if above 0, ``>99.9 %`` if below 100.
- Durations are in s, min, h or d: the smallest unit in which the median of a quantity is below 120 s, 120 min or 48 h.
  A quantity has one unit in all tables and sentences of a result (`gpuctl.reports.units`).
- Sums of hours over jobs stay in hours, as GPU-hours do.
- Bytes are in kB, MB, GB or TB, powers of 1000.

Pure functions of the standard library: every room may use them.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

MISSING = "\u2013"
"""Text shown for a missing value."""

_DUST = 1e-9


class Unit(NamedTuple):
    """A unit of time: how many seconds it has, and its name."""

    seconds: float
    name: str


SECOND, MINUTE, HOUR, DAY = Unit(1.0, "s"), Unit(60.0, "min"), Unit(3600.0, "h"), Unit(86400.0, "d")
UNITS = {unit.name: unit for unit in (SECOND, MINUTE, HOUR, DAY)}
_LEAST = (99.95, 9.995, 0.9995, 0.09995, 0.009995, 0.0009995)
"""Limits from which 0, 1, 2 … decimals give three significant digits."""
_BELOW = ((SECOND, 120.0), (MINUTE, 120 * 60.0), (HOUR, 48 * 3600.0))


def number(value: float | None, unit: str = "-") -> str:
    """Return a number for reading, without its unit.

    Args:
        value: the number; None and NaN are a dash.
        unit: ``%`` gets one decimal; ``-``, a number without a unit such as a ratio, has three digits even if it is
            small (``3.20e-05``).
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "\u221e" if value > 0 else "-\u221e"
    if unit == "%" and 0 <= value <= 100 + _DUST:
        return _share(value)
    size = abs(value)
    if size >= 1e15:
        return f"{value:.3e}"
    if 0 < size < 0.0005:
        return f"{value:.2e}" if unit == "-" else "<0.001" if value > 0 else ">-0.001"
    decimals = next((count for count, least in enumerate(_LEAST) if size >= least), len(_LEAST))
    return _digits(value, decimals if unit == "-" else min(decimals, 3)) if size else "0"


def _digits(value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}"
    # 2.5 and 8 are exact; for 2.5004, the trailing zero shows that it is rounded to 2.50
    exact = round(value, decimals) == value
    return text.rstrip("0").rstrip(".") if decimals and exact else text


def _share(value: float) -> str:
    # A share that is not quite 0 or 100 must not read as if it were; a sum of floats may deviate by less.
    if _DUST < value < 0.05:
        return "<0.1"
    if 99.95 <= value < 100 - _DUST:
        return ">99.9"
    return f"{value:.1f}"


def percent(value: float | None) -> str:
    """Return ``72.1 %``; a dash if the share is unknown."""
    return MISSING if value is None or not math.isfinite(value) else f"{number(value, '%')} %"


def unit_of(seconds: Iterable[float | None]) -> Unit:
    """Return the unit for durations of one quantity: the one that suits the median of those that are not 0."""
    sizes = [abs(value) for value in seconds if value is not None and math.isfinite(value) and value]
    middle = median(sizes) if sizes else 0.0
    return next((unit for unit, below in _BELOW if middle < below), DAY)


def timed(seconds: float | None, unit: Unit) -> str:
    """Return a duration in a unit, without the unit."""
    return number(None if seconds is None else seconds / unit.seconds, unit.name)


def lasting(seconds: float | None, unit: Unit | None = None) -> str:
    """Return a duration with its unit: ``4.49 h``; by default in the unit that suits it."""
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    unit = unit or unit_of([seconds])
    return f"{timed(seconds, unit)} {unit.name}"


def size(count: float) -> str:
    """Return bytes with their unit, in powers of 1000: ``4.74 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{number(round(count) if unit == 'B' else count, unit)} {unit}"
        count /= 1000
    return f"{number(count, 'TB')} TB"
