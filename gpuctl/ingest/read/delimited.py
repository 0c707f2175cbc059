"""Reads text tables, most with a header line, many lines at a time; names every line that is not a row.

A row is one line: cells hold no line ends. Cells may be quoted as in CSV. A line of which a cell is missing or too
many, that is not UTF-8, or that the file's end cuts off, is handed on as a reject and spoils no other.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import CUT_OFF, LINE_LIMIT, LINE_TOO_LONG, NOT_UTF8, RowError
from gpuctl.ingest.read.csv_header import split
from gpuctl.ingest.read.pieces import LARGE_PIECE, count_of, torn_off, whole_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

    from gpuctl.ingest.core.format import Sink

LINE = "line of the file"
"""The column with the 1-based line on which a row stands: no table's own column has blanks in that order."""
_BOM = b"\xef\xbb\xbf"


class Reject(NamedTuple):
    """A line that is not a row."""

    line: int
    reason: str
    raw: str


class Piece(NamedTuple):
    """Some lines of a table.

    Attributes:
        rows: the cells as text, null if empty (those requested as numbers may be numbers), and the column `LINE`.
        rejects: the lines that are no rows.
        data: the lines.
        first: the number of the first of them.
    """

    rows: pl.DataFrame
    rejects: list[Reject]
    data: bytes
    first: int

    def raw(self, lines: Sequence[int]) -> list[str]:
        """The text of some lines."""
        split = self.data.split(b"\n") if lines else []
        return [split[line - self.first].decode("utf-8", "replace") for line in lines]

    def without_faults(self, rows: pl.DataFrame, sink: Sink) -> pl.DataFrame:
        """Count the lines of the piece as seen, reject lines that are not rows or have a fault, and return the others.

        Args:
            rows: made of those of the piece; ``line`` is the line, ``fault`` the reason for a reject, or null.
            sink: takes the rejects, in the order of their lines.
        """
        sink.seen(self.rows.height + len(self.rejects))
        bad = rows.filter(rows["fault"].is_not_null()).select("line", "fault")
        lines = bad["line"].to_list()
        for rejected in sorted([*self.rejects, *zip(lines, bad["fault"], self.raw(lines), strict=True)]):
            sink.reject(*rejected)
        return rows.filter(rows["fault"].is_null()) if lines else rows


class Delimited:
    """Reads a table whose first line names its columns, or of which they are known.

    Args:
        stream: the file.
        needed: columns that must be there, once each; others may stand anywhere.
        what: names such a file, for messages.
        separator: stands between cells.
        names: of the columns of a table without a header; if its first line is these names, it is not a row.
        numbers: columns that are wanted as numbers if a whole piece has nothing else in them.

    Attributes:
        columns: as the header names them, in its order.

    Raises:
        InputError: the first line is not such a header.
    """

    def __init__(
        self,
        stream: BinaryIO,
        needed: Sequence[str],
        what: str,
        *,
        separator: str = ",",
        names: Sequence[str] = (),
        numbers: frozenset[str] = frozenset(),
    ) -> None:
        self._stream, self._separator, self._numbers = stream, separator, numbers
        self._lines = whole_lines(stream, b"", LARGE_PIECE)
        self._first_block = next(self._lines)
        first, _, rest = self._first_block[0].removeprefix(_BOM).partition(b"\n")
        there = header(first, separator)
        self._first = 1 if names and there != list(names) else 2
        if self._first == 2:
            self._first_block = (rest, self._first_block[1])
        self.columns = list(names) or there
        absent = [name for name in needed if name not in self.columns]
        twice = [name for name in self.columns if self.columns.count(name) > 1]
        if absent or twice:
            fault = f"no column {', '.join(absent)}" if absent else f"two columns {twice[0]}"
            found = ", ".join(self.columns[:8]) or "an empty line"
            raise InputError(f"is not {what}: {fault}; found {found}", line=1, hint=f"expected {','.join(needed)}")

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows below the header."""
        line = self._first
        for data, more in chain([self._first_block], self._lines):
            whole, torn = (data, b"") if more else torn_off(data, self._stream)
            piece = self._piece(whole, line)
            line += count_of(whole, b"\n")
            if torn:
                piece.rejects.append(Reject(line, CUT_OFF, torn.decode("utf-8", "replace")))
            yield piece

    def _piece(self, data: bytes, first: int) -> Piece:
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n")
        if data and not data.endswith(b"\n"):
            data += b"\n"
        rows = self._sound(data)
        if rows is None:
            return self._by_line(data, first)
        return Piece(self._numbered(rows, range(first, first + rows.height)), [], data, first)

    def _sound(self, data: bytes) -> pl.DataFrame | None:
        """Read lines that all have as many cells as the header; None if one has not, is quoted, or is not UTF-8."""
        import polars as pl

        separator = self._separator.encode()
        lines = count_of(data, b"\n")
        if not data or b'"' in data or count_of(data, separator) != lines * (len(self.columns) - 1):
            return None
        for numbers in (self._numbers, frozenset[str]()) if self._numbers else (self._numbers,):
            schema = {name: pl.Float64 if name in numbers else pl.String for name in self.columns}
            try:
                # all of them: lines of other widths go unnoticed if columns are left out
                rows = pl.read_csv(data, has_header=False, quote_char=None, schema=schema, separator=self._separator)
            except (pl.exceptions.ComputeError, pl.exceptions.SchemaError, pl.exceptions.NoDataError):
                continue
            # blank lines are skipped
            if rows.height == lines:
                return rows
        return None

    def _by_line(self, data: bytes, first: int) -> Piece:
        import polars as pl

        sound: list[list[str]] = []
        numbers: list[int] = []
        rejects: list[Reject] = []
        for number, raw in enumerate(data.split(b"\n")[:-1], first):
            if not raw.strip():
                continue
            try:
                sound.append(self._cells(raw))
                numbers.append(number)
            except RowError as bad:
                rejects.append(Reject(number, str(bad), raw.decode("utf-8", "replace")))
        if not sound:
            return Piece(self._none(), rejects, data, first)
        cells = zip(*sound, strict=True)
        made = {name: pl.Series(column, dtype=pl.String) for name, column in zip(self.columns, cells, strict=True)}
        rows = pl.DataFrame(made).with_columns(pl.all().replace("", None))
        return Piece(self._numbered(rows, numbers), rejects, data, first)

    def _cells(self, raw: bytes) -> list[str]:
        if len(raw) > LINE_LIMIT:
            raise RowError(LINE_TOO_LONG)
        try:
            cells = split(raw.decode("utf-8"), self._separator)
        except UnicodeDecodeError:
            raise RowError(NOT_UTF8) from None
        if len(cells) != len(self.columns):
            raise RowError(f"not {len(self.columns)} columns {'as in the header' if self._first == 2 else ''}".strip())
        return cells

    def _numbered(self, rows: pl.DataFrame, numbers: Sequence[int]) -> pl.DataFrame:
        import polars as pl

        return rows.with_columns(pl.Series(LINE, numbers, dtype=pl.Int64))

    def _none(self) -> pl.DataFrame:
        import polars as pl

        return pl.DataFrame(schema={**dict.fromkeys(self.columns, pl.String), LINE: pl.Int64})


def header(line: bytes, separator: str = ",") -> list[str]:
    """Names of columns as a header line has them; none if it is not text."""
    try:
        return [cell.strip() for cell in split(line.removeprefix(_BOM).rstrip(b"\r").decode("utf-8"), separator)]
    except (RowError, UnicodeDecodeError):
        return []
