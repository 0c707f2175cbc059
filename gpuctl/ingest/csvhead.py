"""The first line of CSV-like telemetry: is it a header, is it a row?"""

from __future__ import annotations

import io
import re
from typing import BinaryIO, cast

HEAD = 64 << 10
_ROW = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d( [A-Z]{3})?,[!-+\--~]{1,255}((?:,[^,]*)+)")


def first_line(head: bytes) -> bytes:
    """The first line of `head`, without byte-order mark, line end and outer blanks."""
    return head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0][:HEAD].strip()


def looks_like_row(line: bytes, least: int, most: int) -> bool:
    """Tell whether a line is ``time,machine,value…`` with `least` to `most` values and perhaps a trailing comma."""
    match = _ROW.fullmatch(line)
    return match is not None and least <= match[2].rstrip(b",").count(b",") <= most


def read_header(stream: BinaryIO, header: re.Pattern[bytes]) -> tuple[BinaryIO, bytes, int]:
    """Take the header off a stream.

    Returns:
        the stream from the first data line on, the header (empty where the file has none), and the number
        of that first data line.
    """
    head = stream.read(HEAD)
    bom = 3 if head.startswith(b"\xef\xbb\xbf") else 0
    line = first_line(head)
    if not header.fullmatch(line):
        return cast("BinaryIO", _Prefixed(head[bom:], stream)), b"", 1
    cut = head.find(b"\n") + 1
    return cast("BinaryIO", _Prefixed(head[cut:] if cut else b"", stream)), line, 2


class _Prefixed(io.RawIOBase):
    """A stream with some bytes put back in front of it."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream

    @property
    def truncated(self) -> bool:
        return bool(getattr(self._stream, "truncated", False))

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        head, self._head = self._head, b""
        if size < 0:
            return head + self._stream.read()
        self._head = head[size:]
        head = head[:size]
        return head + self._stream.read(size - len(head)) if len(head) < size and not self._head else head
