"""Where the rows that a command works on come from: a trace store, or logs that are read into one first."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gpuctl.core.errors import ExitCode, InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from gpuctl.cli.common import Settings
    from gpuctl.cli.options import GpuFigures, LogReading, Site
    from gpuctl.ingest.core.given_gpus import GpusPerNode
    from gpuctl.ingest.pipeline.report import IngestReport
    from gpuctl.ingest.traces.mapped import ColumnMapping
    from gpuctl.store.database import Store


_OF_STORES = frozenset({"analyze", "convert", "explain", "fit", "learn from", "report"})
"""What is done with any trace, one that is only a CSV of jobs too; the others read such a file their own way."""


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
    cluster: str | None,
    given: Settings,
    *,
    timezone: str | None,
    columns: str | None,
    delimiter: str | None = None,
    doing: str = "analyze",
    cumulative: bool = False,
    site: Site | None = None,
    log_format: str | None = None,
    brief: bool = False,
    figures: GpuFigures | None = None,
) -> Iterator[tuple[Path, str | None, IngestReport | None]]:
    """The store to work on, the cluster that was just read into it, and what that reading found.

    Args:
        paths: logs, or one store.
        db: the store that logs are read into; None for a temporary one, which is gone at the end.
        cluster: which cluster of a store; what to call that of the logs.
        given: the global options.
        timezone: of times that carry none.
        columns: of sacct text without a header.
        delimiter: what stands between these; None: it is found.
        doing: what is to be done with the rows, a verb for messages.
        cumulative: the bytes of traffic CSVs are counters.
        site: where jobs' own output is, and the user's own tables of what to look for in it.
        log_format: the format that the files are of that are named one by one.
        brief: of what is no fault, say only how much there is.
        figures: how figures of GPU use are made; None: as by default.

    Raises:
        UsageError: no rows are named, or a store and something else; a format is named that there is not, or for a
            store; a zone that comes too late.
        InputError: some of the logs are of another cluster, as far as their times tell.
    """
    from gpuctl.cli.ingest_messages import print_interrupted, print_report
    from gpuctl.cli.progress import Bar
    from gpuctl.ingest.pipeline.load import ingest
    from gpuctl.ingest.pipeline.registry import formats_for
    from gpuctl.ingest.pipeline.report import IngestInterrupted

    stores = _stores(paths)
    if stores and (len(paths) > 1 or db is not None):
        raise UsageError(f"{stores[0]} is a trace store; it must be the only input", hint="give no other input")
    if (stores or not paths) and log_format is not None:
        raise UsageError("--log-format is for log files; a trace store is already loaded", hint="leave it out")
    if stores or not paths:
        if db is None and not stores:
            raise UsageError(f"nothing to {doing}", hint="give a directory of logs, a trace store, or --db FILE")
        if timezone is not None:
            raise UsageError(
                f"--timezone {timezone} says how to read logs, and those of {stores[0] if stores else db} were read",
                hint="omit it, or reload the logs into another --db",
            )
        _check_unread(site, doing, figures)
        yield stores[0] if stores else db, cluster, None  # type: ignore[misc]
        return
    mapped, log_format = _mapped(site, log_format)
    tables = [path for path in paths if log_format is None and doing in _OF_STORES and is_jobs_csv(path)]
    if tables:
        _check_alone(
            tables[0], paths,
            {
                "--db": db, "--timezone": timezone, "--columns": columns, "--delimiter": delimiter,
                "--swf-unit": site.swf_unit if site and doing != "convert" else None,
                "--gpus-per-node": site and site.gpus_per_node,
            },
        )  # fmt: skip
        from gpuctl.replay.inputs.job_csv import read_jobs
        from gpuctl.replay.inputs.jobs_store import write_jobs

        with tempfile.TemporaryDirectory(prefix="gpuctl-") as folder:
            place = Path(folder) / "jobs.duckdb"
            name = write_jobs(place, read_jobs(tables[0]), tables[0])
            yield place, name, None
        return
    with ExitStack() as stack:
        if db is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuctl-"))
            store_path = Path(folder) / "trace.duckdb"
        else:
            store_path = db
        formats = formats_for(
            columns, delimiter=delimiter, cumulative=cumulative, mapped=mapped, **(_of_site(site) if site else {})
        )
        try:
            with Bar(wanted=not given.quiet, color=given.color) as bar:
                report = ingest(
                    paths,
                    store_path,
                    cluster=cluster,
                    timezone=timezone,
                    progress=bar,
                    formats=formats,
                    log_format=log_format,
                    gpus_per_node=_given_gpus(site),
                    then=partial(_use_of_gpus, figures),
                )
        except IngestInterrupted as stop:
            if db is None:
                raise KeyboardInterrupt from None
            print_interrupted(stop.report, db)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        print_report(report, store_path, quiet=given.quiet, hide=given.hide, brief=brief)
        if report.nothing_loaded:
            raise typer.Exit(ExitCode.BAD_INPUT)
        apart = sum(source.apart for source in report.sources)
        if apart:
            raise InputError(
                f"nothing to {doing}: {apart} of {len(report.sources)} files cover a different period from the rest",
                hint="give the files of one cluster, or, if all belong to one, --cluster NAME",
            )
        yield store_path, report.cluster, report


def opened_with(
    logs: LogReading, paths: list[Path], db: Path | None, given: Settings, doing: str, *, site: Site | None = None,
    brief: bool = False,
) -> AbstractContextManager[tuple[Path, str | None, IngestReport | None]]:  # fmt: skip
    """The store to work on, as `opened` gives it, with the options of how logs are read."""
    return opened(
        paths, db, logs.cluster, given, timezone=logs.timezone, columns=logs.columns, delimiter=logs.delimiter,
        log_format=logs.log_format, doing=doing, site=site, brief=brief,
    )  # fmt: skip


def _use_of_gpus(figures: GpuFigures | None, store: Store, cluster: str) -> None:
    """Join the telemetry of GPUs that was loaded to jobs."""
    from gpuctl.analyze.gpu_usage.usage import Options, renew

    renew(store, cluster, Options(*figures.settings()) if figures else Options())


def _given_gpus(site: Site | None) -> GpusPerNode | None:
    """GPUs of nodes, as the user gives them."""
    from gpuctl.ingest.core.given_gpus import read_gpus_per_node

    return None if site is None or site.gpus_per_node is None else read_gpus_per_node(site.gpus_per_node)


def _check_unread(site: Site | None, doing: str, figures: GpuFigures | None = None) -> None:
    """What says how logs are read is of no use to a store; convert counts in the unit of ``--swf-unit``."""
    changed = figures and figures.changed()
    if changed:
        raise UsageError(
            f"--{changed.replace('_', '-')} is for loading logs; a trace store keeps the figures made then",
            hint="load the logs into another --db with it",
        )
    given = {
        "--map": site and site.map,
        "--unit": site and site.unit,
        "--swf-unit": site and doing != "convert" and site.swf_unit,
    }
    if site and site.gpus_per_node is not None:
        raise UsageError(
            "--gpus-per-node says how to read logs, and a trace store keeps what it was given",
            hint=f"gpuctl ingest --db STORE --gpus-per-node {site.gpus_per_node}",
        )
    option = next((option for option, value in given.items() if value), None)
    if option is not None:
        raise UsageError(
            f"{option} applies when logs are read, but the logs of a trace store are already loaded",
            hint="omit it, or reload the logs into another --db",
        )


def _mapped(site: Site | None, log_format: str | None) -> tuple[ColumnMapping | None, str | None]:
    """What the user says of the columns of a CSV, and the format that files are of that are named."""
    from gpuctl.ingest.traces.mapped import NAME, column_mapping

    found = column_mapping(site.map or (), site.unit or ()) if site else None
    return found, log_format or (NAME if found is not None else None)


def _of_site(site: Site) -> dict[str, Any]:
    """What the user says of the site that decides how files are read."""
    return {"job_logs": site.job_logs or (), "signatures": site.signatures or (), "swf_unit": site.swf_unit}


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
