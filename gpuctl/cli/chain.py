"""``gpuctl chain``: when to submit the successor of a long job."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from functools import partial
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
    ParquetOption,
    TableOption,
)
from gpuctl.cli.output import chosen_format, print_result, tell_written, write_directory
from gpuctl.cli.output_paths import check_outputs
from gpuctl.core.errors import ExitCode, InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.chain.episode import Pair
    from gpuctl.chain.log import Log
    from gpuctl.cli.common import Settings
    from gpuctl.core.results import Analysis, SourceInfo

    Reader = Callable[[], tuple[Log, tuple[SourceInfo, ...], bool]]

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
    nodes: Annotated[int | None, typer.Option(metavar="N", min=1, help="Nodes of the cluster.")] = None,
    job_nodes: Annotated[int, typer.Option(metavar="N", min=1, help="Nodes of each job of the chain.")] = 1,
    limit: Annotated[
        str, typer.Option(metavar="TIME", help="Limit of each job, which it uses up: 48h, 90m, 2d.")
    ] = "48h",
    policy: Annotated[
        str,
        typer.Option(metavar="A,B", help="When to submit: reactive, avg, quantile, plan, newsvendor, forest, boost."),
    ] = "reactive,avg,quantile,plan,newsvendor",
    split: Annotated[
        str | None, typer.Option(metavar="DATE", help="Score starts from this date on; learn from those before.")
    ] = None,
    train_from: Annotated[
        str | None,
        typer.Option(
            metavar="DATE", help="First start to learn from. Default: the midnight after the first job start."
        ),
    ] = None,
    outage_cost: Annotated[
        float, typer.Option(metavar="C", help="Cost of an hour of interruption, in hours of overlap.")
    ] = 1.0,
    cluster: ClusterOption = None,
    timezone: LogTimezoneOption = None,
    log_format: LogFormatOption = None,
    columns: LogColumnsOption = None,
    parquet: ParquetOption = None,
    table: TableOption = None,
    output_format: FormatOption = None,
    as_json: JsonOption = False,
    output: OutputOption = None,
) -> None:
    """Simulate chains of jobs among those of a log: how long are gaps and overlaps, for each way to submit?"""
    given = settings(context)
    shape = chosen_format(output_format, as_json=as_json or given.json, output=output, tables=table)
    check_outputs(context, {"--output": output}, {"--parquet": parquet})
    command = "gpuctl " + shlex.join(sys.argv[1:])
    reader = partial(_read, paths or [], db, cluster, given, timezone=timezone, columns=columns, log_format=log_format)
    if cases is not None or compat is not None:
        if cases is None or compat is None or nodes is not None or split is not None:
            raise UsageError(
                "--cases and --compat mirage go together, and without --nodes and --split",
                hint="docs/chain.md has examples of both ways",
            )
        result, failed = _cases(cases, reader, table, given, command)
    else:
        if nodes is None or split is None:
            raise UsageError("chain evaluate needs --nodes and --split, or --cases", hint="docs/chain.md has examples")
        from gpuctl.chain.episode import Pair
        from gpuctl.chain.evaluate import hours, policy_names

        pair = Pair(job_nodes, hours(limit))
        if job_nodes > nodes:
            raise UsageError(f"--job-nodes {job_nodes}: the cluster has {nodes}")
        if not 0.01 <= outage_cost <= 100:
            raise UsageError(f"--outage-cost {outage_cost:g}: expected a number from 0.01 to 100")
        since = None if train_from is None else _date("--train-from", train_from)
        wishes = (nodes, pair, policy_names(policy), _date("--split", split), since, outage_cost)
        result, failed = _policies(wishes, reader, table, given, command)
    if parquet is not None:
        write_directory(result, parquet, "parquet", given)
    print_result(result, shape, output, table, given)
    tell_written((output, parquet), given)
    if failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _cases(
    cases: Path, reader: Reader, table: list[str] | None, given: Settings, command: str
) -> tuple[Analysis, bool]:
    from gpuctl.chain import case_tables
    from gpuctl.chain import cases as of_file
    from gpuctl.cli.progress import Bar
    from gpuctl.cli.train import check_tables

    check_tables(table or (), ("cases", "starts", "states"))
    asked = of_file.read_cases(cases)
    log, sources, failed = reader()
    of_file.check(log, asked)
    with Bar(wanted=not given.quiet, color=given.color, steps=True) as bar:
        frames = of_file.run(log, asked, bar.at)
    return case_tables.result(frames, log, command, sources), failed


def _policies(
    wishes: tuple[int, Pair, tuple[str, ...], int, int | None, float],
    reader: Reader,
    table: list[str] | None,
    given: Settings,
    command: str,
) -> tuple[Analysis, bool]:
    from gpuctl.chain import evaluate as of_log
    from gpuctl.chain import tables
    from gpuctl.cli.progress import Bar
    from gpuctl.cli.train import check_tables

    check_tables(table or (), ("chain", "chain_starts"))
    log, sources, failed = reader()
    size, pair, policies, split_s, from_s, cost = wishes
    since = of_log.next_midnight(log.first_start_s) if from_s is None else from_s
    asked = of_log.Asked(size, pair, policies, split_s, since, cost)
    with Bar(wanted=not given.quiet, color=given.color, steps=True) as bar:
        frames = of_log.run(log, asked, bar.at)
    return tables.result(frames, asked, log, command, sources), failed


def _date(option: str, text: str) -> int:
    from gpuctl.chain.cases import clock_s

    try:
        return clock_s(text)
    except ValueError:
        raise UsageError(f"{option} {text[:40]}: expected a date", hint="2023-03-01, or 2023-03-01T12:00") from None


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
