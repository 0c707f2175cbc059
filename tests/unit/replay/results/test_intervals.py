from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t

from gpuctl.replay.results import intervals
from gpuctl.replay.results.intervals import UNKNOWN, of_draws, of_mean, stretches
from tests.unit.replay.outcomes import make_outcome, make_workload

DAY = 86400.0


def test_stretches_on_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    # on a GPU of its own each, a job of 6 h on even days and of 12 h on odd ones; the last day has two
    hours = [6.0, 12.0] * 7 + [0.0]
    submit = [DAY * k for k in range(15)]
    work = [max(3600 * h, 1.0) for h in hours]
    workload = make_workload(submit, work, [1] * 15)
    outcome = make_outcome(workload, [[(s, s + w, "finished")] for s, w in zip(submit, work, strict=True)])
    # nobody waits: the capacity is the one GPU that is held at most; the load is 126 h in 14 days, 0.375; each of 14
    # parts is 0.125 / 14 away from their mean, and neighbours lie on other sides of it
    error = math.sqrt(14 * (0.125 / 14) ** 2 * 14 / 13)
    monkeypatch.setattr(intervals, "TURNOVER", 1e-9)
    assert stretches([outcome]) == pytest.approx(((1 - 0.375) / error) ** 2, rel=1e-3)
    assert stretches([outcome, make_outcome(workload, [[]] * 15)]) == 0
    assert stretches([]) == 0


def test_the_capacity_is_what_is_held_while_jobs_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    # of 4 GPUs 3 are held while a gang of 2 waits, for a day; afterwards all are, and nobody waits
    submit, gpus = [0.0, 0.0, 20 * DAY], [3, 2, 1]
    workload = make_workload(submit, [DAY, DAY, DAY], gpus)
    stays = [(0.0, DAY), (DAY, 2 * DAY), (20 * DAY, 21 * DAY)]
    outcome = make_outcome(workload, [[(a, b, "finished")] for a, b in stays])
    loads = np.zeros(14)
    loads[[0, 13]] = 5 / 20, 1 / 20
    apart = loads - loads.mean()
    shared = sum(2 * (1 - lag / 3) * float(apart[:-lag] @ apart[lag:]) for lag in (1, 2))
    error = math.sqrt((float(apart @ apart) + max(shared, 0)) * 14 / 13)
    monkeypatch.setattr(intervals, "TURNOVER", 1e-9)
    assert stretches([outcome]) == pytest.approx(((3 - 6 / 20) / error) ** 2)


def test_a_trace_is_short_next_to_its_long_jobs() -> None:
    # every GPU-second but a few is of jobs of two days: 40 days are five times four of these
    submit, work = [0.0, 10 * DAY, 20 * DAY, 30 * DAY, 40 * DAY], [2 * DAY, 2 * DAY, 60.0, 2 * DAY, 60.0]
    workload = make_workload(submit, work, [1] * 5)
    outcome = make_outcome(workload, [[(s, s + w, "finished")] for s, w in zip(submit, work, strict=True)])
    assert stretches([outcome]) == pytest.approx(5, rel=1e-3)


def test_a_trace_that_shows_no_week_is_too_short() -> None:
    for days, told in ((9.0, False), (30.0, True)):
        submit = np.linspace(0, days * DAY, 300)
        workload = make_workload(submit.tolist(), [600.0] * 300, [1] * 300)
        outcome = make_outcome(workload, [[(s, s + 600, "finished")] for s in submit.tolist()])
        assert (stretches([outcome]) > 0) == told


def test_too_few_stretches_show_nothing() -> None:
    rng = np.random.default_rng(1)
    submit, values = np.sort(rng.uniform(0, 1e6, 500)), rng.normal(0, 1, 500)
    assert of_mean(values, submit, stretches=5.9) == UNKNOWN
    assert of_mean(values, submit, stretches=6.1) != UNKNOWN
    assert of_mean(values[:1], submit[:1], stretches=math.inf) == UNKNOWN
    assert of_mean(values, np.zeros(500), stretches=math.inf) == UNKNOWN
    # all that differs is in one part: one backlog
    once = np.where(submit < 1e5, values, 0.0)
    assert of_mean(once, submit, np.abs(once), stretches=math.inf) == UNKNOWN
    assert of_mean(np.zeros(500), submit, stretches=10.0) == (0, 0, None)


def test_an_interval_on_paper() -> None:
    # ten parts of two jobs with waits of 100 and 100 + d; d is 40 and 60 in turn
    submit = np.repeat(np.arange(10.0), 2) + np.tile([0.0, 0.5], 10)
    values = np.repeat([40.0, 60.0] * 5, 2)
    level = 100 + values / 2
    low, high, p = of_mean(values, submit, level, stretches=math.inf)
    sums, levels = 2 * np.array([40.0, 60.0] * 5), 2 * np.array([120.0, 130.0] * 5)

    def shared(x: np.ndarray) -> float:
        # neighbours in reach: 4 (10 / 100)^(2/9) = 2.4
        common = sum(2 * (1 - lag / 3) * float(x[:-lag] @ x[lag:]) for lag in (1, 2))
        return float(x @ x) + max(common, 0.0)

    ratio, counted = sums.sum() / levels.sum(), levels.sum() ** 2 / shared(levels)
    error = math.sqrt(shared(sums - ratio * levels) * counted / (counted - 1)) / levels.sum()
    spread = shared(levels - 250) * 10 / 9 / levels.sum() ** 2
    # the same from random values: r and L are apart by a t each, r more so if L is, except against its sign
    rng = np.random.default_rng(5)
    logs = t.rvs(9, size=10**6, random_state=rng) * math.sqrt(spread)
    apart = t.rvs(counted - 1, size=10**6, random_state=rng) * error
    assert ratio > t.ppf(0.975, counted - 1) * error
    more = np.where(apart < 0, 1, np.sqrt(1 + 2**2 * counted * logs**2))
    drawn = np.clip(ratio + apart * more, -2, 2) * 125 * np.exp(logs)
    assert (low, high) == pytest.approx(np.quantile(drawn, (0.025, 0.975)), rel=0.01)
    assert p == pytest.approx(2 * t.sf(ratio / error, counted - 1))
    # the load that is not known better makes the level uncertain, not the sign
    loose = of_mean(values, submit, level, stretches=100.0)
    assert loose.p == p
    assert loose.low is not None
    assert loose.high is not None
    assert 0 < loose.low < low
    assert loose.high > high
    # a level e^(t 2.4 / 100^(1/4)) times as large, and a difference of at most twice it
    assert loose.high < 2 * 125 * math.exp(t.ppf(0.975, 9) * 2.4 / 100**0.25) * (1 + 1e-9)
    back = of_mean(-values, submit, level, stretches=100.0)
    assert (back.low, back.high) == pytest.approx((-loose.high, -loose.low))
    less = of_mean(values, submit, level, stretches=100.0, share=0.9)
    assert less.low is not None
    assert less.low > loose.low


def test_more_draws_do_not_narrow_an_interval_to_a_point() -> None:
    rng = np.random.default_rng(4)
    base = rng.lognormal(5, 0.2, 400)
    values = -0.4 * base + rng.normal(0, 0.1, 400)
    few = of_draws(values[:10], base[:10], stretches=1e9)
    many = of_draws(values, base, stretches=1e9)
    assert many.low is not None
    assert many.high is not None
    assert few.low is not None
    assert few.low < many.low < -0.4 * np.exp(5.2)
    assert -0.4 * np.exp(5) < many.high < 0
    # draws differ by a factor e^0.2, two standard deviations of which the ends are apart from the mean
    assert many.low / values.mean() == pytest.approx(math.exp(1.96 * 0.2), rel=0.1)
    assert of_draws(values[:1], stretches=1e9) == UNKNOWN
    assert of_draws(values, stretches=5.0) == UNKNOWN
    assert of_draws(np.zeros(5), stretches=1e9) == (0, 0, None)


@pytest.mark.parametrize("equal", [False, True])
def test_intervals_hold_the_truth_in_a_queue_with_one_node(equal: bool) -> None:
    # exponential times between submissions and of service, load 0.7: Lindley's recursion; the mean wait is 7/3 services
    held = given = excluded = 0
    for seed in range(150):
        rng = np.random.default_rng([seed, equal])
        count = 3000
        gaps, service = rng.exponential(1 / 0.7, count), rng.exponential(1, count)
        walk = np.concatenate([[0.0], np.cumsum(service[:-1] - gaps[1:])])
        wait = walk - np.minimum.accumulate(walk)
        other = wait * rng.uniform(0.5, 1.5, count) if equal else 0.5 * wait
        submit = np.cumsum(gaps)
        # of the load: variance of the work of Poisson arrivals, 2 x 0.7 a unit of time
        independent = 0.3**2 * submit[-1] / 1.4
        low, high, _ = of_mean(other - wait, submit, (other + wait) / 2, stretches=independent)
        if low is None or high is None:
            continue
        given += 1
        truth = 0.0 if equal else -0.5 * 0.7 / 0.3
        held += low <= truth <= high
        excluded += not low <= 0 <= high
    assert given > 140
    assert held >= 0.94 * given
    assert excluded <= 0.06 * given if equal else excluded == given


def test_the_constants_are_those_that_were_checked() -> None:
    # benchmarks/coverage.py was run with these; who changes one runs it again and writes down what it prints
    assert (intervals.PARTS, intervals.LOAD_PARTS, intervals.LEAST_STRETCHES, intervals.LEAST_S) == (
        10,
        14,
        6,
        10 * DAY,
    )
    assert (intervals.LOAD_WEIGHT, intervals.LOAD_WEIGHT_DOWN, intervals.TURNOVER) == (2.4, 1.2, 4)
    assert (intervals.WIDEST, intervals.CHANGES, intervals.MOST) == (40, 2, 2)
