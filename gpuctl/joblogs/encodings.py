"""Logs that are not in UTF-8: UTF-16 and UTF-32, recognised by byte order mark or by their zeros, and runs of NULs."""

from __future__ import annotations

import codecs
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)
"""Byte order marks; those of UTF-32 precede those of UTF-16, which they begin with."""
_EXAMINED = 4096
_LEAST = 16
"""Fewer bytes do not show an encoding without a mark."""
_MOSTLY, _SELDOM = 0.8, 0.2
_LINE_END, _RETURN = 10, 13
_FEW = 32
"""Where at most one byte in so many is NUL, only these bytes are looked at."""
_WIDTHS = (
    # zeros are rare in the byte of each character that holds ASCII, and the rule in the others
    ("utf-32-le", 4, 0),
    ("utf-32-be", 4, 3),
    ("utf-16-le", 2, 0),
    ("utf-16-be", 2, 1),
)


def encoding_of(head: bytes) -> tuple[str | None, int]:
    """Recognise the encoding of a log.

    Args:
        head: its first bytes, as many as there are up to some thousands.

    Returns:
        (name of the codec; None for UTF-8 and everything else that ASCII is a part of, length of the mark).
    """
    for mark, name in _MARKS:
        # line ends and blanks of UTF-16 have zeros, text that begins with the same bytes by chance has none
        if head.startswith(mark) and (name == "utf-8" or b"\x00" in head[len(mark) :] or len(head) == len(mark)):
            return (None if name == "utf-8" else name), len(mark)
    for name, width, text in _WIDTHS:
        seen = head[: _EXAMINED - _EXAMINED % width]
        seen = seen[: len(seen) - len(seen) % width]
        if len(seen) < _LEAST:
            continue
        zeros = [seen[place::width].count(0) * width / len(seen) for place in range(width)]
        if zeros.pop(text) <= _SELDOM and all(share >= _MOSTLY for share in zeros):
            return name, 0
    return None, 0


def chunks(stream: BinaryIO, size: int) -> Iterator[tuple[bytes, int]]:
    """Read a log as UTF-8.

    Args:
        stream: its bytes, decompressed.
        size: of a piece, in bytes.

    Yields:
        (text, bytes of the log that it was read from). What is invalid in UTF-16 or UTF-32 becomes U+FFFD; a run of
        NULs, which a log that was cut while a program kept writing begins with, becomes a blank, or nothing at the
        beginning of a line.
    """
    data = stream.read(size)
    name, mark = encoding_of(data)
    decoder = codecs.getincrementaldecoder(name)("replace") if name else None
    while data:
        following = stream.read(size)
        text = data[mark:]
        mark = 0
        if decoder is not None:
            text = decoder.decode(text, not following).encode("utf-8", "replace")
        if b"\x00" in text:
            text = _without_runs(text)
        yield text, len(data)
        data = following


def _without_runs(text: bytes) -> bytes:
    """Drop NULs that begin a line or follow a NUL: of a run within a line one is left, which is read as a blank."""
    codes = np.frombuffer(text, np.uint8)
    nul = codes == 0
    if np.count_nonzero(nul) > len(codes) // _FEW:
        dropped = nul.copy()
        dropped[1:] &= nul[:-1] | (codes[:-1] == _LINE_END) | (codes[:-1] == _RETURN)
        return bytes(codes[~dropped])
    places = np.flatnonzero(nul)
    before = codes[places - 1]
    of_run = (before == 0) | (before == _LINE_END) | (before == _RETURN) | (places == 0)
    ends = [*places[of_run].tolist(), len(text)]
    return text[: ends[0]] + b"".join(text[begin + 1 : end] for begin, end in pairwise(ends))
