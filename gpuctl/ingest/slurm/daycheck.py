"""Checks that sacct's output for a day is complete and of that day, before it is stored and never requested again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MOST_RECORD = 1 << 20
_SLACK_S = 3600


@dataclass
class DayCheck:
    """Checks a day's output while it passes by.

    Attributes:
        names: the columns requested.
        delimiter: between two of them; all but the last column may hold newlines.
        window: first and last second of the day.
        what: names the day in errors.
    """

    names: Sequence[str]
    delimiter: bytes
    window: tuple[float, float]
    what: str
    _rest: bytes = b""
    _marks: int = 0
    _records: int = -1
    _ended: int = 0
    _inside: int = 0

    def feed(self, piece: bytes) -> None:
        """Take the next bytes.

        Raises:
            InputError: sacct does not print such bytes for these columns.
        """
        for cells in self._whole(piece):
            if self._records < 0:
                self._header(cells)
            elif len(cells) != len(self.names):
                self._fail(f"a record of {len(cells)} cells, expected {len(self.names)}: {_start(cells[0])}")
            else:
                self._when(cells)
            self._records += 1

    def end(self) -> None:
        """Check that the answer was complete.

        Raises:
            InputError: there was none, it was cut off, or it is of another day.
        """
        if self._rest and self._records < 0:
            self._header([self._rest])
        if self._rest:
            self._fail(f"the last record is cut off: {_start(self._rest)}")
        if self._records < 0:
            self._fail("not even a header")
        if self._ended and not self._inside:
            self._fail(f"{self._ended} records, of which none ended on that day (UTC)")

    def _whole(self, piece: bytes) -> Iterator[list[bytes]]:
        # by newlines only: a carriage return ends no line of sacct
        *lines, rest = piece.split(b"\n")
        for line in lines:
            self._more(line + b"\n")
            if self._marks >= len(self.names) - 1 or self._records < 0:
                cells = self._rest[:-1].split(self.delimiter)
                self._rest, self._marks = b"", 0
                yield cells
        self._more(rest)

    def _more(self, text: bytes) -> None:
        self._rest += text
        self._marks += text.count(self.delimiter)
        if len(self._rest) > _MOST_RECORD:
            self._fail(f"a record of more than {_MOST_RECORD >> 20} MiB")

    def _header(self, cells: list[bytes]) -> None:
        found = [cell.decode("utf-8", "replace").lower() for cell in cells]
        if found != [name.lower() for name in self.names]:
            self._fail(f"its first line is not a header of sacct: {_start(cells[0])}")

    def _when(self, cells: list[bytes]) -> None:
        if "End" in self.names and (text := cells[self.names.index("End")]).isdigit():
            self._ended += 1
            self._inside += self.window[0] <= int(text) <= self.window[1] + _SLACK_S

    def _fail(self, found: str) -> None:
        raise InputError(
            f"{self.what}: no output of sacct: {found}",
            hint="nothing of that day was stored, and it is fetched again the next time; "
            "gpuctl ingest --from sacct --dry-run shows the commands: see what they print",
        )


def _start(text: bytes) -> str:
    return repr(text[:60].decode("utf-8", "replace"))
