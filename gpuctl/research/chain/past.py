"""Run times as shares of limits, as known at an instant: the source of forecasts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.compiled.jit import read_only
from gpuctl.research.chain.forecast_kernel import OF_CHAIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.research.chain.log import Log

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

PAST, POOL = 12, 64
"""Run times in the source: a user's last ones with the same limit, and of all users."""

FEW = 3
"""With fewer of the same limit, half of them are the user's last ones with any limit."""

KINDS_MIN = (60, 240, 1440)
"""Limits up to which jobs are of one kind, for the run times of all users."""

POOL_S = 60 * 86_400
"""Jobs that ended within this many seconds give the run times of all users."""


@dataclass(frozen=True)
class Drawn:
    """Source of run times: see `gpuctl.research.chain.forecast_kernel.forecasts`."""

    past: Floats
    count: Ints
    kind: Ints
    pool: Floats

    def __post_init__(self) -> None:
        # the array of a saved model is read-only
        object.__setattr__(self, "pool", read_only(self.pool))


class History:
    """The jobs of a log by user and limit, each by its end."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.share = log.ticks / log.limit_min
        known = log.user >= 0
        limits = np.unique(log.limit_min, return_inverse=True)[1]
        self._groups = (
            _Groups(np.where(known, log.user * (limits.max() + 1) + limits, -1), log.end_s, self.share),
            _Groups(np.where(known, log.user, -1), log.end_s, self.share),
        )
        self._by_end = np.argsort(log.end_s, kind="stable")

    def at(self, second: int, jobs: Ints) -> Drawn:
        """The source as known at a second of the log's clock.

        Args:
            second: jobs that ended later are ignored.
            jobs: numbers of jobs in the log; -1: job of the chain.
        """
        same, same_count = self._groups[0].last(second, jobs, PAST)
        other, other_count = self._groups[1].last(second, jobs, PAST // 2)
        past, count = same, same_count
        few = same_count < FEW
        for k in np.flatnonzero(few & (other_count > 0)).tolist():
            both = [*other[k, : other_count[k]], *same[k, : same_count[k]]]
            count[k] = len(both)
            past[k, : count[k]] = both
        kind = np.where(jobs < 0, OF_CHAIN, np.searchsorted(KINDS_MIN, self.log.limit_min[jobs]))
        return Drawn(past, count, kind, self._pool(second))

    def _pool(self, second: int) -> Floats:
        ends = self.log.end_s[self._by_end]
        ended = self._by_end[slice(*np.searchsorted(ends, [second - POOL_S, second + 1]))]
        kind = np.searchsorted(KINDS_MIN, self.log.limit_min[ended])
        pool = np.ones((len(KINDS_MIN) + 1, POOL))
        for k in range(pool.shape[0]):
            shares = self.share[ended[kind == k]]
            if shares.size:
                pool[k] = np.quantile(shares, (np.arange(POOL) + 0.5) / POOL)
        return pool


class _Groups:
    """Shares by group, ordered by end in each."""

    def __init__(self, group: Ints, end_s: Ints, share: Floats) -> None:
        self.group = group
        order = np.lexsort((end_s, group))
        self._first = int(end_s.min(initial=0))
        self._span = int(end_s.max(initial=0)) - self._first + 2
        self._key = group[order] * self._span + (end_s[order] - self._first)
        self._share = share[order]

    def last(self, second: int, jobs: Ints, most: int) -> tuple[Floats, Ints]:
        """Shares of the last jobs of each job's group that had ended by then, and their number."""
        group = np.where(jobs < 0, -1, self.group[jobs])
        since = int(np.clip(second - self._first, -1, self._span - 2))
        upto = np.searchsorted(self._key, group * self._span + since, side="right")
        from_ = np.searchsorted(self._key, group * self._span, side="left")
        count = np.where(group < 0, 0, np.clip(upto - from_, 0, most))
        past = np.zeros((jobs.size, PAST))
        for k in range(most):
            some = count > k
            past[some, k] = self._share[(upto - count)[some] + k]
        return past, count
