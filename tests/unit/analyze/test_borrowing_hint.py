"""The hint at a rule of borrowing, where guessed quotas leave waiting without a cause."""

from __future__ import annotations

import numpy as np
import pytest

from gpuctl.analyze import delays, delaytable


def found(unexplained: float) -> delays.Delays:
    seconds = np.array([[100 * (1 - unexplained), 0, 0, 100 * unexplained]])
    return delays.Delays(seconds, np.array([0]), np.array([0.0]), np.array([0]), np.array([False]))


def by_borrowing(borrow: float) -> delays.Delays:
    return found(0.01 if borrow == 0.8 else 0.4)


def test_names_the_rule_that_explains_most() -> None:
    [hint] = delaytable._borrowing_hint(0.0, found(0.4), by_borrowing)
    assert "40%" in hint
    assert "--borrow-below 0.8 would leave 1% unexplained" in hint


@pytest.mark.parametrize(("left", "borrow"), [(0.04, 0.0), (0.01, 0.8)])
def test_silent_where_little_is_left(left: float, borrow: float) -> None:
    assert delaytable._borrowing_hint(borrow, found(left), by_borrowing) == []


def test_no_rule_is_named_where_none_helps() -> None:
    [hint] = delaytable._borrowing_hint(0.0, found(0.4), lambda _: found(0.35))
    assert "--borrow-below" not in hint
