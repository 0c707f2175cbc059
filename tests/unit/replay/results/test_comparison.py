from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.results import comparison
from gpuctl.replay.results.tables import result
from gpuctl.replay.run import replay
from tests.unit.replay.outcomes import make_outcome, make_workload, random_outcome, random_workload
from tests.unit.replay.results.test_metrics import FIFO, SRTF, TWO


def row(frame: pl.DataFrame, measure: str = "jct", size: str = "all") -> dict[str, object]:
    (found,) = frame.filter(pl.col("measure") == measure, pl.col("size_bucket") == size).to_dicts()
    return found


def test_two_jobs_on_paper() -> None:
    frame = comparison.against(SRTF, FIFO, TWO)
    # JCT 150 and 50 against 100 and 140, waits 50 and 0 against 0 and 90
    jct, wait = row(frame), row(frame, "wait")
    assert (jct["policy"], jct["baseline"], jct["pairs"]) == ("srtf", "fifo", 2)
    assert (jct["mean_s"], jct["baseline_mean_s"], jct["diff_mean_s"], jct["diff_p50_s"]) == (100, 120, -20, -20)
    assert jct["change_pct"] == pytest.approx(-100 / 6)
    assert (wait["mean_s"], wait["baseline_mean_s"], wait["diff_mean_s"]) == (25, 45, -20)
    assert (jct["better_pct"], jct["worse_pct"], jct["equal_pct"]) == (50, 50, 0)
    # a trace of two minutes is too short to tell
    assert (jct["stretches"], jct["diff_low_s"], jct["p"]) == (0, None, None)
    small = row(frame, size="2-4")
    assert (small["pairs"], small["diff_mean_s"]) == (2, -20)
    assert set(frame["size_bucket"]) == {"all", "2-4"}


def test_jobs_that_did_not_finish_on_both_sides_are_counted_not_paired() -> None:
    workload = make_workload([0] * 4, [10] * 4, [1] * 4)
    stay = [(0.0, 10.0, "finished")]
    a = make_outcome(workload, [stay, stay, [], []], end_s=20)
    b = make_outcome(workload, [stay, [], stay, []], end_s=20, policy="b")
    jct = row(comparison.against(a, b, workload))
    names = ("jobs", "pairs", "unpaired_policy", "unpaired_baseline", "unpaired_both")
    assert [jct[n] for n in names] == [4, 1, 1, 1, 1]
    assert (jct["equal_pct"], jct["diff_low_s"]) == (100, None)
    none = row(comparison.against(make_outcome(workload, [[]] * 4, end_s=5), b, workload))
    assert (none["policy"], none["pairs"], none["diff_mean_s"], none["stretches"]) == ("fifo", 0, None, None)


def test_the_wait_of_an_unfinished_job_is_not_compared() -> None:
    workload = make_workload([0], [10], [1])
    waiting = make_outcome(workload, [[]], end_s=50)
    done = make_outcome(workload, [[(0, 10, "finished")]])
    assert row(comparison.against(waiting, done, workload), "wait")["pairs"] == 0


def test_what_was_recorded() -> None:
    workload = make_workload([0, 10, 20], [100, 50, 5], [4, 2, 1], recorded=[0, 100, float("nan")])
    frame = comparison.recorded(workload)
    assert frame["start_s"].to_list() == [0, 100, None]
    assert frame["end_s"].to_list() == [100, 150, None]
    assert frame["wait_s"].to_list() == [0, 90, None]
    # two segments with a pause between them; the second job still ran when the trace ended
    two = replace(
        make_workload([0, 5], [10, 20], [1, 1]),
        segment_start=np.array([0, 2, 3]),
        segment_s=np.array([10.0, 20.0, 7.0]),
        segment_fails=np.array([True, False, False]),
        recorded_start=np.array([3.0, 40.0, 6.0]),
        state=("completed", "running"),
    )
    frame = comparison.recorded(two)
    assert frame["start_s"].to_list() == [3, 6]
    assert frame["end_s"].to_list() == [60, None]
    assert frame["wait_s"].to_list() == [30, None]


def test_against_the_trace() -> None:
    workload = replace(TWO, recorded_start=np.array([0.0, 100.0]))
    frame = comparison.against(SRTF, comparison.recorded(workload), workload)
    assert (row(frame)["baseline"], row(frame)["diff_mean_s"]) == ("recorded", -20)


def test_the_same_pairs_give_the_same_interval() -> None:
    workload = random_workload(300, seed=4)
    a, b = random_outcome(workload, seed=1), random_outcome(workload, seed=2)
    assert comparison.against(a, b, workload).equals(comparison.against(a, b, workload))


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(2, 120), st.sampled_from([0.2, 8.0, 40.0]), st.sampled_from([0.0, 0.1]))
def test_differences_are_antisymmetric_and_in_their_interval(seed: int, count: int, days: float, warmup: float) -> None:
    workload = random_workload(count, seed=seed, days=days)
    a, b = random_outcome(workload, seed=seed), random_outcome(workload, seed=seed + 1, policy="b")
    there, back = comparison.against(a, b, workload, warmup=warmup), comparison.against(b, a, workload, warmup=warmup)
    for x, y in zip(there.to_dicts(), back.to_dicts(), strict=True):
        assert (x["pairs"], x["better_pct"], x["unpaired_policy"]) == (
            y["pairs"], y["worse_pct"], y["unpaired_baseline"],
        )  # fmt: skip
        assert x["pairs"] + x["unpaired_policy"] + x["unpaired_baseline"] + x["unpaired_both"] == x["jobs"]
        if x["pairs"]:
            assert x["diff_mean_s"] == pytest.approx(-y["diff_mean_s"], abs=1e-6)
            assert x["diff_mean_s"] == pytest.approx(x["mean_s"] - x["baseline_mean_s"], abs=1e-6)
            assert x["better_pct"] + x["worse_pct"] + x["equal_pct"] == pytest.approx(100)
        if x["diff_low_s"] is not None:
            assert x["diff_low_s"] - 1e-6 <= x["diff_mean_s"] <= x["diff_high_s"] + 1e-6
            assert x["diff_low_s"] == pytest.approx(-y["diff_high_s"], abs=1e-6)


def test_a_replay_of_the_recorded_starts_is_exact() -> None:
    workload = random_workload(200, seed=7)
    workload = replace(workload, recorded_start=np.nan_to_num(workload.recorded_start, nan=1e6))
    stays = [
        [(float(s), float(s + d), "finished")] for s, d in zip(workload.recorded_start, workload.segment_s, strict=True)
    ]
    frame = comparison.fidelity(make_outcome(workload, stays, policy="recorded"), workload)
    assert frame["by"].to_list() == ["all", *["size_bucket"] * 4, *["queue"] * 2]
    whole = frame.to_dicts()[0]
    for name in ("error_mean_s", "error_p5_s", "error_p95_s", "error_abs_mean_s"):
        assert whole[name] == 0, name
    assert whole["within_1s_pct"] == 100
    assert (whole["correlation"], whole["rank_correlation"]) == (pytest.approx(1), pytest.approx(1))
    assert frame["pairs"][0] == 200 == frame.filter(pl.col("by") == "queue")["pairs"].sum()


def test_fidelity_on_paper() -> None:
    workload = make_workload([0, 10, 20, 30], [5] * 4, [1] * 4, recorded=[0, 20, 40, float("nan")])
    stays = [[(0.5, 5.5, "finished")], [(50.0, 55.0, "finished")], [], [(60.0, 65.0, "finished")]]
    whole = comparison.fidelity(make_outcome(workload, stays, end_s=70), workload).to_dicts()[0]
    assert (whole["jobs"], whole["pairs"], whole["only_recorded"], whole["only_replayed"]) == (4, 2, 1, 1)
    assert (whole["error_mean_s"], whole["error_abs_mean_s"], whole["error_p50_s"]) == (15.25, 15.25, 15.25)
    assert whole["error_p5_s"] == pytest.approx(0.5 + 0.05 * 29.5)
    assert (whole["within_1s_pct"], whole["within_1min_pct"]) == (50, 100)
    assert (whole["delay_recorded_mean_s"], whole["delay_replayed_mean_s"]) == (5, 20.25)


def test_correlations_are_scipys() -> None:
    from scipy.stats import pearsonr, spearmanr

    workload = random_workload(300, seed=11)
    outcome = random_outcome(workload, seed=11)
    both = outcome.jobs["start_s"].is_not_null().to_numpy() & ~np.isnan(workload.recorded_start)
    here = (outcome.jobs["start_s"].to_numpy() - workload.submit)[both]
    there = (workload.recorded_start - workload.submit)[both]
    whole = comparison.fidelity(outcome, workload).to_dicts()[0]
    assert whole["correlation"] == pytest.approx(pearsonr(here, there).statistic)
    assert whole["rank_correlation"] == pytest.approx(spearmanr(here, there).statistic)


def test_constants_have_no_correlation() -> None:
    workload = make_workload([0, 10], [5, 5], [1, 1], recorded=[0, 10])
    outcome = make_outcome(workload, [[(0, 5, "finished")], [(12, 17, "finished")]])
    whole = comparison.fidelity(outcome, workload).to_dicts()[0]
    assert (whole["correlation"], whole["rank_correlation"]) == (None, None)
    nothing = comparison.fidelity(outcome, make_workload([0, 10], [5, 5], [1, 1])).to_dicts()[0]
    assert (nothing["pairs"], nothing["only_replayed"], nothing["error_mean_s"]) == (0, 2, None)


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_the_interval_of_a_quantile_is_that_of_whole_blocks_drawn_again(share: float) -> None:
    rng = np.random.default_rng(3)
    day = np.sort(rng.integers(0, 30, 3000))
    values = rng.exponential(100, 3000) * (1 + day % 4)
    low, high = comparison.quantile_bootstrap(values, day, share)
    blocks = [values[day == one] for one in np.unique(day)]
    draws = rng.integers(0, len(blocks), (1000, len(blocks)))
    plain = [np.quantile(np.concatenate([blocks[k] for k in draw]), share) for draw in draws]
    assert (low, high) == pytest.approx(np.quantile(plain, (0.025, 0.975)), rel=0.05)
    assert comparison.quantile_bootstrap(values[:1], day[:1], share) == (None, None)


def test_a_summary_has_intervals_of_its_waits() -> None:
    workload = random_workload(400, seed=2, days=30)
    nodes = parse_cluster("2x8", workload)
    done = replay(workload, nodes, [("fifo", {}), ("fifo-skip", {})], processes=1)
    found = result(done, workload, nodes)
    frame = found.tables[0].frame
    for name in ("wait_mean", "wait_p95"):
        for low, value, high in frame.select(f"{name}_low_s", f"{name}_s", f"{name}_high_s").rows():
            assert 0 <= low < value < high
    compared = row(next(table.frame for table in found.tables if table.name == "replay_vs_baseline"), "wait")
    assert compared["diff_low_s"] < compared["diff_mean_s"] < compared["diff_high_s"]
    assert compared["stretches"] > 6
    # how long jobs run is the same under both: what differs is the wait, and so is what is known of it
    jct = row(next(table.frame for table in found.tables if table.name == "replay_vs_baseline"))
    assert (jct["diff_low_s"], jct["diff_high_s"]) == pytest.approx((compared["diff_low_s"], compared["diff_high_s"]))
    short = random_workload(400, seed=2, days=8)
    assert set(comparison.wait_intervals(random_outcome(short, seed=1), short).values()) == {None}


def test_a_p95_of_0_may_be_more_in_busier_times() -> None:
    # one GPU and jobs of ten minutes; each 25th comes while the one before it runs: 4 % wait
    submit = np.arange(600) * 4320.0
    submit[24::25] = submit[23::25] + 300
    start = np.where(np.arange(600) % 25 == 24, submit + 300, submit)
    workload = make_workload(submit.tolist(), [600.0] * 600, [1] * 600)
    outcome = make_outcome(workload, [[(s, s + 600, "finished")] for s in start.tolist()])
    ends = comparison.wait_intervals(outcome, workload)
    assert ends["wait_mean_high_s"] is not None
    assert ends["wait_mean_high_s"] > 12 * 1.25
    assert (ends["wait_p95_low_s"], ends["wait_p95_high_s"]) == (0, 300)
