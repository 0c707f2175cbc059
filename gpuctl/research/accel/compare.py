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
    """Return the names of policies in a comma-separated list, without duplicates.

    Raises:
        UsageError: the list is empty or has an unknown name.
    """
    found = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not found:
        raise UsageError("--policy names none", hint=f"{', '.join(policies.SIMPLE)}, {', '.join(policies.OTHERS)}")
    for name in found:
        if name not in {GENETIC, EXHAUSTIVE} and not name.startswith(LEARNED):
            policies.rule(name)
    return found


def loaded(names: Sequence[str], machine: Machine) -> tuple[dict[str, Policy], list[Note]]:
    """Return policies that decide online, by name, and caveats on learned ones.

    Raises:
        UsageError: a name is unknown.
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
    """Return how a model's training differs from its use."""
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
    """Simulate requests under each policy.

    Args:
        names: of policies, in order.
        found: those that decide online.
        machine: the system.
        requests: requests to simulate.
        rules: rules of the simulation.
        progress: called with the current step, the amount done and the total.

    Raises:
        UsageError: exhaustive is requested for a case that is not tiny.
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
