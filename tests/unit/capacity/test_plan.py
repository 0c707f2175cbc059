"""Plans: goals, demand, futures and sizes, against values worked out by hand and against every size tried."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.capacity import demand, futures
from gpuctl.capacity.goal import parse_goal, parse_horizon
from gpuctl.capacity.run import ALL, Question, plan
from gpuctl.capacity.sizes import kind_of, least, resized, without
from gpuctl.core.errors import UsageError
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.run import replay
from gpuctl.spread.engine import Engine

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from plan import made

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Cluster, Workload

WEEK_S = 604_800.0


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Workload:
    path = tmp_path_factory.mktemp("plan") / "jobs.csv"
    made(path, 10, 0.0, 3)
    return read_jobs(path, ("gpu",))


def test_goals_bound_what_they_say() -> None:
    waits = np.array([0.0] * 18 + [1800.0, 7200.0])
    p95, over, mean = (parse_goal(text) for text in ("p95-wait=1h", "wait-over-1h=5%", "mean-wait=30min"))
    # one job of twenty waits for over an hour: both forms of the goal are just met
    assert (p95.of(waits), p95.most) == (1800.0, 3600.0)
    assert (over.of(waits), over.most) == (5.0, 5.0)
    assert (mean.of(waits), mean.most) == (450.0, 1800.0)
    assert parse_goal("p50-wait=2d").of(np.append(waits, math.inf)) == 0.0
    assert parse_goal("mean-wait=1s").of(np.append(waits, math.inf)) == math.inf
    assert [parse_horizon(text) for text in ("26w", "1q", "3mo", "1y")] == [26, 13, 13, 52]
    for text in ("p95=1h", "p95-wait=0s", "p00-wait=1h", "wait-over-1h=100%", "mean-wait=1 year"):
        with pytest.raises(UsageError):
            parse_goal(text)
    with pytest.raises(UsageError):
        parse_horizon("0w")


@given(st.integers(-40, 90), st.integers(1, 9))
def test_the_search_finds_the_least_size_wherever_it_is(truth: int, step: int) -> None:
    low, high = -30, 60
    tried: list[int] = []

    def met(size: int) -> bool:
        assert low <= size <= high
        tried.append(size)
        return size >= truth

    assert least(met, low, high, step) == (math.inf if truth > high else max(truth, low))
    assert len(set(tried)) == len(tried)


def test_growth_without_noise_is_found_and_goes_on() -> None:
    gpu_h = 1000 * 1.02 ** np.arange(30)
    weeks = demand.Weeks(np.arange(30) * WEEK_S, gpu_h, np.full(30, 9), np.full(30, 3))
    found = demand.growth(gpu_h)
    assert found is not None
    assert found.shown
    assert found.weekly == pytest.approx(0.02, abs=1e-4)
    ahead = demand.forecast(weeks, 13)
    truth = 1000 * np.mean(1.02 ** np.arange(39, 43))
    assert ahead.model == "trend"
    assert ahead.middle == pytest.approx(truth, rel=0.01)
    assert demand.farthest(weeks) == 15
    assert demand.farthest(demand.Weeks(np.zeros(7), np.ones(7), np.ones(7, int), np.ones(7, int))) == 0


def test_weeks_end_with_the_last_submission(jobs: Workload) -> None:
    weeks = demand.weeks_of(jobs)
    assert weeks.count == 9
    inside = jobs.submit >= weeks.start_s[0]
    assert weeks.start_s[-1] + WEEK_S == jobs.submit.max()
    assert weeks.jobs.sum() == inside.sum()
    assert weeks.gpu_h.sum() == pytest.approx((jobs.true_run_time * jobs.gpus)[inside].sum() / 3600)


@pytest.mark.parametrize("factor", [0.3, 1.0, 2.6])
def test_futures_have_the_demand_by_jobs_that_there_were(jobs: Workload, factor: float) -> None:
    weeks = demand.weeks_of(jobs)
    wanted = factor * float(weeks.gpu_h.mean())
    made = [futures.future(jobs, weeks, wanted, 5, np.random.default_rng(seed)) for seed in (1, 1)]
    assert made[0].ids == made[1].ids
    found = made[0]
    gpu_h = (found.true_run_time * found.gpus).sum() / 3600
    largest = (jobs.true_run_time * jobs.gpus).max() / 3600
    assert gpu_h / 5 == pytest.approx(wanted, abs=8 * largest / 5)
    assert (np.diff(found.submit) >= 0).all()
    assert 0 <= found.submit.min() <= found.submit.max() <= 5 * WEEK_S
    # each job is one of the trace, at its own time of the week
    number = np.array([int(name.partition("~")[0]) for name in found.ids])
    assert (found.gpus == jobs.gpus[number]).all()
    assert (found.true_run_time == jobs.true_run_time[number]).all()
    apart = (found.submit - (jobs.submit[number] - weeks.start_s[0])) / WEEK_S
    assert np.abs(apart - apart.round()).max() < 1e-6
    assert len(set(found.ids)) == found.size


def test_the_sizes_found_are_the_first_that_meet_the_goal(jobs: Workload) -> None:
    cluster = parse_cluster("5x8", jobs)
    goal = parse_goal("p90-wait=20min")
    question = Question(goal, None, by_queue=False, draws=10, seed=4, kind=kind_of(cluster))
    found = plan(
        jobs, cluster, ("fifo-skip", {}), question, weeks_ahead=4, models={}, engine=Engine(processes=1),
        progress=lambda *_: None, notify=lambda _: None,
    )  # fmt: skip
    from gpuctl.capacity.run import _future

    for number in (0, 5):
        came, begin = _future(found.base, 1, number)

        def figure(more: int, came: Workload = came, begin: float = begin) -> float:
            [outcome] = replay(came, resized(cluster, question.kind, more), [("fifo-skip", {})])
            return goal.of((outcome.jobs["start_s"].to_numpy() - came.submit)[came.submit >= begin])

        draw = found.draws[1][number]
        answer = int(draw.least[ALL])
        assert figure(answer) <= goal.most
        # the smallest cluster is one that holds the largest gang
        assert answer == 1 - 5 + 1 or figure(answer - 1) > goal.most
        assert draw.values[answer][ALL] == figure(answer)
    low, middle, high = found.needed(1, ALL)
    assert low <= middle <= high
    met = found.values(1, ALL, int(high)) <= goal.most
    assert met.mean() >= 0.9


def test_nodes_of_a_kind_come_and_go(jobs: Workload) -> None:
    cluster: Cluster = parse_cluster("3x8+5x4", jobs)
    kind = kind_of(cluster)
    assert (kind.gpus, kind.count) == (4, 5)
    assert resized(cluster, kind, 2).gpus.tolist() == [8, 8, 8, 4, 4, 4, 4, 4, 4, 4]
    assert resized(cluster, kind, -2).gpus.tolist() == [8, 8, 8, 4, 4, 4]
    assert resized(cluster, kind_of(cluster, 8), -1).gpus.tolist() == [8, 8, 4, 4, 4, 4, 4]
    assert resized(cluster, kind_of(cluster, 16), 1).total_gpus == 44 + 16
    assert without(cluster, np.array([0, 3])).nodes == (*cluster.nodes[1:3], *cluster.nodes[4:])
    pool = parse_cluster("pool:64", jobs)
    assert [resized(pool, kind_of(pool), more).total_gpus for more in (-2, 0, 3)] == [48, 64, 88]
