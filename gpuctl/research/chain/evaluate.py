"""Compare policies: train on starts before a date, score on starts after it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.suggestions import meant
from gpuctl.research.chain import net_training
from gpuctl.research.chain.bound import BOUNDED, cost_within
from gpuctl.research.chain.episode import DAY_S, WARM_UP_S, Outcome
from gpuctl.research.chain.log import check_size
from gpuctl.research.chain.nets import NETS, OF_COST, OF_WAIT, rule_of
from gpuctl.research.chain.policies import LEARN, NAMES, Rule, Start, hourly, lessons, look, trained
from gpuctl.research.chain.trial import EVERY_S, FEWEST_STARTS, Evaluation, Trial
from gpuctl.research.learn.extra import needed
from gpuctl.research.row_tables import Row, column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gpuctl.research.chain.log import Log
    from gpuctl.research.chain.model import Model
    from gpuctl.research.chain.policies import Lessons

    Floats = NDArray[np.float64]

SAVED = "saved"
"""The policy of a saved model."""


LEVELS = (("all", -np.inf, np.inf), ("light", -np.inf, 2.0), ("medium", 2.0, 12.0), ("heavy", 12.0, np.inf))
"""Levels by hours of interruption under ``reactive``: more than the first number, at most the second."""

ALL = (*NAMES[:-1], *NETS, NAMES[-1])
"""All policies."""

RESAMPLES, SEED = 1000, 1


def check_bound(max_overlap_h: float, policies: Sequence[str]) -> None:
    """Check that a policy can keep the bound.

    Raises:
        UsageError: none can.
    """
    if not set(policies) & set(BOUNDED):
        raise UsageError(
            f"--max-overlap {max_overlap_h:g}h: none of these policies keeps a bound",
            hint=f"--policy {','.join(BOUNDED)}",
        )


def policy_names(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of policies.

    Raises:
        UsageError: a policy is unknown, or needs PyTorch, which is not installed.
    """
    names = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for name in names:
        if name not in ALL:
            raise UsageError(f"--policy: there is no chain policy {name!r}", hint=meant(name, ALL))
    if not names:
        raise UsageError("--policy names none", hint=f"known: {', '.join(ALL)}")
    for name in set(names) & set(NETS):
        needed("torch", f"--policy {name}")
    return names


def starts(evaluation: Evaluation, log: Log) -> tuple[list[int], list[int]]:
    """Starts to learn from, and starts to score, in seconds.

    The last submission of a start to learn from is before the split. In a start to score, P is submitted at least two
    days after the split, however long the warm-up is.

    Raises:
        InputError: there are too few starts of either kind.
    """
    past = list(range(evaluation.from_s, evaluation.split_s - evaluation.arrivals_s + 1, EVERY_S))
    first = evaluation.split_s + WARM_UP_S - evaluation.warm_up_s
    later = list(range(first, int(log.submit_s[-1]) - evaluation.arrivals_s + 1, EVERY_S))
    if not later:
        days = (evaluation.arrivals_s - evaluation.warm_up_s + WARM_UP_S) / DAY_S
        raise InputError(
            f"{log.name}: no start from the split on has {days:g} days of submissions after it",
            hint="name an earlier --split",
        )
    if first < evaluation.from_s:
        raise InputError(
            f"{log.name}: the split leaves fewer than {evaluation.warm_up_s / DAY_S:g} days of warm-up to its first "
            "start",
            hint="name a later --split, or a shorter --warm-up",
        )
    if len(past) < FEWEST_STARTS and set(evaluation.policies) & {*LEARN, *NETS}:
        raise InputError(
            f"{log.name}: {len(past)} starts before the split to learn from, fewer than {FEWEST_STARTS}",
            hint="name a later --split, or policies that do not learn: reactive, avg",
        )
    return past, later


@dataclass(frozen=True)
class PolicyOutcomes:
    """Outcome of a policy at each start: means over its hand-overs, and each hand-over.

    Attributes:
        down_h: hours of interruption [starts].
        over_h: hours of overlap [starts].
        zero: share of hand-overs without interruption [starts].
        outcomes: outcomes by start and hand-over.
        train_s: CPU seconds to train; None: the policy does not learn.
    """

    down_h: Floats
    over_h: Floats
    zero: Floats
    outcomes: list[list[Outcome]]
    train_s: float | None


def policy_outcomes(outcomes: list[list[Outcome]], train_s: float | None) -> PolicyOutcomes:
    """Sum up the outcomes of a policy."""
    r = np.array([[each.interruption_s for each in chain] for chain in outcomes]) / 3600
    return PolicyOutcomes(
        np.maximum(r, 0).mean(axis=1), np.maximum(-r, 0).mean(axis=1), (r <= 0).mean(axis=1), outcomes, train_s
    )


class ForecastRow(
    Row, name="chain_forecasts", section="chain", title="Forecasts of the successor's wait",
    question="How accurate are the waits that a policy forecasts?",
):  # fmt: skip
    """The forecasts of a policy at the starts of a level."""

    policy: str = column("-", "The rule that uses a forecast of S's wait.")
    level: str = column("-", "As in the table chain.")
    looks: int = column("looks", "Hourly looks while P runs, at the starts scored.")
    quantile: float = column("-", "The forecast quantile of the wait: C / (1 + C) at outage cost C.")
    covered_pct: float | None = column(
        "%", "Share of the looks at which S waits no longer than forecast; target: quantile x 100."
    )
    pinball_h: float | None = column("h", "Mean pinball loss of the quantile; lower is better.")
    mean_wait_h: float | None = column("h", "Mean wait of S when submitted at the look.")


class FrontierRow(
    Row, name="chain_frontier", section="chain", title="Interruption against overlap", detail=True,
    question="How much overlap does less interruption cost?",
):  # fmt: skip
    """A policy at one outage cost, at the starts of a level."""

    policy: str = column("-", "The rule by which S is submitted.")
    level: str = column("-", "As in the table chain.")
    outage_cost: float | None = column("-", "The outage cost used; empty: the policy uses none.")
    overlap_h: float = column("h", "Mean overlap over the starts.")
    interruption_h: float = column("h", "Mean interruption over the starts.")


Frames = tuple[pl.DataFrame, pl.DataFrame, list[ForecastRow], list[FrontierRow]]


def run(
    log: Log, evaluation: Evaluation, progress: Callable[[str, int, int], None] = lambda *_: None,
    saved: Model | None = None,
) -> Frames:  # fmt: skip
    """Evaluate; the same log and settings give the same figures, except ``train_s``.

    Args:
        log: the trace.
        evaluation: settings.
        progress: called with the current step, the amount done and the total.
        saved: a trained model for the policy `SAVED`.

    Returns:
        one row per policy and level; per policy, start and hand-over; per policy with a forecast and level; and per
        policy, level and outage cost, in the columns of `gpuctl.research.chain.tables`.

    Raises:
        InputError: some jobs are larger than the cluster, or there are too few starts.
    """
    check_size(log, evaluation.size)
    past, later = starts(evaluation, log)
    trial = Trial(log, evaluation)
    learnt = _lessons(trial, past, progress)
    scored = [trial.start(begin) for begin in later]

    def tried(name: str, rule: Rule, took: float | None) -> PolicyOutcomes:
        chains = [trial.chain(at, start, name, rule) for at, start in zip(later, scored, strict=True)]
        return policy_outcomes(chains, took)

    found: dict[str, PolicyOutcomes] = {}
    priced: dict[str, Callable[[float], Rule]] = {}
    aimed: dict[str, float] = {}
    for done, name in enumerate(dict.fromkeys(("reactive", *evaluation.policies))):
        progress(name, done, len(evaluation.policies) + 1)
        begin = time.process_time()
        priced[name] = _priced(name, learnt, evaluation.outage_cost, saved, progress)
        aimed[name] = _aimed(name, learnt, evaluation)
        rule = priced[name](aimed[name])
        took = None
        if name in {*LEARN, *NETS} and learnt is not None:
            took = time.process_time() - begin + learnt.cpu_s + (learnt.forecasts_s if name in FORESEE else 0)
        found[name] = tried(name, rule, took)
    reactive = found["reactive"]
    days = (np.array(later) - later[0]) // DAY_S
    of_level = {level: (reactive.down_h > low) & (reactive.down_h <= high) for level, low, high in LEVELS}
    table = [
        {"policy": name, "level": level}
        | _figures(found[name], reactive, days, evaluation.outage_cost, at)
        | {"aimed_cost": aimed[name] if name in PRICED else None}
        for name in evaluation.policies
        for level, at in of_level.items()
    ]
    forecasts = [
        row for name in evaluation.policies for row in _forecast_rows(name, priced[name](aimed[name]), scored, of_level)
    ]
    frontier: list[FrontierRow] = []
    of_cost = [
        name for name in evaluation.policies if name in GO_BY_COST or (name == SAVED and saved and not saved.priced)
    ]
    for done, name in enumerate(of_cost):
        progress("other outage costs", done, len(of_cost))
        for cost in sorted({*COSTS, aimed[name]}):
            each = found[name] if cost == aimed[name] else tried(name, priced[name](cost), None)
            frontier += _points(name, cost, each, of_level)
    for name in evaluation.policies:
        if name not in {*of_cost, "asap"}:
            frontier += _points(name, evaluation.outage_cost if name in PRICED else None, found[name], of_level)
    return (
        pl.DataFrame(table, infer_schema_length=None),
        _each({name: found[name].outcomes for name in evaluation.policies}, later),
        forecasts,
        frontier,
    )


COSTS = (0.3, 1.0, 3.0, 9.0, 30.0)
"""Further outage costs at which cost-sensitive policies run."""

GO_BY_COST = ("plan", "newsvendor", *OF_WAIT, "best")
"""Cost-sensitive policies that need no training for another outage cost, except trees."""

PRICED = (*GO_BY_COST, *OF_COST, SAVED)


def _aimed(name: str, learnt: Lessons | None, evaluation: Evaluation) -> float:
    """The outage cost that a policy uses: the user's, or less if the overlap has a bound."""
    if evaluation.max_overlap_h is None or name not in BOUNDED or learnt is None:
        return evaluation.outage_cost
    apart = -(-evaluation.arrivals_s // EVERY_S)
    return cost_within(
        name, learnt, evaluation.outage_cost, evaluation.max_overlap_h, apart=apart, a_day=DAY_S // EVERY_S
    )


def _priced(
    name: str, learnt: Lessons | None, cost: float, saved: Model | None, progress: Callable[[str, int, int], None]
) -> Callable[[float], Rule]:  # fmt: skip
    """The rule of a policy for each outage cost; trains a net here, for `cost` if it serves only one."""
    if name == SAVED and saved is not None:
        return saved.rule
    if name in NETS and learnt is not None:
        brain = net_training.train(name, learnt, cost, progress=progress)
        return lambda c: rule_of(brain, c)
    return cache(lambda c: trained(name, learnt, c))


def _points(
    name: str, cost: float | None, found: PolicyOutcomes, of_level: dict[str, NDArray[np.bool_]]
) -> list[FrontierRow]:
    return [
        FrontierRow(name, level, cost, float(found.over_h[at].mean()), float(found.down_h[at].mean()))
        for level, at in of_level.items()
        if at.any()
    ]


FORESEE = ("newsvendor", *NETS)
"""Policies that use forecasts."""


def _lessons(trial: Trial, past: list[int], progress: Callable[[str, int, int], None]) -> Lessons | None:
    """Training data of the requested policies, if any of them learns."""
    wanted = set(trial.evaluation.policies)
    if not wanted & {*LEARN, *NETS}:
        return None
    return lessons(
        map(trial.start, past), bool(wanted & set(FORESEE)), lambda done: progress("training", done, len(past)),
        before="transformer" in wanted,
    )  # fmt: skip


def _each(outcomes: dict[str, list[list[Outcome]]], later: list[int]) -> pl.DataFrame:
    rows = [
        {"policy": name, "start_s": second, "hand_over": k, "p_end_s": o.p_end_s, "s_submit_s": o.s_submit_s,
         "s_start_s": o.s_start_s, "interruption_s": o.interruption_s}
        for name, chains in outcomes.items()
        for second, chain in zip(later, chains, strict=True)
        for k, o in enumerate(chain, 1)
    ]  # fmt: skip
    return pl.DataFrame(rows).with_columns(
        pl.from_epoch("start_s").dt.strftime("%Y-%m-%dT%H:%M:%S").alias("start")
    ).drop("start_s")  # fmt: skip


def _forecast_rows(
    name: str, rule: Rule, scored: list[Start], of_level: dict[str, NDArray[np.bool_]]
) -> list[ForecastRow]:
    """Score the quantile that a rule aims at, over hourly looks at the starts of each level."""
    if rule.wait_h is None or rule.quantile is None:
        return []
    waits, quantiles = [], []
    for start in scored:
        at = hourly(start)
        rows, wait = look(start, at, waits=True)
        waits.append(wait / 60)
        quantiles.append(rule.wait_h(start, at, rows))
    q = rule.quantile
    table = []
    for level, at_level in of_level.items():
        some = np.flatnonzero(at_level).tolist()
        y, forecast = (np.concatenate([each[k] for k in some] or [np.zeros(0)]) for each in (waits, quantiles))
        off = y - forecast
        means: tuple[float | None, ...] = (None,) * 3
        if y.size:
            loss = float(np.maximum(q * off, (q - 1) * off).mean())
            means = 100 * float((off <= 0).mean()), loss, float(y.mean())
        table.append(ForecastRow(name, level, y.size, q, *means))
    return table


def _figures(
    found: PolicyOutcomes, reactive: PolicyOutcomes, days: NDArray[np.int64], cost: float, at: NDArray[np.bool_]
) -> dict[str, Any]:
    """The figures of one policy at one level, with intervals by bootstrap over days."""
    if not at.any():
        return {"starts": 0} | dict.fromkeys(FIGURES) | {"train_s": found.train_s}
    down, over, zero, base, days = found.down_h[at], found.over_h[at], found.zero[at], reactive.down_h[at], days[at]
    blocks, number = np.unique(days, return_inverse=True)
    drawn = np.random.Generator(np.random.PCG64(SEED)).integers(0, blocks.size, (RESAMPLES, blocks.size))
    sums = {
        name: np.bincount(number, weights=values)[drawn].sum(axis=1)
        for name, values in (("n", np.ones(down.size)), ("down", down), ("over", over), ("zero", zero), ("base", base))
    }
    several = blocks.size > 1
    return {
        "starts": down.size,
        "interruption_h": down.mean(),
        "reduction_pct": 100 * (1 - down.sum() / base.sum()) if base.sum() else None,
        "zero_pct": 100 * zero.mean(),
        "overlap_h": over.mean(),
        "cost_h": cost * down.mean() + over.mean(),
        **_ends("interruption", "h", sums["down"] / sums["n"], several),
        **_ends(
            "reduction", "pct", 100 * (1 - sums["down"] / np.where(sums["base"] > 0, sums["base"], np.nan)), several
        ),
        **_ends("zero", "pct", 100 * sums["zero"] / sums["n"], several),
        **_ends("overlap", "h", sums["over"] / sums["n"], several),
        **_ends("cost", "h", (cost * sums["down"] + sums["over"]) / sums["n"], several),
        "train_s": found.train_s,
    }


def _ends(name: str, unit: str, values: Floats, several: bool) -> dict[str, float | None]:
    known = values[np.isfinite(values)]
    ends = np.quantile(known, [0.025, 0.975]).tolist() if known.size and several else (None, None)
    return {f"{name}_low_{unit}": ends[0], f"{name}_high_{unit}": ends[1]}


FIGURES = (
    "interruption_h", "reduction_pct", "zero_pct", "overlap_h", "cost_h", "interruption_low_h", "interruption_high_h",
    "reduction_low_pct", "reduction_high_pct", "zero_low_pct", "zero_high_pct",
    "overlap_low_h", "overlap_high_h", "cost_low_h", "cost_high_h",
)  # fmt: skip


def next_midnight(second: int) -> int:
    """The first midnight at or after a second."""
    return -(-second // DAY_S) * DAY_S
