"""Backfilling where CPUs and memory count: it does what slow ones do, and nobody delays a reservation."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find
from tests.backfill_reference import promises_are_kept
from tests.example_counts import examples
from tests.replay_reference import Job, workload

Amount = tuple[int, int, int]
"""GPUs, CPUs, MB."""
HAS: Amount = (4, 12, 100)
ALL = ("gpu", "cpu", "mem")


def less(a: Amount, b: Amount) -> Amount:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def within(a: Amount, b: Amount) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True))


@dataclass(frozen=True)
class Case:
    nodes: int
    submit: list[int]
    duration: list[int]
    plan: list[int]
    need: list[Amount]

    def run(self, policy: str) -> tuple[Simulation, list[dict[int, float]]]:
        """The compiled policy at its end, and what it had reserved after each instant."""
        work = workload(
            [Job(s, d, max(n[0], 1)) for s, d, n in zip(self.submit, self.duration, self.need, strict=True)]
        )
        work = replace(
            work,
            planned=np.array(self.plan, float),
            gpus=np.array([n[0] for n in self.need]),
            cpus=np.array([float(n[1]) for n in self.need]),
            mem_mb=np.array([float(n[2]) for n in self.need]),
        )
        on = parse_cluster(f"{self.nodes}x{HAS[0]}", work)
        on = replace(on, cpus=np.full(self.nodes, HAS[1] * 1.0), mem_mb=np.full(self.nodes, HAS[2] * 1.0))
        shared = Settings(rates("recorded", work, on), overhead("none", work, on), "consolidate", resources=ALL)
        done = Simulation(work, on, find(policy)(), shared)
        seen = []
        while done.advance(steps=1):
            seen.append(done.program.reserved())  # type: ignore[attr-defined]
        return done, seen


@st.composite
def cases(draw: st.DrawFn, *, outlive: bool = True) -> Case:
    size = draw(st.integers(1, 12))
    submit = sorted(draw(st.lists(st.integers(0, 15), min_size=size, max_size=size)))
    duration = draw(st.lists(st.integers(1, 9), min_size=size, max_size=size))
    wrong = st.sampled_from([0.3, 1, 1, 1.5, 3] if outlive else [1, 1, 1.5, 3])
    plan = [max(1, int(seconds * draw(wrong))) for seconds in duration]
    one = st.tuples(*(st.integers(0, most) for most in HAS)).filter(lambda need: need[0] > 0 or need[1] > 0)
    return Case(draw(st.integers(1, 3)), submit, duration, plan, draw(st.lists(one, min_size=size, max_size=size)))


def tightest(need: Amount, free: list[Amount]) -> int | None:
    """The node with the fewest free GPUs that holds a job, the first of several."""
    able = [k for k, left in enumerate(free) if within(need, left)]
    return min(able, key=lambda k: (free[k][0], k), default=None)


def beside(
    need: Amount, head: Amount, k: int, kept: int, then: list[Amount], now: list[Amount]
) -> tuple[int | None, int]:
    """Where a job goes that runs past the head's reservation, and where that is then; None: nowhere.

    Args:
        need: of the job.
        head: of the head.
        k: the node on which it fits now.
        kept: the head's node.
        then: what is free at the reservation, the head's included.
        now: what is free now.
    """
    left = list(then)
    left[k] = less(left[k], need)
    if min(left[k]) >= 0 and (k != kept or within(head, left[k])):
        return k, kept
    other = tightest(head, left) if min(left[k]) >= 0 else None
    if other is not None:
        return k, other
    seen = [less(a, head) if i == kept else a for i, a in enumerate(then)]
    both = [(min(a[0], b[0]), min(a[1], b[1]), min(a[2], b[2])) for a, b in zip(now, seen, strict=True)]
    return tightest(need, both), kept


def slow(case: Case) -> tuple[list[int], list[int]]:
    """Starts and nodes of jobs none of which needs more than one node, by EASY's definition."""
    n = len(case.submit)
    start, node = [-1] * n, [-1] * n
    running: list[int] = []
    coming, waiting, now = list(range(n)), list[int](), 0

    def free(of: list[int]) -> list[Amount]:
        left = [HAS] * case.nodes
        for j in of:
            left[node[j]] = less(left[node[j]], case.need[j])
        return left

    def begin(j: int, k: int) -> None:
        start[j], node[j] = now, k
        waiting.remove(j)
        running.append(j)

    while coming or running:
        now = min([case.submit[j] for j in coming[:1]] + [start[j] + case.duration[j] for j in running])
        running = [j for j in running if start[j] + case.duration[j] > now]
        while coming and case.submit[coming[0]] == now:
            waiting.append(coming.pop(0))
        head = -1
        for j in list(waiting):
            k = tightest(case.need[j], free(running))
            if head < 0 and k is not None:
                begin(j, k)
            elif head < 0:
                head = j
                # planned ends that are past may come at any moment
                for at in sorted({max(start[i] + case.plan[i], now) for i in running}):
                    then = free([i for i in running if start[i] + case.plan[i] > at])
                    kept = tightest(case.need[j], then)
                    if kept is not None:
                        break
            elif k is not None and now + case.plan[j] <= at:
                begin(j, k)
            elif k is not None:
                assert kept is not None
                k, kept = beside(case.need[j], case.need[head], k, kept, then, free(running))
                if k is not None:
                    then[k] = less(then[k], case.need[j])
                    begin(j, k)
    return start, node


class SlowConservative:
    """The same by the definition of conservative backfilling, for jobs that do not outlive their plans."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.start, self.node = [-1] * len(case.submit), [-1] * len(case.submit)
        self.running: list[int] = []
        self.reserved: dict[int, tuple[int, int]] = {}

    def held(self) -> list[tuple[int, int, int, Amount]]:
        """What is held or reserved: from, until, node, how much."""
        plan, need = self.case.plan, self.case.need
        runs = [(self.start[j], self.start[j] + plan[j], self.node[j], need[j]) for j in self.running]
        return runs + [(at, at + plan[j], k, need[j]) for j, (at, k) in self.reserved.items()]

    def earliest(self, j: int, now: int) -> tuple[int, int]:
        """The first second from which a job fits as long as it is planned, and the node."""
        held = self.held()
        for at in sorted({now, *(until for _, until, _, _ in held if until > now)}):
            end = at + self.case.plan[j]
            free = [HAS] * self.case.nodes
            for k in range(self.case.nodes):
                mine = [(a, b, need) for a, b, node, need in held if node == k and a < end and b > at]
                for t in {at, *(a for a, _, _ in mine if a > at)}:
                    left = HAS
                    for a, b, need in mine:
                        if a <= t < b:
                            left = less(left, need)
                    free[k] = (min(free[k][0], left[0]), min(free[k][1], left[1]), min(free[k][2], left[2]))
            node = tightest(self.case.need[j], free)
            if node is not None:
                return at, node
        raise AssertionError("a job never fits")

    def compress(self, now: int) -> None:
        """Move reservations, in order, until none can be moved to an earlier second."""
        moved = True
        while moved:
            moved = False
            for j in sorted(self.reserved):
                old = self.reserved.pop(j)
                new = self.earliest(j, now)
                self.reserved[j] = new if new[0] < old[0] else old
                moved = moved or new[0] < old[0]

    def run(self) -> tuple[list[int], list[int]]:
        """Starts and nodes."""
        case = self.case
        coming = list(range(len(case.submit)))
        while coming or self.running or self.reserved:
            ends = [self.start[j] + case.duration[j] for j in self.running]
            now = min([case.submit[j] for j in coming[:1]] + ends + [at for at, _ in self.reserved.values()])
            over = [j for j in self.running if self.start[j] + case.duration[j] == now]
            self.running = [j for j in self.running if j not in over]
            if any(self.start[j] + case.plan[j] > now for j in over):
                self.compress(now)
            while coming and case.submit[coming[0]] == now:
                j = coming.pop(0)
                self.reserved[j] = self.earliest(j, now)
            for j in sorted(self.reserved):
                if self.reserved[j][0] == now:
                    self.start[j], self.node[j] = self.reserved.pop(j)
                    self.running.append(j)
        return self.start, self.node


def outcome_of(done: Simulation) -> tuple[list[float], list[int]]:
    outcome = done.outcome()
    nodes = [-1] * outcome.jobs.height
    owner = outcome.attempts["job"].to_list()
    for row, number in outcome.pieces.select("row", "node").iter_rows():
        nodes[owner[row]] = number
    return outcome.jobs["start_s"].to_list(), nodes


@settings(max_examples=examples(300))
@given(case=cases())
def test_easy_is_the_slow_one(case: Case) -> None:
    assert outcome_of(case.run("easy")[0]) == slow(case)


@settings(max_examples=examples(300))
@given(case=cases(outlive=False))
def test_conservative_is_the_slow_one(case: Case) -> None:
    assert outcome_of(case.run("conservative")[0]) == SlowConservative(case).run()


@pytest.mark.parametrize("policy", ["easy", "conservative"])
@settings(max_examples=examples(200))
@given(case=cases(outlive=False))
def test_reserved_jobs_start_when_they_were_promised(policy: str, case: Case) -> None:
    done, seen = case.run(policy)
    promises_are_kept(done.outcome().jobs["start_s"].to_list(), seen)
