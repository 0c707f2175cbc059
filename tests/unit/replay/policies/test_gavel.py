"""Gavel's policies: their programs against all divisions of time, their rounds, and what its simulator printed."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from gpuctl.replay.contract.conformance import foresight, random_case, run, violations
from gpuctl.replay.contract.gpu_type_cases import with_types
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find
from gpuctl.replay.policies.gavel.shares import fair_shares, finish_time_shares

Floats = NDArray[np.float64]
GRAIN = np.arange(13) / 12


def divisions(gpus: Floats, room: Floats) -> Floats:
    """All divisions of the time of two types among two jobs in twelfths that fit, (divisions, jobs, types)."""
    grid = np.array(list(itertools.product(GRAIN, repeat=4))).reshape(-1, 2, 2)
    fits = (np.einsum("j,njt->nt", gpus, grid) <= room + 1e-9).all(axis=1)
    return np.asarray(grid[(grid.sum(axis=2) <= 1 + 1e-9).all(axis=1) & fits])


@pytest.mark.parametrize("seed", range(8))
def test_no_division_of_time_leaves_the_worst_off_better_off(seed: int) -> None:
    """All divisions in twelfths of the time are tried: none beats the program by more than their grain."""
    draw = np.random.Generator(np.random.PCG64(seed))
    speeds = draw.choice([0.25, 1.0, 2.0], (2, 2))
    gpus, room = draw.integers(1, 3, 2) * 1.0, draw.integers(1, 4, 2) * 1.0
    found, level = fair_shares(speeds, gpus, room)
    assert (found.sum(axis=1) <= 1 + 1e-9).all()
    assert (gpus @ found <= room + 1e-9).all()
    worth = gpus[:, None] * speeds / (speeds @ room / room.sum())[:, None]
    assert (worth * found).sum(axis=1) == pytest.approx(level, rel=1e-5)  # the last program gives way by 1e-6
    fit = divisions(gpus, room)
    got = (worth * fit).sum(axis=2)
    assert got.min(axis=1).max() <= level.min() + 1e-5
    assert level.min() <= got.min(axis=1).max() + worth.max() * 4 / 12
    # nor the other one, unless the worst off pays for it
    assert got[got.min(axis=1) >= level.min() - 1e-9].max(initial=0.0) <= level.max() + 1e-5


@pytest.mark.parametrize(
    ("speeds", "gpus", "room", "expected"),
    [
        # small jobs have all the time there is; what they leave the large one has
        ([[1.0], [1.0], [1.0]], [1, 1, 4], [4], [[1.0], [1.0], [0.5]]),
        # types that are alike: everybody is on both
        ([[1.0, 1.0]] * 4, [1, 1, 1, 1], [1, 1], [[0.25, 0.25]] * 4),
        ([[1.0, 1.0]] * 2, [1, 2], [3, 1], [[0.75, 0.25], [0.75, 0.25]]),
        # who does not run on a type leaves it to the other
        ([[1.0, 0.0], [1.0, 1.0]], [1, 1], [1, 1], [[1.0, 0.0], [0.0, 1.0]]),
    ],
)
def test_shares_are_fair_beyond_the_worst_off_and_even_over_types(
    speeds: list[list[float]], gpus: list[int], room: list[int], expected: list[list[float]]
) -> None:
    found, _ = fair_shares(np.array(speeds), np.array(gpus, float), np.array(room, float))
    assert found == pytest.approx(np.array(expected), abs=1e-5)


def rhos(shares: Floats, speeds: Floats, left: Floats, since: Floats, alone: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray((since + left / (shares * speeds).sum(axis=-1)) / alone)


def late_jobs(seed: int, jobs: int, types: int) -> tuple[Floats, ...]:
    draw = np.random.Generator(np.random.PCG64(seed))
    speeds = draw.choice([0.0, 0.25, 1.0, 2.0], (jobs, types))
    speeds[:, 0] = np.where(speeds.any(axis=1), speeds[:, 0], 1.0)
    gpus = draw.integers(1, 3, jobs) * 1.0
    room = draw.integers(2, 4, types) * 1.0
    left, since = draw.integers(1, 2000, jobs) * 1.0, draw.integers(0, 2000, jobs) * 1.0
    return speeds, gpus, room, left, since, draw.integers(1, 3000, jobs) * 1.0


@pytest.mark.parametrize("seed", range(12))
def test_no_division_of_time_has_a_smaller_largest_rho(seed: int) -> None:
    """All divisions in twelfths are tried; the one found is a division itself, and its rho what was said of it."""
    speeds, gpus, room, left, since, alone = late_jobs(seed, 2, 2)
    found, rho = finish_time_shares(speeds, gpus, room, left=left, since=since, alone=alone)
    assert (found.sum(axis=1) <= 1 + 1e-6).all()
    assert (gpus @ found <= room + 1e-5).all()
    assert (rhos(found, speeds, left, since, alone) <= rho * (1 + 1e-5)).all()
    tried = np.sort(rhos(divisions(gpus, room), speeds, left, since, alone), axis=1)
    assert tried[:, 1].min() >= rho.max() * (1 - 1e-5)
    # nor has the other job a smaller one, unless the latest pays for it
    assert tried[tried[:, 1] <= rho.max() * (1 + 1e-9), 0].min(initial=np.inf) >= rho.min() * (1 - 1e-5)


@pytest.mark.parametrize("types", [1, 2, 3])
def test_the_largest_rho_is_that_of_a_bisection(types: int) -> None:
    """Whether some rho can be kept by all is a program of its own: told what they need."""
    for seed in range(3):
        speeds, gpus, room, left, since, alone = late_jobs(seed, 9, types)
        low, high = 0.0, 1e6
        while high - low > 1e-8 * high:
            rho = (low + high) / 2
            speed = left / np.maximum(rho * alone - since, 1e-12)
            gets = np.zeros((len(gpus), speeds.size))
            for job in range(len(gpus)):
                gets[job, job * types : (job + 1) * types] = -speeds[job]
            once = np.kron(np.eye(len(gpus)), np.ones(types))
            there = np.kron(gpus, np.eye(types))
            solved = linprog(
                np.zeros(speeds.size), A_ub=np.vstack([gets, once, there]),
                b_ub=np.concatenate([-speed, np.ones(len(gpus)), room]), bounds=[(0, 1)] * speeds.size,
            )  # fmt: skip
            low, high = (low, rho) if solved.status == 0 else (rho, high)
        assert finish_time_shares(speeds, gpus, room, left=left, since=since, alone=alone)[1].max() == pytest.approx(
            high, rel=1e-5
        )


@pytest.mark.parametrize("seed", range(6))
def test_one_type_is_as_two_that_are_similar(seed: int) -> None:
    """A formula there, programs here."""
    draw = np.random.Generator(np.random.PCG64(seed))
    gpus, speed = draw.integers(1, 9, 12) * 1.0, draw.choice([0.5, 1.0], 12)
    _, level = fair_shares(speed[:, None], gpus, np.array([16.0]))
    assert fair_shares(speed[:, None] * [1, 1], gpus, np.array([9.0, 7.0]))[1] == pytest.approx(level, rel=1e-5)
    late = dict(zip(("left", "since", "alone"), late_jobs(seed, 12, 1)[3:], strict=True))
    _, rho = finish_time_shares(speed[:, None], gpus, np.array([16.0]), **late)
    again = finish_time_shares(speed[:, None] * [1, 1], gpus, np.array([9.0, 7.0]), **late)[1]
    assert again == pytest.approx(rho, rel=1e-5)


@pytest.mark.parametrize("name", ["max-min", "ftf"])
@pytest.mark.parametrize("seed", [*range(6), 880035])  # a bound that rounding can break
def test_it_keeps_what_no_replay_may_break(name: str, seed: int) -> None:
    case = with_types(seed, random_case(seed))
    params = {"round": "20", "shares_every": "40"}
    outcome = run(find(name)(params), *case)
    assert violations(outcome, *case) == []
    assert foresight(lambda: find(name)(params), case, outcome, seed) == []


ORACLES = Path(__file__).parents[5] / "shared" / "oracles"


@pytest.mark.skipif(not ORACLES.is_dir(), reason="the recordings of other simulators are not here")
def test_gavels_simulator_on_one_gpu_type_comes_to_the_same_within_its_tolerance() -> None:
    workload = read_jobs(ORACLES / "fifo_strict" / "philly_1k_g128_input.csv")
    cluster = parse_cluster("16x8", workload)
    shared = Settings(rates("recorded", workload, cluster), overhead("none", workload, cluster))
    outcome = run(find("max-min")({"by": "time"}), workload, cluster, shared)
    file = ORACLES / "gavel_rounds_TOLERANCE" / "gavel_philly1k_max_min_fairness_expected.csv"
    with file.open() as lines:
        times = np.array([(float(row["submit"]), float(row["finish"])) for row in csv.DictReader(lines)])
    # measured: -0.06 % and 0.00 %; it tells a tolerance of 5 % of itself
    assert outcome.jobs["jct_s"].to_numpy().mean() == pytest.approx((times[:, 1] - times[:, 0]).mean(), rel=0.005)
    assert outcome.end_s == pytest.approx(times[:, 1].max(), rel=0.005)
