"""The model of Lublin and Feitelson (J. Parallel Distrib. Comput. 63, 2003): sizes, run times by size, a daily cycle.

The numbers of `PUBLISHED` are those of the model for all jobs together, from the authors' program m_lublin99. Users,
limits and weekdays are not part of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import gamma

from gpuctl.workloads.jobs import DAY_S, Jobs

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpuctl.workloads.jobs import Floats, Ints
    from gpuctl.workloads.resample import Intensity

BUCKETS = 48
_BUCKET_S = DAY_S / BUCKETS
DAY_BEGINS = 11
"""The half hour of the day that the cycle begins with."""
LONGEST, WIDEST = 12.0, 13.0
"""Of ln run time and of ln gap."""


@dataclass(frozen=True)
class Laws:
    """Parameters, with the authors' names.

    Attributes:
        serial: share of jobs of one processor.
        pow2: share of all jobs whose size is made a power of two.
        low: least log2 of the size of a parallel job.
        medium: where the two uniform laws of log2 size meet.
        high: log2 of the largest size.
        prob: share of the parallel jobs below `medium`.
        a1, b1, a2, b2: shapes and scales of the two gamma laws of ln run time.
        pa, pb: the first of them has the share ``pa size + pb``.
        aarr, barr: shape and scale of the gamma law of ln gap, in seconds of a day without cycle.
        anum, bnum: shape and scale of the gamma law of the half hour of the day.
    """

    serial: float = 0.244
    pow2: float = 0.576
    low: float = 0.8
    medium: float = 4.5
    high: float = 7.0
    prob: float = 0.86
    a1: float = 4.2
    b1: float = 0.94
    a2: float = 312.0
    b2: float = 0.03
    pa: float = -0.0054
    pb: float = 0.78
    aarr: float = 10.2303
    barr: float = 0.4871
    anum: float = 8.1737
    bnum: float = 3.9631


PUBLISHED = Laws()


@dataclass(frozen=True)
class Lublin:
    """The model for one machine."""

    laws: Laws
    unit: str = "cpu"
    capacity: float = 128.0
    name: str = ""
    capacity_from: str = "given"
    calendar: bool = True

    @property
    def jobs_capacity(self) -> float:
        """Return the units that can be held at once."""
        return self.capacity

    @property
    def jobs_a_week(self) -> float:
        """Return the expected number of jobs per week."""
        x = np.minimum(gamma.ppf(_MIDDLES, self.laws.aarr, scale=self.laws.barr), WIDEST)
        return float(7 * DAY_S / np.exp(x).mean())

    @property
    def offered(self) -> float:
        """Return the expected units that jobs need, from ten thousand jobs of a fixed seed."""
        rng = np.random.default_rng(0)
        size = sizes(self.laws, 10_000, rng)
        return float((size * run_times(self.laws, size, rng)).mean() * self.jobs_a_week / (7 * DAY_S))

    def draw(self, count: int, rng: Generator, intensity: Intensity) -> Jobs:
        """Draw a number of jobs; the intensity is that of the week in which a job arrives without it."""
        size = sizes(self.laws, count, rng)
        run = run_times(self.laws, size, rng)
        gap = np.exp(np.minimum(rng.gamma(self.laws.aarr, self.laws.barr, count), WIDEST))
        week = (np.cumsum(gap) // (7 * DAY_S)).astype(np.int64)
        factor = intensity(np.arange(int(week[-1]) + 1))[week]
        submit = clock(self.laws, np.cumsum(gap / np.maximum(factor, 1e-9)))
        none = np.full(count, -1, np.int64)
        return Jobs(
            name=self.name, submit_s=submit, size=size, run_s=run, limit_s=np.full(count, np.nan), user=none,
            queue=none, gpu_type=none, state=np.full(count, ""), unit=self.unit, capacity=self.capacity,
            capacity_from=self.capacity_from, calendar=self.calendar,
        )  # fmt: skip


_MIDDLES = (np.arange(2_000) + 0.5) / 2_000


def sizes(laws: Laws, count: int, rng: Generator) -> Ints:
    """Draw sizes: 1, or two to the power of a two-stage uniform number, an integer for the share `pow2`."""
    which, stage = rng.random(count), rng.random(count) <= laws.prob
    low = np.where(stage, laws.low, laws.medium)
    high = np.where(stage, laws.medium, laws.high)
    exponent = low + (high - low) * rng.random(count)
    exponent = np.where(which <= laws.serial + laws.pow2, np.floor(exponent + 0.5), exponent)
    size = np.floor(2**exponent + 0.5).astype(np.int64)
    return np.where(which <= laws.serial, 1, np.clip(size, 1, round(2**laws.high)))


def run_times(laws: Laws, size: Ints, rng: Generator) -> Floats:
    """Draw run times, in seconds, for jobs of these sizes."""
    first = rng.random(size.size) <= np.clip(laws.pa * size + laws.pb, 0, 1)
    shape, scale = np.where(first, laws.a1, laws.a2), np.where(first, laws.b1, laws.b2)
    return np.maximum(np.exp(np.minimum(rng.gamma(shape) * scale, LONGEST)), 1.0)


def cycle(laws: Laws) -> Floats:
    """Return the relative rate of arrivals in each half hour of the day, from midnight; mean 1."""
    at = np.arange(DAY_BEGINS, DAY_BEGINS + BUCKETS)
    share = gamma.cdf(at + 0.5, laws.anum, scale=laws.bnum) - gamma.cdf(at - 0.5, laws.anum, scale=laws.bnum)
    weight = np.empty(BUCKETS)
    weight[at % BUCKETS] = share
    return np.asarray(np.maximum(weight / weight.mean(), 1e-6), np.float64)


def clock(laws: Laws, plain: Floats) -> Floats:
    """Return the arrivals, in seconds from a midnight, of jobs that would arrive at these seconds without a cycle."""
    done = np.concatenate([[0.0], np.cumsum(cycle(laws))]) * _BUCKET_S
    day, rest = np.divmod(plain, DAY_S)
    return np.asarray(day * DAY_S + np.interp(rest, done, np.arange(BUCKETS + 1) * _BUCKET_S), np.float64)


def for_machine(laws: Laws, capacity: float) -> Laws:
    """The same laws for a node of this size: `high` is its logarithm, and `medium` lies 2.5 below."""
    high = float(np.log2(max(capacity, 4.0)))
    return replace(laws, high=high, medium=max(high - 2.5, laws.low + 0.1))
