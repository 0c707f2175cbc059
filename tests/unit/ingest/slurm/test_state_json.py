"""``--json`` of squeue, sinfo and scontrol against their texts of the same second, as several releases print it."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.ingest.formats import slurm_state_json
from gpuctl.ingest.pipeline.detect import detect
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.store.database import Store
from tests.slurm_loading import SHARED

if TYPE_CHECKING:
    from collections.abc import Callable

    Json = dict[str, Any]

STATE = Path(__file__).resolve().parents[3] / "fixtures" / "slurm" / "state"
SQUEUE: Json = json.loads((STATE / "squeue.json").read_text())
SINFO: Json = json.loads((STATE / "sinfo.json").read_text())
AT = 1795417100
MACHINES = "SELECT machine, gpus_labelled, gpu_type, cpus, mem_mb, partition FROM machines ORDER BY ALL"
MEMBERS = "SELECT queue, machine FROM queue_machines ORDER BY ALL"
EXACT = "SELECT job, submit_ts, start_ts, machine, gpus, gpu_indices FROM exact_placements ORDER BY ALL"
SAMPLES = "SELECT ts, job, reason, state, detail, array_job, array_task FROM queue_samples ORDER BY ALL"


def answer_rows(folder: Path, files: dict[str, str], sql: str) -> list[tuple[Any, ...]]:
    """What a query finds after loading some files, all of whose rows must have been loaded."""
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    report = ingest([folder], folder / "x.duckdb", cluster="lab")
    assert not report.failed
    assert [source.reasons for source in report.sources] == [()] * len(files), report
    with Store(folder / "x.duckdb") as store:
        return store.frame(sql).rows()


def as_told(document: Json) -> Json:
    """As 22.05 prints it (openapi v0.0.38)."""
    return document


def as_objects(document: Json) -> Json:
    """As from 23.11 on (data_parser v0.0.40 and later): numbers as objects, states as lists, the time of the answer."""
    made = copy.deepcopy(document)
    for job in made.get("jobs", []):
        for key in ("submit_time", "start_time", "array_job_id", "array_task_id", "time_limit"):
            job[key] = {"set": job[key] is not None, "infinite": False, "number": job[key] or 0}
        job["job_state"] = [job["job_state"]]
    for node in made.get("nodes", []):
        node["state"] = [node["state"].upper(), *node.pop("state_flags")]
    made["last_backfill"] = {"set": True, "infinite": False, "number": AT - 5}
    made["last_update"] = {"set": True, "infinite": False, "number": AT}
    made["meta"] = {"plugin": {"type": "", "data_parser": "data_parser/v0.0.41"}, "slurm": {"version": {"major": "24"}}}
    return made


RELEASES = [as_told, as_objects]


@pytest.mark.parametrize("release", RELEASES)
def test_nodes_are_what_scontrol_show_node_says(tmp_path: Path, release: Callable[[Json], Json]) -> None:
    as_text = {"scontrol_node.txt": (STATE / "scontrol_node.txt").read_text()}
    as_json = {"sinfo.json": json.dumps(release(SINFO))}
    for number, sql in enumerate((MACHINES, MEMBERS)):
        expected = answer_rows(tmp_path / f"t{number}", as_text, sql)
        assert expected
        assert answer_rows(tmp_path / f"j{number}", as_json, sql) == expected


@pytest.mark.parametrize("release", RELEASES)
def test_jobs_have_the_gpus_that_scontrol_show_job_says(tmp_path: Path, release: Callable[[Json], Json]) -> None:
    expected = answer_rows(tmp_path / "t", {"scontrol_job.txt": (STATE / "scontrol_job.txt").read_text()}, EXACT)
    assert len({row[3] for row in expected if row[0] == "1"}) == 2
    assert answer_rows(tmp_path / "j", {"squeue.json": json.dumps(release(SQUEUE), indent=2)}, EXACT) == expected


def test_waiting_jobs_are_sampled_if_the_answer_is_dated(tmp_path: Path) -> None:
    expected = answer_rows(tmp_path / "t", {"squeue_samples.txt": (STATE / "squeue_samples.txt").read_text()}, SAMPLES)
    assert {row[2] for row in expected} == {"JobArrayTaskLimit", "AssocGrpGRES", "JobHeldUser"}
    assert answer_rows(tmp_path / "j", {"squeue.json": json.dumps(as_objects(SQUEUE))}, SAMPLES) == expected
    # 22.05 does not say when it was so
    assert answer_rows(tmp_path / "o", {"squeue.json": json.dumps(SQUEUE)}, SAMPLES) == []


def test_gpus_in_use_are_sampled_likewise(tmp_path: Path) -> None:
    text = (STATE / "scontrol_node.txt").read_text()
    used = re.findall(r"NodeName=(\S+) .*? GresUsed=gpu:(?:\w+:)?(\d+)", text)
    sql = "SELECT machine, gpus_used, epoch(ts) FROM machine_samples ORDER BY ALL"
    found = answer_rows(tmp_path / "j", {"sinfo.json": json.dumps(as_objects(SINFO))}, sql)
    assert found == sorted((machine, float(gpus), AT) for machine, gpus in used)
    assert sum(row[1] for row in found) > 4


def rows_of_sinfo(nodes: list[Json]) -> Json:
    """As sinfo prints from 23.11 on: a row a partition and kind of node; the nodes of a row named in a list."""
    rows = [
        {
            "port": 0, "node": {"state": [node["state"].upper()]},
            "nodes": {"total": 1, "hostnames": [], "nodes": [node["name"]]},
            "cpus": {"minimum": node["cpus"], "maximum": node["cpus"]},
            "memory": {"minimum": node["real_memory"], "maximum": node["real_memory"]},
            "gres": {"total": node["gres"], "used": node["gres_used"]}, "partition": {"name": partition},
        }
        for node in nodes for partition in node["partitions"]
    ]  # fmt: skip
    return {"sinfo": rows, "last_update": {"set": True, "infinite": False, "number": AT}, "meta": {"slurm": {}}}


def test_rows_of_sinfo_give_the_same_for_single_nodes_as_nodes(tmp_path: Path) -> None:
    answer = json.dumps(rows_of_sinfo(SINFO["nodes"]))
    nodes = json.dumps(as_objects(SINFO))
    for number, sql in enumerate((MACHINES, MEMBERS, "SELECT machine, gpus_used FROM machine_samples ORDER BY ALL")):
        assert answer_rows(tmp_path / f"a{number}", {"sinfo.json": answer}, sql) == (
            answer_rows(tmp_path / f"b{number}", {"sinfo.json": nodes}, sql)
        )


def test_a_row_of_several_nodes_does_not_state_how_many_gpus_each_has(tmp_path: Path) -> None:
    [row, *_] = rows_of_sinfo([node for node in SINFO["nodes"] if node["name"] == "gpu001"])["sinfo"]
    row["nodes"]["nodes"] = ["gpu[001-002]"]
    answer = json.dumps({"sinfo": [row], "meta": {"slurm": {}}})
    sql = "SELECT machine, gpus, cpus FROM machines ORDER BY ALL"
    assert answer_rows(tmp_path / "x", {"sinfo.json": answer}, sql) == [("gpu001", None, 64), ("gpu002", None, 64)]


@pytest.mark.parametrize("nested", [True, False])
def test_partitions_are_what_scontrol_show_partition_says(tmp_path: Path, nested: bool) -> None:
    text = (STATE / "scontrol_partition.txt").read_text()
    listed = re.findall(r"PartitionName=(\S+) .*? QoS=(\S+) .*? Nodes=(\S+)", text)
    partitions = [
        {"name": name, "nodes": {"configured": nodes, "total": 1}, "qos": {"assigned": "" if qos == "N/A" else qos}}
        if nested
        else {"name": name, "nodes": nodes, "qos": qos}
        for name, qos, nodes in listed
    ]
    answer = json.dumps({"partitions": partitions, "meta": {"Slurm": {}}})
    for number, sql in enumerate((MEMBERS, "SELECT queue, qos FROM queues ORDER BY ALL")):
        expected = answer_rows(tmp_path / f"t{number}", {"scontrol_partition.txt": text}, sql)
        assert expected
        assert answer_rows(tmp_path / f"j{number}", {"scontrol_partition.json": answer}, sql) == expected


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"job_id": None}, "no job_id"),
        ({"gres_detail": ["gpu:a100:1(IDX:0)"] * 3}, "gres_detail has not one text for each node"),
        ({"gres_detail": ["gpu:=/"]}, "no generic resource"),
        ({"job_state": 7}, "job_state is not a list of words"),
        ({"nodes": "gpu[1-999999999]"}, "host list"),
        ({"submit_time": "yesterday"}, "a number that is not whole"),
    ],
)
def test_only_unreadable_rows_are_rejected(tmp_path: Path, change: Json, reason: str) -> None:
    document = copy.deepcopy(SQUEUE)
    held = next(job for job in document["jobs"] if job["job_id"] == 2)
    held |= change
    (tmp_path / "squeue.json").write_text(json.dumps(document))
    (source,) = ingest([tmp_path / "squeue.json"], tmp_path / "x.duckdb").sources
    assert (source.rows_in, source.rows_rejected) == (len(document["jobs"]), 1)
    assert reason in source.reasons[0][0]


@pytest.mark.parametrize(
    "text",
    ['{"jobs": [{"id": 1, "subtime": 2}]}', '{"nodes": {"node": []}}', '{"jobs": []}', "{}", "[]", "", '{"sinfo": 7}'],
)
def test_the_jobs_and_nodes_of_others_are_not_taken(text: str) -> None:
    assert slurm_state_json.FORMAT.sniff("x.json", text.encode()) is None


@pytest.mark.parametrize(
    ("text", "alternative"),
    [
        ("             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n", "squeue --json"),
        ("ACCOUNT|TRES_PER_NODE|JOBID|NAME|ST|USER|NODELIST(REASON)|X\n", "squeue --json"),
        ("PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n", "sinfo -N --json"),
        ("          JOBID PARTITION     USER   PRIORITY       SITE        AGE\n", "sprio of Slurm"),
        ("*" * 55 + "\nsdiag output at Fri Nov 20 21:13:00 2026\n", "sdiag of Slurm"),
        ("*" * 55 + "\nWelcome\n", None),
        ("hello\n", None),
    ],
)
def test_tables_for_people_are_not_read_and_an_alternative_is_named(text: str, alternative: str | None) -> None:
    found, why, ambiguous = detect("x.txt", text.encode(), all_formats())
    assert (found, ambiguous) == (None, False)
    assert (alternative in why) if alternative else why == "no known format"


def test_the_labs_own_answers(tmp_path: Path) -> None:
    lab = SHARED / "22.05.8"
    if not lab.is_dir():
        pytest.skip("the real files are not on this machine")
    report = ingest([lab / "squeue.json.gz", lab / "sinfo.json"], tmp_path / "j.duckdb", cluster="lab")
    assert [(s.format, s.rows_rejected) for s in report.sources] == [("slurm-state-json", 0)] * 2
    ingest([lab / "scontrol_node.txt"], tmp_path / "t.duckdb", cluster="lab")
    with Store(tmp_path / "j.duckdb") as one, Store(tmp_path / "t.duckdb") as other:
        assert one.frame(MACHINES).rows() == other.frame(MACHINES).rows()
