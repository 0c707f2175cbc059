"""Durations: one grammar per source."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.core.durations import minutes_of_option, pbs_walltime, progress_time, slurm_elapsed, slurm_limit
from gpuctl.core.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        (slurm_elapsed, {"1-2:03:04": 93784.0, "01:03.500": 63.5, "1-2": 93600.0, "1-2:03": 93780.0, "30": None}),
        (pbs_walltime, {"1:2:03:04": 93784, "01:03": 63, "90": 90, "1-2": None, "1:2:3:4:5": None}),
        (progress_time, {"03": 3.0, "01:03": 63.0, "26:01:03": 93663.0, "1-2": None}),
    ],
)
def test_each_grammar_reads_its_own_times(
    read: Callable[[str], float | None], expected: dict[str, float | None]
) -> None:
    assert {text: read(text) for text in expected} == expected


def test_limits_of_slurm() -> None:
    expected = {"30": 1800, "1:30": 90, "4:00:00": 14_400, "7-0": 604_800, "1-2:03": 93_780, "1-0:0:5": 86_405}
    assert {text: slurm_limit("MaxTime", text) for text in expected} == expected
    assert [slurm_limit("MaxTime", text) for text in ("UNLIMITED", " infinite ", "-1")] == [None] * 3
    with pytest.raises(InputError, match="MaxTime=soon: expected a time such as 30, 4:00:00 or 7-0"):
        slurm_limit("MaxTime", "soon")


def test_an_option_has_a_unit() -> None:
    assert [minutes_of_option("--limit", text) for text in ("90m", "48h", "2d")] == [90, 2880, 2880]
    for text in ("", "90", "0h", "31d", "1e9h", "h", "-1h"):
        with pytest.raises(UsageError, match="expected a time of at most 30 days"):
            minutes_of_option("--limit", text)
