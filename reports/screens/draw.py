"""Draws a screen: no wider than the terminal, no longer than the screen's maximum."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from gpuctl.reports.screens.model import Figures, Grid, Head, Line, Screen, Sentences, Strips
from gpuctl.reports.terminal.printer import encodable, line_width, make_console, wants_color
from gpuctl.reports.terminal.table_layout import GAP
from gpuctl.reports.terminal.text_graphics import axis, bars, resampled, signs_of, time_ticks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpuctl.reports.screens.model import Block
    from gpuctl.reports.terminal.text_graphics import Signs

WIDEST = 120
"""Maximum characters of a line; longer ones are hard to read."""
_SENTENCE_LINES = 3
_TITLE_LINES = 2
_SUBTITLE_LINES = 2
_NARROWEST_BARS = 12


def print_screen(
    screen: Screen, *, width: int | None = None, color: bool | None = None, file: TextIO | None = None,
    notes: bool = False,
) -> None:  # fmt: skip
    """Print a screen.

    Args:
        screen: the screen to print.
        width: characters of a line; None: that of the terminal (or ``COLUMNS``).
        color: use colours and bold type; None: as terminal and user prefer.
        file: output stream; None: standard output.
        notes: also print the screen's notes, in full length.
    """
    out = sys.stdout if file is None else file
    color = wants_color(out, os.environ) if color is None else color
    width = line_width(width)
    encoding = getattr(out, "encoding", None) or "utf-8"
    lines = drawn(screen, min(width, WIDEST), signs_of(encoding))
    if notes:
        lines += _notes(screen.notes, min(width, WIDEST))
    import io

    text = io.StringIO()
    console = make_console(text, width, color)
    for line in lines:
        console.print(line, overflow="ignore", no_wrap=True, crop=False)
    out.write("".join(f"{encodable(line.rstrip(), encoding)}\n" for line in text.getvalue().split("\n")[:-1]))


def drawn(screen: Screen, width: int, signs: Signs) -> list[Text]:
    """Return the lines of a screen, at most `width` wide and within its maximum: lists are cut from their ends."""
    blocks = list(screen.blocks)
    while len(lines := _lines(screen, blocks, width, signs)) > screen.most:
        shorter = _shorter(blocks)
        if shorter is None:
            break
        blocks = shorter
    return lines[: screen.most]


def _shorter(blocks: Sequence[Block]) -> list[Block] | None:
    """Drop one sentence or, if there are few, one row of the longest list; None if neither is possible."""
    for at, block in enumerate(blocks):
        if isinstance(block, Sentences) and len(block.texts) > block.least:
            return [*blocks[:at], replace(block, texts=block.texts[:-1]), *blocks[at + 1 :]]
    long = [(len(block.rows), at) for at, block in enumerate(blocks) if isinstance(block, Grid) and _spare(block)]
    if not long:
        return None
    _, at = max(long)
    grid = blocks[at]
    assert isinstance(grid, Grid)  # noqa: S101 - for the type checker: `long` has grids only
    return [*blocks[:at], _without_last(grid), *blocks[at + 1 :]]


def _spare(grid: Grid) -> bool:
    return len(grid.rows) > grid.least


def _without_last(grid: Grid) -> Grid:
    return replace(grid, rows=grid.rows[:-1], left_out=grid.left_out + 1)


def _lines(screen: Screen, blocks: Iterable[Block], width: int, signs: Signs) -> list[Text]:
    lines = [Text(line, style="bold") for line in _wrapped(screen.title, width, _TITLE_LINES)]
    lines += [Text(line) for line in _wrapped(screen.subtitle, width, _SUBTITLE_LINES)] if screen.subtitle else []
    before: Block | None = None
    for block in blocks:
        own = _block(block, width, signs)
        if own and not (isinstance(block, Line) and isinstance(before, Line)):
            lines.append(Text(""))
        lines += own
        before = block if own else before
    return lines


def _block(block: Block, width: int, signs: Signs) -> list[Text]:
    match block:
        case Figures():
            return _figures(block, width)
        case Strips():
            return _strips(block, width, signs)
        case Sentences():
            return _sentences(block, width)
        case Grid():
            return _grid(block, width)
        case Line():
            return _labelled(block.label, _joined(block, width), width, block.lines)


def _figures(block: Figures, width: int) -> list[Text]:
    """Return two or three figures per line, in columns."""
    cells = [(label, text, cell_len(label) + cell_len(text) + 1) for label, text in block.items]
    columns = next((n for n in (3, 2) if _column_width(cells, n) * n <= width + 2 * GAP), 1)
    each = _column_width(cells, columns)
    lines = []
    for start in range(0, len(cells), columns):
        line = Text()
        some = cells[start : start + columns]
        for number, (label, text, size) in enumerate(some, 1):
            line.append(f"{label} ", style="dim")
            line.append(text, style="bold")
            line.append(" " * (max(0, each - size) if number < len(some) else 0))
        line.truncate(width, overflow="ellipsis")
        lines.append(line)
    return lines


def _column_width(cells: Sequence[tuple[str, str, int]], columns: int) -> int:
    return max((size for _, _, size in cells), default=0) + 2 * GAP if columns > 1 else 0


def _strips(block: Strips, width: int, signs: Signs) -> list[Text]:
    name = max(cell_len(row.label) for row in block.rows)
    scale = max(cell_len(row.scale) for row in block.rows)
    room = width - name - scale - 2 * GAP
    if room < _NARROWEST_BARS:
        return []
    lines = []
    for row in block.rows:
        [drawing] = bars(resampled(row.spans, block.low, block.high, room), row.top, signs, 1)
        line = Text(row.label.ljust(name + GAP), style="dim")
        line.append(drawing, style="cyan")
        line.append(f"{' ' * GAP}{row.scale}", style="dim")
        lines.append(line)
    ticks = axis(time_ticks(block.low, block.high, room, calendar=block.calendar), room, signs)
    return [*lines, Text(" " * (name + GAP) + ticks, style="dim")]


def _sentences(block: Sentences, width: int) -> list[Text]:
    lines = [Text(block.title, style="bold cyan")]
    for text in block.texts:
        first, *rest = _wrapped(text, width - 2, _SENTENCE_LINES)
        lines += [Text(f"- {first}"), *(Text(f"  {line}") for line in rest)]
    return lines if block.texts else []


def _grid(block: Grid, width: int) -> list[Text]:
    if not block.rows:
        return []
    heads = block.heads
    titles = [f"{head.text} ({head.unit})" if head.unit else head.text for head in heads]
    sizes = [
        max(map(cell_len, (title, *cells))) for title, cells in zip(titles, zip(*block.rows, strict=True), strict=True)
    ]
    while len(sizes) > 1 and sum(sizes) + GAP * (len(sizes) - 1) > width:
        sizes.pop()
    sizes[0] = min(sizes[0], width)
    lines = [_row(titles, sizes, heads, "bold cyan", "bold")]
    lines += [_row(cells, sizes, heads, "", "") for cells in block.rows]
    if block.left_out and block.more:
        lines.append(Text(_cut(block.more.format(count=f"{block.left_out:,}"), width), style="dim"))
    return lines


def _row(cells: Sequence[str], sizes: Sequence[int], heads: Sequence[Head], first: str, others: str) -> Text:
    line = Text()
    for at, (cell, size, head) in enumerate(zip(cells, sizes, heads, strict=False)):
        room = " " * max(0, size - cell_len(cell))
        line.append(" " * GAP if at else "")
        line.append(room + _cut(cell, size) if head.right else _cut(cell, size) + room, style=others if at else first)
    return line


def _joined(block: Line, width: int) -> str:
    """Return the text of a line with as many of its further words as fit."""
    text, left = block.text, list(block.more)
    while left:
        dots = " ..." if len(left) > 1 else ""
        if cell_len(f"{block.label}: {text}; {left[0]}{dots}") > width:
            break
        text = f"{text}; {left.pop(0)}"
    # cut text already ends in dots
    return f"{text} ..." if left and cell_len(f"{block.label}: {text} ...") <= width else text


def _labelled(label: str, text: str, width: int, most: int) -> list[Text]:
    lines = [Text(line) for line in _wrapped(f"{label}: {text}", width, most)]
    lines[0].stylize("bold cyan", 0, len(label))
    return lines


def _notes(notes: Iterable[tuple[str, str]], width: int) -> list[Text]:
    lines = [Text("")]
    for heading, text in notes:
        lines.append(Text(_cut(heading, width), style="bold cyan"))
        lines += [Text(f"  {line}", style="dim") for line in _wrapped(text, width - 2, None)]
    return lines


def _cut(text: str, width: int) -> str:
    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + "\u2026"


def _wrapped(text: str, width: int, most: int | None) -> list[str]:
    """Wrap a text at spaces; cut it, visibly, after `most` lines."""
    lines = [""]
    for word in text.split(" "):
        rest = word
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(rest) <= width:
            lines[-1] += f" {rest}"
            continue
        if lines[-1]:
            lines.append("")
        while cell_len(rest) > width:
            most_of = next(size for size in range(width, 0, -1) if cell_len(rest[:size]) <= width)
            lines[-1], rest = rest[:most_of], rest[most_of:]
            lines.append("")
        lines[-1] = rest
    if most is not None and len(lines) > most:
        lines = [*lines[: most - 1], _cut(f"{lines[most - 1]} \u2026", width)]
    return lines
