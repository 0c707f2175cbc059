"""Compiled: loans of nodes to another class of nodes, and their return."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.event_heap_kernel import cancel, schedule
from gpuctl.replay.engine.job_life_kernel import emit, note
from gpuctl.replay.engine.placement_kernel import set_free
from gpuctl.replay.engine.preemption_kernel import throw_out
from gpuctl.replay.engine.state import (
    A_RECLAIMED,
    C_LEASE,
    D_LOAN,
    D_RECLAIM,
    D_RETURN,
    E_RECLAIM,
    NAMED_TIMERS,
    RUNNING,
    SUSPENDING,
)


@inner
def loan_node(s, number):  # type: ignore[no-untyped-def]
    """The heap node of a node's reclaim event."""
    return 3 * s.jobs.size + NAMED_TIMERS + 2 + number


@inner
def lend(s, number, cls, until, notice, reason):  # type: ignore[no-untyped-def]
    """Lend an idle node to a class until a second (inf: until changed explicitly)."""
    node = s.nodes[number]
    _change_class(s, number, cls)
    note(s, D_LOAN, -1, node.cap, number, reason)
    cancel(s, loan_node(s, number))
    node.back = np.inf
    if cls != node.home and until < np.inf:
        node.back = until
        schedule(s, loan_node(s, number), max(until - notice, s.g[0].now), C_LEASE)


@inner
def wanted_back(s, number):  # type: ignore[no-untyped-def]
    """Handle the notice or the due time of a lent node.

    From the notice on, only jobs that may use it at home start on it; others lose their GPUs when it is due.
    """
    node = s.nodes[number]
    emit(s, E_RECLAIM, number)
    if node.cls != node.home:
        _change_class(s, number, node.home)
    if s.g[0].now < node.back:
        schedule(s, loan_node(s, number), node.back, C_LEASE)
        return
    node.back = np.inf
    for j in range(s.jobs.size):
        job = s.jobs[j]
        if (job.state == RUNNING or job.state == SUSPENDING) and job.mask >> np.uint64(node.home) & np.uint64(1) == 0:
            row = s.attempts[job.row]
            for k in range(row.first, row.first + row.pieces):
                if s.pieces[k].node == number:
                    throw_out(s, j, D_RECLAIM, A_RECLAIMED)
                    break
    note(s, D_RETURN, -1, node.cap, number, 0)


@inner
def _change_class(s, number, cls):  # type: ignore[no-untyped-def]
    """Move a node and its free GPUs from one class to another."""
    node = s.nodes[number]
    free, old = node.free, node.cls
    if node.up == 1:
        set_free(s, number, 0)
    # from the index of its old class to that of the new one
    word, bit = number >> 6, np.uint64(1) << np.uint64(number & 63)
    s.bits[old, 0, word] &= ~bit
    s.count[old, 0] -= 1
    node.cls = cls
    s.bits[cls, 0, word] |= bit
    s.count[cls, 0] += 1
    s.class_cap[old] = s.class_cap[cls] = 0
    for k in range(s.nodes.size):
        other = s.nodes[k]
        s.class_cap[other.cls] = max(s.class_cap[other.cls], other.cap)
    if node.up == 1:
        set_free(s, number, free)
