"""Nodes that fail more often than the others of their GPU type, by an exact test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.reliability.statistics import adjusted, at_least
from gpuctl.slurm.hostlist import expand

if TYPE_CHECKING:
    from gpuctl.reliability.facts import Facts

LEVEL, LEAST = 0.05, 3
SUSPECT, SUSPECT_LEAST = 0.2, 2


def table(facts: Facts) -> pl.DataFrame:
    """The rows of ``lemon_nodes``, the worst node first."""
    nodes, size = facts.nodes, facts.nodes.height
    alone = facts.incidents.filter(pl.col("node").is_not_null())
    failures = np.bincount(alone["node"].to_numpy(), minlength=size)
    own = facts.outages.filter(~pl.col("planned") & pl.col("rack_fault").is_null())
    outages = np.bincount(own["node"].to_numpy(), minlength=size)
    kind = nodes["gpu_type"].fill_null("")
    tests = [_test(kind, count, days) for count, days in ((failures, facts.busy_days), (outages, facts.up_days))]
    p = np.concatenate([test[0] for test in tests])
    q = adjusted(p).reshape(2, size)
    counts = np.stack([failures, outages])
    both = p.reshape(2, size)
    best = both.argmin(axis=0)
    flagged = ((q <= LEVEL) & (counts >= LEAST)).any(axis=0)
    suspect = ((q <= SUSPECT) & (counts >= SUSPECT_LEAST)).any(axis=0)
    expected = tests[0][1]
    little = 3 * expected < 1
    verdict = np.select([flagged, suspect, little], ["yes", "suspect", "too little seen"], "no")
    pick = np.arange(size)
    hard = facts.xids.filter(pl.col("class") == "hardware")
    met = facts.attempts.filter(pl.col("node").is_not_null())
    lost = met.with_columns(gpu_h=pl.col("gpus") * (pl.col("end_s") - pl.col("start_s")) / 3600)

    def count(rows: pl.DataFrame, weights: np.ndarray | None = None) -> np.ndarray:
        return np.bincount(rows["node"].to_numpy(), weights=weights, minlength=size)

    excluded = _excluded(facts)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = counts[best, pick] / np.stack([test[1] for test in tests])[best, pick]
    result = pl.DataFrame(
        {
            "machine": nodes["machine"],
            "gpu_type": nodes["gpu_type"],
            "lemon": verdict,
            "failures": failures,
            "node_days": facts.busy_days,
            "expected": expected,
            "ratio": pl.Series(ratio).fill_nan(None),
            "p": both.min(axis=0),
            "q": q.min(axis=0),
            "evidence": np.where(best == 0, "failures", "outages"),
            "xids": count(hard),
            "outages": outages,
            "outages_expected": tests[1][1],
            "excluded_by": [excluded.get(name, 0) for name in nodes["machine"]],
            "multi_node_failures": count(met.filter(pl.col("width") > 1)),
            "single_node_failures": count(met.filter(pl.col("width") == 1)),
            "gpu_hours_lost": count(lost, lost["gpu_h"].to_numpy()),
        }
    )
    order = pl.col("lemon").replace_strict(
        {"yes": 0, "suspect": 1, "no": 2, "too little seen": 3}, return_dtype=pl.Int8
    )
    return result.sort(order, "p", "machine")


def _test(kind: pl.Series, count: np.ndarray, days: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each node the chance of as many events or more, given its type's total, and how many are expected."""
    sums = pl.DataFrame({"kind": kind, "k": count, "days": days}).with_columns(
        total=pl.col("k").sum().over("kind"), share=(pl.col("days") / pl.col("days").sum().over("kind")).fill_nan(0.0)
    )
    total, share = sums["total"].to_numpy(), sums["share"].to_numpy()
    return at_least(count, total, share), total * share


def _excluded(facts: Facts) -> dict[str, int]:
    """How many users excluded each node."""
    given = facts.options.filter(pl.col("option") == "exclude").join(
        facts.attempts.select("job", "user").unique("job"), on="job"
    )
    users: dict[str, set[str]] = {}
    for value, user in given.select("value", "user").iter_rows():
        for name in _names(value):
            users.setdefault(name, set()).add(user)
    return {name: len(of) for name, of in users.items()}


def _names(value: str) -> list[str]:
    try:
        return list(expand(value))
    except ValueError:
        return []
