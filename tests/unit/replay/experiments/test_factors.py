from __future__ import annotations

import pytest

from gpuctl.core.errors import UsageError
from gpuctl.replay.experiments.factors import values


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1.2", ("1.2",)),
        ("0.8:1.4:0.1", ("0.8", "0.9", "1", "1.1", "1.2", "1.3", "1.4")),
        ("0.8:1.35:0.25", ("0.8", "1.05", "1.3")),
        ("1..10", tuple(map(str, range(1, 11)))),
        ("0,2,4,2", ("0", "2", "4")),
        ("5..7, 1e1", ("5", "6", "7", "1e1")),
        ("4x8,2x4", ("4x8", "2x4")),
        ("100:300:100", ("100", "200", "300")),
    ],
)
def test_lists(text: str, found: tuple[str, ...]) -> None:
    assert values(text, "--x") == found


@pytest.mark.parametrize(
    "text", ["", "1,,2", "1:2:0", "2:1:1", "1:2:-1", "a..3", "1..2.5", "0:1e9:1", "nan:1:1", "1..1e300", "0:1:1e-9"]
)
def test_lists_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        values(text, "--x")
