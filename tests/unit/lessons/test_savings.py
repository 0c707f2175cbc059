"""Savings: sums and means over resampled blocks, and rules that are chosen on other blocks than they are scored on."""

from __future__ import annotations

import numpy as np

from gpuctl.lessons import savings
from gpuctl.lessons.finding import Estimate


def test_an_interval_is_that_of_whole_blocks() -> None:
    block = np.repeat(np.arange(8), 100)
    saved = np.repeat([1.0, -1, 1, -1, 1, -1, 1, -1], 100)
    found = savings.mean(saved, block)
    assert found.value == 0
    # eight fair coins: their mean has a standard error of 0.38, and Student's t of 1.9; single jobs would give 0.06
    assert found.low is not None
    assert -0.75 < found.low < -0.5
    assert found.shown == "no saving shown"
    assert savings.total(np.where(block == 0, np.nan, 2.0), block).value == 1400
    assert savings.mean(np.full(800, 2.0), block).shown == "saves"
    assert savings.mean(np.full(3, 2.0), np.zeros(3, int)) == Estimate(2.0)


def test_a_saving_must_hold_at_every_end() -> None:
    middle = Estimate(5, 2, 8)
    assert savings.hull(middle, [Estimate(3, 1, 4), Estimate(7, 4, 9)]) == Estimate(5, 1, 9)
    assert savings.hull(middle, [Estimate(3)]).shown == "not known"


def test_no_job_takes_part_in_choosing_its_own_rule() -> None:
    block = np.array([0, 0, 1, 1, 2, 2])
    base, lucky, better = np.full(6, 10.0), np.array([0.0, 0, 11, 11, 11, 11]), np.full(6, 9.0)
    chosen = savings.cross_validated_rules(np.stack([base, lucky, better]), block, baseline=0)
    # what is lucky in the first block alone is never chosen there
    assert chosen.tolist() == [2, 2, 1, 1, 1, 1]
    worse = np.stack([base, base + 1])
    assert savings.cross_validated_rules(worse, block, baseline=0).tolist() == [0] * 6
