from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.inputs.estimates import with_estimates
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.records import Workload


@pytest.fixture
def work(tmp_path: Path) -> Workload:
    path = tmp_path / "jobs.csv"
    rows = "".join(f"j{k},{k},{100 + k},1,{200 if k == 3 else ''}\n" for k in range(2000))
    path.write_text("job_id,submit_time,duration,num_gpus,predicted_time\n" + rows)
    return read_jobs(path)


def test_given_and_true(work: Workload) -> None:
    assert with_estimates(work, "given").run_time[:5].tolist() == [100, 101, 102, 200, 104]
    assert with_estimates(work, "true").run_time[:5].tolist() == [100, 101, 102, 103, 104]


def test_errors_are_normal_and_the_same_for_every_load_and_order(work: Workload) -> None:
    from gpuctl.replay.inputs.transforms import scale_load, take

    told = with_estimates(work, "error:0.3")
    z = np.log(told.run_time / work.true_run_time) / 0.3
    assert abs(z.mean()) < 0.1
    assert abs(z.std() - 1) < 0.05
    faster = with_estimates(scale_load(work, 2.0), "error:0.3")
    assert np.array_equal(faster.run_time, told.run_time)
    some = np.arange(5, 50)
    assert np.array_equal(take(told, some).run_time, told.run_time[5:50])


def test_predictions_from_a_file(work: Workload, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("job,method,run_time_s\nj0,volume,7\nj1,none,\nj2,history,9\n")
    told = with_estimates(work, str(path))
    assert told.run_time[:4].tolist() == [7, 8, 9, 8]
    assert "2 of 2,000 jobs, their median for the 1,998 others" in told.notes[-1]


@pytest.mark.parametrize("how", ["error", "error:", "error:-1", "error:nan", "error:9", "perhaps", "nowhere.csv"])
def test_unsupported_input(work: Workload, how: str) -> None:
    with pytest.raises(UsageError, match="not understood"):
        with_estimates(work, how)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("job,seconds\nj0,3\n", "lacks a column"),
        ("job,run_time_s\nj0,3\nj0,4\n", "predicts a job twice"),
        ("job,run_time_s\nx,3\nj1,-4\n", "predicts none of the jobs"),
        ("", "is not a valid CSV"),
    ],
)
def test_a_file_without_predictions(work: Workload, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        with_estimates(work, str(path))
