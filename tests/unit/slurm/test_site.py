"""A site's files: found in directories, taken for what they are, followed no further than they may be."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.policies.slurm.cluster import cluster_of, on_nodes
from gpuctl.slurm import accounts, config, site
from gpuctl.slurm.gres import read_tres
from gpuctl.slurm.site import conf_paths, kind_of, read_site
from gpuctl.slurm.units import tres_amounts
from tests.slurm_priority import FIXTURES, VARIANTS
from tests.unit.replay.outcomes import make_cluster, make_workload

CONF = (
    "ClusterName=here\nSelectType=select/cons_tres\nNodeName=n[1-2] CPUs=8 Gres=gpu:a100:4\nPartitionName=p Nodes=ALL\n"
)
DUMP = "Cluster - 'here':Fairshare=1:QOS='normal'\nParent - 'root'\nAccount - 'a':Fairshare=2:GrpJobs=3\n"
QOS = "Name|Priority|Preempt|UsageFactor|GrpTRES\nnormal|1||1.0|gres/gpu=4\n"
ASSOC = "Account|ParentName|User|Partition|Share|Priority|GrpJobs\nroot||||1||\na|root|||2||3\n"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, "utf-8")
    return folder


def test_a_directory(tmp_path: Path) -> None:
    write(
        tmp_path, slurm__conf=CONF, x1=DUMP, x2=QOS, x3=ASSOC, x4="NodeName=n1 Name=gpu Type=a100\n", x5="", x6="\0\xff"
    )
    (tmp_path / "more").mkdir()
    write(tmp_path / "more", slurm__conf="what is this")
    found = read_site([tmp_path])
    assert (found.name, found.limits_hold, list(found.qos), [row.account for row in found.associations]) == (
        "here", False, ["normal"], ["root", "a"],
    )  # fmt: skip
    assert [Path(name).name for name in found.files] == ["slurm.conf", "x2", "x1"]
    assert found.unmodelled == (
        ("AccountingStorageEnforce", "does not include limits: those of 2 QOS and associations are not enforced"),
    )
    (tmp_path / "x1").unlink()
    # without a dump the table counts, which has no QOS here
    shown = read_site([tmp_path])
    assert [Path(name).name for name in shown.files] == ["slurm.conf", "x2", "x3"]
    assert shown.associations == tuple(row._replace(qos=None) for row in found.associations)


def test_files_that_are_named_go_before_those_of_a_directory(tmp_path: Path) -> None:
    write(
        tmp_path, slurm__conf=CONF, qos__txt=QOS, other=QOS.replace("normal", "low"), new=CONF.replace("here", "there")
    )
    with pytest.raises(InputError, match=r"other: is one of several sacctmgr show qos, with .*qos\.txt"):
        read_site([tmp_path])
    (tmp_path / "other").rename(tmp_path / "other.txt")
    (tmp_path / "apart").mkdir()
    (tmp_path / "other.txt").rename(tmp_path / "apart" / "other.txt")
    found = read_site([tmp_path / "apart" / "other.txt", tmp_path / "new", tmp_path])
    assert (found.name, list(found.qos)) == ("there", ["low"])
    with pytest.raises(InputError, match=r"slurm\.conf: is one of several slurm.conf, with .*new"):
        read_site([tmp_path / "slurm.conf", tmp_path / "new"])


def test_missing_files_and_files_that_are_not_slurms(tmp_path: Path) -> None:
    write(tmp_path, notes="hello", qos=QOS, sshare="Account|User|RawShares|NormShares|RawUsage|FairShare\n")
    with pytest.raises(UsageError, match="no such file or directory"):
        read_site([tmp_path / "gone"])
    with pytest.raises(InputError, match="notes: is not a Slurm file"):
        read_site([tmp_path / "notes"])
    with pytest.raises(UsageError, match=r"there is no slurm.conf among these files"):
        read_site([tmp_path])
    assert kind_of(tmp_path / "sshare") is None
    with pytest.raises(UsageError, match="no configuration"):
        conf_paths(" ")
    assert conf_paths("a:b/c") == [Path("a"), Path("b/c")]


def test_errors_name_the_file(tmp_path: Path) -> None:
    write(tmp_path, slurm__conf=CONF + "PriorityType=priority/odd\n")
    with pytest.raises(InputError, match=r"slurm\.conf: PriorityType=priority/odd: expected"):
        read_site([tmp_path])
    write(tmp_path, slurm__conf=CONF, dump="Cluster - 'c'\nAccount - 'a':GrpJobs=many\n")
    with pytest.raises(InputError, match=r"dump: sacctmgr dump, line 2: grpjobs=many: expected"):
        read_site([tmp_path])


def test_includes_are_opened_next_to_it(tmp_path: Path) -> None:
    write(
        tmp_path,
        slurm__conf="ClusterName=here\nInclude nodes.conf\ninclude  /etc/slurm/partitions.conf\n",
        nodes__conf="# nodes\nNodeName=n[1-3] CPUs=4\n",
        partitions__conf="Include more\nPartitionName=p Nodes=n[1-2]\n",
        more="PartitionName=DEFAULT MaxTime=60\n",
    )
    found = read_site([tmp_path])
    assert [node.name for node in found.nodes] == ["n1", "n2", "n3"]
    assert found.partitions["p"].max_time_min == 60


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Include gone.conf", "slurm.conf, line 1: .*its directory has no gone.conf"),
        ("Include ../outside.conf", "its directory has no outside.conf"),
        ("Include link.conf", "a link out of its directory"),
        ("Include slurm.conf", "slurm.conf, line 1: includes slurm.conf a second time"),
        ("\nInclude a\nInclude a", "slurm.conf, line 3: includes a a second time"),
        ("Include b", "b, line 2: not Key=Value words"),
        ("NodeName=n1\nNodeName=n[1-2]", "line 2: node n1 occurs twice"),
        ("PartitionName=p\nPartitionName=p", "line 2: partition p occurs twice"),
        ("NodeName=n1\nDownNodes=n2", "line 2: DownNodes: there is no node n2"),
        ("NodeName=n1 CPUs=many", "line 1: a number is not a whole number"),
        ("PreemptType=preempt/other", "PreemptType=preempt/other: expected one of"),
        ("PreemptMode=SUSPEND,REQUEUE", "PreemptMode=SUSPEND,REQUEUE: expected one of"),
        ("PartitionName=p State=SLEEPY", "partition p: State=SLEEPY: expected one of"),
        ("PartitionName=p OverSubscribe=MAYBE", "partition p: OverSubscribe=MAYBE: expected"),
        (
            "\n".join(f"PartitionName=p{k} Nodes=n[1-60000]" for k in range(20)),
            "partition p16: more than 1000000 nodes",
        ),
        ("\n".join(f"NodeSet=s{k} Nodes=n[1-60000]" for k in range(20)), "line 17: more than 1000000 nodes in all"),
        ("EnforcePartLimits=SOME", "EnforcePartLimits=SOME: expected NO, ANY or ALL"),
        ("SchedulerParameters=bf_interval=0", "bf_interval=0: expected a whole number, at least 1"),
    ],
)
def test_impossible_settings_are_reported(tmp_path: Path, text: str, message: str) -> None:
    folder = tmp_path / "etc"
    folder.mkdir()
    write(tmp_path, outside__conf="ClusterName=there\n")
    (folder / "link.conf").symlink_to(tmp_path / "outside.conf")
    write(folder, slurm__conf=text, a="FirstJobId=1\n", b="FirstJobId=1\nwhat is this\n")
    with pytest.raises(InputError, match=message):
        read_site([folder / "slurm.conf"])


MORE = """
ClusterName=here
SelectType=select/linear
SelectTypeParameters=CR_Memory
AccountingStorageEnforce=safe,qos
EnforcePartLimits=yes
OverTimeLimit=5
KillWait=60
JobRequeue=0
PreemptType=preempt/partition_prio
PreemptMode=SUSPEND,GANG
PreemptExemptTime=00:00:90
SchedulerParameters=sched_interval=-1,sched_min_interval=2000000,batch_sched_delay=7,partition_job_depth=3
PreemptParameters=youngest_first,reorder_count=4
NodeName=DEFAULT CPUs=16 RealMemory=64000
NodeName=n[1-2] Feature=big,ib Gres=gpu:a100:4,mps:8
NodeName=n3 Features=ib Gres=gpu:v100:2,gpu:t4:1 Weight=9 MemSpecLimit=1000
NodeName=n[4-5] Sockets=2 CoresPerSocket=8 ThreadsPerCore=2 CPUs=32 State=FUTURE
DownNodes=n2 State=DOWN Reason="a fan"
NodeSet=big Feature=big
NodeSet=both Nodes=n[4-5] Feature=ib
PartitionName=DEFAULT MinNodes=1 MaxTime=60
PartitionName=a Nodes=big Default=YES MaxNodes=2 GraceTime=30 PreemptMode=off AllowAccounts=x,y DenyAccounts=z QOS=a
PartitionName=b Nodes=both,n1 OverSubscribe=EXCLUSIVE State=drain DenyQos=low,high PriorityTier=3 \\
    OverTimeLimit=UNLIMITED
PartitionName=c Nodes=n3 MinNodes=0 AllowQos=high ExclusiveUser=YES OverSubscribe=YES:1
PartitionName=e Nodes=n9
"""


def test_partitions_nodes_and_preemption() -> None:
    found = config.read_conf(io.BytesIO(MORE.encode()))
    a, b, c = (found.partitions[name] for name in "abc")
    assert (a.nodes, a.default, a.max_nodes, a.min_nodes, a.grace_s) == (("n1", "n2"), True, 2, 1, 30)
    assert (a.preempt_mode, a.allow_accounts, a.deny_accounts, a.qos) == ("OFF", {"x", "y"}, frozenset(), "a")
    assert (b.nodes, b.oversubscribe, b.state, b.tier) == (("n4", "n5", "n1", "n2", "n3"), "EXCLUSIVE", "DRAIN", 3)
    assert (b.deny_qos, b.allow_qos, b.preempt_mode, b.over_time_min) == ({"low", "high"}, None, None, np.inf)
    assert (c.min_nodes, c.allow_qos, c.over_time_min, c.max_time_min) == (0, {"high"}, None, 60)
    assert [(node.name, node.cpus, node.mem_mb, node.gpus, node.gpu_type) for node in found.nodes] == [
        ("n1", 16, 64_000, 4, "a100"), ("n2", 16, 64_000, 4, "a100"), ("n3", 16, 64_000, 3, "v100,t4"),
        ("n4", 32, 64_000, 0, None), ("n5", 32, 64_000, 0, None),
    ]  # fmt: skip
    assert [node.usable for node in found.nodes] == [True, False, True, False, False]
    assert [node.weight for node in found.nodes] == [1, 1, 9, 1, 1]
    assert found.preemption == config.Preemption("partition", "SUSPEND", gang=True, exempt_s=90)
    assert (found.whole_nodes, found.limits_hold, found.enforce_part_limits) == (True, True, "ALL")
    assert found.enforce == {"safe", "qos", "limits", "associations"}
    assert (found.over_time_min, found.kill_wait_s, found.requeue) == (5, 60, False)
    given_ = found.parameters
    assert (given_.sched_interval_s, given_.sched_min_interval_us, given_.batch_sched_delay_s) == (-1, 2_000_000, 7)
    assert (given_.partition_job_depth, given_.preempt_youngest_first, given_.preempt_reorder_count) == (3, True, 4)
    assert set(found.unmodelled) == {
        ("nodes n3", "memspeclimit=1000 is not modelled: jobs get all of the node"),
        ("overtimelimit", "5 is not modelled"),
        ("partition a", "gracetime=30 is not modelled"),
        ("partition b", "overtimelimit=UNLIMITED is not modelled"),
        ("preemptmode", "GANG (jobs that take turns) is not modelled"),
        ("partition c", "exclusiveuser=YES is not modelled"),
    }
    assert {line for line in site._gaps(found)} == {
        ("partition a", "its QOS a is in no file: it has no limits here"),
        ("partition e", "1 of its nodes have no NodeName, such as n9"),
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", set()),
        ("0", set()),
        ("1", {"associations"}),
        ("limits", {"limits", "associations"}),
        ("QOS", {"qos", "associations"}),
        ("all,nojobs", {"all", "associations", "limits", "qos", "wckeys", "safe", "nojobs"}),
    ],
)
def test_enforced_limits(text: str, expected: set[str]) -> None:
    assert config.read_conf(io.BytesIO(f"AccountingStorageEnforce={text}\n".encode())).enforce == expected


LIMITS = FIXTURES.parent / "limits"


@pytest.mark.parametrize("folder", [LIMITS, *(FIXTURES / variant for variant in VARIANTS)], ids=lambda path: path.name)
def test_slurm_conf_and_scontrol_of_a_real_one_give_the_same(folder: Path) -> None:
    written = read_site([folder])
    in_force = read_site([folder / "config.txt", folder / "partitions.txt", folder / "nodes.txt"])
    assert [Path(name).name for name in in_force.files] == ["config.txt", "partitions.txt", "nodes.txt"]
    assert {node.name: replace(node, usable=True) for node in written.nodes} == {n.name: n for n in in_force.nodes}
    for name in (
        "name", "scheduler", "parameters", "preemption", "select", "select_parameters", "enforce", "over_time_min",
        "enforce_part_limits", "kill_wait_s", "requeue",
    ):  # fmt: skip
        assert getattr(written, name) == getattr(in_force, name), name
    for name, partition in written.partitions.items():
        assert sorted(written.nodes_of(partition)) == sorted(in_force.partitions[name].nodes)
        # scontrol prints the cluster's PreemptMode with each partition, and what each has
        other = replace(in_force.partitions[name], preempt_mode=None, tres={})
        assert replace(partition, nodes=(), all_nodes=False) == replace(other, nodes=())


def test_limits_are_handed_down_as_a_real_one_does() -> None:
    """``show assoc`` says what each association has after inheritance, the dump what each was given."""
    dumped = {row[:2]: row for row in read_site([LIMITS]).associations if row.partition is None}
    shown = {row[:2]: row for row in read_site([LIMITS / "assoc.txt", LIMITS / "slurm.conf"]).associations}
    with (LIMITS / "assoc.txt").open("rb") as stream:
        lines = stream.read().decode().splitlines()
    columns = [name.lower().replace(" ", "") for name in lines[0].split("|")]
    assert len(lines) == 17
    for line in lines[1:]:
        cells = dict(zip(columns, line.split("|"), strict=True))
        if not cells["partition"]:
            row = dumped.pop((cells["account"], cells["user"] or None))
            # as Slurm shows it, not as we hand it down in the table itself
            assert row.limits == accounts.limits_of(cells), line
            assert sorted(row.qos or ()) == cells["qos"].split(",")
            assert row.default_qos == (cells["defqos"] or None)
            assert row._replace(qos=None) == shown[row[:2]]._replace(qos=None)
    assert not dumped
    [only] = [row for row in read_site([LIMITS]).associations if row.partition]
    assert (only[:2], only.partition, only.limits.max_jobs, only.limits.max_submit) == (
        ("vision", "news"),
        "gpu",
        6,
        50,
    )


def test_qos_of_a_real_one_are_as_configured() -> None:
    found = read_site([LIMITS]).qos
    assert found["all"] == accounts.Qos(
        "all", 3, 0.25, ("low", "part"),
        (("QOS all", "gracetime=00:01:15 is not modelled"), ("QOS all", "grptresmins=cpu=1000 is not modelled")),
        accounts.Limits(
            grp_jobs=5, grp_submit=6, grp_wall_min=90, max_tres={"gres/gpu:a100": 2, "mem": 204_800},
            max_tres_node={"cpu": 7}, max_tres_account={"node": 3}, max_jobs_account=4, max_submit_account=8,
            max_submit_user=9, max_wall_min=1530, min_tres={"gres/gpu": 1},
        ),
        frozenset({"NoReserve", "OverPartQOS", "PartitionTimeLimit", "PartitionMinNodes", "NoDecay"}),
        "CANCEL", within=False, preempt_exempt_s=600, grace_s=75,
    )  # fmt: skip
    assert found["part"].limits == accounts.Limits(
        grp_tres={"gres/gpu": 12, "cpu": 100}, max_jobs_user=3, max_tres_user={"gres/gpu": 4}
    )
    zero = found["zero"]
    # 0 is a limit, and no time at all an exemption of its own
    assert (zero.limits, zero.preempt_mode, zero.within, zero.preempt_exempt_s) == (
        accounts.Limits(max_wall_min=0, max_jobs_user=0), "REQUEUE", True, 0,
    )  # fmt: skip


def test_partitions_of_a_real_one() -> None:
    found = read_site([LIMITS])
    assert [node.name for node in found.nodes if not node.usable] == ["gpu004"]
    assert "State=IDLE+DRAIN" in (LIMITS / "nodes.txt").read_text("utf-8")
    wide = found.partitions["wide"]
    assert sorted(wide.nodes) == ["gpu001", "gpu002", "gpu003"]
    assert (wide.oversubscribe, wide.state, wide.over_time_min) == ("EXCLUSIVE", "DRAIN", 9)
    assert (found.requeue, found.over_time_min, found.enforce_part_limits, found.kill_wait_s) == (False, 3, "ANY", 45)
    assert found.nodes_of(found.partitions["deny"]) == ("gpu001", "gpu002", "gpu003", "gpu004", "c1-1")


def test_accounts_of_a_real_one_have_what_sacctmgr_shows(root: Path) -> None:
    """``show assoc`` says what each association has after inheritance, the dump what each was given."""
    folder = root.parent / "shared" / "data" / "slurm" / "22.05.8"
    if not folder.is_dir():
        pytest.skip("../shared/data/slurm is not on this machine")
    blocks = read_site(
        [folder / name for name in ("scontrol_config.txt", "scontrol_partition.txt", "scontrol_node.txt")]
    )
    written = read_site([folder])
    for name, partition in blocks.partitions.items():
        assert sorted(partition.nodes) == sorted(written.partitions[name].nodes)
        assert (partition.max_time_min, partition.max_nodes) == (
            written.partitions[name].max_time_min, written.partitions[name].max_nodes,
        )  # fmt: skip
    assert {node.name: node for node in blocks.nodes} == {node.name: node for node in written.nodes}
    found = {(row.account, row.user): row for row in read_site([folder]).associations}
    header, *lines = (folder / "sacctmgr_assoc.txt").read_text("utf-8").splitlines()
    columns = [name.lower().replace(" ", "") for name in header.split("|")]
    for line in lines:
        cells = dict(zip(columns, line.split("|"), strict=True))
        row = found.pop((cells["account"], cells["user"] or None))
        assert row.limits == accounts.limits_of(cells), line
        assert ",".join(sorted(row.qos or ())) == cells["qos"]
        assert row.default_qos == (cells["defqos"] or None)
    assert not found


# ---- the same limits as the analyses read
_GPUS = st.dictionaries(
    st.sampled_from(["gres/gpu", "gres/gpu:a100", "gres/gpu:v100"]), st.integers(-1, 500), max_size=3
)


@given(_GPUS, st.integers(0, 99))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_limits_on_gpus_are_read_as_the_analyses_read_them(gpus: dict[str, int], cpus: int) -> None:
    text = ",".join([f"cpu={cpus}", *(f"{name}={count}" for name, count in gpus.items())])
    counted = {name: count for name, count in tres_amounts(text).items() if name.startswith("gres/gpu") and count >= 0}
    theirs = {f"gres/gpu:{kind}" if kind else "gres/gpu": count for kind, count in read_tres(text).items()}
    assert counted == theirs


# ---- nodes
def test_the_nodes_are_the_nodes() -> None:
    found = replace(
        config.read_conf(io.BytesIO(MORE.encode())),
        switches={"n1": "s1", "n3": "s2"},
        qos={"a": accounts.Qos("a", limits=accounts.Limits(grp_tres={"gres/gpu": 6.0}))},
    )
    jobs = replace(make_workload([0, 0], [1, 1], [1, 1], queue=[0, 1], queues=("b", "x")), gpu_types=("t4",))
    cluster = cluster_of(found, jobs)
    assert (cluster.name, cluster.nodes, cluster.gpus.tolist()) == (
        "the nodes of slurm.conf of here",
        ("n1", "n3"),
        [4, 3],
    )
    assert (cluster.gpu_type.tolist(), cluster.gpu_types) == ([1, -1], ("t4", "a100"))
    assert (cluster.racks, cluster.rack.tolist()) == (("s1", "s2"), [0, 1])
    # x is no partition: it has the nodes of the default one, of which n2 is down
    assert cluster.queue_nodes[0] is None
    assert cluster.queue_nodes[1] is not None
    assert cluster.queue_nodes[1].tolist() == [0]
    assert cluster.notes == (
        "3 nodes whose State keeps jobs off are left out",
        "1 node has GPUs of several types: it suits jobs that ask for any type",
        "queues that are no partition of slurm.conf have the nodes of the default partition a: x",
    )
    assert cluster.quota.tolist() == [np.inf, np.inf]
    quotas = cluster_of(found, replace(jobs, queues=("a", "b")))
    assert (quotas.quota.tolist(), quotas.quota_source) == ([6, np.inf], "configured")
    assert cluster_of(replace(found, enforce=frozenset()), replace(jobs, queues=("a", "b"))).quota_source == "none"
    assert cluster.cpus is not None
    assert cluster.mem_mb is not None
    assert (cluster.cpus.tolist(), cluster.mem_mb.tolist()) == ([16, 16], [64_000, 64_000])


def test_jobs_of_a_trace_are_put_on_the_nodes_that_they_ran_on() -> None:
    text = b"NodeName=n[1-3] CPUs=4 Gres=gpu:2\nPartitionName=a Nodes=ALL\n"
    found = config.read_conf(io.BytesIO(text))
    jobs = replace(
        make_workload([0, 0], [1, 1], [2, 3]), piece_start=np.array([0, 1, 3]), piece_node=np.array([0, 0, 1]),
        piece_gpus=np.array([2, 1, 2]),
    )  # fmt: skip
    own = replace(
        make_cluster(3, 2), nodes=("n3", "n2", "gone"), listed=False,
        down=np.array([[0.0, 5, 9], [2, 1, 3], [1, 0, np.inf]]),
    )  # fmt: skip
    placed, nodes = on_nodes(jobs, own, cluster_of(found, jobs))
    assert placed.piece_node.tolist() == [2, 2, 1]
    assert nodes.down is not None
    assert nodes.down.tolist() == [[1, 0, np.inf], [2, 5, 9]]
    typed = replace(config.read_conf(io.BytesIO(text.replace(b"gpu:2", b"gpu:v100:2") + b"NodeName=c1\n")), switches={})
    typed_jobs = replace(jobs, gpu_type=np.array([0, 1]), gpu_types=("a100,v100", "v100"))
    anyhow, _ = on_nodes(typed_jobs, own, cluster_of(typed, typed_jobs, ("gpu", "cpu")))
    assert anyhow.gpu_type.tolist() == [-1, 1]
    assert anyhow.notes == ("1 job names GPU types that no node has (a100,v100): it may use any type",)
    lost, nodes = on_nodes(jobs, replace(own, nodes=("n3", "x", "gone")), cluster_of(found, jobs))
    assert lost.piece_node.size == 0
    assert nodes.notes == ("jobs ran on 1 node that slurm.conf does not have: x",)


def test_nodes_without_gpus_are_nodes_where_cpus_count() -> None:
    found = config.read_conf(
        io.BytesIO(b"NodeName=n[1-2] CPUs=4\nNodeName=g1 CPUs=8 Gres=gpu:1\nPartitionName=p Nodes=ALL\n")
    )
    jobs = make_workload([0], [1], [1], queues=("p",))
    assert cluster_of(found, jobs).nodes == ("g1",)
    whole = cluster_of(found, jobs, ("gpu", "cpu"))
    assert (whole.nodes, whole.gpus.tolist(), whole.gpu_type.tolist()) == (
        ("n1", "n2", "g1"),
        [0, 0, 1],
        [-1, -1, -1],
    )
    with pytest.raises(UsageError, match="names no nodes with GPUs that jobs can use"):
        cluster_of(replace(found, nodes=found.nodes[:2]), jobs)
    with pytest.raises(UsageError, match="names no nodes at all"):
        cluster_of(replace(found, nodes=()), jobs)
