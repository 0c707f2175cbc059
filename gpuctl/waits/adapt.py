"""Levels of quantiles that follow what they held: each is moved a little whenever a wait turns out above or below it.

Adaptive conformal inference (Gibbs, Candes, 2021), here for each level by itself. What a job says of a level is known
when it starts, or, earlier, when it has waited longer than that: jobs that still wait count, too. Each third of the
jobs by load has levels of its own.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.waits.quantiles import ANSWERED, at_levels, whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

STEP = 0.005
"""How far one wait moves a level."""
LEAST, MOST = 0.005, 0.985
"""Levels stay between these: beyond, trees say nothing."""


Levels = tuple[tuple[float, ...], ...]
"""What is looked up for `ANSWERED`, one row a group of jobs."""
LOADS = 3
"""Groups of jobs by load: what holds in an empty cluster need not in a full one."""


def follow(
    curves: Floats,
    times: tuple[Floats, Floats],
    levels: Levels,
    group: Ints | None = None,
    learn: NDArray[np.bool_] | None = None,
) -> tuple[Floats, Levels]:
    """Answer for jobs one after the other, and learn from each once its wait is known.

    Args:
        curves: what is said of each, as `quantiles.Forests.curves` [LEVELS, jobs].
        times: when each can first start, s, ascending; when it starts: infinite for not yet.
        levels: looked up for `ANSWERED` at first, one row a group.
        group: of each job, a row of `levels`; None: the first.
        learn: which are learnt from; None: all.

    Returns:
        seconds at each of `ANSWERED` [jobs, ANSWERED], and the levels after the last job.
    """
    ready_s, leave_s = times
    grid, full = whole(curves)
    aim, now = np.array(ANSWERED), np.array(levels, np.float64)
    of = [0] * ready_s.size if group is None else group.tolist()
    lower = aim < 0.5
    found = np.empty((ready_s.size, aim.size))
    news: list[tuple[float, int, int, bool]] = []
    for job, at in enumerate(ready_s.tolist()):
        while news and news[0][0] < at:
            _, told, k, above = heapq.heappop(news)
            row = now[of[told]]
            row[k] = min(max(row[k] + STEP * (aim[k] - (not above)), LEAST), MOST)
        said = np.expm1(np.interp(now[of[job]], grid, full[:, job]))
        found[job] = np.sort(said)
        if learn is not None and not learn[job]:
            continue
        wait = leave_s[job] - at
        # waits are whole seconds, many are 0: an end of the interval counts as inside
        above = np.where(lower, wait >= said, wait > said)
        known = np.minimum(leave_s[job], at + said)
        for k in range(aim.size):
            heapq.heappush(news, (float(known[k]), job, k, bool(above[k])))
    return found, tuple(map(tuple, np.maximum.accumulate(now, axis=1).tolist()))


def looked_up(curves: Floats, levels: Levels, group: Ints) -> Floats:
    """Seconds at each of `ANSWERED` of jobs whose levels stay [jobs, ANSWERED]."""
    found = np.empty((group.size, len(ANSWERED)))
    for row, own in enumerate(levels):
        mask = group == row
        found[mask] = np.expm1(at_levels(curves[:, mask], own)).T
    return found
