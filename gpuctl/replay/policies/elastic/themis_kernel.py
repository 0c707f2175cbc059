"""The compiled instant of Themis: leases end, bidders are ranked by finish-time fairness, GPUs are sold and placed.

An instant costs O(B) for B bidders, O(log B) per bidder whose rank is needed, and an auction.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.heap_kernel import sink
from gpuctl.replay.engine.job_life_kernel import settle
from gpuctl.replay.engine.key_kernel import micro, nano
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import free_for, suits
from gpuctl.replay.engine.reshuffle_kernel import lift
from gpuctl.replay.engine.state import FINISHED, REJECTED, RUNNING, WAITING
from gpuctl.replay.policies.elastic.auction_kernel import sell, sell_rest
from gpuctl.replay.policies.elastic.themis_app_kernel import (
    advance,
    divide_anew,
    fairness,
    gather,
    inherit,
    joins,
    leaves,
    level_of_mine,
    lift_app,
    update_app,
)
from gpuctl.replay.policies.elastic.themis_placement_kernel import place

# ---- events


@inner
def handle_submission(s, job, m, a):  # type: ignore[no-untyped-def]
    """Handle a submitted job."""
    advance(s, m)
    p = m.p[0]
    p.requested += s.jobs[job].gpus
    p.go = 1
    if m.bidders[job].several == 1:
        joins(s, job, m)
        return
    p.jobs += 1
    m.bidders[job].since, m.bidders[job].area = s.g[0].now, p.area
    m.line[p.line] = job
    p.line += 1


@inner
def ends(s, job, m, a):  # type: ignore[no-untyped-def]
    """Handle an ended job."""
    advance(s, m)
    m.p[0].requested -= s.jobs[job].gpus
    m.p[0].go = 1
    if m.bidders[job].several == 1:
        leaves(s, job, m)
    else:
        m.p[0].jobs -= 1


@inner
def changes(s, who, m, a):  # type: ignore[no-untyped-def]
    """Handle a node that goes down or comes up."""
    m.p[0].go = 1


@inner
def handle_requeue(s, job, m, a):  # type: ignore[no-untyped-def]
    """Handle a requeued job."""
    m.p[0].go = 1
    m.bidders[m.bidders[job].head].altered = 1


@inner
def lease_ends(s, job, m, a):  # type: ignore[no-untyped-def]
    """Handle the end of a job's lease."""
    p = m.p[0]
    p.go = 1
    # of an app of several jobs once
    h = m.bidders[job].head
    if s.jobs[job].state == RUNNING and m.bidders[h].pushed == 0:
        m.bidders[h].pushed = 1
        m.ended[p.ended] = h
        p.ended += 1


# ---- bids and rank


@inner
def worth(s, m, a, i, k):  # type: ignore[no-untyped-def]
    """Value of k more GPUs to the i-th bidder: - ln rho, in billionths."""
    j = m.rank[i]
    bidder = m.bidders[j]
    level = 0 if k <= bidder.near else 1 if k <= bidder.far else 2
    more = s.jobs[j].move if bidder.has > 0 and k > 0 else 0.0
    return nano(-np.log(fairness(s, m, j, bidder.has + k, level, more)))


@inner
def _ahead(m, x, y):  # type: ignore[no-untyped-def]
    one, other = m.bidders[x], m.bidders[y]
    if (one.has > 0) != (other.has > 0):
        return one.has == 0
    if one.key != other.key:
        return one.key > other.key
    return one.place < other.place


@inner
def _rank_app(s, m, a, h):  # type: ignore[no-untyped-def]
    """Whether an app of several jobs bids; sets its fairness."""
    app, sale = m.bidders[h], a.p[0]
    update_app(s, m, h)
    if app.has >= app.asks:
        return False
    if app.has == 0:
        sale.waiting += 1
        sale.fewest = min(sale.fewest, app.least)
        gpus = min(app.asks, np.int64(m.p[0].gpus))
        app.key = micro(fairness(s, m, h, gpus, m.level[gpus], 0.0))
        return True
    gather(s, m, h)
    app.level, _ = level_of_mine(s, m)
    m.mine[:] = 0
    app.key = micro(fairness(s, m, h, app.has, app.level, 0.0))
    return True


@inner
def _rank(s, m, a):  # type: ignore[no-untyped-def]
    """Select the apps that bid and compute rho of each."""
    p, sale = m.p[0], a.p[0]
    end = 0
    p.heap = 0
    sale.waiting, sale.known, sale.rows, sale.fewest = 0, 0, 0, s.g[0].total + 1
    for k in range(p.line):
        j = m.line[k]
        job, bidder = s.jobs[j], m.bidders[j]
        if bidder.several == 0 and (job.state == FINISHED or job.state == REJECTED):
            continue
        if bidder.several == 1 and bidder.first < 0:
            bidder.listed = 0
            continue
        m.line[end] = j
        end += 1
        bidder.gets = 0
        if bidder.several == 1:
            if not _rank_app(s, m, a, j):
                continue
        elif job.state == WAITING or bidder.lifted == 1:
            bidder.has = 0
            sale.waiting += 1
            sale.fewest = min(sale.fewest, bidder.least)
            if bidder.lifted == 1:
                settle(s, j)
            bidder.key = micro(fairness(s, m, j, job.gpus, m.level[job.gpus], 0.0))
        elif job.state == RUNNING and job.held < job.gpus:
            settle(s, j)
            bidder.has = job.held
            bidder.key = micro(fairness(s, m, j, job.held, job.level, 0.0))
        else:
            continue
        m.order[p.heap] = j
        p.heap += 1
    p.line = end
    p.bidders = p.heap
    for k in range(p.heap // 2 - 1, -1, -1):
        sink(m, m.order, 0, p.heap, k, m.order[k], _ahead)


@inner
def reach(s, m, a, i):  # type: ignore[no-untyped-def]
    """Determine the bidders up to the i-th in rank."""
    p, sale = m.p[0], a.p[0]
    while sale.known <= i:
        j = m.order[0]
        p.heap -= 1
        if p.heap > 0:
            sink(m, m.order, 0, p.heap, 0, m.order[p.heap], _ahead)
        bidder, job = m.bidders[j], s.jobs[j]
        k = sale.known
        sale.known += 1
        m.rank[k] = j
        a.won[k], a.granted[k], a.row[k] = -1, 0, -1
        asks = bidder.asks if bidder.several == 1 else job.gpus
        a.most[k] = min(asks - bidder.has, free_for(s, job.mask))
        if bidder.has > 0:
            a.least[k] = 0
            _near_own(s, m, j)
        else:
            a.least[k] = bidder.least
            _find_freest(s, m, job.mask)
            bidder.near, bidder.far = p.node, p.rack


@inner
def _in_rack(s, mask, rack):  # type: ignore[no-untyped-def]
    free = 0
    for cls in range(s.rack_free.shape[0]):
        if mask >> np.uint64(cls) & np.uint64(1):
            free += s.rack_free[cls, rack]
    return free


@inner
def _find_freest(s, m, mask):  # type: ignore[no-untyped-def]
    """Find the freest node and rack."""
    p = m.p[0]
    if p.node >= 0 and p.mask == mask:
        return
    p.mask, p.node, p.rack = mask, 0, 0
    for k in range(s.nodes.size):
        if suits(s, k, mask):
            p.node = max(p.node, s.nodes[k].free)
    for rack in range(s.rack_free.shape[1]):
        p.rack = max(p.rack, _in_rack(s, mask, rack))


@inner
def _near_own(s, m, j):  # type: ignore[no-untyped-def]
    """Count the additional GPUs that a job can get on its node, and in its rack."""
    job, bidder = s.jobs[j], m.bidders[j]
    if bidder.several == 1:
        gather(s, m, j)
        level, node = level_of_mine(s, m)
        m.mine[:] = 0
    else:
        level, node = job.level, s.pieces[s.attempts[job.row].first].node
    bidder.near = s.nodes[node].free if level == 0 else -1
    bidder.far = _in_rack(s, job.mask, s.nodes[node].rack) if level <= 1 else -1


# ---- an instant


@inner
def _divide_others(s, m):  # type: ignore[no-untyped-def]
    """Redivide the GPUs of apps that gained or lost a job, unless done already."""
    for k in range(m.p[0].line):
        app = m.bidders[m.line[k]]
        if app.several == 1 and app.altered == 1 and app.first >= 0:
            divide_anew(s, m, m.line[k])


@inner
def decide(s, m, a):  # type: ignore[no-untyped-def]
    """Sell free GPUs if a job was submitted, or a job or lease has ended."""
    p = m.p[0]
    if p.go == 0:
        return
    p.go = 0
    advance(s, m)
    inherit(s, m)
    for k in range(p.ended):
        m.bidders[m.ended[k]].lifted = 1
        if m.bidders[m.ended[k]].several == 1:
            lift_app(s, m, m.ended[k])
        else:
            lift(s, m.ended[k])
    if s.g[0].free > 0:
        _rank(s, m, a)
        p.node = -1
        sale = a.p[0]
        sale.pool = s.g[0].free
        sale.chosen = min(p.bidders, max(1, np.int64(np.ceil((1.0 - p.outside) * p.bidders - 1e-9))))
        sell(a, s, m, p.payments, reach, worth)
        sell_rest(a, s, m, p.bidders, reach, worth)
        for i in range(sale.known):
            m.bidders[m.rank[i]].gets = a.granted[i]
        place(s, m, a)
    if p.apps > 0:
        _divide_others(s, m)
    for k in range(p.ended):
        m.bidders[m.ended[k]].lifted, m.bidders[m.ended[k]].pushed = 0, 0
    p.ended, p.carried = 0, 0


@compiled
def run(s, m, a, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants."""
    return loop(
        s, (m, a), until, steps, decide=decide, on_finish=ends, on_requeue=handle_requeue, on_node_down=changes,
        on_node_up=changes, on_submit=handle_submission, on_lease_end=lease_ends,
    )  # fmt: skip
