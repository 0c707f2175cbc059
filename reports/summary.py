"""The few figures that a report starts with, each taken from a result table that the report also shows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpuctl.core.text import plural
from gpuctl.reports.charts.chart import TOTAL
from gpuctl.reports.figures import CAUSES
from gpuctl.reports.text import between, heading, shown, visible

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.core.results import Analysis, ResultTable


@dataclass(frozen=True)
class Headline:
    """One figure of the summary.

    Attributes:
        label: what it is.
        value: the figure, rounded.
        unit: its unit.
        detail: what to know beside it.
        table: the result table it was taken from.
    """

    label: str
    value: str
    unit: str
    detail: str
    table: str


def headlines(analysis: Analysis) -> tuple[Headline, ...]:
    """Return the figures that this analysis has tables for; of two tables that tell the same, that of the first."""
    found = (
        make(table) for name, columns, make in _SOURCES if (table := _usable(analysis.table(name), columns)) is not None
    )
    first: dict[str, Headline] = {}
    for headline in found:
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


def _jobs(table: ResultTable) -> Headline | None:
    rows = table.frame.sort("jobs", descending=True, maintain_order=True)
    state, share = visible(str(rows["state"][0])), rows["jobs_pct"][0]
    return Headline("Jobs", shown(table.frame["jobs"].sum()), "", f"{shown(share, '%')}\u00a0% {state}", table.name)


def _gpu_hours(table: ResultTable) -> Headline | None:
    hours = float(table.frame["gpu_hours"].sum())
    lost = sum(float(table.frame[name].sum()) for name in _LOST)
    if hours <= 0:
        return None
    share = f"{shown(100 * lost / hours, '%')}\u00a0% in attempts that did not end in success"
    return Headline("GPU-hours", shown(round(hours)), "", share, table.name)


def _busy(table: ResultTable) -> Headline | None:
    share, total = table.frame["occupancy_pct"][0], table.frame["gpus"][0]
    if share is None or not total:
        return None
    held = f"{share * total / 100:,.0f} of {total:,.0f} on average"
    return Headline("GPUs allocated", shown(float(share), "%"), "%", held, table.name)


def _waiting(table: ResultTable) -> Headline | None:
    names = {c.name: heading(c)[0] for c in table.columns}
    hours = {c: float(table.frame[c].sum()) for c in CAUSES if c in table.frame.columns}
    total = sum(hours.values())
    if total <= 0:
        return None
    most = sorted(hours, key=lambda c: -hours[c])[:2]
    shares = ", ".join(f"{shown(100 * hours[c] / total, '%')}\u00a0% {names[c]}" for c in most)
    return Headline("Time in queue", shown(total), "h", shares, table.name)


def _causes(table: ResultTable) -> Headline | None:
    rows = [row for row in table.frame.iter_rows(named=True) if row["share_pct"] is not None]
    total = sum(row["hours"] for row in rows)
    if total <= 0:
        return None
    most = sorted(rows, key=lambda row: -float(row["share_pct"]))[:2]
    told = (f"{between(row['low_pct'], row['high_pct'])} {str(row['cause']).replace('_', ' ')}" for row in most)
    return Headline("Time in queue", shown(total), "h", ", ".join(told), table.name)


def _utilization(table: ResultTable) -> Headline | None:
    frame = table.frame.drop_nulls(["gpu_minutes", "mean_pct"])
    minutes = float(frame["gpu_minutes"].sum())
    if minutes <= 0:
        return None
    mean = float((frame["gpu_minutes"] * frame["mean_pct"]).sum()) / minutes
    return Headline("GPU utilization", shown(mean, "%"), "%", "mean over the GPU-minutes of jobs", table.name)


def _shortest(table: ResultTable, column: str, label: str) -> Headline | None:
    rows = table.frame.drop_nulls([column]).sort(column, maintain_order=True)
    if rows.height == 0:
        return None
    best, *others = rows.select("policy", column, "oracle").iter_rows()
    told = ", told true run times" if best[2] else ""
    behind = "".join(f"; {visible(name)} {shown(value / 3600)}\u00a0h" for name, value, _ in others[:3])
    return Headline(label, shown(best[1] / 3600), "h", f"{visible(best[0])}{told}{behind}", table.name)


def _jct(table: ResultTable) -> Headline | None:
    return _shortest(table, "jct_mean_s", "Shortest mean JCT")


def _wait(table: ResultTable) -> Headline | None:
    return _shortest(table, "wait_mean_s", "Shortest mean wait")


def _answered(table: ResultTable) -> Headline | None:
    known = table.frame["run_time_s"].drop_nulls().drop_nans()
    of = f"of {plural(table.frame.height, 'job')}"
    return Headline("Run times predicted", shown(known.len()), "", of, table.name)


def _remaining(table: ResultTable) -> Headline | None:
    rows = table.frame.drop_nulls(["remaining_s"]).sort("remaining_s", descending=True, maintain_order=True)
    if rows.height == 0:
        return None
    return Headline(
        "Longest still to run", shown(rows["remaining_s"][0] / 3600), "h", visible(rows["job"][0]), table.name
    )


def _suspension(table: ResultTable) -> Headline | None:
    values = [table.frame[name][0] for name in ("suspend_s", "resume_s", "loss_s")]
    if None in values:
        return None
    suspend, resume, loss = map(float, values)
    parts = f"{shown(suspend)}\u00a0s to suspend, {shown(resume)}\u00a0s to resume"
    return Headline("Lost to one suspension", shown(loss), "s", parts, table.name)


def _learnt(table: ResultTable) -> Headline | None:
    errors = dict(table.frame.select("predictor", "median_ape_pct").drop_nulls().iter_rows())
    if "history" not in errors:
        return None
    own = errors.pop("history")
    rule = min(errors, key=lambda name: errors[name], default=None)
    behind = "" if rule is None else f"best rule without training: {visible(rule)} {shown(errors[rule], '%')}\u00a0%"
    return Headline("Median error of run times", shown(own, "%"), "%", behind, table.name)


_LOST = ("retried_h", "killed_h", "failed_h")
_SOURCES: tuple[tuple[str, tuple[str, ...], Callable[[ResultTable], Headline | None]], ...] = (
    ("status", ("state", "jobs", "jobs_pct"), _jobs),
    ("gpu_hours_lost", ("gpu_hours", *_LOST), _gpu_hours),
    ("overview", ("occupancy_pct", "gpus"), _busy),
    ("delay_causes", ("cause", "hours", "share_pct", "low_pct", "high_pct"), _causes),
    ("delay_by_size", (), _waiting),
    ("gpu_util_by_servers", ("gpu_minutes", "mean_pct"), _utilization),
    ("replay_summary", ("policy", "jct_mean_s", "oracle"), _jct),
    ("replay_summary", ("policy", "wait_mean_s", "oracle"), _wait),
    ("predictions", ("job", "run_time_s"), _answered),
    ("predictions", ("job", "remaining_s"), _remaining),
    ("overhead", ("suspend_s", "resume_s", "loss_s"), _suspension),
    ("runtime_predictors", ("predictor", "median_ape_pct"), _learnt),
)
