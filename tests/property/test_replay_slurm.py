"""Slurm against a slow scheduler in plain Python that leaves nothing out, against EASY, and what no pass may do."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.replay.contract.conformance import check, random_case, run, violations
from gpuctl.replay.policies import find
from tests.example_counts import examples

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Cluster, Workload

LONG = 100_000
SEEDS = st.integers(0, 2**32 - 1)
PLAIN = {"weight_age": "0", "weight_fairshare": "0", "weight_partition": "0", "batch_sched_delay": "0"}
Nodes = frozenset[int]


@dataclass
class Slow:
    """One replay: each second a main pass where something happened, and each pass of backfill to its very end."""

    work: Workload
    cluster: Cluster
    plan: list[float]
    tiers: list[int]
    weight_size: int
    depth: int
    interval: int
    window: int
    resolution: int
    tests: int
    groups: bool
    waiting: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.free = {k: int(g) for k, g in enumerate(self.cluster.gpus)}
        self.gpus = [int(g) for g in self.work.gpus]
        self.most = max(self.free.values())
        self.start = [math.nan] * self.work.size
        self.end: dict[int, int] = {}
        self.held: dict[int, dict[int, int]] = {}
        self.table: list[tuple[float, float, Nodes]] = []

    def order(self) -> list[int]:
        def key(job: int) -> tuple[float, ...]:
            nodes = max(-(-self.gpus[job] // self.most), 1)
            priority = max(int(self.weight_size * (nodes / len(self.free))), 1)
            return (-self.tiers[self.work.queue[job]], -priority, self.work.submit[job], job)

        return sorted(self.waiting, key=key)

    def place(self, job: int, nodes: Nodes, free: dict[int, int]) -> dict[int, int] | None:
        """The first node that has room; else whole nodes and the one with the most room for the rest."""
        need = self.gpus[job]
        for k in sorted(nodes):
            if free[k] >= need:
                return {k: need}
        if need <= self.most:
            return None
        whole = [k for k in sorted(nodes) if free[k] >= self.most][: need // self.most]
        if len(whole) < need // self.most:
            return None
        found = dict.fromkeys(whole, self.most)
        left = need % self.most
        if left:
            rest = [k for k in sorted(nodes) if k not in found and free[k] >= left]
            if not rest:
                return None
            found[max(rest, key=lambda k: (free[k], -k))] = left
        return found

    def begin(self, job: int, now: int, pieces: dict[int, int]) -> None:
        self.waiting.remove(job)
        self.start[job], self.held[job] = now, pieces
        self.end[job] = now + int(self.work.segment_s[job])
        for k, gpus in pieces.items():
            self.free[k] -= gpus

    def main(self, now: int, depth: float) -> None:
        nodes = frozenset(self.free)
        for tested, job in enumerate(self.order()):
            if tested > depth:
                return
            pieces = self.place(job, nodes, self.free)
            if pieces is None:
                return  # all partitions have all nodes: none is left for anybody
            self.begin(job, now, pieces)

    def floor(self, t: float) -> float:
        return t // self.resolution * self.resolution

    def reserve(self, begin: float, end: float, nodes: Nodes) -> int:
        """Keep nodes in a table of [begin, end, free nodes]; returns how many entries that took."""
        size = len(self.table)
        at = next((k for k, entry in enumerate(self.table) if entry[1] >= begin), None)
        if at is None:
            return 0
        before = max(at - 1, 0)
        if self.table[at][1] > begin:
            a, b, free = self.table[at]
            self.table[at : at + 1] = [(a, begin, free), (begin, b, free)]
        after = None
        for k in range(at + 1, size + 2):
            if k == len(self.table):
                break
            a, b, free = self.table[k]
            if end < b:
                self.table[k : k + 1] = [(a, end, free), (end, b, free)]
                b = end
            self.table[k] = (a, b, free - nodes)
            if b == end:
                after = k + 1
                break
        made = len(self.table) - size
        for k in range(before, len(self.table) - 1 if after is None else min(after, len(self.table) - 1)):
            if self.table[k][2] == self.table[k + 1][2]:
                self.table[k : k + 2] = [(self.table[k][0], self.table[k + 1][1], self.table[k][2])]
                break
        return made

    def when(self, job: int, nodes: Nodes, now: int) -> tuple[float, dict[int, int] | None]:
        pieces = self.place(job, nodes, self.free)
        if pieces is not None:
            return now, pieces
        free = dict(self.free)
        ends = sorted((self.start[j] + self.plan[j], j) for j in self.held)
        if not self.groups:
            ends = [(end, j) for end, j in ends if nodes & set(self.held[j])]
        first, last, width = 0.0, 0.0, 30.0
        while ends:
            end, gone = ends.pop(0)
            if not nodes & set(self.held[gone]):
                continue
            last = end
            first = first or (last // 30 + 1) * 30
            for k, gpus in self.held[gone].items():
                free[k] += gpus
            # the next one may run elsewhere: then the one behind it is taken away unasked
            if ends and (ends[0][0] <= first + width if self.groups else ends[0][0] <= max(last, now)):
                continue
            width *= 2
            while ends and ends[0][0] > first + width:
                width *= 2
            pieces = self.place(job, nodes, free)
            if pieces is not None:
                return (last if last > now else max(last + 30, now + 1)), pieces
        if self.groups and first:
            # the last ones of the list run elsewhere: what was taken away before them is looked at all the same
            pieces = self.place(job, nodes, free)
            if pieces is not None:
                return (last if last > now else max(last + 30, now + 1)), pieces
        return math.inf, None

    def backfill(self, now: int) -> None:
        self.table = [(self.floor(now), self.floor(now + self.window), frozenset(self.free))]
        tests, made = 0, 1
        for job in self.order():
            if tests >= self.tests:
                return
            tested, at, pieces = self.search(job, now)
            tests += tested
            if pieces is None:
                continue
            if at <= now:
                self.begin(job, now, pieces)
                continue
            a = max(self.floor(at), self.floor(now))
            b = max(self.floor(at + self.plan[job]), a + self.resolution)
            if made >= self.tests:
                return
            made += self.reserve(a, b, frozenset(pieces))

    def search(self, job: int, now: int) -> tuple[bool, float, dict[int, int] | None]:
        begin, tested = float(now), False
        need = max(-(-self.gpus[job] // self.most), 1)
        while True:
            nodes, later, steps = frozenset(self.free), 0.0, self.table
            for k, (a, b, there) in enumerate(steps):
                if b <= begin:
                    continue
                if not later and k + 1 < len(steps) and not steps[k + 1][2] <= nodes & there:
                    later = b
                if a > begin + self.plan[job]:
                    break
                nodes &= there
            at, pieces = math.inf, None
            if len(nodes) >= need:
                tested = True
                at, pieces = self.when(job, nodes, now)
            if pieces is None:
                if not later:
                    return tested, at, None
                begin = later
                continue
            at = max(at, begin)
            if at <= now:
                return tested, at, pieces
            if later and at > later:
                begin = later
                continue
            if at > now + self.window:
                return tested, at, None
            a, b = self.floor(at), self.floor(at + self.plan[job])
            if any(y > a and x < b and not set(pieces) <= there for x, y, there in steps):
                begin = at
                continue
            return tested, at, pieces

    def starts(self) -> list[float]:
        coming = list(range(self.work.size))
        for now in range(LONG):
            happened = False
            for job in [j for j, end in self.end.items() if end == now]:
                for k, gpus in self.held.pop(job).items():
                    self.free[k] += gpus
                del self.end[job]
                happened = True
            while coming and self.work.submit[coming[0]] == now:
                self.waiting.append(coming.pop(0))
                happened = True
            if self.waiting and now % 60 == 0:
                self.main(now, math.inf)
            elif self.waiting and happened:
                self.main(now, self.depth)
            if self.waiting and now % self.interval == 0:
                self.backfill(now)
            if not coming and not self.end and not self.waiting:
                return self.start
        raise AssertionError("jobs that never start")


@settings(max_examples=examples(150))
@given(
    seed=SEEDS,
    tiers=st.lists(st.integers(1, 2), min_size=3, max_size=3),
    size=st.sampled_from([0, 1000]),
    depth=st.sampled_from([0, 2, 100]),
    interval=st.sampled_from([1, 5, 30]),
    window=st.sampled_from([1, 3, 1440]),
    resolution=st.sampled_from([1, 10, 60]),
    tests=st.sampled_from([2, 5, 500]),
    groups=st.booleans(),
)
def test_it_starts_what_the_slow_one_does(
    seed: int,
    tiers: list[int],
    size: int,
    depth: int,
    interval: int,
    window: int,
    resolution: int,
    tests: int,
    groups: bool,
) -> None:
    work, cluster, shared = random_case(seed, plain=True)
    if cluster.pool:
        # a pool reserves amounts: compared with EASY below
        cluster = replace(cluster, pool=False)
    tiers = tiers[: len(work.queues)]
    params = {
        **PLAIN,
        "weight_job_size": str(size),
        "default_queue_depth": str(depth),
        "bf_interval": str(interval),
        "bf_window": str(window),
        "bf_resolution": str(resolution),
        "bf_max_job_test": str(tests),
        "ends": "groups" if groups else "each",
        "tiers": ",".join(f"{name}:{tier}" for name, tier in zip(work.queues, tiers, strict=True)),
    }
    outcome = run(find("slurm")(params), work, cluster, shared)
    plan = np.where(np.isnan(work.time_limit), 31_536_000.0, work.time_limit).tolist()
    slow = Slow(work, cluster, plan, tiers, size, depth, interval, window * 60, resolution, tests, groups)
    np.testing.assert_array_equal(outcome.jobs["start_s"].to_numpy(), slow.starts())


def in_one_pool(seed: int) -> tuple[Workload, Cluster, object]:
    """Jobs of one queue on GPUs whose places do not matter, planned for their true run times."""
    work, cluster, shared = random_case(seed, plain=True)
    cluster = replace(
        cluster,
        nodes=("pool",),
        gpus=np.array([int(cluster.gpus.sum())]),
        rack=np.zeros(1, np.int64),
        gpu_type=np.full(1, -1),
        racks=("r0",),
        pool=True,
        quota=np.full(1, np.inf),
    )
    work = replace(work, queue=np.zeros(work.size, np.int64), queues=("q",), planned=work.true_run_time)
    return work, cluster, shared


@settings(max_examples=examples(150))
@given(seed=SEEDS)
def test_with_one_reservation_it_does_what_easy_does(seed: int) -> None:
    work, cluster, shared = in_one_pool(seed)
    params = {
        **PLAIN,
        "weight_job_size": "0",
        "bf_interval": "1",
        "bf_resolution": "1",
        "bf_window": "100000",
        "bf_job_part_count_reserve": "1",
        "ends": "each",
    }
    ours = run(find("slurm")(params), work, cluster, shared)  # type: ignore[arg-type]
    easy = run(find("easy")(), work, cluster, shared)  # type: ignore[arg-type]
    assert ours.jobs["start_s"].to_list() == easy.jobs["start_s"].to_list()


@settings(max_examples=examples(150))
@given(seed=SEEDS, groups=st.booleans(), interval=st.sampled_from([1, 7]))
def test_nobody_delays_the_job_that_was_first(seed: int, groups: bool, interval: int) -> None:
    """By true limits: the first job starts no later than the running jobs' ends let it, whoever is backfilled."""
    work, cluster, shared = random_case(seed, plain=True)
    work = replace(work, planned=work.true_run_time, submit=np.zeros(work.size), eligible=np.zeros(work.size))
    params = {**PLAIN, "weight_job_size": "0", "ends": "groups" if groups else "each", "bf_interval": str(interval)}
    with_it = run(find("slurm")({**params, "backfill": "true"}), work, cluster, shared)
    without = run(find("slurm")({**params, "backfill": "false"}), work, cluster, shared)
    starts = np.array([with_it.jobs["start_s"].to_numpy(), without.jobs["start_s"].to_numpy()])
    held = np.flatnonzero(starts[1] > 0)
    if held.size:
        first = held[0]
        # reservations are rounded down to bf_resolution, and ends looked at in groups
        assert starts[0, first] <= starts[1, first] + (0 if not groups else 60)


@settings(max_examples=examples(100))
@given(seed=SEEDS)
def test_nothing_fits_next_to_what_waits(seed: int) -> None:
    """Work conserved: with backfill and no reservations nobody waits who would fit on what is free."""
    work, cluster, shared = random_case(seed, plain=True)
    params = {**PLAIN, "bf_interval": "1", "bf_min_age_reserve": "1000000", "bf_window": "1"}
    outcome = run(find("slurm")(params), work, cluster, shared)
    times = sorted({*outcome.attempts["start_s"].to_list(), *outcome.attempts["end_s"].to_list()})
    pieces = outcome.pieces.join(outcome.attempts.with_row_index("row").cast({"row": pl.Int64}), on="row")
    starts, gpus = outcome.jobs["start_s"].to_numpy(), work.gpus
    for now in times:
        free = cluster.gpus.astype(np.int64).copy()
        for node, used in (
            pieces.filter((pl.col("start_s") <= now) & (pl.col("end_s") > now)).select("node", "gpus").rows()
        ):
            free[node] -= used
        waiting = np.flatnonzero((work.submit <= now) & (starts > now))
        assert not (gpus[waiting] <= free.max(initial=0)).any()


VARIANTS: tuple[dict[str, str], ...] = (
    {},
    {"preempt": "partition", "tiers": "q0:3", "requeue_delay": "0"},
    {"preempt": "partition", "tiers": "q0:3", "requeue_delay": "7", "exempt": "3"},
    {"backfill": "false", "fair_share": "classic", "calc_period": "3", "half_life_d": "0.001"},
    {"shares": "account", "calc_period": "2", "half_life_d": "0.0001", "bf_interval": "1", "batch_sched_delay": "0"},
)


@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**20), variant=st.sampled_from(VARIANTS))
def test_no_variant_breaks_an_invariant(seed: int, variant: dict[str, str]) -> None:
    work, cluster, shared = random_case(seed, resources=seed % 2 == 1)
    if "preempt" in variant and len(work.queues) < 2:
        variant = {}
    outcome = run(find("slurm")(variant), work, cluster, shared)
    assert violations(outcome, work, cluster, shared) == []


def test_the_second_time_is_as_the_first() -> None:
    assert check(lambda: find("slurm")({"calc_period": "2", "half_life_d": "0.001"}), 20) == []
