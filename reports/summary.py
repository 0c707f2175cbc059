"""The headline figures of a report, each taken from a result table that the report also shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpuctl.core.causes import ALL_CAUSES, CAUSES, cause_name
from gpuctl.core.numbers import number, timed
from gpuctl.core.storable_text import plural
from gpuctl.reports.cell_text import between, shown, visible
from gpuctl.reports.charts.chart import TOTAL
from gpuctl.reports.policies import better, paired
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpuctl.core.numbers import Unit
    from gpuctl.core.results import Analysis, ResultTable


@dataclass(frozen=True)
class Headline:
    """One figure of the summary.

    Attributes:
        label: its name.
        value: the figure, rounded.
        unit: its unit.
        detail: further information.
        table: the result table it was taken from.
    """

    label: str
    value: str
    unit: str
    detail: str
    table: str


def headlines(analysis: Analysis) -> tuple[Headline, ...]:
    """Return the figures for which this analysis has tables; of two equivalent tables, that of the first."""
    units = Units(analysis.tables)
    found = (
        make(table, units)
        for name, columns, make in _SOURCES
        if (table := _usable(analysis.table(name), columns)) is not None
    )
    means = (_mean(analysis, measure, name) for measure, name in (("jct", "JCT"), ("wait", "wait")))
    first: dict[str, Headline] = {}
    for headline in (*found, *means):
        if headline is not None:
            first.setdefault(headline.label, headline)
    return tuple(first.values())


def _usable(table: ResultTable | None, columns: tuple[str, ...]) -> ResultTable | None:
    if table is None or not set(columns) <= set(table.frame.columns):
        return None
    first = table.frame.columns[0]
    rows = (
        table.frame if table.frame.height == 1 else table.frame.filter(table.frame[first].cast(str).ne_missing(TOTAL))
    )
    return replace(table, frame=rows) if rows.height else None


def _jobs(table: ResultTable, units: Units) -> Headline | None:
    rows = table.frame.sort("jobs", descending=True, maintain_order=True)
    state, share = visible(str(rows["state"][0])), rows["jobs_pct"][0]
    return Headline("Jobs", shown(table.frame["jobs"].sum()), "", f"{shown(share, '%')}\u00a0% {state}", table.name)


def _gpu_hours(table: ResultTable, units: Units) -> Headline | None:
    hours = float(table.frame["gpu_hours"].sum())
    lost = sum(float(table.frame[name].sum()) for name in _LOST)
    if hours <= 0:
        return None
    known = any(table.frame[name].count() for name in _LOST)
    share = f"{shown(100 * lost / hours, '%')}\u00a0% in unsuccessful attempts"
    return Headline("GPU-hours", shown(hours, "GPU-h"), "", share if known else _NO_ENDS, table.name)


def _node_hours(table: ResultTable, units: Units) -> Headline | None:
    """Return the figures of whole-node logs, in which no source states the jobs' GPUs."""
    if table.frame["gpu_hours"].sum() or not table.frame["node_hours"].sum():
        return None
    hours = float(table.frame["node_hours"].sum())
    known = table.frame.drop_nulls(["node_hours", "lost_node_pct"])
    lost = float((known["node_hours"] * known["lost_node_pct"]).sum()) / hours
    share = f"{shown(lost, '%')}\u00a0% in unsuccessful attempts"
    return Headline("Node-hours", shown(hours, "GPU-h"), "", share if known.height else _NO_ENDS, table.name)


def _busy(table: ResultTable, units: Units) -> Headline | None:
    share, total = table.frame["occupancy_pct"][0], table.frame["gpus"][0]
    if share is None or not total:
        return None
    held = f"{number(share * total / 100, 'GPUs')} of {number(total, 'GPUs')} on average"
    return Headline("GPUs allocated", shown(float(share), "%"), "%", held, table.name)


def _waiting(table: ResultTable, units: Units) -> Headline | None:
    total = sum(float(table.frame[f"{cause}_h"].sum()) for cause in ALL_CAUSES if f"{cause}_h" in table.frame.columns)
    if total <= 0:
        return None
    ends = {
        cause: [float(table.frame[name].sum()) for name in names]
        for cause in CAUSES
        # results of earlier versions have no ranges; then no cause is named
        if set(names := [f"{cause}_low_h", f"{cause}_high_h"]) <= set(table.frame.columns)
    }
    most = sorted(ends, key=lambda cause: -sum(ends[cause]))[:2]
    shares = (f"{between(*(100 * hours / total for hours in ends[cause]))} {cause_name(cause)}" for cause in most)
    return Headline("Time in queue", shown(total), "h", ", ".join(shares), table.name)


def _waits(table: ResultTable, units: Units) -> Headline | None:
    median, p95, long = (table.frame[name][0] for name in _WAITS)
    if median is None or p95 is None:
        return None
    unit = units.timed(table.name, "wait_p95_min")
    half, most = (timed(60 * value, unit) for value in (median, p95))
    detail = f"median {half}\u00a0{unit.name}; {_often(long)}"
    return Headline("95\u00a0% start within", most, unit.name, detail, table.name)


def _often(share: float) -> str:
    """Return how many waits are over an hour, as a share in words; percent say little below one in a hundred."""
    if not share:
        return "no attempt waited over an hour"
    one_in = 100 / share
    if one_in < 1.5:
        return f"{shown(share, '%')}\u00a0% of attempts waited over an hour"
    return f"1 attempt in {shown(round(one_in))} waited over an hour"


def period_and_size(analysis: Analysis) -> str:
    """Return the period of a log and the size of its cluster in words; empty for other results."""
    table = _usable(analysis.table("overview"), ("first_submit_ts", "last_ts", "span_days", "machines", "gpus"))
    if table is None:
        return ""
    row = table.frame.row(0, named=True)
    parts = []
    if row["first_submit_ts"] is not None and row["last_ts"] is not None:
        first, last = (shown(row[name]).split(" ")[0] for name in ("first_submit_ts", "last_ts"))
        parts.append(f"{first} to {last} ({number(row['span_days'], 'days')} days)")
    parts += [plural(row[name], word) for name, word in (("machines", "node"), ("gpus", "GPU")) if row[name]]
    return ", ".join(parts)


def _causes(table: ResultTable, units: Units) -> Headline | None:
    rows = [row for row in table.frame.iter_rows(named=True) if row["share_pct"] is not None]
    total = sum(row["hours"] for row in rows)
    if total <= 0:
        return None
    most = sorted(rows, key=lambda row: -float(row["share_pct"]))[:2]
    words = (f"{_share(row)} {cause_name(str(row['cause']))}" for row in most)
    return Headline("Time in queue", shown(total), "h", ", ".join(words), table.name)


def _share(row: Mapping[str, Any]) -> str:
    """Return the bounds of a cause's share; unknown for jobs selected by a filter."""
    if row["low_pct"] is None:
        return f"{shown(row['share_pct'], '%')}\u00a0%"
    return between(row["low_pct"], row["high_pct"])


def _utilization(table: ResultTable, units: Units) -> Headline | None:
    frame = table.frame.drop_nulls(["gpu_minutes", "mean_pct"])
    minutes = float(frame["gpu_minutes"].sum())
    if minutes <= 0:
        return None
    mean = float((frame["gpu_minutes"] * frame["mean_pct"]).sum()) / minutes
    return Headline("GPU utilization", shown(mean, "%"), "%", "mean over the GPU-minutes of jobs", table.name)


def _mean(analysis: Analysis, measure: str, name: str) -> Headline | None:
    """Return the mean of the best usable policy if it is proven better than the baseline; else the baseline's.

    An oracle is never the headline: it follows the policy as a bound.
    """
    column = f"{measure}_mean_s"
    table = _usable(analysis.table("replay_summary"), ("policy", column, "oracle"))
    if table is None:
        return None
    unit = Units(analysis.tables).timed(table.name, column)
    rows = table.frame.drop_nulls([column]).sort(column, maintain_order=True).select("policy", column, "oracle").rows()
    means = {policy: value for policy, value, oracle in rows if not oracle}
    bounds = {policy: value for policy, value, oracle in rows if oracle}
    every = paired(analysis, measure)
    best = next((row["policy"] for row in better(analysis, measure) if row["policy"] in means), None)
    chosen = best or next((row["baseline"] for row in every if row["baseline"] in means), next(iter(means), None))
    if chosen is None:
        for policy, value in bounds.items():
            words = f"{visible(policy)}, an oracle: a bound"
            return Headline(f"Mean {name}", timed(value, unit), unit.name, words, table.name)
        return None
    others = [_with_time(policy, value, unit) for policy, value in means.items() if value >= means[chosen]]
    behind = others[1:3] if best else ["no other policy is significantly better"] if len(means) > 1 else []
    bound = [f"bound: {_with_time(policy, value, unit)} (oracle)" for policy, value in bounds.items()
             if value < means[chosen]][:1]  # fmt: skip
    label = f"Shortest mean {name}" if best else f"Mean {name}"
    detail = "; ".join([visible(chosen), *behind, *bound])
    return Headline(label, timed(means[chosen], unit), unit.name, detail, table.name)


def _with_time(policy: str, value: float, unit: Unit) -> str:
    return f"{visible(policy)} {timed(value, unit)}\u00a0{unit.name}"


def _answered(table: ResultTable, units: Units) -> Headline | None:
    known = table.frame["run_time_s"].drop_nulls().drop_nans()
    of = f"of {plural(table.frame.height, 'job')}"
    return Headline("Run times predicted", shown(known.len()), "", of, table.name)


def _remaining(table: ResultTable, units: Units) -> Headline | None:
    rows = table.frame.drop_nulls(["remaining_s"]).sort("remaining_s", descending=True, maintain_order=True)
    if rows.height == 0:
        return None
    unit = units.timed(table.name, "remaining_s")
    longest = timed(rows["remaining_s"][0], unit)
    return Headline("Longest remaining", longest, unit.name, visible(rows["job"][0]), table.name)


def _suspension(table: ResultTable, units: Units) -> Headline | None:
    values = [table.frame[name][0] for name in ("suspend_s", "resume_s", "loss_s")]
    if None in values:
        return None
    suspend, resume, loss = map(float, values)
    unit = units.timed(table.name, "loss_s")
    parts = f"{timed(suspend, unit)} to suspend, {timed(resume, unit)} to resume"
    return Headline("Lost to one suspension", timed(loss, unit), unit.name, parts, table.name)


def _learnt(table: ResultTable, units: Units) -> Headline | None:
    errors = dict(table.frame.select("predictor", "median_ape_pct").drop_nulls().iter_rows())
    if "history" not in errors:
        return None
    own = errors.pop("history")
    rule = min(errors, key=lambda name: errors[name], default=None)
    behind = "" if rule is None else f"best rule without training: {visible(rule)} {shown(errors[rule], '%')}\u00a0%"
    return Headline("Median error of run times", shown(own, "%"), "%", behind, table.name)


_LOST = ("retried_h", "killed_h", "failed_h")
_WAITS = ("wait_p50_min", "wait_p95_min", "wait_over_1h_pct")
_NO_ENDS = "no source states how the attempts ended"
_SOURCES: tuple[tuple[str, tuple[str, ...], Callable[[ResultTable, Units], Headline | None]], ...] = (
    ("status", ("state", "jobs", "jobs_pct"), _jobs),
    ("gpu_hours_lost", ("gpu_hours", *_LOST), _gpu_hours),
    ("gpu_hours_lost", ("gpu_hours", "node_hours", "lost_node_pct"), _node_hours),
    ("overview", ("occupancy_pct", "gpus"), _busy),
    ("overview", _WAITS, _waits),
    ("delay_causes", ("cause", "hours", "share_pct", "low_pct", "high_pct"), _causes),
    ("delay_by_size", tuple(f"{cause}_h" for cause in CAUSES), _waiting),
    ("gpu_util_by_nodes", ("gpu_minutes", "mean_pct"), _utilization),
    ("predictions", ("job", "run_time_s"), _answered),
    ("predictions", ("job", "remaining_s"), _remaining),
    ("overhead", ("suspend_s", "resume_s", "loss_s"), _suspension),
    ("runtime_predictors", ("predictor", "median_ape_pct"), _learnt),
)
