"""What every command shares: printing to stdout and stderr."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from typing import TYPE_CHECKING

from gpuctl.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def visible(text: str) -> str:
    """Write out characters that would move the cursor, hide or turn text around; names of files may hold any."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode() if unicodedata.category(c) in _HIDDEN else c for c in text)


def message(text: str, *, quiet: bool = False) -> None:
    """Print one message to stderr, line by line made harmless."""
    if not quiet:
        sys.stderr.write("".join(f"{visible(line)}\n" for line in text.split("\n")))


def print_json(value: object) -> None:
    """Print a value to stdout as one JSON document."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=True) + "\n")


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str | int]], *, color: bool, wide: str | None = None
) -> None:
    """Print a small table to stdout: TSV into a pipe, aligned on a terminal; no cell is ever cut off.

    Args:
        columns: headings.
        rows: one cell a column; numbers are set to the right.
        color: bold headings on a terminal.
        wide: the column that is read as text. On a terminal it gets at least `_READABLE` characters: others are left
            out for it, from the last, but for the first column, and a line says which.
    """
    if not sys.stdout.isatty():
        for row in [columns, *rows]:
            sys.stdout.write("\t".join(visible(str(cell)) for cell in row) + "\n")
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(markup=False, highlight=False, emoji=False, color_system="auto" if color else None)
    shown = range(len(columns)) if wide is None else _fitting(columns, rows, wide, console.width)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for index in shown:
        right = any(isinstance(row[index], int) for row in rows)
        whole = wide is not None and index == 0
        table.add_column(Text(columns[index]), justify="right" if right else "left", overflow="fold", no_wrap=whole)
    for row in rows:
        cells = (row[index] for index in shown)
        table.add_row(*(Text(f"{cell:,}" if isinstance(cell, int) else visible(cell)) for cell in cells))
    console.print(table)
    left = [name for index, name in enumerate(columns) if index not in shown]
    if left:
        console.print(Text(f"Not shown at this width: {', '.join(left)}; --json has all.", style="dim"))


_READABLE = 32
_WIDEST = 26
"""A column other than the one that is read as text wraps beyond this many characters."""


def _fitting(columns: Sequence[str], rows: Sequence[Sequence[str | int]], wide: str, width: int) -> list[int]:
    """The columns that leave `wide` at least `_READABLE` characters of a line."""
    cells = [[name, *(str(row[index]) for row in rows)] for index, name in enumerate(columns)]
    sizes = [max(map(len, each)) for each in cells]
    sizes = [size if index == 0 else min(size, _WIDEST) for index, size in enumerate(sizes)]
    text = columns.index(wide)
    sizes[text] = min(max(map(len, cells[text])), _READABLE)
    shown = list(range(len(columns)))
    others = [index for index in reversed(shown) if index not in {0, text}]
    while others and sum(sizes[index] + 3 for index in shown) - 3 > width:
        shown.remove(others.pop(0))
    return shown


def named_to_check(name: str | None, kind: str, usage: str) -> str:
    """Return what ``--check`` is to check.

    Raises:
        UsageError: nothing is named.
    """
    if name is None:
        raise UsageError(f"--check checks one {kind}", hint=usage)
    return name


def print_violations(about: Mapping[str, object], found: Sequence[str], subject: str, *, as_json: bool) -> None:
    """Print what a conformance suite found.

    Args:
        about: what JSON has besides the violations.
        found: the violations.
        subject: what was checked, for a line on stderr.
        as_json: print JSON.

    Raises:
        Exit: there are some: exit code 1.
    """
    import typer

    if as_json:
        print_json({**about, "violations": found})
    elif found:
        print_table(("violation",), [(visible(line),) for line in found], color=False)
    message(f"{subject}, {len(found)} violations")
    if found:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def color_allowed(*, no_color: bool) -> bool:
    """Whether colours may be used: not with ``--no-color``, a ``NO_COLOR`` that is not empty, or a dumb terminal."""
    return not (no_color or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb")
