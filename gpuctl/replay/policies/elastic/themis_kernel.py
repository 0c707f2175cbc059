"""The compiled instant of Themis: leases end, bidders are ranked by finish-time fairness, GPUs are sold and placed.

An instant costs O(B) for B bidders, O(log B) for each of them whose place in rank is looked at, and an auction.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, ints, rows
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.instant_kernel import grant
from gpuctl.replay.engine.job_life_kernel import launch, settle
from gpuctl.replay.engine.key_kernel import micro, nano
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import choose, find, free_for, set_free, suits
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.reshuffle_kernel import drop, is_there, lift, lower, relocate
from gpuctl.replay.engine.speed_curve_kernel import scale
from gpuctl.replay.engine.state import FINISHED, NEAR, REJECTED, RUNNING, WAITING
from gpuctl.replay.policies.elastic.auction_kernel import sell, sell_rest

R_WINS, R_LEASE, R_LOSES = range(len(REASONS), len(REASONS) + 3)
THEMIS_REASONS = ("wins GPUs, or gets what is left over", "a lease", "its lease has ended, and it wins none")

INSTANT_S = 1e-6

NONE, COUNT, DEMAND = range(3)
CONTENTION = ("none", "count", "demand")

THEMIS = np.dtype(
    [
        ("lease", "f8"),  # seconds
        ("outside", "f8"),  # share of the bidders that is not offered anything
        ("payments", "i8"),
        ("contention", "i8"),
        ("gpus", "f8"),  # of the cluster
        ("go", "i8"),  # 1: there is to be an auction at this instant
        ("line", "i8"),  # jobs in `line`
        ("ended", "i8"),  # jobs in `ended`
        ("bidders", "i8"),
        ("heap", "i8"),  # jobs in `order` whose place in rank is not known
        ("jobs", "i8"),  # that have not ended
        ("asked", "i8"),  # GPUs that they ask for
        ("area", "f8"),  # contention integrated over time
        ("until", "f8"),  # up to then
        ("mask", "u8"),  # of the job for which these two were worked out:
        ("server", "i8"),  # free GPUs of the freest server
        ("rack", "i8"),  # and of the freest rack
    ],
    align=True,
)

BIDDER = np.dtype(
    [
        ("place", "i8"),  # in the input, which breaks ties
        ("least", "i8"),  # GPUs that it starts on
        ("ideal", "f8"),  # seconds that it takes alone
        ("since", "f8"),  # when it was submitted …
        ("area", "f8"),  # … and what the integral was then
        ("has", "i8"),  # GPUs that it holds, beside those whose lease has just ended
        ("lifted", "i8"),  # 1: its lease has just ended
        ("key", "i8"),  # its fairness, millionths
        ("near", "i8"),  # so many more it can get at level 0, below 0: none
        ("far", "i8"),  # and at level 1
        ("gets", "i8"),
    ],
    align=True,
)


class Book(Bundle):
    """What the policy is told, and what it remembers.

    Attributes:
        p: what there is one of [1].
        bidders: [jobs].
        level: the best level that so many GPUs can have [GPUs + 1].
        line: jobs that have not ended [jobs].
        ended: jobs whose lease ends at this instant [jobs].
        order: bidders: a heap by rank [jobs].
        rank: bidders by rank, as far as it is known [jobs].
        mine: GPUs that a job holds or is to keep, scratch [servers].
        more: GPUs that it is to get beside, scratch [servers].
        racks: whether it is in each, scratch [racks].
    """

    p = rows(THEMIS)
    bidders = rows(BIDDER)
    level = ints()
    line = ints()
    ended = ints()
    order = ints()
    rank = ints()
    mine = ints()
    more = ints()
    racks = ints()


# ---- contention


@inner
def _contention(m):  # type: ignore[no-untyped-def]
    p = m.p[0]
    return float(p.jobs) if p.contention == COUNT else max(1.0, p.asked / p.gpus)


@inner
def _advance(s, m):  # type: ignore[no-untyped-def]
    p = m.p[0]
    if s.g[0].now > p.until:
        p.area += _contention(m) * (s.g[0].now - p.until)
        p.until = s.g[0].now


@inner
def _alone(s, m, j):  # type: ignore[no-untyped-def]
    """Seconds in which a job would end if it had its share of the cluster."""
    bidder = m.bidders[j]
    if m.p[0].contention == NONE:
        return bidder.ideal
    now = s.g[0].now
    if now <= bidder.since:
        return bidder.ideal * _contention(m)
    return bidder.ideal * ((m.p[0].area - bidder.area) / (now - bidder.since))


# ---- what happens


@inner
def comes(s, job, m, a):  # type: ignore[no-untyped-def]
    """A job is submitted."""
    _advance(s, m)
    p = m.p[0]
    p.jobs += 1
    p.asked += s.jobs[job].gpus
    p.go = 1
    m.bidders[job].since, m.bidders[job].area = s.g[0].now, p.area
    m.line[p.line] = job
    p.line += 1


@inner
def ends(s, job, m, a):  # type: ignore[no-untyped-def]
    """A job has ended."""
    _advance(s, m)
    m.p[0].jobs -= 1
    m.p[0].asked -= s.jobs[job].gpus
    m.p[0].go = 1


@inner
def changes(s, who, m, a):  # type: ignore[no-untyped-def]
    """A job is in the queue again, or a server comes or goes."""
    m.p[0].go = 1


@inner
def lease_ends(s, job, m, a):  # type: ignore[no-untyped-def]
    """The lease of a job ends."""
    p = m.p[0]
    p.go = 1
    if s.jobs[job].state == RUNNING:
        m.ended[p.ended] = job
        p.ended += 1


# ---- finish-time fairness


@inner
def _left(s, j):  # type: ignore[no-untyped-def]
    """Seconds of work that a job has left."""
    job = s.jobs[j]
    left = job.work - job.done
    for k in range(job.segment + 1, job.last_segment + 1):
        left += s.segment_s[k]
    return left


@inner
def _rho(s, m, j, gpus, level, more):  # type: ignore[no-untyped-def]
    """Time to a job's end if it had so many GPUs from now on, for its time alone."""
    job = s.jobs[j]
    speed = job.speed0 if level == 0 else job.speed1 if level == 1 else job.speed2
    rate = scale(s, j, gpus) / scale(s, j, job.gpus) * speed
    # a job of no seconds has a fairness, too
    return max(s.g[0].now - job.submit + _left(s, j) / rate + more, INSTANT_S) / _alone(s, m, j)


@inner
def worth(s, m, a, i, k):  # type: ignore[no-untyped-def]
    """Value of k GPUs more to the i-th bidder: - ln rho, in milliardths."""
    j = m.rank[i]
    bidder = m.bidders[j]
    level = 0 if k <= bidder.near else 1 if k <= bidder.far else 2
    more = s.jobs[j].move if bidder.has > 0 and k > 0 else 0.0
    return nano(-np.log(_rho(s, m, j, bidder.has + k, level, more)))


# ---- rank


@inner
def _ahead(m, x, y):  # type: ignore[no-untyped-def]
    one, other = m.bidders[x], m.bidders[y]
    if (one.has > 0) != (other.has > 0):
        return one.has == 0
    if one.key != other.key:
        return one.key > other.key
    return one.place < other.place


@inner
def _sink(m, k):  # type: ignore[no-untyped-def]
    size = m.p[0].heap
    moved = m.order[k]
    while True:
        child = 2 * k + 1
        if child >= size:
            break
        if child + 1 < size and _ahead(m, m.order[child + 1], m.order[child]):
            child += 1
        if not _ahead(m, m.order[child], moved):
            break
        m.order[k] = m.order[child]
        k = child
    m.order[k] = moved


@inner
def _rank(s, m, a):  # type: ignore[no-untyped-def]
    """Find the bidders, and how fair each fares."""
    p, sale = m.p[0], a.p[0]
    kept = 0
    p.heap = 0
    sale.waiting, sale.known, sale.rows, sale.fewest = 0, 0, 0, s.g[0].total + 1
    for k in range(p.line):
        j = m.line[k]
        job, bidder = s.jobs[j], m.bidders[j]
        if job.state == FINISHED or job.state == REJECTED:
            continue
        m.line[kept] = j
        kept += 1
        bidder.gets = 0
        if job.state == WAITING or bidder.lifted == 1:
            bidder.has = 0
            sale.waiting += 1
            sale.fewest = min(sale.fewest, bidder.least)
            if bidder.lifted == 1:
                settle(s, j)
            bidder.key = micro(_rho(s, m, j, job.gpus, m.level[job.gpus], 0.0))
        elif job.state == RUNNING and job.held < job.gpus:
            settle(s, j)
            bidder.has = job.held
            bidder.key = micro(_rho(s, m, j, job.held, job.level, 0.0))
        else:
            continue
        m.order[p.heap] = j
        p.heap += 1
    p.line = kept
    p.bidders = p.heap
    for k in range(p.heap // 2 - 1, -1, -1):
        _sink(m, k)


@inner
def reach(s, m, a, i):  # type: ignore[no-untyped-def]
    """Let the bidders up to the i-th in rank be known."""
    p, sale = m.p[0], a.p[0]
    while sale.known <= i:
        j = m.order[0]
        p.heap -= 1
        m.order[0] = m.order[p.heap]
        if p.heap > 0:
            _sink(m, 0)
        bidder, job = m.bidders[j], s.jobs[j]
        k = sale.known
        sale.known += 1
        m.rank[k] = j
        a.won[k], a.kept[k], a.row[k] = -1, 0, -1
        a.most[k] = min(job.gpus - bidder.has, free_for(s, job.mask))
        if bidder.has > 0:
            a.least[k] = 0
            _near_own(s, m, j)
        else:
            a.least[k] = bidder.least
            _look_at_pool(s, m, job.mask)
            bidder.near, bidder.far = p.server, p.rack


@inner
def _in_rack(s, mask, rack):  # type: ignore[no-untyped-def]
    free = 0
    for cls in range(s.rack_free.shape[0]):
        if mask >> np.uint64(cls) & np.uint64(1):
            free += s.rack_free[cls, rack]
    return free


@inner
def _look_at_pool(s, m, mask):  # type: ignore[no-untyped-def]
    """Find the freest server and rack."""
    p = m.p[0]
    if p.server >= 0 and p.mask == mask:
        return
    p.mask, p.server, p.rack = mask, 0, 0
    for k in range(s.servers.size):
        if suits(s, k, mask):
            p.server = max(p.server, s.servers[k].free)
    for rack in range(s.rack_free.shape[1]):
        p.rack = max(p.rack, _in_rack(s, mask, rack))


@inner
def _near_own(s, m, j):  # type: ignore[no-untyped-def]
    """How many GPUs more a job can get on its server, and in its rack."""
    job, bidder = s.jobs[j], m.bidders[j]
    server = s.pieces[s.attempts[job.row].first].server
    bidder.near = s.servers[server].free if job.level == 0 else -1
    bidder.far = _in_rack(s, job.mask, s.servers[server].rack) if job.level <= 1 else -1


# ---- places


@inner
def _take_back(s, m, j, gpus):  # type: ignore[no-untyped-def]
    """Put so many of the GPUs that a job has just lost into `mine`: where it had most, then by number."""
    row = s.attempts[s.jobs[j].row]
    left = gpus
    for _ in range(row.pieces):
        best, most = -1, 0
        for k in range(row.first, row.first + row.pieces):
            piece = s.pieces[k]
            ahead = piece.gpus > most or (piece.gpus == most and piece.server < best)
            if m.mine[piece.server] == 0 and ahead:
                best, most = piece.server, piece.gpus
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
        m.mine[s.pieces[k].server] = 0


@inner
def _free_mine(s, m, j, sign):  # type: ignore[no-untyped-def]
    row = s.attempts[s.jobs[j].row]
    for k in range(row.first, row.first + row.pieces):
        server = s.pieces[k].server
        if m.mine[server] > 0:
            set_free(s, server, s.servers[server].free + sign * m.mine[server])


@inner
def _first_server(s, m, mask):  # type: ignore[no-untyped-def]
    """The server for GPUs beside `mine`: of those, of their racks, or another; there the freest, then the lowest."""
    best = -1
    for k in range(s.servers.size):
        server = s.servers[k]
        if server.free == 0 or m.more[k] > 0 or not suits(s, k, mask):
            continue
        if best < 0:
            best = k
            continue
        own, near, free = m.mine[k] - m.mine[best], m.racks[server.rack] - m.racks[s.servers[best].rack], 0
        free = server.free - s.servers[best].free
        if own > 0 or (own == 0 and (near > 0 or (near == 0 and free > 0))):
            best = k
    return best


@inner
def _goes_on(s, m, j, gpus):  # type: ignore[no-untyped-def]
    """Let a job that holds GPUs, or has just lost them, go on with those in `mine` and so many more.

    Those in `mine` are not free. Returns how many it has.
    """
    job = s.jobs[j]
    row = s.attempts[job.row]
    for k in range(row.first, row.first + row.pieces):
        if m.mine[s.pieces[k].server] > 0:
            m.racks[s.servers[s.pieces[k].server].rack] = 1
    left = gpus
    while left > 0:
        best = _first_server(s, m, job.mask)
        if best < 0:
            break
        m.more[best] = min(left, s.servers[best].free)
        left -= m.more[best]
    s.g[0].chosen = 0
    have = 0
    for k in range(s.servers.size):
        if m.mine[k] + m.more[k] > 0:
            choose(s, k, m.mine[k] + m.more[k])
            have += m.mine[k] + m.more[k]
        m.more[k] = 0
        m.racks[s.servers[k].rack] = 0
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
    # fewer where others have got what it may use
    some = min(gpus, free_for(s, job.mask))
    if some >= m.bidders[j].least and find(s, job.mask, some, NEAR):
        launch(s, j, R_WINS)
        grant(s, j, s.g[0].now + m.p[0].lease, R_LEASE)


@inner
def _place(s, m, a):  # type: ignore[no-untyped-def]
    """Who lost its GPUs takes back what it can; then in rank the rest."""
    p = m.p[0]
    for k in range(p.ended):
        j = m.ended[k]
        if m.bidders[j].gets == 0:
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
        if bidder.lifted == 1:
            if _goes_on(s, m, j, _take_back(s, m, j, bidder.gets)) >= bidder.least:
                grant(s, j, s.g[0].now + p.lease, R_LEASE)
        elif bidder.has > 0:
            row = s.attempts[s.jobs[j].row]
            for k in range(row.first, row.first + row.pieces):
                m.mine[s.pieces[k].server] = s.pieces[k].gpus
            _goes_on(s, m, j, bidder.gets)
        else:
            _starts(s, m, j, bidder.gets)


@inner
def decide(s, m, a):  # type: ignore[no-untyped-def]
    """Where a job was submitted or has ended, or a lease has, what is free is sold."""
    p = m.p[0]
    if p.go == 0:
        return
    p.go = 0
    _advance(s, m)
    for k in range(p.ended):
        m.bidders[m.ended[k]].lifted = 1
        lift(s, m.ended[k])
    if s.g[0].free > 0:
        _rank(s, m, a)
        p.server = -1
        sale = a.p[0]
        sale.pool = s.g[0].free
        sale.chosen = min(p.bidders, max(1, np.int64(np.ceil((1.0 - p.outside) * p.bidders - 1e-9))))
        sell(a, s, m, p.payments, reach, worth)
        sell_rest(a, s, m, p.bidders, reach, worth)
        for i in range(sale.known):
            m.bidders[m.rank[i]].gets = a.kept[i]
        _place(s, m, a)
    for k in range(p.ended):
        m.bidders[m.ended[k]].lifted = 0
    p.ended = 0


@compiled
def run(s, m, a, until, steps):  # type: ignore[no-untyped-def]
    """Go on for so many instants."""
    return loop(
        s, (m, a), until, steps, decide=decide, on_finish=ends, on_requeue=changes, on_server_down=changes,
        on_server_up=changes, on_submit=comes, on_lease_end=lease_ends,
    )  # fmt: skip
