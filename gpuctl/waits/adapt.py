"""Levels of quantiles that follow what they held: each is moved a little whenever a wait turns out above or below it.

Adaptive conformal inference (Gibbs, Candes, 2021), here for each level by itself. What a job says of a level is known
when it starts, or, earlier, when it has waited longer than that: jobs that still wait count, too.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.waits.quantiles import ANSWERED, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

STEP = 0.005
"""How far one wait moves a level."""
LEAST, MOST = 0.005, 0.985
"""Levels stay between these: beyond, trees say nothing."""


def follow(
    curves: Floats, ready_s: Floats, leave_s: Floats, levels: Sequence[float], learn: NDArray[np.bool_] | None = None
) -> tuple[Floats, tuple[float, ...]]:
    """Answer for jobs one after the other, and learn from each once its wait is known.

    Args:
        curves: what trees say of each, as `quantiles.Forests.curves` [LEVELS, jobs].
        ready_s: when each can first start, ascending.
        leave_s: when it starts; infinite: not yet.
        levels: looked up for `ANSWERED` at first.
        learn: which are learnt from; None: all.

    Returns:
        seconds at each of `ANSWERED` [jobs, ANSWERED], and the levels after the last job.
    """
    grid, full = whole(curves)
    aim, now = np.array(ANSWERED), np.array(levels, np.float64)
    lower = aim < 0.5
    found = np.empty((ready_s.size, aim.size))
    news: list[tuple[float, int, int, bool]] = []
    for job, at in enumerate(ready_s.tolist()):
        while news and news[0][0] < at:
            _, _, k, above = heapq.heappop(news)
            now[k] = min(max(now[k] + STEP * (aim[k] - (not above)), LEAST), MOST)
        said = np.expm1(np.interp(now, grid, full[:, job]))
        found[job] = np.sort(said)
        if learn is not None and not learn[job]:
            continue
        wait = leave_s[job] - at
        # waits are whole seconds, many are 0: an end of the interval counts as inside
        above = np.where(lower, wait >= said, wait > said)
        known = np.minimum(leave_s[job], at + said)
        for k in range(aim.size):
            heapq.heappush(news, (float(known[k]), job, k, bool(above[k])))
    return found, tuple(np.maximum.accumulate(now).tolist())
