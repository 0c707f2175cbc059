"""Draws means over a varied number with their intervals: a column of lines for each series at each value."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuctl.core.numbers import timed, unit_of
from gpuctl.core.text import plural
from gpuctl.reports.text import shown

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.core.charts import Chart

HEIGHT = 12
"""Lines of a picture, its axis beside them."""
MARKS = "ABCDEFGHIJ"
"""The mean of each series; there are no more of them in a picture."""
BAR, BASE = "|", "-"
"""What an interval, and the axis, are made of; not of block characters, which leave no gaps between lines."""

_LINE, _VALUE, _LOW, _HIGH = "line", "value", "low", "high"
_LABELLED = (0, HEIGHT // 2, HEIGHT - 1)
Point = tuple[float, float | None, float | None]


def error_bars(rule: Chart, frame: pl.DataFrame, width: int) -> tuple[tuple[str, ...], str] | None:
    """Draw means and intervals; None where there is one value of ``x`` alone, or where lines are too short.

    Args:
        rule: ``x`` is the number that was varied, ``y`` the mean and the ends of its interval, ``series`` the names.
        frame: the rows; ends of intervals may be empty.
        width: characters of a line.

    Returns:
        The lines, and a caption that says which mark is which series.
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
                for i, sign in enumerate(_stood(column, MARKS[number], points[name, x], (bottom, top))):
                    cells[i][k * step + number + 1] = sign
    beside = dict(zip(_LABELLED, labels, strict=True))
    lines = [f"{beside.get(i, '').rjust(before - 1)} {BAR}{''.join(line)}".rstrip() for i, line in enumerate(cells)]
    lines.append(" " * before + "+" + BASE * (step * len(across)))
    lines.append(" " * (before + 2) + "".join(tick.ljust(step) for tick in ticks).rstrip())
    keys = ", ".join(f"{mark} {name}" for mark, name in zip(MARKS, drawn, strict=False))
    more = f" {plural(len(names) - len(drawn), 'more row')} not drawn." if len(names) > len(drawn) else ""
    if rule.kind == "profile":
        return tuple(lines), f"{keys}{f' in {unit}' if unit else ''}, by {rule.x}.{more} From {rule.table}."
    told = f" ({unit})" if unit else ""
    return tuple(
        lines
    ), f"{mean.removesuffix('_s')}{told} over {rule.x}: {keys}; {BAR} spans the 95 % interval.{more} From {rule.table}."


def profile(rule: Chart, frame: pl.DataFrame, width: int) -> tuple[tuple[str, ...], str] | None:
    """Draw the columns of ``y`` over the numbers of ``x``; None as `error_bars`.

    Returns:
        The lines, and a caption that says which mark is which column.
    """
    import polars as pl

    known = [(c, words) for c, words in zip(rule.y, rule.words, strict=True) if frame[c].null_count() < frame.height]
    if not known:
        return None
    parts = [frame.select(pl.col(rule.x), pl.lit(words).alias(_LINE), pl.col(c).alias(_VALUE)) for c, words in known]
    rows = pl.concat(parts).with_columns(pl.lit(None, pl.Float64).alias(end) for end in (_LOW, _HIGH))
    return error_bars(replace(rule, y=(_VALUE, _LOW, _HIGH), series=_LINE), rows, width)


def _stood(column: list[str], mark: str, point: Point, span: tuple[float, float]) -> list[str]:
    """The characters of a column, from above, with one mean and its interval in it."""
    bottom, top = span

    def line(value: float) -> int:
        return round((HEIGHT - 1) * (top - value) / (top - bottom))

    mean, low, high = point
    made = list(column)
    if low is not None and high is not None:
        made[line(high) : line(low) + 1] = BAR * (line(low) + 1 - line(high))
    made[line(mean)] = mark
    return made
