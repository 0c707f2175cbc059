"""`gpuctl predict wait --all` for every pending job of a real Slurm, against when each started."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest

from labs.slurm import lab as slurm
from tests import lab_requirements

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(600)]

USERS = ("games", "mail", "news", "uucp")
HISTORY, QUEUED = 24, 30
QUANTILES = ("p10_s", "p50_s", "p80_s", "p90_s")


@pytest.fixture(scope="module")
def cluster() -> Iterator[slurm.Lab]:
    lab_requirements.skip_or_fail(slurm.missing())
    with slurm.Lab() as lab:
        yield lab


def submit(lab: slurm.Lab, seconds: int, user: str, *options: str) -> str:
    words = ["sbatch", "--parsable", "--output=/dev/null", "--cpus-per-task=1", "--mem-per-cpu=50M", f"--uid={user}"]
    words += ["--partition=gpu", "--gres=gpu:4", "--time=2"]
    return lab.run(*words, *options, f"--wrap=sleep {seconds}").strip()


def states(lab: slurm.Lab) -> dict[str, tuple[str, str, str]]:
    """State, submission and start of every job, as the accounting has them."""
    text = lab.run("sacct", "-X", "-n", "-P", "-S", "now-1hour", "-o", "JobIDRaw,State,Eligible,Start")
    return {cells[0]: (cells[1], cells[2], cells[3]) for line in text.splitlines() if (cells := line.split("|"))}


def settle(lab: slurm.Lab, jobs: list[str], within_s: float) -> dict[str, tuple[str, str, str]]:
    """Wait until the accounting has the ends of jobs."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        found = states(lab)
        if all(found.get(job, ("", "", ""))[0] in {"COMPLETED", "TIMEOUT"} for job in jobs):
            return found
        time.sleep(2)
    raise AssertionError([(job, states(lab).get(job)) for job in jobs])


def past(place: Path) -> Path:
    """Accounting of another cluster, to have a model: jobs of 4 GPUs on six places, in the order in which they came."""
    draw = np.random.default_rng(3)
    begin = datetime(2026, 1, 5, tzinfo=UTC)
    lines = ["JobID|User|Partition|State|Submit|Start|End|Timelimit|NNodes|AllocTRES"]
    free, at = [0.0] * 6, 0.0
    for k in range(600):
        at += float(draw.exponential(40.0))
        ran = float(draw.integers(5, 600))
        slot = int(np.argmin(free))
        start = max(at + 1, free[slot])
        free[slot] = start + ran
        told = [f"{begin + timedelta(seconds=int(s)):%Y-%m-%dT%H:%M:%S}" for s in (at, start, start + ran)]
        cells = (str(100 + k), f"u{k % 5}", "gpu", "COMPLETED", *told, "00:10:00", "1", "cpu=4,gres/gpu=4,node=1")
        lines.append("|".join(cells))
    path = place / "past.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_every_pending_job_is_forecast(cluster: slurm.Lab, gpuctl: Gpuctl, tmp_path: Path) -> None:
    gpuctl("train", "wait", past(tmp_path), "-o", tmp_path / "model", env=cluster.env)
    draw = np.random.default_rng(7)
    lengths = draw.integers(4, 30, HISTORY + QUEUED).tolist()
    first = [submit(cluster, lengths[k], USERS[k % 4]) for k in range(HISTORY)]
    settle(cluster, first, 200)
    jobs = [submit(cluster, lengths[HISTORY + k], USERS[k % 4]) for k in range(QUEUED)]
    held = submit(cluster, 5, "games", "--hold")
    depends = submit(cluster, 5, "games", f"--dependency=afterok:{jobs[-1]}")
    # Slurm estimates starts in passes of backfill, and tells the accounting of starts a little later
    time.sleep(12)
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    gpuctl("ingest", "--from", "sacct", "--since", today, "--db", tmp_path / "lab.duckdb", env=cluster.env)
    asked = ["--model", tmp_path / "model", "--all", "--squeue", "now", "--json"]
    found = gpuctl("predict", "wait", tmp_path / "lab.duckdb", *asked, env=cluster.env).stdout
    rows = {row["job"]: row for row in json.loads(found)["predictions"]}
    assert "held" in rows[held]["reason"]
    assert "depends" in rows[depends]["reason"]
    assert rows[held]["p50_s"] is rows[depends]["p50_s"] is None
    pending = [job for job in jobs if job in rows]
    assert len(pending) >= QUEUED // 2
    ended = settle(cluster, jobs, 300)
    waits, inside, ours, theirs = [], [], [], []
    for job in pending:
        eligible, start = (datetime.fromisoformat(ended[job][k]).timestamp() for k in (1, 2))
        row, wait = rows[job], start - eligible
        waits.append(wait)
        assert row["method"] == "simulated", row
        assert row["waited_s"] <= row["p10_s"] <= row["p90_s"]
        # the accounting has whole seconds, and a loaded machine starts jobs late
        inside.append(row["p10_s"] - 5 <= wait <= row["p90_s"] + 5)
        ours.append(abs(row["p50_s"] - wait))
        if row["slurm_s"] is not None:
            theirs.append(abs(row["slurm_s"] - wait))
    told = (len(pending), float(np.mean(inside)), float(np.mean(ours)), float(np.mean(theirs or [np.nan])), waits)
    (tmp_path / "measured.json").write_text(json.dumps(told))
    assert np.mean(inside) >= 0.6, told
    assert np.mean(ours) < 0.5 * np.mean(waits), told
    # Slurm's estimates are of jobs that use up their limits of two minutes
    assert not theirs or np.mean(ours) < np.mean(theirs), told
