"""A slow ElasticFlow, slot by slot in lists, without an engine: shares, leftovers and ends on a pool of GPUs."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class Elastic:
    """A job: its work is in seconds on its gang."""

    line: int
    submit: float
    left: float
    gang: int
    most: int
    alpha: float
    deadline: float
    gpus: int = 0
    end: float | None = None
    sure: bool = False

    def speed(self, gpus: int) -> float:
        """Work that a second does."""

        def scale(n: int) -> float:
            return n / (1 + self.alpha * (n - 1))

        return scale(gpus) / scale(self.gang)

    def levels(self) -> list[int]:
        """GPUs that it can use, as long as it gets faster."""
        found = [1]
        while found[-1] * 2 <= self.most and self.speed(found[-1] * 2) > self.speed(found[-1]):
            found.append(found[-1] * 2)
        return found


def share(job: Elastic, free: list[int], now: float, slot: float) -> int | None:
    """GPUs of a job in this slot by the least share that meets its deadline, taken off `free`; None: there is none."""
    slots = math.floor((job.deadline - now + 1e-6) / slot)
    for ceiling in job.levels():
        done, taken = 0.0, []
        for k in range(slots):
            gpus = max([n for n in job.levels() if n <= min(ceiling, free[k])], default=0)
            taken.append(gpus)
            done += job.speed(gpus) * slot if gpus else 0.0
            if done >= job.left - 1e-6:
                for at, some in enumerate(taken):
                    free[at] -= some
                return taken[0]
    return None


def shares(jobs: list[Elastic], total: int, now: float, slot: float) -> dict[int, int | None]:
    """Shares of all guaranteed jobs, by deadline."""
    sure = sorted((job for job in jobs if job.sure and job.end is None), key=lambda job: (job.deadline, job.line))
    free = [total] * (1 + max([int((job.deadline - now) // slot) for job in sure], default=0))
    return {job.line: share(job, free, now, slot) for job in sure}


def replay(jobs: list[Elastic], total: int, slot: float = 60.0) -> list[float | None]:
    """Run all jobs, which come in order of submission; None: declined."""
    waiting, here, now = list(jobs), [], 0.0
    while waiting or here:
        while waiting and waiting[0].submit <= now:
            job = waiting.pop(0)
            here.append(job)
            job.sure = job.deadline < math.inf
            if job.sure and None in shares(here, total, now, slot).values():
                job.sure = False
                here.remove(job)
        given = shares(here, total, now, slot)
        for job in here:
            job.gpus = given.get(job.line) or 0
        left = total - sum(job.gpus for job in here)
        while True:
            best, key = None, None
            for job in here:
                more = [n for n in job.levels() if n > job.gpus][:1]
                if more and more[0] - job.gpus <= left:
                    gain = 10**18
                    if job.gpus:
                        faster = (job.speed(more[0]) - job.speed(job.gpus)) / job.speed(1) / (more[0] - job.gpus)
                        gain = math.floor(faster * 1e6 + 0.5)
                    if key is None or (-gain, job.deadline, job.line) < key:
                        best, key = (job, more[0]), (-gain, job.deadline, job.line)
            if best is None:
                break
            left -= best[1] - best[0].gpus
            best[0].gpus = best[1]
        for job in here:
            need = job.left / job.speed(job.gpus) if job.gpus else math.inf
            if need <= slot + 1e-9:
                job.end = now + need
            job.left -= job.speed(job.gpus) * slot if job.gpus else 0.0
        here = [job for job in here if job.end is None]
        now += slot
    return [job.end for job in jobs]
