"""Compiled memory of Gandiva: jobs per node, oversubscription of nodes, and packed pairs."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, ints, rows
from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.crowd_kernel import resize_in_place, set_turn
from gpuctl.replay.engine.instant_kernel import migrate
from gpuctl.replay.engine.placement_kernel import choose, suits
from gpuctl.replay.engine.reasons import REASONS

R_ROOM, R_TURNS, R_OFF, R_GATHERS, R_GROWS, R_GIVES_BACK, R_PACKED = range(len(REASONS), len(REASONS) + 7)
GANDIVA_REASONS = (
    "a node has room",
    "no node has room: it takes turns",
    "leaves a crowded node for one with room",
    "leaves a nearly empty node",
    "takes GPUs that idle beside it",
    "gives back GPUs that idled",
    "packed on trial with another job on a crowded node",
)

FIRST_FREE, ANY_CLASS = 3, 5
"""The nodes tried: those with room, or all."""

GANDIVA = np.dtype(
    [
        ("turns", "f8"),  # share of a crowded node's time left by switching
        ("height", "f8"),  # most oversubscription of a node
        ("fragment", "f8"),  # free share from which a node is nearly empty
        ("blacklist", "f8"),  # seconds for which an undone pair is not retried
        ("over", "i8"),
        ("mix", "i8"),
        ("pack", "i8"),
        ("move", "i8"),
        ("grow", "i8"),
        ("check", "i8"),  # 1: this instant is a check
        ("checks", "i8"),  # so far
        ("instant", "i8"),  # so far
        ("steps", "i8"),  # jobs that have come to a node, so far
        ("changed", "i8"),  # 1: changed since the last check
        ("trials", "i8"),  # pairs that are on trial
        ("bans", "i8"),  # pairs undone so far
        ("packs", "i8"),  # pairs made so far
    ],
    align=True,
)

HOST = np.dtype(
    [
        ("jobs", "i8"),  # on it
        ("load", "i8"),  # GPUs that they request, of a pair once
        ("raw", "i8"),  # of a pair twice
        ("extra", "i8"),  # GPUs that they have beyond their requests
        ("pairs", "i8"),
        ("affinity", "i8"),  # size of the first piece since it was empty; 0: it is empty
        ("dirty", "i8"),  # 1: shares must be recomputed
    ],
    align=True,
)

MEMBER = np.dtype(
    [
        ("place", "i8"),  # in the input, which breaks ties
        ("on", "i8"),  # 1: it is on nodes
        ("partner", "i8"),  # its packed partner; -1 none
        ("tried", "f8"),  # since when on trial; inf: not
        ("came", "i8"),  # step at which it came to its node
        ("moved", "i8"),  # the last check at which it left a nearly empty node
        ("extra", "i8"),  # GPUs beyond its gang
        ("most", "i8"),  # most GPUs in total
        ("util", "f8"),
        ("mem", "f8"),
        ("grows", "i8"),
        ("ban", "i8"),  # last undone pair with it as the first; -1 none
        ("before", "i8"),  # next in the queue of its shape
        ("after", "i8"),
    ],
    align=True,
)

BAN = np.dtype([("other", "i8"), ("until", "f8"), ("before", "i8")], align=True)


class Crowding(Bundle):
    """Input and memory of the policy."""

    p = rows(GANDIVA)  # scalars [1]
    hosts = rows(HOST)  # [nodes]
    members = rows(MEMBER)  # [jobs]
    here = ints(2)  # jobs on each node, in no order [nodes, most jobs on one]
    shape = ints()  # jobs of one number have equal requests [jobs]
    first = ints()  # first waiting job of each shape; -1 none [shapes]
    last = ints()  # the last one [shapes]
    bad = ints()  # the last instant at which a shape found nothing [shapes]
    line = ints()  # scratch [nodes or most jobs on one]
    bans = rows(BAN)  # undone pairs, a ring [most at a time]


# ---- placement of jobs


@inner
def node_of(s, j):  # type: ignore[no-untyped-def]
    """The first node that a job is on, or was on last."""
    return s.pieces[s.attempts[s.jobs[j].row].first].node


@inner
def is_loose(s, m, j):  # type: ignore[no-untyped-def]
    """Whether a job is on one node alone, and not packed."""
    return m.members[j].partner < 0 and s.attempts[s.jobs[j].row].pieces == 1


@inner
def room(s, m, k):  # type: ignore[no-untyped-def]
    """GPUs of a node that no job requests; below 0 if oversubscribed."""
    return s.nodes[k].cap - m.hosts[k].load


@inner
def add_piece(m, j, k, gpus):  # type: ignore[no-untyped-def]
    """Add a piece of a job to a node."""
    host = m.hosts[k]
    m.here[k, host.jobs] = j
    host.jobs += 1
    host.load += gpus
    host.raw += gpus
    host.dirty = 1
    m.p[0].changed = 1


@inner
def go(m, j, k, gpus):  # type: ignore[no-untyped-def]
    """Remove a piece of an unpacked job from a node."""
    host = m.hosts[k]
    at = 0
    while m.here[k, at] != j:
        at += 1
    host.jobs -= 1
    m.here[k, at] = m.here[k, host.jobs]
    host.load -= gpus
    host.raw -= gpus
    host.dirty = 1
    m.p[0].changed = 1
    if host.jobs == 0:
        host.affinity = 0


@inner
def leave(s, m, j):  # type: ignore[no-untyped-def]
    """Remove a job that released its GPUs."""
    member = m.members[j]
    if member.on == 0:
        return
    member.on = 0
    if member.partner >= 0:
        dissolve_pair(s, m, j)
    row = s.attempts[s.jobs[j].row]
    for at in range(row.first, row.first + row.pieces):
        k = s.pieces[at].node
        m.hosts[k].extra -= member.extra
        go(m, j, k, s.pieces[at].gpus - member.extra)
    member.extra = 0


@inner
def find_node(s, m, mask, gpus, classes):  # type: ignore[no-untyped-def]
    """The node for a piece, of those that are not in `choice`; -1 none.

    The node with the least load, the lowest of several, in the first nonempty class: (1) of its affinity,
    with room; (2) the lowest empty one; (3) with room; (4) of its affinity, and not too high; (5) not too high.
    """
    p = m.p[0]
    one, two, three, four, five = -1, -1, -1, -1, -1
    for k in range(m.hosts.size):
        host, cap = m.hosts[k], s.nodes[k].cap
        if cap < gpus or not suits(s, k, mask) or _is_chosen(s, k):
            continue
        if host.jobs == 0 and two < 0:
            two = k
        if cap - host.load >= gpus:
            if three < 0 or host.load < m.hosts[three].load:
                three = k
            if host.affinity == gpus and (one < 0 or host.load < m.hosts[one].load):
                one = k
        if p.over == 1 and host.raw + gpus <= p.height * cap:
            if five < 0 or host.load < m.hosts[five].load:
                five = k
            if host.affinity == gpus and (four < 0 or host.load < m.hosts[four].load):
                four = k
    if one >= 0:
        return one
    if two >= 0:
        return two
    if three >= 0 or classes == FIRST_FREE:
        return three
    return four if four >= 0 or p.mix == 0 else five


@inner
def _is_chosen(s, k):  # type: ignore[no-untyped-def]
    for at in range(s.g[0].chosen):
        if s.choice[at].node == k:
            return True
    return False


@inner
def settle_on(m, k, gpus):  # type: ignore[no-untyped-def]
    """A piece is to come to a node: where that is empty it takes its affinity from it."""
    if m.hosts[k].jobs == 0:
        m.hosts[k].affinity = gpus


@inner
def moves_to(s, m, j, k, reason):  # type: ignore[no-untyped-def]
    """Move a job from its one node to another one."""
    member, job = m.members[j], s.jobs[j]
    old, gpus = node_of(s, j), job.gpus
    m.hosts[old].extra -= member.extra
    member.extra = 0
    settle_on(m, k, gpus)
    go(m, j, old, gpus)
    add_piece(m, j, k, gpus)
    m.p[0].steps += 1
    member.came = m.p[0].steps
    s.g[0].chosen = 0
    choose(s, k, gpus)
    migrate(s, j, reason)
    s.g[0].chosen = 0


# ---- pairs


@inner
def pair_speed(m, a, b):  # type: ignore[no-untyped-def]
    """Speed of each of two packed jobs, relative to alone."""
    util = m.members[a].util + m.members[b].util
    return min(1.0, 1.0 / util) * (1.0 - 0.15 * util)


@inner
def join(s, m, a, b):  # type: ignore[no-untyped-def]
    """Pack two jobs of a node, on trial."""
    host = m.hosts[node_of(s, a)]
    m.members[a].partner, m.members[b].partner = b, a
    m.members[a].tried = m.members[b].tried = s.g[0].now
    host.load -= s.jobs[a].gpus
    host.pairs += 1
    host.dirty = 1
    m.p[0].trials += 1
    m.p[0].packs += 1
    m.p[0].changed = 1


@inner
def keep(m, j):  # type: ignore[no-untyped-def]
    """End the trial of a successful pair."""
    m.members[j].tried = m.members[m.members[j].partner].tried = np.inf
    m.p[0].trials -= 1


@inner
def dissolve_pair(s, m, j):  # type: ignore[no-untyped-def]
    """Dissolve a job's pair."""
    if m.members[j].tried < np.inf:
        keep(m, j)
    host = m.hosts[node_of(s, j)]
    other = m.members[j].partner
    m.members[j].partner = m.members[other].partner = -1
    host.load += s.jobs[j].gpus
    host.pairs -= 1
    host.dirty = 1
    m.p[0].changed = 1


@inner
def ban(s, m, a, b):  # type: ignore[no-untyped-def]
    """Ban a pair for a while."""
    p = m.p[0]
    first, other = (a, b) if a < b else (b, a)
    entry = m.bans[p.bans % m.bans.size]
    entry.other, entry.until, entry.before = other, s.g[0].now + p.blacklist, m.members[first].ban
    m.members[first].ban = p.bans
    p.bans += 1


@inner
def is_banned(s, m, a, b):  # type: ignore[no-untyped-def]
    """Whether a pair is banned: bans have equal lengths, so all before an expired one have expired."""
    first, other = (a, b) if a < b else (b, a)
    at = m.members[first].ban
    while at >= 0 and at >= m.p[0].bans - m.bans.size:
        entry = m.bans[at % m.bans.size]
        if entry.until <= s.g[0].now:
            return False
        if entry.other == other:
            return True
        at = entry.before
    return False


# ---- grown jobs, and shares of speed


@inner
def resize_to(s, m, j, extra, reason):  # type: ignore[no-untyped-def]
    """Give a job a number of GPUs of its node beyond its gang."""
    k = node_of(s, j)
    m.hosts[k].extra += extra - m.members[j].extra
    m.members[j].extra = extra
    m.hosts[k].dirty = 1
    m.p[0].changed = 1
    s.g[0].chosen = 0
    choose(s, k, s.jobs[j].gpus + extra)
    resize_in_place(s, j, reason)
    s.g[0].chosen = 0


@inner
def _share(s, m, k):  # type: ignore[no-untyped-def]
    cap, load = s.nodes[k].cap, m.hosts[k].load
    return cap / load * m.p[0].turns if load > cap else 1.0


@inner
def work_out_shares(s, m):  # type: ignore[no-untyped-def]
    """Update the speeds of all jobs on changed nodes."""
    for k in range(m.hosts.size):
        host = m.hosts[k]
        if host.dirty == 0:
            continue
        host.dirty = 0
        for at in range(host.jobs):
            j = m.here[k, at]
            row = s.attempts[s.jobs[j].row]
            share = 1.0
            for piece in range(row.first, row.first + row.pieces):
                share = min(share, _share(s, m, s.pieces[piece].node))
            other = m.members[j].partner
            if other < 0:
                set_turn(s, j, share, s.jobs[j].held * share)
            else:
                set_turn(s, j, share * pair_speed(m, j, other), s.jobs[j].held * share * 0.5)
