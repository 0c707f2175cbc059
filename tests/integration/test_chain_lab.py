"""A chain of five jobs on a real Slurm: its driver is killed in the middle of submissions, and none is there twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from labs.slurm import lab as slurm
from tests import lab_requirements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(300)]

JOB_S = 4
SBATCH = """#!/bin/sh
# the second call kills who called before Slurm hears of it, the third when it has
calls=$(($(cat "$CALLS" 2>/dev/null || echo 0) + 1))
echo $calls >"$CALLS"
[ $calls -ne 2 ] || kill -9 $PPID
[ $calls -ne 2 ] || sleep 2
{sbatch} "$@" >"$CALLS.$calls"
status=$?
[ $calls -ne 3 ] || kill -9 $PPID
cat "$CALLS.$calls"
exit $status
"""
STOPPED = """#!/bin/sh
# the controller stops before it hears of the second job, and goes on when sbatch has been given up
calls=$(($(cat "$CALLS" 2>/dev/null || echo 0) + 1))
echo $calls >"$CALLS"
if [ $calls -eq 2 ]; then
    kill -STOP $CONTROLLER
    (sleep 6; kill -CONT $CONTROLLER) >/dev/null 2>&1 &
fi
exec {sbatch} "$@"
"""
CHAIN = """name = "svc"
script = "{script}"
options = ["--partition=cpu", "--time=1", "--output=/dev/null"]
jobs = {jobs}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[slurm.Lab]:
    lab_requirements.skip_or_fail(slurm.missing())
    with slurm.Lab() as lab:
        lab.run("sacctmgr", "--immediate", "add", "user", "root", "account=vision")
        yield lab


def _chain(folder: Path, name: str, body: str, jobs: int) -> Path:
    (folder / f"{name}.sh").write_text(f"#!/bin/sh\n{body}\n")
    path = folder / f"{name}.toml"
    path.write_text(CHAIN.format(script=f"{name}.sh", jobs=jobs))
    return path


def _drive(root: Path, env: dict[str, str], chain: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpuctl", "chain", "run", str(chain), "--interval", "0.5", "--settle", "5", *more],
        env={**env, "PYTHONPATH": str(root)}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200,
        check=False,
    )  # fmt: skip


def _status(gpuctl: Gpuctl, env: dict[str, str], chain: Path) -> list[dict[str, Any]]:
    told = gpuctl("chain", "status", chain, "--json", env=env).stdout
    rows: list[dict[str, Any]] = json.loads(told)["tables"]["chain_jobs"]["rows"]
    return rows


def test_five_jobs_and_two_kills(cluster: slurm.Lab, gpuctl: Gpuctl, root: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    real = shutil.which("sbatch")
    (programs / "sbatch").write_text(SBATCH.replace("{sbatch}", str(real)))
    (programs / "sbatch").chmod(0o755)
    env = {**cluster.env, "PATH": f"{programs}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls")}
    chain = _chain(tmp_path, "five", f"sleep {JOB_S}", 5)
    codes = []
    while not codes or (codes[-1] == -signal.SIGKILL and len(codes) < 6):
        done = _drive(root, env, chain)
        codes.append(done.returncode)
    assert codes == [-signal.SIGKILL, -signal.SIGKILL, 0], done.stderr
    rows = _status(gpuctl, env, chain)
    assert [row["state"] for row in rows] == ["COMPLETED"] * 5
    jobs = _accounted(cluster, "svc", 5)
    assert sorted(jobs) == sorted(row["job"] for row in rows)
    assert len(set(jobs.values())) == 5
    assert all(row["why"] for row in rows)


def _accounted(cluster: slurm.Lab, name: str, number: int) -> dict[str, str]:
    """Names of the jobs of a chain in the accounting, by id, once there are so many, or half a minute has passed."""
    deadline = time.monotonic() + 30
    while True:
        told = cluster.run("sacct", "-XnP", "--allusers", "--format=JobIDRaw,JobName", "--starttime=now-1hour")
        jobs = dict(line.split("|") for line in told.splitlines() if line.partition("|")[2].startswith(f"{name}."))
        if len(jobs) >= number or time.monotonic() > deadline:
            return jobs
        time.sleep(1)


def test_a_controller_that_stops_in_the_middle_of_a_submission(
    cluster: slurm.Lab, gpuctl: Gpuctl, root: Path, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sbatch").write_text(STOPPED.replace("{sbatch}", str(shutil.which("sbatch"))))
    (programs / "sbatch").chmod(0o755)
    env = {
        **cluster.env, "PATH": f"{programs}:{os.environ['PATH']}", "CALLS": str(tmp_path / "calls"),
        "CONTROLLER": (cluster.folder / "run" / "slurmctld.pid").read_text().strip(),
    }  # fmt: skip
    chain = _chain(tmp_path, "slow", f"sleep {JOB_S}", 3)
    chain.write_text(chain.read_text().replace('"svc"', '"slow"'))
    done = _drive(root, env, chain, "--timeout", "2")
    assert done.returncode == 0, done.stderr
    assert "Slurm does not answer" in done.stderr
    rows = _status(gpuctl, env, chain)
    assert [row["state"] for row in rows] == ["COMPLETED"] * 3
    jobs = _accounted(cluster, "slow", 3)
    assert sorted(jobs) == sorted(row["job"] for row in rows)
    assert len(set(jobs.values())) == 3


def test_a_job_that_fails_stops_the_chain(cluster: slurm.Lab, gpuctl: Gpuctl, tmp_path: Path) -> None:
    chain = _chain(tmp_path, "bad", "exit 3", 3)
    done = gpuctl("chain", "run", chain, "--interval", "0.5", "--settle", "5", env=cluster.env, check=False)
    assert done.returncode == 1, done.stderr
    assert "job 1 ended as FAILED" in done.stderr
    assert [row["state"] for row in _status(gpuctl, cluster.env, chain)] == ["FAILED"]
    away = {**cluster.env, "SLURM_CONF": str(tmp_path / "none.conf")}
    words = ["chain", "run", chain, "--journal", tmp_path / "j2", "--dry-run", "--timeout", "2"]
    dry = gpuctl(*words, env=away, check=False)
    assert dry.returncode == 3
    assert "squeue" in dry.stderr
