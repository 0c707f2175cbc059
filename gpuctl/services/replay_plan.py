"""What is to be replayed: the options of a replay, an experiment's file and a calibration, put together."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.experiments.factors import values
from gpuctl.services.policy_choice import checked_baseline, policies
from gpuctl.services.unchanged import in_file, with_calibration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuctl.replay.experiments.file import ExperimentFile
    from gpuctl.replay.inputs.calibration import Calibration
    from gpuctl.replay.models.node_failures import FailureOptions
    from gpuctl.services.options import Comparison, Failing, Inputs, Policies, Rules

    Chosen = list[tuple[str, dict[str, str]]]


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Plan:
    """What is to be replayed.

    Attributes:
        names: the policies, each with its parameters as texts; of those that vary, the first value.
        varied: what varies.
        paths: the jobs: a CSV, a trace store, or logs.
        inputs: which of them, and on which nodes.
        rules: what holds for every policy.
        compared: what is compared.
        failing: how nodes fail.
        slurm_conf: files of Slurm's configuration.
        calibration: rules that were found for the trace; None: not given.
        baseline: label of the policy to compare with; None: the first.
    """

    names: Chosen
    varied: Experiment
    paths: list[Path]
    inputs: Inputs
    rules: Rules
    compared: Comparison
    failing: Failing
    slurm_conf: tuple[Path, ...] = ()
    calibration: Calibration | None = None
    baseline: str | None = None

    def failures(self) -> FailureOptions | None:
        """Return how nodes fail, with the first of several values; None if they do not.

        Raises:
            UsageError: an option of failures without them.
            InputError: a file that an option names cannot be read.
        """
        one: dict[str, Any] = {name: several[0] for name, several in _of_failures(self.failing).items()}
        first = dataclasses.replace(self.failing, **one)
        return first.options(several=not {"failures", "checkpoint"}.isdisjoint(self.varied.factors))


def plan(
    paths: list[Path], chosen: Policies, inputs: Inputs, rules: Rules, compared: Comparison, *, failing: Failing
) -> Plan:
    """Put together what the options, an experiment's file and a calibration say.

    Raises:
        UsageError: a list makes no sense, the policies do not, or an option says what the file says.
        InputError: a file cannot be read, or a key of it makes no sense.
    """
    chosen, rules, calibration = with_calibration(chosen, rules)
    found = _of_options(paths, chosen, inputs, rules, compared, failing=failing)
    names = found.names
    if calibration is not None and chosen.experiment is not None:
        names = in_file(names, calibration, chosen.experiment)
    return dataclasses.replace(
        found, names=names, slurm_conf=tuple(chosen.slurm_conf or ()), calibration=calibration,
        baseline=checked_baseline(found.compared.baseline, names),
    )  # fmt: skip


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


def _of_options(
    paths: list[Path], chosen: Policies, inputs: Inputs, rules: Rules, compared: Comparison, *, failing: Failing
) -> Plan:
    if chosen.experiment is not None:
        return _of_file(paths, chosen, inputs, rules, compared, failing=failing, place=chosen.experiment)
    single, params = _split(chosen.policy or (), [*(chosen.param or ()), *_of_model(chosen)], chosen.conf)
    names = policies(chosen.policy or (), single, chosen.conf)
    factors = _of_inputs(inputs) | _several_failures(failing)
    varied = Experiment(factors | params, _seeds(values(rules.seed, "--seed"), "--seed"))
    return Plan(names, varied, paths, inputs, rules, compared, failing)


def _of_inputs(inputs: Inputs) -> dict[str, tuple[str, ...]]:
    """The values of options that change jobs or nodes."""
    options = {"scale_load": inputs.scale_load, "add_nodes": inputs.add_nodes}
    return {name: values(text, f"--{name.replace('_', '-')}") for name, text in options.items() if text is not None}


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

    if not any(find(name).name == "osdec" for name in chosen.names):
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


def _of_file(
    paths: list[Path], chosen: Policies, inputs: Inputs, rules: Rules, compared: Comparison, *, failing: Failing,
    place: Path,
) -> Plan:  # fmt: skip
    from gpuctl.replay.experiments.file import read

    file = read(place)
    blocks: Any = file.blocks  # one of the choices of --resample
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
    names, params = _policies_of(file, chosen.conf)
    factors = _of_inputs(inputs) | _several_failures(failing) | file.factors
    try:
        seeds = _seeds(file.seeds or values(rules.seed, "--seed"), "seeds:" if file.seeds else "--seed")
    except UsageError as error:
        raise InputError(error.message, path=str(file.path), hint=error.hint) from None
    return Plan(
        names,
        Experiment(factors | params, seeds, file.measures, from_file=True),
        list(file.inputs) or paths,
        dataclasses.replace(
            inputs,
            cluster=file.cluster or inputs.cluster,
            inference=file.inference or inputs.inference,
            inference_load=file.inference_load or inputs.inference_load,
        ),
        rules if blocks is None else dataclasses.replace(rules, resample=blocks),
        compared if file.baseline is None else dataclasses.replace(compared, baseline=file.baseline),
        failing,
    )


def _policies_of(file: ExperimentFile, conf: Mapping[str, Sequence[Path]]) -> tuple[Chosen, dict[str, tuple[str, ...]]]:
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
