"""Mixtures of normal laws of one variable, fitted by expectation-maximization to a histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from gpuctl.core.errors import InputError

if TYPE_CHECKING:
    from gpuctl.workloads.jobs import Floats, Ints

MOST_PARTS = 6
_BINS, _STEPS, _GRID = 400, 200, 2_000


@dataclass(frozen=True)
class Mixture:
    """Normal laws with weights; of the logarithms of seconds. Arrays have one element per law."""

    weight: Floats
    mean: Floats
    sd: Floats

    def quantile(self, share: Floats) -> Floats:
        """Return the quantiles of these shares, by interpolation between `_GRID` points of the distribution."""
        low, high = (self.mean - 5 * self.sd).min(), (self.mean + 5 * self.sd).max()
        at = np.linspace(low, high, _GRID)
        below = self.cdf(at)
        return np.interp(share, below, at)

    def cdf(self, at: Floats) -> Floats:
        """Return the share below each value."""
        return np.asarray((self.weight * ndtr((at[:, None] - self.mean) / self.sd)).sum(axis=1), np.float64)

    def part(self, at: Floats) -> Ints:
        """Return the number of the most likely law of each value."""
        density = self.weight / self.sd * np.exp(-0.5 * ((at[:, None] - self.mean) / self.sd) ** 2)
        return np.asarray(density.argmax(axis=1), np.int64)

    def coarse(self) -> Mixture:
        """Return the mixture with means in tenths, so that no exact value is disclosed, and three digits of the rest.

        Means are of logarithms: a tenth is a step of 10 %.
        """
        weight = np.array([float(f"{value:.3f}") for value in self.weight.tolist()])
        weight[int(self.weight.argmax())] += 1 - weight.sum()
        sd = np.array([float(f"{value:.3g}") for value in self.sd.tolist()])
        return Mixture(np.maximum(weight, 1e-3), np.round(self.mean, 1), sd)

    def plain(self) -> dict[str, list[float]]:
        """Return the mixture as numbers for JSON."""
        return {"weight": _short(self.weight), "mean": _short(self.mean), "sd": _short(self.sd)}


def read(found: Any, path: str) -> Mixture:
    """Check a mixture read from a file.

    Raises:
        InputError: it is not a mixture.
    """
    try:
        parts = [np.asarray(found[key], np.float64) for key in ("weight", "mean", "sd")]
        good: Any = all(p.ndim == 1 and 0 < p.size <= MOST_PARTS and np.isfinite(p).all() for p in parts)
        good = bool(good) and len({p.size for p in parts}) == 1 and (parts[0] > 0).all() and (parts[2] > 0).all()
        good = bool(good) and bool((np.abs(parts[1]) < 50).all() and (parts[2] < 50).all())
    except (TypeError, KeyError, ValueError):
        good = False
    if not good:
        raise InputError("found no mixture: expected weight, mean and sd, lists of numbers", path=path)
    weight, mean, sd = parts
    return Mixture(weight / weight.sum(), mean, sd)


def fit(values: Floats, *, most: int = MOST_PARTS, least_jobs: float = 5.0, least_sd: float = 0.02) -> Mixture:
    """Fit by maximum likelihood, the number of laws by the Bayesian information criterion.

    Args:
        values: of the variable, at least one.
        most: most laws.
        least_jobs: fewest jobs that each law must represent.
        least_sd: standard deviations are no smaller.
    """
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-9:
        return Mixture(np.ones(1), np.array([low]), np.array([least_sd]))
    counts, edges = np.histogram(values, _BINS, (low, high))
    at = (edges[1:] + edges[:-1]) / 2
    best, found = np.inf, Mixture(np.ones(1), np.array([values.mean()]), np.array([max(values.std(), least_sd)]))
    for parts in range(1, most + 1):
        mixture, likelihood = _em(at, counts.astype(np.float64), parts, max(least_sd, (edges[1] - edges[0]) / 2))
        if parts > 1 and (mixture.weight * values.size).min() < least_jobs:
            continue
        score = (3 * parts - 1) * np.log(values.size) - 2 * likelihood
        if score < best:
            best, found = score, mixture
    # with the digits that a file has
    weight, mean, sd = (np.array(_short(part)) for part in (found.weight, found.mean, found.sd))
    return Mixture(weight / weight.sum(), mean, sd)


def _em(at: Floats, counts: Floats, parts: int, least_sd: float) -> tuple[Mixture, float]:
    total = counts.sum()
    share = (np.cumsum(counts) - counts / 2) / total
    mean = np.interp((np.arange(parts) + 0.5) / parts, share, at)
    spread = np.sqrt((counts * (at - (counts * at).sum() / total) ** 2).sum() / total)
    sd = np.full(parts, max(spread / parts, least_sd))
    weight = np.full(parts, 1 / parts)
    likelihood = -np.inf
    for _ in range(_STEPS):
        density = weight * np.exp(-0.5 * ((at[:, None] - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        both = density.sum(axis=1) + 1e-300
        improved = float((counts * np.log(both)).sum())
        belongs = density / both[:, None] * counts[:, None]
        mass = belongs.sum(axis=0) + 1e-12
        weight, mean = mass / total, (belongs * at[:, None]).sum(axis=0) / mass
        sd = np.maximum(np.sqrt((belongs * (at[:, None] - mean) ** 2).sum(axis=0) / mass), least_sd)
        if improved - likelihood < 1e-6 * abs(improved):
            break
        likelihood = improved
    return Mixture(weight / weight.sum(), mean, sd), likelihood


def _short(values: Floats) -> list[float]:
    return [float(f"{value:.5g}") for value in values.tolist()]
