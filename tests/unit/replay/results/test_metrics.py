from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.replay.models.records import Outcome, Workload
from gpuctl.replay.results.metrics import by_group, counted_jobs, fairness, jain, summary
from tests.unit.replay.outcomes import make_cluster, make_outcome, make_workload, random_outcome, random_workload

# On paper: 4 GPUs; job 0 comes at 0, wants 4 of them for 100 s; job 1 comes at 10, wants 2 for 50 s. First come, first
# served: 0 runs from 0 to 100, 1 from 100 to 150.
TWO = make_workload([0, 10], [100, 50], [4, 2])
FIFO = make_outcome(TWO, [[(0, 100, "finished")], [(100, 150, "finished")]])
# Shortest first, with preemption: 0 from 0 to 10, 1 from 10 to 60, 0 from 60 to 150.
SRTF = make_outcome(
    TWO, [[(0, 10, "preempted"), (60, 150, "finished")], [(10, 60, "finished")]], policy="srtf", oracle=True
)
FOUR = make_cluster(1, 4)


def test_two_jobs_on_paper() -> None:
    row = summary(FIFO, TWO, FOUR)
    expected = {
        "policy": "fifo", "oracle": False, "jobs": 2, "jobs_finished": 2, "jobs_waiting": 0, "jobs_unplaceable": 0,
        "jct_mean_s": 120, "jct_p50_s": 120, "jct_p90_s": 136, "jct_p95_s": 138, "jct_p99_s": 139.6,
        "wait_mean_s": 45, "wait_p90_s": 81, "delay_mean_s": 45, "delay_p50_s": 45,
        "slowdown_mean": 1.9, "slowdown_p50": 1.9, "slowdown_p95": 2.71, "bounded_slowdown_mean": 1.9,
        "makespan_s": 150, "measured_s": 150, "utilization_pct": 100 * 500 / 600, "goodput_pct": 100 * 500 / 600,
        "available_gpu_h": 600 / 3600, "useful_gpu_h": 500 / 3600, "idle_gpu_h": 100 / 3600, "overhead_gpu_h": 0,
        "work_finished_gpu_h": 500 / 3600, "idle_despite_wait_s": 0, "preemptions": 0, "jobs_preempted": 0,
        # apps in the system over a job's life: 190 job-seconds in 100 s, 230 in 140 s
        "rho_apps": 2, "rho_max": 140 / (230 / 140 * 50), "rho_mean": (100 / 190 + 140 / (230 / 140 * 50)) / 2,
        "jain": (1.9 + 23 / 39.2) ** 2 / (2 * (1.9**2 + (23 / 39.2) ** 2)),
    }  # fmt: skip
    for name, value in expected.items():
        assert row[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-12)), name


def test_two_jobs_with_preemption_on_paper() -> None:
    row = summary(SRTF, TWO, FOUR)
    assert (row["oracle"], row["preemptions"], row["jobs_preempted"]) == (True, 1, 1)
    assert (row["jct_mean_s"], row["wait_mean_s"], row["delay_mean_s"]) == (100, 25, 0)


def test_overhead_and_lost_progress_are_no_goodput() -> None:
    outcome = make_outcome(
        TWO, [[(0, 100, "finished")], [(100, 150, "finished")]], overhead={0: 40.0}, lost={1: 10.0}
    )  # fmt: skip
    row = summary(outcome, TWO, FOUR)
    assert row["utilization_pct"] == pytest.approx(100 * 500 / 600)
    assert row["goodput_pct"] == pytest.approx(100 * 450 / 600)
    parts = [row[f"{part}_gpu_h"] for part in ("useful", "overhead", "lost", "idle")]
    assert sum(parts) == pytest.approx(row["available_gpu_h"])


def test_nodes_that_are_down_are_not_available() -> None:
    # the two times overlap: down from 100 to 140, not 20 + 30 seconds
    cluster = make_cluster(2, 4, down=[(1, 100, 120), (1, 110, 140), (0, 150, np.inf)])
    row = summary(FIFO, TWO, cluster)
    assert row["available_gpu_h"] * 3600 == pytest.approx(8 * 150 - 4 * 40)


def test_jobs_that_do_not_finish_are_counted_and_in_no_mean() -> None:
    workload = make_workload([0, 0, 0, 0, 0], [10, 10, 10, 10, 10], [1, 1, 1, 1, 9])
    outcome = make_outcome(
        workload,
        [[(0, 10, "finished")], [(10, None, "running")], [], [], []],
        states={3: "held", 4: "unplaceable"},
        end_s=15,
    )
    row = summary(outcome, workload, FOUR)
    assert [row[f"jobs_{s}"] for s in ("finished", "running", "waiting", "held", "unplaceable", "rejected")] == [
        1, 1, 1, 1, 1, 0,
    ]  # fmt: skip
    assert row["jct_mean_s"] == 10
    assert row["wait_mean_s"] == 0
    assert (row["makespan_s"], row["measured_s"]) == (10, 15)
    assert row["utilization_pct"] == pytest.approx(100 * 15 / 60)
    assert row["rho_apps"] == 1


def test_nothing_finished_leaves_blanks() -> None:
    workload = make_workload([0], [10], [9])
    row = summary(make_outcome(workload, [[]], states={0: "unplaceable"}, end_s=0), workload, FOUR)
    assert (row["jobs"], row["jobs_unplaceable"]) == (1, 1)
    for name in ("jct_mean_s", "wait_p99_s", "slowdown_mean", "makespan_s", "utilization_pct", "rho_mean", "jain"):
        assert row[name] is None, name


def test_short_jobs_count_as_ten_seconds_in_a_slowdown() -> None:
    workload = make_workload([0, 0], [1, 0], [1, 1])
    outcome = make_outcome(workload, [[(4, 5, "finished")], [(30, 30, "finished")]])
    row = summary(outcome, workload, FOUR)
    assert row["slowdown_mean"] == pytest.approx((0.5 + 3) / 2)
    assert row["bounded_slowdown_mean"] == pytest.approx((1 + 3) / 2)
    assert row["rho_apps"] == 1  # no work, no rho


def test_warm_up_leaves_out_the_first_jobs_and_states_how_many() -> None:
    row = summary(FIFO, TWO, FOUR, warmup=0.5)
    assert (row["jobs_warmup"], row["jobs"], row["jct_mean_s"], row["rho_apps"]) == (1, 1, 140, 1)
    assert row["utilization_pct"] == pytest.approx(100 * 500 / 600)  # of the cluster, all jobs
    for wrong in (-0.1, 1.0, float("nan")):
        with pytest.raises(ValueError, match="warm-up"):
            counted_jobs(FIFO, TWO, warmup=wrong)


def test_a_job_that_waits_next_to_free_gpus_is_seen() -> None:
    outcome = make_outcome(TWO, [[(0, 100, "finished")], [(130, 180, "finished")]])
    assert summary(outcome, TWO, FOUR)["idle_despite_wait_s"] == 30
    assert summary(outcome, TWO, make_cluster(1, 4, down=[(0, 110, 120)]))["idle_despite_wait_s"] == 20


def test_apps_of_several_jobs_have_one_rho() -> None:
    from dataclasses import replace

    workload = replace(TWO, app=np.array([7, 7]))
    figures = fairness(FIFO, workload, FOUR)
    # one app alone all the time: 150 s for 500 GPU-s on 4 GPUs
    assert figures["rho_apps"] == 1
    assert figures["rho_mean"] == pytest.approx(150 / (500 / 4))
    assert figures["jain"] == 1


def test_jains_index() -> None:
    assert jain(np.array([3.0, 3.0, 3.0])) == pytest.approx(1)
    assert jain(np.array([5.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)
    assert jain(np.array([])) is None


def test_groups_are_in_order_and_add_up() -> None:
    workload = random_workload(400, seed=3, queues=("b", "a", "c"))
    outcome = random_outcome(workload, seed=3)
    sizes, queues = (by_group(outcome, workload, key) for key in ("size_bucket", "queue"))
    assert sizes["size_bucket"].to_list() == ["1", "2-4", "5-8", ">8"]
    assert queues["queue"].to_list() == ["a", "b", "c"]
    total = summary(outcome, workload, make_cluster(50, 8))
    for rows in (sizes, queues):
        for name in ("jobs", "jobs_finished", "jobs_waiting", "preemptions", "jobs_held_gpu_h"):
            assert rows[name].sum() == pytest.approx(total[name]), name


def naive(workload: Workload, outcome: Outcome) -> float:
    """Mean rho, second by nothing but loops: every pair of jobs."""
    jobs = outcome.jobs.to_dicts()
    lives = [
        (j["submit_s"], outcome.end_s if j["end_s"] is None else j["end_s"])
        for j in jobs
        if j["state"] != "unplaceable"
    ]
    found = []
    for j in jobs:
        if j["state"] == "finished":
            a, b = j["submit_s"], j["end_s"]
            alive = sum(max(0.0, min(b, y) - max(a, x)) for x, y in lives) / (b - a)
            found.append((b - a) / (alive * j["work_s"]))
    return float(np.mean(found))


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 60))
def test_figures_agree_with_plain_loops(seed: int, count: int) -> None:
    workload = random_workload(count, seed=seed, days=0.2)
    outcome = random_outcome(workload, seed=seed)
    row = summary(outcome, workload, make_cluster(100, 8))
    done = outcome.jobs.filter(pl.col("state") == "finished")
    if done.height:
        for name in ("jct", "wait"):
            values = done[f"{name}_s"].to_numpy()
            for label, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
                assert row[f"{name}_{label}_s"] == pytest.approx(np.quantile(values, q))
        assert row["rho_mean"] == pytest.approx(naive(workload, outcome), rel=1e-9)
    held = row["utilization_pct"] / 100 * row["available_gpu_h"] * 3600 if row["available_gpu_h"] else 0.0
    assert held == pytest.approx(outcome.jobs["gpu_s"].sum())
