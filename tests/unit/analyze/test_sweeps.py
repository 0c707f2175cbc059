"""Order by numbers, and the highest of values over intervals, worked out by hand."""

from __future__ import annotations

import numpy as np

from gpuctl.analyze.sweeps import grouped, highest


def test_numbers_beyond_16_bits_are_put_in_order() -> None:
    numbers = np.array([65_537, 1, 0, 65_537, 65_536, 1])
    assert grouped(numbers).tolist() == [2, 1, 5, 4, 0, 3]
    assert grouped(numbers[1:3]).tolist() == [1, 0]


def test_the_highest_value_that_holds_on_each_interval() -> None:
    first, last = np.array([0, 1, 2, 4, 5]), np.array([3, 2, 7, 4, 6])
    values = np.array([2.0, 5.0, 3.0, 9.0, 1.0])  # the fourth holds nowhere
    assert highest(8, first, last, values, -1.0).tolist() == [2, 5, 3, 3, 3, 3, 3, -1]
