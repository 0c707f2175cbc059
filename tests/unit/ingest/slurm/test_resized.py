"""A job whose size changes while it runs, in analyses, replays and explanations."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze.explain import explain
from gpuctl.analyze.options import Options
from gpuctl.core.errors import InputError
from gpuctl.replay.inputs.trace import WORKS, read_trace
from gpuctl.reports.explain import blocks
from gpuctl.store.database import Store
from tests.analyzed_logs import ingested, rows, stored
from tests.sacct_records import text

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Cluster, Workload

WHOLE = {"State": "RESIZING", "Submit": "2026-11-20T10:00:00", "Eligible": "2026-11-20T10:00:00",
         "Start": "2026-11-20T10:00:20", "End": "2026-11-20T11:00:20", "Elapsed": "01:00:00",
         "AllocTRES": "cpu=12,gres/gpu=6", "NodeList": "gpu[001-003]", "NNodes": "3", "NCPUS": "12"}  # fmt: skip
REST = {"Submit": "2026-11-20T11:00:20", "Eligible": "2026-11-20T11:00:20", "Start": "2026-11-20T11:00:20",
        "End": "2026-11-20T14:00:20", "Elapsed": "03:00:00", "AllocTRES": "cpu=4,gres/gpu=2", "NodeList": "gpu001",
        "NNodes": "1", "NCPUS": "4"}  # fmt: skip
GPU_HOURS = 6 + 3 * 2

_JOBCOMP = (
    "JobId=100 UserId=alice(1001) GroupId=alice(1001) Name=train JobState={state} Partition=gpu TimeLimit=600 "
    "StartTime={start} EndTime={end} NodeList={nodes} NodeCnt={count} ProcCnt=12 WorkDir=/w ReservationName= "
    "Tres=cpu=12,gres/gpu={gpus} Account=vision QOS=normal WcKey= Cluster=lab SubmitTime=2026-11-20T10:00:00 "
    "EligibleTime=2026-11-20T10:00:00 DerivedExitCode=0:0 ExitCode=0:0 \n"
)


def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp())


def _tres(gpus: str) -> list[dict[str, Any]]:
    return [{"type": "gres", "name": "gpu", "id": 1001, "count": int(gpus.rpartition("=")[2])}]


def _as_json(record: dict[str, str], states: object) -> dict[str, Any]:
    """A job of ``sacct --json``; states: a text until 23.02, a list after."""
    times = {"submission": "Submit", "eligible": "Eligible", "start": "Start", "end": "End"}
    return {
        "job_id": 100, "name": "train", "user": "alice", "account": "vision", "partition": "gpu", "cluster": "lab",
        "allocation_nodes": int(record["NNodes"]), "nodes": record["NodeList"], "association": {"account": "vision"},
        "state": {"current": states, "reason": "None"},
        "time": {key: _seconds(record[name]) for key, name in times.items()},
        "exit_code": {"status": ["SUCCESS"], "return_code": {"set": True, "infinite": False, "number": 0}},
        "tres": {"allocated": _tres(record["AllocTRES"]), "requested": _tres(record["AllocTRES"])},
    }  # fmt: skip


def _as_row(record: dict[str, str], state: int) -> str:
    """A row of slurmdbd's job_table, as tabs."""
    times = "\t".join(str(_seconds(record[name])) for name in ("Submit", "Eligible", "Start", "End"))
    gpus = record["AllocTRES"].rpartition("=")[2]
    nodes = f"{record['NodeList']}\t{record['NNodes']}"
    return f"0\t100\t{state}\talice\tgpu\ttrain\t{times}\t{nodes}\t1=4,1001={gpus}\t1=4,1001={gpus}\n"


DBD_HEAD = (
    "deleted\tid_job\tstate\tid_user\tpartition\tjob_name\ttime_submit\ttime_eligible\ttime_start\ttime_end\tnodelist\t"
    "nodes_alloc\ttres_alloc\ttres_req\n"
)
TRES_TABLE = "creation_time\tdeleted\tid\ttype\tname\n0\t0\t1001\tgres\tgpu\n"
FORMS = {
    "json, a word": {"sacct.json": json.dumps({"jobs": [_as_json(WHOLE, "RESIZING"), _as_json(REST, "COMPLETED")]})},
    "json, flags": {
        "sacct.json": json.dumps({"jobs": [_as_json(WHOLE, ["PENDING", "RESIZING"]), _as_json(REST, ["COMPLETED"])]})
    },
    "slurmdbd": {
        "tres_table.tsv": TRES_TABLE,
        "job_table.tsv": DBD_HEAD + (_as_row(WHOLE, 1 << 13) + _as_row(REST, 3)).replace("alice", "1001"),
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_accounting_has_the_same_answer(tmp_path: Path, form: str) -> None:
    store = ingested(tmp_path, FORMS[form])
    row = _held(store)
    assert (row["jobs"], row["gpu_hours_span"], row["gpu_hours_last"]) == (1, GPU_HOURS, GPU_HOURS)
    [lost] = [row for row in rows(store, "gpu_hours_lost") if row["size_bucket"] == "all"]
    assert (lost["gpu_hours"], lost["succeeded_h"], lost["lost_pct"]) == (GPU_HOURS, GPU_HOURS, 0)


def test_of_a_completion_file_the_time_before_the_first_change_is_unknown(tmp_path: Path) -> None:
    # slurmctld writes the time of a change as the start of the record that it ends
    at = "2026-11-20T1{}:00:00".format
    log = (
        _JOBCOMP.format(state="RESIZING", start=at(1), end=at(1), nodes="gpu[001-003]", count=3, gpus=6)
        + _JOBCOMP.format(state="RESIZING", start=at(2), end=at(2), nodes="gpu[001-002]", count=2, gpus=4)
        + _JOBCOMP.format(state="COMPLETED", start=at(2), end=at(4), nodes="gpu001", count=1, gpus=2)
    )
    store = ingested(tmp_path, {"jobcomp.log": log})
    attempts = stored(store, "SELECT gpus, run_s, quirks FROM attempts ORDER BY attempt")
    assert [(row["gpus"], row["run_s"]) for row in attempts] == [(6, None), (4, 3600), (2, 7200)]
    assert "no_start" in attempts[0]["quirks"]
    assert stored(store, "SELECT gpus, start_ts, wait_s, run_sum_s FROM jobs") == [
        {"gpus": 6, "start_ts": None, "wait_s": None, "run_sum_s": None}
    ]
    row = _held(store)
    assert (row["jobs"], row["jobs_timed"], row["gpu_hours_sum"]) == (1, 0, None)
    with pytest.raises(InputError, match="has no start in the log"):
        _replayed(store)


@pytest.mark.parametrize(
    "files",
    [
        {"sacct.json": json.dumps({"jobs": [_as_json({**REST, "NodeList": "None assigned"}, ["PENDING", "REVOKED"])]})},
        {"sacct.json": json.dumps({"jobs": [_as_json({**REST, "NodeList": ""}, ["CANCELLED", "REVOKED"])]})},
        {"job_table.tsv": DBD_HEAD + _as_row({**REST, "NodeList": "None assigned"}, 1 << 19).replace("alice", "1001")},
        {"job_table.tsv": DBD_HEAD + _as_row({**REST, "NodeList": ""}, 1 << 19 | 4).replace("alice", "1001")},
        # a completion file leaves the flag out
        {"jobcomp.log": _JOBCOMP.format(
            state="PENDING", start="2026-11-20T11:00:00", end="2026-11-20T11:00:00", nodes="(null)", count=0, gpus=2
        ) + _JOBCOMP.format(
            state="FAILED", start="2026-11-20T11:00:00", end="2026-11-20T11:00:00", nodes="(null)", count=0, gpus=2
        )},
        {"jobcomp.log": _JOBCOMP.format(
            state="COMPLETED", start="2026-11-20T11:00:00", end="2026-11-20T11:00:00", nodes="(null)", count=0, gpus=2
        )},
    ],
)  # fmt: skip
def test_copies_that_a_federation_revoked_are_jobs_in_no_form(tmp_path: Path, files: dict[str, str]) -> None:
    store = ingested(tmp_path, files)
    assert stored(store, "SELECT job FROM jobs UNION ALL SELECT job FROM attempts") == []
    assert stored(store, "SELECT sum(rows_in) = sum(rows_loaded) AS whole FROM sources") == [{"whole": True}]


def _replayed(path: Path, how: Any = "sum") -> tuple[Workload, Cluster]:
    with Store(path) as store:
        return read_trace(store, work=how)


def _held(store: Path) -> dict[str, Any]:
    [row] = [row for row in rows(store, "status") if row["state"] == "all"]
    return row


def test_status_counts_each_size_for_as_long_as_it_was_held(tmp_path: Path) -> None:
    row = _held(ingested(tmp_path, {"sacct.txt": text(WHOLE, REST)}))
    assert [row[name] for name in ("gpu_hours_span", "gpu_hours_sum", "gpu_hours_last")] == [GPU_HOURS] * 3


def test_a_try_that_was_requeued_before_is_no_part_of_the_last_run(tmp_path: Path) -> None:
    lost = {"State": "NODE_FAIL", "Submit": "2026-11-20T08:00:00", "Eligible": "2026-11-20T08:00:00",
            "Start": "2026-11-20T08:00:00", "End": "2026-11-20T09:00:00", "AllocTRES": "gres/gpu=6"}  # fmt: skip
    row = _held(ingested(tmp_path, {"sacct.txt": text(lost, WHOLE, REST)}))
    gap_h = 1 + 20 / 3600
    assert row["gpu_hours_sum"] == 6 + GPU_HOURS
    assert row["gpu_hours_last"] == GPU_HOURS
    assert row["gpu_hours_span"] == pytest.approx(6 + GPU_HOURS + 6 * gap_h)


def test_the_job_has_the_largest_size_and_waited_once(tmp_path: Path) -> None:
    store = ingested(tmp_path, {"sacct.txt": text(WHOLE, REST)})
    [job] = stored(store, "SELECT gpus, nodes, cpus, run_last_s, run_sum_s FROM jobs")
    assert tuple(job.values()) == (6, 3, 12, 4 * 3600, 4 * 3600)
    assert [(row["attempt"], row["wait_min"]) for row in rows(store, "waits")] == [(0, pytest.approx(1 / 3))]


@pytest.mark.parametrize("how", WORKS)
def test_a_replay_keeps_the_gpu_hours_and_states_how(tmp_path: Path, how: Any) -> None:
    jobs, cluster = _replayed(ingested(tmp_path, {"sacct.txt": text(WHOLE, REST)}), how)
    assert jobs.gpus.tolist() == [6]
    assert (jobs.segment_s.tolist(), jobs.segment_fails.tolist()) == ([GPU_HOURS * 3600 / 6], [False])
    assert cluster.total_gpus == 6
    assert jobs.piece_gpus.tolist() == [2, 2, 2]
    assert any("the size of 1 job changed while it ran: it is replayed at its largest size" in n for n in jobs.notes)


def test_a_job_that_grew_and_then_failed_fails_once(tmp_path: Path) -> None:
    grown = {**REST, "AllocTRES": "gres/gpu=8", "NodeList": "gpu[001-004]", "NNodes": "4", "State": "FAILED",
             "ExitCode": "1:0"}  # fmt: skip
    jobs, _ = _replayed(ingested(tmp_path, {"sacct.txt": text(WHOLE, grown)}))
    assert jobs.gpus.tolist() == [8]
    assert (jobs.segment_s.tolist(), jobs.segment_fails.tolist()) == ([(6 + 24) * 3600 / 8], [True])


def test_other_jobs_are_replayed_as_they_ran(tmp_path: Path) -> None:
    other = {"JobIDRaw": "200"}
    jobs, _ = _replayed(ingested(tmp_path, {"sacct.txt": text(WHOLE, REST, other)}))
    assert dict(zip(jobs.ids, jobs.segment_s.tolist(), strict=True)) == {"100": 7200.0, "200": 600.0}


def test_explain_names_the_change_and_no_second_wait(tmp_path: Path) -> None:
    with Store(ingested(tmp_path, {"sacct.txt": text(WHOLE, REST)})) as store:
        found = explain(store, "100", Options())
    assert [(tried.state, tried.gpu_hours, tried.wait is None) for tried in found.attempts] == [
        ("resized", 6, False), ("completed", 6, True),
    ]  # fmt: skip
    facts = {item.label: item.text for block in blocks(found) for item in block.items}
    assert facts["GPUs"] == "6 at most: it was resized while it ran"
    assert facts["attempt 0"] == "resized after 60 min, 6 GPU-h"
