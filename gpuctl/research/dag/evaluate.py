"""Compares policies on generated sets of jobs outside the training data: means, paired differences, intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.research.dag.jobs import generate
from gpuctl.research.dag.simulate import simulate
from gpuctl.research.learn.repeated_runs import student_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gpuctl.research.dag.policies import Policy

    Floats = NDArray[np.float64]

SIMPLE = ("fifo", "fair", "wfair", "cp", "srpt")
"""Rules that nobody searched or learned."""


@dataclass(frozen=True)
class Setting:
    """Sets of jobs.

    Attributes:
        loads: one per kind of set.
        seeds: of the sets of each load.
        jobs: of a set.
        executors: executors that it runs on.
        delay_ms: before an executor's first task for another job.
    """

    loads: tuple[float, ...] = (0.5, 0.7, 0.9)
    seeds: tuple[int, ...] = tuple(range(5000, 5010))
    jobs: int = 25
    executors: int = 12
    delay_ms: int = 2000


def run(
    setting: Setting, policies: Sequence[Policy], progress: Callable[[str, int, int], None] = lambda *_: None
) -> dict[float, dict[str, Floats]]:
    """Return the mean completion time, in ms, of each set: by load, by policy [sets]."""
    total = len(setting.loads) * len(setting.seeds)
    found: dict[float, dict[str, Floats]] = {}
    for at, load in enumerate(setting.loads):
        means = {policy.name: np.zeros(len(setting.seeds)) for policy in policies}
        for k, seed in enumerate(setting.seeds):
            progress("sets of jobs", at * len(setting.seeds) + k, total)
            jobs = generate(seed, setting.jobs, setting.executors, load)
            for policy in policies:
                outcome = simulate(jobs, policy, executors=setting.executors, delay_ms=setting.delay_ms)
                means[policy.name][k] = outcome.completion.mean()
        found[load] = means
    return found


def best_simple(means: dict[str, Floats]) -> str | None:
    """Return the simple rule with the least mean; None: there is none."""
    return min((name for name in SIMPLE if name in means), key=lambda name: float(means[name].mean()), default=None)


def change(mine: Floats, other: Floats) -> tuple[float, float, float]:
    """Return how much longer jobs take than under another policy, in % of its mean over all sets; paired by set."""
    mean, low, high = student_interval(mine - other)
    whole = float(other.mean()) / 100
    return mean / whole, low / whole, high / whole
