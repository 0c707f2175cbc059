"""The slow reference of Themis, written from its rules (``docs/reference/policies/themis.md``), not from other code."""

from __future__ import annotations

import math
from typing import ClassVar

from tests.elastic_reference import INSTANT, Job, Slow, key


class Themis(Slow):
    """Auctions of GPUs by finish-time fairness, with leases."""

    defaults: ClassVar[dict[str, object]] = {
        "lease": 1200, "f": 0.8, "payments": 1, "rigid": 0, "restart": 62, "contention": "none",
    }  # fmt: skip

    def begin(self) -> None:
        """What it remembers."""
        self.until: dict[int, float] = {}
        self.history: list[tuple[float, float]] = []
        self.entered: dict[int, float] = {}
        self.last = frozenset[int]()
        self.paid = 0

    def wants(self, submitted: float) -> float:
        """The next end of a lease."""
        return min((self.until[job.line] for job in self.active if job.on), default=math.inf)

    def average(self, job: Job) -> float:
        """How many share the cluster, over the job's life."""
        if self.p.contention == "none":
            return 1.0
        if self.now == self.entered[job.line]:
            return self.history[-1][1]
        ends = [t for t, _ in self.history[1:]] + [self.now]
        area = sum(
            (end - max(t, self.entered[job.line])) * value
            for (t, value), end in zip(self.history, ends, strict=True)
            if end > self.entered[job.line]
        )
        return area / (self.now - self.entered[job.line])

    def rho(self, job: Job, gpus: int, level: int, more: float = 0.0) -> float:
        """Time to its end if that holds, for its time alone."""
        left = (job.work - job.done) / self.speed(job, gpus, level)
        return (self.now - job.submit + left + more) / (job.work * self.average(job))

    def extend(self, on: dict[int, int], gpus: int, free: list[int]) -> dict[int, int]:
        """What a job holds with so many more out of those that are free."""
        if not on:
            return self.place(gpus, free)
        near = {self.rack[s] for s in on}
        order = sorted(
            (s for s in range(len(free)) if free[s] > 0),
            key=lambda s: (s not in on, -on.get(s, 0), self.rack[s] not in near, -free[s], s),
        )
        now = dict(on)
        for s in order:
            some = min(free[s], gpus)
            if some:
                now[s] = now.get(s, 0) + some
                gpus -= some
        return now

    def back(self, had: dict[int, int], gpus: int) -> dict[int, int]:
        """So many of those that a job has just lost."""
        got = {}
        for s in sorted(had, key=lambda s: (-had[s], s)):
            if gpus > 0:
                got[s] = min(had[s], gpus)
                gpus -= got[s]
        return got

    def bid(self, job: Job, on: dict[int, int], free: list[int]) -> dict[int, int]:
        """What each number of GPUs more is worth to a job that is offered all of them."""
        m = sum(on.values())
        values = {}
        if m:
            values[0] = self.worth(self.rho(job, m, self.level(on)))
        least = 1 if m else self.least(job)
        for k in range(least, min(job.gang - m, sum(free)) + 1):
            where = self.extend(on, k, free)
            values[k] = self.worth(self.rho(job, m + k, self.level(where), self.p.restart if m else 0.0))
        return values

    def worth(self, rho: float) -> int:
        """In milliardths."""
        return math.floor(-math.log(rho) * 1e9 + 0.5)

    def least(self, job: Job) -> int:
        """The fewest that it starts on."""
        return job.gang if self.p.rigid else 1

    @staticmethod
    def auction(bids: dict[int, dict[int, int]], pool: int) -> dict[int, int]:
        """Who is admitted, and what each wins: bids in order of rank."""
        room, admitted = pool, []
        for who, values in bids.items():
            if values and min(values) <= room:
                room -= min(values)
                admitted.append(who)
        # of each number of GPUs sold so far the best sum, and the vector that has it
        best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}
        for who in admitted:
            new: dict[int, tuple[int, tuple[int, ...]]] = {}
            for sold, (total, vector) in best.items():
                for k, value in bids[who].items():
                    if sold + k <= pool:
                        entry = (total + value, (*vector, k))
                        new[sold + k] = max(new.get(sold + k, entry), entry)
            best = new
        return dict(zip(admitted, max(best.values())[1], strict=True)) if admitted else {}

    @classmethod
    def pay(cls, bids: dict[int, dict[int, int]], pool: int, won: dict[int, int]) -> dict[int, int]:
        """What of it each keeps."""
        kept = {}
        for who, k in won.items():
            kept[who] = k
            if k > 0:
                without = cls.auction({j: values for j, values in bids.items() if j != who}, pool)
                lost = sum(bids[j][won[j]] - bids[j][without[j]] for j in won if j != who and j in without)
                share = min(1.0, math.exp(lost / 1e9))
                kept[who] = max(math.floor(share * k + 1e-9), min(bids[who]))
        return kept

    def decide(self) -> None:
        """Leases end, and what is free is sold."""
        for job in self.active:
            self.entered.setdefault(job.line, self.now)
            if job.on:
                job.rate = self.speed(job, sum(job.on.values()), self.level(job.on))
        demand = max(1.0, sum(job.gang for job in self.active) / sum(self.size))
        self.history.append((self.now, demand if self.p.contention == "demand" else len(self.active)))
        ended = [job for job in self.active if job.on and self.until[job.line] <= self.now + INSTANT]
        now_here = frozenset(job.line for job in self.active)
        if ended or now_here != self.last:
            self.sell({job.line: job.on for job in ended})
        self.last = now_here
        for job in self.active:
            job.rate = self.speed(job, sum(job.on.values()), self.level(job.on)) if job.on else 0.0
            job.counted = sum(job.on.values())

    def sell(self, had: dict[int, dict[int, int]]) -> None:
        """One auction, what is left of it, and places for all."""
        on = {job.line: {} if job.line in had else job.on for job in self.active}
        free = list(self.size)
        for nodes in on.values():
            for s, gpus in nodes.items():
                free[s] -= gpus
        pool = sum(free)
        bidders = [job for job in self.active if sum(on[job.line].values()) < job.gang]

        def rank(job: Job) -> tuple[bool, int, int]:
            m = sum(on[job.line].values())
            now = (m, self.level(on[job.line])) if m else (job.gang, self.best_level(job.gang))
            return (m > 0, -key(self.rho(job, *now)), job.line)

        bidders.sort(key=rank)
        chosen = bidders[: max(1, math.ceil((1 - self.p.f) * len(bidders) - 1e-9))] if pool else []
        bids = {job.line: self.bid(job, on[job.line], free) for job in bidders}
        offered = {job.line: bids[job.line] for job in chosen}
        won = self.auction(offered, pool)
        kept = self.pay(offered, pool, won) if self.p.payments and not self.p.rigid else dict(won)
        left = pool - sum(kept.values())
        for job in [j for j in bidders if j.line not in won] + [j for j in bidders if j.line in won]:
            have = kept.get(job.line, 0)
            could = {k: value for k, value in bids[job.line].items() if have <= k <= have + left}
            if could:
                kept[job.line] = max(could, key=lambda k: (could[k], -k))
                left -= kept[job.line] - have
        self.settle(bidders, on, had, kept, free)

    def settle(self, bidders: list[Job], on: dict, had: dict, kept: dict[int, int], free: list[int]) -> None:
        """Places."""
        target = {job.line: self.back(had.get(job.line, {}), kept.get(job.line, 0)) for job in bidders}
        for nodes in target.values():
            for s, gpus in nodes.items():
                free[s] -= gpus
        for job in bidders:
            rest = kept.get(job.line, 0) - sum(target[job.line].values())
            before = target[job.line] or on[job.line]
            after = self.extend(before, rest, free) if rest else before
            for s, gpus in after.items():
                free[s] -= gpus - before.get(s, 0)
            if after and not on[job.line]:
                self.until[job.line] = self.now + self.p.lease
            self.put(job, after, self.p.restart)
