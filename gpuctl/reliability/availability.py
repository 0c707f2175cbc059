"""Node-hours in and out of service by month, and times to repair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from scipy.special import gammainc, gammaincc

from gpuctl.reliability.statistics import poisson_quantile
from gpuctl.reliability.survival import kaplan_meier_quantile

if TYPE_CHECKING:
    from gpuctl.reliability.facts import Facts

EARLIER = 3
"""Months that a control limit needs before it."""
LIMITS = (0.00135, 0.99865)
MANY_OPEN = 0.1
"""With more of the outages still open, quantiles of repairs count these as censored (Kaplan and Meier 1958)."""


def table(facts: Facts) -> pl.DataFrame:
    """The rows of ``availability``: a month each, then ``all``; without node events only the node-hours are known."""
    rows = []
    counts: list[tuple[int, float]] = []
    seen: set[str] = set()
    months = facts.months()
    for name, begin, end in [*months, ("all", 0.0, facts.until)]:
        row = _row(facts, name, begin, end)
        if name != "all" and facts.has_events:
            new, total = _new_reasons(facts, begin, end, seen)
            row |= _limits(
                counts,
                row["outages"],
                row["node_hours"],
                fresh=bool(seen) and total > 0 and new > total / 2,
                judged=len(months) - EARLIER,
            )
            seen |= _reasons(facts, begin, end)
            counts.append((row["outages"], row["node_hours"]))
        rows.append(row)
    return pl.DataFrame(rows, schema=_SCHEMA)


_SCHEMA = {
    "period": pl.String,
    "node_hours": pl.Float64,
    "up_pct": pl.Float64,
    "down_unplanned_h": pl.Float64,
    "down_planned_h": pl.Float64,
    "outages": pl.Int64,
    "mttr_h": pl.Float64,
    "repair_p50_h": pl.Float64,
    "repair_p90_h": pl.Float64,
    "lower_limit": pl.Float64,
    "upper_limit": pl.Float64,
    "signal": pl.String,
}


def _row(facts: Facts, name: str, begin: float, end: float) -> dict[str, Any]:
    node_hours = float(facts.at_risk_s(begin, end).sum()) / 3600
    if not facts.has_events:
        return {"period": name, "node_hours": node_hours}
    rows = facts.outages
    inside = pl.min_horizontal("to_s", pl.lit(end)) - pl.max_horizontal("from_s", pl.lit(begin))
    hours = rows.with_columns(h=inside.clip(lower_bound=0) / 3600)
    planned, unplanned = (float(hours.filter(pl.col("planned") == flag)["h"].sum()) for flag in (True, False))
    began = facts.failures_of_nodes.filter(pl.col("from_s").is_between(begin, end, closed="left"))
    times, closed = ((began["to_s"] - began["from_s"]) / 3600).to_numpy(), ~began["open"].to_numpy()
    repairs = times[closed]
    quantiles = np.quantile(repairs, (0.5, 0.9)).tolist() if len(repairs) else [None, None]
    if len(times) and (~closed).mean() > MANY_OPEN:
        # long repairs are those still open: without them the median would be too short
        quantiles = [kaplan_meier_quantile(times, closed, share) for share in (0.5, 0.9)]
    return {
        "period": name,
        "node_hours": node_hours,
        "up_pct": 100 * (1 - (planned + unplanned) / node_hours),
        "down_unplanned_h": unplanned,
        "down_planned_h": planned,
        "outages": began.height,
        "mttr_h": float(repairs.mean()) if len(repairs) else None,
        "repair_p50_h": quantiles[0],
        "repair_p90_h": quantiles[1],
    }


def _limits(
    before: list[tuple[int, float]], outages: int, hours: float, *, fresh: bool, judged: int
) -> dict[str, object]:
    """Control limits for the outages of a month: Poisson quantiles at the rate of the months before.

    A signal is rarer than a month beyond a limit where several months are judged: all together have one by chance as
    often as one month is beyond a limit (Bonferroni).
    """
    if len(before) < EARLIER:
        return {}
    mean = sum(k for k, _ in before) / sum(h for _, h in before) * hours
    low, high = (poisson_quantile(level, mean) for level in LIMITS)
    level = LIMITS[0] / max(judged, 1)
    above = outages > 0 and gammainc(outages, mean) <= level
    below = gammaincc(outages + 1, mean) <= level
    signal = "above" if above else "below" if below else None
    return {"lower_limit": low, "upper_limit": high, "signal": "new check" if signal and fresh else signal}


def _reasons(facts: Facts, begin: float, end: float) -> set[str]:
    rows = facts.failures_of_nodes.filter(pl.col("from_s").is_between(begin, end, closed="left"))
    return set(rows["reason"].drop_nulls())


def _new_reasons(facts: Facts, begin: float, end: float, seen: set[str]) -> tuple[int, int]:
    rows = facts.failures_of_nodes.filter(pl.col("from_s").is_between(begin, end, closed="left"))
    reasons = rows["reason"].drop_nulls()
    return sum(reason not in seen for reason in reasons), len(reasons)
