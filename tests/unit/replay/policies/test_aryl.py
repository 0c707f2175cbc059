"""Aryl against worked examples, brute force, a slow reference and recorded results."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import InputError
from gpuctl.replay.contract.conformance import random_case, run, violations
from gpuctl.replay.models.inference import Inference, late, parse_inference
from gpuctl.replay.policies import find
from gpuctl.replay.policies.elastic.borrowing_kernel import ARYL, HOST, MEMBER, SHARE, Borrowing, cheapest, clear
from gpuctl.replay.policies.elastic.knapsack_kernel import knapsack
from gpuctl.replay.results import metrics
from gpuctl.replay.run import replay
from tests.elastic_cases import CLUSTERS, ORACLES, agrees, nodes_of, random_jobs, recorded, simulated, slow

if TYPE_CHECKING:
    from pathlib import Path


def counts(values: list[list[int]], room: int) -> list[int]:
    """What the knapsack chooses."""
    groups = len(values)
    items = np.array([len(row) for row in values])
    table = np.zeros((groups, items.max()), np.int64)
    for row, filled in zip(values, table, strict=True):
        filled[: len(row)] = row
    chosen = np.zeros(groups, np.int64)
    knapsack(table, np.zeros((groups + 1, room + 1), np.int64), items, chosen, groups, room)
    return chosen.tolist()


@pytest.mark.parametrize("seed", range(40))
def test_knapsack_is_the_best_by_brute_force_and_the_last_in_order_of_equals(seed: int) -> None:
    draw = np.random.default_rng(seed)
    values = [
        [0, *(draw.integers(0, 6, int(draw.integers(0, 5))) if seed % 2 else np.sort(draw.integers(0, 6, 4))).tolist()]
        for _ in range(int(draw.integers(1, 5)))
    ]
    room = int(draw.integers(0, 12))
    choices = itertools.product(*(range(len(row)) for row in values))
    best = max(
        (sum(row[k] for row, k in zip(values, choice, strict=True)), choice)
        for choice in choices
        if sum(choice) <= room
    )
    assert counts(values, room) == list(best[1])


@pytest.mark.parametrize("seed", range(16))
def test_as_the_slow_reference_does(seed: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(seed)
    path = tmp_path / "jobs.csv"
    cluster, per_rack = CLUSTERS[seed % len(CLUSTERS)]
    random_jobs(path, draw, most=6, fewer=seed % 4 == 3)
    lines = int(draw.integers(1, 30))
    times = np.cumsum(draw.integers(1, 1500, lines)).astype(np.float64) - (1 if seed % 2 else 200)
    lent = Inference(draw.choice([4, 8], 5).astype(np.int64), times, draw.integers(0, 6, lines))
    params: dict[str, Any] = {
        "interval": float(draw.choice([60, 250, 300])), "pre": float(draw.choice([0, 7.5, 63, 400])),
        "resize": float(draw.choice([0, 15, 100])), "ratio": float(draw.choice([1, 1.5, 3])),
        "elastic": int(draw.random() < 0.8), "loan": int(draw.random() < 0.9), "linear": int(draw.random() < 0.5),
    }  # fmt: skip
    outcome = simulated("aryl", path, cluster, per_rack, params, lent)
    assert agrees(outcome, slow("aryl", path, cluster, per_rack, params, lent)) == []


def test_without_loans_and_growth_it_is_sjf(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    random_jobs(path, np.random.default_rng(3), most=6)
    workload, nodes = nodes_of(path, "2x4+2x8", 2)
    neither = ("aryl", {"loan": "0", "elastic": "0"})
    ours, sjf = replay(workload, nodes, [neither, ("sjf", {"skip": "1"})], own_speeds=False)
    assert ours.jobs["start_s"].to_list() == pytest.approx(sjf.jobs["start_s"].to_list())
    assert ours.jobs["end_s"].to_list() == pytest.approx(sjf.jobs["end_s"].to_list())


CASES = {
    "small_default": ("load8", {}), "small_loan0": ("load8", {"loan": 0}), "small_elastic0": ("load8", {"elastic": 0}),
    "small_loan0_elastic0": ("load8", {"loan": 0, "elastic": 0}), "small_ratio1_jumpy": ("jumpy8", {"ratio": 1}),
    "small_linear0_interval600_jumpy": ("jumpy8", {"linear": 0, "interval": 600}),
    "medium_default": ("load16", {}), "medium_ratio1_interval600_jumpy": ("jumpy16", {"ratio": 1, "interval": 600}),
}  # fmt: skip


@pytest.mark.skipif(not ORACLES.is_dir(), reason="no oracles beside this checkout")
@pytest.mark.parametrize("case", CASES)
def test_as_recorded(case: str) -> None:
    load, params = CASES[case]
    size = case.split("_", maxsplit=1)[0]
    count = 4 if size == "small" else 16
    nodes = 8 if size == "small" else 16
    folder = ORACLES / "aryl"
    lent = parse_inference(f"{nodes}x8", folder / f"{load}.csv")
    jobs = folder / f"{size}_input.csv"
    outcome = simulated("aryl", jobs, f"{count}x8", count, params, lent)
    expected = recorded(folder / f"{case}_expected.csv")
    assert agrees(outcome, expected) == []
    found = metrics.rhos(outcome, *nodes_of(jobs, f"{count}x8", count))
    order = outcome.jobs.select("job").join(expected, on="job", maintain_order="left")
    for name in ("rho", "rho_demand"):
        assert found[name] == pytest.approx(order[name].to_numpy(), rel=2e-6, abs=1e-6)


VECTORS: dict[str, tuple[list[list[float]], dict[int, list[int]]]] = {
    "A1": (
        [[0, 100 / 3, 50, 60, 200 / 3], [0, 30, 40, 45], [0, 0, 40, 0, 200 / 3, 0, 600 / 7, 0, 100]],
        {
            1: [1, 0, 0],
            2: [1, 1, 0],
            3: [2, 1, 0],
            4: [1, 1, 2],
            5: [2, 1, 2],
            6: [3, 1, 2],
            7: [2, 1, 4],
            8: [3, 1, 4],
        },
    ),
    "A2, workers of 4 and 3 GPUs": ([[0, 0, 0, 0, 45], [0, 0, 0, 32], [0, 0, 0, 31.5]], {6: [0, 3, 3], 7: [4, 3, 0]}),
    "A3, ties": ([[0, 20, 100 / 3, 300 / 7, 50]] * 2, {1: [1, 0], 3: [2, 1], 5: [3, 2]}),
}


@pytest.mark.parametrize("name", VECTORS)
def test_knapsacks_worked_out_by_hand(name: str) -> None:
    values, by_room = VECTORS[name]
    whole = [[round(value * 1e6) for value in row] for row in values]
    assert {room: counts(whole, room) for room in by_room} == by_room


def reclaimed(jobs: list[set[int]], nodes: int, back: int) -> tuple[int, list[int], list[float]]:
    """Jobs preempted, nodes given back and what each would have cost at first; jobs have a base worker on each."""
    at = [(job, node) for job, own in enumerate(jobs) for node in own]
    size = len(at) + 1
    shares = records(size, SHARE)
    members, hosts, p = records(len(jobs), MEMBER), records(nodes, HOST), records(1, ARYL)
    members.first, hosts.lent, p.line, p.spare = -1, 1, len(jobs), size - 1
    sizes = {name: (1,) * dimensions for name, (_, dimensions) in Borrowing.fields.items()}
    m = Borrowing(
        **{**sizes, "p": p, "hosts": hosts, "members": members, "shares": shares, "line": np.arange(len(jobs))}
    )
    for k, (job, node) in enumerate(at):
        m.shares[k].node, m.shares[k].fixed, m.shares[k].next = node - 1, 1, m.members[job].first
        m.members[job].first = k
        m.hosts[node - 1].fixed += 1
    picks, gone, costs = [], 0, []
    for _ in range(back):
        pick = int(cheapest(m))
        costs = costs or m.hosts.cost.tolist()
        for job in [job for job, own in enumerate(jobs) if pick + 1 in own and m.members[job].first >= 0]:
            clear(m, job)
            gone += 1
        m.hosts[pick].lent = 0
        picks.append(pick + 1)
    return gone, picks, costs


def fewest(jobs: list[set[int]], nodes: int, back: int) -> int:
    """The fewest jobs that must be preempted, by SciPy's HiGHS: x = nodes that go back, y = jobs preempted."""
    cost = np.append(np.zeros(nodes), np.ones(len(jobs)))
    rows = [np.append(np.ones(nodes), np.zeros(len(jobs)))]
    low = [float(back)]
    for number, job in enumerate(jobs):
        for node in job:
            row = np.zeros(nodes + len(jobs))
            row[nodes + number], row[node - 1] = 1, -1
            rows.append(row)
            low.append(0.0)
    best = milp(cost, constraints=LinearConstraint(np.array(rows), low), integrality=1, bounds=Bounds(0, 1))
    return round(best.fun)


RECLAIM = {
    "R1": ([{1, 2}, {2}, {2, 3}, {3, 4, 5}, {5}], 5, 3, [4, 1, 3], 3, 3, [0.5, 2, 5 / 6, 1 / 3, 4 / 3]),
    "R2": ([{1, 3, 4}, {1, 3, 4}, {2, 4}], 4, 2, [2, 1], 3, 2, [2 / 3, 0.5, 2 / 3, 7 / 6]),
}


@pytest.mark.parametrize("name", RECLAIM)
def test_nodes_given_back_as_worked_out_by_hand(name: str) -> None:
    jobs, nodes, back, order, gone, best, costs = RECLAIM[name]
    found = reclaimed(jobs, nodes, back)
    assert found[:2] == (gone, order)
    assert found[2] == pytest.approx(costs)
    assert fewest(jobs, nodes, back) == best


def test_the_greedy_rule_preempts_hardly_more_jobs_than_the_optimum() -> None:
    draw = np.random.default_rng(7)
    gaps = []
    for _ in range(75):
        jobs = [set((draw.choice(6, int(draw.integers(1, 4)), replace=False) + 1).tolist()) for _ in range(7)]
        back = int(draw.integers(1, 5))
        gaps.append(reclaimed(jobs, 6, back)[0] - fewest(jobs, 6, back))
    assert min(gaps) == 0
    assert 0.85 <= np.mean(np.array(gaps) == 0) < 1


def test_a_day_of_inference() -> None:
    lent = parse_inference("8x8", None)
    assert (lent.time_s[:3].tolist(), lent.free[:3].tolist()) == ([0, 19500, 27000], [4, 3, 2])


def test_nodes_that_go_back_too_late_are_counted() -> None:
    lent = Inference(np.array([8, 8]), np.array([0.0, 100.0, 900.0]), np.array([2, 1, 2]))
    loans = [(0.0, 1, True), (0.0, 2, True), (300.0, 1, False)]
    assert late(lent, loans, 1000.0) == (1, 200.0)
    assert late(lent, loans[:2], 150.0) == (1, 50.0)


@pytest.mark.parametrize("seed", range(9))
def test_nobody_is_on_nodes_that_are_not_on_loan(seed: int) -> None:
    workload, cluster, settings = random_case(seed)
    draw = np.random.default_rng(seed)
    if cluster.pool:
        pytest.skip("nodes cannot be lent to a pool")
    lent = Inference(draw.choice([3, 8], 4), np.cumsum(draw.integers(1, 12, 12)) * 1.0, draw.integers(0, 5, 12))
    case = (
        dataclasses.replace(workload, max_gpus=workload.gpus * 2, min_gpus=workload.gpus),
        dataclasses.replace(cluster, inference=lent),
        settings,
    )
    outcome = run(find("aryl")({"interval": "4", "ratio": "1"}), *case)
    assert violations(outcome, *case) == []


@pytest.mark.parametrize(
    ("text", "found"), [("t,n\n0,1\n", "t,n"), ("time_s,nodes_free\n5,1\n5,2\n", "5,2"), ("", "''")]
)
def test_a_load_that_is_none_is_refused_with_its_line(text: str, found: str, tmp_path: Path) -> None:
    path = tmp_path / "load.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=found):
        parse_inference("9x8", path)
