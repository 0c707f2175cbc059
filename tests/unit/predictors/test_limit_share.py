"""Shares of limits: which quantiles are fitted, and what is answered of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from gpuctl.predictors.limit_share import LEVELS, Shares, share


def test_quantiles_rise_and_are_as_fine_at_one_end_as_at_the_other() -> None:
    assert list(LEVELS) == sorted(set(LEVELS))
    assert [low + high for low, high in zip(LEVELS, reversed(LEVELS), strict=True)] == pytest.approx([1] * len(LEVELS))
    assert LEVELS[0] > 0


def test_a_job_uses_up_no_more_than_its_limit_and_no_less_than_a_second_of_it() -> None:
    run, limit = np.array([0.0, 1, 50, 100, 101]), np.full(5, 100.0)
    assert share(run, limit) == pytest.approx(np.log([0.01, 0.01, 0.5, 1, 1]))


def test_answers_are_in_order_and_never_beyond_the_limit() -> None:
    # trees of each level are fitted apart, so that what they say may cross
    said = [np.array([-1.0, -3.0]), np.array([-2.0, 0.5]), np.array([0.25, -4.0])]
    fitted = tuple(cast("Any", SimpleNamespace(answer=lambda rows, one=one: one)) for one in said)
    found = Shares(("a",), fitted, ("", "", "")).answer(np.zeros((2, 1), np.float32))
    assert found.tolist() == [[-2, -1, 0], [-4, -3, 0]]
