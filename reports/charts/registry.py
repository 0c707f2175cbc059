"""The charts of the reports: one row each. A new chart of a known kind is one more row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpuctl.reports.charts import bars, curves, heatmap, levels, ranges
from gpuctl.reports.charts.chart import TOTAL, Cells, Chart, Key, Panel, Rows
from gpuctl.reports.charts.svg import drawing_settings, to_svg
from gpuctl.reports.stacked_columns import CAUSES, USES

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from gpuctl.core.results import Analysis, ResultTable
    from gpuctl.reports.charts.chart import Sketch

KINDS: dict[str, Callable[[Chart, ResultTable, pl.DataFrame], Sketch]] = {
    "cdf": curves.cdf,
    "time": curves.over_time,
    "lines": levels.by_series,
    "heat": heatmap.heat,
    "stacked": bars.stacked,
    "paired": bars.paired,
    "grouped": bars.grouped,
    "ranges": ranges.ranges,
}

CHARTS = (
    Chart(
        "chart-status", "status", "paired", "Jobs and their GPU-hours by final state",
        x="state", series="source_state", y=("jobs_pct", "gpu_hours_pct"),
    ),
    Chart(
        "chart-occupancy", "occupancy", "time", "GPUs in use and GPUs waited for",
        x="ts", y=("gpus_busy", "gpus_total", "gpus_waited_for"), y_title="GPUs",
    ),
    Chart(
        "chart-runtime-cdf", "runtime_cdf", "cdf", "Run time by job size",
        x="minutes", y=("cdf_pct",), series="size_bucket", scale="minutes", each="GPU",
        x_title="run time (logarithmic)", y_title="% of jobs that ran at most so long",
    ),
    Chart(
        "chart-wait-cdf", "wait_cdf", "cdf", "Queueing delay by job size, all queues",
        x="minutes", y=("cdf_pct",), series="size_bucket", where=(("queue", (TOTAL,)),), scale="minutes", each="GPU",
        x_title="queueing delay (logarithmic)", y_title="% of jobs that waited at most so long",
    ),
    Chart(
        "chart-delay-by-size", "delay_by_size", "stacked", "Hours waited by cause and job size",
        x="size_bucket", y=CAUSES, optional=CAUSES, each="GPU",
    ),
    Chart(
        "chart-delay-by-queue", "delay_by_queue", "stacked", "Hours waited by cause and queue",
        x="queue", y=CAUSES, optional=CAUSES,
    ),
    Chart(
        "chart-gpu-util-by-servers", "gpu_util_by_servers", "grouped", "GPU utilization by job size and servers",
        x="gpus", series="servers", y=("mean_pct", "p50_pct"), weight="gpu_minutes", y_title="GPU utilization, %",
    ),
    Chart(
        "chart-gpu-util-cdf", "gpu_util_cdf", "cdf", "GPU utilization by job size and final state",
        x="util_pct", y=("cdf_pct",), series="state", facet="size", each="GPU",
        where=(("size", ("1", "4", "8", "16")),),
        x_title="GPU utilization, %", y_title="% of GPU-minutes at most so high",
    ),
    Chart(
        "chart-gpu-util-by-colocation", "gpu_util_by_colocation", "grouped",
        "GPU utilization on dedicated and shared servers",
        x="gpus", series="colocation", y=("mean_pct", "p50_pct"), weight="gpu_minutes", y_title="GPU utilization, %",
    ),
    Chart(
        "chart-host-util-cdf", "host_util_cdf", "cdf", "Processor and memory use of the servers",
        x="util_pct", y=("cdf_pct",), series="measure",
        x_title="utilization, %", y_title="% of server-minutes at most so high",
    ),
    Chart(
        "chart-failure-reasons", "failure_reasons", "paired", "Failed attempts and the GPU time they held, by reason",
        x="reason", y=("trials_pct", "gpu_minutes_pct"),
    ),
)  # fmt: skip

PREEMPTED = ("of_1_gpu", "of_2_to_4_gpus", "of_5_to_8_gpus", "of_9_gpus_and_more")

REPLAY_CHARTS = (
    Chart(
        "chart-replay-use", "replay_summary", "stacked", "What the GPU-hours went into, by policy",
        x="policy", y=USES, optional=USES,
    ),
    Chart(
        "chart-replay-preemptions", "replay_preemptions", "stacked", "Preemptions by policy and by GPUs of the job",
        x="policy", y=PREEMPTED, optional=PREEMPTED,
    ),
    Chart(
        "chart-replay-jct-cdf", "replay_jct_cdf", "cdf", "JCT by policy",
        x="minutes", y=("cdf_pct",), series="policy", scale="minutes",
        x_title="JCT (logarithmic)", y_title="% of jobs that were done at most so long after submission",
    ),
    Chart(
        "chart-replay-wait-cdf", "replay_wait_cdf", "cdf", "Waits by policy",
        x="minutes", y=("cdf_pct",), series="policy", scale="minutes",
        x_title="wait (logarithmic)", y_title="% of jobs that waited at most so long",
    ),
    Chart(
        "chart-replay-queue", "replay_timeline", "lines", "Queue length over time, by policy",
        x="t_s", y=("waiting_jobs", "gpus_waiting"), series="policy", calendar="ts",
    ),
    Chart(
        "chart-replay-busy", "replay_timeline", "lines", "GPUs in use over time, by policy",
        x="t_s", y=("gpus_busy",), series="policy", calendar="ts", limit="gpus_available",
    ),
    Chart(
        "chart-replay-heatmap", "replay_heatmap", "heat", "Occupancy of each server over time, by policy",
        x="t_s", y=("busy_pct", "down_pct"), series="servers", facet="policy", calendar="ts",
    ),
)  # fmt: skip

PREDICTION_CHART = Chart(
    "chart-predictions", "predictions", "ranges", "Predicted run times with their intervals",
    x="job", y=("run_time_s", "lower_s", "upper_s"),
)  # fmt: skip

TRAINING_CHART = Chart(
    "chart-runtime-scores", "runtime_scores", "ranges", "Median error of predicted run times, with its 95 % interval",
    x="predictor", y=("value", "low", "high"), where=(("measure", ("median_ape_pct",)),), unit="%",
)  # fmt: skip

GROUPS = (CHARTS, REPLAY_CHARTS, (PREDICTION_CHART,), (TRAINING_CHART,))
"""The charts of each kind of result."""


@dataclass(frozen=True)
class Drawing:
    """A chart as it goes into the page; ``svg`` is empty and ``missing`` says why where it was not drawn."""

    name: str
    table: str
    title: str
    svg: str = ""
    keys: tuple[Key, ...] = ()
    remarks: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()
    columns: tuple[str, str, str, str] | None = None
    data: Rows | Cells | None = None
    missing: str = ""


def draw_all(analysis: Analysis, ending: str = "") -> tuple[Drawing, ...]:
    """Draw every chart of the registry that this kind of analysis has, or say why it cannot be drawn.

    Args:
        analysis: of logs, a replay, predictions, or several of them; charts whose table it lacks are not drawn.
        ending: of the drawings' names, where a page holds those of several analyses.
    """
    names = {t.name for t in analysis.tables}
    groups = [group for group in GROUPS if any(chart.table in names for chart in group)]
    with drawing_settings():
        return tuple(
            draw(replace(chart, name=chart.name + ending), analysis.table(chart.table))
            for group in groups
            for chart in group
        )


def draw(chart: Chart, table: ResultTable | None) -> Drawing:
    """Draw one chart, inside `gpuctl.reports.charts.svg.drawing_settings`.

    Args:
        chart: what to draw.
        table: its table, None where the analysis has none.
    """
    frame, missing = _rows(chart, table)
    if table is None or frame is None:
        return Drawing(chart.name, chart.table, chart.title, missing=missing)
    sketch = KINDS[chart.kind](_without_empty(chart, frame), table, frame)
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
    )


def _without_empty(chart: Chart, frame: pl.DataFrame) -> Chart:
    y = tuple(c for c in chart.y if c not in chart.optional or (c in frame.columns and frame[c].sum()))
    return replace(chart, y=y)


def _rows(chart: Chart, table: ResultTable | None) -> tuple[pl.DataFrame | None, str]:
    import polars as pl

    if table is None:
        return None, f"This analysis has no table {chart.table}: it was not asked for, or the logs do not tell."
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
        return None, f"In the table {chart.table} there is nothing but zero to draw."
    missing = _untold(chart, frame)
    return (None, missing) if missing else (frame, "")


def _untold(chart: Chart, frame: pl.DataFrame) -> str:
    """Why rows that there are cannot be drawn: logs do not tell everything."""
    import polars as pl

    if chart.kind in {"lines", "heat"}:
        # every period of every series has a place of its own: none may be left out
        whole = (chart.x, chart.series, chart.facet, *((*chart.y, chart.limit) if chart.kind == "lines" else ()))
        lacking = [c for c in whole if c and frame[c].null_count()]
        return f"Not every row of the table {chart.table} tells {' and '.join(lacking)}." if lacking else ""
    values = chart.y if chart.kind in {"time", "paired"} else chart.y[:1] if chart.kind in {"cdf", "grouped"} else ()
    places = [c for c in (chart.x, chart.series if chart.kind == "grouped" else "") if c]
    placed = frame.drop_nulls([c for c in places if chart.kind == "grouped" or frame[c].dtype != pl.String])
    if placed.height == 0:
        return f"No row of the table {chart.table} tells {' and '.join(places)}."
    if values and placed.filter(pl.any_horizontal(pl.col(values).is_not_null())).height == 0:
        *before, last = values
        return f"No row of the table {chart.table} tells {', '.join(before) + ' or ' if before else ''}{last}."
    return ""
