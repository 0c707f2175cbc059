"""Worked values: intervals, tests, causes, incidents, and the time of one run."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from gpuctl.reliability import interruptions, lemons, survival, what_ifs, xids
from gpuctl.reliability.intervals import Held, union
from gpuctl.reliability.pace import Point, pace, split
from gpuctl.reliability.statistics import alike, at_least, garwood
from gpuctl.reliability.training_time import Accounts, Assumed, linear_ettr, modelled_ettr
from tests.reliability_cluster import attempt, cluster

HOUR, DAY = 3600.0, 86_400.0


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [
        (0, 0, 3.6889),
        (1, 0.0253, 5.5716),
        (5, 1.6235, 11.6683),
        (10, 4.7954, 18.3904),
        (35, 24.3788, 48.6765),
        (103, 84.0719, 124.9175),
    ],
)
def test_exact_interval_of_a_count(count: int, low: float, high: float) -> None:
    assert garwood(count) == pytest.approx((low, high), abs=1e-4)


def test_equal_rates_of_groups() -> None:
    assert alike(np.array([2.0, 4.0, 9.0]), np.full(3, 100.0)) == pytest.approx(math.exp(-2.6))


def test_one_node_of_sixteen() -> None:
    share = np.array([1 / 16, 1 / 16])
    assert at_least(np.array([6, 3]), 20, share) == pytest.approx([0.001076, 0.1259], rel=1e-3)


def test_median_with_censored_run_times() -> None:
    hours, failed = np.array([1.0, 2, 3, 4]), np.array([True, False, True, False])
    assert survival.kaplan_meier_quantile(hours, failed) == 3


def test_mean_time_to_failure_with_censored_run_times() -> None:
    """Attempts of 1 h failed, 2 h, 3 h failed, 4 h: 10 h over 2 failures."""
    states = ["node_fail", "completed", "node_fail", "completed"]
    jobs = [attempt(i, (i + 1) * HOUR + 20 * HOUR * i, s, start_s=20 * HOUR * i) for i, s in enumerate(states)]
    row = survival.table(cluster(jobs)).row(0, named=True)
    found = [row[name] for name in ("mttf_h", "mttf_low_h", "mttf_high_h", "km_median_h")]
    assert found == pytest.approx([5, 10 / 7.2247, 10 / 0.2422, 3], rel=1e-3)


def test_attempts_that_run_already_enter_at_the_begin_of_the_window() -> None:
    """Seen from 2 h on: lives of 3 h failed and 4 h are at risk at 3 h; that of 1 h was never seen."""
    hours, failed = np.array([3.0, 4, 1.5]), np.array([True, False, True])
    entered = np.array([2.0, 2, 0])
    moments, curve = survival.kaplan_meier(hours, failed, entered)
    # at 1.5 h only the third is at risk, at 3 h the other two
    assert moments.tolist() == [1.5, 3, 4]
    assert curve.tolist() == [0, 0, 0]
    later = survival.kaplan_meier(hours[:2], failed[:2], entered[:2])
    assert later[1].tolist() == [0.5, 0.5]


def test_linear_formula_of_the_share_of_running_time() -> None:
    assert linear_ettr(8, 0.02, 7200, 300, 600) == pytest.approx(0.95253, abs=5e-6)
    assert modelled_ettr(8, 0.02, 7200, 300, 600) == pytest.approx(0.95229, abs=5e-6)
    # RSC-1 as one job of 16,000 GPUs; 100,000 GPUs at the rate of RSC-2
    assert linear_ettr(2000, 6.5e-3, 3600, 0, 300) == pytest.approx(0.684, abs=5e-4)
    assert linear_ettr(2000, 6.5e-3, 300, 0, 300) == pytest.approx(0.932, abs=5e-4)
    assert linear_ettr(12_500, 2.34e-3, 120, 0, 120) == pytest.approx(0.939, abs=5e-4)
    assert linear_ettr(2000, 0.1, 7200, 0, 600) is None
    assert linear_ettr(8, 0.02, 7200, 300, 600, queue=3600) == pytest.approx(0.95253 / (1 + 0.16 / 24), abs=1e-5)


def test_the_optimum_is_flat() -> None:
    mean = DAY / (8 * 0.02)
    best = what_ifs.best(300, mean)
    assert best == pytest.approx(17_800, abs=60)
    share = modelled_ettr(8, 0.02, best, 300, 600)
    assert share == pytest.approx(0.96596, abs=5e-6)
    costs = [share - (modelled_ettr(8, 0.02, best * f, 300, 600) or 0) for f in (0.5, 2, 0.25)]
    assert costs == pytest.approx([0.008, 0.008, 0.034], abs=1e-3)
    ends = [share - (modelled_ettr(8, 0.02, c, 300, 600) or 0) for c in (8000, 40_000)]
    assert ends == pytest.approx([0.0106, 0.0110], abs=6e-5)


@pytest.mark.parametrize(("share", "spares"), [(0.99, 2), (0.999, 3)])
def test_spares_for_a_job_of_128_nodes(share: float, spares: int) -> None:
    down = 128 * 6.5e-3 * 0.5
    assert down == pytest.approx(0.416)
    assert what_ifs.spares_for(down, 128, share) == spares


@pytest.mark.parametrize(("interval", "expected"), [(7200, 0.94081), (11_384, 0.94558)])
def test_expected_share_of_running_time(interval: float, expected: float) -> None:
    assert modelled_ettr(8, 0.05, interval, 300, 600) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(("hours", "daly", "best"), [(24, 116.69, 116.69), (6, 56.71, 56.71), (0.25, 9.141, 9.167)])
def test_checkpoint_intervals_of_daly(hours: float, daly: float, best: float) -> None:
    found = [function(300, hours * HOUR) / 60 for function in (what_ifs.daly, what_ifs.best)]
    assert found == pytest.approx([daly, best], abs=0.006)


def test_node_time_counts_once() -> None:
    node, start, end = np.array([0, 0, 1]), np.array([0.0, 50, 10]), np.array([100.0, 150, 20])
    spans = union(node, start, end)
    assert spans.rows() == [(0, 0, 150), (1, 10, 20)]
    held = Held(node, start, end, np.array([2.0, 1, 8]))
    assert held.between(np.array([0, 1]), np.array([60.0, 0]), np.array([120.0, 15])).tolist() == [2 * 40 + 60, 40]


def test_repeated_lines_of_an_xid_are_one_event() -> None:
    lines = pl.DataFrame(
        {"node": [0, 0, 0, 0], "ts_s": [0.0, 3, 7, 20], "device": ["a"] * 4, "xid": [79] * 4, "message": [""] * 4}
    )
    assert xids.events(lines).select("ts_s", "lines", "class").rows() == [(0, 3, "hardware"), (20, 1, "hardware")]


def test_time_of_a_run_that_a_node_ended() -> None:
    """Spec vector: 1,000 s between checkpoints of 50 s, load 300 s, 600 s lost, 300 s until the death was noticed."""
    tau = 10
    first = [Point("step", 1, 910.0), Point("step", 100, 1900.0), Point("saved", 100, 1950.0)]
    first += [Point("step", 200, 2950.0), Point("saved", 200, 3000.0), Point("step", 260, 3600.0)]
    second = [Point("loaded", 200, 4500.0), Point("step", 300, 5500.0), Point("saved", 300, 5550.0)]
    of = pace([first, second])
    assert (of.step_s, of.write_s, of.interval_steps) == (tau, 50, 100)
    lost = split(3300, 600, first, of, 0, begun=0, resumed=200, whole=False)
    done = split(2350, 4200, second, of, 0, begun=200, resumed=None, whole=True)
    assert lost is not None
    assert done is not None
    assert (lost.productive, lost.checkpoint, lost.load, lost.lost, lost.stalled) == (2000, 100, 300, 600, 300)
    assert (done.productive, done.checkpoint, done.load) == (2000, 50, 300)


def test_precedence_of_evidence() -> None:
    """A program's traceback goes before an event; a planned drain is no evidence; a watchdog's ten minutes fit."""
    ended = [
        attempt(0, DAY, "failed"),
        attempt(1, DAY, "failed", reason="shape_error", user_reason=True),
        attempt(2, DAY, "failed"),
        attempt(3, DAY, "failed", reason="collective_timeout"),
        attempt(4, DAY, "out_of_memory"),
        attempt(5, 2 * DAY, "completed"),
    ]
    events = [
        ("n0", DAY - 605, DAY + HOUR, "DRAIN", "health check: IB link down"),
        ("n1", DAY - 10, DAY + HOUR, "DRAIN", "health check: ECC error"),
        ("n2", DAY - 10, DAY + HOUR, "DRAIN", "planned maintenance"),
    ]
    found = cluster(ended, events).attempts
    assert found["cause"].to_list() == [
        "infrastructure_hardware",
        "user_program",
        "unknown",
        "unknown",
        "user_program",
        "completed",
    ]
    assert found["component"][0] == "network link"


def test_nodes_of_a_rack_that_go_down_together_are_one_incident() -> None:
    ended = [attempt(i, DAY + i, "node_fail") for i in range(4)] + [attempt(4, 2 * DAY, "completed")]
    known = cluster(ended, [(f"n{i}", DAY + i, DAY + HOUR, "DOWN*", "Not responding") for i in range(4)])
    assert known.incidents.select("shared", "node", "attempts", "component").rows() == [
        ("rack", None, 4, "switch or power")
    ]
    assert lemons.table(known)["outages"].sum() == 0


def test_a_run_has_the_share_of_its_own_time() -> None:
    """The run above, of two attempts of one job: eligible at 0 and 4,020 s, started at 600 and 4,200 s."""
    common = {"job": "1", "shown": "1", "name": "n", "user": "u", "has_log": True}
    jobs = [
        attempt(0, 3900, "node_fail", start_s=600.0, **common),
        attempt(1, 6550, "completed", start_s=4200.0, eligible_s=4020.0, **common | {"attempt": 1}),
    ]
    marks = [(0, "step", 1, 910.0), (0, "step", 100, 1900.0), (0, "saved", 100, 1950.0), (0, "step", 200, 2950.0)]
    marks += [(0, "saved", 200, 3000.0), (0, "step", 260, 3600.0), (1, "loaded", 200, 4500.0)]
    marks += [(1, "step", 300, 5500.0), (1, "saved", 300, 5550.0), (1, "step", 400, 6550.0)]
    points = pl.DataFrame(
        [(number, kind, step, ts, None) for number, kind, step, ts in marks],
        schema={"number": pl.Int64, "kind": pl.String, "step": pl.Int64, "ts_s": pl.Float64, "value": pl.Float64},
        orient="row",
    )
    accounts = Accounts(cluster(jobs, nodes=1), points, Assumed())
    row = accounts.table(accounts.spent()).row(0, named=True)
    assert (row["ettr"], row["ettr_running"]) == pytest.approx((0.6221, 0.7080), abs=5e-5)
    hours = [row[f"{kind}_h"] for kind in ("queue", "run", "productive", "checkpoint", "load", "lost", "stalled")]
    assert hours == pytest.approx([s / HOUR for s in (780, 5650, 4000, 150, 600, 600, 300)])


def test_a_double_bit_error_in_telemetry_is_evidence_and_a_corrected_one_is_none() -> None:
    ended = [
        attempt(0, DAY, "failed"),
        attempt(1, DAY, "failed"),
        attempt(2, DAY, "failed"),
        attempt(3, 2 * DAY, "completed"),
    ]
    counters = [("n0", DAY - 60, "ecc_dbe"), ("n1", DAY - 60, "pcie"), ("n2", DAY - 30, "lost")]
    found = cluster(ended, counters=counters).attempts
    assert found.select("cause", "component", "evidence").rows()[:3] == [
        ("infrastructure_hardware", "memory", "counter"),
        ("unknown", None, None),
        ("infrastructure_hardware", "GPU", "counter"),
    ]


def test_xids_by_month_and_in_pairs() -> None:
    """Days 0 and 40 since 1970: two events of one node within 5 s are a pair, whatever their devices."""
    xids_seen = [
        ("n0", 100.0, "a", 79, ""), ("n0", 103.0, "b", 48, ""), ("n0", 104.0, "a", 79, ""),
        ("n1", 40 * DAY, "a", 79, ""), ("n1", 40 * DAY + 6, "a", 48, ""),
    ]  # fmt: skip
    known = cluster([attempt(0, 60 * DAY, "completed")], xids=xids_seen)
    months = interruptions.xids_by_month(known)
    assert months.select("month", "xid", "events").rows() == [
        ("1970-01", 48, 1), ("1970-01", 79, 1), ("1970-02", 48, 1), ("1970-02", 79, 1)
    ]  # fmt: skip
    assert months["node_days"].to_list() == pytest.approx([31, 31, 28, 28])
    assert interruptions.xid_pairs(known).rows() == [(48, 79, 1, 1, 50.0, 50.0)]


def test_no_intervals_join_to_none() -> None:
    none = np.empty(0)
    assert union(none.astype(np.int64), none, none).rows() == []
    at = np.array([1.0, 2.0])
    assert union(np.array([0, 1]), at, at).rows() == []
