"""Draws numbers over numbers in a terminal, with letters: means with intervals, columns of one unit, trade-offs."""

from __future__ import annotations

import math
from dataclasses import replace
from string import ascii_uppercase
from typing import TYPE_CHECKING

from gpuctl.core.numbers import timed, unit_of
from gpuctl.core.storable_text import plural
from gpuctl.reports.cell_text import shown, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from gpuctl.core.charts import Chart

HEIGHT = 12
"""Lines of a picture of means, above its axis."""
MARKS = ascii_uppercase[:10]
"""Marks for the mean of each series; a picture has no more series."""
BAR, BASE = "|", "-"
"""The characters of an interval and of an axis; not block characters, which leave no gaps between lines."""
PANEL_HEIGHT, WIDEST, LEAST = 9, 44, 24
"""Lines of a panel of points; its characters, at most and at least."""
SEVERAL = "*"
"""Mark for points of several series."""

_LINE, _VALUE, _LOW, _HIGH = "line", "value", "low", "high"
_LABELLED = (0, HEIGHT // 2, HEIGHT - 1)
Point = tuple[float, float | None, float | None]


def _framed(cells: Sequence[Sequence[str]], labels: Mapping[int, str]) -> list[str]:
    """Draw the axes of a picture: labels of lines on the left, by number, and a base line."""
    before = max(map(len, labels.values()))
    lines = [f"{labels.get(k, '').rjust(before)} {BAR}{''.join(line)}" for k, line in enumerate(cells)]
    return [*lines, f"{' ' * (before + 1)}+{BASE * len(cells[0])}"]


def _undrawn(names: Sequence[object], drawn: Sequence[object]) -> str:
    count = len(names) - len(drawn)
    return f" {plural(count, 'more row')} not drawn." if count > 0 else ""


def error_bars(rule: Chart, frame: pl.DataFrame, width: int) -> tuple[tuple[str, ...], str] | None:
    """Draw means and intervals; None if there is only one value of ``x``, or if lines are too short.

    Args:
        rule: ``x`` is the number that was varied, ``y`` the mean and the ends of its interval, ``series`` the names.
        frame: the rows; ends of intervals may be empty.
        width: characters of a line.

    Returns:
        The lines, and a caption with the mark of each series.
    """
    mean, low, high = rule.y
    rows = frame.drop_nulls([rule.x, mean])
    across = rows[rule.x].unique().sort().to_list()
    names = rows[rule.series].unique(maintain_order=True).to_list()
    if len(across) < 2:
        return None
    points = {(row[rule.series], row[rule.x]): (row[mean], row[low], row[high]) for row in rows.iter_rows(named=True)}
    ends = [value for point in points.values() for value in point if value is not None and math.isfinite(value)]
    bottom, top = min(0.0, *ends), max(ends)
    top = top if top > bottom else bottom + 1.0
    scale = unit_of(ends) if rule.unit == "s" else None
    unit = rule.unit if scale is None else scale.name
    heights = [top - i * (top - bottom) / (HEIGHT - 1) for i in _LABELLED]
    labels = [shown(value, unit) if scale is None else timed(value, scale) for value in heights]
    before = max(map(len, labels)) + 1
    ticks = [f"{value:g}" for value in across]
    drawn = names[: len(MARKS)]
    step = max(len(drawn) + 1, max(map(len, ticks)) + 1)
    while before + 1 + step * len(across) > width:
        drawn = drawn[:-1]
        if not drawn or max(map(len, ticks)) + 1 > step - 1:
            return None
        step -= 1
    cells = [[" "] * (step * len(across)) for _ in range(HEIGHT)]
    for k, x in enumerate(across):
        for number, name in enumerate(drawn):
            if (name, x) in points:
                column = [line[k * step + number + 1] for line in cells]
                for i, sign in enumerate(_with_interval(column, MARKS[number], points[name, x], (bottom, top))):
                    cells[i][k * step + number + 1] = sign
    lines = [line.rstrip() for line in _framed(cells, dict(zip(_LABELLED, labels, strict=True)))]
    lines.append(" " * (before + 2) + "".join(tick.ljust(step) for tick in ticks).rstrip())
    keys = ", ".join(f"{mark} {name}" for mark, name in zip(MARKS, drawn, strict=False))
    end = f"{_undrawn(names, drawn)} From {rule.table}."
    if rule.kind == "profile":
        return tuple(lines), f"{keys}{f' in {unit}' if unit else ''}, by {rule.x}.{end}"
    title = mean.removesuffix("_s") + (f" ({unit})" if unit else "")
    return tuple(lines), f"{title} over {rule.x}: {keys}; {BAR} spans the 95 % interval.{end}"


def profile(rule: Chart, frame: pl.DataFrame, width: int) -> tuple[tuple[str, ...], str] | None:
    """Draw the columns of ``y`` over the numbers of ``x``; None as in `error_bars`.

    Returns:
        The lines, and a caption with the mark of each column.
    """
    import polars as pl

    known = [(c, words) for c, words in zip(rule.y, rule.words, strict=True) if frame[c].null_count() < frame.height]
    if not known:
        return None
    parts = [frame.select(pl.col(rule.x), pl.lit(words).alias(_LINE), pl.col(c).alias(_VALUE)) for c, words in known]
    rows = pl.concat(parts).with_columns(pl.lit(None, pl.Float64).alias(end) for end in (_LOW, _HIGH))
    return error_bars(replace(rule, y=(_VALUE, _LOW, _HIGH), series=_LINE), rows, width)


def _with_interval(column: list[str], mark: str, point: Point, span: tuple[float, float]) -> list[str]:
    """Return the characters of a column, from the top, with one mean and its interval in it."""
    bottom, top = span

    def line(value: float) -> int:
        return round((HEIGHT - 1) * (top - value) / (top - bottom))

    mean, low, high = point
    made = list(column)
    if low is not None and high is not None:
        made[line(high) : line(low) + 1] = BAR * (line(low) + 1 - line(high))
    made[line(mean)] = mark
    return made


def scatter(rule: Chart, frame: pl.DataFrame, width: int) -> tuple[tuple[str, ...], str] | None:
    """Draw points; None if lines are too short.

    Args:
        rule: ``x`` and ``y`` are numbers, ``series`` the names, ``facet`` the names of the panels.
        frame: the rows; those without a value are not drawn.
        width: characters of a line.

    Returns:
        The lines, and a caption with the letter of each series.
    """
    (column,) = rule.y
    rows = frame.filter(frame[rule.x].is_finite() & frame[column].is_finite())
    names = rows[rule.series].unique(maintain_order=True).to_list()
    marks = dict(zip(names, ascii_uppercase, strict=False))
    facets = rows[rule.facet].unique(maintain_order=True).to_list() if rule.facet else [None]
    columns = min(len(facets), max(1, width // (LEAST + 3)), 2)
    wide = min(WIDEST, width // columns - 3)
    if wide < LEAST or not rows.height:
        return None
    panels = []
    for facet in facets:
        part = rows.filter(rows[rule.facet] == facet) if rule.facet else rows
        points = [
            (row[rule.x], row[column], marks[row[rule.series]])
            for row in part.iter_rows(named=True)
            if row[rule.series] in marks
        ]
        panels.append(_panel("" if facet is None else visible(str(facet)), points, wide))
    lines = []
    for k in range(0, len(panels), columns):
        if k:
            lines.append("")
        lines += ["   ".join(parts).rstrip() for parts in zip(*panels[k : k + columns], strict=True)]
    keys = ", ".join(f"{mark} {visible(str(name))}" for name, mark in marks.items())
    unit = f" ({rule.unit})" if rule.unit else ""
    across, up = (name.removesuffix("_h").replace("_", " ") for name in (rule.x, column))
    end = f"{_undrawn(names, [*marks])} From {rule.table}."
    return tuple(lines), f"{up}{unit}, upward, over {across}{unit}: {keys}; {SEVERAL} several.{end}"


def _panel(title: str, points: list[tuple[float, float, str]], wide: int) -> list[str]:
    """Draw one panel, its title above and its axis below; all lines have the same length."""
    right, top = (max((float(point[k]) for point in points), default=0.0) or 1.0 for k in (0, 1))
    labels = {0: shown(top), PANEL_HEIGHT - 1: "0"}
    before = len(labels[0]) + 1
    inner = wide - before - 1
    cells = [[" "] * inner for _ in range(PANEL_HEIGHT)]
    for x, y, mark in points:
        line, place = round((PANEL_HEIGHT - 1) * (1 - y / top)), round((inner - 1) * x / right)
        cells[line][place] = mark if cells[line][place] in {" ", mark} else SEVERAL
    scale = f"{' ' * (before + 1)}0{shown(right).rjust(inner - 1)}"
    return [title.ljust(wide)[:wide], *_framed(cells, labels), scale]
