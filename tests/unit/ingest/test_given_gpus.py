"""GPUs of nodes as the user gives them: for jobs whose GPUs no source states, and for no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.core.given_gpus import GpusPerNode, read_gpus_per_node
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.result_tables import table_of

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "JobID|User|Partition|Submit|Start|End|State|NNodes|AllocTRES|NodeList"
DAY = "2026-03-02T"


def row(job: int, nodes: int, node_list: str, tres: str = "") -> str:
    times = "|".join(f"{DAY}{time}:00" for time in ("00:00", "00:10", "01:10"))
    return f"{job}|ann|gpu|{times}|COMPLETED|{nodes}|{tres}|{node_list}"


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join([HEADER, *rows]) + "\n", "utf-8")
    return path


def gpus(store_path: Path) -> dict[str, Any]:
    sql = "SELECT j.job, j.gpus, a.gpus AS held FROM jobs AS j JOIN attempts AS a USING (job) ORDER BY job"
    with Store(store_path) as store:
        rows = store.frame(sql).to_dicts()
    assert all(one["gpus"] == one["held"] for one in rows)
    return {one["job"]: one["gpus"] for one in rows}


def test_a_number_is_for_jobs_without_gpus_and_can_be_changed(tmp_path: Path) -> None:
    db = tmp_path / "s.duckdb"
    log = write(tmp_path / "a.txt", row(1, 2, "n[1-2]"), row(2, 1, "n1", "cpu=8,gres/gpu=1,node=1"))
    report = ingest([log], db, cluster="c", gpus_per_node=GpusPerNode(4))
    assert gpus(db) == {"1": 8, "2": 1}, "what a source states stays"
    assert any("1 job whose GPUs no source states: all GPUs of their nodes, as given" in w for w in report.warnings)
    ingest([write(tmp_path / "b.txt", row(3, 3, "n[4-6]"))], db, cluster="c")
    assert gpus(db)["3"] == 12, "kept for later ingests"
    ingest([], db, gpus_per_node=GpusPerNode(2))
    assert gpus(db) == {"1": 4, "2": 1, "3": 6}
    with Store(db) as store:
        found = analyze(store, Options(tables=("overview", "data_quality")))
    assert table_of(found, "overview").frame["gpu_hours"].item() == pytest.approx(11)
    assert any("the GPUs of 2 jobs come from the option --gpus-per-node" in text for text in found.warnings)
    assert found.settings["gpus_per_node"] == "given by the user, for 2 jobs"
    findings = table_of(found, "data_quality").frame["finding"].to_list()
    assert "jobs whose GPUs no source states and the user gave (--gpus-per-node)" in findings


def test_a_file_names_nodes_that_differ(tmp_path: Path) -> None:
    given = tmp_path / "nodes.csv"
    given.write_text('node,gpus\n"n[1-2]",4\nn3,8\nlogin,0\n', "utf-8")
    db = tmp_path / "s.duckdb"
    rows = (row(1, 2, "n[2-3]"), row(2, 1, "login"), row(3, 1, "n9"), row(4, 1, ""))
    ingest([write(tmp_path / "a.txt", *rows)], db, cluster="c", gpus_per_node=read_gpus_per_node(str(given)))
    assert gpus(db) == {"1": 12, "2": 0, "3": None, "4": None}, "a node that is not named stays unknown"
    with Store(db) as store:
        placed = store.frame("SELECT machine, gpus FROM placements WHERE job = '1' ORDER BY machine").rows()
        overview = table_of(analyze(store, Options(tables=("overview",))), "overview").frame
    assert placed == [("n2", 4), ("n3", 8)]
    assert overview["gpus"].item() == 16, "the nodes of the file are those of the cluster"


def test_nodes_of_one_kind_need_no_node_lists(tmp_path: Path) -> None:
    given = tmp_path / "nodes.csv"
    given.write_text('nodes,gpus\n"n[1-8]",4\n', "utf-8")
    db = tmp_path / "s.duckdb"
    ingest([write(tmp_path / "a.txt", row(1, 3, ""))], db, cluster="c", gpus_per_node=read_gpus_per_node(str(given)))
    assert gpus(db) == {"1": 12}


def test_nodes_that_are_loaded_later_take_the_place_of_those_given(tmp_path: Path) -> None:
    db = tmp_path / "s.duckdb"
    given = tmp_path / "nodes.csv"
    given.write_text("node,gpus\nn1,4\n", "utf-8")
    ingest([write(tmp_path / "a.txt", row(1, 1, "n1"))], db, cluster="c", gpus_per_node=read_gpus_per_node(str(given)))
    assert gpus(db) == {"1": 4}
    conf = tmp_path / "slurm.conf"
    conf.write_text("ClusterName=c\nNodeName=n1 Gres=gpu:a100:2 CPUs=8\nPartitionName=gpu Nodes=n1\n", "utf-8")
    ingest([conf], db, cluster="c")
    assert gpus(db) == {"1": 2}, "the configuration states the node's GPUs"
    with Store(db) as store:
        assert store.frame("SELECT machine, gpus FROM machines").rows() == [("n1", 2)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node,gpus\nn1,four\n", "gpus is 'four', expected a whole number from 0 to 1024"),
        ("node,gpus\nn[1-2,4\n", "node is"),
        ("node,gpus\nn1,4\nn1,8\n", "node 'n1' has a second number of GPUs"),
        ("name,gpus\nn1,4\n", "expected a header with the columns node or nodes or machine and gpus"),
        ("node,gpus\n", "has a header and no rows"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=message):
        read_gpus_per_node(str(path))


@pytest.mark.parametrize("text", ["0", "1025", "9" * 400, "-1", "1.5", "no-such-file.csv"])
def test_a_value_that_is_neither_a_number_nor_a_file_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--gpus-per-node"):
        read_gpus_per_node(text)
