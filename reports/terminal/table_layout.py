"""Fits a table into a width: wraps headings, then text, then splits the columns into several parts. Never cuts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.reports.cell_text import ShownColumn

GAP = 2
"""Spaces between two columns."""

TEXT_FLOOR = 14
"""Minimum width to which a text column is wrapped before the table is split."""


@dataclass(frozen=True)
class Part:
    """Columns that fit side by side.

    Attributes:
        columns: indices into the table's columns, in order.
        widths: characters for each of them.
    """

    columns: tuple[int, ...]
    widths: tuple[int, ...]


def fit(columns: Sequence[ShownColumn], width: int) -> tuple[Part, ...]:
    """Lay out the columns of a table in a terminal.

    Args:
        columns: at least one.
        width: characters of a line.

    Returns:
        One part if all columns fit; otherwise several, each of which starts with the key columns (the
        text columns that the table starts with, at most two).
    """
    everything = tuple(range(len(columns)))
    roomy = tuple(_width(c, c.label) for c in columns)
    if _total(roomy) <= width:
        return (Part(everything, roomy),)
    tight = tuple(_width(c, _longest_word(c.label)) for c in columns)
    floors = tuple(
        t if c.kind != "text" else min(t, max(TEXT_FLOOR, _longest_word_width(c)))
        for c, t in zip(columns, tight, strict=True)
    )
    if _total(floors) <= width:
        return (Part(everything, _spread(floors, tight, roomy, width)),)
    return _split(columns, floors, tight, roomy, width)


def _width(column: ShownColumn, label: str) -> int:
    from rich.cells import cell_len

    return max(cell_len(label), cell_len(column.unit), *(cell_len(cell) for cell in column.cells), 1)


def _longest_word(label: str) -> str:
    return max(label.split(), key=len, default="")


def _longest_word_width(column: ShownColumn) -> int:
    from rich.cells import cell_len

    return max(cell_len(_longest_word(column.label)), cell_len(column.unit))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _spread(floors: Sequence[int], tight: Sequence[int], roomy: Sequence[int], width: int) -> tuple[int, ...]:
    # First the cells get the width they request, then the headings, the narrowest request first. No column's cells get
    # more than their share of the rest: two columns of long texts become equally wide.
    widths = list(floors)
    for wanted, fairly in ((tight, True), (roomy, False)):
        order = sorted(range(len(widths)), key=lambda i: wanted[i] - widths[i])
        for number, i in enumerate(order):
            room = (width - _total(widths)) // (len(order) - number if fairly else 1)
            widths[i] += max(0, min(wanted[i] - widths[i], room))
    return tuple(widths)


def _split(
    columns: Sequence[ShownColumn],
    floors: Sequence[int],
    tight: Sequence[int],
    roomy: Sequence[int],
    width: int,
) -> tuple[Part, ...]:
    keys = _keys(columns)
    while len(keys) > 1 and _total([floors[i] for i in keys]) > width // 2:
        keys = keys[:-1]
    limits = [min(f, width) for f in floors]
    parts: list[list[int]] = []
    current = list(keys)
    for i in range(len(keys), len(columns)):
        if len(current) > len(keys) and _total([limits[k] for k in [*current, i]]) > width:
            parts.append(current)
            current = list(keys)
        current.append(i)
    parts.append(current)
    return tuple(_part(chosen, limits, tight, roomy, width) for chosen in parts)


def _keys(columns: Sequence[ShownColumn]) -> list[int]:
    keys = [0]
    if len(columns) > 1 and not columns[0].numeric and not columns[1].numeric:
        keys.append(1)
    return keys


def _part(chosen: Sequence[int], limits: Sequence[int], tight: Sequence[int], roomy: Sequence[int], width: int) -> Part:
    floors = [limits[i] for i in chosen]
    # Only a very narrow terminal has too little room here: the widest columns are wrapped further.
    while _total(floors) > width and max(floors) > 1:
        floors[floors.index(max(floors))] -= 1
    widths = _spread(
        floors,
        [max(f, tight[i]) for f, i in zip(floors, chosen, strict=True)],
        [max(f, roomy[i]) for f, i in zip(floors, chosen, strict=True)],
        width,
    )
    return Part(tuple(chosen), widths)
