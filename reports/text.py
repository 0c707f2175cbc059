"""Words and numbers for readers: headings, rounded values, strings that cannot disturb a terminal or a page.

Rounding happens only here and only for reading; exports carry the values themselves.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.core.results import Column, ResultTable

MISSING = "\u2013"
"""What a reader sees where there is no value."""

_DUST = 1e-9
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SUFFIX_OF_UNIT = {"s": "s", "min": "min", "h": "h", "%": "pct", "GB": "gb", "MB": "mb", "B": "bytes"}
_SPELLED_UNIT = {"GPU-h": "gpu_hours", "GPU-min": "gpu_minutes", "min": "minutes", "h": "hours", "d": "days"}
_CAPITALS = {"gpu": "GPU", "gpus": "GPUs", "cpu": "CPU", "cpus": "CPUs", "cdf": "CDF", "id": "ID", "vc": "VC"}


def visible(text: str) -> str:
    r"""Write out every character that has no glyph of its own, or that would move others about.

    Control characters (and so every escape sequence), zero-width and direction-changing characters, lone
    surrogates and codes that are no characters become ``\x1b``, ``\u202e`` and the like; everything else stays.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _UNSAFE or _is_none(c) else c for c in text)


def _is_none(char: str) -> bool:
    """Whether this code stands for no character and never will, as U+FFFE does: XML may not hold some of them."""
    code = ord(char)
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def _escaped(char: str) -> str:
    code = ord(char)
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def heading(column: Column) -> tuple[str, str]:
    """Return a column's heading and its unit, each said once: ``wait_p50_min`` is ``("wait p50", "min")``.

    The unit is empty where the column has none or the heading already says it.
    """
    unit = "" if column.unit in {"-", ""} else column.unit
    name = column.name
    suffix = _SUFFIX_OF_UNIT.get(unit)
    if suffix and name.endswith(f"_{suffix}"):
        name = name.removesuffix(f"_{suffix}")
    spelled = _SPELLED_UNIT.get(unit, unit.lower().replace(" ", "_"))
    if f"_{spelled}_" in f"_{name}_":
        unit = ""
    words = [_CAPITALS.get(word, word) for word in name.split("_") if word]
    return visible(" ".join(words)), visible(unit)


def shown(value: object, unit: str = "-", *, whole: bool = True) -> str:
    """Return a value as it is written for reading: rounded to 3 or 4 digits, escaped, never empty.

    Args:
        value: what a Polars frame holds: text, number, time, list, or None.
        unit: the column's unit; ``%`` gets one decimal.
        whole: write a float that is a whole number without decimals.

    Returns:
        ``1,234``, ``12.3``, ``0.0456``, ``2017-10-03 00:44:36``; a dash for a missing value.
    """
    match value:
        case None:
            return MISSING
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float() | Decimal():
            return _number(float(value), unit, whole)
        case str():
            return visible(value) or '""'
        case datetime():
            return value.isoformat(" ").removesuffix("+00:00")
        case date():
            return value.isoformat()
        case timedelta():
            return _number(value.total_seconds(), unit, whole)
        case list() | tuple():
            return ", ".join(shown(item, unit) for item in value) or "none"
        case _:
            return visible(str(value))


def _number(value: float, unit: str, whole: bool) -> str:
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "\u221e" if value > 0 else "-\u221e"
    if unit == "%" and 0 <= value <= 100:
        return _share(value)
    size = abs(value)
    if size >= 1e15:
        return f"{value:.3e}"
    if size == 0 or size >= 999.5 or (whole and value == int(value)):
        return f"{value:,.0f}"
    if size >= 0.001:
        return f"{value:.{_decimals(size)}f}"
    return f"{value:.2e}"


def _decimals(size: float) -> int:
    for decimals, limit in ((1, 9.995), (2, 0.9995), (3, 0.09995), (4, 0.009995)):
        if size >= limit:
            return decimals
    return 5


def _share(value: float) -> str:
    # A share that is not quite none or all must not read as if it were; a sum of floats may miss by less.
    if _DUST < value < 0.05:
        return "<0.1"
    if 99.95 <= value < 100 - _DUST:
        return ">99.9"
    return f"{value:.1f}"


@dataclass(frozen=True)
class ShownColumn:
    """One column of a result table, ready for reading.

    Attributes:
        label: its heading.
        unit: its unit, empty where it has none or the heading says it.
        description: its definition.
        cells: its values for reading, as many as were asked for.
        values: the same values as they are.
        numeric: true for numbers (set to the right).
        kind: ``number``, ``time`` or ``text``: how its values compare.
    """

    name: str
    label: str
    unit: str
    description: str
    cells: tuple[str, ...]
    values: tuple[object, ...]
    numeric: bool
    kind: str


def shown_columns(table: ResultTable, limit: int | None = None) -> tuple[ShownColumn, ...]:
    """Return the columns of a table for reading.

    Args:
        table: a result table.
        limit: only the first so many rows.
    """
    frame = table.frame if limit is None else table.frame.head(limit)
    return tuple(_shown_column(column, frame[column.name]) for column in table.columns)


def _shown_column(column: Column, series: pl.Series) -> ShownColumn:
    dtype = series.dtype
    values = tuple(series.to_list())
    whole = all(v.is_integer() for v in values if isinstance(v, float) and math.isfinite(v))
    label, unit = heading(column)
    if dtype.is_temporal() and not unit and isinstance(getattr(dtype, "time_zone", None), str):
        unit = "UTC"
    return ShownColumn(
        name=column.name,
        label=label,
        unit=unit,
        description=visible(column.description),
        cells=tuple(shown(v, column.unit, whole=whole) for v in values),
        values=values,
        numeric=dtype.is_numeric(),
        kind="number" if dtype.is_numeric() else "time" if dtype.is_temporal() else "text",
    )


def lasting(seconds: float) -> tuple[str, str]:
    """Return a time in the unit that reads best, and that unit: ``("1.8", "min")``."""
    size, unit = scale(seconds)
    return shown(seconds / size), unit


def scale(seconds: float) -> tuple[int, str]:
    """Return the unit of time that a value of this size reads best in: its seconds, and its name."""
    units = ((86400, "d"), (3600, "h"), (60, "min"))
    return next(((size, unit) for size, unit in units if abs(seconds) >= 2 * size), (1, "s"))


def between(low: float, high: float) -> str:
    """A share in per cent as the range that it is known to: ``41 to 48 %``, or ``43.2 %`` where that is narrow."""
    least, most = math.floor(low + 1e-6), math.ceil(high - 1e-6)
    return f"{least} to {most}\u00a0%" if most - least > 1 else f"{shown((low + high) / 2, '%')}\u00a0%"
