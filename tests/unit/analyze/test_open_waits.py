"""What still waits at the end of a log, and why rows were rejected, on a Slurm log worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.analyzed_logs import analyzed, ingested, rows
from tests.sacct_records import NEVER, PENDING, text

if TYPE_CHECKING:
    from pathlib import Path


def at(time: str) -> dict[str, str]:
    """Submitted at a time of the day, eligible at once; asks for two GPUs."""
    return dict.fromkeys(("Submit", "Eligible"), f"2026-11-20T{time}:00")


def test_jobs_that_wait_at_the_end_and_jobs_given_up(tmp_path: Path) -> None:
    ends = {"Start": "2026-11-20T10:00:00", "End": "2026-11-20T13:00:00", "Elapsed": "03:00:00"}
    cancelled = {**NEVER, "State": "CANCELLED by 7"}
    logs = [
        {**at("10:00"), **ends, "JobIDRaw": "1"},
        *({**PENDING, **at(time), "JobIDRaw": str(k)} for k, time in enumerate(("10:30", "12:30", "12:40"), 2)),
        {**cancelled, **at("10:00"), "JobIDRaw": "5", "End": "2026-11-20T11:30:00"},
        {**cancelled, **at("10:00"), "JobIDRaw": "6", "End": "2026-11-20T10:30:00"},
    ]
    [*_, row] = rows(ingested(tmp_path, {"sacct.txt": text(*logs)}), "never_started")
    assert row == pytest.approx(
        {
            "size_bucket": "all", "waiting": 3, "waiting_gpus": 6,
            "waiting_p50_min": 30, "waiting_max_min": 150, "waiting_h": (150 + 30 + 20) / 60,
            "given_up": 2, "given_up_p50_min": 60, "given_up_h": 2,
        }
    )  # fmt: skip


def test_the_most_frequent_reason_for_rejected_rows_is_named(tmp_path: Path) -> None:
    bad_time, no_job = ({"Submit": "yesterday"}, {"JobIDRaw": "x", "JobID": "x"})
    logs = text({}, {"JobIDRaw": "101", **bad_time}, *[no_job] * 3)
    path = ingested(tmp_path, {"sacct.txt": logs})
    [source] = rows(path, "sources")
    assert (source["rows_in"], source["rows_rejected"]) == (5, 4)
    assert source["most_rejected_for"].startswith("no job id")
    warned = "\n".join(map(str, analyzed(path, "overview").warnings))
    assert "4 of 5 rows of sacct.txt were rejected; most often (3): no job id" in warned


def test_a_log_of_more_than_sixty_years_has_no_tables_over_time(tmp_path: Path) -> None:
    ends = {"Start": "2026-11-20T10:00:00", "End": "2026-11-20T13:00:00", "Elapsed": "03:00:00"}
    wrong = dict.fromkeys(("Submit", "Eligible"), "2199-01-01T00:00:00")
    path = ingested(tmp_path, {"sacct.txt": text({**at("10:00"), **ends}, {**PENDING, **wrong, "JobIDRaw": "2"})})
    for table in ("activity", "activity_by_user", "fragmentation"):
        found = analyzed(path, table)
        assert found.table(table).frame.is_empty()
        assert any("the log spans 172 years" in str(warning) for warning in found.warnings)
