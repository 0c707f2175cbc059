"""Frames of accounting records, made from one record after another."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl
    import pyarrow as pa

BATCH = 10_000
"""Records of one frame."""
_LINE = "line"
_IN_MEMORY = 32 << 20


class Batches:
    """Collects records and hands them on as frames of text.

    Args:
        columns: the fields that every record has.
        take: gets a frame of up to `BATCH` records and the line on which each of them starts.
    """

    def __init__(self, columns: Sequence[str], take: Callable[[pl.DataFrame, pl.Series], None]) -> None:
        self._columns = columns
        self._take = take
        self._lines: list[int] = []
        # tuples of text: the garbage collector leaves such alone
        self._rows: list[tuple[str, ...]] = []

    def add(self, line_no: int, fields: dict[str, str]) -> None:
        """Take one record, its fields in the order of the columns."""
        self._lines.append(line_no)
        self._rows.append(tuple(fields.values()))
        if len(self._rows) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Hand on what has not been handed on yet."""
        import polars as pl

        if not self._rows:
            return
        cells = zip(*self._rows, strict=True)
        made = {name: pl.Series(name, cell, pl.String) for name, cell in zip(self._columns, cells, strict=True)}
        frame, lines = pl.DataFrame(made), pl.Series(_LINE, self._lines, pl.Int64)
        self._lines, self._rows = [], []
        self._take(frame, lines)


class Spool:
    """Keeps frames until the end of a file, in memory while they are few and in a nameless file when they are many."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115
        self._writer: pa.RecordBatchStreamWriter | None = None

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        """Give up the space."""
        self._file.close()

    def put(self, frame: pl.DataFrame, lines: pl.Series) -> None:
        """Keep one frame; all of them have the same columns."""
        import pyarrow as pa

        table = frame.with_columns(lines.alias(_LINE)).to_arrow(compat_level=_oldest())
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, table.schema)
        self._writer.write_table(table)

    def frames(self) -> Iterator[tuple[pl.DataFrame, pl.Series]]:
        """Give them back in order, once."""
        import polars as pl
        import pyarrow as pa

        if self._writer is not None:
            self._writer.close()
            self._file.seek(0)
            for batch in pa.ipc.open_stream(self._file):
                frame: Any = pl.from_arrow(batch)
                yield frame.drop(_LINE), frame[_LINE]


def _oldest() -> Any:
    import polars as pl

    return pl.CompatLevel.oldest()
