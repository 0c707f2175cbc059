"""Values of logs: mostly usual ones, sometimes those at which programs break."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

T = TypeVar("T")

EDGE_RATES = (0.0, 0.0, 0.01, 0.05, 0.2)
"""Shares of the values of an input that are unusual; one of these is drawn per input."""
WHOLE_EDGES = (
    *(0, 1, -1, 2**15, 2**31 - 1, 2**31, -(2**31), 2**32 - 2, 2**32 - 1, 2**32, 2**53 + 1),
    *(2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 - 2, 2**64 - 1, 2**64, 10**20, 10**40),
)
NUMBER_EDGES = (
    *("NaN", "nan", "Infinity", "-inf", "1e308", "1e309", "1e400", "-1e308", "1e-320", "-0.0", "0.1", "7.5"),
    *("1,5", "0x10", "1_000", "+3", " 4", "\uff14", "", "null"),
)
"""Numbers as text, which whole numbers cannot be."""
TEXT_EDGES = (
    *("", " ", "null", "None", "(null)", "N/A", "Unknown", "INVALID", "-", "0", "NaN", "true"),
    *("a|b", "a,b", 'a"b', "a'b", "a\\b", "a;b", "a=b", "a:b", "a b", "<b>&amp;", "{", "]", "$(id)", "=1+1", "../x"),
    *("\x1b[31m", "\x7f", "\u202e\ufeff", "é漢\U0001f600", "x" * 40_000, "gpu[0-9999999]", "n[1-3,7-]", "::error ::x"),
)
TIME_EDGES = (
    *(
        "1970-01-01T00:00:00",
        "0001-01-01T00:00:00",
        "9999-12-31T23:59:59",
        "2026-02-30T00:00:00",
        "2026-10-25T02:30:00",
    ),
    *("2026-03-29T02:30:00", "294247-01-01T00:00:00", "Unknown", "None", "N/A", "", "2026-10-01"),
)
START = datetime(2026, 10, 1, tzinfo=UTC)
"""When the jobs of an input begin."""


class Token(str):
    """Text that JSON takes as it is: NaN, 1e400."""

    __slots__ = ()


class Values:
    """Draws the values of one input.

    Args:
        draw: its source of random numbers.
    """

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.edge_rate = draw.choice(EDGE_RATES)

    def is_edge(self) -> bool:
        """Whether the next value is an unusual one."""
        return self.draw.random() < self.edge_rate

    def chance(self, share: float) -> bool:
        """True in that share of the calls."""
        return self.draw.random() < share

    def one_of(self, usual: Sequence[T]) -> T:
        """One of some usual values, never an edge."""
        return self.draw.choice(usual)

    def odd(self) -> str:
        """Text at an edge, for any place."""
        return self.draw.choice((*NUMBER_EDGES, *map(str, WHOLE_EDGES), *TEXT_EDGES, *TIME_EDGES))

    def whole(self, low: int, high: int) -> int:
        """A whole number from low to high, or an edge of 32 or 64 bits."""
        return self.draw.choice(WHOLE_EDGES) if self.is_edge() else self.draw.randint(low, high)

    def number(self, low: float, high: float) -> float | Token:
        """A number from low to high as JSON has it, or one that JSON should not have."""
        if self.is_edge():
            return Token(self.draw.choice((*NUMBER_EDGES[:10], *map(str, WHOLE_EDGES))))
        return round(self.draw.uniform(low, high), self.draw.choice((0, 1, 3)))

    def digits(self, low: int, high: int) -> str:
        """A whole number as text, or anything that may stand in its place."""
        return (
            self.draw.choice((*NUMBER_EDGES, *map(str, WHOLE_EDGES))) if self.is_edge() else str(self.whole(low, high))
        )

    def text(self, *usual: str) -> str:
        """One of some words, or text that does harm."""
        return self.draw.choice(TEXT_EDGES) if self.is_edge() else self.draw.choice(usual)

    def seconds(self, after: int = 0, most: int = 86_400) -> int:
        """A time in seconds since 1970, up to ``most`` after ``after`` seconds from the start."""
        if self.is_edge():
            return self.draw.choice(WHOLE_EDGES)
        return int(START.timestamp()) + after + self.draw.randint(0, most)

    def time(self, seconds: int, form: str = "%Y-%m-%dT%H:%M:%S") -> str:
        """A time so many seconds after the start as text, or an odd one."""
        if self.is_edge():
            return self.draw.choice(TIME_EDGES)
        return (START + timedelta(seconds=seconds)).strftime(form)

    def duration(self, seconds: int) -> str:
        """A duration as Slurm writes it: days-hours:minutes:seconds."""
        if self.is_edge():
            return self.draw.choice(
                ("UNLIMITED", "Partition_Limit", "", "-1", "99999999-00:00:00", "00:60:61", "1:2:3:4")
            )
        days, rest = divmod(seconds, 86_400)
        clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
        return f"{days}-{clock}" if days else clock
