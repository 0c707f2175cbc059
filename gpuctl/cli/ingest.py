"""``gpuctl ingest``: log files into a trace store."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.common import message, print_json, print_table, settings
from gpuctl.cli.live import Asked, Brought, Scheduler, fetch, plan
from gpuctl.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from gpuctl.cli.common import Settings
    from gpuctl.cli.progress import Bar
    from gpuctl.ingest.base import Format
    from gpuctl.ingest.report import IngestReport, SourceReport

DEFAULT_DB = Path("gpuctl.duckdb")
_NOT_READ_SHOWN = 20
_LOADED = frozenset({"loaded", "replaced"})
_DAY = ["%Y-%m-%d"]


def ingest(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH...", help="Log files, directories or archives (.tar, .tar.gz, .zip ...)."),
    ] = None,
    db: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"The trace store, made where absent.  [default: {DEFAULT_DB}]")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="NAME", help="What to call the cluster; the first directory's name if absent.")
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Time zone of stamps that name none, e.g. Europe/Berlin.")
    ] = None,
    *,
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns, in order, of sacct text that has no header: JobIDRaw,State,..."),
    ] = None,
    source: Annotated[
        Scheduler | None, typer.Option("--from", help="Ask a live scheduler instead of reading files.")
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            formats=_DAY, metavar="DATE", help="First day to ask for (UTC); absent: go on from the last time."
        ),
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(formats=_DAY, metavar="DATE", help="Last day to ask for (UTC); today if absent.")
    ] = None,
    clusters: Annotated[
        str | None, typer.Option(metavar="A,B", help="Slurm clusters to ask about; this machine's if absent.")
    ] = None,
    sacct: Annotated[str | None, typer.Option(metavar="PATH", help="Where sacct is, if not on PATH.")] = None,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="YARN's ResourceManager to ask, e.g. http://rm:8088.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be loaded, write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Read cluster logs into a trace store. Files that are in it already are left alone.

    With --db and no PATH, the store is only brought up to this version of gpuctl. With --from sacct --since DATE,
    Slurm's accounting is asked day by day; with --from yarn --url URL, a ResourceManager. What they say is kept in a
    folder beside the store.
    """
    from gpuctl.cli.progress import Bar
    from gpuctl.ingest.registry import formats_for

    options = settings(context)
    as_json = as_json or options.json
    store = db or DEFAULT_DB
    if source is None:
        _check(paths, db, since or until or clusters or sacct or url)
    elif paths:
        raise UsageError(f"--from {source} reads no files: leave {paths[0]} out")
    asked = source and Asked(source, since, until, clusters, sacct, url)
    if asked and dry_run:
        print_table(["command"], [[command] for command in plan(asked, store)], color=options.color)
        return
    with Bar(wanted=not options.quiet, color=options.color) as bar:
        files = [Brought(paths or [], cluster)]
        todo = fetch(asked, store, cluster, bar, quiet=options.quiet) if asked else files
        how = _How(timezone, formats_for(columns), dry_run=dry_run, as_json=as_json)
        reports = [_load(one, store, bar, options, how) for one in todo]
    if todo[0].files:
        _print(reports, as_json=as_json, color=options.color)
    for report in reports:
        tell(report, store, quiet=options.quiet)
    if any(report.failed for report in reports):
        raise typer.Exit(ExitCode.BAD_INPUT)


def _check(paths: list[Path] | None, db: Path | None, of_live: object) -> None:
    if of_live:
        raise UsageError(
            "--since, --until, --clusters, --sacct and --url need --from", hint="--from sacct, --from yarn"
        )
    if not paths and db is None:
        raise UsageError("name a log directory or file to read", hint="gpuctl ingest LOGDIR")


@dataclass(frozen=True)
class _How:
    """How files are to be loaded, and what came of it told."""

    timezone: str | None
    formats: tuple[Format, ...]
    dry_run: bool
    as_json: bool


def _load(one: Brought, store: Path, bar: Bar, options: Settings, how: _How) -> IngestReport:
    from gpuctl.ingest.load import ingest as load
    from gpuctl.ingest.report import IngestInterrupted

    try:
        return load(
            one.files,
            store,
            cluster=one.cluster,
            timezone=how.timezone,
            progress=bar,
            dry_run=how.dry_run,
            formats=how.formats,
        )
    except IngestInterrupted as stop:
        _print([stop.report], as_json=how.as_json, color=options.color)
        done = sum(s.status in _LOADED for s in stop.report.sources)
        message(
            f"gpuctl: interrupted; loaded until then, and still in {store}: {done}; the file at hand was rolled back"
        )
        raise typer.Exit(ExitCode.INTERRUPTED) from None


def _print(reports: list[IngestReport], *, as_json: bool, color: bool) -> None:
    if as_json:
        found = [{**asdict(report), "failed": report.failed} for report in reports]
        print_json(found[0] if len(found) == 1 else found)
        return
    columns = ("file", "format", "status", "rows", "loaded", "rejected", "bytes")
    print_table(columns, [_row(source) for report in reports for source in report.sources], color=color)


def _row(source: SourceReport) -> tuple[str | int, ...]:
    counts: tuple[str | int, ...] = (source.rows_in, source.rows_loaded, source.rows_rejected)
    if source.status not in _LOADED:
        counts = ("", "", "")
    return source.path, source.format, source.status, *counts, source.bytes


def tell(report: IngestReport, store: Path, *, quiet: bool) -> None:
    """Say on stderr what the table leaves out: faults always, the rest unless `quiet`."""
    for source in report.sources:
        if source.status == "failed":
            message(f"gpuctl: {source.path}: {source.message}")
            continue
        if source.message:
            message(f"{source.path}: {source.message}", quiet=quiet)
        for reason, count in source.reasons:
            message(f"{source.path}: rejected {count}: {reason}", quiet=quiet)
    for found in report.not_read:
        if found.failed:
            message(f"gpuctl: {found.shown}: {found.why}")
    others = [n for n in report.not_read if not n.failed]
    for found in others[:_NOT_READ_SHOWN]:
        message(f"not read: {found.shown}: {found.why}", quiet=quiet)
    if len(others) > _NOT_READ_SHOWN:
        message(f"not read: and {len(others) - _NOT_READ_SHOWN} more (--json lists all)", quiet=quiet)
    if report.dry_run:
        message("nothing was written (--dry-run)", quiet=quiet)
    elif not report.sources:
        message(f"{store} is up to date", quiet=quiet)
