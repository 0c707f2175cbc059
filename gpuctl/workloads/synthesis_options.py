"""Requested changes to generated jobs: more load, more large gangs, a heavier tail of run times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    from numpy.random import Generator

    from gpuctl.workloads.jobs import Floats, Ints, Jobs

TAIL_FROM = 0.9
"""The tail of run times begins at this quantile."""


@dataclass(frozen=True)
class Large:
    """``--large SHARE:SIZE``: the share of jobs with at least this size."""

    share: float
    size: int


def parse_large(text: str) -> Large:
    """Parse ``SHARE:SIZE``.

    Raises:
        UsageError: it is not such a pair.
    """
    share, colon, size = text.partition(":")
    try:
        found = Large(float(share), int(size))
    except ValueError:
        found = Large(-1.0, 0)
    if not colon or not 0 <= found.share <= 1 or found.size < 2:
        raise UsageError(f"--large {text[:40]}: not understood", hint="0.2:16 lets a fifth of the jobs have 16 or more")
    return found


def more_large(jobs: Jobs, wanted: Large, rng: Generator) -> Jobs:
    """Enlarge a share of the jobs: runs of equal jobs of one user change size together.

    Changed jobs take size, run time and limit of a job drawn from the large ones (or from the others, if there are too
    many large ones), so that run times match sizes.

    Raises:
        UsageError: no job is large, or all are, so that there is none to copy.
    """
    large = jobs.size >= wanted.size
    if not large.any() or large.all():
        found = "no job" if not large.any() else "every job"
        raise UsageError(
            f"--large {wanted.share:g}:{wanted.size}: {found} has {wanted.size} or more",
            hint=f"sizes go from {jobs.size.min():,} to {jobs.size.max():,}",
        )
    target = round(wanted.share * jobs.count)
    grow = target > int(large.sum())
    source = np.flatnonzero(large if grow else ~large)
    run = _runs_of_equal_jobs(jobs)
    length, is_large = np.bincount(run), large[np.unique(run, return_index=True)[1]]
    open_runs = np.flatnonzero(is_large != grow)
    order = rng.permutation(open_runs)
    enough = int(np.searchsorted(np.cumsum(length[order]), abs(target - int(large.sum())))) + 1
    changed = np.zeros(length.size, bool)
    changed[order[:enough]] = True
    like = rng.choice(source, length.size)[run]
    rows = np.where(changed[run], like, np.arange(jobs.count))
    return replace(jobs, size=jobs.size[rows], run_s=jobs.run_s[rows], limit_s=jobs.limit_s[rows])


def _runs_of_equal_jobs(jobs: Jobs) -> Ints:
    """Number runs of equal jobs: the same for consecutive jobs of one size and one user."""
    order = np.lexsort((np.arange(jobs.count), jobs.user))
    user, size = jobs.user[order], jobs.size[order]
    new = np.ones(jobs.count, bool)
    new[1:] = (user[1:] != user[:-1]) | (size[1:] != size[:-1]) | (user[1:] < 0)
    numbers = np.empty(jobs.count, np.int64)
    numbers[order] = np.cumsum(new) - 1
    return numbers


def with_users(jobs: Jobs, users: int, rng: Generator) -> Jobs:
    """Return the trace with a number of users: a random subset, or all of them with some repeated as new ones.

    Jobs without a user do not change. The number of jobs grows with users.

    Args:
        jobs: at least one of which has a user.
        users: at least 1.
        rng: draws them.
    """
    known = np.unique(jobs.user[jobs.user >= 0])
    times = np.full(known.size, users // known.size)
    times[rng.permutation(known.size)[: users % known.size]] += 1
    again = np.where(jobs.user < 0, 1, times[np.searchsorted(known, np.maximum(jobs.user, known[0]))])
    rows = np.repeat(np.arange(jobs.count), again)
    number = np.arange(rows.size) - np.repeat(np.cumsum(again) - again, again)
    made = jobs.take(rows)
    user = np.where(made.user < 0, -1, made.user + number * (int(known[-1]) + 1))
    return replace(made, user=np.unique(user, return_inverse=True)[1] - int((user < 0).any()))


def heavier(jobs: Jobs, factor: float) -> Jobs:
    """Stretch the tail of run times: beyond the 90 % quantile ``q`` a run time ``r`` becomes ``q (r / q) ** factor``.

    The index of a Pareto tail is divided by the factor. Limits grow as the run times do.

    Raises:
        UsageError: the factor is not between 0.1 and 3.
    """
    if not 0.1 <= factor <= 3:
        raise UsageError(f"--tail {factor:g}: expected 0.1 to 3", hint="1.2 makes the tail heavier, 0.8 lighter")
    cut = float(np.quantile(jobs.run_s, TAIL_FROM))
    longer = np.where(jobs.run_s > cut, cut * (jobs.run_s / cut) ** factor, jobs.run_s)
    return replace(jobs, run_s=longer, limit_s=jobs.limit_s * (longer / jobs.run_s))


def growth(weeks: Ints, total: float, factor: float, mean: float) -> Floats:
    """Return pieces by week: exponential growth by `factor` from the first to the last week of the output.

    Args:
        weeks: numbers of weeks.
        total: weeks of the output, as far as known beforehand.
        factor: of the last week's over the first one's.
        mean: of all weeks together.
    """
    if factor == 1:
        return np.full(weeks.size, mean)
    at = np.clip(weeks / max(total - 1, 1), 0, 1)
    return np.asarray(mean * factor**at * np.log(factor) / (factor - 1), np.float64)
