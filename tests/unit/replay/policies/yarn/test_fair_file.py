"""Allocation files of Hadoop's fair scheduler: what is read, what is refused, and where jobs go."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.policies.yarn.fair_file import Amount, read_allocations, read_amount, read_conf
from gpuctl.replay.policies.yarn.fair_state import UNBOUNDED
from gpuctl.replay.policies.yarn.fair_tree import place, tree
from gpuctl.replay.policies.yarn.site import Setting

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.policies.yarn.fair_file import Allocations

WHOLE = np.array([1000, 100, 40])

EXAMPLE = """<?xml version="1.0"?>
<allocations>
  <defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>
  <queueMaxAppsDefault>7</queueMaxAppsDefault>
  <userMaxAppsDefault>5</userMaxAppsDefault>
  <queueMaxAMShareDefault>0.25</queueMaxAMShareDefault>
  <queueMaxResourcesDefault>memory-mb=50%, vcores=25%, yarn.io/gpu=10%</queueMaxResourcesDefault>
  <defaultMinSharePreemptionTimeout>30</defaultMinSharePreemptionTimeout>
  <defaultFairSharePreemptionTimeout>60</defaultFairSharePreemptionTimeout>
  <defaultFairSharePreemptionThreshold>0.4</defaultFairSharePreemptionThreshold>
  <user name="ann"><maxRunningApps>2</maxRunningApps></user>
  <queuePlacementPolicy><rule name="specified"/><rule name="default"/></queuePlacementPolicy>
  <queue name="prod" type="parent">
    <weight>3.5</weight>
    <minResources>10 mb, 2 vcores</minResources>
    <maxResources>memory-mb=900, vcores=90, yarn.io/gpu=30</maxResources>
    <maxChildResources>memory-mb=100, vcores=10, yarn.io/gpu=3</maxChildResources>
    <minSharePreemptionTimeout>4</minSharePreemptionTimeout>
    <allowPreemptionFrom>false</allowPreemptionFrom>
    <aclSubmitApps>*</aclSubmitApps>
    <pool name="etl">
      <schedulingPolicy>fifo</schedulingPolicy>
      <maxRunningApps>1</maxRunningApps>
      <maxAMShare>-1.0</maxAMShare>
      <fairSharePreemptionThreshold>0.8</fairSharePreemptionThreshold>
      <maxContainerAllocation>100 mb, 1 vcores</maxContainerAllocation>
    </pool>
  </queue>
  <queue name="test"><fairSharePreemptionTimeout>9</fairSharePreemptionTimeout></queue>
</allocations>
"""


def written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "fair-scheduler.xml"
    path.write_text(text, "utf-8")
    return str(path)


def read(tmp_path: Path, inside: str) -> Allocations:
    return read_allocations(written(tmp_path, f"<allocations>{inside}</allocations>"))


def test_a_whole_file(tmp_path: Path) -> None:
    found = read_allocations(written(tmp_path, EXAMPLE))
    assert [queue.name for queue in found.queues] == ["root.prod", "root.prod.etl", "root.test"]
    assert (found.policy, found.apps, found.user_apps, found.of_users) == ("drf", 7, 5, {"ann": 2})
    assert (found.masters, found.min_wait, found.fair_wait, found.threshold) == (0.25, 30, 60, 0.4)
    assert found.left_out == {"queuePlacementPolicy": 1, "maxContainerAllocation": 1}
    prod, etl, test = found.queues
    assert (prod.parent, prod.weight, prod.min_wait, prod.victims) == (True, 3.5, 4, False)
    assert prod.least == Amount((10, 2, 0))
    assert prod.child_most == Amount((100, 10, 3))
    assert (etl.policy, etl.apps, etl.masters, etl.threshold) == ("fifo", 1, -1, 0.8)
    assert (test.parent, test.fair_wait, test.least, test.policy) == (False, 9, None, None)


def test_the_tree_has_what_queues_inherit(tmp_path: Path) -> None:
    found = tree(read_allocations(written(tmp_path, EXAMPLE)), WHOLE, 1)
    assert found.names == ("root", "root.prod", "root.test", "root.prod.etl")
    q = found.queues
    assert q.parent.tolist() == [-1, 0, 0, 1]
    assert [found.children[r.first : r.first + r.count].tolist() for r in q] == [[1, 2], [3], [], []]
    assert q.min_wait.tolist() == [30, 4, 30, 4]
    assert q.fair_wait.tolist() == [60, 60, 9, 60]
    assert q.threshold.tolist() == pytest.approx([0.4, 0.4, 0.4, 0.8])
    assert q.victims.tolist() == [1, 0, 1, 0]
    assert q.most.tolist() == [7, 7, 7, 1]
    assert q.policy.tolist() == [2, 2, 2, 0]
    # root and test have the default maximum, as shares of the cluster; the old form of a minimum names no GPUs
    assert found.most.tolist() == [[500, 25, 4], [900, 90, 30], [500, 25, 4], [500, 25, 4]]
    assert found.least.tolist() == [[0, 0, 0], [10, 2, 0], [0, 0, 0], [0, 0, 0]]


def test_resources_not_counted_in_a_replay_bound_nothing(tmp_path: Path) -> None:
    found = tree(read_allocations(written(tmp_path, EXAMPLE)), np.array([0, 0, 40]), 1)
    assert found.most.tolist()[1] == [UNBOUNDED, UNBOUNDED, 30]
    assert found.least.any() == np.False_


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("memory-mb=8192, vcores=4, yarn.io/gpu=2", Amount((8192, 4, 2))),
        ("vcores=4", Amount((math.inf, 4, math.inf))),
        ("vcores=4, fpga=3", Amount((math.inf, 4, math.inf))),
        ("8192 mb, 4 vcores", Amount((8192, 4, 0))),
        ("4 vcores,8192 MB", Amount((8192, 4, 0))),
        ("8192 mb 4 vcores", Amount((8192, 4, 0))),
        ("25%", Amount((0.25, 0.25, 0.25), relative=True)),
        ("25.5% memory, 50 % cpu", Amount((0.255, 0.5, 0), relative=True)),
        ("yarn.io/gpu=50%", Amount((1, 1, 0.5), relative=True)),
    ],
)
def test_amounts_in_all_their_forms(text: str, amount: Amount) -> None:
    assert read_amount(Setting("maxResources", text, "x", 1), math.inf) == amount


@pytest.mark.parametrize(
    "text", ["", "8192", "-1 mb, 4 vcores", "8192 mb", "vcores=-4", "vcores=", "=4", "50", "a%", "25% memory", "x,y,z"]
)
def test_amounts_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match=r"x:7: maxResources is .*expected an amount"):
        read_amount(Setting("maxResources", text, "x", 7), math.inf)


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ("<queue/>", "named ''"),
        ('<queue name="a.b"/>', "without a full stop"),
        ('<queue name="a"/><queue name="a"/>', "root.a occurs twice"),
        ('<queue name="root"/><queue name="a"/>', "the root and other queues next to it"),
        ('<queue name="a"><weight>x</weight></queue>', "weight> is 'x': expected a number"),
        ('<queue name="a"><weight>-1</weight></queue>', "expected a number"),
        ('<queue name="a"><schedulingPolicy>org.example.Mine</schedulingPolicy></queue>', "fair, fifo or drf"),
        ('<queue name="a"><minResources>10%</minResources></queue>', "an absolute amount"),
        ("<defaultQueueSchedulingPolicy>fifo</defaultQueueSchedulingPolicy>", "parent queues cannot be fifo"),
        ('<queue name="a"><schedulingPolicy>fifo</schedulingPolicy><queue name="b"/></queue>', "other queues in it"),
        ('<queue name="a">', "is not XML"),
        ("<queueMaxAppsDefault>many</queueMaxAppsDefault>", "expected a number"),
    ],
)
def test_files_that_make_no_sense(tmp_path: Path, inside: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, inside)


def test_documents_with_entities_are_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE a [<!ENTITY x "y"><!ENTITY z "&x;&x;">]><allocations>&z;</allocations>'
    with pytest.raises(InputError, match="DOCTYPE"):
        read_allocations(written(tmp_path, bomb))


def test_a_queue_that_follows_drf_under_one_that_follows_fair_is_refused(tmp_path: Path) -> None:
    found = read(tmp_path, '<queue name="a"><schedulingPolicy>drf</schedulingPolicy></queue>')
    with pytest.raises(UsageError, match=r"root\.a uses drf under root"):
        tree(found, WHOLE, 1)


def test_classes_of_hadoop_may_be_named_in_full(tmp_path: Path) -> None:
    name = "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.policies.DominantResourceFairnessPolicy"
    assert read(tmp_path, f"<defaultQueueSchedulingPolicy>{name}</defaultQueueSchedulingPolicy>").policy == "drf"


def test_jobs_go_where_hadoop_would_put_them(tmp_path: Path) -> None:
    conf = read_allocations(written(tmp_path, EXAMPLE))
    wanted = ["test", "root.prod.etl", "new", "prod", "prod.new", "test.below", "", ""]
    users = ["ann", "ann", "ann", "ann", "ann", "ann", "b.c", ""]
    found = place(conf, wanted, users, undeclared=True, by_user=True)
    assert found.of_job == (
        "root.test", "root.prod.etl", "root.new", "root.prod.default", "root.prod.new", "root.default",
        "root.b_dot_c", "root.default",
    )  # fmt: skip
    made = {queue.name: queue for queue in found.allocations.queues}
    assert made["root.prod.new"].most == Amount((100, 10, 3))
    assert len(found.notes) == 1
    assert "root.new (1 job)" in found.notes[0]
    closed = place(conf, ["new", "test"], ["ann", "ann"], undeclared=False, by_user=True)
    assert closed.of_job == ("root.default", "root.test")


def test_two_allocation_files_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, EXAMPLE)
    with pytest.raises(UsageError, match="two allocation files"):
        read_conf(f"{path}:{path}")
