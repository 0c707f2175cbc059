"""The part of a cluster's facts in a window of time that the user sets.

Causes, runs and incidents are found in the whole log, where their evidence is. An attempt that runs at the window's
begin is at risk from there on (left truncation), one that runs at its end has not ended (right censoring).
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from gpuctl.reliability.causes import RUNNING
from gpuctl.reliability.facts import Facts

SPENT = ("productive", "checkpoint", "load", "lost", "stalled")


def within(facts: Facts, since: float | None, until: float | None) -> Facts:
    """What is known of a window.

    Args:
        facts: of the whole log.
        since: begin, seconds since 1970; None: that of the log.
        until: end; None: that of the log.
    """
    low = max(0.0, -1.0 if since is None else since - facts.begin)
    high = min(facts.until, facts.until if until is None else until - facts.begin)
    high = max(high, low)
    if low == 0 and high == facts.until:
        return facts
    start, end = pl.col("start_s"), pl.col("end_s")
    goes_on = end > high
    inside = facts.attempts.filter((start < high) & (end > low))
    nothing = {name: pl.when(~goes_on).then(name).alias(name) for name in ("incident", "node", "evidence", "component")}
    attempts = inside.with_columns(
        *nothing.values(),
        cause=pl.when(goes_on).then(pl.lit(RUNNING)).otherwise("cause"),
        over=~goes_on & pl.col("over"),
        entered_s=pl.col("entered_s") + (low - start).clip(lower_bound=0),
    ).with_columns(pl.col("queued_s", "eligible_s", "start_s", "end_s").clip(low, high) - low)
    places = facts.places.join(inside.select("row"), on="row", how="semi", maintain_order="left")
    places = places.with_columns(pl.col("start_s", "end_s").clip(low, high) - low)
    outages = facts.outages.filter((pl.col("from_s") < high) & (pl.col("to_s") > low)).with_columns(
        earlier=pl.col("earlier") | (pl.col("from_s") < low), open=pl.col("open") | (pl.col("to_s") > high)
    )
    met = attempts.select(pl.col("incident").drop_nulls().unique())
    incidents = facts.incidents.join(met, on="incident", how="semi", maintain_order="left")
    return replace(
        facts,
        attempts=attempts,
        places=places,
        nodes=facts.nodes.with_columns(
            pl.col("installed_s") - low, since_s=(pl.col("since_s") - low).clip(lower_bound=0)
        ),
        outages=outages.with_columns(pl.col("from_s", "to_s").clip(low, high) - low),
        xids=facts.xids.filter(pl.col("ts_s").is_between(low, high, closed="left")).with_columns(pl.col("ts_s") - low),
        incidents=incidents.with_columns(pl.col("at_s").clip(low, high) - low),
        begin=facts.begin + low,
        until=high - low,
    )


def spent_within(spent: pl.DataFrame, facts: Facts, seen: Facts) -> pl.DataFrame:
    """How attempts spent the part of their time in a window.

    An attempt loads first; what it loses, and the time in which it is dead, are its last; its work and its checkpoints
    are spread evenly between.

    Args:
        spent: as `gpuctl.reliability.training_time.Accounts.spent` returns it, of whole attempts.
        facts: of the whole log.
        seen: of the window, from `within`.
    """
    if seen is facts:
        return spent
    whole = facts.attempts.select("row", whole=pl.col("end_s") - pl.col("start_s"), entered="entered_s")
    part = seen.attempts.select("row", first=pl.col("entered_s"), ran=pl.col("end_s") - pl.col("start_s"))
    rows = spent.join(part, on="row", how="inner", maintain_order="left").join(whole, on="row", how="left")
    first = pl.col("first") - pl.col("entered")
    last = first + pl.col("ran")

    def overlap(begin: pl.Expr, end: pl.Expr) -> pl.Expr:
        return (pl.min_horizontal(end, last) - pl.max_horizontal(begin, first)).clip(lower_bound=0)

    zero = pl.lit(0.0)
    dead_from = pl.col("whole") - pl.col("stalled")
    lost_from = dead_from - pl.col("lost")
    between = lost_from - pl.col("load")
    share = pl.when(between > 0).then(overlap(pl.col("load"), lost_from) / between).otherwise(zero)
    parts = {
        "load": overlap(zero, pl.col("load")),
        "lost": overlap(lost_from, dead_from),
        "stalled": overlap(dead_from, pl.col("whole")),
        "productive": share * pl.col("productive"),
        "checkpoint": share * pl.col("checkpoint"),
    }
    ends = {
        name: overlap(dead_from - pl.col(name), dead_from) for name in ("lost_low", "lost_high")
    }  # fmt: skip
    scale = pl.when(pl.col("whole") > 0).then(pl.col("ran") / pl.col("whole")).otherwise(zero)
    bounds = {
        name: pl.when("measured").then(parts["productive"]).otherwise(pl.col(name) * scale)
        for name in ("productive_low", "productive_high")
    }
    return rows.with_columns(**parts, **ends, **bounds).select(spent.columns)
