"""``--definition notebook``: the published notebook's waits, delays and run times, quirks included."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path


def attempt(start: str | None, end: str | None, *gpus: int) -> dict[str, Any]:
    return {"start_time": start, "end_time": end, "detail": [{"ip": "m1", "gpus": [f"gpu{g}" for g in gpus]}]}


def job(name: str, submitted: str, *attempts: dict[str, Any]) -> dict[str, Any]:
    return {
        "status": "Pass",
        "vc": "v",
        "jobid": name,
        "attempts": list(attempts),
        "submitted_time": submitted,
        "user": "u",
    }


def day(clock: str) -> str:
    return f"2017-10-20 {clock}"


def results(work: Path, log: list[dict[str, Any]] | str) -> tuple[dict[str, list[float]], dict[str, dict[str, Any]]]:
    logs = work / "logs"
    logs.mkdir()
    (logs / "cluster_job_log").write_text(log if isinstance(log, str) else json.dumps(log))
    ingest([logs], work / "t.duckdb", cluster="c")
    with Store(work / "t.duckdb") as store:
        result = analyze(store, Options(definition="notebook"))
    waits, times = result.table("waits"), result.table("job_times")
    assert waits is not None
    assert times is not None
    by_job = waits.frame.sort("job", "attempt").group_by("job").agg(pl.col("wait_min").round(4))
    return dict(by_job.iter_rows()), {row["job"]: row for row in times.frame.iter_rows(named=True)}


def test_waits_and_run_times(tmp_path: Path) -> None:
    waits, times = results(
        tmp_path,
        [
            # two attempts in order: 2 min before the first, 30 s between them
            job("plain", day("10:00:00"), attempt(day("10:02:00"), day("10:10:00"), 0, 1),
                attempt(day("10:10:30"), day("11:10:30"), 0, 1)),
            # the second one starts while the first still runs: a negative wait stays in the list
            job("overlap", day("10:00:00"), attempt(day("10:01:00"), day("12:00:00"), 2),
                attempt(day("11:00:00"), day("12:00:00"), 3)),
            # an end is missing: from there on the wait before is repeated, whatever else is known
            job("stale", day("10:00:00"), attempt(day("10:03:00"), None, 4),
                attempt(day("10:05:00"), day("10:06:00"), 4), attempt(None, day("10:20:00"), 4)),
            # a start is missing first: nothing to repeat yet
            job("late", day("10:00:00"), attempt(None, day("10:02:00"), 5),
                attempt(day("10:04:00"), day("10:09:00"), 5)),
            # a wait of nothing is dropped
            job("zero", day("10:00:00"), attempt(day("10:00:00"), day("10:09:00"), 6)),
            job("never", day("10:00:00")),
        ],
    )  # fmt: skip
    assert waits == {
        "plain": [2.0, 0.5],
        "overlap": [1.0, -60.0],
        "stale": [3.0, 3.0, 3.0],
        "late": [4.0],
    }
    assert {name: row["queueing_delay_min"] for name, row in times.items()} == {
        "plain": 2.0, "overlap": 1.0, "stale": 3.0, "late": None, "zero": 0.0, "never": None,
    }  # fmt: skip
    assert {name: row["run_time_min"] for name, row in times.items()} == {
        "plain": 68.5, "overlap": 119.0, "stale": 17.0, "late": None, "zero": 9.0, "never": None,
    }  # fmt: skip
    assert times["plain"]["num_gpus"] == 2
    assert times["never"]["num_gpus"] is None


def test_published_rows(root: Path, tmp_path: Path) -> None:
    rows = root.parent / "shared" / "data" / "philly" / "real_job_log_rows.json"
    if not rows.is_file():
        pytest.skip("../shared is not here: it has real rows of the trace, which are not ours to copy")
    waits, times = results(tmp_path, rows.read_text())
    prefix = "application_1506638472019_"
    expected = {
        "14199": ([0.5, 0.1167], 0.5, 3221.05, 8),
        "10238": ([0.5833, -703.9167], 0.5833, 4698.0167, 8),
        "16565": ([3.1167, 3.1167, 3.1167, 3.1167], 3.1167, 7.8167, 1),
        "15647": ([], None, None, None),
    }
    for number, (wait, delay, run, gpus) in expected.items():
        row = times[prefix + number]
        assert waits.get(prefix + number, []) == wait
        found = [row["queueing_delay_min"], row["run_time_min"], row["num_gpus"]]
        assert [None if v is None else round(v, 4) for v in found] == [delay, run, gpus]


def test_published_durations(root: Path, tmp_path: Path) -> None:
    """The three conventions of a job's duration, on the job whose values circulate."""
    rows = root.parent / "shared" / "data" / "philly" / "real_job_log_rows.json"
    if not rows.is_file():
        pytest.skip("../shared is not here: it has real rows of the trace, which are not ours to copy")
    ingest([rows], tmp_path / "t.duckdb", cluster="c")
    with Store(tmp_path / "t.duckdb") as store:
        row = store.frame("SELECT run_span_s, run_sum_s FROM jobs WHERE job LIKE '%_14199'").row(0)
    assert row == (193263.0, 193256.0)
