"""Against queueing theory and against SimPy.

Theory gives means of endless queues; independent replications, each without its first part, give a confidence interval
for what the simulator does. Seeds are fixed: a test that passes once passes always. An interval has to be narrow, else
nothing would fall outside it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuctl.replay.models.records import Workload
from tests.replay_reference import Job, cluster, simulate, workload

# SciPy and SimPy are imported by the tests that run: to collect them would take a second more
if TYPE_CHECKING:
    import simpy

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]

SCALE_S = 100.0
"""Mean service time: the shortest quantum, 1 s, is then short."""

REPLICATIONS, JOBS, WARM_UP = 30, 4_000, 1_000
"""Of the jobs of a replication, so many come first and do not count: a queue begins empty."""

CONFIDENCE = 0.999


def jobs_of(submit: Floats, duration: Floats, gpus: NDArray[np.int64] | None = None) -> Workload:
    """Jobs whose times are any numbers."""
    work = workload([Job(0, 1, 1)] * submit.size)
    work = dataclasses.replace(work, submit=submit, eligible=submit, segment_s=duration)
    return work if gpus is None else dataclasses.replace(work, gpus=gpus)


def poisson(rng: np.random.Generator, load: float, nodes: int, draw: Draw) -> Workload:
    """Arrivals at random, so many that `nodes` are busy to `load`."""
    # the more nodes, the more jobs it takes for as many independent spells of waiting
    submit = np.cumsum(rng.exponential(SCALE_S / (load * nodes), JOBS * nodes))
    return jobs_of(submit, draw(rng, submit.size))


def exponential(rng: np.random.Generator, size: int) -> Floats:
    return rng.exponential(SCALE_S, size)


MIX = ((0.9, 0.5 * SCALE_S), (0.1, 5.5 * SCALE_S))
"""Share and mean of short and long jobs, each exponential: together of mean `SCALE_S`."""


def mixed(rng: np.random.Generator, size: int) -> Floats:
    short = rng.random(size) < MIX[0][0]
    return np.where(short, rng.exponential(MIX[0][1], size), rng.exponential(MIX[1][1], size))


def means(column: str, load: float, nodes: int, draw: Draw, policy: str, **params: str) -> Floats:
    """The mean of each replication."""
    found = []
    for seed in range(REPLICATIONS):
        work = poisson(np.random.default_rng(seed), load, nodes, draw)
        done = simulate(work, cluster([nodes], work, pool=True), policy, params)
        found.append(done.outcome().jobs[column].to_numpy()[WARM_UP * nodes :].mean())
    return np.array(found)


def agrees(found: Floats, theory: float) -> None:
    """Theory lies in the confidence interval, which is narrow."""
    from scipy import stats

    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, found.size - 1) * found.std(ddof=1) / math.sqrt(found.size))
    assert half < 0.15 * theory
    assert abs(found.mean() - theory) <= half, f"{found.mean():.4g} s ± {half:.2g}, theory {theory:.4g} s"


def erlang_c(load: float, nodes: int) -> float:
    """Mean wait of M/M/c."""
    offered = load * nodes
    terms = [offered**k / math.factorial(k) for k in range(nodes)]
    last = offered**nodes / math.factorial(nodes) / (1 - load)
    return last / (sum(terms) + last) * SCALE_S / (nodes * (1 - load))


@pytest.mark.parametrize(("nodes", "load"), [(1, 0.6), (4, 0.7)])
def test_fifo_is_erlang_c(nodes: int, load: float) -> None:
    agrees(means("wait_s", load, nodes, exponential, "fifo"), erlang_c(load, nodes))


def density_of_mix(x: float) -> float:
    return sum(share / mean * math.exp(-x / mean) for share, mean in MIX)


def foreground_background(rate: float) -> float:
    """Mean time in an M/G/1 queue that serves whoever has got least: Kleinrock II, 4.6."""

    def of_size(x: float) -> float:
        # of min(S, x): first moment ∫ tail, second 2 ∫ t tail, in closed form for exponentials
        first = sum(p * m * (1 - math.exp(-x / m)) for p, m in MIX)
        second = sum(2 * p * m * (m - (m + x) * math.exp(-x / m)) for p, m in MIX)
        left = 1 - rate * first
        return rate * second / 2 / left**2 + x / left

    from scipy import integrate

    end = 60 * MIX[1][1]
    parts = [SCALE_S, 10 * SCALE_S]
    return float(integrate.quad(lambda x: of_size(x) * density_of_mix(x), 0, end, limit=500, points=parts)[0])


def test_las_is_foreground_background() -> None:
    # service times that vary much: processor sharing would take 333 s and fifo far more, so that this tells them apart
    load = 0.7
    theory = foreground_background(load / SCALE_S)
    assert theory < 0.9 * SCALE_S / (1 - load)
    agrees(means("jct_s", load, 1, mixed, "las", quantum="1"), theory)


def shortest_remaining(rate: float) -> float:
    """Mean time in an M/M/1 queue under SRPT: Schrage and Miller, 1966; service times of mean 1."""

    from scipy import integrate

    def busy(x: float) -> float:
        return rate * (1 - (1 + x) * math.exp(-x))

    def of_size(x: float) -> float:
        second = 2 - (x * x + 2 * x + 2) * math.exp(-x)
        waiting = rate * (second + x * x * math.exp(-x)) / (2 * (1 - busy(x)) ** 2)
        return waiting + float(integrate.quad(lambda t: 1 / (1 - busy(t)), 0, x)[0])

    return float(integrate.quad(lambda x: of_size(x) * math.exp(-x), 0, 50, limit=200)[0])


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_srtf_is_shortest_remaining_processing_time(load: float) -> None:
    theory = SCALE_S * shortest_remaining(load)
    assert theory < 0.75 * SCALE_S / (1 - load)
    agrees(means("jct_s", load, 1, exponential, "srtf"), theory)


# ---- SimPy, on the same numbers


def simpy_starts(work: Workload, serve: Callable[[simpy.Environment, int], Generator[Any, Any, float]]) -> Floats:
    """When each job gets what it wants."""
    import simpy

    env = simpy.Environment()
    start = np.full(work.size, np.nan)

    def job(number: int) -> Generator[Any, Any, None]:
        yield env.timeout(work.submit[number])
        start[number] = yield from serve(env, number)

    for number in range(work.size):
        env.process(job(number))
    env.run()
    return start


@pytest.mark.parametrize("seed", range(2))
def test_fifo_is_a_resource_of_simpy(seed: int) -> None:
    import simpy

    work = poisson(np.random.default_rng(seed), 0.95, 2, exponential)
    resources: list[simpy.Resource] = []

    def serve(env: simpy.Environment, number: int) -> Generator[Any, Any, float]:
        if not resources:
            resources.append(simpy.Resource(env, capacity=2))
        with resources[0].request() as request:
            yield request
            start = float(env.now)
            yield env.timeout(work.segment_s[number])
        return start

    same(work, 2, "fifo", simpy_starts(work, serve))


@pytest.mark.parametrize("seed", range(2))
def test_sjf_is_a_priority_resource_of_simpy(seed: int) -> None:
    import simpy

    # a preemptive one maps to none of these policies: it compares priorities of the time of the request, and a running
    # job's remaining time is less than that
    work = poisson(np.random.default_rng(seed), 0.95, 2, exponential)
    resources: list[simpy.PriorityResource] = []

    def serve(env: simpy.Environment, number: int) -> Generator[Any, Any, float]:
        if not resources:
            resources.append(simpy.PriorityResource(env, capacity=2))
        with resources[0].request(priority=work.segment_s[number]) as request:
            yield request
            start = float(env.now)
            yield env.timeout(work.segment_s[number])
        return start

    same(work, 2, "sjf", simpy_starts(work, serve))


@pytest.mark.parametrize("seed", range(2))
def test_fifo_of_gangs_is_a_container_of_simpy(seed: int) -> None:
    import simpy

    rng = np.random.default_rng(seed)
    work = poisson(rng, 1.0, 2, exponential)
    work = dataclasses.replace(work, gpus=rng.integers(1, 6, work.size))
    containers: list[simpy.Container] = []

    def serve(env: simpy.Environment, number: int) -> Generator[Any, Any, float]:
        if not containers:
            containers.append(simpy.Container(env, capacity=8, init=8))
        yield containers[0].get(int(work.gpus[number]))
        start = float(env.now)
        yield env.timeout(work.segment_s[number])
        yield containers[0].put(int(work.gpus[number]))
        return start

    same(work, 8, "fifo", simpy_starts(work, serve))


def same(work: Workload, gpus: int, policy: str, expected: Floats) -> None:
    """The same waits, but for the rounding of sums of fractions; and there are waits."""
    found = simulate(work, cluster([gpus], work, pool=True), policy).outcome().jobs["start_s"].to_numpy()
    assert (expected - work.submit).mean() > 0.2 * SCALE_S
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
