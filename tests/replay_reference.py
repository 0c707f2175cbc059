"""Slow simulators that are right by inspection, and the jobs to compare them and the compiled ones on.

Nothing here is clever: every instant looks at every job, a pass goes through one sorted list, and times are whole
numbers, so that ties are ties. What happens at one instant: ends, suspensions that are over, arrivals in row order,
demotions and promotions, one pass. Of suspensions that end together, the one that began first ends first.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.records import Workload
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpuctl.replay.models.records import Cluster

MOST_INSTANTS = 200
"""For each job: more than any workload needs, unless jobs take turns for ever without progress."""


@dataclass(frozen=True)
class Job:
    """One row of a workload."""

    submit: int
    duration: int
    gpus: int
    queue: int = 0
    user: int = 0


class EndlessError(Exception):
    """Jobs take turns for ever: a preemption costs more than a turn brings."""


Attempts = list[list[tuple[float, float]]]
"""Start and end of every time that each job held GPUs."""


# ---- the compiled simulator on the same jobs


def workload(jobs: Sequence[Job]) -> Workload:
    """The jobs, in order of submission, as a workload."""
    n = len(jobs)
    queues, users = 1 + max(j.queue for j in jobs), 1 + max(j.user for j in jobs)
    submit = np.array([j.submit for j in jobs], np.float64)
    return Workload(
        name="made up",
        ids=tuple(str(k) for k in range(n)),
        submit=submit,
        eligible=submit,
        gpus=np.array([j.gpus for j in jobs], np.int64),
        queue=np.array([j.queue for j in jobs], np.int64),
        user=np.array([j.user for j in jobs], np.int64),
        time_limit=np.full(n, np.nan),
        gpu_type=np.full(n, -1),
        app=np.arange(n),
        depends=np.zeros((0, 2), np.int64),
        segment_start=np.arange(n + 1),
        segment_s=np.array([j.duration for j in jobs], np.float64),
        segment_fails=np.zeros(n, bool),
        recorded_start=np.full(n, np.nan),
        piece_start=np.zeros(n + 1, np.int64),
        piece_node=np.zeros(0, np.int64),
        piece_gpus=np.zeros(0, np.int64),
        state=("",) * n,
        queues=tuple(f"q{k}" for k in range(queues)),
        users=tuple(f"u{k}" for k in range(users)),
        gpu_types=(),
    )


def cluster(nodes: Sequence[int], work: Workload, *, pool: bool = False, quota: Sequence[float] = ()) -> Cluster:
    """Nodes of so many GPUs each."""
    on = parse_cluster(f"pool:{sum(nodes)}" if pool else "+".join(f"1x{gpus}" for gpus in nodes), work)
    limits = np.full(len(work.queues), np.inf)
    limits[: len(quota)] = quota[: len(limits)]
    return dataclasses.replace(on, quota=limits, quota_source="configured" if quota else "none")


def simulate(
    work: Workload,
    on: Cluster,
    policy: str,
    params: Mapping[str, str] | None = None,
    cost: str = "none",
    placement: str | None = None,
    seed: int = 0,
) -> Simulation:
    """Run a policy of gpuctl to its end."""
    settings = Settings(rates("recorded", work, on), overhead(cost, work, on), placement, seed=seed)
    done = Simulation(work, on, find(policy)(params or {}), settings)
    # not run(): jobs that take turns for ever must fail the test, not fill the memory
    for _ in range(work.size):
        if not done.advance(steps=MOST_INSTANTS):
            return done
    raise AssertionError("the simulation does not end")


def attempts(done: Simulation) -> Attempts:
    """Start and end of every time that each job held GPUs, in the compiled simulator."""
    result: Attempts = [[] for _ in range(done.workload.size)]
    for job, start, end in done.outcome().attempts.sort("job", "attempt").select("job", "start_s", "end_s").iter_rows():
        result[job].append((start, end))
    return result


# ---- without preemption, on nodes (a pool is one node)


@dataclass
class Nodes:
    """Free GPUs of each node, and where gangs go."""

    capacity: Sequence[int]
    free: list[int]

    def place(self, gpus: int, how: str) -> dict[int, int] | None:
        """GPUs by node for a gang, or None where it has to wait."""
        holds = [(free, k) for k, free in enumerate(self.free) if free >= gpus]
        if holds:
            return {min(holds)[1]: gpus}
        if how == "consolidate" and gpus <= max(self.capacity):
            return None
        freest = sorted(range(len(self.free)), key=lambda k: (-self.free[k], k))
        if how == "any":
            filled: dict[int, int] = {}
            for k in freest:
                filled[k] = min(self.free[k], gpus - sum(filled.values()))
            return {k: some for k, some in filled.items() if some} if sum(filled.values()) == gpus else None
        most = max(self.capacity)
        whole, rest = divmod(gpus, most)
        if any(self.free[k] < most for k in freest[:whole]) or len(freest) < whole:
            return None
        chosen = dict.fromkeys(freest[:whole], most)
        if rest:
            if len(freest) == whole or self.free[freest[whole]] < rest:
                return None
            chosen[freest[whole]] = rest
        return chosen


Pick: TypeAlias = "Callable[[list[int], dict[int, int], Callable[[int], bool]], int | None]"
"""(waiting jobs by number, GPUs held by running jobs, does it fit) -> the job to start next."""


def without_preemption(
    jobs: Sequence[Job], nodes: Sequence[int], pick: Pick, how: str = "any"
) -> tuple[Attempts, list[dict[int, int]]]:
    """Jobs run to their ends; at every instant `pick` names one job after the other, until it names none."""
    room = Nodes(nodes, list(nodes))
    where: list[dict[int, int]] = [{} for _ in jobs]
    result: Attempts = [[] for _ in jobs]
    end: dict[int, int] = {}
    waiting: list[int] = []
    coming = list(range(len(jobs)))
    while coming or end:
        now = min([jobs[j].submit for j in coming[:1]] + list(end.values()))
        for j in [j for j, t in end.items() if t == now]:
            for k, gpus in where[j].items():
                room.free[k] += gpus
            del end[j]
        while coming and jobs[coming[0]].submit == now:
            waiting.append(coming.pop(0))
        held = {j: jobs[j].gpus for j in end}
        while (j := pick(waiting, held, lambda j: room.place(jobs[j].gpus, how) is not None)) is not None:
            waiting.remove(j)
            where[j] = room.place(jobs[j].gpus, how) or {}
            for k, gpus in where[j].items():
                room.free[k] -= gpus
            held[j] = jobs[j].gpus
            end[j] = now + jobs[j].duration
            result[j] = [(now, end[j])]
    return result, where


def by_rank(rank: Sequence[float], *, skip: bool) -> Pick:
    """The lowest rank first, the earlier row first where equal; what does not fit is skipped, or stops it."""

    def pick(waiting: list[int], held: dict[int, int], fits: Callable[[int], bool]) -> int | None:
        del held
        for j in sorted(waiting, key=lambda j: (rank[j], j)):
            if fits(j):
                return j
            if not skip:
                return None
        return None

    return pick


def by_share(share: Sequence[int], weight: Sequence[float]) -> Pick:
    """The entity with the fewest GPUs for its weight starts its first job that fits; the older job where equal."""

    def pick(waiting: list[int], held: dict[int, int], fits: Callable[[int], bool]) -> int | None:
        def used(entity: int) -> Fraction:
            return Fraction(sum(gpus for j, gpus in held.items() if share[j] == entity)) / Fraction(weight[entity])

        return min((j for j in waiting if fits(j)), key=lambda j: (used(share[j]), j), default=None)

    return pick


def by_queue(jobs: Sequence[Job], quota: Sequence[float]) -> Pick:
    """Each queue strictly in order of submission, up to its quota."""

    def pick(waiting: list[int], held: dict[int, int], fits: Callable[[int], bool]) -> int | None:
        stuck = set()
        for j in sorted(waiting):
            queue = jobs[j].queue
            used = sum(gpus for other, gpus in held.items() if jobs[other].queue == queue)
            if queue not in stuck and fits(j) and used + jobs[j].gpus <= quota[queue]:
                return j
            stuck.add(queue)
        return None

    return pick


# ---- with preemption, on a pool


@dataclass(eq=False)
class Live:
    """A job that has been submitted and has not ended."""

    number: int
    job: Job
    remaining: int
    done: int = 0
    ran: int = 0  # seconds on GPUs since its last promotion
    level: int = 0
    queued: int = 0
    first_start: float = math.inf
    ready: int = 0  # overhead until then
    until: float = math.inf  # its suspension ends
    stopped: int = 0  # its place among those preempted with it
    runs: bool = False

    def service(self, by_gpus: bool) -> int:
        """What it has got since its last promotion."""
        return self.ran * self.job.gpus if by_gpus else self.ran


class OneList:
    """One list that keeps its order from pass to pass and is sorted stably at each: `ties=list`."""

    def __init__(self, key: Callable[[Live], Any]) -> None:
        self.key = key
        self.jobs: list[Live] = []

    def arrive(self, live: Live) -> None:
        """It has begun to wait."""
        self.jobs.append(live)

    def leave(self, live: Live) -> None:
        """It neither waits nor runs any more."""
        self.jobs.remove(live)

    def order(self) -> list[Live]:
        """All of them, the first one first."""
        self.jobs.sort(key=self.key)
        return list(self.jobs)

    def passed(self, started: list[Live], stopped: list[Live]) -> None:
        """What the pass changed, in order."""

    def moved(self, live: Live) -> None:
        """It has changed its level."""


class TwoLists(OneList):
    """Waiting and running jobs in the order in which they came to be so; one list goes before the other where equal."""

    def __init__(self, key: Callable[[Live], Any], *, waiting_first: bool) -> None:
        super().__init__(key)
        self.running: list[Live] = []
        self.waiting_first = waiting_first

    def leave(self, live: Live) -> None:
        (self.running if live in self.running else self.jobs).remove(live)

    def order(self) -> list[Live]:
        both = self.jobs + self.running if self.waiting_first else self.running + self.jobs
        return sorted(both, key=self.key)

    def passed(self, started: list[Live], stopped: list[Live]) -> None:
        for live in stopped:
            if live in self.running:
                self.running.remove(live)
                self.jobs.append(live)
        for live in started:
            self.jobs.remove(live)
            self.running.append(live)

    def moved(self, live: Live) -> None:
        # a promotion: no peer has both two lists and promotions; here it begins to wait anew
        if live in self.jobs:
            self.jobs.remove(live)
            self.jobs.append(live)


class LevelLists(OneList):
    """A list for each level, with its running jobs before its waiting ones after each pass: the authors' simulator."""

    def __init__(self, levels: int) -> None:
        super().__init__(lambda live: live.level)
        self.lists: list[list[Live]] = [[] for _ in range(levels)]

    def arrive(self, live: Live) -> None:
        self.lists[live.level].append(live)

    def leave(self, live: Live) -> None:
        next(jobs for jobs in self.lists if live in jobs).remove(live)

    def order(self) -> list[Live]:
        return [live for jobs in self.lists for live in jobs]

    def passed(self, started: list[Live], stopped: list[Live]) -> None:
        for jobs in self.lists:
            jobs.sort(key=lambda live: not live.runs)

    def moved(self, live: Live) -> None:
        self.leave(live)
        self.arrive(live)


@dataclass
class Preemptive:
    """A pool on which the jobs that come first in a ranking run; those that come too late lose their GPUs.

    Attributes:
        gpus: of the pool.
        quantum: seconds between two passes while jobs wait; 0: at events only.
        limits: service at which a job leaves each level but the last.
        by_gpus: service is GPU-seconds.
        promote: of its run time, how long a job waits before it goes to the first level; 0: never.
        turn: seconds of a round; 0: a pass at every instant.
        suspend: GPUs are held so long after a preemption.
        resume: and so long without progress after a later start.
        charge: seconds of work that a preemption adds.
        late: an instant at which a demotion is due by another rule than the service.
    """

    jobs: Sequence[Job]
    gpus: int
    ranking: OneList
    quantum: int = 0
    limits: Sequence[int] = ()
    by_gpus: bool = True
    promote: int = 0
    turn: int = 0
    suspend: int = 0
    resume: int = 0
    charge: int = 0
    late: Callable[[Live, int], int] | None = None

    def run(self) -> Attempts:
        """Start and end of every time that each job held GPUs."""
        self.result: Attempts = [[] for _ in self.jobs]
        self.live: list[Live] = []
        self.coming = list(range(len(self.jobs)))
        self.now, self.wake = 0, math.inf
        for _ in range(MOST_INSTANTS * len(self.jobs)):
            if not self.coming and not self.live:
                return self.result
            self._instant()
        raise EndlessError

    def _instant(self) -> None:
        then, self.now = self.now, min(self._times())
        for live in self.live:
            held = live.runs or live.until < math.inf
            live.ran += (self.now - then) * held
            if live.runs:
                made = max(0, self.now - max(then, live.ready))
                live.done += made
                live.remaining -= made
        for live in [x for x in self.live if x.runs and x.remaining <= 0]:
            self.ranking.leave(live)
            self.live.remove(live)
            self._let_go(live)
        for live in sorted((x for x in self.live if x.until <= self.now), key=lambda x: x.stopped):
            live.until = math.inf
            self._let_go(live)
            self._demote(live)
            self._wait(live)
        while self.coming and self.jobs[self.coming[0]].submit <= self.now:
            number = self.coming.pop(0)
            self.live.append(Live(number, self.jobs[number], self.jobs[number].duration))
            self._wait(self.live[-1])
        self.live.sort(key=lambda x: x.number)
        for live in self.live:
            if live.runs and self._demote(live):
                self.ranking.moved(live)
            elif self._waits(live) and live.level and self.promote and self.now >= self._promotion(live):
                live.level = live.ran = 0
                self.ranking.moved(live)
        self.wake = math.inf
        if not self.turn or self.now % self.turn == 0:
            self._pass()
        waits, runs = any(self._waits(x) for x in self.live), any(x.runs or x.until < math.inf for x in self.live)
        if waits and runs and self.quantum:
            self.wake = self.now + self.quantum
        if waits and self.turn:
            self.wake = (self.now // self.turn + 1) * self.turn

    def _times(self) -> list[float]:
        times: list[float] = [self.wake, *(self.jobs[j].submit for j in self.coming[:1])]
        for live in self.live:
            times.append(live.until)
            if live.runs:
                times.append(max(live.ready, self.now) + live.remaining)
            if live.runs and live.level < len(self.limits):
                due = self._due(live)
                # a formula that is wrong may give an instant that has passed: nothing happens then
                times.append(due if due > self.now else math.inf)
            if self._waits(live) and live.level and self.promote:
                times.append(self._promotion(live))
        return times

    def _due(self, live: Live) -> int:
        if self.late:
            return self.now + self.late(live, self.limits[live.level])
        left = self.limits[live.level] - live.service(self.by_gpus)
        return self.now + -(-left // (live.job.gpus if self.by_gpus else 1))

    def _promotion(self, live: Live) -> int:
        return live.queued + self.promote * live.ran

    def _demote(self, live: Live) -> bool:
        if live.level < len(self.limits) and live.service(self.by_gpus) >= self.limits[live.level]:
            live.level += 1
            return True
        return False

    @staticmethod
    def _waits(live: Live) -> bool:
        return not live.runs and live.until == math.inf

    def _wait(self, live: Live) -> None:
        live.queued = self.now
        self.ranking.arrive(live)

    def _let_go(self, live: Live) -> None:
        live.runs = False
        self.result[live.number][-1] = (self.result[live.number][-1][0], self.now)

    def _pass(self) -> None:
        left = self.gpus  # GPUs of jobs that are being suspended are as good as free
        chosen = []
        order = self.ranking.order()
        for live in order:
            if live.job.gpus <= left:
                left -= live.job.gpus
                chosen.append(live)
        stopped = [x for x in order if x.runs and x not in chosen]
        for place, live in enumerate(stopped):
            if self.suspend:
                live.stopped = place
                live.runs, live.until = False, self.now + self.suspend
                self.ranking.leave(live)
            else:
                self._let_go(live)
                live.remaining += self.charge
                live.queued = self.now
        free = self.gpus - sum(x.job.gpus for x in self.live if x.runs or x.until < math.inf)
        started = []
        for live in chosen:
            if not live.runs and live.job.gpus <= free:
                free -= live.job.gpus
                started.append(live)
                live.runs = True
                live.first_start = min(live.first_start, self.now)
                live.ready = self.now + (self.resume if live.done else 0)
                self.result[live.number].append((self.now, math.inf))
        self.ranking.passed(started, stopped)


def gittins(samples: Sequence[int], attained: int, more: float) -> Fraction:
    """P(S <= a + more | S > a) / E[min(S - a, more) | S > a], by its definition; 0 beyond all samples."""
    rest = [s - attained for s in samples if s > attained]
    if not rest:
        return Fraction(0)
    return Fraction(sum(r <= more for r in rest), sum(r if r <= more else int(more) for r in rest))
