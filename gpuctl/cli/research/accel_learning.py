"""``gpuctl accel train`` and ``evaluate``: a learned scheduler of layers, and what it gains over rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from gpuctl.cli.options import AnswerOptions, CsvOption, ParquetOption, TableOption, TrainingFolderOption, grouped
from gpuctl.cli.output import announce_written, check_tables, command_line, start
from gpuctl.cli.research.accel import (
    KindsOption,
    ModelsOption,
    SystemOption,
    TablesOption,
    accel,
    announce,
    machine_for,
)
from gpuctl.cli.settings import settings
from gpuctl.cli.train import ModelOption
from gpuctl.core.errors import UsageError

__all__ = ["accel"]

if TYPE_CHECKING:
    from gpuctl.research.accel.costs import Machine


@accel.command()
def train(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    model: ModelOption,
    what: Annotated[Literal["relmas"], typer.Argument(help="The policy to train.")] = "relmas",
    system: SystemOption = "six",
    minutes: Annotated[
        float,
        typer.Option(
            metavar="M",
            help="Budget: the number of generations that one core does in about this time; the same on every machine.",
        ),
    ] = 10.0,
    generations: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, max=1_000_000, help="Budget in generations (ddpg: rounds) instead."),
    ] = None,
    algorithm: Annotated[
        Literal["es", "ddpg"],
        typer.Option(
            "--algo",
            help="es: an evolution strategy on two nets. ddpg: an LSTM actor and critic, by gpuctl-toolkit[learn].",
        ),
    ] = "es",
    seed: Annotated[
        int, typer.Option(metavar="S", min=0, max=10**6, help="Random seed; the same seed gives the same model.")
    ] = 1,
    models: ModelsOption = "all",
    tables: TablesOption = None,
    checkpoint: TrainingFolderOption = None,
) -> None:
    """Train a scheduler on generated requests; gpuctl accel simulate runs it with NumPy alone."""
    given = settings(context)
    if not 0 < minutes <= 10_000:
        raise UsageError(f"--minutes {minutes:g}: expected a number from 0 to 10000")
    if algorithm == "ddpg":
        need_learn()
    from gpuctl.predictors import card
    from gpuctl.research.accel import training
    from gpuctl.research.accel.requests import models_of

    card.check_place(model)
    machine = machine_for(system, tables, None)
    some = tuple(models_of(models, machine))
    with given.progress() as bar:
        announce(bar, machine)
        if algorithm == "ddpg":
            from gpuctl.research.accel import ddpg

            about, files, cpu_s = ddpg.train(
                machine, some, generations or ddpg.rounds_of(minutes), seed, tables, checkpoint=checkpoint,
                progress=lambda done, of: bar.at("training", done, of),
            )  # fmt: skip
        else:
            count = generations or max(1, round(minutes * training.GENERATIONS_A_MINUTE))
            about, files, cpu_s = training.train(
                machine, training.Lesson(some, count, seed), checkpoint=checkpoint,
                progress=lambda done, of: bar.at("training", done, of),
            )  # fmt: skip
    card.save_folder(model, training.KIND, about, files)
    given.tell(f"trained for {cpu_s:.0f} s of CPU")
    announce_written((model,), given)


@accel.command()
@grouped
def evaluate(
    context: typer.Context,
    *,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder written by gpuctl accel train.")],
    loads: Annotated[str, typer.Option(metavar="A,B", help="Loads of the streams of requests.")] = ".6,.8,1,1.2",
    streams: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Streams per load.")] = 40,
    n: Annotated[int, typer.Option("--n", metavar="N", min=1, max=1_000_000, help="Requests per stream.")] = 100,
    seed: Annotated[int, typer.Option(metavar="S", min=0, help="Seed of the first stream; the others follow.")] = 1,
    system: Annotated[
        str | None, typer.Option(metavar="S", help="As for accel simulate. Default: the system it was trained for.")
    ] = None,
    models: Annotated[
        str | None, typer.Option(metavar="A,B", help="Models of the requests. Default: as in training.")
    ] = None,
    tables: TablesOption = None,
    kinds: KindsOption = None,
    csv: CsvOption = None,
    parquet: ParquetOption = None,
    table: TableOption = None,
    answer: AnswerOptions,
) -> None:
    """Score a learned scheduler against rules on unseen requests, per load, with intervals."""
    command = start(context, answer, table, csv=csv, parquet=parquet)
    from gpuctl.research.accel import compare, saved
    from gpuctl.research.accel import evaluate as scoring
    from gpuctl.research.accel import tables as of_results
    from gpuctl.research.accel.requests import models_of

    check_tables(table, of_results.EVALUATED)
    wanted = scoring.loads_of(loads)
    about = saved.card_of(model)
    machine = machine_for(system or saved.text_of(about, "system_text", "six"), tables, kinds)
    policy, _ = saved.load(model, "relmas", len(machine.system.kinds))
    evaluation = scoring.Evaluation(wanted, streams, n, _models(models, about, machine, models_of), seed)
    scoring.check_unseen(about, evaluation)
    with command.given.progress() as bar:
        announce(bar, machine)
        scores = scoring.run(machine, policy, evaluation, bar.at)
    result = of_results.evaluated(
        scores, machine, evaluation, about, saved.curve_of(model), command=command_line(),
        warnings=tuple(compare.strangers(model, about, machine)),
    )  # fmt: skip
    command.print(result)


def _models(text: str | None, about: dict[str, Any], machine: Machine, models_of: Any) -> tuple[int, ...]:
    if text is None:
        trained = [name for name in about.get("models", []) if name in machine.models]
        text = ",".join(trained) or "all"
    return tuple(models_of(text, machine))


def need_learn() -> None:
    """See that what gpuctl-toolkit[learn] installs is there.

    Raises:
        DependencyError: it is not.
    """
    from gpuctl.research.learn.extra import needed

    for name in ("torch", "gymnasium", "stable_baselines3"):
        needed(name, "--algo ddpg")
