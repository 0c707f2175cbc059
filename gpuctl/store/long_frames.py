"""DuckDB results as frames; a long one is kept in a temporary file, so that only the parts in use are in memory.

The file is mapped and already unlinked: it disappears with the frame.
"""

from __future__ import annotations

import os
import tempfile
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gpuctl.store.reader_sql import BATCH_ROWS, as_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import duckdb
    import polars as pl


def read(
    con: duckdb.DuckDBPyConnection,
    sql: str,
    params: dict[str, Any] | None,
    check: Callable[[pl.DataFrame], pl.DataFrame],
) -> pl.DataFrame:
    """Run a query and return its rows; at most `BATCH_ROWS` of them are in memory at a time.

    Args:
        con: the connection.
        sql: one SELECT.
        params: its parameters.
        check: called with each batch of rows, and returns it.

    Raises:
        OSError: the temporary file cannot be written.
    """
    reader = con.sql(sql, params=params).to_arrow_reader(BATCH_ROWS)
    frames = (check(as_frame(batch)) for batch in reader)
    first, second = next(frames, None), next(frames, None)
    if first is None:
        return as_frame(reader.schema.empty_table())
    return first if second is None else _mapped(chain((first, second), frames))


def whole(con: duckdb.DuckDBPyConnection, sql: str, params: dict[str, Any] | None) -> pl.DataFrame:
    """Return the rows of a query, as DuckDB's relation does.

    A relation plans a query twice, once for its columns: a ninth of the time of an analysis of a small log. So this
    makes the call that relations make, if DuckDB has it; it is not part of the documented interface.
    """
    import polars as pl

    if not hasattr(con, "_submit"):
        frame: pl.DataFrame = con.sql(sql, params=params).pl()
        return frame
    table = con._submit(sql, params, "arrow").arrow_table(to_polars=True)
    return cast("pl.DataFrame", pl.from_arrow(table, rechunk=False))


def _mapped(frames: Iterator[pl.DataFrame]) -> pl.DataFrame:
    import polars as pl
    import pyarrow as pa

    handle, name = tempfile.mkstemp(prefix="gpuctl-")
    try:
        with os.fdopen(handle, "wb") as file:
            first = next(frames).to_arrow(compat_level=pl.CompatLevel.newest())
            with pa.ipc.new_file(file, first.schema) as writer:
                writer.write_table(first)
                for frame in frames:
                    writer.write_table(frame.to_arrow(compat_level=pl.CompatLevel.newest()))
        found = pl.from_arrow(pa.ipc.open_file(pa.memory_map(name)).read_all(), rechunk=False)
    finally:
        Path(name).unlink()
    return found if isinstance(found, pl.DataFrame) else found.to_frame()
