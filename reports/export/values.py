"""Converts frames to exact text and JSON values: UTC times, missing values, nested values."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from gpuctl.core.relative_time import BEFORE_S, DAY_S, without_date

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from gpuctl.core.results import ResultTable

CHUNK_ROWS = 50_000
"""Rows held in memory as text at a time."""
_ESCAPED = r"[^ !#-\[\]-~]"
"""Characters that ASCII JSON must escape."""
_dump = json.JSONEncoder(allow_nan=False).encode


def lines(table: ResultTable, separator: str, *, spreadsheet: bool = False) -> Iterator[str]:
    """Yield a table as delimited text: a heading line, then one line per row, in chunks.

    A missing value or NaN is an empty field, an empty string is ``""``; a field with a separator,
    quote or line break is quoted, quotes are doubled.

    Args:
        table: the table.
        separator: one character, ``,`` or a tab.
        spreadsheet: put an apostrophe before text that a spreadsheet would take for a formula: text that begins with
            ``=``, ``+``, ``-``, ``@``, a tab or a line end. Numbers are unchanged.
    """
    names = [c.name for c in table.columns]
    yield separator.join(names) + "\n"
    for chunk in table.frame.select(names).iter_slices(CHUNK_ROWS):
        yield "".join(f"{line}\n" for line in _joined(chunk, separator, spreadsheet=spreadsheet))


def rows(table: ResultTable) -> Iterator[list[str]]:
    """Yield the rows of a table as JSON objects in text form, columns in order, in chunks.

    Built column by column: row by row, Python takes four times as long.
    """
    import polars as pl

    names = [c.name for c in table.columns]
    keys = [f"{', ' if k else '{'}{_dump(name)}: " for k, name in enumerate(names)]
    for chunk in table.frame.select(names).iter_slices(CHUNK_ROWS):
        texts = pl.DataFrame([_json_texts(column).alias(str(k)) for k, column in enumerate(chunk)])
        pieces = [piece for k, key in enumerate(keys) for piece in (pl.lit(key), pl.col(str(k)).fill_null("null"))]
        yield texts.select(pl.concat_str(*pieces, pl.lit("}")).alias("row")).to_series().to_list()


def json_value(value: Any) -> object:
    """Return a value in a JSON type.

    Times become ISO 8601 (UTC times end in Z), ``day 12 03:04:05`` if they have no date, durations
    seconds, NaN and infinities None.

    Raises:
        TypeError: JSON has no equivalent for a value of this type.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case datetime():
            if (relative := without_date(value)) is not None:
                return relative
            utc = value if value.tzinfo is None else value.astimezone(UTC)
            return utc.isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case list() | tuple():
            return [json_value(item) for item in value]
        case dict():
            return {key: json_value(item) for key, item in value.items()}
        case _:
            raise TypeError(f"a result table holds a {type(value).__name__}")


def _json_texts(series: pl.Series) -> pl.Series:
    """Return `json_value` of each value as JSON text; missing for null."""
    import polars as pl

    dtype = series.dtype
    if dtype.is_integer() or dtype == pl.Boolean:
        return series.cast(pl.String)
    if dtype.is_float():
        exact = pl.col(series.name).cast(pl.Float64)
        return series.to_frame().select(pl.when(exact.is_finite()).then(exact).cast(pl.String)).to_series()
    if _is_text(dtype):
        return _json_strings(series.cast(pl.String))
    if isinstance(dtype, pl.Datetime):
        return _json_strings(_iso(series))
    values = [None if value is None else _dump(json_value(value)) for value in series.to_list()]
    return pl.Series(series.name, values, dtype=pl.String)


def _json_strings(texts: pl.Series) -> pl.Series:
    """Return texts as JSON strings; Polars writes those that need no escapes."""
    import polars as pl

    if not texts.str.contains(_ESCAPED).any():
        return texts.to_frame().select('"' + pl.col(texts.name) + '"').to_series()
    values = [None if value is None else _dump(value) for value in texts.to_list()]
    return pl.Series(texts.name, values, dtype=pl.String)


def json_type(dtype: pl.DataType) -> str:
    """Return the JSON type of a column: ``integer``, ``number``, ``string``, ``time`` and so on."""
    if dtype.is_integer():
        return "integer"
    if dtype.is_numeric():
        return "number"
    if dtype.is_temporal():
        return {"Date": "date", "Duration": "number"}.get(str(dtype.base_type()), "time")
    if dtype.is_nested():
        return "object" if str(dtype.base_type()) == "Struct" else "array"
    return "boolean" if str(dtype) == "Boolean" else "string"


def _iso(times: pl.Series) -> pl.Series:
    """Return times as ISO 8601, with six decimals of a second if any; days and times for times without a date."""
    import polars as pl

    zoned = getattr(times.dtype, "time_zone", None) is not None
    utc = times.dt.convert_time_zone("UTC") if zoned else times
    seconds, micros = utc.dt.to_string("%Y-%m-%dT%H:%M:%S"), utc.dt.microsecond()
    decimals = pl.when(micros > 0).then("." + micros.cast(pl.String).str.zfill(6)).otherwise(pl.lit(""))
    dated = pl.select((seconds + decimals + ("Z" if zoned else "")).alias(times.name)).to_series()
    since = utc.dt.epoch("s")
    if not since.is_between(0, BEFORE_S, closed="left").any():
        return dated
    days = "day " + (since // DAY_S).cast(pl.String) + " " + utc.dt.to_string("%H:%M:%S")
    relative = pl.lit(since.is_between(0, BEFORE_S, closed="left"))
    chosen = pl.when(relative).then(pl.lit(days) + decimals.str.strip_chars_end("0")).otherwise(pl.lit(dated))
    return pl.select(chosen.alias(times.name)).to_series()


def _joined(frame: pl.DataFrame, separator: str, *, spreadsheet: bool) -> pl.Series:
    import polars as pl

    fields, made = [], []
    for name, dtype in frame.schema.items():
        text = pl.col(name)
        if dtype.is_float():
            text = text.fill_nan(None)
        if dtype.is_integer() or dtype.is_float() or dtype == pl.Boolean:
            fields.append(text.cast(pl.String).fill_null(""))
            continue
        if not _is_text(dtype):
            made.append(_as_text(frame[name]))
        text = text.cast(pl.String)
        if spreadsheet and _is_text(dtype):
            # a spreadsheet skips leading blanks
            formula = text.str.contains(r"^\s*[=+\-@]|^[\t\r\n]")
            text = pl.when(formula).then("'" + text).otherwise(text)
        fields.append(_quoted(text, separator))
    return frame.with_columns(made).select(pl.concat_str(fields, separator=separator).alias("line"))["line"]


def _is_text(dtype: pl.DataType) -> bool:
    import polars as pl

    return dtype in {pl.String, pl.Enum, pl.Categorical}


def _as_text(series: pl.Series) -> pl.Series:
    """Convert times and other values that are neither text nor numbers to text."""
    import polars as pl

    if isinstance(series.dtype, pl.Datetime):
        return _iso(series)
    texts = [None if v is None else _scalar_text(v) for v in series.to_list()]
    return pl.Series(series.name, texts, dtype=pl.String)


def _scalar_text(value: object) -> str:
    exact = json_value(value)
    return exact if isinstance(exact, str) else json.dumps(exact)


def _quoted(text: pl.Expr, separator: str) -> pl.Expr:
    import polars as pl

    quotes = (text == "") | text.str.contains(f'[{separator}"\r\n]')
    quoted = '"' + text.str.replace_all('"', '""', literal=True) + '"'
    return pl.when(quotes).then(quoted).otherwise(text).fill_null("")
