"""Ratios among like things against a likelihood that is written out, and their intervals against planted truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from gpuctl.lessons.ratios import LEAST_CLUSTERS, ratios


def made(seed: int, users: int, ratio: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Jobs of users with kinds of their own; half of them are changed, and have so much of the mean."""
    draw = np.random.default_rng(seed)
    n = users * 12
    user = np.repeat(np.arange(users), 12)
    group = user * 2 + draw.integers(2, size=n)
    changed = (draw.random(n) < 0.3).astype(float)
    level = draw.uniform(20, 80, 2 * users)[group]
    return level * ratio**changed * np.exp(draw.normal(0, 0.3, n)), changed[:, None], group, user


def test_it_is_the_maximum_of_the_whole_likelihood() -> None:
    y, x, group, user = made(1, 6, 0.7)
    [found] = ratios(y, x, group, user)
    dummies = (group[:, None] == np.unique(group)).astype(float)

    def against(all_of_it: np.ndarray) -> float:
        eta = dummies @ all_of_it[1:] + x[:, 0] * all_of_it[0]
        return float(np.exp(eta).sum() - y @ eta)

    start = np.concatenate([[0.0], np.full(dummies.shape[1], 4.0)])
    best = minimize(against, start, method="BFGS", options={"gtol": 1e-8}).x[0]
    assert np.log(found.estimate.value) == pytest.approx(best, abs=1e-5)


def test_the_truth_is_in_nine_of_ten_intervals() -> None:
    inside, errors = 0, []
    for seed in range(200):
        [found] = ratios(*made(seed, 12, 0.7))
        assert found.estimate.low is not None
        inside += found.estimate.low <= 0.7 <= found.estimate.high
        errors.append(found.estimate.value / 0.7 - 1)
    # 0.9 of 200 with a deviation of 4.2
    assert 168 <= inside <= 192
    assert abs(np.mean(errors)) < 0.02


def test_constants_are_uninformative_and_few_users_give_no_interval() -> None:
    y, x, group, user = made(3, 6, 0.7)
    assert ratios(y, np.zeros_like(x), group, user)[0].estimate.value is None
    assert ratios(np.zeros_like(y), x, group, user)[0].estimate.value is None
    few = user < LEAST_CLUSTERS - 1
    [found] = ratios(y[few], x[few], group[few], user[few])
    assert found.estimate.value is not None
    assert found.estimate.low is None
    assert not found.shown
