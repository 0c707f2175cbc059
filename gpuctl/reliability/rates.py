"""Failures per node-day, by group, with exact intervals."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.reliability.intervals import DAY
from gpuctl.reliability.statistics import alike, garwood

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.reliability.facts import Facts

MONTH = 30.4375 * DAY
OVERDISPERSED, SPREAD_NODES, DRAWS = 1.5, 5, 1000
_AT_ONCE = 1_000_000
AGES = ((0, 1), (1, 3), (3, 6), (6, 12), (12, 24), (24, None))
"""Months since a node's installation."""


def age_label(low: int, high: int | None) -> str:
    """The name of a class of age."""
    return f"over {low} months" if high is None else f"{low} to {high} months"


def table(facts: Facts) -> pl.DataFrame:
    """The rows of ``failure_rates``."""
    nodes, days = facts.nodes, facts.busy_days
    incidents = facts.incidents
    alone = incidents.filter(pl.col("node").is_not_null())
    own = np.bincount(alone["node"].to_numpy(), minlength=nodes.height)
    unclear = facts.unclear.select("row").join(facts.places.select("row", "node"), on="row")
    rows: list[pl.DataFrame] = []

    add = partial(_add, rows)
    gpus = nodes["gpus"].to_numpy().astype(float)
    total, gpu_total = np.array([days.sum()]), np.array([(days * gpus).sum()])
    high = incidents.height + facts.unclear.height
    one = np.array([1.0])
    spread = [_spread(own, days)]
    add("all", ["all"], incidents.height * one, total, high * one, gpu_total, test=False, spread=spread)
    outages = facts.failures_of_nodes
    if facts.has_events:
        up = facts.up_days
        # an outage of a rack's nodes together is one
        k = (
            outages.filter(pl.col("rack_fault").is_null()).height
            + outages["rack_fault"].n_unique()
            - bool(outages["rack_fault"].null_count())
        )
        add(
            "all",
            ["outages"],
            k * one,
            np.array([up.sum()]),
            k * one,
            np.array([(up * gpus).sum()]),
            "events",
            test=False,
        )
    for by, column in (("cause", "cause"), ("component", "component")):
        counted = (
            incidents.group_by(pl.col(column).fill_null("not known"))
            .len()
            .sort("len", column, descending=[True, False])
        )
        n = counted.height
        met = counted["len"].to_numpy()
        add(by, counted[column].to_list(), met, np.repeat(total, n), met, np.repeat(gpu_total, n), test=False)
    touched = np.bincount(unclear["node"].to_numpy(), minlength=nodes.height)
    add("node", nodes["machine"].to_list(), own.astype(float), days, own + touched, days * gpus)
    for by, column in (("gpu_type", "gpu_type"), ("rack", "rack")):
        label = nodes[column].fill_null("not known")
        names = label.unique().sort().to_list()
        which = label.replace_strict(names, range(len(names)), return_dtype=pl.Int64).to_numpy()
        of_unclear = unclear.with_columns(which=pl.Series(which[unclear["node"].to_numpy()], dtype=pl.Int64))
        more = np.bincount(of_unclear.unique(["row", "which"])["which"].to_numpy(), minlength=len(names))
        sums = [np.bincount(which, weights=w, minlength=len(names)) for w in (own, days, days * gpus)]
        spread = [_spread(own[which == i], days[which == i]) for i in range(len(names))]
        add(by, names, sums[0], sums[1], sums[0] + more, sums[2], spread=spread)
    _ages(facts, alone, add)
    _sizes(facts, add)
    _months(facts, add)
    return pl.concat(rows, how="vertical_relaxed").with_columns(
        pl.col("per_1000_node_days", "low", "high", "per_gpu_year").fill_nan(None).replace(float("inf"), None)
    )


def _add(  # noqa: PLR0917 - one group of rows
    rows: list[pl.DataFrame],
    by: str,
    group: list[str],
    k: np.ndarray,
    d: np.ndarray,
    high: np.ndarray,
    gpu_days: np.ndarray,
    basis: str = "attempts",
    *,
    test: bool = True,
    spread: list[tuple[float | None, float | None, float | None]] | None = None,
) -> None:
    """Add the rows of one comparison: failures `k` over node-days `d` of each group."""
    k, p = k.astype(float), None
    more = spread or [(None, None, None)] * len(group)
    if test:
        p = alike(k, d)
    low, high_k = garwood(k)
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = {
            "by": [by] * len(group),
            "group": group,
            "failures": k.astype(np.int64),
            "failures_high": high.astype(np.int64),
            "node_days": d,
            "per_1000_node_days": 1000 * k / d,
            "low": 1000 * low / d,
            "high": 1000 * high_k / d,
            "per_gpu_year": k * 365.25 / gpu_days,
            **{
                name: pl.Series([each[i] for each in more], dtype=pl.Float64)
                for i, name in enumerate(("dispersion", "spread_low", "spread_high"))
            },
            "homogeneity_p": pl.Series([p] * len(group), dtype=pl.Float64),
            "basis": [basis] * len(group),
        }
    rows.append(pl.DataFrame(columns))


def _spread(k: np.ndarray, days: np.ndarray) -> tuple[float | None, float | None, float | None]:
    """How unlike nodes are: Pearson's chi-square over its degrees, and if large an interval of their mean rate.

    The interval is of a thousand draws of as many nodes with replacement: a node that fails often may as well not have
    been there, or twice.
    """
    k, days = k[days > 0], days[days > 0]
    if len(k) < SPREAD_NODES or not k.sum():
        return None, None, None
    expected = k.sum() * days / days.sum()
    dispersion = float(((k - expected) ** 2 / expected).sum() / (len(k) - 1))
    if dispersion <= OVERDISPERSED:
        return dispersion, None, None
    rng, rates, at_once = np.random.default_rng(0), np.empty(DRAWS), max(1, _AT_ONCE // len(k))
    for i in range(0, DRAWS, at_once):
        drawn = rng.integers(0, len(k), (min(at_once, DRAWS - i), len(k)))
        rates[i : i + at_once] = k[drawn].sum(axis=1) / days[drawn].sum(axis=1)
    low, high = 1000 * np.quantile(rates, (0.025, 0.975))
    return dispersion, float(low), float(high)


def _ages(facts: Facts, alone: pl.DataFrame, add: Callable[..., None]) -> None:
    installed = facts.nodes["installed_s"].to_numpy()
    known = np.flatnonzero(~np.isnan(installed.astype(float)))
    if not len(known):
        return
    of = {int(node): float(installed[node]) for node in known}
    ages = [(at - of[node]) / MONTH for node, at in alone.select("node", "at_s").iter_rows() if node in of]
    labels, k, d, gpu_days = [], [], [], []
    for low, high in AGES:
        begin = np.clip(installed[known] + low * MONTH, 0, facts.until)
        end = (
            np.full(len(known), facts.until)
            if high is None
            else np.clip(installed[known] + high * MONTH, 0, facts.until)
        )
        part = facts.held_nodes.between(known, begin, end) / DAY
        labels.append(age_label(low, high))
        k.append(sum(low <= age < (high or np.inf) for age in ages))
        d.append(part.sum())
        gpu_days.append((part * facts.nodes["gpus"].to_numpy()[known]).sum())
    some = [i for i, part in enumerate(d) if part > 0]
    met, days, gpu = (np.array(values, float)[some] for values in (k, d, gpu_days))
    add("age", [labels[i] for i in some], met, days, met, gpu)


def _sizes(facts: Facts, add: Callable[..., None]) -> None:
    sized = facts.sizes()
    d = (sized["nodes"] * sized["run_h"] / 24).to_numpy()
    k = sized["interruptions"].to_numpy().astype(float)
    add(
        "gpus",
        [f"{gpus:g}" for gpus in sized["gpus"]],
        k,
        d,
        sized["interruptions_high"].to_numpy(),
        (sized["gpus"] * sized["run_h"] / 24).to_numpy(),
    )


def _months(facts: Facts, add: Callable[..., None]) -> None:
    months = facts.months()
    node = np.arange(facts.nodes.height)
    k = np.bincount(
        np.searchsorted([m[2] for m in months], facts.incidents["at_s"].to_numpy(), "right").clip(max=len(months) - 1),
        minlength=len(months),
    ).astype(float)
    parts = [
        facts.held_nodes.between(node, np.full(len(node), begin), np.full(len(node), end)) / DAY
        for _, begin, end in months
    ]
    gpus = facts.nodes["gpus"].to_numpy()
    add(
        "month",
        [m[0] for m in months],
        k,
        np.array([p.sum() for p in parts]),
        k,
        np.array([(p * gpus).sum() for p in parts]),
    )
