"""Text for readers: headings, values as text, strings that cannot disturb a terminal or a page.

`gpuctl.core.numbers` rounds and scales numbers; exports carry the values themselves.
"""

from __future__ import annotations

import math
import unicodedata
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from gpuctl.core.numbers import MISSING, UNITS, number, timed
from gpuctl.core.relative_time import without_date
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.core.results import Column, ResultTable

_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SUFFIX_OF_UNIT = {"s": "s", "min": "min", "h": "h", "%": "pct", "GB": "gb", "MB": "mb", "B": "bytes"}
_SPELLED_UNIT = {
    "GPU-h": "gpu_hours", "node-h": "node_hours", "GPU-min": "gpu_minutes", "min": "minutes", "h": "hours", "d": "days",
}  # fmt: skip
_CAPITALS = {
    "gpu": "GPU",
    "gpus": "GPUs",
    "cpu": "CPU",
    "cpus": "CPUs",
    "cdf": "CDF",
    "id": "ID",
    "vc": "VC",
    "jct": "JCT",
}
_LABELS = {
    "own_lost": "lost of own", "util_mean": "mean GPU utilization", "util_p10": "GPU utilization p10",
    "km_p50": "p50 with open waits", "km_p95": "p95 with open waits", "rtf_p50": "run time to failure p50",
    "rtf_p90": "run time to failure p90", "rtf_p95": "run time to failure p95", "rtf": "run time to failure",
    "rtf_total": "share of run time to failure", "told_by": "source", "said_gpus": "sampled GPUs", "bad": "suspect",
    "placed": "time from", "ours": "this trace",
}  # fmt: skip
"""Headings of columns whose names are too short to be read as words."""


def visible(text: str) -> str:
    r"""Escape every character that has no glyph or that would move others.

    Control characters (and so every escape sequence), zero-width and direction-changing characters, lone surrogates and
    invalid codes become ``\x1b``, ``\u202e`` and the like; everything else stays.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _UNSAFE or _is_none(c) else c for c in text)


def _is_none(char: str) -> bool:
    """Return whether this code never stands for a character, as U+FFFE: XML does not allow some of them."""
    code = ord(char)
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def _escaped(char: str) -> str:
    code = ord(char)
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def heading(column: Column) -> tuple[str, str]:
    """Return a column's heading and its unit, each shown once: ``wait_p50_min`` is ``("wait p50", "min")``.

    The unit is empty if the column has none or the heading already includes it.
    """
    unit = "" if column.unit in {"-", ""} else column.unit
    name = column.name
    suffix = _SUFFIX_OF_UNIT.get(unit)
    if suffix and name.endswith(f"_{suffix}"):
        name = name.removesuffix(f"_{suffix}")
    elif suffix and name.endswith((f"_{suffix}_low", f"_{suffix}_high", f"_{suffix}_sd")):
        name = name.replace(f"_{suffix}_", "_")
    spelled = _SPELLED_UNIT.get(unit, unit.lower().replace(" ", "_"))
    if f"_{spelled}_" in f"_{name}_":
        unit = ""
    words = _LABELS.get(name) or " ".join(_CAPITALS.get(word, word) for word in name.split("_") if word)
    return visible(words), visible(unit)


def shown(value: object, unit: str = "-") -> str:
    """Return a value as text for reading: rounded (`gpuctl.core.numbers`), escaped, never empty.

    Args:
        value: a value of a Polars frame: text, number, time, list, or None.
        unit: the column's unit.

    Returns:
        ``1,234``, ``12.3``, ``0.046``, ``2017-10-03 00:44:36``; a dash for a missing value.
    """
    match value:
        case None:
            return MISSING
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float() | Decimal():
            return number(float(value), unit)
        case str():
            return visible(value) or '""'
        case datetime():
            if (relative := without_date(value)) is not None:
                return relative
            return value.isoformat(" ").removesuffix("+00:00")
        case date():
            return value.isoformat()
        case timedelta():
            return number(value.total_seconds(), unit)
        case list() | tuple():
            return ", ".join(shown(item, unit) for item in value) or "none"
        case _:
            return visible(str(value))


@dataclass(frozen=True)
class ShownColumn:
    """One column of a result table, ready for reading.

    Attributes:
        label: its heading.
        unit: its unit, empty if it has none or the heading includes it.
        description: its definition.
        cells: its values for reading, up to the requested number.
        values: the exact values.
        numeric: true for numbers (right-aligned).
        kind: ``number``, ``time`` or ``text``: how its values are sorted.
    """

    name: str
    label: str
    unit: str
    description: str
    cells: tuple[str, ...]
    values: tuple[object, ...]
    numeric: bool
    kind: str


def shown_columns(table: ResultTable, limit: int | None = None, units: Units | None = None) -> tuple[ShownColumn, ...]:
    """Return the columns of a table for reading.

    Args:
        table: a result table.
        limit: most rows.
        units: units of durations in its result; by default of the table alone.
    """
    units = units or Units([table])
    frame = table.frame if limit is None else table.frame.head(limit)
    return tuple(_shown_column(table, column, frame[column.name], units) for column in table.columns)


def _shown_column(table: ResultTable, column: Column, series: pl.Series, units: Units) -> ShownColumn:
    dtype = series.dtype
    values = tuple(series.to_list())
    label, unit = heading(column)
    if dtype.is_temporal() and not unit and isinstance(getattr(dtype, "time_zone", None), str):
        unit = "UTC"
    scaled = units.of(table, column) if dtype.is_numeric() else None
    if scaled is None:
        cells = tuple(shown(v, column.unit) for v in values)
    else:
        cells, unit = tuple(timed(v and v * UNITS[column.unit].seconds, scaled) for v in values), scaled.name
    return ShownColumn(
        name=column.name,
        label=label,
        unit=unit,
        description=visible(column.description),
        cells=cells,
        values=values,
        numeric=dtype.is_numeric(),
        kind="number" if dtype.is_numeric() else "time" if dtype.is_temporal() else "text",
    )


def between(low: float, high: float) -> str:
    """Return a share in per cent as the range that it is known to: ``41 to 48 %``, or ``43.2 %`` if that is narrow."""
    least, most = math.floor(low + 1e-6), math.ceil(high - 1e-6)
    return f"{least} to {most}\u00a0%" if most - least > 1 else f"{shown((low + high) / 2, '%')}\u00a0%"
