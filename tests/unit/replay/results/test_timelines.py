from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.replay.results import timelines
from tests.unit.replay.outcomes import make_cluster, make_outcome, make_workload, random_outcome, random_workload
from tests.unit.replay.results.test_metrics import FIFO, FOUR, SRTF


def integral(frame: pl.DataFrame, name: str) -> float:
    widths = (frame["t_end_s"] if "t_end_s" in frame.columns else frame["t_s"].shift(-1)) - frame["t_s"]
    return float((frame[name] * widths).sum())


def test_two_jobs_on_paper() -> None:
    exact = timelines.levels(SRTF, FOUR)
    assert exact["t_s"].to_list() == [0, 10, 60, 150]
    assert exact["gpus_busy"].to_list() == [4, 2, 4, 0]
    assert exact["running_jobs"].to_list() == [1, 1, 1, 0]
    assert exact["waiting_jobs"].to_list() == [0, 1, 0, 0]
    assert exact["gpus_waiting"].to_list() == [0, 4, 0, 0]
    assert exact["gpus_available"].to_list() == [4, 4, 4, 4]


def test_bins_are_means_over_time() -> None:
    means = timelines.binned(timelines.exact_levels(FIFO, FOUR), np.array([0.0, 50.0, 100.0, 200.0]))
    assert means["gpus_busy"].to_list() == [4, 4, 1]
    assert means["waiting_jobs"].to_list() == pytest.approx([0.8, 1, 0])


def test_a_replay_that_ended_counts_nothing_afterwards() -> None:
    workload = make_workload([0, 0], [10, 10], [1, 1])
    outcome = make_outcome(workload, [[(0, None, "running")], []], end_s=10)
    exact = timelines.levels(outcome, FOUR, until=30)
    assert exact["t_s"].to_list() == [0, 10, 30]
    assert exact["waiting_jobs"].to_list() == [1, 0, 0]
    assert exact["gpus_available"].to_list() == [4, 4, 4]


def test_only_jobs_in_the_queue_wait() -> None:
    workload = make_workload([0, 0, 0, 0], [10, 10, 10, 10], [1, 1, 9, 1])
    outcome = make_outcome(
        workload, [[(0, 10, "finished")], [], [], []], states={2: "unplaceable", 3: "held"}, end_s=10
    )
    assert timelines.levels(outcome, FOUR)["waiting_jobs"].to_list() == [1, 0]


def test_a_hold_is_no_time_in_the_queue() -> None:
    workload = make_workload([0], [10], [1])
    outcome = make_outcome(workload, [[(20, 30, "finished")]])
    late = outcome.jobs.with_columns(pl.lit(15.0).alias("eligible_s"))
    object.__setattr__(outcome, "jobs", late)
    exact = timelines.levels(outcome, FOUR)
    assert exact["t_s"].to_list() == [0, 15, 20, 30]
    assert exact["waiting_jobs"].to_list() == [0, 1, 0, 0]


def test_down_times_are_merged_and_cut_to_the_window() -> None:
    cluster = make_cluster(3, 4, down=[(1, 50, 80), (1, -10, 20), (1, 70, np.inf), (0, 5, 10), (2, 300, 400)])
    node, first, until = timelines.down_times(cluster, 0.0, 100.0)
    assert list(zip(node, first, until, strict=True)) == [(0, 5, 10), (1, 0, 20), (1, 50, 100)]
    assert timelines.down_times(FOUR, 0.0, 100.0)[0].size == 0


def test_occupancy_on_paper() -> None:
    cluster = make_cluster(2, 4, down=[(1, 100, 150)])
    outcome = make_outcome(
        make_workload([0, 10], [100, 50], [4, 2]), [[(0, 100, "finished")], [(100, 150, "finished")]], nodes=2
    )
    cells, names = timelines.occupancy(outcome, cluster, np.array([0.0, 75.0, 150.0]))
    assert names == ("gpu000", "gpu001")
    assert cells["row"].to_list() == [0, 0, 1, 1]
    assert cells["busy_pct"].to_list() == pytest.approx([100, 100 / 3, 0, 100 / 3])
    assert cells["down_pct"].to_list() == pytest.approx([0, 0, 0, 200 / 3])


def test_many_nodes_share_rows_evenly() -> None:
    workload = random_workload(50, seed=1)
    outcome = random_outcome(workload, seed=1, nodes=150)
    cells, names = timelines.occupancy(outcome, make_cluster(150, 8), timelines.bin_edges(0, 1e6, 10))
    assert len(names) == 64
    assert cells.height == 640
    assert names[0].startswith("gpu000 to ")
    assert names[-1].endswith("gpu149")


def test_a_pool_without_pieces_is_one_row() -> None:
    outcome = make_outcome(make_workload([0], [10], [2]), [[(0, 10, "finished")]])
    object.__setattr__(outcome, "pieces", outcome.pieces.clear())
    cells, names = timelines.occupancy(outcome, FOUR, np.array([0.0, 10.0]))
    assert (names, cells["busy_pct"].to_list()) == (("gpu000",), [50.0])


def test_no_time_at_all() -> None:
    workload = make_workload([5], [0], [1])
    outcome = make_outcome(workload, [[(5, 5, "finished")]])
    edges = timelines.bin_edges(*timelines.window(outcome), timelines.BINS)
    means = timelines.binned(timelines.exact_levels(outcome, FOUR), edges)
    assert means["gpus_busy"].to_list() == [0]
    assert timelines.idle_despite_wait(outcome, FOUR) == 0


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 80), st.integers(1, 12), st.integers(1, 40))
def test_integrals_are_kept(seed: int, count: int, nodes: int, bins: int) -> None:
    workload = random_workload(count, seed=seed, days=0.3)
    outcome = random_outcome(workload, seed=seed, nodes=nodes)
    cluster = make_cluster(nodes, 8)
    exact = timelines.levels(outcome, cluster)
    edges = timelines.bin_edges(*timelines.window(outcome), bins)
    means = timelines.binned(timelines.exact_levels(outcome, cluster), edges)
    queued = outcome.jobs.filter(~pl.col("state").is_in(list(timelines.NEVER_QUEUED)))
    for name, total in (
        ("gpus_busy", float(outcome.jobs["gpu_s"].sum())),
        ("running_jobs", float(outcome.jobs["run_s"].sum())),
        ("waiting_jobs", float(queued["wait_s"].sum())),
        ("gpus_waiting", float((queued["wait_s"] * queued["gpus"]).sum())),
    ):
        assert integral(exact, name) == pytest.approx(total, rel=1e-9, abs=1e-3), name
        if outcome.end_s > float(workload.submit.min()):
            assert integral(means, name) == pytest.approx(total, rel=1e-9, abs=1e-3), name
    assert (exact["waiting_jobs"] >= 0).all()
    cells, _ = timelines.occupancy(outcome, cluster, edges, rows=5)
    rows = np.arange(nodes) * min(5, nodes) // nodes
    weight = np.bincount(rows) * 8 * (edges[1] - edges[0]) / 100
    held = float((cells["busy_pct"].to_numpy() * weight[cells["row"].to_numpy()]).sum())
    assert held == pytest.approx(float(outcome.jobs["gpu_s"].sum()), rel=1e-9, abs=1e-3)
