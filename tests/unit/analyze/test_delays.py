"""The split of delays on cases worked out by hand."""

from __future__ import annotations

import numpy as np

from gpuctl.analyze import delays, occupancy

NEVER = 0.0


def holdings(*rows: tuple[float, float, float, int]) -> occupancy.Holdings:
    start, end, gpus, queue = (np.array(column, float) for column in zip(*rows, strict=True))
    return occupancy.Holdings(start, end, gpus, queue.astype(np.int64))


def nodes(gpus: list[int], rack: list[int], *rows: tuple[float, float, int, int]) -> occupancy.Nodes:
    start, end, node, held = (np.array(column, float) for column in zip(*rows, strict=True))
    return occupancy.Nodes(np.array(gpus), np.array(rack), start, end, node.astype(np.int64), held.astype(np.int64))


def waits(*rows: tuple[float, float, int, int]) -> delays.Waits:
    queued, start, gpus, queue = (np.array(column, float) for column in zip(*rows, strict=True))
    unknown = np.full(queued.size, np.nan)
    pool = np.zeros(queued.size, np.int64)
    return delays.Waits(queued, start, gpus.astype(np.int64), queue.astype(np.int64), pool, unknown)


def split(
    asked: delays.Waits, held: occupancy.Holdings, cluster: occupancy.Nodes, quotas: np.ndarray, borrow: float
) -> delays.Delays:
    given = delays.Cluster(held, (cluster,), quotas, borrow)
    return delays.split(asked, given, delays.states(asked, given))


def test_one_wait_with_all_four_causes_in_turn() -> None:
    # one rack of two 4-GPU nodes; queue 0 has a quota of 4, queue 1 of 8
    held = holdings((0, 10, 2, 0), (0, 20, 4, 1), (10, 20, 2, 1), (0, 35, 2, 1), (20, 30, 2, 1), (40, 50, 4, 0))
    cluster = nodes(
        [4, 4], [0, 0],
        (0, 10, 0, 2), (0, 20, 1, 4), (10, 20, 0, 2), (0, 35, 0, 2), (20, 30, 1, 2), (40, 50, 0, 4),
    )  # fmt: skip
    # 4 GPUs for queue 0: over quota until 10, 8 of 8 in use until 20, then 2 + 2 free on two nodes until 30,
    # then a whole node is free and nothing happens until 40
    found = split(waits((0, 40, 4, 0)), held, cluster, np.array([4.0, 8.0]), NEVER)
    assert found.seconds.tolist() == [[10, 10, 10, 10]]
    assert delays.CAUSES[found.at_arrival[0]] == "fair_share"


def test_a_wait_that_begins_and_ends_between_changes() -> None:
    held = holdings((0, 100, 8, 0), (60, 90, 1, 1))
    cluster = nodes([8, 8], [0, 0], (0, 100, 0, 8), (60, 90, 1, 1))
    found = split(waits((25.5, 60, 16, 0)), held, cluster, np.array([99.0, 99.0]), NEVER)
    assert found.seconds.tolist() == [[0, 34.5, 0, 0]]


def test_no_wait_has_no_seconds() -> None:
    held = holdings((5, 9, 1, 0))
    found = split(waits((5, 5, 1, 0)), held, nodes([8], [0], (5, 9, 0, 1)), np.array([1.0]), NEVER)
    assert found.seconds.tolist() == [[0, 0, 0, 0]]


def test_borrowing_turns_fair_share_into_what_else_holds() -> None:
    held = holdings((0, 20, 4, 0), (20, 30, 4, 0))
    cluster = nodes([4, 4, 2], [0, 0, 0], (0, 20, 0, 4), (20, 30, 0, 4))
    asked = waits((0, 20, 4, 0))
    quota = np.array([4.0])
    assert split(asked, held, cluster, quota, NEVER).seconds.tolist() == [[20, 0, 0, 0]]
    # 8 of 10 GPUs would be in use with it
    assert split(asked, held, cluster, quota, 0.79).seconds.tolist() == [[20, 0, 0, 0]]
    assert split(asked, held, cluster, quota, 0.80).seconds.tolist() == [[0, 0, 0, 20]]


def test_a_gang_of_several_nodes_needs_one_rack_of_known_nodes() -> None:
    held = holdings((10, 20, 16, 0), (0, 1, 1, 0))
    rows = ((10.0, 20.0, 0, 8), (10.0, 20.0, 1, 8), (0.0, 1.0, 0, 1))
    asked = waits((0, 10, 16, 0))
    quota = np.array([99.0])
    for racks, expected in (
        ([0, 0, 1], [0, 0, 1, 9]),  # after the 1-GPU job at 1 s two nodes of rack 0 are free
        ([0, 1, 1], [0, 0, 0, 10]),  # nodes 1 and 2 of rack 1 are free all the time
        ([0, 1, 2], [0, 0, 10, 0]),
        ([-1, -1, -1], [0, 0, 10, 0]),
    ):
        found = split(asked, held, nodes([8, 8, 8], racks, *rows), quota, NEVER)
        assert found.seconds.tolist() == [expected], racks


def test_who_overtook_whom() -> None:
    asked = waits((0, 100, 8, 0), (10, 50, 2, 0), (20, 30, 1, 0), (5, 200, 1, 1), (0, 90, 4, 0))
    # by queueing time in queue 0: 8 and 4 GPUs (0 s), 2 (10 s), 1 (20 s); starts 100, 90, 50, 30
    assert delays.overtaken_gpus(asked).tolist() == [0, 4, 2, 0, 0]


def test_overtaking_is_harmless_where_the_overtaken_could_not_have_started() -> None:
    held = holdings((0, 100, 6, 0), (10, 100, 2, 0), (100, 110, 8, 0))
    cluster = nodes([8], [0], (0, 100, 0, 6), (10, 100, 0, 2), (100, 110, 0, 8))
    asked = waits((5, 100, 8, 0), (10, 10, 2, 0))
    found = split(asked, held, cluster, np.array([99.0]), NEVER)
    assert found.overtook_gpus.tolist() == [0, 8]
    assert found.harmless.tolist() == [False, True]
    small = waits((5, 100, 2, 0), (10, 10, 2, 0))
    assert split(small, held, cluster, np.array([99.0]), NEVER).harmless.tolist() == [False, False]
    # two GPUs fit the queue's quota of 7 neither beside 6 nor instead of the other two
    assert split(small, held, cluster, np.array([7.0]), NEVER).harmless.tolist() == [False, True]
