"""``gpuctl replay`` with several values of something: an experiment of many replays."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from gpuctl.cli.common import message
from gpuctl.cli.output import announce_written, command_line, for_people, print_result
from gpuctl.cli.policy_choice import policies
from gpuctl.core.errors import ExitCode, InputError, UsageError
from gpuctl.core.suggestions import meant
from gpuctl.replay.experiments.factors import values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpuctl.cli.common import Settings
    from gpuctl.cli.options import TableOptions
    from gpuctl.cli.replay_inputs import Source
    from gpuctl.cli.replay_options import Comparison, Failing, Inputs, Places, Policies, Rules
    from gpuctl.cli.unchanged import ForCells
    from gpuctl.core.notes import Note
    from gpuctl.core.results import Analysis
    from gpuctl.replay.experiments.cells import Base, Cell
    from gpuctl.replay.experiments.file import ExperimentFile
    from gpuctl.replay.experiments.run import CellFolder
    from gpuctl.replay.models.node_failures import FailureOptions
    from gpuctl.spread.engine import Engine

    NamedValue = list[tuple[str, dict[str, str]]]

_CELLS = "cells"
"""Where below --parquet what is done is kept."""
_OPTIONS = {"scale_load": "scale-load", "add_nodes": "add-nodes"}
TABLES = ("experiments_summary", "experiments", "replay_failures")
"""Options of factors that change jobs or nodes."""
_SLURM = "slurm"
"""Where below --parquet jobs of Slurm leave what they print."""


@dataclasses.dataclass(frozen=True)
class Experiment:
    """What varies.

    Attributes:
        factors: the values of each, as texts, by what `gpuctl.replay.experiments.cells.Cell` calls it.
        seeds: of the jobs drawn.
        measures: figures to show and draw; none for the usual ones.
        from_file: a file says so: an experiment, however few replays it has.
    """

    factors: dict[str, tuple[str, ...]]
    seeds: tuple[int, ...]

    measures: tuple[str, ...] = ()
    from_file: bool = False

    @property
    def several(self) -> bool:
        """Whether it is an experiment: more than one replay a policy, or a file."""
        return self.from_file or len(self.seeds) > 1 or any(len(of) > 1 for of in self.factors.values())


def _split(
    given: Sequence[str], params: Sequence[str], conf: Mapping[str, Sequence[Path]]
) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Tell parameters with several values from those with one: a value that the parameter takes as it stands is one.

    Returns:
        the parameters, those with several values with their first one; the values of these, by ``LABEL.NAME``.

    Raises:
        UsageError: a value, or the policies, make no sense.
    """
    single, lists = [], {}
    for text in params:
        key, _, value = text.partition("=")
        several = _several(value, f"--param {key}=")
        # a path, a time or a list of its own is one value
        if len(several) < 2 or _taken(given, text, conf):
            single.append(text)
            continue
        single.append(f"{key}={several[0]}")
        for each in several:
            policies(given, [f"{key}={each}"], conf)
        lists[key.strip()] = several
    chosen = policies(given, single, conf)
    from gpuctl.replay.policies import find, label

    factors = {}
    for key, several in lists.items():
        prefix, _, name = key.rpartition(".")
        for policy, _ in chosen:
            kind = find(policy)
            if prefix in {"", kind.name, policy, label(policy)} and name in {one.name for one in kind.parameters}:
                factors[f"{label(policy)}.{name}"] = several
    return single, factors


def _several(value: str, what: str) -> tuple[str, ...]:
    """The values of a list; of a text that is none, that text: the policy then says what is wrong with it."""
    try:
        return values(value, what)
    except UsageError:
        return (value,)


def _taken(given: Sequence[str], param: str, conf: Mapping[str, Sequence[Path]]) -> bool:
    try:
        policies(given, [param], conf)
    except UsageError:
        return False
    return True


class ExperimentOptions(NamedTuple):
    """The policies, each with its parameters as texts, what varies, and the other options, a file's put among them."""

    names: NamedValue
    varied: Experiment
    paths: list[Path]
    inputs: Inputs
    rules: Rules
    compared: Comparison


def experiment_of(
    chosen: Policies, inputs: Inputs, rules: Rules, compared: Comparison, paths: list[Path], *, failing: Failing
) -> ExperimentOptions:
    """Return what the options, or ``--experiment`` and the options beside it, say.

    Raises:
        UsageError: a list makes no sense, the policies do not, or an option says what the file says.
        InputError: the file, a key of it, what was found and expected.
    """
    if chosen.experiment is not None:
        return _asked_in_file(
            chosen.experiment, chosen, inputs=inputs, rules=rules, failing=failing, compared=compared, paths=paths
        )
    conf = {"yarn": chosen.yarn_conf or [], "slurm": chosen.slurm_conf or []}
    single, params = _split(chosen.policy or (), [*(chosen.param or ()), *_of_model(chosen)], conf)
    names = policies(chosen.policy or (), single, conf)
    factors = {}
    if inputs.scale_load is not None:
        factors["scale_load"] = values(inputs.scale_load, "--scale-load")
    if inputs.add_nodes is not None:
        factors["add_nodes"] = values(inputs.add_nodes, "--add-nodes")
    factors |= _several_failures(failing)
    varied = Experiment(factors | params, _seeds(values(rules.seed, "--seed"), "--seed"))
    return ExperimentOptions(names, varied, paths, inputs, rules, compared)


def _of_failures(failing: Failing) -> dict[str, tuple[str, ...]]:
    """The values of --failures and of --checkpoint; a text that stands for one value is one."""
    found = {}
    for name, text in (("failures", failing.failures), ("checkpoint", failing.checkpoint)):
        if text is None:
            continue
        one = "=" in text or Path(text).suffix in {".csv", ".toml"}
        parts = tuple(part.strip() for part in text.split(","))
        found[name] = (text,) if one else parts if ":weibull:" in text else values(text, f"--{name}")
    return found


def _several_failures(failing: Failing) -> dict[str, tuple[str, ...]]:
    return {name: several for name, several in _of_failures(failing).items() if len(several) > 1}


def failures_of(failing: Failing, varied: Experiment) -> FailureOptions | None:
    """Return how nodes fail, with the first of several values; None if they do not.

    Raises:
        UsageError: an option of failures without them.
        InputError: a file that an option names cannot be read.
    """
    one: dict[str, Any] = {name: several[0] for name, several in _of_failures(failing).items()}
    first = dataclasses.replace(failing, **one)
    return first.options(several=not {"failures", "checkpoint"}.isdisjoint(varied.factors))


def _of_model(chosen: Policies) -> list[str]:
    """What ``--model`` says, as parameters.

    Raises:
        UsageError: no policy here takes it.
        InputError: it is no such model.
    """
    if chosen.model is None:
        return []
    from gpuctl.replay.policies import find
    from gpuctl.research.deferrable.model import load

    names = [name.strip() for text in chosen.policy or () for name in text.split(",") if name.strip()]
    if not any(find(name).name == "osdec" for name in names):
        raise UsageError("--model: no policy here takes one", hint="add --policy osdec, or omit --model")
    if load(chosen.model).net is not None:
        raise UsageError(
            "--model: a rule that was learned by ppo decides in gpuctl deferrable simulate alone",
            hint="gpuctl deferrable train --algo es",
        )
    return [f"osdec.model={chosen.model}"]


def _seeds(given: Sequence[str], what: str) -> tuple[int, ...]:
    bad = next((one for one in given if not one.isdecimal() or len(one) > 9), None)
    if bad is not None:
        raise UsageError(f"{what} {bad}: expected a whole number from 0 on", hint="1..10 gives ten seeds")
    return tuple(map(int, given))


def _asked_in_file(
    path: Path, chosen: Policies, *, inputs: Inputs, rules: Rules, failing: Failing, compared: Comparison,
    paths: list[Path],
) -> ExperimentOptions:  # fmt: skip
    from gpuctl.replay.experiments.file import read

    file = read(path)
    for option, given, here in (
        ("--policy", chosen.policy, True), ("--param", chosen.param, True), ("--model", chosen.model, True),
        ("INPUT", paths, bool(file.inputs)),
        ("--cluster", inputs.cluster, file.cluster is not None), ("--baseline", compared.baseline, file.baseline),
        ("--inference", inputs.inference, file.inference),
        ("--inference-load", inputs.inference_load, file.inference_load),
        ("--scale-load", inputs.scale_load, "scale_load" in file.factors),
        ("--add-nodes", inputs.add_nodes, "add_nodes" in file.factors),
        ("--failures", failing.failures, "failures" in file.factors),
        ("--checkpoint", failing.checkpoint, "checkpoint" in file.factors),
        ("--seed", rules.seed != "0", bool(file.seeds)), ("--resample", rules.resample != "days", file.blocks),
    ):  # fmt: skip
        if given and here:
            raise UsageError(f"{option}: {file.path} already sets it", hint=f"omit {option}, or change the file")
    conf = {"yarn": chosen.yarn_conf or [], "slurm": chosen.slurm_conf or []}
    names, params = _of_file(file, conf)
    factors = {
        name: values(text, option)
        for name, option, text in (
            ("scale_load", "--scale-load", inputs.scale_load), ("add_nodes", "--add-nodes", inputs.add_nodes)
        )
        if text is not None
    }  # fmt: skip
    factors |= _several_failures(failing) | file.factors
    try:
        seeds = _seeds(file.seeds or values(rules.seed, "--seed"), "seeds:" if file.seeds else "--seed")
    except UsageError as error:
        raise InputError(error.message, path=str(file.path), hint=error.hint) from None
    return ExperimentOptions(
        names,
        Experiment(factors | params, seeds, file.measures, from_file=True),
        list(file.inputs) or paths,
        dataclasses.replace(
            inputs,
            cluster=file.cluster or inputs.cluster,
            inference=file.inference or inputs.inference,
            inference_load=file.inference_load or inputs.inference_load,
        ),
        rules if file.blocks is None else dataclasses.replace(rules, resample=type(rules.resample)(file.blocks)),
        compared if file.baseline is None else dataclasses.replace(compared, baseline=file.baseline),
    )


def _of_file(file: ExperimentFile, conf: Mapping[str, Sequence[Path]]) -> tuple[NamedValue, dict[str, tuple[str, ...]]]:
    """The policies of a file with the first value of each parameter, and the values of those that vary."""
    every = [wanted.name for wanted in file.policies]
    first, lists = [], {}
    for wanted in file.policies:
        try:
            policies([wanted.name], [], {})
        except UsageError as error:
            raise InputError(f"{wanted.place}.policy: {error.message}", path=str(file.path), hint=error.hint) from None
        for key, several in wanted.params.items():
            for value in several:
                try:
                    policies([wanted.name], [f"{wanted.label}.{key}={value}"], {})
                except UsageError as error:
                    place = f"{wanted.place}.params.{key}"
                    problem = error.message.removeprefix("--param ")
                    raise InputError(f"{place}: {problem}", path=str(file.path), hint=error.hint) from None
            first.append(f"{wanted.label}.{key}={several[0]}")
            if len(several) > 1:
                lists[f"{wanted.label}.{key}"] = several
    return policies(every, first, conf), lists


def refuse(places: Places, compared: Comparison) -> None:
    """Refuse what one replay can have and many cannot.

    Raises:
        UsageError: names the option.
    """
    for option, value in (
        ("--store", places.store), ("--decisions", places.decisions), ("--keep", places.keep_as),
        ("--against", compared.against), ("--section", compared.section), ("--gantt", compared.gantt),
    ):  # fmt: skip
        if value is not None:
            raise UsageError(
                f"{option} requires one replay per policy; several values of an option make an experiment",
                hint="omit it, or give one value per option",
            )


def answer(  # noqa: PLR0917
    source: Source,
    names: NamedValue,
    models: dict[str, Any],
    varied: Experiment,
    was: ForCells,
    rules: Rules,
    compared: Comparison,
    places: Places,
    shown: TableOptions,
    baseline: str | None,
    given: Settings,
) -> None:
    """Replay every cell, print the result and write the files that are asked for.

    Raises:
        UsageError: no such table.
        Exit: Ctrl-C; a message says what was kept.
    """
    from gpuctl.replay.experiments.run import CellFolder
    from gpuctl.spread.engine import parse

    engine = parse(compared.engine, compared.jobs, None if places.parquet is None else places.parquet / _SLURM)
    bad = next((name for name in shown.table or () if name not in TABLES), None)
    if bad is not None:
        raise UsageError(f"an experiment has no table {bad!r}", hint=meant(bad, TABLES))
    cells = None if places.parquet is None else CellFolder(places.parquet / _CELLS)
    found = replayed(
        source, names, models, varied, was, rules, compared, baseline,
        run=lambda base, plan: _figures(base, plan, cells, engine, given), command=command_line(),
    )  # fmt: skip
    places.write_tables(found, given)
    shape = shown.shape(given)
    first = for_people(shape, shown.output) and not (shown.table or shown.every)
    screen = None
    if first:
        from gpuctl.reports.screens.experiments import screen as screen_of

        screen = screen_of(found)
    print_result(found, shape, shown.output, shown.table, given, screen=screen, notes=shown.notes, paged=shown.every)
    announce_written((*places.all, shown.output), given)
    if source.failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def replayed(  # noqa: PLR0917
    source: Source,
    names: NamedValue,
    models: dict[str, Any],
    varied: Experiment,
    was: ForCells,
    rules: Rules,
    compared: Comparison,
    baseline: str | None,
    *,
    run: Callable[[Base, list[Cell]], list[dict[str, Any]]],
    command: str,
) -> Analysis:
    """Replay every cell and return the result.

    Args:
        source: the jobs and nodes.
        names: the policies with their parameters, of those that vary the first value.
        models: as `gpuctl.replay.run.replay` takes them.
        varied: what varies.
        was: what changes are compared with.
        rules: what holds for every policy.
        compared: what is compared.
        baseline: label of the policy to compare with; None: the first.
        run: replays cells, and returns the figures of each.
        command: for the record.
    """
    from gpuctl.replay.experiments import cells as cells_of
    from gpuctl.replay.experiments.result import result
    from gpuctl.replay.policies import label

    resample = rules.resample.value if len(varied.seeds) > 1 else "none"
    plan = cells_of.plan(names, varied.factors, varied.seeds)
    base = _base(source, models, was, resample, compared.warmup)
    changes = _changes(base, plan, varied, was.everywhere)
    base = base if changes is not None else dataclasses.replace(base, unchanged=None)
    found = result(
        base, plan, run(base, plan), baseline or label(names[0][0]),
        sources=source.sources, command=command, locality=source.locality,
        measures=varied.measures, changes=changes, nearness=was.nearness,
    )  # fmt: skip
    return dataclasses.replace(found, settings=found.settings | source.chosen)


def _base(source: Source, models: dict[str, Any], was: ForCells, resample: str, warmup: float) -> Base:
    from gpuctl.replay.experiments.cells import Base

    def of(one: Source, models: dict[str, Any]) -> Base:
        return Base(one.workload, one.cluster, {**models, "rates": one.rates}, resample, warmup)

    before = None if was.source is None else of(was.source, was.models)
    return dataclasses.replace(
        of(source, models), unchanged=before, changed=bool(was.everywhere), own_params=was.own_params
    )


def _changes(base: Base, plan: Sequence[Cell], varied: Experiment, everywhere: list[Note]) -> Note | None:
    """What is compared with the unchanged replay; None if no cell is changed, or there is nothing to compare with."""
    from gpuctl.core.notes import NamedValue, literal, note, together
    from gpuctl.replay.experiments.cells import changed_factors
    from gpuctl.replay.policies import label

    if not any(map(base.changes, plan)):
        return None
    names = dict.fromkeys(name for cell in plan for name, _ in changed_factors(cell))
    changed = [
        note(
            "--{option} {values}",
            option=literal(_OPTIONS[name]),
            values=NamedValue("value", ",".join(varied.factors[name])),
        )
        for name in names
    ]
    params: dict[str, dict[str, None]] = {}
    for cell in plan:
        own = base.own_params.get(label(cell.policy), dict(cell.params))
        for key, value in cell.params:
            if own.get(key) != value:
                params.setdefault(f"{label(cell.policy)}.{key}", {})[value] = None
    changed += [
        note("--param {name}={values}", name=NamedValue("value", name), values=NamedValue("value", ",".join(values)))
        for name, values in params.items()
    ]
    return together(", ", [*changed, *everywhere])


def _figures(
    base: Base, plan: list[Cell], cells: CellFolder | None, engine: Engine, given: Settings
) -> list[dict[str, Any]]:
    from gpuctl.cli.progress import Bar
    from gpuctl.replay.experiments.run import run as replay_all

    done = 0
    with Bar(wanted=not given.quiet, color=given.color, steps=True) as bar:

        def at(count: int, size: int) -> None:
            nonlocal done
            done = count
            bar.at(f"replay {count:,} of {size:,}", count, size)

        try:
            return replay_all(
                base, plan, cells, engine=engine, progress=at, notify=lambda text: message(text, quiet=given.quiet)
            )
        except KeyboardInterrupt:
            lost = "and lost; with --parquet DIR they are saved"
            where = "and saved: run the same command again for the rest" if cells else lost
            message(f"gpuctl: interrupted; {done:,} of {len(plan):,} replays are done {where}")
            raise typer.Exit(ExitCode.INTERRUPTED) from None
