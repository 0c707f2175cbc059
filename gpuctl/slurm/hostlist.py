"""Slurm host lists: ``gpu[001-004,007],c1-[2-3]`` and the names that they represent."""

from __future__ import annotations

import itertools
import re

NOBODY = frozenset({"", "None assigned", "(null)", "None", "N/A", "n/a", "Unknown"})
"""What Slurm writes if a job has no nodes."""

_DIGITS = 18
_BRACKETED = re.compile(r"(?<![^\[\]])([^\[\]]*+)\[([^\[\]]*+)\]")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?", re.ASCII)
_PLAIN = re.compile(r"[^\[\],\s]+")
_Range = tuple[int, int, int]
"""First, last and the width they are padded to."""


def expand(text: str, limit: int = 65_536) -> list[str]:
    """Return the names of a host list, without duplicates, in the order in which they are written.

    Zero padding is kept (``n[08-10]`` is n08, n09, n10), and a name may have several bracket groups. A list that would
    be too long is rejected by counting, before any name is generated.

    Args:
        text: the host list; ``None assigned``, ``(null)`` and the empty text are empty lists.
        limit: most names to generate.

    Raises:
        ValueError: it is not a host list, or it has more names than `limit`.
    """
    left = limit
    names: dict[str, None] = {}
    for item in _items(text):
        parts, size = _parts(item, left, limit)
        left -= size
        alternatives = [
            [part]
            if isinstance(part, str)
            else [f"{n:0{w}d}" for first, last, w in part for n in range(first, last + 1)]
            for part in parts
        ]
        names.update(dict.fromkeys(map("".join, itertools.product(*alternatives))))
    return list(names)


def count(text: str, limit: int = 65_536) -> int:
    """Count the names of a host list without expanding it; names written twice count twice.

    Raises:
        ValueError: it is not a host list, or it has more names than `limit`.
    """
    left = limit
    for item in _items(text):
        left -= _parts(item, left, limit)[1]
    return limit - left


def _items(text: str) -> list[str]:
    """Split at commas outside brackets."""
    text = text.strip()
    if text in NOBODY:
        return []
    items, start, depth = [], 0, 0
    for mark in re.finditer(r"[\[\],]", text):
        if mark[0] == "[":
            depth += 1
        elif mark[0] == "]":
            depth -= 1
        elif depth == 0:
            items.append(text[start : mark.start()])
            start = mark.end()
        if depth not in {0, 1}:
            raise ValueError(f"brackets that do not match in host list {text[:80]!r}")
    if depth:
        raise ValueError(f"bracket not closed in host list {text[:80]!r}")
    return [*items, text[start:]]


def _parts(item: str, left: int, limit: int) -> tuple[list[str | list[_Range]], int]:
    """Split one name into the parts outside and inside its brackets, and count its names."""
    parts: list[str | list[_Range]] = []
    size, at = 1, 0
    for group in _BRACKETED.finditer(item):
        ranges = [_bounds(piece) for piece in group[2].split(",")]
        size *= sum(last - first + 1 for first, last, _ in ranges)
        if size > left:
            break
        parts += [group[1], ranges]
        at = group.end()
    if size > left:
        raise ValueError(f"host list of more than {limit} names")
    parts.append(item[at:])
    if not _PLAIN.fullmatch("".join(part if isinstance(part, str) else "0" for part in parts)):
        raise ValueError(f"no host name: {item[:80]!r}")
    return parts, size


def _bounds(piece: str) -> _Range:
    """Parse ``7`` or ``001-004`` as first, last and width."""
    match = _RANGE.fullmatch(piece)
    if match is None or len(piece) > 2 * _DIGITS + 1:
        raise ValueError(f"no number or range of numbers: {piece[:40]!r}")
    first, last = int(match[1]), int(match[2] or match[1])
    if first > last:
        raise ValueError(f"range that runs backwards: {piece!r}")
    return first, last, len(match[1])
