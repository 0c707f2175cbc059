"""capacity-scheduler.xml as queues, what parameters change of it, and what is said of files that make no sense."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.contract.conformance import random_case
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.policies import find
from gpuctl.replay.policies.yarn.capacity import NO_MASTERS
from gpuctl.replay.policies.yarn.capacity_conf import UNLIMITED, named_numbers, read_site

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Cluster, Workload

ROOT = "yarn.scheduler.capacity."
MONITOR = "yarn.resourcemanager.monitor.capacity.preemption."
SITE = {
    "root.queues": "prod, dev",
    "root.prod.capacity": "60",
    "root.prod.maximum-capacity": "75",
    "root.dev.capacity": "40",
    "root.dev.queues": "web,etl,adhoc",
    "root.dev.web.capacity": "3w",
    "root.dev.etl.capacity": "1w",
    "root.dev.adhoc.capacity": "0w",
    "root.dev.adhoc.state": "STOPPED",
    "root.dev.web.user-limit-factor": "2",
    "user-limit-factor": "3",
    "root.dev.disable_preemption": "true",
    "maximum-applications": "1000",
    "root.prod.ordering-policy": "fair",
    "schedule-asynchronously.enable": "false",
    "resource-calculator": "x.DominantResourceCalculator",
}


def written(path: Path, settings: dict[str, str], prefix: str = ROOT) -> str:
    properties = [f"<property><name>{prefix}{k}</name><value>{v}</value></property>\n" for k, v in settings.items()]
    path.write_text("<configuration>\n" + "".join(properties) + "</configuration>\n", "utf-8")
    return str(path)


@pytest.fixture
def conf(tmp_path: Path) -> str:
    written(tmp_path / "capacity-scheduler.xml", SITE)
    return str(tmp_path)


def parts(conf: str, **more: dict[str, float]) -> dict[str, tuple[float, float]]:
    site = read_site(conf, **more)
    return {queue.path: (round(queue.capacity, 4), round(queue.maximum, 4)) for queue in site.queues[1:]}


def test_queues_are_a_tree_of_percentages_and_weights(conf: str) -> None:
    assert parts(conf) == {
        "root.prod": (0.6, 0.75),
        "root.dev": (0.4, 1),
        "root.dev.web": (0.3, 1),
        "root.dev.etl": (0.1, 1),
        "root.dev.adhoc": (0, 1),
    }
    site = read_site(conf)
    assert site.notes == ()
    by_path = {queue.path: queue for queue in site.queues}
    assert by_path["root"].children == (1, 2)
    assert by_path["root.dev"].children == (3, 4, 5)
    assert (by_path["root.dev.web"].factor, by_path["root.dev.etl"].factor) == (2, 3)
    assert [q.no_preemption for q in site.queues] == [False, False, True, True, True, True]
    # of 1,000 in all by guarantee; one that is stopped takes none
    assert [by_path[p].most_apps for p in ("root.prod", "root.dev.web", "root.dev.adhoc")] == [600, 300, 0]
    assert (by_path["root.prod"].order, by_path["root.dev.web"].order) == (1, 0)


def test_guarantees_and_maximums_take_the_place_of_the_files(conf: str) -> None:
    found = parts(conf, guarantees={"prod": 20, "etl": 3}, maximums={"prod": 50, "root.dev": 90, "dev.web": 50})
    assert found == {
        "root.prod": (0.2, 0.5),
        # what is left of 100 %, as no other queue is beside it
        "root.dev": (0.8, 0.9),
        "root.dev.web": (0.4, 0.45),
        "root.dev.etl": (0.4, 0.9),
        "root.dev.adhoc": (0, 0.9),
    }


def test_siblings_share_what_is_left_as_the_file_says(tmp_path: Path) -> None:
    three = {"root.queues": "a,b,c", "root.a.capacity": "50", "root.b.capacity": "30", "root.c.capacity": "20"}
    found = parts(written(tmp_path / "c.xml", three), guarantees={"a": 75})
    assert found == {"root.a": (0.75, 1), "root.b": (0.15, 1), "root.c": (0.1, 1)}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"guarantees": {"none": 1.0}}, "guarantees: no queue is called none"),
        ({"guarantees": {"root": 1.0}}, "guarantees: no queue is called root"),
        ({"guarantees": {"prod": 70.0, "dev": 20.0}}, "below root sum to 90, not 100"),
        ({"guarantees": {"prod": 110.0}}, "below root sum to 110, not 100"),
        ({"guarantees": {"prod": 80.0}}, "may have 75 % of the cluster and is guaranteed 80 %"),
        ({"maximums": {"prod": 50.0}}, "may have 50 % of the cluster and is guaranteed 60 %"),
    ],
)
def test_guarantees_that_make_no_sense(conf: str, more: dict[str, dict[str, float]], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_site(conf, **more)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"root.prod.capacity": "70"}, r"root: the capacities of its children sum to 110"),
        ({"root.prod.capacity": "2w"}, r"capacities of several kinds \(percentages, weights\)"),
        ({"root.prod.maximum-capacity": "50"}, r"xml:4: root\.prod may have 50 % of the cluster"),
        ({"root.prod.state": "off"}, "expected RUNNING or STOPPED"),
        ({"root.prod.user-limit-factor": "much"}, "user-limit-factor is 'much': expected a number"),
        ({"root.dev.queues": "a,a"}, "names of queues, each of them once"),
        ({"root.prod.ordering-policy": "lifo"}, "expected fifo or fair"),
        ({"root.queues": " "}, "names no queue"),
        ({"root.prod.max-parallel-apps": "inf"}, r"max-parallel-apps is 'inf': expected a number from 0"),
        ({"node-locality-delay": "1e99"}, r"node-locality-delay is '1e99': expected a number from -1"),
        ({"root.prod.minimum-user-limit-percent": "101"}, "a number from 0 to 100"),
    ],
)
def test_files_that_make_no_sense_name_the_line(tmp_path: Path, change: dict[str, str], message: str) -> None:
    path = written(tmp_path / "capacity-scheduler.xml", SITE | change)
    with pytest.raises(InputError, match=message):
        read_site(path)


def test_a_file_of_another_scheduler_is_said_to_be_one(tmp_path: Path) -> None:
    path = written(tmp_path / "yarn-site.xml", {"yarn.nodemanager.port": "1"}, "")
    with pytest.raises(InputError, match=r"no property begins with yarn\.scheduler\.capacity"):
        read_site(path)


def test_unmodelled_settings_are_reported_once_per_kind(tmp_path: Path) -> None:
    more = {
        "root.prod.accessible-node-labels": "*",
        "root.dev.accessible-node-labels": "gpu",
        "root.dev.auto-create-child-queue.enabled": "true",
        "root.dev.web.acl_submit_applications": "*",
        "root.prod.intra-queue-preemption.disable_preemption": "true",
        "schedule-asynchronously.enable": "true",
        "resource-calculator": "x.DefaultResourceCalculator",
    }
    other = {"yarn.resourcemanager.scheduler.class": "x.FairScheduler", "yarn.node-labels.enabled": "true"}
    paths = written(tmp_path / "c.xml", SITE | more), written(tmp_path / "y.xml", other, "")
    notes = read_site(":".join(paths)).notes
    assert notes == (
        "yarn.resourcemanager.scheduler.class: the site runs FairScheduler, not this scheduler",
        "resource-calculator: the DominantResourceCalculator is replayed, the file has another one",
        "schedule-asynchronously: on in this configuration (Hadoop's default); one pass per heartbeat is replayed",
        "not modelled: accessible-node-labels (2 times)",
        "not modelled: auto-create-child-queue.enabled",
        "not modelled: intra-queue-preemption.disable_preemption",
        "not modelled: yarn.node-labels.enabled",
    )


@pytest.mark.parametrize("value", ["0", "-1", "nan", "1e99"])
def test_heartbeats_take_time(tmp_path: Path, value: str) -> None:
    capacity = written(tmp_path / "capacity-scheduler.xml", SITE)
    for name in ("yarn.resourcemanager.nodemanagers.heartbeat-interval-ms", MONITOR + "monitoring_interval"):
        path = written(tmp_path / "yarn-site.xml", {name: value}, "")
        with pytest.raises(InputError, match=r"yarn-site\.xml:2: .* expected a number from 1 to"):
            read_site(f"{path}:{capacity}")


def test_masters_without_a_size_are_reported(conf: str) -> None:
    workload, cluster, shared = case()
    told = [
        Simulation(workload, cluster, find("yarn-capacity")({"conf": conf} | more), shared).program.notes  # type: ignore[attr-defined]
        for more in ({}, {"am_mb": "2048"})
    ]
    assert [notes[:-1] for notes in told] == [(NO_MASTERS,), ()]


def case(names: tuple[str, ...] = ("prod", "web")) -> tuple[Workload, Cluster, Any]:
    workload, cluster, shared = random_case(7, plain=True)
    cluster = replace(cluster, quota=np.full(len(names), np.inf))
    return replace(workload, queue=np.arange(workload.size) % len(names), queues=names), cluster, shared


def tree_of(names: tuple[str, ...] = ("prod", "web"), /, **params: str) -> Any:
    workload, cluster, shared = case(names)
    return Simulation(workload, cluster, find("yarn-capacity")(params), shared).program.tree  # type: ignore[attr-defined]


def test_a_parameter_that_is_given_takes_precedence_over_the_files(conf: str, tmp_path: Path) -> None:
    written(
        tmp_path / "yarn-site.xml",
        {
            "yarn.resourcemanager.scheduler.monitor.enable": "true",
            MONITOR + "monitoring_interval": "9000",
            MONITOR + "max_wait_before_kill": "2000",
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "500",
        },
        "",
    )
    tree = tree_of(conf=conf)
    assert (tree.p[0].monitor, tree.p[0].wait, tree.p[0].interval, tree.p[0].share) == (9, 2, 0.5, 0.1)
    changed = {"max_wait_before_kill": "4", "total_preemption_per_round": "0.5", "heartbeat": "2"}
    tree = tree_of(conf=conf, **changed)
    assert (tree.p[0].monitor, tree.p[0].wait, tree.p[0].interval, tree.p[0].share) == (9, 4, 2, 0.5)
    assert tree_of(conf=conf, preemption="false").p[0].monitor == 0
    only = str(tmp_path / "capacity-scheduler.xml")
    assert tree_of(conf=only).p[0].monitor == 0
    assert tree_of(conf=only, preemption="true").p[0].monitor == 3
    assert tree_of(conf=only).queues.factor[[1, 3, 4]].tolist() == [3, 2, 3]
    assert tree_of(conf=only, user_limit_factor="5").queues.factor[[1, 3, 4]].tolist() == [5, 5, 5]
    changed = {"maximum_applications": "7", "max_parallel_apps": "2", "ordering_policy": "fair-sized"}
    queues = tree_of(conf=only, **changed).queues
    # one that is stopped stays so, and parents have no such limit
    assert queues.most_apps[[1, 3, 5]].tolist() == [7, 7, 0]
    assert queues.most_running.tolist() == [UNLIMITED, 2, UNLIMITED, 2, 2, 2]
    assert queues.order.tolist() == [0, 2, 0, 2, 2, 2]
    assert tree_of(conf=only, maximum_applications="0").queues.most_apps[1] == UNLIMITED
    assert np.round(tree_of(conf=only, maximum_capacity="1.5").queues.maximum, 4)[[1, 3, 4]].tolist() == [
        0.9,
        0.45,
        0.15,
    ]
    assert tree_of(conf=only, maximum_capacity="0").queues.maximum[1] == 1


def test_without_files_guarantees_follow_quotas_and_weights() -> None:
    assert tree_of().queues.capacity.tolist() == [1, 0.5, 0.5]
    assert tree_of(guarantees="web:3").queues.capacity.tolist() == [1, 0.25, 0.75]
    assert tree_of(maximums="web:60").queues.maximum.tolist() == [1, 1, 0.6]
    workload, cluster, shared = case()
    cluster = replace(cluster, quota=np.array([2.0, 6.0]))
    tree = Simulation(workload, cluster, find("yarn-capacity")(), shared).program.tree  # type: ignore[attr-defined]
    assert tree.queues.capacity.tolist() == [1, 0.25, 0.75]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"guarantees": "none:1"}, "no queue is called none"),
        ({"guarantees": "web"}, "guarantees=web: expected NAME:NUMBER with a number above 0"),
        ({"guarantees": "web:0"}, "expected NAME:NUMBER"),
        ({"maximums": "web:101"}, "a number above 0 up to 100"),
        ({"maximums": "web:40"}, "web may have 40 % of the cluster and is guaranteed 50 %"),
        ({"maximums": "web:60", "maximum_capacity": "2"}, "both maximums and maximum_capacity"),
        ({"maximum_capacity": "0.5"}, "maximum_capacity=0.5: expected 0 or at least 1"),
        ({"minimum_user_limit_percent": "101"}, "minimum_user_limit_percent"),
        ({"batch": "1e99"}, r"batch=1e99: expected a number from -1 to 1000000000"),
        ({"priorities": "nobody:1"}, "no user is called nobody"),
    ],
)
def test_parameters_that_make_no_sense(params: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        tree_of(**params)


def test_jobs_of_queues_that_are_not_leaves_are_an_error_that_names_them(conf: str) -> None:
    with pytest.raises(InputError, match="does not have as leaves: dev, other"):
        tree_of(("dev", "other"), conf=conf)
    assert tree_of(("root.prod", "dev.web"), conf=conf).apps.size


def test_jobs_that_hadoop_would_run_never_are_turned_away_and_told(conf: str) -> None:
    workload, cluster, shared = case(("prod", "adhoc"))
    gpus = np.where(np.arange(workload.size) % 4 == 0, cluster.gpus.sum(), 1)
    workload = replace(workload, gpus=gpus)
    simulation = Simulation(workload, cluster, find("yarn-capacity")({"conf": conf}), shared)
    simulation.run()
    outcome = simulation.outcome()
    large, stopped = np.flatnonzero(gpus > 1), np.arange(1, workload.size, 2)
    assert outcome.notes[1:-1] == (
        f"{large.size} jobs are larger than the maximum of their queue: turned away",
        f"{stopped.size} jobs are in queues that are STOPPED: turned away",
    )
    states = outcome.jobs["state"].to_numpy()
    away = np.zeros(workload.size, bool)
    away[large] = away[stopped] = True
    assert (states[away] == "rejected").all()
    assert (states[~away] == "finished").all()


def test_how_often_guarantees_decided_is_reported(tmp_path: Path) -> None:
    """Two queues with waiting jobs and none: shares matter only where several have something to ask for."""
    two = {"root.queues": "a,b", "root.a.capacity": "50", "root.b.capacity": "50"}
    path = written(tmp_path / "capacity-scheduler.xml", two)
    told = {}
    for name, queues in (("one", ("a", "a")), ("two", ("a", "b"))):
        workload, cluster, shared = case(queues)
        workload = replace(workload, submit=np.zeros(workload.size), eligible=np.zeros(workload.size))
        simulation = Simulation(workload, cluster, find("yarn-capacity")({"conf": path}), shared)
        simulation.run()
        told[name] = simulation.outcome().notes[-1]
    assert told["one"].startswith("guarantees of queues decided nothing")
    found = re.match(r"guarantees decided which queue went first in (\d+) of (\d+) cases", told["two"])
    assert found is not None
    assert 0 < int(found[1]) <= int(found[2])


def test_a_leaf_of_two_names_must_be_given_with_its_path(tmp_path: Path) -> None:
    two = {"root.queues": "a,b"} | {f"root.{q}.{k}": v for q in "ab" for k, v in (("capacity", "50"), ("queues", "x"))}
    two |= {"root.a.x.capacity": "100", "root.b.x.capacity": "100"}
    path = written(tmp_path / "c.xml", two)
    with pytest.raises(InputError, match=r"x \(several: root\.a\.x, root\.b\.x\)"):
        tree_of(("x", "a.x"), conf=path)
    with pytest.raises(UsageError, match="several queues are called x"):
        tree_of(("a.x", "b.x"), conf=path, guarantees="x:100")
    assert tree_of(("a.x", "root.b.x"), conf=path).apps.size


def test_numbers_by_name() -> None:
    assert named_numbers("g", "a:1, b c:2.5,") == {"a": 1, "b c": 2.5}
    for text in ("a:", ":1", "a:nan", "a:inf", "a"):
        with pytest.raises(UsageError, match="expected NAME:NUMBER"):
            named_numbers("g", text)


def test_settings_of_a_replay_with_files_are_those_of_the_user(conf: str) -> None:
    assert find("yarn-capacity")({"conf": conf, "heartbeat": "2"}).params == {"conf": conf, "heartbeat": 2}
    assert find("yarn-capacity")().params["max_wait_before_kill"] == 15
