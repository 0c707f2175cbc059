"""The registry of charts by table: for the page, and below a table in a terminal.

The header of an analysis's SQL declares its charts. Those of other results are declared here, in the same syntax. A
table from third-party SQL carries its own (`gpuctl.core.results.ResultTable.charts`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.charts import Chart, declared
from gpuctl.queries.catalogue import built_in

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpuctl.core.results import Analysis


def _all(*declarations: tuple[str, str]) -> tuple[Chart, ...]:
    return tuple(chart for table, text in declarations for chart in declared(table, text))


_USES = "useful_gpu_h,overhead_gpu_h,lost_gpu_h,idle_gpu_h"
_PREEMPTED = "of_1_gpu,of_2_to_4_gpus,of_5_to_8_gpus,of_9_gpus_and_more"

ANALYSES = tuple(chart for query in built_in().values() for chart in query.charts)
REPLAYS = _all(
    ("replay_timeline", """lines on=page name=chart-replay-queue x=t_s y=waiting_jobs,gpus_waiting series=policy
        calendar=ts title="Queue length over time, by policy" """),
    ("replay_timeline", """lines name=chart-replay-busy x=t_s end=t_end_s y=gpus_busy series=policy limit=gpus_available
        calendar=ts title="GPUs in use over time, by policy" beside=replay_summary head=policy unit=GPUs"""),
    ("replay_timeline", """lines on=terminal name=chart-replay-queue x=t_s end=t_end_s y=waiting_jobs series=policy
        title="Jobs waiting over time, by policy" beside=replay_summary head=policy unit=jobs"""),
    ("replay_summary", """ranges on=page lead=yes name=chart-replay-wait-mean x=policy
        y=wait_mean_s,wait_mean_low_s,wait_mean_high_s title="Mean wait by policy, with 95 % intervals" """),
    ("replay_summary", """ranges on=page lead=yes name=chart-replay-wait-p95 x=policy
        y=wait_p95_s,wait_p95_low_s,wait_p95_high_s
        title="95th percentile of the wait by policy, with 95 % intervals" """),
    ("replay_summary", f"""stacked name=chart-replay-use x=policy y={_USES} unit=GPU-h
        title="Use of GPU-hours, by policy" head=policy what=GPU-hours"""),
    ("replay_preemptions", f"""stacked on=page x=policy y={_PREEMPTED}
        title="Preemptions by policy and by GPUs of the job" """),
    ("replay_jct_cdf", """cdf x=minutes y=cdf_pct series=policy scale=minutes page.title="JCT by policy"
        x_title="JCT (logarithmic)" y_title="% of jobs that ended within this time of submission"
        terminal.title="Job completion times (JCT), by policy"
        beside=replay_summary head=policy zero="0 s" what=jobs"""),
    ("replay_wait_cdf", """cdf x=minutes y=cdf_pct series=policy scale=minutes page.title="Waits by policy"
        x_title="wait (logarithmic)" y_title="% of jobs that waited at most this long"
        terminal.title="Waits by policy" beside=replay_summary head=policy zero="at once" what=jobs"""),
    ("replay_heatmap", """heat x=t_s y=busy_pct,down_pct series=nodes facet=policy calendar=ts
        title="Occupancy of each node over time, by policy" """),
    ("replay_gantt", """gantt x=t_s end=t_end_s y=what,job,user,queue,gpus,counted_gpus,beside series=node
        facet=policy calendar=ts title="Jobs on nodes over time, by policy" """),
)  # fmt: skip
PREDICTIONS = _all(
    ("predictions", """ranges x=job y=run_time_s,lower_s,upper_s title="Predicted run times with intervals" """),
)
SCORES = _all(
    ("runtime_scores", """ranges x=predictor y=value,low,high where=measure:median_ape_pct unit=%
        title="Median error of predicted run times, with 95 % intervals" """),
)  # fmt: skip

CHAINS = _all(
    ("chain_frontier", """tradeoff lead=yes name=chart-chain-frontier x=overlap_h y=interruption_h series=policy
        facet=level title="Interruption against overlap, by policy and load" beside=chain"""),
)  # fmt: skip

LESSONS = _all(
    ("locality_speed", """ranges on=page x=size_bucket y=ratio,ratio_low,ratio_high where="placement:more nodes"
        title="Speed on more nodes relative to the fewest, by GPUs of the gang" """),
    ("locality_curve", """bands on=page lead=yes name=chart-lessons-locality x=threshold y=jct_h,jct_low_h,jct_high_h
        series=size_bucket where=rule:time
        title="Time from submission to end, by minutes a gang waits for locality" """),
    ("sharing_rules", """ranges on=page name=chart-lessons-sharing x=rule
        y=wait_saved_h,wait_saved_low_h,wait_saved_high_h
        title="Waiting saved, by rule" """),
    ("early_failure_rules", """ranges on=page name=chart-lessons-early x=rule y=gpu_hours_saved,low,high
        title="GPU-hours saved by first runs and refused retries" """),
    ("stopping_rules", """ranges on=page name=chart-lessons-stopping x=rule y=gpu_hours_saved,low,high
        title="GPU-hours saved by stopping, net of reruns" """),
)  # fmt: skip

ACCELS = _all(
    ("accel_gains", """ranges x=load y=gain,gain_low,gain_high
        title="Deadlines met beyond the best rule, by load, with 95 % intervals" """),
)  # fmt: skip

DEFERRABLE = _all(
    ("deferrable", """stacked x=policy y=useful_gpu_h,lost_gpu_h unit=GPU-h head=policy what=GPU-hours
        title="GPU-hours of deferrable jobs, by policy" """),
)  # fmt: skip
LEARNED = _all(
    ("deferrable_gains", """ranges x=rule y=gain,gain_low,gain_high
        title="Score beyond the best simple rule, by load and rule, with 95 % intervals" """),
)  # fmt: skip

DAGS = _all(
    ("dag_gains", """ranges x=case y=change_pct,change_low_pct,change_high_pct
        title="Completion time relative to the best simple rule, with 95 % intervals" """),
)  # fmt: skip

GROUPS = (ANALYSES, REPLAYS, PREDICTIONS, SCORES, CHAINS, LESSONS, ACCELS, DAGS, DEFERRABLE, LEARNED)
"""The charts of each kind of result."""

_OURS = tuple(chart for group in GROUPS for chart in group)
CAUSES = next(chart.y for chart in _OURS if chart.table == "delay_by_size")
"""Columns with the hours of waits by cause."""


def own(analysis: Analysis) -> tuple[Chart, ...]:
    """Return the charts that a result's tables carry."""
    return tuple(chart for t in analysis.tables for text in t.charts for chart in declared(t.name, text, t.title))


def on_page(analysis: Analysis) -> tuple[Chart, ...]:
    """Return the charts that a page has for this kind of result, including those of missing tables."""
    names = {table.name for table in analysis.tables}
    groups = [group for group in GROUPS if any(chart.table in names for chart in on(group, "page"))]
    return on((*_but_own((chart for group in groups for chart in group), analysis), *own(analysis)), "page")


def in_terminal(analysis: Analysis) -> tuple[Chart, ...]:
    """Return the charts that a terminal draws, in their order below a table."""
    return on((*_but_own(_OURS, analysis), *own(analysis)), "terminal")


def _but_own(charts: Iterable[Chart], analysis: Analysis) -> tuple[Chart, ...]:
    """Return charts without those of tables that carry their own."""
    carried = {table.name for table in analysis.tables if table.charts}
    return tuple(chart for chart in charts if chart.table not in carried)


def on(charts: Iterable[Chart], medium: str) -> tuple[Chart, ...]:
    """Return the charts for a medium."""
    return tuple(chart for chart in charts if chart.medium == medium)


def called(name: str, medium: str) -> Chart:
    """Return gpuctl's own chart of that name in a medium.

    Raises:
        KeyError: there is no such chart.
    """
    found = {(chart.name, chart.medium): chart for chart in _OURS}
    return found[name, medium]
