"""``gpuctl replay --limits-from`` as a user calls it: each form, from CSVs, chained, and its errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

JOBS = """job_id,submit_time,duration,num_gpus,requested_time
r,0,60,3,100
h,0,50,5,50
b1,0,70,1,90
b2,0,120,1,
"""
"""Of 5 GPUs r takes 3, h has to wait for all five until the planned end of r, and b1 and b2 may go ahead of it where
they are planned to end by then."""
FILES = {
    "limits.csv": "job,time_limit_s\nr,200\nh,50\nb1,200\nb2,300\n",
    "predicted.csv": "job,run_time_s,upper_s\nr,60,130\nh,50,50\nb1,70,140\nb2,120,130\n",
    "one.csv": "job,time_limit_s\nr,100\nnobody,5\n",
    "short.csv": "job,time_limit_s\nr,75\n",
    "others.csv": "job,time_limit_s\nx,100\n",
    "twice.csv": "job,time_limit_s\nr,100\nr,200\n",
}
NEITHER, FIRST, SECOND, BOTH = [0, 60, 110, 110], [0, 70, 0, 120], [0, 120, 170, 0], [0, 120, 0, 0]
"""Starts of the four jobs, by which of b1 and b2 goes ahead."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs.csv").write_text(JOBS)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def replay(gpuctl: Gpuctl, folder: Path, how: str, *more: str) -> subprocess.CompletedProcess[str]:
    arguments = ["jobs.csv", "--cluster", "pool:5", "--policy", "easy", "--limits-from", how, *more]
    return gpuctl("replay", *arguments, cwd=folder, check=False)


@pytest.mark.parametrize(
    ("how", "starts", "note"),
    [
        # b2 has none: a year
        ("asked", FIRST, "1 of 4 jobs has no time limit"),
        ("true", NEITHER, "of 4 jobs: true for 4"),
        # half an hour for all
        ("steps", BOTH, "of 4 jobs: steps for 4"),
        ("limits.csv", FIRST, "of 4 jobs: limits.csv for 4"),
        ("predicted.csv:upper_s", SECOND, "of 4 jobs: predicted.csv:upper_s for 4"),
        ("short.csv,true", FIRST, "of 4 jobs: short.csv for 1, true for 3"),
        # an error drawn from its name makes 78 s of the 70 s of b1
        ("short.csv,error:2", NEITHER, "of 4 jobs: short.csv for 1, error:2 for 3"),
        ("one.csv, factor:0.5", BOTH, "of 4 jobs: one.csv for 1, factor:0.5 for 3"),
        ("one.csv,asked", FIRST, "of 4 jobs: one.csv for 1, asked for 2; 1 have none"),
        ("asked,predicted.csv", FIRST, "of 4 jobs: asked for 3, predicted.csv for 1"),
    ],
)
def test_forms(gpuctl: Gpuctl, folder: Path, how: str, starts: list[int], note: str) -> None:
    done = replay(gpuctl, folder, how, "--parquet", "out", "--json")
    assert done.returncode == 0, done.stderr
    assert pl.read_parquet(folder / "out" / "jobs.parquet")["start_s"].to_list() == starts
    assert note in done.stdout + done.stderr


def test_jobs_end_at_what_was_requested_not_at_what_is_planned(gpuctl: Gpuctl, folder: Path) -> None:
    (folder / "jobs.csv").write_text(JOBS.replace("r,0,60,3,100", "r,0,60,3,40"))
    # planned for 30 s, of which r runs 40; h asks for 50 and b1 for 90, which they do not need
    done = replay(gpuctl, folder, "factor:0.5", "--limits", "--parquet", "out")
    assert done.returncode == 0, done.stderr
    rows = pl.read_parquet(folder / "out" / "jobs.parquet")
    assert (rows["end_s"] - rows["start_s"]).to_list() == [40, 50, 70, 120]


@pytest.mark.parametrize(
    ("how", "code", "errors"),
    [
        ("stepps", 2, ["--limits-from stepps: not understood, and no such file", "expected asked, true, factor:F"]),
        ("asked,factor:0", 2, ["--limits-from factor:0: not understood"]),
        ("error:4", 2, ["--limits-from error:4: not understood"]),
        ("limits.csv:upper_s", 3, ["limits.csv", "found: job, time_limit_s", "expected job,upper_s"]),
        ("others.csv", 3, ["others.csv", "has a limit for none of the jobs"]),
        ("twice.csv", 3, ["twice.csv", "a job twice", "expected one line per job"]),
    ],
)
def test_errors_state_what_to_do(gpuctl: Gpuctl, folder: Path, how: str, code: int, errors: list[str]) -> None:
    done = replay(gpuctl, folder, how)
    assert done.returncode == code, done.stderr
    for error in errors:
        assert error in done.stderr
    assert "replayed in" not in done.stderr
    assert done.stdout == ""


def test_without_any_limit_nothing_is_run(gpuctl: Gpuctl, folder: Path) -> None:
    (folder / "jobs.csv").write_text("job_id,submit_time,duration,num_gpus\na,0,60,3\n")
    done = replay(gpuctl, folder, "asked")
    assert done.returncode == 2
    assert "easy plans with time limits, and no job of" in done.stderr
    assert "--limits-from steps" in done.stderr
    # a policy that does not plan takes no notice
    done = gpuctl("replay", "jobs.csv", "--cluster", "pool:5", "--policy", "fifo", cwd=folder)
    assert "replayed in" in done.stderr
