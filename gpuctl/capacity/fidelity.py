"""Which policy a plan replays, and how near it comes to what the trace recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.calibrate.run import distance
from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.run import replay

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpuctl.capacity.goal import Goal
    from gpuctl.replay.models.records import Cluster, Workload

    Policy = tuple[str, dict[str, str]]

CANDIDATES = ("fifo-skip", "fifo", "easy")
"""Policies to choose from where the user names none; those that cannot replay the jobs are left out."""
LEAST_JOBS = 10
"""Fewest jobs with a recorded start for a comparison."""
NEAR_S = 600.0


@dataclass(frozen=True)
class Fidelity:
    """How near the replay of the trace on its own nodes comes to its recorded starts.

    Attributes:
        jobs: jobs with a recorded start.
        replayed: the goal's figure of these, replayed.
        recorded: recorded.
        near_pct: share of them that start within ten minutes of the recorded start, in percent.
        distance: `gpuctl.calibrate.run.distance`.
    """

    jobs: int
    replayed: float
    recorded: float
    near_pct: float
    distance: float


@dataclass(frozen=True)
class Chosen:
    """The policy of a plan.

    Attributes:
        policy: with its parameters.
        fidelity: how near it comes to the record; None: nothing was recorded on these nodes.
        tried: distances of all policies compared, by name, the nearest first; empty: the user chose.
    """

    policy: Policy
    fidelity: Fidelity | None
    tried: tuple[tuple[str, float], ...] = ()


def choose(
    workload: Workload,
    cluster: Cluster,
    policies: Sequence[Policy],
    goal: Goal,
    *,
    recorded: bool,
    models: Mapping[str, Any],
    progress: Callable[[str, int, int], None],
) -> Chosen:
    """Choose the policy that comes nearest to the recorded starts: the first one if nothing was recorded.

    Args:
        workload: jobs of the trace.
        cluster: the nodes that they ran on, with their outages.
        policies: to choose from; a single one is taken.
        goal: whose figure is compared.
        recorded: whether the nodes are those that the jobs ran on.
        models: as `gpuctl.replay.run.replay` takes them.
        progress: called with what is done, the number of policies that are, and that of all.

    Raises:
        UsageError: no policy can replay these jobs.
    """
    first = workload.recorded_start[workload.segment_start[:-1]]
    here = np.isfinite(first)
    if not recorded or here.sum() < LEAST_JOBS:
        return Chosen(policies[0], None)
    found: list[tuple[Policy, Fidelity]] = []
    for number, policy in enumerate(policies):
        progress("the trace as it was", number, len(policies))
        try:
            [outcome] = replay(workload, cluster, [policy], processes=1, **models)
        except (UsageError, InputError):
            # such as a policy that plans with time limits, and a trace without
            if len(policies) == 1:
                raise
            continue
        start = np.nan_to_num(outcome.jobs["start_s"].fill_null(np.inf).to_numpy().astype(np.float64), nan=np.inf)
        apart = distance(np.where(np.isinf(start), np.nan, start)[here], first[here])
        submit = workload.submit[here]
        near = 100 * float((np.abs(start[here] - first[here]) <= NEAR_S).mean())
        own = Fidelity(int(here.sum()), goal.of(start[here] - submit), goal.of(first[here] - submit), near, apart)
        found.append((policy, own))
    if not found:
        raise UsageError("no policy can replay these jobs", hint="--policy NAME; gpuctl policies lists them")
    found.sort(key=lambda one: one[1].distance)
    tried = tuple((policy[0], own.distance) for policy, own in found) if len(policies) > 1 else ()
    return Chosen(found[0][0], found[0][1], tried)
