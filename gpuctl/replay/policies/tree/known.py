"""Features of jobs known without an oracle, as whole numbers, for the rules of a tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

FEATURES = (
    "gpus", "waited_s", "age_s", "place", "ran_s", "gpu_s", "running", "limit_s", "free", "jobs", "user_gpus",
    "user_ended", "user_run_s", "alike_ended", "alike_run_s", "queue_gpus", "gpu_s_rank", "limit_rank", "run_rank",
)  # fmt: skip
"""In the order of the rows; `WHAT` describes them."""
WHAT = {
    "gpus": "GPUs of the gang",
    "waited_s": "seconds since it was queued last; 0 while it runs",
    "age_s": "seconds since its submission",
    "place": "candidates that were submitted before it",
    "ran_s": "seconds that it has been on GPUs",
    "gpu_s": "GPU-seconds that it has had",
    "running": "1 while it runs, 0 while it waits",
    "limit_s": "its time limit in seconds; -1: it has none",
    "free": "free GPUs",
    "jobs": "candidates",
    "user_gpus": "GPUs that its user's running jobs hold; -1: the user is not known",
    "user_ended": "jobs of its user that have ended",
    "user_run_s": "their mean time on GPUs in seconds; -1: none has ended",
    "alike_ended": "those of them with as many GPUs as it",
    "alike_run_s": "their mean time on GPUs in seconds; -1: none has ended",
    "queue_gpus": "GPUs that the running jobs of its queue hold",
    "gpu_s_rank": "candidates that have had fewer GPU-seconds",
    "limit_rank": "candidates with a shorter time limit; those without one come last",
    "run_rank": "candidates with a shorter alike_run_s, or user_run_s where that is not known; unknown ones come last",
}
UNKNOWN = -1


@dataclass
class Jobs:
    """Arrays of submitted jobs, by number.

    Attributes:
        submit: second of the submission [jobs].
        queued: second at which it was queued last [jobs].
        gpus: of the gang [jobs].
        limit: seconds; inf: none [jobs].
        user: number; -1: not known [jobs].
        queue: number [jobs].
        ran: seconds on GPUs, up to now for candidates [jobs].
        served: GPU-seconds, the same [jobs].
        held: GPUs [jobs].
    """

    submit: Floats
    queued: Floats
    gpus: Ints
    limit: Floats
    user: Ints
    queue: Ints
    ran: Floats
    served: Floats
    held: Ints


class JobHistory:
    """Jobs that have ended, by user, and by user and GPUs."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, int], tuple[int, int]] = {}

    def add(self, user: int, gpus: int, ran_s: float) -> None:
        """Record an ended job; 0 GPUs stand for all of a user's jobs."""
        if user < 0:
            return
        for key in ((user, 0), (user, gpus)):
            count, total = self._sums.get(key, (0, 0))
            self._sums[key] = count + 1, total + round(ran_s)

    def of(self, users: Ints, gpus: Ints) -> tuple[Ints, Ints]:
        """Their number, and their mean time in whole seconds, -1 if there are none."""
        found = [self._sums.get(key, (0, 0)) for key in zip(users.tolist(), gpus.tolist(), strict=True)]
        return (
            np.array([count for count, _ in found], np.int64),
            np.array([total // count if count else UNKNOWN for count, total in found], np.int64),
        )


def rows_of(
    now: float, jobs: Jobs, who: Ints, running: NDArray[np.bool_], on: Ints, *, free: int, ended: JobHistory
) -> Ints:
    """The features of candidates.

    Args:
        now: second.
        jobs: all submitted ones.
        who: candidates, ascending [candidates].
        running: mask of running candidates [candidates].
        on: all running jobs [running].
        free: GPUs.
        ended: jobs that have ended.

    Returns:
        [candidates, features], in the order of `FEATURES`.
    """
    rows = np.zeros((who.size, len(FEATURES)), np.int64)
    user, queue = jobs.user[who], jobs.queue[who]
    order = np.lexsort((who, jobs.submit[who]))
    rows[:, 0] = jobs.gpus[who]
    rows[:, 1] = np.where(running, 0, _whole(now - jobs.queued[who]))
    rows[:, 2] = _whole(now - jobs.submit[who])
    rows[order, 3] = np.arange(who.size)
    rows[:, 4] = _whole(jobs.ran[who])
    rows[:, 5] = _whole(jobs.served[who])
    rows[:, 6] = running
    limit = jobs.limit[who]
    rows[:, 7] = np.where(np.isfinite(limit), np.minimum(np.where(np.isfinite(limit), limit, 0), 1e15), UNKNOWN)
    rows[:, 8] = free
    rows[:, 9] = who.size
    rows[:, 10] = _held_by_group(jobs.user, user, jobs.held, on)
    rows[:, 11], rows[:, 12] = ended.of(user, np.zeros_like(user))
    rows[:, 13], rows[:, 14] = ended.of(user, jobs.gpus[who])
    rows[:, 15] = _held_by_group(jobs.queue, queue, jobs.held, on)
    rows[:, 16] = _rank(rows[:, 5])
    rows[:, 17] = _rank(_unknown_last(rows[:, 7]))
    rows[:, 18] = _rank(_unknown_last(np.where(rows[:, 14] >= 0, rows[:, 14], rows[:, 12])))
    return rows


def _rank(values: Ints) -> Ints:
    return np.searchsorted(np.sort(values), values).astype(np.int64)


def _unknown_last(values: Ints) -> Ints:
    return np.where(values == UNKNOWN, np.iinfo(np.int64).max, values)


def _held_by_group(group_of: Ints, group: Ints, held: Ints, on: Ints) -> Ints:
    """GPUs that the running jobs of each candidate's group hold; -1 if the group is unknown."""
    most = int(max(group.max(initial=-1), group_of[on].max(initial=-1)))
    known = on[group_of[on] >= 0]
    sums = np.bincount(group_of[known], weights=held[known], minlength=most + 2).astype(np.int64)
    return np.where(group >= 0, sums[group], UNKNOWN)


def _whole(seconds: Floats) -> Ints:
    """Whole seconds; times that differ by less than a microsecond are equal."""
    return np.floor(seconds + 1e-6).astype(np.int64)
