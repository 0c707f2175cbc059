"""Draws the charts of a page, as listed in `gpuctl.reports.figures`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from gpuctl.reports.charts import bars, curves, gantt, heatmap, levels, lines
from gpuctl.reports.charts.chart import TOTAL, Cells, Key, Lanes, Panel, Rows
from gpuctl.reports.charts.svg import drawing_settings, to_svg
from gpuctl.reports.figures import on_page
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from gpuctl.core.charts import Chart
    from gpuctl.core.results import Analysis, ResultTable
    from gpuctl.reports.charts.chart import Sketch

KINDS: dict[str, Callable[[Chart, ResultTable, pl.DataFrame], Sketch]] = {
    "cdf": curves.cdf,
    "time": curves.over_time,
    "lines": levels.by_series,
    "heat": heatmap.heat,
    "gantt": gantt.gantt,
    "stacked": bars.stacked,
    "bars": bars.paired,
    "grouped": bars.grouped,
    "ranges": bars.ranges,
    "bands": lines.bands,
    "profile": lines.profile,
    "tradeoff": lines.tradeoff,
}
_IN_UNITS = {"ranges": bars.ranges, "bands": lines.bands, "profile": lines.profile}
"""Kinds of charts that draw durations in the result's display unit."""


@dataclass(frozen=True)
class Drawing:
    """A chart in the page; if it was not drawn, ``svg`` is empty and ``missing`` states why.

    ``lead``: a page of one result begins with it.
    """

    name: str
    table: str
    title: str
    svg: str = ""
    keys: tuple[Key, ...] = ()
    remarks: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()
    columns: tuple[str, str, str, str] | None = None
    data: Rows | Cells | Lanes | None = None
    missing: str = ""
    lead: bool = False


def draw_all(analysis: Analysis, ending: str = "") -> tuple[Drawing, ...]:
    """Draw every chart that this kind of analysis has, or state why it cannot be drawn.

    Args:
        analysis: of logs, a replay, predictions, or several of them; charts whose table it lacks are not drawn.
        ending: suffix of the drawings' names, if a page holds those of several analyses.
    """
    units = Units(analysis.tables)
    with drawing_settings():
        return tuple(
            draw(replace(chart, name=chart.name + ending), analysis.table(chart.table), units)
            for chart in on_page(analysis)
        )


def draw(chart: Chart, table: ResultTable | None, units: Units | None = None) -> Drawing:
    """Draw one chart, inside `gpuctl.reports.charts.svg.drawing_settings`.

    Args:
        chart: what to draw.
        table: its table, None if the analysis has none.
        units: units of the analysis, for charts of durations; None: of the table alone.
    """
    frame, missing = rows_of(chart, table)
    if table is None or frame is None:
        return Drawing(chart.name, chart.table, chart.title, missing=missing)
    sketch = sketched(chart, table, frame, units)
    svg = to_svg(sketch.figure, chart.name, chart.title, sketch.description)
    return Drawing(
        chart.name,
        chart.table,
        chart.title,
        svg,
        sketch.keys,
        sketch.remarks,
        sketch.panels,
        sketch.columns,
        sketch.data,
        lead=chart.lead,
    )


def sketched(chart: Chart, table: ResultTable, frame: pl.DataFrame, units: Units | None = None) -> Sketch:
    """Draw one chart as a figure of matplotlib, inside `gpuctl.reports.charts.svg.drawing_settings`.

    Args:
        chart: what to draw.
        table: its table.
        frame: the rows to draw (`rows_of`).
        units: as for `draw`.
    """
    drawer = partial(_IN_UNITS[chart.kind], units=units) if chart.kind in _IN_UNITS else KINDS[chart.kind]
    return drawer(chart, table, frame)


def rows_of(chart: Chart, table: ResultTable | None) -> tuple[pl.DataFrame | None, str]:
    """Return the rows that a chart draws, or None and why it cannot be drawn."""
    import polars as pl

    if table is None:
        return None, f"This analysis has no table {chart.table}: it was not requested, or the logs lack its data."
    lacking = [c for c in chart.columns if c not in table.frame.columns]
    if lacking:
        return None, f"The table {chart.table} has no column {' or '.join(lacking)}."
    frame = table.frame
    for column, values in chart.where:
        frame = frame.filter(pl.col(column).cast(pl.String).is_in(values))
    if frame[chart.x].dtype == pl.String:
        frame = frame.filter(pl.col(chart.x).ne_missing(TOTAL))
    if frame.height == 0:
        rows = " and ".join(f"{column} {' or '.join(values)}" for column, values in chart.where)
        return None, f"The table {chart.table} has no rows{' with ' + rows if rows else ''}."
    if chart.optional and not any(c in frame.columns and frame[c].sum() for c in chart.y):
        return None, f"The table {chart.table} has only zeros to draw."
    missing = _missing_values(chart, frame)
    return (None, missing) if missing else (frame, "")


def _missing_values(chart: Chart, frame: pl.DataFrame) -> str:
    """Return why existing rows cannot be drawn: logs lack some values."""
    import polars as pl

    if chart.kind == "gantt":
        return gantt.missing_values(chart, frame)
    if chart.kind in {"lines", "heat"}:
        # a missing period of a series would shift the others
        whole = (chart.x, chart.series, chart.facet, *((*chart.y, chart.limit) if chart.kind == "lines" else ()))
        lacking = [c for c in whole if c and frame[c].null_count()]
        return f"Not every row of the table {chart.table} has {' and '.join(lacking)}." if lacking else ""
    values = (
        chart.levels
        if chart.kind in {"time", "bars", "profile"}
        else chart.y[:1]
        if chart.kind in {"cdf", "grouped"}
        else ()
    )
    places = [c for c in (chart.x, chart.series if chart.kind == "grouped" else "") if c]
    placed = frame.drop_nulls([c for c in places if chart.kind == "grouped" or frame[c].dtype != pl.String])
    if placed.height == 0:
        return f"No row of the table {chart.table} has {' and '.join(places)}."
    if values and placed.filter(pl.any_horizontal(pl.col(values).is_not_null())).height == 0:
        *before, last = values
        return f"No row of the table {chart.table} has {', '.join(before) + ' or ' if before else ''}{last}."
    return ""
