"""The slow reference of Mirage's authors' simulator, minute by minute, from its rules and no other code of ours."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

SLOTS = 288


@dataclass
class Job:
    """A job; seconds, but for the limit.

    Attributes:
        name: equal submissions go by it, as text.
        submit: in seconds.
        run: in seconds, cut at the limit.
        nodes: that it holds.
        limit: minutes.
        first: it enters before all others of its minute.
        start: the minute, once it has started.
        backfilled: by a pass of backfill, and not from the head of the queue.
    """

    name: str
    submit: float
    run: float
    nodes: int
    limit: int
    first: bool = False
    start: int | None = None
    backfilled: bool = False

    @property
    def minutes(self) -> int:
        """That it holds its nodes."""
        return max(1, math.ceil(min(self.run, 60 * self.limit) / 60))


@dataclass
class Cluster:
    """Nodes, and who waits for them or has them.

    Attributes:
        nodes: how many.
        tick: the minute that comes next.
        coming: jobs yet to be submitted.
        queue: those that wait, by priority.
        running: those that run.
    """

    nodes: int
    coming: list[Job]
    tick: int = 0
    queue: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)

    @property
    def free(self) -> int:
        """Nodes that nobody has."""
        return self.nodes - sum(job.nodes for job in self.running)

    def step(self) -> None:
        """One minute: submissions, one pass, ends."""
        now = self.tick
        new = [job for job in self.coming if job.submit // 60 == now]
        self.coming = [job for job in self.coming if job.submit // 60 != now]
        for job in sorted(new, key=lambda job: (not job.first, job.name)):
            mine = self._priority(job)
            behind = [k for k, other in enumerate(self.queue) if self._priority(other) < mine]
            self.queue.insert(behind[0] if behind else len(self.queue), job)
        if now % 10 == 0:
            self._backfill()
        else:
            while self.queue and self.queue[0].nodes <= self.free:
                self._start(self.queue[0])
        self.tick += 1
        self.running = [job for job in self.running if (job.start or 0) + job.minutes > now + 1]

    def _priority(self, job: Job) -> int:
        return 3600 * job.nodes - 25 * self.nodes * int(job.submit // 60)

    def _start(self, job: Job) -> None:
        job.start = self.tick
        self.queue.remove(job)
        self.running.append(job)

    def _backfill(self) -> None:
        free = [
            self.nodes - sum(j.nodes for j in self.running if self.tick + 10 * c < (j.start or 0) + j.limit)
            for c in range(SLOTS)
        ]
        chosen = []
        for place, job in enumerate(self.queue[:3000]):
            length = math.ceil(job.limit / 10)
            for c in range(SLOTS):
                taken = range(c, min(c + length, SLOTS))
                if all(free[k] >= job.nodes for k in taken):
                    for k in taken:
                        free[k] -= job.nodes
                    if c == 0:
                        chosen.append((place, job))
                    break
        for place, job in chosen:
            job.backfilled = place > 0
            self._start(job)


def simulate(jobs: list[Job], nodes: int) -> None:
    """Let all of them run; each has its start then."""
    cluster = Cluster(nodes, list(jobs))
    while cluster.coming or cluster.queue:
        cluster.step()
