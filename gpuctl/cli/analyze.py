"""``gpuctl analyze``: logs, or a trace store, into result tables."""

from __future__ import annotations

import shlex
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gpuctl.analyze.registry import REFERENCES, SECTIONS, check_names
from gpuctl.cli.common import message, settings
from gpuctl.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.analyze.run import Options
    from gpuctl.cli.common import Settings
    from gpuctl.core.results import Analysis
    from gpuctl.ingest.report import IngestReport


class Definition(StrEnum):
    """Whose definitions of waits and run times to use."""

    GPUCTL = "gpuctl"
    NOTEBOOK = "notebook"


class Duration(StrEnum):
    """What a job's duration is."""

    SPAN = "span"
    SUM = "sum"
    LAST = "last"


class OutputFormat(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    TSV = "tsv"
    MARKDOWN = "markdown"
    PARQUET = "parquet"


def analyze(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH...", help="Log files, directories or archives, or one trace store (.duckdb)."),
    ] = None,
    db: Annotated[
        Path | None,
        typer.Option(
            "--db",
            metavar="FILE",
            help="Keep what is read from the PATHs in this trace store; without PATHs, analyze it. "
            "Without --db a temporary store is used.",
        ),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which cluster of the store; needed where it holds several.")
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(metavar="ZONE", help="Zone of times that carry none, e.g. Europe/Berlin; else the format's own."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B", help="Columns, in order, of sacct text that has no header: JobIDRaw,State,..."),
    ] = None,
    quotas: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV with columns vc,quota_gpus: GPUs of each queue's quota; else inferred."),
    ] = None,
    racks: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV with columns machine,rack; else from the logs, else inferred."),
    ] = None,
    borrow_below: Annotated[
        float,
        typer.Option(
            metavar="F",
            min=0.0,
            max=1.0,
            help="A queue may exceed its quota while at most this share of all GPUs is in use; 0: never.",
        ),
    ] = 0.0,
    definition: Annotated[
        Definition, typer.Option(help="Waits and run times as gpuctl defines them, or as the published notebook does.")
    ] = Definition.GPUCTL,
    duration: Annotated[
        Duration | None,
        typer.Option(
            help="A job's duration: last end - first start, sum of its attempts, or its last attempt. "
            "span, or sum where the source tells nothing else, unless given."
        ),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"Print published values beside ours: {', '.join(REFERENCES)}.")
    ] = None,
    section: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"Only this section; may be given several times: {', '.join(key for key, _ in SECTIONS)}.",
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Print only this table (detail tables too); may be given several times."),
    ] = None,
    output_format: Annotated[
        OutputFormat | None,
        typer.Option("--format", help="table on a terminal and tsv into a pipe, unless given."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json, with every table.")] = False,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write there instead of to standard output.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="DIR", help="Also write every table to DIR/<table>.csv.")] = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write every table to DIR/<table>.parquet.")
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write one self-contained HTML page.")] = None,
) -> None:
    """Say how busy the cluster was, how long jobs waited and why, and how well they used their GPUs."""
    given = settings(context)
    as_json = as_json or given.json
    if as_json and output_format not in {None, OutputFormat.JSON}:
        raise UsageError(f"--json and --format {output_format} contradict each other", hint="give one of them")
    shape = OutputFormat.JSON if as_json else output_format
    if shape is OutputFormat.PARQUET and output is None and sys.stdout.isatty():
        raise UsageError("--format parquet writes bytes that no terminal shows", hint="add --output FILE")
    if shape is OutputFormat.PARQUET and len(set(table or ())) != 1:
        raise UsageError("one Parquet file holds one table", hint="name it with --table, or use --parquet DIR")
    check_names(sections=section or (), tables=table or (), reference=reference)
    from gpuctl.analyze.run import Options
    from gpuctl.analyze.sitefiles import read_quotas, read_racks

    options = Options(
        definition=definition.value,
        duration=duration.value if duration else None,
        quotas=read_quotas(quotas) if quotas else {},
        racks=read_racks(racks) if racks else {},
        borrow_below=borrow_below,
        reference=reference,
        sections=tuple(section or ()),
        command="gpuctl " + shlex.join(sys.argv[1:]),
    )
    with _read(paths or [], db, cluster, given, timezone=timezone, columns=columns) as (store_path, name, report):
        result = _run(store_path, options, name, given)
    if csv is not None:
        _write_directory(result, csv, "csv")
    if parquet is not None:
        _write_directory(result, parquet, "parquet")
    if html is not None:
        from gpuctl.reports.html import write_html

        write_html(result, html)
    _print(result, shape, output, table, given)
    for what in (csv, parquet, html, output):
        if what is not None:
            message(f"wrote {what}", quiet=given.quiet)
    if report is not None and report.failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


@contextmanager
def _read(
    paths: list[Path],
    db: Path | None,
    cluster: str | None,
    given: Settings,
    *,
    timezone: str | None,
    columns: str | None,
) -> Iterator[tuple[Path, str | None, IngestReport | None]]:
    """The store to analyze, the cluster that was just read into it, and what that reading found."""
    from gpuctl.cli.ingest import tell
    from gpuctl.cli.progress import Bar
    from gpuctl.ingest.load import ingest
    from gpuctl.ingest.registry import formats_for

    stores = [path for path in paths if _is_store(path)]
    if stores and (len(paths) > 1 or db is not None):
        raise UsageError(f"{stores[0]} is a trace store; it is analyzed alone", hint="name it, and nothing else")
    if stores or not paths:
        if db is None and not stores:
            raise UsageError("nothing to analyze", hint="name a directory of logs, a trace store, or --db FILE")
        yield stores[0] if stores else db, cluster, None  # type: ignore[misc]
        return
    with ExitStack() as stack:
        if db is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuctl-"))
            store_path = Path(folder) / "trace.duckdb"
        else:
            store_path = db
        with Bar(wanted=not given.quiet, color=given.color) as bar:
            formats = formats_for(columns)
            report = ingest(paths, store_path, cluster=cluster, timezone=timezone, progress=bar, formats=formats)
        tell(report, store_path, quiet=given.quiet)
        yield store_path, report.cluster, report


def _is_store(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(12)[8:] == b"DUCK"
    except OSError:
        return False


def _run(store_path: Path, options: Options, cluster: str | None, given: Settings) -> Analysis:
    from dataclasses import replace

    from gpuctl.analyze.run import analyze as run
    from gpuctl.cli.progress import Bar
    from gpuctl.trace.store import Store

    with Store(store_path) as store, Bar(wanted=not given.quiet, color=given.color, steps=True) as bar:
        return run(store, replace(options, cluster=cluster), bar.at)


def _write_directory(result: Analysis, directory: Path, kind: Literal["csv", "parquet"]) -> None:
    from gpuctl.reports.export import write_dir

    write_dir(result, directory, kind)


def _print(
    result: Analysis, shape: OutputFormat | None, output: Path | None, tables: list[str] | None, given: Settings
) -> None:
    from gpuctl.reports.export import write_atomically, write_tables
    from gpuctl.reports.terminal import print_analysis

    if shape is None and output is None and sys.stdout.isatty():
        print_analysis(result, color=None if given.color else False, names=tables)
        return
    names = tables
    if shape is OutputFormat.JSON and not tables:
        names = [each.name for each in result.tables]
    kind = shape or OutputFormat.TSV
    if output is not None:
        write_atomically(output, lambda file: write_tables(result, kind.value, file, names=names))
    else:
        write_tables(result, kind.value, sys.stdout.buffer, names=names)
