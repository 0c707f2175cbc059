"""CSV files with a header whose columns may stand in any order, with others between them that are not read."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.read.csv_header import split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from gpuctl.core.line_reader import Line
    from gpuctl.ingest.core.format import Sink

_HEADER_LIMIT = 64 << 10
_SHOWN = 8
_log = logging.getLogger(__name__)


def header_of(head: bytes) -> frozenset[str]:
    """Column names of the first line of a file's beginning, in lower case."""
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0][:_HEADER_LIMIT]
    return frozenset(_names(first.decode("utf-8", "replace")))


def listed(names: Sequence[str]) -> str:
    """Column names that a file has, for messages."""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "") or "no header"


def _names(line: str) -> list[str]:
    try:
        return [cell.strip().lower() for cell in split(line.rstrip("\r"))]
    except RowError:
        return []


class CsvTable:
    """Reads the rows of one CSV file.

    Args:
        stream: the file.
        wanted: columns that must be there.
        optional: columns that are read where they are there.
        what: names such a file, for messages.
        aliases: other names of columns.
        others: state which columns are not read.

    Attributes:
        columns: those of `wanted` and `optional` that are there.

    Raises:
        InputError: the first line is not a header with the wanted columns once each.
    """

    def __init__(
        self,
        stream: BinaryIO,
        wanted: Iterable[str],
        optional: Iterable[str] = (),
        *,
        what: str,
        aliases: Mapping[str, str] | None = None,
        others: bool = True,
    ) -> None:
        self._lines = numbered_lines(stream)
        first = next(self._lines, None)
        try:
            names = _names(first.text()) if first is not None else []
        except RowError:
            names = []
        names = [(aliases or {}).get(name, name) for name in names]
        wanted, known = tuple(wanted), (*wanted, *optional)
        absent = [name for name in wanted if name not in names]
        twice = [name for name in known if names.count(name) > 1]
        if absent or twice:
            fault = f"no column {', '.join(absent)}" if absent else f"two columns {twice[0]}"
            raise InputError(
                f"line 1 is not the header of {what}: {fault}; found {listed(names)}; expected {','.join(wanted)}",
                path=getattr(stream, "name", None),
                line=1,
            )
        self._header = first.data.strip() if first is not None else b""
        self._width = len(names)
        self._at = [(name, names.index(name)) for name in known if name in names]
        self.columns = frozenset(name for name, _ in self._at)
        unread = [name for name in names if name not in known] if others else []
        if unread:
            _log.warning("%s: columns that are not read: %s", what, listed(unread))

    def cells(self, line: Line) -> dict[str, str]:
        """Return the cells of one line, blanks around them taken off.

        Raises:
            RowError: it has not as many as the header.
        """
        cells = split(line.text())
        if len(cells) != self._width:
            raise RowError(f"not {self._width} columns as in the header")
        return {name: cells[at].strip() for name, at in self._at}

    def rows(self) -> Iterator[Line]:
        """Yield the lines after the header that are neither blank nor the header once more."""
        return (line for line in self._lines if line.data.strip() not in {b"", self._header})

    def read(self, sink: Sink, take: Callable[[Line, dict[str, str]], None]) -> None:
        """Hand every row to `take`, which counts it as seen; if it raises RowError first, the row is rejected."""
        for line in self.rows():
            try:
                take(line, self.cells(line))
            except RowError as bad:
                sink.seen()
                sink.reject(line.line_no, str(bad), line.data)
