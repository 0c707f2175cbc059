"""Data frames of jobs, handed on as the CSV of jobs that every reader of gpuctl takes."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from gpuctl.core.errors import GpuctlError, InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import polars as pl

JOB_COLUMNS = ("job_id", "submit_time", "duration", "num_gpus")
"""Columns that a frame of jobs must have; ``gpuctl replay`` describes the others."""
_NAME = "frame of jobs"
_SHOWN = 12
_JOINED = ("depends_on", "speed_curve")
"""Columns that hold several values; a frame may have them as lists."""


def write_frame(source: object, place: Path, needed: Sequence[str] = JOB_COLUMNS) -> Path:
    """Write a frame of jobs as a CSV of jobs, and return its path.

    Times become seconds since 1970, those without a zone taken as UTC; lengths of time become seconds.

    Args:
        source: Polars, Arrow, pandas, or anything else with Arrow's protocol.
        place: the file.
        needed: columns that it must have.

    Raises:
        UsageError: it is no data frame, lacks a column, or has values that no job has.
        InputError: it has no rows.
    """
    frame = _frame(source)
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise UsageError(
            f"a {_NAME} needs the columns {', '.join(needed)}; this one lacks {', '.join(missing)}",
            hint=f"rename its columns; it has {', '.join(frame.columns[:_SHOWN]) or 'none'}",
        )
    if not frame.height:
        raise InputError(f"this {_NAME} has no rows", hint="one row per job")
    frame.select(_column(name, kind) for name, kind in frame.schema.items()).write_csv(place)
    return place


@contextmanager
def named_frame(place: Path) -> Iterator[None]:
    """Let errors of readers name the frame and its rows, from 1, in place of the file that was made of it."""
    try:
        yield
    except GpuctlError as error:
        if str(place) in error.message:
            text = re.sub(rf"{re.escape(str(place))}(:\d+(?=: ))?", _NAME, error.message)
            error.message = re.sub(r"\bline (\d+)\b", lambda found: f"row {int(found[1]) - 1}", text)
            error.args = (error.message, *error.args[1:])
            error.hint = error.hint or "rows of the frame count from 1"
        raise


def _column(name: str, kind: pl.DataType) -> pl.Expr:
    import polars as pl

    column = pl.col(name)
    if kind == pl.Date:
        column, kind = column.cast(pl.Datetime("us")), pl.Datetime("us")
    if isinstance(kind, pl.Datetime):
        return column.dt.epoch("us") / 1e6
    if isinstance(kind, pl.Duration):
        return column.dt.total_microseconds() / 1e6
    if isinstance(kind, pl.List) and name in _JOINED:
        return column.cast(pl.List(pl.String)).list.join(";")
    if kind.is_nested() or kind in {pl.Binary, pl.Object, pl.Time}:
        raise UsageError(
            f"column {name!r} of this {_NAME} has values of type {kind}; those of a job are text, numbers or times",
            hint="leave the column out, or convert it",
        )
    return column


def _frame(source: object) -> pl.DataFrame:
    import polars as pl

    try:
        if isinstance(source, pl.DataFrame):
            return source
        if isinstance(source, pl.LazyFrame):
            return source.collect()
        # Arrow's own protocol, which Arrow tables, pandas and DuckDB's relations have
        if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__"):
            found: pl.DataFrame = pl.DataFrame(cast("Any", source))
            return found
    except (TypeError, ValueError, NotImplementedError, pl.exceptions.PolarsError) as error:
        raise UsageError(
            f"this data frame cannot be read: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
            hint="each column needs values of one type: text, numbers or times (pandas: df.astype({COLUMN: str}))",
        ) from error
    raise UsageError(
        f"expected paths, a trace, or a data frame of jobs, not {type(source).__name__}",
        hint='gpuctl.open("logs/"), gpuctl.open("trace.duckdb"), or a frame of Polars, Arrow or pandas',
    )
