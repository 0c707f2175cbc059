"""Rules of stopping, worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gpuctl.lessons.stopping import RULES, by_extrapolation, by_patience, in_hindsight, stopped

RULE = {rule.key: rule for rule in RULES}


def test_each_rule_stops_where_its_definition_says() -> None:
    loss = np.array([2.0, 1.5, 1.2, 1.0005, 1.0, 1.0002, 1.0, 1.0])
    assert in_hindsight(loss) == 3
    # at the seventh point (place 6) the lowest is what it was three points before, but for 0.05 %
    assert by_patience(loss, 3) == 6
    assert by_patience(loss, 10) == 7
    # geometric: halves of the way to 1 at every point; three thirds of the points so far give that limit exactly
    decay = 1 + 0.5 ** np.arange(30)
    place = by_extrapolation(decay)
    assert decay[place] == pytest.approx(1.0, rel=1.1e-3)
    assert place < 14


def test_a_rule_knows_only_what_was_logged() -> None:
    draw = np.random.default_rng(1)
    for _ in range(200):
        loss = np.abs(np.cumsum(draw.normal(-0.02, 0.05, 40)) + 3)
        for rule in RULES:
            if not rule.online:
                continue
            place = rule.stop(loss)
            other = loss.copy()
            other[place + 1 :] = draw.uniform(0, 10, loss.size - place - 1)
            if place < loss.size - 1:
                assert rule.stop(other) == place, rule.key


def test_numbers_that_are_none_are_never_the_lowest() -> None:
    loss = np.array([np.nan, 2.0, np.inf, 1.0, np.nan, 1.0])
    assert in_hindsight(loss) == 3
    assert by_patience(loss, 2) == 5
    assert by_extrapolation(loss) == 5


def test_jobs_stopped_too_early_cost_what_they_had_spent() -> None:
    # the second curve stays for six points and falls again
    one = [2.0, 1.0, *[1.0] * 8]
    two = [2.0, *[1.5] * 6, 1.2, 1.1, 1.0]
    what = stopped(RULE["patience 5"], np.array([*one, *two]), np.tile(np.arange(1.0, 11.0), 2), np.array([0, 10, 20]))
    assert what.spent.tolist() == [7.0, 7.0]
    assert what.regret.tolist() == [0.0, 0.5]
    assert what.net.tolist() == [3.0, -7.0]
