r"""Slurm's configuration files: one statement per line, ``Key=Value`` words, ``#`` comments, ``\`` at a line's end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from gpuctl.core.line_reader import LINE_LIMIT, RowError, numbered_lines
from gpuctl.slurm.hostlist import expand

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_NAMES = 65_536
"""Names of one host list; longer ones are refused before any name is made."""
_COMMENT = re.compile(r"(?<!\\)#.*")
_WORD = re.compile(r"""(?<![\w.])(?:[^\WA-Za-z]|\.)*+([A-Za-z][\w.]*+)\s*+[+-]?=\s*+("[^"]*"|[^\s"]*+)""")
# a failed search scans a long word once, not again from each of its letters
INCLUDED = "names another file: give that file as well"


class Statement(NamedTuple):
    """One statement.

    Attributes:
        line_no: its first line, 1-based.
        text: without comments, continued lines joined by a blank.
        fault: why it cannot be parsed, or None.
    """

    line_no: int
    text: str
    fault: str | None


def statements(stream: BinaryIO) -> Iterator[Statement]:
    """Yield every statement of a configuration file, without blank lines and comments."""
    parts: list[str] = []
    start, size, fault = 0, 0, None
    for line in numbered_lines(stream):
        if not parts:
            start, size, fault = line.line_no, 0, None
        size += len(line.data)
        fault = fault or line.fault or ("statement of more than 1 MiB" if size > LINE_LIMIT else None)
        text = "" if fault else _COMMENT.sub("", line.data.decode("utf-8", "replace")).rstrip()
        parts.append(text.removesuffix("\\"))
        if not text.endswith("\\"):
            whole = " ".join(part.strip() for part in parts).strip()
            if whole or fault:
                yield Statement(start, whole, fault)
            parts = []
    whole = " ".join(part.strip() for part in parts).strip()
    if whole or (parts and fault):
        yield Statement(start, whole, fault)


def words(text: str) -> dict[str, str]:
    """Split a statement into its words: keys in lower case, no quotes; the last value of a key counts, as in Slurm.

    Raises:
        RowError: part of it is not Key=Value.
    """
    found: dict[str, str] = {}
    at = 0
    for word in _WORD.finditer(text):
        if text[at : word.start(1)].strip():
            break
        found[word[1].lower()] = word[2].strip('"')
        at = word.end()
    if text[at:].strip() or not found:
        raise RowError("not Key=Value words")
    return found


def hosts(text: str) -> list[str]:
    """Return the names of a host list.

    Raises:
        RowError: it is not a host list, or is too long.
    """
    try:
        return expand(text, MOST_NAMES)
    except ValueError as bad:
        # the names themselves would make every reason different
        long = "more than" in str(bad)
        raise RowError(f"host list of more than {MOST_NAMES} names" if long else "host list cannot be read") from None


def without_secret(text: str) -> str:
    """Return a statement without the value of anything like a password."""
    return re.sub(r"(?i)(\w*pass\w*\s*=\s*)\S+", r"\1…", text)
