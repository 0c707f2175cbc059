"""Backfilling: the compiled policies do what slow ones do, and nobody delays a reservation."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find
from tests.backfill_reference import Backfill, Conservative, Easy, Site, promises_are_kept
from tests.example_counts import examples
from tests.replay_reference import Job, attempts, cluster, simulate, workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.replay.models.records import Cluster, Workload

MANY = settings(max_examples=examples(150))
WRONG = (0.3, 0.5, 1, 1, 1.5, 3, 10)
"""What a plan may be of the true run time: below 1 the job outlives it."""


@dataclasses.dataclass(frozen=True)
class Case:
    """Jobs, what they are planned for, and nodes."""

    jobs: list[Job]
    plans: list[int]
    site: Site
    pool: bool

    def ours(self) -> tuple[Workload, Cluster]:
        """The same for the compiled simulator."""
        work = dataclasses.replace(workload(self.jobs), planned=np.array(self.plans, np.float64))
        on = cluster(self.site.nodes, work, pool=self.pool, quota=self.site.quota)
        allowed = tuple(
            np.array(self.site.allowed[q]) if q in self.site.allowed else None for q in range(len(work.queues))
        )
        return work, dataclasses.replace(on, queue_nodes=allowed)


@st.composite
def cases(draw: st.DrawFn, *, outlive: bool = True) -> Case:
    pool = draw(st.booleans())
    nodes = draw(st.lists(st.sampled_from([2, 4]), min_size=1, max_size=1 if pool else 4))
    how = draw(st.sampled_from(["any", "consolidate"]))
    restricted = not pool and draw(st.booleans())
    allowed: dict[int, list[int]] = {}
    if restricted:
        some = st.sets(st.sampled_from(range(len(nodes))), min_size=1)
        allowed = {q: sorted(draw(some)) for q in (0, 1)}
        # all nodes is no restriction
        allowed = {q: mine for q, mine in allowed.items() if len(mine) < len(nodes)}
    most = {q: max_gang([nodes[k] for k in allowed.get(q, range(len(nodes)))], how) for q in range(3)}
    row = st.tuples(st.integers(0, 15), st.integers(1, 9), st.integers(1, 8), st.integers(0, 2))
    rows = sorted(draw(st.lists(row, min_size=1, max_size=14)), key=lambda r: r[0])
    jobs = [Job(submit, duration, min(gpus, most[q]), q) for submit, duration, gpus, q in rows]
    wrong = st.sampled_from([w for w in WRONG if outlive or w >= 1])
    allowed = {q: mine for q, mine in allowed.items() if q <= max(job.queue for job in jobs)}
    plans = [max(1, int(job.duration * draw(wrong))) for job in jobs]
    quota: tuple[int, ...] = ()
    if draw(st.booleans()):
        largest = [max([job.gpus for job in jobs if job.queue == q], default=1) for q in range(3)]
        quota = tuple(gpus + draw(st.integers(0, 2)) for gpus in largest)
    return Case(jobs, plans, Site(nodes, how, allowed, quota), pool)


def max_gang(nodes: list[int], how: str) -> int:
    """The largest gang that surely fits: on unequal nodes whole ones and a rest may not."""
    return max(nodes) if how == "consolidate" and len(set(nodes)) > 1 else sum(nodes)


def params(case: Case, **more: str) -> dict[str, str]:
    return {"quotas": "true" if case.site.quota else "false", **more}


def key_of(case: Case, order: str) -> Callable[[int], float]:
    keys: dict[str, Callable[[int], float]] = {
        "submit": lambda j: case.jobs[j].submit,
        "limit": lambda j: case.plans[j],
        "gpus": lambda j: case.jobs[j].gpus,
    }
    return keys[order]


def same(case: Case, slow: Backfill, done: Simulation) -> None:
    assert attempts(done) == slow.result
    found: list[dict[int, int]] = [{} for _ in case.jobs]
    outcome = done.outcome()
    owner = outcome.attempts["job"].to_list()
    for row, node, gpus in outcome.pieces.select("row", "node", "gpus").iter_rows():
        found[owner[row]][node] = gpus
    assert found == slow.where


@pytest.mark.parametrize(
    ("order", "behind"),
    [("submit", "queue"), ("submit", "gpus"), ("limit", "queue"), ("limit", "gpus"), ("gpus", "limit")],
)
@MANY
@given(case=cases())
def test_easy_is_the_slow_one(order: str, behind: str, case: Case) -> None:
    work, on = case.ours()
    slow = Easy(case.jobs, case.plans, case.site, key_of(case, order))
    slow.behind = None if behind == "queue" else key_of(case, behind)
    slow.run()
    given_params = params(case, order=order, backfill=behind)
    same(case, slow, simulate(work, on, "easy", given_params, placement=case.site.how))


@MANY
@given(case=cases())
def test_a_pass_for_each_event_is_the_slow_one(case: Case) -> None:
    assume(case.pool and not case.site.quota)
    work, on = case.ours()
    slow = Easy(case.jobs, case.plans, case.site)
    slow.run(each=True)
    same(case, slow, simulate(work, on, "easy", {"passes": "event"}))


@pytest.mark.parametrize("order", ["submit", "limit", "gpus"])
@MANY
@given(case=cases())
def test_conservative_is_the_slow_one(order: str, case: Case) -> None:
    work, on = case.ours()
    slow = Conservative(case.jobs, case.plans, case.site, key_of(case, order))
    slow.run()
    same(case, slow, simulate(work, on, "conservative", params(case, order=order), placement=case.site.how))


@settings(max_examples=12)
@given(seed=st.integers(0, 2**31))
def test_conservative_is_the_slow_one_where_many_are_similar(seed: int) -> None:
    """Long queues of jobs alike: what is found for one of them is used for the next."""
    draw = np.random.Generator(np.random.PCG64(seed))
    gpus = int(draw.choice([4, 8, 16]))
    jobs, plans = [], []
    for submit in np.sort(draw.integers(0, 40, 35)).tolist():
        limit = int(draw.choice([10, 40, 100]))
        jobs.append(Job(submit, int(draw.integers(1, limit + 1)), min(gpus, int(draw.choice([1, 1, 2, 4, 8, 16])))))
        plans.append(limit)
    case = Case(jobs, plans, Site([gpus]), pool=True)
    slow = Conservative(jobs, plans, case.site)
    slow.run()
    work, on = case.ours()
    same(case, slow, simulate(work, on, "conservative"))


def watched(case: Case, policy: str, given_params: dict[str, str]) -> tuple[Simulation, list[dict[int, float]]]:
    """What is reserved after each instant."""
    work, on = case.ours()
    shared = Settings(rates("recorded", work, on), overhead("none", work, on), case.site.how)
    done = Simulation(work, on, find(policy)(given_params), shared)
    seen = []
    while done.advance(steps=1):
        seen.append(done.program.reserved())  # type: ignore[attr-defined]
    return done, seen


@pytest.mark.parametrize("behind", ["queue", "limit", "gpus"])
@MANY
@given(case=cases(outlive=False))
def test_easy_never_delays_the_head(behind: str, case: Case) -> None:
    done, seen = watched(case, "easy", params(case, backfill=behind))
    promises_are_kept(done.outcome().jobs["start_s"].to_list(), seen)


@pytest.mark.parametrize("order", ["submit", "limit", "gpus"])
@MANY
@given(case=cases(outlive=False))
def test_conservative_delays_nobody(order: str, case: Case) -> None:
    done, seen = watched(case, "conservative", params(case, order=order))
    promises_are_kept(done.outcome().jobs["start_s"].to_list(), seen)


@MANY
@given(case=cases())
def test_a_head_waits_no_longer_because_of_backfilling(case: Case) -> None:
    """Without backfilling the first job that has to wait starts when it did with it, or later."""
    work, on = case.ours()
    assume(not case.site.quota)
    starts = {}
    exact = dataclasses.replace(work, planned=work.true_run_time)
    for policy in ("fifo", "easy", "conservative"):
        done = simulate(exact, on, policy, placement=case.site.how)
        starts[policy] = done.outcome().jobs["start_s"].to_numpy()
    waits = np.flatnonzero(starts["fifo"] > work.submit)
    if waits.size:
        first = int(waits[0])
        assert starts["easy"][first] <= starts["fifo"][first]
        assert starts["conservative"][first] <= starts["fifo"][first]


@settings(max_examples=examples(30))
@given(seed=st.integers(0, 2**31))
def test_backfilling_fills_a_busy_pool(seed: int) -> None:
    """Where the plans are true and the load is high, all work is done sooner than strictly in order."""
    draw = np.random.Generator(np.random.PCG64(seed))
    jobs = [Job(0, int(draw.integers(1, 50)), int(draw.choice([1, 2, 4, 8, 16]))) for _ in range(120)]
    work = workload(jobs)
    work = dataclasses.replace(work, planned=work.true_run_time)
    on = cluster([16], work, pool=True)
    mean = {}
    for policy in ("fifo", "easy", "conservative"):
        mean[policy] = float(simulate(work, on, policy).outcome().jobs["jct_s"].to_numpy().mean())
    assert mean["easy"] < mean["fifo"]
    assert mean["conservative"] < mean["fifo"]
