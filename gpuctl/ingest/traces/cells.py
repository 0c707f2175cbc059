"""Cells of text as values of a kind, a column at a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from gpuctl.core.local_time import LATEST_S
from gpuctl.ingest.read.pieces import blocks
from gpuctl.slurm.times import instants

if TYPE_CHECKING:
    import polars as pl

Kind = Literal["text", "number", "whole", "real", "time", "date", "epoch"]
"""What a cell holds: ``number``, 0 or more; ``whole``, the same without a fraction; ``real``, any; ``time``, a local
stamp or one with an offset from UTC; ``date``, the begin of a UTC day; ``epoch``,
seconds, counted from 1970."""

MOST = 1e15
"""No count of a trace is larger."""
_BLANK, _LAST = ord(" "), ord("~")
_FEW_HOURS = 20_000
"""Spans of times up to this length are searched hour by hour for clock changes of a zone."""
_EXPECTED = {
    "text": "printable",
    "number": "a number, 0 or more",
    "whole": "a whole number, 0 or more",
    "real": "a number",
    "time": "a time: expected YYYY-MM-DD HH:MM:SS, with or without an offset",
    "date": "a date: expected YYYY-MM-DD",
    "epoch": "a time: expected seconds, 0 or more",
}


def expected(kind: Kind) -> str:
    """Describe a cell of a kind in words."""
    return _EXPECTED[kind]


def dtype(kind: Kind) -> Any:
    """Return the Polars type of values of a kind."""
    import polars as pl

    instant = pl.Datetime("us", "UTC")
    times = dict.fromkeys(("time", "date", "epoch"), instant)
    return {"text": pl.String, "whole": pl.Int64, **times}.get(kind, pl.Float64)


def typed(
    cells: pl.Series,
    kind: Kind,
    timezone: str,
    missing: tuple[str, ...] = (),
    scale: float = 1.0,
    *,
    plain: bool = False,
) -> tuple[pl.Series, pl.Series]:
    """Read a column.

    Args:
        cells: text, or numbers if all of them are.
        kind: of its values.
        timezone: IANA name of the zone of stamps without an offset.
        missing: texts that stand for an empty cell; of numbers, any that is equal.
        scale: numbers and seconds are multiplied by this.
        plain: whether no cell has blanks around it or unprintable characters (`is_plain`).

    Returns:
        the values, null if empty or bad; and whether a cell is not of its kind.
    """
    import polars as pl

    if cells.dtype == pl.String and not (plain and not missing):
        cells = _stripped(cells, missing if kind in {"text", "time", "date"} else ())
    if kind == "text":
        if plain:
            return cells, pl.Series([False]).new_from_index(0, cells.len())
        return cells, cells.str.contains(r"\p{Cc}").fill_null(value=False)
    if kind == "time":
        return _times(cells, timezone)
    if kind == "date":
        return _times(cells + " 00:00:00", "UTC")
    values = cells.cast(pl.Float64, strict=False)
    filled = cells.is_not_null()
    if missing:
        none = values.is_in([float(text) for text in missing]).fill_null(value=False)
        values, filled = values.set(none, None), filled & ~none
    if kind == "epoch" and scale != 1:
        values = values * scale
    least = -MOST if kind == "real" else 0
    sound = values.is_between(least, LATEST_S if kind == "epoch" else MOST).fill_null(value=False)
    if kind == "whole":
        sound &= (values == values.floor()).fill_null(value=False)
    bad = filled & ~sound
    if bad.any():
        values = values.set(~sound, None)
    if kind == "whole":
        values = values.cast(pl.Int64)
        return values * int(scale) if scale == int(scale) and scale != 1 else values, bad
    if kind == "epoch":
        return (values * 1_000_000).round().cast(pl.Int64).cast(pl.Datetime("us", "UTC")), bad
    return values * scale if scale != 1 else values, bad


def _stripped(cells: pl.Series, missing: tuple[str, ...]) -> pl.Series:
    import polars as pl

    cells = cells.str.strip_chars()
    empty = cells.is_in(["", *missing]) if missing else cells == ""
    return cells.set(empty.fill_null(value=False), None) if empty.any() else pl.Series(cells)


def _times(cells: pl.Series, timezone: str) -> tuple[pl.Series, pl.Series]:
    import polars as pl

    usual = _usual_times(cells, timezone)
    if usual is not None:
        return usual, pl.Series([False]).new_from_index(0, cells.len())
    cells = cells.str.replace(" ", "T", literal=True)
    if not cells.str.contains(".", literal=True).any():
        read = instants(cells, timezone)
        return read.utc, read.bad
    # without its fraction, a time is read like any other
    micros = cells.str.extract(r"\.(\d{1,6})", 1).str.pad_end(6, "0").cast(pl.Int64, strict=False).fill_null(0)
    read = instants(cells.str.replace(r"\.\d{1,9}", ""), timezone)
    return read.utc + micros.cast(pl.Duration("us")), read.bad


def _usual_times(cells: pl.Series, timezone: str) -> pl.Series | None:
    """Convert ``YYYY-MM-DD HH:MM:SS``; None if a time is ambiguous, does not exist, or has another form."""
    import polars as pl

    naive = cells.str.to_datetime("%Y-%m-%d %H:%M:%S", time_unit="us", strict=False, cache=False)
    if naive.null_count() != cells.null_count() or naive.null_count() == cells.len():
        return None
    first, last = naive.min(), naive.max()
    if not (isinstance(first, datetime) and isinstance(last, datetime) and first.year > 1971 and last.year < 2199):
        return None
    if timezone == "UTC":
        return naive.dt.replace_time_zone("UTC")
    offset = _offset(first, last, timezone)
    if offset is not None:
        return (naive - offset).dt.replace_time_zone("UTC")
    try:
        utc = _utc(naive, timezone)
    except pl.exceptions.ComputeError:
        # a zone that Python knows and Polars does not
        return None
    return utc if utc.null_count() == cells.null_count() else None


def _utc(naive: pl.Series, timezone: str) -> pl.Series:
    return naive.dt.replace_time_zone(timezone, ambiguous="null", non_existent="null").dt.convert_time_zone("UTC")


def _offset(first: datetime, last: datetime, timezone: str) -> timedelta | None:
    """Return the offset of a zone from UTC if it is constant from an hour before to an hour after two times."""
    import polars as pl

    hour = timedelta(hours=1)
    if last - first > _FEW_HOURS * hour:
        return None
    hours = pl.datetime_range(first - hour, last + 2 * hour, "1h", time_unit="us", eager=True)
    try:
        ahead = hours - _utc(hours, timezone).dt.replace_time_zone(None)
    except pl.exceptions.ComputeError:
        return None
    offset = ahead[0]
    return offset if isinstance(offset, timedelta) and ahead.null_count() == 0 and ahead.n_unique() == 1 else None


def is_plain(data: bytes, separator: str) -> bool:
    """Whether no cell of some lines has blanks around it or unprintable characters."""
    import numpy as np

    between, end = ord(separator), ord("\n")
    for block in blocks(data):
        cells = np.frombuffer(block, np.uint8)
        edge, blank = (cells == between) | (cells == end), cells == _BLANK
        # others than printable ASCII may be blanks or controls; numbers below that of a blank become large ones
        odd = cells - np.uint8(_BLANK) > _LAST - _BLANK
        if (
            blank[0]
            or blank[-1]
            or (odd & ~edge).any()
            or (blank[1:] & edge[:-1]).any()
            or (blank[:-1] & edge[1:]).any()
        ):
            return False
    return True
