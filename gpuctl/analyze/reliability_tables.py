"""Makes the shared tables ``base_reliability_*``: causes of ends, failure rates of nodes, losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gpuctl.analyze import shared_sql
from gpuctl.analyze.failure_table import Words, judge, kept_lines
from gpuctl.joblogs.evidence import Facts as Scheduler
from gpuctl.reliability import (
    availability,
    changes,
    facts,
    gaps,
    interruptions,
    lemons,
    rates,
    regression,
    survival,
    what_ifs,
)
from gpuctl.reliability.causes import SYMPTOMS, reason_of_line
from gpuctl.reliability.choices import DEFAULT, Choices
from gpuctl.reliability.observed import spent_within, within
from gpuctl.reliability.training_time import Accounts, Assumed

if TYPE_CHECKING:
    from gpuctl.joblogs.table import Table
    from gpuctl.store.database import Store

TABLES = (
    "interruptions",
    "interrupted_attempts",
    "failure_rates",
    "mttf_by_size",
    "ettr",
    "goodput_loss",
    "lemon_nodes",
    "availability",
    "xids",
    "checkpoint_advice",
    "reliability_whatif",
    "failure_rate_ratios",
    "failure_gaps",
    "failure_changes",
    "xids_by_month",
    "xid_pairs",
)
NAMES = tuple(f"reliability_{name}" for name in TABLES)
_TEXTS = frozenset({
    "basis", "by", "cause", "class", "component", "evidence", "gpu_type", "group", "job", "kind", "lemon", "link",
    "machine", "meaning", "period", "run", "signal", "state", "user", "what", "setting", "assumption", "narrowed_by",
    "cleared", "against", "finding", "change", "shown", "month",
})  # fmt: skip
_MORE = {"interrupted_attempts": ("shown",)}
"""Columns of a shared table that its result calls by another name."""
_EVENTS = (
    "SELECT machine, epoch(from_ts) AS from_s, epoch(to_ts) AS to_s, state, reason FROM machine_events "
    "WHERE cluster = $cluster"
)
_XIDS = (
    "SELECT machine, epoch(ts) AS ts_s, pci_bus_id AS device, code AS xid, text AS message FROM gpu_events "
    "WHERE cluster = $cluster AND signal = 'xid' AND origin = 'log' AND machine IS NOT NULL "
    "UNION ALL SELECT machine, epoch(ts), 'gpu ' || gpu, code, NULL FROM gpu_faults "
    "WHERE cluster = $cluster AND signal = 'xid' AND origin <> 'log' AND machine IS NOT NULL AND code IS NOT NULL"
)
"""Lines of kernel logs, and what only telemetry shows: ``gpu_faults`` has each fault once."""
_COUNTERS = (
    "SELECT machine, epoch(ts) AS ts_s, signal FROM gpu_faults "
    "WHERE cluster = $cluster AND signal <> 'xid' AND machine IS NOT NULL"
)
_REGISTERED = "SELECT min(value::DOUBLE) FROM settings WHERE cluster = $cluster AND name = 'slurm.registered'"
_OPTIONS = "SELECT job, option, value FROM submit_options WHERE cluster = $cluster"
_PLACES = "SELECT number, machine, gpus FROM base_placements WHERE gpus > 0"


def build(
    store: Store,
    cluster: str,
    table: Table | None,
    choices: Choices = DEFAULT,
    period: tuple[float | None, float | None] = (None, None),
) -> None:
    """Create ``base_reliability_X`` for each X of `TABLES`.

    Args:
        store: open, only read; base_jobs, base_attempts, base_placements and base_machines exist.
        cluster: the cluster.
        table: the signatures with which logs were scanned; None: no line of a log is stored.
        choices: of the user.
        period: begin and end of the time that the tables cover, seconds since 1970; None: as the log begins and ends.
    """
    chosen = {"cluster": cluster}
    attempts = store.frame(shared_sql.base_sql("reliability_attempts"), chosen)
    nodes = store.frame(shared_sql.base_sql("reliability_nodes"), chosen)
    if attempts.is_empty() or nodes.is_empty():
        _keep_none(store)
        return
    known = facts.gather(
        attempts=attempts.join(
            _reasons(store, cluster, table), on="number", how="left", maintain_order="left"
        ).with_columns(pl.col("user_reason").fill_null(False)),
        places=store.frame(_PLACES),
        nodes=nodes,
        events=store.frame(_EVENTS, chosen),
        xid_lines=store.frame(_XIDS, chosen),
        counters=store.frame(_COUNTERS, chosen),
        options=store.frame(_OPTIONS, chosen),
        registered=store.value(_REGISTERED, chosen),
        choices=choices,
    )
    assumed = Assumed.of(choices)
    accounts = Accounts(known, store.frame(shared_sql.base_sql("reliability_points"), chosen), assumed)
    whole, known = known, within(known, *period)
    spent = spent_within(accounts.spent(), whole, known)
    accounts.facts = known
    if known.attempts.is_empty():
        _keep_none(store)
        return
    runs = accounts.table(spent)
    made = {
        "interruptions": interruptions.table(known),
        "interrupted_attempts": interruptions.attempts(known),
        "failure_rates": rates.table(known),
        "mttf_by_size": survival.table(known, choices.sizes),
        "ettr": runs,
        "goodput_loss": accounts.goodput(spent),
        "lemon_nodes": lemons.table(known),
        "availability": availability.table(known),
        "xids": interruptions.xids(known),
        "checkpoint_advice": what_ifs.checkpoint_advice(known, runs, assumed.load_s),
        "reliability_whatif": what_ifs.table(known, spent),
        "failure_rate_ratios": regression.table(known),
        "failure_gaps": gaps.table(known),
        "failure_changes": changes.table(known),
        "xids_by_month": interruptions.xids_by_month(known),
        "xid_pairs": interruptions.xid_pairs(known),
    }
    for name, frame in made.items():
        # tables of the store have no order of rows
        store.keep(f"base_reliability_{name}", frame.with_row_index("position"))


def _keep_none(store: Store) -> None:
    for name in TABLES:
        store.keep(f"base_reliability_{name}", pl.DataFrame(schema=_schema(name)).with_row_index("position"))


def _schema(name: str) -> dict[str, pl.DataType]:
    """Return the columns that the SQL of a result reads, for a cluster without rows."""
    from gpuctl.queries.catalogue import built_in

    names = (*(column.name for column in built_in()[name].columns), *_MORE.get(name, ()))
    return {column: pl.String() if column in _TEXTS else pl.Float64() for column in names}


_REASONS = {"number": pl.Int32, "reason": pl.String, "user_reason": pl.Boolean}


def _reasons(store: Store, cluster: str, table: Table | None) -> pl.DataFrame:
    """Return reasons of ends by logs alone: ``number``, ``reason``, ``user_reason`` (whether a user can cause it)."""
    if table is None:
        return pl.DataFrame(schema=_REASONS)
    words = Words(table)
    found = []
    for number, lines in kept_lines(store, cluster):
        verdict = judge(lines, Scheduler("failed", 1, 0, ()), None, table, words)
        reason = verdict.reason
        if not verdict.failed or reason is None or reason not in table.reasons:
            continue
        of_user = "user" in (verdict.category or "").split("+") and reason not in SYMPTOMS
        found.append((number, reason_of_line(reason, verdict.evidence or ""), of_user))
    return pl.DataFrame(found, schema=_REASONS, orient="row")
