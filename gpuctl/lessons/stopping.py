"""When to stop training by its loss: in hindsight, and by rules that use only what has been logged.

A loss is *near* another if it is at most 0.1 % of that one's size above it, the study's measure (Jeon et al., ATC
2019, section 4.1). Curves are arrays of losses in order of points; values that are not finite are never the lowest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpuctl.replay.models.records import Floats, Ints

NEAR = 0.001
LEAST_POINTS = 6
"""Fewest points for extrapolation."""


def near(loss: Floats | float, best: Floats | float) -> Floats:
    """Whether values are at most 0.1 % above `best`."""
    return np.asarray(loss <= best + NEAR * np.abs(best))


def in_hindsight(loss: Floats) -> int:
    """The first point whose loss is near the lowest of all."""
    known = np.where(np.isfinite(loss), loss, np.inf)
    return int(np.argmax(near(known, known.min())))


def by_patience(loss: Floats, points: int) -> int:
    """Return the first point at which the lowest loss fell by at most 0.1 % over the last `points` points.

    Returns:
        its index; the last one if there is none.
    """
    lowest = np.minimum.accumulate(np.where(np.isfinite(loss), loss, np.inf))
    if loss.size <= points:
        return loss.size - 1
    before, now = lowest[:-points], lowest[points:]
    stops = np.isfinite(before) & near(before, now)
    return points + int(np.argmax(stops)) if stops.any() else loss.size - 1


def by_extrapolation(loss: Floats) -> int:
    """Return the first point at which the lowest loss is near the extrapolated limit of the curve so far.

    The limit is that of a geometric decay through the means of the first, second and last third of the points so far
    (Aitken); if the last third is no lower than the second, the last third's mean.

    Returns:
        its index; the last one if there is none.
    """
    if loss.size < LEAST_POINTS or not np.isfinite(loss).all():
        return loss.size - 1
    count = np.arange(LEAST_POINTS, loss.size + 1)
    third = count // 3
    sums = np.append(0.0, np.cumsum(loss))
    parts = [(sums[count - k * third] - sums[count - (k + 1) * third]) / third for k in (2, 1, 0)]
    first, second = parts[0] - parts[1], parts[1] - parts[2]
    bends = (first > second) & (second > 0)
    limit = parts[2] - np.where(bends, second**2 / np.where(bends, first - second, 1.0), 0.0)
    lowest = np.minimum.accumulate(loss)[count - 1]
    stops = (bends | (second <= 0)) & near(lowest, limit)
    return int(count[np.argmax(stops)]) - 1 if stops.any() else loss.size - 1


@dataclass(frozen=True)
class Rule:
    """A rule of stopping.

    Attributes:
        key: its name in tables.
        online: it uses only values logged so far.
        stop: the point at which it stops a curve.
    """

    key: str
    online: bool
    stop: Callable[[Floats], int]


RULES = (
    Rule("hindsight", False, in_hindsight),
    Rule("patience 3", True, lambda loss: by_patience(loss, 3)),
    Rule("patience 5", True, lambda loss: by_patience(loss, 5)),
    Rule("patience 10", True, lambda loss: by_patience(loss, 10)),
    Rule("extrapolated", True, by_extrapolation),
)


@dataclass(frozen=True)
class Stopped:
    """A rule's effect on curves, one element each.

    Attributes:
        saved: GPU time between the stop and the last point; NaN if the times are not known.
        spent: GPU time up to the stop.
        regret: how far the lowest loss up to the stop is above the lowest of all, share of its size.
        early: the regret exceeds 0.1 %: the job would have to run again.
    """

    saved: Floats
    spent: Floats
    regret: Floats
    early: NDArray[np.bool_]

    @property
    def net(self) -> Floats:
        """Return the GPU time saved, less the time of jobs stopped too early: they run again, to their end."""
        return np.where(self.early, -self.spent, self.saved)


def stopped(rule: Rule, loss: Floats, time: Floats, start: Ints) -> Stopped:
    """Apply a rule to curves.

    Args:
        rule: the rule.
        loss: of all curves, one after the other; each has a finite one.
        time: GPU time up to each point, NaN unknown.
        start: (curves + 1), where each curve begins.
    """
    count = start.size - 1
    at = np.empty(count, np.int64)
    regret = np.empty(count)
    for k in range(count):
        curve = loss[start[k] : start[k + 1]]
        at[k] = rule.stop(curve)
        known = np.where(np.isfinite(curve), curve, np.inf)
        best = known.min()
        regret[k] = (known[: at[k] + 1].min() - best) / max(abs(best), 1e-300)
    here, last = start[:-1] + at, start[1:] - 1
    return Stopped(np.maximum(time[last] - time[here], 0.0), time[here], regret, regret > NEAR * (1 + 1e-9))
