"""Gavel's finish-time fairness: minimize the largest rho."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpuctl.replay.policies.gavel.rounds import GavelRounds
from gpuctl.replay.policies.gavel.shares import finish_time_shares

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.replay.contract.view import View

    Floats = NDArray[np.float64]

LEAST_S = 1e-3
"""Least work left and time alone of a job, in seconds: a job without work has no rho."""


class FinishTimeFairness(GavelRounds):
    """Rounds by shares that minimize the largest finish time relative to an isolated part of the cluster."""

    name = "ftf"
    title = "in rounds, jobs get shares of time on each GPU type for which the largest finish-time rho is least"
    source = (
        "Narayanan et al., Gavel, OSDI 2020: min-max rho over shares of time, rho and the isolated part as in its "
        "authors' simulator, rounds and priorities those of max-min; jobs that do not keep the largest rho up, a "
        "sequence of linear programs in place of a convex one, and placement: ours. Not Themis: no auction, no leases"
    )
    oracle = True

    def begin(self, view: View) -> None:
        """See `PythonPolicy.begin`."""
        super().begin(view)
        # work left and speed alone at the last computation of shares, and the isolated time of work done
        self.left: dict[int, float] = {}
        self.isolated: dict[int, float] = {}
        self.spent: dict[int, float] = {}

    def on_finish(self, view: View, job: int) -> None:
        """See `GavelRounds.on_finish`."""
        super().on_finish(view, job)
        for known in (self.left, self.isolated, self.spent):
            known.pop(job, None)

    def shares(self, view: View, jobs: Sequence[int], speeds: Floats, gpus: Floats) -> Floats:
        """See `GavelRounds.shares`."""
        part = self.room / len(jobs) / gpus[:, None]
        part /= np.maximum(part.sum(axis=1), 1.0)[:, None]
        speed_alone = (speeds * part).sum(axis=1)
        left = np.array([max(view.remaining(job), LEAST_S) for job in jobs])
        for job, speed, seconds in zip(jobs, speed_alone.tolist(), left.tolist(), strict=True):
            before = self.left.get(job, seconds)
            self.spent[job] = self.spent.get(job, 0.0) + (before - seconds) / self.isolated.get(job, speed)
            self.left[job], self.isolated[job] = seconds, speed
        since = np.array([view.now - view.submit[job] for job in jobs])
        alone = np.maximum(np.array([self.spent[job] for job in jobs]) + left / speed_alone, LEAST_S)
        return finish_time_shares(speeds, gpus, self.room, left=left, since=since, alone=alone)[0]
