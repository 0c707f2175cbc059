"""On small workloads full of ties the compiled simulator does what the slow one does, to every start and every end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from tests.example_counts import examples
from tests.replay_reference import (
    Attempts,
    EndlessError,
    Job,
    LevelLists,
    Live,
    OneList,
    Preemptive,
    TwoLists,
    attempts,
    by_queue,
    by_rank,
    by_share,
    cluster,
    gittins,
    simulate,
    without_preemption,
    workload,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MANY = settings(max_examples=examples(80))
SIZES = (1, 2, 4)
"""Of gangs under service in GPU-seconds: limits are multiples of all of them, so demotions fall on whole seconds."""


@st.composite
def many_jobs(draw: st.DrawFn, most_gpus: int, sizes: Sequence[int] = ()) -> list[Job]:
    gangs = st.sampled_from([g for g in sizes if g <= most_gpus]) if sizes else st.integers(1, most_gpus)
    row = st.builds(Job, st.integers(0, 12), st.integers(1, 9), gangs, st.integers(0, 2), st.integers(0, 2))
    return sorted(draw(st.lists(row, min_size=1, max_size=12)), key=lambda job: job.submit)


@st.composite
def on_a_pool(draw: st.DrawFn, sizes: Sequence[int] = ()) -> tuple[list[Job], int]:
    gpus = draw(st.integers(1, 6))
    return draw(many_jobs(gpus, sizes)), gpus


@st.composite
def on_nodes(draw: st.DrawFn) -> tuple[list[Job], list[int]]:
    nodes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    same = draw(st.booleans())
    nodes = [nodes[0]] * len(nodes) if same else nodes
    return draw(many_jobs(sum(nodes))), nodes


def on_pool(jobs: list[Job], gpus: int, policy: str, params: Mapping[str, str], cost: str = "none") -> Attempts:
    work = workload(jobs)
    return attempts(simulate(work, cluster([gpus], work, pool=True), policy, params, cost=cost))


@pytest.mark.parametrize("policy", ["fifo", "fifo-skip", "sjf", "sjf skip", "sjf gpu-time", "random", "random strict"])
@pytest.mark.parametrize("how", ["any", "consolidate"])
@MANY
@given(case=on_nodes(), seed=st.integers(0, 3))
def test_a_fixed_order_without_preemption(policy: str, how: str, case: tuple[list[Job], list[int]], seed: int) -> None:
    jobs, nodes = case
    # a gang that fits under no placement would wait for ever: not what is compared here
    if how == "consolidate":
        jobs = [job for job in jobs if job.gpus <= max(nodes) or len(set(nodes)) == 1] or [Job(0, 1, 1)]
    name, _, variant = policy.partition(" ")
    params = {"skip": {"skip": "true"}, "gpu-time": {"by": "gpu-time"}, "strict": {"skip": "false"}}.get(variant, {})
    rank = {
        "fifo": range(len(jobs)),
        "sjf": [job.duration * (job.gpus if variant == "gpu-time" else 1) for job in jobs],
        "random": np.random.Generator(np.random.PCG64(seed)).random(len(jobs)),
    }[name.removesuffix("-skip")]
    skip = name == "fifo-skip" or variant == "skip" or policy == "random"
    expected, where = without_preemption(jobs, nodes, by_rank(rank, skip=skip), how)
    work = workload(jobs)
    done = simulate(work, cluster(nodes, work), name, params, placement=how, seed=seed)
    assert attempts(done) == expected
    found: list[dict[int, int]] = [{} for _ in jobs]
    outcome = done.outcome()
    owner = outcome.attempts["job"].to_list()
    for row, node, gpus in outcome.pieces.select("row", "node", "gpus").iter_rows():
        found[owner[row]][node] = gpus
    assert found == where


@MANY
@given(case=on_a_pool(), by=st.sampled_from(["queue", "user"]), quota=st.tuples(*[st.integers(1, 4)] * 3))
def test_fair(case: tuple[list[Job], int], by: str, quota: tuple[int, ...]) -> None:
    jobs, gpus = case
    weighted = by == "queue"
    share = [job.queue if by == "queue" else job.user for job in jobs]
    expected, _ = without_preemption(jobs, [gpus], by_share(share, quota if weighted else [1, 1, 1]))
    work = workload(jobs)
    on = cluster([gpus], work, pool=True, quota=quota)
    assert attempts(simulate(work, on, "fair", {"by": by, "weighted": str(weighted).lower()})) == expected


@MANY
@given(case=on_a_pool(), quota=st.tuples(*[st.integers(1, 6)] * 3), borrow=st.booleans())
def test_yarn_cs(case: tuple[list[Job], int], quota: tuple[int, ...], borrow: bool) -> None:
    jobs, gpus = case
    if not borrow:
        jobs = [job for job in jobs if job.gpus <= quota[job.queue]] or [Job(0, 1, 1)]
    expected, _ = without_preemption(jobs, [gpus], by_queue(jobs, [1_000] * 3 if borrow else quota))
    work = workload(jobs)
    on = cluster([gpus], work, pool=True, quota=quota)
    assert attempts(simulate(work, on, "yarn-cs", {"borrow": str(borrow).lower()})) == expected


COSTS = {"none": (0, 0, 0), "charge:2": (0, 0, 2), "const:3": (1, 2, 0)}


def reference(jobs: list[Job], gpus: int, order: OneList, cost: str, **rules: object) -> Attempts:
    suspend, resume, charge = COSTS[cost]
    slow = Preemptive(jobs, gpus, order, suspend=suspend, resume=resume, charge=charge, **rules)  # type: ignore[arg-type]
    try:
        return slow.run()
    except EndlessError:
        reject()


# one list has no place for a job whose key jumps by a charge: the simulators that charge have two
@pytest.mark.parametrize(("ties", "cost"), [("list", "none"), ("list", "const:3"), *(("waiting", c) for c in COSTS)])
@pytest.mark.parametrize("policy", ["srtf", "srsf"])
@MANY
@given(case=on_a_pool())
def test_shortest_remaining(policy: str, ties: str, cost: str, case: tuple[list[Job], int]) -> None:
    jobs, gpus = case

    def key(live: Live) -> int:
        return live.remaining * (live.job.gpus if policy == "srsf" else 1)

    order = OneList(key) if ties == "list" else TwoLists(key, waiting_first=True)
    assert on_pool(jobs, gpus, policy, {"ties": ties}, cost) == reference(jobs, gpus, order, cost)


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("service", ["gpu-time", "time"])
@MANY
@given(case=on_a_pool(), quantum=st.integers(1, 6))
def test_least_attained_service(service: str, cost: str, case: tuple[list[Job], int], quantum: int) -> None:
    jobs, gpus = case
    # a turn has to bring more than it costs, or most workloads never end
    quantum += sum(COSTS[cost])
    order = OneList(lambda live: live.service(service == "gpu-time"))
    expected = reference(jobs, gpus, order, cost, quantum=quantum)
    assert on_pool(jobs, gpus, "las", {"service": service, "quantum": str(quantum)}, cost) == expected


@pytest.mark.parametrize(
    ("inner", "service", "cost"),
    [
        *(("first-start", "gpu-time", "none"), ("first-start", "time", "charge:2"), ("first-start", "time", "const:3")),
        *(("submit", "time", "none"), ("submit", "gpu-time", "charge:2"), ("submit", "gpu-time", "const:3")),
        *(("list", "gpu-time", "none"), ("list", "time", "charge:2"), ("list", "time", "const:3")),
        *(("gittins", "time", "none"), ("gittins", "gpu-time", "charge:2"), ("gittins", "gpu-time", "const:3")),
    ],
)
@settings(max_examples=examples(50))
@given(
    case=on_a_pool(SIZES),
    limits=st.sampled_from([(4,), (8,), (4, 8), (4, 12, 16)]),
    promote=st.sampled_from([0, 1, 2]),
    turn=st.sampled_from([0, 3]),
)
def test_tiresias(
    inner: str, service: str, cost: str, case: tuple[list[Job], int], limits: tuple[int, ...], promote: int, turn: int
) -> None:
    jobs, gpus = case
    by_gpus = service == "gpu-time"
    # the authors' simulator, which has the lists, has no rounds
    turn *= inner != "list"
    if cost != "none":
        promote *= 3
        limits = tuple(4 * limit for limit in limits)
    samples = [job.duration * (job.gpus if by_gpus else 1) for job in jobs]

    def index(live: Live) -> tuple[object, ...]:
        more = limits[live.level] if live.level < len(limits) else float("inf")
        return (live.level, -gittins(samples, live.service(by_gpus), more), live.number)

    order = {
        "first-start": lambda: OneList(lambda live: (live.level, live.first_start, live.number)),
        "submit": lambda: TwoLists(lambda live: (live.level, live.job.submit), waiting_first=False),
        "list": lambda: LevelLists(len(limits) + 1),
        "gittins": lambda: OneList(index),
    }[inner]()
    expected = reference(jobs, gpus, order, cost, limits=limits, promote=promote, by_gpus=by_gpus, turn=turn)
    params = {"order": inner, "service": service, "limits": ",".join(map(str, limits)), "promote": str(promote)}
    params |= {"round": str(turn), "learn": "1"}
    assert on_pool(jobs, gpus, "tiresias", params, cost) == expected
