"""Policies by name on the same requests."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import UsageError
from gpuctl.core.notes import NamedValue, note
from gpuctl.research.accel import offline, policies, saved
from gpuctl.research.accel.simulate import Policy, simulate, warm_up

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuctl.core.notes import Note
    from gpuctl.research.accel.costs import Machine
    from gpuctl.research.accel.requests import Requests
    from gpuctl.research.accel.simulate import Outcome, Rules

    Progress = Callable[[str, int, int], None]

LEARNED = "relmas:"
GENETIC, EXHAUSTIVE = "genetic", "exhaustive"


def names_of(text: str) -> tuple[str, ...]:
    """Names of policies in a list with commas, each once.

    Raises:
        UsageError: it names none, or one that there is not.
    """
    found = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not found:
        raise UsageError("--policy names none", hint=f"{', '.join(policies.SIMPLE)}, {', '.join(policies.OTHERS)}")
    for name in found:
        if name not in {GENETIC, EXHAUSTIVE} and not name.startswith(LEARNED):
            policies.rule(name)
    return found


def loaded(names: Sequence[str], machine: Machine) -> tuple[dict[str, Policy], list[Note]]:
    """Policies that are applied as requests come, by name, and what a reader must know of learned ones.

    Raises:
        UsageError: there is none of a name.
        InputError: a model cannot be read, or is for another number of sub-accelerators.
    """
    found: dict[str, Policy] = {}
    notes: list[Note] = []
    for name in names:
        if name.startswith(LEARNED):
            path = Path(name.removeprefix(LEARNED))
            found[name], about = saved.load(path, name, len(machine.system.kinds))
            notes += strangers(path, about, machine)
        elif name not in {GENETIC, EXHAUSTIVE}:
            found[name] = policies.rule(name)
    return found, notes


def strangers(path: Path, about: dict[str, Any], machine: Machine) -> list[Note]:
    """What a model was trained for that is not what it is used for."""
    notes = []
    system = about.get("system")
    if isinstance(system, str) and system != machine.system.plain:
        notes.append(note("{model} was trained for another system: {kinds}.", model=NamedValue("path", str(path)),
                         kinds=NamedValue("value", system[:200])))  # fmt: skip
    if isinstance(about.get("costs"), str) and about["costs"] != machine.digest:
        notes.append(note("{model} was trained with another table of costs.", model=NamedValue("path", str(path))))
    return notes


def run(  # noqa: PLR0917
    names: Sequence[str], found: dict[str, Policy], machine: Machine, requests: Requests, rules: Rules,
    progress: Progress = lambda *_: None,
) -> list[Outcome]:  # fmt: skip
    """What comes of requests under each policy.

    Args:
        names: of policies, in order.
        found: those that are applied as requests come.
        machine: on which.
        requests: that are simulated.
        rules: that hold.
        progress: called with what is under way, how much of it is done, of how much.

    Raises:
        UsageError: exhaustive is asked for a case that is not tiny.
    """
    warm_up(machine, requests, policies.rule(policies.SIMPLE[0]))
    outcomes = []
    for done, name in enumerate(names):
        progress(name, done, len(names))
        begin = time.process_time()
        if name == GENETIC:
            outcome = offline.genetic(machine, requests, rules, progress)
        elif name == EXHAUSTIVE:
            outcome = offline.exhaustive(machine, requests, rules)
        else:
            outcome = simulate(machine, requests, found[name], rules)
        outcomes.append(replace(outcome, cpu_s=time.process_time() - begin))
    return outcomes
