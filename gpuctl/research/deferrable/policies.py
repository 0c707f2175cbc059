"""Policies of deferrable jobs by name, and their run on a case."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError
from gpuctl.replay.policies.osdec import slot_kernel as kernel
from gpuctl.research.deferrable.slots import Outcome, Rule, simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuctl.research.deferrable.cases import Case
    from gpuctl.research.deferrable.model import Model

RULES = {"asap": kernel.ASAP, "latest": kernel.LATEST, "clairvoyant": kernel.CLAIRVOYANT}
ORACLES = frozenset({"clairvoyant", "optimum"})
"""Policies that know the leftover capacity of later slots."""

DEFAULT = "asap,latest,quantile:10,quantile:50,quantile:90,clairvoyant"
_KNOWN = "asap, latest, quantile:P (0 to 100), clairvoyant, optimum, osdec:MODEL"


@dataclass(frozen=True)
class Policy:
    """A policy.

    Attributes:
        label: as the user wrote it.
        rule: starts jobs; None: `optimum`, or a model.
        model: starts jobs; None: another policy.
    """

    label: str
    rule: Rule | None = None
    model: Model | None = None

    @property
    def oracle(self) -> bool:
        """Whether the policy knows the leftover capacity of later slots."""
        return self.label in ORACLES


@dataclass(frozen=True)
class Ran:
    """Outcome of a policy; `bound`: upper bound of the score, from `optimum` only."""

    policy: Policy
    outcome: Outcome
    bound: float | None = None


def parse(texts: Sequence[str]) -> tuple[Policy, ...]:
    """Parse a comma-separated list of policies.

    Raises:
        UsageError: a policy is unknown or listed twice.
        InputError: a model cannot be read.
    """
    names = [name.strip() for text in texts for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError("no policy", hint=f"known: {_KNOWN}")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"--policy names {twice} twice", hint="name each of them once")
    return tuple(map(_parse, names))


def _parse(name: str) -> Policy:
    kind, colon, rest = name.partition(":")
    if not colon and kind in RULES:
        return Policy(name, Rule(RULES[kind]))
    if name == "optimum":
        return Policy(name)
    if kind == "quantile":
        if not (rest.isascii() and rest.isdigit() and len(rest) < 4 and int(rest) <= 100):
            raise UsageError(f"--policy {name}: expected quantile:P, P from 0 to 100", hint="quantile:50")
        return Policy(name, Rule(kernel.QUANTILE, int(rest)))
    if kind == "osdec":
        if not rest:
            raise UsageError(
                "--policy osdec: the model is missing",
                hint="osdec:MODEL, a folder that gpuctl deferrable train wrote",
            )
        from gpuctl.research.deferrable.model import load

        return Policy(name, model=load(Path(rest)))
    raise UsageError(f"there is no policy {name!r} of deferrable jobs", hint=f"known: {_KNOWN}")


def run(
    case: Case, policies: Sequence[Policy], evict: str = "newest", *, limit_s: float = 60.0,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> list[Ran]:  # fmt: skip
    """Run policies on a case.

    Args:
        case: capacity and jobs.
        policies: policies to run.
        evict: which run on-demand load evicts, a key of `gpuctl.research.deferrable.slots.EVICTED`.
        limit_s: time limit of `optimum`, s.
        progress: called with the current policy, the number done and the total.

    Raises:
        InputError: the optimum cannot be computed.
    """
    found = []
    for done, policy in enumerate(policies):
        progress(policy.label, done, len(policies))
        found.append(run_one(case, policy, evict, limit_s))
    return found


def run_one(case: Case, policy: Policy, evict: str, limit_s: float) -> Ran:
    """Run one policy on a case; arguments as in `run`."""
    if policy.model is not None:
        return Ran(policy, policy.model.run(case, evict))
    if policy.rule is not None:
        return Ran(policy, simulate(case, policy.rule, evict))
    from gpuctl.research.deferrable.optimum import optimum

    best = optimum(case, limit_s)
    return Ran(policy, best.outcome, best.bound)
