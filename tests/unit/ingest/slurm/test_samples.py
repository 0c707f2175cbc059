"""Samples of squeue and sinfo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.ingest.slurm.site.samples import SINFO as SINFO_COLUMNS
from gpuctl.ingest.slurm.site.samples import SQUEUE as SQUEUE_COLUMNS
from gpuctl.ingest.slurm.site.samples import Job, jobs_of, reason_of
from tests.philly_log import load, load_into, new_store
from tests.slurm_site_files import CLUSTER, PLACE, SINFO, SQUEUE, Loose, real, site_format

if TYPE_CHECKING:
    from pathlib import Path

JOBS, NODES = site_format("squeue_samples"), site_format("sinfo_samples")


def loaded(fmt: object, text: str) -> Loose:
    sink = Loose()
    load_into(sink, fmt, text)  # type: ignore[arg-type]
    return sink


def test_reasons_of_jobs_that_wait() -> None:
    sink = loaded(JOBS, SQUEUE)
    assert (sink.rows_in, sink.rows_loaded, sink.rejects) == (7, 7, [])
    rows = sink.tables["queue_samples"]
    keys = ("job", "state", "reason", "detail", "array_job", "array_task")
    assert [tuple(row[k] for k in keys) for row in rows] == [
        ("7", "PENDING", "ReqNodeNotAvail", "UnavailableNodes:gpu[001-004]", None, None),
        ("11", "PENDING", "Priority", None, "11", "4"),
        *(("11", "PENDING", "JobArrayTaskLimit", None, "11", task) for task in ("5", "7", "9", "12")),
        ("8", "CONFIGURING", "None", None, None, None),
        ("9", "PENDING", "Nodes required for job are DOWN, DRAINED or reserved", None, None, None),
    ]
    assert {row["ts"].isoformat() for row in rows} == {"2026-11-20T21:04:38.800000+00:00"}


def test_the_files_of_gpuctl_sample() -> None:
    line = "\x1f".join(("1795208678.062", "3", "3", "PD", "(JobHeldUser)", "gpu", ""))
    text = "\x1f".join(SQUEUE_COLUMNS) + f"\n{line}\n" + "\x1f".join(SQUEUE_COLUMNS) + f"\n{line}\n"
    assert JOBS.sniff("x", text.encode())
    sink = loaded(JOBS, text)
    assert (sink.rows_in, sink.rejects) == (4, [])
    assert [(r["state"], r["reason"]) for r in sink.tables["queue_samples"]] == [("PENDING", "JobHeldUser")] * 2
    node = "\x1f".join(("1795208678.062", "gpu001", "mixed", "gpu:a100:8", "gpu:a100:3(IDX:0-2)", "a | b"))
    text = "\x1f".join(SINFO_COLUMNS) + f"\n{node}\n"
    assert NODES.sniff("x", text.encode())
    assert [r["gpus_used"] for r in loaded(NODES, text).tables["machine_samples"]] == [3.0]


def test_gpus_in_use_once_a_machine_and_time() -> None:
    sink = loaded(NODES, SINFO)
    assert (sink.rows_in, sink.rows_loaded) == (4, 4)
    rows = [(r["machine"], r["gpus_used"], r["state"]) for r in sink.tables["machine_samples"]]
    assert rows == [("c1-1", 0.0, "idle"), ("gpu001", 3.0, "mixed"), ("gpu001", 0.0, "drained*")]


@pytest.mark.parametrize(
    ("job", "array", "expected"),
    [
        ("12", "12", [Job("12", None, None)]),
        ("14", "11_0", [Job("14", "11", "0")]),
        ("11_4", "", [Job("11", "11", "4")]),
        ("11_[1-2]", "", [Job("11", "11", "1"), Job("11", "11", "2")]),
        ("11", "11_[1-2%1]", [Job("11", "11", "1"), Job("11", "11", "2")]),
        ("11", "11_[1,3,5,...]", [Job("11", "11", None)]),
        ("13", "13+0", [Job("13", None, None)]),
    ],
)
def test_jobs_of_a_line(job: str, array: str, expected: list[Job]) -> None:
    assert jobs_of(job, array) == expected


def test_reasons_are_split_at_the_code() -> None:
    assert reason_of("ReqNodeNotAvail, May be reserved for other job") == (
        "ReqNodeNotAvail",
        "May be reserved for other job",
    )
    assert reason_of("(Resources)") == ("Resources", None)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("soon|1|1|PENDING|x|p|q", "neither a sample nor a header"),
        ("12|1|1|PENDING|x|p|q", "time is not a number of seconds"),
        ("1795208678.8|x|x|PENDING|x|p|q", "no job id"),
        ("1795208678.8|1|1|PEND ING|x|p|q", "no state of a job"),
        ("1795208678.8|1|1", "not 6 columns"),
        ("1795208678.8|1|1_[0-99999999]|PENDING|x|p|q", "more than 65536 array tasks"),
        ("1795208678.8|1|1|PENDING|" + "x" * 5000 + "|p|q", "more than 4096 characters"),
    ],
)
def test_lines_that_cannot_be_read(row: str, reason: str) -> None:
    sink = loaded(JOBS, SQUEUE + row + "\n")
    assert [number for number, _, _ in sink.rejects] == [8]
    assert reason in sink.reasons[0]


def test_tasks_get_the_id_of_their_own_job_whichever_is_first(tmp_path: Path) -> None:
    task = (
        "INSERT INTO job_rows (cluster, job, array_job, array_task, state, attempts, quirks, source) "
        f"VALUES ('{CLUSTER}', '14', '11', '4', 'completed', 1, [], 9)"
    )
    found = []
    for first in ("jobs", "samples"):
        folder = tmp_path / first
        folder.mkdir()
        with new_store(folder) as store:
            if first == "jobs":
                store.execute(task)
            load(JOBS, SQUEUE, store, **PLACE)
            if first == "samples":
                store.execute(task)
                load(JOBS, SQUEUE.splitlines()[0] + "\n", store, **PLACE)
            rows = store.frame("SELECT job FROM queue_samples WHERE array_job = '11' ORDER BY array_task")
            found.append(rows["job"].to_list())
    assert found == [["11", "14", "11", "11", "11"]] * 2


def test_the_real_samples(tmp_path: Path) -> None:
    import gzip

    with new_store(tmp_path) as store:
        nodes = load(NODES, real("22.05.8", "sinfo_samples.txt").read_bytes(), store, **PLACE)
        assert (nodes.rows_in, nodes.rejects) == (870, [])
        packed = real("22.05.8", "squeue_samples.txt.gz").read_bytes()
        jobs = load(JOBS, gzip.decompress(packed), store, **PLACE)
        assert (jobs.rows_in, jobs.rejects) == (35988, [])
        assert store.value("SELECT count(*) FROM queue_samples") == 35988 - 1 - 3256
        assert store.value("SELECT count(*) FROM queue_samples WHERE reason = 'ReqNodeNotAvail'") == 10242
        used = store.frame("SELECT max(gpus_used) AS most FROM machine_samples GROUP BY machine ORDER BY most")
        assert used["most"].to_list() == [0.0] * 2 + [4.0] * 4 + [8.0] * 4
