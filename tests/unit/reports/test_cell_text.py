from __future__ import annotations

import unicodedata
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.core.results import Column
from gpuctl.core.storable_text import plural
from gpuctl.reports.cell_text import heading, shown, shown_columns, visible
from tests.unit.reports.fakes import HOSTILE, table


@given(st.text())
def test_visible_text_has_no_character_that_could_act(text: str) -> None:
    clean = visible(text)
    assert not {unicodedata.category(c) for c in clean} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert visible(clean) == clean


def test_visible_text_has_no_code_that_is_no_character() -> None:
    assert visible("a\ufffe\uffff\ufdd0\U0001fffe") == r"a\ufffe\uffff\ufdd0\U0001fffe"


def test_visible_keeps_letters_of_every_script() -> None:
    assert visible("Größe 深層 שלום 🚀") == "Größe 深層 שלום 🚀"


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("a\u202eb", "a\\u202eb"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\udc80", "\\udc80"),
        ("\U000e0001", "\\U000e0001"),
    ],
)
def test_visible_writes_out_what_would_act(raw: str, clean: str) -> None:
    assert visible(raw) == clean


@pytest.mark.parametrize(
    ("name", "unit", "label", "shown_unit"),
    [
        ("wait_p50_min", "min", "wait p50", "min"),
        ("jobs_pct", "%", "jobs", "%"),
        ("gpu_hours", "GPU-h", "GPU hours", ""),
        ("gpu_hours_pct", "%", "GPU hours", "%"),
        ("jobs", "jobs", "jobs", ""),
        ("waits", "waits", "waits", ""),
        ("gpus_busy", "GPUs", "GPUs busy", ""),
        ("gpu_hours_sum", "GPU-h", "GPU hours sum", ""),
        ("span_days", "days", "span days", ""),
        ("size_bucket", "GPUs", "size bucket", "GPUs"),
        ("fair_share_waits", "waits", "fair share waits", ""),
        ("state", "-", "state", ""),
    ],
)
def test_heading_says_name_and_unit_once(name: str, unit: str, label: str, shown_unit: str) -> None:
    assert heading(Column(name, unit, "")) == (label, shown_unit)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "-", "\u2013"),
        (float("nan"), "h", "\u2013"),
        (float("inf"), "h", "\u221e"),
        (1733112.33, "GPU-h", "1,733,112"),
        (999.6, "h", "1,000"),
        (999.4, "h", "999"),
        (12.34, "h", "12.3"),
        (9.996, "h", "10.0"),
        (1.005, "h", "1.00"),
        (0.04567, "h", "0.046"),
        (0.04567, "-", "0.0457"),
        (0.00012, "h", "<0.001"),
        (0.00012, "-", "1.20e-04"),
        (-1234.5, "h", "-1,234"),
        (8.0, "GPUs", "8"),
        (0.0, "%", "0.0"),
        (0.02, "%", "<0.1"),
        (99.99, "%", ">99.9"),
        (100.0, "%", "100.0"),
        (1234567, "jobs", "1,234,567"),
        (True, "-", "yes"),
        ("", "-", '""'),
        ([], "-", "none"),
        (["a", "b\n"], "-", "a, b\\n"),
        (datetime(2017, 10, 3, 0, 44, 36, tzinfo=UTC), "-", "2017-10-03 00:44:36"),
    ],
)
def test_shown_rounds_for_reading(value: object, unit: str, text: str) -> None:
    assert shown(value, unit) == text


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_a_shown_number_is_within_half_a_percent(value: float) -> None:
    assert float(shown(value).replace(",", "")) == pytest.approx(value, rel=0.005)


@given(st.floats(min_value=0, max_value=100))
def test_a_share_reads_as_none_or_all_only_if_it_is(value: float) -> None:
    text = shown(value, "%")
    assert (text == "0.0") == (value <= 1e-9)
    assert (text == "100.0") == (value >= 100 - 1e-9)


def test_a_number_reads_the_same_whatever_stands_next_to_it() -> None:
    whole, mixed = shown_columns(table("t", "s", pl.DataFrame({"a": [1.0, 8.0], "b": [1.0, 8.5]})))
    assert whole.cells == ("1", "8")
    assert mixed.cells == ("1", "8.5")


def test_times_are_headed_utc_and_hostile_names_are_text() -> None:
    frame = pl.DataFrame({"name": HOSTILE[:1], "ts": [datetime(2017, 1, 1, tzinfo=UTC)]})
    name, time = shown_columns(table("t", "s", frame))
    assert (name.kind, time.kind, time.unit) == ("text", "time", "UTC")
    assert name.cells == ("<script>alert(1)</script>",)


@pytest.mark.parametrize(("count", "text"), [(0, "0 rows"), (1, "1 row"), (2500, "2,500 rows")])
def test_plural(count: int, text: str) -> None:
    assert plural(count, "row") == text
