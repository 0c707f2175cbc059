"""What the cells of SWF mean: missing waits, memory, partitions, cancelled jobs, and jobs that follow others."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import formats_for
from gpuctl.replay.inputs.trace import read_trace
from gpuctl.replay.run import replay
from gpuctl.store.database import Store
from gpuctl.workloads.convert import convert

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from gpuctl.replay.models.records import Cluster, Workload

HEADER = "; UnixStartTime: 1500000000\n; MaxProcs: 10\n; Partition: 3 fat nodes\n"
CELLS = ("job", "submit", "wait", "run", "procs", "cpu", "used", "asked", "limit", "asked_memory", "status", "user",
         "group", "app", "queue", "partition", "preceding", "think")  # fmt: skip


def row(job: int, **values: object) -> str:
    cells = dict.fromkeys(CELLS, -1) | {"job": job, "submit": 0, "wait": 0, "run": 60, "procs": 2, "status": 1} | values
    return " ".join(str(cells[name]) for name in CELLS) + "\n"


def loaded(text: str, folder: Path, unit: str = "gpu") -> Store:
    folder.mkdir(exist_ok=True)
    (folder / "log.swf").write_text(HEADER + text)
    ingest([folder / "log.swf"], folder / "t.duckdb", cluster="c", formats=formats_for(None, swf_unit=unit))
    return Store(folder / "t.duckdb")


def ask(text: str, sql: str, folder: Path) -> list[tuple[Any, ...]]:
    with loaded(text, folder) as store:
        return store.execute(sql).fetchall()


def fifo(workload: Workload, cluster: Cluster) -> pl.DataFrame:
    [outcome] = replay(workload, cluster, [("fifo", {})])
    return outcome.jobs


def replayed(text: str, folder: Path) -> tuple[Workload, dict[str, float]]:
    with loaded(text, folder) as store:
        workload, cluster = read_trace(store)
    jobs = fifo(workload, cluster)
    return workload, dict(zip(jobs["job"], jobs["start_s"], strict=True))


@pytest.mark.parametrize(
    ("values", "mem_mb"),
    [
        ({"used": 0, "asked_memory": 2048, "asked": 2}, 4),
        ({"used": 512, "asked_memory": 2048, "asked": 2}, 4),
        # a request is for the processors that were requested
        ({"used": 512, "asked_memory": 2048, "asked": 8}, 16),
        ({"asked_memory": 2048}, 4),
        ({"used": 1024}, 2),
        ({"used": 0}, None),
        ({}, None),
    ],
)
def test_memory_is_what_was_requested_for_each_processor(
    values: dict[str, int], mem_mb: int | None, tmp_path: Path
) -> None:
    assert ask(row(1, **values), "SELECT mem_mb FROM jobs", tmp_path) == [(mem_mb,)]


def test_partitions_sizes_and_endings(tmp_path: Path) -> None:
    text = (
        row(1, partition=3) + row(2, partition=4, procs=11)
        # cancelled while it waited, for 25 s
        + row(3, status=5, run=-1, wait=25) + row(4, status=5, run=-1, wait=-1)
        + row(5, status=5, run=30) + row(6, status=1, run=-1) + row(7, procs=0, asked=6)
    )  # fmt: skip
    times = "epoch(start_ts) - 1500000000, epoch(end_ts) - 1500000000"
    sql = f"SELECT partition, gpus, state, {times}, quirks FROM jobs ORDER BY job"
    assert ask(text, sql, tmp_path) == [
        ("fat nodes", 2.0, "completed", 0.0, 60.0, []),
        ("4", 11.0, "completed", 0.0, 60.0, ["above_max_procs"]),
        (None, 2.0, "killed", None, 25.0, []),
        (None, 2.0, "killed", None, None, ["no_wait"]),
        (None, 2.0, "killed", 0.0, 30.0, []),
        (None, 2.0, "completed", 0.0, None, ["no_run_time"]),
        (None, 6.0, "completed", 0.0, 60.0, ["size_not_as_asked"]),
    ]
    marks = "SELECT job, quirks FROM attempts WHERE list_has_any(quirks, ['no_end', 'end_unknown', 'no_start'])"
    with Store(tmp_path / "t.duckdb") as store:
        assert store.execute(marks).fetchall() == [("6", ["end_unknown", "nodes_unknown"])]
        assert store.value("SELECT list(job ORDER BY job)::VARCHAR FROM attempts WHERE released_ts IS NULL") == "[4]"


@pytest.mark.parametrize("unit", ["gpu", "core", "node"])
def test_a_size_beyond_the_columns_costs_its_row_alone(unit: str, tmp_path: Path) -> None:
    with loaded(row(1) + row(2, procs=2**31) + row(3, procs=10**20), tmp_path, unit) as store:
        assert store.execute("SELECT list(job) FROM jobs").fetchall() == [(["1"],)]
        rejects = store.execute("SELECT line_no, reason FROM rejects ORDER BY line_no").fetchall()
        assert rejects == [(5, "a number is out of range"), (6, "a number is out of range")]


def test_jobs_without_waits_are_replayed(tmp_path: Path) -> None:
    text = row(1, wait=-1, procs=8) + row(2, wait=-1, submit=5, procs=8) + row(3, wait=7, submit=7)
    workload, starts = replayed(text, tmp_path)
    assert starts == {"1": 0.0, "2": 60.0, "3": 60.0}
    assert "2 jobs have a run time and no start" in " ".join(map(str, workload.notes))


def test_a_job_follows_another_one_after_its_think_time(tmp_path: Path) -> None:
    # 4 follows two others, as Alea writes it; 5 was submitted long after that; 6 follows a job that the log lacks
    text = (
        row(1, run=50) + row(2, wait=-1, preceding=1, think=0) + row(3, wait=-1, preceding=2, think=40)
        + row(4, wait=-1, preceding="1&3", think=10) + row(5, submit=900, wait=-1, preceding=1, think=3)
        + row(6, wait=-1, preceding=77, think=5)
    )  # fmt: skip
    workload, starts = replayed(text, tmp_path)
    assert starts == {"1": 0.0, "2": 50.0, "3": 150.0, "4": 220.0, "5": 900.0, "6": 0.0}
    assert "1 dependency on jobs outside the replay is dropped" in map(str, workload.notes)


def test_dependencies_that_cannot_be_are_dropped(tmp_path: Path) -> None:
    # the log has 2 start while 1 ran, as models do that write 0 for all waits; 3 follows itself; 4 and 5 each other
    text = (
        row(1, run=50) + row(2, preceding=1) + row(3, preceding=3) + row(4, wait=-1, preceding=5)
        + row(5, wait=-1, preceding=4)
    )  # fmt: skip
    workload, starts = replayed(text, tmp_path)
    assert starts == dict.fromkeys("1345", 0.0) | {"2": 50.0}
    notes = [str(one) for one in workload.notes]
    assert any(one.startswith("1 dependency is contradicted by the recorded times") for one in notes)
    assert "2 dependencies in a circle are dropped" in notes
    with Store(tmp_path / "t.duckdb") as store:
        assert store.execute("SELECT job, quirks FROM jobs WHERE quirks <> [] ORDER BY job").fetchall() == [
            ("3", ["preceding_unusable"]), ("4", ["no_wait"]), ("5", ["no_wait"]),
        ]  # fmt: skip


def test_a_log_in_which_every_job_follows_one_has_a_filler_there(tmp_path: Path) -> None:
    text = "".join(row(k, preceding=1, think=1) for k in range(1, 4))
    assert ask(text, "SELECT count(*) FROM job_dependencies", tmp_path) == [(0,)]
    with Store(tmp_path / "t.duckdb") as store:
        assert store.value("SELECT count(*) FROM jobs WHERE list_contains(quirks, 'preceding_unusable')") == 3


@pytest.mark.parametrize("to", ["swf", "jobs-csv"])
def test_converted_jobs_keep_their_dependencies(to: str, tmp_path: Path) -> None:
    text = (
        row(1, asked_memory=2048, partition=3) + row(2, wait=-1, preceding=1, think=40) + row(3, wait=-1, preceding=2)
        + row(4, wait=33, run=-1, status=5)
    )  # fmt: skip
    _, starts = replayed(text, tmp_path / "first")
    with Store(tmp_path / "first" / "t.duckdb") as store:
        made = io.BytesIO()
        convert(store, "c", to, made)
    if to == "swf":
        again = made.getvalue().decode()
        assert replayed(again, tmp_path / "second")[1] == starts
        sql = (
            "SELECT mem_mb, partition, epoch(end_ts) - epoch(submit_ts) FROM jobs WHERE job IN ('1', '4') ORDER BY job"
        )
        assert ask(again, sql, tmp_path / "third") == [(4, "fat nodes", 60.0), (None, None, 33.0)]
    else:
        from gpuctl.replay.inputs.clusters import parse_cluster
        from gpuctl.replay.inputs.job_csv import read_jobs

        (tmp_path / "jobs.csv").write_bytes(made.getvalue())
        jobs = read_jobs(tmp_path / "jobs.csv")
        found = fifo(jobs, parse_cluster("1x8", jobs))
        assert [at - found["submit_s"][0] for at in found["start_s"]] == list(starts.values())
