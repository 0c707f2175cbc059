"""Draws levels over time with one line per series, one panel per level: several policies over the same time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.numbers import lasting
from gpuctl.reports.cell_text import shown
from gpuctl.reports.charts.chart import (
    DASHES,
    WIDTH,
    Curve,
    Key,
    Panel,
    Sketch,
    add_axes,
    blank_figure,
    brief,
    curve_of,
    draw_line,
    headings,
    line_keys,
    remark_more,
    short,
    write,
)
from gpuctl.reports.charts.curves import elapsed_axis, period, time_axis
from gpuctl.reports.charts.svg import SERIES

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from gpuctl.core.charts import Chart
    from gpuctl.core.results import ResultTable
    from gpuctl.reports.charts.chart import Box, Floats

CURVE_POINTS = 250
"""Maximum number of points per curve …"""

FIGURE_POINTS = 2400
"""… and per figure."""

_LEFT, _TOP, _RIGHT, _BOTTOM, _BETWEEN = 52.0, 28, 16, 48, 50
_DIGIT = 10.0  # width of a digit in the larger type on a narrow screen, in user units
_HEIGHT = {1: 230.0, 2: 150.0}


@dataclass(frozen=True)
class _Plan:
    """Properties common to all panels: starts of periods, first and last instant, whether they have dates."""

    starts: Floats
    span: tuple[float, float]
    dated: bool


def by_series(chart: Chart, table: ResultTable, frame: pl.DataFrame) -> Sketch:
    """Draw one panel per column of ``chart.y``, with one line per value of ``chart.series``.

    Args:
        chart: ``x`` holds the start of equal periods in seconds, ``calendar`` the same as times; ``y`` are means over
            the periods, or ``counts`` of them; ``limit`` of the first series is drawn dashed, in ink, in the last
            panel.
        table: for the headings of its columns.
        frame: the rows to draw.
    """
    names = frame[chart.series].unique(maintain_order=True).to_list()
    drawn = names[: len(SERIES)]
    parts = {name: rows.sort(chart.x) for (name,), rows in frame.group_by(chart.series, maintain_order=True)}
    starts = seconds_of(parts[drawn[0]], chart)
    first = np.arange(0, len(starts), _group(len(starts), len(drawn) * len(chart.y)))
    plan = _Plan(starts[first], span_of(starts), is_dated(frame, chart))
    heads = headings(table)
    highest = max(float(parts[n][c].to_numpy().max()) for n in drawn for c in (*chart.y, chart.limit) if c)
    boxes, height = _boxes(len(chart.y), max(_LEFT, _DIGIT * len(f"{highest:,.0f}") + 12))
    figure = blank_figure(height)
    panels, words = [], []
    for column, box in zip(chart.y, boxes, strict=True):
        levels = [(n, _grouped(chart, parts[n][column].to_numpy().astype(float), first)) for n in drawn]
        axes = add_axes(figure, box)
        write(figure, box[0], box[1] - 8, heads[column], bold=True)
        limit = chart.limit if column == chart.y[-1] else ""
        above = _grouped(chart, parts[drawn[0]][limit].to_numpy().astype(float), first) if limit else None
        panel = _panel(axes, plan, levels, above, (heads[column], box))
        panel["raw"] = column
        if above is not None:
            panel["curves"].append(_limit_curve(panel, above, heads[limit], limit, drawn[0]))
        panels.append(panel)
        words += [
            f"{short(str(n))}, {heads[column]}: {_about(chart, v)}, at most {shown(float(v.max()))}." for n, v in levels
        ]
    write(figure, boxes[0][0] + boxes[0][2] / 2, height - 6, span_title(plan.span, dated=plan.dated), ha="center")
    keys = line_keys(drawn)
    keys += (Key(heads[chart.limit], "line", 0, (6, 3)),) if chart.limit else ()
    width = (plan.span[1] - plan.span[0]) / len(first)
    remarks: tuple[str, ...] = (f"Each point is the {'count' if chart.counts else 'mean'} over {lasting(width)}.",)
    remarks += remark_more(len(names) - len(drawn))
    columns = ("measure", chart.series, chart.calendar if plan.dated else chart.x, "value")
    return Sketch(figure, keys, " ".join(words), remarks, tuple(panels), columns)


def _limit_curve(panel: Panel, values: Floats, label: str, column: str, series: object) -> Curve:
    places = panel["curves"][0]["x"]
    return Curve(name=label, raw=str(series), of=column, s=0, x=places, y=[brief(y) for y in values])


def _boxes(count: int, left: float) -> tuple[list[Box], float]:
    tall = _HEIGHT.get(count, 120.0)
    boxes = [(left, _TOP + i * (tall + _BETWEEN), WIDTH - left - _RIGHT, tall) for i in range(count)]
    return boxes, boxes[-1][1] + tall + _BOTTOM


def is_dated(frame: pl.DataFrame, chart: Chart) -> bool:
    """Return whether the periods have dates."""
    return bool(chart.calendar) and chart.calendar in frame.columns and frame[chart.calendar].null_count() == 0


def seconds_of(rows: pl.DataFrame, chart: Chart) -> Floats:
    """Return the starts of the periods: seconds since 1970 if they have dates."""
    if is_dated(rows, chart):
        return np.asarray(rows[chart.calendar].dt.epoch("ms").to_numpy().astype(float) / 1000)
    return np.asarray(rows[chart.x].to_numpy().astype(float))


def span_of(starts: Floats) -> tuple[float, float]:
    """Return the first and last instant of equal periods, from their starts."""
    width = (float(starts[-1]) - float(starts[0])) / (len(starts) - 1) if len(starts) > 1 else 1.0
    return float(starts[0]), float(starts[-1]) + (width or 1.0)


def span_title(span: tuple[float, float], *, dated: bool) -> str:
    """Return the label below the time axis."""
    return period(*span) if dated else "since the start of the workload"


def _group(points: int, curves: int) -> int:
    allowed = max(50, min(CURVE_POINTS, FIGURE_POINTS // curves))
    return -(-points // allowed)


def _grouped(chart: Chart, values: Floats, first: NDArray[np.intp]) -> Floats:
    sums = np.asarray(np.add.reduceat(values, first))
    # The periods are equal, so the mean of their means is the mean over all of them.
    return sums if chart.counts else np.asarray(sums / np.diff(np.append(first, len(values))))


def _about(chart: Chart, values: Floats) -> str:
    return f"{shown(float(values.sum()))} in all" if chart.counts else f"mean {shown(float(values.mean()))}"


def _panel(
    axes: Axes,
    plan: _Plan,
    levels: list[tuple[object, Floats]],
    limit: Floats | None,
    place: tuple[str, Box],
) -> Panel:
    top = 1.05 * max(float(v.max()) for v in (*(v for _, v in levels), *(() if limit is None else (limit,)))) or 1.0
    axes.set_ylim(0, top)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if top > 5 else f"{value:,.2g}")
    axes.locator_params(axis="y", nbins=4)
    scale = 86400.0
    if plan.dated:
        time_axis(axes, *plan.span)
    else:
        scale = elapsed_axis(axes, *plan.span)
    at = np.append(plan.starts, plan.span[1]) / scale
    for index, (_, values) in enumerate(levels):
        _steps(axes, at, values, index + 1, DASHES[index])
    if limit is not None:
        _steps(axes, at, limit, 0, (6, 3))
    places: list[float] = [int(t * 1000) if plan.dated else round(float(t), 1) for t in plan.starts]
    curves = [curve_of(name, i, places, values) for i, (name, values) in enumerate(levels, 1)]
    across = (plan.span[0] * 1000, plan.span[1] * 1000) if plan.dated else plan.span
    kind = "time" if plan.dated else "elapsed"
    return Panel(title=place[0], box=place[1], scale=kind, x=across, y=(0.0, top), unit="", curves=curves)


def _steps(axes: Axes, x: Floats, y: Floats, s: int, dash: tuple[float, ...]) -> None:
    draw_line(axes, x, np.append(y, y[-1]), s, dash, 1.4, drawstyle="steps-post")
