"""Tables of what ended attempts: by cause, one by one, and by Xid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.reliability.causes import (
    CANCEL,
    DONE,
    HARD,
    INFRA,
    INFRASTRUCTURE,
    LIMIT,
    PREEMPTED,
    RUNNING,
    SOFT,
    UNKNOWN,
    USER,
)
from gpuctl.reliability.intervals import DAY, first_within, keys

if TYPE_CHECKING:
    from gpuctl.reliability.facts import Facts

ORDER = (HARD, SOFT, INFRA, PREEMPTED, LIMIT, USER, UNKNOWN, CANCEL, DONE)
_OPEN_TO = {
    HARD: (UNKNOWN, INFRA),
    SOFT: (UNKNOWN, INFRA),
    INFRA: (UNKNOWN,),
    USER: (UNKNOWN,),
}
"""Causes that some attempts of others may have had."""


def table(facts: Facts) -> pl.DataFrame:
    """The rows of ``interruptions``: one a cause, then ``all`` (interruptions only)."""
    run = pl.col("end_s") - pl.col("start_s")
    over = facts.attempts.select("cause", "unit", gpu_h=pl.col("gpus") * run / 3600, run_h=run / 3600)
    over = over.filter(pl.col("cause") != RUNNING)
    sums = over.group_by("cause").agg(
        attempts=pl.len(),
        jobs=pl.col("unit").n_unique(),
        gpu_hours=pl.col("gpu_h").sum(),
        median_run_h=pl.col("run_h").median(),
    )
    met = facts.incidents.group_by("cause").len("incidents")
    sums = sums.join(met, on="cause", how="left")
    found = {row["cause"]: row for row in sums.iter_rows(named=True)}
    rows = []
    for cause in ORDER:
        row = found.get(cause) or {
            "cause": cause,
            "attempts": 0,
            "jobs": 0,
            "gpu_hours": 0.0,
            "median_run_h": None,
            "incidents": 0,
        }
        others = [found[other] for other in _OPEN_TO.get(cause, ()) if other in found]
        rows.append(
            row
            | {
                "incidents": (row["incidents"] or 0) if cause in INFRASTRUCTURE else None,
                "attempts_low": 0 if cause == UNKNOWN else row["attempts"],
                "attempts_high": row["attempts"] + sum(other["attempts"] for other in others),
                "gpu_hours_low": 0.0 if cause == UNKNOWN else row["gpu_hours"],
                "gpu_hours_high": row["gpu_hours"] + sum(other["gpu_hours"] for other in others),
            }
        )
    cut = over.filter(~pl.col("cause").is_in([DONE, CANCEL]))
    hours = float(cut["gpu_h"].sum())
    rows.append(
        {
            "cause": "all",
            "attempts": cut.height,
            "jobs": cut["unit"].n_unique(),
            "incidents": facts.incidents.height,
            "attempts_low": cut.height,
            "attempts_high": cut.height,
            "gpu_hours": hours,
            "gpu_hours_low": hours,
            "gpu_hours_high": hours,
            "median_run_h": cut["run_h"].median(),
        }
    )
    found_rows = pl.DataFrame(rows, schema=_SCHEMA)
    narrowed = pl.when(pl.col("cause") == UNKNOWN).then(pl.lit(_narrowed_by(facts)))
    return found_rows.with_columns(narrowed_by=narrowed)


_SCHEMA = {
    "cause": pl.String,
    **dict.fromkeys(("attempts", "jobs", "incidents", "attempts_low", "attempts_high"), pl.Int64),
    **dict.fromkeys(("gpu_hours", "gpu_hours_low", "gpu_hours_high", "median_run_h"), pl.Float64),
}


def _narrowed_by(facts: Facts) -> str:
    """Which inputs would tell more of the attempts whose cause is unknown, the one that most of them lack first."""
    rows = facts.attempts.filter(pl.col("cause") == UNKNOWN)
    if rows.is_empty():
        return ""
    logs = rows.filter(~pl.col("has_log"))["job"].n_unique()
    lacking = [(logs, f"logs of jobs ({logs:,} have none)")] if logs else []
    lacking += [] if facts.has_events else [(rows.height, "node events")]
    lacking += [(rows.height, "kernel log")] if facts.xids.is_empty() else []
    return ", ".join(text for _, text in sorted(lacking, reverse=True)) or "nothing that gpuctl reads"


def attempts(facts: Facts) -> pl.DataFrame:
    """The rows of ``interrupted_attempts``: attempts that did not complete, were not cancelled, and are over.

    ``job`` is the id in the store, ``shown`` the one that users see.
    """
    rows = facts.attempts.filter(~pl.col("cause").is_in([DONE, CANCEL, RUNNING]))
    names = facts.nodes["machine"]
    end = (pl.lit(facts.begin) + pl.col("end_s")) * 1_000_000
    return rows.select(
        "job",
        "shown",
        "attempt",
        end.round().cast(pl.Int64).cast(pl.Datetime("us", "UTC")).alias("end_ts"),
        "user",
        "gpus",
        pl.col("width").alias("machines"),
        pl.col("source_state").alias("state"),
        "cause",
        "component",
        "evidence",
        pl.Series("machine", names.gather(rows["node"])),
        "incident",
        pl.col("certain").fill_null(False).alias("second_order"),
    ).sort("end_ts", "shown", "attempt")


def xids(facts: Facts) -> pl.DataFrame:
    """The rows of ``xids``, by class and code."""
    from gpuctl.reliability.xids import MEANINGS

    rows = facts.xids
    before, after = facts.choices.window
    infra = facts.attempts.select("row", "end_s", "evidence", "cause").filter(
        pl.col("evidence").is_in(["event", "xid", "counter"]) & pl.col("cause").is_in(INFRASTRUCTURE)
    )
    met = infra.join(facts.places.select("row", "node"), on="row")
    ended: dict[int, int] = {}
    for code, part in ((key[0], part) for key, part in rows.group_by("xid")):
        sorted_part = part.sort("node", "ts_s")
        place = first_within(
            keys(sorted_part["node"].to_numpy(), sorted_part["ts_s"].to_numpy()),
            met["node"].to_numpy(),
            np.maximum(met["end_s"].to_numpy() - before, 0),
            met["end_s"].to_numpy() + after,
        )
        ended[int(code)] = met.filter(pl.Series(place >= 0))["row"].n_unique()
    days = float(facts.busy_days.sum())
    counted = rows.group_by("xid", "class").agg(
        events=pl.len(), lines=pl.col("lines").sum(), machines=pl.col("node").n_unique()
    )
    return counted.select(
        "xid",
        pl.col("xid").replace_strict(MEANINGS, default="", return_dtype=pl.String).alias("meaning"),
        "class",
        "events",
        "lines",
        "machines",
        attempts_ended=pl.col("xid").replace_strict(ended, default=0, return_dtype=pl.Int64) if ended else pl.lit(0),
        per_1000_node_days=1000 * pl.col("events") / days,
    ).sort("events", "xid", descending=[True, False])


def xids_by_month(facts: Facts) -> pl.DataFrame:
    """The rows of ``xids_by_month``, by month, GPU type and code."""
    types = facts.nodes.select(node=pl.int_range(pl.len(), dtype=pl.Int64), gpu_type="gpu_type")
    rows = facts.xids.with_columns(pl.col("node").cast(pl.Int64)).join(types, on="node", how="left")
    months = facts.months()
    node = np.arange(facts.nodes.height)
    days = [
        types.with_columns(
            month=pl.lit(name),
            node_days=pl.Series(
                facts.held_nodes.between(node, np.full(len(node), begin), np.full(len(node), end)) / DAY
            ),
        )
        for name, begin, end in months
    ]
    exposure = pl.concat(days).group_by("month", "gpu_type").agg(pl.col("node_days").sum())
    at = np.searchsorted([begin for _, begin, _ in months], rows["ts_s"].to_numpy(), "right") - 1
    rows = rows.with_columns(month=pl.Series([name for name, _, _ in months], dtype=pl.String).gather(at))
    counted = rows.group_by("month", "gpu_type", "xid", "class").agg(
        events=pl.len(), machines=pl.col("node").n_unique()
    )
    found = counted.join(exposure, on=["month", "gpu_type"], how="left", nulls_equal=True)
    rate = pl.when(pl.col("node_days") > 0).then(1000 * pl.col("events") / pl.col("node_days"))
    return found.with_columns(per_1000_node_days=rate).sort("month", "gpu_type", "xid")


def xid_pairs(facts: Facts) -> pl.DataFrame:
    """The rows of ``xid_pairs``: events of different codes on one node within `COALESCE_S`, the most frequent first."""
    from gpuctl.reliability.xids import COALESCE_S

    rows = facts.xids.sort("node", "ts_s", "xid")
    node, ts, code = (rows[name].to_numpy() for name in ("node", "ts_s", "xid"))
    found = []
    for step in range(1, len(rows)):
        first = np.flatnonzero((node[step:] == node[:-step]) & (ts[step:] - ts[:-step] <= COALESCE_S))
        if not len(first):
            break
        found.append((first, first + step))
    schema = {"xid": pl.Int64, "with_xid": pl.Int64, "node": pl.Int64, "a": pl.Int64, "b": pl.Int64}
    one, two = (np.concatenate([pair[k] for pair in found]) if found else np.zeros(0, np.int64) for k in (0, 1))
    low = np.where(code[one] <= code[two], one, two)
    high = one + two - low
    pairs = pl.DataFrame([code[low], code[high], node[low], low, high], schema=schema)
    pairs = pairs.filter(pl.col("xid") != pl.col("with_xid"))
    total = dict(rows.group_by("xid").len().iter_rows())
    counted = pairs.group_by("xid", "with_xid").agg(
        pairs=pl.len(), machines=pl.col("node").n_unique(), a=pl.col("a").n_unique(), b=pl.col("b").n_unique()
    )
    shares = {
        name: pl.Series([100 * part / total[xid] for xid, part in counted.select(of, by).iter_rows()], dtype=pl.Float64)
        for name, of, by in (("xid_pct", "xid", "a"), ("with_xid_pct", "with_xid", "b"))
    }
    return (
        counted.with_columns(**shares).drop("a", "b").sort("pairs", "xid", "with_xid", descending=[True, False, False])
    )
