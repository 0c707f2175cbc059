"""Errors in boxes drawn on a terminal (Rich, Typer, tyro, Click with Rich), and Rich's tracebacks."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.joblogs.structure.ending import Ending, Format, reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIDES = "│┃║|"
_BOTTOM = re.compile(r"\s*[╰└┗╚+][─━═-]")
_TITLE = re.compile(r"[╭┌┏╔+][─━═-]{1,200} ?([^─━═╮┐┓╗+\n]{1,120}?) ?[─━═-]")
_TELLING = re.compile(
    r"error|exception|required|invalid|unrecogni[sz]ed|unknown|missing|fail|panic|fatal|abort|problem|conflict", re.I
)
_USAGE = re.compile(
    r"(?:required|unrecogni[sz]ed|unknown|invalid|missing) (?:\w+ )?(?:options?|arguments?|subcommands?)|pars(?:e|ing)",
    re.I,
)
_HELP = re.compile(r"(?:^|\s)(?:--help|helptext|-h for help)\b")
_ABOVE = 8
_MOST = 60
_FRAME = re.compile(r"\s*[│┃║|] (?:in )?(/[^\s:]{1,300}|[\w./\\-]{1,300}\.py):\d{1,7}(?: in |\s)")
_NAMED = re.compile(r"(?:[^\W\d]\w{0,80}\.){0,10}[^\W\d]\w{0,80}(?::(?: |$)|$)")


def _body(lines: Sequence[str], at: int) -> tuple[list[str], int]:
    """Return the text in a box without its sides, and the index of the box's last line."""
    words: list[str] = []
    for place in range(at + 1, min(at + _MOST, len(lines))):
        line = lines[place].strip()
        if _BOTTOM.match(line):
            return words, place
        if line[:1] not in _SIDES:
            return words, place - 1
        words.append(line.strip(_SIDES).strip())
    return words, min(at + _MOST, len(lines)) - 1


def box(lines: Sequence[str], at: int) -> Ending | None:
    """Read a box whose title tells of an error: its text is the message, whatever lines it is broken into."""
    title = _TITLE.search(lines[at])
    if title is None or not _TELLING.search(title[1]):
        return None
    words, last = _body(lines, at)
    message = " ".join(word for word in words if word and not set(word) <= set("─━═-"))
    if not message:
        return None
    above = any("usage:" in line.lower() for line in lines[max(at - _ABOVE, 0) : at])
    usage = above or _USAGE.search(title[1]) or _HELP.search(message)
    texts = (f"Error: {message}", *(word for word in words if word))
    return Ending(min(at + 1, last), at, last, "wrong_arguments" if usage else reason_of(message), texts=texts)


def traceback(lines: Sequence[str], at: int) -> Ending | None:
    """Read a traceback of Rich: the exception's line follows the box, its frames are in the box."""
    frame = None
    place = at + 1
    while place < len(lines) and not _BOTTOM.match(lines[place]):
        found = _FRAME.match(lines[place])
        if found:
            frame = found[1]
        elif lines[place].strip()[:1] not in _SIDES:
            return None
        place += 1
    place = next((n for n in range(place + 1, min(place + 3, len(lines))) if lines[n].strip()), len(lines))
    if place >= len(lines) or not _NAMED.match(lines[place]):
        return None
    return Ending(place, at, place, reason_of(" ".join(lines[place : place + 2])), frame)


FORMATS = (
    Format(
        "box",
        ("^ {0,4}(?:╭─|┌─|┏━|╔═)[^\n]{3,300}$".encode(), rb"^\+-{1,3} [A-Z][^\n]{1,80} -{2,200}\+\r?$"),
        box,
        "╭─ Parsing error ─────────────────────╮",
        "rich.readthedocs.io: panels; typer.tiangolo.com and tyro: usage errors",
        (("wrong_arguments", "root"),),
    ),
    Format(
        "rich-traceback",
        ("^ {0,4}(?:╭|┌|\\+)(?:─|-){1,200} ?Traceback \\(most recent call last\\)".encode(),),
        traceback,
        "╭─────────────────── Traceback (most recent call last) ────────────────────╮",
        "rich.readthedocs.io: tracebacks",
    ),
)
