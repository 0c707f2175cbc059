"""Draws a heat map: how full each node was over time, one panel per series, in steps of one colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpuctl.reports.cell_text import shown
from gpuctl.reports.charts.chart import (
    WIDTH,
    Cells,
    Sketch,
    add_axes,
    add_rectangles,
    blank_figure,
    remark_more,
    short,
    shortened_remark,
    write,
)
from gpuctl.reports.charts.curves import elapsed_axis, time_axis
from gpuctl.reports.charts.levels import is_dated, seconds_of, span_of, span_title
from gpuctl.reports.charts.svg import INK, SERIES

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from gpuctl.core.charts import Chart
    from gpuctl.core.results import ResultTable

    Grid = NDArray[np.float64]
    Bools = NDArray[np.bool_]

PANELS = 6
"""Maximum number of panels drawn: the first ones."""

STEPS = (0.14, 0.32, 0.52, 0.75, 1.0)
"""Opacities for up to 20 %, 40 %, 60 %, 80 % and 100 %. Zero stays blank."""

_DIGITS = "0123456789abcdefghijklmnopqrstuv"
_EMPTY = 0.5
_LEFT, _RIGHT, _TOP, _BETWEEN, _BOTTOM = 2, 2, 76, 34, 48
_TALLEST, _CELL = 180.0, 14.0


def heat(chart: Chart, _table: ResultTable, frame: pl.DataFrame) -> Sketch:
    """Draw cells of ``chart.y[0]`` in per cent, one panel per value of ``chart.facet``.

    Args:
        chart: ``x`` holds the start of equal periods in seconds, ``calendar`` the same as times; ``series`` names the
            rows, in their order; the second column of ``y`` is the share of a row that was missing.
        _table: unused.
        frame: the rows to draw, one per cell, periods within rows within panels.
    """
    facets = frame[chart.facet].unique(maintain_order=True).to_list()
    drawn = facets[:PANELS]
    rows = frame[chart.series].unique(maintain_order=True).to_list()
    parts = {str(f): frame.filter(frame[chart.facet] == f) for f in drawn}
    starts = seconds_of(next(iter(parts.values())).head(frame[chart.x].n_unique()), chart)
    span, dated = span_of(starts), is_dated(frame, chart)
    tall = max(_CELL, min(_TALLEST, _CELL * len(rows)))
    boxes = [(_LEFT, _TOP + i * (tall + _BETWEEN), WIDTH - _LEFT - _RIGHT, tall) for i in range(len(drawn))]
    figure = blank_figure(boxes[-1][1] + tall + _BOTTOM)
    shares = {f: _grid(chart, part, chart.y[0], rows) for f, part in parts.items()}
    lost = {f: _grid(chart, part, chart.y[1], rows, absent=100.0) for f, part in parts.items()}
    missing = {f: grid >= 50 for f, grid in lost.items()}
    _scale(figure, down=any(bool(m.any()) for m in missing.values()))
    for (name, cells), box in zip(shares.items(), boxes, strict=True):
        axes = _axes(figure, box, span, len(rows), dated=dated, last=box is boxes[-1])
        write(figure, box[0], box[1] - 8, short(name), bold=True)
        _cells(axes, cells, missing[name])
    write(figure, WIDTH / 2, boxes[-1][1] + tall + _BOTTOM - 6, span_title(span, dated=dated), ha="center")
    words = " ".join(_in_words(name, cells, rows) for name, cells in shares.items())
    data = Cells(
        columns=[chart.facet, chart.series, chart.calendar if dated else chart.x, *chart.y],
        dated=dated,
        x=[int(t * 1000) if dated else round(float(t), 1) for t in starts],
        panels=[(f, _packed_rows(rows, shares[f], lost[f])) for f in parts],
    )
    return Sketch(figure, (), words, _remarks(rows, len(facets)), data=data)


def packed(values: Grid) -> str:
    """Return shares as text, two characters per value, so that a page can hold all cells of a heat map.

    Args:
        values: per cent, 0 to 100, shape (n,).

    Returns:
        Each value in tenths of a per cent, as two digits of base 32; empty if all are 0.
    """
    tenths = np.rint(np.clip(values, 0, 100) * 10).astype(int)
    return "".join(_DIGITS[t // 32] + _DIGITS[t % 32] for t in tenths) if tenths.any() else ""


def _packed_rows(names: list[str], *grids: Grid) -> list[tuple[str, str, str]]:
    first, second = grids
    return [(str(n), packed(a), packed(b)) for n, a, b in zip(names, first, second, strict=True)]


def _grid(chart: Chart, part: pl.DataFrame, column: str, rows: list[str], absent: float = 0.0) -> Grid:
    """Return the cells of one panel, row by row; `absent` for rows that the file lacks."""
    own = part[chart.series].unique(maintain_order=True).to_list()
    cells = part[column].fill_null(0).to_numpy().astype(float).reshape(len(own), -1)
    grid = np.full((len(rows), cells.shape[1]), absent)
    grid[[rows.index(name) for name in own]] = cells
    return grid


def _in_words(name: str, cells: Grid, rows: list[str]) -> str:
    means = cells.mean(axis=1)
    least, most = int(means.argmin()), int(means.argmax())
    return (
        f"{short(name)}: {shown(float(means.mean()), '%')} % held on average, between"
        f" {shown(float(means[least]), '%')} % ({short(str(rows[least]))}) and"
        f" {shown(float(means[most]), '%')} % ({short(str(rows[most]))})."
    )


def _remarks(rows: list[str], facets: int) -> tuple[str, ...]:
    first, last = short(str(rows[0])), short(str(rows[-1]))
    ends = f"{first} at the top, {last} at the bottom" if len(rows) > 1 else first
    order = f"Rows are nodes in the cluster's order: {ends}."
    return (order, *remark_more(facets - PANELS, "panel"), *shortened_remark([rows[0], rows[-1]]))


def _axes(
    figure: Figure,
    box: tuple[float, float, float, float],
    span: tuple[float, float],
    rows: int,
    *,
    dated: bool,
    last: bool,
) -> Axes:
    axes = add_axes(figure, box)
    axes.grid(visible=False)
    if dated:
        time_axis(axes, *span)
    else:
        elapsed_axis(axes, *span)
    axes.tick_params(labelbottom=last)
    axes.set_yticks([])
    axes.set_ylim(rows, 0)
    return axes


def _cells(axes: Axes, cells: Grid, missing: Bools) -> None:
    left, right = axes.get_xlim()
    step = np.minimum(np.ceil(cells / 20), len(STEPS)).astype(int)
    step[cells < _EMPTY] = 0
    edges = np.linspace(left, right, cells.shape[1] + 1)
    for number, strength in enumerate(STEPS, 1):
        _fill_runs(axes, step == number, edges, color=SERIES[0], strength=strength, inset=0.0)
    # A line through the row, so that it is visible without colour.
    _fill_runs(axes, missing, edges, color=INK, strength=1.0, inset=0.38)


def _fill_runs(axes: Axes, chosen: Bools, edges: Grid, *, color: str, strength: float, inset: float) -> None:
    # adjacent cells of a row become one rectangle
    padded = np.pad(chosen, ((0, 0), (1, 1))).astype(np.int8)
    row, first = np.nonzero(np.diff(padded, axis=1) == 1)
    _, after = np.nonzero(np.diff(padded, axis=1) == -1)
    if not len(row):
        return
    a, b, top, bottom = edges[first], edges[after], row + inset, row + 1 - inset
    corners = np.stack([a, top, b, top, b, bottom, a, bottom, a, top], axis=1)
    add_rectangles(axes, corners, color, strength)


def _scale(figure: Figure, *, down: bool) -> None:
    from matplotlib.patches import Rectangle

    write(figure, _LEFT, 14, "GPUs held, %" + (";  line: down at least half of the time" if down else ""))
    axes = add_axes(figure, (_LEFT, 22, 300, 10))
    axes.set_axis_off()
    axes.set_xlim(0, 6)
    axes.set_ylim(0, 1)
    axes.add_patch(Rectangle((0, 0), 6, 1, fill=False, edgecolor=INK, linewidth=0.6, clip_on=False))
    for number, strength in enumerate(STEPS):
        alpha = None if strength == 1 else strength
        axes.add_patch(Rectangle((number + 1, 0), 1, 1, facecolor=SERIES[0], alpha=alpha, linewidth=0))
    labels = ("0", "20", "40", "60", "80", "100")
    for number, label in enumerate(labels):
        write(figure, _LEFT + (50 * number + 50 if number else 25), 48, label, ha="center")
