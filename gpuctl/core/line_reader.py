"""Reads a byte stream line by line without ever holding more than one chunk of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

LINE_LIMIT = 2**20
"""Maximum bytes of a line; longer ones are truncated."""

LINE_TOO_LONG = f"line longer than {LINE_LIMIT // 2**20} MiB"
CUT_OFF = "cut off: the file ends inside this line"
GLUED = "records run together: a line end between them is missing, or stray bytes precede one"
NOT_UTF8 = "not valid UTF-8"

_CHUNK = 2**18


class RowError(Exception):
    """One row of a source cannot be loaded; the message is the reason for the ``rejects`` table."""


class Line(NamedTuple):
    r"""One line of a file.

    Attributes:
        line_no: 1-based.
        data: its bytes without the line end (``\n`` or ``\r\n``); only the beginning of a line over the limit.
        fault: why the line as a whole cannot be read, or None.
    """

    line_no: int
    data: bytes
    fault: str | None

    def text(self) -> str:
        """Return the line as text.

        Raises:
            RowError: it is over the limit, is cut off, or is not UTF-8.
        """
        if self.fault is not None:
            raise RowError(self.fault)
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            raise RowError(NOT_UTF8) from None


def numbered_lines(stream: BinaryIO, limit: int = LINE_LIMIT) -> Iterator[Line]:
    """Yield every line of a stream, including blank ones and a last one without a line end.

    A byte-order mark at the front is dropped.

    Args:
        stream: decompressed bytes; if it was truncated (``stream.truncated``), a last line without a line end is
            incomplete.
        limit: most bytes to keep of one line.
    """
    number, rest, fault = 1, b"", None
    while chunk := stream.read(_CHUNK):
        first, *others = chunk.split(b"\n")
        rest, fault = _append(rest, first, fault, limit)
        for other in others:
            yield _line(number, rest, fault)
            number += 1
            rest, fault = _append(b"", other, None, limit)
    if rest:
        if fault is None and getattr(stream, "truncated", False):
            fault = CUT_OFF
        yield _line(number, rest, fault)


def _append(rest: bytes, more: bytes, fault: str | None, limit: int) -> tuple[bytes, str | None]:
    if len(rest) + len(more) <= limit:
        return rest + more, fault
    return (rest + more)[:limit], LINE_TOO_LONG


def _line(number: int, data: bytes, fault: str | None) -> Line:
    if number == 1:
        data = data.removeprefix(b"\xef\xbb\xbf")
    return Line(number, data.removesuffix(b"\r"), fault)
