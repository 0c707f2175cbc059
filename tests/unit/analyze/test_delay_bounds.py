"""What is not known for sure widens the range of a cause; what is known leaves it exact. Cases worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.analyze import delay_bounds, delays, doubts, occupancy
from gpuctl.analyze.explain import explain
from gpuctl.analyze.run import Options
from gpuctl.core.causes import CAUSES, main_cause, may_be_main
from gpuctl.store.database import Store
from tests.unit.analyze.failure_store import Site
from tests.unit.analyze.test_delays import holdings, servers, waits

if TYPE_CHECKING:
    from pathlib import Path

INF = float("inf")


def ranges(cluster: delays.Cluster, asked: delays.Waits, known: delay_bounds.Doubts) -> dict[str, tuple[float, float]]:
    low, high = delay_bounds.bounds(asked, cluster, delays.states(asked, cluster), known)
    return {cause: (low[0, k], high[0, k]) for k, cause in enumerate(CAUSES)}


@pytest.fixture
def full() -> delays.Cluster:
    """Two servers of 4 GPUs, both held until 30, then one of them until 50; no quota."""
    held = holdings((0, 30, 4, 0), (0, 50, 4, 0))
    return delays.Cluster(held, (servers([4, 4], [0, 0], (0, 30, 0, 4), (0, 50, 1, 4)),), np.array([INF]), 0.0)


def test_without_doubts_both_ends_are_the_seconds_themselves(full: delays.Cluster) -> None:
    asked = waits((10, 40, 4, 0))
    assert ranges(full, asked, delay_bounds.Doubts()) == {
        "fair_share": (0, 0), "capacity": (20, 20), "fragmentation": (0, 0), "scheduler": (10, 10),
    }  # fmt: skip
    assert not delay_bounds.Doubts()


def test_quotas_that_may_be_smaller_open_what_they_would_forbid(full: delays.Cluster) -> None:
    # with its 4 GPUs, the queue would hold 12 until 30 and 8 until 40
    from_0, least = np.zeros(1), np.full(1, 8.0)
    found = ranges(
        full, waits((10, 40, 4, 0)), delay_bounds.Doubts(delay_bounds.Limits(from_0, (least,), np.array([INF]), 0.0))
    )
    assert found["fair_share"] == (0, 20)
    assert found["capacity"] == (0, 20)
    assert found["scheduler"] == (10, 10)
    sure = delay_bounds.Limits(from_0, (least,), np.array([8.0]), 0.0)
    held_to = replace(full, quotas=np.array([8.0]))
    assert ranges(held_to, waits((10, 40, 4, 0)), delay_bounds.Doubts(sure))["fair_share"] == (20, 20)


def test_larger_servers_open_capacity_and_never_close_what_was_free(full: delays.Cluster) -> None:
    larger = doubts.larger(full.pools[0], np.array([8, 4]))
    found = ranges(full, waits((10, 40, 4, 0)), delay_bounds.Doubts(larger=(larger,)))
    assert found["capacity"] == (0, 20)
    assert found["scheduler"] == (10, 30)


def test_a_server_without_a_job_for_hours_may_have_been_down() -> None:
    hour = 3600.0
    held = holdings((0, 10 * hour, 4, 0), (5 * hour, 6 * hour, 4, 0))
    pool = servers([4, 4], [0, 0], (0, 10 * hour, 0, 4), (5 * hour, 6 * hour, 1, 4))
    cluster = delays.Cluster(held, (pool,), np.array([INF]), 0.0)
    asked = waits((hour, 5 * hour, 4, 0))
    gone, at, _ = doubts.perhaps_gone(pool, held, 0.0, 0.0, told=False)
    assert not at.size
    found = ranges(cluster, asked, delay_bounds.Doubts(gone=(gone,)))
    assert found["capacity"] == (0, 4 * hour)
    assert found["scheduler"] == (0, 4 * hour)
    told, _, _ = doubts.perhaps_gone(pool, held, 0.0, 0.0, told=True)
    assert not told.start.size


def test_jobs_from_before_the_log_may_hold_no_more_than_was_ever_free_since() -> None:
    # server 0 has 8 GPUs, of which at most 2 are free at once after 100 s; at 200 s the log has settled
    held = holdings((0, 300, 4, 0), (210, 240, 2, 0), (400, 1000, 1, 0))
    pool = servers([8], [0], (0, 300, 0, 4), (210, 240, 0, 2), (400, 1000, 0, 1))
    gone, at, change = doubts.perhaps_gone(pool, held, 0.0, 200.0, told=True)
    times = np.array([0.0, 199.0, 200.0, 210.0, 500.0, 900.0])
    assert occupancy.step(times, at, change).tolist() == [8, 8, 4, 2, 2, 0]
    free, _ = occupancy.free_and_open(times, occupancy.joined(pool, gone), [])
    assert free.tolist() == [0, 0, 0, 0, 5, 7]


def test_a_log_settles_where_its_waits_are_explained_from_some_time_on() -> None:
    start, free = np.arange(0.0, 100_000.0, 1000.0), np.zeros(100)
    free[:20] = 1000.0
    assert doubts.settled(start, free, 0.0, 99_000.0) == 19_000
    free[:] = 1000.0
    assert doubts.settled(start, free, 0.0, 99_000.0) == 0


def test_where_starts_exceed_a_quota_it_did_not_hold(full: delays.Cluster) -> None:
    cluster = replace(full, quotas=np.array([4.0]))
    asked = waits((10, 40, 4, 0))
    assert ranges(cluster, asked, delay_bounds.Doubts())["fair_share"] == (30, 30)
    found = ranges(cluster, asked, delay_bounds.Doubts(broken={0: (0.0, 20.0)}))
    assert found == {
        "fair_share": (20, 30), "capacity": (0, 10), "fragmentation": (0, 0), "scheduler": (0, 0),
    }  # fmt: skip


def test_a_main_cause_lies_above_the_most_of_every_other() -> None:
    assert main_cause({"capacity": (5, 9), "fair_share": (0, 4)}) == "capacity"
    assert main_cause({"capacity": (4, 9), "fair_share": (0, 4)}) is None
    assert may_be_main({"capacity": (4, 9), "fair_share": (0, 4), "scheduler": (0, 3)}) == ["capacity", "fair_share"]
    assert main_cause({"capacity": (0, 0), "fair_share": (0, 0)}) is None


def test_waits_that_stated_quotas_do_not_explain_may_be_for_limits_that_no_file_states(tmp_path: Path) -> None:
    with Store(tmp_path / "t.duckdb", write=True) as store:
        site = Site(store)
        # whose queues are no partitions with machines of their own
        store.execute("UPDATE clusters SET source_format = 'philly-jobs'")
        site.machine("m1")
        site.job("first", ("completed", 0, 600), gpus=1)
        # 7 GPUs are free, and 7 of the quota, for the hour in which it waits for one
        site.job("late", ("completed", 60, 120), gpus=1)
    with Store(tmp_path / "t.duckdb") as store:
        wait = explain(store, "late", Options(quotas={"q": 8.0}, borrow_below=0.0)).attempts[0].wait
    assert wait is not None
    assert {part.cause: (part.low_s, part.seconds, part.high_s) for part in wait.parts} == {
        "fair_share": (0, 0, 3600), "capacity": (0, 0, 0), "fragmentation": (0, 0, 0), "scheduler": (0, 3600, 3600),
        "ineligible": (0, 0, 0),
    }  # fmt: skip
