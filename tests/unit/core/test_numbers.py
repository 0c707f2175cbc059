"""The rule for numbers that people read, on known values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.core.numbers import DAY, HOUR, MINUTE, SECOND, Unit, lasting, number, percent, timed, unit_of


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (13703.008, "GPU-h", "13,703"),
        (297.6, "min", "298"),
        (81.64, "min", "81.6"),
        (4.4863, "h", "4.49"),
        (0.1684, "h", "0.168"),
        (0.0219, "GPU-h", "0.022"),
        (0.0004, "h", "<0.001"),
        (-0.0004, "h", ">-0.001"),
        (2.5, "GPUs", "2.5"),
        (2.5004, "GPUs", "2.50"),
        (8.0, "GPUs", "8"),
        (-56.42, "min", "-56.4"),
        (0.0, "h", "0"),
        (-0.0, "h", "0"),
        (12.3456, "%", "12.3"),
        (100.00000000001, "%", "100.0"),
        (99.96, "%", ">99.9"),
        (0.01, "%", "<0.1"),
        (-12.3456, "%", "-12.3"),
        (0.000032, "-", "3.20e-05"),
        (0.00123, "-", "0.00123"),
        (None, "h", "\u2013"),
        (float("nan"), "h", "\u2013"),
        (float("-inf"), "h", "-\u221e"),
    ],
)
def test_three_digits(value: float | None, unit: str, text: str) -> None:
    assert number(value, unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (26.4, "26.4 s"),
        (119.96, "120 s"),
        (120.0, "2 min"),
        (7190.0, "120 min"),
        (16150.0, "4.49 h"),
        (172_700.0, "48.0 h"),
        (600_282.0, "6.95 d"),
        (-390.0, "-6.5 min"),
        (None, "\u2013"),
    ],
)
def test_a_duration_is_scaled(seconds: float | None, text: str) -> None:
    assert lasting(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "unit"),
    [
        ([], SECOND),
        ([0.0, 0.0, None], SECOND),
        ([0.0, 7.0, 1751.0, 7800.0, 48_840.0, float("nan")], MINUTE),  # medians and tails of one log: of the middle
        ([36_000.0, 90_000.0], HOUR),
        ([864_000.0], DAY),
    ],
)
def test_a_quantity_has_the_unit_of_its_middle_value(seconds: list[float | None], unit: Unit) -> None:
    assert unit_of(seconds) == unit


@given(st.floats(min_value=0, max_value=1e9))
def test_displayed_numbers_are_within_half_a_percent_or_half_a_thousandth(seconds: float) -> None:
    unit = unit_of([seconds])
    shown = timed(seconds, unit)
    if not shown.startswith("<"):
        exact = seconds / unit.seconds
        assert float(shown.replace(",", "")) == pytest.approx(exact, rel=0.0051, abs=0.00051)


def test_shares_have_one_decimal() -> None:
    assert [percent(value) for value in (None, 0.0, 7.25, 100.0)] == ["\u2013", "0.0 %", "7.2 %", "100.0 %"]
