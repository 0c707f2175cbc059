"""The compiled waiting line of backfilling policies: the next job in order with a short enough time limit.

Jobs of a group request the same GPUs on the same nodes under the same rules. Each group is a segment tree over its jobs
in order, with the planned seconds of waiting jobs as leaves: the next waiting job of a group, with or without a bound
on planned seconds, is found in time logarithmic in the group's size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuctl.compiled.bundles import Bundle, floats, ints
from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.requeue_kernel import to_tail


class Line(Bundle):
    """Jobs in a fixed order; waiting ones are marked with their planned seconds."""

    rank = ints()  # place of each job in the order, unique [jobs]
    group = ints()  # group of each job [jobs]
    slot = ints()  # place of each job among those of all groups [jobs]
    job = ints()  # the job of each slot: group after group, each in order [jobs]
    first = ints()  # first slot of each group [groups + 1]
    base = ints()  # where each group's tree begins in `low` [groups]
    width = ints()  # leaves of each group's tree, a power of two [groups]
    low = floats()  # least planned seconds below each node; inf if none waits


def line(rank: NDArray[np.int64], group: NDArray[np.int64]) -> Line:
    """An empty line.

    Args:
        rank: place of each job in the order, 0 to jobs - 1.
        group: number of each job's group, from 0 on.
    """
    job = np.lexsort((rank, group)).astype(np.int64)
    slot = np.empty(job.size, np.int64)
    slot[job] = np.arange(job.size)
    count = np.bincount(group, minlength=1)
    width = 1 << np.ceil(np.log2(np.maximum(count, 1))).astype(np.int64)
    return Line(
        rank=rank,
        group=group,
        slot=slot,
        job=job,
        first=np.append(0, np.cumsum(count)),
        base=np.append(0, np.cumsum(2 * width))[:-1],
        width=width,
        low=np.full(int(2 * width.sum()), np.inf),
    )


@inner
def mark(q, j, seconds):  # type: ignore[no-untyped-def]
    """Mark a job as waiting with its planned seconds; inf: not waiting."""
    group = q.group[j]
    base = q.base[group]
    at = q.width[group] + q.slot[j] - q.first[group]
    q.low[base + at] = seconds
    at >>= 1
    while at > 0:
        least = min(q.low[base + 2 * at], q.low[base + 2 * at + 1])
        if q.low[base + at] == least:
            return
        q.low[base + at] = least
        at >>= 1


@inner
def move_to_tail(s, q, j):  # type: ignore[no-untyped-def]
    """Move a job that does not wait behind all that have been submitted so far."""
    to_tail(s, q.rank, j)
    group = q.group[j]
    leaves = q.base[group] + q.width[group] - q.first[group]
    at = q.slot[j]
    while at + 1 < q.first[group + 1] and q.rank[q.job[at + 1]] < q.rank[j]:
        other = q.job[at + 1]
        q.job[at] = other
        q.slot[other] = at
        mark(q, other, q.low[leaves + at + 1])
        at += 1
    q.job[at] = j
    q.slot[j] = at
    mark(q, j, np.inf)


@inner
def next_of(q, group, after, most):  # type: ignore[no-untyped-def]
    """The next waiting job of a group after a rank, planned for at most `most` seconds; -1 none."""
    base, width = q.base[group], q.width[group]
    if q.low[base + 1] > most or q.low[base + 1] == np.inf:
        return -1
    # the first slot of a higher rank
    begin, end = q.first[group], q.first[group + 1]
    a, b = begin, end
    while a < b:
        middle = (a + b) >> 1
        if q.rank[q.job[middle]] > after:
            b = middle
        else:
            a = middle + 1
    if a == end:
        return -1
    at = width + a - begin
    # up to the first subtree to the right that has one …
    while q.low[base + at] > most or q.low[base + at] == np.inf:
        while at & 1:
            at >>= 1
        if at == 0:
            return -1
        at += 1
    # … and down to its first leaf
    while at < width:
        at <<= 1
        if q.low[base + at] > most or q.low[base + at] == np.inf:
            at += 1
    return q.job[begin + at - width]


@inner
def next_in_line(q, after):  # type: ignore[no-untyped-def]
    """The next waiting job after a rank; -1 none."""
    best = -1
    for group in range(q.base.size):
        j = next_of(q, group, after, np.inf)
        if j >= 0 and (best < 0 or q.rank[j] < q.rank[best]):
            best = j
    return best
