"""What a replay compares changes with: the same replay without them, under the trace's own rules if known."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gpuctl.core.notes import Note
    from gpuctl.replay.inputs.calibration import Calibration
    from gpuctl.replay.models.records import Outcome
    from gpuctl.replay.results.comparison import Nearness, OwnRules
    from gpuctl.replay.results.settings import Unchanged
    from gpuctl.services.options import Policies, Rules
    from gpuctl.services.replay_inputs import Source

    Chosen = list[tuple[str, dict[str, str]]]
    Run = Callable[[Source, Chosen, dict[str, Any]], list[Outcome]]

_OF_RULES = ("placement", "mode")
"""Models that put a rule in place of every policy's own."""
_FACTS = ("conf", "limits_from")
"""Parameters that say what a site is like, and change nothing."""


def with_calibration(chosen: Policies, rules: Rules) -> tuple[Policies, Rules, Calibration | None]:
    """Put what ``--calibrated`` says among the options; options that say otherwise go before it.

    Raises:
        InputError: it is no such file.
        UsageError: there is no such policy.
    """
    if chosen.calibrated is None:
        return chosen, rules, None
    from gpuctl.replay.inputs.calibration import read_calibration
    from gpuctl.replay.policies import find

    known = read_calibration(chosen.calibrated)
    find(known.policy)
    rules = dataclasses.replace(rules, locality=True) if known.locality and rules.locality is None else rules
    if chosen.experiment is not None:
        return chosen, rules, known
    names = chosen.names
    if not any(find(name).name == known.policy for name in names):
        names.insert(0, known.policy)
    given = chosen.param or []
    keys = {text.partition("=")[0].strip() for text in given}
    of_file = [f"{known.policy}.{key}={value}" for key, value in known.params.items() if key not in keys]
    return dataclasses.replace(chosen, policy=names, param=[*of_file, *given]), rules, known


def in_file(names: Chosen, known: Calibration, path: Path) -> Chosen:
    """Give an experiment file's policies what was calibrated; parameters that the file sets go before it.

    Raises:
        UsageError: none of them is the policy that was calibrated.
    """
    from gpuctl.replay.policies import find

    if not any(find(name).name == known.policy for name, _ in names):
        raise UsageError(
            f"--calibrated: these are rules of {known.policy}, which is no policy of {path}",
            hint=f'add [[policies]] with policy = "{known.policy}", or leave --calibrated out',
        )
    return [(name, {**known.params, **params} if find(name).name == known.policy else params) for name, params in names]


def plain(names: Chosen, known: Calibration | None) -> Chosen:
    """The policies as they are without a change: those calibrated with what was calibrated, others as they are."""
    from gpuctl.replay.policies import find

    if known is None:
        return names
    return [
        (name, {**{key: params[key] for key in _FACTS if key in params}, **known.params})
        if find(name).name == known.policy
        else (name, params)
        for name, params in names
    ]


class Before(NamedTuple):
    """What a replay is compared with.

    Attributes:
        unchanged: the replays without the changes; None where nothing is changed.
        own: the replays of the trace as it was; None where there are none.
        missing: policies that Ctrl-C left undone.
    """

    unchanged: Unchanged | None
    own: OwnRules | None
    missing: list[str]


def before(
    source: Source, names: Chosen, models: dict[str, Any], outcomes: Sequence[Outcome], *, known: Calibration | None,
    run: Run, wanted: bool,
) -> Before:  # fmt: skip
    """Replay without what options change, and say which replays are of the trace as it was.

    Args:
        source: the jobs and nodes.
        names: the policies with their parameters.
        models: as `gpuctl.replay.run.replay` takes them.
        outcomes: of the replays with the changes.
        known: what was calibrated.
        run: replays.
        wanted: whether changes are to be compared with their absence.
    """
    from gpuctl.core.notes import together
    from gpuctl.replay.results.settings import Unchanged
    from gpuctl.replay.run import ReplayInterrupted

    was = plain(names, known)
    everywhere = _everywhere(source, models)
    params = [text for (name, now), (_, then) in zip(names, was, strict=True) for text in _params(name, now, then)]
    base = source.unchanged if source.changes else source
    if not wanted or base is None or not (everywhere or params):
        own = None if everywhere or params else _own(source, outcomes, known)
        return Before(None, own, [])
    run_again = [each for each, now in zip(was, names, strict=True) if everywhere or each != now]
    missing: list[str] = []
    try:
        done = run(base, run_again, {**models, **dict.fromkeys(_OF_RULES)})
    except ReplayInterrupted as stop:
        done, missing = stop.outcomes, stop.missing
    unchanged = Unchanged(tuple(done), base.workload, together(", ", [*everywhere, *params])) if done else None
    again = {outcome.policy for outcome in done}
    rest = [] if everywhere else [outcome for outcome in outcomes if outcome.policy not in again]
    return Before(unchanged, _own(base, [*done, *rest], known), missing)


def _everywhere(source: Source, models: dict[str, Any]) -> list[Note]:
    """What options change under every policy."""
    from gpuctl.core.notes import literal, note

    rules = [note("--{name} {value}", name=literal(name), value=literal(str(models[name]))) for name in _OF_RULES
             if models.get(name) is not None]  # fmt: skip
    return [*source.changes, *rules]


class ForCells(NamedTuple):
    """What the replays of an experiment are compared with.

    Attributes:
        source: the jobs and nodes without what options change in all of them; None: there is nothing to compare with.
        models: as `gpuctl.replay.run.replay` takes them, likewise.
        own_params: parameters of the calibrated policy, by label, as they were calibrated.
        everywhere: options that change all of them.
        nearness: how near the model is to the trace; None where nothing was recorded.
    """

    source: Source | None
    models: dict[str, Any]
    own_params: dict[str, dict[str, str]]
    everywhere: list[Note]
    nearness: Nearness | None


def for_cells(
    source: Source, names: Chosen, models: dict[str, Any], *, known: Calibration | None, run: Run, wanted: bool
) -> ForCells:
    """Return what the replays of an experiment are compared with, and replay the trace as it was.

    Args:
        source: the jobs and nodes.
        names: the policies with their parameters, of those that vary the first value.
        models: as `gpuctl.replay.run.replay` takes them.
        known: what was calibrated.
        run: replays.
        wanted: whether changes are to be compared with their absence.

    Raises:
        ReplayInterrupted: Ctrl-C.
    """
    from gpuctl.replay.policies import find, label
    from gpuctl.replay.results.comparison import nearness

    everywhere, was = _everywhere(source, models), plain(names, known)
    base = (source.unchanged if source.changes else source) if wanted else None
    models = {**models, **dict.fromkeys(_OF_RULES)}
    fitted = [] if known is None else [each for each in was if find(each[0]).name == known.policy]
    own = None
    if base is not None and base.traced and base.own:
        own = _own(base, run(base, fitted[:1] or was, models), known)
    return ForCells(
        base, models, {label(name): params for name, params in fitted}, everywhere,
        nearness(own) if source.traced else None,
    )  # fmt: skip


def _params(name: str, now: dict[str, str], then: dict[str, str]) -> list[Note]:
    from gpuctl.core.notes import NamedValue, literal, note
    from gpuctl.replay.policies import label

    return [
        note("--param {policy}.{key}={value}", policy=NamedValue("policy", label(name)), key=literal(key),
             value=NamedValue("value", now[key]))
        for key in now if now[key] != then.get(key)
    ]  # fmt: skip


def _own(source: Source, outcomes: Sequence[Outcome], known: Calibration | None) -> OwnRules | None:
    """Those of replays of a trace as it was that may be under its own rules."""
    from gpuctl.replay.policies import find
    from gpuctl.replay.results.comparison import OwnRules

    if not (source.traced and source.own and outcomes):
        return None
    if known is None:
        return OwnRules(tuple(outcomes), source.workload)
    fitted = [outcome for outcome in outcomes if find(outcome.kind or outcome.policy).name == known.policy]
    same = known.scores.get("jobs") == source.workload.size
    return OwnRules(tuple(fitted[:1]), source.workload, calibrated=True, fitted=known.fitted if same else 0.0)
