"""Draws lines over numbers: means with the bands of their intervals, columns of one unit, and trade-offs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.reports.cell_text import shown
from gpuctl.reports.charts.chart import (
    DASHES,
    WIDTH,
    Panel,
    Sketch,
    add_axes,
    blank_figure,
    brief,
    called,
    curve_of,
    draw_line,
    drawn_unit,
    headings,
    line_keys,
    remark_more,
    remark_without,
    short,
    write,
)
from gpuctl.reports.charts.svg import SERIES

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gpuctl.core.charts import Chart
    from gpuctl.core.results import ResultTable
    from gpuctl.reports.charts.chart import Box, Floats
    from gpuctl.reports.units import Units

_BANDS: Box = (64.0, 28.0, WIDTH - 64.0 - 16.0, 254.0)
_BANDS_HEIGHT = 330.0
_DOT = 7.0
_LEFT, _TOP, _RIGHT, _BOTTOM, _ACROSS, _DOWN, _TALL = 44.0, 52.0, 16.0, 48.0, 52.0, 60.0, 170.0


def bands(chart: Chart, table: ResultTable, frame: pl.DataFrame, units: Units | None = None) -> Sketch:
    """Draw one line per value of ``chart.series``, through the means at each value of ``x``, with its band.

    Args:
        chart: ``x`` is a number that was varied; ``y`` are the mean and the ends of its interval, which may be empty.
        table: for the headings of its columns.
        frame: the rows to draw; those without ``x`` or a mean are not drawn.
        units: units of the table's result; None: of the table alone.
    """
    mean, low, high = chart.y
    unit, factor = drawn_unit(table, mean, units)
    rows = frame.select(chart.x, chart.series, *chart.y).drop_nulls([chart.x, mean])
    rows = rows.with_columns(rows[column].cast(float) * factor for column in chart.y)
    names = rows[chart.series].unique(maintain_order=True).to_list()
    drawn = names[: len(SERIES)]
    heads = headings(table)
    figure = blank_figure(_BANDS_HEIGHT)
    axes = add_axes(figure, _BANDS)
    visible_rows = rows.filter(rows[chart.series].is_in(drawn))
    across = (float(visible_rows[chart.x].min()), float(visible_rows[chart.x].max()))  # type: ignore[arg-type]
    ends = [v for column in chart.y for v in visible_rows[column].drop_nulls().to_list()]
    bottom, top = min(0.0, *ends), max(ends)
    top = top + 0.05 * (top - bottom) if top > bottom else bottom + 1.0
    across = across if across[0] < across[1] else (across[0] - 0.5, across[1] + 0.5)
    axes.set_xlim(*across)
    axes.set_ylim(bottom, top)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if top > 5 else f"{value:,.2g}")
    # labels are whole numbers: no steps of 2.5
    axes.locator_params(axis="y", nbins=5, steps=[1, 2, 5, 10])
    curves, words = [], []
    for number, name in enumerate(drawn, 1):
        mine = visible_rows.filter(visible_rows[chart.series] == name).sort(chart.x)
        at, middle, least, most = (
            mine[column].cast(float).fill_null(float("nan")).to_numpy() for column in (chart.x, mean, low, high)
        )
        _band(axes, at, least, most, number)
        draw_line(axes, at, middle, number, DASHES[number - 1], 1.8)
        curves.append(curve_of(name, number, map(brief, at), middle))
        if np.isfinite(least).any():
            curves[-1]["low"], curves[-1]["high"] = _ends(least), _ends(most)
        first, start, last = (shown(float(value)) for value in (middle[0], at[0], middle[-1]))
        words.append(f"{short(str(name))}: from {first} at {start} to {last}.")
    title = chart.y_title or heads[mean]
    write(figure, 0, 14, f"{title}, {unit}" if unit not in {"", "-"} else title)
    write(figure, _BANDS[0] + _BANDS[2] / 2, _BANDS_HEIGHT - 6, chart.x_title or heads[chart.x], ha="center")
    unit = "" if unit == "-" else unit
    panel = Panel(title="", box=_BANDS, scale="number", x=across, y=(bottom, top), unit=unit, curves=curves)
    remarks = remark_without(frame.height - rows.height) + remark_more(len(names) - len(drawn))
    if chart.band:
        remarks += (f"Bands: {chart.band}.",)
    elif chart.kind != "profile":
        remarks += ("One seed: there is no interval." if visible_rows[low].null_count() else "Bands: 95 % interval.",)
    return Sketch(figure, line_keys(drawn), " ".join(words), remarks, (panel,), ("", chart.series, chart.x, mean))


def profile(chart: Chart, table: ResultTable, frame: pl.DataFrame, units: Units | None = None) -> Sketch:
    """Draw one line per column of ``chart.y``, over the numbers in ``chart.x``; the columns share one unit.

    Args:
        chart: ``y_title`` is the label of the axis.
        table: for the headings and the unit of its columns.
        frame: the rows to draw; those without a value are not drawn.
        units: units of the table's result; None: of the table alone.
    """
    import polars as pl

    heads = headings(table)
    first, line = chart.y[0], "line"
    ends = [pl.lit(None, pl.Float64).alias(end) for end in ("low", "high")]
    parts = [frame.select(pl.col(chart.x), pl.lit(heads[c]).alias(line), pl.col(c).alias(first)) for c in chart.y]
    rows = pl.concat(parts).with_columns(ends)
    return bands(replace(chart, y=(first, "low", "high"), series=line), table, rows, units)


def _ends(values: Floats) -> list[float | None]:
    return [brief(v) if np.isfinite(v) else None for v in values]


def _band(axes: Axes, at: Floats, low: Floats, high: Floats, number: int) -> None:
    known = np.isfinite(low) & np.isfinite(high)
    if known.sum() < 2:
        return
    # fill_between would draw a collection, which SVG writes as a reference to a path elsewhere
    outline = np.concatenate([at[known], at[known][::-1]]), np.concatenate([low[known], high[known][::-1]])
    axes.fill(*outline, color=SERIES[number - 1], alpha=0.18, linewidth=0, gid=f"k{number}")


def tradeoff(chart: Chart, table: ResultTable, frame: pl.DataFrame) -> Sketch:
    """Draw ``chart.y`` over ``chart.x``, one line per value of ``series``, one panel per value of ``facet``.

    Args:
        chart: what to draw; a series with one point is a square.
        table: for the headings of its columns.
        frame: the rows to draw; those without a value are not drawn.
    """
    (column,) = chart.y
    rows = frame.filter(frame[chart.x].cast(float).is_finite() & frame[column].cast(float).is_finite())
    names = rows[chart.series].unique(maintain_order=True).to_list()
    drawn = names[: len(SERIES)]
    facets = rows[chart.facet].unique(maintain_order=True).to_list() if chart.facet else [None]
    heads = headings(table)
    units = {each.name: each.unit for each in table.columns}
    boxes, height = _boxes(len(facets))
    figure = blank_figure(height)
    panels, words = [], []
    for facet, box in zip(facets, boxes, strict=True):
        part = rows.filter(rows[chart.facet] == facet) if chart.facet else rows
        panel, described = _panel(figure, chart, part, drawn, box)
        if facet is not None:
            title = short(str(facet))
            write(figure, box[0], box[1] - 8, title, bold=True)
            panel["title"] = title
            panel.update(called(title, facet))  # type: ignore[typeddict-item]
        panels.append(panel)
        words += described
    write(figure, 0, 14, f"{heads[column]}, {units[column]}")
    write(figure, WIDTH / 2, height - 6, f"{heads[chart.x]}, {units[chart.x]}", ha="center")
    remarks = remark_without(frame.height - rows.height) + remark_more(len(names) - len(drawn))
    columns = (chart.facet, chart.series, chart.x, column)
    return Sketch(figure, line_keys(drawn), " ".join(words), remarks, tuple(panels), columns)


def _boxes(count: int) -> tuple[list[Box], int]:
    if count == 1:
        return [(_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, 250.0)], int(_TOP + 250 + _BOTTOM)
    wide = (WIDTH - _LEFT - _RIGHT - _ACROSS) / 2
    boxes = [(_LEFT + (k % 2) * (wide + _ACROSS), _TOP + (k // 2) * (_TALL + _DOWN), wide, _TALL) for k in range(count)]
    return boxes, int(_TOP + (count + 1) // 2 * (_TALL + _DOWN) - _DOWN + _BOTTOM)


def _panel(
    figure: Figure, chart: Chart, rows: pl.DataFrame, drawn: list[object], box: Box
) -> tuple[Panel, list[str]]:  # fmt: skip
    (column,) = chart.y
    visible_rows = rows.filter(rows[chart.series].is_in(drawn))
    tops = [1.05 * float(visible_rows[name].max() or 0) or 1.0 for name in (chart.x, column)]  # type: ignore[arg-type]
    axes = add_axes(figure, box)
    axes.set_xlim(0, tops[0])
    axes.set_ylim(0, tops[1])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.3g}")
    axes.locator_params(nbins=4)
    curves, words = [], []
    for number, name in enumerate(drawn, 1):
        mine = visible_rows.filter(visible_rows[chart.series] == name).sort(chart.x, column)
        if not mine.height:
            continue
        x, y = (mine[each].cast(float).to_list() for each in (chart.x, column))
        dash, width, points = DASHES[number - 1], 1.8, (x, y)
        if len(x) == 1:
            # a square from a thick, short line: markers would be references to a path elsewhere
            half = _DOT / box[2] * tops[0] / 2
            dash, width, points = (), _DOT, ([x[0] - half, x[0] + half], y * 2)
        draw_line(axes, *points, number, dash, width, solid_capstyle="butt", clip_on=False)
        curves.append(curve_of(name, number, map(brief, x), y))
        words.append(f"{short(str(name))}: {shown(y[0])} at {shown(x[0])} to {shown(y[-1])} at {shown(x[-1])}.")
    panel = Panel(title="", box=box, scale="number", x=(0.0, tops[0]), y=(0.0, tops[1]), unit="h", curves=curves)
    return panel, words
