"""``gpuctl train tree``: distil a policy of replays into rules over what is known without an oracle."""

from __future__ import annotations

from typing import Annotated

import typer

from gpuctl.cli.examples import WithExamples
from gpuctl.cli.options import AnswerOptions, RuleDepthOption, RuleRowsOption, RulesOption, TableOption, grouped
from gpuctl.cli.output import check_tables, command_line, start
from gpuctl.cli.replay_options import Places  # noqa: F401 - declares the options of a replay
from gpuctl.cli.train import LearntPathsArgument, ModelOption, train
from gpuctl.core.errors import ExitCode, UsageError
from gpuctl.services.options import Inputs, Rules

__all__ = ["train"]


@train.command(cls=WithExamples)
@grouped
def tree(
    context: typer.Context,
    *,
    model: ModelOption,
    inputs: Inputs,
    rules: Rules,
    paths: LearntPathsArgument = None,
    teacher: Annotated[
        str, typer.Option(metavar="POLICY", help="Replay policy whose decisions the tree learns.")
    ] = "srtf",
    param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Parameter of the teacher; repeatable.")
    ] = None,
    depth: RuleDepthOption = 6,
    leaf: RuleRowsOption = 50,
    leaves: RulesOption = 31,
    test_share: Annotated[
        float, typer.Option(metavar="F", help="Share of the decisions held out for scoring: the last ones.")
    ] = 0.3,
    table: TableOption = None,
    answer: AnswerOptions,
) -> None:
    """Distil a policy's decisions in a replay into a few rules that need no oracle."""
    command = start(context, answer, table)
    if not 0.05 <= test_share <= 0.95:
        raise UsageError(f"--test-share {test_share:g}: expected a share from 0.05 to 0.95")
    from gpuctl.core.job_filter import JobFilter
    from gpuctl.predictors import card
    from gpuctl.replay.policies import find
    from gpuctl.replay.run import Models, start_simulation
    from gpuctl.research.learn import imitation, imitation_tables
    from gpuctl.services.policy_choice import policies
    from gpuctl.services.replay_inputs import by_traits, read

    check_tables(table, imitation_tables.TABLES)
    names = policies([teacher], param or [], {})
    if len(names) > 1:
        raise UsageError(f"--teacher {teacher}: expected one policy")
    preempts = find(names[0][0])(names[0][1]).preempts
    card.check_place(model)
    source, models = by_traits(read(paths or [], inputs, JobFilter(), rules, command.given), rules.models(), names)
    skip = models.pop("skip_unplaceable")
    models["seed"] = _seed(rules.seed)
    for each in (*source.workload.notes, *source.cluster.notes):
        command.given.tell(f"note: {each}")
    with command.given.progress() as bar:
        wanted = Models(rates=source.rates, **models)
        simulation = start_simulation(source.workload, source.cluster, names[0], wanted, skip_unplaceable=skip)
        found = imitation.watch(
            simulation, preempts=preempts, progress=lambda done, size: bar.at(f"{teacher}: jobs", done, size)
        )
    learnt, tested = imitation.split(found, test_share)
    made = imitation.distil(learnt, depth=depth, leaf=leaf, leaves=leaves)
    scores = imitation.fidelity(tested, made)
    imitation_tables.save(model, teacher, made, learnt, scores, preempts=preempts)
    result = imitation_tables.result(
        teacher, made, learnt, tested, scores, sources=source.sources, command=command_line(),
        preempts=preempts, model=str(model),
    )  # fmt: skip
    command.print(result, (model,))
    if source.failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"--seed {text}: expected one whole number", hint="a tree is distilled from one replay")
    return int(text)
