"""The ordered queue of waiting jobs, which tolerates removals during iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class WaitingJobs:
    """The waiting jobs in order of queueing; jobs may start during iteration."""

    def __init__(self, size: int) -> None:
        self._after = [-1] * (size + 1)
        self._before = [-1] * (size + 1)
        self._end = size
        self._after[size] = self._before[size] = size
        self._count = 0

    def __iter__(self) -> Iterator[int]:
        after, end = self._after, self._end
        at = after[end]
        while at != end:
            following = after[at]
            yield at
            # the job yielded last, and the one after it, may be gone
            at = following if self._before[following] >= 0 else after[end]

    def __len__(self) -> int:
        return self._count

    def __contains__(self, job: int) -> bool:
        return 0 <= job < self._end and self._before[job] >= 0

    def _add(self, job: int) -> None:
        """Put a job at the end."""
        if self._before[job] >= 0:
            return
        last = self._before[self._end]
        self._after[last] = job
        self._before[job] = last
        self._after[job] = self._end
        self._before[self._end] = job
        self._count += 1

    def _remove(self, job: int) -> None:
        """Take a job out."""
        before, after = self._before[job], self._after[job]
        if before < 0:
            return
        self._after[before] = after
        self._before[after] = before
        self._before[job] = -1
        self._count -= 1
