"""Models of run times and of what suspending a job costs: trained on logs, saved, and asked."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.notes import counted, literal, named, note
from gpuctl.core.results import Analysis, SourceInfo
from gpuctl.core.storable_text import storable
from gpuctl.services.inputs import check_there, is_jobs_csv, is_store, opened
from gpuctl.services.options import LogReading

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpuctl.ingest.pipeline.input_kinds import Kind
    from gpuctl.predictors.contract import Predictor
    from gpuctl.predictors.job_description import JobDescription
    from gpuctl.predictors.job_table import JobTable
    from gpuctl.predictors.series import Series
    from gpuctl.services.frontend import Frontend
    from gpuctl.services.inputs import Opened


PROMISED = {"predictions": "predictions", "overhead": None}
"""The key that a table's rows have in JSON, too; None: the columns of its one row are keys."""


@dataclass(frozen=True)
class RuntimeOptions:
    """The options of ``predict runtime``."""

    paths: list[Path]
    jobs: Path | None
    names: tuple[str, ...]
    epochs: int | None
    model: Path | None
    db: Path | None
    cluster: str | None
    cumulative: bool


def predict_runtime(request: RuntimeOptions, frontend: Frontend, command: str) -> tuple[Analysis, bool]:
    """Predict the run times of the jobs that the inputs name; also return whether some input could not be read.

    Raises:
        UsageError: nothing to predict is named.
        InputError: a model cannot be read.
    """
    from gpuctl.ingest.pipeline import input_kinds
    from gpuctl.predictors.job_description import JobDescription
    from gpuctl.predictors.profiles import read_described, read_series
    from gpuctl.predictors.queued_jobs import read_listed, with_history
    from gpuctl.predictors.runtime import predict
    from gpuctl.predictors.runtime_tables import result_of
    from gpuctl.store.database import Store
    from gpuctl.store.sources import read_sources

    listed, sources = None, tuple[SourceInfo, ...]()
    paths = request.paths
    if request.jobs is not None:
        shaped = request.model is None or input_kinds.describes_training(request.jobs)
        if request.model is not None:
            listed, source = read_listed(request.jobs, alone=not shaped)
            sources = (source,)
        if shaped:
            input_kinds.check_training(request.jobs, epochs=request.epochs is None and request.model is None)
            paths = [*paths, request.jobs]
    _check_named(paths, [input_kinds.TRAFFIC, input_kinds.TRAINING], cumulative=request.cumulative)
    described: list[JobDescription] = []
    profiles: dict[str, Series] = {}
    cluster, failed = "", False
    if paths or request.db is not None or listed is None:
        logs = LogReading(request.cluster)
        with (
            opened(paths, request.db, logs, frontend, doing="predict", cumulative=request.cumulative) as opening,
            Store(opening.path) as store,
        ):
            cluster = store.cluster(request.cluster or opening.cluster)
            described, profiles = read_described(store, cluster), read_series(store, cluster)
            sources = tuple({s.path: s for s in (*read_sources(store, cluster), *sources)}.values())
        failed = _fell_short(opening, paths, frontend)
    more = [] if listed is None else listed["job"].to_list()
    described += [JobDescription(job) for job in sorted(set(more) - {d.job for d in described} - set(profiles))]
    names = {d.job for d in described} | set(profiles)
    unknown = next((job for job in request.names if job not in names), None)
    if unknown is not None:
        raise UsageError(f"--job {unknown}: neither traffic nor a description of such a job was read")
    if not names:
        raise InputError(
            "no job with traffic or a description was found", hint="a CSV with the columns job_id,t,bytes; --jobs FILE"
        )
    epochs = math.nan if request.epochs is None else float(request.epochs)
    found = predict(described, profiles, epochs=epochs, wanted=request.names or None)
    settings = {
        "interval": note("80 % of such jobs end within it"),
        "epochs": note("{n}", n=request.epochs) if request.epochs else note("as recorded per job"),
    }
    if request.model is not None:
        found = with_history(found, listed, described, request.model)
        settings["history"] = named("path", storable(str(request.model)))
    result = result_of(
        found,
        named("cluster", cluster) if cluster else note("jobs"),
        settings,
        command,
        sources,
        with_traffic=len(profiles),
    )
    return result, failed


def train_runtime(
    paths: list[Path], db: Path | None, logs: LogReading, place: Path, frontend: Frontend, *,
    test_share: float, quantiles: tuple[float, ...], others: Sequence[type[Predictor]], command: str,
) -> tuple[Analysis, bool]:  # fmt: skip
    """Learn run times, save the model, and report its scores; also whether some input could not be read."""
    from gpuctl.predictors import history, history_folder, history_tables

    jobs, sources, failed = _jobs(paths, db, logs, frontend)
    with frontend.progress() as bar:
        trained = history.train(jobs, test_share=test_share, quantiles=quantiles, others=others, progress=bar.at)
    history_folder.save(place, trained.model, history_tables.about(trained, sources))
    return history_tables.result(trained, sources, command), failed


def train_overhead(
    paths: list[Path], place: Path, frontend: Frontend, *, db: Path | None, cluster: str | None, command: str
) -> tuple[Analysis, bool]:
    """Fit what suspensions cost, save the model, and say how well it predicts suspensions that it has not seen.

    Raises:
        InputError: too few suspensions were measured.
    """
    from gpuctl.ingest.pipeline import input_kinds
    from gpuctl.predictors import overhead
    from gpuctl.predictors.card import save_folder
    from gpuctl.predictors.overhead_tables import error_tables
    from gpuctl.predictors.profiles import read_suspensions
    from gpuctl.predictors.results import RECONSTRUCTED, analysis_of
    from gpuctl.store.database import Store
    from gpuctl.store.sources import read_sources

    _check_named(paths, [input_kinds.SUSPENSIONS])
    with (
        opened(paths, db, LogReading(cluster), frontend, doing="learn from") as opening,
        Store(opening.path) as store,
    ):
        chosen = store.cluster(cluster or opening.cluster)
        rows, sources = read_suspensions(store, chosen), read_sources(store, chosen)
    fitted = overhead.fit(rows)
    usable, lacking = overhead.usable(rows)
    population = note(
        "{usable:,} measured suspension{usable||s} of {jobs:,} job{jobs||s}.",
        usable=len(usable),
        jobs=len({r.job for r in usable}),
    )
    notes = tuple(
        note("Left out: {count} without {name}.", count=counted(count, "suspension"), name=literal(name))
        for name, count in lacking.items()
    )
    for text in notes:
        frontend.tell(text)
    tables = error_tables(usable, population, notes)
    about = {
        "title": "Cost of suspending and resuming a job",
        "population": population,
        "terms": list(overhead.TERMS),
        "mean_absolute_error_for_new_jobs": fitted.error,
        "source": RECONSTRUCTED,
    }
    save_folder(place, "overhead", about, {"overhead.json": overhead.to_json(fitted)})
    return analysis_of(named("cluster", chosen), tables, {}, command, sources), _fell_short(opening, paths, frontend)


def _check_named(
    paths: Sequence[Path], kinds: Sequence[Kind], *, columns: str | None = None, cumulative: bool = False
) -> None:
    """See that every file that the command line names is one that can be read.

    Raises:
        InputError: one is empty, junk, or lacks a column that it needs.
    """
    from gpuctl.ingest.pipeline.input_kinds import check_formats
    from gpuctl.ingest.pipeline.registry import formats_for

    check_formats([p for p in paths if not is_store(p)], formats_for(columns, cumulative=cumulative), kinds)


def _jobs(
    paths: list[Path], db: Path | None, logs: LogReading, frontend: Frontend
) -> tuple[JobTable, tuple[SourceInfo, ...], bool]:
    """The jobs, the files that they came from, and whether something of them could not be read."""
    check_there(paths, "logs, a trace store, or a CSV of jobs")
    tables = [path for path in paths if logs.log_format is None and is_jobs_csv(path)]
    if tables:
        if len(paths) > 1 or db is not None:
            raise UsageError(f"{tables[0]} is a CSV of jobs; it must be the only input", hint="give no other input")
        from gpuctl.predictors.job_table import from_jobs
        from gpuctl.replay.inputs.job_csv import read_jobs
        from gpuctl.store.sources import jobs_csv

        listed = read_jobs(tables[0])
        return from_jobs(listed, tables[0]), (jobs_csv(tables[0], listed.size, listed.size),), False
    from gpuctl.ingest.pipeline.input_kinds import QUEUED
    from gpuctl.predictors.job_table import from_store
    from gpuctl.store.database import Store
    from gpuctl.store.sources import read_sources

    _check_named(paths, [QUEUED], columns=logs.columns)
    with opened(paths, db, logs, frontend, doing="learn from") as opening, Store(opening.path) as store:
        jobs = from_store(store, opening.cluster)
        return jobs, read_sources(store, jobs.name), _fell_short(opening, paths, frontend)


def _fell_short(opening: Opened, paths: Sequence[Path], frontend: Frontend) -> bool:
    """Whether a file that was named has no row, or could not be read; report those that have only a header."""
    from gpuctl.ingest.read.files import clean

    if opening.report is None:
        return False
    rowless = [source for source in opening.report.rowless if source.path in {clean(path) for path in paths}]
    for source in rowless:
        if not source.rows_in:
            frontend.tell(f"gpuctl: {source.path}: has a header and no rows", fault=True)
    return opening.failed or bool(rowless)


def promised(result: Analysis) -> dict[str, Any]:
    """The rows of a prediction under the keys that other programs go by: numbers that are not finite are null."""
    import json

    from gpuctl.reports.export import values

    table = result.tables[0]
    rows = [json.loads(row) for chunk in values.rows(table) for row in chunk]
    key = PROMISED[table.name]
    return {key: rows} if key else rows[0]
