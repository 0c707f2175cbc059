"""Order by numbers, and values summed over intervals, worked out by hand."""

from __future__ import annotations

import numpy as np

from gpuctl.analyze.interval_sweeps import Ranked, covered, grouped, highest


def test_numbers_beyond_16_bits_are_put_in_order() -> None:
    numbers = np.array([65_537, 1, 0, 65_537, 65_536, 1])
    assert grouped(numbers).tolist() == [2, 1, 5, 4, 0, 3]
    assert grouped(numbers[1:3]).tolist() == [1, 0]


def test_the_highest_value_that_holds_on_each_interval() -> None:
    first, last = np.array([0, 1, 2, 4, 5]), np.array([3, 2, 7, 4, 6])
    values = np.array([2.0, 5.0, 3.0, 9.0, 1.0])  # the fourth holds nowhere
    assert highest(8, first, last, values, -1.0).tolist() == [2, 5, 3, 3, 3, 3, 3, -1]


def test_the_weight_of_the_intervals_that_have_a_value() -> None:
    ranked = Ranked(np.array([3.0, 1.0, 3.0, 2.0, 3.0]))
    value = np.array([3.0, 3.0, 1.0, 2.0, 9.0, 0.0])  # nothing has the last two
    first, last = np.array([0, 1, 0, 3, 0, 0]), np.array([5, 4, 5, 3, 5, 5])
    assert ranked.sums(np.array([1.0, 10, 100, 1000, 10000]), value, first, last).tolist() == [10101, 100, 10, 0, 0, 0]


def test_seconds_of_each_interval_that_spans_cover() -> None:
    times = np.array([0.0, 10, 20, 40, 50])
    found = covered(times, np.array([5.0, 0, 20]), np.array([25.0, 10, 40]))
    assert found.tolist() == [5 + 10, 10, 5 + 20, 0, 0]
