"""Compiled: places GPUs sold in an auction of Themis: near those of the app, or as close together as possible."""

from __future__ import annotations

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.instant_kernel import grant
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.placement_kernel import choose, find, free_for, set_free, suits
from gpuctl.replay.engine.reshuffle_kernel import drop, is_there, lift, lower, relocate
from gpuctl.replay.engine.state import NEAR
from gpuctl.replay.policies.elastic.themis_app_kernel import R_LEASE, R_LOSES, R_WINS, gather, lift_app, share_out


@inner
def _take_back(s, m, j, gpus):  # type: ignore[no-untyped-def]
    """Put some of the GPUs that a job has just lost into `mine`: where it had most, then by number."""
    row = s.attempts[s.jobs[j].row]
    left = gpus
    for _ in range(row.pieces):
        best, most = -1, 0
        for k in range(row.first, row.first + row.pieces):
            piece = s.pieces[k]
            ahead = piece.gpus > most or (piece.gpus == most and piece.node < best)
            if m.mine[piece.node] == 0 and ahead:
                best, most = piece.node, piece.gpus
        if best < 0 or left == 0:
            break
        some = min(left, most)
        m.mine[best] = some
        left -= some
    return left


@inner
def _forget(s, m, j):  # type: ignore[no-untyped-def]
    row = s.attempts[s.jobs[j].row]
    for k in range(row.first, row.first + row.pieces):
        m.mine[s.pieces[k].node] = 0


@inner
def _free_mine(s, m, j, sign):  # type: ignore[no-untyped-def]
    row = s.attempts[s.jobs[j].row]
    for k in range(row.first, row.first + row.pieces):
        node = s.pieces[k].node
        if m.mine[node] > 0:
            set_free(s, node, s.nodes[node].free + sign * m.mine[node])


@inner
def _first_node(s, m, mask):  # type: ignore[no-untyped-def]
    """The node for GPUs besides `mine`: one of those, of their racks, or another; the freest, then the lowest."""
    best = -1
    for k in range(s.nodes.size):
        node = s.nodes[k]
        if node.free == 0 or m.more[k] > 0 or not suits(s, k, mask):
            continue
        if best < 0:
            best = k
            continue
        own, near, free = m.mine[k] - m.mine[best], m.racks[node.rack] - m.racks[s.nodes[best].rack], 0
        free = node.free - s.nodes[best].free
        if own > 0 or (own == 0 and (near > 0 or (near == 0 and free > 0))):
            best = k
    return best


@inner
def _find_more(s, m, mask, gpus):  # type: ignore[no-untyped-def]
    """Put up to a number of free GPUs into `more`, near those in `mine` and their `racks`."""
    while gpus > 0:
        best = _first_node(s, m, mask)
        if best < 0:
            break
        m.more[best] = min(gpus, s.nodes[best].free)
        gpus -= m.more[best]


@inner
def _continue_job(s, m, j, gpus):  # type: ignore[no-untyped-def]
    """Continue a job that holds GPUs, or has just lost them, on those in `mine` and some more.

    Those in `mine` are not free. Returns the number of its GPUs.
    """
    job = s.jobs[j]
    row = s.attempts[job.row]
    for k in range(row.first, row.first + row.pieces):
        if m.mine[s.pieces[k].node] > 0:
            m.racks[s.nodes[s.pieces[k].node].rack] = 1
    _find_more(s, m, job.mask, gpus)
    s.g[0].chosen = 0
    have = 0
    for k in range(s.nodes.size):
        if m.mine[k] + m.more[k] > 0:
            choose(s, k, m.mine[k] + m.more[k])
            have += m.mine[k] + m.more[k]
        m.more[k] = 0
        m.racks[s.nodes[k].rack] = 0
    if m.bidders[j].lifted == 1:
        _free_mine(s, m, j, 1)
    else:
        lift(s, j)
    _forget(s, m, j)
    if have < m.bidders[j].least:
        drop(s, j, R_LOSES)
    elif is_there(s, j):
        lower(s, j)
    else:
        relocate(s, j, R_WINS)
    s.g[0].chosen = 0
    return have


@inner
def _starts(s, m, j, gpus):  # type: ignore[no-untyped-def]
    job = s.jobs[j]
    # fewer if others have got GPUs that it may use
    some = min(gpus, free_for(s, job.mask))
    if some >= m.bidders[j].least and find(s, job.mask, some, NEAR):
        launch(s, j, R_WINS)
        grant(s, j, s.g[0].now + m.p[0].lease, R_LEASE)


@inner
def _own_of_app(s, m, h):  # type: ignore[no-untyped-def]
    """Put into `mine` an app's GPUs, or those that it regains. Returns its additional GPUs."""
    app = m.bidders[h]
    gather(s, m, h)
    if app.lifted == 0:
        return app.gets
    left = app.gets
    while left > 0:
        best = 0
        for k in range(s.nodes.size):
            if m.mine[k] > m.mine[best]:
                best = k
        if m.mine[best] == 0:
            break
        m.whole[best] = min(left, m.mine[best])
        left -= m.whole[best]
        m.mine[best] = 0
    for k in range(s.nodes.size):
        m.mine[k], m.whole[k] = m.whole[k], 0
    return left


@inner
def _hold_mine(s, m, sign):  # type: ignore[no-untyped-def]
    for k in range(s.nodes.size):
        if m.mine[k] > 0:
            set_free(s, k, s.nodes[k].free + sign * m.mine[k])


@inner
def _place_app(s, m, h):  # type: ignore[no-untyped-def]
    """Give an app of several jobs its new GPUs, near its own, and redivide all among its jobs."""
    app, mask = m.bidders[h], s.jobs[h].mask
    more = _own_of_app(s, m, h)
    if app.has == 0:
        app.until = s.g[0].now + m.p[0].lease
    held = 0
    for k in range(s.nodes.size):
        if m.mine[k] > 0:
            held += m.mine[k]
            m.racks[s.nodes[k].rack] = 1
    if held > 0:
        _find_more(s, m, mask, more)
    elif find(s, mask, min(more, free_for(s, mask)), NEAR):
        for k in range(s.g[0].chosen):
            m.more[s.choice[k].node] = s.choice[k].gpus
        s.g[0].chosen = 0
    m.racks[:] = 0
    for k in range(s.nodes.size):
        m.whole[k] = m.mine[k] + m.more[k]
    if app.lifted == 1:
        _hold_mine(s, m, 1)
    else:
        lift_app(s, m, h)
    share_out(s, m, h)


@inner
def place(s, m, a):  # type: ignore[no-untyped-def]
    """First regain lost GPUs of jobs; then place the rest in order of rank."""
    p = m.p[0]
    for k in range(p.ended):
        j = m.ended[k]
        if m.bidders[j].several == 1:
            if m.bidders[j].gets == 0:
                m.whole[:] = 0
                share_out(s, m, j)
            else:
                _own_of_app(s, m, j)
                _hold_mine(s, m, -1)
                m.mine[:] = 0
        elif m.bidders[j].gets == 0:
            drop(s, j, R_LOSES)
        else:
            _take_back(s, m, j, m.bidders[j].gets)
            _free_mine(s, m, j, -1)
            _forget(s, m, j)
    for i in range(a.p[0].known):
        j = m.rank[i]
        bidder = m.bidders[j]
        if bidder.gets == 0:
            continue
        if bidder.several == 1:
            _place_app(s, m, j)
        elif bidder.lifted == 1:
            if _continue_job(s, m, j, _take_back(s, m, j, bidder.gets)) >= bidder.least:
                grant(s, j, s.g[0].now + p.lease, R_LEASE)
        elif bidder.has > 0:
            row = s.attempts[s.jobs[j].row]
            for k in range(row.first, row.first + row.pieces):
                m.mine[s.pieces[k].node] = s.pieces[k].gpus
            _continue_job(s, m, j, bidder.gets)
        else:
            _starts(s, m, j, bidder.gets)
