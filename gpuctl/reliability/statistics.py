"""Exact intervals and tests for counts of rare events.

They need `scipy.special` alone: importing `scipy.stats` takes as long as the tables of a small log.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainc, betaln, gammainc, gammaincc, gammaincinv, pdtr, pdtrik, xlog1py, xlogy

LEVEL = 0.95
FEW = 5
"""Where a group's expected count is smaller, p comes from draws instead of the chi-square distribution."""
DRAWS = 10_000


def garwood(count: np.ndarray | float, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Exact interval of a Poisson mean for a count over a fixed time (Garwood 1936).

    Args:
        count: events seen.
        level: of the two-sided interval.
    """
    k, tail = np.asarray(count, float), (1 - level) / 2
    low = np.where(k > 0, gammaincinv(np.maximum(k, 1e-9), tail), 0.0)
    return low, gammaincinv(k + 1, 1 - tail)


def poisson_quantile(level: float, mean: float) -> float:
    """The least count that a Poisson variable of this mean does not exceed with a probability of at least `level`."""
    count = float(np.ceil(pdtrik(level, mean)))
    fewer = max(count - 1, 0.0)
    return fewer if pdtr(fewer, mean) >= level else count


def binomial(count: np.ndarray, total: int, share: float) -> np.ndarray:
    """P(Binomial(total, share) = count)."""
    logs = xlogy(count, share) + xlog1py(total - count, -share) - betaln(total - count + 1, count + 1)
    return np.asarray(np.exp(logs - np.log(total + 1)))


def alike(counts: np.ndarray, exposure: np.ndarray) -> float | None:
    """The p-value of equal rates in all groups; None with fewer than two groups or no events.

    Pearson's chi-square; by 10 000 multinomial draws of a fixed seed where a group's expected count is below 5.
    """
    some = exposure > 0
    counts, exposure = counts[some], exposure[some]
    total = counts.sum()
    if len(counts) < 2 or not total:
        return None
    share = exposure / exposure.sum()
    expected = total * share
    seen = float(((counts - expected) ** 2 / expected).sum())
    if (expected >= FEW).all():
        return float(gammaincc((len(counts) - 1) / 2, seen / 2))
    drawn = np.random.default_rng(0).multinomial(int(total), share / share.sum(), DRAWS)
    hits = int((((drawn - expected) ** 2 / expected).sum(axis=1) >= seen - 1e-9).sum())
    return (hits + 1) / (DRAWS + 1)


def at_least(count: np.ndarray, total: np.ndarray | float, share: np.ndarray) -> np.ndarray:
    """P(Binomial(total, share) >= count)."""
    k = np.asarray(count, float)
    return np.where(k <= 0, 1.0, betainc(np.maximum(k, 1), np.maximum(total - k + 1, 1e-9), np.clip(share, 0, 1)))


def two_sided(count: float, expected: float) -> float | None:
    """Two-sided p-value of a Poisson count: twice the smaller tail; None where nothing is expected."""
    if expected <= 0:
        return None
    above = float(gammainc(count, expected)) if count else 1.0
    return min(1.0, 2 * min(above, float(gammaincc(count + 1, expected))))


def adjusted(p: np.ndarray) -> np.ndarray:
    """P-values adjusted for their number (Benjamini and Hochberg 1995)."""
    order = np.argsort(p)
    ranked = p[order] * (p.size / np.arange(1, p.size + 1))
    result = np.empty(p.size)
    result[order] = np.minimum.accumulate(ranked[::-1])[::-1]
    return np.clip(result, 0.0, 1.0)
