"""The epoch detectors on profiles with noise, gaps, resets, bursts within an epoch, and links shared with others."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuctl.predictors.epochs import BURST_AT, TOLD, autocorrelation, find_epochs
from gpuctl.predictors.series import series
from tests.example_counts import examples
from tests.traffic_profiles import traffic

EPOCH = st.integers(30, 400)
SEED = st.integers(0, 2**32 - 1)


@settings(max_examples=examples(60))
@example(30, 2.75, 0.0, 0.25, 0)
@given(EPOCH, st.floats(2.6, 6.0), st.floats(0.0, 0.3), st.floats(0.08, 0.3), SEED)
def test_noise(epoch_s: int, epochs: float, noise: float, gap: float, seed: int) -> None:
    found = find_epochs(series(*traffic(epoch_s, epochs, noise=noise, gap=gap, seed=seed)))
    if found.method == "none":
        assert "period" in found.reason
        # each burst is known to `BURST_AT` samples, here of a second: two lengths may be too short to tell within 6 %
        assert noise > 0.1 or (epochs < 2.8 and 2 * epoch_s * TOLD < 2**0.5 * BURST_AT)
    else:
        assert abs(found.epoch_s / epoch_s - 1) < 0.06


@settings(max_examples=examples(60))
@given(EPOCH, st.floats(3.0, 6.0), st.floats(0.0, 0.4), SEED)
def test_missing_samples_change_little(epoch_s: int, epochs: float, share: float, seed: int) -> None:
    t, received = traffic(epoch_s, epochs, noise=0.05, gap=0.15, seed=seed)
    draw = np.random.default_rng(seed)
    keep = draw.random(t.size) >= share
    keep[[0, -1]] = True
    # what was received meanwhile comes with the next sample
    upto = np.add.accumulate(received)[keep]
    profile = series(t[keep], np.diff(upto, prepend=0.0))
    assert np.isclose(profile.bytes.sum(), received.sum())
    found = find_epochs(profile)
    if found.method != "none":
        assert abs(found.epoch_s / epoch_s - 1) < 0.08


@settings(max_examples=examples(40))
@given(EPOCH, st.floats(3.0, 6.0), SEED)
def test_two_bursts_an_epoch_are_one_epoch_where_the_volume_is_known(epoch_s: int, epochs: float, seed: int) -> None:
    t, received = traffic(epoch_s, epochs, bursts=2, noise=0.05, gap=0.15, seed=seed)
    found = find_epochs(series(t, received), 150e9)
    assert found.method == "volume"
    assert abs(found.epoch_s / epoch_s - 1) < 0.06


@settings(max_examples=examples(40))
@given(EPOCH, st.floats(3.0, 6.0), st.floats(0.05, 0.3), SEED)
def test_unequal_bursts_do_not_halve_the_epoch(epoch_s: int, epochs: float, small: float, seed: int) -> None:
    # a validation pass of its own, a small burst in the pause
    t, received = traffic(epoch_s, epochs, noise=0.05, gap=0.3, seed=seed)
    since = (t - 1.05 * epoch_s) % epoch_s / epoch_s
    extra = np.where((since > 0.8) & (since < 0.9), small * 150e9 / epoch_s, 0.0)
    found = find_epochs(series(t, received + extra))
    assert found.method != "none"
    assert abs(found.epoch_s / epoch_s - 1) < 0.08


@settings(max_examples=examples(40))
@given(EPOCH, st.floats(3.0, 6.0), st.floats(0.0, 0.5), SEED)
def test_a_link_shared_with_steady_traffic(epoch_s: int, epochs: float, share: float, seed: int) -> None:
    t, received = traffic(epoch_s, epochs, noise=0.05, gap=0.2, seed=seed)
    other = share * received.mean() * (1 + 0.1 * np.random.default_rng(seed + 1).standard_normal(t.size))
    found = find_epochs(series(t, received + np.maximum(other, 0)))
    assert found.method != "none"
    assert abs(found.epoch_s / epoch_s - 1) < 0.06


@settings(max_examples=examples(60))
@given(EPOCH, st.floats(0.1, 6.0), st.booleans(), SEED)
def test_an_answer_is_sound(epoch_s: int, epochs: float, known: bool, seed: int) -> None:
    profile = series(*traffic(epoch_s, epochs, seed=seed))
    found = find_epochs(profile, 150e9 if known else np.nan)
    if found.method != "none":
        assert 0 < found.epoch_s < np.inf
        assert 0 < found.spread_s < np.inf
        assert 0 <= found.phase_s <= profile.seconds
        assert found.epoch_bytes > 0


@given(st.lists(st.floats(0, 1e6), min_size=4, max_size=60), st.data())
def test_autocorrelation_is_the_plain_sum(values: list[float], data: st.DataObject) -> None:
    x = np.array(values)
    known = np.array(data.draw(st.lists(st.booleans(), min_size=x.size, max_size=x.size)))
    found = autocorrelation(x, known)
    if not known.any() or np.ptp(x[known]) < 1e-3 * max(x.max(), 1.0):
        return
    centred = np.where(known, x - x[known].mean(), 0.0)
    for lag in range(x.size):
        pairs = max(int((known[: x.size - lag] & known[lag:]).sum()), 1)
        plain = float((centred[: x.size - lag] * centred[lag:]).sum()) / pairs
        assert np.isclose(
            found[lag] * float((centred**2).sum()) / known.sum(), plain, rtol=1e-6, atol=1e-6 * x.max() ** 2
        )
