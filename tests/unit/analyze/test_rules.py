"""The search for rules on cases worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpuctl.analyze import delays, scheduler_rules
from gpuctl.analyze.occupancy import Holdings, Nodes
from gpuctl.analyze.racks import Gangs, Layout, guess_layouts, layouts_of_known_racks

HOUR = 3600.0


def one_node(*rows: tuple[float, float, float, int, int], size: int = 8) -> tuple[delays.Waits, Holdings, Layout]:
    """Attempts (queued, start, end, GPUs, queue) on one node of `size` GPUs."""
    queued, start, end, gpus, queue = (np.array(column, float) for column in zip(*rows, strict=True))
    codes, whole, zeros = queue.astype(np.int64), gpus.astype(np.int64), np.zeros(queued.size, np.int64)
    nodes = Nodes(np.array([size]), np.array([0]), start, end, zeros, whole)
    waits = delays.Waits(queued, start, whole, codes, zeros, np.full(queued.size, np.nan))
    return waits, Holdings(start, end, gpus, codes), Layout("one", nodes, (np.inf, np.inf), 0)


def test_a_quota_lies_between_what_was_started_and_what_had_to_wait() -> None:
    # queue 0 holds 4 and may not start 2 more for nine hours although 4 GPUs are free
    waits, held, layout = one_node((0, 0, 10 * HOUR, 4, 0), (HOUR, 10 * HOUR, 11 * HOUR, 2, 0))
    found = scheduler_rules.find(waits, held, [layout], scheduler_rules.GivenRules(np.array([np.nan]), 0.0))
    assert found.limits.tolist() in ([4.0], [5.0])
    assert found.lost == 0
    assert (found.low[0], found.high[0]) == (9 * HOUR, 9 * HOUR)
    assert found.considered[0].quotas[0].tolist() == [[4.0], [4.0], [5.0]]


def test_where_nothing_binds_fair_share_is_not_known() -> None:
    # the node is full while the gang waits: it may have been over its quota or not
    waits, held, layout = one_node((0, 0, 10 * HOUR, 8, 1), (HOUR, 10 * HOUR, 11 * HOUR, 2, 0))
    found = scheduler_rules.find(waits, held, [layout], scheduler_rules.GivenRules(np.array([np.nan, np.nan]), None))
    assert (found.low[0], found.high[0]) == (0, 9 * HOUR)
    assert (found.low[1], found.high[1]) == (0, 9 * HOUR)


def test_user_quotas_are_used_and_missing_ones_reported() -> None:
    waits, held, layout = one_node((0, 0, 10 * HOUR, 4, 0), (HOUR, 10 * HOUR, 11 * HOUR, 2, 0))
    found = scheduler_rules.find(waits, held, [layout], scheduler_rules.GivenRules(np.array([8.0]), 0.0))
    assert found.limits.tolist() == [8.0]
    assert found.low.tolist() == found.high.tolist() == [0, 0, 0, 9 * HOUR]
    assert found.lost > 0.98


def test_racks_are_those_of_gangs_that_hardly_waited() -> None:
    none, nothing = np.zeros(0), np.zeros(0, np.int64)
    nodes = Nodes(np.full(5, 8), np.full(5, -1), none, none, nothing, nothing)
    gangs = Gangs(
        (np.array([0, 1]), np.array([2, 3]), np.array([1, 2])),
        np.array([30.0, 50.0, 10 * HOUR]),
        np.array([False, False, True]),
    )
    by_name = {layout.name: layout for layout in guess_layouts(nodes, gangs)}
    minute = by_name["gangs that waited at most 60 s are in one rack"]
    assert minute.nodes.rack.tolist() == [0, 0, 1, 1, -1]
    assert minute.relax == (10 * HOUR, 10 * HOUR)
    assert by_name["gangs that waited at most 16 h are in one rack"].nodes.rack.tolist() == [0, 0, 0, 0, -1]


@pytest.mark.parametrize(
    ("size", "borrow_below", "busy"),
    [
        (8, None, list(range(9))),
        (8, 0.0, [0]),
        (8, 0.5, [4]),
        (8, 0.49, [3]),
        (8, 1.0, [8]),
        # in floats 28.999999999999996
        (100, 0.29, [29]),
    ],
)
def test_borrowing_is_tried_up_to_every_number_of_busy_gpus(
    size: int, borrow_below: float | None, busy: list[int]
) -> None:
    waits, held, layout = one_node((0, 0, 10 * HOUR, 4, 0), (HOUR, 10 * HOUR, 11 * HOUR, 2, 0), size=size)
    found = scheduler_rules.find(waits, held, [layout], scheduler_rules.GivenRules(np.array([np.nan]), borrow_below))
    assert found.considered[0].busy.tolist() == busy


def test_of_many_numbers_of_busy_gpus_513_are_tried() -> None:
    waits, held, layout = one_node((0, 0, 10 * HOUR, 4, 0), (HOUR, 10 * HOUR, 11 * HOUR, 2, 0), size=5120)
    found = scheduler_rules.find(waits, held, [layout], scheduler_rules.GivenRules(np.array([np.nan]), None))
    assert found.considered[0].busy.tolist() == list(range(0, 5121, 10))


def test_a_queue_may_exceed_its_quota_up_to_the_share_that_its_starts_show() -> None:
    # over a quota of 3 it starts one GPU more, with 4 GPUs busy then; another two would make 6, and wait for 9 h
    waits, held, layout = one_node(
        (0, 0, 10 * HOUR, 3, 0), (60, 60, 10 * HOUR, 1, 0), (HOUR, 10 * HOUR, 11 * HOUR, 2, 0)
    )
    found = scheduler_rules.find(waits, held, [layout], scheduler_rules.GivenRules(np.array([3.0]), None))
    assert found.considered[0].starts.tolist() == [1, 1, 1, 1, 0, 0, 0, 0, 0], "the second job, up to 0 to 8 busy GPUs"
    # except two minutes at either end
    assert found.considered[0].waits.tolist() == [0] * 6 + [9 * HOUR - 240] * 3
    # a forbidden start counts as a mean wait
    assert found.considered[0].lost.tolist() == [3 * HOUR] * 4 + [0, 0] + [9 * HOUR - 240] * 3
    assert (found.borrow_below, found.limits.tolist(), found.lost) == (4.5 / 8, [3], 0)
    assert found.low.tolist() == found.high.tolist() == [9 * HOUR, 0, 0, 0]


def test_what_other_queues_hold_counts_as_busy_and_not_for_the_quota() -> None:
    # beside 2 GPUs of queue 1, queue 0 starts one within its quota of 1 and one over it, which makes 4 busy
    waits, held, layout = one_node(
        (0, 0, 10 * HOUR, 2, 1),
        (60, 60, 10 * HOUR, 1, 0),
        (120, 120, 10 * HOUR, 1, 0),
        (HOUR, 10 * HOUR, 11 * HOUR, 2, 0),
    )
    found = scheduler_rules.find(waits, held, [layout], scheduler_rules.GivenRules(np.array([1.0, 8.0]), None))
    # what waits for both at once is over the quota whenever it starts
    assert found.considered[0].broken.tolist() == [[2, 0]] * 2 + [[1, 0]] * 2 + [[0, 0]] * 5
    assert found.considered[0].waits.tolist() == [0] * 6 + [9 * HOUR - 240] * 3


def test_of_many_quotas_512_are_tried() -> None:
    # it held 600 and was refused 1021: the 512 even numbers up to 1022, one more than it would have held, are tried
    waits, held, layout = one_node((0, 0, 10 * HOUR, 600, 0), (HOUR, 10 * HOUR, 11 * HOUR, 421, 0), size=2000)
    found = scheduler_rules.find(waits, held, [layout], scheduler_rules.GivenRules(np.array([np.nan]), 0.0))
    assert found.considered[0].quotas[0].tolist() == [[600], [600], [1020]]


@pytest.mark.parametrize("known", [True, False])
def test_gpus_are_in_use_on_nodes_that_are_down_and_in_jobs_whose_nodes_are_not_known(known: bool) -> None:
    waits, held, layout = one_node((HOUR, 10 * HOUR, 11 * HOUR, 2, 0))
    down = replace(layout.nodes, start=np.zeros(1), end=np.array([10 * HOUR]), held=np.array([8]))
    somewhere = Holdings(*(np.array(each) for each in ([0.0, 10 * HOUR], [10 * HOUR, 11 * HOUR], [8.0, 2.0], [1, 0])))
    layout, held = (replace(layout, nodes=down), held) if known else (layout, somewhere)
    found = scheduler_rules.find(waits, held, [layout], scheduler_rules.GivenRules(np.array([8.0, 8.0]), 0.0))
    assert found.low.tolist() == found.high.tolist() == [0, 9 * HOUR, 0, 0]


def apart(*waited: float) -> tuple[Nodes, Gangs]:
    """Gangs that waited so long, each on two nodes of its own."""
    none, nothing = np.zeros(0), np.zeros(0, np.int64)
    nodes = Nodes(np.full(2 * len(waited), 8), np.arange(2 * len(waited)), none, none, nothing, nothing)
    pairs = tuple(np.array([2 * k, 2 * k + 1]) for k in range(len(waited)))
    return nodes, Gangs(pairs, np.array(waited), np.zeros(len(waited), bool))


def test_gangs_are_held_to_one_rack_for_a_time_of_a_list() -> None:
    # one gang waited just as long as the guess, another one a second longer
    cuts = [0.0, 60, 300, 900, 1800, HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 16 * HOUR, 32 * HOUR]
    layouts = guess_layouts(*apart(*cuts, *(cut + 1 for cut in cuts)))
    joined = [int(layout.nodes.rack.max()) + 1 for layout in layouts]
    assert joined == [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 22, 22]
    assert [layout.name for layout in layouts][10:] == [
        "gangs that waited at most 32 h are in one rack",
        "every gang is in one rack",
        "nodes that share gangs more often than chance",
    ]


def test_a_guess_at_racks_is_held_against_the_gangs_that_lay_across_them() -> None:
    # of 101 gangs across known racks that waited 0 to 100 s, two in a hundred were before the rule relaxed
    relaxed, never = layouts_of_known_racks(*apart(*range(101)))
    assert (relaxed.relax, relaxed.forbidden) == ((np.inf, np.inf), 2)
    assert (never.relax, never.forbidden) == ((np.inf, np.inf), 101)
