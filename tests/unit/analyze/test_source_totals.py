"""GPU-hours beside the totals that a source states itself, worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.analyzed_logs import findings, ingested, rows
from tests.sacct_records import DEFAULTS, text

if TYPE_CHECKING:
    from pathlib import Path

DIFFER = "attempts or applications whose GPU-hours differ from the total that their source states"


def record(job: int, hours: int, elapsed: str, **more: str) -> dict[str, str]:
    """A job with 4 GPUs from 10:00 for some hours."""
    times = {"Start": "2026-11-20T10:00:00", "End": f"2026-11-20T{10 + hours}:00:00", "Elapsed": elapsed}
    return {"JobIDRaw": str(job), "AllocTRES": "cpu=8,gres/gpu=4", **times, **more}


def test_totals_that_agree_are_no_finding(tmp_path: Path) -> None:
    # of job 2 half an hour was suspended: Elapsed leaves it out, its GPUs stay allocated
    logs = text(record(1, 2, "02:00:00"), record(2, 1, "00:30:00", Suspended="00:30:00"))
    store = ingested(tmp_path, {"sacct.txt": logs})
    [row] = rows(store, "source_totals")
    assert (row["compared"], row["stated_gpu_hours"], row["gpu_hours"], row["differing"]) == (2, 12.0, 12.0, 0)
    assert DIFFER not in findings(store)


def test_a_difference_is_a_finding_with_both_numbers(tmp_path: Path) -> None:
    logs = text(record(1, 2, "02:00:00"), record(2, 2, "01:00:00"), record(3, 1, "00:59:50"))
    store = ingested(tmp_path, {"sacct.txt": logs})
    [row] = rows(store, "source_totals")
    assert (row["compared"], row["differing"], row["largest_job"]) == (3, 1, "2")
    assert (row["gpu_hours"], row["difference_gpu_hours"]) == (20.0, pytest.approx(4 + 40 / 3600))
    assert row["largest_gpu_hours"] == 4.0
    number, treatment = findings(store)[DIFFER]
    assert number == 1
    assert "20.00 GPU-h" in treatment
    assert "15.99 GPU-h" in treatment


def test_the_largest_difference_is_named_be_it_more_or_less(tmp_path: Path) -> None:
    # held 4 GPU-hours more than stated, 8 less, and 2 less
    logs = text(record(1, 2, "01:00:00"), record(2, 1, "03:00:00"), record(3, 1, "01:30:00"))
    [row] = rows(ingested(tmp_path, {"sacct.txt": logs}), "source_totals")
    assert (row["differing"], row["difference_gpu_hours"]) == (3, -6)
    assert (row["largest_job"], row["largest_gpu_hours"]) == ("2", -8)


def test_what_still_runs_and_what_was_only_requested_is_not_compared(tmp_path: Path) -> None:
    running = record(1, 2, "01:00:00", State="RUNNING", End="Unknown")
    store = ingested(tmp_path, {"sacct.txt": text(running, record(2, 1, "01:00:00"))})
    assert [row["compared"] for row in rows(store, "source_totals")] == [1]
    (tmp_path / "requested").mkdir()
    fields = " ".join(name for name in DEFAULTS if name != "AllocTRES")
    store = ingested(tmp_path / "requested", {"sacct.txt": text(record(2, 1, "00:10:00"), only=fields)})
    assert rows(store, "source_totals") == []


def test_the_time_follows_from_cpu_seconds_if_that_is_all_there_is(tmp_path: Path) -> None:
    fields = " ".join([*(name for name in DEFAULTS if name != "Elapsed"), "CPUTimeRAW"])
    logs = text(record(1, 2, "", CPUTimeRAW="28800", NCPUS="8"), only=fields)
    [row] = rows(ingested(tmp_path, {"sacct.txt": logs}), "source_totals")
    assert (row["stated_gpu_hours"], row["gpu_hours"], row["differing"]) == (4.0, 8.0, 1)
