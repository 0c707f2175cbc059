"""Runs the analyses of one cluster: prepares shared tables, asks every query, documents every result."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

import gpuctl
from gpuctl.analyze import bad_machines, delay_table, failure_table, query, registry
from gpuctl.core.results import Analysis, ResultTable
from gpuctl.core.spelling import check_queues
from gpuctl.joblogs.table import load as load_signatures
from gpuctl.store.sources import LAST_SAMPLES, SOURCE_ENDS, read_sources

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpuctl.joblogs.table import Table
    from gpuctl.store.database import Store


@dataclass(frozen=True)
class Options:
    """The choices that shape the figures.

    Attributes:
        cluster: which cluster of the store; may be left out where it holds only one.
        definition: ``gpuctl``, or ``notebook`` for the published notebook's waits and run times.
        duration: a job's run time: ``span`` (last end - first start), ``sum`` (over attempts), ``last`` (attempt);
            None for ``span``, or ``sum`` where the source tells nothing else.
        quotas: GPUs of each queue's quota, as the user gave them.
        racks: rack of each machine, as the user gave them.
        borrow_below: share of busy GPUs up to which a queue may exceed its quota; 0 never; None where it is inferred.
        reference: a key of `registry.REFERENCES`, or None.
        sections: keys of the sections to run; empty for all.
        signatures: the user's own signature tables, beside gpuctl's.
        command: the command line, for the record.
    """

    cluster: str | None = None
    definition: Literal["gpuctl", "notebook"] = "gpuctl"
    duration: Literal["span", "sum", "last"] | None = None
    quotas: dict[str, float] = field(default_factory=dict)
    racks: dict[str, str] = field(default_factory=dict)
    borrow_below: float | None = None
    reference: str | None = None
    sections: tuple[str, ...] = ()
    signatures: tuple[Path, ...] = ()
    command: str = ""


def analyze(store: Store, options: Options, progress: Callable[[str, int, int], None] | None = None) -> Analysis:
    """Run every analysis (or those of `options.sections`) on one cluster of an open store.

    The store is only read; what the queries share lives in temporary tables.

    Args:
        store: an open store.
        options: the choices that shape the figures.
        progress: called with (what is being done, steps done, steps in all).

    Raises:
        UsageError: the store has several clusters and none is named, or not the one named.
        InputError: quotas are given of queues that it does not have, and not of all that it has.
    """
    cluster = store.cluster(options.cluster)
    names = _tables(options)
    steps = len(names) + 2
    tell = progress or (lambda _text, _done, _all: None)
    tell("reading jobs", 0, steps)
    needed = {query.load(name).section for name in names}
    prepared = prepare(store, cluster, options, needed, tell)
    tables = []
    for number, name in enumerate(names, 2):
        tell(name, number, steps)
        tables.append(_ask(store, query.load(name), prepared))
    tell("done", steps, steps)
    return Analysis(
        cluster=cluster,
        tables=tuple(tables),
        sections=tuple((key, title) for key, title in registry.SECTIONS if any(t.section == key for t in tables)),
        sources=read_sources(store, cluster),
        settings=prepared.settings,
        command=options.command,
        version=gpuctl.__version__,
        warnings=prepared.warnings,
    )


@dataclass(frozen=True)
class Prepared:
    """What the queries are asked with, and what is told beside their results."""

    parameters: dict[str, str]
    numbers: dict[str, str]
    missing: dict[str, str]
    settings: dict[str, str]
    warnings: tuple[str, ...]


def _known_duration(store: Store, cluster: str) -> str:
    spans = store.value("SELECT count(run_span_s) FROM jobs WHERE cluster = $cluster", {"cluster": cluster})
    sums = store.value("SELECT count(run_sum_s) FROM jobs WHERE cluster = $cluster", {"cluster": cluster})
    return "sum" if sums and not spans else "span"


def _tables(options: Options) -> list[str]:
    registry.check_names(sections=options.sections, reference=options.reference)
    names = [name for name in registry.TABLES if not options.sections or query.load(name).section in options.sections]
    if options.reference:
        names = list(registry.TABLES) if options.sections else names
        names.extend(registry.REFERENCES[options.reference])
    return names


def prepare(
    store: Store, cluster: str, options: Options, needed: set[str], tell: Callable[[str, int, int], None]
) -> Prepared:
    """Make the temporary tables that the analyses share.

    Args:
        store: an open store; it is only read.
        cluster: which cluster of it.
        options: as for `analyze`.
        needed: sections: what only others need is made without a row.
        tell: as for `analyze`.
    """
    notebook = options.definition == "notebook"
    duration = "span" if notebook else options.duration or _known_duration(store, cluster)
    chosen = {"cluster": cluster, "duration": duration}
    for name, sql in (("source_ends", SOURCE_ENDS), ("last_samples", LAST_SAMPLES)):
        store.execute(f"CREATE OR REPLACE TEMP TABLE base_{name} AS {sql}", {"cluster": cluster})
    for name in (
        "jobs",
        "attempts",
        "never_started",
        "placements",
        "machines",
        "queues",
        "queue_machines",
        "gpu_limits",
        "owners",
        "machine_events",
        "queue_samples",
        "machine_samples",
        "runs",
        "notebook_attempts",
    ):
        _base(store, name, chosen)
    _base(store, "waits_notebook" if notebook else "waits", chosen, table="waits")
    _base(store, "wait_survival", chosen)
    store.view("reason_rows", pl.read_csv(query.reasons()))
    store.execute("CREATE OR REPLACE TEMP TABLE base_reasons AS SELECT * FROM reason_rows")
    store.drop_view("reason_rows")
    if options.quotas:
        check_queues(
            options.quotas,
            store.frame("SELECT queue FROM base_queues UNION SELECT queue FROM base_jobs")["queue"].to_list(),
        )
    site = delay_table.build(store, quotas=options.quotas, racks=options.racks, borrow_below=options.borrow_below)
    tell("reading telemetry", 1, len(registry.TABLES))
    [rows] = _rows(store, "counts", chosen)
    everything = {**chosen, "whole_minutes": notebook}
    telemetry = bool(needed & {"utilization", "reference"})
    for name in ("util_pieces", "util_histogram", "host_histogram", "telemetry"):
        _base(store, name, everything, empty=not telemetry)
    for name in ("progress", "training"):
        _base(store, name, chosen, empty=not needed & {"training", "reference"})
    if "reference" in needed or "failures" in needed:
        tell("classifying failures", 1, len(registry.TABLES))
        signatures: Table | None = load_signatures(options.signatures)
    else:
        signatures = None
    failure_table.build(store, cluster, signatures)
    bad_machines.build(store)
    [population] = _rows(store, "population", chosen)
    numbers = {key: _plain(value) for key, value in population.items()} | {
        "cluster": cluster,
        "telemetry_note": "a minute belongs to an attempt from the minute in which it starts"
        if notebook
        else "a sample belongs to the attempt that holds the GPU at the sample's time",
        "quota_note": site.quota_note,
        "rack_note": site.rack_note,
        "borrow_note": site.borrow_note,
    }
    missing = {
        need.replace("_", " "): f"no rows: this source has no {need.replace('_', ' ')}"
        for need, count in rows.items()
        if not count
    }
    settings = {
        "definition": options.definition,
        "duration": duration,
        "quotas": site.quota_note,
        "racks": site.rack_note,
        "borrowing": numbers["borrow_note"],
    }
    return Prepared(chosen, numbers, missing, settings, (*site.warnings, *_warnings(store, cluster)))


def _base(
    store: Store,
    name: str,
    values: dict[str, str] | dict[str, object],
    *,
    table: str | None = None,
    empty: bool = False,
) -> None:
    sql = query.base_sql(name)
    wanted = {key: values[key] for key in query.parameters(sql)}
    limit = " LIMIT 0" if empty else ""
    # every part of this text is ours: names from this module, SQL from queries/
    made = f"CREATE OR REPLACE TEMP TABLE base_{table or name} AS SELECT * FROM ({sql}){limit}"  # noqa: S608
    store.execute(made, wanted)


def _ask(store: Store, asked: query.Query, prepared: Prepared) -> ResultTable:
    wanted = {key: prepared.parameters[key] for key in asked.parameters}
    store.execute(f"CREATE OR REPLACE TEMP TABLE result_{asked.name} AS {asked.sql}", wanted)
    frame = _tidy(store.frame(f"FROM result_{asked.name}"))
    notes = (prepared.missing[asked.needs],) if asked.needs in prepared.missing else ()
    return ResultTable(
        name=asked.name,
        section=asked.section,
        title=asked.title,
        question=asked.question,
        population=asked.population.format_map(prepared.numbers),
        notes=notes,
        columns=asked.columns,
        frame=frame,
        detail=asked.detail,
        first_columns=asked.first_columns,
    )


def _tidy(frame: pl.DataFrame) -> pl.DataFrame:
    """DuckDB sums whole numbers as 128-bit ones, which arrive as decimals."""
    return frame.with_columns(pl.col(pl.Decimal).cast(pl.Int64))


def _plain(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _warnings(store: Store, cluster: str) -> list[str]:
    rejected = _rows(store, "rejected", {"cluster": cluster})
    warnings = [] if store.value("SELECT count(*) FROM base_jobs") else [_no_job(store, cluster)]
    warnings += [
        f"{row['rows_rejected']} of {row['rows_in']} rows of {row['path']} were rejected; "
        f"most often ({row['rows']}): {row['reason']}"
        for row in rejected
    ]
    [sizeless] = store.frame(
        "SELECT count(*) AS ran, count(*) FILTER (gpus IS NULL) AS attempts, "
        "sum((held_until_c - start_c)::DECIMAL(28, 6)) FILTER (gpus IS NULL)::DOUBLE / 3600 AS hours "
        "FROM base_attempts WHERE start_ts IS NOT NULL"
    ).to_dicts()
    if sizeless["attempts"]:
        warnings.append(
            f"no source tells how many GPUs {sizeless['attempts']} of {sizeless['ran']} attempts held, "
            f"{sizeless['hours']:,.2f} hours in all: GPU-hours and occupancy lack them, so they are lower bounds. "
            "docs/sources.md says what tells them"
        )
    inferred = store.value("SELECT count(*) FROM base_machines WHERE gpus_inferred")
    if inferred:
        warnings.append(
            f"the GPUs of {inferred} machines are inferred: no source tells them, so each counts with the most that "
            "its jobs held at once, a lower bound. Waits for capacity may be overstated; docs/sources.md says what to "
            "load"
        )
    partitions = store.value("SELECT count(DISTINCT queue) FROM base_queue_machines WHERE inferred")
    if partitions:
        warnings.append(
            f"the machines of {partitions} partitions are inferred: those that their jobs ran on. Load slurm.conf or "
            "scontrol show partition"
        )
    [twice] = _rows(store, "told_twice", {"cluster": cluster})
    if twice["tasks"]:
        warnings.append(
            f"{twice['tasks']} array tasks are counted twice: one source names them by JobID (12_3), another one by "
            "JobIDRaw (15). Leave one of the two out"
        )
    [changed] = _rows(store, "clock_change", {"cluster": cluster})
    if changed["attempts"]:
        warnings.append(
            f"{changed['attempts']} attempts span a change of the clock. The log's times carry no zone, so waits and "
            "run times are differences of its wall clock, as in the published analyses: an hour off if it was changed"
        )
    return warnings


def _no_job(store: Store, cluster: str) -> str:
    formats = store.frame(
        "SELECT DISTINCT format FROM sources WHERE cluster = $cluster ORDER BY format", {"cluster": cluster}
    )["format"].to_list()
    return f"there is no job of cluster {cluster} in the store, only what {', '.join(formats) or 'no file'} told"


def _rows(store: Store, name: str, values: dict[str, str]) -> list[dict[str, Any]]:
    sql = query.base_sql(name)
    wanted = {key: values[key] for key in query.parameters(sql)}
    return store.frame(sql, wanted).to_dicts()
