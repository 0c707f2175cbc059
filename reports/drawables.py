"""Every chart of a result, of a report of several results, and of an explanation, ready to be drawn as a file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gpuctl.core.notes import note
from gpuctl.core.results import Analysis, Column, ResultTable
from gpuctl.reports.charts.paper import Drawable
from gpuctl.reports.charts.registry import rows_of, sketched
from gpuctl.reports.charts.timeline import sketch_spans
from gpuctl.reports.figures import in_terminal, on_page
from gpuctl.reports.report import file_endings
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import polars as pl

    from gpuctl.core.charts import Chart
    from gpuctl.core.job_explanation import Explanation
    from gpuctl.reports.report import Part

_POINTS = 600
"""Maximum points per curve of a chart that is made here."""


def figure_name(chart: Chart) -> str:
    """Return the name of a chart without what the page puts before it: ``wait-cdf``."""
    return chart.name.removeprefix("chart-")


def of_chart(analysis: Analysis, chart: Chart, ending: str = "") -> Drawable | str:
    """Return a chart of a result, or why it cannot be drawn.

    Args:
        analysis: the result.
        chart: one of its charts.
        ending: of its name.
    """
    table = analysis.table(chart.table)
    rows, missing = rows_of(chart, table)
    if table is None or rows is None:
        return missing
    columns = rows.select([name for name in dict.fromkeys(_columns(chart)) if name in rows.columns])
    draw = partial(sketched, chart, table, rows, Units(analysis.tables))
    return Drawable(figure_name(chart) + ending, chart.title, chart.table, columns, draw)


def charts_of(analysis: Analysis) -> tuple[Chart, ...]:
    """Return the charts of this kind of result: those of the page, then those that only a terminal shows."""
    page, tables = on_page(analysis), {table.name for table in analysis.tables}
    names = {chart.name for chart in page}
    # a distribution in a terminal may be of values that are not counted yet
    others = (chart for chart in in_terminal(analysis) if chart.name not in names and chart.table in tables and chart.y)
    return (*page, *others)


def of_analysis(analysis: Analysis, ending: str = "") -> tuple[Drawable, ...]:
    """Return the charts of a result that can be drawn, in the order of the page."""
    found = (of_chart(analysis, chart, ending) for chart in charts_of(analysis))
    return tuple(each for each in found if isinstance(each, Drawable))


def missing(analysis: Analysis) -> dict[str, str]:
    """Return why other charts of this kind of result cannot be drawn, by name."""
    found = ((figure_name(chart), of_chart(analysis, chart)) for chart in charts_of(analysis))
    return {name: each for name, each in found if isinstance(each, str)}


def of_report(parts: Sequence[Part]) -> tuple[Drawable, ...]:
    """Return the charts of each result of a report, and those that compare several."""
    endings = file_endings(parts)
    own = (each for part, end in zip(parts, endings, strict=True) for each in of_analysis(part.analysis, end))
    return (*own, *(of_analysis(side_by_side(parts)) if len(parts) > 1 else ()))


def of_explanation(found: Explanation) -> tuple[Drawable, ...]:
    """Return when a job waited and ran; nothing if no time of it is known."""
    import polars as pl

    from gpuctl.reports.explain import spans

    rows = [(name, kind, begin, end) for name, own in spans(found) for kind, begin, end, _ in own]
    if not rows or min(row[2] for row in rows) == max(row[3] for row in rows):
        return ()
    kinds = {"attempt": pl.String, "what": pl.String, "start_ts": pl.Datetime, "end_ts": pl.Datetime}
    frame = pl.DataFrame([(*row[:2], row[2].replace(tzinfo=None), row[3].replace(tzinfo=None)) for row in rows],
                         schema=kinds, orient="row")  # fmt: skip
    title = "When it waited and ran"
    return (Drawable("timeline", title, "attempts", frame, partial(sketch_spans, spans(found))),)


def side_by_side(parts: Sequence[Part]) -> Analysis:
    """Return distributions of several results on common axes: waits, and job completion times of replays."""
    tables = [
        _distributions("waits_by_result", "Waits by result", "wait", [
            (name, rows) for part in parts for name, rows in (*_waits(part), *_curves(part, "replay_wait_cdf"))
        ]),
        _distributions("jct_by_result", "Job completion times (JCT) by result", "JCT", [
            (name, rows) for part in parts for name, rows in _curves(part, "replay_jct_cdf")
        ]),
    ]  # fmt: skip
    there = tuple(table for table in tables if table is not None)
    return Analysis(note("several results"), there, (("report", "Report"),), (), {}, "")


def _distributions(
    name: str, title: str, what: str, curves: Iterable[tuple[str, pl.DataFrame]]
) -> ResultTable | None:  # fmt: skip
    import polars as pl

    parts = [rows.select(pl.lit(result).alias("result"), "minutes", "cdf_pct") for result, rows in curves]
    if not parts:
        return None
    chart = (
        f"cdf name=chart-{name.replace('_', '-')} x=minutes y=cdf_pct series=result scale=minutes "
        f'x_title="{what} (logarithmic)" y_title="% of all up to this long" title="{title}"'
    )
    columns = (
        Column("result", "-", "Name of the result, and the policy of a replay."),
        Column("minutes", "min", "Length of time."),
        Column("cdf_pct", "%", "Share that is at most as long."),
    )
    return ResultTable(name, "report", title, "", note(""), (), columns, pl.concat(parts), charts=(chart,))


def _waits(part: Part) -> Iterator[tuple[str, pl.DataFrame]]:
    """Return all waits of a result as one distribution."""
    import polars as pl

    table = part.analysis.table("waits")
    if table is None or not table.frame.height:
        return
    count = table.frame.height
    step = -(-count // _POINTS)
    rank = pl.int_range(pl.len())
    rows = table.frame.select(pl.col("wait_min").sort().alias("minutes"), cdf_pct=100 * (rank + 1) / count)
    # the longest wait is among those that are drawn
    yield part.label, rows.filter(rank % step == (count - 1) % step)


def _curves(part: Part, name: str) -> Iterator[tuple[str, pl.DataFrame]]:
    table = part.analysis.table(name)
    if table is not None:
        for (policy,), rows in table.frame.group_by("policy", maintain_order=True):
            yield f"{part.label}: {policy}", rows


def _columns(chart: Chart) -> Iterable[str]:
    return (*(name for name, _ in chart.where), chart.facet, chart.series, chart.x, chart.end, *chart.y, chart.limit)
