"""Deadlines of jobs, and the policies that go by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.core.errors import InputError
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.inputs.transforms import bootstrap, scale_load
from gpuctl.replay.models.deadlines import deadlines, derived
from tests.unit.replay.policies.test_scores import simulation

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "job_id,submit_time,duration,num_gpus,deadline"


def test_edf_by_hand(tmp_path: Path) -> None:
    # b takes all at 10, a goes on at 30; c has no deadline and comes last, though it fits beside a
    rows = [HEAD, "a,0,100,3,500", "b,10,20,4,40", "c,12,10,1,"]
    one = simulation(tmp_path / "jobs.csv", "edf", "pool:4", rows)
    one.run()
    jobs = one.outcome().jobs
    assert jobs["start_s"].to_list() == [0, 10, 30]
    assert jobs["end_s"].to_list() == [120, 30, 40]
    assert jobs["preemptions"].to_list() == [1, 0, 0]
    assert one.policy.oracle is False


def test_deadlines_move_with_submissions(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([HEAD, "a,100,10,1,160", "b,300,10,1,"]))
    workload = read_jobs(path)
    assert deadlines(workload).tolist() == [160, np.inf]
    assert derived(workload) == ()
    assert deadlines(scale_load(workload, 2)).tolist() == [110, np.inf]
    again = bootstrap(workload, 10, 1)
    left = deadlines(again) - again.submit
    assert set(left.tolist()) <= {60, np.inf}


def test_a_deadline_before_submission_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([HEAD, "a,100,10,1,100"]))
    with pytest.raises(InputError, match="deadline is not after submit_time in 1 row: line 2"):
        read_jobs(path)


def test_assumed_deadlines(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([HEAD.removesuffix(",deadline"), *(f"j{k},5,1000,1" for k in range(50))]))
    workload = read_jobs(path)
    left = deadlines(workload) - 5
    assert left.min() >= 500
    assert left.max() <= 1500
    assert np.unique(left).size > 40
    # crc32(b"j0:deadline") is 3 631 553 727
    assert left[0] == pytest.approx(500 + 3631553727 % 1001)
    assert len(derived(workload)) == 1
