"""Policies of deferrable jobs by name, and their run on a case."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.policies.osdec import slot_kernel as kernel
from gpuctl.research.deferrable.slots import WAIT_COST, Outcome, Rule, simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gpuctl.research.deferrable.cases import Case
    from gpuctl.research.deferrable.model import Model

    Ints = NDArray[np.int64]


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

    best = optimum(case, limit_s)
    return Ran(policy, best.outcome, best.bound)


MOST_STARTS = 2_000_000
"""Most possible starts; with more, the solver takes gigabytes."""


class Optimum(NamedTuple):
    """Solution of the solver.

    Attributes:
        outcome: outcome of its starts; nothing is evicted.
        bound: upper bound of the score.
    """

    outcome: Outcome
    bound: float


def optimum(case: Case, limit_s: float) -> Optimum:
    """The starts with the highest score, each job at most once, no slot over its capacity.

    Args:
        case: capacity and jobs.
        limit_s: time limit, s; then the best starts so far count.

    Raises:
        InputError: there are more possible starts than `MOST_STARTS`, or no solution was found in time.
    """
    job, start = _starts(case)
    found = np.full(len(case.ids), -1, np.int64)
    work = max(int(case.work.sum()), 1)
    bound = 0.0
    if job.size:
        chosen, best = _solve(case, job, start, limit_s)
        found[job[chosen]] = start[chosen]
        bound = best / work
    states = tuple("done" if at >= 0 else "missed" for at in found.tolist())
    return Optimum(Outcome(found, np.zeros(found.size, np.int64), states, 0), bound)


def _starts(case: Case) -> tuple[Ints, Ints]:
    """Jobs, and slots in which each may start and fits the leftover capacity by itself."""
    span = case.latest - case.earliest + 1
    if span.sum() > MOST_STARTS:
        raise InputError(
            f"{span.sum():,} possible starts, more than the {MOST_STARTS:,} that optimum takes",
            hint="leave optimum out, or take a shorter trace or longer slots",
        )
    job = np.repeat(np.arange(len(case.ids)), span)
    start = np.arange(job.size) - np.repeat(np.cumsum(span) - span - case.earliest, span)
    least = np.empty(job.size, np.int64)
    for length in np.unique(case.slots).tolist():
        some = case.slots[job] == length
        windows = np.lib.stride_tricks.sliding_window_view(case.leftover, length).min(axis=1)
        least[some] = windows[start[some]]
    fits = least >= case.gpus[job]
    return job[fits], start[fits]


def _solve(case: Case, job: Ints, start: Ints, limit_s: float) -> tuple[NDArray[np.bool_], float]:
    """The selected starts, and the upper bound of their worth."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    late = (start - case.earliest[job]) / np.maximum(1, case.latest[job] - case.earliest[job])
    value = case.work[job] * (1 - WAIT_COST * late)
    length = case.slots[job]
    column = np.repeat(np.arange(job.size), length)
    slot = start[column] + np.arange(column.size) - np.repeat(np.cumsum(length) - length, length)
    jobs = len(case.ids)
    rows = np.concatenate([job, jobs + slot])
    columns = np.concatenate([np.arange(job.size), column])
    values = np.concatenate([np.ones(job.size), case.gpus[job][column]])
    matrix = coo_array((values, (rows, columns)), shape=(jobs + case.horizon, job.size)).tocsc()
    most = np.concatenate([np.ones(jobs), case.leftover])
    answer = milp(
        -value, constraints=LinearConstraint(matrix, -np.inf, most), integrality=np.ones(job.size),
        bounds=Bounds(0, 1), options={"time_limit": limit_s, "mip_rel_gap": 1e-6},
    )  # fmt: skip
    if answer.x is None:
        raise InputError(f"optimum: no starts found in {limit_s:g} s", hint="a longer --time-limit")
    bound = answer.get("mip_dual_bound")
    return answer.x > 0.5, float(value.sum() if bound is None else -bound)
