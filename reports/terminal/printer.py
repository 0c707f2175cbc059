"""Prints an analysis for people at a terminal.

Never cuts a value: wide values are wrapped, tables with too many columns are printed in parts, and rows that are left
out are counted. Strings from logs are never interpreted as markup.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, TextIO

from gpuctl.core.storable_text import plural
from gpuctl.reports.cell_text import shown_columns, visible
from gpuctl.reports.selection import choose_tables
from gpuctl.reports.terminal.table_layout import GAP, fit
from gpuctl.reports.terminal.text_graphics import BLOCKS, PLAIN, signs_of
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.console import Console
    from rich.table import Table

    from gpuctl.core.results import Analysis, ResultTable
    from gpuctl.reports.cell_text import ShownColumn
    from gpuctl.reports.terminal.picture import Picture
    from gpuctl.reports.terminal.table_layout import Part
    from gpuctl.reports.terminal.text_graphics import Signs

    Painter = Callable[[Sequence[str], int, Signs], Mapping[str, Sequence[Picture]]]

ROWS = 25
"""Maximum rows printed per table."""

MIN_WIDTH = 40
"""Minimum width assumed; on narrower terminals lines wrap."""

_UPRIGHT_COLUMNS = 5
_PLAIN_SIGNS = str.maketrans(
    {"\u2013": "-", "\u2026": "...", "\u221e": "inf", "\u00b7": "-", "\u2500": "-", "\u2265": ">=", "\u2264": "<="}
    | dict(zip(BLOCKS.levels[1:] + BLOCKS.edge, PLAIN.levels[1] + PLAIN.levels[1:] + PLAIN.edge, strict=True))
)


def print_analysis(
    analysis: Analysis,
    *,
    console_width: int | None = None,
    color: bool | None = None,
    file: TextIO | None = None,
    names: Sequence[str] | None = None,
    painter: Painter | None = None,
    notes: bool = True,
) -> None:
    """Print the tables of an analysis, section by section; the caller prints its warnings, on stderr.

    Args:
        analysis: the analysis to print.
        console_width: characters of a line; None: that of the terminal (or ``COLUMNS``).
        color: use colours and bold type; None: `wants_color` decides.
        file: output stream; None: standard output.
        names: only these tables, including named detail tables; None: all except the detail tables, which are then
            listed with how to get them.
        painter: draws pictures below tables, given the names of the printed ones, the characters of a line, and signs
            that the stream's encoding has; `gpuctl.reports.terminal.pictures.of_analysis` with its first argument.
            None: no pictures.
        notes: print the population of each table below it.

    Raises:
        UsageError: this analysis has no table of that name.
    """
    out = sys.stdout if file is None else file
    if color is None:
        color = wants_color(out, os.environ)
    width = line_width(console_width)
    chosen, left_out = choose_tables(analysis, names)
    text = io.StringIO()
    console = make_console(text, width, color)
    encoding = getattr(out, "encoding", None) or "utf-8"
    pictures = painter([table.name for table in chosen], width, signs_of(encoding)) if painter else {}
    empty = [] if names is not None else [table for table in chosen if not table.frame.height]
    filled = [table for table in chosen if table not in empty]
    how = _TableStyle(short=names is None, notes=notes, units=Units(analysis.tables))
    for key, title in analysis.sections:
        _print_section(console, title, [t for t in filled if t.section == key], pictures, how)
    known = {key for key, _ in analysis.sections}
    _print_section(console, "Other tables", [t for t in filled if t.section not in known], pictures, how)
    if names is None:
        _print_empty(console, empty)
        _print_left_out(console, left_out)
    trimmed = "".join(f"{line.rstrip()}\n" for line in text.getvalue().split("\n")[:-1])
    out.write(encodable(trimmed, encoding))


@dataclass(frozen=True)
class _TableStyle:
    """How to print tables: only the first columns if they say so; with their populations; in which units."""

    short: bool
    notes: bool
    units: Units


def line_width(given: int | None = None) -> int:
    """Return the characters of a line: as given, else those of the terminal or ``COLUMNS``; at least `MIN_WIDTH`."""
    return max(MIN_WIDTH, shutil.get_terminal_size().columns if given is None else given)


def wants_color(file: TextIO, environ: Mapping[str, str]) -> bool:
    """Return whether a stream should get colours: a terminal does, unless the user decides otherwise.

    Args:
        file: the stream.
        environ: ``NO_COLOR`` (set, not empty) means no; else ``FORCE_COLOR`` (set, not empty or 0) means
            yes; else ``TERM=dumb`` means no.
    """
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return environ.get("TERM") != "dumb" and file.isatty()


def make_console(file: TextIO, width: int, color: bool) -> Console:
    """Return a console that prints text literally: no markup, no emoji, independent of the environment."""
    from rich.console import Console

    return Console(
        file=file,
        width=width,
        force_terminal=color,
        # in a notebook Rich would show each line as output of the cell and write nothing to `file`
        force_jupyter=False,
        color_system="standard" if color else None,
        legacy_windows=False,
        markup=False,
        highlight=False,
        emoji=False,
        _environ={},
    )


def encodable(text: str, encoding: str) -> str:
    """Return a text in characters that an encoding has."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(_PLAIN_SIGNS).encode(encoding, "backslashreplace").decode(encoding)
    return text


def _say(console: Console, text: str, style: str = "", indent: int = 0) -> None:
    from rich.padding import Padding
    from rich.text import Text

    line: Text | Padding = Text(visible(text), style=style, overflow="fold")
    if indent:
        line = Padding(line, (0, 0, 0, indent))
    console.print(line, overflow="fold", no_wrap=False)


def _print_section(
    console: Console,
    title: str,
    tables: Sequence[ResultTable],
    pictures: Mapping[str, Sequence[Picture]],
    how: _TableStyle,
) -> None:
    from rich.rule import Rule
    from rich.text import Text

    if not tables:
        return
    console.print(Rule(Text(visible(title), style="bold"), align="left", style="dim"))
    console.print()
    for table in tables:
        _print_table(console, table, how)
        for picture in pictures.get(table.name, ()):
            print_picture(console, picture)
            console.print()


def _print_table(console: Console, table: ResultTable, how: _TableStyle) -> None:
    _say(console, table.title, "bold cyan")
    _say(console, table.question)
    console.print()
    rows = table.frame.height
    columns = shown_columns(table, ROWS, how.units)
    hidden = len(columns) - table.first_columns if how.short and table.first_columns else 0
    if hidden > 0 and rows > 1:
        columns = columns[: table.first_columns]
    # an empty column carries no information
    blank = [c for c in columns if not table.frame[c.name].count()] if how.short and rows > 1 else []
    columns = tuple(c for c in columns if c not in blank) or columns
    if rows == 0:
        _say(console, "no rows", indent=GAP)
    elif rows == 1 and len(columns) > _UPRIGHT_COLUMNS:
        _print_upright(console, columns)
    else:
        _print_parts(console, columns)
    if rows > ROWS:
        _say(console, f"\u2026 and {plural(rows - ROWS, 'more row')}: --format csv has all")
    if blank:
        _say(console, f"Without a value: {', '.join(c.name for c in blank)}", "dim")
    if hidden > 0 and rows > 1:
        _say(console, f"\u2026 and {plural(hidden, 'more column')}: --table {table.name}, or --json")
    if how.notes:
        _say(console, " \u00b7 ".join([table.population, *table.notes]), "dim")
    elif not rows:
        _say(console, " \u00b7 ".join(table.notes), "dim", indent=GAP)
    console.print()


def print_picture(console: Console, picture: Picture) -> None:
    """Print a picture and its scale."""
    from rich.text import Text

    _say(console, picture.title, "bold")
    for line in picture.lines:
        console.print(Text(line), overflow="ignore", no_wrap=True, crop=False)
    _say(console, picture.caption, "dim")


def _print_upright(console: Console, columns: Sequence[ShownColumn]) -> None:
    # One row with many columns is printed as a list, one line per column.
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, GAP, 0, 0))
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold", justify="right")
    grid.add_column(overflow="fold")
    for column in columns:
        grid.add_row(Text(column.label), Text(column.cells[0], style="bold"), Text(column.unit, style="dim"))
    console.print(grid)


def _print_parts(console: Console, columns: Sequence[ShownColumn]) -> None:
    parts = fit(columns, console.width)
    for number, part in enumerate(parts, 1):
        if number > 1:
            console.print()
        if len(parts) > 1:
            _say(console, f"columns, part {number} of {len(parts)}", "dim")
        console.print(_rich_table(columns, part))


def _rich_table(columns: Sequence[ShownColumn], part: Part) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    # The box puts one blank between two columns, the padding the other.
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0), border_style="dim")
    for index, width in zip(part.columns, part.widths, strict=True):
        column = columns[index]
        title = Text(column.label, style="bold")
        if column.unit:
            title.append(f"\n{column.unit}", style="dim")
        table.add_column(
            title, width=width, overflow="fold", vertical="top", justify="right" if column.numeric else "left"
        )
    for cells in zip(*(columns[i].cells for i in part.columns), strict=True):
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _print_empty(console: Console, tables: Sequence[ResultTable]) -> None:
    if tables:
        _say(console, f"Empty tables: {', '.join(table.name for table in tables)}", "dim")
        console.print()


def _print_left_out(console: Console, tables: Sequence[ResultTable]) -> None:
    from rich.table import Table
    from rich.text import Text

    if not tables:
        return
    _say(console, "Not printed: one row per job, or the points of a curve", "bold")
    grid = Table.grid(padding=(0, GAP, 0, 0))
    grid.add_column(overflow="fold")
    grid.add_column(overflow="fold", justify="right")
    grid.add_column(overflow="fold")
    for table in tables:
        grid.add_row(Text(f"  {table.name}"), Text(plural(table.frame.height, "row")), Text(visible(table.title)))
    console.print(grid)
    _say(console, "Print one with --table NAME, or all with --json.", "dim")
