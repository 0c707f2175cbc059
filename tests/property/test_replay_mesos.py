"""Mesos against a slow simulator in plain Python that goes from cycle to cycle, whether anything can happen or not."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.replay.contract.conformance import random_case, run
from gpuctl.replay.models.resources import GPUS_ONLY, asks, stocks
from gpuctl.replay.policies import find
from tests.example_counts import examples

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Cluster, Workload

LONG = 100_000


@dataclass
class Slow:
    """One replay; amounts are lists of GPUs, thousandths of a CPU, MB."""

    work: Workload
    cluster: Cluster
    resources: tuple[str, ...]
    cycle: int
    filter: int
    revive: int
    least: int
    timeout: int | None
    queues: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ask, stock = asks(self.work, self.resources), stocks(self.cluster, self.resources)
        jobs, self.nodes = range(self.work.size), range(len(self.cluster.nodes))
        alone = self.resources == GPUS_ONLY
        self.units = [int(self.work.gpus[j]) if alone else int(ask.units[j]) for j in jobs]
        self.ask = [(int(self.work.gpus[j]), int(ask.cpu[j]), int(ask.mem[j])) for j in jobs]
        self.has = [(int(self.cluster.gpus[k]), int(stock.cpu[k]), int(stock.mem[k])) for k in self.nodes]
        self.free = [list(has) for has in self.has]
        self.counts = [True, "cpu" in self.resources, "mem" in self.resources]
        self.alone = alone
        self.queues = {q: [] for q in range(len(self.work.queues))}
        # node -> seconds and what was refused
        self.filters: dict[int, dict[int, tuple[int, list[int]]]] = {q: {} for q in self.queues}
        self.revival = dict.fromkeys(self.queues, 0)
        self.kept: dict[int, tuple[int, int]] = {}
        self.held: dict[int, list[tuple[int, int]]] = {}
        self.end: dict[int, int] = {}
        self.start = [np.nan] * self.work.size

    def need(self, job: int, units: int) -> list[int]:
        return [-(-self.ask[job][r] * units // self.units[job]) for r in range(3)]

    def fits(self, job: int, node: int, units: int) -> bool:
        return all(n <= f for n, f in zip(self.need(job, units), self.free[node], strict=True))

    def put(self, job: int, sign: int) -> None:
        for node, units in self.held[job]:
            self.free[node] = [f + sign * n for f, n in zip(self.free[node], self.need(job, units), strict=True)]

    def spot(self, job: int, hand: set[int]) -> list[tuple[int, int]] | None:
        """The fullest node that holds it, else the freest ones."""
        units = self.units[job]
        whole = [(self.free[k][0], k) for k in hand if self.fits(job, k, units)]
        if whole:
            return [(min(whole)[1], units)]
        if len(self.nodes) == 1:
            return None
        room = {k: max(u for u in range(units) if self.fits(job, k, u)) for k in hand}
        if sum(room.values()) < units:
            return None
        pieces = []
        for k in sorted(room, key=lambda k: (-room[k], k)):
            some = min(units, room[k])
            if some:
                pieces.append((k, some))
            units -= some
        return pieces

    def share(self, queue: int) -> Fraction:
        held = [self.ask[j] for j in self.held if self.work.queue[j] == queue]
        total = [sum(has[r] for has in self.has) for r in range(3)]
        return max(Fraction(sum(h[r] for h in held), total[r]) for r in range(3) if total[r] and self.counts[r])

    def some(self, k: int) -> bool:
        return self.free[k][0] > 0 or (not self.alone and max(self.free[k]) > 0)

    def allocate(self, now: int) -> None:
        self.kept = {k: (q, since) for k, (q, since) in self.kept.items() if now < since + (self.timeout or 0)}
        offered: set[int] = set()
        for queue in sorted((q for q in self.queues if self.queues[q]), key=lambda q: (self.share(q), q)):
            refused = self.filters[queue]
            if self.revival[queue] <= now:
                refused.clear()
                self.revival[queue] = now + self.revive
            mine = {k for k, (q, _) in self.kept.items() if q == queue and self.some(k)}
            new = {
                k
                for k in self.nodes
                if self.some(k)
                and k not in offered
                and k not in self.kept
                and (self.free[k][0] >= self.least or self.free[k] == list(self.has[k]))
                and not (
                    k in refused
                    and refused[k][0] > now
                    and all(f <= r for f, r in zip(self.free[k], refused[k][1], strict=True))
                )
            }
            offered |= new
            while self.queues[queue] and (pieces := self.spot(self.queues[queue][0], mine | new)):
                job = self.queues[queue].pop(0)
                self.held[job], self.start[job] = pieces, now
                self.end[job] = now + int(self.work.segment_s[job])
                self.put(job, -1)
            for k in mine | new:
                if not self.queues[queue] or not self.some(k):
                    self.kept.pop(k, None)
                elif self.timeout is None:
                    refused[k] = (now + self.filter, list(self.free[k]))
                elif k in new:
                    self.kept[k] = (queue, now)

    def starts(self) -> list[float]:
        coming = list(range(self.work.size))
        for now in range(LONG):
            for job in [j for j, end in self.end.items() if end == now]:
                self.put(job, 1)
                del self.held[job], self.end[job]
            while coming and self.work.submit[coming[0]] == now:
                queue = int(self.work.queue[coming[0]])
                if not self.queues[queue]:
                    self.filters[queue].clear()
                    self.revival[queue] = now + self.revive
                self.queues[queue].append(coming.pop(0))
            if now % self.cycle == 0:
                self.allocate(now)
            if not coming and not self.end and not any(self.queues.values()):
                return self.start
        raise AssertionError("jobs that never start")


@settings(max_examples=examples(200))
@given(
    seed=st.integers(0, 2**32 - 1),
    resources=st.booleans(),
    cycle=st.sampled_from([1, 2, 5]),
    filter_=st.sampled_from([0, 3, 5, 11]),
    revive=st.sampled_from([7, 30]),
    least=st.sampled_from([0, 2]),
    timeout=st.sampled_from([None, None, 4, 30]),
)
def test_it_starts_what_the_slow_one_does(
    seed: int, resources: bool, cycle: int, filter_: int, revive: int, least: int, timeout: int | None
) -> None:
    work, cluster, shared = random_case(seed, plain=True, resources=resources)
    params = {"cycle": cycle, "filter": filter_, "revive": revive, "min_offer": least}
    told = {name: str(value) for name, value in params.items()}
    if timeout is not None:
        told |= {"hold": "true", "offer_timeout": str(timeout)}
    outcome = run(find("mesos")(told), work, cluster, shared)
    expected = Slow(work, cluster, shared.resources, cycle, filter_, revive, least, timeout).starts()
    np.testing.assert_array_equal(outcome.jobs["start_s"].to_numpy(), expected)
