"""Interactive sessions, and what they hold at night, worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.result_tables import table_of
from tests.sacct_records import text

if TYPE_CHECKING:
    from pathlib import Path

START = datetime(2026, 11, 20, 19, tzinfo=UTC)
"""20:00 in Berlin: the night begins two hours later and lasts eight."""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    night = {"Submit": "2026-11-20T20:00:00", "Eligible": "2026-11-20T20:00:00", "Start": "2026-11-20T20:00:00"}
    records = [
        {**night, "JobIDRaw": "1", "End": "2026-11-21T08:00:00", "SubmitLine": "srun --pty bash", "User": "ada"},
        {**night, "JobIDRaw": "2", "End": "2026-11-20T23:00:00", "SubmitLine": "sbatch a.sh", "User": "bob"},
        {**night, "JobIDRaw": "3", "End": "2026-11-20T21:00:00", "SubmitLine": "sbatch a.sh", "User": "ada"},
    ]
    (tmp_path / "sacct.txt").write_text(text(*records))
    ingest([tmp_path / "sacct.txt"], tmp_path / "t.duckdb", cluster="c", timezone="Europe/Berlin")
    with Store(tmp_path / "t.duckdb", write=True) as opened:
        for job, mean in (("1", 10.0), ("2", 0.0)):
            opened.execute(
                "INSERT INTO job_gpu_usage (cluster, job, gpu_util_mean, gpu_util_coverage, gpus_unused, idle_gpu_h, "
                "interval_s, samples, running) VALUES ('c', ?, ?, 1, 1, 4.5, 30, 100, false)",
                [job, mean],
            )
        # a GPU on each of two nodes; the job works in its first four hours and the fifth on one
        for hour in range(12):
            for node, busy in (("a", hour < 5), ("b", hour < 4)):
                opened.execute(
                    "INSERT INTO gpu_use_hours VALUES ('c', '1', 0, ?, ?, false, 3600, ?)",
                    [node, START + timedelta(hours=hour), 3600 * 50_000_000 * busy],
                )
    return tmp_path / "t.duckdb"


def test_a_night_is_eight_hours_of_the_logs_zone(store: Path) -> None:
    with Store(store) as opened:
        sessions = table_of(analyze(opened, Options(tables=("sessions",))), "sessions").frame
    found = {row["started_as"]: row for row in sessions.to_dicts()}
    assert {how: (row["jobs"], row["gpu_hours"], row["night_gpu_hours"]) for how, row in found.items()} == {
        "srun --pty": (1, 24, 16),
        "batch": (2, 8, 2),
    }
    assert found["batch"]["measured_jobs"] == 1
    assert found["srun --pty"]["gpu_util_mean"] == 10


def test_an_hour_is_idle_if_all_gpus_of_the_job_are(store: Path) -> None:
    with Store(store) as opened:
        [row] = table_of(analyze(opened, Options(tables=("idle_nights",))), "idle_nights").frame.to_dicts()
    # from 01:00, the hour after the one in which one of two GPUs worked, to 06:00
    assert (row["job"], row["started_as"], row["night_idle_gpu_hours"]) == ("1", "srun --pty", 10)


def test_the_figures_of_job_gpu_usage_are_those_of_efficiency(store: Path) -> None:
    with Store(store) as opened:
        found = analyze(opened, Options(tables=("efficiency", "efficiency_by_user", "smaller_requests")))
    jobs = {row["job"]: row for row in table_of(found, "efficiency").frame.to_dicts()}
    assert {job: (row["gpu_util_mean"], row["gpus_unused"], row["idle_gpu_h"]) for job, row in jobs.items()} == {
        **{"1": (10, 1, 4.5), "2": (0, 1, 4.5), "3": (None, None, None)}
    }
    users = {row["user"]: row for row in table_of(found, "efficiency_by_user").frame.to_dicts()}
    assert (users["ada"]["measured_jobs"], users["ada"]["idle_gpu_h"], users["bob"]["gpus_unused"]) == (1, 4.5, 1)
    gpus = [row for row in table_of(found, "smaller_requests").frame.to_dicts() if row["resource"] == "GPUs"]
    assert [(row["user"], row["used_max_pct"], row["could_ask_pct"]) for row in gpus] == [
        ("ada", 50, 50),
        ("bob", 50, 50),
    ]
