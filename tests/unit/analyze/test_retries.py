"""The table of retries, on a Slurm log whose figures were worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.analyzed_logs import ingested, rows
from tests.sacct_records import text

if TYPE_CHECKING:
    from pathlib import Path


def tries(job: int, *states: str) -> list[dict[str, str]]:
    """Attempts of one hour on two GPUs, one after the other, which end at 14:00 at the latest."""
    first = 14 - len(states)
    return [
        {
            **{"JobIDRaw": str(job), "State": state, "AllocTRES": "cpu=8,gres/gpu=2", "Elapsed": ""},
            **dict.fromkeys(("Submit", "Eligible", "Start"), f"2026-11-20T{hour:02}:00:00"),
            "End": "Unknown" if state == "RUNNING" else f"2026-11-20T{hour + 1:02}:00:00",
        }
        for hour, state in enumerate(states, first)
    ]


def test_each_retry_counts_as_the_first_the_second_or_a_later_one(tmp_path: Path) -> None:
    lost = "NODE_FAIL"
    logs = [
        *tries(1, lost, lost, "COMPLETED"),
        *tries(2, lost, lost, lost, "COMPLETED"),
        *tries(3, lost, lost, lost, lost, lost),
        *tries(4, lost, "RUNNING"),
        *tries(5, "COMPLETED"),
        *tries(6, lost, "COMPLETED"),
    ]
    path = ingested(tmp_path, {"sacct.txt": text(*logs)})
    [*_, row] = rows(path, "retry_by_size")
    assert (row["size_bucket"], row["jobs"], row["retried_jobs"]) == ("all", 6, 5)
    assert {name: row[name] for name in row if name not in {"size_bucket", "jobs", "retried_jobs"}} == pytest.approx(
        {
            "retries_mean": (2 + 3 + 4 + 1 + 0 + 1) / 6,
            "unsuccessful_pct": 100 / 5,  # of job 4 nobody knows
            "retried_passed_pct": 100 * 3 / 5,
            "first_retry_passed_pct": 100 / 4,  # of jobs 1, 2, 3 and 6
            "second_retry_passed_pct": 100 / 3,
            "later_retry_passed_pct": 100 / 3,  # one of job 2, two of job 3
            "retry_gpu_hours": 2 * (2 + 3 + 4 + 1 + 1),
            "retry_failed_gpu_hours": 2 * (1 + 2 + 4),
        }
    )


def test_the_last_try_of_a_job_that_was_resized_is_all_since_its_last_start(tmp_path: Path) -> None:
    lost, larger, rest = tries(1, "NODE_FAIL", "RESIZING", "COMPLETED")
    path = ingested(tmp_path, {"sacct.txt": text(lost, {**larger, "AllocTRES": "cpu=16,gres/gpu=4"}, rest)})
    [*_, row] = rows(path, "status")
    assert (row["gpu_hours_last"], row["gpu_hours_sum"], row["gpu_hours_span"]) == pytest.approx((4 + 2, 8, 8))
