"""``scontrol show node``, and how several sources put together one row a machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.slurm.gres import read_gres, read_tres
from tests.philly_log import load, load_into, new_store
from tests.slurm_site_files import (
    CLUSTER,
    CONF,
    GRES,
    NODES,
    PLACE,
    SHOWN_TOPOLOGY,
    TOPOLOGY,
    Loose,
    machines,
    real,
    site_format,
)

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = site_format("nodes")
FIELDS = ("gpus_labelled", "gpu_type", "cpus", "mem_mb", "partition")


def oneline(text: str) -> str:
    return "".join(" ".join(block.split("\n")) + "\n" for block in text.strip().split("\n\n"))


@pytest.mark.parametrize("text", [NODES, oneline(NODES)])
def test_block_and_oneline_give_the_same(text: str, tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        sink = load(FORMAT, text, store, **PLACE)
        assert (sink.rows_in, sink.rows_loaded) == (2, 2)
        found = machines(store)
        assert [found["c1-1"][f] for f in FIELDS] == [0, None, 32, 120000, "cpu"]
        assert [found["gpu001"][f] for f in FIELDS] == [8, "a100", 64, 500000, "gpu"]
        queues = store.frame("SELECT queue FROM queues ORDER BY ALL")["queue"].to_list()
        assert queues == ["a100", "cpu", "debug", "gpu", "preempt"]


def test_without_gres_the_configured_tres_count_typed_and_untyped_once(tmp_path: Path) -> None:
    text = NODES.replace("   Gres=gpu:a100:8(S:0-1)\n", "")
    with new_store(tmp_path) as store:
        load(FORMAT, text, store, **PLACE)
        assert machines(store)["gpu001"]["gpus_labelled"] == 8


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("CPUTot=64", "CPUTot=many", "whole number"),
        ("Gres=gpu:a100:8(S:0-1)", "Gres=gpu:a100:900000", "more than 100000 GPUs"),
        ("NodeName=gpu001", "NodeName=", "node name"),
        ("NodeName=gpu001", "NodeName=gpu\x1b[31m", "node name"),
    ],
)
def test_a_node_that_cannot_be_read_is_rejected_alone(old: str, new: str, reason: str) -> None:
    sink = Loose()
    load_into(sink, FORMAT, NODES.replace(old, new))
    assert (sink.rows_in, sink.rows_loaded) == (2, 1)
    assert sink.rejects[0][0] == 12
    assert reason in sink.reasons[0]


def test_lines_before_the_first_node_are_one_reject() -> None:
    sink = Loose()
    load_into(sink, FORMAT, "hello\nworld\n" + NODES)
    assert (sink.rows_in, sink.reasons) == (3, ["line outside of any record"])


ORDER = {"nodes": oneline(NODES), "conf": CONF, "topology": TOPOLOGY, "gres_conf": GRES}


ORDERS = [[*ORDER][k:] + [*ORDER][:k] for k in range(len(ORDER))]
"""Each file is the first once, and the last; with the reverse, each comes before and after every other one."""


@pytest.mark.parametrize("order", [*ORDERS, [*reversed(ORDER)]])
def test_one_row_a_machine_whatever_is_first(order: list[str], tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        store.execute(f"INSERT INTO machines (cluster, machine, gpus_observed) VALUES ('{CLUSTER}', 'gpu001', 2)")
        store.execute(f"INSERT INTO queues (cluster, queue) VALUES ('{CLUSTER}', 'gpu')")
        store.execute("INSERT INTO machines (cluster, machine, gpus_observed) VALUES ('other', 'gpu001', 3)")
        for name in order:
            load(site_format(name), ORDER[name], store, **PLACE)
        frame = store.frame(f"SELECT * FROM machines WHERE cluster = '{CLUSTER}'").to_dicts()
        found = {row["machine"]: row for row in frame}
        assert len(frame) == len(found) == 4
        assert [found["gpu001"][f] for f in FIELDS] == [8, "a100", 64, 500000, "gpu"]
        assert found["gpu001"]["gpus_observed"] == 2
        assert {name: row["rack"] for name, row in found.items()} == {
            "gpu001": "leaf1",
            "gpu002": "leaf1",
            "gpu003": "leaf2",
            "c1-1": "leaf2",
        }
        assert found["gpu003"]["gpus_labelled"] == 4
        queues = store.frame(f"SELECT queue FROM queues WHERE cluster = '{CLUSTER}'")["queue"]
        assert queues.len() == queues.n_unique()
        members = store.frame("SELECT queue, machine FROM queue_machines").rows()
        assert len(set(members)) == len(members)
        assert ("debug", "gpu001") in members
        other = store.frame("SELECT gpus_labelled, rack FROM machines WHERE cluster = 'other'").rows()
        assert other == [(None, None)]


def test_topology_as_written_and_as_shown_agree(tmp_path: Path) -> None:
    racks = []
    for number, text in enumerate((TOPOLOGY, SHOWN_TOPOLOGY)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with new_store(folder) as store:
            load(site_format("topology"), text, store, **PLACE)
            racks.append({name: row["rack"] for name, row in machines(store).items()})
    assert racks[0] == racks[1]
    assert len(racks[0]) == 4


@pytest.mark.parametrize(
    ("text", "gpus", "gpu_type", "indices"),
    [
        ("(null)", 0, None, None),
        ("", 0, None, None),
        ("gpu:8", 8, None, None),
        ("gpu", 1, None, None),
        ("gpu:tesla", 1, "tesla", None),
        ("gpu:a100:4(IDX:0-1,4,7)", 4, "a100", (0, 1, 4, 7)),
        ("gpu:a100:2(IDX:0-1),gpu:v100:2(IDX:4-5)", 4, "a100,v100", (0, 1, 4, 5)),
        ("gpu:a100:0(IDX:N/A)", 0, "a100", None),
        ("gpu:a100:2(IDX:0-3)", 2, "a100", None),
        ("gpu:a100(IDX:2-3)", 2, "a100", (2, 3)),
        ("gpu:1g.5gb:7(S:0),mps:400,shard:8", 7, "1g.5gb", None),
        ("gpu:a100:no_consume:4", 4, "a100", None),
        ("craynetwork:4", 0, None, None),
    ],
)
def test_generic_resources(text: str, gpus: int, gpu_type: str | None, indices: tuple[int, ...] | None) -> None:
    assert read_gres(text) == (gpus, gpu_type, indices)


@pytest.mark.parametrize("text", ["gpu:a100:4(IDX:0-99999)", "gpu:a100:4(IDX:3-1)", "gpu:a100:5K", "gpu:8,,x=1"])
def test_generic_resources_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_gres(text)


def test_trackable_resources() -> None:
    assert read_tres("cpu=1,gres/gpu:a100=4,gres/gpu=6,gres/gpumem=3G,gres/shard=2") == {"a100": 4.0, None: 6.0}
    assert read_tres("gres/gpu=-1") == {}
    with pytest.raises(ValueError, match="whole number"):
        read_tres("gres/gpu=x")


@pytest.mark.parametrize("name", ["scontrol_node.txt", "scontrol_node_oneline.txt"])
def test_the_real_cluster(name: str, tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        for file in (name, "scontrol_topology.txt"):
            path = real("22.05.8", file)
            fmt = next(f for f in (FORMAT, site_format("topology")) if f.sniff(file, path.read_bytes()))
            assert load(fmt, path.read_bytes(), store, **PLACE).rejects == []
        found = machines(store)
        gpus = {name: (row["gpus"], row["gpu_type"]) for name, row in found.items() if row["gpus"]}
        assert gpus == {f"gpu00{i}": (8, "a100") if i < 5 else (4, "v100") for i in range(1, 9)}
        assert sum(n for n, _ in gpus.values()) == 48
        assert len(found) - len(gpus) == 2
        assert {row["rack"] for row in found.values()} == {"leaf1", "leaf2", "leaf3", "leaf4", "leafc"}
