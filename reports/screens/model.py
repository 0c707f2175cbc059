"""The model of a screen. Its numbers are rounded values of result tables; it is independent of the width."""

from __future__ import annotations

from dataclasses import dataclass

Span = tuple[float, float, float | None]
"""(from, to, value): the value between two seconds; None if unknown."""


@dataclass(frozen=True)
class Figures:
    """Key figures, several per line.

    Attributes:
        items: (label, text) of each; the text of an unknown figure states why.
    """

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Strip:
    """One line of bars over time.

    Attributes:
        label: its name.
        spans: values by period.
        top: value of a full bar.
        scale: the same in words.
    """

    label: str
    spans: tuple[Span, ...]
    top: float
    scale: str


@dataclass(frozen=True)
class Strips:
    """Lines of bars over the same time, with its axis below.

    Attributes:
        rows: the lines.
        low: start of the time, in seconds.
        high: its end, above `low`.
        calendar: whether seconds are since 1970 (UTC), not since the start.
    """

    rows: tuple[Strip, ...]
    low: float
    high: float
    calendar: bool


@dataclass(frozen=True)
class Sentences:
    """Findings in sentences.

    Attributes:
        title: a heading.
        texts: sentences, the most important first.
        least: fewest of them to show if space is short.
    """

    title: str
    texts: tuple[str, ...]
    least: int = 3


@dataclass(frozen=True)
class Head:
    """The head of a column: its text, its unit, and whether its values are right-aligned."""

    text: str
    unit: str = ""
    right: bool = True


@dataclass(frozen=True)
class Grid:
    """A small table; its first head names the rows.

    Attributes:
        heads: one for each column; columns at the end that do not fit are left out.
        rows: cells for reading.
        more: text shown if rows are left out, with ``{count}``; empty: none, as for the top of a list.
        least: fewest rows to show if space is short.
        left_out: number of rows that are left out.
    """

    heads: tuple[Head, ...]
    rows: tuple[tuple[str, ...], ...]
    more: str = ""
    least: int = 3
    left_out: int = 0


@dataclass(frozen=True)
class Line:
    """One labelled statement.

    Attributes:
        label: its subject.
        text: its text, cut after `lines`.
        lines: most lines.
        more: further words, as many as fit into the first line; three dots replace the others.
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
        title: one line.
        subtitle: its extent in one line; may be empty.
        blocks: in order, separated by a blank line unless both are a `Line`.
        most: most lines.
        notes: definitions and caveats: (heading, text) of each, shown on request.
    """

    title: str
    subtitle: str
    blocks: tuple[Block, ...]
    most: int
    notes: tuple[tuple[str, str], ...] = ()
