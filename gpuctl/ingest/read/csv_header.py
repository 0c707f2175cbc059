"""Lines of CSV-like files: is the first one a header, is it a row, and one split at its commas."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.line_reader import RowError

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = 64 << 10
_ROW = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d( [A-Z]{3})?,[!-+\--~]{1,255}((?:,[^,]*)+)")


def first_line(head: bytes) -> bytes:
    """The first line of `head`, without byte-order mark, line end and outer blanks."""
    return head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0][:HEAD].strip()


def looks_like_row(line: bytes, least: int, most: int) -> bool:
    """Check whether a line is ``time,node,value…`` with `least` to `most` values and perhaps a trailing comma."""
    match = _ROW.fullmatch(line)
    return match is not None and least <= match[2].rstrip(b",").count(b",") <= most


def read_header(stream: BinaryIO, header: re.Pattern[bytes]) -> tuple[Rest, bytes, int]:
    """Take the header off a stream.

    Returns:
        the stream from the first data line on, the header (empty if the file has none), and the number
        of that first data line.
    """
    head = stream.read(HEAD)
    bom = 3 if head.startswith(b"\xef\xbb\xbf") else 0
    line = first_line(head)
    if not header.fullmatch(line):
        return Rest(head[bom:], stream), b"", 1
    cut = head.find(b"\n") + 1
    return Rest(head[cut:] if cut else b"", stream), line, 2


class Rest:
    """What is left of a stream from which a first part was taken and put back.

    Args:
        head: the part that was put back.
        stream: gives the rest.
    """

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream

    @property
    def truncated(self) -> bool:
        """Whether the stream ended before its time, once it has ended."""
        return bool(getattr(self._stream, "truncated", False))

    def blocks(self) -> Iterator[bytes]:
        """Yield what is left in pieces of no particular size."""
        head, self._head = self._head, b""
        if head:
            yield head
        if hasattr(self._stream, "blocks"):
            yield from self._stream.blocks()
        else:
            while data := self._stream.read(HEAD):
                yield data


def split(text: str, separator: str = ",") -> list[str]:
    """Split one line at its commas, or what stands for them; quoted fields may hold commas, but no line ends.

    Raises:
        RowError: a quote is not closed on this line.
    """
    if '"' not in text:
        return text.split(separator)
    try:
        return next(csv.reader([text], strict=True, delimiter=separator), [])
    except csv.Error:
        raise RowError("a quoted field does not end on its line, or is too long") from None
