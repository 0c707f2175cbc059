"""DRF on random cases: what the paper promises, a slow filling in plain fractions, and max-min where GPUs are all."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.replay.contract.conformance import random_case, run
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.records import Cluster
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find
from tests.example_counts import examples
from tests.replay_reference import Job, workload

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Workload

Ask = tuple[int, int, int]
"""GPUs, CPUs, MB."""


@st.composite
def static(draw: st.DrawFn) -> tuple[Ask, list[Ask]]:
    """A pool, and users with endlessly many tasks each, all alike."""
    has = (draw(st.integers(1, 12)), draw(st.integers(1, 24)), draw(st.integers(1, 40)))
    one = st.tuples(*(st.integers(0, most) for most in has)).filter(any)
    return has, draw(st.lists(one, min_size=1, max_size=4))


def filled(has: Ask, users: list[Ask]) -> list[int]:
    """Tasks of each user: progressive filling in fractions, of users alike the first one."""
    tasks, free = [0] * len(users), list(has)

    def share(user: int) -> Fraction:
        return max(Fraction(tasks[user] * ask, there) for ask, there in zip(users[user], has, strict=True))

    while True:
        able = [u for u in range(len(users)) if all(a <= f for a, f in zip(users[u], free, strict=True))]
        if not able:
            return tasks
        user = min(able, key=lambda u: (share(u), u))
        tasks[user] += 1
        free = [f - a for f, a in zip(free, users[user], strict=True)]


def allocated(has: Ask, users: list[Ask], policy: str = "drf", **params: str) -> list[int]:
    """Tasks of each user that the simulator starts at second 0."""
    most = sum(has) + 1
    rows = [(user, users[user]) for _ in range(most) for user in range(len(users))]
    work = workload([Job(0, 1000, max(ask[0], 1), user, user) for user, ask in rows])
    work = replace(
        work,
        gpus=np.array([ask[0] for _, ask in rows]),
        cpus=np.array([float(ask[1]) for _, ask in rows]),
        mem_mb=np.array([float(ask[2]) for _, ask in rows]),
    )
    cluster = replace(
        parse_cluster(f"pool:{has[0]}", work), cpus=np.array([has[1]]) * 1.0, mem_mb=np.array([has[2]]) * 1.0
    )
    outcome = run(find(policy)(params), work, cluster, _settings(work, cluster, ("gpu", "cpu", "mem")))
    now = (outcome.jobs["start_s"].to_numpy() == 0).nonzero()[0]
    return [int(count) for count in np.bincount(work.queue[now], minlength=len(users))]


def _settings(work: Workload, cluster: Cluster, resources: tuple[str, ...]) -> Settings:
    return Settings(rates("recorded", work, cluster), overhead("none", work, cluster), resources=resources)


@settings(max_examples=examples(150))
@given(case=static(), by=st.sampled_from(["queue", "user"]), which=st.sampled_from(["first", "fits"]))
def test_it_fills_as_the_slow_one_does(case: tuple[Ask, list[Ask]], by: str, which: str) -> None:
    assert allocated(*case, by=by, next=which) == filled(*case)


@settings(max_examples=examples(150))
@given(case=static())
def test_sharing_incentive_and_pareto(case: tuple[Ask, list[Ask]]) -> None:
    has, users = case
    tasks = allocated(has, users)
    used = [sum(t * ask[r] for t, ask in zip(tasks, users, strict=True)) for r in range(3)]
    # Pareto: nobody could have one more task
    assert all(any(u + a > h for u, a, h in zip(used, ask, has, strict=True)) for ask in users)
    # sharing incentive: whole tasks apart, nobody is worse off than with an n-th of everything
    n = len(users)
    biggest = max(Fraction(a, h) for ask in users for a, h in zip(ask, has, strict=True))
    for t, ask in zip(tasks, users, strict=True):
        dominant = max(Fraction(a, h) for a, h in zip(ask, has, strict=True))
        assert t * dominant >= Fraction(1, n) - biggest


@pytest.mark.parametrize("by", ["queue", "user"])
@settings(max_examples=examples(80))
@given(seed=st.integers(0, 2**32 - 1))
def test_with_gpus_alone_it_is_max_min(by: str, seed: int) -> None:
    workload_, cluster, shared = random_case(seed)
    # the share of a queue is that of the nodes that are up, which is the same for all queues
    drf = run(find("drf")({"by": by, "next": "fits"}), workload_, cluster, shared)
    fair = run(find("fair")({"by": by}), workload_, cluster, shared)
    assert drf.jobs.equals(fair.jobs)
    assert drf.pieces.equals(fair.pieces)
