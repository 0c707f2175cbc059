"""What is read of slurm.conf and sacctmgr, and that what is not modelled is listed."""

from __future__ import annotations

import io
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.replay.policies.slurm import priority
from gpuctl.replay.policies.slurm.fairshare import build_tree
from gpuctl.slurm import accounts, config, unmodelled
from gpuctl.slurm.associations import USE_PARENT, Association
from gpuctl.slurm.parameters import Parameters, read_parameters
from gpuctl.slurm.topology import read_topology
from gpuctl.slurm.units import minutes, tres_amounts, tres_weights
from tests.slurm_priority import FIXTURES, VARIANTS


def _conf(text: str) -> config.Site:
    return config.read_conf(io.BytesIO(text.encode()))


FULL = """
ClusterName=c
PriorityType=priority/multifactor
PriorityDecayHalfLife=14-0
PriorityCalcPeriod=2
PriorityMaxAge=1-12
PriorityFavorSmall=YES
PriorityFlags=NO_NORMAL_PART,max_tres,DEPTH_OBLIVIOUS,SOMETHING_NEW
PriorityUsageResetPeriod=monthly
PriorityWeightAge=10
PriorityWeightFairshare=20
PriorityWeightTRES=CPU=5,Mem=2G,GRES/gpu=7
PrioritySiteFactorPlugin=site_factor/ours
AccountingStorageTRES=gres/fpga
PreemptType=preempt/qos
PreemptExemptTime=00:00:00
PreemptMode=REQUEUE
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory,CR_Pack_Nodes
SchedulerParameters=bf_window=2880,bf_continue,bf_max_job_test=3000,defer,bf_yield_interval=5,bf_licenses
NodeName=n[1-4] CPUs=16
PartitionName=DEFAULT PriorityTier=3 MaxTime=2-0
PartitionName=a Nodes=n[1-2] MaxNodes=2 MaxCPUsPerNode=4 OverSubscribe=FORCE:4 State=UP \\
    TRESBillingWeights="CPU=1.0,Mem=0.25G,GRES/gpu=2.0" QOS=big
PartitionName=b Nodes=ALL PriorityJobFactor=9 DefaultTime=90
"""


def test_settings_of_slurm_conf() -> None:
    site = _conf(FULL)
    found = site.multifactor
    assert found is not None
    assert (found.half_life_s, found.calc_period_s, found.max_age_s) == (14 * 86_400, 120, 36 * 3600)
    assert (found.favor_small, found.reset_period) == (True, "MONTHLY")
    assert found.flags == {"NO_NORMAL_PART", "MAX_TRES", "NO_FAIR_TREE"}
    assert not found.fair_tree
    assert (found.weight_age, found.weight_fairshare, found.weight_qos) == (10, 20, 0)
    assert found.weight_tres == {"cpu": 5.0, "mem": 2 / 1024}
    a, b = site.partitions["a"], site.partitions["b"]
    assert (a.nodes, a.tier, a.job_factor, a.qos, a.max_time_min) == (("n1", "n2"), 3, 1, "big", 2880)
    assert a.billing == {"cpu": 1.0, "mem": 0.25 / 1024, "gres/gpu": 2.0}
    assert (b.all_nodes, b.job_factor, b.billing, b.default_time_min) == (True, 9, None, 90)
    assert (site.parameters.bf_window_min, site.parameters.bf_max_job_test, site.parameters.bf_continue) == (
        2880,
        3000,
        True,
    )


def test_unmodelled_settings_are_listed() -> None:
    listed = {f"{name}: {why}" for name, why in _conf(FULL).unmodelled}
    assert listed == {
        "PriorityFlags: DEPTH_OBLIVIOUS: the classic formula is used in its place",
        "PriorityFlags: SOMETHING_NEW is not known",
        "PriorityWeightTRES: gres/gpu is not in AccountingStorageTRES: Slurm passes it over",
        "SchedulerParameters: bf_yield_interval=5 is not modelled: passes take no time here",
        "SchedulerParameters: bf_licenses is not modelled",
        "SchedulerParameters: defer is not modelled",
        "prioritysitefactorplugin: site_factor/ours is not modelled",
        "partition a: maxcpuspernode=4 is not modelled",
        "partition a: oversubscribe=FORCE:4: several jobs on one CPU are not modelled",
        "selecttypeparameters: CR_PACK_NODES is not modelled",
    }


def test_without_a_priority_plugin_it_is_first_come_first_served() -> None:
    site = _conf("ClusterName=c\nSelectType=select/linear\nPartitionName=a Nodes=n1\n")
    assert site.multifactor is None
    assert site.parameters == Parameters()
    assert site.unmodelled == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PriorityType=priority/other", "priority/other"),
        ("PriorityType=priority/multifactor\nPriorityMaxAge=0", "at least a minute"),
        ("PriorityType=priority/multifactor\nPriorityWeightAge=-4", "PriorityWeightAge|priorityweightage"),
        ("PriorityType=priority/multifactor\nPriorityDecayHalfLife=soon", "soon"),
        ("PriorityType=priority/multifactor\nPriorityUsageResetPeriod=HOURLY", "HOURLY"),
        ("PriorityWeightTRES=CPU", "RESOURCE=WEIGHT"),
        ("PartitionName=a Nodes=n[1- PriorityTier=2", "partition a"),
        ("Include more.conf", "line 1: names another file"),
        ("ClusterName=c\nwhat is this", "line 2"),
        ("SchedulerParameters=bf_window=long", "bf_window=long"),
    ],
)
def test_unreadable_input_is_reported(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _conf(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30", 30), ("90:00", 90), ("4:00:00", 240), ("7-0", 10080), ("1-2:30", 1590), ("1-2:30:01", 1591),
     ("00:00:30", 1), ("UNLIMITED", None), ("0", 0)],
)  # fmt: skip
def test_times(text: str, expected: float | None) -> None:
    assert minutes("x", text) == expected


def test_resources() -> None:
    assert tres_amounts("cpu=192,mem=1500000M,gres/gpu=24") == {"cpu": 192, "mem": 1_500_000, "gres/gpu": 24}
    assert tres_amounts("mem=2G,cpu=1K") == {"mem": 2048, "cpu": 1024}
    assert tres_weights("x", "CPU=1,Mem=.25G,BB/x=1M,License/y=-2") == {
        "cpu": 1, "mem": 0.25 / 1024, "bb/x": 1, "license/y": -2,
    }  # fmt: skip
    with pytest.raises(InputError, match="MiB"):
        tres_weights("x", "Mem=1K")
    assert read_parameters("bf_interval=7").bf_interval_s == 7


@pytest.mark.parametrize("variant", VARIANTS)
def test_files_and_commands_of_the_real_one_give_the_same(variant: str) -> None:
    folder = FIXTURES / variant
    with (folder / "slurm.conf").open("rb") as conf:
        site = config.read_conf(conf)
    with (folder / "config.txt").open("rb") as running, (folder / "partitions.txt").open("rb") as partitions:
        in_force = config.read_running(running, partitions)
    assert site.multifactor is not None
    assert in_force.multifactor is not None
    only = {name for name in site.multifactor.flags if not name.startswith("NO_NORMAL")}
    assert only == {name for name in in_force.multifactor.flags if not name.startswith("NO_NORMAL")}
    # scontrol says NO_NORMAL_ALL where one of them is set
    assert site.multifactor.flags <= in_force.multifactor.flags
    for name in (
        "half_life_s",
        "calc_period_s",
        "max_age_s",
        "favor_small",
        "weight_age",
        "weight_tres",
        "reset_period",
    ):
        assert getattr(site.multifactor, name) == getattr(in_force.multifactor, name), name
    for name, partition in site.partitions.items():
        other = in_force.partitions[name]
        assert sorted(partition.nodes) == sorted(other.nodes)
        assert (partition.job_factor, partition.tier, partition.billing, partition.max_time_min) == (
            other.job_factor, other.tier, other.billing, other.max_time_min,
        )  # fmt: skip
        assert other.tres["node"] == len(partition.nodes)
    assert set(site.tres) <= set(in_force.tres)
    with (folder / "dump.cfg").open("rb") as dump, (folder / "assoc.txt").open("rb") as assoc:
        # the recorded `show assoc` was not asked for QOS
        dumped = [row._replace(qos=None, default_qos=None) for row in accounts.read_dump(dump)]
        assert sorted(map(str, dumped)) == sorted(map(str, accounts.read_assoc(assoc)))


def test_priorities_are_inherited_and_shares_may_be_the_parents() -> None:
    dump = b"""Cluster - 'c':Fairshare=1
Parent - 'root'
Account - 'a':Fairshare=2147483647:Priority=30
Parent - 'a'
Account - 'b':Fairshare=4
User - 'u':Fairshare=parent:Partition='p'
Parent - 'b'
User - 'v':Fairshare=2:Priority=5
User - 'w'
"""
    rows = accounts.read_dump(io.BytesIO(dump))
    assert rows == (
        Association("root", None, None, 1, None), Association("a", None, "root", USE_PARENT, 30),
        Association("b", None, "a", 4, 30), Association("a", "u", None, USE_PARENT, 30, "p"),
        Association("b", "v", None, 2, 5), Association("b", "w", None, 1, 30),
    )  # fmt: skip
    with pytest.raises(InputError, match="line 1"):
        accounts.read_dump(io.BytesIO(b"nonsense\n"))


_LINES = st.sampled_from(
    [
        b"PriorityType=priority/multifactor",
        b"PriorityWeightAge=",
        b"PriorityMaxAge=1-0:",
        b"PartitionName=a Nodes=n[1-",
        b"]",
        b"Name|Priority|UsageFactor",
        b"Account|ParentName|User|Share|Priority",
        b"a|root|u|1|",
        b"|",
        b"Cluster - 'c':Fairshare=",
        b"Parent - 'a'",
        b"User - 'u':Priority=",
        b"99999999999999",
        b"nan",
        b"PriorityWeightTRES=CPU=",
        b"1e400",
        b"TRES=mem=",
        b"TRESBillingWeights=Mem=1",
        b"\n",
        b"\xff",
        b"\0",
        b" ",
        b"PartitionName = a",
        b"NodeName=n[1-3] Gres=gpu:",
        b"NodeSet=s Feature=f",
        b"SwitchName=l Nodes=n1",
        b"PreemptMode=SUSPEND,",
        b"Name|Priority|GrpTRES|MaxWall",
        b"q|1|cpu=-1|",
        b"SchedulerParameters=bf_window=",
    ]
)


@given(st.one_of(st.binary(max_size=200), st.lists(_LINES, max_size=12).map(b"".join)))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_read_or_reported(data: bytes) -> None:
    def dump(stream: io.BytesIO) -> None:
        build_tree(accounts.read_dump(stream))

    def assoc(stream: io.BytesIO) -> None:
        build_tree(accounts.read_assoc(stream))

    def running(stream: io.BytesIO) -> None:
        config.read_running(stream, io.BytesIO(data))

    for read in (config.read_conf, read_topology, accounts.read_qos, unmodelled.of_dump, dump, assoc, running):
        with suppress(InputError):
            read(io.BytesIO(data))


# ---- priorities
def _priority(settings: config.Multifactor, before: np.ndarray | None = None, **given: float) -> int:
    names = ("age", "association", "fair_share", "size", "partition", "qos")
    fields = {name: np.array([given.get(name, 0.0)]) for name in names}
    factors = priority.Factors(
        **fields, tres={"cpu": np.array([given.get("cpu", 0.0)])},
        site=np.array([int(given.get("site", 0))]), nice=np.array([int(given.get("nice", 0))]),
    )  # fmt: skip
    return int(priority.priorities(factors, settings, before)[0])


def test_priorities_are_cut_and_stored_in_bounds() -> None:
    weights = config.Multifactor(weight_age=1000, weight_qos=100, weight_tres={"cpu": 10.0})
    assert _priority(weights, age=0.5, qos=0.5, cpu=0.99, site=7, nice=3) == 563  # 500 + 50 + 9.9 + 7 - 3 = 563.9
    assert _priority(weights, nice=5) == 1
    assert _priority(weights, age=1, nice=-(2**33)) == 2**32 - 1
    only_up = config.Multifactor(weight_age=1000, flags=frozenset({"INCR_ONLY"}))
    assert _priority(only_up, np.array([700]), age=0.5) == 700
    assert _priority(weights, np.array([700]), age=0.5) == 500


def test_sizes_of_jobs() -> None:
    nodes, cpus, limits = np.array([1, 4, 2]), np.array([8, 64, 0]), np.array([1.0, 1.0, 10.0])

    def size(**how: object) -> list[float]:
        settings = config.Multifactor(**how)  # type: ignore[arg-type]
        return priority.size_factor(nodes, cpus, limits, all_nodes=4, all_cpus=64, settings=settings).tolist()

    assert size() == [(0.25 + 0.125) / 2, 1.0, 0.5]
    assert size(favor_small=True) == [(0.75 + 0.875) / 2, 0.0, 0.5]
    relative = frozenset({"SMALL_RELATIVE_TO_TIME"})
    assert size(flags=relative) == [16 / 64, 1.0, 32 / 10 / 64]  # a node counts 16 CPUs at least
    assert size(flags=relative, favor_small=True) == [0.75, 0.0, 1 - 0.05]


def test_normalized() -> None:
    some = np.array([0, 10, 40])
    assert priority.normalized(some, 40).tolist() == [0, 0.25, 1]
    assert priority.normalized(some, 40, as_they_are=True).tolist() == [0, 10, 40]
    assert priority.normalized(np.array([0, 0]), 0).tolist() == [0, 0]
    assert priority.tres_factor(np.array([3.0, 3.0]), np.array([12.0, 0.0])).tolist() == [0.25, 0]
    assert priority.tres_factor(np.array([3.0]), np.array([12.0]), as_they_are=True).tolist() == [3]
