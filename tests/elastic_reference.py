"""Slow references of the policies of elastic deep-learning jobs, written from their rules, from no other code of ours.

Everything is a dictionary or a list, and everything is looked at again at every instant: some hundred jobs are enough.
The rules, and whose they are, are in ``docs/reference/policies/optimus.md`` and ``gandiva.md``.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import ClassVar

INSTANT = 1e-6
"""Seconds within which two things happen at one instant."""


def key(x: float) -> int:
    """A number as it is compared: in millionths."""
    return math.floor(x * 1e6 + 0.5)


def snap(t: float) -> float:
    """An instant; within a millionth of a whole second it is that second."""
    return float(round(t)) if abs(t - round(t)) <= INSTANT else t


@dataclass
class Job:
    """A job, and what has become of it."""

    line: int
    name: str
    submit: float
    work: float
    gang: int
    alpha: float = 0.0
    eff: tuple[float, float, float] = (1.0, 1.0, 1.0)
    most: int = 0
    util: float = 0.5
    mem: float = 0.5
    grow: bool = False
    least: int = 0
    fungible: bool = True
    done: float = 0.0
    rate: float = 0.0
    stalled: float = -math.inf
    counted: float = 0.0
    start: float | None = None
    end: float | None = None
    t10: float | None = None
    gpu_s: float = 0.0
    max_gpus: int = 0
    preemptions: int = 0
    changes: int = 0
    on: dict[int, int] = field(default_factory=dict)
    extra: int = 0
    partner: Job | None = None
    tried_at: float = math.inf
    came: int = 0
    base: dict[int, int] = field(default_factory=dict)
    flex: dict[int, int] = field(default_factory=dict)
    thrown: bool = False
    app: int = -1
    stop: float = 1.0


class Slow:
    """The clock, and what all of them have in common. A subclass has `decide` and `wants`."""

    defaults: ClassVar[dict[str, float]] = {}

    def __init__(self, nodes: list[int], racks: list[int], jobs: list[Job], **params: float) -> None:
        self.size, self.rack = nodes, racks
        self.jobs = jobs
        self.now = 0.0
        self.active: list[Job] = []
        assert params.keys() <= self.defaults.keys()
        self.p = SimpleNamespace(**{**self.defaults, **params})
        self.begin()

    def begin(self) -> None:
        """What it remembers."""

    # ---- speed and places

    def level(self, nodes: dict[int, int]) -> int:
        """0 one node, 1 one rack, 2 several."""
        if len(nodes) <= 1:
            return 0
        return 1 if len({self.rack[s] for s in nodes}) == 1 else 2

    def best_level(self, gpus: int) -> int:
        """The best that so many GPUs can have here."""
        if gpus <= max(self.size):
            return 0
        racks = [sum(g for g, r in zip(self.size, self.rack, strict=True) if r == rack) for rack in set(self.rack)]
        return 1 if gpus <= max(racks) else 2

    def speed(self, job: Job, gpus: int, level: int) -> float:
        """For that of its gang, placed as well as can be."""
        scale = [n / (1 + job.alpha * (n - 1)) for n in (gpus, job.gang)]
        return scale[0] / scale[1] * job.eff[level] / job.eff[self.best_level(job.gang)]

    def free(self) -> list[int]:
        """GPUs that nobody holds, by node."""
        left = list(self.size)
        for job in self.active:
            for node, gpus in job.on.items():
                left[node] -= gpus
        return left

    def place(self, gpus: int, free: list[int]) -> dict[int, int]:
        """Where so many go; empty: nowhere."""
        numbers = range(len(free))
        if fits := [s for s in numbers if free[s] >= gpus]:
            return {min(fits, key=lambda s: (free[s], s)): gpus}
        racks = {r: [s for s in numbers if self.rack[s] == r] for r in sorted(set(self.rack))}
        room = {r: sum(free[s] for s in own) for r, own in racks.items()}
        wide = [r for r in racks if room[r] >= gpus]
        among = racks[min(wide, key=lambda r: (room[r], r))] if wide else list(numbers)
        found: dict[int, int] = {}
        for s in sorted(among, key=lambda s: (-free[s], s)):
            some = min(gpus - sum(found.values()), free[s])
            if some > 0:
                found[s] = some
        return found if sum(found.values()) == gpus else {}

    def put(self, job: Job, nodes: dict[int, int], cost: float) -> None:
        """Let a job have these GPUs from now on, and no others."""
        if nodes == job.on:
            return
        if job.on and not nodes:
            job.preemptions += 1
        elif job.on:
            job.changes += 1
        if nodes:
            if job.start is None:
                job.start = self.now
            else:
                job.stalled = self.now + cost
        job.on = dict(nodes)
        job.max_gpus = max(job.max_gpus, sum(nodes.values()))

    # ---- time

    def run(self) -> list[Job]:
        """From the first submission to the last end."""
        coming = sorted(self.jobs, key=lambda job: (job.submit, job.line))
        while coming or self.active:
            times = [self.now + self.left(job) for job in self.active if job.on and job.rate > 0]
            times += [coming[0].submit] if coming else []
            times += [self.wants(coming[0].submit if coming else math.inf)]
            then = snap(min(times))
            for job in self.active:
                if job.on:
                    job.gpu_s += (then - self.now) * job.counted
                    job.done += max(0.0, then - max(self.now, job.stalled)) * job.rate
                    if job.t10 is None and job.done >= (work := job.work * job.stop) / 10:
                        job.t10 = then - (job.done - work / 10) / job.rate - job.submit
            self.now = then
            for job in [j for j in self.active if j.on and j.rate > 0 and self.left(j) <= INSTANT]:
                job.end = then
                self.active.remove(job)
                self.leaves(job)
            while coming and coming[0].submit <= then + INSTANT:
                self.active.append(coming.pop(0))
            self.active.sort(key=lambda job: job.line)
            self.decide()
        return self.jobs

    def left(self, job: Job) -> float:
        """Seconds to its end."""
        return max(0.0, job.stalled - self.now) + (job.work - job.done) / job.rate

    def wants(self, submitted: float) -> float:
        """The next instant at which it looks by itself."""
        raise NotImplementedError

    def leaves(self, job: Job) -> None:
        """A job has ended."""

    def decide(self) -> None:
        """At an instant, after all that happened."""
        raise NotImplementedError

    def multiple(self, span: float, first: float) -> float:
        """The next multiple of a span at which jobs can be there."""
        after = math.floor(self.now / span + 1e-9) + 1
        if not self.active:
            after = max(after, math.ceil(first / span - 1e-9))
        return after * span


class Optimus(Slow):
    """Marginal gains, in rounds."""

    defaults: ClassVar[dict[str, float]] = {"interval": 600, "restart": 62, "most": 2, "error": 0}

    def wants(self, submitted: float) -> float:
        """The next round."""
        return (
            0.0 if self.now == 0 and not self.active and submitted == 0 else self.multiple(self.p.interval, submitted)
        )

    def estimate(self, job: Job) -> float:
        """Seconds of work that it is thought to have left."""
        wrong = self.p.error * (zlib.crc32(f"{job.name}:q".encode()) % 2001 - 1000) / 1000
        left = job.work - job.done
        return max(job.work * (1 + wrong * left / job.work) - job.done, job.work / 100)

    def decide(self) -> None:
        """Count GPUs out one by one, then place."""
        for job in self.active:
            if job.on:
                job.rate = self.speed(job, sum(job.on.values()), self.level(job.on))
        if abs(self.now / self.p.interval - round(self.now / self.p.interval)) > 1e-9:
            return
        left = sum(self.size)
        count = {}
        for job in self.active:
            count[job.line] = 1 if left > 0 else 0
            left -= count[job.line]
        think = {job.line: self.estimate(job) for job in self.active}

        def takes(job: Job, gpus: int) -> float:
            return think[job.line] / self.speed(job, gpus, self.best_level(gpus))

        def gain(job: Job) -> int:
            n = count[job.line]
            most = self.p.most * job.gang if self.p.most else job.most
            return key(takes(job, n) - takes(job, n + 1)) if 0 < n < min(most, sum(self.size)) else 0

        gains = {job.line: gain(job) for job in self.active}
        while left > 0 and gains:
            job = max(self.active, key=lambda job: (gains[job.line], -job.line))
            if gains[job.line] <= 0:
                break
            count[job.line] += 1
            left -= 1
            gains[job.line] = gain(job)
        moved = [job for job in self.active if sum(job.on.values()) != count[job.line]]
        free = list(self.size)
        for job in self.active:
            if job not in moved:
                for node, gpus in job.on.items():
                    free[node] -= gpus
        for job in sorted(moved, key=lambda job: (count[job.line], job.line)):
            where = self.place(count[job.line], free) if count[job.line] else {}
            for node, gpus in where.items():
                free[node] -= gpus
            self.put(job, where, self.p.restart)
        for job in self.active:
            job.rate = self.speed(job, sum(job.on.values()), self.level(job.on)) if job.on else 0.0
            job.counted = sum(job.on.values())


class Gandiva(Slow):
    """Time slices, pairs, migrations, growth."""

    defaults: ClassVar[dict[str, float]] = {
        "slice": 60, "switch": 1, "check_s": 60, "height": 3, "migrate": 5, "blacklist": 600, "fragment": 0.75,
        "over": 1, "mix": 1, "pack": 1, "move": 1, "grow": 1,
    }  # fmt: skip

    def begin(self) -> None:
        """What it remembers."""
        self.affinity = [0] * len(self.size)
        self.steps = 0
        self.banned: dict[frozenset[int], float] = {}
        self.packs = self.failed_packs = self.migrations = 0

    def wants(self, submitted: float) -> float:
        """The next check."""
        return self.multiple(self.p.check_s, submitted)

    # ---- what is on a node

    def here(self, node: int) -> list[Job]:
        return [job for job in self.active if node in job.on]

    def raw(self, node: int) -> int:
        return sum(job.on[node] for job in self.here(node))

    def load(self, node: int) -> int:
        return sum(job.on[node] for job in self.here(node) if job.partner is None or job.line < job.partner.line)

    def room(self, node: int) -> int:
        return self.size[node] - self.load(node)

    def single(self, node: int) -> list[Job]:
        return [job for job in self.here(node) if job.partner is None and len(job.on) == 1]

    # ---- arrival

    def choose(self, n: int, *, classes: int, without: set[int]) -> int:
        nodes = [s for s in range(len(self.size)) if s not in without and self.size[s] >= n]
        roomy = [s for s in nodes if self.room(s) >= n]
        high = [s for s in nodes if self.p.over and self.raw(s) + n <= self.p.height * self.size[s]]
        for found in (
            [s for s in roomy if self.affinity[s] == n],
            [s for s in nodes if not self.here(s)][:1],
            roomy,
            [s for s in high if self.affinity[s] == n] if classes > 3 else [],
            high if classes > 3 and self.p.mix else [],
        ):
            if found:
                return min(found, key=lambda s: (self.load(s), s))
        return -1

    def arrive(self, job: Job) -> None:
        biggest = max(self.size)
        pieces = [biggest] * (job.gang // biggest) + [job.gang % biggest] * (job.gang % biggest > 0)
        before = list(self.affinity)
        where: dict[int, int] = {}
        for n in pieces:
            s = self.choose(n, classes=5, without=set(where))
            if s < 0:
                self.affinity = before
                return
            if not self.here(s):
                self.affinity[s] = n
            where[s] = n
        self.put(job, where, 0.0)
        self.steps += 1
        job.came = self.steps

    def leaves(self, job: Job) -> None:
        if job.partner:
            self.apart(job)
        for s in job.on:
            if not self.here(s):
                self.affinity[s] = 0

    def apart(self, job: Job) -> None:
        other = job.partner
        job.partner = other.partner = None
        job.tried_at = other.tried_at = math.inf

    def migrate(self, job: Job, to: int) -> None:
        (old,) = job.on
        if not self.here(to):
            self.affinity[to] = job.gang
        job.extra = 0
        self.put(job, {to: job.gang}, self.p.migrate)
        self.steps += 1
        job.came = self.steps
        self.migrations += 1
        if not self.here(old):
            self.affinity[old] = 0

    # ---- the order of an instant

    def decide(self) -> None:
        for job in [j for j in self.active if not j.on]:
            self.arrive(job)
        nodes = range(len(self.size))
        for s in nodes:
            if self.raw(s) <= self.size[s]:
                for job in self.here(s):
                    if job.partner:
                        self.apart(job)
        while self.p.move and self.unslice():
            pass
        if abs(self.now / self.p.check_s - round(self.now / self.p.check_s)) < 1e-9:
            self.check()
        for s in nodes:
            over = self.load(s) + sum(job.extra for job in self.here(s)) - self.size[s]
            for job in sorted(self.here(s), key=lambda job: -job.line):
                less = min(max(over, 0), job.extra)
                job.extra -= less
                over -= less
        self.rates()

    def unslice(self) -> bool:
        crowded = [s for s in range(len(self.size)) if self.room(s) < 0]
        for s in sorted(crowded, key=lambda s: (-self.load(s), s)):
            for job in sorted(self.single(s), key=lambda job: -job.came):
                to = self.choose(job.gang, classes=3, without={s})
                if to >= 0:
                    self.migrate(job, to)
                    return True
        return False

    def check(self) -> None:
        if self.p.pack:
            for s in range(len(self.size)):
                self.pack_on(s)
        moved: set[int] = set()
        while self.p.move and self.gather(moved):
            pass
        if self.p.grow and all(job.on for job in self.active):
            for s in range(len(self.size)):
                takers = [job for job in self.single(s) if job.grow]
                idle = self.room(s) - sum(job.extra for job in self.here(s))
                if takers and idle > 0:
                    takers[0].extra += idle
                    takers[0].max_gpus = max(takers[0].max_gpus, takers[0].gang + takers[0].extra)

    def pair_speed(self, a: Job, b: Job) -> float:
        u = a.util + b.util
        return min(1.0, 1 / u) * (1 - 0.15 * u)

    def pack_on(self, s: int) -> None:
        for job in self.here(s):
            other = job.partner
            if other and job.tried_at < self.now:
                if key(2 * self.pair_speed(job, other)) <= key(1.0):
                    self.apart(job)
                    self.banned[frozenset((job.line, other.line))] = self.now + self.p.blacklist
                    self.failed_packs += 1
                else:
                    job.tried_at = other.tried_at = math.inf
        passed: set[int] = set()
        while self.room(s) < 0:
            line = sorted(self.single(s), key=lambda job: (key(job.util), job.line))
            line = [job for job in line if job.line not in passed]
            if not line:
                return
            first = line[0]
            for other in line[1:]:
                banned = self.now < self.banned.get(frozenset((first.line, other.line)), -math.inf)
                if other.gang == first.gang and key(first.mem + other.mem) <= key(1.0) and not banned:
                    first.partner, other.partner = other, first
                    first.tried_at = other.tried_at = self.now
                    self.packs += 1
                    break
            else:
                passed.add(first.line)

    def gather(self, moved: set[int]) -> bool:
        nodes = range(len(self.size))
        loose = [s for s in nodes if self.here(s) and self.room(s) >= self.p.fragment * self.size[s]]
        for s in sorted(loose, key=lambda s: (-self.room(s), s)):
            for job in self.single(s):
                g = job.gang
                to = [t for t in nodes if t != s and self.here(t) and g <= self.room(t) < self.room(s)]
                if job.line not in moved and to:
                    moved.add(job.line)
                    self.migrate(job, min(to, key=lambda t: (self.affinity[t] != g, self.room(t), t)))
                    return True
        return False

    def rates(self) -> None:
        part = [
            min(1.0, self.size[s] / self.load(s) * self.p.slice / (self.p.slice + self.p.switch))
            if self.load(s) > self.size[s]
            else 1.0
            for s in range(len(self.size))
        ]
        for job in self.active:
            if not job.on:
                continue
            n = job.gang + job.extra
            share = min(part[s] for s in job.on)
            packed = self.pair_speed(job, job.partner) if job.partner else 1.0
            job.rate = self.speed(job, n, self.level(job.on)) * share * packed
            job.counted = n * share * (0.5 if job.partner else 1.0)
