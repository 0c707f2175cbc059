"""Bounds from order statistics: they hold with the confidence that they state, and forget a past that is over."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import interpreted
from gpuctl.waits import bound_kernel, order_statistics

LEVELS = (0.1, 0.5, 0.9)


def test_bounds_hold_with_their_confidence() -> None:
    draw = np.random.default_rng(1)
    places = order_statistics._places(LEVELS)
    for n in (40, 200, 500):
        waits = np.sort(draw.exponential(1.0, (4000, n)), axis=1)
        low, _, high = (waits[:, places[n, k]] for k in range(3))
        assert (high >= -np.log(0.1)).mean() >= order_statistics.CONFIDENCE - 0.015
        assert (low <= -np.log(0.9)).mean() >= order_statistics.CONFIDENCE - 0.015
        # no further out than it takes: one place nearer would not do
        nearer = waits[:, places[n, 2] - 1]
        assert (nearer >= -np.log(0.1)).mean() < order_statistics.CONFIDENCE + 0.015


def test_a_run_of_misses_forgets_the_past() -> None:
    wait = np.concatenate([np.full(200, 10.0), np.full(60, 1000.0)])
    submit = np.arange(wait.size) * 2000.0
    group = np.ones(wait.size, np.int64)
    with interpreted():
        said = order_statistics.bounds(submit + wait, wait, group, (submit, group, np.arange(wait.size)), LEVELS)
    assert np.isnan(said[: bound_kernel.FEWEST]).all()
    assert (said[100:200] == 10).all()
    # forty of the long waits are far fewer than a tenth of all, but most of what still counts
    assert (said[250:, 2] == 1000).all()
    assert said[259, 1] == 1000
