"""``gpuctl chain``: when to submit the successor of a long job."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.common import message, settings
from gpuctl.cli.examples import WithExamples
from gpuctl.cli.inputs import opened
from gpuctl.cli.options import (
    ClusterOption,
    FormatOption,
    JsonOption,
    LogColumnsOption,
    LogFormatOption,
    LogTimezoneOption,
    OutputOption,
    TableOption,
)
from gpuctl.cli.output import chosen_format, print_result, tell_written, write_directory
from gpuctl.cli.output_paths import check_outputs
from gpuctl.core.errors import ExitCode, InputError, UsageError

if TYPE_CHECKING:
    from gpuctl.chain.log import Log
    from gpuctl.cli.common import Settings
    from gpuctl.core.results import SourceInfo

chain = typer.Typer(
    name="chain",
    help="Say when to submit the successor of a long job, so that it starts when that ends.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class Compat(StrEnum):
    """Whose rules hold."""

    MIRAGE = "mirage"


@chain.callback()
def _group() -> None:
    """Say when to submit the successor of a long job, so that it starts when that ends."""


@chain.command(cls=WithExamples)
def evaluate(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="INPUT...", help="Slurm accounting, or one trace store (.duckdb).")
    ] = None,
    db: Annotated[Path | None, typer.Option("--db", metavar="FILE", help="Trace store to keep the logs in.")] = None,
    cases: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV of pairs, one a line: case,start,cluster_nodes,pair_nodes,pair_limit_min,p_submit_s,s_submit_s.",
        ),
    ] = None,
    compat: Annotated[
        Compat | None, typer.Option(help="Rules of Mirage's authors' simulator; needed with --cases.")
    ] = None,
    cluster: ClusterOption = None,
    timezone: LogTimezoneOption = None,
    log_format: LogFormatOption = None,
    columns: LogColumnsOption = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write every table to DIR/<table>.parquet.")
    ] = None,
    table: TableOption = None,
    output_format: FormatOption = None,
    as_json: JsonOption = False,
    output: OutputOption = None,
) -> None:
    """Simulate pairs of jobs among those of a log: how long is the gap between them, or the overlap?"""
    given = settings(context)
    shape = chosen_format(output_format, as_json=as_json or given.json, output=output, tables=table)
    if cases is None or compat is None:
        raise UsageError("chain evaluate needs --cases and --compat mirage", hint="docs/chain.md has an example")
    from gpuctl.chain import case_tables
    from gpuctl.chain import cases as of_file
    from gpuctl.cli.progress import Bar
    from gpuctl.cli.train import check_tables

    check_tables(table or (), ("cases", "starts", "states"))
    check_outputs(context, {"--output": output}, {"--parquet": parquet})
    asked = of_file.read_cases(cases)
    log, sources, failed = _read(
        paths or [], db, cluster, given, timezone=timezone, columns=columns, log_format=log_format
    )
    of_file.check(log, asked)
    with Bar(wanted=not given.quiet, color=given.color, steps=True) as bar:
        frames = of_file.run(log, asked, bar.at)
    result = case_tables.result(frames, log, "gpuctl " + shlex.join(sys.argv[1:]), sources)
    if parquet is not None:
        write_directory(result, parquet, "parquet", given)
    print_result(result, shape, output, table, given)
    tell_written((output, parquet), given)
    if failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _read(
    paths: list[Path], db: Path | None, cluster: str | None, given: Settings, *, timezone: str | None,
    columns: str | None, log_format: str | None,
) -> tuple[Log, tuple[SourceInfo, ...], bool]:  # fmt: skip
    """The jobs, the files that they came from, and whether something of them could not be read."""
    absent = next((path for path in paths if not path.exists()), None)
    if absent is not None:
        raise InputError("no such file or directory", path=str(absent), hint="name Slurm accounting, or a trace store")
    from gpuctl.chain.log import from_store
    from gpuctl.store.database import Store
    from gpuctl.store.sources import read_sources

    with opened(
        paths, db, cluster, given, timezone=timezone, columns=columns, log_format=log_format, doing="evaluate"
    ) as (path, name, report), Store(path) as store:  # fmt: skip
        log = from_store(store, name)
        for each in log.notes:
            message(f"note: {each}", quiet=given.quiet)
        return log, read_sources(store, log.name), report is not None and report.failed
