"""Jobs drawn from a model, with requested changes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.workloads import lublin, parametric, resample, synthesis_options
from gpuctl.workloads.jobs import DAY_S, Jobs

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpuctl.workloads.jobs import Floats, Ints

    Model = resample.Resampling | parametric.Parametric | lublin.Lublin

MOST_JOBS = 50_000_000
_MOST_DAYS, _MOST_USERS = 36_525, 1_000_000
_OVER_LAID = 20.0
"""Most traces superimposed to make a load."""


@dataclass(frozen=True)
class Synthesis:
    """The requested jobs.

    Attributes:
        count: number of jobs; with `days`, the maximum.
        seed: random seed.
        load: share of the capacity; None: that of the model.
        load_by: ``time``: times between submissions are divided by a common factor; ``users``: more users, or more
            overlaid traces, so that days keep their length.
        capacity: capacity that the load refers to; None: the model's.
        growth: jobs of the last week / jobs of the first one.
        large: share of large gangs; None: that of the model.
        tail: see `gpuctl.workloads.synthesis_options.heavier`.
        days: all jobs of this many days, from 00:00 of the first job's day; None: `count`.
        users: number of users; None: the model's.
    """

    count: int
    seed: int = 0
    load: float | None = None
    load_by: str = "time"
    capacity: float | None = None
    growth: float = 1.0
    large: synthesis_options.Large | None = None
    tail: float = 1.0
    days: float | None = None
    users: int | None = None


def synthesize(model: Model, wanted: Synthesis) -> Jobs:
    """Generate jobs; the same model and settings give the same jobs.

    Submissions, run times and limits are whole seconds; with `Synthesis.load` by time, the load is as requested except
    for that rounding. The capacity of the result is the one that its load refers to.

    Raises:
        UsageError: a setting is out of bounds, or the model does not support it.
    """
    _check(wanted)
    if wanted.users is not None:
        model = _of_users(model, wanted.users, np.random.default_rng(np.random.SeedSequence(wanted.seed).spawn(3)[2]))
    return _drawn(model, wanted) if wanted.days is None else _within(model, wanted, wanted.days)


def _within(model: Model, wanted: Synthesis, days: float) -> Jobs:
    """Return the jobs of some days: of as many as it takes to fill these."""
    capacity = model.jobs_capacity if wanted.capacity is None else wanted.capacity
    faster = 1.0 if wanted.load is None else wanted.load / (model.offered / capacity)
    count = math.ceil(1.2 * model.jobs_a_week * faster * days / 7) + 50
    while True:
        jobs = _drawn(model, replace(wanted, count=min(count, wanted.count)))
        first = math.floor(jobs.submit_s[0] / DAY_S) * DAY_S if jobs.count else 0.0
        inside = jobs.submit_s < first + days * DAY_S
        # fewer than requested: the model has no more
        if not inside.all() or jobs.count < min(count, wanted.count):
            return jobs.take(inside)
        if count >= wanted.count:
            raise UsageError(f"--days {days:g}: these have more than {wanted.count:,} jobs", hint="ask for fewer days")
        count *= 2


def _of_users(model: Model, users: int, rng: Generator) -> Model:
    """Return the model with this many users: some of its own left out or repeated, or its law of users changed."""
    if isinstance(model, parametric.Parametric) and model.users:
        return replace(model, users=users)
    if isinstance(model, resample.Resampling) and (model.jobs.user >= 0).any():
        return replace(model, jobs=synthesis_options.with_users(model.jobs, users, rng))
    raise UsageError(f"--users {users:,}: the model has no users", hint="leave it out, or fit a trace that names users")


def _drawn(model: Model, wanted: Synthesis) -> Jobs:
    seeds = np.random.SeedSequence(wanted.seed).spawn(2)
    rng, change = (np.random.default_rng(seed) for seed in seeds)
    capacity = model.jobs_capacity if wanted.capacity is None else wanted.capacity
    mean = 1.0
    if wanted.load is not None and wanted.load_by == "users":
        mean = wanted.load / (model.offered / capacity)
        if mean > _OVER_LAID:
            raise UsageError(
                f"--load {wanted.load:g} is {mean:,.0f} times the model's: expected at most {_OVER_LAID:.0f} times",
                hint="give a smaller load, or --load-by time",
            )
    total = wanted.count / max(model.jobs_a_week * mean, 1e-9)

    def intensity(weeks: Ints) -> Floats:
        return synthesis_options.growth(weeks, total, wanted.growth, mean)

    jobs = model.draw(wanted.count, rng, intensity)
    if wanted.large is not None:
        jobs = synthesis_options.more_large(jobs, wanted.large, change)
    if wanted.tail != 1:
        jobs = synthesis_options.heavier(jobs, wanted.tail)
    if wanted.load is not None and wanted.load_by == "time":
        if jobs.span_s <= 0:
            raise UsageError(
                f"--load {wanted.load:g}: the jobs made ({jobs.count:,}) come at one moment, which has no load",
                hint="make more jobs, or leave --load out",
            )
        jobs = jobs.at_load(wanted.load, capacity)
    return _whole_seconds(replace(jobs, capacity=capacity))


def _whole_seconds(jobs: Jobs) -> Jobs:
    run = np.maximum(np.rint(jobs.run_s), 1.0)
    limit = np.where(np.isnan(jobs.limit_s), np.nan, np.maximum(np.rint(jobs.limit_s), 1.0))
    return replace(jobs, submit_s=np.rint(jobs.submit_s), run_s=run, limit_s=limit)


def _check(wanted: Synthesis) -> None:
    if not 1 <= wanted.count <= MOST_JOBS:
        raise UsageError(f"--jobs {wanted.count:,}: expected 1 to {MOST_JOBS:,}")
    if wanted.days is not None and not 0 < wanted.days <= _MOST_DAYS:
        raise UsageError(f"--days {wanted.days:g}: expected a number above 0, at most {_MOST_DAYS:,}")
    if wanted.users is not None and not 1 <= wanted.users <= _MOST_USERS:
        raise UsageError(f"--users {wanted.users:,}: expected 1 to {_MOST_USERS:,}")
    if wanted.load is not None and not 0 < wanted.load <= 100:
        raise UsageError(f"--load {wanted.load:g}: expected a number above 0", hint="0.8 offers 80 % of the capacity")
    if wanted.capacity is not None and not 1 <= wanted.capacity <= 1e9:
        raise UsageError(f"--capacity {wanted.capacity:g}: expected at least 1")
    if not 0.05 <= wanted.growth <= 20:
        raise UsageError(f"--growth {wanted.growth:g}: expected 0.05 to 20", hint="2 doubles the jobs a week")
