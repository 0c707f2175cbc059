"""Which jobs waited, from when, and until when."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gpuctl.core.errors import InputError
from gpuctl.waits.queue_log import log_of

COLUMNS = ("job", "submit_s", "eligible_s", "start_s", "end_s", "state")
JOBS = [
    ("ran", 0.0, 0.0, 10.0, 20.0, "passed"),
    ("held", 0.0, 50.0, 60.0, 70.0, "passed"),
    ("cancelled", 5.0, 5.0, None, 25.0, "killed"),
    ("no second", 5.0, None, 30.0, 30.0, "unknown"),
    ("ended at once", 5.0, None, 30.0, 30.0, "passed"),
    ("waits", 40.0, 40.0, None, None, "pending"),
    ("runs", 40.0, None, 45.0, None, "running"),
    ("lost", 40.0, None, None, None, "unknown"),
    ("unknown", None, None, 45.0, 50.0, "passed"),
]


def test_waits_count_from_when_a_job_can_start_and_only_of_jobs_that_did() -> None:
    frame = pl.DataFrame(JOBS, schema=COLUMNS, orient="row").with_columns(nodes=1, time_limit_s=60)
    log = log_of("made up", frame)
    waits = dict(zip(log.rows["job"].to_list(), log.wait_s.tolist(), strict=True))
    assert waits == pytest.approx(
        {
            "ran": 10,
            "held": 10,
            "cancelled": np.nan,
            "no second": np.nan,
            "ended at once": 25,
            "waits": np.nan,
            "runs": 5,
        },
        nan_ok=True,
    )
    assert log.unit == "nodes"
    assert log.taken_s == 70
    expected = {"jobs": 9, "no_submission": 1, "no_end_of_wait": 1, "started": 4, "left_early": 2, "still_waiting": 1}
    assert expected.items() <= dict(log.counts).items()
    assert log.counts["held_first"] == 1
    left = dict(zip(log.rows["job"].to_list(), log.leave_s.tolist(), strict=True))
    assert (left["cancelled"], left["waits"]) == (25, np.inf)


def test_a_log_without_starts_is_refused() -> None:
    frame = pl.DataFrame([JOBS[5]], schema=COLUMNS, orient="row").with_columns(nodes=1, time_limit_s=60)
    with pytest.raises(InputError, match="no job has a known wait"):
        log_of("made up", frame)


def test_jobs_of_one_second_came_in_the_order_of_their_numbers() -> None:
    """As Slurm starts them; 100 comes before 99 only where numbers are taken for words."""
    jobs = ["100", "7_12", "99", "7_2", "x1"]
    told = {"job": jobs, "submit_s": [5.0] * 5, "start_s": [9.0] * 5, "end_s": [10.0] * 5, "state": ["passed"] * 5}
    log = log_of("made up", pl.DataFrame(told).with_columns(gpus=pl.lit(1.0)))
    assert log.rows["job"].to_list()[-2:] == ["99", "100"]
