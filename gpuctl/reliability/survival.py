"""Mean time to failure of attempts by their size: measured with censoring, and modelled from the rate of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.reliability.causes import INFRASTRUCTURE
from gpuctl.reliability.statistics import at_least, garwood, two_sided

if TYPE_CHECKING:
    from gpuctl.reliability.facts import Facts

PROJECTED = (2, 4, 16)
"""Sizes that were not seen, as multiples of the largest."""
CHECK_LEAST = 20
"""Failures of a size for which a constant rate is checked."""
EARLY_H = 0.5


def kaplan_meier(
    hours: np.ndarray, failed: np.ndarray, entered: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The Kaplan-Meier curve: moments, and the share that lives on after each.

    Args:
        hours: run times.
        failed: whether the run time ended by a failure; all others are censored there.
        entered: run time at which each came under observation (left truncation); None: 0.
    """
    order = np.lexsort((~failed, hours))
    times, failed = hours[order], failed[order]
    moments, first = np.unique(times, return_index=True)
    at_risk = len(times) - first
    if entered is not None:
        at_risk = at_risk - (len(times) - np.searchsorted(np.sort(entered), moments, "left"))
    deaths = np.add.reduceat(failed.astype(float), first) if len(times) else np.zeros(0)
    return moments, np.cumprod(1 - deaths / np.maximum(at_risk, 1))


def kaplan_meier_quantile(
    hours: np.ndarray, failed: np.ndarray, share: float = 0.5, entered: np.ndarray | None = None
) -> float | None:
    """The first time by which `share` have failed, by the Kaplan-Meier curve; None where fewer do."""
    moments, curve = kaplan_meier(hours, failed, entered)
    below = np.flatnonzero(curve <= 1 - share + 1e-12)
    return float(moments[below[0]]) if len(below) else None


def not_exponential(
    hours: np.ndarray, failed: np.ndarray, entered: np.ndarray | None = None
) -> tuple[float | None, float | None]:
    """How far run times are from a constant rate of failure: (largest gap, p of the first half hour).

    The gap is that of the Kaplan-Meier curve from exp(-t / MTTF) at the quartiles of the failures. p: of failures in
    the first half hour of attempts as unlike the later rate, two-sided, exact given their sum. None with fewer than
    `CHECK_LEAST` failures.
    """
    before = np.zeros(len(hours)) if entered is None else entered
    deaths = int(failed.sum())
    if deaths < CHECK_LEAST:
        return None, None
    moments, curve = kaplan_meier(hours, failed, entered)
    total = float((hours - before).sum())
    at = np.quantile(hours[failed], (0.25, 0.5, 0.75))
    seen = curve[np.searchsorted(moments, at, "right") - 1]
    gap = float(np.abs(seen - np.exp(-at * deaths / total)).max())
    early = int((failed & (hours <= EARLY_H)).sum())
    share = float((np.minimum(hours, EARLY_H) - np.minimum(before, EARLY_H)).sum() / total)
    tails = at_least(np.array([early, deaths - early]), deaths, np.array([share, 1 - share]))
    return gap, min(1.0, 2 * float(tails.min()))


def table(facts: Facts, sizes: tuple[int, ...] = ()) -> pl.DataFrame:
    """The rows of ``mttf_by_size``: sizes seen, then projected ones."""
    seen = facts.sizes()
    days = float(facts.busy_days.sum())
    alone = facts.incidents.filter(pl.col("shared").is_null()).height
    common = facts.incidents.height - alone
    per_node = facts.gpus_per_node
    low_k, high_k = (float(bound) for bound in garwood(alone))
    attempts = facts.attempts.select(
        "gpus",
        entered_h=pl.col("entered_s") / 3600,
        life_h=(pl.col("end_s") - pl.col("start_s") + pl.col("entered_s")) / 3600,
        failed=pl.col("cause").is_in(INFRASTRUCTURE),
    )
    expected_by = _expected(facts)
    rows = []
    for one in seen.iter_rows(named=True):
        size, k, hours = one["gpus"], one["interruptions"], one["run_h"]
        own = attempts.filter(pl.col("gpus") == size)
        low, high = (float(bound) for bound in garwood(k))
        e = expected_by.get(size, 0.0)
        lives, failed, entered = (own[name].to_numpy() for name in ("life_h", "failed", "entered_h"))
        gap, early = not_exponential(lives, failed, entered)
        rows.append(
            {
                **{name: one[name] for name in ("gpus", "attempts", "run_h", "interruptions", "interruptions_high")},
                "nodes": max(1.0, size / per_node),
                "mttf_h": hours / k if k else None,
                "mttf_low_h": hours / high,
                "mttf_high_h": hours / low if k else None,
                "km_median_h": kaplan_meier_quantile(lives, failed, entered=entered),
                "km_gap": gap,
                "early_p": early,
                "expected": e,
                "fit_p": two_sided(k, e),
                "kind": "measured" if k else "modelled",
            }
        )
    largest = max(seen["gpus"].to_list(), default=0.0)
    further = {*(int(largest * factor) for factor in PROJECTED), *(s for s in sizes if s > largest)}
    rows += [
        {"gpus": float(size), "nodes": max(1.0, size / per_node), "kind": "extrapolated"} for size in sorted(further)
    ]
    hit = _common_share(facts)
    for row in rows:
        n = row["nodes"]
        if days and alone:
            row |= {
                "model_mttf_h": 24 * days / (n * alone),
                "model_low_h": 24 * days / (n * high_k),
                "model_high_h": 24 * days / (n * low_k) if low_k else None,
            }
        shared = common * hit / (facts.until / 86_400)
        total = n * alone / days + shared if days else 0
        row["with_common_h"] = 24 / total if total else None
        row["partial_node"] = bool(row["gpus"] < per_node)
    schema = {
        **dict.fromkeys(("gpus", "nodes"), pl.Float64),
        "attempts": pl.Int64,
        "run_h": pl.Float64,
        "interruptions": pl.Int64,
        "interruptions_high": pl.Int64,
        **dict.fromkeys(
            (
                "mttf_h",
                "mttf_low_h",
                "mttf_high_h",
                "km_median_h",
                "km_gap",
                "early_p",
                "model_mttf_h",
                "model_low_h",
                "model_high_h",
                "with_common_h",
                "expected",
                "fit_p",
            ),
            pl.Float64,
        ),
        "partial_node": pl.Boolean,
        "kind": pl.String,
    }
    return pl.DataFrame(rows, schema=schema)


def _expected(facts: Facts) -> dict[float, float]:
    """Interruptions that nodes' rates let expect, by an attempt's GPUs: rate of its nodes' type times their days."""
    places, sizes = facts.places, facts.attempts.select("row", size="gpus")
    days = places.select(
        "row", days=pl.Series(facts_rates(facts))[places["node"]] * (pl.col("end_s") - pl.col("start_s")) / 86_400
    )
    return dict(days.join(sizes, on="row").group_by("size").agg(pl.col("days").sum()).iter_rows())


def facts_rates(facts: Facts) -> np.ndarray:
    """Incidents of single nodes a busy node-day, of each node that of its GPU type."""
    kinds = facts.nodes["gpu_type"].fill_null("")
    own = facts.incidents.filter(pl.col("node").is_not_null())
    k = np.bincount(own["node"].to_numpy(), minlength=facts.nodes.height)
    sums = pl.DataFrame({"kind": kinds, "k": k, "days": facts.busy_days})
    return sums.select(rate=(pl.col("k").sum() / pl.col("days").sum()).over("kind").fill_nan(0.0))["rate"].to_numpy()


def _common_share(facts: Facts) -> float:
    """The share of running attempts that an incident of a rack or file system ended, on average."""
    common = facts.incidents.filter(pl.col("shared").is_not_null())
    if common.is_empty():
        return 0.0
    starts, ends = (np.sort(facts.attempts[name].to_numpy()) for name in ("start_s", "end_s"))
    at = common["at_s"].to_numpy()
    running = np.searchsorted(starts, at, "right") - np.searchsorted(ends, at, "left")
    return float(np.clip(common["attempts"].to_numpy() / np.maximum(running, 1), 0, 1).mean())
