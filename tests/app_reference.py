"""The slow reference of Themis with apps of several jobs, from ``docs/reference/policies/themis.md`` and no other code.

It holds for one-job apps, too: there it must do what `tests.themis_reference.Themis` does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tests.elastic_reference import INSTANT, Job, key
from tests.themis_reference import Themis

Nodes = dict[int, int]


@dataclass
class App:
    """An app, from its first job's submission to the end of its last."""

    line: int
    submit: float
    came: float
    jobs: list[Job] = field(default_factory=list)
    until: float = math.inf


class AppThemis(Themis):
    """Apps bid; what an app has is divided among its jobs. A job is known by `app` (below 0: its own)."""

    def begin(self) -> None:
        """What it remembers."""
        super().begin()
        self.apps: dict[int, App] = {}
        self.gone: dict[int, Nodes] = {}
        self.ended = False
        first: dict[int, int] = {}
        for job in self.jobs:
            if job.app >= 0:
                first.setdefault(job.app, job.line)
        # apps are known by the lines of their first jobs, which break ties
        self.of = {job.line: first[job.app] if job.app >= 0 else job.line for job in self.jobs}

    def wants(self, submitted: float) -> float:
        """The next end of a lease."""
        return min((app.until for app in self.apps.values()), default=math.inf)

    def left(self, job: Job) -> float:
        """Seconds to its end; the search kills some before theirs."""
        return max(0.0, job.stalled - self.now) + (job.work * job.stop - job.done) / job.rate

    def leaves(self, job: Job) -> None:
        """What a job had stays its app's for now."""
        line = self.of[job.line]
        if not self.live(self.apps[line]):
            del self.apps[line]
            self.gone.pop(line, None)
            self.ended = True
            return
        nodes = self.gone.setdefault(line, {})
        for s, gpus in job.on.items():
            nodes[s] = nodes.get(s, 0) + gpus

    # ---- apps

    def live(self, app: App) -> list[Job]:
        """Its jobs that have not ended."""
        return [job for job in self.active if self.of[job.line] == app.line]

    def asks(self, app: App) -> int:
        """GPUs of all its gangs."""
        return sum(job.gang for job in self.live(app))

    def alone(self, app: App) -> float:
        """The least seconds that its jobs so far could take on an empty cluster."""
        longest = max(job.submit - app.submit + job.work for job in app.jobs)
        if sum(job.gang for job in app.jobs) > sum(self.size):
            longest = max(longest, sum(job.work * job.gang for job in app.jobs) / sum(self.size))
        return longest

    @staticmethod
    def divide(jobs: list[tuple[float, int, int]], gpus: int) -> list[int]:
        """GPUs of each job (seconds of work left, gang, line): by most work left, each up to its gang."""
        counts = [0] * len(jobs)
        for k in sorted(range(len(jobs)), key=lambda k: (-key(jobs[k][0]), jobs[k][2])):
            counts[k] = min(jobs[k][1], gpus)
            gpus -= counts[k]
        return counts

    def lasts(self, jobs: list[Job], gpus: int, level: int) -> float:
        """Seconds to the end of the last job if they had so many GPUs, divided anew whenever one ends."""
        left = {job.line: job.work - job.done for job in jobs}
        seconds = 0.0
        while jobs:
            counts = self.divide([(left[job.line], job.gang, job.line) for job in jobs], gpus)
            rates = {
                job.line: self.speed(job, n, level if n == gpus else self.best_level(n))
                for job, n in zip(jobs, counts, strict=True)
                if n
            }
            soonest = min(left[line] / rate for line, rate in rates.items())
            seconds += soonest
            jobs = [j for j in jobs if j.line not in rates or left[j.line] / rates[j.line] - soonest > INSTANT]
            for line, rate in rates.items():
                left[line] -= soonest * rate
        return seconds

    def fares(self, app: App, gpus: int, level: int, more: float = 0.0) -> float:
        """Its finish-time fairness."""
        seconds = self.lasts(self.live(app), gpus, level)
        average = 1.0
        if self.p.contention != "none":
            ends = [t for t, _ in self.history[1:]] + [self.now]
            spans = [
                (max(0.0, end - max(t, app.came)), value)
                for (t, value), end in zip(self.history, ends, strict=True)
            ]  # fmt: skip
            area = sum(span * value for span, value in spans)
            average = area / (self.now - app.came) if self.now > app.came else self.history[-1][1]
        return (self.now - app.submit + seconds + more) / (self.alone(app) * average)

    def offers(self, app: App, on: Nodes, free: list[int]) -> dict[int, int]:
        """What each number of GPUs more is worth to an app that is offered all of them."""
        m = sum(on.values())
        values = {0: self.worth(self.fares(app, m, self.level(on)))} if m else {}
        for k in range(1, min(self.asks(app) - m, sum(free)) + 1):
            where = self.extend(on, k, free)
            values[k] = self.worth(self.fares(app, m + k, self.level(where), self.p.restart if m else 0.0))
        return values

    # ---- an instant

    def decide(self) -> None:
        """Jobs come and have gone, leases end, and what is free is sold."""
        assert not self.p.rigid
        came: set[int] = set()
        for job in self.active:
            line = self.of[job.line]
            if line not in self.apps:
                self.apps[line] = App(line, job.submit, self.now)
            if job not in self.apps[line].jobs:
                # of several that come at one instant the earliest submission counts
                self.apps[line].jobs.append(job)
                came.add(line)
        demand = max(1.0, sum(job.gang for job in self.active) / sum(self.size))
        self.history.append((self.now, demand if self.p.contention == "demand" else len(self.apps)))
        ended = {line for line, app in self.apps.items() if app.until <= self.now + INSTANT}
        if ended or came or self.gone or self.ended:
            self.hold_auction(came | set(self.gone), ended)
        self.gone, self.ended = {}, False
        for job in self.active:
            job.rate = self.speed(job, sum(job.on.values()), self.level(job.on)) if job.on else 0.0
            job.counted = sum(job.on.values())

    def holds(self, app: App) -> Nodes:
        """What its jobs have, and of those that have just ended as much as they can use."""
        on: Nodes = {}
        for job in self.live(app):
            for s, gpus in job.on.items():
                on[s] = on.get(s, 0) + gpus
        for s, gpus in self.back(self.gone.get(app.line, {}), self.asks(app) - sum(on.values())).items():
            on[s] = on.get(s, 0) + gpus
        return on

    def hold_auction(self, other: set[int], ended: set[int]) -> None:
        """One auction, what is left of it, and places for all."""
        had = {line: self.holds(app) for line, app in self.apps.items()}
        on = {line: {} if line in ended else nodes for line, nodes in had.items()}
        free = [size - sum(nodes.get(s, 0) for nodes in on.values()) for s, size in enumerate(self.size)]
        pool = sum(free)

        def rank(app: App) -> tuple[bool, int, int]:
            m, most = sum(on[app.line].values()), min(self.asks(app), sum(self.size))
            now = (m, self.level(on[app.line])) if m else (most, self.best_level(most))
            return (m > 0, -key(self.fares(app, *now)), app.line)

        bidders = sorted((a for a in self.apps.values() if sum(on[a.line].values()) < self.asks(a)), key=rank)
        chosen = bidders[: max(1, math.ceil((1 - self.p.f) * len(bidders) - 1e-9))] if pool else []
        bids = {app.line: self.offers(app, on[app.line], free) for app in bidders}
        offered = {app.line: bids[app.line] for app in chosen}
        won = self.auction(offered, pool)
        kept = self.pay(offered, pool, won) if self.p.payments else dict(won)
        left = pool - sum(kept.values())
        for app in [a for a in bidders if a.line not in won] + [a for a in bidders if a.line in won]:
            have = kept.get(app.line, 0)
            could = {k: value for k, value in bids[app.line].items() if have <= k <= have + left}
            if could:
                kept[app.line] = max(could, key=lambda k: (could[k], -k))
                left -= kept[app.line] - have
        back = {a.line: self.back(had[a.line], kept.get(a.line, 0)) if a.line in ended else on[a.line] for a in bidders}
        for app in bidders:
            for s, gpus in back[app.line].items() if app.line in ended else ():
                free[s] -= gpus
        for app in bidders:
            rest = on_top = kept.get(app.line, 0)
            if app.line in ended:
                rest = on_top - sum(back[app.line].values())
            before = back[app.line]
            after = self.extend(before, rest, free) if rest else before
            for s, gpus in after.items():
                free[s] -= gpus - before.get(s, 0)
            if after and not on[app.line]:
                app.until = self.now + self.p.lease
            on[app.line] = after
        for line, app in self.apps.items():
            if not on[line]:
                app.until = math.inf
            if line in other or line in ended or kept.get(line, 0):
                self.share_out(app, on[line])

    def share_out(self, app: App, on: Nodes) -> None:
        """Divide what an app has: jobs keep what they can, then get the rest; by most work left."""
        jobs = self.live(app)
        work = [(job.work - job.done, job.gang, job.line) for job in jobs]
        counts = dict(zip((job.line for job in jobs), self.divide(work, sum(on.values())), strict=True))
        jobs.sort(key=lambda job: (-key(job.work - job.done), job.line))
        rest = [on.get(s, 0) for s in range(len(self.size))]
        mine = {}
        for job in jobs:
            could = {s: min(gpus, rest[s]) for s, gpus in job.on.items() if rest[s]}
            mine[job.line] = self.back(could, counts[job.line])
            for s, gpus in mine[job.line].items():
                rest[s] -= gpus
        for job in jobs:
            more = counts[job.line] - sum(mine[job.line].values())
            after = self.extend(mine[job.line], more, rest) if more else mine[job.line]
            for s, gpus in after.items():
                rest[s] -= gpus - mine[job.line].get(s, 0)
            self.put(job, after, self.p.restart)
