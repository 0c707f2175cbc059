from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.analyze import fragmentation
from gpuctl.analyze.fragmentation import Demand
from gpuctl.analyze.occupancy import Nodes

if TYPE_CHECKING:
    from collections.abc import Iterable


def nodes(gpus: list[int], rack: list[int], *held: tuple[float, float, int, int]) -> Nodes:
    start, end, node, count = (list(each) for each in zip(*held, strict=True)) if held else ([], [], [], [])
    return Nodes(
        np.array(gpus), np.array(rack), np.array(start, float), np.array(end, float),
        np.array(node, np.int64), np.array(count, np.int64),
    )  # fmt: skip


def demand(*gangs: tuple[float, float, int, int]) -> Demand:
    start, end, gpus, pool = (list(each) for each in zip(*gangs, strict=True)) if gangs else ([], [], [], [])
    return Demand(np.array(start, float), np.array(end, float), np.array(gpus, np.int64), np.array(pool, np.int64))


def test_a_gang_waits_next_to_free_gpus_that_it_cannot_use() -> None:
    # two nodes of 4, each with 2 free; a gang of 4 waits from 0 to 1800 s, another one of 2 from 3600 to 7200 s
    site = nodes([4, 4], [0, 0], (0, 7200, 0, 2), (0, 7200, 1, 2))
    found = fragmentation.means(
        site, [np.array([True, True])], demand((0, 1800, 4, 0), (3600, 7200, 2, 0)), np.array([0.0, 3600.0, 7200.0])
    )
    assert found.free.tolist() == [4, 4]
    assert found.largest.tolist() == [2, 2]
    assert found.stranded.tolist() == [2, 0], "all four, half of the first hour"
    assert found.waiting.tolist() == [2, 2]


def test_gangs_on_two_nodes_need_one_rack() -> None:
    # 6 GPUs on nodes of 4: two nodes of one rack with 6 free between them
    racks = nodes([4, 4, 4], [0, 0, 1], (0, 10, 0, 1), (0, 10, 1, 1), (10, 20, 1, 2), (10, 20, 0, 1))
    found = fragmentation.means(racks, [np.ones(3, bool)], demand((0, 20, 6, 0)), np.array([0.0, 10.0, 20.0]))
    assert found.largest.tolist() == [6, 5]
    assert found.stranded.tolist() == [4, 9], "the third node; then every one"
    apart = nodes([4, 4, 4], [-1, -1, -1], (0, 10, 0, 1))
    found = fragmentation.means(apart, [np.ones(3, bool)], demand((0, 10, 6, 0)), np.array([0.0, 10.0]))
    assert (found.largest.tolist(), found.stranded.tolist()) == ([4], [11])


def test_free_gpus_of_another_partition_are_of_no_use() -> None:
    site = nodes([8, 8], [-1, -1], (0, 10, 0, 8))
    found = fragmentation.means(
        site, [np.array([True, False]), np.array([False, True])], demand((0, 5, 1, 0)), np.array([0.0, 10.0])
    )
    assert (found.free[0], found.largest[0], found.stranded[0]) == (8, 8, 4)


@pytest.mark.parametrize("seed", range(40))
def test_every_subset_of_nodes_gives_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 4 == 0:
        monkeypatch.setattr(fragmentation, "_FEW", -1)  # as compiled code
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 7))
    gpus = random.choice([2, 4], count)
    rack = random.integers(-1, 2, count)
    held, busy = [], {}
    for _ in range(12):
        node, start = int(random.integers(count)), int(random.integers(0, 9))
        end, took = int(random.integers(start + 1, 11)), int(random.integers(1, 3))
        if all(busy.get((node, t), 0) + took <= gpus[node] for t in range(start, end)):
            held.append((start, end, node, took))
            busy |= {(node, t): busy.get((node, t), 0) + took for t in range(start, end)}
    pools = [random.random(count) < 0.7 for _ in range(2)]
    gangs = [
        (int(start), int(start + random.integers(1, 5)), int(random.integers(1, 10)), int(random.integers(2)))
        for start in random.integers(0, 8, int(random.integers(0, 5)))
    ]
    site = nodes(gpus.tolist(), rack.tolist(), *held)
    found = fragmentation.means(site, pools, demand(*gangs), np.arange(13.0))
    for t in range(12):
        free = [int(gpus[s]) - busy.get((s, t), 0) for s in range(count)]
        waiting = [(size, pool) for start, end, size, pool in gangs if start <= t < end]
        sizes = [size for pool in pools for size in range(1, 25) if list(ways(size, pool, gpus, rack, free))]
        used = {s for size, pool in waiting for way in ways(size, pools[pool], gpus, rack, free) for s in way}
        assert found.free[t] == sum(free)
        assert found.largest[t] == max(sizes, default=0)
        assert found.waiting[t] == sum(size for size, _ in waiting)
        assert found.stranded[t] == (sum(free) - sum(free[s] for s in used) if waiting else 0)


def test_a_few_nodes_of_a_million_gpus_are_as_quick_as_small_ones() -> None:
    # levels are the numbers of free GPUs that occur, not all up to the largest
    site = nodes([10**6, 10**6], [0, 0], (0, 10, 0, 999_999), (5, 10, 1, 1))
    found = fragmentation.means(site, [np.ones(2, bool)], demand((0, 10, 10**6, 0)), np.array([0.0, 5.0, 10.0]))
    assert found.free.tolist() == [10**6 + 1, 10**6]
    assert found.largest.tolist() == [10**6 + 1, 10**6 - 1]
    assert found.stranded.tolist() == [1, 10**6]


def ways(size: int, pool: np.ndarray, gpus: np.ndarray, rack: np.ndarray, free: list[int]) -> Iterable[tuple[int, ...]]:
    """Every set of nodes, the fewest that can hold the gang and of one rack, that has room for it."""
    ours = np.flatnonzero(pool).tolist()
    largest = max((int(gpus[s]) for s in ours), default=0)
    if not largest:
        return
    for chosen in combinations(ours, -(-size // largest)):
        together = len(chosen) == 1 or (len({rack[s] for s in chosen}) == 1 and rack[chosen[0]] >= 0)
        if together and sum(free[s] for s in chosen) >= size:
            yield chosen
