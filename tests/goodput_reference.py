"""A slow Sia and Pollux without an engine: rounds, the exact choice by recursion, places and ends, in plain Python."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Any

Option = tuple[int, int]
"""A type and a number of GPUs; (-1, 0): none."""


@dataclass
class Job:
    """A job, and what has become of it."""

    name: str
    submit: float
    seconds: float
    gang: int
    app: str
    most_gpus: int = 64
    done: float = 0.0
    has: Option = (-1, 0)
    nodes: dict[int, int] = field(default_factory=dict)
    until: float = -math.inf
    restarts: int = -1
    grown: int = 0
    rate: float = 0.0
    start: float | None = None
    end: float | None = None
    gpu_s: float = 0.0


@dataclass(frozen=True)
class Rules:
    """Parameters, and the tables: rows of numbers by application and type, and by application."""

    speeds: dict[tuple[str, str], dict[str, float]]
    noise: dict[str, dict[str, float]]
    types: tuple[tuple[str, int, int], ...]
    pollux: bool = False
    interval: float = 60.0
    restart: float = -1.0
    p: float = -0.5
    no_alloc: float = 1.1
    explore: bool = True


def goodput(row: dict[str, float], gpus: int, nodes: int, phi: float) -> float:
    """Examples a second, worth as much as those of the initial batch."""

    def compute(local: int) -> float:
        return row["alpha_c"] + row["beta_c"] * local

    network = 0.0
    if nodes > 1:
        network = row["alpha_n"] + row["beta_n"] * max(gpus - 2, 0)
    elif gpus > 1:
        network = row["alpha_r"] + row["beta_r"] * max(gpus - 2, 0)
    best = 0.0
    for i in range(16):
        local = math.floor(row["min_local"] * (row["max_local"] / row["min_local"]) ** (i / 15) + 0.5)
        step = (compute(local) ** row["gamma"] + network ** row["gamma"]) ** (1 / row["gamma"])
        for before in (0, 1, 3, 7, 15):
            batch = gpus * local * (before + 1)
            if not row["init_batch"] <= batch <= row["max_batch"]:
                continue
            if gpus == 1 and batch > row["init_batch"] and before == 0:
                continue
            rate = batch / (before * compute(local) + step)
            best = max(best, rate * (phi + row["init_batch"]) / (phi + batch))
    return best


class World:
    """A cluster at a round; jobs come in the order of the input."""

    def __init__(self, jobs: list[Job], rules: Rules) -> None:
        self.jobs, self.rules = jobs, rules
        self.node_size: list[int] = []
        self.nodes_of: list[list[int]] = []
        for _, count, size in rules.types:
            self.nodes_of.append(list(range(len(self.node_size), len(self.node_size) + count)))
            self.node_size += [size] * count

    def counts(self, t: int) -> list[int]:
        """Numbers of GPUs of a type that a job may have."""
        _, nodes, size = self.rules.types[t]
        below = [2**k for k in range(10) if 2**k < size and size % 2**k == 0]
        return below + [size * k for k in range(1, min(nodes, 16) + 1)]

    @functools.cache  # noqa: B019
    def speed(self, app: str, t: int, gpus: int, tenth: int) -> float:
        """Goodput on so many GPUs of a type, on the fewest nodes."""
        kind, _, size = self.rules.types[0 if self.rules.pollux else t]
        size = self.rules.types[t][2]
        return goodput(self.rules.speeds[app, kind], gpus, math.ceil(gpus / size), self.rules.noise[app][f"n{tenth}"])

    @functools.cache  # noqa: B019
    def unit(self, app: str, gang: int) -> float:
        """Seconds of work by a second at goodput 1."""
        _, nodes, size = self.rules.types[0]
        gpus = next(n for n in range(min(gang, nodes * size), 0, -1) if self.speed(app, 0, n, 0) > 0)
        return sum(0.1 / self.speed(app, 0, gpus, q) for q in range(10))

    def tenth(self, job: Job) -> int:
        """Of its work."""
        return min(9, math.floor(10 * job.done / job.seconds + 1e-9))

    def charged(self, job: Job) -> tuple[float, float]:
        """Seconds of a restart, and of the penalty."""
        rules = self.rules
        if rules.pollux:
            return (30.0, 30.0) if rules.restart < 0 else (rules.restart, rules.restart)
        row = rules.noise[job.app]
        return (row["restart_s"], row["penalty_s"]) if rules.restart < 0 else (rules.restart, rules.restart)

    def factor(self, job: Job, now: float) -> float:
        """Of a change."""
        age, penalty = now - job.submit, self.charged(job)[1]
        if not self.rules.pollux and age < penalty:
            return 1.0
        return max(age - max(job.restarts, 0) * penalty, 0) / (age + penalty) if age + penalty > 0 else 0.0

    def options(self, job: Job, now: float, here: int) -> list[tuple[Option, int]]:
        """What a job may have, and at what cost, in order."""
        rules, tenth = self.rules, self.tenth(job)
        if not rules.pollux and job.until > now + 1e-6:
            return [(job.has, 0)]
        cap = min(64, job.most_gpus, max(1, 2 * job.grown)) if rules.explore else min(64, job.most_gpus)
        there = {
            (t, n): self.speed(job.app, t, n, tenth)
            for t in range(len(rules.types))
            for n in self.counts(t)
            if n <= cap and self.speed(job.app, t, n, tenth) > 0
        }
        change = self.factor(job, now) if rules.pollux or job.has[1] else 1.0
        if rules.pollux:
            fair = max(1, math.ceil(sum(self.node_size) / here))
            while fair > 1 and self.speed(job.app, 0, fair, tenth) <= 0:
                fair -= 1
            unit = self.speed(job.app, 0, fair, tenth)

            def cost(option: Option) -> int:
                f = 1.0 if option == job.has else change
                return math.floor(1e6 / (there[option] / unit / rules.types[option[0]][2] * f + 1e-3) + 0.5)

            nothing = [((-1, 0), 10**9)]
            rest = [(o, cost(o)) for o in there if o != job.has]
            return [(job.has, cost(job.has)), *nothing, *rest] if job.has[1] else [*nothing, *rest]
        unit = min(there.values(), default=1.0)

        def of_sia(option: Option) -> int:
            gain = there[option] / unit * (1.0 if option == job.has else change)
            return math.floor(100 * (min(gain**rules.p, 3000) if gain > 0 else 3000) + 0.5)

        rest = [(o, of_sia(o)) for o in there if o != job.has]
        own = [(job.has, of_sia(job.has))] if job.has[1] else []
        return [*own, *rest, ((-1, 0), math.floor(100 * rules.no_alloc + 0.5))]

    def chosen(self, lists: list[list[tuple[Option, int]]]) -> list[Option]:
        """The least sum of costs, of several the lexicographically first."""

        @functools.cache
        def least(job: int, free: tuple[int, ...]) -> float:
            if job == len(lists):
                return 0
            return min((cost + least(job + 1, then(o, free)) for o, cost in lists[job] if fits(o, free)), default=1e18)

        def fits(option: Option, free: tuple[int, ...]) -> bool:
            return option[0] < 0 or option[1] <= free[option[0]]

        def then(option: Option, free: tuple[int, ...]) -> tuple[int, ...]:
            return free if option[0] < 0 else tuple(f - option[1] * (t == option[0]) for t, f in enumerate(free))

        free = tuple(nodes * size for _, nodes, size in self.rules.types)
        found = []
        for job, options in enumerate(lists):
            for option, cost in options:
                if fits(option, free) and cost + least(job + 1, then(option, free)) == least(job, free):
                    found.append(option)
                    free = then(option, free)
                    break
        return found

    def placed(self, jobs: list[Job], want: dict[str, Option]) -> dict[str, dict[int, int]]:
        """Nodes and GPUs there of each job that gets some."""
        nodes: dict[str, dict[int, int]] = {}
        for t, own in enumerate(self.nodes_of):
            here = [job for job in jobs if want[job.name][0] == t]
            keep = [job for job in here if job.has == want[job.name]]
            for first in (keep, []):
                free = {k: self.node_size[k] for k in own}
                found = {job.name: job.nodes for job in first}
                for job in first:
                    for k, n in job.nodes.items():
                        free[k] -= n
                moving = sorted((job for job in here if job not in first), key=lambda job: -want[job.name][1])
                for job in moving:
                    gpus = want[job.name][1]
                    size = self.rules.types[t][2]
                    if gpus >= size:
                        some = [k for k in own if free[k] == size][: gpus // size]
                        if len(some) < gpus // size:
                            break
                        found[job.name] = dict.fromkeys(some, size)
                    else:
                        fitting = [k for k in own if free[k] >= gpus]
                        if not fitting:
                            break
                        found[job.name] = {min(fitting, key=lambda k: (free[k], k)): gpus}
                    for k, n in found[job.name].items():
                        free[k] -= n
                else:
                    nodes |= found
                    break
        return nodes

    def round(self, now: float) -> None:
        """Give all GPUs out again."""
        here = [job for job in self.jobs if job.submit <= now + 1e-6 and job.end is None]
        for job in here:
            if job.has[1] and now > job.until:
                job.grown = max(job.grown, job.has[1])
        want = dict(
            zip((job.name for job in here), self.chosen([self.options(j, now, len(here)) for j in here]), strict=True)
        )
        nodes = self.placed(here, want)
        for job in here:
            where = nodes.get(job.name, {})
            if where and where != job.nodes:
                job.restarts += 1
                job.until = now + self.charged(job)[0]
                job.start = now if job.start is None else job.start
            job.has, job.nodes = want[job.name], where
            job.rate = 0.0
            if job.has[1]:
                job.rate = self.speed(job.app, *job.has, self.tenth(job)) * self.unit(job.app, job.gang)

    def advance(self, now: float, until: float) -> None:
        """Let jobs run."""
        for job in self.jobs:
            if not job.has[1]:
                continue
            begin = max(now, job.until)
            end = begin + (job.seconds - job.done) / job.rate
            if end <= until + 1e-6:
                job.end, last = end, end
            else:
                job.done += max(until - begin, 0.0) * job.rate
                last = until
            job.gpu_s += job.has[1] * (last - now)
            if job.end is not None:
                job.has, job.nodes = (-1, 0), {}


def replay(jobs: list[Job], rules: Rules) -> list[dict[str, Any]]:
    """Run all jobs; returns start, end and GPU-seconds of each."""
    world, now = World(jobs, rules), 0.0
    while any(job.end is None for job in jobs):
        if any(job.submit <= now + 1e-6 and job.end is None for job in jobs):
            world.round(now)
        world.advance(now, now + rules.interval)
        now += rules.interval
    return [{"start": job.start, "end": job.end, "gpu_s": job.gpu_s} for job in jobs]
