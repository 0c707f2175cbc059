"""The compiled waiting list: one pairing heap per group of jobs that are identical for placement.

Jobs of a group request the same GPUs on the same nodes under the same rules, so only its first job is tried: if that
cannot start, none of the group can. A pass costs groups plus starts, independent of the queue's length, and starts the
same jobs as trying each in order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuctl.compiled.bundles import Bundle, floats, ints
from gpuctl.compiled.jit import inner


class Queue(Bundle):
    """Waiting jobs by group and key."""

    group = ints()  # group of each job [jobs]; changes with its level
    head = ints()  # first job of each group; -1 none
    level = ints()  # first part of a job's key: lower goes first
    key = floats()  # second part
    tie = ints()  # third part
    # links of the heaps [jobs]
    child = ints()
    after = ints()
    before = ints()
    bad = ints()  # the pass in which a group was found not to fit [groups]
    counter = ints()  # [4]: passes, stamps, jobs in the heaps, unused


def empty(group: NDArray[np.int64], groups: int) -> Queue:
    """A waiting list without jobs; `group` is the group of each job."""
    n = group.size
    return Queue(
        group=group.astype(np.int64),
        head=np.full(groups, -1),
        level=n,
        key=n,
        tie=np.arange(n, dtype=np.int64),
        child=np.full(n, -1),
        after=np.full(n, -1),
        before=np.full(n, -1),
        bad=np.full(groups, -1),
        counter=4,
    )


@inner
def sooner(q, a, b):  # type: ignore[no-untyped-def]
    """Whether job `a` precedes job `b`."""
    if q.level[a] != q.level[b]:
        return q.level[a] < q.level[b]
    if q.key[a] != q.key[b]:
        return q.key[a] < q.key[b]
    return q.tie[a] < q.tie[b]


@inner
def _meld(q, a, b):  # type: ignore[no-untyped-def]
    if a < 0:
        return b
    if b < 0:
        return a
    if sooner(q, b, a):
        a, b = b, a
    first = q.child[a]
    q.after[b] = first
    if first >= 0:
        q.before[first] = b
    q.before[b] = a
    q.child[a] = b
    q.after[a] = -1
    q.before[a] = -1
    return a


@inner
def _gather(q, first):  # type: ignore[no-untyped-def]
    # two passes: meld neighbours from the left, then the results from the right
    pairs = -1
    while first >= 0:
        a = first
        b = q.after[a]
        first = q.after[b] if b >= 0 else -1
        q.after[a] = -1
        q.before[a] = -1
        if b >= 0:
            q.after[b] = -1
            q.before[b] = -1
        top = _meld(q, a, b)
        q.after[top] = pairs
        pairs = top
    root = -1
    while pairs >= 0:
        following = q.after[pairs]
        q.after[pairs] = -1
        root = _meld(q, root, pairs)
        pairs = following
    return root


@inner
def insert(q, j):  # type: ignore[no-untyped-def]
    """Insert a job into its group, by its present key."""
    q.child[j] = -1
    q.after[j] = -1
    q.before[j] = -1
    group = q.group[j]
    q.head[group] = _meld(q, q.head[group], j)
    q.counter[2] += 1


@inner
def pop(q, group):  # type: ignore[no-untyped-def]
    """Remove a group's first job."""
    j = q.head[group]
    q.head[group] = _gather(q, q.child[j])
    q.child[j] = -1
    q.counter[2] -= 1
    return j


@inner
def remove(q, j):  # type: ignore[no-untyped-def]
    """Remove any waiting job."""
    group = q.group[j]
    if q.head[group] == j:
        pop(q, group)
        return
    left, right = q.before[j], q.after[j]
    if q.child[left] == j:
        q.child[left] = right
    else:
        q.after[left] = right
    if right >= 0:
        q.before[right] = left
    q.before[j] = -1
    q.after[j] = -1
    rest = _gather(q, q.child[j])
    q.child[j] = -1
    q.head[group] = _meld(q, q.head[group], rest)
    q.counter[2] -= 1


@inner
def first(q):  # type: ignore[no-untyped-def]
    """The first job of all groups not marked as unfit in this pass; -1 none."""
    best = -1
    this = q.counter[0]
    for group in range(q.head.size):
        j = q.head[group]
        if j >= 0 and q.bad[group] != this and (best < 0 or sooner(q, j, best)):
            best = j
    return best
