"""``gpuctl ingest``: log files into a trace store."""

from __future__ import annotations

import sys
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.common import print_json, print_table
from gpuctl.cli.live import FetchedFiles, LiveOptions, Scheduler, fetch, plan
from gpuctl.cli.options import (
    LOG_FORMAT_HELP,
    ColumnsOption,
    CumulativeOption,
    DelimiterOption,
    GpusPerNodeOption,
    JobLogsOption,
    MapOption,
    PlainJsonOption,
    SignaturesOption,
    StampTimezoneOption,
    SwfUnitOption,
    UnitOption,
    grouped,
)
from gpuctl.cli.output import print_screen
from gpuctl.cli.settings import LOADED, print_report, settings
from gpuctl.core.errors import ExitCode, UsageError
from gpuctl.services.options import GpuFigures, LogReading, Site

if TYPE_CHECKING:
    from gpuctl.ingest.pipeline.report import IngestReport, SourceReport
    from gpuctl.reports.screens.model import Screen

DEFAULT_DB = Path("gpuctl.duckdb")
_ONE_BY_ONE = 20
"""More logs of jobs, of which the same was done, are shown as one row."""
_DAY = ["%Y-%m-%d"]


@grouped
def ingest(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH...", help="Log files, directories or archives (.tar, .tar.gz, .zip ...)."),
    ] = None,
    db: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"Trace store; created if absent.  [default: {DEFAULT_DB}]")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="NAME", help="Name of the cluster. Default: the first directory's name.")
    ] = None,
    timezone: StampTimezoneOption = None,
    *,
    job_logs: JobLogsOption = None,
    signatures: SignaturesOption = None,
    columns: ColumnsOption = None,
    delimiter: DelimiterOption = None,
    log_format: Annotated[
        str | None, typer.Option("--log-format", "--format", metavar="NAME", help=LOG_FORMAT_HELP)
    ] = None,
    cumulative: CumulativeOption = False,
    columns_map: MapOption = None,
    unit: UnitOption = None,
    save_map: Annotated[
        Path | None, typer.Option("--save-map", metavar="FILE", help="Save --map and --unit to this TOML file.")
    ] = None,
    swf_unit: SwfUnitOption = None,
    gpus_per_node: GpusPerNodeOption = None,
    lake: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="Store telemetry in this directory as Parquet, by cluster and day, instead of in the store. If the "
            "lake was moved: its new location.",
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="WHERE",
            help="Where files are read: local, dask://HOST:PORT (in parallel on Dask workers that see the logs and "
            "the store's directory) or slurm (Dask workers in submitted jobs).",
        ),
    ] = "local",
    source: Annotated[
        Scheduler | None, typer.Option("--from", help="Query a live scheduler or Prometheus instead of reading files.")
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option(
            formats=_DAY, metavar="DATE", help="First day to request (UTC). Default: continue from the last run."
        ),
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(formats=_DAY, metavar="DATE", help="Last day to request (UTC). Default: today.")
    ] = None,
    clusters: Annotated[
        str | None, typer.Option(metavar="A,B", help="Slurm clusters to query. Default: this machine's.")
    ] = None,
    sacct: Annotated[str | None, typer.Option(metavar="PATH", help="Path of sacct, if not on PATH.")] = None,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="ResourceManager or Prometheus to query, e.g. http://prometheus:9090."),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(metavar="MATCHERS", help="Labels that Prometheus's series must have, e.g. 'cluster=\"atlas\"'."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="With --from: time limit per query in seconds. Default: 600, and 60 without a byte.",
        ),
    ] = None,
    figures: GpuFigures,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be loaded; write nothing.")] = False,
    notes: Annotated[
        bool, typer.Option("--notes", help="On a terminal, list every file, rejected rows and files not read.")
    ] = False,
    as_json: PlainJsonOption = False,
) -> None:
    """Read cluster logs into a trace store. Files already loaded are skipped.

    With --db and no PATH, only upgrade the store to this version of gpuctl. --from sacct --since DATE queries Slurm's
    accounting day by day, --from prometheus --url URL --since DATE metrics of GPUs, --from yarn --url URL a
    ResourceManager; their answers are saved in a folder next to the store.
    """
    from gpuctl.ingest.pipeline.report import IngestInterrupted
    from gpuctl.services.inputs import ingest as load_logs
    from gpuctl.services.inputs import reading
    from gpuctl.spread.engine import parse

    options = settings(context)
    as_json = as_json or options.json
    if save_map is not None:
        _save_mapping(columns_map, unit, save_map)
    how = reading(
        LogReading(cluster, timezone, log_format, columns, delimiter),
        Site(
            job_logs=job_logs, signatures=signatures, map=columns_map, unit=unit, swf_unit=swf_unit,
            gpus_per_node=gpus_per_node,
        ),
        cumulative=cumulative,
    )  # fmt: skip
    store = db or DEFAULT_DB
    if source is None:
        _check(paths, db, since or until or clusters or sacct or url or match or timeout is not None)
    elif how["log_format"] is not None:
        raise UsageError("--log-format is for files", hint=f"omit it: --from {source} determines the format")
    elif paths:
        raise UsageError(f"--from {source} reads no files: omit {paths[0]}")
    live = LiveOptions(source, since, until, clusters, sacct, url, match, timeout) if source else None
    if live and dry_run:
        print_table(["command"], [[command] for command in plan(live, store, cluster)], color=options.color)
        return
    with options.progress(steps=False) as bar:
        files = [FetchedFiles(paths or [], cluster)]
        todo = fetch(live, store, cluster, bar, quiet=options.quiet) if live else files
        load = partial(
            load_logs, store=store, frontend=options, progress=bar, how=how, figures=figures, dry_run=dry_run,
            lake=lake, engine=parse(engine), debug=options.debug,
        )  # fmt: skip
        try:
            reports = [load(one.files, cluster=one.cluster) for one in todo]
        except IngestInterrupted as stop:
            _print([stop.report], as_json=as_json, color=options.color)
            options.interrupted(stop.report, store)
            raise
    brief = sys.stdout.isatty() and not (as_json or notes)
    if todo[0].files and brief:
        for report in reports:
            print_screen(_screen(report, store), None, options)
    elif todo[0].files:
        _print(reports, as_json=as_json, color=options.color)
    for report in reports:
        # the screen has the count of files that were not read
        faults = replace(report, not_read=tuple(n for n in report.not_read if n.failed))
        print_report(faults if brief else report, store, options, brief=brief)
    if any(report.failed or (report.nothing_loaded and not _idle(report, live)) for report in reports):
        raise typer.Exit(ExitCode.BAD_INPUT)


def _save_mapping(maps: list[str] | None, units: list[str] | None, place: Path) -> None:
    """Keep what the user says of a CSV's columns in a file."""
    from gpuctl.ingest.traces.mapped import column_mapping

    found = column_mapping(maps or (), units or ())
    if found is None:
        raise UsageError("--save-map keeps what --map says", hint="--map gpu_num=num_gpus")
    place.write_text(found.toml(), "utf-8")


def _check(paths: list[Path] | None, db: Path | None, of_live: object) -> None:
    if of_live:
        raise UsageError(
            "--since, --until, --clusters, --sacct, --url, --match and --timeout need --from",
            hint="--from sacct, --from prometheus, --from yarn",
        )
    if not paths and db is None:
        raise UsageError("give a log directory or file to read", hint="gpuctl ingest LOGDIR")


def _screen(report: IngestReport, store: Path) -> Screen:
    from gpuctl.reports.screens.ingest import each_source, screen

    others = sum(not one.failed for one in report.not_read)
    return screen(str(store), report.cluster, each_source(report.sources), others, dry_run=report.dry_run)


def _print(reports: list[IngestReport], *, as_json: bool, color: bool) -> None:
    if as_json:
        found = [{**asdict(report), "failed": report.failed} for report in reports]
        print_json(found[0] if len(found) == 1 else found)
        return
    columns = ("file", "format", "status", "rows", "loaded", "rejected", "bytes", "already_stored")
    print_table(columns, [row for report in reports for row in _rows(report)], color=color)


def _rows(report: IngestReport) -> list[tuple[str | int, ...]]:
    """One row a file; where a format may have thousands, those of which the same was done are one row."""
    from gpuctl.ingest.pipeline.registry import all_formats

    several = {fmt.name for fmt in all_formats() if fmt.many}
    alike: dict[tuple[str, str], list[SourceReport]] = {}
    for source in report.sources:
        alike.setdefault((source.format, source.status), []).append(source)
    rows: list[tuple[str | int, ...]] = []
    for source in report.sources:
        same = alike[source.format, source.status]
        if source.format not in several or len(same) <= _ONE_BY_ONE:
            rows.append(_row(source))
        elif source is same[0]:
            rows.append(_row(_sum(same)))
    return rows


def _sum(sources: list[SourceReport]) -> SourceReport:
    return replace(
        sources[0],
        path=f"{sources[0].path} and {len(sources) - 1} more (--json lists all)",
        bytes=sum(s.bytes for s in sources),
        rows_in=sum(s.rows_in for s in sources),
        rows_loaded=sum(s.rows_loaded for s in sources),
        rows_rejected=sum(s.rows_rejected for s in sources),
        rows_already_stored=sum(s.rows_already_stored for s in sources),
    )


def _idle(report: IngestReport, live: LiveOptions | None) -> bool:
    """Whether a scheduler was asked that had nothing to tell, which is no fault."""
    return live is not None and not any(source.rows_in for source in report.sources)


def _row(source: SourceReport) -> tuple[str | int, ...]:
    counts: tuple[str | int, ...] = (source.rows_in, source.rows_loaded, source.rows_rejected)
    known: str | int = source.rows_already_stored
    if source.status not in LOADED:
        counts, known = ("", "", ""), ""
    return source.path, source.format, source.status, *counts, source.bytes, known
