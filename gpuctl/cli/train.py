"""``gpuctl train``: learn from logs what ``gpuctl predict`` answers with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuctl.cli.examples import WithExamples
from gpuctl.cli.options import AnswerOptions, ClusterOption, FiguresOption, KeepOption, TableOption, grouped
from gpuctl.cli.output import check_tables, command_line, keep, keeping_place, start, traces_db
from gpuctl.core.errors import ExitCode, UsageError
from gpuctl.services.options import LogReading

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
    figures: FiguresOption = None,
    keep_as: KeepOption = None,
) -> None:
    """Train a model of run times on a log, and score it against simple rules on the log's last jobs."""
    command = start(context, answer, table, figures=figures)
    shares = _numbers(quantiles)
    from gpuctl.predictors import card, history_tables
    from gpuctl.predictors.registry import find
    from gpuctl.services.predictions import train_runtime

    check_tables(table, history_tables.TABLES)
    others = [find(name) for name in dict.fromkeys(predictor or ())]
    card.check_place(model)
    place = keeping_place(keep_as, paths or [], db)
    logs_in = traces_db(paths or [], db, keep_as)
    result, failed = train_runtime(
        paths or [], logs_in, logs, model, command.given,
        test_share=test_share, quantiles=shares, others=others, command=command_line(),
    )  # fmt: skip
    command.print(result, (model,))
    keep(result, keep_as, place, context, command.given)
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
    command = start(context, answer)
    from gpuctl.predictors import card
    from gpuctl.services.predictions import train_overhead

    card.check_place(model)
    place = keeping_place(keep_as, paths or [], db)
    result, failed = train_overhead(paths or [], model, command.given, db=db, cluster=cluster, command=command_line())
    command.print(result, (model,))
    keep(result, keep_as, place, context, command.given)
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
    figures: FiguresOption = None,
) -> None:
    """Train a model of waits on a log, and score it against simple rules on the log's last jobs."""
    command = start(context, answer, table, figures=figures)
    from gpuctl.predictors import card
    from gpuctl.services.waits import Source, train_wait
    from gpuctl.waits.tables import TABLES

    check_tables(table, TABLES)
    card.check_place(model)
    source = Source(paths or [], db, logs)
    result, failed = train_wait(source, model, test_share, command.given, command_line())
    command.print(result, (model,))
    if failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(word) for word in text.split(","))
    except ValueError:
        raise UsageError(f"--quantiles {text}: expected three numbers", hint="0.1,0.5,0.9") from None
