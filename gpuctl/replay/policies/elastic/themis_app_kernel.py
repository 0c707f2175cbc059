"""Compiled: apps of one or more jobs in Themis: their fairness, and the division of an app's GPUs among its jobs.

GPUs go to the jobs with most work left, each up to its gang. An app's end is predicted with its GPUs redivided whenever
one of its jobs ends: O(J^2) for J jobs, plus reordering by work left.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.instant_kernel import grant
from gpuctl.replay.engine.job_life_kernel import launch, settle
from gpuctl.replay.engine.key_kernel import micro
from gpuctl.replay.engine.placement_kernel import choose, set_free
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.reshuffle_kernel import drop, is_there, lift, lower, relocate
from gpuctl.replay.engine.speed_curve_kernel import scale
from gpuctl.replay.engine.state import RUNNING, WAITING
from gpuctl.replay.policies.elastic.themis_state import COUNT, INSTANT_S, NONE

R_WINS, R_LEASE, R_LOSES, R_SIBLING = range(len(REASONS), len(REASONS) + 4)
THEMIS_REASONS = (
    "wins GPUs, or gets what is left over",
    "a lease",
    "its lease has ended, and it wins none",
    "the GPUs of its app go to jobs with more work left",
)

# ---- contention


@inner
def contention(m):  # type: ignore[no-untyped-def]
    """Number of sharers of the cluster now."""
    p = m.p[0]
    return float(p.jobs) if p.contention == COUNT else max(1.0, p.requested / p.gpus)


@inner
def advance(s, m):  # type: ignore[no-untyped-def]
    """Update the integral of contention to now."""
    p = m.p[0]
    if s.g[0].now > p.until:
        p.area += contention(m) * (s.g[0].now - p.until)
        p.until = s.g[0].now


@inner
def _alone(s, m, j):  # type: ignore[no-untyped-def]
    """Seconds in which a job would end if it had its share of the cluster."""
    bidder = m.bidders[j]
    if m.p[0].contention == NONE:
        return bidder.ideal
    now = s.g[0].now
    if now <= bidder.since:
        return bidder.ideal * contention(m)
    return bidder.ideal * ((m.p[0].area - bidder.area) / (now - bidder.since))


# ---- jobs of an app


@inner
def joins(s, j, m):  # type: ignore[no-untyped-def]
    """Add a submitted job to an app of several."""
    p, own = m.p[0], m.bidders[j]
    h = own.head
    app = m.bidders[h]
    if app.first < 0:
        p.jobs += 1
        app.since, app.area, app.submit = s.g[0].now, p.area, s.jobs[j].submit
        app.longest, app.work, app.gangs, app.until = 0.0, 0.0, 0, np.inf
        if app.listed == 0:
            app.listed = 1
            m.line[p.line] = h
            p.line += 1
    before, at = -1, app.first
    while at >= 0 and m.bidders[at].place < own.place:
        before, at = at, m.bidders[at].next
    own.next = at
    if before < 0:
        app.first = j
    else:
        m.bidders[before].next = j
    app.longest = max(app.longest, s.jobs[j].submit - app.submit + own.alone)
    app.work += own.alone * s.jobs[j].gpus
    app.gangs += s.jobs[j].gpus
    app.ideal = app.longest if app.gangs <= p.gpus else max(app.longest, app.work / p.gpus)
    app.altered = 1


@inner
def leaves(s, j, m):  # type: ignore[no-untyped-def]
    """Remove an ended job of an app of several; its siblings inherit its GPUs for now."""
    p = m.p[0]
    h = m.bidders[j].head
    app = m.bidders[h]
    before, at = -1, app.first
    while at != j:
        before, at = at, m.bidders[at].next
    if before < 0:
        app.first = m.bidders[j].next
    else:
        m.bidders[before].next = m.bidders[j].next
    if app.first >= 0:
        m.gone[p.gone] = j
        p.gone += 1
        app.altered = 1
        return
    p.jobs -= 1
    for k in range(p.gone):
        if m.gone[k] >= 0 and m.bidders[m.gone[k]].head == h:
            m.gone[k] = -1


@inner
def _ready(s, j):  # type: ignore[no-untyped-def]
    return s.jobs[j].state == WAITING or s.jobs[j].state == RUNNING


@inner
def update_app(s, m, h):  # type: ignore[no-untyped-def]
    """Update an app's jobs to now, their requests and, unless the lease has just ended, their holdings."""
    app = m.bidders[h]
    app.asks, app.has = 0, 0
    j = app.first
    while j >= 0:
        if _ready(s, j):
            settle(s, j)
            app.asks += s.jobs[j].gpus
            if s.jobs[j].state == RUNNING and app.lifted == 0:
                app.has += s.jobs[j].held
        j = m.bidders[j].next
    for k in range(m.p[0].carried):
        if m.carried[k].who == h and app.lifted == 0:
            app.has += m.carried[k].gpus


@inner
def gather(s, m, h):  # type: ignore[no-untyped-def]
    """Add up in `mine` what an app's jobs hold, or held until their lease ended just now."""
    m.mine[:] = 0
    j = m.bidders[h].first
    while j >= 0:
        if s.jobs[j].state == RUNNING:
            row = s.attempts[s.jobs[j].row]
            for k in range(row.first, row.first + row.pieces):
                m.mine[s.pieces[k].node] += s.pieces[k].gpus
        j = m.bidders[j].next
    for k in range(m.p[0].carried):
        if m.carried[k].who == h:
            m.mine[m.carried[k].node] += m.carried[k].gpus


@inner
def level_of_mine(s, m):  # type: ignore[no-untyped-def]
    """The level of the GPUs in `mine`, and one node of them."""
    one, level = -1, 0
    for k in range(s.nodes.size):
        if m.mine[k] > 0:
            if one < 0:
                one = k
            elif s.nodes[k].rack != s.nodes[one].rack:
                level = 2
            else:
                level = max(level, 1)
    return level, one


# ---- finish-time fairness


@inner
def left_of(s, m, j):  # type: ignore[no-untyped-def]
    """Known remaining seconds of work of a job, which its search may end early."""
    job = s.jobs[j]
    left = job.work - job.done
    for k in range(job.segment + 1, job.last_segment + 1):
        left += s.segment_s[k]
    return left + m.bidders[j].beyond


@inner
def _speed(s, j, gpus, level):  # type: ignore[no-untyped-def]
    job = s.jobs[j]
    speed = job.speed0 if level == 0 else job.speed1 if level == 1 else job.speed2
    return scale(s, j, gpus) / scale(s, j, job.gpus) * speed


@inner
def _most_left(m, h):  # type: ignore[no-untyped-def]
    """Pop the candidate job with most work left, of several the first."""
    best, most = -1, -1
    j = m.bidders[h].first
    while j >= 0:
        own = m.bidders[j]
        if own.counted == 1 and micro(own.left) > most:
            best, most = j, micro(own.left)
        j = own.next
    if best >= 0:
        m.bidders[best].counted = 0
    return best


@inner
def _sort(m, size):  # type: ignore[no-untyped-def]
    """Sort jobs in `turn` by most work left, of several the first; they are nearly sorted."""
    for k in range(size):
        j = m.turn[k]
        own = m.bidders[j]
        own.counted = micro(own.left)
        at = k
        while at > 0:
            other = m.bidders[m.turn[at - 1]]
            if other.counted > own.counted or (other.counted == own.counted and other.place < own.place):
                break
            m.turn[at] = m.turn[at - 1]
            at -= 1
        m.turn[at] = j


@inner
def _lasts(s, m, h, gpus, level):  # type: ignore[no-untyped-def]
    """Seconds to the end of an app's last job on a number of GPUs, redivided whenever one of its jobs ends.

    A job with all of them is at `level`; jobs with a part are at their best level.
    """
    j, live = m.bidders[h].first, 0
    while j >= 0:
        if _ready(s, j):
            m.bidders[j].left = max(left_of(s, m, j), 0.0)
            m.turn[live] = j
            live += 1
        j = m.bidders[j].next
    seconds = 0.0
    while live > 0:
        _sort(m, live)
        room, soonest, running = gpus, np.inf, 0
        while room > 0 and running < live:
            j = m.turn[running]
            own = m.bidders[j]
            own.share = min(s.jobs[j].gpus, room)
            room -= own.share
            own.speed = _speed(s, j, own.share, level if own.share == gpus else m.level[own.share])
            soonest = min(soonest, own.left / own.speed)
            running += 1
        seconds += soonest
        stay = 0
        for k in range(live):
            own = m.bidders[m.turn[k]]
            if k < running and own.left / own.speed - soonest <= INSTANT_S:
                continue
            if k < running:
                own.left -= soonest * own.speed
            m.turn[stay] = m.turn[k]
            stay += 1
        live = stay
    return seconds


@inner
def fairness(s, m, j, gpus, level, more):  # type: ignore[no-untyped-def]
    """Time to an app's end with a number of GPUs from now on, relative to its time alone."""
    app = m.bidders[j]
    if app.several == 1:
        spent = s.g[0].now - app.submit + _lasts(s, m, j, gpus, level)
    else:
        spent = s.g[0].now - s.jobs[j].submit + left_of(s, m, j) / _speed(s, j, gpus, level)
    # a job of zero length also has a fairness
    return max(spent + more, INSTANT_S) / _alone(s, m, j)


# ---- an app's GPUs, and their division


@inner
def _inherit(s, m, h):  # type: ignore[no-untyped-def]
    """Keep for an app the GPUs of its jobs that just ended, if its other jobs can use them."""
    p, app = m.p[0], m.bidders[h]
    update_app(s, m, h)
    m.mine[:] = 0
    for k in range(p.gone):
        j = m.gone[k]
        if j >= 0 and m.bidders[j].head == h:
            m.gone[k] = -1
            row = s.attempts[s.jobs[j].row]
            for i in range(row.first, row.first + row.pieces):
                m.mine[s.pieces[i].node] += s.pieces[i].gpus
    room = app.asks - app.has
    while room > 0:
        best = 0
        for k in range(s.nodes.size):
            if m.mine[k] > m.mine[best]:
                best = k
        some = min(room, m.mine[best])
        if some == 0:
            break
        m.mine[best] = 0
        # the node may just have gone down
        if s.nodes[best].up == 1:
            carried = m.carried[p.carried]
            carried.who, carried.node, carried.gpus = h, best, some
            p.carried += 1
            set_free(s, best, s.nodes[best].free - some)
            room -= some
    m.mine[:] = 0
    if app.until <= s.g[0].now + INSTANT_S and app.pushed == 0:
        app.pushed = 1
        m.ended[p.ended] = h
        p.ended += 1


@inner
def inherit(s, m):  # type: ignore[no-untyped-def]
    """Let apps keep the GPUs of their jobs that just ended."""
    for k in range(m.p[0].gone):
        if m.gone[k] >= 0:
            _inherit(s, m, m.bidders[m.gone[k]].head)
    m.p[0].gone = 0


@inner
def lift_app(s, m, h):  # type: ignore[no-untyped-def]
    """Make all GPUs of an app free for searches."""
    j = m.bidders[h].first
    while j >= 0:
        if s.jobs[j].state == RUNNING:
            lift(s, j)
        j = m.bidders[j].next
    for k in range(m.p[0].carried):
        carried = m.carried[k]
        if carried.who == h:
            set_free(s, carried.node, s.nodes[carried.node].free + carried.gpus)


@inner
def _line_up(s, m, h, gpus):  # type: ignore[no-untyped-def]
    """Put an app's jobs into `turn` by most work left, and assign its GPUs to them."""
    j = m.bidders[h].first
    while j >= 0:
        own = m.bidders[j]
        own.counted = 1 if _ready(s, j) else 0
        own.left = max(left_of(s, m, j), 0.0)
        j = own.next
    size, j = 0, _most_left(m, h)
    while j >= 0:
        m.turn[size] = j
        size += 1
        m.bidders[j].share = min(s.jobs[j].gpus, gpus)
        gpus -= m.bidders[j].share
        j = _most_left(m, h)
    return size


@inner
def _keep(s, m, j):  # type: ignore[no-untyped-def]
    """Let a job keep GPUs: on nodes where it can keep most, then by number."""
    row, left = s.attempts[s.jobs[j].row], m.bidders[j].share
    while left > 0:
        best, most = -1, 0
        for k in range(row.first, row.first + row.pieces):
            piece = s.pieces[k]
            some = min(piece.gpus, m.whole[piece.node]) if m.more[piece.node] == 0 else 0
            if some > most or (some == most and some > 0 and piece.node < best):
                best, most = piece.node, some
        if best < 0:
            break
        m.more[best] = min(left, most)
        left -= m.more[best]
        part = m.parts[m.p[0].parts]
        part.who, part.node, part.gpus = j, best, m.more[best]
        m.p[0].parts += 1
    for k in range(row.first, row.first + row.pieces):
        node = s.pieces[k].node
        m.whole[node] -= m.more[node]
        m.more[node] = 0


@inner
def _put_in(s, m, gpus):  # type: ignore[no-untyped-def]
    """Find some of an app's GPUs for a job without any, as close together as possible."""
    best = -1
    for k in range(s.nodes.size):
        if m.whole[k] >= gpus and (best < 0 or m.whole[k] < m.whole[best]):
            best = k
    if best >= 0:
        m.more[best] = gpus
        return
    for k in range(s.nodes.size):
        m.racks[s.nodes[k].rack] += m.whole[k]
    rack = -1
    for k in range(m.racks.size):
        if m.racks[k] >= gpus and (rack < 0 or m.racks[k] < m.racks[rack]):
            rack = k
    m.racks[:] = 0
    while gpus > 0:
        best = -1
        for k in range(s.nodes.size):
            if m.more[k] == 0 and m.whole[k] > 0 and (rack < 0 or s.nodes[k].rack == rack):  # noqa: SIM102
                if best < 0 or m.whole[k] > m.whole[best]:
                    best = k
        m.more[best] = min(gpus, m.whole[best])
        gpus -= m.more[best]


@inner
def _add_near(s, m, gpus):  # type: ignore[no-untyped-def]
    """Find more of an app's GPUs for a job: on its nodes, in their racks, or elsewhere."""
    for k in range(s.nodes.size):
        if m.mine[k] > 0:
            m.racks[s.nodes[k].rack] = 1
    while gpus > 0:
        best = -1
        for k in range(s.nodes.size):
            if m.whole[k] == 0 or m.more[k] > 0:
                continue
            if best < 0:
                best = k
                continue
            own, near = m.mine[k] - m.mine[best], m.racks[s.nodes[k].rack] - m.racks[s.nodes[best].rack]
            if own > 0 or (own == 0 and (near > 0 or (near == 0 and m.whole[k] > m.whole[best]))):
                best = k
        m.more[best] = min(gpus, m.whole[best])
        gpus -= m.more[best]
    m.racks[:] = 0


@inner
def _settle_in(s, m, j):  # type: ignore[no-untyped-def]
    """Give a job of an app its kept GPUs and the rest of its share."""
    own, job = m.bidders[j], s.jobs[j]
    app = m.bidders[own.head]
    left = own.share
    for k in range(m.p[0].parts):
        part = m.parts[k]
        if part.who == j:
            m.mine[part.node] = part.gpus
            left -= part.gpus
    if left == own.share:
        _put_in(s, m, left)
    elif left > 0:
        _add_near(s, m, left)
    s.g[0].chosen = 0
    for k in range(s.nodes.size):
        if m.mine[k] + m.more[k] > 0:
            choose(s, k, m.mine[k] + m.more[k])
        m.whole[k] -= m.more[k]
        m.mine[k], m.more[k] = 0, 0
    if job.state == WAITING:
        launch(s, j, R_WINS)
    elif is_there(s, j):
        lower(s, j)
    else:
        relocate(s, j, R_WINS)
    s.g[0].chosen = 0
    if job.lease != app.until:
        grant(s, j, app.until, R_LEASE)


@inner
def share_out(s, m, h):  # type: ignore[no-untyped-def]
    """Divide the GPUs in `whole` among an app's lifted jobs; `mine` and `more` are scratch."""
    gpus = 0
    for k in range(s.nodes.size):
        gpus += m.whole[k]
        m.mine[k], m.more[k] = 0, 0
    app = m.bidders[h]
    app.altered = 0
    m.p[0].parts = 0
    size = _line_up(s, m, h, gpus)
    for k in range(size):
        if s.jobs[m.turn[k]].state == RUNNING:
            _keep(s, m, m.turn[k])
    for k in range(size):
        j = m.turn[k]
        if m.bidders[j].share > 0:
            _settle_in(s, m, j)
        elif s.jobs[j].state == RUNNING:
            drop(s, j, R_LOSES if app.lifted == 1 and gpus == 0 else R_SIBLING)
    m.whole[:] = 0


@inner
def divide_anew(s, m, h):  # type: ignore[no-untyped-def]
    """Divide an app's GPUs among its jobs."""
    update_app(s, m, h)
    gather(s, m, h)
    for k in range(s.nodes.size):
        m.whole[k] = m.mine[k]
    lift_app(s, m, h)
    share_out(s, m, h)
