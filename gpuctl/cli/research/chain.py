"""``gpuctl chain``: when to submit the successor of a long job."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gpuctl.cli.examples import WithExamples
from gpuctl.cli.options import AnswerOptions, LogsStoreOption, ParquetOption, TableOption, grouped
from gpuctl.cli.output import announce_written, check_tables, command_line, start
from gpuctl.cli.settings import settings
from gpuctl.cli.train import ModelOption
from gpuctl.core.errors import ExitCode, UsageError
from gpuctl.services.inputs import rows_of
from gpuctl.services.options import LogReading

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuctl.cli.output import Command
    from gpuctl.cli.settings import Settings
    from gpuctl.compiled.jit import Loop
    from gpuctl.core.results import Analysis, SourceInfo
    from gpuctl.research.chain.episode import Pair
    from gpuctl.research.chain.log import Log
    from gpuctl.research.chain.trial import Evaluation
    from gpuctl.services.frontend import Progress

    Reader = Callable[[], tuple[Log, tuple[SourceInfo, ...], bool]]

PathsArgument = Annotated[
    list[Path] | None, typer.Argument(metavar="INPUT...", help="Slurm accounting, or one trace store (.duckdb).")
]
NodesOption = Annotated[int | None, typer.Option(metavar="N", min=1, help="Nodes of the cluster.")]
JobNodesOption = Annotated[int, typer.Option(metavar="N", min=1, help="Nodes of each job of the chain.")]
LimitOption = Annotated[str, typer.Option(metavar="TIME", help="Limit of each job: 48h, 90m, 2d.")]
TrainFromOption = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="First start to learn from. Default: the midnight after the first job start."),
]
OutageCostOption = Annotated[
    float, typer.Option(metavar="C", help="Cost of an hour of interruption, in hours of overlap.")
]

chain = typer.Typer(
    name="chain",
    help="Advise when to submit the successor of a long job, so that it starts when the job ends.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


FOREVER_S = 2**62


@chain.callback()
def _group() -> None:
    """Advise when to submit the successor of a long job, so that it starts when the job ends."""


@chain.command(cls=WithExamples)
@grouped
def evaluate(
    context: typer.Context,
    *,
    paths: PathsArgument = None,
    db: LogsStoreOption = None,
    cases: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV of pairs, one per line: "
            "case,start,cluster_nodes,pair_nodes,pair_limit_min,p_submit_s,s_submit_s.",
        ),
    ] = None,
    compat: Annotated[
        Literal["mirage"] | None,
        typer.Option(
            help="Follow Mirage's authors: required with --cases; with --split, models poll the queue and notice the "
            "end of P only every ten minutes."
        ),
    ] = None,
    nodes: NodesOption = None,
    job_nodes: JobNodesOption = 1,
    limit: LimitOption = "48h",
    ends_after: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time from each job's start to its end. Default: its limit.")
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", min=2, max=50, help="Jobs of each chain.")] = 2,
    warm_up: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Time from the empty cluster to the submission of P; 2d as published, 10d for planning.",
        ),
    ] = "2d",
    policy: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="When to submit: reactive, avg, asap, dependency, quantile, plan, newsvendor, forest, boost, dqn, pg, "
            "transformer, moe, best. dqn, pg, transformer and moe need gpuctl-toolkit[learn].",
        ),
    ] = "reactive,avg,quantile,plan,newsvendor,dependency,best",
    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Folder written by gpuctl chain train: a saved policy to add."),
    ] = None,
    split: Annotated[
        str | None, typer.Option(metavar="DATE", help="Score starts from this date on; learn from earlier ones.")
    ] = None,
    train_from: TrainFromOption = None,
    outage_cost: OutageCostOption = 1.0,
    max_overlap: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Maximum mean overlap of plan and newsvendor; if held-out starts exceed it, they use a lower outage "
            "cost.",
        ),
    ] = None,
    logs: LogReading,
    parquet: ParquetOption = None,
    table: TableOption = None,
    answer: AnswerOptions,
) -> None:
    """Simulate chains of jobs among the jobs of a log: how long are gaps and overlaps under each submission policy?"""
    command = start(context, answer, table, parquet=parquet)
    reader = partial(_read, paths or [], db, logs, command.given)
    if cases is not None:
        if compat is None or any(each is not None for each in (nodes, split, model, max_overlap)):
            raise UsageError(
                "--cases goes with --compat mirage, and without --nodes, --split, --model and --max-overlap",
                hint="docs/research/chain.md has examples of both ways",
            )
        result, failed = _cases(cases, reader, command)
    else:
        if nodes is None or split is None:
            raise UsageError(
                "chain evaluate needs --nodes and --split, or --cases", hint="docs/research/chain.md has examples"
            )
        from gpuctl.core.durations import minutes_of_option
        from gpuctl.research.chain.evaluate import check_bound, policy_names
        from gpuctl.research.chain.trial import Evaluation

        check_cost(outage_cost)
        bound_h = None if max_overlap is None else minutes_of_option("--max-overlap", max_overlap) / 60
        if bound_h is not None:
            check_bound(bound_h, policy_names(policy))
        evaluation = Evaluation(
            nodes, _pair(nodes, job_nodes, limit, ends_after), policy_names(policy), _date("--split", split),
            -1 if train_from is None else _date("--train-from", train_from), outage_cost,
            _warm_up(warm_up), jobs, compat is not None, bound_h,
        )  # fmt: skip
        result, failed = _policies(evaluation, model, reader, command)
    command.print(result)
    if failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


@chain.command(cls=WithExamples)
@grouped
def train(
    context: typer.Context,
    *,
    model: ModelOption,
    paths: PathsArgument = None,
    db: LogsStoreOption = None,
    nodes: NodesOption = None,
    job_nodes: JobNodesOption = 1,
    limit: LimitOption = "48h",
    train_from: TrainFromOption = None,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="Learn from submissions up to this date only. Default: all.")
    ] = None,
    warm_up: Annotated[
        str, typer.Option(metavar="TIME", help="Time from the empty cluster to the submission of P in simulations.")
    ] = "10d",
    policy: Annotated[
        Literal["newsvendor", "dqn", "pg", "transformer", "moe"],
        typer.Option(help="Quantiles of the wait (newsvendor), or a neural net, which needs gpuctl-toolkit[learn]."),
    ] = "newsvendor",
    outage_cost: OutageCostOption = 1.0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for training checkpoints of the net; an interrupted training resumes from there.",
        ),
    ] = None,
    logs: LogReading,
) -> None:
    """Learn from a log how long a job will wait, for gpuctl chain advise and run."""
    given = settings(context)
    if nodes is None:
        raise UsageError("chain train needs --nodes, of the cluster", hint="docs/research/chain.md has an example")
    from gpuctl.predictors import card
    from gpuctl.research.chain import evaluate as of_log
    from gpuctl.research.chain import model as of_model
    from gpuctl.research.chain.episode import OF_POLICIES
    from gpuctl.research.chain.trial import Evaluation

    pair = _pair(nodes, job_nodes, limit, None)
    warm_up_s = _warm_up(warm_up)
    since = None if train_from is None else _date("--train-from", train_from)
    last = FOREVER_S if until is None else _date("--until", until)
    check_cost(outage_cost)
    net = None if policy == "newsvendor" else policy
    if checkpoint is not None and net is None:
        raise UsageError("--checkpoint is for neural nets", hint="--policy dqn, pg, transformer or moe")
    if net is not None:
        from gpuctl.research.learn.extra import needed

        needed("torch", f"--policy {net}")
    card.check_place(model)
    log, sources, failed = _read(paths or [], db, logs, given, doing="train")
    evaluation = Evaluation(
        nodes, pair, ("newsvendor",), last, of_log.next_midnight(log.first_start_s) if since is None else since,
        outage_cost, warm_up_s,
    )  # fmt: skip
    with given.progress() as bar:
        _announce(bar, OF_POLICIES)
        about, files = of_model.train(log, evaluation, bar.at, net=net, checkpoint=checkpoint)
    about["sources"] = [{"path": each.path, "sha256": each.sha256} for each in sources]
    card.save_folder(model, of_model.KIND, about, files)
    announce_written((model,), given)
    if failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _cases(cases: Path, reader: Reader, command: Command) -> tuple[Analysis, bool]:
    from gpuctl.research.chain import case_tables
    from gpuctl.research.chain import cases as of_file
    from gpuctl.research.chain.episode import OF_CASES

    check_tables(command.tables, ("cases", "starts", "states"))
    pairs = of_file.read_cases(cases)
    log, sources, failed = reader()
    of_file.check(log, pairs)
    with command.given.progress() as bar:
        _announce(bar, OF_CASES)
        frames = of_file.run(log, pairs, bar.at)
    return case_tables.result(frames, log, command_line(), sources), failed


def _pair(nodes: int, job_nodes: int, limit: str, ends_after: str | None) -> Pair:
    from gpuctl.core.durations import minutes_of_option
    from gpuctl.research.chain.episode import Pair

    limit_min = minutes_of_option("--limit", limit)
    run_min = limit_min if ends_after is None else minutes_of_option("--ends-after", ends_after)
    if run_min > limit_min:
        raise UsageError(f"--ends-after {ends_after}: longer than --limit {limit}")
    if job_nodes > nodes:
        raise UsageError(f"--job-nodes {job_nodes}: the cluster has {nodes}")
    return Pair(job_nodes, limit_min, run_min)


def check_cost(outage_cost: float) -> None:
    """Check that an outage cost is valid.

    Raises:
        UsageError: it does not.
    """
    if not 0.01 <= outage_cost <= 100:
        raise UsageError(f"--outage-cost {outage_cost:g}: expected a number from 0.01 to 100")


def _warm_up(text: str) -> int:
    from gpuctl.core.durations import minutes_of_option

    if minutes_of_option("--warm-up", text) % 240:
        raise UsageError(f"--warm-up {text}: expected a multiple of four hours", hint="2d, 10d")
    return 60 * minutes_of_option("--warm-up", text)


def _policies(evaluation: Evaluation, model: Path | None, reader: Reader, command: Command) -> tuple[Analysis, bool]:
    from gpuctl.research.chain import evaluate as of_log
    from gpuctl.research.chain import model as of_model
    from gpuctl.research.chain import tables
    from gpuctl.research.chain.episode import OF_POLICIES

    check_tables(command.tables, ("chain", "chain_starts", "chain_forecasts", "chain_frontier"))
    saved = None if model is None else of_model.load(model)
    if saved is not None:
        of_model.check_use(saved, evaluation)
        evaluation = replace(evaluation, policies=(*evaluation.policies, of_log.SAVED))
    log, sources, failed = reader()
    if evaluation.from_s < 0:
        evaluation = replace(evaluation, from_s=of_log.next_midnight(log.first_start_s))
    with command.given.progress() as bar:
        _announce(bar, OF_POLICIES)
        frames = of_log.run(log, evaluation, bar.at, saved)
    return tables.result(frames, evaluation, log, command_line(), sources), failed


def _announce(bar: Progress, loops: Sequence[Loop]) -> None:
    from gpuctl.research.chain.episode import must_compile

    if must_compile(loops):
        bar.tell("compiling the simulator (once; about 10 s)")


def _date(option: str, text: str) -> int:
    from gpuctl.core.durations import clock_s

    try:
        return clock_s(text)
    except ValueError:
        raise UsageError(f"{option} {text[:40]}: expected a date", hint="2023-03-01, or 2023-03-01T12:00") from None


def _read(
    paths: list[Path], db: Path | None, logs: LogReading, given: Settings, *, doing: str = "evaluate"
) -> tuple[Log, tuple[SourceInfo, ...], bool]:
    """The jobs, their files, and whether a part of the input could not be read."""
    from gpuctl.research.chain.log import from_store

    expected = "Slurm accounting, or a trace store"
    log, sources, failed = rows_of(paths, db, logs, given, from_store, expected=expected, doing=doing)
    for each in log.notes:
        given.tell(f"note: {each}")
    return log, sources, failed
