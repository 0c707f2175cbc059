"""Where the bytes of a data set cut a profile: even traffic, so that each figure can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from gpuctl.predictors.epochs import Epochs, _drop, by_period, by_volume
from gpuctl.predictors.series import Series

SIZE = 101.0
"""Bytes of an epoch whose data set has 100: one in a hundred is overhead."""


def profile(*parts: tuple[int, float], step: float = 1.0) -> Series:
    """Each part: a number of steps, and the bytes of each; one part after the other."""
    received = np.concatenate([np.full(steps, float(each)) for steps, each in parts])
    return Series(0.0, step, received, np.ones(received.size, bool))


def figures(found: Epochs) -> tuple[float, ...]:
    return found.epoch_s, found.spread_s, found.first_s, found.phase_s, found.seen


def test_a_first_epoch_in_progress_continues_at_its_pace() -> None:
    # 10 s of waiting, then 50 of 101 B at 1 B/s: 51 s are left
    found = by_volume(profile((10, 0), (50, 1)), 100)
    share = 50 / SIZE
    assert figures(found) == pytest.approx((101, 101 * (0.08 + 0.15 * (1 - share)), 60 + 51, 50, share))
    assert (found.epoch_bytes, found.shortest_s) == pytest.approx((SIZE, 101 / 3))


def test_a_tenth_of_an_epoch_must_have_been_read() -> None:
    # 10 B are 9.9 %, 11 B are 10.9 %
    assert by_volume(profile((10, 1)), 100).method == "none"
    assert by_volume(profile((11, 1)), 100).epoch_s == pytest.approx(101)
    # exactly a tenth of 1,010 B
    assert by_volume(profile((101, 1)), 1000).epoch_s == pytest.approx(1010)


def test_of_a_second_epoch_just_started_the_first_one_tells() -> None:
    # 24 B beyond the first epoch's 101 are less than a quarter of the second
    found = by_volume(profile((125, 1)), 100)
    assert figures(found) == pytest.approx((101, 0.08 * 101, 101, 24, 1))
    assert (found.epoch_bytes, found.shortest_s) == pytest.approx((SIZE, 101 / 3))
    # the pause after the first epoch belongs to it: 101 s of reading, of the 102 s, and 19 s until it goes on
    paused = by_volume(profile((102, 1), (18, 0), (10, 1)), 100)
    assert figures(paused) == pytest.approx((120, 0.08 * 120, 120, 10, 1))


@pytest.mark.parametrize("more", [25.25, 27.0, 90.0])
def test_from_a_quarter_of_a_second_epoch_on_both_tell(more: float) -> None:
    # 126 B and what makes a quarter in a last step of their own: the step is full of time, not of bytes
    whole = int(more)
    read = [(101 + whole, 1.0)] + [(1, more - whole)] * (more > whole)
    found = by_volume(profile(*read), 100)
    lasts = len(read) - 1 + whole
    length = lasts + 101 - more
    share = more / SIZE
    assert figures(found) == pytest.approx((length, (0.05 + 0.03 * (1 - share)) * length, 101, lasts, 1 + share))
    assert np.isnan(found.shortest_s)


def test_more_epochs_tell_their_length_and_how_sure_it_is() -> None:
    # even reading: 1 % is the least doubt
    assert figures(by_volume(profile((210, 1)), 100)) == pytest.approx((101, 1.01, 101, 8, 2 + 8 / 101))
    # 32 samples of 10 s, three epochs: two edges an epoch, each anywhere in a sample, and two lengths between them
    coarse = by_volume(profile((32, 10), step=10.0), 100)
    assert figures(coarse) == pytest.approx((101, 10 / 6**0.5 / 2**0.5, 101, 17, 3 + 17 / 101))


def test_a_slow_first_epoch_is_left_out_once_there_are_two_others() -> None:
    # 202 s for the first, 101 for the second, 121 for the third: cut after 101 to 202 B, 101 to 121 s, evenly
    found = by_volume(profile((202, 0.5), (101, 1), (122, 101 / 121)), 100)
    assert found.epoch_s == pytest.approx(111, rel=1e-3)
    # 204 B: cut after 77.75 B (1.25 epochs before the end) to 103 B, 202 s less a second a byte up to 101 B
    early = by_volume(profile((202, 0.5), (103, 1)), 100)
    assert early.epoch_s == pytest.approx(202 - (77.75 + 103) / 2)
    assert (early.first_s, early.phase_s) == pytest.approx((202, 2))


@pytest.mark.parametrize(("dataset", "size"), [(380.0, 400.0), (500.0, 500.0), (294.6, 1.35 * 294.6)])
def test_the_period_states_how_much_an_epoch_reads_from_the_data_set_to_a_third_more(
    dataset: float, size: float
) -> None:
    # five epochs of 400 B: 40 s of reading, 20 s of pause
    assert by_period(bursts := profile(*[(40, 10.0), (20, 0.0)] * 5)).epoch_bytes == pytest.approx(400, rel=1e-3)
    assert by_volume(bursts, dataset).epoch_bytes == pytest.approx(size, rel=1e-3)


def test_a_drop_must_last_half_as_long_as_the_reading_before_it() -> None:
    # counted from where the reading starts, after 100 s of waiting
    assert _drop(profile((100, 0), (100, 10), (60, 5)), np.nan) == 200
    assert _drop(profile((100, 0), (100, 10), (10, 5)), np.nan) is None
