"""The fair scheduler on random cases: invariants, and heartbeats that are left out against all of them."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuctl.replay.contract.conformance import random_case, violations
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.policies import find
from tests.example_counts import examples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.models.records import Cluster, Workload
    from gpuctl.replay.policies.yarn.fair_build import FairProgram

WAYS: tuple[dict[str, str], ...] = (
    {},
    {"scheduling_policy": "drf", "assign_multiple": "true"},
    {"scheduling_policy": "drf", "size_based_weight": "true"},
    {"scheduling_policy": "fifo", "size_based_weight": "true", "max_running_apps": "2"},
    {
        "heartbeat": "0.75",
        "update_interval": "0.25",
        "assign_multiple": "true",
        "dynamic_max_assign": "false",
        "max_assign": "2",
    },
    {"reservable_nodes": "0", "weighted": "true", "min_shares": "quota", "masters": "first"},
    {"masters": "first", "am_heartbeat": "0", "size_based_weight": "true"},
)
PREEMPTING: tuple[dict[str, str], ...] = (
    {
        "fair_share_preemption_timeout": "2",
        "min_share_preemption_timeout": "1",
        "wait_before_kill": "1",
        "wait_before_next_starvation_check": "1",
        "cluster_utilization_threshold": "0",
        "min_shares": "quota",
    },
    {
        "fair_share_preemption_timeout": "1",
        "fair_share_preemption_threshold": "1",
        "wait_before_kill": "0",
        "wait_before_next_starvation_check": "0",
        "cluster_utilization_threshold": "0.3",
        "scheduling_policy": "drf",
    },
    {
        "fair_share_preemption_timeout": "0",
        "wait_before_kill": "3",
        "wait_before_next_starvation_check": "2",
        "cluster_utilization_threshold": "0.5",
        "masters": "first",
    },
)


def case(
    seed: int, way: Mapping[str, str] = MappingProxyType({}), *, resources: bool
) -> tuple[Workload, Cluster, Settings]:
    """A random case in which some jobs belong to one application."""
    workload, cluster, shared = random_case(seed, resources=resources)
    draw = np.random.Generator(np.random.PCG64(seed + 1))
    app = np.sort(draw.integers(0, workload.size, workload.size))
    if "max_running_apps" in way:
        # an application that is held back may be what one waits for that keeps it back
        workload = replace(workload, depends=workload.depends[:0])
    return replace(workload, app=app), cluster, shared


def replayed(
    workload: Workload, cluster: Cluster, shared: Settings, params: dict[str, str], *, awake: bool = False
) -> Simulation:
    done = Simulation(workload, cluster, find("yarn-fair")(params), shared)
    cast("FairProgram", done.program).own.p.awake = awake
    done.run()
    return done


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1), way=st.sampled_from(WAYS), resources=st.booleans())
@example(seed=100002, way=WAYS[2], resources=True)  # applications without memory have no weight
def test_no_invariant_is_broken_and_nothing_is_left_on_the_books(
    seed: int, way: dict[str, str], resources: bool
) -> None:
    workload, cluster, shared = case(seed, way, resources=resources)
    done = replayed(workload, cluster, shared, way)
    assert violations(done.outcome(), workload, cluster, shared) == []
    own = cast("FairProgram", done.program).own
    for held in (own.a_used, own.a_asks, own.q_used, own.q_asks, own.a_marked, own.n_taken):
        assert not held.any()
    assert not own.queues.waiting.any()


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1), way=st.sampled_from(PREEMPTING), resources=st.booleans())
def test_preemption_returns_all_that_it_takes(seed: int, way: dict[str, str], resources: bool) -> None:
    workload, cluster, shared = case(seed, way, resources=resources)
    done = replayed(workload, cluster, shared, {**way, "preemption": "true"})
    assert violations(done.outcome(), workload, cluster, shared) == []
    own = cast("FairProgram", done.program).own
    for held in (own.a_used, own.a_asks, own.q_used, own.q_asks, own.a_marked):
        assert not held.any()
    assert int(own.e_left.sum()) == int(own.n_taken.sum())


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1), way=st.sampled_from(WAYS + PREEMPTING), resources=st.booleans())
# a gang that no node holds, after all nodes have beaten in vain; an application that is starved, and for which
# nothing was found the first time; one that is given more than was known of it;
# queues that lack of their minimum, whose applications take turns, and reserve; shares by weights of an update
@example(seed=10469, way=WAYS[0], resources=True)
@example(seed=8863, way=PREEMPTING[1], resources=True)
@example(seed=100317, way=PREEMPTING[0], resources=True)
@example(seed=100265, way=PREEMPTING[0], resources=True)
@example(seed=100100, way=PREEMPTING[0], resources=True)
@example(seed=100463, way=PREEMPTING[0], resources=False)
@example(seed=100385, way=WAYS[6], resources=False)
def test_heartbeats_that_are_left_out_would_have_done_nothing(seed: int, way: dict[str, str], resources: bool) -> None:
    workload, cluster, shared = case(seed, way, resources=resources)
    params = {**way, "preemption": str(way in PREEMPTING).lower()}
    one = replayed(workload, cluster, shared, params)
    all_of_them = replayed(workload, cluster, shared, params, awake=True)
    assert one.outcome().decisions.write_ndjson() == all_of_them.outcome().decisions.write_ndjson()


@settings(max_examples=examples(20))
@given(seed=st.integers(0, 2**32 - 1), at=st.floats(0, 60))
def test_a_fork_continues_as_the_original(seed: int, at: float) -> None:
    workload, cluster, shared = case(seed, resources=False)
    done = Simulation(workload, cluster, find("yarn-fair")(PREEMPTING[0] | {"preemption": "true"}), shared)
    while done.advance(at):
        pass
    twin = done.fork()
    done.run()
    twin.run()
    assert done.outcome().decisions.write_ndjson() == twin.outcome().decisions.write_ndjson()


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32 - 1), placement=st.sampled_from([None, "any", "consolidate"]))
def test_with_plenty_of_cpus_only_gpus_decide(seed: int, placement: str | None) -> None:
    workload, cluster, shared = case(seed, resources=False)
    shared = replace(shared, placement=placement)
    alone = replayed(workload, cluster, shared, {"scheduling_policy": "fair"}).outcome()
    # memory is known of no node, so that fair does not go by it
    plenty = replace(cluster, cpus=np.full(cluster.gpus.size, 1e6), mem_mb=np.full(cluster.gpus.size, np.nan))
    asking = replace(workload, cpus=0.5 * workload.gpus.astype(float), mem_mb=1e5 * workload.gpus.astype(float))
    counted = replace(shared, resources=("gpu", "cpu", "mem"))
    beside = replayed(asking, plenty, counted, {"scheduling_policy": "fair"}).outcome()
    assert beside.decisions.equals(alone.decisions)
    assert beside.pieces.select("row", "node", "gpus").equals(alone.pieces)
