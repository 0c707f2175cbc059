"""A made-up cluster whose scheduler follows stated rules, and why each attempt waited under them; all in arrays.

Ours, and written apart from the analysis: what it says of every second of a wait is the scheduler's own decision.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.analyze.delays import Waits
from gpuctl.analyze.occupancy import Holdings, Nodes
from gpuctl.analyze.racks import Gangs

if TYPE_CHECKING:
    from gpuctl.analyze.occupancy import Floats

FAIR, CAPACITY, FRAGMENTATION, OTHER = range(4)
ENDS, ARRIVES, PASSES = range(3)
NEVER = float("inf")
USERS = 6


@dataclass(frozen=True)
class Site:
    """Rules and shape of a made-up cluster.

    Attributes:
        seed: of all that is drawn.
        jobs: how many.
        load: mean demand as a share of the GPUs.
        racks: GPUs of each rack's nodes.
        quotas: each queue's quota as a share of all GPUs; its demand is drawn beside it.
        borrow: a queue may exceed its quota while at most this share of the GPUs is in use; 0: never.
        users: a user may hold at most this share of the GPUs, whatever the queue; 1: no such rule.
        relax: seconds of waiting after which any nodes of one rack will do, and any nodes at all.
        tick: seconds from pass to pass where nothing else happens.
        in_order: whether a queue's jobs start in order of submission only.
        sizes: weights of gangs of 1, 2, 4, 8, 16 and 32 GPUs.
    """

    seed: int
    jobs: int = 1000
    load: float = 0.9
    racks: tuple[tuple[int, ...], ...] = ((8, 8, 8, 8, 4, 4),) * 3
    quotas: tuple[float, ...] = (0.4, 0.3, 0.3, 0.2)
    borrow: float = 0.8
    users: float = 1.0
    relax: tuple[float, float] = (3600.0, 36000.0)
    tick: float = 60.0
    in_order: bool = False
    sizes: tuple[float, ...] = (40, 15, 18, 17, 8, 2)


@dataclass(frozen=True)
class Made:
    """What the log shows (as the analysis takes it), and the truth.

    Attributes:
        waits: one element an attempt.
        holdings: likewise.
        nodes: with the true racks.
        gangs: those on several nodes.
        truth: (attempts, 4): seconds of fair-share, capacity and fragmentation delay, and of others.
    """

    waits: Waits
    holdings: Holdings
    nodes: Nodes
    gangs: Gangs
    truth: Floats


@dataclass
class Job:
    """One job; `held` are nodes and how many GPUs of each."""

    queued: float
    length: float
    gpus: int
    queue: int
    user: int
    start: float = -1.0
    held: tuple[tuple[int, int], ...] = ()
    cause: int = -1


def _jobs(site: Site, gpus: int, quotas: list[int], rng: random.Random) -> list[Job]:
    most = max(sum(rack) for rack in site.racks)
    choices = [(2**k, weight) for k, weight in enumerate(site.sizes) if 2**k <= most]
    sizes, weights = zip(*choices, strict=True)
    demand = [rng.uniform(0.5, 1.5) * quota for quota in site.quotas]
    mean_gpus = sum(s * w for s, w in choices) / sum(weights)
    mean_s = 3600 * np.exp(1.2**2 / 2)
    gap = mean_gpus * mean_s / (site.load * gpus)
    empty, last = Cluster(site.racks), sum(seconds < NEVER for seconds in site.relax)
    now, made = 0.0, []
    for _ in range(site.jobs):
        busy = 1.0 if int(now / 43200) % 2 else 2.0  # half of each day twice as many arrive
        now += rng.expovariate(busy / gap / 1.5)
        queue = rng.choices(range(len(demand)), demand)[0]
        size = rng.choices(sizes, weights)[0]
        while size > quotas[queue] or empty.place(size, last) is None:  # what could never start is refused
            size //= 2
        length = max(30.0, 3600 * rng.lognormvariate(0, 1.2))
        made.append(Job(float(round(now)), float(round(length)), size, queue, rng.randrange(USERS)))
    return made


class Cluster:
    """Nodes by number: their GPUs, racks and free GPUs."""

    def __init__(self, racks: tuple[tuple[int, ...], ...]) -> None:
        self.gpus = [gpus for rack in racks for gpus in rack]
        self.rack = [number for number, rack in enumerate(racks) for _ in rack]
        self.members = [[s for s, r in enumerate(self.rack) if r == number] for number in range(len(racks))]
        self.free = list(self.gpus)
        self.most = max(self.gpus)

    def place(self, gpus: int, level: int) -> tuple[tuple[int, int], ...] | None:
        """Nodes for a gang: the fewest, in one rack (level 0), any of one rack (1), or any (2)."""
        groups = self.members if level < 2 else [range(len(self.gpus))]
        fewest = -(-gpus // self.most) if level == 0 else len(self.gpus)
        found = [got for group in groups if (got := self._pack(group, gpus)) and len(got) <= fewest]
        return min(found, key=len) if found else None

    def _pack(self, group: list[int] | range, gpus: int) -> tuple[tuple[int, int], ...] | None:
        chosen = []
        for node in sorted(group, key=lambda s: (-self.free[s], s)):
            fitting = [s for s in group if self.free[s] >= gpus and s not in {s for s, _ in chosen}]
            if fitting:
                return (*chosen, (min(fitting, key=lambda s: (self.free[s], s)), gpus))
            if not self.free[node]:
                return None
            chosen.append((node, self.free[node]))
            gpus -= self.free[node]
        return None


class _Scheduler:
    """What is held by whom, who waits, and the rules."""

    def __init__(self, site: Site) -> None:
        self.site, self.cluster = site, Cluster(site.racks)
        self.total = sum(self.cluster.gpus)
        quotas = [max(8, round(share * self.total)) for share in site.quotas]
        self.quotas, self.by_queue, self.by_user = quotas, [0] * len(quotas), [0] * USERS
        self.jobs = _jobs(site, self.total, quotas, random.Random(site.seed))
        self.waiting: list[Job] = []

    def limited(self, job: Job) -> bool:
        busy = self.total - sum(self.cluster.free) + job.gpus
        over = self.by_queue[job.queue] + job.gpus > self.quotas[job.queue]
        over = over and busy > self.site.borrow * self.total
        most = max(job.gpus, self.site.users * self.total) if self.site.users < 1 else NEVER
        return over or self.by_user[job.user] + job.gpus > most

    def cause(self, job: Job) -> int:
        """Why a job that cannot start waits."""
        if self.limited(job):
            return FAIR
        return CAPACITY if sum(self.cluster.free) < job.gpus else FRAGMENTATION

    def end(self, job: Job) -> None:
        for node, gpus in job.held:
            self.cluster.free[node] += gpus
        self.by_queue[job.queue] -= job.gpus
        self.by_user[job.user] -= job.gpus

    def start_what_may(self, now: float) -> list[Job]:
        """One pass, in order of submission; returns what starts."""
        begun, stuck, full = [], set(), set()
        for job in self.waiting:
            behind = self.site.in_order and job.queue in stuck
            level = sum(now - job.queued >= seconds for seconds in self.site.relax)
            spot = None
            if not behind and self.cause(job) == FRAGMENTATION and (job.gpus, level) not in full:
                spot = self.cluster.place(job.gpus, level)
                if spot is None:
                    full.add((job.gpus, level))
            if spot is None:
                stuck.add(job.queue)
                job.cause = OTHER if behind else FAIR
                continue
            for node, gpus in spot:
                self.cluster.free[node] -= gpus
            self.by_queue[job.queue] += job.gpus
            self.by_user[job.user] += job.gpus
            job.start, job.held = now, spot
            begun.append(job)
        self.waiting = [job for job in self.waiting if job.start < 0]
        for job in self.waiting:  # from now on it waits for what this pass leaves behind
            if job.cause != OTHER:
                job.cause = self.cause(job)
        return begun


def make(site: Site) -> Made:
    """Run the made-up cluster."""
    ran = run(site)
    return _as_arrays(ran.jobs, ran.cluster, ran.truth)


@dataclass(frozen=True)
class Ran:
    """All jobs, the cluster, the queues' quotas in GPUs, and each job's seconds by cause as in `Made.truth`."""

    jobs: list[Job]
    cluster: Cluster
    quotas: list[int]
    truth: Floats


def run(site: Site) -> Ran:
    """Run the made-up cluster, job by job."""
    scheduler = _Scheduler(site)
    jobs = scheduler.jobs
    truth = np.zeros((len(jobs), 4))
    events = [(job.queued, ARRIVES, k) for k, job in enumerate(jobs)]
    heapq.heapify(events)
    number = {id(job): k for k, job in enumerate(jobs)}
    now, next_tick = 0.0, NEVER
    while events:
        before, now = now, events[0][0]
        for job in scheduler.waiting:
            truth[number[id(job)], job.cause] += now - before
        while events and events[0][0] == now:
            _, kind, k = heapq.heappop(events)
            if kind == ENDS:
                scheduler.end(jobs[k])
            elif kind == ARRIVES:
                scheduler.waiting.append(jobs[k])
        for job in scheduler.start_what_may(now):
            heapq.heappush(events, (now + job.length, ENDS, number[id(job)]))
        if next_tick <= now:
            next_tick = NEVER
        if scheduler.waiting and next_tick == NEVER:
            next_tick = now + site.tick
            heapq.heappush(events, (next_tick, PASSES, -1))
    return Ran(jobs, scheduler.cluster, scheduler.quotas, truth)


def _as_arrays(jobs: list[Job], cluster: Cluster, truth: Floats) -> Made:
    started = [k for k, job in enumerate(jobs) if job.start >= 0]
    column = lambda get: np.array([get(jobs[k]) for k in started])  # noqa: E731
    queued, start, gpus, queue = (column(lambda j, n=n: getattr(j, n)) for n in ("queued", "start", "gpus", "queue"))
    end = column(lambda j: j.start + j.length)
    spots = [
        (jobs[k].start, jobs[k].start + jobs[k].length, node, held) for k in started for node, held in jobs[k].held
    ]
    at, until, node, held = (np.array(values) for values in zip(*spots, strict=True))
    several = [k for k in started if len(jobs[k].held) > 1]
    gangs = Gangs(
        tuple(np.array(sorted(node for node, _ in jobs[k].held)) for k in several),
        np.array([jobs[k].start - jobs[k].queued for k in several]),
        np.array([len(jobs[k].held) > -(-jobs[k].gpus // cluster.most) for k in several], bool),
    )
    return Made(
        Waits(queued, start, gpus, queue, np.zeros(gpus.size, np.int64), np.full(gpus.size, np.nan)),
        Holdings(start, end, gpus.astype(np.float64), queue),
        Nodes(np.array(cluster.gpus), np.array(cluster.rack), at, until, node, held),
        gangs,
        truth[started],
    )
