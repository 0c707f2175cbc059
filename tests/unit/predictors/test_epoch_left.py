"""What is left of an epoch whose reading has stopped where that of earlier ones stopped, too: worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gpuctl.predictors.epoch_left import rest_by_bytes
from gpuctl.predictors.epochs import Epochs
from gpuctl.predictors.series import Series

READ, PAUSE = np.full(80, 10.0), np.zeros(20)


def left(phase_s: float, under_way: np.ndarray) -> float:
    """Seconds left after three epochs of 80 s of reading and 20 s of pause each, and part of a fourth."""
    received = np.r_[np.tile(np.r_[READ, PAUSE], 3), under_way]
    epochs = Epochs("volume", epoch_s=100.0, first_s=100.0, phase_s=phase_s, seen=3.0, epoch_bytes=800.0)
    found = rest_by_bytes(Series(0.0, 1.0, received, np.ones(received.size, bool)), epochs)
    assert found is not None
    return found.left_s


@pytest.mark.parametrize("paused", [0, 1, 10, 20])
def test_rest_of_the_pause_that_ends_every_epoch(paused: int) -> None:
    # the clock and the earlier epochs agree: all of the pause but what is over
    assert left(80.0 + paused, np.r_[READ, np.zeros(paused)]) == pytest.approx(20 - paused)


@pytest.mark.parametrize("more", [-0.7, -1e-9, 1e-9, 0.7])
def test_a_thousandth_more_or_less_read_before_the_pause_changes_nothing(more: float) -> None:
    read = READ.copy()
    read[-1] += more
    assert left(90.0, np.r_[read, np.zeros(10)]) == pytest.approx(10, abs=0.05)


def test_bytes_of_the_next_epoch_state_that_this_one_is_over() -> None:
    # 1 B of 800 is more than a thousandth: by the bytes nothing is left, by the clock 10 s
    assert left(90.0, np.r_[READ[:-1], 11.0, np.zeros(10)]) == pytest.approx(5)


def test_where_reading_continues_a_level_is_reached_within_a_step() -> None:
    # 41 s at 15 B/s: earlier epochs had read 615 B after 61.5 s, and took 38.5 s more; the clock leaves 59 s
    assert left(41.0, np.full(41, 15.0)) == pytest.approx((38.5 + 59) / 2)


@pytest.mark.parametrize("waited", [0, 5])
def test_the_pause_of_the_epoch_before_is_not_one_of_this_epoch(waited: int) -> None:
    # nothing is read yet: all of it is left but what the clock says
    assert left(float(waited), np.zeros(waited)) == pytest.approx(100 - waited)
