"""What ``gpuctl train wait`` and ``gpuctl predict wait`` do: read what they are given, learn, and forecast."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuctl.cli.common import message
from gpuctl.cli.inputs import opened
from gpuctl.core.errors import InputError, UsageError

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.cli.common import Settings
    from gpuctl.core.results import Analysis, SourceInfo
    from gpuctl.waits.log import WaitLog


@dataclass(frozen=True)
class Source:
    """Where accounting comes from: the options of both commands."""

    paths: list[Path]
    db: Path | None
    cluster: str | None
    timezone: str | None
    log_format: str | None
    columns: str | None


@dataclass(frozen=True)
class OneJob:
    """A job that the command line describes; None: not said."""

    gpus: float | None
    nodes: int | None
    limit: str | None
    queue: str | None
    user: str | None
    at: str | None


def train_wait(source: Source, place: Path, test_share: float, given: Settings, command: str) -> tuple[Analysis, bool]:
    """Learn waits, save the model, and say how forecasts fare; also tells whether some input could not be read."""
    from gpuctl.cli.progress import Bar
    from gpuctl.waits import folder, learn, tables

    log, sources, failed = _read(source, given)
    with Bar(wanted=not given.quiet, color=given.color, steps=True) as bar:
        trained = learn.train(log, test_share, bar.at)
    folder.save(place, trained.model, tables.about(trained, sources))
    return tables.result(trained, sources, command), failed


def predict_wait(
    source: Source, place: Path, asked: OneJob | Path, given: Settings, command: str
) -> tuple[Analysis, bool]:
    """Forecast waits of the jobs of a CSV, or of one job; also tells whether some input could not be read.

    Raises:
        InputError: the model or the jobs cannot be read, or the log counts jobs in another unit.
    """
    from gpuctl.core.notes import named, note, ours
    from gpuctl.core.text import storable
    from gpuctl.waits import folder, tables
    from gpuctl.waits.forecast import forecast

    trained = folder.load(place)
    listed, sources = _one(asked) if isinstance(asked, OneJob) else _listed(asked)
    log, failed = None, False
    if source.paths:
        log, read, failed = _read(source, given)
        sources = (*read, *sources)
        if log.unit != trained.unit:
            raise InputError(
                f"jobs of {log.name} are counted in {log.unit}, those that the model learnt from in {trained.unit}",
                hint="train a model on the accounting of this cluster",
            )
    else:
        text = "note: no accounting is named, so the queue is not known; each forecast uses the job alone"
        message(text, quiet=given.quiet)
    said = {
        "model": named("path", storable(str(place))),
        "queue": note("as the log shows it") if log is not None else note("not known"),
        "counted in": ours(trained.unit),
    }
    name = named("cluster", log.name) if log is not None else note("jobs")
    return tables.forecasts(forecast(trained, listed, log), name, said, command, sources), failed


def _listed(path: Path) -> tuple[pl.DataFrame, tuple[SourceInfo, ...]]:
    from gpuctl.predictors.queued_jobs import read_listed

    jobs, source = read_listed(path)
    return jobs, (source,)


def _one(asked: OneJob) -> tuple[pl.DataFrame, tuple[SourceInfo, ...]]:
    import polars as pl

    from gpuctl.chain.cases import clock_s
    from gpuctl.chain.evaluate import minutes

    gpus, nodes, limit, queue, user, at = astuple(asked)
    try:
        submit_s = None if at is None else float(clock_s(at))
    except ValueError:
        raise UsageError(f"--at {str(at)[:40]}: expected a date and time", hint="2026-03-01T12:00") from None
    row = {
        "job": "job", "user": user, "queue": queue, "gpus": gpus, "nodes": None if nodes is None else float(nodes),
        "time_limit_s": None if limit is None else 60.0 * minutes("--limit", limit), "submit_s": submit_s,
    }  # fmt: skip
    kinds: dict[str, Any] = {name: pl.String if name in {"job", "user", "queue"} else pl.Float64 for name in row}
    return pl.DataFrame([row], schema=kinds), ()


def _read(source: Source, given: Settings) -> tuple[WaitLog, tuple[SourceInfo, ...], bool]:
    """The jobs, the files that they came from, and whether something of them could not be read."""
    absent = next((path for path in source.paths if not path.exists()), None)
    if absent is not None:
        raise InputError("no such file or directory", path=str(absent), hint="name accounting logs, or a trace store")
    from gpuctl.store.database import Store
    from gpuctl.store.sources import read_sources
    from gpuctl.waits.log import from_store

    with opened(
        source.paths, source.db, source.cluster, given, timezone=source.timezone, columns=source.columns,
        log_format=source.log_format, doing="learn from",
    ) as (path, name, report), Store(path) as store:  # fmt: skip
        log = from_store(store, name)
        return log, read_sources(store, log.name), report is not None and report.failed
