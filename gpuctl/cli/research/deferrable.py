"""``gpuctl deferrable``: jobs that can wait, in the capacity that other jobs leave."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gpuctl.cli.common import message
from gpuctl.cli.examples import WithExamples
from gpuctl.cli.options import (
    AnswerOptions,
    LogsStoreOption,
    ParquetOption,
    TableOption,
    TrainingFolderOption,
    grouped,
)
from gpuctl.cli.output import announce_written, check_tables, command_line, for_people, print_result, start, write_files
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.settings import settings
from gpuctl.cli.train import LearntPathsArgument, ModelOption
from gpuctl.core.errors import ExitCode, InputError, UsageError
from gpuctl.services.inputs import check_there, is_jobs_csv, opened
from gpuctl.services.options import LogReading

if TYPE_CHECKING:
    from gpuctl.cli.output import Command
    from gpuctl.cli.settings import Settings
    from gpuctl.core.results import Analysis
    from gpuctl.replay.models.records import Workload
    from gpuctl.research.deferrable.conversion import Trace

deferrable = typer.Typer(
    name="deferrable",
    help="Report how much deferrable work fits into the capacity that on-demand jobs leave, and how long it waits.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


FolderOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="DIR", help="Folder for capacity.csv and jobs.csv; required.")
]
CsvOption = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Also write DIR/jobs.csv, DIR/summary.csv and DIR/load.csv.")
]


@deferrable.callback()
def _group() -> None:
    """Report how much deferrable work fits into the capacity that on-demand jobs leave, and how long it waits."""


@deferrable.command(cls=WithExamples)
@grouped
def convert(
    context: typer.Context,
    *,
    paths: LearntPathsArgument = None,
    output: FolderOption = None,
    slot: Annotated[str, typer.Option(metavar="TIME", help="Length of a slot: 30m, 1h.")] = "30m",
    share: Annotated[
        int, typer.Option(metavar="PCT", min=0, max=100, help="Share of jobs of at most 24 h taken as deferrable.")
    ] = 30,
    gpus: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=10**9, help="GPUs of the cluster. Default: on-demand jobs' peak."),
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Deferrable jobs are the jobs of this queue or quality of service; repeatable."
        ),
    ] = None,
    db: LogsStoreOption = None,
    logs: LogReading,
) -> None:
    """Cut a trace into slots: the capacity that on-demand jobs leave, and deferrable jobs with their windows.

    Deferrable jobs are the jobs marked so in the trace (Alibaba's spot trace), the jobs of --queue, or --share of all
    jobs, chosen by a hash of their names.
    """
    given = settings(context)
    if output is None:
        raise UsageError("the output file is missing", hint="gpuctl deferrable convert TRACE -o DIR")
    check_outputs(context, {}, {"--output": output})
    from gpuctl.research.deferrable.cases import write_case
    from gpuctl.research.deferrable.conversion import convert as cut

    slot_s = _seconds("--slot", slot)
    trace, failed = _read(paths or [], db, logs, given, queue or [])
    case = cut(trace, slot_s, share, gpus)
    write_case(case, output)
    left = case.about["left_out_too_late"] + case.about["left_out_too_large"]
    message(
        f"{len(trace.ids):,} jobs: {case.about['on_demand_jobs']:,} on demand, {len(case.ids):,} deferrable, {left:,} "
        f"left out ({case.about['left_out_too_late']:,} end after the last submission, "
        f"{case.about['left_out_too_large']:,} are larger than the cluster); {case.horizon:,} slots, "
        f"{case.total:,} GPUs",
        quiet=given.quiet,
    )
    announce_written((output,), given)
    if failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


@deferrable.command(cls=WithExamples)
@grouped
def simulate(
    context: typer.Context,
    *,
    capacity: Annotated[
        Path, typer.Argument(metavar="DIR|CAPACITY.csv", help="Folder written by convert, or a CSV with slot,leftover.")
    ],
    jobs: Annotated[
        Path | None,
        typer.Option(metavar="JOBS.csv", help="CSV with job,earliest,latest,gpus,slots. Default: jobs.csv of DIR."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="asap, latest, quantile:P, clairvoyant, optimum, osdec:MODEL; repeatable. Default: asap, latest, "
            "quantile:10, :50 and :90, clairvoyant.",
        ),
    ] = None,
    evict: Annotated[
        Literal["newest", "smallest-loss"],
        typer.Option(help="Run to evict first when on-demand jobs need GPUs: latest start, or least loss."),
    ] = "newest",
    season: Annotated[
        int | None,
        typer.Option(metavar="SLOTS", min=1, max=10**6, help="Slots per day. Default: as recorded in DIR, else 48."),
    ] = None,
    time_limit: Annotated[
        float,
        typer.Option(
            metavar="S", min=0.1, max=86_400, help="Time limit of optimum in seconds; the best solution found counts."
        ),
    ] = 60.0,
    csv: CsvOption = None,
    parquet: ParquetOption = None,
    table: TableOption = None,
    answer: AnswerOptions,
) -> None:
    """Start deferrable jobs by a policy, slot by slot: how many run, how long they wait, and what evictions cost."""
    command = start(context, answer, table, csv=csv, parquet=parquet)
    from gpuctl.research.deferrable import tables
    from gpuctl.research.deferrable.cases import read_case
    from gpuctl.research.deferrable.policies import DEFAULT, parse, run

    check_tables(table, tables.TABLES)
    policies = parse(policy or [DEFAULT])
    if not capacity.exists():
        raise InputError(
            "no such file or directory", path=str(capacity), hint="name a folder written by deferrable convert"
        )
    case = read_case(capacity, jobs, season)
    with command.given.progress() as bar:
        ran = run(case, policies, evict, limit_s=time_limit, progress=bar.at)
    name = capacity.resolve().name if capacity.is_dir() else capacity.name
    result = tables.result(case, ran, evict, name, command_line())
    _print(result, command)


@deferrable.command(cls=WithExamples)
def generate(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    output: FolderOption = None,
    load: Annotated[
        float,
        typer.Option(
            metavar="L", min=0.01, max=100, help="Deferrable work over the capacity that on-demand jobs leave."
        ),
    ] = 0.8,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Random seed; the same seed gives the same case.")] = 1,
    days: Annotated[int, typer.Option(metavar="N", min=1, max=3660, help="Length in days.")] = 14,
    gpus: Annotated[int, typer.Option(metavar="N", min=1, max=10**6, help="GPUs of the cluster.")] = 256,
    on_demand: Annotated[
        float,
        typer.Option(metavar="F", min=0.01, max=10, help="Share of the GPUs that on-demand jobs hold on average."),
    ] = 0.6,
) -> None:
    """Generate a case: on-demand load with daily and weekly cycles, and deferrable jobs."""
    given = settings(context)
    if output is None:
        raise UsageError("the output file is missing", hint="gpuctl deferrable generate -o DIR")
    check_outputs(context, {}, {"--output": output})
    from gpuctl.research.deferrable.cases import write_case
    from gpuctl.research.deferrable.generator import CaseSettings
    from gpuctl.research.deferrable.generator import generate as make

    case = make(CaseSettings(seed, load, days, gpus, on_demand))
    write_case(case, output)
    given.tell(f"{len(case.ids):,} deferrable jobs, {case.horizon:,} slots, {case.total:,} GPUs")
    announce_written((output,), given)


PPO_DAYS = 5
"""Length of generated cases for ppo, whose rounds are short."""


@deferrable.command(cls=WithExamples)
def train(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    model: ModelOption,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            help="Folder written by convert; the first 60 % of its slots are used for training. Default: generated "
            "cases.",
        ),
    ] = None,
    minutes: Annotated[
        float,
        typer.Option(
            metavar="N", min=0.01, max=10_000, help="Budget: the number of steps that one core does in about this time."
        ),
    ] = 10.0,
    algo: Annotated[
        Literal["es", "ppo"],
        typer.Option(help="es: an evolution strategy, in NumPy; ppo: Stable-Baselines3, needs gpuctl-toolkit[learn]."),
    ] = "es",
    aux: Annotated[
        Literal["none", "all", "leftover", "survival", "waiting"] | None,
        typer.Option(help="Auxiliary tasks of --algo ppo: leftover capacity, survival, waiting GPUs. Default: all."),
    ] = None,
    loads: Annotated[str, typer.Option(metavar="A,B", help="Loads of the generated cases.")] = "0.5,0.8,1.2",
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Random seed; the same seed gives the same model.")] = 1,
    checkpoint: TrainingFolderOption = None,
) -> None:
    """Learn when deferrable jobs start, for simulate --policy osdec:MODEL and gpuctl replay --policy osdec."""
    given = settings(context)
    if aux is not None and algo == "es":
        raise UsageError("--aux is for --algo ppo: an evolution strategy has no auxiliary tasks", hint="drop --aux")
    from gpuctl.predictors import card
    from gpuctl.research.deferrable import training
    from gpuctl.research.deferrable.model import KIND

    if algo == "ppo":
        from gpuctl.research.learn.extra import needed

        for name in ("torch", "stable_baselines3"):
            needed(name, "--algo ppo")
    card.check_place(model)
    if folder is None:
        lessons = training.generated_cases(_loads(loads), 14 if algo == "es" else PPO_DAYS)
    else:
        from gpuctl.research.deferrable.cases import read_case

        if not folder.is_dir():
            raise InputError(
                "no such folder", path=str(folder), hint="name a folder written by gpuctl deferrable convert"
            )
        lessons = training.of_trace(read_case(folder, None, None))
    with given.progress() as bar:

        def show_progress(done: int, total: int) -> None:
            bar.at("learning", done, total)

        if algo == "ppo":
            from gpuctl.research.deferrable import ppo_training

            tasks = aux or "all"
            fitted = ppo_training.train(lessons, minutes, tasks, seed, checkpoint=checkpoint, progress=show_progress)
            saved = ppo_training.about(fitted, lessons, minutes, seed, tasks)
        else:
            fitted = training.train(lessons, minutes, seed, checkpoint=checkpoint, progress=show_progress)
            saved = training.about(fitted, lessons, minutes, seed)
    card.save_folder(model, KIND, *saved)
    held = [row["held_score"] for row in fitted.curve if "held_score" in row]
    found = f"score on held-out cases: {held[0]:.3f} at first, {max(held):.3f} at best; " if held else ""
    given.tell(f"{found}{fitted.cpu_s:.0f} CPU seconds")
    announce_written((model,), given)


@deferrable.command(cls=WithExamples)
@grouped
def evaluate(
    context: typer.Context,
    *,
    models: Annotated[
        list[Path] | None, typer.Argument(metavar="[MODEL]...", help="Folders written by gpuctl deferrable train.")
    ] = None,
    loads: Annotated[str, typer.Option(metavar="A,B", help="Loads of the generated cases.")] = "0.5,0.8,1.2",
    seeds: Annotated[
        str, typer.Option(metavar="N..M", help="Seeds of the cases; none was used for training.")
    ] = "300..329",
    table: TableOption = None,
    answer: AnswerOptions,
) -> None:
    """Score learned rules against simple ones on generated cases, with paired intervals."""
    command = start(context, answer, table)
    from gpuctl.research.deferrable import compare
    from gpuctl.research.deferrable.policies import parse

    check_tables(table, compare.TABLES)
    policies = parse([*compare.RULES, *(f"osdec:{model}" for model in models or ())])
    wanted, cases = _loads(loads), _seeds(seeds)
    with command.given.progress() as bar:
        found = compare.compare(policies, wanted, cases, bar.at)
    result = compare.result(found, policies, wanted, cases, command_line())
    command.print(result)


def _loads(text: str) -> tuple[float, ...]:
    from gpuctl.replay.experiments.factors import values

    try:
        found = tuple(float(each) for each in values(text, "--loads"))
    except ValueError:
        found = ()
    if not found or not all(0.01 <= each <= 100 for each in found):
        raise UsageError(f"--loads {text[:60]}: expected numbers from 0.01 to 100", hint="0.5,0.8,1.2")
    return found


def _seeds(text: str) -> tuple[int, ...]:
    from gpuctl.replay.experiments.factors import values
    from gpuctl.research.deferrable.training import FIRST_HELD, FIRST_MADE, HELD, MADE

    found = values(text, "--seeds")
    if not all(each.isdecimal() and len(each) < 10 for each in found):
        raise UsageError(f"--seeds {text[:60]}: expected whole numbers", hint="300..329")
    seeds = tuple(map(int, found))
    learnt = {*range(FIRST_MADE, FIRST_MADE + MADE), *range(FIRST_HELD, FIRST_HELD + HELD)}
    if learnt & set(seeds):
        raise UsageError(f"--seeds {text[:60]}: models are trained on some of these cases", hint="300..329")
    return seeds


def _print(result: Analysis, command: Command) -> None:
    from gpuctl.research.deferrable.tables import SHORT_FILES

    given, output = command.given, command.answer.output
    write_files(result, given, csv=command.csv, parquet=command.parquet, files=SHORT_FILES)
    screen = None
    if for_people(command.shape, output) and not command.tables:
        from gpuctl.reports.screens.deferrable import screen as screen_of

        screen = screen_of(result)
    print_result(result, command.shape, output, command.tables, given, screen=screen, notes=False)
    announce_written((output, command.csv, command.parquet), given)


def _seconds(option: str, text: str) -> int:
    from gpuctl.core.durations import minutes_of_option

    found = 60 * minutes_of_option(option, text)
    if not 60 <= found <= 86_400:
        raise UsageError(f"{option} {text}: expected a time from 1m to 1d", hint="30m, 1h")
    return found


def _read(
    paths: list[Path], db: Path | None, logs: LogReading, given: Settings, queues: list[str]
) -> tuple[Trace, bool]:
    """The jobs, and whether a part of the input could not be read."""
    check_there(paths, "logs, a trace store, or a CSV")
    from gpuctl.research.deferrable.conversion import trace_of

    failed = False
    if len(paths) == 1 and logs.log_format is None and is_jobs_csv(paths[0]):
        from gpuctl.replay.inputs.job_csv import read_jobs

        options = {"--db": db, "--cluster": logs.cluster, "--timezone": logs.timezone, "--columns": logs.columns}
        for option, value in options.items():
            if value is not None:
                raise UsageError(f"{option} is for logs; {paths[0]} is a CSV of jobs", hint=f"leave {option} out")
        workload: Workload = read_jobs(paths[0])
    else:
        from gpuctl.replay.inputs.trace import read_trace
        from gpuctl.store.database import Store

        with opened(paths, db, logs, given, doing="replay") as found, Store(found.path) as store:
            workload, _ = read_trace(store, found.cluster, own_cluster=False)
            failed = found.failed
    for each in workload.notes:
        given.tell(f"note: {each}")
    return trace_of(workload, queues), failed
