"""The figures of a workload: by hand on a few jobs, and against NumPy on many."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.reports.report import labelled, summarize
from gpuctl.reports.screens.model import Grid
from gpuctl.reports.screens.report import screen
from gpuctl.store.database import Store
from gpuctl.workloads import quality
from gpuctl.workloads.jobs import jobs_of
from tests.result_tables import table_of

MONDAY = datetime(2026, 3, 2, tzinfo=UTC)
TABLES = (
    "workload", "arrivals_by_hour", "arrivals_by_weekday", "job_sizes", "runtime_by_outcome", "user_concentration",
    "user_shares", "job_repetition", "arrival_correlation",
)  # fmt: skip


def a_store(path: Path, jobs: list[dict[str, Any]], zone: str = "UTC") -> Path:
    common = {"cluster": "c", "attempts": 0, "quirks": [], "source": 1}
    kinds = {
        "gpus": pl.Float64,
        "cpus": pl.Int32,
        "run_sum_s": pl.Float64,
        "run_span_s": pl.Float64,
        "wait_s": pl.Float64,
    }
    frame = pl.DataFrame([{**common, **job} for job in jobs], infer_schema_length=None).with_columns(
        pl.lit([], pl.List(pl.String)).alias("quirks")
    )
    frame = frame.with_columns(pl.col(c).cast(kind) for c, kind in kinds.items() if c in frame.columns)
    with Store(path, write=True) as store:
        store.execute(
            "INSERT INTO clusters (cluster, source_format, timezone, clock) VALUES ('c', 'slurm-sacct', $zone, 'utc')",
            {"zone": zone},
        )
        store.view("csv_rows", frame)
        store.execute("INSERT INTO job_rows BY NAME SELECT * FROM csv_rows")
        store.drop_view("csv_rows")
    return path


def tables(path: Path, *names: str) -> dict[str, list[dict[str, Any]]]:
    with Store(path) as store:
        found = analyze(store, Options(tables=names or TABLES, duration="sum"))
    return {name: table_of(found, name).frame.to_dicts() for name in names or TABLES}


def test_figures_of_six_jobs(tmp_path: Path) -> None:
    def job(hours: float, user: str | None, gpus: float, run: float, state: str, wait: float) -> dict[str, Any]:
        at = MONDAY + timedelta(hours=hours)
        return {"submit_ts": at, "user": user, "gpus": gpus, "run_sum_s": run, "state": state, "wait_s": wait}

    rows = [
        job(0, "a", 1, 100, "completed", 0), job(0.1, "a", 1, 150, "completed", 10), job(1, "a", 4, 1000, "killed", 50),
        job(5, "b", 16, 10, "timeout", 0), job(24, "b", 0, 7, "failed", 0), job(48, None, 1, 30, "node_fail", 30),
    ]  # fmt: skip
    jobs = [{**row, "job": str(k), "name": "n"} for k, row in enumerate(rows)]
    found = tables(a_store(tmp_path / "six.duckdb", jobs, "Asia/Shanghai"))
    [whole] = found["workload"]
    work = [100, 150, 4000, 160, 30]
    assert (whole["jobs"], whole["sized_jobs"], whole["unit"], whole["days"]) == (6, 5, "GPUs", 2)
    assert (whole["size_mean"], whole["size_p50"], whole["size_max"]) == (4.6, 1, 16)
    assert (whole["one_pct"], whole["over_8_pct"]) == (60, 20)
    assert whole["over_8_work_pct"] == pytest.approx(100 * 160 / sum(work))
    assert (whole["run_mean_s"], whole["run_p50_s"], whole["wait_mean_s"]) == (258, 100, 18)
    assert (whole["completed_pct"], whole["killed_pct"], whole["failed_pct"]) == (40, 20, 40)
    assert whole["failed_work_pct"] == pytest.approx(100 * 190 / sum(work))
    assert whole["load_mean"] == pytest.approx(sum(work) / (2 * 86_400))
    # half of two users is one, and so is each smaller share
    shares = [(row["users_pct"], row["users"], row["jobs_pct"], row["work_pct"]) for row in found["user_shares"]]
    assert shares[0] == (1, 1, 75, pytest.approx(100 * 4250 / 4410))
    assert [users for _, users, _, _ in shares] == [1] * 8 + [2] * 5
    assert shares[-1] == (100, 2, 100, 100)
    [users] = found["user_concentration"]
    assert users["users"] == 2
    assert users["gini_jobs"] == pytest.approx(0.25)
    assert users["top_5_work_pct"] == users["top_work_pct"] == pytest.approx(100 * 4250 / 4410)
    assert users["half_work_users"] == 1
    [repeated] = found["job_repetition"]
    assert (repeated["pairs"], repeated["same_size_pct"], repeated["run_within_2_pct"]) == (2, 50, 100)
    assert (repeated["sessions"], repeated["single_pct"]) == (3, pytest.approx(200 / 3))
    # 0:00 UTC is 8:00 there
    assert {row["hour"]: row["jobs"] for row in found["arrivals_by_hour"] if row["jobs"]} == {8: 4, 9: 1, 13: 1}
    assert [row["jobs"] for row in found["arrivals_by_weekday"]] == [4, 1, 1]
    assert [(row["size"], row["jobs"], row["up_to_pct"]) for row in found["job_sizes"]] == [
        ("1", 3, 60),
        ("4", 1, 80),
        ("16", 1, 100),
    ]
    outcome = {(row["size_bucket"], row["state"]): row["jobs"] for row in found["runtime_by_outcome"]}
    assert outcome["all", "all"] == 5
    with Store(tmp_path / "six.duckdb", write=True) as store:
        store.execute("UPDATE clusters SET epoch = 'relative'")
    undated = tables(tmp_path / "six.duckdb")
    assert undated["arrivals_by_hour"] == undated["arrivals_by_weekday"] == []
    assert undated["job_sizes"] == found["job_sizes"]
    assert outcome["1", "failed"] == outcome["2-4", "killed"] == outcome[">8", "failed"] == 1


def test_series_are_those_of_numpy(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    hours = np.sort(np.concatenate([24 * rng.integers(0, 30, 900) + rng.normal(14, 3, 900), rng.uniform(0, 720, 100)]))
    jobs = [
        {"job": f"{k:04}", "submit_ts": MONDAY + timedelta(seconds=int(3600 * h)), "cpus": 4, "gpus": 0,
         "run_sum_s": 60.0, "state": "completed", "user": f"u{k % 7}"}
        for k, h in enumerate(hours.tolist())
    ]  # fmt: skip
    found = tables(a_store(tmp_path / "many.duckdb", jobs), "arrival_correlation", "workload")
    assert found["workload"][0]["unit"] == "CPUs"
    submit = [job["submit_ts"].timestamp() for job in jobs]
    frame = pl.DataFrame({"job": [job["job"] for job in jobs], "submit_s": submit, "run_sum_s": 60.0, "cpus": 4})
    trace = jobs_of("x", frame)
    for row in found["arrival_correlation"]:
        if row["measure"] == "autocorrelation":
            own = quality.autocorrelation(quality.counts(trace, 3600), int(row["lag_h"]))
        else:
            own = quality.dispersion(trace, 3600 * row["lag_h"])
        assert row["value"] == pytest.approx(own), row


def test_published_values_stand_next_to_ours(tmp_path: Path) -> None:
    at = {"submit_ts": MONDAY, "state": "completed", "gpus": 2, "wait_s": 5.0, "run_sum_s": 400.0}
    path = a_store(tmp_path / "two.duckdb", [{**at, "job": str(k)} for k in range(2)])
    found = tables(path, "reference_helios", "reference_traces", "reference_acme")
    rows = {(row["group_name"], row["measure"]): row for row in found["reference_helios"]}
    run = rows["all four", "run time, median"]
    assert (run["published"], run["ours"], run["difference"]) == (206, 400, 194)
    assert rows["Venus", "wait, mean"]["published"] == pytest.approx(1253.288)
    assert "6,218" in rows["all four", "GPUs of the cluster"]["finding"]
    traces = {row["measure"]: row for row in found["reference_traces"]}
    assert (traces["wait, median"]["philly"], traces["wait, median"]["ours"]) == (189, 5)
    assert traces["jobs that completed"]["pai"] is None
    # the shares of each cluster are those of all its jobs
    for table in ("reference_helios", "reference_acme"):
        for group in {row["group_name"] for row in found[table]}:
            mine = [row for row in found[table] if row["group_name"] == group]
            for what in ("jobs that", "GPU time of jobs that"):
                assert sum(r["published"] for r in mine if r["measure"].startswith(what)) == pytest.approx(
                    100, abs=0.15
                )


def test_a_report_has_workloads_side_by_side(tmp_path: Path) -> None:
    at = {"submit_ts": MONDAY, "state": "completed", "run_sum_s": 400.0, "user": "a"}
    found = []
    for name, gpus in (("small", 1), ("large", 16)):
        jobs = [{**at, "job": str(k), "gpus": gpus} for k in range(3)]
        with Store(a_store(tmp_path / f"{name}.duckdb", jobs)) as store:
            found.append(analyze(store, Options(sections=("workload",))))
    parts = labelled(found, ["small", "large"])
    shown = next(block for block in screen(parts, summarize(parts)).blocks if isinstance(block, Grid))
    assert [head.text for head in shown.heads] == ["Workloads", "small", "large", "unit"]
    assert ("size_mean", "1", "16", "") in shown.rows
    assert screen(parts[:1], summarize(parts[:1])).blocks[0] != shown
