"""The rows of a table embedded in a page: cells with their exact values, and the columns shown first."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from gpuctl.reports.cell_text import shown_columns
from gpuctl.reports.export.values import json_value

if TYPE_CHECKING:
    from gpuctl.core.results import ResultTable
    from gpuctl.reports.cell_text import ShownColumn
    from gpuctl.reports.units import Units

MANY_COLUMNS = 11
"""Maximum columns in print; rows of a wider table become blocks of named values."""

FEW_COLUMNS = 8
"""Maximum columns shown until the reader expands the table."""

STYLED_COLUMNS = 60
"""Number of columns that the style sheet can format; later ones look like text and are always shown."""

_BARE = re.compile(r"[\w.:+-]+", re.ASCII)


@dataclass(frozen=True)
class Cell:
    """The text of a cell, and its exact value if that differs (``v`` a number or time, ``j`` JSON)."""

    text: str
    v: str = ""
    j: str = ""


@dataclass(frozen=True)
class Grid:
    """The embedded rows of a table; ``file`` is the name of its CSV, without the ending.

    ``classes`` mark columns for the style sheet: numbers, times, and initially hidden ones. ``same`` marks the
    initially hidden rows of results side by side, in which the results do not differ.
    """

    file: str
    title: str
    columns: tuple[ShownColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    few: int
    classes: str
    same: tuple[bool, ...] = ()


def grid(table: ResultTable, limit: int, file: str, units: Units | None = None) -> Grid:
    """Return the first rows of a table, at most ``limit``, in the units of its result; ``file`` names its CSV."""
    columns = shown_columns(table, limit, units)
    rows = zip(*(tuple(map(cell, column.cells, column.values)) for column in columns), strict=True)
    few = _initial_columns(table)
    places = list(enumerate(columns, 1))[:STYLED_COLUMNS]
    classes = ["few"] if len(few) < len(columns) else []
    classes += ["many"] if len(columns) > MANY_COLUMNS else []
    classes += [f"n{k}" if c.numeric else f"t{k}" for k, c in places if c.numeric or c.kind == "time"]
    classes += [f"h{k}" for k, c in places if c.name not in few]
    return Grid(file, table.title, columns, tuple(rows), table.frame.height, len(few), " ".join(classes))


def _initial_columns(table: ResultTable) -> tuple[str, ...]:
    """Return the columns that a table initially shows."""
    names = tuple(column.name for column in table.columns)
    most = len(names) if len(names) <= FEW_COLUMNS else min(table.first_columns or FEW_COLUMNS, FEW_COLUMNS)
    if not table.key_columns:
        return names[:most]
    filled = tuple(name for name in table.key_columns if table.frame[name].count())
    return filled if len(filled) > 1 else table.key_columns


def cell(text: str, value: object) -> Cell:
    """Return a cell with a text for a value."""
    if isinstance(value, str):
        return Cell(text, j="" if text == value else json.dumps(value))
    exact = json_value(value)
    if exact is None or isinstance(exact, bool):
        return Cell(text, j=json.dumps(exact))
    plain = exact if isinstance(exact, str) else json.dumps(exact)
    # a number or a time is stored in its attribute without quotes
    return Cell(text, v="" if plain == text else plain) if _BARE.fullmatch(plain) else Cell(text, j=json.dumps(exact))


@cache
def columns_style() -> str:
    """Return style rules for the columns of tables by number: a class per table is smaller than one per cell."""
    return "\n".join(
        f".n{k} td:nth-child({k}){{text-align:right}}.t{k} td:nth-child({k}){{white-space:nowrap}}"
        f".scripted .few.h{k} tr>:nth-child({k}){{display:none}}"
        for k in range(1, STYLED_COLUMNS + 1)
    )
