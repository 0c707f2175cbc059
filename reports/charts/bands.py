"""Draws means over a varied number, with bands between the ends of their intervals: one line a series."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.numbers import UNITS
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
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from gpuctl.core.charts import Chart
    from gpuctl.core.results import ResultTable
    from gpuctl.reports.charts.downsample import Floats

_LEFT, _TOP, _RIGHT, _BOTTOM = 64.0, 28.0, 16.0, 48.0
_HEIGHT = 330.0


def bands(chart: Chart, table: ResultTable, frame: pl.DataFrame, units: Units | None = None) -> Sketch:
    """Draw one line a value of ``chart.series``, through the means at each value of ``x``, with its band.

    Args:
        chart: ``x`` is a number that was varied; ``y`` are the mean and the ends of its interval, which may be empty.
        table: for the headings of its columns.
        frame: the rows to draw; those without ``x`` or a mean are not drawn.
        units: of the result that the table is of; None: of the table alone.
    """
    mean, low, high = chart.y
    unit = next((column.unit for column in table.columns if column.name == mean), "")
    scaled = (units or Units([table])).of(table, mean)
    factor = UNITS[unit].seconds / scaled.seconds if scaled else 1.0
    unit = scaled.name if scaled else unit
    rows = frame.select(chart.x, chart.series, *chart.y).drop_nulls([chart.x, mean])
    rows = rows.with_columns(rows[column].cast(float) * factor for column in chart.y)
    names = rows[chart.series].unique(maintain_order=True).to_list()
    drawn = names[: len(SERIES)]
    heads = {column.name: heading(column)[0] for column in table.columns}
    box = (_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM)
    figure = blank_figure(_HEIGHT)
    axes = add_axes(figure, box)
    kept = rows.filter(rows[chart.series].is_in(drawn))
    across = (float(kept[chart.x].min()), float(kept[chart.x].max()))  # type: ignore[arg-type]
    ends = [v for column in chart.y for v in kept[column].drop_nulls().to_list()]
    bottom, top = min(0.0, *ends), max(ends)
    top = top + 0.05 * (top - bottom) if top > bottom else bottom + 1.0
    across = across if across[0] < across[1] else (across[0] - 0.5, across[1] + 0.5)
    axes.set_xlim(*across)
    axes.set_ylim(bottom, top)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if top > 5 else f"{value:,.2g}")
    axes.locator_params(axis="y", nbins=5)
    curves, words = [], []
    for number, name in enumerate(drawn):
        mine = kept.filter(kept[chart.series] == name).sort(chart.x)
        at, middle, least, most = (
            mine[column].cast(float).fill_null(float("nan")).to_numpy() for column in (chart.x, mean, low, high)
        )
        _band(axes, at, least, most, number)
        dash = DASHES[number]
        style = (0, dash) if dash else "solid"
        axes.plot(at, middle, color=SERIES[number], linestyle=style, linewidth=1.8, gid=f"k{number + 1}")
        label = short(str(name))
        curves.append(Curve(name=label, s=number + 1, x=[brief(v) for v in at], y=[brief(v) for v in middle]))
        curves[-1].update(called(label, name))  # type: ignore[typeddict-item]
        if np.isfinite(least).any():
            curves[-1]["low"], curves[-1]["high"] = _ends(least), _ends(most)
        words.append(f"{label}: from {shown(float(middle[0]))} at {shown(float(at[0]))} to {shown(float(middle[-1]))}.")
    title = chart.y_title or heads[mean]
    write(figure, 0, 14, f"{title}, {unit}" if unit not in {"", "-"} else title)
    write(figure, box[0] + box[2] / 2, _HEIGHT - 6, chart.x_title or heads[chart.x], ha="center")
    panel = Panel(
        title="", box=box, scale="number", x=across, y=(bottom, top), unit="" if unit == "-" else unit, curves=curves
    )
    keys = tuple(Key(short(str(name)), "line", k, DASHES[k - 1]) for k, name in enumerate(drawn, 1))
    alone = None if chart.kind == "profile" else kept[low].null_count()
    remarks = _remarks(frame.height - rows.height, len(names) - len(drawn), alone)
    return Sketch(figure, keys, " ".join(words), remarks, (panel,), ("", chart.series, chart.x, mean))


def profile(chart: Chart, table: ResultTable, frame: pl.DataFrame, units: Units | None = None) -> Sketch:
    """Draw one line a column of ``chart.y``, over the numbers in ``chart.x``; the columns have one unit.

    Args:
        chart: ``y_title`` stands over the axis.
        table: for the headings and the unit of its columns.
        frame: the rows to draw; those without a value are not drawn.
        units: of the result that the table is of; None: of the table alone.
    """
    import polars as pl

    heads = {column.name: heading(column)[0] for column in table.columns}
    first, line = chart.y[0], "line"
    ends = [pl.lit(None, pl.Float64).alias(end) for end in ("low", "high")]
    parts = [frame.select(pl.col(chart.x), pl.lit(heads[c]).alias(line), pl.col(c).alias(first)) for c in chart.y]
    rows = pl.concat(parts).with_columns(ends)
    return bands(replace(chart, y=(first, "low", "high"), series=line), table, rows, units)


def _remarks(without: int, more: int, alone: int | None) -> tuple[str, ...]:
    remarks = [f"{plural(without, 'row')} without a value not drawn."] if without else []
    remarks += [f"{plural(more, 'more line')} not drawn; --csv DIR has all."] if more else []
    if alone is not None:
        remarks.append("One seed: there is no interval." if alone else "Bands: 95 % interval.")
    return tuple(remarks)


def _ends(values: Floats) -> list[float | None]:
    return [brief(v) if np.isfinite(v) else None for v in values]


def _band(axes: Axes, at: Floats, low: Floats, high: Floats, number: int) -> None:
    known = np.isfinite(low) & np.isfinite(high)
    if known.sum() < 2:
        return
    # fill_between would draw a collection, which SVG writes as a reference to a path elsewhere
    outline = np.concatenate([at[known], at[known][::-1]]), np.concatenate([low[known], high[known][::-1]])
    axes.fill(*outline, color=SERIES[number], alpha=0.18, linewidth=0, gid=f"k{number + 1}")
