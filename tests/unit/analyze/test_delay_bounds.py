"""What is not known for sure widens the range of a cause; what is known leaves it exact. Cases worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.analyze import delay_bounds, delays, doubts, occupancy
from gpuctl.analyze.explain import explain
from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.core.causes import CAUSES, main_cause, may_be_main
from gpuctl.store.database import Store
from tests.unit.analyze.failure_store import Site
from tests.unit.analyze.test_delays import holdings, nodes, waits

if TYPE_CHECKING:
    from pathlib import Path

INF = float("inf")


def ranges(cluster: delays.Cluster, asked: delays.Waits, known: delay_bounds.Doubts) -> dict[str, tuple[float, float]]:
    low, high = delay_bounds.bounds(asked, cluster, delays.states(asked, cluster), known)
    return {cause: (low[0, k], high[0, k]) for k, cause in enumerate(CAUSES)}


@pytest.fixture
def full() -> delays.Cluster:
    """Two nodes of 4 GPUs, both held until 30, then one of them until 50; no quota."""
    held = holdings((0, 30, 4, 0), (0, 50, 4, 0))
    return delays.Cluster(held, (nodes([4, 4], [0, 0], (0, 30, 0, 4), (0, 50, 1, 4)),), np.array([INF]), 0.0)


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


def test_larger_nodes_open_capacity_and_never_close_what_was_free(full: delays.Cluster) -> None:
    larger = doubts.larger(full.pools[0], np.array([8, 4]))
    found = ranges(full, waits((10, 40, 4, 0)), delay_bounds.Doubts(larger=(larger,)))
    assert found["capacity"] == (0, 20)
    assert found["scheduler"] == (10, 30)


def test_a_node_without_a_job_for_hours_may_have_been_down() -> None:
    hour = 3600.0
    held = holdings((0, 10 * hour, 4, 0), (5 * hour, 6 * hour, 4, 0))
    pool = nodes([4, 4], [0, 0], (0, 10 * hour, 0, 4), (5 * hour, 6 * hour, 1, 4))
    cluster = delays.Cluster(held, (pool,), np.array([INF]), 0.0)
    asked = waits((hour, 5 * hour, 4, 0))
    gone, at, _ = doubts.possibly_unavailable(pool, held, 0.0, 0.0, told=False)
    assert not at.size
    found = ranges(cluster, asked, delay_bounds.Doubts(gone=(gone,)))
    assert found["capacity"] == (0, 4 * hour)
    assert found["scheduler"] == (0, 4 * hour)
    told, _, _ = doubts.possibly_unavailable(pool, held, 0.0, 0.0, told=True)
    assert not told.start.size


def test_jobs_from_before_the_log_may_hold_no_more_than_was_ever_free_since() -> None:
    # node 0 has 8 GPUs, of which at most 2 are free at once after 100 s; at 200 s the log has settled
    held = holdings((0, 300, 4, 0), (210, 240, 2, 0), (400, 1000, 1, 0))
    pool = nodes([8], [0], (0, 300, 0, 4), (210, 240, 0, 2), (400, 1000, 0, 1))
    gone, at, change = doubts.possibly_unavailable(pool, held, 0.0, 200.0, told=True)
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
    # or a job that ran when the log began held the 7 GPUs; for a gang of one, they cannot be scattered
    assert {part.cause: (part.low_s, part.seconds, part.high_s) for part in wait.parts} == {
        "fair_share": (0, 0, 3600), "capacity": (0, 0, 3600), "fragmentation": (0, 0, 0), "scheduler": (0, 3600, 3600),
        "ineligible": (0, 0, 0),
    }  # fmt: skip


def _parts(folder: Path, job: str, **options: Any) -> dict[str, tuple[float, float]]:
    with Store(folder / "t.duckdb") as store:
        wait = explain(store, job, Options(**options)).attempts[0].wait
    assert wait is not None
    return {part.cause: (part.low_s, part.high_s) for part in wait.parts}


def test_where_no_source_names_machines_gpus_may_have_been_free_or_not(tmp_path: Path) -> None:
    with Store(tmp_path / "t.duckdb", write=True) as store:
        site = Site(store)
        store.execute("UPDATE clusters SET source_format = 'jobs-csv'")
        site.job("first", ("completed", 0, 600), gpus=4, on=())
        site.job("late", ("completed", 60, 120), gpus=4, on=())
    every = _parts(tmp_path, "late")
    assert {every[cause] for cause in CAUSES} == {(0, 3600)}
    assert every["ineligible"] == (0, 0)


def test_a_gang_of_one_gpu_is_never_kept_by_scattered_gpus() -> None:
    # while the node may have been down, its GPUs may not have been there; they were never scattered
    hour = 3600.0
    pool = nodes([4, 4], [0, 0], (0, 10 * hour, 0, 4), (5 * hour, 6 * hour, 1, 4))
    held = holdings((0, 10 * hour, 4, 0), (5 * hour, 6 * hour, 4, 0))
    cluster = delays.Cluster(held, (pool,), np.array([INF]), 0.0)
    gone, _, _ = doubts.possibly_unavailable(pool, held, 0.0, 0.0, told=False)
    for gpus, scattered in ((1, 0), (2, 4 * hour)):
        found = ranges(cluster, waits((hour, 5 * hour, gpus, 0)), delay_bounds.Doubts(gone=(gone,)))
        assert found["fragmentation"] == (0, scattered)
        assert found["capacity"] == found["scheduler"] == (0, 4 * hour)


def test_where_racks_are_guesses_gangs_may_be_placed_as_if_there_were_none() -> None:
    # 8 GPUs are free on nodes of two guessed racks
    pool = nodes([4, 4], [0, 1], (0, 5, 0, 4), (0, 5, 1, 4))
    cluster = delays.Cluster(holdings((0, 5, 8, 0)), (pool,), np.array([INF]), 0.0)
    asked = waits((10, 40, 8, 0))
    assert ranges(cluster, asked, delay_bounds.Doubts())["fragmentation"] == (30, 30)
    free = doubts.without_racks(cluster.pools)
    found = ranges(cluster, asked, delay_bounds.Doubts(racks=(free,)))
    assert found["fragmentation"] == found["scheduler"] == (0, 30)


def test_an_unexplained_wait_without_a_reason_may_be_for_a_limit_that_slurm_names_for_others(tmp_path: Path) -> None:
    with Store(tmp_path / "t.duckdb", write=True) as store:
        site = Site(store)
        site.machine("m1")
        site.job("named", ("completed", 60, 120), gpus=1, user="ann")
        site.job("unnamed", ("completed", 60, 120), gpus=1, user="bob")
        site.job("elsewhere", ("completed", 60, 120), gpus=1, user="bob", queue="r")
        store.execute("UPDATE attempt_rows SET reason = 'QOSMaxGRESPerUser' WHERE job = 'named'")
    assert _parts(tmp_path, "named")["fair_share"] == (0, 3600)
    assert _parts(tmp_path, "unnamed")["fair_share"] == (0, 3600)
    assert _parts(tmp_path, "unnamed")["scheduler"] == (0, 3600)
    assert _parts(tmp_path, "elsewhere")["fair_share"] == (0, 0)


def test_a_node_that_was_down_may_explain_one_wait_where_all_others_are_explained(tmp_path: Path) -> None:
    with Store(tmp_path / "t.duckdb", write=True) as store:
        site = Site(store)
        store.execute("UPDATE clusters SET source_format = 'philly-jobs'")
        site.machine("m1")
        site.machine("m2")
        site.job("first", ("completed", 0, 6000), gpus=8)
        # 100 hours for its queue's quota, and ten minutes beside a node that has had no job for hours
        site.job("long", ("completed", 6000, 6060), gpus=8)
        site.job("odd", ("completed", 10, 20), gpus=1, queue="r", on=("m2",))
        site.job("later", ("completed", 5940, 6060), gpus=1, queue="r", on=("m2",))
        store.execute("UPDATE job_rows SET submit_ts = submit_ts + INTERVAL 5930 MINUTE WHERE job = 'later'")
        store.execute("UPDATE job_rows SET wait_s = 600 WHERE job = 'later'")
        store.execute(
            "UPDATE attempt_rows SET queued_ts = queued_ts + INTERVAL 5930 MINUTE, wait_s = 600 WHERE job = 'later'"
        )
    found = _parts(tmp_path, "later", quotas={"q": 8.0, "r": 8.0}, borrow_below=0.0)
    assert found["capacity"] == found["scheduler"] == (0, 600)
    assert found["fragmentation"] == (0, 0)


def test_a_queue_that_keeps_to_some_nodes_may_have_no_others() -> None:
    # none of its 40 gangs was among the 40 that started on the second node: by chance once in 10^11; nobody
    # ever started on the third one
    pool = nodes([4, 4, 4], [0, 0, 0], (0, 50, 0, 4), (0, 5, 1, 4))
    own = doubts.possibly_exclusive(np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([40, 2, 40]), pool)
    assert {queue: found.gpus.tolist() for queue, found in own.items()} == {0: [4]}
    cluster = delays.Cluster(holdings((0, 50, 4, 0), (0, 5, 4, 1)), (pool,), np.array([INF, INF]), 0.0)
    for queue, capacity in ((0, (0, 30)), (1, (0, 0))):
        found = ranges(cluster, waits((10, 40, 4, queue)), delay_bounds.Doubts(own=own))
        assert found["capacity"] == capacity
        assert found["scheduler"] == (30 - capacity[1], 30)
    # what is over an inferred quota may wait for its servers instead
    quota = delay_bounds.Limits(np.zeros(1), (np.full(1, 4.0),) * 2, np.full(2, 4.0), 0.0)
    held_to = replace(cluster, quotas=np.full(2, 4.0))
    found = ranges(held_to, waits((10, 40, 4, 0)), delay_bounds.Doubts(quota, own=own))
    assert found["fair_share"] == found["capacity"] == (0, 30)
    assert ranges(held_to, waits((10, 40, 4, 0)), delay_bounds.Doubts(quota))["fair_share"] == (30, 30)


def test_a_quota_that_bounds_nothing_is_not_shown(tmp_path: Path) -> None:
    with Store(tmp_path / "t.duckdb", write=True) as store:
        site = Site(store)
        store.execute("UPDATE clusters SET source_format = 'philly-jobs'")
        site.machine("m1")
        site.job("alone", ("completed", 0, 600), gpus=2)
    with Store(tmp_path / "t.duckdb") as store:
        [queues] = analyze(store, Options(tables=("queues",))).tables
    assert queues.frame["quota_gpus"].to_list() == [None]


def test_before_the_first_end_in_accounting_other_jobs_may_have_held_what_was_free(tmp_path: Path) -> None:
    with Store(tmp_path / "t.duckdb", write=True) as store:
        site = Site(store)
        site.machine("m1")
        site.job("first", ("completed", 0, 20), gpus=1)
        site.job("late", ("completed", 60, 120), gpus=1)
        store.execute("UPDATE attempt_rows SET eligible_ts = queued_ts")
    # 20 minutes before anything ended; then 7 of 8 GPUs may be held by what ran when the log began
    assert _parts(tmp_path, "late")["capacity"][0] == 0
    assert _parts(tmp_path, "late")["capacity"][1] >= 1200
