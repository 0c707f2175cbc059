"""A case worked out by hand, and each reason for no answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpuctl.predictors.epoch_left import rest_by_bytes
from gpuctl.predictors.epochs import Epochs, by_change_points, by_period, by_volume, change_points, find_epochs
from gpuctl.predictors.runtime import Z
from gpuctl.predictors.series import Series, series
from tests.traffic_profiles import traffic


def made(epoch_s: float, epochs: float, **how: float) -> Series:
    return series(*traffic(epoch_s, epochs, **how))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(5))
def test_two_and_a_half_epochs_of_600_s(seed: int) -> None:
    # the specification's own script found 602 s, with errors of 0.2 to 0.8 %
    found = find_epochs(made(600, 2.5, seed=seed))
    assert found.method == "periodicity"
    assert found.epoch_s == pytest.approx(600, rel=0.008)
    assert abs(found.epoch_s - 600) < 2 * found.spread_s
    assert found.phase_s == pytest.approx(300, abs=40)


@pytest.mark.parametrize("seed", range(5))
def test_one_and_a_half_epochs_have_no_period(seed: int) -> None:
    found = find_epochs(made(600, 1.5, seed=seed))
    assert (found.method, found.cached) == ("none", False)
    assert "period" in found.reason


def test_a_cached_data_set_has_no_period_and_is_flagged() -> None:
    found = find_epochs(made(600, 2.5, cached=True))
    assert (found.method, found.cached) == ("none", True)
    assert found.first_s == pytest.approx(0.92 * 630, rel=0.01)
    assert found.epoch_bytes == pytest.approx(150e9, rel=0.01)
    assert "cache" in found.reason


def test_a_pause_is_no_cache_and_any_drop_may_be_one() -> None:
    for seed in range(5):
        for epochs in (1.3, 1.6, 2.1, 2.5, 4.2):
            assert not find_epochs(made(200, epochs, gap=0.15, seed=seed), 150e9).cached
            assert not find_epochs(made(200, epochs, gap=0.15, seed=seed)).cached
        t, received = traffic(200, 2.5, seed=seed)
        for kept, size in ((0.0, np.nan), (0.4, np.nan), (0.7, np.nan), (0.4, 150e9)):
            less = np.where(t > 210, kept * received, received)
            found = find_epochs(series(t, less), size)
            assert (found.method, found.cached) == ("none", True), (kept, size)
            assert "cache" in found.reason


def test_few_samples_an_epoch_are_enough_where_the_volume_is_known() -> None:
    t, received = traffic(60, 5.2, noise=0.05)
    for every in (10, 20):
        n = t.size // every * every
        coarse = series(t[every - 1 : n : every], received[:n].reshape(-1, every).sum(axis=1))
        found = find_epochs(coarse, 150e9)
        assert found.method == "volume"
        assert abs(found.epoch_s - 60) < 1.5 * Z * found.spread_s
    assert find_epochs(coarse).reason.startswith("cannot know: samples are 20 s apart")
    few = find_epochs(series(t[7:104:8], received[:104].reshape(-1, 8).sum(axis=1)))
    assert few.method == "none"
    assert "shows epochs of 48 s or more, and 2.4 epochs are needed" in few.reason
    assert "six times an epoch" in few.reason


@pytest.mark.parametrize(("epochs", "within"), [(0.5, 0.15), (0.9, 0.15), (1.5, 0.08), (2.5, 0.02), (5.2, 0.02)])
def test_the_volume_tells_within_the_first_epoch(epochs: float, within: float) -> None:
    found = find_epochs(made(600, epochs), 150e9)
    assert found.method == "volume"
    assert found.epoch_s == pytest.approx(600, rel=within)
    assert found.seen == pytest.approx(epochs, rel=0.08) or epochs < 1


def test_the_time_before_the_reading_belongs_to_the_first_epoch() -> None:
    found = find_epochs(made(100, 4.5, wait=40), 150e9)
    assert found.first_s == pytest.approx(40 + 105, rel=0.05)
    assert found.epoch_s == pytest.approx(100, rel=0.02)


def test_bursts_without_noise_are_found_by_their_edges() -> None:
    found = by_change_points(made(60, 6, gap=0.3, noise=0.05, longer=1.0))
    assert found.method == "change-points"
    assert found.epoch_s == pytest.approx(60, rel=0.03)


def test_change_points_of_a_step() -> None:
    step = np.r_[np.full(20, 5.0), np.full(30, 9.0)]
    noise = [np.random.default_rng(seed).normal(0, 0.1, 50) for seed in range(100)]
    assert all(20 in change_points(step + some) for some in noise)
    assert sum(change_points(step + some) == [20] for some in noise) >= 80
    assert sum(change_points(some) == [] for some in noise) >= 90


@pytest.mark.parametrize(
    ("profile", "dataset", "reason"),
    [
        (series(np.arange(1.0, 50) * 60, np.ones(49)), np.nan, "cannot know: samples are 60 s apart"),
        (series(np.arange(1.0, 50) * 60, np.ones(49)), 1.0, "sample at least every 10 s"),
        (series(np.arange(1.0, 50), np.zeros(49)), 1e9, "no bytes"),
        (series(np.arange(1.0, 50), np.ones(49)), 1e9, "0% of an epoch"),
        (series(np.arange(1.0, 8), np.ones(7)), np.nan, "7 samples are too few"),
        (series(np.arange(1.0, 300), np.ones(299)), np.nan, "too short"),
    ],
)
def test_why_there_is_no_answer(profile: Series, dataset: float, reason: str) -> None:
    found = find_epochs(profile, dataset)
    assert found.method == "none"
    assert reason in found.reason
    assert np.isnan(found.epoch_s)


def test_a_size_that_is_none() -> None:
    assert by_volume(made(60, 3), 0.0).method == "none"


def test_noise_is_no_period() -> None:
    wrong = 0
    for seed in range(200):
        draw = np.random.default_rng(seed)
        n = int(draw.integers(20, 200))
        wrong += by_period(series(np.arange(1.0, n + 1), 1e6 + 3e5 * draw.standard_normal(n))).method != "none"
    assert wrong <= 6


def test_the_rest_of_an_epoch_worked_out_by_hand() -> None:
    # epochs of 100 s read 10 B/s for 80 s and pause for 20 s; the fourth has read 15 B/s for 40 s. Two epochs took 40 s
    # more once they had read 600 B, the clock leaves 60 s: 50 s. Errors of 0.06 * 100 s * (0.8 + 0.4 * 0.5) = 6 s, and
    # of the grid 1 s / 6 ** 0.5, hold four times in five within 1.2816 * 36.1667 ** 0.5
    received = np.r_[np.tile(np.r_[np.full(80, 10.0), np.zeros(20)], 3), np.full(40, 15.0)]
    profile = Series(0.0, 1.0, received, np.ones(received.size, bool))
    known = Epochs("volume", epoch_s=100.0, first_s=100.0, phase_s=40.0, seen=3.4, epoch_bytes=800.0)
    half = 1.2816 * 36.166667**0.5
    rest = rest_by_bytes(profile, known)
    assert rest is not None
    assert (rest.left_s, rest.lower_s, rest.upper_s) == pytest.approx((50, 50 - half, 50 + half))
    # without bytes of an epoch, or without its beginning, nothing is known
    for lacks in ({"epoch_bytes": 0.0}, {"epoch_bytes": np.nan}, {"phase_s": np.nan}, {"method": "none"}):
        assert rest_by_bytes(profile, replace(known, **lacks)) is None  # type: ignore[arg-type]
    # a pause of 10 s after 60 s of reading: two epochs took 40 s more from there on, 10 s of which are over
    received = np.r_[np.tile(np.r_[np.full(80, 10.0), np.zeros(20)], 3), np.full(60, 10.0), np.zeros(10)]
    paused = rest_by_bytes(Series(0.0, 1.0, received, np.ones(received.size, bool)), replace(known, phase_s=70.0))
    assert paused is not None
    assert (paused.left_s, paused.upper_s) == pytest.approx((30, 30 + 1.2816 * np.hypot(6 * 0.92, 6**-0.5)))
    # one epoch before it is too few for the bytes to tell: the clock alone, with twice the doubt
    first = rest_by_bytes(profile.until(140), known)
    assert first is not None
    assert (first.left_s, first.upper_s) == pytest.approx((60, 60 + 1.2816 * np.hypot(2 * 6 * 1.04, 6**-0.5)))


def test_reading_that_stops_is_noticed_with_a_handful_of_samples() -> None:
    # 40 MB in 4 s, then nothing: all five epochs of 3 s, and a keep-alive
    received = np.array([0.0, 11e6, 12e6, 12e6, 5.04e6, *[0.0] * 9, 70.0, 0.0])
    whole = series(np.arange(1.0, received.size + 1), received)
    for size in (40e6, np.nan):
        found = find_epochs(whole, size)
        assert (found.method, found.cached) == ("none", True)
        assert found.reason.startswith("nothing has been read for 11 s")
    # a pause shorter than a third of the reading is none
    assert not find_epochs(whole.until(6), 40e6).cached


def test_the_first_epoch_does_not_bound_later_ones_from_below() -> None:
    # half a minute of start-up, then even reading: what follows lasts 100 s an epoch, or less where it is in memory
    received = np.r_[1e5, np.zeros(29), np.full(60, 1e6)]
    found = find_epochs(series(np.arange(1.0, 91), received), 99e6)
    assert found.method == "volume"
    assert found.epoch_s == pytest.approx(100, rel=0.02)
    assert found.first_s == pytest.approx(130, rel=0.02)
    assert found.shortest_s < 0.35 * found.epoch_s
    assert "read from memory" in found.reason
    later = find_epochs(series(np.arange(1.0, 291), np.r_[received, np.full(200, 1e6)]), 99e6)
    assert np.isnan(later.shortest_s)
