from __future__ import annotations

import numpy as np
import pytest

from gpuctl.predictors.series import series


def test_even_samples_stay_as_they_are() -> None:
    found = series(np.arange(1.0, 6.0), np.array([5.0, 0, 7, 1, 2]))
    assert (found.start, found.step, found.bytes.tolist()) == (0.0, 1.0, [5, 0, 7, 1, 2])
    assert found.known.all()
    assert found.total.tolist() == [0, 5, 5, 12, 13, 15]


def test_samples_may_begin_at_any_time() -> None:
    found = series(np.arange(101.0, 104.0), np.array([5.0, 0, 7]))
    assert (found.start, found.step, found.bytes.tolist()) == (100.0, 1.0, [5, 0, 7])


def test_a_gap_is_spread_and_marked() -> None:
    found = series(np.array([1.0, 2, 3, 9, 10]), np.array([1.0, 1, 1, 60, 1]))
    assert found.bytes.tolist() == [1, 1, 1, 10, 10, 10, 10, 10, 10, 1]
    assert found.known.tolist() == [True] * 3 + [False] * 6 + [True]


def test_a_sample_may_cover_less_than_the_time_since_the_last() -> None:
    found = series(np.array([1.0, 2, 3, 9]), np.array([1.0, 1, 1, 8]), np.array([1.0, 1, 1, 2]))
    assert found.bytes.tolist() == [1, 1, 1, 0, 0, 0, 0, 4, 4]


@pytest.mark.parametrize("t", [[1.0], [1.0, 1.0, 2.0], [2.0, 1.0]])
def test_no_series(t: list[float]) -> None:
    with pytest.raises(ValueError, match="samples"):
        series(np.array(t), np.ones(len(t)))
