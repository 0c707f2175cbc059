"""``gpuctl replay --failures``: against Daly's formula, without failures the same bytes, and what it refuses."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Cli = Callable[..., subprocess.CompletedProcess[str]]

RATE, WRITE, RESTART = 0.05, 300.0, 600.0
MTBF_S = 86_400 / (8 * RATE)


@pytest.fixture
def gangs(tmp_path: Path) -> Path:
    """24 gangs of 8 nodes, 2,000,000 s each."""
    path = tmp_path / "jobs.csv"
    rows = [f"j{k:02d},0,2000000,64" for k in range(24)]
    path.write_text("\n".join(["job_id,submit_time,duration,num_gpus", *rows]) + "\n")
    return path


def tables(gpuctl: Cli, *words: object) -> dict[str, list[dict[str, Any]]]:
    done = gpuctl("-q", "replay", *map(str, words), "--json")
    return {name: table["rows"] for name, table in json.loads(done.stdout)["tables"].items()}


def test_replays_agree_with_daly_and_with_the_rate(gpuctl: Cli, gangs: Path) -> None:
    """Both intervals in one experiment, in one process: workers of their own would start Python and load the engine."""
    every = tables(
        gpuctl, gangs, "--cluster", "24x8", "--policy", "fifo", "--failures", RATE, "--checkpoint", "7200,young",
        "--checkpoint-write", WRITE, "--restart", RESTART, "--repair", 0, "--seed", "1..5", "--resample", "none",
        "--table", "replay_failures", "--jobs", 1,
    )["replay_failures"]  # fmt: skip
    assert len(every) == 10
    for interval, seconds in (("7200", 7200.0), ("young", math.sqrt(2 * WRITE * MTBF_S))):
        rows = [row for row in every if str(row["checkpoint"]) == interval]
        assert [row["seed"] for row in rows] == [1, 2, 3, 4, 5]
        # J. T. Daly, A higher order estimate of the optimum checkpoint interval, 2006: exact for exponential failures
        exact = seconds / (MTBF_S * math.exp(RESTART / MTBF_S) * math.expm1((seconds + WRITE) / MTBF_S))
        assert sum(row["ettr_running"] for row in rows) / 5 == pytest.approx(exact, abs=0.004)
        hours = sum(row["run_h"] for row in rows) / sum(row["interruptions"] for row in rows)
        assert hours == pytest.approx(MTBF_S / 3600, rel=0.1)
    for row in every:
        parts = [row[f"{kind}_gpu_hours"] for kind in ("productive", "checkpoint", "load", "lost", "stalled",
                                                       "preemption", "down", "idle")]  # fmt: skip
        assert math.fsum(parts) == pytest.approx(row["gpu_hours"])
        assert row["productive_gpu_hours"] == pytest.approx(24 * 2_000_000 * 64 / 3600)


def test_without_failures_nothing_changes(gpuctl: Cli, gangs: Path) -> None:
    words = ("-q", "replay", str(gangs), "--cluster", "24x8", "--policy", "fifo,srtf", "--table", "replay_jobs")
    assert gpuctl(*words, "--failures", "0").stdout == gpuctl(*words).stdout


def test_rates_and_intervals_are_factors_of_an_experiment(gpuctl: Cli, gangs: Path) -> None:
    rows = tables(
        gpuctl, gangs, "--cluster", "24x8", "--policy", "fifo", "--failures", "0,0.05", "--checkpoint", "7200,3600",
        "--seed", "1..2", "--resample", "none",
    )["replay_failures"]  # fmt: skip
    assert {(row["failures"], row["checkpoint"], row["seed"]) for row in rows} == {
        (rate, interval, seed) for rate in (0.0, 0.05) for interval in (7200, 3600) for seed in (1, 2)
    }
    assert all((row["interruptions"] > 0) == (row["failures"] > 0) for row in rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--checkpoint", "3600"), "--checkpoint requires --failures"),
        (("--failures", "0.1", "--checkpoint", "young"), "--checkpoint young requires the time"),
        (("--table", "replay_failures"), "--table replay_failures: no node fails in this replay"),
        (("--cluster", "pool:192", "--failures", "0.1"), "--failures: a pool has no nodes that could fail"),
        (("--failures", "missing.csv"), "missing.csv"),
    ],
)
def test_what_cannot_be_is_refused(gpuctl: Cli, gangs: Path, words: tuple[str, ...], message: str) -> None:
    cluster = () if "--cluster" in words else ("--cluster", "24x8")
    done = gpuctl("replay", str(gangs), *cluster, "--policy", "fifo", *words, check=False)
    assert done.returncode != 0
    assert message in done.stderr


def test_jobs_that_never_get_past_a_failure_are_reported(gpuctl: Cli, gangs: Path) -> None:
    done = gpuctl("replay", gangs, "--cluster", "24x8", "--policy", "fifo", "--failures", "0.5", check=False)
    assert done.returncode == 3
    assert "jobs that take longer than their nodes last never end" in done.stderr


def test_failures_that_a_trace_records_do_not_count_twice(gpuctl: Cli, root: Path) -> None:
    """With no further failures each job of the trace runs its recorded time, and none is interrupted."""
    done = gpuctl(
        "-q", "replay", root / "tests/fixtures/reliability", "--policy", "fifo", "--failures", "1e-9", "--json"
    )  # fmt: skip
    answer = json.loads(done.stdout)
    [row] = answer["tables"]["replay_failures"]["rows"]
    assert (row["interruptions"], row["lost_gpu_hours"]) == (0, 0)
    assert "attempts that infrastructure ended" in done.stdout
    assert "explained by node events, XIDs or logs" in done.stdout
