"""Models of queue waits: learned from accounting, saved, and asked for forecasts."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import InputError, UsageError
from gpuctl.services.inputs import rows_of

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.core.notes import Note
    from gpuctl.core.results import Analysis, SourceInfo
    from gpuctl.services.frontend import Frontend
    from gpuctl.services.options import LogReading
    from gpuctl.waits.queue_log import WaitLog
    from gpuctl.waits.queue_snapshot import Snapshot


@dataclass(frozen=True)
class Source:
    """Where accounting comes from: the options of both commands."""

    paths: list[Path]
    db: Path | None
    logs: LogReading
    queue: Queue | None = None


@dataclass(frozen=True)
class OneJob:
    """A job that the command line describes; None: not said."""

    gpus: float | None
    nodes: int | None
    limit: str | None
    queue: str | None
    user: str | None
    at: str | None


@dataclass(frozen=True)
class Queue:
    """Where the queue of now comes from: ``now``, or a file.

    Attributes:
        squeue: ``now``, or a file with what ``squeue --json`` printed.
        sinfo: likewise of ``sinfo --json``; with ``now`` above it is asked, too.
        taken_s: when a file was so, if it does not say.
    """

    squeue: str
    sinfo: str | None = None
    taken_s: float | None = None


def train_wait(
    source: Source, place: Path, test_share: float, frontend: Frontend, command: str
) -> tuple[Analysis, bool]:
    """Learn waits, save the model, and score its forecasts; also return whether some input could not be read."""
    from gpuctl.waits import learn, tables, wait_model_folder

    (log, _), sources, failed = _read(source, frontend)
    with frontend.progress() as bar:
        trained = learn.train(log, test_share, bar.at)
    wait_model_folder.save(place, trained.model, tables.about(trained, sources))
    return tables.result(trained, sources, command), failed


def predict_wait(
    source: Source,
    place: Path,
    request: OneJob | Path | None,
    frontend: Frontend,
    command: str,
    *,
    slurm_conf: tuple[Path, ...] = (),
) -> tuple[Analysis, bool]:
    """Forecast waits of the jobs of a CSV, of one job, or of all that wait; also: could some input not be read?

    Args:
        source: of the accounting, and of the queue of now.
        place: of the model.
        request: the jobs; None: all that wait.
        frontend: receives progress and messages.
        command: the command line.
        slurm_conf: files of the site's configuration, for all that wait; empty: the model's order, on all nodes.

    Raises:
        InputError: the model, the jobs, the configuration or the queue cannot be read, or the log counts jobs in
            another unit.
    """
    from gpuctl.core.notes import literal, named, note
    from gpuctl.core.storable_text import storable
    from gpuctl.waits import pending, tables, wait_model_folder
    from gpuctl.waits.forecast import forecast

    trained = wait_model_folder.load(place)
    now = _queue(source.queue)
    log: WaitLog | None = None
    notes: tuple[Note, ...] = ()
    sources: tuple[SourceInfo, ...] = ()
    failed = False
    if source.paths:
        (log, notes), sources, failed = _read(source, frontend, now)
        if log.unit != trained.unit:
            raise InputError(
                f"jobs of {log.name} are counted in {log.unit}, those that the model learnt from in {trained.unit}",
                hint="train a model on the accounting of this cluster",
            )
    else:
        text = "note: no accounting is named, so the past is not known; each forecast uses the job alone"
        frontend.tell(text)
    if request is None and log is not None:
        found, more = pending.of_all(trained, log, now, slurm_conf)
        notes = (*notes, *more)
    elif request is None and now is not None:
        found = pending.without_accounting(trained, now)
    elif request is None:
        raise UsageError("--all needs a queue", hint="name accounting or a store, or --squeue now")
    else:
        listed, read = _one(request) if isinstance(request, OneJob) else _listed(request)
        sources = (*sources, *read)
        found = forecast(trained, listed, log)
    settings = {
        "model": named("path", storable(str(place))),
        "queue": note("as squeue reports it") if now is not None and (log is not None or request is None)
        else note("as the log shows it") if log is not None else note("not known"),
        "counted in": literal(trained.unit),
        **({"rules of the queue": note("the site's own, by the policy slurm of a replay")} if slurm_conf else {}),
    }  # fmt: skip
    if now is not None and now.cut:
        notes = (*notes, note("Of {n:,} array{n||s} the queue names only the first tasks (...): the others are not "
                              "counted; "
                              "SLURM_BITSTR_LEN=0 makes squeue name all.", n=now.cut))  # fmt: skip
    name = named("cluster", log.name) if log is not None else note("jobs")
    return tables.forecasts(found, name, settings, command, sources, warnings=notes), failed


def _queue(queue: Queue | None) -> Snapshot | None:
    """The queue of now, with its nodes if they are known."""
    if queue is None:
        return None
    import time
    from dataclasses import replace

    from gpuctl.core.file_io import read_whole
    from gpuctl.ingest.read.programs import output
    from gpuctl.waits.queue_snapshot import MOST_BYTES, read_nodes, read_snapshot

    def printed(what: str, *command: str) -> bytes:
        if what != "now":
            return read_whole(Path(what), most=MOST_BYTES, hint=f"a file with what {command[0]} --json prints")
        return output(command, timeout_s=60.0, settings={"LC_ALL": "C.UTF-8", "TZ": "UTC", "SLURM_BITSTR_LEN": "0"})

    live = queue.squeue == "now"
    data = printed(queue.squeue, "squeue", "--json", "--all", "--array")
    found = read_snapshot(data, queue.squeue, time.time() if live else queue.taken_s)
    sinfo = queue.sinfo or ("now" if live else None)
    if sinfo is None:
        return found
    gpus, nodes = read_nodes(printed(sinfo, "sinfo", "--json"), sinfo)
    return replace(found, gpus=gpus, nodes=nodes)


def _listed(path: Path) -> tuple[pl.DataFrame, tuple[SourceInfo, ...]]:
    from gpuctl.predictors.queued_jobs import read_listed

    jobs, source = read_listed(path)
    return jobs, (source,)


def _one(job: OneJob) -> tuple[pl.DataFrame, tuple[SourceInfo, ...]]:
    import polars as pl

    from gpuctl.core.durations import clock_s, minutes_of_option

    gpus, nodes, limit, queue, user, at = astuple(job)
    try:
        submit_s = None if at is None else float(clock_s(at))
    except ValueError:
        raise UsageError(f"--at {str(at)[:40]}: expected a date and time", hint="2026-03-01T12:00") from None
    row = {
        "job": "job", "user": user, "queue": queue, "gpus": gpus, "nodes": None if nodes is None else float(nodes),
        "time_limit_s": None if limit is None else 60.0 * minutes_of_option("--limit", limit), "submit_s": submit_s,
    }  # fmt: skip
    kinds: dict[str, Any] = {name: pl.String if name in {"job", "user", "queue"} else pl.Float64 for name in row}
    return pl.DataFrame([row], schema=kinds), ()


def _read(
    source: Source, frontend: Frontend, queue: Snapshot | None = None
) -> tuple[tuple[WaitLog, tuple[Note, ...]], tuple[SourceInfo, ...], bool]:
    """The jobs and what was found, the files that they came from, and whether something of them could not be read."""
    from gpuctl.waits.queue_log import from_store

    return rows_of(
        source.paths, source.db, source.logs, frontend, lambda store, name: from_store(store, name, queue),
        expected="accounting logs, or a trace store",
    )  # fmt: skip
