"""Clusters whose accounting does not track GPUs: what is unknown, what the controller states, what is 0."""

from __future__ import annotations

import json
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from tests.analyzed_logs import analyzed, findings, ingested, rows, stored
from tests.sacct_records import text

if TYPE_CHECKING:
    from pathlib import Path

CPU_ONLY = {"AllocTRES": "billing=8,cpu=8,mem=16G,node=1", "ReqTRES": "billing=8,cpu=8,mem=16G,node=1"}
NODES = "\n".join(
    f"NodeName={name} Arch=x86_64 CoresPerSocket=32 CPUAlloc=0 CPUEfctv=64 CPUTot=64 CPULoad=0.01 Gres={gres} "
    f"NodeAddr={name} NodeHostName={name} Version=23.02.7 RealMemory=1000 AllocMem=0 Sockets=2 Boards=1 State=IDLE "
    "ThreadsPerCore=1 Partitions=gpu CfgTRES=cpu=64,mem=1000M,billing=64 AllocTRES="
    for name, gres in (("gpu001", "gpu:a100:4(S:0-1)"), ("cpu001", "(null)"))
)
DETAIL = """JobId=1 JobName=train
   UserId=ann(1000) GroupId=grp(1000) MCS_label=N/A
   JobState=COMPLETED Reason=None Dependency=(null)
   SubmitTime=2026-11-20T10:00:00 EligibleTime=2026-11-20T10:00:00
   StartTime=2026-11-20T10:01:00 EndTime=2026-11-20T10:11:00 Deadline=N/A
   Partition=gpu AllocNode:Sid=l:1
   NodeList=gpu001
   NumNodes=1 NumCPUs=8 NumTasks=1 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   TRES=cpu=8,mem=16G,node=1,billing=8
   JOB_GRES=gpu:a100:3
     Nodes=gpu001 CPU_IDs=0-7 Mem=16384 GRES=gpu:a100:3(IDX:0,2-3)
   MinCPUsNode=1 MinMemoryNode=0 MinTmpDiskNode=0
"""
SACCT = text(
    {**CPU_ONLY, "JobIDRaw": "1", "Submit": "2026-11-20T10:00:00"},
    {**CPU_ONLY, "JobIDRaw": "2"},
    {**CPU_ONLY, "JobIDRaw": "3", "NodeList": "cpu001"},
)
JOB = {
    **{"job_id": 1, "name": "train", "user_name": "ann", "job_state": ["RUNNING"], "submit_time": 1795168800},
    **{"start_time": 1795168860, "nodes": "gpu001", "gres_detail": ["gpu:a100:3(IDX:0,2-3)"], "state_reason": "None"},
    **{"account": "a", "partition": "gpu", "tres_alloc_str": "cpu=8,mem=16G,node=1,billing=8"},
}
CONTROLLER = {
    "detail.txt": DETAIL,
    "squeue.json": json.dumps({"meta": {"Slurm": {"version": {"major": 22}}}, "jobs": [JOB]}, indent=1),
}
GPUS = "SELECT job, gpus FROM jobs ORDER BY job"


@pytest.mark.parametrize("order", list(permutations(("sacct.txt", "nodes.txt", "controller"))))
@pytest.mark.parametrize("controller", CONTROLLER)
def test_the_controller_wins_in_any_order_and_the_rest_is_unknown(
    order: tuple[str, ...], controller: str, tmp_path: Path
) -> None:
    files = {"sacct.txt": SACCT, "nodes.txt": NODES, "controller": CONTROLLER[controller]}
    path = ingested(tmp_path, {controller if name == "controller" else name: files[name] for name in order})
    # job 3 ran on a node without GPUs
    assert [row["gpus"] for row in stored(path, GPUS)] == [3, None, 0]
    assert [row["gpus"] for row in stored(path, "SELECT gpus FROM attempts ORDER BY job")] == [3, None, 0]
    placed = stored(path, "SELECT gpus, gpu_indices, estimated FROM placements ORDER BY job")
    assert [tuple(row.values()) for row in placed] == [(3, [0, 2, 3], False), (0, None, True), (0, None, False)]


def test_accounting_that_tracks_gpus_makes_cpu_jobs_exact_whenever_it_is_loaded(tmp_path: Path) -> None:
    path = ingested(tmp_path, {"nodes.txt": NODES, "monday.txt": SACCT})
    assert [row["gpus"] for row in stored(path, GPUS)] == [None, None, 0]
    more = text({"JobIDRaw": "4", "Submit": "2026-11-21T10:00:00"})
    ingested(tmp_path, {"tuesday.txt": more})
    assert [row["gpus"] for row in stored(path, GPUS)] == [0, 0, 0, 2]
    marks = stored(path, "SELECT DISTINCT unnest(quirks) AS mark FROM attempts")
    assert not [row for row in marks if row["mark"].startswith("gpus_")]
    assert {row["estimated"] for row in stored(path, "SELECT estimated FROM placements")} == {False}


@pytest.mark.parametrize(
    ("tracked", "gpus"), [("cpu,mem,energy,node,billing", [None, None, 0]), ("cpu,gres/gpu", [0, 0, 0])]
)
def test_the_setting_decides_if_no_record_does(tracked: str, gpus: list[float | None], tmp_path: Path) -> None:
    config = (
        "Configuration data as of 2026-11-20T10:00:00\n"
        f"AccountingStorageTRES   = {tracked}\nAccountingStorageEnforce = none\nAuthType = auth/munge\n"
        "ClusterName             = c\nGresTypes               = gpu\nSLURM_VERSION = 23.02.7\n"
        "SchedulerType = sched/backfill\n"
    )
    path = ingested(tmp_path, {"sacct.txt": SACCT, "nodes.txt": NODES, "config.txt": config})
    assert [row["gpus"] for row in stored(path, GPUS)] == gpus


def test_without_any_sign_of_gpus_there_are_none(tmp_path: Path) -> None:
    path = ingested(tmp_path, {"sacct.txt": SACCT, "nodes.txt": NODES.replace("gpu:a100:4(S:0-1)", "(null)")})
    assert [row["gpus"] for row in stored(path, GPUS)] == [0, 0, 0]


def test_the_first_screen_and_the_findings_report_it(tmp_path: Path) -> None:
    path = ingested(tmp_path, {"sacct.txt": SACCT, "nodes.txt": NODES})
    [overview] = rows(path, "overview")
    assert (overview["gpus"], overview["gpu_hours"], overview["size_unknown"]) == (4, None, 2)
    assert overview["occupancy_pct"] is None
    warnings = [str(text) for text in analyzed(path, "overview").warnings]
    assert any("accounting does not track GPUs" in text for text in warnings)
    number, treatment = next(found for name, found in findings(path).items() if "cannot state GPUs" in name)
    assert number == 2
    assert "AccountingStorageTRES" in treatment
