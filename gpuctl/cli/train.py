"""``gpuctl train``: learn from logs what ``gpuctl predict`` answers with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.common import settings
from gpuctl.cli.examples import WithExamples
from gpuctl.cli.inputs import check_there, is_jobs_csv, opened_with
from gpuctl.cli.keep import keep, keeping_place, traces_db
from gpuctl.cli.options import AnswerOptions, ClusterOption, KeepOption, LogReading, TableOption, grouped
from gpuctl.cli.output import check_tables, command_line, print_answer
from gpuctl.cli.output_paths import check_outputs
from gpuctl.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.cli.common import Settings
    from gpuctl.core.results import Analysis, SourceInfo
    from gpuctl.predictors.contract import Predictor
    from gpuctl.predictors.job_table import JobTable

train = typer.Typer(
    name="train",
    help="Train the models for gpuctl predict on logs, and score them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

LearntPathsArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="INPUT...", help="Logs, one trace store (.duckdb), or one CSV of jobs as for replay."),
]
ModelOption = Annotated[
    Path, typer.Option("--model", "-o", metavar="DIR", help="Folder for the model; an existing model is replaced.")
]

LearntDbOption = Annotated[
    Path | None,
    typer.Option("--db", metavar="FILE", help="Trace store for the logs; without INPUT, the store to learn from."),
]
TestShareOption = Annotated[
    float, typer.Option(metavar="F", help="Share of jobs held out for scoring: the last submitted.")
]


@train.command(cls=WithExamples)
@grouped
def runtime(
    context: typer.Context,
    *,
    model: ModelOption,
    paths: LearntPathsArgument = None,
    db: LearntDbOption = None,
    logs: LogReading,
    test_share: TestShareOption = 0.2,
    quantiles: Annotated[
        str, typer.Option(metavar="A,B,C", help="Quantiles for the lower end, the prediction and the upper end.")
    ] = "0.1,0.5,0.9",
    predictor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also score this predictor (gpuctl predictors lists them) or FILE.py:CLASS; repeatable.",
        ),
    ] = None,
    table: TableOption = None,
    answer: AnswerOptions,
    keep_as: KeepOption = None,
) -> None:
    """Train a model of run times on a log, and score it against simple rules on the log's last jobs."""
    given = settings(context)
    shape = answer.shape(given, table)
    shares = _numbers(quantiles)
    from gpuctl.predictors import card, history_tables
    from gpuctl.predictors.registry import find

    check_tables(table, history_tables.TABLES)
    others = [find(name) for name in dict.fromkeys(predictor or ())]
    card.check_place(model)
    place = keeping_place(keep_as, paths or [], db)
    check_outputs(context, {"--output": answer.output})
    logs_in = traces_db(paths or [], db, keep_as)
    result, failed = train_runtime(
        paths or [], logs_in, logs, model, given,
        test_share=test_share, quantiles=shares, others=others, command=command_line(),
    )  # fmt: skip
    print_answer(result, shape, answer, table, given, also=(model,))
    keep(result, keep_as, place, context, given)
    if failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


@train.command()
@grouped
def overhead(
    context: typer.Context,
    *,
    model: ModelOption,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="INPUT...", help="CSV of measured suspensions (see gpuctl formats), or one trace store (.duckdb)."
        ),
    ] = None,
    db: Annotated[
        Path | None,
        typer.Option("--db", metavar="FILE", help="Trace store for the input; everything in it is used."),
    ] = None,
    cluster: ClusterOption = None,
    answer: AnswerOptions,
    keep_as: KeepOption = None,
) -> None:
    """Train a model of suspend and resume costs on measured suspensions, and score it."""
    given = settings(context)
    shape = answer.shape(given)
    from gpuctl.cli.profiles import train_overhead
    from gpuctl.predictors import card

    card.check_place(model)
    place = keeping_place(keep_as, paths or [], db)
    check_outputs(context, {"--output": answer.output})
    result, failed = train_overhead(paths or [], model, given, db=db, cluster=cluster, command=command_line())
    print_answer(result, shape, answer, None, given, also=(model,))
    keep(result, keep_as, place, context, given)
    if failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


@train.command(cls=WithExamples)
@grouped
def wait(
    context: typer.Context,
    *,
    model: ModelOption,
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="INPUT...", help="Accounting logs, or one trace store (.duckdb).")
    ] = None,
    db: LearntDbOption = None,
    logs: LogReading,
    test_share: TestShareOption = 0.25,
    table: TableOption = None,
    answer: AnswerOptions,
) -> None:
    """Train a model of waits on a log, and score it against simple rules on the log's last jobs."""
    given = settings(context)
    shape = answer.shape(given, table)
    from gpuctl.cli.waits import Source, train_wait
    from gpuctl.predictors import card
    from gpuctl.waits.tables import TABLES

    check_tables(table, TABLES)
    card.check_place(model)
    check_outputs(context, {"--output": answer.output})
    source = Source(paths or [], db, logs)
    result, failed = train_wait(source, model, test_share, given, command_line())
    print_answer(result, shape, answer, table, given, also=(model,))
    if failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def train_runtime(
    paths: list[Path], db: Path | None, logs: LogReading, place: Path, given: Settings, *,
    test_share: float, quantiles: tuple[float, ...], others: Sequence[type[Predictor]], command: str,
) -> tuple[Analysis, bool]:  # fmt: skip
    """Learn run times, save the model, and report its scores; also whether some input could not be read."""
    from gpuctl.cli.progress import Bar
    from gpuctl.predictors import history, history_folder, history_tables

    jobs, sources, failed = _read(paths, db, logs, given)
    with Bar(wanted=not given.quiet, color=given.color, steps=True) as bar:
        trained = history.train(jobs, test_share=test_share, quantiles=quantiles, others=others, progress=bar.at)
    history_folder.save(place, trained.model, history_tables.about(trained, sources))
    return history_tables.result(trained, sources, command), failed


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise UsageError(f"--quantiles {text}: expected three numbers", hint="0.1,0.5,0.9") from None


def _read(
    paths: list[Path], db: Path | None, logs: LogReading, given: Settings
) -> tuple[JobTable, tuple[SourceInfo, ...], bool]:
    """The jobs, the files that they came from, and whether something of them could not be read."""
    check_there(paths, "logs, a trace store, or a CSV of jobs")
    tables = [path for path in paths if logs.log_format is None and is_jobs_csv(path)]
    if tables:
        if len(paths) > 1 or db is not None:
            raise UsageError(f"{tables[0]} is a CSV of jobs; it must be the only input", hint="give no other input")
        from gpuctl.predictors.job_table import from_jobs
        from gpuctl.replay.inputs.job_csv import read_jobs
        from gpuctl.store.sources import jobs_csv

        listed = read_jobs(tables[0])
        return from_jobs(listed, tables[0]), (jobs_csv(tables[0], listed.size, listed.size),), False
    from gpuctl.cli.profiles import check_named, fell_short
    from gpuctl.ingest.pipeline.input_kinds import QUEUED
    from gpuctl.predictors.job_table import from_store
    from gpuctl.store.database import Store
    from gpuctl.store.sources import read_sources

    check_named(paths, [QUEUED], columns=logs.columns)
    with opened_with(logs, paths, db, given, "learn from") as (path, name, report), Store(path) as store:
        jobs = from_store(store, name)
        return jobs, read_sources(store, jobs.name), fell_short(report, paths)
