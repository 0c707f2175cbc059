"""The compiled plan of a pass of backfill: free nodes in each of the next 288 slots of ten minutes.

It is independent of the simulator: `gpuctl.research.chain` also uses it.
"""

from __future__ import annotations

from gpuctl.compiled.jit import inner

SLOTS = 288
"""Slots of a plan: ``bf_window`` of 2,880 minutes."""

SLOT_MIN = 10
"""Minutes of a slot (``bf_resolution``), and from one pass of backfill to the next."""

LONGEST_LINE = 3000
"""Most jobs visited by one pass of backfill."""


@inner
def free_by_slot(slots, free, running, nodes, until, now):  # type: ignore[no-untyped-def]
    """Write the nodes free in each slot, by the running jobs' limits.

    A running job has its nodes in every slot that begins before its limit.

    Args:
        slots: written [SLOTS].
        free: nodes that are free now.
        running: number of running jobs.
        nodes: of each of them.
        until: the minute of its limit.
        now: the present minute.
    """
    slots[:] = 0
    for k in range(running):
        first = max((until[k] - now + SLOT_MIN - 1) // SLOT_MIN, 1)
        if first < SLOTS:
            slots[first] += nodes[k]
    for c in range(SLOTS):
        free += slots[c]
        slots[c] = free


@inner
def first_slot(slots, nodes, limit):  # type: ignore[no-untyped-def]
    """The first slot from which a number of nodes is free for some minutes; -1: there is none.

    Time beyond the window counts as free. After a slot without enough nodes the search continues behind it.
    """
    length = (limit + SLOT_MIN - 1) // SLOT_MIN
    begin = c = 0
    while c < SLOTS and c - begin < length:
        if slots[c] < nodes:
            begin = c + 1
        c += 1
    return begin if begin < SLOTS else -1


@inner
def reserve(slots, begin, nodes, limit):  # type: ignore[no-untyped-def]
    """Take the nodes from that slot on."""
    for c in range(begin, min(begin + (limit + SLOT_MIN - 1) // SLOT_MIN, SLOTS)):
        slots[c] -= nodes
