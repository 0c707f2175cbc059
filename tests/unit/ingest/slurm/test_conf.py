"""slurm.conf and its like: machines, partitions, racks, settings, and limits on GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.ingest.slurm.site.settings import is_stored
from tests.philly_log import load, load_into
from tests.slurm_site_files import (
    ASSOC,
    CLUSTER,
    CONF,
    CONFIG,
    DUMP,
    GRES,
    PARTITIONS,
    PLACE,
    QOS,
    TOPOLOGY,
    YAML,
    Loose,
    machines,
    real,
    site_format,
)

if TYPE_CHECKING:
    from gpuctl.store.database import Store

FIELDS = ("gpus_labelled", "gpu_type", "cpus", "mem_mb", "partition")


def rejected(name: str, text: str) -> list[tuple[int, str]]:
    sink = Loose()
    load_into(sink, site_format(name), text)
    return [(line, reason) for line, reason, _ in sink.rejects]


def test_machines_with_defaults_and_continued_lines(store: Store) -> None:
    sink = load(site_format("conf"), CONF, store, **PLACE)
    assert (sink.rows_in, sink.rejects) == (12, [])
    found = {name: [row[f] for f in FIELDS] for name, row in machines(store).items()}
    assert found == {
        "gpu001": [8, "a100", 64, 500000, "gpu"],
        "gpu002": [8, "a100", 64, 500000, "gpu"],
        "gpu003": [4, "v100,a100", 32, 250000, "gpu"],
        "c1-1": [0, None, 32, 120000, "all"],
    }


def test_settings_are_stored_and_secrets_are_not(store: Store) -> None:
    load(site_format("conf"), CONF, store, **PLACE)
    load(site_format("config"), CONFIG, store, **PLACE, source=2)
    rows = store.frame("SELECT name, value, source FROM settings ORDER BY ALL").rows()
    assert ("schedulerparameters", "bf_interval=3,bf_continue", 1) in rows
    assert ("schedulerparameters", "bf_interval=3", 2) in rows
    assert not [row for row in rows if "pass" in row[0] or "auth" in row[0] or "secret" in row[1]]
    assert not is_stored("ResumeProgram")
    assert not is_stored("AccountingStoragePass")


def test_a_rejected_password_is_not_shown() -> None:
    sink = Loose()
    load_into(sink, site_format("conf"), "ClusterName=x\nAccountingStoragePass=hunter2 = =\n")
    assert sink.rows_in == 2
    assert [raw for _, _, raw in sink.rejects if b"hunter2" in raw] == []


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Include /etc/slurm/nodes.conf", "names another file"),
        ("NodeName=n[1-999999999999] CPUs=4", "host list of more than 65536 names"),
        ("NodeName=n[1-2 CPUs=4", "host list cannot be read"),
        ("NodeName=n1 CPUs=four", "whole number"),
        ("NodeName=n1 Gres=gpu:a100:x(", "no generic resource"),
        ("PartitionName=p Nodes=n[1-", "host list cannot be read"),
        ("just words", "not Key=Value words"),
        ("Key=1 loose words", "not Key=Value words"),
    ],
)
def test_statements_that_cannot_be_read(line: str, reason: str) -> None:
    found = rejected("conf", f"ClusterName=lab\n\n# nothing\n{line}\nNodeName=ok CPUs=1\n")
    assert [(number, reason in text) for number, text in found] == [(4, True)]


def test_gpus_of_gres_conf_only_fill_gaps(store: Store) -> None:
    load(
        site_format("conf"),
        "NodeName=gpu003 Gres=gpu:v100:2 CPUs=4\nNodeName=gpu001 CPUs=4 RealMemory=1\n",
        store,
        **PLACE,
    )
    sink = load(site_format("gres_conf"), GRES, store, **PLACE)
    assert (sink.rows_in, sink.rejects) == (5, [])
    found = {name: (row["gpus_labelled"], row["gpu_type"]) for name, row in machines(store).items()}
    # slurm.conf said that gpu001 has none and that gpu003 has 2: what it schedules counts
    assert found == {"gpu001": (0, "a100"), "gpu002": (8, "a100"), "gpu003": (2, "v100")}


def test_topologies_in_yaml(store: Store) -> None:
    sink = load(site_format("topology_yaml"), YAML, store, **PLACE)
    assert sink.rejects == []
    racks = {name: row["rack"] for name, row in machines(store).items()}
    assert racks == {"gpu001": "leaf1", "gpu002": "leaf1", "gpu003": "leaf2", "c1-1": "leaf2"}


def test_yaml_without_a_default_takes_the_first_topology_with_nodes(store: Store) -> None:
    load(site_format("topology_yaml"), YAML.replace("cluster_default: true", "cluster_default: false"), store, **PLACE)
    assert {row["rack"] for row in machines(store).values()} == {"b1"}


def test_yaml_in_flow_style_is_rejected() -> None:
    text = "- topology: t\n  tree:\n    switches:\n      - {switch: s1, nodes: n1}\n"
    assert rejected("topology_yaml", text) == [(4, "not key: value in block style")]


def test_blocks_are_racks(store: Store) -> None:
    text = "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n3 # last\nBlockSizes=2,4\n"
    assert load(site_format("topology"), text, store, **PLACE).rejects == []
    assert {name: row["rack"] for name, row in machines(store).items()} == {"n1": "b1", "n2": "b1", "n3": "b2"}


def test_switch_statements_that_cannot_be_read() -> None:
    found = rejected("topology", TOPOLOGY + "SwitchName=x Nodes=n[1-999999999999]\nNodes=n1\n")
    assert [number for number, _ in found] == [4, 5]


@pytest.mark.parametrize("limits_first", [True, False])
def test_the_limit_of_a_partitions_own_qos_is_its_quota(limits_first: bool, store: Store) -> None:
    sources = [("partitions", PARTITIONS), ("limits", QOS)]
    for name, text in reversed(sources) if limits_first else sources:
        assert load(site_format(name), text, store, **PLACE).rejects == []
    rows = store.frame("SELECT queue, quota_gpus, quota_source FROM queues ORDER BY ALL").rows()
    assert rows == [("cpu", None, None), ("gpu", 24.0, "configured")]


def test_a_limit_that_was_lifted_is_no_quota_any_more(store: Store) -> None:
    load(site_format("partitions"), PARTITIONS, store, **PLACE)
    load(site_format("limits"), QOS, store, **PLACE)
    store.execute("DELETE FROM gpu_limits")
    load(site_format("limits"), QOS.replace("gres/gpu=24,", ""), store, **PLACE)
    rows = store.frame("SELECT queue, quota_gpus, quota_source FROM queues ORDER BY ALL").rows()
    assert rows == [("cpu", None, None), ("gpu", None, None)]


def limits(store: Store) -> list[tuple[object, ...]]:
    columns = 'scope, account, parent, "user", partition, qos, limit_kind, gpu_type, gpus'
    return store.frame(f"SELECT {columns} FROM gpu_limits ORDER BY ALL").rows()


def test_limits_of_qos(store: Store) -> None:
    load(site_format("limits"), QOS, store, **PLACE)
    assert limits(store) == [
        ("qos", None, None, None, None, "capped", "per_user", None, 8.0),
        ("qos", None, None, None, None, "part-gpu", "group", "a100", 16.0),
        ("qos", None, None, None, None, "part-gpu", "group", None, 24.0),
        ("qos", None, None, None, None, "part-gpu", "job", None, 8.0),
    ]


def test_limits_of_associations(store: Store) -> None:
    sink = load(site_format("limits"), ASSOC, store, **PLACE)
    assert (sink.rows_in, sink.rows_loaded) == (4, 4)
    assert limits(store) == [
        ("account", "teaching", None, None, None, None, "group", None, 12.0),
        ("cluster", "root", None, None, None, None, "group", None, 40.0),
        ("user", "teaching", None, "erin", "a100", None, "job", None, 2.0),
    ]


def test_limits_of_a_dump(store: Store) -> None:
    sink = load(site_format("sacctmgr_dump"), DUMP, store, **PLACE)
    assert (sink.rows_in, sink.rejects) == (6, [])
    assert limits(store) == [
        ("account", "teaching", "root", None, None, None, "group", None, 12.0),
        ("user", "teaching", None, "erin", None, None, "job", None, 2.0),
    ]


def test_limits_that_are_none_are_rejected() -> None:
    found = rejected("limits", ASSOC.replace("gres/gpu=12", "gres/gpu=many"))
    assert found == [(3, "gres/gpu is not a whole number")]


def test_the_real_configuration(store: Store) -> None:
    files = ("slurm.conf", "gres.conf", "topology.conf", "scontrol_partition.txt", "scontrol_config.txt")
    names = ("conf", "gres_conf", "topology", "partitions", "config")
    for name, file in zip(names, files, strict=True):
        assert load(site_format(name), real("22.05.8", file).read_bytes(), store, **PLACE).rejects == [], file
    found = machines(store)
    assert sum(row["gpus"] for row in found.values()) == 48
    assert {row["partition"] for row in found.values()} == {"gpu", "cpu"}
    assert {row["rack"] for row in found.values()} == {"leaf1", "leaf2", "leaf3", "leaf4", "leafc"}
    members = store.frame("SELECT queue, count(*) FROM queue_machines GROUP BY ALL ORDER BY ALL").rows()
    assert members == [("a100", 4), ("cpu", 2), ("debug", 1), ("gpu", 8), ("preempt", 10), ("v100", 4)]
    queues = store.frame(f"SELECT queue FROM queues WHERE cluster = '{CLUSTER}' ORDER BY ALL")["queue"].to_list()
    assert queues == ["a100", "cpu", "debug", "gpu", "preempt", "v100"]
    settings = dict(store.frame("SELECT name, value FROM settings").rows())
    assert settings["preempttype"] == "preempt/qos"


def test_the_real_limits(store: Store) -> None:
    for name, file in (
        ("limits", "sacctmgr_assoc.txt"),
        ("limits", "sacctmgr_qos.txt"),
        ("sacctmgr_dump", "sacctmgr_dump.cfg"),
    ):
        assert load(site_format(name), real("22.05.8", file).read_bytes(), store, **PLACE).rejects == [], file
    assert limits(store) == [
        ("account", "teaching", "root", None, None, None, "group", None, 12.0),
        ("account", "teaching", None, None, None, None, "group", None, 12.0),
        ("qos", None, None, None, None, "capped", "per_user", None, 8.0),
    ]
