"""Scores of predicted run times, against figures worked out by hand and by SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from gpuctl.predictors.evaluate import ENOUGH_DAYS, FEW_BLOCKS, MEASURES, Guess, score

QUANTILES = (0.1, 0.5, 0.9)


def values(guess: Guess, truth: list[float] | np.ndarray, day: list[int] | np.ndarray) -> dict[str, tuple[float, ...]]:
    rows = score(guess, np.asarray(truth, float), np.asarray(day), QUANTILES)
    assert rows["predictor"].unique().to_list() == [guess.name]
    return {row["measure"]: (row["value"], row["low"], row["high"], row["jobs"]) for row in rows.to_dicts()}


def test_every_figure_by_hand() -> None:
    truth = [10.0, 100.0, 100.0, 50.0]
    guess = Guess(
        "x", np.array([11.0, 50.0, 201.0, 50.0]), np.array([10.5, 20, 100, 50]), np.array([21, 80, 400, 100.0])
    )
    found = values(guess, truth, [0, 0, 0, 0])
    # errors 1, 50, 101, 0; relative 10 %, 50 %, 101 %, 0 %
    expected = {
        "median_ape_pct": 30,
        "mae_s": 38,
        "mean_abs_log_error": (np.log(1.1) + np.log(2) + np.log(2.01)) / 4,
        "within_10_pct": 50,
        "within_50_pct": 75,
        "coverage_pct": 50,
        "below_pct": 25,
        "above_pct": 25,
        "width_mean_s": (10.5 + 60 + 300 + 50) / 4,
        "width_factor": (2 * 4 * 4 * 2) ** 0.25,
        "rank_correlation": spearmanr(guess.middle, truth).statistic,
        # each at 0.1, 0.5, 0.9: above its quantile costs q, below it 1 - q
        "pinball_s": (
            (0.45 + 0.5 + 1.1) + (8 + 25 + 18) + (0 + 50.5 + 30) + (0 + 0 + 5)
        ) / 4 / 3,
    }  # fmt: skip
    assert set(found) == set(MEASURES)
    for measure, value in expected.items():
        assert found[measure][0] == pytest.approx(value), measure
        assert found[measure][3] == 4


def test_a_rule_without_intervals_or_answers() -> None:
    middle = np.array([np.nan, 2.0, 2.0, np.nan])
    found = values(Guess("x", middle), [1, 2, 4, 8], [0, 0, 1, 1])
    assert not {"coverage_pct", "width_mean_s", "width_factor"} & set(found)
    assert found["mae_s"][0] == 1
    assert found["mae_s"][3] == 2
    assert found["rank_correlation"][:3] == (None, None, None)
    # 0.1 x 2, 0.5 x 2 and 0.9 x 2 of the one that ran longer
    assert found["pinball_s"][0] == pytest.approx((0.2 + 1 + 1.8) / 3 / 2)


def test_run_times_under_a_second_count_as_one() -> None:
    found = values(Guess("x", np.array([0.0, 2.0])), [0.25, 2.0], [0, 1])
    assert found["median_ape_pct"][0] == 0
    assert found["mean_abs_log_error"][0] == 0


def test_intervals_hold_the_true_figure_as_often_as_they_say() -> None:
    """Jobs of a day share an error; a bootstrap over jobs would be far too sure."""
    random = np.random.default_rng(4)
    hits = 0
    for _ in range(200):
        shared = np.repeat(random.normal(size=40), 25)
        said = np.exp(7 + np.abs(shared))
        low, high = values(Guess("x", said), np.full(1000, np.exp(7.0)), np.repeat(np.arange(40), 25))[
            "mean_abs_log_error"
        ][1:3]
        hits += low <= np.sqrt(2 / np.pi) <= high
    assert 0.88 <= hits / 200 <= 0.99


def test_intervals_of_median_and_rank_correlation_are_of_resampled_days() -> None:
    random = np.random.default_rng(5)
    truth, day = np.exp(random.normal(7, 1, 400)), np.repeat(np.arange(20), 20)
    said = truth * np.exp(random.normal(0, 1, 400))
    found = values(Guess("x", said), truth, day)
    medians, ranks = [], []
    for _ in range(300):
        drawn = np.concatenate([np.flatnonzero(day == d) for d in random.integers(20, size=20)])
        medians.append(np.median(100 * np.abs(said - truth)[drawn] / truth[drawn]))
        ranks.append(spearmanr(said[drawn], truth[drawn]).statistic)
    for measure, resampled in (("median_ape_pct", medians), ("rank_correlation", ranks)):
        value, low, high, _ = found[measure]
        a, b = np.quantile(resampled, (0.025, 0.975))
        assert low < value < high
        assert (low, high) == pytest.approx((a, b), abs=0.35 * (b - a)), measure


def test_few_days_are_cut_into_blocks_and_one_job_has_no_interval() -> None:
    many = np.exp(np.random.default_rng(6).normal(size=100))
    days = np.arange(100) * (ENOUGH_DAYS - 1) // 100
    assert len(set(days)) < ENOUGH_DAYS < FEW_BLOCKS
    value, low, high, _ = values(Guess("x", many), np.ones(100), days)["mae_s"]
    assert low < value < high
    assert values(Guess("x", many[:1]), np.ones(1), days[:1])["mae_s"][1:3] == (None, None)
