"""The slow reference of Aryl, written from its rules (``docs/reference/policies/aryl.md``), not from other code."""

from __future__ import annotations

import math
from typing import ClassVar

from tests.elastic_reference import Job, Slow, key


class Aryl(Slow):
    """Nodes on loan from an inference cluster, and elastic jobs in two phases.

    `nodes` are those for training.
    """

    defaults: ClassVar[dict[str, float]] = {
        "ratio": 3, "interval": 300, "pre": 63, "resize": 15, "loan": 1, "elastic": 1, "linear": 1,
    }  # fmt: skip

    def __init__(
        self, nodes: list[int], racks: list[int], jobs: list[Job], inference: tuple[int, ...] | list[int] = (),
        load: tuple[tuple[float, int], ...] | list[tuple[float, int]] = (), **params: float,
    ) -> None:  # fmt: skip
        self.inference, self.load = inference, load
        super().__init__(nodes, racks, jobs, **params)

    def begin(self) -> None:
        """What it remembers."""
        self.training = list(range(len(self.size)))
        self.size = self.size + [math.floor(gpus / self.p.ratio + 1e-9) for gpus in self.inference]
        self.loaned: list[int] = []
        self.ticked = -1
        self.counts = {"loaned": 0, "reclaimed": 0, "reclaim_preemptions": 0, "scale_ins": 0, "knapsacks": 0}
        for job in self.jobs:
            if self.p.linear:
                job.alpha = 0.0
            if not self.p.elastic:
                job.least = job.most = job.gang
            job.eff = (1.0, 1.0, 1.0)
        self.rack = self.rack + [-1] * len(self.inference)

    def wants(self, submitted: float) -> float:
        """The next tick."""
        return self.multiple(self.p.interval, submitted)

    def takes(self, job: Job, gpus: int) -> float:
        """Seconds to its end on so many GPUs."""
        return (job.work - job.done) / self.speed(job, gpus, 0)

    def free(self) -> list[int]:
        """GPUs that nobody holds, by node."""
        left = [gpus if k in self.training or k in self.loaned else 0 for k, gpus in enumerate(self.size)]
        for job in self.active:
            for part in (job.base, job.flex):
                for node, gpus in part.items():
                    left[node] -= gpus
        return left

    def decide(self) -> None:
        """The order of an instant."""
        for job in self.active:
            job.thrown = False
        tick = math.floor(self.now / self.p.interval + 1e-9)
        is_tick = abs(self.now / self.p.interval - round(self.now / self.p.interval)) < 1e-9
        if self.p.loan:
            for number in range(self.ticked + 1, tick + 1):
                self.lend([n for t, n in self.load if t <= number * self.p.interval][-1:] or [0])
        self.ticked = max(self.ticked, tick)
        self.admit()
        if is_tick and self.p.elastic:
            self.share_out()
        self.settle()

    def settle(self) -> None:
        """What has come of it."""
        for job in self.active:
            where = dict(job.base)
            for node, gpus in job.flex.items():
                where[node] = where.get(node, 0) + gpus
            if job.thrown and where:
                self.put(job, {}, 0.0)
            self.put(job, where, self.p.resize if job.on and not job.thrown else self.p.pre)
            job.counted = sum(where.values())
            job.rate = self.speed(job, sum(where.values()), 0) if where else 0.0

    def lend(self, goal: list[int]) -> None:
        """At a tick: nodes come, or go back."""
        wanted = min(goal[0], len(self.inference))
        first = len(self.training)
        for k in range(first, len(self.size)):
            if len(self.loaned) < wanted and k not in self.loaned:
                self.loaned.append(k)
                self.counts["loaned"] += 1
        while len(self.loaned) > wanted:
            s = min(self.loaned, key=self.cost)
            for job in self.active:
                if job.base.get(s):
                    job.base, job.flex, job.thrown = {}, {}, True
                    self.counts["reclaim_preemptions"] += 1
                elif job.flex.pop(s, 0):
                    self.counts["scale_ins"] += 1
            self.loaned.remove(s)
            self.counts["reclaimed"] += 1

    def cost(self, s: int) -> tuple[int, int, int, int]:
        """Of giving a node back."""
        parts = [sum(1 for k in job.base if k in self.loaned) for job in self.active if job.base.get(s)]
        return (
            math.floor(sum(1 / n for n in parts) * 1e6 + 0.5),
            sum(job.flex.get(s, 0) for job in self.active),
            sum(job.base.get(s, 0) for job in self.active),
            s,
        )

    # ---- phase 1

    def admit(self) -> None:
        """Jobs that wait start, the shortest first."""
        waiting = [job for job in self.active if not job.base]
        for job in sorted(waiting, key=lambda job: (key(self.takes(job, job.least)), job.line)):
            sets = [self.training]
            if job.fungible:
                sets.append(sorted(self.loaned))
            if job.most > job.least:
                sets.append(self.training + sorted(self.loaned))
            n = job.least
            for nodes in sets:
                free = self.free()
                if sum(free[k] for k in nodes) >= n:
                    job.base = self.somewhere(n, nodes, free)
                    break
            else:
                for nodes in sets:
                    have = sum(self.free()[k] for k in nodes)
                    if have + sum(j.flex.get(k, 0) for j in self.active for k in nodes) >= n:
                        for _ in range(n - have):
                            self.shrink(nodes)
                        job.base = self.somewhere(n, nodes, self.free())
                        break

    def somewhere(self, n: int, nodes: list[int], free: list[int]) -> dict[int, int]:
        """Where so many go."""
        if fits := [k for k in nodes if free[k] >= n]:
            return {min(fits, key=lambda k: (free[k], k)): n}
        found: dict[int, int] = {}
        for k in sorted(nodes, key=lambda k: (-free[k], k)):
            if some := min(free[k], n - sum(found.values())):
                found[k] = some
        return found

    def shrink(self, nodes: list[int]) -> None:
        """One flexible worker of these nodes goes: of the job that loses least."""

        def loss(job: Job) -> tuple[int, int]:
            w = sum(job.base.values()) + sum(job.flex.values())
            return key(self.takes(job, w - 1) - self.takes(job, w)), job.line

        job = min((j for j in self.active if any(j.flex.get(k) for k in nodes)), key=loss)
        self.drop(job, max(k for k in nodes if job.flex.get(k)))

    def drop(self, job: Job, node: int) -> None:
        """A worker goes."""
        job.flex[node] -= 1
        if not job.flex[node]:
            del job.flex[node]

    # ---- phase 2

    def share_out(self) -> None:
        """Flexible workers are counted out anew."""
        jobs = [job for job in self.active if job.base and job.most > job.least]
        if not jobs:
            return
        self.counts["knapsacks"] += 1
        room = sum(self.free()) + sum(sum(job.flex.values()) for job in self.active)
        values = [
            [key(self.takes(job, job.least) - self.takes(job, job.least + k)) for k in range(job.most - job.least + 1)]
            for job in jobs
        ]
        counts = knapsack(values, room)
        have = [sum(job.flex.values()) for job in jobs]
        for job, k, n in zip(jobs, counts, have, strict=True):
            for _ in range(n - k):
                mine = [s for s in job.flex if s in self.training] or list(job.flex)
                self.drop(job, max(mine))
        for job, k, n in zip(jobs, counts, have, strict=True):
            for _ in range(k - n):
                free = self.free()
                busy = {s for other in self.active for s in other.base}
                s = min(
                    (s for s in range(len(free)) if free[s] > 0),
                    key=lambda s: (2 if s in self.training else 1 if s in busy else 0, free[s], s),
                )
                job.flex[s] = job.flex.get(s, 0) + 1


def knapsack(values: list[list[int]], room: int) -> list[int]:
    """Of each list one value, by its index: the largest sum within the room, and of equal ones the last in order."""
    best = [[0] * (room + 1)]
    for row in reversed(values):
        best.append([max(row[k] + best[-1][r - k] for k in range(min(r, len(row) - 1) + 1)) for r in range(room + 1)])
    counts = []
    for row, whole, rest in zip(values, best[:0:-1], best[-2::-1], strict=True):
        k = max(k for k in range(min(room, len(row) - 1) + 1) if row[k] + rest[room - k] == whole[room])
        counts.append(k)
        room -= k
    return counts
