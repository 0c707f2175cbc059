"""Compiled: who is on which node under Gandiva, how crowded each is, and who is packed beside whom."""

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
"""The classes of nodes that are tried: those with room, or all."""

GANDIVA = np.dtype(
    [
        ("turns", "f8"),  # part of the time of a crowded node that switching leaves
        ("height", "f8"),  # jobs may ask so many times its GPUs of a node
        ("fragment", "f8"),  # a node with so much room is nearly empty
        ("blacklist", "f8"),  # seconds for which a pair that was undone is not tried again
        ("over", "i8"),
        ("mix", "i8"),
        ("pack", "i8"),
        ("move", "i8"),
        ("grow", "i8"),
        ("check", "i8"),  # 1: this instant is a check
        ("checks", "i8"),  # so far
        ("instant", "i8"),  # so far
        ("steps", "i8"),  # jobs that have come to a node, so far
        ("changed", "i8"),  # 1: something has since the last check
        ("trials", "i8"),  # pairs that are on trial
        ("bans", "i8"),  # pairs undone so far
        ("packs", "i8"),  # pairs made so far
    ],
    align=True,
)

HOST = np.dtype(
    [
        ("jobs", "i8"),  # on it
        ("load", "i8"),  # GPUs that they ask for, of a pair once
        ("raw", "i8"),  # of a pair twice
        ("extra", "i8"),  # GPUs that they have beside what they ask for
        ("pairs", "i8"),
        ("affinity", "i8"),  # size of the first piece that came since it was empty; 0: it is
        ("dirty", "i8"),  # 1: shares are to be worked out anew
    ],
    align=True,
)

MEMBER = np.dtype(
    [
        ("place", "i8"),  # in the input, which breaks ties
        ("on", "i8"),  # 1: it is on nodes
        ("partner", "i8"),  # it is packed beside; -1 none
        ("tried", "f8"),  # since when on trial; inf: not
        ("came", "i8"),  # step at which it came to its node
        ("moved", "i8"),  # the last check at which it left a nearly empty node
        ("extra", "i8"),  # GPUs beside its gang
        ("most", "i8"),  # it may have in all
        ("util", "f8"),
        ("mem", "f8"),
        ("grows", "i8"),
        ("ban", "i8"),  # last of the pairs with it as the first that were undone; -1 none
        ("before", "i8"),  # in the queue of its shape
        ("after", "i8"),
    ],
    align=True,
)

BAN = np.dtype([("other", "i8"), ("until", "f8"), ("before", "i8")], align=True)


class Crowding(Bundle):
    """What the policy is told, and what it remembers."""

    p = rows(GANDIVA)  # what there is one of [1]
    hosts = rows(HOST)  # [nodes]
    members = rows(MEMBER)  # [jobs]
    here = ints(2)  # jobs on each node, in no order [nodes, most jobs on one]
    shape = ints()  # jobs of one number ask for the same [jobs]
    first = ints()  # waiting job of each shape that is ahead in the input; -1 none [shapes]
    last = ints()  # the one that is behind all others [shapes]
    bad = ints()  # the last instant at which a shape found nothing [shapes]
    line = ints()  # scratch [nodes or most jobs on one]
    bans = rows(BAN)  # pairs that were undone, a ring [most at a time]


# ---- who is where


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
    """GPUs of a node that nobody asks for; below 0 where it is crowded."""
    return s.nodes[k].cap - m.hosts[k].load


@inner
def come(m, j, k, gpus):  # type: ignore[no-untyped-def]
    """A piece of a job is on a node from now on."""
    host = m.hosts[k]
    m.here[k, host.jobs] = j
    host.jobs += 1
    host.load += gpus
    host.raw += gpus
    host.dirty = 1
    m.p[0].changed = 1


@inner
def go(m, j, k, gpus):  # type: ignore[no-untyped-def]
    """A piece of a job, which is not packed, is there no more."""
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
    """A job has let go of its GPUs."""
    member = m.members[j]
    if member.on == 0:
        return
    member.on = 0
    if member.partner >= 0:
        apart(s, m, j)
    row = s.attempts[s.jobs[j].row]
    for at in range(row.first, row.first + row.pieces):
        k = s.pieces[at].node
        m.hosts[k].extra -= member.extra
        go(m, j, k, s.pieces[at].gpus - member.extra)
    member.extra = 0


@inner
def find_node(s, m, mask, gpus, classes):  # type: ignore[no-untyped-def]
    """The node for a piece, of those that are not in `choice`; -1 none.

    Of the first class of these that has any the one with the least load, the lowest of several: (1) of its affinity,
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
    come(m, j, k, gpus)
    m.p[0].steps += 1
    member.came = m.p[0].steps
    s.g[0].chosen = 0
    choose(s, k, gpus)
    migrate(s, j, reason)
    s.g[0].chosen = 0


# ---- pairs


@inner
def pair_speed(m, a, b):  # type: ignore[no-untyped-def]
    """Speed of each of two packed jobs, for that alone."""
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
    """A pair has stood its trial."""
    m.members[j].tried = m.members[m.members[j].partner].tried = np.inf
    m.p[0].trials -= 1


@inner
def apart(s, m, j):  # type: ignore[no-untyped-def]
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
    """Do not try a pair again for a while."""
    p = m.p[0]
    first, other = (a, b) if a < b else (b, a)
    entry = m.bans[p.bans % m.bans.size]
    entry.other, entry.until, entry.before = other, s.g[0].now + p.blacklist, m.members[first].ban
    m.members[first].ban = p.bans
    p.bans += 1


@inner
def is_banned(s, m, a, b):  # type: ignore[no-untyped-def]
    """Whether a pair was undone not long ago: all bans are as long, so behind one that is over all are."""
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


# ---- grown jobs, and what is left of everybody's speed


@inner
def resize_to(s, m, j, extra, reason):  # type: ignore[no-untyped-def]
    """Let a job have so many GPUs of its node beside its gang."""
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
    """Let all jobs on nodes where something has changed go on as fast as they now are."""
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
