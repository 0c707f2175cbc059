from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.replay.inputs.check import check, room, unplaceable
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.models.records import Cluster, Workload
from tests.unit.replay.outcomes import make_workload


def jobs(**other: Any) -> Workload:
    return replace(make_workload([0, 1, 2], [10, 10, 10], [1, 8, 64], queue=[0, 1, 0], queues=("a", "b")), **other)


def nodes(text: str = "8x8", **other: Any) -> Cluster:
    return replace(parse_cluster(text, jobs()), **other)


def refused(workload: Workload, cluster: Cluster) -> str:
    with pytest.raises(InputError) as caught:
        check(workload, cluster)
    return str(caught.value)


def test_fitting_values_pass() -> None:
    check(jobs(), nodes())
    check(jobs(), nodes("pool:64"))
    assert unplaceable(jobs(), nodes()).tolist() == []


def test_a_gang_larger_than_the_cluster_is_named() -> None:
    told = refused(jobs(), nodes("7x8"))
    assert "1 job asks for more GPUs than the cluster's 56: 'j2' (64)" in told
    assert unplaceable(jobs(), nodes("7x8")).tolist() == [2]
    with pytest.raises(InputError) as caught:
        check(jobs(), nodes("7x8"))
    assert "--skip-unplaceable" in str(caught.value.hint)


def test_a_gang_larger_than_the_nodes_of_its_queue() -> None:
    own = nodes(queue_nodes=(np.arange(4), None))
    assert "'j2' (64 of 32, queue 'a')" in refused(jobs(), own)
    assert unplaceable(jobs(), own).tolist() == [2]
    assert room(jobs(), own).tolist() == [32, 64, 32]


def test_a_gpu_type_that_no_node_has() -> None:
    typed = jobs(gpu_type=np.array([0, 1, -1]), gpu_types=("a100", "v100"))
    told = refused(typed, nodes(gpu_type=np.full(8, 1)))
    assert "1 job asks for GPUs of type 'a100', which no node that their queue may use has: 'j0'" in told
    mixed = nodes(gpu_type=np.array([0, 0, 1, 1, 1, 1, -1, -1]))
    check(typed, mixed)
    assert room(typed, mixed).tolist() == [32, 48, 64]


def test_nodes_that_are_down_forever_do_not_count() -> None:
    down = np.array([[0.0, -5.0, np.inf], [1.0, 5.0, np.inf], [2.0, 0.0, 100.0]])
    assert room(jobs(), nodes(down=down)).tolist() == [56, 56, 56]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"submit": np.array([0, np.nan, 2])}, "1 job has a submission time that is not finite: 'j1' (nan)"),
        ({"eligible": np.array([0, 1, np.inf])}, "an eligible time that is not finite: 'j2' (inf)"),
        ({"eligible": np.array([0, 0.5, 2])}, "is eligible before submission: 'j1' (0.5)"),
        ({"submit": np.array([0.0, -1, 2])}, "come before the job in front of them (not in order): 'j1' (-1)"),
        ({"segment_s": np.array([1, 0, -3.0])}, "2 jobs have a run time that is not above 0 or not finite: 'j1', 'j2'"),
        ({"segment_s": np.array([1, np.nan, 3])}, "a run time that is not above 0 or not finite: 'j1'"),
        ({"segment_start": np.array([0, 2, 2, 3])}, "1 job has no run time: 'j1'"),
        ({"gpus": np.array([0, 1, 2])}, "asks for less than one GPU: 'j0' (0)"),
        ({"time_limit": np.array([0, np.nan, 2])}, "a time limit that is not above 0: 'j0' (0)"),
        ({"ids": ("x", "y", "x")}, "names of several jobs: 'x'"),
        ({"depends": np.array([[0, 1], [1, 0]])}, "2 jobs depend on themselves in a circle: 'j0', 'j1'"),
        ({"depends": np.array([[0, 7]])}, "dependencies name jobs 0 to 7, there are 0 to 2"),
    ],
)
def test_wrong_jobs_are_named(change: dict[str, Any], said: str) -> None:
    assert said in refused(jobs(**change), nodes())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"gpus": np.zeros(8, np.int64)}, "the cluster has no GPUs"),
        ({"gpus": np.array([8, 8, 8, 8, 8, 8, 16, 0])}, "1 node has no GPUs"),
        ({"quota": np.full(3, np.inf)}, "quotas for 3 queues"),
        ({"quota": np.array([np.nan, 1])}, "a quota is negative or not a number"),
    ],
)
def test_wrong_nodes(change: dict[str, Any], said: str) -> None:
    assert said in refused(jobs(), nodes(**change))


def test_nodes_without_gpus_are_enough_where_cpus_count() -> None:
    few, none = jobs(gpus=np.zeros(3, np.int64)), nodes(gpus=np.zeros(8, np.int64))
    assert "the cluster has no GPUs" in refused(few, none)
    check(few, none, ("gpu", "cpu"))


def test_everything_is_reported_at_once() -> None:
    told = refused(jobs(gpus=np.array([0, 1, 2]), ids=("x", "x", "y")), nodes(quota=np.full(1, 8.0)))
    assert all(text in told for text in ("less than one GPU", "names of several jobs", "quotas for 1 queue"))


def test_many_are_counted() -> None:
    many = make_workload(range(100), [1] * 100, [9] * 100)
    told = refused(many, parse_cluster("1x8", many))
    assert "100 jobs ask for more GPUs than the cluster's 8: 'j0' (9)" in told
    assert "and 95 more" in told


@given(data=st.data())
def test_room_is_what_a_loop_over_nodes_counts(data: st.DataObject) -> None:
    size, count = 6, 5
    whole = st.integers
    queue = data.draw(st.lists(whole(0, 1), min_size=size, max_size=size))
    kind = np.array(data.draw(st.lists(whole(-1, 2), min_size=size, max_size=size)))
    work = replace(
        make_workload(range(size), [1] * size, [1] * size, queue=queue, queues=("a", "b")),
        gpu_type=kind,
        gpu_types=("x", "y", "z"),
    )
    cluster = replace(
        parse_cluster(f"{count}x1", work),
        gpus=np.array(data.draw(st.lists(whole(1, 9), min_size=count, max_size=count))),
        gpu_type=np.array(data.draw(st.lists(whole(-1, 3), min_size=count, max_size=count))),
        queue_nodes=tuple(
            None if own is None else np.array(sorted(own), np.int64)
            for own in data.draw(st.tuples(*[st.none() | st.sets(whole(0, count - 1))] * 2))
        ),
    )
    expected = []
    for j in range(size):
        own = cluster.queue_nodes[queue[j]]
        may = [
            s
            for s in range(count)
            if (own is None or s in own) and (kind[j] < 0 or cluster.gpu_type[s] in {-1, kind[j]})
        ]
        expected.append(sum(int(cluster.gpus[s]) for s in may))
    assert room(work, cluster).tolist() == expected
