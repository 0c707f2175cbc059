"""The goal that waits must meet, and the time until which they must."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.core.numbers import lasting, number

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Floats

_GOAL = re.compile(r"(mean|p\d{1,2}(?:\.\d{1,2})?)-wait=(.+)", re.ASCII)
_OVER = re.compile(r"wait-over-(.+)=(\d{1,3}(?:\.\d{1,4})?) ?%", re.ASCII)
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?(s|min|m|h|d)", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}
_HORIZON = re.compile(r"(\d{1,3})(w|mo|q|y)", re.ASCII)
_WEEKS = {"w": 1.0, "mo": 365.25 / 12 / 7, "q": 365.25 / 4 / 7, "y": 365.25 / 7}
_HINT = "p95-wait=1h, mean-wait=30min, or wait-over-1h=5% (at most 5 % of the jobs wait for over an hour)"


@dataclass(frozen=True)
class Goal:
    """A bound on the waits of jobs until their first start.

    Attributes:
        text: as the user gave it.
        share: of the jobs at or below the quantile that is bounded, 0 to 1; None: the mean, or a share of jobs.
        most: seconds, or percent for a share of jobs.
        over_s: seconds; the bounded figure is the share of jobs that wait for longer. None: it is a wait.
        time: the time that the user gave, for reading.
    """

    text: str
    share: float | None
    most: float
    over_s: float | None = None
    time: str = ""

    @property
    def what(self) -> str:
        """What is bounded, in words: ``p95 wait``."""
        if self.over_s is not None:
            return f"share of jobs that wait over {self.time}"
        return "mean wait" if self.share is None else f"p{100 * self.share:g} wait"

    def shown(self, value: float) -> str:
        """A value of the figure, for reading."""
        if math.isinf(value):
            return "without end"
        return f"{number(value, '%')} %" if self.over_s is not None else lasting(value)

    @property
    def bound(self) -> str:
        """The bound, for reading."""
        return self.time if self.over_s is None else self.shown(self.most)

    @property
    def unit(self) -> str:
        """The unit of the figure."""
        return "s" if self.over_s is None else "%"

    def of(self, waits: Floats) -> float:
        """Return the figure of some waits in seconds, inf for a job that never starts; NaN without jobs.

        A quantile is the least wait that this share of the jobs does not exceed, so that ``p95-wait=1h`` and
        ``wait-over-1h=5%`` are the same goal.
        """
        if not waits.size:
            return math.nan
        if self.over_s is not None:
            return 100 * float((waits > self.over_s).mean())
        if self.share is None:
            return float(waits.mean())
        return float(np.quantile(waits, self.share, method="inverted_cdf"))


def seconds(text: str, option: str) -> float:
    """Return the seconds of ``30s``, ``10min``, ``1.5h`` or ``2d``.

    Raises:
        UsageError: it is none of these, or 0.
    """
    found = _TIME.fullmatch(text.strip())
    value = float(found[1]) * _SECONDS[found[2]] if found else 0.0
    if value <= 0:
        raise UsageError(f"{option}: {text[:30]!r} is not a time above 0", hint="30s, 10min, 1.5h or 2d")
    return value


def parse_goal(text: str) -> Goal:
    """Return the goal that ``--goal`` states.

    Raises:
        UsageError: it states none.
    """
    plain = text.strip().lower()
    over = _OVER.fullmatch(plain)
    if over is not None:
        most = float(over[2])
        if most >= 100:
            raise UsageError(f"--goal {text[:60]}: every workload meets this", hint=_HINT)
        limit = seconds(over[1], f"--goal {text[:60]}")
        return Goal(plain, None, most, limit, _readable(over[1]))
    found = _GOAL.fullmatch(plain)
    if found is None:
        raise UsageError(f"--goal {text[:60]}: no such goal", hint=_HINT)
    most = seconds(found[2], f"--goal {text[:60]}")
    share = None if found[1] == "mean" else float(found[1][1:]) / 100
    if share is not None and not 0 < share < 1:
        raise UsageError(f"--goal {text[:60]}: expected a percentile above 0", hint=_HINT)
    return Goal(plain, share, most, time=_readable(found[2]))


def _readable(text: str) -> str:
    """``1h`` as ``1 h``."""
    found = _TIME.fullmatch(text.strip())
    return f"{found[1]} {'min' if found[2] == 'm' else found[2]}" if found else text


def parse_horizon(text: str) -> int:
    """Return the whole weeks of ``26w``, ``3mo``, ``1q`` or ``1y``, at least 1.

    Raises:
        UsageError: it is none of these.
    """
    found = _HORIZON.fullmatch(text.strip().lower())
    weeks = round(int(found[1]) * _WEEKS[found[2]]) if found else 0
    if weeks < 1:
        raise UsageError(f"--horizon {text[:30]}: expected a time from one week on", hint="13w, 3mo, 1q or 1y")
    return weeks
