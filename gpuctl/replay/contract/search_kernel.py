"""Where a job of a policy written in Python may go: by its size, quotas and GPU types, and past reservations.

Numbers of jobs and servers may be any; see `gpuctl.replay.contract.view_kernel`.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.placement_kernel import hide, set_free
from gpuctl.replay.engine.resource_kernel import find_units, lend_own
from gpuctl.replay.engine.state import RUNNING, state_at

ANY_TYPE = -2
"""Stands for GPUs of any type; -1 are those whose type is not known."""


@inner
def is_job(s, j):  # type: ignore[no-untyped-def]
    """Whether there is such a job."""
    return 0 <= j < s.jobs.size


@inner
def is_server(s, number):  # type: ignore[no-untyped-def]
    """Whether there is such a server."""
    return 0 <= number < s.servers.size


@inner
def within_limit(s, j, more):  # type: ignore[no-untyped-def]
    """Whether the job's queue may hold so many more GPUs."""
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
    """Hide GPUs of other types than wanted, and those reserved from a job that would hold them when they are wanted.

    Returns:
        the classes of the servers of the type wanted.
    """
    until = may_hold_until(s, j)
    classes = np.uint64(0)
    for number in range(s.servers.size):
        server = s.servers[number]
        if kind != ANY_TYPE and server.kind != kind:
            hide(s, number, server.free)
            continue
        classes |= np.uint64(1) << np.uint64(server.cls)
        if server.kept_for >= 0 and server.kept_for != j and until > server.kept_from:
            hide(s, number, min(server.kept_gpus, server.free))
    return classes


@inner
def search(s, j, gpus, how, kind):  # type: ignore[no-untyped-def]
    """Choose places for a job on GPUs of a type: none that another job has reserved for the time in question."""
    if s.g[0].kept == 0 and kind == ANY_TYPE:
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
    """Show again what `reserved` has hidden."""
    for number in range(s.servers.size):
        if s.servers[number].hidden > 0:
            hide(s, number, 0)


@inner
def drop_reservation(s, j):  # type: ignore[no-untyped-def]
    """Keep no GPUs for a job any more."""
    g = s.g[0]
    for number in range(s.servers.size):
        if s.servers[number].kept_for == j:
            s.servers[number].kept_for = -1
            g.kept -= 1


@inner
def may_run_on(s, j, gpus):  # type: ignore[no-untyped-def]
    """Whether a job runs on so many GPUs."""
    job = s.jobs[j]
    return job.least <= gpus <= job.most


@compiled
def step_aside(address, j, heir, sign):  # type: ignore[no-untyped-def]
    """Let what a job would free by leaving count as free (1), or no more (-1); nothing else changes.

    Args:
        address: of the simulation.
        j: a job that holds GPUs.
        heir: its largest guest that stays, which has its GPUs from then on; -1: none.
        sign: 1 or -1; whoever asks for 1 asks for -1 before anything else happens.
    """
    s = state_at(address)
    if not is_job(s, j) or heir >= s.jobs.size or s.jobs[j].held == 0:
        return False
    job = s.jobs[j]
    lend_own(s, j, sign)
    if job.host >= 0:
        return True
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
                if s.pieces[i].server == piece.server:
                    stays = s.pieces[i].gpus
        set_free(s, piece.server, s.servers[piece.server].free + sign * (piece.gpus - stays))
    return True


@compiled
def place_for(address, j, wanted, how, kind):  # type: ignore[no-untyped-def]
    """Choose where a job would be put now; pieces in `choice`, -1 where it does not fit. Nothing is started."""
    s = state_at(address)
    if not is_job(s, j):
        return -1
    job = s.jobs[j]
    gpus = wanted if wanted != 0 else job.gpus
    if s.g[0].free < gpus or not may_run_on(s, j, gpus) or not within_limit(s, j, gpus):
        return -1
    return s.g[0].chosen if search(s, j, gpus, how, kind) else -1
