"""Tables that Slurm's commands print with ``-P`` or ``-p``: a header, and a delimiter that nothing escapes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import GLUED, RowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpuctl.core.line_reader import Line

DELIMITERS = ("\x1f", "|", "\t", ";", ",", "^", "~", "\x1e", "\x01")
_NAME = re.compile(r"[A-Za-z][\w ().:/%-]*")


class Layout(NamedTuple):
    """The format of a table's rows.

    Attributes:
        delimiter: delimiter between cells.
        columns: names in lower case, without blanks and underscores.
        trailing: whether a delimiter ends every row (``-p``).
        underscored: whether a name had underscores, as in tables of the database, but never in sacctmgr's.
    """

    delimiter: str
    columns: tuple[str, ...]
    trailing: bool = False
    underscored: bool = False


def layout_of(line: str) -> Layout | None:
    """Parse a line as a header; None if it is not one."""
    for delimiter in DELIMITERS:
        if delimiter in line:
            cells = [cell.strip() for cell in line.split(delimiter)]
            trailing = cells[-1] == ""
            names = cells[:-1] if trailing else cells
            if names and all(_NAME.fullmatch(name) for name in names):
                plain = tuple(name.lower().replace(" ", "").replace("_", "") for name in names)
                return Layout(delimiter, plain, trailing, any("_" in name for name in names))
            return None
    return None


def header_in(head: bytes) -> tuple[str, ...]:
    """Return the column names of the first line of a file's beginning; empty if that is not a header."""
    found = layout_in(head)
    return found.columns if found else ()


def sacctmgr_header(head: bytes) -> tuple[str, ...]:
    """Return the column names of the first line if sacctmgr may have printed it: its names have no underscores."""
    found = layout_in(head)
    return found.columns if found and not found.underscored else ()


def layout_in(head: bytes) -> Layout | None:
    """Parse the first line of a file as a header; None if it is not one."""
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0][:10_000]
    return layout_of(first.decode("utf-8", "replace").rstrip("\r"))


def header_line(lines: Iterator[Line], fits: Callable[[tuple[str, ...]], bool], command: str, hint: str) -> Layout:
    """Parse the first of some lines as the header of a table that sacctmgr prints.

    Args:
        lines: lines of a file, from its first one on.
        fits: checks the columns.
        command: the command that prints such a header, for the message.
        hint: what to do if it is not one.

    Raises:
        InputError: it is not that header.
    """
    first = next(lines, None)
    layout = layout_of(first.data[:10_000].decode("utf-8", "replace")) if first else None
    if layout is None or layout.underscored or not fits(layout.columns):
        raise InputError(f"line 1 is not the header that {command} prints", hint=hint)
    return layout


def cells_of(line: str, layout: Layout, free: str | None) -> dict[str, str]:
    """Split a row; surplus delimiters belong to the single column of free text.

    Args:
        line: the row.
        layout: as in the header.
        free: name of the column with free text; None if there is none.

    Raises:
        RowError: the number of cells does not fit.
    """
    columns = layout.columns
    cells = line.split(layout.delimiter)
    if layout.trailing and cells[-1].strip() == "":
        cells.pop()
    surplus = len(cells) - len(columns)
    if surplus >= len(columns) - 1 > 0:
        # the last cell of a row and the first of the next have merged
        raise RowError(GLUED)
    if surplus > 0 and free in columns:
        at = columns.index(free)
        cells = [*cells[:at], layout.delimiter.join(cells[at : at + surplus + 1]), *cells[at + surplus + 1 :]]
        surplus = 0
    if surplus:
        raise RowError(f"not {len(columns)} columns as in the header")
    return dict(zip(columns, (cell.strip() for cell in cells), strict=True))
