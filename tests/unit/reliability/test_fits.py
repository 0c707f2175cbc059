"""Regression, times between failures, changes of rate, and lemons: on closed forms and on clusters with known rates."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import weibull_min

from gpuctl.reliability import changes, gaps, lemons, regression, survival, what_ifs
from gpuctl.reliability.causes import reason_of_line
from tests.reliability_cluster import DAY, attempt, cluster

HOUR = 3600.0


def test_two_groups_have_the_ratio_of_their_rates() -> None:
    count, days = np.array([4.0, 6, 30]), np.array([100.0, 100, 150])
    x = np.array([[1.0, 0], [1, 0], [1, 1]])
    fit = regression.poisson(x, count, np.log(days))
    assert np.exp(fit.beta) == pytest.approx([0.05, 4], rel=1e-6)
    low, high = np.exp(regression.profile(x, count, np.log(days), fit, 1))
    # twice the log likelihood ratio is 3.841 at both ends
    for end in (low, high):
        rate = count.sum() / (200 + 150 * end)
        at = count @ np.log(np.array([rate, rate, rate * end]))
        best = count @ np.log(np.array([0.05, 0.05, 0.2]))
        assert 2 * (best - at) == pytest.approx(3.8415, abs=0.01)


def test_an_interval_does_not_depend_on_the_unit_of_a_column() -> None:
    count, days = np.array([0.0, 6, 2, 9]), np.array([100.0, 100, 150, 120])
    load = np.array([-0.02, 0.01, -0.01, 0.02])
    found = []
    for unit in (1.0, 100.0):
        x = np.column_stack([np.ones(4), unit * load])
        fit = regression.poisson(x, count, np.log(days))
        found.append(np.array([fit.beta[1], *regression.profile(x, count, np.log(days), fit, 1)]) * unit)
    assert found[0] == pytest.approx(found[1], rel=1e-3)
    assert found[0][0] > 12


def test_a_group_without_failures_has_no_lower_bound() -> None:
    x = np.array([[1.0, 0], [1, 1]])
    count, offset = np.array([10.0, 0]), np.log([100.0, 30])
    fit = regression.poisson(x, count, offset)
    low, high = regression.profile(x, count, offset, fit, 1)
    assert low == -np.inf
    # 20 log(1 + 0.3 ratio) = 3.841
    assert np.exp(high) == pytest.approx((np.exp(3.8415 / 20) - 1) / 0.3, rel=1e-3)


def test_an_interval_of_a_ratio_far_from_1() -> None:
    """All failures on the least busy node: the coefficient is further away than any end that is looked for."""
    days, count = np.array([3.4, 2.5, 2.9, 2.7, 1.6, 3.3, 2.6, 2.0]), np.array([0.0, 0, 0, 0, 27, 0, 0, 0])
    x = np.column_stack([np.ones(8), days - days.mean()])
    fit = regression.poisson(x, count, np.log(days))
    low, high = regression.profile(x, count, np.log(days), fit, 1)
    assert fit.beta[1] < -12
    assert low == -np.inf
    assert fit.beta[1] < high < 0


def renewals(shape: float, rates: np.ndarray, days: float, seed: int) -> gaps.Gaps:
    """Times between failures of nodes, each with a mean of its own."""
    rng = np.random.default_rng(seed)
    rows = []
    for node, rate in enumerate(rates):
        at, scale = 0.0, 1 / rate / weibull_min(shape).mean()
        while at < days:
            gap = scale * rng.weibull(shape)
            rows.append((node, min(gap, days - at), at + gap < days))
            at += gap
    node, length, failed = zip(*rows, strict=True)
    return gaps.Gaps(np.array(node), np.array(length), np.array(failed))


def test_shape_of_times_between_failures() -> None:
    found = gaps.fit(renewals(0.6, np.full(40, 0.1), 200, 1), frailty=True)
    assert found.low < 0.6 < found.high < 1
    plain = renewals(0.6, np.full(40, 0.1), 200, 1)
    uncensored = plain.days[plain.failed]
    alone = gaps.fit(
        gaps.Gaps(np.zeros(len(uncensored), int), uncensored, np.ones(len(uncensored), bool)), frailty=False
    )
    # SciPy's fit of the same times
    assert alone.shape == pytest.approx(weibull_min.fit(uncensored, floc=0)[0], rel=2e-3)


def test_nodes_with_different_rates_do_not_look_like_clustering() -> None:
    mixed = renewals(1.0, np.array([0.02] * 30 + [0.3] * 10), 200, 2)
    assert gaps.fit(mixed, frailty=False).high < 1
    own = gaps.fit(mixed, frailty=True)
    assert own.low < 1 < own.high


def test_a_planted_change_is_dated() -> None:
    """Rates of 1 and 4 a day before and after day 70 of 100."""
    rng = np.random.default_rng(3)
    at = np.sort(np.concatenate([rng.uniform(0, 70, 70), rng.uniform(70, 100, 120)])) / 100
    found = changes.scan(at)
    assert found is not None
    assert found.p < 0.01
    assert found.share == pytest.approx(0.7, abs=0.03)


def test_a_constant_rate_has_no_change() -> None:
    """At most 1 in 100 is called one: 10 or more of 400 have a chance of 1 in 3,000."""
    rng = np.random.default_rng(4)
    p = [found.p for _ in range(400) if (found := changes.scan(np.sort(rng.uniform(size=25)))) is not None]
    assert sum(value <= changes.LEVEL for value in p) < 10
    assert np.mean(np.array(p) <= 0.5) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("mean", "nodes", "least"), [(50 / 48, 48, 7), (100 / 48, 48, 9), (200 / 48, 48, 13), (1, 1000, 8)]
)
def test_failures_that_find_a_node(mean: float, nodes: int, least: int) -> None:
    assert mean * lemons._power(np.array([mean]), 2 * nodes) == pytest.approx([least])


def node_with_outages(times: list[float], repair: float) -> list[tuple[object, ...]]:
    return [("n0", at * DAY, at * DAY + repair, "DOWN*", "Not responding") for at in times]


def test_a_repair_clears_a_node() -> None:
    """Eight outages in the first twenty days, a long repair, then no more than the others have."""
    others = [(f"n{i}", (10.0 * i + 7) * DAY, (10.0 * i + 7) * DAY + HOUR, "DOWN*", "x") for i in range(1, 40)]
    jobs = [attempt(0, 400 * DAY, "completed")]
    bad = node_with_outages([2.0 * i for i in range(1, 12)], HOUR)
    repaired = [*bad, ("n0", 30 * DAY, 31 * DAY, "DRAIN", "RMA: mainboard")]
    more = [(f"n{i}", (9.0 * i + 3) * DAY + k * 97 * DAY, (9.0 * i + 3) * DAY + k * 97 * DAY + HOUR, "DOWN*", "y")
            for i in range(1, 40) for k in range(4)]  # fmt: skip
    table = lemons.table(cluster(jobs, [*repaired, *others, *more], nodes=40)).filter(pl.col("machine") == "n0")
    assert table.select("lemon", "cleared").rows() == [("yes", "yes")]
    still = [*repaired, *node_with_outages([40 + 3.0 * i for i in range(60)], HOUR)]
    table = lemons.table(cluster(jobs, [*still, *others, *more], nodes=40)).filter(pl.col("machine") == "n0")
    assert table.select("lemon", "cleared").rows() == [("yes", "no")]


def test_rates_of_alike_nodes_are_drawn_to_their_mean() -> None:
    rng = np.random.default_rng(5)
    days = np.full(200, 50.0)
    alike = what_ifs.posterior(rng.poisson(0.04 * days), days)
    assert np.ptp(alike) < 0.02
    mixed = rng.poisson(np.where(np.arange(200) < 10, 0.5, 0.02) * days)
    assert what_ifs.posterior(mixed, days)[:10].min() > 0.2


def test_failures_soon_after_the_start() -> None:
    rng = np.random.default_rng(6)
    hours = rng.exponential(10, 300)
    gap, p = survival.not_exponential(hours, np.ones(300, bool))
    assert gap is not None
    assert p is not None
    assert (gap < 0.1, p > 0.01) == (True, True)
    hours[:40] = 0.1
    assert survival.not_exponential(hours, np.ones(300, bool))[1] == pytest.approx(0, abs=1e-6)


def test_a_full_disk_of_three_users_is_the_file_system() -> None:
    full = [attempt(i, DAY + 600 * i, "failed", reason="disk_full") for i in range(3)]
    alone = attempt(3, 9 * DAY, "failed", reason="disk_full")
    found = cluster([*full, alone, attempt(4, 10 * DAY, "completed")])
    assert found.attempts["cause"].to_list()[:4] == [*["infrastructure_software"] * 3, "user_program"]
    assert found.incidents.select("shared", "attempts").rows() == [("file system", 3)]


@pytest.mark.parametrize(
    ("reason", "line", "told"),
    [
        ("cuda_init_failed", "couldn't communicate with the NVIDIA driver", "driver"),
        ("cuda_init_failed", "No devices were found", "cuda_init_failed"),
        ("container_image_error", "toomanyrequests: You have reached your pull rate limit", "registry"),
        ("container_image_error", "manifest for x:lates not found", "container_image_error"),
    ],
)
def test_lines_that_name_infrastructure(reason: str, line: str, told: str) -> None:
    assert reason_of_line(reason, line) == told


def test_the_health_check_pays_where_failures_come_early() -> None:
    jobs = [attempt(i, 300.0 + 4 * DAY * i, "node_fail", start_s=4 * DAY * i, queued_s=0.0) for i in range(8)]
    jobs.append(attempt(8, 40 * DAY, "completed"))
    events = [(f"n{i}", 4 * DAY * i + 290, 4 * DAY * i + HOUR, "DOWN*", "Not responding") for i in range(8)]
    known = cluster(jobs, events)
    infra = known.attempts.filter(pl.col("cause").str.starts_with("infrastructure"))
    [first, _] = what_ifs._health_checks(known, infra)
    # eight failures of 300 s on 8 GPUs, half of them found, less 30 s for nine starts
    assert first[2] == pytest.approx((0.5 * 8 * 300 * 8 - 30 * 9 * 8) / 3600)


def test_without_node_events_only_failures_are_tested() -> None:
    """Ten nodes, 25 failures, 7 of them on one: q is 10 x p, not 20 x p."""
    rows = [(0, k) for k in range(7)] + [(i, k) for i in range(1, 10) for k in range(2)]
    ended = [
        attempt(10 * number + node, (k + 1) * 10 * DAY - node * HOUR, "node_fail", start_s=k * 10 * DAY, queued_s=0.0)
        for number, (node, k) in enumerate(rows)
    ]
    # all are busy for 71 days
    since = [70 * DAY] + [20 * DAY] * 9
    busy = [attempt(10_000 + i, 71 * DAY, "completed", start_s=since[i], queued_s=0.0) for i in range(10)]
    first = lemons.table(cluster([*ended, *busy], nodes=10)).row(0, named=True)
    assert (first["machine"], first["failures"]) == ("n0", 7)
    assert first["q"] == pytest.approx(10 * first["p"])


def gangs(rng: np.random.Generator, rates: np.ndarray) -> lemons.Gangs:
    """Failures of 400 gangs of 2 to 8 nodes, a day each: it is not known of which node."""
    size = len(rates)
    share, parts, met = np.zeros(size), np.zeros(size, np.int64), {}
    for m in (2, 4, 8):
        time, hit, count = np.zeros(size), np.zeros(size), 0
        for _ in range(400):
            nodes = rng.choice(size, m, replace=False)
            time[nodes] += 1
            if rng.random() < rates[nodes].sum():
                hit[nodes] += 1
                count += 1
        share += hit / m
        parts += (hit * round(lemons.UNIT / m)).astype(np.int64)
        met[m, ""] = count, m * time / time.sum()
    return lemons.Gangs(share, parts, met)


def test_gangs_whose_node_is_not_known_find_a_lemon_and_no_sound_node() -> None:
    """Sixteen nodes, no incident of a single one: p of sound ones is not below its level too often (150 clusters)."""
    rng = np.random.default_rng(11)
    kind, none, days = pl.Series(["a"] * 16), np.zeros(16, int), np.full(16, 100.0)
    low = 0
    for _ in range(150):
        found = gangs(rng, np.full(16, 0.02))
        p = lemons._with_gangs(kind, none, days, found, np.ones(16))
        low += int((p <= 0.05 / 16).any())
    # a rate of 5 % has more than 14 in one of 80 of such tests
    assert low <= 14
    worst = gangs(rng, np.where(np.arange(16) == 3, 0.2, 0.01))
    p = lemons._with_gangs(kind, none, days, worst, np.ones(16))
    assert p.argmin() == 3
    assert p[3] < 1e-4


def test_incidents_of_nodes_alone_keep_their_exact_probability() -> None:
    kind, count, days = pl.Series(["a"] * 16), np.array([6, *[1] * 14, 0]), np.full(16, 10.0)
    alone, _ = lemons._test(kind, count, days)
    none = lemons.Gangs(np.zeros(16), np.ones(16, np.int64), {})
    parts = lemons._with_gangs(kind, count, days, none, alone)
    assert alone[0] == pytest.approx(0.001076, rel=1e-3)
    # one part more than six is seven
    assert parts[0] == pytest.approx(float(lemons.at_least(np.array([7.0]), 20, np.array([1 / 16]))[0]))
