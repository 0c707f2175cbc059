"""Which lag of the traffic is an epoch: made-up bursts without noise, at 5 s a sample, where nothing is smoothed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuctl.predictors.epochs import by_period
from gpuctl.predictors.series import Series

Floats = NDArray[np.float64]
EPOCH = np.r_[np.full(8, 10.0), np.zeros(4)]
"""60 s: 40 s of reading, 20 s of pause."""


def profile(received: Floats) -> Series:
    return Series(0.0, 5.0, received, np.ones(received.size, bool))


def uneven(every: int, share: float, epochs: int) -> Series:
    """Epochs of which every so manieth reads only a share."""
    return profile(np.concatenate([EPOCH * (share if k % every == every - 1 else 1) for k in range(epochs)]))


def single_samples(samples: int) -> Series:
    """One sample of 10 B every 300 s, nothing between."""
    received = np.zeros(samples)
    received[::60] = 10
    return profile(received)


def test_a_period_that_is_equal_throughout_is_told_within_half_a_percent() -> None:
    # the second epoch begins after the burst at 300 s; of 750 s, 445 s are left for it and what it has of a third
    found = by_period(single_samples(150))
    assert found.epoch_s == pytest.approx(300, abs=0.5)
    assert found.spread_s == pytest.approx(0.005 * 300, rel=2e-3)
    assert (found.first_s, found.phase_s, found.seen) == pytest.approx((305, 145, 2.5), rel=5e-3)
    assert found.epoch_bytes == pytest.approx(10, rel=5e-3)
    # of short epochs the sample says less: anywhere within it
    assert by_period(uneven(1, 1.0, 5)).spread_s == pytest.approx(5 / 12**0.5)


def test_a_period_must_fit_two_point_four_times() -> None:
    # 144 samples are 2.4 times 60
    assert by_period(single_samples(144)).epoch_s == pytest.approx(300, abs=0.5)
    assert by_period(single_samples(143)).method == "none"


def test_a_long_wait_before_the_reading_changes_only_the_first_epoch() -> None:
    begun, waited = by_period(uneven(1, 1.0, 5)), by_period(profile(np.r_[np.zeros(200), np.tile(EPOCH, 5)]))
    assert begun.epoch_s == pytest.approx(60, rel=0.005)
    assert begun.seen == pytest.approx(5, rel=0.005)
    assert begun.epoch_bytes == pytest.approx(80)
    for each in ("epoch_s", "spread_s", "phase_s", "seen", "epoch_bytes"):
        assert getattr(waited, each) == pytest.approx(getattr(begun, each)), each
    assert waited.first_s == pytest.approx(1000 + begun.first_s)


def test_six_samples_an_epoch_are_enough_and_five_are_not() -> None:
    assert by_period(profile(np.tile([10.0, 10, 10, 10, 0, 0], 10))).epoch_s == pytest.approx(30, rel=0.005)
    assert by_period(profile(np.tile([10.0, 10, 10, 0, 0], 12))).method == "none"


@pytest.mark.parametrize(
    ("every", "share", "epochs", "epoch_s"),
    [
        # the autocorrelation of two epochs is 1, that of one 0.83: more than 0.6 of it
        (2, 0.7, 8, 60),
        # 0.596
        (2, 0.55, 8, 120),
        # of four epochs 1, of two 0.79, of one 0.82
        (4, 0.5, 16, 60),
        # of five epochs 1.01, of one more than 0.9 of it; a fifth is no part that is looked for
        (5, 0.8, 13, 60),
        # less than 0.9 of it
        (5, 0.5, 13, 300),
    ],
)
def test_an_epoch_that_differs_does_not_make_several_one(every: int, share: float, epochs: int, epoch_s: float) -> None:
    assert by_period(uneven(every, share, epochs)).epoch_s == pytest.approx(epoch_s, rel=0.005)


def test_a_smooth_period_is_at_its_top() -> None:
    # a sample before it the autocorrelation is 0.97 of the highest already
    smooth = profile(10 + 10 * np.cos(2 * np.pi * np.arange(192) / 24))
    assert by_period(smooth).epoch_s == pytest.approx(120, rel=0.005)


def test_a_period_must_stand_out_of_what_noise_makes_of_so_few_samples() -> None:
    # 84 pairs of samples: noise makes 3.2 / 84 ** 0.5 = 0.349. Bursts of 10, b and 10 B: 20 b / 84 over
    # (200 + b ** 2) / 144, and a little less for their mean
    def bursts(middle: float) -> Series:
        received = np.zeros(144)
        received[[0, 60, 120]] = 10, middle, 10
        return profile(received)

    assert by_period(bursts(2)).method == "none"
    assert by_period(bursts(3)).epoch_s == pytest.approx(300, abs=0.5)


def test_a_faint_period_is_none_no_matter_how_long_it_lasts() -> None:
    # 0.15 of the traffic's variance repeats itself; of 600 samples noise makes 0.13
    wave = np.sqrt(2 * 0.15 / 0.85) * np.cos(2 * np.pi * np.arange(600) / 24)
    found = [by_period(profile(10 + wave + np.random.default_rng(seed).standard_normal(600))) for seed in range(10)]
    assert {each.method for each in found} == {"none"}


def test_two_unequal_bursts_are_one_epoch_where_there_are_enough_of_them() -> None:
    # a second burst of 40 % gives half the lag 0.51: noise makes 0.56 of three epochs' samples, 0.48 of four epochs'
    def bursts(second: float, epochs: int) -> Series:
        return profile(np.tile(np.r_[np.full(6, 10.0), np.zeros(8), np.full(6, second), np.zeros(8)], epochs))

    assert by_period(bursts(4, 4)).epoch_s == pytest.approx(140, rel=0.005)
    assert by_period(bursts(4, 3)).method == "none"
    # 0.33: too little to be taken for an epoch
    assert by_period(bursts(3, 3)).epoch_s == pytest.approx(140, rel=0.005)


def test_noise_that_is_equal_for_a_while_is_no_period() -> None:
    wrong = 0
    for seed in range(100):
        draw = np.random.default_rng(seed)
        noise = draw.standard_normal(int(draw.integers(60, 200)))
        for k in range(1, noise.size):
            noise[k] += 0.9 * noise[k - 1]
        wrong += by_period(profile(np.maximum(0.0, 10 + noise))).method != "none"
    assert wrong <= 3
