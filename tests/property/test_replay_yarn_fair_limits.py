"""The fair scheduler under random allocation files: limits are kept, shares add up, nothing is left idle for long."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import polars as pl
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuctl.replay.contract.conformance import random_case, violations
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.policies import find
from tests.example_counts import examples

if TYPE_CHECKING:
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.models.records import Cluster, Workload
    from gpuctl.replay.policies.yarn.fair_build import FairProgram
    from gpuctl.replay.policies.yarn.fair_state import Fair

SEEDS = st.integers(0, 2**32 - 1)
WAYS: tuple[dict[str, str], ...] = (
    {},
    {"assign_multiple": "true"},
    {"heartbeat": "3", "update_interval": "2", "size_based_weight": "true"},
    {"preemption": "true", "fair_share_preemption_timeout": "2", "min_share_preemption_timeout": "1",
     "wait_before_kill": "1", "wait_before_next_starvation_check": "1", "cluster_utilization_threshold": "0"},
)  # fmt: skip


def case(seed: int) -> tuple[Workload, Cluster, Settings, str]:
    """A random case, whose jobs are in queues of a random tree, and the tree's allocation file."""
    workload, cluster, shared = random_case(seed)
    draw = np.random.Generator(np.random.PCG64(seed + 2))
    total = int(cluster.gpus.sum())
    names = ("a", "p.x", "p.y", "p.z.deep", "b")
    queue = draw.integers(0, len(names), workload.size)
    largest = {name: int(workload.gpus[queue == k].max(initial=1)) for k, name in enumerate(names)}

    def inside(name: str) -> str:
        # whatever a queue may have is enough for its largest job, and a parent's for those of all below it
        needed = max(gpus for below, gpus in largest.items() if f"{below}.".startswith(f"{name}."))
        text = f"<weight>{draw.choice([0.5, 1, 1, 3])}</weight>"
        if draw.random() < 0.5:
            text += f"<maxResources>yarn.io/gpu={draw.integers(needed, total + 1)}</maxResources>"
        if draw.random() < 0.3:
            text += f"<minResources>yarn.io/gpu={draw.integers(0, needed + 1)}</minResources>"
        if draw.random() < 0.4:
            text += f"<maxRunningApps>{draw.integers(1, 4)}</maxRunningApps>"
        return text

    def queue_of(name: str, below: str = "") -> str:
        return f'<queue name="{name.rpartition(".")[2]}">{inside(name)}{below}</queue>'

    deep = queue_of("p.z", queue_of("p.z.deep"))
    tree = queue_of("a") + queue_of("p", queue_of("p.x") + queue_of("p.y") + deep) + queue_of("b")
    policy = "<defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>"
    users = f"<userMaxAppsDefault>{draw.integers(2, 9)}</userMaxAppsDefault>"
    workload = replace(
        workload,
        app=np.sort(draw.integers(0, workload.size, workload.size)),
        queue=queue,
        queues=names,
        # dependencies across held back applications may wait for each other for ever
        depends=np.zeros((0, 2), np.int64),
    )
    return workload, replace(cluster, quota=np.full(len(names), np.inf)), shared, f"{policy}{users}{tree}"


def simulated(workload: Workload, cluster: Cluster, shared: Settings, inside: str, way: dict[str, str]) -> Simulation:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fair.xml"
        path.write_text(f"<allocations>{inside}</allocations>")
        return Simulation(workload, cluster, find("yarn-fair")({**way, "conf": str(path)}), shared)


def below(done: Simulation) -> list[np.ndarray]:
    """For each queue of the program, which jobs are in it or below it."""
    program = cast("FairProgram", done.program)
    of_job = program.own.apps.queue[program.own.tasks.app]
    parent = program.own.queues.parent
    found = [np.zeros(of_job.size, bool) for _ in program.queues]
    for j, leaf in enumerate(of_job):
        q = leaf
        while q >= 0:
            found[q][j] = True
            q = parent[q]
    return found


@settings(max_examples=examples(60))
@given(seed=SEEDS, way=st.sampled_from(WAYS))
def test_no_queue_holds_more_than_its_maximum_or_runs_more_applications_than_it_may(
    seed: int, way: dict[str, str]
) -> None:
    workload, cluster, shared, inside = case(seed)
    done = simulated(workload, cluster, shared, inside, way)
    own = cast("FairProgram", done.program).own
    done.run()
    assert violations(done.outcome(), workload, cluster, shared) == []
    rows = done.state.attempts[: int(done.state.g[0].attempts)]
    for k, members in enumerate(below(done)):
        mine = rows[members[rows.job]]
        for t in np.unique(mine.start):
            held = mine[(mine.start <= t) & (mine.end > t)]
            assert int(workload.gpus[held.job].sum()) <= int(own.q_max[k, 2])
        _check_applications(own, members, mine, int(own.queues.most[k]))
    of_user = own.apps.user[own.tasks.app]  # an application is its first job's user's
    for user, most in enumerate(own.user_most):
        members = of_user == user
        _check_applications(own, members, rows[members[rows.job]], int(most))


def _check_applications(own: Fair, members: np.ndarray, rows: Any, most: int) -> None:
    """An application runs from its first container to the end of its last job."""
    spans = []
    app = own.tasks.app
    for a in np.unique(app[members]):
        mine = rows[app[rows.job] == a]
        spans.append((float(mine.start.min()), float(mine.end.max())))
    for begin, _ in spans:
        assert sum(start <= begin < end for start, end in spans) <= most


@settings(max_examples=examples(40))
@given(seed=SEEDS, at=st.floats(0, 90))
@example(seed=462, at=47.0)  # all nodes are down
def test_fair_shares_of_siblings_add_up(seed: int, at: float) -> None:
    workload, cluster, shared, inside = case(seed)
    done = simulated(workload, cluster, shared, inside, {})
    while done.advance(at):
        pass
    own = cast("FairProgram", done.program).own
    if own.p[0].active:
        # the next update has not been yet
        return
    for q in range(own.queues.size):
        queue = own.queues[q]
        children = own.children[queue.first : queue.first + queue.count]
        active = children[own.queues.runnable[children] > 0]
        due, least, most = (array[active, 2] for array in (own.q_fair, own.q_min, own.q_max))
        assert not own.q_fair[children[own.queues.runnable[children] == 0], 2].any()
        if active.size:
            given_out = min(int(own.q_fair[q, 2]), int(np.minimum(most, 1 << 40).sum()))
            # whole units: those that step up at the same rate all do
            assert given_out <= int(due.sum()) < max(given_out, int(least.sum())) + active.size
            assert (due >= least).all()
            assert (due <= most).all()


@settings(max_examples=examples(40))
@given(seed=SEEDS, way=st.sampled_from(WAYS[:3]))
def test_whatever_fits_is_given_within_an_update_and_a_round_of_heartbeats(seed: int, way: dict[str, str]) -> None:
    workload, cluster, shared = random_case(seed)
    done = Simulation(workload, cluster, find("yarn-fair")({**way, "reservable_nodes": "0"}), shared)
    done.run()
    decisions = done.outcome().decisions
    longest = float(way.get("heartbeat", 1)) + float(way.get("update_interval", 0.5))
    # all that may let a job start: submissions, ends, nodes that come, and other starts
    whats = decisions["decision"].to_list()
    submitted = {*workload.submit.tolist(), *_after_thinking(workload, decisions)}
    known = sorted({*submitted, *decisions["t_s"].to_list(), *_nodes_up(cluster)})
    starts = [t for t, what in zip(decisions["t_s"].to_list(), whats, strict=True) if what == "start"]
    assert len(starts) >= workload.size
    for t in starts:
        before = [other for other in known if t - longest - 1e-6 <= other < t]
        # an end at the very instant of a heartbeat counts in it
        here = decisions.filter((pl.col("t_s") == t) & (pl.col("decision") != "start")).height
        assert before or here or t in submitted


def _after_thinking(workload: Workload, decisions: pl.DataFrame) -> set[float]:
    """When jobs that follow others may be submitted: some time after those have ended."""
    if workload.think is None:
        return set()
    times = set(decisions["t_s"].to_list())
    return {t + float(wait) for wait in set(workload.think.tolist()) for t in times}


def _nodes_up(cluster: Cluster) -> list[float]:
    return [] if cluster.down is None else [float(t) for t in cluster.down[:, 2]]


@settings(max_examples=examples(20))
@given(seed=SEEDS, way=st.sampled_from(WAYS))
def test_a_replay_is_always_the_same(seed: int, way: dict[str, str]) -> None:
    workload, cluster, shared, inside = case(seed)
    first, second = (simulated(workload, cluster, shared, inside, way) for _ in range(2))
    first.run()
    second.run()
    assert first.outcome().decisions.equals(second.outcome().decisions)
