"""Quantile levels that adapt to their coverage: each moves a little whenever a wait turns out above or below it.

Adaptive conformal inference (Gibbs, Candes, 2021), here for each level by itself; levels that have crossed are swapped.
The outcome for a level is known when the job starts or, earlier, when it has waited longer than that: jobs that still
wait count as well. Levels are separate per forecast class: if most jobs start at once, the coverage over all jobs does
not reveal that of the few with a forecast of hours.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.waits.features import limits, sizes
from gpuctl.waits.quantiles import ANSWERED, LEVELS, at_levels, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.waits.queue_log import WaitLog

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

STEP, MIDDLE = 0.0075, 0.005
"""How far one wait moves the outermost levels, and the one in the middle; those between in proportion."""
LEAST, MOST = 0.001, 0.999
"""Levels stay between these."""


Levels = tuple[tuple[float, ...], ...]
"""What is looked up for `ANSWERED`, one row a group of jobs."""
LOADS = 3
"""Groups by load of the jobs that are forecast to start at once: what holds in an empty cluster need not in a full one.
"""
CLASSES_S = (60.0, 3600.0)
"""Forecast medians from which on jobs have levels of their own, whatever the load: few jobs wait long."""
GROUPS = LOADS + len(CLASSES_S)
"""Rows of `Levels`: a load each for jobs forecast to start within a minute, up to an hour, an hour or more."""
RECENT = 1000
"""Submissions, the latest, among which a load is light, medium or heavy: a site that grows emptier has all three."""


def loads(log: WaitLog, at_s: Floats) -> Ints:
    """Return the load class of jobs at some instants: 0 light, 1 medium, 2 heavy, among the latest submissions.

    Load is the waiting demand at an instant, in GPUs or nodes times limits; half of the ties count as less.
    """
    work = sizes(log.rows) * limits(log.rows) / 3600
    came = np.append(0.0, np.cumsum(work))
    order = np.argsort(log.leave_s, kind="stable")
    left, leave = np.append(0.0, np.cumsum(work[order])), log.leave_s[order]

    def waiting(at: Floats) -> Floats:
        here = came[np.searchsorted(log.ready_s, at)] - left[np.searchsorted(leave, at)]
        found: Floats = np.round(here, 2)
        return found

    past, own = waiting(log.ready_s), waiting(at_s)
    last = np.searchsorted(log.ready_s, at_s, side="right")
    group = np.zeros(at_s.size, np.int64)
    for k, n in enumerate(last.tolist()):
        seen = past[max(n - RECENT, 0) : n]
        if n:
            less = float((seen < own[k]).mean() + (seen <= own[k]).mean()) / 2
            group[k] = min(int(LOADS * less), LOADS - 1)
    return group


def groups(curves: Floats, load: Ints) -> Ints:
    """Return the row of levels of jobs, by the median of their forecast, and by load if that is below a minute.

    Args:
        curves: the forecast of each job, as `quantiles.Forests.curves` [LEVELS, jobs]; NaN: no forecast.
        load: load class of each, by `loads`.
    """
    long = np.searchsorted(np.log1p(CLASSES_S), curves[LEVELS.index(0.5)], side="right")
    return np.where(long == 0, load, LOADS - 1 + np.minimum(long, len(CLASSES_S)))


def follow(
    curves: Floats,
    times: tuple[Floats, Floats],
    levels: Levels,
    group: Ints | None = None,
    learn: NDArray[np.bool_] | None = None,
) -> tuple[Floats, Levels]:
    """Forecast jobs one after the other, and learn from each once its wait is known.

    Args:
        curves: the forecast of each job, as `quantiles.Forests.curves` [LEVELS, jobs].
        times: eligibility of each, s, ascending; start: infinite for not yet.
        levels: initial levels for `ANSWERED`, one row per group.
        group: of each job, a row of `levels`; None: the first.
        learn: jobs to learn from; None: all.

    Returns:
        seconds at each of `ANSWERED` [jobs, ANSWERED], and the levels after the last job.
    """
    ready_s, leave_s = times
    grid, full = whole(curves)
    aim, now = np.array(ANSWERED), np.array(levels, np.float64)
    of = [0] * ready_s.size if group is None else group.tolist()
    lower = aim < 0.5
    step = MIDDLE + (STEP - MIDDLE) * np.abs(2 * aim - 1) / (2 * max(ANSWERED) - 1)
    found = np.empty((ready_s.size, aim.size))
    news: list[tuple[float, int, int, bool]] = []
    for job, at in enumerate(ready_s.tolist()):
        while news and news[0][0] < at:
            _, earlier, k, above = heapq.heappop(news)
            row = now[of[earlier]]
            row[k] = min(max(row[k] + step[k] * (aim[k] - (not above)), LEAST), MOST)
            row.sort()
        forecast_s = np.expm1(np.interp(now[of[job]], grid, full[:, job]))
        found[job] = np.sort(forecast_s)
        if learn is not None and not learn[job]:
            continue
        wait = leave_s[job] - at
        # waits are whole seconds, many are 0: an end of the interval counts as inside
        above = np.where(lower, wait >= forecast_s, wait > forecast_s)
        known = np.minimum(leave_s[job], at + forecast_s)
        for k in range(aim.size):
            heapq.heappush(news, (float(known[k]), job, k, bool(above[k])))
    return found, tuple(map(tuple, now.tolist()))


def answers_at(curves: Floats, levels: Levels, group: Ints) -> Floats:
    """Return the seconds at each of `ANSWERED` of jobs with constant levels [jobs, ANSWERED]."""
    found = np.empty((group.size, len(ANSWERED)))
    for row, own in enumerate(levels):
        mask = group == row
        found[mask] = np.expm1(at_levels(curves[:, mask], own)).T
    return found
