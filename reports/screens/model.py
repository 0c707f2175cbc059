"""What a screen is made of. Its numbers are those of result tables, rounded; nothing here knows how wide it will be."""

from __future__ import annotations

from dataclasses import dataclass

Span = tuple[float, float, float | None]
"""(from, to, value): the value between two seconds; None if unknown."""


@dataclass(frozen=True)
class Figures:
    """Key figures, several of them on a line.

    Attributes:
        items: (label, text) of each; a figure that is not known says why in its text.
    """

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Strip:
    """One line of bars over time.

    Attributes:
        label: what it shows.
        spans: what held when.
        top: what a full bar is.
        scale: the same in words.
    """

    label: str
    spans: tuple[Span, ...]
    top: float
    scale: str


@dataclass(frozen=True)
class Strips:
    """Lines of bars over one and the same time, with its axis below.

    Attributes:
        rows: the lines.
        low: where the time starts, in seconds.
        high: where it ends, above `low`.
        calendar: whether seconds are since 1970 (UTC), not since the start.
    """

    rows: tuple[Strip, ...]
    low: float
    high: float
    calendar: bool


@dataclass(frozen=True)
class Sentences:
    """What stands out.

    Attributes:
        title: a heading.
        texts: sentences, the most important first.
        least: no fewer of them are shown where room is short.
    """

    title: str
    texts: tuple[str, ...]
    least: int = 3


@dataclass(frozen=True)
class Head:
    """The head of a column: its words, its unit, and whether its values are set to the right."""

    text: str
    unit: str = ""
    right: bool = True


@dataclass(frozen=True)
class Grid:
    """A small table; its first head is what the table is of.

    Attributes:
        heads: one for each column; columns at the end that do not fit into a line are left out.
        rows: cells for reading.
        more: what is said where rows are left out, with ``{count}``; empty: nothing, as for the top of a list.
        least: no fewer rows are shown where room is short.
        left_out: so many rows are left out.
    """

    heads: tuple[Head, ...]
    rows: tuple[tuple[str, ...], ...]
    more: str = ""
    least: int = 3
    left_out: int = 0


@dataclass(frozen=True)
class Line:
    """One thing to say.

    Attributes:
        label: what it is about.
        text: the words, cut where they need more lines than these.
        lines: so many.
        more: further words, as many of them as fit into the first line; three dots stand for the others.
    """

    label: str
    text: str
    lines: int = 1
    more: tuple[str, ...] = ()


Block = Figures | Strips | Sentences | Grid | Line


@dataclass(frozen=True)
class Screen:
    """One screen.

    Attributes:
        title: what this is, a line.
        subtitle: how big it is, a line; may be empty.
        blocks: in order, a blank line between two of them that are not both `Line`.
        most: it has no more lines than this, whatever it shows.
        notes: definitions and caveats: (heading, text) of each, for those who ask.
    """

    title: str
    subtitle: str
    blocks: tuple[Block, ...]
    most: int
    notes: tuple[tuple[str, str], ...] = ()
