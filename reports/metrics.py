"""Named figures of a result, each one value of one result table, for checks, baselines and summaries.

A metric with several values in a table carries labels, in the syntax of Prometheus:
``queueing.p95_wait_h{queue=research}``. Its definition, unit and population are those of the table it comes from.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuctl.core.results import Column
from gpuctl.reports.cell_text import heading, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpuctl.core.results import Analysis, ResultTable


@dataclass(frozen=True)
class Metric:
    """The source of a metric.

    Attributes:
        name: ``SECTION.NAME_UNIT``; stable.
        unit: of the value.
        text: its definition, one sentence without a full stop.
        table: the result table.
        column: the column.
        where: required values of the row's columns.
        labels: label -> column: one value per combination; none: one row.
        factor: factor applied to the column's values.
        better: ``low`` or ``high``, if one of them is better at any site; else empty.
        per: a column of which the value is a percentage; empty: none.
    """

    name: str
    unit: str
    text: str
    table: str
    column: str
    where: Mapping[str, str]
    labels: Mapping[str, str]
    factor: float = 1.0
    better: str = ""
    per: str = ""


@dataclass(frozen=True)
class Value:
    """A measured metric.

    Attributes:
        metric: the metric.
        labels: by name, in order; empty if the metric has none.
        value: in the metric's unit; None if the table has no value.
    """

    metric: Metric
    labels: tuple[tuple[str, str], ...]
    value: float | None

    @property
    def key(self) -> str:
        """Return name and labels, as in conditions and baselines."""
        return written(self.metric.name, self.labels)


def written(name: str, labels: Sequence[tuple[str, str]]) -> str:
    """Return a name with its labels: ``name{a=x,b="y z"}``."""
    parts = ",".join(f"{label}={_quoted(value)}" for label, value in labels)
    return f"{name}{{{parts}}}" if parts else name


def in_words(metric: Metric, labels: Sequence[tuple[str, str]]) -> str:
    """Return a metric for readers: ``Queueing: mean wait, queue research``."""
    section, _, name = metric.name.partition(".")
    words, _ = heading(Column(name, metric.unit, ""))
    named = [f"{heading(Column(label, '-', ''))[0]} {visible(value)}" for label, value in labels]
    return ", ".join((f"{section.capitalize()}: {words}", *named))


def _quoted(value: str) -> str:
    plain = value and all(c.isalnum() or c in "_-.:/+<>" for c in value)
    return value if plain else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


_ALL = {"size_bucket": "all"}


def _metric(
    name: str,
    unit: str,
    text: str,
    source: str,
    *,
    where: Mapping[str, str] | None = None,
    factor: float = 1.0,
    better: str = "",
    per: str = "",
) -> Metric:
    """Return a metric; `name` has its labels, each with its column, in braces; `source` is ``table.column``."""
    plain, _, labels = name.rstrip("}").partition("{")
    table, _, column = source.partition(".")
    of = {label: label for label in labels.split(",") if label}
    return Metric(plain, unit, text, table, column, where or {}, of, factor, better, per)


def _low(name: str, unit: str, text: str, source: str, where: Mapping[str, str] | None = None) -> Metric:
    """Return a metric whose lower values are better; hours come from a column of minutes or seconds."""
    factor = {"_min": 1 / 60, "_s": 1 / 3600}.get(source[source.rfind("_") :], 1.0) if unit == "h" else 1.0
    return _metric(name, unit, text, source, where=where, better="low", factor=factor)


def _waits(name: str, column: str, what: str) -> tuple[Metric, Metric]:
    text = f"{what} wait until the start, over all attempts"
    of_all = _low(f"queueing.{name}_wait_h", "h", text, f"wait_by_size.{column}", _ALL)
    return of_all, _low(
        f"queueing.{name}_wait_h{{queue}}", "h", f"{text} of the queue", f"wait_by_queue.{column}", _ALL
    )


def _cause(cause: str, what: str) -> Metric:
    text = f"share of all time in the queue spent waiting {what}"
    source = f"delay_by_size.{cause}_h"
    return _metric(f"queueing.{cause}_pct", "%", text, source, where=_ALL, better="low", per="wait_h")


def _change(measure: str, text: str) -> Metric:
    text = f"change of the mean {text} of the same jobs against the baseline policy"
    row = {"measure": measure, "size_bucket": "all"}
    return _low(f"replay.{measure}_change_pct{{policy}}", "%", text, "replay_vs_baseline.change_pct", row)


def _workload(column: str, unit: str, text: str, table: str = "workload") -> Metric:
    """Return a metric of the workload, which is neither good nor bad."""
    return _metric(f"workload.{column}", unit, text, f"{table}.{column}")


_OF_JOBS = (
    ("jobs_a_day", "jobs/day", "jobs submitted per day"),
    ("size_mean", "-", "mean size of a job, in GPUs, or in CPUs or nodes if no job has a GPU"),
    ("one_pct", "%", "share of the jobs of size 1 or less"),
    ("over_8_pct", "%", "share of the jobs larger than 8"),
    ("over_8_work_pct", "%", "share of the work of jobs larger than 8"),
    ("run_p50_s", "s", "median run time"),
    ("run_mean_s", "s", "mean run time"),
    ("wait_p50_s", "s", "median time from submission to the first start"),
    ("wait_mean_s", "s", "mean time from submission to the first start"),
    ("completed_pct", "%", "share of the jobs that completed"),
    ("killed_pct", "%", "share of the jobs that were killed or cancelled"),
    ("failed_pct", "%", "share of the jobs that failed, including time limits"),
    ("completed_work_pct", "%", "share of the work of jobs that completed"),
    ("failed_work_pct", "%", "share of the work of jobs that failed"),
)
_OF_USERS = (
    ("users", "users", "users who submitted"),
    ("gini_work", "-", "Gini coefficient of users' work"),
    ("top_5_work_pct", "%", "share of the work of the top 5 % of users"),
)
_OF_REPETITION = (
    ("same_size_pct", "%", "share of jobs with the same size as their user's previous job"),
    ("session_jobs", "jobs", "mean number of jobs per session"),
)

METRICS: tuple[Metric, ...] = (
    _metric("overview.jobs", "jobs", "jobs of the log", "overview.jobs"),
    _metric("overview.gpus", "GPUs", "GPUs of the cluster", "overview.gpus"),
    _metric("overview.gpu_hours", "GPU-h", "GPU-hours of all attempts", "overview.gpu_hours"),
    _metric("overview.node_hours", "node-h", "node-hours of attempts whose GPUs are unknown", "overview.node_hours"),
    _metric(
        "overview.occupancy_pct",
        "%",
        "GPU-hours held by jobs, as a share of the cluster's between the first submission and the end of the log",
        "overview.occupancy_pct",
        better="high",
    ),
    _metric("overview.jobs_pct{state}", "%", "share of the jobs that ended in this state", "status.jobs_pct"),
    *_waits("mean", "mean_min", "mean"),
    *_waits("p50", "p50_min", "median"),
    *_waits("p90", "p90_min", "90th percentile of the"),
    *_waits("p95", "p95_min", "95th percentile of the"),
    _low(
        "queueing.over_10min_pct{queue}",
        "%",
        "share of the queue's attempts that waited longer than ten minutes",
        "wait_by_queue.over_10min_pct",
        _ALL,
    ),
    _low("queueing.waiting_jobs", "jobs", "jobs waiting at the end of the log", "never_started.waiting", _ALL),
    _low(
        "queueing.longest_waiting_h",
        "h",
        "longest wait so far among jobs waiting at the end of the log",
        "never_started.waiting_max_min",
        _ALL,
    ),
    _cause("fair_share", "for the queue's share"),
    _cause("capacity", "while too few GPUs were free"),
    _cause("fragmentation", "for GPUs that were free, but not close together"),
    _metric(
        "utilization.mean_pct{gpus,nodes}",
        "%",
        "mean GPU utilization of jobs of this size on this many nodes",
        "gpu_util_by_nodes.mean_pct",
        better="high",
    ),
    _low(
        "utilization.idle_pct{gpus,nodes}",
        "%",
        "share of GPU-minutes at 0 % utilization, for jobs of this size on this many nodes",
        "gpu_util_by_nodes.idle_pct",
    ),
    _low(
        "failures.failed_jobs_pct",
        "%",
        "share of finished jobs that failed, ran out of memory or lost a node",
        "attempts_by_size.failed_pct",
        _ALL,
    ),
    _low(
        "failures.lost_gpu_hours_pct",
        "%",
        "share of the GPU-hours lost in unsuccessful attempts",
        "gpu_hours_lost.lost_pct",
        _ALL,
    ),
    _low(
        "failures.retried_jobs_pct",
        "%",
        "share of the jobs with more than one attempt",
        "attempts_by_size.retried_pct",
        _ALL,
    ),
    _low(
        "failures.reason_gpu_time_pct{reason}",
        "%",
        "share of failed attempts' GPU time with this reason",
        "failure_reasons.gpu_minutes_pct",
    ),
    _low(
        "failures.category_gpu_time_pct{category}",
        "%",
        "share of failed attempts' GPU time with this category",
        "failure_categories.gpu_hours_pct",
    ),
    _low(
        "failures.failed_attempts_pct{queue}",
        "%",
        "share of the queue's finished attempts that failed",
        "failures_by_queue.failed_pct",
    ),
    _metric(
        "locality.at_fewest_pct",
        "%",
        "share of the gangs that ran on the fewest nodes that can hold them",
        "locality_by_size.at_fewest_pct",
        where=_ALL,
        better="high",
    ),
    _metric(
        "locality.out_of_order_pct",
        "%",
        "share of starts that overtook an attempt queued earlier in the same queue",
        "out_of_order.out_of_order_pct",
        where=_ALL,
    ),
    *(_workload(*of) for of in _OF_JOBS),
    *(_workload(*of, "user_concentration") for of in _OF_USERS),
    *(_workload(*of, "job_repetition") for of in _OF_REPETITION),
    _metric(
        "workload.arrivals{measure,lag}",
        "-",
        "regularity of submissions: index of dispersion of counts, or autocorrelation of hourly counts",
        "arrival_correlation.value",
    ),
    _low("replay.mean_jct_h{policy}", "h", "mean completion time of jobs that ended", "replay_summary.jct_mean_s"),
    _low("replay.p95_jct_h{policy}", "h", "95th percentile of the completion time", "replay_summary.jct_p95_s"),
    _low("replay.mean_wait_h{policy}", "h", "mean time without GPUs of jobs that ended", "replay_summary.wait_mean_s"),
    _low("replay.p50_wait_h{policy}", "h", "median time without GPUs", "replay_summary.wait_p50_s"),
    _low("replay.p95_wait_h{policy}", "h", "95th percentile of the time without GPUs", "replay_summary.wait_p95_s"),
    _low("replay.slowdown{policy}", "times", "mean slowdown of finished jobs", "replay_summary.slowdown_mean"),
    _low("replay.preemptions{policy}", "times", "preemptions of all jobs", "replay_summary.preemptions"),
    _metric(
        "replay.utilization_pct{policy}",
        "%",
        "GPU-hours held by jobs, as a share of the GPU-hours of nodes that were up",
        "replay_summary.utilization_pct",
        better="high",
    ),
    _metric(
        "replay.goodput_pct{policy}",
        "%",
        "GPU-hours held with lasting progress, as a share of the GPU-hours of nodes that were up",
        "replay_summary.goodput_pct",
        better="high",
    ),
    _low("replay.makespan_h{policy}", "h", "from the first submission to the last end", "replay_summary.makespan_s"),
    _metric(
        "replay.finished_jobs{policy}",
        "jobs",
        "jobs that finished in the replay",
        "replay_summary.jobs_finished",
        better="high",
    ),
    _change("wait", "time without GPUs"),
    _change("jct", "completion time"),
    _low("predict.suspend_s", "s", "from the request until the GPUs are free", "overhead.suspend_s"),
    _low("predict.resume_s", "s", "from the next start until the job makes progress", "overhead.resume_s"),
    _low("predict.loss_s", "s", "GPU time without lasting progress, per suspension", "overhead.loss_s"),
    _low(
        "train.median_error_pct{predictor}",
        "%",
        "median error of run times predicted at submission, relative to the true ones",
        "runtime_predictors.median_ape_pct",
    ),
    _metric(
        "train.within_50_pct{predictor}",
        "%",
        "share of the jobs whose predicted run time is off by at most half of the true one",
        "runtime_predictors.within_50_pct",
        better="high",
    ),
    _metric(
        "train.coverage_pct{predictor}",
        "%",
        "share of the jobs whose true run time lies in the predicted interval",
        "runtime_predictors.coverage_pct",
    ),
    _metric(
        "train.rank_correlation{predictor}",
        "-",
        "Spearman's correlation of predicted and true run times",
        "runtime_predictors.rank_correlation",
        better="high",
    ),
    _low(
        "train.overhead_error_pct{cost}",
        "%",
        "mean error of this cost, for suspensions not used in training",
        "overhead_errors.mean_pct",
    ),
)
"""All metrics, in the order in which they are listed."""


def values(analysis: Analysis) -> tuple[Value, ...]:
    """Return every metric for which a result has a table."""
    return tuple(value for metric in METRICS for value in _values(metric, analysis.table(metric.table)))


def _values(metric: Metric, table: ResultTable | None) -> Iterator[Value]:
    if table is None or not {metric.column, *metric.where, *metric.labels.values()} <= set(table.frame.columns):
        return
    for row in table.frame.iter_rows(named=True):
        if any(str(row[column]) != wanted for column, wanted in metric.where.items()):
            continue
        labels = tuple((label, _label(row[column])) for label, column in metric.labels.items())
        found = row[metric.column]
        if found is not None and metric.per:
            found = 100 * found / row[metric.per] if row[metric.per] else None
        number = None if found is None else float(found) * metric.factor
        yield Value(metric, labels, None if number is None or not math.isfinite(number) else number)


def _label(value: object) -> str:
    return "" if value is None else str(value)
