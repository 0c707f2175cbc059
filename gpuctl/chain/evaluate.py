"""Policies side by side: what they learn from starts before a date, and what comes of them on starts after it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.chain.episode import ARRIVALS_S, DAY_S, WARM_UP_S, Pair, Situation
from gpuctl.chain.log import check_size
from gpuctl.chain.policies import LEARN, NAMES, Start, lessons, start_of, trained
from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.spelling import meant

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpuctl.chain.log import Log

    Floats = NDArray[np.float64]

EVERY_S = 4 * 3600
"""From one start to the next."""

LEVELS = (("all", -np.inf, np.inf), ("light", -np.inf, 2.0), ("medium", 2.0, 12.0), ("heavy", 12.0, np.inf))
"""By the hours of interruption of ``reactive``: more than the first number, at most the second."""

RESAMPLES, SEED = 1000, 1
FEWEST_STARTS = 30
"""To learn from; five days."""


@dataclass(frozen=True)
class Asked:
    """What is to be evaluated.

    Attributes:
        size: nodes of the cluster.
        pair: what P and S ask for.
        policies: names of `NAMES`.
        split_s: starts from then on are for the score, those whose days end before it are to learn from.
        from_s: the first start to learn from.
        outage_cost: of an hour of interruption, an hour of overlap costing 1.
    """

    size: int
    pair: Pair
    policies: tuple[str, ...]
    split_s: int
    from_s: int
    outage_cost: float


def policy_names(text: str) -> tuple[str, ...]:
    """The names of a list with commas.

    Raises:
        UsageError: one of them is none.
    """
    names = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for name in names:
        if name not in NAMES:
            raise UsageError(f"--policy: there is no chain policy {name!r}", hint=meant(name, NAMES))
    if not names:
        raise UsageError("--policy names none", hint=f"known: {', '.join(NAMES)}")
    return names


def starts(asked: Asked, log: Log) -> tuple[list[int], list[int]]:
    """Seconds of the starts to learn from, and of those for the score; a start's five days lie within its own part.

    Raises:
        InputError: there are too few of either.
    """
    past = list(range(asked.from_s, asked.split_s - ARRIVALS_S + 1, EVERY_S))
    later = list(range(asked.split_s, int(log.submit_s[-1]) - ARRIVALS_S + 1, EVERY_S))
    if not later:
        raise InputError(
            f"{log.name}: no start from the split on has five days of submissions after it",
            hint="name an earlier --split",
        )
    if len(past) < FEWEST_STARTS and set(asked.policies) & set(LEARN):
        raise InputError(
            f"{log.name}: {len(past)} starts before the split to learn from, fewer than {FEWEST_STARTS}",
            hint="name a later --split, or policies that do not learn: reactive, avg",
        )
    return past, later


def run(
    log: Log, asked: Asked, tell: Callable[[str, int, int], None] = lambda *_: None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Evaluate; the same log and wishes give the same figures, but for ``train_s``.

    Args:
        log: the trace.
        asked: what is wanted.
        tell: called with what is under way, how much of it is done, of how much.

    Returns:
        one row a policy and level, and one a policy and start, in the columns of `gpuctl.chain.tables`.

    Raises:
        InputError: jobs that are larger than the cluster, or too few starts.
    """
    check_size(log, asked.size)
    past, later = starts(asked, log)

    def at(begin: int) -> Start:
        return start_of(Situation(log, begin, asked.size, asked.pair, p_submit_s=WARM_UP_S), begin)

    learnt = lessons([at(begin) for begin in past], tell) if set(asked.policies) & set(LEARN) else None
    scored = [at(begin) for begin in later]
    share = asked.outage_cost / (1 + asked.outage_cost)
    rows: list[dict[str, Any]] = []
    found: dict[str, tuple[Floats, float | None]] = {}
    for done, name in enumerate(dict.fromkeys(("reactive", *asked.policies))):
        tell(name, done, len(asked.policies) + 1)
        begin = time.process_time()
        rule = trained(name, learnt, share)
        took = time.process_time() - begin + learnt.cpu_s if name in LEARN and learnt is not None else None
        outcomes = [start.situation.outcome(start.situation.begun(), rule(start)) for start in scored]
        found[name] = np.array([outcome.interruption_s for outcome in outcomes]) / 3600, took
        if name in asked.policies:
            rows += [
                {"policy": name, "start_s": second, "p_end_s": o.p_end_s, "s_submit_s": o.s_submit_s,
                 "s_start_s": o.s_start_s, "interruption_s": o.interruption_s}
                for second, o in zip(later, outcomes, strict=True)
            ]  # fmt: skip
    reactive = found["reactive"][0]
    days = (np.array(later) - later[0]) // DAY_S
    table = [
        {"policy": name, "level": level} | _figures(*found[name], reactive, days, asked.outage_cost, low, high)
        for name in asked.policies
        for level, low, high in LEVELS
    ]
    each = pl.DataFrame(rows).with_columns(
        pl.from_epoch("start_s").dt.strftime("%Y-%m-%dT%H:%M:%S").alias("start")
    ).drop("start_s")  # fmt: skip
    return pl.DataFrame(table, infer_schema_length=None), each


def _figures(  # noqa: PLR0917 - what each is, the call says
    r: Floats, took: float | None, reactive: Floats, days: NDArray[np.int64], cost: float, low: float, high: float
) -> dict[str, Any]:
    """The figures of one policy at one level, with intervals by bootstrap over days."""
    at = (reactive > low) & (reactive <= high)
    r, reactive, days = r[at], reactive[at], days[at]
    if not r.size:
        return {"starts": 0} | dict.fromkeys(FIGURES) | {"train_s": took}
    down, over, base = np.maximum(r, 0), np.maximum(-r, 0), np.maximum(reactive, 0)
    blocks, number = np.unique(days, return_inverse=True)
    drawn = np.random.Generator(np.random.PCG64(SEED)).integers(0, blocks.size, (RESAMPLES, blocks.size))
    sums = {
        name: np.bincount(number, weights=values)[drawn].sum(axis=1)
        for name, values in (("n", np.ones(r.size)), ("down", down), ("over", over), ("base", base))
    }
    several = blocks.size > 1
    return {
        "starts": r.size,
        "interruption_h": down.mean(),
        "reduction_pct": 100 * (1 - down.sum() / base.sum()) if base.sum() else None,
        "zero_pct": 100 * (r <= 0).mean(),
        "overlap_h": over.mean(),
        "cost_h": cost * down.mean() + over.mean(),
        **_ends("interruption", "h", sums["down"] / sums["n"], several),
        **_ends(
            "reduction", "pct", 100 * (1 - sums["down"] / np.where(sums["base"] > 0, sums["base"], np.nan)), several
        ),
        **_ends("overlap", "h", sums["over"] / sums["n"], several),
        **_ends("cost", "h", (cost * sums["down"] + sums["over"]) / sums["n"], several),
        "train_s": took,
    }


def _ends(name: str, unit: str, values: Floats, several: bool) -> dict[str, float | None]:
    known = values[np.isfinite(values)]
    ends = np.quantile(known, [0.025, 0.975]).tolist() if known.size and several else (None, None)
    return {f"{name}_low_{unit}": ends[0], f"{name}_high_{unit}": ends[1]}


FIGURES = (
    "interruption_h", "reduction_pct", "zero_pct", "overlap_h", "cost_h", "interruption_low_h", "interruption_high_h",
    "reduction_low_pct", "reduction_high_pct", "overlap_low_h", "overlap_high_h", "cost_low_h", "cost_high_h",
)  # fmt: skip


def hours(text: str) -> int:
    """Minutes of a limit as ``48h``, ``90m`` or ``2d``.

    Raises:
        UsageError: it is none.
    """
    unit = {"m": 1, "h": 60, "d": 1440}.get(text[-1:], 0)
    number = text[:-1]
    if not unit or not number.isdecimal() or not number.isascii() or not 0 < int(number) * unit <= 30 * 1440:
        raise UsageError(f"--limit {text[:30]}: expected a time of at most 30 days", hint="48h, 90m or 2d")
    return int(number) * unit


def next_midnight(second: int) -> int:
    """The first midnight from that second on."""
    return -(-second // DAY_S) * DAY_S
