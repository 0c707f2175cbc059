"""Compiled: re-place many running jobs at one instant, as if all had released their GPUs first.

Each is lifted; then nodes are chosen for one after the other, and it stays (`lower`), moves (`relocate`) or, if there
are none, waits again (`drop`). For policies whose jobs share no GPUs, and for GPUs alone.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.checkpoint_kernel import keep
from gpuctl.replay.engine.event_heap_kernel import cancel
from gpuctl.replay.engine.instant_kernel import go_on
from gpuctl.replay.engine.job_life_kernel import enqueue, note, settle, unspent
from gpuctl.replay.engine.placement_kernel import set_free
from gpuctl.replay.engine.state import (
    A_MIGRATED,
    A_PREEMPTED,
    A_RECLAIMED,
    A_RESIZED,
    D_MIGRATE,
    D_PREEMPT,
    D_RECLAIM,
    D_RESIZE,
)


@inner
def _count_free(s, j, sign):  # type: ignore[no-untyped-def]
    row = s.attempts[s.jobs[j].row]
    for k in range(row.first, row.first + row.pieces):
        piece = s.pieces[k]
        set_free(s, piece.node, s.nodes[piece.node].free + sign * piece.gpus)


@inner
def lift(s, j):  # type: ignore[no-untyped-def]
    """Make a running job's GPUs free for searches; `lower`, `relocate` or `drop` must follow."""
    _count_free(s, j, 1)


@inner
def lower(s, j):  # type: ignore[no-untyped-def]
    """Undo `lift`: the job keeps its GPUs."""
    _count_free(s, j, -1)


@inner
def is_there(s, j):  # type: ignore[no-untyped-def]
    """Whether a running job holds exactly the GPUs in `choice`."""
    g = s.g[0]
    row = s.attempts[s.jobs[j].row]
    if row.pieces != g.chosen:
        return False
    for k in range(row.first, row.first + row.pieces):
        same = False
        for i in range(g.chosen):
            if s.choice[i].node == s.pieces[k].node and s.choice[i].gpus == s.pieces[k].gpus:
                same = True
        if not same:
            return False
    return True


@inner
def close(s, j, how):  # type: ignore[no-untyped-def]
    """End the attempt of a lifted job."""
    g = s.g[0]
    job = s.jobs[j]
    settle(s, j)
    unspent(s, j)
    cancel(s, j)
    row = s.attempts[job.row]
    row.end, row.how = g.now, how
    keep(s, j)
    s.queue_used[job.queue] -= job.held
    s.share_used[job.share] -= job.held
    g.running -= 1
    job.lease = np.inf
    cancel(s, 2 * s.jobs.size + j)


@inner
def drop(s, j, reason):  # type: ignore[no-untyped-def]
    """Requeue a lifted job; its progress is kept."""
    _wait_again(s, j, D_PREEMPT, A_PREEMPTED, reason)


@inner
def drop_reclaimed(s, j, reason):  # type: ignore[no-untyped-def]
    """Requeue a lifted job because a lent node returns."""
    _wait_again(s, j, D_RECLAIM, A_RECLAIMED, reason)


@inner
def _wait_again(s, j, what, how, reason):  # type: ignore[no-untyped-def]
    job = s.jobs[j]
    note(s, what, j, job.held, job.row, reason)
    close(s, j, how)
    job.preempts += 1
    job.work += job.charge
    job.rate, job.held, job.counted = 0.0, 0, 0.0
    enqueue(s, j)


@inner
def relocate(s, j, reason):  # type: ignore[no-untyped-def]
    """Continue a lifted job on the GPUs in `choice`."""
    g = s.g[0]
    job = s.jobs[j]
    start, lease, held = job.start, job.lease, job.held
    gpus = 0
    for k in range(g.chosen):
        gpus += s.choice[k].gpus
    close(s, j, A_MIGRATED if gpus == held else A_RESIZED)
    go_on(s, j, D_MIGRATE if gpus == held else D_RESIZE, start, lease, reason)
