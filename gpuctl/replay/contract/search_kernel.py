"""Places of a job under a policy written in Python: by its size, quotas, GPU types and reservations.

Numbers of jobs and nodes may be invalid; see `gpuctl.replay.contract.view_kernel`.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.placement_kernel import hide, set_free
from gpuctl.replay.engine.resource_kernel import find_units, lend_own
from gpuctl.replay.engine.state import RUNNING, state_at

ANY_TYPE = -2
"""GPUs of any type; -1 is the unknown type."""


@inner
def is_job(s, j):  # type: ignore[no-untyped-def]
    """Whether there is such a job."""
    return 0 <= j < s.jobs.size


@inner
def is_node(s, number):  # type: ignore[no-untyped-def]
    """Whether there is such a node."""
    return 0 <= number < s.nodes.size


@inner
def within_limit(s, j, more):  # type: ignore[no-untyped-def]
    """Whether the job's queue may hold that many more GPUs."""
    queue = s.jobs[j].queue
    return s.queue_used[queue] + more <= s.queue_limit[queue]


@inner
def may_hold_until(s, j):  # type: ignore[no-untyped-def]
    """The second up to which a job may hold GPUs from now on, by its time limit; what it has run counts."""
    job = s.jobs[j]
    ran = job.ran - job.anew
    if job.state == RUNNING:
        ran += s.g[0].now - job.seen
    return s.g[0].now + job.limit - ran


@inner
def reserved(s, j, kind):  # type: ignore[no-untyped-def]
    """Hide GPUs of other types, and GPUs reserved for a time at which the job would still hold them.

    Returns:
        the classes of the nodes of the type wanted.
    """
    until = may_hold_until(s, j)
    classes = np.uint64(0)
    for number in range(s.nodes.size):
        node = s.nodes[number]
        if kind != ANY_TYPE and node.kind != kind:
            hide(s, number, node.free)
            continue
        classes |= np.uint64(1) << np.uint64(node.cls)
        if node.reserved_for >= 0 and node.reserved_for != j and until > node.reserved_from:
            hide(s, number, min(node.reserved_gpus, node.free))
    return classes


@inner
def search(s, j, gpus, how, kind):  # type: ignore[no-untyped-def]
    """Choose places for a job on GPUs of a type: none reserved by another job for its run time."""
    if s.g[0].reservations == 0 and kind == ANY_TYPE:
        return find_units(s, j, gpus, how)
    job = s.jobs[j]
    mask = job.mask
    job.mask = mask & reserved(s, j, kind)
    found = find_units(s, j, gpus, how)
    job.mask = mask
    unreserved(s)
    return found


@inner
def unreserved(s):  # type: ignore[no-untyped-def]
    """Undo the hiding of `reserved`."""
    for number in range(s.nodes.size):
        if s.nodes[number].hidden > 0:
            hide(s, number, 0)


@inner
def drop_reservation(s, j):  # type: ignore[no-untyped-def]
    """Drop a job's reservations."""
    g = s.g[0]
    for number in range(s.nodes.size):
        if s.nodes[number].reserved_for == j:
            s.nodes[number].reserved_for = -1
            g.reservations -= 1


@inner
def may_run_on(s, j, gpus):  # type: ignore[no-untyped-def]
    """Whether a job can run on that many GPUs."""
    job = s.jobs[j]
    return job.least <= gpus <= job.most


@inner
def _gone(s, j, count):  # type: ignore[no-untyped-def]
    for k in range(count):
        if s.fresh[k] == j:
            return True
    return False


@inner
def _heir(s, j, count):  # type: ignore[no-untyped-def]
    """The largest guest that stays on a host's GPUs and would own them; -1: none, or the job is no host."""
    heir = -1
    at = s.jobs[j].guest if s.jobs[j].host < 0 else -1
    while at >= 0:
        if not _gone(s, at, count):
            heir = at
        at = s.jobs[at].next_guest
    return heir


@inner
def _step_aside(s, j, count, sign):  # type: ignore[no-untyped-def]
    """Count what a job would free by leaving as free (1), or undo that (-1); nothing else changes."""
    if not is_job(s, j) or s.jobs[j].held == 0:
        return
    job = s.jobs[j]
    lend_own(s, j, sign)
    if job.host >= 0:
        return
    heir = _heir(s, j, count)
    row = s.attempts[job.row]
    s.queue_used[job.queue] -= sign * job.held
    if heir >= 0:
        s.queue_used[s.jobs[heir].queue] += sign * s.jobs[heir].held
    for k in range(row.first, row.first + row.pieces):
        piece = s.pieces[k]
        stays = 0
        if heir >= 0:
            other = s.attempts[s.jobs[heir].row]
            for i in range(other.first, other.first + other.pieces):
                if s.pieces[i].node == piece.node:
                    stays = s.pieces[i].gpus
        set_free(s, piece.node, s.nodes[piece.node].free + sign * (piece.gpus - stays))


@compiled
def place_without(address, j, count, wanted, how, kind):  # type: ignore[no-untyped-def]
    """Choose places for a job as if the first `count` jobs of ``fresh`` were gone.

    Returns the number of pieces in ``choice``, -1 if it does not fit. Nothing is started.
    """
    s = state_at(address)
    if not is_job(s, j) or not 0 <= count <= s.fresh.size:
        return -1
    for k in range(count):
        _step_aside(s, s.fresh[k], count, 1)
    job = s.jobs[j]
    gpus = wanted if wanted != 0 else job.gpus
    pieces = -1
    if s.g[0].free >= gpus and may_run_on(s, j, gpus) and within_limit(s, j, gpus) and search(s, j, gpus, how, kind):
        pieces = s.g[0].chosen
    for k in range(count):
        _step_aside(s, s.fresh[k], count, -1)
    return pieces
