"""Themis against worked examples, brute force, a slow reference and recorded results."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.compiled.bundles import records
from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.conformance import random_case, run, violations
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.policies import find
from gpuctl.replay.policies.elastic.auction_kernel import SALE, Auction, sell
from gpuctl.replay.run import replay
from tests.elastic_cases import CLUSTERS, ORACLES, agrees, disagreements, random_jobs, simulated, slow
from tests.themis_reference import Themis

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Bids = list[dict[int, int]]


def auction(bids: Bids, pool: int, rows: int = 9) -> tuple[list[int], list[int]]:
    """What each wins, -1 if it is not admitted, and what it keeps; with room for so many bidders' values less one."""
    n = len(bids)
    most = [max((k for k in bid if k <= pool), default=0) for bid in bids]
    a = Auction(
        p=records(1, SALE), least=np.array([min(bid) for bid in bids]), most=np.array(most), admitted=2 * n,
        won=np.full(n, -1), instead=n, granted=n, row=np.full(n, -1), filled=n, value=(rows, max(most) + 1),
        best=(2, pool + 1), take=(n + 1, pool + 1),
    )  # fmt: skip
    sale: Any = a.p[0]
    sale.pool, sale.chosen = pool, n
    do: Callable[..., None] = sell
    do(a, None, None, 1, lambda *_: None, lambda _s, _m, _a, i, k: np.int64(bids[i][k]))
    return a.won.tolist(), a.granted.tolist()


def bids_of(pool: int, jobs: Sequence[tuple[float, float, float, int]], above: int = 99, factor: float = 1.0) -> Bids:
    """Of jobs without GPUs: seconds since submission, work left on one GPU, time alone and gang."""
    found = []
    for elapsed, work, alone, gang in jobs:
        rho = {k: (elapsed + work / (k * (factor if k > above else 1))) / alone for k in range(1, min(gang, pool) + 1)}
        found.append({k: math.floor(-math.log(r) * 1e9 + 0.5) for k, r in rho.items()})
    return found


X, Y, Z = (100, 400, 200, 8), (50, 800, 300, 8), (300, 300, 250, 8)
THREE = [(600, 1000, 500, 4), (60, 4000, 1000, 4), (0, 100, 100, 1)]
VECTORS: dict[str, tuple[int, Bids, list[int], list[int]]] = {
    "slower above four": (8, bids_of(8, [X, Y, Z], 4, 0.8), [3, 3, 2], [1, 2, 1]),
    "three alike": (9, bids_of(9, [(0, 900, 100, 9)] * 3), [3, 3, 3], [1, 1, 1]),
    "all keep their least": (3, bids_of(3, THREE), [1, 1, 1], [1, 1, 1]),
    "one steps in": (3, bids_of(3, [*THREE, (0, 500, 500, 1)]), [1, 1, 1, -1], [1, 1, 1, 0]),
    "old and young": (8, bids_of(8, [(5000, 400, 400, 4), (10, 8000, 1000, 8)]), [1, 7], [1, 6]),
    "two of two nodes": (16, bids_of(16, [(0, 16000, 1000, 16)] * 2, 8, 0.7), [8, 8], [5, 5]),
}


SHARES = {
    "slower above four": [0.6579, 0.7143, 0.6767], "three alike": [0.45] * 3,
    "all keep their least": [0.5074, 0.6875, 0.5074], "one steps in": [1.0] * 3, "old and young": [0.8761, 0.9444],
    "two of two nodes": [0.7143] * 2,
}  # fmt: skip
"""What each winner keeps of what it won, before it is rounded."""


@pytest.mark.parametrize("name", VECTORS)
def test_auctions_worked_out_by_hand(name: str) -> None:
    pool, bids, won, granted = VECTORS[name]
    assert auction(bids, pool) == (won, granted)
    for i, share in enumerate(SHARES[name]):
        without = auction(bids[:i] + bids[i + 1 :], pool)[0]
        without.insert(i, -1)
        both = [j for j in range(len(bids)) if min(won[j], without[j]) >= 0]
        assert min(1.0, math.exp(sum(bids[j][won[j]] - bids[j][without[j]] for j in both) / 1e9)) == pytest.approx(
            share, abs=5e-5
        )
    assert Themis.auction(dict(enumerate(bids)), pool) == {i: k for i, k in enumerate(won) if k >= 0}


@pytest.mark.parametrize("seed", range(60))
def test_small_auctions_against_all_vectors(seed: int) -> None:
    draw = np.random.default_rng(seed)
    pool = int(draw.integers(1, 8))
    bids: Bids = []
    for _ in range(int(draw.integers(1, 5))):
        first = int(draw.choice([0, 1, 1, 2]))
        # few values: full of ties
        bids.append({k: int(draw.integers(-3, 6)) * 10**8 for k in range(first, int(draw.integers(first, 6)) + 1)})
    room, admitted = pool, []
    for i, bid in enumerate(bids):
        if min(bid) <= room:
            room -= min(bid)
            admitted.append(i)
    vectors = [v for v in itertools.product(*(bids[i] for i in admitted)) if sum(v) <= pool]
    best = max(vectors, key=lambda v: (sum(bids[i][k] for i, k in zip(admitted, v, strict=True)), v))
    won, granted = auction(bids, pool)
    assert (won, granted) == auction(bids, pool, rows=2)
    assert [won[i] for i in admitted] == list(best)
    assert [k for i, k in enumerate(won) if i not in admitted] == [-1] * (len(bids) - len(admitted))
    # nobody can have more without another one having less: no vector within the pool is better for one, worse for none
    for other in vectors:
        gains = [bids[i][k] - bids[i][own] for i, k, own in zip(admitted, other, best, strict=True)]
        assert min(gains, default=0) < 0 or max(gains, default=0) == 0
    slowly = dict(enumerate(bids))
    paid = Themis.pay(slowly, pool, Themis.auction(slowly, pool))
    assert [granted[i] for i in admitted] == [paid[i] for i in admitted]
    assert all(min(bids[i]) <= granted[i] <= won[i] for i in admitted)


@pytest.mark.parametrize("seed", range(40))
def test_what_theory_promises_of_small_auctions(seed: int) -> None:
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 5))
    pool = int(draw.integers(n, 10))
    # new jobs that can use all GPUs, each as fast as its GPUs are many
    jobs = [(0.0, float(draw.integers(1, 9000)), float(draw.integers(1, 9000)), pool) for _ in range(n)]
    bids = bids_of(pool, jobs)
    assert all(bid[k] < bid[k + 1] for bid in bids for k in range(1, pool))
    won, granted = auction(bids, pool)
    vectors = [v for v in itertools.product(range(1, pool + 1), repeat=n) if sum(v) <= pool]
    assert math.prod(won) == max(map(math.prod, vectors))
    # a sharing incentive: nobody would have more with its part of the pool; all of which is sold
    assert min(won) >= pool // n
    assert sum(won) == pool
    for i, k in enumerate(won):
        others = [v for v in itertools.product(range(1, pool + 1), repeat=n - 1) if sum(v) <= pool]
        share = math.prod(won[:i] + won[i + 1 :]) / max(map(math.prod, others))
        assert granted[i] == max(1, math.floor(share * k + 1e-9))
        # each GPU that it leaves raises another's product by 1 / min(won) at most, and 1 + x is below e^x
        assert share >= math.exp(-k / min(won)) - 1e-9


def test_no_sharing_incentive_for_a_job_that_waited_long() -> None:
    # its rho hardly changes with its GPUs, so the largest product leaves it 1 of 8: less than half of them
    old, young = (5000.0, 400.0, 400.0, 4), (10.0, 8000.0, 1000.0, 8)
    assert auction(bids_of(8, [old, young]), 8)[0] == [1, 7]


# 0 and 12 would take the slow reference four seconds; what they have, 5, 6 and 7 have
@pytest.mark.parametrize("seed", [*range(1, 12), 13, 14])
def test_as_the_slow_reference_does(seed: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(seed)
    path = tmp_path / "jobs.csv"
    cluster, per_rack = CLUSTERS[seed % len(CLUSTERS)]
    random_jobs(path, draw, most=6)
    params: dict[str, Any] = {
        "lease": float(draw.choice([60, 250, 1200])), "restart": float(draw.choice([0, 7.5, 62])),
        "f": float(draw.choice([0, 0.5, 0.8, 0.95])), "rigid": int(draw.integers(0, 4) == 0),
        "payments": int(draw.integers(0, 2)), "contention": str(draw.choice(["none", "count", "demand"])),
    }  # fmt: skip
    outcome = simulated("themis", path, cluster, per_rack, params)
    assert agrees(outcome, slow("themis", path, cluster, per_rack, params)) == []


CASES: dict[str, dict[str, Any]] = {
    "small_default": {}, "small_payments0": {"payments": 0}, "small_rigid1": {"rigid": 1}, "small_f0": {"f": 0},
    "small_f0.95_lease600": {"f": 0.95, "lease": 600}, "small_lease3600_restart0": {"lease": 3600, "restart": 0},
    "small_contention-demand": {"contention": "demand"},
    "small_contention-count_restart0": {"contention": "count", "restart": 0},
    "medium_default": {}, "medium_payments0_lease1800": {"payments": 0, "lease": 1800},
}  # fmt: skip


@pytest.mark.skipif(not ORACLES.is_dir(), reason="no oracles beside this checkout")
@pytest.mark.parametrize("case", CASES)
def test_as_recorded(case: str) -> None:
    assert disagreements("themis", case, CASES[case]) == []


@pytest.mark.parametrize("seed", range(6))
def test_it_keeps_to_the_contract(seed: int) -> None:
    case = random_case(seed)
    assert violations(run(find("themis")(), *case), *case) == []


def test_it_places_jobs_itself(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,submit_time,duration,num_gpus\na,0,5,1\n")
    workload = read_jobs(path)
    with pytest.raises(UsageError, match="themis chooses nodes itself"):
        replay(workload, parse_cluster("1x4", workload), [("themis", {})], placement="spread")


def test_a_cluster_too_large_for_auctions_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,submit_time,duration,num_gpus\n" + "".join(f"j{k},0,5,1\n" for k in range(4000)))
    workload = read_jobs(path)
    with pytest.raises(UsageError, match="400,000 GPUs are more than its auctions can sell"):
        replay(workload, parse_cluster("1000x400", workload), [("themis", {})])
