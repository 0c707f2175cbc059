"""What would help: another checkpoint interval, other nodes, faster detection and restarts, spare nodes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import gammaln, pdtr

from gpuctl.reliability import lemons
from gpuctl.reliability.causes import INFRASTRUCTURE
from gpuctl.reliability.intervals import DAY
from gpuctl.reliability.statistics import garwood
from gpuctl.reliability.training_time import modelled_ettr

if TYPE_CHECKING:
    from gpuctl.reliability.facts import Facts

SHORTEST_S, LONGEST_S = 1.0, 30 * DAY
WORST = (1, 2, 5)
MINUTES = (5, 10)
ENOUGH = (0.99, 0.999)
FEW = 5
"""Under so many incidents an estimate is a range only."""
EARLY_S = 600.0
CHECKS = ((30.0, 0.5), (120.0, 0.9))
"""Seconds of a health check, and the share of faults that it is assumed to find."""
FLAT = 0.01
"""Share of productive time within which an interval between checkpoints is as good as the best."""


def young(write: float, mean: float) -> float:
    """Seconds of work between checkpoints (Young 1974): `write` blocks, failures come every `mean` seconds."""
    return math.sqrt(2 * write * mean)


def daly(write: float, mean: float) -> float:
    """The higher-order interval of Daly (2006), equation 37; arguments as for `young`."""
    if write >= 2 * mean:
        return mean
    part = write / (2 * mean)
    return math.sqrt(2 * write * mean) * (1 + math.sqrt(part) / 3 + part / 9) - write


def best(write: float, mean: float) -> float:
    """The interval with the largest expected share of productive time, by golden section on its logarithm."""
    low, high = math.log(SHORTEST_S), math.log(LONGEST_S)
    golden = (math.sqrt(5) - 1) / 2

    def loss(at: float) -> float:
        exponent = (math.exp(at) + write) / mean
        return math.inf if exponent > 700 else math.log(math.expm1(exponent)) - at

    for _ in range(80):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if loss(left) < loss(right) else (left, high)
    return math.exp((low + high) / 2)


ADVICE = {
    "run": pl.String, "user": pl.String,
    **dict.fromkeys(
        (
            "gpus", "mttf_h", "write_s", "current_s", "young_s", "daly_s", "best_s", "flat_from_s", "flat_to_s",
            "waste_now_pct", "waste_best_pct",
            "saved_gpu_hours", "low", "high",
        ),
        pl.Float64,
    ),
    "basis": pl.String,
}  # fmt: skip


def checkpoint_advice(facts: Facts, runs: pl.DataFrame, restart_s: float) -> pl.DataFrame:
    """The rows of ``checkpoint_advice``: runs whose logs show the interval and the time of a write.

    Args:
        facts: of the cluster.
        runs: rows of ``ettr``, with ``width`` (nodes) and ``gpu_type``.
        restart_s: from an end to the first step of the next attempt; no part of the choice.
    """
    counts = _by_type(facts)
    rows = []
    some = runs.filter((pl.col("write_s") > 0) & pl.col("checkpoint_s").is_not_null())
    for run in some.iter_rows(named=True):
        events, days = counts.get(run["gpu_type"], (0, 0.0))
        if not events:
            continue
        low, high = (float(bound) for bound in garwood(events))
        write, now = run["write_s"], run["checkpoint_s"]
        hours = run["productive_h"] * run["gpus"]

        now_share, best_share, optimum = _shares(run, events / days, restart_s)
        writes = (write, run["write_low_s"], run["write_high_s"])
        ends = [
            _shares(run | {"write_s": w}, k / days, restart_s) for w in writes for k in (events, low, high) if w > 0
        ]
        saved = [hours * (1 / a - 1 / b) for a, b, _ in ends if a > 0 and b > 0]
        flat = _flat(run, events / days, restart_s, optimum, best_share)
        mean = DAY * days / (run["width"] * events)
        rows.append(
            {
                **{name: run[name] for name in ("run", "user", "gpus", "write_s", "basis")},
                "mttf_h": mean / 3600,
                "current_s": now,
                "young_s": young(write, mean),
                "daly_s": daly(write, mean),
                "best_s": optimum,
                "flat_from_s": flat[0],
                "flat_to_s": flat[1],
                "waste_now_pct": 100 * (1 - now_share),
                "waste_best_pct": 100 * (1 - best_share),
                "saved_gpu_hours": saved[0] if saved else None,
                "low": min(saved, default=None),
                "high": max(saved, default=None),
            }
        )
    return pl.DataFrame(rows, schema=ADVICE).sort("saved_gpu_hours", descending=True)


def _shares(run: dict[str, Any], rate: float, restart_s: float) -> tuple[float, float, float]:
    """Expected productive shares of a run with its interval and with the best one, and the latter."""
    optimum = best(run["write_s"], DAY / (run["width"] * rate))
    now, then = (
        modelled_ettr(run["width"], rate, every, run["write_s"], restart_s) or 0.0
        for every in (run["checkpoint_s"], optimum)
    )
    return now, then, optimum


def _flat(run: dict[str, Any], rate: float, restart_s: float, optimum: float, most: float) -> tuple[float, float]:
    """Between which intervals the expected share of productive time is within `FLAT` of the best."""

    def short(log_interval: float) -> float:
        share = modelled_ettr(run["width"], rate, math.exp(log_interval), run["write_s"], restart_s) or 0.0
        return most - share - FLAT

    at = math.log(optimum)
    ends = (math.log(SHORTEST_S), math.log(LONGEST_S))
    from scipy.optimize import brentq

    found = [math.exp(brentq(short, at, end)) if short(end) > 0 else math.exp(end) for end in ends]
    return found[0], found[1]


def _by_type(facts: Facts) -> dict[str | None, tuple[int, float]]:
    """Incidents of single nodes and busy node-days, by GPU type."""
    own = facts.incidents.filter(pl.col("node").is_not_null())
    k = np.bincount(own["node"].to_numpy(), minlength=facts.nodes.height)
    sums = pl.DataFrame({"kind": facts.nodes["gpu_type"], "k": k, "days": facts.busy_days}).group_by("kind").sum()
    return {kind: (int(count), float(days)) for kind, count, days in sums.iter_rows()}


WHAT_IFS = {
    "what": pl.String, "setting": pl.String, "saved_gpu_hours": pl.Float64, "low": pl.Float64, "high": pl.Float64,
    "assumption": pl.String,
}  # fmt: skip


def table(facts: Facts, spent: pl.DataFrame) -> pl.DataFrame:
    """The rows of ``reliability_whatif``; estimates overlap and do not add up."""
    by_infra = pl.col("cause").is_in(INFRASTRUCTURE)
    a = facts.attempts.select("row", "gpus", "cause", "before", "incident", "node", "start_s", "end_s")
    ended = a.filter(by_infra | pl.col("before").is_not_null()).join(spent, on="row", maintain_order="left")
    infra = ended.filter(by_infra)
    rows = [*_without_worst(facts, infra)]
    for minutes in MINUTES:
        x = 60.0 * minutes
        measured = _hours(infra.filter("measured"), pl.min_horizontal("stalled", pl.lit(x)))
        run = pl.col("end_s") - pl.col("start_s")
        most = measured + _hours(infra.filter(~pl.col("measured")), pl.min_horizontal(run, pl.lit(x)))
        rows.append(
            (
                "faster detection",
                f"{minutes} min",
                measured,
                measured,
                most,
                "the recorded ends",
            )
        )
        again = ended.filter(pl.col("measured") & pl.col("before").is_not_null())
        loads = _hours(again, pl.min_horizontal("load", pl.lit(x)))
        rows.append(("faster restart", f"{minutes} min", loads, loads, loads, "the recorded restarts with logs"))
    return pl.DataFrame([*rows, *_health_checks(facts, infra), *_spares(facts)], schema=WHAT_IFS, orient="row")


def _hours(rows: pl.DataFrame, seconds: pl.Expr) -> float:
    return float(rows.select((seconds * pl.col("gpus")).sum()).item()) / 3600


def _without_worst(facts: Facts, infra: pl.DataFrame) -> list[tuple[object, ...]]:
    """What the worst nodes' incidents cost, free of selection: chosen outside of each month, counted in it."""
    spans = [(begin, end) for _, begin, end in facts.months()]
    if len(spans) < 2:
        spans = [(0.0, facts.until / 2), (facts.until / 2, facts.until)]
    node = np.arange(facts.nodes.height)
    own = facts.incidents.filter(pl.col("node").is_not_null())
    alone = facts.failures_of_nodes.filter(pl.col("rack_fault").is_null())
    kind, gpus = lemons.groups(facts), facts.nodes["gpus"].to_numpy()
    met: dict[str, list[pl.DataFrame]] = {}
    given_up: dict[str, float] = {}
    short: set[str] = set()
    for begin, end in spans:
        inside = pl.col("at_s").is_between(begin, end, closed="left")
        failures = np.bincount(own.filter(~inside)["node"].to_numpy(), minlength=len(node))
        outside = ~pl.col("from_s").is_between(begin, end, closed="left")
        outages = np.bincount(alone.filter(outside)["node"].to_numpy(), minlength=len(node))
        busy = (
            facts.busy_days - facts.held_nodes.between(node, np.full(len(node), begin), np.full(len(node), end)) / DAY
        )
        up = facts.at_risk_s(0.0, facts.until) / DAY - facts.at_risk_s(begin, end) / DAY
        order = np.lexsort((node, -posterior(failures, busy)))
        chosen = {str(k): order[:k][failures[order[:k]] > 0] for k in WORST}
        chosen["all lemons"] = np.flatnonzero(lemons.tested(kind, (failures, busy), (outages, up)))
        short |= {setting for setting, nodes in chosen.items() if setting.isdigit() and len(nodes) < int(setting)}
        for setting, nodes in chosen.items():
            rows = own.filter(inside & pl.col("node").is_in(nodes.tolist()))
            met.setdefault(setting, []).append(rows)
            given_up[setting] = given_up.get(setting, 0.0) + float(gpus[nodes].sum()) * (end - begin) / 3600
    found: list[tuple[object, ...]] = []
    for setting, parts in met.items():
        if setting in short or not given_up[setting]:
            continue
        rows = pl.concat(parts)
        of = infra.join(rows.select("incident"), on="incident", how="semi")
        text = (
            f"chosen by the other months, {rows.height} incidents in the months counted; "
            f"gives up {given_up[setting]:,.0f} GPU-hours of capacity"
        )
        lost = _hours(of, pl.col("lost") + pl.col("stalled"))
        found.append(("without the worst nodes", setting, *_range(lost, rows.height), text))
    return found


def _range(hours: float, events: int) -> tuple[float | None, float, float]:
    """Hours that so many incidents cost, with the ends of the count's 95 % interval; few tell the range alone."""
    if not events:
        return None, 0.0, 0.0
    low, high = (float(bound) * hours / events for bound in garwood(events))
    return hours if events >= FEW else None, low, high


def posterior(count: np.ndarray, days: np.ndarray) -> np.ndarray:
    """Rates of nodes drawn to their mean: a gamma prior by maximum likelihood over the nodes (empirical Bayes).

    Args:
        count: failures of each node.
        days: exposure of each.
    """
    some = days > 0
    if not count[some].sum():
        return np.zeros(len(days))
    mean = count[some].sum() / days[some].sum()
    k, e = count[some], mean * days[some]

    def loss(log_shape: float) -> float:
        a = np.exp(log_shape)
        return -float((gammaln(a + k) - gammaln(a) + a * np.log(a) - (a + k) * np.log(a + e)).sum())

    from scipy.optimize import minimize_scalar

    shape = float(np.exp(minimize_scalar(loss, bounds=(-4.0, 9.0), method="bounded").x))
    rates: np.ndarray = np.where(some, mean * (count + shape) / (mean * days + shape), 0.0)
    return rates


def _health_checks(facts: Facts, infra: pl.DataFrame) -> list[tuple[object, ...]]:
    """A check of the nodes before each start: failures soon after it do not happen, each start waits for the check."""
    run = pl.col("end_s") - pl.col("start_s")
    early = infra.filter((run <= EARLY_S) & pl.col("node").is_not_null())
    if early.is_empty():
        return []
    lost = _hours(early, run)
    starts = float(facts.attempts["gpus"].sum())
    found: list[tuple[object, ...]] = []
    for seconds, share in CHECKS:
        cost = seconds * starts / 3600
        saved, low, high = _range(share * lost, early.height)
        text = (
            f"{early.height} failures within {EARLY_S / 60:g} min of a start on nodes with evidence; "
            f"{cost:,.0f} GPU-hours for checks are subtracted"
        )
        net = None if saved is None else saved - cost
        setting = f"{seconds:g} s, finds {100 * share:g} %"
        found.append(("health check before each start", setting, net, low - cost, high - cost, text))
    return found


def spares_for(down: float, width: int, share: float) -> int:
    """The fewest spare nodes that suffice for a share of the time, if a Poisson number of `width` nodes is down.

    Args:
        down: nodes down on average: nodes x failures a node-day x days of a repair.
        width: nodes in use.
        share: of the time.
    """
    return next(k for k in range(width + 1) if pdtr(k, down) >= share or k == width)


def _spares(facts: Facts) -> list[tuple[object, ...]]:
    """How many spare nodes the largest gang needs, if nodes down are a Poisson count."""
    closed = facts.failures_of_nodes.filter(~pl.col("open"))
    up = float(facts.up_days.sum())
    if closed.is_empty() or not up:
        return []
    repair = float(closed.select((pl.col("to_s") - pl.col("from_s")).mean()).item()) / DAY
    width = int(facts.attempts["width"].max())  # type: ignore[arg-type]
    down = width * closed.height / up * repair
    found: list[tuple[object, ...]] = []
    for share in ENOUGH:
        spares = spares_for(down, width, share)
        text = f"enough for {100 * share:g} % of the time; {down:.2f} of {width} nodes are down on average"
        found.append(("spare nodes", f"{spares} for {width}", None, None, None, text))
    return found
