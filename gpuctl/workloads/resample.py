"""Jobs resampled from a trace: users with their weeks, weeks of the whole trace, or runs of consecutive jobs.

Waits depend less on the length and size of jobs than on their order: users work in sessions and submit similar jobs in
sequence. So whole pieces of the trace are moved, with unchanged content.

* ``users``: each user's week (from Monday, 00:00) is a piece; the weeks of each user are shuffled, independently
  for each user. Hours and weekdays stay.
* ``weeks``: seven consecutive days of all jobs are a piece, and pieces are shuffled.
* ``jobs``: consecutive jobs with the times between them are a piece.

If the load of the trace has a trend, pieces stay near their place (`Resampling.near`): otherwise busy and quiet months
would be mixed, and the backlog of the busy ones would be lost. Without a trend they move anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.workloads.jobs import DAY_S, WEEK_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator

    from gpuctl.workloads.jobs import Floats, Ints, Jobs

    Intensity = Callable[[Ints], Floats]
    """How many times as many pieces as the trace has, by week of the output."""
    _Period = tuple[Ints, Floats, Ints, float, float]
    """Rows of the trace, submissions, users, seconds to the next period's begin, and the second at which it is cut."""

ENOUGH_USERS, ENOUGH_WEEKS = 20, 4
"""With fewer, weeks of users say too little of how users differ; other pieces are drawn."""
NEAR_WEEKS = {"users": 2.0, "weeks": 1.5}
"""Most weeks that a piece moves if the load has a trend."""
SHORTEST_BLOCK = 50
_DRAWS, _LEVEL = 400, {"users": 0.01, "weeks": 0.05}
_FEWEST_WEEKS = 6
_DAYS = 7


@dataclass(frozen=True)
class Resampling:
    """The source of resampling, and its method.

    Attributes:
        jobs: of the trace.
        method: ``users``, ``weeks`` or ``jobs``.
        near: most weeks that a piece moves; inf: any number. Always inf for ``jobs``.
        block: jobs of a piece of ``jobs``.
        trend: (ratio, p) of the test that chose `near`: `trend_of` for ``users``, `order_of` for ``weeks``; NaN: none.
    """

    jobs: Jobs
    method: str
    near: float
    block: int = SHORTEST_BLOCK
    trend: tuple[float, float] = (np.nan, np.nan)

    @property
    def jobs_capacity(self) -> float:
        """Return the units that can be held at once."""
        return self.jobs.capacity

    @property
    def unit(self) -> str:
        """Return the unit of sizes."""
        return self.jobs.unit

    @property
    def offered(self) -> float:
        """Return the mean units that its jobs need."""
        return self.jobs.offered

    @property
    def jobs_a_week(self) -> float:
        """Return the mean number of jobs per week."""
        return self.jobs.count / max(self.jobs.span_s / WEEK_S, 1 / _DAYS)

    def draw(self, count: int, rng: Generator, intensity: Intensity) -> Jobs:
        """Draw a number of jobs, see `draw`."""
        drawn = draw(self, count, rng, intensity)
        return replace(self.jobs.take(drawn.row), submit_s=drawn.submit_s, user=drawn.user)


@dataclass(frozen=True)
class JobDraws:
    """Resampled jobs, in order of submission: ``row`` in the trace, ``submit_s`` since a Monday, ``user`` or -1."""

    row: Ints
    submit_s: Floats
    user: Ints


def fit(jobs: Jobs, method: str = "resample", near: float | None = None) -> Resampling:
    """Choose the resampling of a trace.

    Args:
        jobs: the trace's.
        method: ``resample``: users' weeks if there are enough of both, else weeks, else runs of jobs; or one of the
            three.
        near: most weeks that a piece moves; None: `NEAR_WEEKS` if the load has a trend: for ``users`` by
            `trend_of` at the 1 % level, for ``weeks`` by `order_of` at the 5 % level.
    """
    weeks = jobs.span_s / WEEK_S
    if method == "resample":
        users = np.unique(jobs.user[jobs.user >= 0]).size
        method = "users" if users >= ENOUGH_USERS and weeks >= ENOUGH_WEEKS else "weeks" if weeks >= 3 else "jobs"
    trend = trend_of(jobs) if method == "users" else order_of(jobs) if method == "weeks" else (np.nan, np.nan)
    if near is None:
        # too few weeks show no trend, and pieces stay near
        stay = not trend[1] >= _LEVEL[method] if method != "jobs" else False
        near = NEAR_WEEKS[method] if stay and not (method == "users" and trend[0] <= 1) else np.inf
    return Resampling(jobs, method, np.inf if method == "jobs" else near, _block(jobs.run_s), trend)


def trend_of(jobs: Jobs) -> tuple[float, float]:
    """Test whether the load of whole weeks varies more than that of independent users.

    Returns:
        the variance of the weekly load over its median if each user's weeks are in random order, and the share of
        such orders with at least as much variance.
    """
    week = (jobs.submit_s // WEEK_S).astype(np.int64)
    users, user = np.unique(jobs.user, return_inverse=True)
    count = int(week.max()) + 1
    if count < 4:
        return np.nan, np.nan
    work = np.zeros((users.size, count))
    np.add.at(work, (user, week), jobs.size * jobs.run_s)
    whole = slice(1, count - 1)
    found = work.sum(axis=0)[whole].var()
    rng = np.random.default_rng(0)
    drawn = [rng.permuted(work, axis=1).sum(axis=0)[whole].var() for _ in range(_DRAWS)]
    middle = float(np.median(drawn))
    return (float(found / middle) if middle > 0 else np.nan), float(np.mean(np.asarray(drawn) >= found))


def order_of(jobs: Jobs) -> tuple[float, float]:
    """Test whether successive weeks have loads more similar than weeks in random order (von Neumann's ratio).

    Returns:
        the mean squared difference of the loads of successive whole weeks over twice their variance, about 1 in random
        order, and the share of random orders in which it is as small; NaN for fewer than 6 weeks.
    """
    week = ((jobs.submit_s - jobs.submit_s[0]) // WEEK_S).astype(np.int64)
    count = int(week[-1])
    if count < _FEWEST_WEEKS:
        return np.nan, np.nan
    load = np.bincount(week, jobs.size * jobs.run_s)[:count]
    rng = np.random.default_rng(0)
    orders = np.array([load, *(rng.permutation(load) for _ in range(4 * _DRAWS))])
    ratio = (np.diff(orders, axis=1) ** 2).mean(axis=1) / (2 * max(float(load.var()), 1e-12))
    return float(ratio[0]), float((ratio[1:] <= ratio[0]).mean())


def _block(run_s: Floats) -> int:
    """Return the jobs per block: the first lag at which ln run correlates below 0.05, at least `SHORTEST_BLOCK`."""
    x = np.log(run_s[:200_000])
    x = x - x.mean()
    size = 1 << int(np.ceil(np.log2(2 * x.size)))
    power = np.abs(np.fft.rfft(x, size)) ** 2
    lags = np.fft.irfft(power, size)[: x.size]
    if lags[0] <= 0:
        return SHORTEST_BLOCK
    small = np.flatnonzero(lags / lags[0] < 0.05)
    first = int(small[0]) if small.size else x.size
    return int(np.clip(first, SHORTEST_BLOCK, max(x.size // 4, SHORTEST_BLOCK)))


def draw(model: Resampling, count: int, rng: Generator, intensity: Intensity) -> JobDraws:
    """Draw a number of jobs, period by period of the trace's length; the last one is cut off.

    Args:
        model: the source.
        count: jobs wanted.
        rng: a generator of its own.
        intensity: factor on the trace's number of pieces, for each week of the output.

    Returns:
        `count` jobs, or fewer if the intensity is close to zero.
    """
    period = {"users": _users, "weeks": _weeks, "jobs": _runs}[model.method]
    parts: list[tuple[Any, Any, Any]] = []
    found, begin, number = 0, 0.0, 0
    while found < count:
        row, submit, user, length, end = period(model, rng, begin, intensity)
        # jobs after the last whole week occur only if nothing follows
        inside = submit < end
        if found + row.size >= count and found + int(inside.sum()) < count:
            inside[:] = True
        parts.append((row[inside], submit[inside], user[inside]))
        found, begin, number = found + int(inside.sum()), begin + length, number + 1
        if number > 50 and found * 1000 < number * 50:
            break
    row, submit, user = _joined(parts)
    order = np.argsort(submit, kind="stable")[:count]
    return JobDraws(row[order], submit[order], user[order])


def _joined(parts: list[tuple[Any, Any, Any]]) -> tuple[Ints, Floats, Ints]:
    row, submit, user = (np.concatenate(each) for each in zip(*parts, strict=True))
    return row, submit, user


def _order(size: tuple[int, ...], near: float, rng: Generator) -> Ints:
    """Return the new place of each piece; along the last axis, in random order or near its own."""
    key = np.arange(size[-1]) + rng.uniform(-near, near, size) if np.isfinite(near) else rng.random(size)
    return np.argsort(np.argsort(key, axis=-1), axis=-1)


def _users(model: Resampling, rng: Generator, begin: float, intensity: Intensity) -> _Period:
    jobs = model.jobs
    week = (jobs.submit_s // WEEK_S).astype(np.int64)
    inside = jobs.submit_s - week * WEEK_S
    known, user = np.unique(jobs.user, return_inverse=True)
    count = int(week.max()) + 1
    wanted = intensity(round(begin / WEEK_S) + np.arange(count))
    parts: list[tuple[Any, Any, Any]] = [(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))]
    for layer in range(_layers(wanted)):
        place = _order((known.size, count), model.near, rng)
        there = place[user, week]
        share = np.clip(wanted - layer, 0, 1)
        rows = np.flatnonzero((rng.random((known.size, count)) < share)[user, there])
        submit = begin + there[rows] * WEEK_S + inside[rows]
        numbers = np.where(jobs.user[rows] < 0, -1, user[rows] + layer * known.size)
        parts.append((rows, submit, numbers))
    return *_joined(parts), count * WEEK_S, begin + count * WEEK_S


def _weeks(model: Resampling, rng: Generator, begin: float, intensity: Intensity) -> _Period:
    jobs = model.jobs
    day = (jobs.submit_s // DAY_S).astype(np.int64)
    first, days = int(day[0]), int(day[-1] - day[0]) + 1
    length = max(days // _DAYS, 1) * WEEK_S
    wanted = intensity(round(begin / WEEK_S) + np.arange(days // _DAYS + 2))
    parts: list[tuple[Any, Any, Any]] = [(np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.int64))]
    for layer in range(_layers(wanted)):
        # days before the first whole piece and after the last one do not move
        off = int(rng.integers(_DAYS))
        pieces = max((days - off) // _DAYS, 0)
        piece = np.clip((day - first - off) // _DAYS, -1, pieces)
        place = np.concatenate([_order((pieces,), model.near, rng), [pieces, -1]])[piece]
        chosen = (rng.random(pieces + 2) < np.clip(wanted[: pieces + 2] - layer, 0, 1))[place]
        rows = np.flatnonzero(chosen)
        submit = begin + jobs.submit_s[rows] + (place - piece)[rows] * WEEK_S
        parts.append((rows, submit, _renumber_users(jobs, rows, layer)))
    return *_joined(parts), length, begin + first * DAY_S + length


def _runs(model: Resampling, rng: Generator, begin: float, intensity: Intensity) -> _Period:
    jobs = model.jobs
    length = min(model.block, jobs.count)
    blocks = -(-jobs.count // length)
    start = rng.integers(0, jobs.count, blocks)
    rows = ((start[:, None] + np.arange(length)) % jobs.count).ravel()[: jobs.count]
    mean = jobs.span_s / max(jobs.count - 1, 1)
    gaps = np.append(np.diff(jobs.submit_s), mean)[rows]
    factor = float(intensity(np.array([int(begin // WEEK_S)]))[0])
    before = np.cumsum(gaps / max(factor, 1e-9))
    return rows, begin + np.append(0.0, before[:-1]), _renumber_users(jobs, rows, 0), float(before[-1]), np.inf


def _layers(wanted: Floats) -> int:
    """Return how many times the trace is overlaid so that each week can have as many pieces as are wanted."""
    return max(int(np.ceil(wanted.max() - 1e-9)), 1)


def _renumber_users(jobs: Jobs, rows: Ints, layer: int) -> Ints:
    """Renumber users of a layer: users repeated in another layer count as different ones."""
    user = jobs.user[rows]
    return np.asarray(np.where(user < 0, -1, user + layer * (int(jobs.user.max()) + 1)), np.int64)
