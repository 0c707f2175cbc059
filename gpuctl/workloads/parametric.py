"""Jobs from parametric laws: users who submit in sessions, sizes, run times by size, limits.

Sessions begin as an inhomogeneous Poisson process: a rate for each hour of the week, times a gamma factor per day,
which makes days vary as much as those of the trace. A Zipf-Mandelbrot law draws the user of a session; its jobs follow
each other after log-normal gaps. A job repeats the previous one (its size, queue, GPU type, and in part its run time)
or is drawn anew. Run times are mixtures of log-normal laws by class of size; a Gaussian copula ties them to sizes
inside a class and to limits. A session ends if its user submits nothing for `THINK_S`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from gpuctl.workloads.jobs import HOUR_S, WEEK_S, Jobs

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpuctl.workloads.jobs import Floats, Ints
    from gpuctl.workloads.mixture import Mixture
    from gpuctl.workloads.resample import Intensity

ARRIVALS = ("sessions", "nhpp", "poisson")
"""``sessions``; ``nhpp``: jobs one by one, by the hour of the week and the day's factor; ``poisson``: at one rate."""
THINK_S = 1_200.0
HOURS = 168
_CHUNK_WEEKS = 52
_MOST_WEEKS = 5_200


@dataclass(frozen=True)
class Parametric:
    """The parameters.

    Attributes:
        name: of the trace; "" if unknown.
        unit: unit of sizes.
        capacity: units that can be held at once.
        capacity_from: see `gpuctl.workloads.jobs.Jobs`.
        calendar: whether hours and weekdays are real.
        offered_: mean units that the trace's jobs need.
        jobs_a_week: mean number.
        arrivals: one of `ARRIVALS`.
        rate: sessions (or jobs) per hour, for each hour of the week from Monday 00:00; shape (168,).
        day_shape: of the gamma factor of a day, whose mean is 1; inf: 1 always.
        single: share of sessions of one job.
        more: mean number of jobs of the others beyond two.
        gap: ln of seconds between the jobs of a session.
        users: number of users.
        zipf: (a, q): the k-th user's sessions are proportional to ``1 / (k + q) ** a``.
        same_inside: share of jobs of a session that are like the one before.
        same_across: share of sessions that begin with a job like their user's last one.
        sizes: of each kind of job.
        kind_queue: number of its queue, -1 none.
        kind_gpu_type: number of its GPU type, -1 none.
        kind_share: frequency of each kind among jobs drawn anew.
        class_top: largest size of each class of run times, ascending.
        runs: ln of seconds of run time, one mixture per class.
        longest: upper limit of run times by class, in seconds.
        within: share of the variance of run times within runs of equal jobs.
        rho_size: correlation of the copula of size and run time inside a class.
        limits: requested seconds, ascending.
        limit_share: frequency of each.
        limited: share of the jobs with a limit.
        rho_limit: correlation of the copula of run time and limit.
        queues: names.
        gpu_types: names.
    """

    name: str
    unit: str
    capacity: float
    capacity_from: str
    calendar: bool
    offered_: float
    jobs_a_week: float
    arrivals: str
    rate: Floats
    day_shape: float
    single: float
    more: float
    gap: Mixture
    users: int
    zipf: tuple[float, float]
    same_inside: float
    same_across: float
    sizes: Ints
    kind_queue: Ints
    kind_gpu_type: Ints
    kind_share: Floats
    class_top: Ints
    runs: tuple[Mixture, ...]
    longest: Floats
    within: float
    rho_size: float
    limits: Floats
    limit_share: Floats
    limited: float
    rho_limit: float
    queues: tuple[str, ...] = ()
    gpu_types: tuple[str, ...] = ()

    @property
    def jobs_capacity(self) -> float:
        """Units that can be held at once."""
        return self.capacity

    @property
    def offered(self) -> float:
        """Mean units that the trace's jobs need."""
        return self.offered_

    def draw(self, count: int, rng: Generator, intensity: Intensity) -> Jobs:
        """Draw a number of jobs, or fewer if the intensity is close to zero."""
        parts: list[tuple[Floats, Ints, Ints]] = []
        found, week, session = 0, 0, 0
        while found < count and week < _MOST_WEEKS:
            need = (count - found) / max(self.jobs_a_week, 1e-9)
            weeks = int(np.clip(np.ceil(1.2 * need) + 1, 1, _CHUNK_WEEKS))
            submit, of, user = self._arrive(week, weeks, rng, intensity)
            parts.append((submit, of + session, user))
            found, week = found + submit.size, week + weeks
            session += int(of.max()) + 1 if of.size else 0
        submit, of, user = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.argsort(submit, kind="stable")[:count]
        return self._jobs(submit[order], of[order], user[order], rng)

    def _arrive(self, week: int, weeks: int, rng: Generator, intensity: Intensity) -> tuple[Floats, Ints, Ints]:
        """Draw submissions, the session of each, and its user, for some weeks."""
        factor = np.repeat(intensity(week + np.arange(weeks)), HOURS)
        if np.isfinite(self.day_shape) and self.arrivals != "poisson":
            factor = factor * np.repeat(rng.gamma(self.day_shape, 1 / self.day_shape, 7 * weeks), 24)
        rate = np.full(HOURS, self.rate.mean()) if self.arrivals == "poisson" else self.rate
        counts = rng.poisson(np.tile(rate, weeks) * factor)
        hour = np.repeat(np.arange(counts.size), counts)
        begin = week * WEEK_S + (hour + rng.random(hour.size)) * HOUR_S
        user = self._whose(begin.size, rng)
        if self.arrivals != "sessions":
            return begin, np.arange(begin.size), user
        more = rng.random(begin.size) >= self.single
        extra = rng.geometric(1 / (1 + self.more), begin.size)
        jobs = np.where(more, 1 + extra, 1)
        of = np.repeat(np.arange(begin.size), jobs)
        gap = np.exp(self.gap.quantile(rng.random(of.size)))
        first = np.cumsum(jobs) - jobs
        gap[first] = 0.0
        total = np.cumsum(gap)
        return np.repeat(begin, jobs) + total - np.repeat(total[first], jobs), of, user[of]

    def _whose(self, size: int, rng: Generator) -> Ints:
        if not self.users:
            return np.full(size, -1, np.int64)
        a, q = self.zipf
        weight = (np.arange(1, self.users + 1) + q) ** -a
        return np.asarray(np.searchsorted(np.cumsum(weight) / weight.sum(), rng.random(size)), np.int64)

    def _jobs(self, submit: Floats, of: Ints, user: Ints, rng: Generator) -> Jobs:
        size = submit.size
        order = np.lexsort((submit, user))
        starts = np.ones(size, bool)
        starts[1:] = of[order][1:] != of[order][:-1]
        chance = np.where(starts, self.same_across, self.same_inside)
        new = rng.random(size) >= chance
        new[0] = True
        new[1:] |= user[order][1:] != user[order][:-1]
        template = np.empty(size, np.int64)
        template[order] = np.cumsum(new) - 1
        kinds = int(new.sum())
        kind = np.searchsorted(np.cumsum(self.kind_share) / self.kind_share.sum(), rng.random(kinds))
        z = self._scores(kind, template, rng)
        row = kind[template]
        sizes = self.sizes[row]
        run = np.empty(size)
        group = np.searchsorted(self.class_top, sizes)
        for k, mixture in enumerate(self.runs):
            mine = group == k
            below = mixture.cdf(np.log(self.longest[k : k + 1]))[0]
            run[mine] = np.exp(mixture.quantile(ndtr(z[mine]) * below))
        return Jobs(
            name=self.name, submit_s=submit, size=sizes, run_s=np.maximum(run, 1.0), limit_s=self._limit(z, run, rng),
            user=user, queue=self.kind_queue[row], gpu_type=self.kind_gpu_type[row], state=np.full(size, ""),
            queues=self.queues, gpu_types=self.gpu_types, unit=self.unit, capacity=self.capacity,
            capacity_from=self.capacity_from, calendar=self.calendar,
        )  # fmt: skip

    def _scores(self, kind: Ints, template: Ints, rng: Generator) -> Floats:
        """Draw normal scores of run times: those of equal jobs are similar."""
        middle = self.rho_size * size_scores(self.sizes, self.kind_share, self.class_top)[kind]
        left = np.sqrt(max(1 - self.rho_size**2, 0.0))
        shared = middle + left * rng.standard_normal(kind.size)
        own = rng.standard_normal(template.size)
        return np.asarray(np.sqrt(1 - self.within) * shared[template] + np.sqrt(self.within) * own, np.float64)

    def _limit(self, z: Floats, run: Floats, rng: Generator) -> Floats:
        if not self.limits.size:
            return np.full(z.size, np.nan)
        tied = self.rho_limit * z + np.sqrt(max(1 - self.rho_limit**2, 0.0)) * rng.standard_normal(z.size)
        at = np.searchsorted(np.cumsum(self.limit_share) / self.limit_share.sum(), ndtr(tied))
        limit = np.maximum(self.limits[np.minimum(at, self.limits.size - 1)], run)
        return np.where(rng.random(z.size) < self.limited, limit, np.nan)


def size_scores(sizes: Ints, share: Floats, class_top: Ints) -> Floats:
    """Return the normal score of each size inside its class, by the middle of its ranks; variance at most 1."""
    from scipy.special import ndtri

    scores = np.zeros(sizes.size)
    group = np.searchsorted(class_top, sizes)
    for k in range(class_top.size):
        mine = np.flatnonzero(group == k)
        values, place = np.unique(sizes[mine], return_inverse=True)
        if values.size < 2:
            continue
        mass = np.bincount(place, share[mine])
        middle = (np.cumsum(mass) - mass / 2) / mass.sum()
        scores[mine] = ndtri(np.clip(middle, 1e-6, 1 - 1e-6))[place]
    return scores
