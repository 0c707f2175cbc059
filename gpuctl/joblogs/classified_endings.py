"""Joins the endings that formats find (`gpuctl.joblogs.structure`) with signatures found in the same lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, overload

from gpuctl.joblogs.prefix import Prefix, prefix
from gpuctl.joblogs.structure import PREFIX
from gpuctl.joblogs.structure.ending import PROGRAM_ERROR, messages
from gpuctl.joblogs.structure.library_areas import area
from gpuctl.joblogs.table import CAUSES, Signature, Tier, reading_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import tzinfo

    from gpuctl.joblogs.structure.ending import Ending, Format

ABOVE, BELOW = 12, 200
"""An ending is read from so many lines above its anchor, and below it."""
_MESSAGE = 3
"""The line that names an error may be followed by so many of its message."""
_LONGEST = 40
"""Lines of a message below the line that names the error, where they are indented or marked as a list..."""
_PARAGRAPH = 12
"""...and where they are not, but the line above announces them."""
_SAID = 500
"""Characters of a message that are read."""
_GO_ON = frozenset({"python", "rich-traceback", "cxx", "jvm", "dotnet", "prolog"})
"""Formats whose message may run over several lines."""
_ANNOUNCES = re.compile(r"(?:[:,({\\\[]|\b(?:errors?|Error\(s\)) for \S{1,60}|\bfollowing\b[^.]{0,60})\s*$")
_LISTED = re.compile(r"[-*+•|^>~{}()\[\]│╰└├•·=]|\d{1,3}[.)] ")
_NEW = re.compile(r"Traceback \(most recent|During handling of|The above exception")


class PlacedEnding(NamedTuple):
    """An ending in a block of a log.

    Attributes:
        ending: as its format parsed it.
        format: the format that found it.
        rows: rows of the block, one per line passed to the format.
        line: the whole line that names the error.
        rank: of the process that printed it, if the line names it.
        ts: timestamp of the line.
        said: the message: that line and those that go on with it, joined by blanks, without stamps and ranks.
    """

    ending: Ending
    format: Format
    rows: Sequence[int]
    line: str
    rank: int | None
    ts: float | None
    said: str

    @property
    def row(self) -> int:
        """Return the row of the line that names the error."""
        return self.rows[self.ending.at]

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the ending's texts, to be searched for signatures."""
        return self.ending.texts or messages(self.line[prefix(self.line).end :])

    @property
    def span(self) -> list[int]:
        """Return the rows of its process from its first line to its last."""
        return [*self.rows[self.ending.first : self.ending.last + 1]]


def place(
    anchors: Iterable[tuple[int, Format]], count: int, line: Callable[[int], str], zone: tzinfo
) -> list[PlacedEnding]:
    """Parse the endings anchored at some rows of a block.

    Args:
        anchors: (row, format) of each anchor.
        count: rows of the block.
        line: the text of a row.
        zone: of timestamps without one.
    """

    @cache
    def head(row: int) -> Prefix:
        return prefix(line(row), zone)

    found: dict[tuple[int, str], PlacedEnding] = {}
    for row, form in anchors:
        rank, near = head(row).rank, range(max(row - ABOVE, 0), min(row + BELOW, count))
        rows = near if rank is None else [n for n in near if head(n).rank == rank]
        lines = _Lines(rows, lambda n: _words(line(n), head(n).end))
        ending = form.read(lines, rows.index(row))
        if ending is not None:
            at = rows[ending.at]
            if form.name in _GO_ON:
                ending = ending._replace(last=_message_end(lines, ending, rows, head))
            said = ending.texts[:1] or [words.strip() for words in lines[ending.at : ending.last + 1]]
            placed = PlacedEnding(ending, form, rows, line(at), rank, head(at).ts, " ".join(said)[:_SAID])
            found.setdefault((at, form.name), placed)
    return [*found.values()]


def _message_end(lines: Sequence[str], ending: Ending, rows: Sequence[int], head: Callable[[int], Prefix]) -> int:
    """Return the last line of a message that runs over several ones: what is ordinary output is not part of it."""
    last, blank = ending.last, False
    announced = _ANNOUNCES.search(lines[ending.last]) is not None
    for place in range(ending.last + 1, min(ending.last + 1 + _LONGEST, len(lines))):
        before, words = head(rows[place]), lines[place]
        if before.ts is not None or (before.end and before.rank is None) or _NEW.match(words):
            break
        if not words.strip():
            if blank:
                break
            blank = True
            continue
        marked = words[0] in " \t" or _LISTED.match(words) is not None
        if not marked and (blank or not announced or place - ending.last > _PARAGRAPH):
            break
        last, blank = place, False
    return last


class _Lines(Sequence[str]):
    """Lines that are cut out lazily: most formats read only a few of them."""

    def __init__(self, rows: Sequence[int], text: Callable[[int], str]) -> None:
        self._rows, self._text = rows, text

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self._text(row) for row in self._rows[place]]
        return self._text(self._rows[place])


def _words(line: str, end: int) -> str:
    """Return a line without its prefix, but with its indentation."""
    begin = len(line[:end].rstrip(" \t"))
    return line[begin + line.startswith(" ", begin) :] if begin else line


def strong(known: Iterable[Signature]) -> bool:
    """Return whether a signature is more specific than a class's name."""
    return any(one.tier in CAUSES and one.fallback < 2 and one.tier != Tier.GENERIC for one in known)


def signature_id(placed: PlacedEnding, known: Sequence[Signature]) -> str | None:
    """Return the signature that an ending adds to the log's.

    Args:
        placed: the ending.
        known: the signatures found in the lines of its message.

    Returns:
        an id of `signatures`; None if a signature there is more specific.
    """
    says = [one for one in known if one.tier in CAUSES and one.tier != Tier.GENERIC]
    own = placed.ending.reason
    if own in dict(placed.format.reasons):
        return f"{PREFIX}{placed.format.name}-in-{own}"
    if placed.ending.rank is None and strong(known):
        return None
    where = area(placed.ending.frame)
    if where is not None:
        return f"{PREFIX}{placed.format.name}-in-{where}"
    if placed.ending.rank is None and (says or own is None):
        return None
    return PREFIX + placed.format.name


def readings(placed: PlacedEnding, known: Sequence[Signature]) -> list[str]:
    """Return the signatures of what an ending's message is about, where only a class or nothing is known of it.

    Args:
        placed: the ending.
        known: as for `signature_id`.

    Returns:
        ids of `signatures`, the likelier first; none where a signature knows the wording, or the odds are even.
    """
    if strong(known) or placed.ending.reason != PROGRAM_ERROR or placed.ending.rank is not None:
        return []
    from gpuctl.joblogs import learned

    reading = learned.read(placed.said, placed.ending.frame)
    return reading_ids(reading.reason, reading.confidence, reading.second)


def message_rows(placed: PlacedEnding) -> range:
    """Return the rows in which the error's message may be."""
    return range(placed.row, placed.row + 1 + _MESSAGE)
