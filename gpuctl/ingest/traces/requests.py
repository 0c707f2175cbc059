"""Requests to inference services, one row per request: the table ``service_load`` with spans of 0 s."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.traces.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.core.line_reader import Line
    from gpuctl.ingest.core.format import Sink

COLUMNS = ("ts", "span_s", "requests", "prompt_tokens", "output_tokens", "images", "failed")
BATCH = 50_000


def service_of(stream: BinaryIO, otherwise: str) -> str:
    """Return the name of a service that its file does not state: the file name without suffix, or else `otherwise`."""
    place = getattr(stream, "place", None)
    name = PurePosixPath(place.inside).name if place is not None else ""
    return name.split(".", 1)[0] or otherwise


@dataclass(frozen=True)
class RequestTable(Table):
    """A table with one row per request, or per count of requests."""

    def load(self, stream: BinaryIO, sink: Sink) -> None:
        """Read such a file into ``service_load``; the service is the file if the table has no such column.

        Raises:
            InputError: the header lacks a column.
        """
        import polars as pl

        name = service_of(stream, self.what)
        for rows, _ in self.rows(stream, sink):
            given = {"service": pl.lit(name), "span_s": pl.lit(0.0), "requests": pl.lit(1.0)}
            absent = {column: value for column, value in given.items() if column not in rows.columns}
            made = rows.with_columns(**absent).with_columns(pl.col("service").fill_null(pl.lit(name)))
            if rows.height:
                sink.insert("service_load", made.select("service", *(c for c in COLUMNS if c in made.columns)))
                sink.loaded(rows.height)


def load_json_lines(
    stream: BinaryIO, sink: Sink, read: Callable[[dict[str, Any]], tuple[float, int, int]], otherwise: str
) -> None:
    """Read requests, one JSON object per line.

    Args:
        stream: the file.
        sink: takes the rows.
        read: returns seconds since 1970, tokens in and tokens out of an object; raises `RowError`.
        otherwise: the service, if the file has no name.
    """
    name, batch = service_of(stream, otherwise), list[tuple[float, int, int]]()
    for line in numbered_lines(stream):
        if not line.data.strip():
            continue
        sink.seen()
        try:
            batch.append(read(_object(line)))
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        if len(batch) == BATCH:
            _write(batch, name, sink)
            batch = []
    _write(batch, name, sink)


def _object(line: Line) -> dict[str, Any]:
    try:
        found = json.loads(line.text())
    except (ValueError, RecursionError):
        raise RowError("not a JSON object") from None
    if not isinstance(found, dict):
        raise RowError("not a JSON object")
    return found


def count(found: dict[str, Any], key: str, most: float = 1e12) -> float:
    """Return a number of an object, 0 or more.

    Raises:
        RowError: there is none.
    """
    value = found.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise RowError(f"{key} is not a number, 0 or more")
    return float(value)


def _write(batch: list[tuple[float, int, int]], service: str, sink: Sink) -> None:
    import polars as pl

    if not batch:
        return
    kinds = {"s": pl.Float64, "prompt_tokens": pl.Int64, "output_tokens": pl.Int64}
    frame = pl.DataFrame(batch, schema=kinds, orient="row").with_columns(
        ts=(pl.col("s") * 1_000_000).round().cast(pl.Int64).cast(pl.Datetime("us", "UTC")),
        service=pl.lit(service),
        span_s=pl.lit(0.0),
        requests=pl.lit(1.0),
    )
    sink.insert("service_load", frame.drop("s"))
    sink.loaded(frame.height)
