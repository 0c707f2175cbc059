"""Worked values: intervals, tests, causes, incidents, and the time of one run."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from gpuctl.reliability import lemons, survival, what_ifs, xids
from gpuctl.reliability.intervals import Held, union
from gpuctl.reliability.pace import Point, pace, split
from gpuctl.reliability.statistics import alike, at_least, garwood
from gpuctl.reliability.training_time import modelled_ettr
from tests.reliability_cluster import attempt, cluster

HOUR, DAY = 3600.0, 86_400.0


@pytest.mark.parametrize(
    ("count", "low", "high"),
    [(0, 0, 3.6889), (1, 0.0253, 5.5716), (5, 1.6235, 11.6683), (35, 24.3788, 48.6765), (103, 84.0719, 124.9175)],
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
