"""Jobs of stages, slowly: every way to give executors to stages, tried one after the other, for tiny cases."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.research.dag.jobs import Job


@dataclass
class World:
    """Executors and jobs at one instant."""

    jobs: Sequence[Job]
    delay: int
    now: int = -1
    executors: list[tuple[int, int, int] | None] = field(default_factory=list)  # job, stage, end of its task
    last: list[int | None] = field(default_factory=list)
    left: dict[tuple[int, int], int] = field(default_factory=dict)
    unfinished: dict[tuple[int, int], int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)

    def ready(self, j: int, v: int) -> bool:
        """Whether a stage can take an executor."""
        parents = self.jobs[j].stages[v].parents
        return (
            self.jobs[j].arrival_ms <= self.now
            and self.left[j, v] > 0
            and all(self.unfinished[j, p] == 0 for p in parents)
        )

    def actions(self) -> list[tuple[int, int, int]]:
        """All that may be done: job, stage, executors."""
        free = self.executors.count(None)
        return [
            (j, v, n)
            for j, job in enumerate(self.jobs)
            for v in range(len(job.stages))
            if self.ready(j, v)
            for n in range(1, min(self.left[j, v], free) + 1)
        ]

    def act(self, j: int, v: int, n: int) -> None:
        """Give executors to a stage."""
        free = [e for e, at in enumerate(self.executors) if at is None]
        for e in sorted(free, key=lambda e: (self.last[e] != j, e))[:n]:
            begin = self.now + (0 if self.last[e] == j else self.delay)
            self.executors[e] = (j, v, begin + self.jobs[j].stages[v].task_ms)
            self.last[e] = j
            self.left[j, v] -= 1

    def step(self) -> bool:
        """Go on to the next instant; False: there is none."""
        times = [at[2] for at in self.executors if at] + [j.arrival_ms for j in self.jobs if j.arrival_ms > self.now]
        if not times:
            return False
        self.now = min(times)
        for e, at in enumerate(self.executors):
            if at is None or at[2] != self.now:
                continue
            j, v, _ = at
            self.unfinished[j, v] -= 1
            if all(self.unfinished[j, k] == 0 for k in range(len(self.jobs[j].stages))):
                self.ends[j] = self.now
            if self.left[j, v] > 0:
                self.left[j, v] -= 1
                self.executors[e] = (j, v, self.now + self.jobs[j].stages[v].task_ms)
            else:
                self.executors[e] = None
        return True


def world(jobs: Sequence[Job], executors: int, delay: int) -> World:
    """Before the first arrival."""
    tasks = {(j, v): stage.tasks for j, job in enumerate(jobs) for v, stage in enumerate(job.stages)}
    return World(jobs, delay, -1, [None] * executors, [None] * executors, dict(tasks), dict(tasks))


def every_schedule(at: World) -> list[int]:
    """The sum of completion times of each way to go on; those in which jobs never end are left out."""
    found = []
    actions = at.actions() if None in at.executors else []
    for action in actions:
        after = deepcopy(at)
        after.act(*action)
        found += every_schedule(after)
    # to wait for the next event is allowed, too
    waiting = deepcopy(at)
    if waiting.step():
        found += every_schedule(waiting)
    elif len(at.ends) == len(at.jobs):
        found.append(sum(at.ends[j] - job.arrival_ms for j, job in enumerate(at.jobs)))
    return found
