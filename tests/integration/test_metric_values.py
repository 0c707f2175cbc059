"""Metrics that CI can check, and the tables behind them, against values by hand (tests/hand_worked_logs.py)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.hand_worked_logs import write_worked_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

METRICS = {
    "overview.jobs": 9,
    "overview.gpus": 40,
    "overview.gpu_hours": 68,
    "overview.occupancy_pct": 100 * 68 / (40 * 8),
    "overview.jobs_pct{state=completed}": 100 * 6 / 9,
    "overview.jobs_pct{state=timeout}": 100 / 9,
    "queueing.mean_wait_h": 5 / 9,
    "queueing.mean_wait_h{queue=gpu}": 3 / 4,
    "queueing.p50_wait_h": 0,
    "queueing.p50_wait_h{queue=debug}": 0.25,
    "queueing.p90_wait_h": 1.8,
    "queueing.p95_wait_h": 2.4,
    "queueing.p95_wait_h{queue=debug}": 0.475,
    "queueing.over_10min_pct{queue=gpu}": 25,
    "queueing.over_10min_pct{queue=debug}": 50,
    "queueing.fair_share_pct": 100 * 3.5 / 5,
    "queueing.capacity_pct": 0,
    "queueing.fragmentation_pct": 100 * 1.5 / 5,
    "failures.failed_jobs_pct": 100 / 9,
    "failures.lost_gpu_hours_pct": 100 * 20 / 68,
    "failures.retried_jobs_pct": 0,
    "failures.failed_attempts_pct{queue=gpu}": 50,
    'failures.reason_gpu_time_pct{reason="Time limit"}': 100 * 2 / 18,
    "locality.at_fewest_pct": 100,
    "locality.out_of_order_pct": 0,
    "workload.jobs_a_day": 9 / 7.5 * 24,
    "workload.size_mean": 40 / 9,
    "workload.one_pct": 100 * 2 / 9,
    "workload.over_8_pct": 0,
    "workload.run_p50_s": 7200,
    "workload.run_mean_s": 3600 * 15 / 9,
    "workload.wait_mean_s": 2000,
    "workload.completed_pct": 100 * 6 / 9,
    "workload.killed_pct": 100 / 9,
    "workload.failed_pct": 100 * 2 / 9,
    "workload.completed_work_pct": 100 * 48 / 68,
    "workload.failed_work_pct": 100 * 18 / 68,
    "workload.users": 3,
    "workload.gini_work": 16 / (2 * 9 * 68 / 3),
    "workload.top_5_work_pct": 100 * 24 / 68,
}
CELLS: dict[str, tuple[dict[str, str], dict[str, float]]] = {
    "gpu_hours_lost": (
        {"size_bucket": "all"},
        {"gpu_hours": 68, "succeeded_h": 48, "killed_h": 4, "failed_h": 16, "retried_h": 0, "lost_pct": 2000 / 68},
    ),
    "users": ({"user": "ada"}, {"gpu_hours": 20, "lost_gpu_hours": 4, "lost_pct": 20, "own_lost_pct": 20}),
    "status": ({"state": "completed"}, {"jobs": 6, "jobs_timed": 6, "gpu_hours": 48, "gpu_hours_span": 48}),
    "delay_by_size": (
        {"size_bucket": "all"},
        {"waits": 3, "wait_h": 5, "fair_share_h": 3.5, "fragmentation_h": 1.5, "wait_gpu_h": 36.5},
    ),
}
"""Result table -> (its row, cells of that row)."""


def test_metrics_and_their_tables_have_the_values_worked_out_by_hand(
    tmp_path: Path, gpuctl: Callable[..., CompletedProcess[str]]
) -> None:
    options = ("--quotas", tmp_path / "quotas.csv", "--borrow-below", "0")
    result = tmp_path / "result.json"
    gpuctl("analyze", write_worked_log(tmp_path), *options, "--all", "--json", "--output", result)
    tables: dict[str, Any] = json.loads(result.read_text("utf-8"))["tables"]
    for name, (row, cells) in CELLS.items():
        [found] = [each for each in tables[name]["rows"] if row.items() <= each.items()]
        assert {column: found[column] for column in cells} == pytest.approx(cells), name
    report = json.loads(gpuctl("report", result, "--json").stdout)
    metrics = {row["metric"]: row["value"] for row in report["tables"]["metrics"]["rows"]}
    assert {name: metrics[name] for name in METRICS} == pytest.approx(METRICS)
    # the unit of --fail-if is that of the metric: just below its value fails, just above does not
    for name in ("queueing.fair_share_pct", "queueing.fragmentation_pct", "failures.lost_gpu_hours_pct"):
        for limit, code in ((METRICS[name] - 0.1, 1), (METRICS[name] + 0.1, 0)):
            done = gpuctl("report", result, "--fail-if", f"{name} > {limit}", "--json", check=False)
            assert done.returncode == code, (name, limit, done.stderr)
