"""Counters of GPUs: energy over resets and gaps, counters that stand still, clocks whole hours off; worked by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gpuctl.analyze.gpu_usage import clocks, counters, spans


def energy(values: list[float], hold: tuple[float, float], times: list[float] | None = None) -> counters.Energy:
    t = np.array(times or [60.0 * k for k in range(len(values))])
    some, _ = spans.samples(np.zeros(len(t), np.int64), t, np.array(values))
    return counters.energy(some, spans.Held(np.array([0]), np.array([hold[0]]), np.array([hold[1]])))


def test_energy_is_interpolated_at_both_ends() -> None:
    # 100 W, then 200 W; held from the middle of the first minute to the middle of the third
    assert energy([0, 6000, 18000, 30000], (30, 150)).joules[0] == pytest.approx(3000 + 12000 + 6000)


def test_a_reset_has_no_energy_of_its_own_and_is_counted() -> None:
    found = energy([5000, 11000, 600, 6600], (0, 180))
    assert found.joules[0] == pytest.approx(6000 + 6000)
    assert found.resets == 1
    assert energy([5000, 11000, 600, 6600], (0, 50)).resets == 0


@pytest.mark.parametrize("hold", [(-10, 60), (60, 200)])
def test_samples_that_do_not_bracket_a_hold_have_no_energy(hold: tuple[float, float]) -> None:
    assert np.isnan(energy([0, 6000, 12000, 18000], hold).joules[0])


def test_a_gap_at_an_end_has_no_energy() -> None:
    times = [0.0, 60, 120, 1120, 1180, 1240]
    values = [0.0, 6000, 12000, 112000, 118000, 124000]
    assert np.isnan(energy(values, (30, 600), times).joules[0])
    # a gap in the middle loses nothing: the counter went on
    assert energy(values, (30, 1200), times).joules[0] == pytest.approx(117_000)


def rows(kernel: list[float], engine: list[float]) -> pl.DataFrame:
    size = len(kernel)
    t = [600.0 * k for k in range(size)]
    return pl.DataFrame({
        "lane": [0] * (2 * size), "t": t + t, "kind": ["kernel"] * size + ["engine"] * size,
        "util": kernel + engine, "sm_pct": [None] * size + [0.0] * size, "tensor_pct": [None] * (2 * size),
    }, schema_overrides={"tensor_pct": pl.Float64})  # fmt: skip


def test_an_hour_of_a_busy_gpu_with_engines_at_0_is_unknown() -> None:
    found, hours = counters.without_stuck(rows([90.0] * 12, [0.0] * 6 + [0.0] * 5 + [0.4]))
    assert hours == 1
    assert found.filter(pl.col("sm_pct").is_not_null())["t"].min() == 3600


@pytest.mark.parametrize("kernel", [[90.0] * 5 + [40.0], [0.0] * 6])
def test_an_hour_that_was_not_busy_throughout_stays(kernel: list[float]) -> None:
    found, hours = counters.without_stuck(rows(kernel, [0.0] * 6))
    assert hours == 0
    assert found["sm_pct"].null_count() == 6


@pytest.mark.parametrize("hours", [-5, 1])
def test_whole_hours_are_a_zone_and_not_corrected(hours: int) -> None:
    starts = np.array([20_000.0 * k for k in range(1, 9)])
    ends = starts + np.array([5400, 7200, 9000, 6000, 8000, 7000, 5000, 9500])
    times = np.concatenate([np.arange(a, b, 60) for a, b in zip(starts, ends, strict=True)])
    others = np.arange(30, 180_000, 900)
    found = clocks.estimate([times + 3600.0 * hours], [starts], [ends], 60)
    assert found is None or (found.offset == 3600 * hours and not found.strong and found.cost == 0)
    assert found is not None or hours == -5
    same = clocks.estimate([np.sort(np.append(times, others))], [starts], [ends], 60)
    assert same is not None
    assert abs(same.offset) < 3600


def test_samples_that_jitter_leave_no_holes() -> None:
    t = np.array([0, 60.5, 120, 180.75, 240, 500, 560])
    some, _ = spans.samples(np.zeros(7, np.int64), t, np.ones(7))
    held = spans.Held(np.array([0]), np.array([0.0]), np.array([600.0]))
    weight = spans.weights(some, spans.holders(some, held), held)
    half = some.interval[0] / 2
    # all but the gap between 240 s and 500 s, and what follows the last sample's span
    assert weight.sum() == pytest.approx((240 + half) + (560 + half) - (500 - half))
