"""Prints what every policy decides in random cases, as a digest for each policy and each of its parameters.

Uncompiled, an index past an array's end is an IndexError: this looks at the indices of every policy's kernels. With
``NUMBA_BOUNDSCHECK=1`` compiled code does so, too; compiling that takes minutes.
"""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.core.errors import GpuctlError
from gpuctl.replay.contract.conformance import random_case, run, violations
from gpuctl.replay.policies import BUILT_IN, find

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpuctl.replay.contract.policy import Parameter
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.models.records import Cluster, Workload

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"
OWN = [f"{EXAMPLES / 'my_policies.py'}:MakeRoom", f"{EXAMPLES / 'compiled_policy.py'}:LongestWait"]
POLICIES = [*(n for n in BUILT_IN if n != "recorded"), *OWN]
WITH = {
    "yarn-capacity": {"preemption": "true", "max_wait_before_kill": "2", "monitoring_interval": "1"},
    "yarn-fair": {"preemption": "true", "fair_share_preemption_timeout": "2", "wait_before_kill": "1"},
    "mesos": {"hold": "true"},
    "slurm": {"preempt": "partition", "tiers": "q0:3,q1:2"},
}
"""What other parameters are changed beside, so that they matter."""

LARGE = frozenset({"sia", "pollux", "elasticflow", "lucid"})
"""Policies whose programs take minutes uncompiled: the defaults alone."""

FILES: dict[str, list[str]] = {"conf": [], "file": [], "limits_from": ["true", "steps"]}
"""Of parameters that name files, what else they may be."""


def others(one: Parameter) -> list[str]:
    """Values of a parameter that are not its default."""
    if isinstance(one.default, bool):
        return [str(not one.default).lower()]
    if one.choices:
        return [word for word in one.choices if word != one.default]
    if isinstance(one.default, tuple):
        return ["5,40", "1"]
    if isinstance(one.default, float):
        return [f"{min(max(value, one.least), one.most):g}" for value in (2 * one.default + 1, one.default / 3)]
    if one.name in FILES:
        return FILES[one.name]
    # a text that stands for a number, or for names with numbers, where that is what it may be
    return ["5", "q0:2"]


def changes(parameters: Sequence[Parameter]) -> list[dict[str, str]]:
    """None, then values that are not defaults: of numbers two at a time, one larger and one smaller."""
    numbers = [one for one in parameters if isinstance(one.default, float) and not one.choices]
    found = [{}, *({one.name: text} for one in parameters if one not in numbers for text in others(one))]
    for one, other in zip(numbers, [*numbers[1:], *numbers[:1]], strict=True):
        larger, smaller = {one.name: others(one)[0]}, {other.name: others(other)[1]}
        found += [larger | smaller] if one is not other else [larger, smaller]
    return found


def _with_two_queues(number: int) -> tuple[Workload, Cluster, Settings]:
    return next(case for seed in itertools.count(10 * number) if len((case := random_case(seed))[0].queues) > 1)


def _cases(name: str, count: int) -> Iterator[tuple[Workload, Cluster, Settings]]:
    for seed in range(count):
        for resources in sorted({False, find(name).resources}):
            yield random_case(seed, resources=resources)


def digests(cases: int = 4, *, checked: bool = True) -> list[str]:
    """A line for each policy and variant: what it is, and a digest of all decisions.

    Args:
        cases: random ones for the defaults of each policy; a variant has one.
        checked: whether invariants are looked at, too: of the same decisions, once is enough.
    """
    found = []
    for name in POLICIES:
        tried = [{}] if name in LARGE else changes(find(name).parameters)
        for number, change in enumerate(tried):
            what = ",".join(map("=".join, change.items())) or "defaults"
            params = WITH.get(name, {}) | change if change else {}
            log, refused = hashlib.sha256(), ""
            try:
                for case in [_with_two_queues(number)] if change else _cases(name, cases):
                    outcome = run(find(name)(params), *case)
                    broken = violations(outcome, *case) if checked and change else []
                    if broken:
                        raise AssertionError(f"{name} {what}: {broken}")
                    log.update(outcome.decisions.write_ndjson().encode())
            except GpuctlError as error:
                # no such value, or not in this case: the message is to be the same, too
                log.update(str(error).encode())
                refused = "!"
                # of two numbers the other may be one that is taken
                tried += [{key: text} for key, text in change.items()] if len(change) > 1 else []
            found.append(f"{Path(name).name} {what}{refused} {log.hexdigest()}")
    return found


if __name__ == "__main__":
    print(*digests(checked=False), sep="\n")  # noqa: T201 - the test reads it
