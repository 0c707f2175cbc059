"""The split of delays against a plain replay that goes second by second."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.analyze import delays, occupancy
from gpuctl.analyze.interval_sweeps import Ranked, highest
from tests.example_counts import examples

SIZES = (8, 8, 2, 8)
RACKS = (0, 0, 1, 1)
QUEUES = 2

Job = tuple[int, int, int, int, tuple[int, ...]]
"""queued, start, end, queue, GPUs held on each node"""


@st.composite
def jobs(draw: st.DrawFn) -> list[Job]:
    """Attempts that never hold more of a node than it has."""
    free = np.tile(np.array(SIZES), (41, 1))
    made: list[Job] = []
    for _ in range(draw(st.integers(1, 12))):
        queued = draw(st.integers(0, 30))
        start = draw(st.integers(queued, 35))
        end = draw(st.integers(start + 1, 40))
        most = free[start:end].min(axis=0)
        held = tuple(draw(st.integers(0, int(m))) for m in most)
        if sum(held):
            free[start:end] -= np.array(held)
            made.append((queued, start, end, draw(st.integers(0, QUEUES - 1)), held))
    return made


def plain(made: list[Job], quota: list[int], borrow: float) -> list[list[int]]:
    """Seconds by cause, looking at every second of every wait."""
    total = sum(SIZES)
    result = []
    for queued, start, _, queue, mine in made:
        gpus, seconds = sum(mine), [0, 0, 0, 0]
        for now in range(queued, start):
            running = [job for job in made if job[1] <= now < job[2]]
            used = sum(sum(job[4]) for job in running)
            queue_used = sum(sum(job[4]) for job in running if job[3] == queue)
            free = [size - sum(job[4][k] for job in running) for k, size in enumerate(SIZES)]
            fewest = math.ceil(gpus / max(SIZES))
            if queue_used + gpus > quota[queue] and not used + gpus <= borrow * total:
                cause = 0
            elif total - used < gpus:
                cause = 1
            elif any(
                sum(sorted((f for f, r in zip(free, RACKS, strict=True) if r == rack), reverse=True)[:fewest]) >= gpus
                for rack in set(RACKS)
            ):
                cause = 3
            else:
                cause = 2
            seconds[cause] += 1
        result.append(seconds)
    return result


@settings(max_examples=examples(150))
@given(jobs(), st.lists(st.integers(1, 26), min_size=QUEUES, max_size=QUEUES), st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_same_as_second_by_second(made: list[Job], quota: list[int], borrow: float) -> None:
    if not made:
        return
    column = lambda k: np.array([job[k] for job in made], float)  # noqa: E731
    gpus = np.array([sum(job[4]) for job in made])
    queue = column(3).astype(np.int64)
    spots = [(job[1], job[2], k, g) for job in made for k, g in enumerate(job[4]) if g]
    nodes = occupancy.Nodes(
        np.array(SIZES),
        np.array(RACKS),
        np.array([s[0] for s in spots], float),
        np.array([s[1] for s in spots], float),
        np.array([s[2] for s in spots]),
        np.array([s[3] for s in spots]),
    )
    unknown = np.full(gpus.size, np.nan)
    waits = delays.Waits(column(0), column(1), gpus, queue, np.zeros(gpus.size, np.int64), unknown)
    held = occupancy.Holdings(column(1), column(2), gpus.astype(float), queue)
    cluster = delays.Cluster(held, (nodes,), np.array(quota, float), borrow)
    found = delays.split(waits, cluster, delays.states(waits, cluster))
    assert found.seconds.tolist() == plain(made, quota, borrow)
    overtaken = [
        min((sum(o[4]) for o in made if o[3] == j[3] and o[0] < j[0] and o[1] > j[1]), default=0) for j in made
    ]
    assert found.overtook_gpus.tolist() == overtaken


@settings(max_examples=examples(300))
@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 20), st.sampled_from([1.0, 2.0, 3.0, math.nan])), max_size=12
    ),
    st.lists(st.booleans(), min_size=21, max_size=21),
)
def test_behind_a_higher_priority_as_second_by_second(made: list[tuple[int, int, float]], counts: list[bool]) -> None:
    times = np.arange(21.0)
    start, end, priority = (np.array([wait[k] for wait in made], float) for k in range(3))
    end = np.maximum(start, end)
    known = np.flatnonzero(~np.isnan(priority))
    first, last = (np.searchsorted(times, at[known]) for at in (start, end))
    most = highest(times.size, first, last, priority[known], -math.inf)
    known_waits = [wait for wait in zip(start, end, priority, strict=True) if not math.isnan(wait[2])]
    waiting = [[p for s, e, p in known_waits if s <= t < e] for t in times]
    assert most.tolist() == [max(some, default=-math.inf) for some in waiting]
    found = delays.seconds_behind(times, np.array(counts, float), Ranked(most), start, end, priority)
    assert found.tolist() == [
        sum(1 for t in range(int(s), int(e)) if counts[t] and max(waiting[t], default=-math.inf) > p)
        for s, e, p in zip(start, end, priority, strict=True)
    ]
