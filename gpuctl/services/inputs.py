"""Where the rows that a command works on come from: a trace store, or logs that are read into one first."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from gpuctl.core.errors import InputError, UsageError
from gpuctl.services.options import GpuFigures, Site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpuctl.core.results import SourceInfo
    from gpuctl.ingest.pipeline.report import IngestReport
    from gpuctl.services.frontend import Frontend, Progress
    from gpuctl.services.options import LogReading
    from gpuctl.store.database import Store

Rows = TypeVar("Rows")

UNSTATED = Site()
"""Nothing is said of the site."""
_USUAL = GpuFigures()
_OF_STORES = frozenset({"analyze", "convert", "explain", "fit", "learn from", "report"})
"""What is done with any trace, one that is only a CSV of jobs too; the others read such a file their own way."""


class Opened(NamedTuple):
    """A trace store to work on.

    Attributes:
        path: the store.
        cluster: the cluster that was just read into it, or that is asked for; None: not said.
        report: what reading the logs found; None for a store, which was read before.
    """

    path: Path
    cluster: str | None
    report: IngestReport | None = None

    @property
    def failed(self) -> bool:
        """Whether some input could not be read."""
        return self.report is not None and self.report.failed


def check_there(paths: Sequence[Path], expected: str) -> None:
    """See that all that is named is there.

    Args:
        paths: what is named.
        expected: what to name instead, for the hint.

    Raises:
        InputError: something is not there.
    """
    absent = next((path for path in paths if not path.exists()), None)
    if absent is not None:
        raise InputError("no such file or directory", path=str(absent), hint=f"name {expected}")


@contextmanager
def opened(
    paths: list[Path],
    db: Path | None,
    logs: LogReading,
    frontend: Frontend,
    *,
    doing: str = "analyze",
    cumulative: bool = False,
    site: Site = UNSTATED,
    brief: bool = False,
    figures: GpuFigures = _USUAL,
) -> Iterator[Opened]:
    """Open the store to work on; logs are read into it first.

    Args:
        paths: logs, or one store.
        db: the store that logs are read into; None for a temporary one, which is gone at the end.
        logs: how logs are read; which cluster of a store, or what to call that of the logs.
        frontend: receives the progress, and a report on the logs.
        doing: what is to be done with the rows, a verb for messages.
        cumulative: the bytes of traffic CSVs are counters.
        site: where jobs' own output is, and the user's own tables of what to look for in it.
        brief: of what is no fault, say only how much there is.
        figures: how figures of GPU use are made.

    Raises:
        UsageError: no rows are named, or a store and something else; a format is named that there is not, or for a
            store; a zone that comes too late.
        InputError: some of the logs are of another cluster, as far as their times tell.
        IngestInterrupted: Ctrl-C; the store that logs are read into keeps what was loaded until then.
    """
    stores = _stores(paths)
    if stores and (len(paths) > 1 or db is not None):
        raise UsageError(f"{stores[0]} is a trace store; it must be the only input", hint="give no other input")
    if (stores or not paths) and logs.log_format is not None:
        raise UsageError("--log-format is for log files; a trace store is already loaded", hint="leave it out")
    if stores or not paths:
        if db is None and not stores:
            raise UsageError(f"nothing to {doing}", hint="give a directory of logs, a trace store, or --db FILE")
        if logs.timezone is not None:
            raise UsageError(
                f"--timezone {logs.timezone} says how to read logs, and those of {stores[0] if stores else db} were "
                "read",
                hint="omit it, or reload the logs into another --db",
            )
        _check_unread(site, doing, figures)
        yield Opened(stores[0] if stores else db, logs.cluster)  # type: ignore[arg-type]
        return
    named = logs.log_format is not None or site.map or site.unit
    tables = [path for path in paths if not named and doing in _OF_STORES and is_jobs_csv(path)]
    with ExitStack() as stack:
        place = db
        if place is None or tables:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuctl-")))
            place = folder / ("jobs.duckdb" if tables else "trace.duckdb")
        if tables:
            _check_alone(
                tables[0], paths,
                {
                    "--db": db, "--timezone": logs.timezone, "--columns": logs.columns, "--delimiter": logs.delimiter,
                    "--swf-unit": None if doing == "convert" else site.swf_unit, "--gpus-per-node": site.gpus_per_node,
                },
            )  # fmt: skip
            yield Opened(place, jobs_into_store(tables[0], place))
            return
        how = reading(logs, site, cumulative=cumulative)
        report = _loaded(paths, place, logs, frontend, how, figures=figures, db=db)
        frontend.loaded(report, place, brief=brief)
        apart = sum(source.apart for source in report.sources)
        if apart:
            raise InputError(
                f"nothing to {doing}: {apart} of {len(report.sources)} files cover a different period from the rest",
                hint="give the files of one cluster, or, if all belong to one, --cluster NAME",
            )
        yield Opened(place, report.cluster, report)


def rows_of(
    paths: list[Path], db: Path | None, logs: LogReading, frontend: Frontend,
    read: Callable[[Store, str | None], Rows], *, expected: str, doing: str = "learn from", site: Site = UNSTATED,
) -> tuple[Rows, tuple[SourceInfo, ...], bool]:  # fmt: skip
    """Read what a service works on from a trace store, or from logs, and close the store again.

    Args:
        paths: as for `opened`, like `db`, `logs`, `frontend`, `doing` and `site`.
        db: the store that logs are read into.
        logs: how logs are read.
        frontend: receives progress and messages.
        read: reads the rows of the cluster of that name; None: of the only one.
        expected: what to name instead of a path that does not exist, for the hint.
        doing: a verb for messages.
        site: how files are read.

    Returns:
        what was read; the files that it came from; whether some of the input could not be read.

    Raises:
        UsageError: as for `opened`.
        InputError: as for `opened`, or a path does not exist.
    """
    check_there(paths, expected)
    from gpuctl.store.database import Store
    from gpuctl.store.sources import read_sources

    with opened(paths, db, logs, frontend, doing=doing, site=site) as found, Store(found.path) as store:
        rows = read(store, found.cluster)
        return rows, read_sources(store, store.cluster(found.cluster)), found.failed


def reading(logs: LogReading, site: Site, *, cumulative: bool = False) -> dict[str, Any]:
    """How to read logs, as arguments of `gpuctl.ingest.pipeline.load.ingest`.

    Raises:
        UsageError: there is no such format, unit or column, or the options contradict each other.
        InputError: a file that an option names is not what it should be.
    """
    from gpuctl.ingest.core.given_gpus import read_gpus_per_node
    from gpuctl.ingest.pipeline.registry import formats_for, with_named
    from gpuctl.ingest.traces.mapped import NAME, column_mapping

    mapped = column_mapping(site.map or (), site.unit or ())
    formats = formats_for(
        logs.columns, delimiter=logs.delimiter, cumulative=cumulative, job_logs=site.job_logs or (),
        signatures=site.signatures or (), mapped=mapped, swf_unit=site.swf_unit,
    )  # fmt: skip
    formats, log_format = with_named(logs.log_format or (NAME if mapped is not None else None), formats)
    return {
        "timezone": logs.timezone,
        "formats": formats,
        "log_format": log_format,
        "gpus_per_node": None if site.gpus_per_node is None else read_gpus_per_node(site.gpus_per_node),
    }


def ingest(
    paths: Sequence[Path], store: Path, cluster: str | None, how: Mapping[str, Any], frontend: Frontend, *,
    progress: Progress, figures: GpuFigures = _USUAL, **more: Any,
) -> IngestReport:  # fmt: skip
    """Read logs into a trace store, which is made if it is absent; files already loaded are skipped.

    Args:
        paths: log files, directories or archives.
        store: the trace store.
        cluster: what to call the cluster; None: derived from the first path.
        how: how logs are read (`reading`).
        frontend: receives messages.
        progress: receives the progress.
        figures: how figures of GPU use are made.
        more: of `gpuctl.ingest.pipeline.load.ingest`.

    Raises:
        InputError, UsageError, StoreError, IngestInterrupted: as that function does.
    """
    from gpuctl.analyze.telemetry_renewal import renew
    from gpuctl.ingest.pipeline.load import ingest as load

    then = partial(renew, how=figures.options(), tell=frontend.tell)
    return load(paths, store, cluster=cluster, progress=progress, notify=frontend.tell, then=then, **how, **more)


def jobs_into_store(table: Path, place: Path) -> str:
    """Make a trace store of a CSV of jobs, and return the name of its cluster.

    Raises:
        InputError: the CSV is not what it should be.
    """
    from gpuctl.replay.inputs.job_csv import read_jobs
    from gpuctl.replay.inputs.jobs_store import write_jobs

    return write_jobs(place, read_jobs(table), table)


def _loaded(
    paths: list[Path], place: Path, logs: LogReading, frontend: Frontend, how: dict[str, Any], *,
    figures: GpuFigures, db: Path | None,
) -> IngestReport:  # fmt: skip
    from gpuctl.analyze.gpu_usage.usage import renew
    from gpuctl.ingest.pipeline.load import ingest
    from gpuctl.ingest.pipeline.report import IngestInterrupted

    try:
        with frontend.progress(steps=False) as progress:
            return ingest(
                paths, place, cluster=logs.cluster, progress=progress, **how,
                then=lambda store, cluster: renew(store, cluster, figures.options()),
            )  # fmt: skip
    except IngestInterrupted as stop:
        if db is None:
            raise KeyboardInterrupt from None
        frontend.interrupted(stop.report, db)
        raise


def _check_unread(site: Site, doing: str, figures: GpuFigures) -> None:
    """What says how logs are read is of no use to a store; convert counts in the unit of ``--swf-unit``."""
    changed = figures.changed()
    if changed:
        raise UsageError(
            f"--{changed.replace('_', '-')} is for loading logs; a trace store keeps the figures made then",
            hint="load the logs into another --db with it",
        )
    if site.gpus_per_node is not None:
        raise UsageError(
            "--gpus-per-node says how to read logs, and a trace store keeps what it was given",
            hint=f"gpuctl ingest --db STORE --gpus-per-node {site.gpus_per_node}",
        )
    given = {"--map": site.map, "--unit": site.unit, "--swf-unit": doing != "convert" and site.swf_unit}
    option = next((option for option, value in given.items() if value), None)
    if option is not None:
        raise UsageError(
            f"{option} applies when logs are read, but the logs of a trace store are already loaded",
            hint="omit it, or reload the logs into another --db",
        )


def _check_alone(table: Path, paths: Sequence[Path], given: Mapping[str, object]) -> None:
    if len(paths) > 1:
        raise UsageError(f"{table} is a CSV of jobs; it must be the only input", hint="give no other input")
    option = next((option for option, value in given.items() if value is not None), None)
    if option is not None:
        raise UsageError(f"{option} is for logs; {table} is a CSV of jobs", hint=f"leave {option} out")


def _stores(paths: Sequence[Path]) -> list[Path]:
    """The trace stores among some paths; of a replay's table of jobs, which no command reads, say what to name instead.

    Raises:
        InputError: says what to name in its place.
    """
    for path in paths:
        if path.is_file() and _first_line(path).startswith(_REPLAYED):
            raise InputError(
                "is the outcome of a replay per job and policy, not a log",
                path=str(path),
                hint="save the outcome of one policy with gpuctl replay TRACE --policy NAME --store OUT.duckdb, and "
                "give OUT.duckdb here; for the jobs as recorded, give TRACE"
                "",
            )
    return [path for path in paths if is_store(path)]


def is_store(path: Path) -> bool:
    """Whether a file is a DuckDB database."""
    from gpuctl.core.file_io import read_head

    try:
        return read_head(path, 12)[8:] == b"DUCK"
    except (OSError, ValueError):
        return False


def is_jobs_csv(path: Path) -> bool:
    """Whether a file is a CSV of jobs to replay: its header has two columns of those that are needed, and is no log's.

    Logs have ``duration`` and ``num_gpus``, too, so that one of the others must be there.
    """
    if not path.is_file():
        return False
    header = {name.strip().strip('"') for name in _first_line(path).split(",")}
    known = header & set(_OURS)
    if len(known) < 2 or not known & {"job_id", "submit_time"}:
        return False
    # all four are ours; with fewer it may be a trace that has such columns, too
    return len(known) == len(_OURS) or not _is_log(path)


_REPLAYED = "policy,job,submit_s,start_s,end_s,"
"""How the header of jobs.csv begins that ``gpuctl replay --csv DIR`` writes."""
_OURS = ("job_id", "submit_time", "duration", "num_gpus")


def _is_log(path: Path) -> bool:
    from gpuctl.ingest.pipeline.detect import detect
    from gpuctl.ingest.pipeline.registry import all_formats

    return detect(path.name, f"{_first_line(path)}\n".encode(), all_formats())[0] is not None


def _first_line(path: Path) -> str:
    import gzip
    import zlib

    import zstandard

    try:
        with path.open("rb") as file:
            magic = file.read(4)
            file.seek(0)
            if magic[:2] == b"\x1f\x8b":
                with gzip.open(file) as inside:
                    start = inside.read(4096)
            elif magic == b"\x28\xb5\x2f\xfd":
                start = zstandard.ZstdDecompressor().stream_reader(file).read(4096)
            else:
                start = file.read(4096)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError):
        return ""
    return start.decode("utf-8-sig", "replace").partition("\n")[0].strip()
