"""Bounds of a wait from the waits of similar jobs alone: order statistics that hold with a stated confidence.

After QBETS (Nurmi, Brevik, Wolski: JSSPP 2007): the binomial distribution selects, of n past waits, the one that bounds
a quantile from above with a confidence, and a run of waits above their bounds discards the past. The constants are
gpuctl's.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.compiled.jit import read_only
from gpuctl.waits.bound_kernel import follow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

CONFIDENCE = 0.95
MOST = 500
"""Waits of a group that are looked at, the latest."""


@cache
def _places(levels: tuple[float, ...]) -> Ints:
    """Return which of n waits in ascending order bounds each level: from above past the median, below before it.

    Returns:
        counted from 0 [MOST + 1, levels]; clipped to the available waits.
    """
    found = np.zeros((MOST + 1, len(levels)), np.int64)
    log = np.array([math.lgamma(k + 1) for k in range(MOST + 1)])
    for column, q in enumerate(levels):
        for n in range(1, MOST + 1):
            k = np.arange(n + 1)
            share = np.cumsum(np.exp(log[n] - log[k] - log[n - k] + k * math.log(q) + (n - k) * math.log1p(-q)))
            if q > 0.5:
                at = int(np.searchsorted(share, CONFIDENCE))
            elif q < 0.5:
                at = int(np.searchsorted(share, 1 - CONFIDENCE)) - 1
            else:
                at = (n - 1) // 2
            found[n, column] = min(max(at, 0), n - 1)
    return found


def bounds(
    leave_s: Floats, wait_s: Floats, group: Ints, asks: tuple[Floats, Ints, Ints], levels: Sequence[float]
) -> Floats:
    """Return bounds of the waits of jobs, from similar jobs that had started strictly before each arrival.

    Args:
        leave_s: time at which each job of a log left the queue; infinite: still waiting.
        wait_s: wait of each; NaN: it never started.
        group: class of similar jobs, from 1 on.
        asks: instants, ascending; the group of each, below 0 for a new one; its number in the log, or the number of
            jobs.
        levels: quantiles, among them 0.9.

    Returns:
        seconds; NaN if too few waits are known [asks, levels].
    """
    groups = int(max(group.max(initial=0), asks[1].max(initial=0))) + 1
    out = np.full((asks[0].size, len(levels)), np.nan)
    recent, count = np.zeros((groups, MOST)), np.zeros(groups, np.int64)
    order = np.argsort(leave_s, kind="stable")
    top = list(levels).index(0.9)
    follow(
        leave_s, order, wait_s, group, read_only(asks[0]), asks[1], asks[2], _places(tuple(levels)), top, recent,
        count, out,
    )  # fmt: skip
    return out
