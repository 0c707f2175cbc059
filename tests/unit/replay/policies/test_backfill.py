"""Backfilling on cases worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.core.errors import UsageError
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find
from tests.replay_reference import Job, cluster, simulate, workload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuctl.replay.models.records import Workload

BOTH = ("easy", "conservative")


def jobs_of(rows: Sequence[tuple[int, int, int, float]]) -> Workload:
    """Jobs from (submission, run time, GPUs, time limit)."""
    work = workload([Job(submit, duration, gpus) for submit, duration, gpus, _ in rows])
    return replace(work, time_limit=np.array([limit for *_, limit in rows], np.float64))


def starts(
    rows: Sequence[tuple[int, int, int, float]],
    policy: str,
    params: Mapping[str, str] | None = None,
    *,
    nodes: Sequence[int] = (5,),
    placement: str | None = None,
    limits: bool = False,
    down: Sequence[tuple[float, float, float]] = (),
) -> list[float]:
    """When each job starts first."""
    work = jobs_of(rows)
    on = cluster(nodes, work, pool=len(nodes) == 1)
    on = replace(on, down=np.array(down, np.float64)) if down else on
    models = Settings(rates("recorded", work, on), overhead("none", work, on), placement, limits=limits)
    done = Simulation(work, on, find(policy)(params or {}), models)
    done.run()
    return [float(t) for t in done.outcome().jobs["start_s"]]


def test_a_job_that_outlives_the_shadow_time_waits() -> None:
    # r1, h, b1, b2 by hand: b1 ends by the shadow at 100, b2 outlives it; r1 ends at 60, the shadow is 90
    rows = [(0, 60, 3, 100), (0, 50, 5, 50), (0, 70, 1, 90), (0, 120, 1, 120)]
    assert starts(rows, "easy") == [0, 70, 0, 120]
    # the reservation of b2 at 150 (after h at 100 to 150) moves with that of h, to the planned end of b1 and beyond
    assert starts(rows, "conservative") == [0, 70, 0, 120]


def test_gpus_left_by_the_head_may_be_used_for_longer() -> None:
    # at 100 the head takes 3 of 5: two may be held beyond, one after the other asks for them, the third for one more
    rows = [(0, 100, 4, 100), (0, 10, 3, 10), (0, 500, 1, 500), (1, 500, 1, 500)]
    assert starts(rows, "easy") == [0, 100, 0, 100]


def test_easy_delays_the_second_in_line_and_conservative_does_not() -> None:
    # the first holds 3 of 5 to 10, the others follow; the last ends before that and goes ahead of all
    rows = [(0, 10, 3, 10), (0, 10, 5, 10), (0, 10, 3, 10), (0, 9, 2, 9)]
    for policy in BOTH:
        assert starts(rows, policy) == [0, 10, 20, 0]
    # the head leaves 2 at 10: the last may hold them for 100 under EASY, though the third then waits to 101, not 20
    rows = [(0, 10, 3, 10), (0, 10, 3, 10), (0, 10, 5, 10), (1, 100, 2, 100)]
    assert starts(rows, "easy") == [0, 10, 101, 1]
    assert starts(rows, "conservative") == [0, 10, 20, 30]


def test_orders() -> None:
    # behind the head one of three may start: by submission, by limit, by size
    rows = [(0, 100, 3, 100), (0, 10, 5, 10), (0, 90, 2, 90), (0, 50, 2, 50), (0, 95, 1, 95)]
    assert starts(rows, "easy")[2:] == [0, 110, 110]
    assert starts(rows, "easy", {"backfill": "limit"})[2:] == [110, 0, 110]
    assert starts(rows, "easy", {"backfill": "gpus"})[2:] == [110, 110, 0]
    # the job of all five GPUs has the shortest limit, the first one the longest: 3 GPUs are free when that of 90 ends
    for policy in BOTH:
        assert starts(rows, policy, {"order": "limit"}) == [100, 0, 10, 10, 10]


@pytest.mark.parametrize("policy", BOTH)
def test_a_job_past_its_limit_may_end_at_any_moment(policy: str) -> None:
    # it holds 4 to 100, though planned to end at 10; the head needs all 5 and gets them then. Who asks for 1 for 5 s
    # before 10 has it; after 10 the head could start at any moment, and nobody may take what it needs
    rows = [(0, 100, 4, 10), (1, 10, 5, 10), (2, 5, 1, 5), (20, 5, 1, 5)]
    assert starts(rows, policy) == [0, 100, 2, 110]
    # ended at its limit it is in nobody's way
    assert starts(rows, policy, limits=True) == [0, 10, 2, 20]


@pytest.mark.parametrize("policy", BOTH)
def test_jobs_without_a_limit_are_planned_for_a_year(policy: str) -> None:
    none = float("nan")
    rows = [(0, 50, 4, none), (0, 10, 5, 10), (0, 60, 1, 60)]
    assert starts(rows, policy) == [0, 60, 0]
    assert starts(rows, policy, {"unlimited": "55"}) == [0, 50, 60]


@pytest.mark.parametrize("policy", BOTH)
def test_a_head_that_fits_on_no_node_that_is_up_keeps_nobody_waiting(policy: str) -> None:
    down = [(1, 5, 500)]
    rows = [(0, 4, 2, 4), (10, 10, 4, 10), (20, 1000, 1, 1000)]
    assert starts(rows, policy, nodes=(2, 2), down=down) == [0, 1020, 20]


def test_on_nodes_the_head_keeps_a_place_not_a_number() -> None:
    # two nodes of 4, each with 1 free; the head needs 4 on one of them: at 10 the first node has them. Of two jobs
    # of 1 GPU for 100 s one may go to the second node; by count there would be room for neither (8 - 3 - 4 = 1) …
    rows = [(0, 10, 3, 10), (0, 200, 3, 200), (0, 5, 4, 5), (0, 100, 1, 100), (0, 100, 1, 100)]
    assert starts(rows, "easy", nodes=(4, 4), placement="consolidate") == [0, 0, 10, 0, 15]
    assert starts(rows, "conservative", nodes=(4, 4), placement="consolidate") == [0, 0, 10, 0, 15]
    # … and with one of 2 GPUs less on the second node, where a count says 3, still for one of 1 only
    rows = [(0, 10, 3, 10), (0, 200, 2, 200), (0, 5, 4, 5), (0, 100, 1, 100), (0, 100, 1, 100), (0, 100, 1, 100)]
    for policy in BOTH:
        assert starts(rows, policy, nodes=(4, 4), placement="consolidate") == [0, 0, 10, 0, 0, 15]


def test_queues_at_their_quotas() -> None:
    work = jobs_of([(0, 10, 2, 10), (0, 10, 2, 10), (0, 10, 2, 10)])
    work = replace(work, queue=np.array([0, 0, 1]), queues=("a", "b"))
    on = cluster([6], work, pool=True, quota=(2, 6))
    for policy in BOTH:
        for quotas, expected in (("true", [0, 10, 0]), ("false", [0, 0, 0])):
            found = simulate(work, on, policy, {"quotas": quotas}).outcome().jobs["start_s"].to_list()
            assert found == expected


def test_a_pass_for_each_event_only_counts() -> None:
    with pytest.raises(UsageError, match="passes=event counts GPUs only"):
        starts([(0, 1, 1, 1)], "easy", {"passes": "event"}, nodes=(4, 4), placement="consolidate")


@pytest.mark.parametrize("policy", BOTH)
def test_a_fork_is_independent(policy: str) -> None:
    work = jobs_of([(k, 10 + k % 7, 1 + k % 5, 20 + k % 9) for k in range(60)])
    on = cluster([5], work, pool=True)
    one = Simulation(work, on, find(policy)({}), Settings(rates("recorded", work, on), overhead("none", work, on)))
    one.advance(until=100)
    two = one.fork()
    two.run()
    one.run()
    assert one.outcome().jobs.equals(two.outcome().jobs)


def test_decisions_state_why() -> None:
    rows = [(0, 60, 3, 100), (0, 50, 5, 50), (0, 70, 1, 90), (0, 120, 1, 120)]
    work = jobs_of(rows)
    log = simulate(work, cluster([5], work, pool=True), "easy").outcome().decisions
    first = log.filter(log["decision"].is_in(["start", "reserve"])).select("t_s", "decision", "job", "reason").rows()
    assert first[1][1:3] == ("reserve", "1")
    assert first[2][1:] == ("start", "2", "backfilled: planned to end by the reservation of the first that waits")
