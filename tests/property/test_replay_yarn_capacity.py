"""The capacity scheduler: what is skipped changes nothing, limits hold, and what is free goes to who may have it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuctl.replay.contract.conformance import random_case, violations
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.engine.state import DECISIONS
from gpuctl.replay.policies import find
from gpuctl.replay.policies.yarn.capacity_tree_kernel import ASKING, GIVEN
from tests.example_counts import examples

if TYPE_CHECKING:
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.models.records import Cluster, Workload

LONG = 5_000
SEEDS = st.integers(0, 2**32 - 1)
CHOICES: dict[str, tuple[str, ...]] = {
    "heartbeat": ("1", "0.7", "3"),
    "phase": ("0", "0.001"),
    "offswitch": ("1", "1", "4"),
    "multiple": ("true", "false"),
    "ordering_policy": ("fifo", "fair", "fair-sized"),
    "priorities": ("", "a:2,b:1"),
    "user_limit_factor": ("-1", "1", "0.5"),
    "minimum_user_limit_percent": ("100", "25"),
    "maximum_capacity": ("0", "1", "1.5"),
    "max_parallel_apps": ("0", "0", "2"),
    "maximum_applications": ("0", "0", "0", "3"),
    "am_heartbeat": ("0", "1"),
    "continue_look": ("true", "false"),
    "node_locality_delay": ("40", "1"),
    "preemption": ("true", "true", "false"),
    "max_wait_before_kill": ("0", "5"),
    "natural_termination_factor": ("0.2", "1", "1"),
    "total_preemption_per_round": ("0.2", "1", "1"),
    "max_ignored_over_capacity": ("0.1", "0"),
}


def drawn(seed: int, resources: bool, **fixed: str) -> tuple[Workload, Cluster, Settings, dict[str, str]]:
    """A random case whose jobs are grouped into applications and know where they ran, and parameters."""
    workload, cluster, shared = random_case(seed, resources=resources)
    draw = np.random.Generator(np.random.PCG64(seed + 1))
    group = workload.queue * 1000 + workload.user * 100 + draw.integers(0, 3, workload.size)
    # an application is in one queue and of one user
    workload = replace(workload, app=group) if draw.random() < 0.7 else workload
    segments = workload.segment_s.size
    workload = replace(
        workload,
        # longer than the waits before kills, now and then
        segment_s=workload.segment_s * draw.choice([1, 10]),
        piece_start=np.arange(segments + 1),
        piece_node=draw.integers(0, len(cluster.nodes), segments),
        piece_gpus=np.ones(segments, np.int64),
    )
    params = {name: str(draw.choice(words)) for name, words in CHOICES.items()}
    if draw.random() < 0.5:
        params["guarantees"] = ",".join(f"{name}:{draw.choice([1, 9])}" for name in workload.queues)
    params["locality"] = str(draw.choice(["none", "recorded"]))
    return workload, cluster, shared, params | fixed


def log(simulation: Simulation) -> list[tuple[float, str, str]]:
    return simulation.outcome().decisions.select("t_s", "decision", "job").rows()


@pytest.mark.parametrize("resources", [False, True])
@settings(max_examples=examples(100))
@given(seed=SEEDS)
@example(seed=289)  # patience with preemption at the end of epochs
@example(seed=3552493801)  # a suspension that ends at the instant of a round
@example(seed=3105580586)
@example(seed=2683629756)
def test_skipped_passes_change_nothing(resources: bool, seed: int) -> None:
    """Heartbeats and rounds of the monitor that are not gone through are those that would do nothing."""
    workload, cluster, shared, params = drawn(seed, resources)
    one, two = (Simulation(workload, cluster, find("yarn-capacity")(params), shared) for _ in range(2))
    two.program.tree.p.plain = 1  # type: ignore[attr-defined]
    for simulation in (one, two):
        while simulation.now < LONG and simulation.left and simulation.advance(until=LONG):
            pass
    assert log(one) == log(two)


@pytest.mark.parametrize("resources", [False, True])
@settings(max_examples=examples(100))
@given(seed=SEEDS)
def test_sums_are_those_of_what_runs_and_no_queue_has_more_than_its_maximum(resources: bool, seed: int) -> None:
    workload, cluster, shared, params = drawn(seed, resources)
    simulation = Simulation(workload, cluster, find("yarn-capacity")(params), shared)
    tree = simulation.program.tree  # type: ignore[attr-defined]
    parent = tree.queues.parent
    leaf = tree.apps.queue[tree.jobs.app]
    while simulation.now < LONG and simulation.left and simulation.advance(until=LONG, steps=1):
        given_, asked = tree.jobs.state == GIVEN, tree.jobs.state == ASKING
        used = np.zeros_like(tree.used)
        np.add.at(used, leaf[given_], tree.ask[given_])
        kept = np.zeros_like(used)
        at = np.flatnonzero(tree.nodes.app >= 0)
        np.add.at(kept, tree.apps.queue[tree.nodes.app[at]], tree.held[at])
        asks = np.zeros_like(used)
        active = asked & (tree.apps.queued[tree.jobs.app] == 1)
        np.add.at(asks, leaf[active], tree.ask[active])
        for q in reversed(range(1, len(used))):
            for table in (used, kept, asks):
                table[parent[q]] += table[q]
        np.testing.assert_array_equal(tree.used, used + kept)
        np.testing.assert_array_equal(tree.reserved, kept)
        np.testing.assert_array_equal(tree.pending, asks)
        assert (tree.queues.apps <= tree.queues.most_apps).all()
        assert (tree.queues.running <= tree.queues.most_running).all()
        if cluster.down is None:
            assert (used + kept <= tree.most).all()
        assert tree.p[0].marked <= int(given_.sum())


@settings(max_examples=examples(100))
@given(seed=SEEDS, factor=st.sampled_from([0.5, 1.0, 2.0]))
@example(seed=1049, factor=0.5)  # the guarantee of a queue is rounded down to nothing
def test_a_user_passes_its_limit_by_one_container_at_most(seed: int, factor: float) -> None:
    workload, cluster, shared, params = drawn(seed, False, user_limit_factor=str(factor), preemption="false")
    simulation = Simulation(workload, cluster, find("yarn-capacity")(params), shared)
    tree = simulation.program.tree  # type: ignore[attr-defined]
    largest = np.zeros(tree.users.size, np.int64)
    np.maximum.at(largest, tree.apps.user[tree.jobs.app], tree.ask[:, 2])
    while simulation.now < LONG and simulation.left and simulation.advance(until=LONG, steps=1):
        if cluster.down is None:
            # the limit is rounded up to whole containers, of one GPU where only GPUs count
            # and binds no user of a queue whose guarantee is nothing: `user_limit` has the factor bound nothing there
            most = np.where(tree.due[:, 2] > 0, np.ceil(tree.due[:, 2] * factor), np.inf)
            assert (tree.user_used[:, 2] <= most[tree.users.queue] + largest).all()


@settings(max_examples=examples(150))
@given(seed=SEEDS)
def test_who_waits_gets_what_is_free_at_the_next_heartbeat(seed: int) -> None:
    """Without limits, and with small gangs, no node is left with GPUs after its heartbeat while a job waits."""
    workload, cluster, shared = random_case(seed, plain=True)
    workload = replace(workload, gpus=np.ones(workload.size, np.int64))
    policy = find("yarn-capacity")({"offswitch": "1000", "am_mb": "0"})
    simulation = Simulation(workload, cluster, policy, shared)
    simulation.run()
    outcome = simulation.outcome()
    assert violations(outcome, workload, cluster, shared) == []
    starts, ends = outcome.jobs["start_s"].to_numpy(), outcome.jobs["end_s"].to_numpy()
    node = outcome.pieces.sort("row").join(
        outcome.attempts.with_row_index("row").select(pl.col("row").cast(pl.Int64), "job"), on="row"
    )
    place = np.zeros(workload.size, np.int64)
    place[node["job"].to_numpy()] = node["node"].to_numpy()
    nodes = len(cluster.nodes)
    for beat in range(int(ends.max()) * nodes):
        t, node = beat // nodes + beat % nodes / nodes, beat % nodes
        waits = (workload.submit <= t - 1e-6) & (starts > t + 1e-6)
        running = (place == node) & (starts <= t + 1e-6) & (ends > t + 1e-6)
        if waits.any():
            assert running.sum() == cluster.gpus[node], (t, node)


def test_random_cases_reach_what_they_are_to_check() -> None:
    """The cases above have kills, reservations and refusals in them, or they would check little."""
    seen: dict[str, int] = dict.fromkeys(DECISIONS, 0)
    for seed in range(60):
        workload, cluster, shared, params = drawn(seed, seed % 2 == 1)
        simulation = Simulation(workload, cluster, find("yarn-capacity")(params), shared)
        while simulation.now < LONG and simulation.left and simulation.advance(until=LONG):
            pass
        for _, what, _ in log(simulation):
            seen[what] += 1
    assert min(seen["preempt"], seen["reserve"], seen["reject"]) > 10


@settings(max_examples=examples(40))
@given(seed=SEEDS)
def test_a_fork_continues_as_the_first_one_does(seed: int) -> None:
    workload, cluster, shared, params = drawn(seed, True)
    one = Simulation(workload, cluster, find("yarn-capacity")(params), shared)
    one.advance(until=20.0)
    two = one.fork()
    for simulation in (one, two):
        while simulation.now < LONG and simulation.left and simulation.advance(until=LONG):
            pass
    assert log(one) == log(two)
