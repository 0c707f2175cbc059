"""``gpuctl ingest``: log files into a trace store."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.common import message, print_json, print_table, settings
from gpuctl.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from gpuctl.ingest.report import IngestReport, SourceReport

DEFAULT_DB = Path("gpuctl.duckdb")
_NOT_READ_SHOWN = 20
_LOADED = frozenset({"loaded", "replaced"})


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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be loaded, write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Read cluster logs into a trace store. Files that are in it already are left alone.

    With --db and no PATH, the store is only brought up to this version of gpuctl.
    """
    from gpuctl.cli.progress import Bar
    from gpuctl.ingest.load import ingest as load
    from gpuctl.ingest.report import IngestInterrupted

    options = settings(context)
    as_json = as_json or options.json
    if not paths and db is None:
        raise UsageError("name a log directory or file to read", hint="gpuctl ingest LOGDIR")
    store = db or DEFAULT_DB
    try:
        with Bar(wanted=not options.quiet, color=options.color) as bar:
            report = load(paths or [], store, cluster=cluster, timezone=timezone, progress=bar, dry_run=dry_run)
    except IngestInterrupted as stop:
        _print(stop.report, as_json=as_json, color=options.color)
        done = sum(s.status in _LOADED for s in stop.report.sources)
        message(
            f"gpuctl: interrupted; loaded until then, and still in {store}: {done}; the file at hand was rolled back"
        )
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    if paths:
        _print(report, as_json=as_json, color=options.color)
    _tell(report, store, quiet=options.quiet)
    if report.failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _print(report: IngestReport, *, as_json: bool, color: bool) -> None:
    if as_json:
        print_json({**asdict(report), "failed": report.failed})
        return
    columns = ("file", "format", "status", "rows", "loaded", "rejected", "bytes")
    print_table(columns, [_row(s) for s in report.sources], color=color)


def _row(source: SourceReport) -> tuple[str | int, ...]:
    counts: tuple[str | int, ...] = (source.rows_in, source.rows_loaded, source.rows_rejected)
    if source.status not in _LOADED:
        counts = ("", "", "")
    return source.path, source.format, source.status, *counts, source.bytes


def _tell(report: IngestReport, store: Path, *, quiet: bool) -> None:
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
