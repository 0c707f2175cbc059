"""Quantiles and probabilities against those of `scipy.stats`, which the program itself does not import."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gpuctl.reliability.statistics import binomial, poisson_quantile


@pytest.mark.parametrize("level", [0.00135, 0.025, 0.5, 0.975, 0.99865])
def test_the_quantiles_of_poisson_counts(level: float) -> None:
    for mean in [0.0, *np.logspace(-6, 5, 200).tolist()]:
        assert poisson_quantile(level, mean) == stats.poisson.ppf(level, mean), mean


@pytest.mark.parametrize("share", [0.0, 1e-9, 0.3, 0.999, 1.0])
@pytest.mark.parametrize("total", [0, 1, 50, 5000])
def test_the_probabilities_of_binomial_counts(total: int, share: float) -> None:
    counts = np.arange(total + 1)
    assert binomial(counts, total, share) == pytest.approx(stats.binom.pmf(counts, total, share), rel=1e-9, abs=1e-290)
