"""Makes ``base_delays`` and ``base_quotas``: rows into arrays, the split of delays, and back into tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.analyze import delays, occupancy
from gpuctl.analyze.racks import infer_racks

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.trace.store import Store


UNEXPLAINED = 0.05
"""A larger share of waiting time without a cause is worth a warning, where quotas are guessed."""
BORROW_GUESSES = (0.0, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)


@dataclass(frozen=True)
class Site:
    """Where quotas and racks came from, in words, and what a reader must know about them."""

    quota_note: str
    rack_note: str
    warnings: tuple[str, ...]


def build(store: Store, *, quotas: dict[str, float], racks: dict[str, str], borrow_below: float) -> Site:
    """Create the temporary tables ``base_delays`` and ``base_quotas`` from the other base tables.

    Args:
        store: an open store in which base_jobs, base_attempts, base_placements and base_machines exist.
        quotas: GPUs by queue, as the user gave them; queues that are not in it have theirs inferred.
        racks: rack by machine, as the user gave them; with none, racks are those of the logs, else inferred.
        borrow_below: see `delays.split`.
    """
    attempts = store.frame("SELECT * FROM base_attempts WHERE start_ts IS NOT NULL ORDER BY job, attempt")
    placements = store.frame("SELECT job, attempt, machine, gpus, start_c, held_until_c FROM base_placements")
    machines = store.frame("SELECT machine, rack, coalesce(gpus, 0) AS gpus FROM base_machines ORDER BY machine")
    queues: list[str] = store.frame("SELECT DISTINCT queue FROM base_jobs ORDER BY queue")["queue"].to_list()
    machines, rack_note = _racks(machines, placements, racks)
    servers = _servers(machines, placements)
    numbers = range(len(queues))
    codes = pl.DataFrame({"queue": queues, "code": numbers}, schema={"queue": pl.String, "code": pl.Int64})
    attempts = attempts.join(codes, on="queue", maintain_order="left")
    start, end, gpus, code = (attempts[name].to_numpy() for name in ("start_c", "held_until_c", "gpus", "code"))
    holdings = occupancy.Holdings(start, end, gpus, code)
    waited = attempts.filter(pl.col("wait_s").is_not_null())
    waits = delays.Waits(
        waited["start_c"].to_numpy() - waited["wait_s"].to_numpy(),
        waited["start_c"].to_numpy(),
        np.ceil(waited["gpus"].to_numpy()).astype(np.int64),
        waited["code"].to_numpy(),
    )
    configured = _configured(store)

    def explain(borrow: float) -> tuple[pl.DataFrame, delays.Delays]:
        guesses = delays.infer_quotas(holdings, len(queues), borrow, float(servers.gpus.sum()))
        table = _quotas(queues, given=quotas, configured=configured, inferred=guesses)
        return table, delays.split(waits, holdings, servers, table["quota_gpus"].fill_null(np.inf).to_numpy(), borrow)

    table, found = explain(borrow_below)
    warnings = _quota_warnings(table, strangers=sorted(set(quotas) - set(queues)))
    if "inferred" in table["quota_source"]:
        warnings += _borrowing_hint(borrow_below, found, lambda borrow: explain(borrow)[1])
    store.view("quota_rows", table)
    store.execute("CREATE OR REPLACE TEMP TABLE base_quotas AS SELECT * FROM quota_rows")
    store.drop_view("quota_rows")
    store.view("delay_rows", _delay_rows(waited, found, placements, machines))
    store.execute("CREATE OR REPLACE TEMP TABLE base_delays AS SELECT * FROM delay_rows")
    store.drop_view("delay_rows")
    return Site(_quota_note(table), rack_note, tuple(warnings))


def _configured(store: Store) -> dict[str, float]:
    rows = store.frame("SELECT queue, quota_gpus FROM base_queues WHERE quota_gpus IS NOT NULL")
    return dict(rows.iter_rows())


def _quotas(
    queues: list[str], *, given: dict[str, float], configured: dict[str, float], inferred: np.ndarray
) -> pl.DataFrame:
    rows: list[tuple[str, float | None, str | None]] = []
    for queue, guess in zip(queues, inferred.tolist(), strict=True):
        if queue in given:
            rows.append((queue, given[queue], "given"))
        elif queue in configured:
            rows.append((queue, configured[queue], "configured"))
        elif guess > 0:
            rows.append((queue, guess, "inferred"))
        else:
            rows.append((queue, None, None))
    schema = {"queue": pl.String, "quota_gpus": pl.Float64, "quota_source": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _quota_note(table: pl.DataFrame) -> str:
    counts = table["quota_source"].drop_nulls().value_counts(sort=True).rows()
    return ", ".join(f"{source} for {count} queues" for source, count in counts) or "none known"


def _quota_warnings(table: pl.DataFrame, *, strangers: list[str]) -> list[str]:
    warnings = []
    inferred = (table["quota_source"] == "inferred").sum()
    if inferred:
        warnings.append(
            f"the quotas of {inferred} queues are inferred (the most GPUs a queue held with a start of its own), "
            "which docs/analyses.md shows to be a guess. Give them with --quotas"
        )
    if strangers:
        warnings.append(f"--quotas names queues that the trace does not have: {', '.join(strangers[:5])}")
    return warnings


def _borrowing_hint(borrow_below: float, found: delays.Delays, explain: Callable[[float], delays.Delays]) -> list[str]:
    """Where inferred quotas leave much waiting unexplained, say which rule of borrowing would explain most."""
    left = _unexplained(found)
    if left <= UNEXPLAINED:
        return []
    best_left, best = min((_unexplained(explain(borrow)), borrow) for borrow in BORROW_GUESSES)
    hint = f"{left:.0%} of the waiting time is explained by no cause, so the inferred quotas are probably too high"
    if best != borrow_below and best_left < left / 2:
        hint += f"; if queues may borrow, --borrow-below {best:g} would leave {best_left:.0%} unexplained"
    return [hint]


def _unexplained(found: delays.Delays) -> float:
    return float(found.seconds[:, delays.CAUSES.index("scheduler")].sum() / max(1.0, found.seconds.sum()))


def _racks(machines: pl.DataFrame, placements: pl.DataFrame, given: dict[str, str]) -> tuple[pl.DataFrame, str]:
    if given:
        known, source = given, "given"
    elif machines["rack"].null_count() < machines.height:
        known, source = dict(machines.select("machine", "rack").drop_nulls().iter_rows()), "from the logs"
    else:
        gangs = placements.group_by("job", "attempt").agg("machine").filter(pl.col("machine").list.len() > 1)
        known, source = infer_racks(gangs.sort("job", "attempt")["machine"].to_list()), "inferred from shared gangs"
    names = machines["machine"].to_list()
    racks = pl.Series("rack", [known.get(name) for name in names], pl.String)
    count = racks.drop_nulls().n_unique()
    note = f"{count} {source}, for {len(names) - racks.null_count()} of {len(names)} machines"
    return machines.with_columns(racks), note


def _servers(machines: pl.DataFrame, placements: pl.DataFrame) -> occupancy.Servers:
    number = {name: k for k, name in enumerate(machines["machine"].to_list())}
    rack_number = {name: k for k, name in enumerate(sorted(machines["rack"].drop_nulls().unique().to_list()))}
    return occupancy.Servers(
        gpus=machines["gpus"].to_numpy().astype(np.int64),
        rack=np.array([rack_number.get(rack, -1) for rack in machines["rack"].to_list()], np.int64),
        start=placements["start_c"].to_numpy(),
        end=placements["held_until_c"].to_numpy(),
        server=np.array([number[name] for name in placements["machine"].to_list()], np.int64),
        held=np.ceil(placements["gpus"].to_numpy()).astype(np.int64),
    )


def _delay_rows(
    waited: pl.DataFrame, found: delays.Delays, placements: pl.DataFrame, machines: pl.DataFrame
) -> pl.DataFrame:
    causes = pl.Series(delays.CAUSES)
    racks = (
        placements.join(machines.select("machine", "rack"), on="machine")
        .group_by("job", "attempt")
        .agg(pl.when(pl.col("rack").null_count() == 0).then(pl.col("rack").n_unique()).alias("racks"))
    )
    largest = max(1, int(machines["gpus"].max() or 1))  # type: ignore[arg-type]
    waits = waited["wait_s"] > 0
    names = ("job", "attempt", "queue", "gpus", "servers", "size_bucket", "queued_ts", "start_ts", "wait_s")
    rows = waited.select(names).with_columns(
        *(pl.Series(f"{cause}_s", found.seconds[:, k]) for k, cause in enumerate(delays.CAUSES)),
        pl.Series("cause_at_arrival", causes.gather(found.at_arrival.tolist())).set(~waits, None),
        pl.Series("dominant_cause", causes.gather(found.seconds.argmax(axis=1).tolist())).set(~waits, None),
        pl.Series("overtook_gpus", found.overtook_gpus),
        pl.Series("overtook_harmless", found.harmless),
        (pl.col("gpus") / largest).ceil().cast(pl.Int32).alias("fewest_servers"),
    )
    return rows.join(racks, on=["job", "attempt"], how="left")
