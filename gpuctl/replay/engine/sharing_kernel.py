"""Compiled: jobs on another job's GPUs: their placement, and a host's resizing with its guests.

Guests are nested: on a node a larger guest is on all GPUs that a smaller one is on, and the host on all of them. So the
largest guest covers all others, and each GPU is split evenly among the jobs on it (`job_kernel.new_rates`).
"""

from __future__ import annotations

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.instant_kernel import go_on
from gpuctl.replay.engine.job_life_kernel import begin, join, new_rates, note, resume_cost, take
from gpuctl.replay.engine.placement_kernel import choose, find
from gpuctl.replay.engine.reshuffle_kernel import close, lift
from gpuctl.replay.engine.resource_kernel import let_go
from gpuctl.replay.engine.state import A_RESIZED, D_RESIZE, D_SHARE


@inner
def lay_out(s, host, gpus):  # type: ignore[no-untyped-def]
    """Choose GPUs of a host for a new guest: those of the next smaller guest, the rest from the next larger one's."""
    below, above = -1, s.jobs[host].guest
    while above >= 0 and s.jobs[above].held < gpus:
        below, above = above, s.jobs[above].next_guest
    g = s.g[0]
    g.chosen = 0
    left = gpus
    if below >= 0:
        row = s.attempts[s.jobs[below].row]
        for k in range(row.first, row.first + row.pieces):
            choose(s, s.pieces[k].node, s.pieces[k].gpus)
            left -= s.pieces[k].gpus
    row = s.attempts[s.jobs[host if above < 0 else above].row]
    for k in range(row.first, row.first + row.pieces):
        at = _chosen_at(s, s.pieces[k].node)
        some = min(left, s.pieces[k].gpus - (s.choice[at].gpus if at >= 0 else 0))
        if some > 0:
            if at >= 0:
                s.choice[at].gpus += some
            else:
                choose(s, s.pieces[k].node, some)
            left -= some


@inner
def _chosen_at(s, node):  # type: ignore[no-untyped-def]
    for k in range(s.g[0].chosen):
        if s.choice[k].node == node:
            return k
    return -1


@inner
def share(s, j, host, sliced, reason):  # type: ignore[no-untyped-def]
    """Start a waiting job on the GPUs in `choice`, part of a running job's."""
    g = s.g[0]
    job = s.jobs[j]
    owner = s.jobs[host]
    g.waiting -= 1
    job.host = host
    gpus = take(s, j, 1)
    job.level = owner.level if g.chosen > 1 else 0
    join(s, j, host)
    owner.sliced = sliced
    note(s, D_SHARE, j, gpus, job.row, reason)
    begin(s, j, resume_cost(s, j))
    new_rates(s, host)


@inner
def largest_guest(s, j):  # type: ignore[no-untyped-def]
    """The guest of a host that covers all others; -1 none."""
    at = s.jobs[j].guest
    while at >= 0 and s.jobs[at].next_guest >= 0:
        at = s.jobs[at].next_guest
    return at


@inner
def guests_on(s, j, node):  # type: ignore[no-untyped-def]
    """GPUs of a node on which a host has guests."""
    at = largest_guest(s, j)
    if at >= 0:
        row = s.attempts[s.jobs[at].row]
        for k in range(row.first, row.first + row.pieces):
            if s.pieces[k].node == node:
                return s.pieces[k].gpus
    return 0


@inner
def own_on(s, j, node):  # type: ignore[no-untyped-def]
    """GPUs of a node that a running job would free by leaving: a guest none, a host those without guests."""
    job = s.jobs[j]
    if job.host >= 0:
        return 0
    row = s.attempts[job.row]
    for k in range(row.first, row.first + row.pieces):
        if s.pieces[k].node == node:
            return s.pieces[k].gpus - guests_on(s, j, node)
    return 0


@inner
def covers_guests(s, j):  # type: ignore[no-untyped-def]
    """Whether the choice has all GPUs on which a host's guests are."""
    at = largest_guest(s, j)
    if at < 0:
        return True
    row = s.attempts[s.jobs[at].row]
    for k in range(row.first, row.first + row.pieces):
        place = _chosen_at(s, s.pieces[k].node)
        if place < 0 or s.choice[place].gpus < s.pieces[k].gpus:
            return False
    return True


@inner
def extend(s, j, gpus, how):  # type: ignore[no-untyped-def]
    """Choose GPUs for a host that keeps its guests: additional ones, or fewer without those of guests."""
    g = s.g[0]
    job = s.jobs[j]
    row = s.attempts[job.row]
    extra = gpus - job.held
    # `order` holds the additional GPUs per node
    if extra > 0:
        if not find(s, job.mask, extra, how):
            return False
        s.order[:] = 0
        for k in range(g.chosen):
            s.order[s.choice[k].node] = s.choice[k].gpus
    else:
        s.order[:] = 0
        for k in range(row.first + row.pieces - 1, row.first - 1, -1):
            piece = s.pieces[k]
            less = min(-extra, piece.gpus - guests_on(s, j, piece.node))
            s.order[piece.node] = -less
            extra += less
        if extra < 0:
            return False
    g.chosen = 0
    for k in range(row.first, row.first + row.pieces):
        piece = s.pieces[k]
        if piece.gpus + s.order[piece.node] > 0:
            choose(s, piece.node, piece.gpus + s.order[piece.node])
        s.order[piece.node] = 0
    for number in range(s.nodes.size):
        if s.order[number] > 0:
            choose(s, number, s.order[number])
    return True


@inner
def regrow(s, j, reason):  # type: ignore[no-untyped-def]
    """Resize a host to the GPUs in `choice`, which cover its guests."""
    job = s.jobs[j]
    start, lease = job.start, job.lease
    group = s.attempts[job.row].group
    if s.g[0].resources == 1:
        let_go(s, j)
    lift(s, j)
    close(s, j, A_RESIZED)
    go_on(s, j, D_RESIZE, start, lease, reason)
    s.attempts[job.row].group = group
    new_rates(s, j)
