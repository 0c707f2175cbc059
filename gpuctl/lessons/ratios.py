"""Ratios of means among similar units: a Poisson regression with one level per group, robust to clusters.

The model is ``mean(y) = level(group) * exp(x @ beta)``. The levels drop out of the likelihood given the group's sum, so
that only groups with variation and a value above 0 inform ``beta``. ``y`` need not be counts: the estimate is
consistent wherever that mean is right (Wooldridge 1999), and zeros are allowed, which logarithms are not. Its spread is
over clusters: the estimate without each of them in turn (a jackknife), taken as Student's t.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.lessons.finding import LEVEL, Estimate

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Floats, Ints

STEPS = 50
CLOSE = 1e-9
CHANCE = 0.025
"""Significance level below which a ratio is shown to be below 1."""
LEAST_CLUSTERS = 4
"""Fewest informative clusters for an interval."""


@dataclass(frozen=True)
class Ratio:
    """One ratio.

    Attributes:
        estimate: the ratio and its 90 % interval; all None if no group is informative.
        clusters: informative clusters.
        units: units with a value above 0, in informative groups.
        p: probability of a ratio at most that large if the true one is 1; 1 if no group is informative.
    """

    estimate: Estimate
    clusters: int
    units: int
    p: float = 1.0

    @property
    def shown(self) -> bool:
        """Whether the ratio is below 1 beyond chance."""
        return self.p < CHANCE


NOTHING = Ratio(Estimate(None), 0, 0)


def ratios(y: Floats, x: Floats, group: Ints, cluster: Ints, weight: Floats | None = None) -> list[Ratio]:
    """Estimate ``exp(beta)`` for each column of `x`.

    Args:
        y: at least 0, shape (n,).
        x: (n, k), such as indicators.
        group: groups of similar units, nested in clusters.
        cluster: of units that may not be independent of each other.
        weight: of each group's units, the same for all units of a group; None: 1.
    """
    n, k = x.shape
    found: list[Ratio] = [NOTHING] * k
    informative = _informative(y, x, group)
    if not n or not informative.any():
        return found
    y, x, group, cluster = (
        y[informative],
        x[informative],
        np.unique(group[informative], return_inverse=True)[1],
        cluster[informative],
    )
    w = np.ones(y.size) if weight is None else weight[informative]
    columns = [j for j in range(k) if _varies(x[:, j], group).any()]
    own = x[:, columns]
    beta = _fit(w * y, own, group)
    if beta is None:
        return found
    score, slope = _parts(w * y, own, group, beta)
    number = np.unique(cluster, return_inverse=True)[1]
    by = np.zeros(group.max() + 1, np.int64)
    by[group] = number
    count = int(number.max()) + 1
    scores, slopes = np.zeros((count, len(columns))), np.zeros((count, len(columns), len(columns)))
    np.add.at(scores, by, score)
    np.add.at(slopes, by, slope)
    whole = slopes.sum(axis=0)
    for at, column in enumerate(columns):
        telling = slopes[:, at, at] > 1e-12 * max(whole[at, at], 1e-300)
        units = int(((own[:, at] > 0) & telling[number] & _varies(own[:, at], group)[group]).sum())
        share = slopes[:, at, at] / whole[at, at]
        independent = 1 / float((share**2).sum())
        estimate, p = _interval(beta, at, (scores, slopes, whole), telling, independent)
        found[column] = Ratio(estimate, int(telling.sum()), units, p)
    return found


def _interval(
    beta: Floats, at: int, parts: tuple[Floats, Floats, Floats], telling: Floats, independent: float
) -> tuple[Estimate, float]:
    from scipy.special import stdtr, stdtrit

    scores, slopes, whole = parts
    value = float(np.exp(beta[at]))
    numbers = np.flatnonzero(telling)
    if numbers.size < LEAST_CLUSTERS or independent < 2:
        return Estimate(value), 1.0
    without = []
    for number in numbers.tolist():
        # one step of Newton from the whole estimate: the cluster's part of score and slope is taken away
        rest = whole - slopes[number]
        if np.linalg.cond(rest) > 1e12:
            return Estimate(value), 1.0
        without.append(beta[at] - float(np.linalg.solve(rest, scores[number])[at]))
    change = np.asarray(without) - np.mean(without)
    spread = np.sqrt((numbers.size - 1) / numbers.size * float((change**2).sum()))
    free = max(independent - 1, 1)
    wide = float(stdtrit(free, (1 + LEVEL) / 2)) * spread
    p = float(stdtr(free, beta[at] / spread)) if spread > 0 else float(beta[at] >= 0)
    return Estimate(value, float(np.exp(beta[at] - wide)), float(np.exp(beta[at] + wide))), p


def _informative(y: Floats, x: Floats, group: Ints) -> Ints:
    """The units of informative groups: values vary and are not all 0."""
    some = np.bincount(group, weights=y) > 0
    varies = np.zeros(some.size, bool)
    for column in x.T:
        varies |= _varies(column, group)
    return np.asarray((some & varies)[group])


def _varies(column: Floats, group: Ints) -> Floats:
    low, high = np.full(group.max() + 1, np.inf), np.full(group.max() + 1, -np.inf)
    np.minimum.at(low, group, column)
    np.maximum.at(high, group, column)
    return np.asarray(high > low + 1e-9)


def _fit(y: Floats, x: Floats, group: Ints) -> Floats | None:
    beta = np.zeros(x.shape[1])
    for _ in range(STEPS):
        score, slope = _parts(y, x, group, beta)
        whole = slope.sum(axis=0)
        if np.linalg.cond(whole) > 1e12:
            return None
        step = np.linalg.solve(whole, score.sum(axis=0))
        beta = beta + np.clip(step, -1, 1)
        if np.abs(step).max() < CLOSE:
            return np.asarray(beta)
    return None


def _parts(y: Floats, x: Floats, group: Ints, beta: Floats) -> tuple[Floats, Floats]:
    """Each group's part of the score (groups, k) and of the negative second derivative (groups, k, k)."""
    count, k = int(group.max()) + 1, x.shape[1]
    tall = np.exp(x @ beta)
    share = tall / np.bincount(group, weights=tall, minlength=count)[group]
    total = np.bincount(group, weights=y, minlength=count)
    mean = np.zeros((count, k))
    np.add.at(mean, group, share[:, None] * x)
    apart = x - mean[group]
    slope = np.zeros((count, k, k))
    np.add.at(slope, group, share[:, None, None] * apart[:, :, None] * apart[:, None, :])
    score = np.zeros((count, k))
    np.add.at(score, group, y[:, None] * apart)
    return score, slope * total[:, None, None]
