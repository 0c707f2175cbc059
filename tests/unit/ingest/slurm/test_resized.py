"""A job whose size changes while it runs, in analyses, replays and explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze.explain import explain
from gpuctl.analyze.run import Options
from gpuctl.replay.inputs.trace import WORKS, read_trace
from gpuctl.reports.explain import blocks
from gpuctl.store.database import Store
from tests.ingested import ingested, rows, stored
from tests.sacct import text

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
def test_a_replay_keeps_the_gpu_hours_and_says_how(tmp_path: Path, how: Any) -> None:
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
    assert facts["GPUs"] == "6 at most: its size changed while it ran"
    assert facts["attempt 0"] == "resized after 60 min, 6 GPU-h"
