"""Which jobs are learnt from, and what is known of each."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from gpuctl.core.errors import InputError
from gpuctl.core.states import State
from gpuctl.predictors.job_table import POPULATION, describe, table


def rows(**columns: list[object]) -> pl.DataFrame:
    size = len(next(iter(columns.values())))
    base = {"job": [f"j{k}" for k in range(size)], "submit_s": [float(k) for k in range(size)], "run_s": [10.0] * size}
    return pl.DataFrame(base | columns, strict=False)


def test_who_is_counted_and_who_is_not() -> None:
    states = [State.COMPLETED, State.FAILED, State.OUT_OF_MEMORY, State.KILLED, State.TIMEOUT, State.UNKNOWN,
              State.RUNNING, State.SUSPENDED, State.PENDING, State.NODE_FAIL, State.PREEMPTED, State.KILLED,
              State.COMPLETED]  # fmt: skip
    runs = [10.0] * 11 + [None, 10.0]
    submits = [float(k) for k in range(12)] + [None]
    found = table("log", rows(state=states, run_s=runs, submit_s=submits, end_s=[100.0] * 13))
    assert found.counts == {
        "jobs": 13, "no_submission": 1, "never_ran": 2, "still_running": 2, "ended_from_outside": 2, "known": 6,
        "failed": 2, "killed": 1, "timeout": 1, "end_estimated": 0,
    }  # fmt: skip
    assert set(found.counts) == set(POPULATION)
    left = ("no_submission", "never_ran", "still_running", "ended_from_outside", "known")
    assert sum(found.counts[key] for key in left) == found.counts["jobs"]
    assert found.rows.filter("known")["job"].to_list() == [f"j{k}" for k in range(6)]
    # they were submitted, which users and queues are numbered by
    assert found.rows.height == 12


def test_a_log_without_ends_has_the_earliest_possible() -> None:
    found = table(
        "log", rows(submit_s=[0.0, 5, 9], run_s=[10.0, 20, 30], eligible_s=[None, 100.0, 1.0], end_s=[None] * 3)
    )
    assert found.rows["end_s"].to_list() == [10, 120, 39]
    assert found.counts["end_estimated"] == 3


def test_no_job_ended_before_it_was_submitted() -> None:
    assert table("log", rows(submit_s=[50.0], end_s=[20.0])).rows["end_s"].to_list() == [50]


def test_nothing_to_learn_from_states_why() -> None:
    with pytest.raises(InputError, match=r"log: no job has a known run time \(jobs 2, still running 2\)"):
        table("log", rows(state=["running", "suspended"]))


def test_names_are_masked_and_missing_columns_are_unknown() -> None:
    found = describe(
        pl.DataFrame({"job": ["a", "b"], "name": ["train_12-seed3", None], "gpus": [4, None]}),
        size="gpus", zone="UTC", clock="UTC",
    )  # fmt: skip
    assert found["name"].to_list() == ["train_#-seed#", ""]
    assert found["user"].to_list() == ["", ""]
    assert found["size"].to_list() == pytest.approx([4, np.nan], nan_ok=True)
    for column in ("time_limit_s", "submit_s", "hour", "weekday"):
        assert found[column].is_nan().all()


@pytest.mark.parametrize(
    ("clock", "shown"),
    [("UTC", datetime(2023, 3, 12, 10, 30)), ("America/Chicago", datetime(2023, 3, 12, 5, 30))],
)
def test_hours_are_those_of_the_zone_whatever_the_clock(clock: str, shown: datetime) -> None:
    """05:30 on a Sunday in Chicago, on the day on which its clocks go forward."""
    second = shown.replace(tzinfo=UTC).timestamp()
    found = describe(
        pl.DataFrame({"job": ["a"], "submit_s": [second]}), size="gpus", zone="America/Chicago", clock=clock
    )
    assert found["hour"].to_list() == [5.5]
    assert found["weekday"].to_list() == [6]


def test_times_that_no_calendar_has_are_unknown() -> None:
    found = describe(
        pl.DataFrame({"job": list("abc"), "submit_s": [1e300, float("inf"), -1e14]}),
        size="gpus",
        zone="UTC",
        clock="UTC",
    )
    assert found["hour"].is_nan().all()


def test_nodes_stand_in_where_no_job_has_gpus() -> None:
    assert table("log", rows(gpus=[None, None], nodes=[2, 3])).size == "nodes"
    assert table("log", rows(gpus=[None, None], nodes=[2, 3])).rows["size"].to_list() == [2, 3]
    both = table("log", rows(gpus=[None, 8], nodes=[2, 3]))
    assert both.size == "GPUs"
    assert both.rows["size"].to_list() == pytest.approx([np.nan, 8], nan_ok=True)
