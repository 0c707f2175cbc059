"""A stream of text as pieces of whole lines, for readers that take many lines at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.line_reader import LINE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE = 4 << 20
"""Bytes of text parsed at a time by default."""
LARGE_PIECE = 2 * PIECE
"""The same for tables of few columns: each piece has costs of its own, and theirs take little memory."""
BLOCK = 1 << 18
"""Bytes looked at at a time."""


def whole_lines(stream: BinaryIO, head: bytes, piece: int = PIECE) -> Iterator[tuple[bytes, bool]]:
    """Yield the stream in pieces of whole lines of about `piece` bytes, and whether more follows."""
    rest = head
    # a line without an end takes up no more than one piece: what is past the limit of a line is dropped
    for data in _pieces(stream, piece):
        cut = data.rfind(b"\n") + 1
        if cut:
            whole = cut == len(data) and not rest
            yield (data if whole else b"".join((rest, memoryview(data)[:cut]))), True
            rest = data[cut:]
        elif len(rest) <= LINE_LIMIT:
            rest += data
    yield rest, False


def _pieces(stream: BinaryIO, piece: int) -> Iterator[bytes]:
    """Yield the bytes of a stream in chunks of about `piece` bytes, with as few copies as possible."""
    blocks = getattr(stream, "blocks", None)
    if blocks is None:
        yield from iter(lambda: stream.read(piece), b"")
        return
    held, size = [], 0
    for block in blocks():
        held.append(block)
        size += len(block)
        if size >= piece:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)


def torn_off(data: bytes, stream: BinaryIO) -> tuple[bytes, bytes]:
    """Take a line without an end off the end of a stream that was cut off."""
    if not getattr(stream, "truncated", False):
        return data, b""
    cut = data.rfind(b"\n") + 1
    return data[:cut], data[cut:]


def blocks(data: bytes) -> Iterator[bytes]:
    """Yield whole lines, about `BLOCK` bytes at a time: what NumPy makes of so many stays in the processor's cache."""
    at = 0
    while at < len(data):
        cut = data.rfind(b"\n", at, at + BLOCK) + 1 or data.find(b"\n", at + BLOCK) + 1 or len(data)
        yield data[at:cut]
        at = cut


def count_of(data: bytes, byte: bytes) -> int:
    """Count the occurrences of a byte."""
    import numpy as np

    cells, one = np.frombuffer(data, np.uint8), byte[0]
    return sum(int(np.count_nonzero(cells[at : at + BLOCK] == one)) for at in range(0, len(cells), BLOCK))


def has_twice(data: bytes, byte: bytes) -> bool:
    """Whether a byte occurs twice in a row: several times as fast as to look for the two."""
    import numpy as np

    cells, one = np.frombuffer(data, np.uint8), byte[0]
    for at in range(0, len(cells), BLOCK):
        there = cells[at : at + BLOCK + 1] == one
        if (there[1:] & there[:-1]).any():
            return True
    return False
