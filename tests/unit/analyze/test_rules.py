"""The search for rules on cases worked out by hand."""

from __future__ import annotations

import numpy as np

from gpuctl.analyze import delays, scheduler_rules
from gpuctl.analyze.occupancy import Holdings, Servers
from gpuctl.analyze.racks import Gangs, Layout, guess_layouts

HOUR = 3600.0


def one_server(*rows: tuple[float, float, float, int, int]) -> tuple[delays.Waits, Holdings, Layout]:
    """Attempts (queued, start, end, GPUs, queue) on one server of 8 GPUs."""
    queued, start, end, gpus, queue = (np.array(column, float) for column in zip(*rows, strict=True))
    codes, whole, zeros = queue.astype(np.int64), gpus.astype(np.int64), np.zeros(queued.size, np.int64)
    servers = Servers(np.array([8]), np.array([0]), start, end, zeros, whole)
    waits = delays.Waits(queued, start, whole, codes, zeros, np.full(queued.size, np.nan))
    return waits, Holdings(start, end, gpus, codes), Layout("one", servers, (np.inf, np.inf), 0)


def test_a_quota_lies_between_what_was_started_and_what_had_to_wait() -> None:
    # queue 0 holds 4 and may not start 2 more for nine hours although 4 GPUs are free
    waits, held, layout = one_server((0, 0, 10 * HOUR, 4, 0), (HOUR, 10 * HOUR, 11 * HOUR, 2, 0))
    found = scheduler_rules.find(waits, held, [layout], scheduler_rules.Known(np.array([np.nan]), 0.0))
    assert found.limits.tolist() in ([4.0], [5.0])
    assert found.lost == 0
    assert (found.low[0], found.high[0]) == (9 * HOUR, 9 * HOUR)
    assert found.considered[0].quotas[0].tolist() == [[4.0], [4.0], [5.0]]


def test_where_nothing_binds_fair_share_is_not_known() -> None:
    # the server is full while the gang waits: it may have been over its quota or not
    waits, held, layout = one_server((0, 0, 10 * HOUR, 8, 1), (HOUR, 10 * HOUR, 11 * HOUR, 2, 0))
    found = scheduler_rules.find(waits, held, [layout], scheduler_rules.Known(np.array([np.nan, np.nan]), None))
    assert (found.low[0], found.high[0]) == (0, 9 * HOUR)
    assert (found.low[1], found.high[1]) == (0, 9 * HOUR)


def test_what_is_given_is_obeyed_and_what_it_leaves_is_told() -> None:
    waits, held, layout = one_server((0, 0, 10 * HOUR, 4, 0), (HOUR, 10 * HOUR, 11 * HOUR, 2, 0))
    found = scheduler_rules.find(waits, held, [layout], scheduler_rules.Known(np.array([8.0]), 0.0))
    assert found.limits.tolist() == [8.0]
    assert found.low.tolist() == found.high.tolist() == [0, 0, 0, 9 * HOUR]
    assert found.lost > 0.98


def test_racks_are_those_of_gangs_that_hardly_waited() -> None:
    none, nothing = np.zeros(0), np.zeros(0, np.int64)
    servers = Servers(np.full(5, 8), np.full(5, -1), none, none, nothing, nothing)
    gangs = Gangs(
        (np.array([0, 1]), np.array([2, 3]), np.array([1, 2])),
        np.array([30.0, 50.0, 10 * HOUR]),
        np.array([False, False, True]),
    )
    by_name = {layout.name: layout for layout in guess_layouts(servers, gangs)}
    minute = by_name["gangs that waited at most 60 s are in one rack"]
    assert minute.servers.rack.tolist() == [0, 0, 1, 1, -1]
    assert minute.relax == (10 * HOUR, 10 * HOUR)
    assert by_name["gangs that waited at most 16 h are in one rack"].servers.rack.tolist() == [0, 0, 0, 0, -1]
