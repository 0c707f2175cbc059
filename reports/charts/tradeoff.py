"""Draws what is had at the price of what: points, those of one series joined, one panel a value of a facet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.text import plural
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
    called,
    short,
    write,
)
from gpuctl.reports.charts.svg import SERIES
from gpuctl.reports.text import heading, shown

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from gpuctl.core.charts import Chart
    from gpuctl.core.results import ResultTable

Box = tuple[float, float, float, float]
_DOT = 7.0
_LEFT, _TOP, _RIGHT, _BOTTOM, _ACROSS, _DOWN, _TALL = 44.0, 52.0, 16.0, 48.0, 52.0, 60.0, 170.0


def tradeoff(chart: Chart, table: ResultTable, frame: pl.DataFrame) -> Sketch:
    """Draw ``chart.y`` over ``chart.x``, one line a value of ``series``, one panel a value of ``facet``.

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
    heads = {each.name: heading(each)[0] for each in table.columns}
    units = {each.name: each.unit for each in table.columns}
    boxes, height = _boxes(len(facets))
    figure = blank_figure(height)
    panels, words = [], []
    for facet, box in zip(facets, boxes, strict=True):
        part = rows.filter(rows[chart.facet] == facet) if chart.facet else rows
        panel, told = _panel(figure, chart, part, drawn, box)
        if facet is not None:
            title = short(str(facet))
            write(figure, box[0], box[1] - 8, title, bold=True)
            panel["title"] = title
            panel.update(called(title, facet))  # type: ignore[typeddict-item]
        panels.append(panel)
        words += told
    write(figure, 0, 14, f"{heads[column]}, {units[column]}")
    write(figure, WIDTH / 2, height - 6, f"{heads[chart.x]}, {units[chart.x]}", ha="center")
    keys = tuple(Key(short(str(name)), "line", k, DASHES[k - 1]) for k, name in enumerate(drawn, 1))
    remarks = [f"{plural(frame.height - rows.height, 'row')} without a value not drawn."] * (rows.height < frame.height)
    if len(names) > len(drawn):
        remarks.append(f"{plural(len(names) - len(drawn), 'more line')} not drawn; --csv DIR has all.")
    columns = (chart.facet, chart.series, chart.x, column)
    return Sketch(figure, keys, " ".join(words), tuple(remarks), tuple(panels), columns)


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
    kept = rows.filter(rows[chart.series].is_in(drawn))
    tops = [1.05 * float(kept[name].max() or 0) or 1.0 for name in (chart.x, column)]  # type: ignore[arg-type]
    axes = add_axes(figure, box)
    axes.set_xlim(0, tops[0])
    axes.set_ylim(0, tops[1])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.3g}")
    axes.locator_params(nbins=4)
    curves, words = [], []
    for number, name in enumerate(drawn):
        mine = kept.filter(kept[chart.series] == name).sort(chart.x, column)
        if not mine.height:
            continue
        x, y = (mine[each].cast(float).to_list() for each in (chart.x, column))
        dash = DASHES[number]
        single = len(x) == 1
        # a square of a thick, short line: markers would be references to a path elsewhere
        half = _DOT / box[2] * tops[0] / 2
        axes.plot(
            [x[0] - half, x[0] + half] if single else x, y * 2 if single else y, color=SERIES[number],
            linewidth=_DOT if single else 1.8, linestyle=(0, dash) if dash and not single else "solid",
            solid_capstyle="butt", clip_on=False, gid=f"k{number + 1}",
        )  # fmt: skip
        label = short(str(name))
        curves.append(Curve(name=label, s=number + 1, x=[brief(v) for v in x], y=[brief(v) for v in y]))
        curves[-1].update(called(label, name))  # type: ignore[typeddict-item]
        words.append(f"{label}: {shown(y[0])} at {shown(x[0])} to {shown(y[-1])} at {shown(x[-1])}.")
    panel = Panel(title="", box=box, scale="number", x=(0.0, tops[0]), y=(0.0, tops[1]), unit="h", curves=curves)
    return panel, words
