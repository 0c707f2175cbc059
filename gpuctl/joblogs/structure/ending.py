"""The ending of a program that died, as a reader of one language's format returns it."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PROGRAM_ERROR = "program_error"
"""The reason of an error that nobody caught and of which nothing else is known."""


class Ending(NamedTuple):
    """An error that ended a program, as its language prints it.

    Attributes:
        at: the line of the window that names the error.
        first: the window's first line that belongs to it.
        last: the window's last line that belongs to it.
        reason: reason of the error unless a signature is more specific; None: the format only shows that something
            failed.
        frame: path of the innermost frame's file, if the format has frames.
        ignored: the language states that the program continued; then no line of it is evidence.
        texts: decoded content of the lines (JSON, a box), replacing the line itself.
        rank: rank of the process that a launcher blames.
    """

    at: int
    first: int
    last: int
    reason: str | None = PROGRAM_ERROR
    frame: str | None = None
    ignored: bool = False
    texts: tuple[str, ...] = ()
    rank: int | None = None


class Format(NamedTuple):
    """How one language, compiler, logger or launcher prints errors.

    Attributes:
        name: name of the program that prints it; `structure-NAME` is the signature of its endings.
        starts: patterns (Hyperscan, one line each) that anchor it.
        read: maps (lines of one process without prefixes, index of the anchor) to the ending; None if there is none.
        example: a whole line that an anchor matches.
        source: description of the format.
        reasons: (reason, tier) of endings whose reason the format itself states, apart from `PROGRAM_ERROR`.
    """

    name: str
    starts: tuple[bytes, ...]
    read: Callable[[Sequence[str], int], Ending | None]
    example: str
    source: str
    reasons: tuple[tuple[str, str], ...] = ()


_CHILD = re.compile(
    r"(?:exit(?:ed)?|return(?:ed)?|fail(?:ed|ure)?|status|terminated)\b[^\n]{0,40}?"
    r"\b(?:code|status|non-?zero)\b[^\n]{0,20}?\d{1,3}|returned non-zero exit status|exit(?:ed)? \d{1,3}\b"
    r"|\b(?:Child|Called|Sub)?(?:Process|Child)(?:Failed|Exited|Raised)?(?:Error|Exception)\b|RemoteTraceback|CalledProcess"
    r"|\b(?:jobs?|tasks?|steps?|stages?) (?:did not complete|have failed|has failed|failed)\b",
    re.IGNORECASE,
)


def reason_of(text: str) -> str | None:
    """Return the reason of an error of which only the text is known.

    None if it describes another process's exit code: the reason is elsewhere.
    """
    return None if _CHILD.search(text) else PROGRAM_ERROR


_QUOTED = re.compile(r'"((?:[^"\\]|\\.){4,400})"')
_HEAD = re.compile(r"(?:what\(\):|panic:|[\w./-]{1,60}:\d{1,7}:|[\w.:]{1,80}:)\s{1,4}")


_ERRNO = re.compile(r"\[Errno (\d{1,3})\]|\(os error (\d{1,3})\)|\bOs \{ code: (\d{1,3})|\berrno[=: ]{1,3}(\d{1,3})\b")


def _system_error(line: str) -> str:
    """Return the system error that a line names by its number, as Python prints it."""
    found = _ERRNO.search(line)
    if found is None:
        return ""
    error = OSError(int(next(filter(None, found.groups()))), "")
    return f"{type(error).__name__}: [Errno {error.errno}] {os.strerror(error.errno or 0)}"


def messages(line: str) -> tuple[str, ...]:
    """Return the messages in a line that names an error: the text without its head, and quoted text by itself."""
    line = line.strip()
    head = _HEAD.match(line)
    quoted = _QUOTED.search(line)
    words = [line, line[head.end() :] if head else "", quoted[1].replace('\\"', '"') if quoted else ""]
    system = _system_error(line)
    messages = [text for text in dict.fromkeys(words) if text]
    return (*messages, *(f"ERROR: {text}" for text in messages), *([system] if system else []))


def single(lines: Sequence[str], at: int) -> Ending:
    """Parse a format whose whole error is in one line."""
    return Ending(at, at, at, reason_of(lines[at]))


def indented(lines: Sequence[str], at: int, most: int = 12) -> tuple[str, int]:
    """Return the message in the indented lines below a head, joined by blanks, and the index of its last line."""
    words: list[str] = []
    place = at
    while place + 1 < len(lines) and place - at < most and lines[place + 1][:1] in " \t" and lines[place + 1].strip():
        place += 1
        words.append(lines[place].strip())
    return " ".join(words), place


def above(lines: Sequence[str], at: int) -> Ending | None:
    """Read a format that puts a stack below the error: the nearest line above that is not blank names it."""
    place = at - 1
    while place >= 0 and not lines[place].strip():
        place -= 1
    return Ending(place, place, at, reason_of(lines[place])) if place >= 0 else None
