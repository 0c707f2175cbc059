"""Tetris against a slow simulator in plain Python that scores every job on every node anew each time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
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

Pieces = list[tuple[int, int]]
"""Node, units."""


@dataclass
class Slow:
    """One replay; amounts are lists of GPUs, thousandths of a CPU, MB."""

    work: Workload
    cluster: Cluster
    resources: tuple[str, ...]
    weight: float
    fairness: float
    whole: bool

    def __post_init__(self) -> None:
        ask, stock = asks(self.work, self.resources), stocks(self.cluster, self.resources)
        alone = self.resources == GPUS_ONLY
        jobs, nodes = range(self.work.size), range(len(self.cluster.nodes))
        self.units = [int(self.work.gpus[j]) if alone else int(ask.units[j]) for j in jobs]
        self.ask = [(int(self.work.gpus[j]), int(ask.cpu[j]), int(ask.mem[j])) for j in jobs]
        self.has = [(int(self.cluster.gpus[k]), int(stock.cpu[k]), int(stock.mem[k])) for k in nodes]
        self.counts = [True, "cpu" in self.resources, "mem" in self.resources]
        self.free = [list(has) for has in self.has]
        self.total = [sum(has[r] for has in self.has) for r in range(3)]

    def need(self, job: int, units: int) -> list[int]:
        return [-(-self.ask[job][r] * units // self.units[job]) for r in range(3)]

    def fits(self, job: int, node: int, units: int) -> bool:
        need = self.need(job, units)
        return all(n <= f for n, f, counts in zip(need, self.free[node], self.counts, strict=True) if counts)

    def align(self, job: int, node: int, units: int) -> float:
        part = units / self.units[job]
        return sum(
            self.free[node][r] / has * (self.ask[job][r] * part / has)
            for r, has in enumerate(self.has[node])
            if has > 0 and self.counts[r]
        )

    def spot(self, job: int) -> tuple[float, Pieces] | None:
        """Where the job would go, and its alignment there."""
        n, units = range(len(self.has)), self.units[job]
        able = [(self.align(job, k, units), -k) for k in n if self.fits(job, k, units)]
        if able:
            score, node = max(able)
            return score, [(-node, units)]
        room = [max(u for u in range(units + 1) if self.fits(job, k, u)) for k in n]
        if sum(room) < units:
            return None
        if self.whole:
            kept, self.free = self.free, [list(has) for has in self.has]
            biggest = max(max(u for u in range(units + 1) if self.fits(job, k, u)) for k in n)
            self.free = kept
            if biggest >= units:
                return None
        pieces, left, total = [], units, 0.0
        while left:
            score, node = max((self.align(job, k, min(left, room[k])), -k) for k in n if room[k])
            pieces.append((-node, min(left, room[-node])))
            left -= pieces[-1][1]
            room[-node] = 0
            total += score
        return None if self.whole and len(pieces) > math.ceil(units / biggest) else (total, pieces)

    def remaining(self, job: int) -> float:
        share = sum(a / t for a, t, c in zip(self.ask[job], self.total, self.counts, strict=True) if c and t)
        return share * float(self.work.segment_s[job])

    def considered(self, waiting: list[int], running: list[int]) -> set[int]:
        def share(queue: int) -> Fraction:
            held = [self.ask[j] for j in running if self.work.queue[j] == queue]
            return max(Fraction(sum(h[r] for h in held), t) for r, t in enumerate(self.total) if t and self.counts[r])

        queues = sorted({int(self.work.queue[j]) for j in waiting}, key=lambda q: (share(q), q))
        return set(queues[: math.ceil((1 - self.fairness) * len(queues) - 1e-9)])

    def starts(self) -> list[float]:
        start, waiting, coming = [math.nan] * self.work.size, [], list(range(self.work.size))
        ends: dict[int, float] = {}
        held: dict[int, Pieces] = {}
        while coming or ends:
            now = min([*(float(self.work.submit[j]) for j in coming[:1]), *ends.values()])
            for job in [j for j, end in ends.items() if end == now]:
                self.put(job, held.pop(job), 1)
                del ends[job]
            while coming and self.work.submit[coming[0]] == now:
                waiting.append(coming.pop(0))
            while True:
                queues = self.considered(waiting, list(ends))
                able = [(j, found) for j in waiting if self.work.queue[j] in queues and (found := self.spot(j))]
                if not able:
                    break
                work = sum(self.remaining(j) for j, _ in able)
                epsilon = self.weight * sum(score for _, (score, _) in able) / work if work else 0.0
                _, _, job, pieces = max((s - epsilon * self.remaining(j), -j, j, p) for j, (s, p) in able)
                self.put(job, pieces, -1)
                held[job], start[job], ends[job] = pieces, now, now + float(self.work.segment_s[job])
                waiting.remove(job)
        return start

    def put(self, job: int, pieces: Pieces, sign: int) -> None:
        for node, units in pieces:
            for r, amount in enumerate(self.need(job, units)):
                self.free[node][r] += sign * amount


@settings(max_examples=examples(150))
@given(
    seed=st.integers(0, 2**32 - 1),
    resources=st.booleans(),
    weight=st.sampled_from([0.3, 1.0]),
    fairness=st.sampled_from([0.0, 0.25, 0.6]),
    whole=st.booleans(),
)
def test_it_starts_what_the_slow_one_does(
    seed: int, resources: bool, weight: float, fairness: float, whole: bool
) -> None:
    work, cluster, shared = random_case(seed, plain=True, resources=resources)
    # jobs twice as large and twice as long would score alike, and rounding decide
    odd = np.random.default_rng(seed).uniform(1, 30, work.size)
    work = replace(work, segment_s=odd)
    shared = replace(shared, placement="consolidate" if whole else None)
    params = {"remaining": str(weight), "fairness": str(fairness)}
    outcome = run(find("tetris")(params), work, cluster, shared)
    expected = Slow(work, cluster, shared.resources, weight, fairness, whole).starts()
    np.testing.assert_allclose(outcome.jobs["start_s"].to_numpy(), expected, rtol=0, atol=1e-9)
