"""Draws bars: causes stacked, shares side by side, means by group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.reports.drawing import (
    WIDTH,
    Chart,
    Key,
    Sketch,
    add_axes,
    blank_figure,
    counted,
    short,
    shortened_remark,
    write,
)
from gpuctl.reports.svg import INK, PAPER, SERIES
from gpuctl.reports.text import heading, shown, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from matplotlib.figure import Figure

    from gpuctl.core.results import ResultTable

CATEGORIES = 14
"""At most so many categories are drawn, those with the longest bars."""

_ROOM_FOR_VALUE = 92


def stacked(chart: Chart, table: ResultTable, frame: pl.DataFrame) -> Sketch:
    """Draw one bar a category, made of the columns of ``chart.y`` that the table has.

    Args:
        chart: ``x`` names the categories.
        table: for the names and the unit of its columns.
        frame: the rows to draw.
    """
    parts = [c for c in chart.y if c in frame.columns and float(frame[c].sum() or 0) > 0]
    named = {c.name: c for c in table.columns}
    rows, remarks = _largest(chart, frame, parts)
    names = [str(v) if v is not None else "none" for v in rows[chart.x].to_list()]
    lengths = {c: [float(v or 0) for v in rows[c].to_list()] for c in parts}
    totals = [sum(lengths[c][i] for c in parts) for i in range(rows.height)]
    unit = named[parts[0]].unit if parts else ""
    figure, axes_of = _lanes(len(names), bars=1, longest=max(totals, default=1.0))
    for i, name in enumerate(names):
        left = 0.0
        label = counted(name, chart.each)
        for number, column in enumerate(parts):
            axes_of.barh(i, lengths[column][i], left=left, color=SERIES[number], edgecolor=PAPER, linewidth=1, height=0.42)
            left += lengths[column][i]
        _lane_texts(figure, i, 1, label, [(totals[i], f"{shown(totals[i])} {unit}")], max(totals, default=1.0))
    keys = tuple(Key(heading(named[c])[0], "bar", n) for n, c in enumerate(parts, 1))
    words = [
        f"{counted(name, chart.each)}: "
        + ", ".join(f"{heading(named[c])[0]} {shown(lengths[c][i])} {unit}" for c in parts)
        + "."
        for i, name in enumerate(names)
    ]
    return Sketch(figure, keys, " ".join(words), remarks + shortened_remark(names))
