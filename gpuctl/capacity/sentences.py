"""A plan in sentences: the answer, and what it rests on."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING

from gpuctl.capacity.demand import LEAST_WEEKS, PERIOD, growth
from gpuctl.capacity.run import ALL, twice
from gpuctl.capacity.tables import ENOUGH, HOURS_A_YEAR, UNREACHABLE, band, met_pct, verdict
from gpuctl.core.notes import NamedValue, literal, note
from gpuctl.core.numbers import number

if TYPE_CHECKING:
    from gpuctl.capacity.fidelity import Chosen
    from gpuctl.capacity.run import Found
    from gpuctl.capacity.tables import Price
    from gpuctl.core.notes import Note

_HELPS = 0.8
"""Twice the GPUs help if they bring the figure below this part of what it is."""


def answer(found: Found, time: int, scope: str, price: Price | None) -> Note:
    """Return the answer for a time and the jobs of a scope, in one sentence."""
    kind = verdict(found, time, scope)
    text = (
        _unreachable(found, time, scope)
        if kind == UNREACHABLE
        else _enough(found, time, scope)
        if kind == ENOUGH
        else _more(found, time, scope)
    )
    return note("{text}{cost}.", text=text, cost=_cost(found, time, scope, price))


def _whose(found: Found, scope: str) -> Note:
    what = literal(found.base.question.goal.what)
    if scope == ALL:
        return note("the {what}", what=what)
    return note("the {what} of {queue}", what=what, queue=NamedValue("queue", scope))


def _until(found: Found, time: int) -> Note:
    weeks = found.base.times[time].weeks
    if not weeks:
        return note("at present demand")
    origin = found.base.workload.origin
    if origin is None:
        return note("until {weeks} week{weeks||s} from the trace's end", weeks=weeks)
    end = origin + timedelta(seconds=float(found.base.workload.submit.max()), weeks=weeks)
    return note("until {day}", day=literal(f"{end:%d %B %Y}".lstrip("0")))


def _nodes(found: Found, count: int, *, more: bool = False) -> Note:
    kind, total = found.base.question.kind, found.base.cluster.total_gpus
    gpus = abs(count) * kind.gpus
    share = literal(f"{'-' if count < 0 else '+'}{100 * gpus / total:.0f} %")
    word = note(" more") if more else note("")
    if found.base.cluster.pool:
        return note("{gpus:,}{more} GPU{gpus||s} ({share})", gpus=gpus, more=word, share=share)
    name = note(" {type}", type=NamedValue("value", kind.name)) if kind.name else note("")
    return note(
        "{count:,}{more} {size}-GPU{name} node{count||s} ({gpus:,} GPU{gpus||s}, {share})",
        count=abs(count), more=word, size=kind.gpus, name=name, gpus=gpus, share=share,
    )  # fmt: skip


def _now(found: Found, time: int, scope: str) -> Note:
    goal = found.base.question.goal
    low, middle, high = (math.inf if value is None else value for value in band(found.values(time, scope, 0)))
    return note(
        "today's {gpus:,} {gpus|GPU gives|GPUs give} {middle} ({low} to {high})",
        gpus=found.base.cluster.total_gpus, middle=literal(goal.shown(middle)), low=literal(goal.shown(low)),
        high=literal(goal.shown(high)),
    )  # fmt: skip


def _more(found: Found, time: int, scope: str) -> Note:
    low, _, high = found.needed(time, scope)
    goal, draws = found.base.question.goal, found.base.question.draws
    met = met_pct(found, found.values(time, scope, int(high)))
    text = note(
        "With {nodes} {whose} stays within {most} {until} in {met:.0f} % of {draws} futures",
        nodes=_nodes(found, int(high), more=True), whose=_whose(found, scope), most=literal(goal.bound),
        until=_until(found, time), met=met or 0.0, draws=draws,
    )  # fmt: skip
    if low == high:
        fewer = note("")
    elif low <= 0:
        fewer = note("; in a tenth of them no more are needed")
    else:
        fewer = note("; with {nodes} in a tenth of them", nodes=_nodes(found, int(low)))
    return note("{text}{fewer}; {now}", text=text, fewer=fewer, now=_now(found, time, scope))


def _enough(found: Found, time: int, scope: str) -> Note:
    _, _, high = found.needed(time, scope)
    goal, draws = found.base.question.goal, found.base.question.draws
    met = met_pct(found, found.values(time, scope, 0))
    text = note(
        "Today's {gpus:,} {gpus|GPU is|GPUs are} enough: {whose} stays within {most} {until} in {met:.0f} % of {draws} "
        "futures ({now})",
        gpus=found.base.cluster.total_gpus, whose=_whose(found, scope), most=literal(goal.bound),
        until=_until(found, time), met=met or 0.0, draws=draws,
        now=_middle(found, time, scope),
    )  # fmt: skip
    if high == 0:
        return note("{text}; with one node less, in fewer than nine of ten", text=text)
    gone = _nodes(found, int(high))
    return note("{text}; without {gone} it still does in nine of ten", text=text, gone=gone)


def _middle(found: Found, time: int, scope: str) -> Note:
    _, middle, high = band(found.values(time, scope, 0))
    goal = found.base.question.goal
    ends = [literal(goal.shown(math.inf if value is None else value)) for value in (middle, high)]
    return note("at most {middle} in half of them, {high} in 95 %", middle=ends[0], high=ends[1])


def _unreachable(found: Found, time: int, scope: str) -> Note:
    goal, draws = found.base.question.goal, found.base.question.draws
    _, most = found.base.limits()
    values = [band(found.values(time, scope, more))[1] for more in (0, twice(found))]
    now, then = (math.inf if value is None else value for value in values)
    head = note(
        "With up to {gpus:,} GPU{gpus||s}, {whose} does not stay within {most} {until} in nine of ten of {draws} "
        "futures",
        gpus=found.base.cluster.total_gpus + most * found.base.question.kind.gpus, whose=_whose(found, scope),
        most=literal(goal.bound), until=_until(found, time), draws=draws,
    )  # fmt: skip
    figures = note(
        "twice the GPUs give {then}, today's give {now}", then=literal(goal.shown(then)), now=literal(goal.shown(now))
    )
    _, half, _ = found.needed(time, scope)
    if math.isfinite(half):
        return note(
            "{head}, as demand may grow beyond them; {half} in half of them", head=head, half=_half(found, half)
        )
    if math.isfinite(then) and then < _HELPS * now:
        return note("{head}: {figures}", head=head, figures=figures)
    why = _why(found)
    return note("{head}: more GPUs hardly help; {figures}{why}", head=head, figures=figures, why=why)


def _half(found: Found, half: float) -> Note:
    if half <= 0:
        return note("today's GPUs are enough")
    return note("{nodes} are enough", nodes=_nodes(found, int(half), more=True))


def _why(found: Found) -> Note:
    """What holds jobs back, if not the number of GPUs."""
    import numpy as np

    if np.isfinite(found.base.cluster.quota).any():
        return note("; quotas stay as they are, and jobs wait for them")
    return note("; limits, quotas or the sizes of jobs hold them back, rather than capacity")


def _cost(found: Found, time: int, scope: str, price: Price | None) -> Note:
    low, _, high = found.needed(time, scope)
    if price is None or not math.isfinite(high) or not high:
        return note("")
    per_node = price.per_hour * found.base.question.kind.gpus * HOURS_A_YEAR
    ends = [abs(size) * per_node for size in (low, high)]
    rate = note(
        "{price} a GPU-hour of {type}", price=literal(number(price.per_hour)), type=NamedValue("value", price.gpu_type)
    )
    if high < 0:
        return note("; that saves {cost} a year at {rate}", cost=literal(number(ends[1])), rate=rate)
    return note("; {cost} a year at {rate}", cost=literal(number(ends[1])), rate=rate)


def without(found: Found, time: int, scope: str, names: Note) -> Note:
    """Return what the removal of nodes costs."""
    import numpy as np

    goal = found.base.question.goal
    before, after = found.values(time, scope, 0), np.array([draw.removed[scope] for draw in found.draws[time]])
    with np.errstate(invalid="ignore"):
        change = np.where(np.isinf(after), np.inf, after - before)
    figures = [
        [literal(goal.shown(math.inf if value is None else value)) for value in band(values)]
        for values in (before, after, np.maximum(change, 0.0) if (change >= 0).mean() > 0.95 else change)
    ]
    lost = 0 if found.base.question.removed is None else int(found.base.cluster.gpus[found.base.question.removed].sum())
    return note(
        "Without {names} ({gpus:,} GPU{gpus||s}), {whose} is {after} ({after_low} to {after_high}) instead of {before} "
        "{until}: {change} more ({change_low} to {change_high})",
        names=names, gpus=lost, whose=_whose(found, scope), after=figures[1][1], after_low=figures[1][0],
        after_high=figures[1][2], before=figures[0][1], until=_until(found, time), change=figures[2][1],
        change_low=figures[2][0], change_high=figures[2][2],
    )  # fmt: skip


def forecast(found: Found) -> Note:
    """Return the forecast of demand in one sentence, with its error in the past."""
    import numpy as np

    weeks, ahead = found.base.weeks, found.forecast
    if ahead is None:
        return note("None: {why}", why=no_forecast(weeks.count))
    low, high = ahead.interval()
    recent = float(weeks.gpu_h[-PERIOD:].mean())
    last = [test for test in ahead.backtests if test.model == ahead.model][-1:]
    error = note("")
    if last:
        off = float(np.median(np.abs(np.expm1(last[0].error))))
        error = note(
            "; backtest: off by {off:.0f} % in the median of {origins} origin{origins||s} {weeks} week{weeks||s} ahead",
            off=100 * off, origins=last[0].error.size, weeks=last[0].horizon,
        )  # fmt: skip
    return note(
        "{head}{middle} GPU-hours a week ({low} to {high}, 90 %) {horizon} week{horizon||s} ahead, last {period} "
        "week{period||s} {recent}; {grown}; model {model} of {weeks} week{weeks||s}{error}",
        head=note("too wide to plan with: ") if ahead.too_wide else note(""),
        middle=literal(number(ahead.middle)), low=literal(number(low)), high=literal(number(high)),
        horizon=ahead.horizon, period=PERIOD, recent=literal(number(recent)), grown=_grown(found),
        model=literal(ahead.model), weeks=weeks.count, error=error,
    )  # fmt: skip


def _grown(found: Found) -> Note:
    weeks = found.base.weeks
    own = growth(weeks.gpu_h)
    if own is None:
        return note("growth is not known")
    ends = [literal(f"{100 * value:+.1f}") for value in (own.weekly, own.low, own.high)]
    if not own.shown:
        return note("no growth that differs from chance ({low} to {high} % a week)", low=ends[1], high=ends[2])
    users = growth(weeks.users.astype(float))
    by_users = note("")
    if users is not None and users.shown:
        by_users = note(", users {weekly} %", weekly=literal(f"{100 * users.weekly:+.1f}"))
    return note(
        "growth {weekly} % a week ({low} to {high}){by_users}",
        weekly=ends[0], low=ends[1], high=ends[2], by_users=by_users,
    )  # fmt: skip


def no_forecast(weeks: int) -> Note:
    """Return why there is no forecast."""
    return note("{weeks} whole week{weeks||s} of history; a forecast needs {least}", weeks=weeks, least=LEAST_WEEKS)


def policy(found: Found, chosen: Chosen, source: Note) -> Note:
    """Return the policy, and how near it comes to the record."""
    goal, own = found.base.question.goal, chosen.fidelity
    name = note("{name} ({source})", name=NamedValue("policy", chosen.policy[0]), source=source)
    if own is None:
        return note("{name}; nothing recorded to compare it with", name=name)
    return note(
        "{name}; replayed {what} {replayed}, recorded {recorded}; {near:.0f} % of {jobs:,} "
        "{jobs|job starts|jobs start} within 10 min of the record",
        name=name, what=literal(goal.what), replayed=literal(goal.shown(own.replayed)),
        recorded=literal(goal.shown(own.recorded)), near=own.near_pct, jobs=own.jobs,
    )  # fmt: skip


def draws(found: Found) -> Note:
    """Return how futures are drawn."""
    if found.base.by_weeks:
        how = note(
            "whole weeks of the last {weeks} are drawn, and jobs added or left out until they ask for the forecast "
            "demand",
            weeks=min(26, found.base.weeks.count),
        )
    else:
        how = note("days of the trace are drawn, at its own demand")
    return note(
        "{how}; times are not stretched. Nodes do not fail, and users do not react to shorter or longer waits", how=how
    )
