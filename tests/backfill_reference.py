"""Slow backfilling that is right by inspection: profiles are lists of rectangles, every pass looks at every job.

What happens at one instant: ends, arrivals in row order, one pass. Of jobs past their plans nothing is known but that
they may end at any moment: the plan takes their GPUs for free, a start does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.replay_reference import Attempts, Job, Nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Pieces = dict[int, int]
"""GPUs by node."""


@dataclass
class Site:
    """Nodes, who may use which of them, and what queues may hold."""

    nodes: Sequence[int]
    how: str = "any"
    allowed: dict[int, list[int]] = field(default_factory=dict)
    quota: Sequence[int] = ()

    def place(self, job: Job, free: Sequence[int]) -> Pieces | None:
        """Where a job goes that finds so much free on each node."""
        mine = self.allowed.get(job.queue, range(len(self.nodes)))
        found = Nodes([self.nodes[k] for k in mine], [free[k] for k in mine]).place(job.gpus, self.how)
        return None if found is None else {mine[k]: gpus for k, gpus in found.items()}

    @property
    def counts(self) -> bool:
        """Whether any free GPUs do for any job: then a reservation is of so many, not of certain ones."""
        return self.how == "any" and not self.allowed and not self.quota

    def room(self, job: Job, held: Sequence[int]) -> bool:
        """Whether its queue, where all hold so much, may hold the job's GPUs, too."""
        return not self.quota or held[job.queue] + job.gpus <= self.quota[job.queue]


@dataclass
class Run:
    """A running job."""

    job: int
    pieces: Pieces
    planned: int
    end: int


class Backfill:
    """Jobs that run to their ends; subclasses say who starts.

    Args:
        jobs: by submission.
        plans: seconds that each is planned for.
        site: the nodes.
        key: order of the queue; ties by row.
    """

    def __init__(
        self, jobs: Sequence[Job], plans: Sequence[int], site: Site, key: Callable[[int], float] = lambda _: 0
    ) -> None:
        self.jobs, self.plans, self.site = jobs, plans, site
        self.order = lambda j: (key(j), j)
        self.now = 0
        self.waiting: list[int] = []
        self.running: list[Run] = []
        self.where: list[Pieces] = [{} for _ in jobs]
        self.result: Attempts = [[] for _ in jobs]

    def free(self, running: Sequence[Run]) -> list[int]:
        """Free GPUs of each node beside these jobs."""
        return [gpus - sum(run.pieces.get(k, 0) for run in running) for k, gpus in enumerate(self.site.nodes)]

    def held(self, running: Sequence[Run]) -> list[int]:
        """GPUs of each queue; not counted where no queue has a quota."""
        if not self.site.quota:
            return [0] * 9
        return [sum(self.jobs[run.job].gpus for run in running if self.jobs[run.job].queue == q) for q in range(9)]

    def fits(self, j: int) -> Pieces | None:
        """Where a job can start now."""
        job = self.jobs[j]
        return self.site.place(job, self.free(self.running)) if self.site.room(job, self.held(self.running)) else None

    def start(self, j: int, pieces: Pieces) -> None:
        """Start a job now."""
        self.waiting.remove(j)
        end = self.now + self.jobs[j].duration
        self.running.append(Run(j, pieces, self.now + self.plans[j], end))
        self.where[j] = pieces
        self.result[j] = [(self.now, end)]

    def run(self, *, each: bool = False) -> Attempts:
        """All jobs to their ends; `each`: a pass for each submission, then for each end, by start, as pyss has it."""
        coming = list(range(len(self.jobs)))
        bells: list[int] = []
        while coming or self.running or bells:
            self.now = min([self.jobs[j].submit for j in coming[:1]] + [r.end for r in self.running] + bells)
            over = [run for run in self.running if run.end == self.now]
            fresh = [j for j in coming if self.jobs[j].submit == self.now]
            coming = coming[len(fresh) :]
            if each:
                self.running = [run for run in self.running if run not in over or run.planned > self.now]
                for j in fresh:
                    self.arrive([j])
                for run in over:
                    self.running = [other for other in self.running if other is not run]
                    self.arrive([])
            else:
                self.running = [run for run in self.running if run not in over]
                self.leave(over)
                self.arrive(fresh)
            bells = self.bells()
        return self.result

    def leave(self, over: Sequence[Run]) -> None:
        """These jobs have ended."""

    def arrive(self, fresh: Sequence[int]) -> None:
        """These jobs have come; who starts?"""
        raise NotImplementedError

    def bells(self) -> list[int]:
        """Later seconds at which somebody may start though nobody ends."""
        return []


class Easy(Backfill):
    """The first job in order that cannot start has a reservation."""

    behind: Callable[[int], float] | None = None
    """Order of the others; None: the queue's."""

    def arrive(self, fresh: Sequence[int]) -> None:
        """See `Backfill`."""
        self.waiting = sorted([*self.waiting, *fresh], key=self.order)
        while self.waiting:
            head = self.waiting[0]
            pieces = self.fits(head)
            if pieces is None:
                self.backfill(head)
                return
            self.start(head, pieces)

    def backfill(self, head: int) -> None:
        """Start jobs behind the head, each looked at once."""
        site, job = self.site, self.jobs[head]
        ends = sorted({max(run.planned, self.now) for run in self.running})
        for at in ends:
            stay = [run for run in self.running if run.planned > at]
            then, held = self.free(stay), self.held(stay)
            kept = site.place(job, then) if site.room(job, held) else None
            if kept is not None:
                break
        else:
            raise AssertionError("the head never fits")
        behind = self.behind
        others = self.waiting[1:] if behind is None else sorted(self.waiting[1:], key=lambda j: (behind(j), j))
        for j in others:
            pieces = self.fits(j)
            if pieces is None:
                continue
            if self.now + self.plans[j] <= at:
                self.start(j, pieces)
                continue
            mine = self.jobs[j].queue == job.queue
            if mine and site.quota and held[job.queue] + job.gpus + self.jobs[j].gpus > site.quota[job.queue]:
                continue
            left = [gpus - pieces.get(k, 0) for k, gpus in enumerate(then)]
            if not all(gpus >= kept.get(k, 0) for k, gpus in enumerate(left)):
                # the head may go elsewhere
                other = site.place(job, left) if min(left) >= 0 else None
                if other is not None:
                    kept = other
                else:
                    now = self.free(self.running)
                    seen = [min(a, b - kept.get(k, 0)) for k, (a, b) in enumerate(zip(now, then, strict=True))]
                    around = site.place(self.jobs[j], seen)
                    if around is None:
                        continue
                    pieces = around
            then = [gpus - pieces.get(k, 0) for k, gpus in enumerate(then)]
            held[self.jobs[j].queue] += self.jobs[j].gpus
            self.start(j, pieces)


@dataclass
class Reservation:
    """GPUs that a waiting job will have."""

    job: int
    pieces: Pieces
    at: int
    until: int


class Conservative(Backfill):
    """Every job has a reservation from the second at which it comes."""

    def __init__(
        self, jobs: Sequence[Job], plans: Sequence[int], site: Site, key: Callable[[int], float] = lambda _: 0
    ) -> None:
        super().__init__(jobs, plans, site, key)
        self.reserved: dict[int, Reservation] = {}
        self.failed = False
        self.planned = Site([sum(site.nodes)]) if site.counts else site

    def least(self, begin: int, end: int, j: int) -> tuple[list[int], bool]:
        """The fewest GPUs free on each node in a time, and whether the job's queue has room all along."""
        one = self.site.counts
        plan = [
            ({0: self.jobs[run.job].gpus} if one else run.pieces, self.now, run.planned, run.job)
            for run in self.running
        ]
        plan += [(r.pieces, r.at, r.until, r.job) for r in self.reserved.values() if r.job != j]
        seconds = {begin, *(t for _, t, _, _ in plan if begin <= t < end)}
        least, room = list(self.planned.nodes), True
        for t in seconds:
            there = [row for row in plan if row[1] <= t < row[2]]
            for k, gpus in enumerate(self.planned.nodes):
                least[k] = min(least[k], gpus - sum(pieces.get(k, 0) for pieces, *_ in there))
            if self.site.quota:
                held = [sum(self.jobs[i].gpus for *_, i in there if self.jobs[i].queue == q) for q in range(9)]
                room &= self.site.room(self.jobs[j], held)
        return least, room

    def reserve(self, j: int) -> None:
        """Give a job the earliest second there is, no later than what it has."""
        old = self.reserved.get(j)
        ends = [run.planned for run in self.running] + [r.until for r in self.reserved.values() if r.job != j]
        for at in sorted({self.now, *(t for t in ends if t > self.now)}):
            if old is not None and at >= old.at:
                return
            least, room = self.least(at, at + self.plans[j], j)
            pieces = self.planned.place(self.jobs[j], least) if room else None
            if pieces is not None:
                self.reserved[j] = Reservation(j, pieces, at, at + self.plans[j])
                return
        assert old is not None

    def leave(self, over: Sequence[Run]) -> None:
        """See `Backfill`."""
        if not self.failed and any(run.planned > self.now for run in over):
            before = None
            while before != (before := {j: mine.at for j, mine in self.reserved.items()}):
                for j in sorted(self.reserved, key=self.order):
                    if self.reserved[j].at > self.now:
                        self.reserve(j)

    def arrive(self, fresh: Sequence[int]) -> None:
        """See `Backfill`."""
        if self.failed:
            old = sorted(self.reserved, key=self.order)
            self.reserved = {}
            for j in old:
                self.reserve(j)
        for j in sorted(fresh, key=self.order):
            self.waiting.append(j)
            self.reserve(j)
        self.failed = False
        for j in sorted(self.reserved, key=self.order):
            mine = self.reserved[j]
            if mine.at <= self.now:
                pieces = self.fits(j) if self.site.counts else self.there(mine)
                if pieces is not None:
                    del self.reserved[j]
                    self.start(j, pieces)
                else:
                    self.failed = True

    def there(self, mine: Reservation) -> Pieces | None:
        """The reserved GPUs, if all of them are free indeed."""
        free = self.free(self.running)
        whole = all(free[k] >= gpus for k, gpus in mine.pieces.items())
        return mine.pieces if whole and self.site.room(self.jobs[mine.job], self.held(self.running)) else None

    def bells(self) -> list[int]:
        """See `Backfill`."""
        return [r.at for r in self.reserved.values() if r.at > self.now]


def promises_are_kept(started: Sequence[float], seen: Sequence[Mapping[int, float]]) -> None:
    """Nobody's reservation ever moves to a later second, and nobody starts after theirs.

    Args:
        started: first start of each job.
        seen: what was reserved, by job, after each instant.
    """
    promised: dict[int, float] = {}
    for reserved in seen:
        for j, at in reserved.items():
            assert at <= promised.get(j, math.inf)
            promised[j] = at
    for j, at in promised.items():
        assert started[j] <= at
