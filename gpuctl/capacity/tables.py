"""Tables of a plan: the answer, the curve of sizes, demand with its forecast, and how the forecast did before."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.capacity.demand import LEVEL, MODELS, PERIOD, growth
from gpuctl.capacity.run import ALL, twice
from gpuctl.core.notes import NamedValue, note
from gpuctl.core.results import Column, ResultTable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.capacity.demand import Weeks
    from gpuctl.capacity.run import Found
    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Floats

TABLES = ("plan", "plan_curve", "plan_removed", "plan_demand", "plan_growth", "plan_backtest")
SECTIONS = (("plan", "How many GPUs are needed"), ("demand", "Demand and its forecast"))
HOURS_A_YEAR = 8766.0
ENOUGH, MORE, UNREACHABLE = "enough", "more", "unreachable"


@dataclass(frozen=True)
class Price:
    """The price of a GPU-hour of the nodes that are added.

    Attributes:
        per_hour: of a GPU.
        gpu_type: whose price it is.
    """

    per_hour: float
    gpu_type: str


def band(values: Floats) -> tuple[float | None, float | None, float | None]:
    """Return 5 %, 50 % and 95 % of the futures; None if the figure is infinite there, or none has it."""
    known = values[~np.isnan(values)]
    if not known.size:
        return None, None, None
    ends = np.quantile(known, [(1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2], method="inverted_cdf").tolist()
    low, middle, high = (value if math.isfinite(value) else None for value in ends)
    return low, middle, high


def met_pct(found: Found, values: Floats) -> float | None:
    """Return the share of futures in which a figure meets the goal, in percent; None if none has it."""
    known = values[~np.isnan(values)]
    return 100 * float((known <= found.base.question.goal.most).mean()) if known.size else None


def when(found: Found, time: int) -> str:
    """The name of a time: ``now`` or ``in 13 weeks``."""
    weeks = found.base.times[time].weeks
    return "now" if weeks == 0 else f"in {weeks} week{'s' if weeks > 1 else ''}"


def verdict(found: Found, time: int, scope: str) -> str:
    """Whether the present nodes are enough, more are needed, or no number of them helps."""
    _, _, high = found.needed(time, scope)
    return UNREACHABLE if math.isinf(high) else ENOUGH if high <= 0 else MORE


def _value_names(found: Found) -> tuple[str, str, str]:
    goal = found.base.question.goal
    return (
        ("wait_s", "wait_low_s", "wait_high_s") if goal.unit == "s" else ("over_pct", "over_low_pct", "over_high_pct")
    )


def _value_columns(found: Found, of: str) -> tuple[Column, ...]:
    goal, (middle, low, high) = found.base.question.goal, _value_names(found)
    return (
        Column(middle, goal.unit, f"The {goal.what} until the first start{of}: median of the futures."),
        Column(low, goal.unit, "5 % of the futures have less."),
        Column(high, goal.unit, "95 % have less; empty: some jobs never start."),
    )


def _population(found: Found) -> Note:
    base = found.base
    jobs = [draw.jobs for each in found.draws for draw in each]
    span = note("last {weeks} week{weeks||s}", weeks=PERIOD) if base.by_weeks else note("last four fifths")
    return note(
        "{draws:,} {draws|future|futures} for each time, drawn from {jobs:,} job{jobs||s} of {name}; waits of the jobs "
        "submitted in the {span} of each, {fewest:,} to {most:,} job{most||s}.",
        draws=base.question.draws, jobs=base.workload.size, name=NamedValue("cluster", base.workload.name), span=span,
        fewest=min(jobs), most=max(jobs),
    )  # fmt: skip


def _gpus(found: Found, more: float) -> int | None:
    return found.base.cluster.total_gpus + int(more) * found.base.question.kind.gpus if math.isfinite(more) else None


def answer(found: Found, price: Price | None) -> ResultTable:
    """Return the sizes that meet the goal, by time and queue."""
    names = _value_names(found)
    columns = (
        Column("time", "-", "Now, or weeks after the end of the trace."),
        Column("queue", "-", "Whose jobs must meet the goal; all: those of every queue together."),
        Column("verdict", "-", "enough: the present GPUs are; more: more are needed; unreachable: at no size sought."),
        Column("gpus_now", "GPUs", "GPUs of the present nodes."),
        *_value_columns(found, " with the present nodes"),
        Column("met_pct", "%", "Share of the futures that meet the goal with the present nodes."),
        Column("nodes_low", "nodes", "Nodes to add with which 10 % of the futures meet the goal; below 0: nodes that "
               "can go; empty: no size sought does."),
        Column("nodes_mid", "nodes", "The same for half of the futures."),
        Column("nodes_high", "nodes", "The same for 90 % of the futures: the number to plan with."),
        Column("gpus_low", "GPUs", "GPUs of all nodes then, with nodes_low."),
        Column("gpus_mid", "GPUs", "With nodes_mid."),
        Column("gpus_high", "GPUs", "With nodes_high."),
        Column("met_high_pct", "%", "Share of the futures that meet the goal with nodes_high, replayed."),
        Column("wait_twice_s" if names[0] == "wait_s" else "over_twice_pct", found.base.question.goal.unit,
               "Median of the futures with twice the GPUs; only where the goal is unreachable."),
        Column("cost_low_per_year", "-", "Price of the added GPUs for a year, with nodes_low, in the currency of "
               "--prices; below 0: saved; empty: no prices."),
        Column("cost_high_per_year", "-", "The same with nodes_high."),
    )  # fmt: skip
    rows = [_answer_row(found, time, scope, price) for time in range(len(found.draws)) for scope in found.base.scopes]
    notes = [note("A goal that is met with some nodes is taken as met with more.")]
    if found.too_large:
        notes.append(
            note("{jobs:,} job{jobs||s} left out: larger than all present nodes that {jobs|it|they} may use",
                 jobs=found.too_large)
        )  # fmt: skip
    return ResultTable(
        name="plan", section="plan", title="Sizes that meet the goal",
        question="How many GPUs are needed so that the goal is met?", population=_population(found), notes=tuple(notes),
        columns=columns, frame=_frame(columns, rows),
        key_columns=("time", "queue", "gpus_now", names[0], "met_pct", "nodes_low", "nodes_high", "gpus_high"),
    )  # fmt: skip


def _answer_row(found: Found, time: int, scope: str, price: Price | None) -> tuple[Any, ...]:
    low, middle, high = found.needed(time, scope)
    now = found.values(time, scope, 0)
    value_low, value, value_high = band(now)
    at_high = int(high) if math.isfinite(high) else None
    sizes = [int(size) if math.isfinite(size) else None for size in (low, middle, high)]
    met = met_pct(found, found.values(time, scope, at_high)) if at_high in found.grid else None
    twofold = band(found.values(time, scope, twice(found)))[1] if at_high is None else None
    per_node = None if price is None else price.per_hour * found.base.question.kind.gpus * HOURS_A_YEAR
    costs = [None if size is None or per_node is None else size * per_node for size in (sizes[0], sizes[2])]
    return (
        when(found, time), scope, verdict(found, time, scope), found.base.cluster.total_gpus, value, value_low,
        value_high, met_pct(found, now), *sizes, *(_gpus(found, size) for size in (low, middle, high)), met, twofold,
        *costs,
    )  # fmt: skip


def curve(found: Found) -> ResultTable:
    """Return the figure by size of the cluster, with its band over the futures."""
    middle, low, high = _value_names(found)
    columns = (
        Column("time", "-", "Now, or weeks after the end of the trace."),
        Column("queue", "-", "Whose jobs; all: those of every queue together."),
        Column("nodes_added", "nodes", "Nodes more than at present; below 0: fewer."),
        Column("gpus", "GPUs", "GPUs of all nodes."),
        *_value_columns(found, ""),
        Column("met_pct", "%", "Share of the futures that meet the goal."),
    )
    rows = []
    for time in range(len(found.draws)):
        for scope in found.base.scopes:
            for more in found.grid:
                values = found.values(time, scope, more)
                value_low, value, value_high = band(values)
                rows.append(
                    (when(found, time), scope, more, _gpus(found, more), value, value_low, value_high,
                     met_pct(found, values))
                )  # fmt: skip
    shown = f'where="queue:{ALL}"' if ALL in found.base.scopes else ""
    chart = (
        f"bands lead=yes on=page name=chart-plan-curve x=gpus y={middle},{low},{high} series=time {shown} "
        'band="the middle 90 % of the futures" '
        f'title="{found.base.question.goal.what[:1].upper() + found.base.question.goal.what[1:]} by GPUs, with the '
        f'middle 90 % of the futures"'
    )
    return ResultTable(
        name="plan_curve", section="plan", title="Waits by size of the cluster",
        question="What would other sizes of the cluster give?", population=_population(found), notes=(),
        columns=columns, frame=_frame(columns, rows), charts=(chart,),
    )  # fmt: skip


def removed(found: Found) -> ResultTable:
    """Return what the removal of nodes costs in waits."""
    middle, *_ = _value_names(found)
    unit, goal = found.base.question.goal.unit, found.base.question.goal
    ending = middle.rpartition("_")[2]
    columns = (
        Column("time", "-", "Now, or weeks after the end of the trace."),
        Column("queue", "-", "Whose jobs; all: those of every queue together."),
        Column("gpus", "GPUs", "GPUs of the nodes that stay."),
        Column(f"before_{ending}", unit, f"The {goal.what} with the present nodes: median of the futures."),
        *_value_columns(found, " without the removed nodes"),
        Column(f"change_{ending}", unit, "Without - with these nodes, of one future: median of the futures."),
        Column(f"change_low_{ending}", unit, "5 % of the futures change by less."),
        Column(f"change_high_{ending}", unit, "95 % change by less; empty: some jobs fit on no node, or never start."),
        Column("met_pct", "%", "Share of the futures that meet the goal without these nodes."),
    )
    gone = found.base.question.removed
    gpus = found.base.cluster.total_gpus - (0 if gone is None else int(found.base.cluster.gpus[gone].sum()))
    rows = []
    for time, draws in enumerate(found.draws):
        for scope in found.base.scopes:
            after = np.array([draw.removed[scope] for draw in draws])
            before = found.values(time, scope, 0)
            with np.errstate(invalid="ignore"):
                change = np.where(np.isinf(after), np.inf, after - before)
            value_low, value, value_high = band(after)
            change_low, change_mid, change_high = band(change)
            rows.append(
                (when(found, time), scope, gpus, band(before)[1], value, value_low, value_high, change_mid, change_low,
                 change_high, met_pct(found, after))
            )  # fmt: skip
    return ResultTable(
        name="plan_removed", section="plan", title="Without some nodes",
        question="What does the removal of nodes cost in waits?", population=_population(found), notes=(),
        columns=columns, frame=_frame(columns, rows),
    )  # fmt: skip


def demand(found: Found) -> ResultTable:
    """Return the recorded weeks and the forecast."""
    columns = (
        Column("week", "weeks", "Weeks after the end of the trace at which the time ends; recorded weeks: 0 and less."),
        Column("kind", "-", f"recorded: one week; forecast: mean of the {PERIOD} weeks that end there."),
        Column("gpu_hours", "GPU-h", "Run times times GPUs of the jobs submitted in a week; forecast: median."),
        Column("gpu_hours_low", "GPU-h", "Lower end of the 90 % interval; of recorded weeks the value itself."),
        Column("gpu_hours_high", "GPU-h", "Upper end."),
        Column("submitted_jobs", "jobs", "Jobs submitted; empty for forecasts."),
        Column("active_users", "users", "Users who submitted them; empty for forecasts, and if users are not known."),
    )
    weeks = found.base.weeks
    rows: list[tuple[Any, ...]] = [
        (float(at - weeks.count + 1), "recorded", gpu_h, gpu_h, gpu_h, jobs, users or None)
        for at, (gpu_h, jobs, users) in enumerate(
            zip(weeks.gpu_h.tolist(), weeks.jobs.tolist(), weeks.users.tolist(), strict=True)
        )
    ]
    ahead = found.forecast
    if ahead is not None:
        rows += [(float(at), "forecast", *ends, None, None) for at, *ends in ahead.path]
    chart = (
        "bands on=page name=chart-plan-demand x=week y=gpu_hours,gpu_hours_low,gpu_hours_high series=kind "
        'band="90 % interval of the forecast" '
        'title="GPU-hours submitted a week, with the 90 % interval of the forecast"'
    )
    return ResultTable(
        name="plan_demand", section="demand", title="Demand by week",
        question="How much was asked for, and how much will be?",
        population=note("{weeks:,} whole week{weeks||s}; an incomplete first one is left out. Jobs of which no run is "
                        "known are not in demand.", weeks=weeks.count),
        notes=(), columns=columns, frame=_frame(columns, rows), charts=(chart,) if rows else (), detail=True,
    )  # fmt: skip


def growths(weeks: Weeks) -> ResultTable:
    """Return the growth of demand, of users, and of what each asks for."""
    columns = (
        Column("measure", "-", "GPU-hours submitted, jobs, active users, GPU-hours per active user."),
        Column("weekly_pct", "%", "Growth a week, from a line through the logarithms of all whole weeks."),
        Column("weekly_low_pct", "%", "Lower end of its 95 % interval, widened if weeks resemble the ones before."),
        Column("weekly_high_pct", "%", "Upper end."),
        Column("differs", "-", "yes: the interval excludes no growth."),
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        per_user = np.where(weeks.users > 0, weeks.gpu_h / weeks.users, 0.0)
    measures = (
        ("GPU-hours", weeks.gpu_h), ("jobs", weeks.jobs.astype(np.float64)), ("users", weeks.users.astype(np.float64)),
        ("GPU-hours per user", per_user),
    )  # fmt: skip
    rows = []
    for name, values in measures:
        found = growth(values)
        if found is not None:
            ends = (100 * found.weekly, 100 * found.low, 100 * found.high)
            rows.append((name, *ends, "yes" if found.shown else "no"))
    return ResultTable(
        name="plan_growth", section="demand", title="Growth", question="What grows, and how fast?",
        population=note("{weeks:,} whole week{weeks||s}.", weeks=weeks.count), notes=(), columns=columns,
        frame=_frame(columns, rows),
    )  # fmt: skip


def backtest(found: Found) -> ResultTable:
    """Return how each model would have forecast the trace's own weeks."""
    columns = (
        Column("forecast_model", "-", "level: mean of the last 13 weeks; damped: a line whose growth fades; trend: a "
               "line; season: a line with a yearly wave."),
        Column("chosen", "-", "yes: the plan uses it."),
        Column("weeks_ahead", "weeks", f"From the origin to the end of the {PERIOD} weeks that were forecast."),
        Column("origins", "origins", "Weeks from which it was forecast, with nothing but the weeks before."),
        Column("error_p50_pct", "%", "Median distance of the forecast from what came, as a share of the forecast."),
        Column("bias_pct", "%", "Mean of what came over the forecast, less 100 %; positive: too low a forecast."),
        Column("inside_pct", "%", "Share of origins whose 90 % interval, widened as in the plan, holds what came."),
    )  # fmt: skip
    ahead = found.forecast
    rows = list(_tests(found)) if ahead is not None else []
    return ResultTable(
        name="plan_backtest", section="demand", title="How the forecast would have done",
        question="How near would forecasts of the trace's own weeks have come?",
        population=note("Every whole week with at least six before it is an origin. Origins overlap: they are not as "
                        "many independent tests."),
        notes=(), columns=columns, frame=_frame(columns, rows), detail=True,
    )  # fmt: skip


def _tests(found: Found) -> Iterator[tuple[Any, ...]]:
    from scipy import stats

    ahead = found.forecast
    if ahead is None:
        return
    half = ahead.widened * float(stats.t.ppf((1 + LEVEL) / 2, ahead.freedom))
    for test in sorted(ahead.backtests, key=lambda one: (MODELS.index(one.model), one.horizon)):
        off = np.expm1(test.error)
        inside = 100 * float((np.abs(test.error) <= half * test.spread).mean())
        chosen = "yes" if test.model == ahead.model else "no"
        yield (
            test.model, chosen, float(test.horizon), test.error.size, 100 * float(np.median(np.abs(off))),
            100 * float(off.mean()), inside,
        )  # fmt: skip


_WHOLE = frozenset({"GPUs", "nodes", "jobs", "users", "origins"})
_WORDS = frozenset({"time", "queue", "verdict", "kind", "measure", "differs", "forecast_model", "chosen"})


def _frame(columns: tuple[Column, ...], rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    kinds = {
        column.name: pl.String if column.name in _WORDS else pl.Int64 if column.unit in _WHOLE else pl.Float64
        for column in columns
    }
    return pl.DataFrame(rows, schema=kinds, orient="row")
