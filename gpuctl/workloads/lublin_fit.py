"""Fits the laws of `gpuctl.workloads.lublin` to a trace, by maximum likelihood from the published numbers on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize
from scipy.stats import gamma

from gpuctl.workloads.jobs import DAY_S
from gpuctl.workloads.lublin import BUCKETS, LONGEST, PUBLISHED, WIDEST, Laws, cycle, for_machine

if TYPE_CHECKING:
    from gpuctl.workloads.jobs import Floats, Jobs

_MOST = 20_000
_MOST_SHAPE = 1e4
"""Of a gamma law: a standard deviation of 1 % of the mean. Almost equal values would make it grow without end."""
_MOST_LN, _MOST_SHARE = 4.5, 100.0
"""Of means and deviations of ln run time, logarithms; and of `pa` and `pb`, which a single size leaves open."""
_STEPS = {"maxiter": 4_000, "maxfev": 4_000, "xatol": 1e-4, "fatol": 1e-3}


def fit(jobs: Jobs) -> Laws:
    """Fit all laws but the least and the largest size: the largest is the capacity.

    Args:
        jobs: of the trace; evenly spaced ones where there are too many for the run times' likelihood.
    """
    laws = _sizes(for_machine(PUBLISHED, jobs.capacity), jobs.size.astype(np.float64))
    laws = _run_times(laws, jobs)
    laws = _cycle(laws, jobs.submit_s)
    return _gaps(laws, jobs.submit_s)


def _sizes(laws: Laws, size: Floats) -> Laws:
    serial = float((size == 1).mean())
    values, counts = np.unique(size[size > 1], return_counts=True)
    if values.size < 3:
        return replace(laws, serial=serial)
    low_size, high_size = np.log2(values - 0.5), np.log2(values + 0.5)
    exponent = np.log2(values)
    whole = exponent == np.rint(exponent)

    def unlikely(x: Floats) -> float:
        share, medium, prob = x
        if not (0 < share < 1 and 0 < prob < 1 and laws.low < medium < laws.high):
            return np.inf
        one = replace(laws, medium=medium, prob=prob)
        free = _below(one, high_size) - _below(one, low_size)
        near = np.where(whole, _below(one, exponent + 0.5) - _below(one, exponent - 0.5), 0.0)
        return -float((counts * np.log(np.maximum(share * near + (1 - share) * free, 1e-12))).sum())

    start = np.array([laws.pow2 / (1 - laws.serial), laws.medium, laws.prob])
    share, medium, prob = minimize(unlikely, start, method="Nelder-Mead", options=_STEPS).x
    return replace(laws, serial=serial, pow2=float(share * (1 - serial)), medium=float(medium), prob=float(prob))


def _below(laws: Laws, x: Floats) -> Floats:
    """The share of parallel jobs with an exponent below."""
    first = np.clip((x - laws.low) / (laws.medium - laws.low), 0, 1)
    second = np.clip((x - laws.medium) / (laws.high - laws.medium), 0, 1)
    return np.asarray(laws.prob * first + (1 - laws.prob) * second, np.float64)


def _run_times(laws: Laws, jobs: Jobs) -> Laws:
    some = np.unique(np.linspace(0, jobs.count - 1, min(jobs.count, _MOST)).astype(np.int64))
    size, run = jobs.size[some].astype(np.float64), jobs.run_s[some]
    # whole seconds: what lies between half a second less and more
    low, high = np.log(np.maximum(run - 0.5, 1e-9)), np.minimum(np.log(run + 0.5), LONGEST + 1)

    def unlikely(x: Floats) -> float:
        (m1, s1, m2, s2), pa, pb = np.exp(x[:4]), x[4], x[5]
        if np.abs(x[:4]).max() > _MOST_LN or np.abs(x[4:]).max() > _MOST_SHARE:
            return np.inf
        if max(m1 / s1, m2 / s2) ** 2 > _MOST_SHAPE:
            return np.inf
        first = np.clip(pa * size + pb, 1e-6, 1 - 1e-6)
        mass = first * _between(low, high, m1, s1) + (1 - first) * _between(low, high, m2, s2)
        return -float(np.log(np.maximum(mass, 1e-12)).sum())

    start = [laws.a1 * laws.b1, laws.a1**0.5 * laws.b1, laws.a2 * laws.b2, laws.a2**0.5 * laws.b2]
    found = minimize(unlikely, [*np.log(start), laws.pa, laws.pb], method="Nelder-Mead", options=_STEPS).x
    m1, s1, m2, s2 = np.exp(found[:4])
    return replace(
        laws, a1=float(m1**2 / s1**2), b1=float(s1**2 / m1), a2=float(m2**2 / s2**2), b2=float(s2**2 / m2),
        pa=float(found[4]), pb=float(found[5]),
    )  # fmt: skip


def _between(low: Floats, high: Floats, mean: float, sd: float) -> Floats:
    shape, scale = mean**2 / sd**2, sd**2 / mean
    return np.asarray(gamma.cdf(high, shape, scale=scale) - gamma.cdf(low, shape, scale=scale), np.float64)


def _cycle(laws: Laws, submit_s: Floats) -> Laws:
    at = ((submit_s % DAY_S) // (DAY_S / BUCKETS)).astype(np.int64)
    counts = np.bincount(at, minlength=BUCKETS).astype(np.float64)

    def unlikely(x: Floats) -> float:
        if np.abs(x).max() > np.log(_MOST_SHAPE):
            return np.inf
        share = cycle(replace(laws, anum=float(np.exp(x[0])), bnum=float(np.exp(x[1])))) / BUCKETS
        return -float((counts * np.log(share)).sum())

    start = np.log([laws.anum, laws.bnum])
    anum, bnum = np.exp(minimize(unlikely, start, method="Nelder-Mead", options=_STEPS).x)
    return replace(laws, anum=float(anum), bnum=float(bnum))


def _gaps(laws: Laws, submit_s: Floats) -> Laws:
    """Shape and scale of ln gap, in the time in which days have no cycle."""
    done = np.concatenate([[0.0], np.cumsum(cycle(laws))]) * (DAY_S / BUCKETS)
    day, rest = np.divmod(submit_s, DAY_S)
    plain = day * DAY_S + np.interp(rest, np.arange(BUCKETS + 1) * (DAY_S / BUCKETS), done)
    gap = np.log(np.maximum(np.diff(plain), 0.5))
    gap = np.clip(gap[gap > 0], 1e-3, WIDEST)
    if gap.size < 30:
        return laws
    mean = float(gap.mean())
    if float(gap.var()) * _MOST_SHAPE <= mean**2:
        return replace(laws, aarr=_MOST_SHAPE, barr=mean / _MOST_SHAPE)
    shape, _, scale = gamma.fit(gap, floc=0)
    return replace(laws, aarr=float(shape), barr=float(scale))
