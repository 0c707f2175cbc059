"""Savings, job by job against a baseline, with intervals.

GPU time held depends on each job: its intervals come from resampling whole weeks. Waiting is shared with the queue: its
intervals are those of replays (`gpuctl.replay.results.intervals`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpuctl.lessons.finding import LEVEL, UNKNOWN, Estimate
from gpuctl.lessons.lesson_input import RESAMPLES
from gpuctl.replay.results.intervals import of_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.lessons.lesson_input import Jobs
    from gpuctl.replay.models.records import Floats, Ints

_ENDS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
SEED = 22


def total(saved: Floats, block: Ints) -> Estimate:
    """Return the sum of the jobs' savings, with its interval over resampled blocks.

    Args:
        saved: savings of each job; NaN: not comparable, and left out.
        block: the block of each.
    """
    return _resampled(saved, block, mean=False)


def mean(saved: Floats, block: Ints) -> Estimate:
    """Return the mean of the jobs' savings, with its interval over resampled blocks; arguments as for `total`."""
    return _resampled(saved, block, mean=True)


def waited(saved: Floats, level: Floats, *pair: Jobs, whole: bool = False) -> Estimate:
    """Return the mean waiting saved, with the interval of replays; none if the trace is too short.

    Args:
        saved: of each job; NaN: not comparable, and left out.
        level: the quantity that it scales with, such as the mean of both waits.
        pair: the replays that it comes from.
        whole: return the sum instead of the mean.
    """
    known = np.isfinite(saved) & np.isfinite(level)
    if not known.any():
        return UNKNOWN
    fewest = min(one.stretches for one in pair)
    found = of_mean(saved[known], pair[0].submit_s[known], level[known], stretches=fewest, share=LEVEL)
    times = float(known.sum()) if whole else 1.0
    value = float(saved[known].mean()) * times
    if found.low is None or found.high is None:
        return Estimate(value)
    return Estimate(value, found.low * times, found.high * times)


def _resampled(saved: Floats, block: Ints, *, mean: bool) -> Estimate:
    """Return a sum or mean, with the interval of a bootstrap-t over blocks.

    Sums of few blocks are skewed, and percentiles of resampled sums are too narrow; the studentized deviation is
    therefore resampled (Efron and Tibshirani 1993, chapter 12).
    """
    known = np.isfinite(saved)
    if not known.any():
        return UNKNOWN
    saved, block = saved[known], block[known]
    numbers, block = np.unique(block, return_inverse=True)
    count = numbers.size
    sums = np.bincount(block, weights=saved, minlength=count).astype(np.float64)
    sizes = np.bincount(block, minlength=count).astype(np.float64) if mean else np.ones(count)
    value = float(sums.sum() / sizes.sum())
    whole = 1.0 if mean else float(count)
    if count < 2:
        return Estimate(value * whole)
    drawn = np.random.default_rng(SEED).multinomial(count, np.full(count, 1 / count), size=RESAMPLES).astype(np.float64)
    made = (drawn @ sums) / (drawn @ sizes)
    error = _error(np.ones((1, count)), sums, sizes, np.array([value]))[0]
    errors = _error(drawn, sums, sizes, made)
    telling = errors > 1e-9 * max(error, 1e-300)
    if error <= 1e-12 * abs(value) or not telling.any():
        return Estimate(value * whole, value * whole, value * whole)
    low, high = np.quantile((made[telling] - value) / errors[telling], _ENDS)
    return Estimate(value * whole, float(value - high * error) * whole, float(value - low * error) * whole)


def _error(drawn: Floats, sums: Floats, sizes: Floats, ratio: Floats) -> Floats:
    """Return the standard error of each resample's ratio of sums, from the variation of its blocks."""
    count = sums.size
    apart = drawn @ sums**2 - 2 * ratio * (drawn @ (sums * sizes)) + ratio**2 * (drawn @ sizes**2)
    return np.asarray(np.sqrt(np.maximum(apart, 0.0) * count / (count - 1)) / (drawn @ sizes))


def hull(central: Estimate, others: Sequence[Estimate]) -> Estimate:
    """Return the central value with the widest ends: an interval that also holds at the ends of an input's interval."""
    every = [one for one in (central, *others) if one.low is not None and one.high is not None]
    if central.value is None or len(every) < 1 + len(others):
        return Estimate(central.value)
    lows, highs = [one.low for one in every if one.low is not None], [one.high for one in every if one.high is not None]
    return Estimate(central.value, min(lows), max(highs))


def cross_validated_rules(costs: Floats, block: Ints, *, baseline: int) -> Ints:
    """Return each job's rule if rules were selected on the blocks that do not contain it.

    Choosing the best of several rules and scoring it on the same jobs flatters it; here no job influences the choice of
    its own rule.

    Args:
        costs: (rules, jobs) cost of each rule for each job; NaN: not comparable.
        block: the block of each job.
        baseline: the rule selected unless another one is cheaper.

    Returns:
        the number of a rule for each job.
    """
    whole = np.nan_to_num(costs).sum(axis=1)
    chosen = np.empty(block.size, np.int64)
    for number in np.unique(block).tolist():
        here = block == number
        left = whole - np.nan_to_num(costs[:, here]).sum(axis=1)
        best = int(np.argmin(left))
        chosen[here] = best if left[best] < left[baseline] else baseline
    return chosen
