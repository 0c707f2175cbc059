"""What ``gpuctl replay`` compares changes with: the same replay without them, under the trace's own rules if known."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuctl.cli.replay_inputs import Source
    from gpuctl.cli.replay_options import Policies, Rules
    from gpuctl.core.notes import Note
    from gpuctl.replay.inputs.calibration import Calibration
    from gpuctl.replay.models.records import Outcome
    from gpuctl.replay.results.model_error import OwnRules
    from gpuctl.replay.results.settings import Unchanged

    Chosen = list[tuple[str, dict[str, str]]]
    Run = Callable[[Source, Chosen, dict[str, Any]], tuple[list[Outcome], list[str]]]

_OF_RULES = ("placement", "mode")
"""Models that put a rule in place of every policy's own."""
_FACTS = ("conf", "limits_from")
"""Parameters that say what a site is like, and change nothing."""


def with_calibration(chosen: Policies, rules: Rules) -> tuple[Policies, Rules, Calibration | None]:
    """Put what ``--calibrated`` says among the options; options that say otherwise go before it.

    Raises:
        InputError: it is no such file.
        UsageError: an experiment's file has policies of its own, or there is no such policy.
    """
    if chosen.calibrated is None:
        return chosen, rules, None
    if chosen.experiment is not None:
        raise UsageError("--calibrated: --experiment has policies of its own", hint="leave one of them out")
    from gpuctl.replay.inputs.calibration import read_calibration
    from gpuctl.replay.policies import find

    known = read_calibration(chosen.calibrated)
    find(known.policy)
    names = [name.strip() for text in chosen.policy or () for name in text.split(",") if name.strip()]
    if not any(find(name).name == known.policy for name in names):
        names.insert(0, known.policy)
    given = chosen.param or []
    keys = {text.partition("=")[0].strip() for text in given}
    of_file = [f"{known.policy}.{key}={value}" for key, value in known.params.items() if key not in keys]
    rules = dataclasses.replace(rules, locality=True) if known.locality and rules.locality is None else rules
    return dataclasses.replace(chosen, policy=names, param=[*of_file, *given]), rules, known


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
        source: the jobs and servers.
        names: the policies with their parameters.
        models: as `gpuctl.replay.run.replay` takes them.
        outcomes: of the replays with the changes.
        known: what was calibrated.
        run: replays; returns the outcomes and the policies that are not done.
        wanted: whether changes are to be compared with their absence.
    """
    from gpuctl.core.notes import note, ours, together
    from gpuctl.replay.results.settings import Unchanged

    was = plain(names, known)
    rules = [note("--{name} {value}", name=ours(name), value=ours(str(models[name]))) for name in _OF_RULES
             if models.get(name) is not None]  # fmt: skip
    everywhere = [*source.changes, *rules]
    params = [told for (name, now), (_, then) in zip(names, was, strict=True) for told in _params(name, now, then)]
    base = source.unchanged if source.changes else source
    if not wanted or base is None or not (everywhere or params):
        own = None if everywhere or params else _own(source, outcomes, known)
        return Before(None, own, [])
    run_again = [each for each, now in zip(was, names, strict=True) if everywhere or each != now]
    done, missing = run(base, run_again, {**models, **dict.fromkeys(_OF_RULES)})
    unchanged = Unchanged(tuple(done), base.workload, together(", ", [*everywhere, *params])) if done else None
    again = {outcome.policy for outcome in done}
    rest = [] if everywhere else [outcome for outcome in outcomes if outcome.policy not in again]
    return Before(unchanged, _own(base, [*done, *rest], known), missing)


def _params(name: str, now: dict[str, str], then: dict[str, str]) -> list[Note]:
    from gpuctl.core.notes import Named, note, ours
    from gpuctl.replay.policies import label

    return [
        note("--param {policy}.{key}={value}", policy=Named("policy", label(name)), key=ours(key),
             value=Named("value", now[key]))
        for key in now if now[key] != then.get(key)
    ]  # fmt: skip


def _own(source: Source, outcomes: Sequence[Outcome], known: Calibration | None) -> OwnRules | None:
    """Those of replays of a trace as it was that may be under its own rules."""
    from gpuctl.replay.policies import find
    from gpuctl.replay.results.model_error import OwnRules

    if not (source.traced and source.own and outcomes):
        return None
    if known is None:
        return OwnRules(tuple(outcomes), source.workload)
    fitted = [outcome for outcome in outcomes if find(outcome.kind or outcome.policy).name == known.policy]
    same = known.told.get("jobs") == source.workload.size
    return OwnRules(tuple(fitted[:1]), source.workload, calibrated=True, fitted=known.fitted if same else 0.0)
