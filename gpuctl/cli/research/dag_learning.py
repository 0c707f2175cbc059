"""``gpuctl dag distil``, ``rules`` and ``evaluate``: a tree from a teacher, as text, and held against simple rules."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from gpuctl.cli.examples import WithExamples
from gpuctl.cli.options import (
    AnswerOptions,
    FormatOption,
    JsonOption,
    ParquetOption,
    RuleDepthOption,
    RuleRowsOption,
    RulesOption,
    TableOption,
    chosen_format,
    grouped,
)
from gpuctl.cli.output import announce_written, check_tables, command_line, print_result, start, write_text
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.research.dag import (
    DelayOption,
    ExecutorsOption,
    JobsOption,
    LimitChoice,
    LimitOption,
    PatchOption,
    dag,
)
from gpuctl.cli.settings import settings
from gpuctl.cli.train import ModelOption
from gpuctl.core.errors import UsageError

__all__ = ["dag"]

MODEL_HELP = "Folder written by gpuctl dag distil, a tree's .json, or a text file of rules."
LoadsOption = Annotated[
    str, typer.Option("--load", metavar="L,L", help="Loads of the generated sets: shares of the executors.")
]


@dag.command(cls=WithExamples)
@grouped
def distil(
    context: typer.Context,
    *,
    model: ModelOption,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="STAGES...", help="Sets of jobs to learn from, one file per set. Default: generated sets."
        ),
    ] = None,
    teacher: Annotated[
        Literal["rollout", "fifo", "fair", "wfair", "cp", "srpt"],
        typer.Option(help="Policy whose decisions the tree learns."),
    ] = "rollout",
    train: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Generated sets per round.")] = 12,
    rounds: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, max=100, help="Rounds; the first follows the teacher, later ones the tree so far."
        ),
    ] = 3,
    depth: RuleDepthOption = 6,
    leaf: RuleRowsOption = 50,
    leaves: RulesOption = 31,
    limit: Annotated[
        LimitChoice,
        typer.Option(
            help="Executors that the tree gives to a job: up to its share (fair), all free ones, or the tree's choice."
        ),
    ] = "fair",
    weigh: Annotated[
        Literal["equal", "stake"],
        typer.Option(help="Weigh decisions equally, or by what the search's best action saves over its worst (stake)."),
    ] = "equal",
    executors: ExecutorsOption = 12,
    delay: DelayOption = 2000,
    jobs: JobsOption = 25,
    load: LoadsOption = "0.5,0.7,0.9",
    seed: Annotated[int, typer.Option(metavar="S", min=0, max=10_000, help="Seed of the generated sets.")] = 1,
    test: Annotated[
        int, typer.Option(metavar="N", min=0, max=1000, help="Further generated sets per load, to measure fidelity.")
    ] = 4,
    table: TableOption = None,
    answer: AnswerOptions,
) -> None:
    """Distil a tree of a few rules from a teacher, and measure how often it decides like the teacher."""
    command = start(context, answer, table)
    from gpuctl.predictors import card
    from gpuctl.research.dag import distil as of_teacher
    from gpuctl.research.dag import tables, training
    from gpuctl.research.dag.features import Limit

    check_tables(table, tables.DISTILLED)
    card.check_place(model)
    if weigh == "stake" and teacher != "rollout":
        raise UsageError(f"--weigh stake: {teacher} does not say what an action costs", hint="--teacher rollout")
    task = of_teacher.Distillation(teacher, executors, delay, Limit(limit), depth, leaf, leaves, weigh == "stake")
    wanted = training.TrainingSets(train, rounds, jobs, _loads(load), seed, test)
    start_s = time.process_time()
    with command.given.progress() as bar:
        made = training.run(task, wanted, paths or [], bar.at)
    training.save(model, task, made)
    result = tables.distilled(
        task, made.rounds, made.fidelity, made.rules, training=made.description, command=command_line(),
        cpu_s=time.process_time() - start_s,
    )  # fmt: skip
    command.print(result, (model,))


def _loads(text: str) -> tuple[float, ...]:
    from gpuctl.replay.experiments.factors import values

    found = []
    for word in values(text, "--load"):
        try:
            found.append(float(word))
        except ValueError:
            found.append(-1.0)
        if not 0.01 <= found[-1] <= 10:
            raise UsageError(f"--load {text}: expected numbers from 0.01 to 10", hint="0.5,0.7,0.9")
    return tuple(found)


@dag.command(cls=WithExamples)
def rules(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    patch: PatchOption = None,
    output_format: FormatOption = None,
    as_json: JsonOption = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of standard output."),
    ] = None,
) -> None:
    """Print a tree as rules, one per line: a file to edit and run with --policy tree:FILE."""
    given = settings(context)
    shape = chosen_format(output_format, as_json=as_json or given.json, output=output, tables=None)
    check_outputs(context, {"--output": output})
    from gpuctl.research.dag import tables
    from gpuctl.research.dag.model import REMARKS
    from gpuctl.research.dag.policies import TREE, parse
    from gpuctl.trees.rules import text_of

    policy = parse(f"{TREE}{model}", None, patch)[0]
    assert policy.rules is not None and policy.limit is not None  # noqa: S101, PT018 - a tree has both
    if shape is not None:
        result = tables.rules_result(policy.rules, str(model), policy.limit, command_line())
        print_result(result, shape, output, None, given)
    else:
        write_text(text_of(policy.rules, REMARKS), output)
    announce_written((output,), given)


@dag.command(cls=WithExamples)
@grouped
def evaluate(
    context: typer.Context,
    *,
    policy: Annotated[
        str,
        typer.Option(metavar="A,B", help="Policies, as in simulate. tree:MODEL is compared with the others."),
    ] = "fifo,fair,wfair,cp,srpt,rollout",
    limit: LimitOption = None,
    patch: PatchOption = None,
    load: LoadsOption = "0.5,0.7,0.9",
    seed: Annotated[
        str, typer.Option(metavar="S..S", help="Seeds of the sets; no seed on which a tree of --policy was trained.")
    ] = "5000..5009",
    jobs: JobsOption = 25,
    executors: ExecutorsOption = 12,
    delay: DelayOption = 2000,
    parquet: ParquetOption = None,
    table: TableOption = None,
    answer: AnswerOptions,
) -> None:
    """Compare policies on generated sets of jobs, with paired intervals."""
    command = start(context, answer, table, parquet=parquet)
    from gpuctl.research.dag import evaluate as of_seeds
    from gpuctl.research.dag import tables, training
    from gpuctl.research.dag.features import Limit
    from gpuctl.research.dag.policies import parse

    check_tables(table, tables.EVALUATED)
    policies = parse(policy, None if limit is None else Limit(limit), patch)
    setting = of_seeds.Setting(_loads(load), _seeds(seed), jobs, executors, delay)
    training.check_unseen(policies, setting.seeds)
    with command.given.progress() as bar:
        found = of_seeds.run(setting, policies, bar.at)
        fidelity = training.fidelity_of(policies, setting, bar.at)
    result = tables.evaluated(setting, found, fidelity, policies, command_line())
    command.print(result)


def _seeds(text: str) -> tuple[int, ...]:
    from gpuctl.replay.experiments.factors import values

    found = values(text, "--seed")
    if not all(word.isascii() and word.isdecimal() for word in found):
        raise UsageError(f"--seed {text}: expected whole numbers from 0 on", hint="5000..5009 gives ten seeds")
    return tuple(map(int, found))
