"""Tables of text with a header line, read many lines at a time; every line that is no row of the table is named.

A row is one line: cells hold no line ends. Cells may be quoted as in CSV. A line of which a cell is missing or too
many, that is not UTF-8, or that the file's end cuts off, is handed on as a reject and spoils no other.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.core.lines import CUT_OFF, LINE_LIMIT, LINE_TOO_LONG, NOT_UTF8, RowError
from gpuctl.ingest.read.csv_header import split
from gpuctl.ingest.read.pieces import count_of, torn_off, whole_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl

LINE = "line of the file"
"""The column with the 1-based line on which a row stands: no table's own column has blanks in that order."""
_BOM = b"\xef\xbb\xbf"


class Reject(NamedTuple):
    """A line that is no row."""

    line: int
    reason: str
    raw: str


class Piece(NamedTuple):
    """Some lines of a table.

    Attributes:
        rows: the cells as text, null where empty, and the column `LINE`.
        rejects: the lines that are no rows.
    """

    rows: pl.DataFrame
    rejects: list[Reject]


class Delimited:
    """Reads a table whose first line names its columns.

    Args:
        stream: the file.
        needed: columns that must be there, once each; others may stand anywhere.
        what: names such a file, for messages.

    Attributes:
        columns: as the header names them, in its order.

    Raises:
        InputError: the first line is not such a header.
    """

    def __init__(self, stream: BinaryIO, needed: Sequence[str], what: str) -> None:
        self._stream = stream
        self._lines = whole_lines(stream, b"")
        self._begun = next(self._lines)
        first, _, rest = self._begun[0].removeprefix(_BOM).partition(b"\n")
        self._begun = (rest, self._begun[1])
        self.columns = header(first)
        absent = [name for name in needed if name not in self.columns]
        twice = [name for name in self.columns if self.columns.count(name) > 1]
        if absent or twice:
            fault = f"no column {', '.join(absent)}" if absent else f"two columns {twice[0]}"
            found = ", ".join(self.columns[:8]) or "an empty line"
            raise InputError(f"is not {what}: {fault}; found {found}", line=1, hint=f"expected {','.join(needed)}")

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows below the header."""
        line = 2
        for data, more in chain([self._begun], self._lines):
            whole, torn = (data, b"") if more else torn_off(data, self._stream)
            piece = self._piece(whole, line)
            line += whole.count(b"\n")
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
        return Piece(self._numbered(rows, range(first, first + rows.height)), [])

    def _sound(self, data: bytes) -> pl.DataFrame | None:
        """Read lines that all have as many cells as the header; None where one has not, is quoted, or is not UTF-8."""
        import polars as pl

        if not data or b'"' in data:
            return None
        try:
            rows = pl.read_csv(data, has_header=False, quote_char=None, schema=dict.fromkeys(self.columns, pl.String))
        except (pl.exceptions.ComputeError, pl.exceptions.SchemaError):
            return None
        lines = count_of(data, b"\n")
        whole = rows.height == lines and count_of(data, b",") == lines * (len(self.columns) - 1)
        return rows if whole else None

    def _by_line(self, data: bytes, first: int) -> Piece:
        import polars as pl

        kept: list[list[str]] = []
        numbers: list[int] = []
        rejects: list[Reject] = []
        for number, raw in enumerate(data.split(b"\n")[:-1], first):
            if not raw.strip():
                continue
            try:
                kept.append(self._cells(raw))
                numbers.append(number)
            except RowError as bad:
                rejects.append(Reject(number, str(bad), raw.decode("utf-8", "replace")))
        if not kept:
            return Piece(self._none(), rejects)
        cells = zip(*kept, strict=True)
        made = {name: pl.Series(column, dtype=pl.String) for name, column in zip(self.columns, cells, strict=True)}
        rows = pl.DataFrame(made).with_columns(pl.all().replace("", None))
        return Piece(self._numbered(rows, numbers), rejects)

    def _cells(self, raw: bytes) -> list[str]:
        if len(raw) > LINE_LIMIT:
            raise RowError(LINE_TOO_LONG)
        try:
            cells = split(raw.decode("utf-8"))
        except UnicodeDecodeError:
            raise RowError(NOT_UTF8) from None
        if len(cells) != len(self.columns):
            raise RowError(f"not {len(self.columns)} columns as in the header")
        return cells

    def _numbered(self, rows: pl.DataFrame, numbers: Sequence[int]) -> pl.DataFrame:
        import polars as pl

        return rows.with_columns(pl.Series(LINE, numbers, dtype=pl.Int64))

    def _none(self) -> pl.DataFrame:
        import polars as pl

        return pl.DataFrame(schema={**dict.fromkeys(self.columns, pl.String), LINE: pl.Int64})


def header(line: bytes) -> list[str]:
    """Names of columns as a header line has them; none where it is not text."""
    try:
        return [cell.strip() for cell in split(line.removeprefix(_BOM).rstrip(b"\r").decode("utf-8"))]
    except (RowError, UnicodeDecodeError):
        return []
