from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from gpuctl.core.durations import slurm_elapsed
from gpuctl.slurm.times import instants

NOON = datetime(2026, 11, 20, 21, 4, 37, tzinfo=UTC)


def read(text: str | None, timezone: str = "UTC") -> tuple[datetime | None, datetime | None, bool]:
    made = instants(pl.Series([text, "2026-01-01T00:00:00"], dtype=pl.String), timezone)
    return made.utc[0], made.later[0], made.bad[0]


@pytest.mark.parametrize(
    ("text", "timezone"),
    [
        ("2026-11-20T21:04:37", "UTC"),
        ("2026-11-20T16:04:37", "America/New_York"),
        ("2026-11-20 16:04:37", "America/New_York"),
        ("1795208677", "America/New_York"),
        ("2026-11-20T22:04:37+0100", "America/New_York"),
        ("2026-11-20T21:04:37Z", "America/New_York"),
    ],
)
def test_trap_5_local_time_offsets_and_epoch(text: str, timezone: str) -> None:
    assert read(text, timezone) == (NOON, None, False)


@pytest.mark.parametrize("text", ["Unknown", "None", "", "0", "N/A", "(null)", None])
def test_trap_6_no_time(text: str | None) -> None:
    assert read(text) == (None, None, False)


@pytest.mark.parametrize(
    "text",
    [
        "21:04:37",
        "20 Nov 21:04",
        "Yesterday",
        "2026-13-01T00:00:00",
        "2026-11-31T00:00:00",
        "0001-01-01T00:00:00",
        "9999-01-01T00:00:00",
        "99999999999999999999",
        "-5",
        "12",
        "2026-11-20T21:04:37|x",
        "NaN",
        "\x00",
    ],
)
def test_a_text_that_is_not_a_time_is_rejected(text: str) -> None:
    assert read(text) == (None, None, True)


def test_an_hour_that_comes_twice_and_one_that_does_not_come() -> None:
    first, later, bad = read("2026-11-01T01:30:00", "America/New_York")
    assert (first, later, bad) == (
        datetime(2026, 11, 1, 5, 30, tzinfo=UTC),
        datetime(2026, 11, 1, 6, 30, tzinfo=UTC),
        False,
    )
    assert read("2026-03-08T02:30:00", "America/New_York")[0] == datetime(2026, 3, 8, 7, 30, tzinfo=UTC)


def test_a_column_may_mix_them_all() -> None:
    texts = ["2026-11-20T16:04:37", "1795208677", "2026-11-20T22:04:37+0100", "Unknown", None, "soon"]
    made = instants(pl.Series(texts), "America/New_York")
    assert made.utc.to_list() == [NOON, NOON, NOON, None, None, None]
    assert made.bad.to_list() == [False, False, False, False, False, True]


def test_an_empty_column() -> None:
    assert instants(pl.Series([], dtype=pl.String), "Europe/Berlin").utc.len() == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("00:00:08", 8),
        ("10-13:27:06", 912426),
        ("1-00:00:00", 86400),
        ("05:30.123", 330.123),
        ("1000:00:00", 3_600_000),
        ("2-12", 216_000),
        ("2-12:30", 217_800),
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("partition_limit", None),
        ("", None),
        ("INVALID", None),
    ],
)
def test_trap_7_durations(text: str, expected: float | None) -> None:
    assert slurm_elapsed(text) == expected
