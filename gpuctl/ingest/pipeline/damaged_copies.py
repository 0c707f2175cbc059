"""Damages files as disks, editors, log rotation and attackers do; every format must cope with that."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

WORDS = (
    *(b"", b"-1", b"0", b"nan", b"inf", b"1e400", b"99999999999999999999", b"7"),
    *(b"None", b"null", b"(null)", b"Unknown", b"N/A", b"\x1b[31m", b"<b>&\"'", b"=1+1"),
    *(b"\0", b"\xff\xfe", b"\xed\xa0\x80", "\N{REPLACEMENT CHARACTER}\uffff\u202e".encode()),
    *(b"{", b"}", b"[", b"]", b'"', b"|", b",", b"\t", b"\r", b"\n", b"\\", b"gpu[0-99999999]", b"../../etc/passwd"),
    *(b"1970-01-01T00:00:00", b"9999-12-31 23:59:59", b"2017-13-41 25:61:61", b"0001-01-01T00:00:00", b"294247-01-01"),
)  # fmt: skip


def _cut_off(data: bytes, draw: Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _beginning_lost(data: bytes, draw: Random) -> bytes:
    return data[draw.randrange(min(len(data), 400) + 1) :]


def _bytes_changed(data: bytes, draw: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.randint(1, 8)):
        if changed:
            changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def _word_put_in(data: bytes, draw: Random) -> bytes:
    at, length = draw.randrange(len(data) + 1), draw.choice((0, 0, 1, 5, 30))
    return data[:at] + draw.choice(WORDS) + data[at + length :]


def _number_replaced(data: bytes, draw: Random) -> bytes:
    starts = [k for k in range(1, len(data)) if data[k : k + 1].isdigit() and not data[k - 1 : k].isdigit()]
    if not starts:
        return data
    at = end = draw.choice(starts)
    while data[end : end + 1].isdigit():
        end += 1
    return data[:at] + draw.choice(WORDS[:8]) + data[end:]


def _lines_glued(data: bytes, draw: Random) -> bytes:
    ends = [k for k, byte in enumerate(data) if byte == ord("\n")]
    if not ends:
        return data
    at = draw.choice(ends)
    return data[:at] + data[at + 1 :]


def _line_torn(data: bytes, draw: Random) -> bytes:
    """Drop the end of a line and its newline, as two writers or a temporarily full disk do."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at = draw.randrange(len(lines))
    lines[at] = lines[at][: draw.randrange(len(lines[at]) + 1)]
    return b"".join(lines)


def _lines_shuffled(data: bytes, draw: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    draw.shuffle(lines)
    return b"".join(lines)


def _lines_doubled(data: bytes, draw: Random) -> bytes:
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at = draw.randrange(len(lines))
    return b"".join([*lines[:at], *lines[at : at + draw.randint(1, 5)] * 2, *lines[at:]])


def _other_line_ends(data: bytes, draw: Random) -> bytes:
    return data.replace(b"\n", draw.choice((b"\r\n", b"\r", b"\n\n", b"\0")))


DAMAGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_cut_off, _beginning_lost, _bytes_changed, _word_put_in, _word_put_in, _number_replaced, _number_replaced),
    *(_lines_glued, _lines_glued, _line_torn, _line_torn, _lines_shuffled, _lines_doubled, _other_line_ends),
)


def damaged(data: bytes, draw: Random) -> bytes:
    """Return the bytes with one to three faults, which `draw` chooses."""
    for _ in range(draw.randint(1, 3)):
        data = draw.choice(DAMAGES)(data, draw)
    return data
