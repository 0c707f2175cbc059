"""CSV files with one row per job or suspension, whose columns are those of a table of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.traffic.csv_table import CsvTable, header_of
from gpuctl.ingest.traffic.samples import job_name, number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpuctl.core.line_reader import Line
    from gpuctl.ingest.core.format import Sink

BATCH_ROWS = 20_000
MOST_S = 1e10
"""Longest duration, seconds."""
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_MOST_WHOLE = 1e15


class Column(NamedTuple):
    """A column of such a file.

    Attributes:
        name: as in the header.
        kind: text | whole | real | yes (true or false).
        needed: an empty cell is not a row; else it is NULL.
        least: smallest number.
        most: largest number.
        words: the only texts allowed; any if empty.
        stored: its name in the table, if that is another one.
    """

    name: str
    kind: str
    needed: bool = False
    least: float = 0.0
    most: float = 1e24
    words: tuple[str, ...] = ()
    stored: str = ""

    def read(self, text: str) -> Any:
        """Read a cell.

        Raises:
            RowError: it is not what the column holds.
        """
        if not text:
            if self.needed:
                raise RowError(f"{self.name} is empty")
            return None
        if self.kind == "text":
            return self._word(text)
        if self.kind == "yes":
            if text.lower() not in _WORDS:
                raise RowError(f"{self.name} is neither true nor false")
            return _WORDS[text.lower()]
        value = number(text, self.name, self.least, min(self.most, _MOST_WHOLE) if self.kind == "whole" else self.most)
        if self.kind == "real":
            return value
        if value != int(value):
            raise RowError(f"{self.name} is not a whole number")
        return int(value)

    def _word(self, text: str) -> str:
        if self.words and text.lower() not in self.words:
            raise RowError(f"{self.name} is none of {', '.join(self.words)}")
        return text.lower() if self.words else job_name(text)


def seconds(name: str, *, needed: bool = False) -> Column:
    """A column with a duration."""
    return Column(name, "real", needed, most=MOST_S)


class JobRows:
    """Takes rows and writes them in batches; every one of them is counted once.

    Args:
        sink: where they go.
        table: the table they go to.
        columns: of the file; the first one is ``job_id``.
        once: of the rows of one job only the first is taken; the others are rejected, whatever source they are of,
            unless they state the same.
    """

    def __init__(self, sink: Sink, table: str, columns: Sequence[Column], *, once: bool) -> None:
        self._sink = sink
        self._table = table
        self._columns = columns
        self._names = [column.stored or column.name for column in columns]
        self._once = once
        self._rows: list[list[Any]] = []
        self._lines: list[Line] = []

    def add(self, line: Line, cells: Mapping[str, str]) -> None:
        """Take one row and count it as seen.

        Raises:
            RowError: a cell is not what its column holds; the row was not counted.
        """
        row = [column.read(cells.get(column.name, "")) for column in self._columns]
        self._sink.seen()
        self._rows.append(row)
        self._lines.append(line)
        if len(self._rows) >= BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what has not been written yet."""
        import polars as pl

        kinds = {"text": pl.String, "whole": pl.Int64, "real": pl.Float64, "yes": pl.Boolean}
        fresh = self._fresh() if self._once else self._rows
        if fresh:
            schema = {name: kinds[column.kind] for name, column in zip(self._names, self._columns, strict=True)}
            self._sink.insert(self._table, pl.DataFrame(fresh, schema=schema, orient="row"))
            self._sink.loaded(len(fresh))
        self._rows, self._lines = [], []

    def _fresh(self) -> list[list[Any]]:
        known = self._known({str(row[0]) for row in self._rows})
        fresh = []
        for row, line in zip(self._rows, self._lines, strict=True):
            if row[0] not in known:
                fresh.append(row)
                known[row[0]] = row
            elif known[row[0]] == row:
                self._sink.already_stored()
            else:
                reason = "duplicate job: there is a row of this job already, with other values"
                self._sink.reject(line.line_no, reason, line.data)
        return fresh

    def _known(self, jobs: Iterable[str]) -> dict[str, list[Any]]:
        """The rows that the table has of these jobs."""
        # the table and its columns are those that a format names, never input
        names = ", ".join(self._names)
        sql = f"SELECT {names} FROM {self._table} WHERE cluster = $cluster AND job IN (SELECT unnest($jobs::VARCHAR[]))"  # noqa: S608
        rows = self._sink.query(sql, {"cluster": self._sink.cluster, "jobs": sorted(jobs)})
        return {row[0]: list(row) for row in rows.iter_rows()}


def load_jobs(
    stream: BinaryIO, sink: Sink, table: str, needed: Sequence[str], columns: Sequence[Column], *, what: str, once: bool
) -> None:
    """Read a CSV of jobs into a table of the store.

    Args:
        stream: the file.
        sink: takes the rows.
        table: of the store.
        needed: columns that the header must have.
        columns: all that are read.
        what: the file is expected to be, for errors.
        once: of several rows of one job the first is taken.

    Raises:
        InputError: the first line is not the header of such a file.
    """
    reader = CsvTable(stream, needed, [c.name for c in columns if c.name not in needed], what=what)
    rows = JobRows(sink, table, columns, once=once)
    reader.read(sink, rows.add)
    rows.flush()


def header_with(needed: Sequence[str], head: bytes) -> str | None:
    """Recognise a header that has all the needed columns."""
    return f"header {','.join(needed)}" if header_of(head) >= set(needed) else None
