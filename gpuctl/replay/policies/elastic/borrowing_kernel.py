"""Compiled memory of Aryl: workers per job and node, nodes on loan, and waiting jobs."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints, rows
from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.heap_kernel import sink
from gpuctl.replay.engine.job_life_kernel import settle
from gpuctl.replay.engine.key_kernel import micro
from gpuctl.replay.engine.placement_kernel import suits
from gpuctl.replay.engine.reshuffle_kernel import lift
from gpuctl.replay.engine.speed_curve_kernel import scale
from gpuctl.replay.engine.state import RUNNING

RIGID, FUNGIBLE, ELASTIC = range(3)
"""Jobs on nodes for training only; on those or on loaned ones; on both together."""

ARYL = np.dtype(
    [
        ("interval", "f8"),
        ("loan", "i8"),
        ("elastic", "i8"),
        ("training", "i8"),  # training nodes; the others can be lent
        ("plain", "i8"),  # 1: every node suits every job
        ("tick", "i8"),  # the last tick handled; -1 none
        ("due", "i8"),  # 1: this instant is a tick
        ("lent", "i8"),  # nodes on loan
        ("line", "i8"),  # jobs in `line`
        ("changed", "i8"),  # jobs in `changed`
        ("spare", "i8"),  # first unused share
        ("free_t", "i8"),  # GPUs free on nodes for training, and on loaned ones
        ("free_l", "i8"),
        ("flex_t", "i8"),  # flexible workers there
        ("flex_l", "i8"),
        ("reclaimed", "i8"),  # nodes given back, jobs preempted by it, and jobs that lost flexible workers
        ("thrown", "i8"),
        ("scaled_in", "i8"),
        ("knapsacks", "i8"),
    ],
    align=True,
)

HOST = np.dtype(
    [
        ("free", "i8"),
        ("fixed", "i8"),  # base workers on it
        ("flex", "i8"),  # flexible workers on it
        ("lent", "i8"),
        ("logged", "i8"),  # whether the log shows it on loan
        ("cost", "f8"),  # cost of returning it
    ],
    align=True,
)

MEMBER = np.dtype(
    [
        ("place", "i8"),  # position in the input, which breaks ties
        ("least", "i8"),
        ("most", "i8"),
        ("kind", "i8"),
        ("request", "i8"),
        ("key", "i8"),  # microseconds that it needs on its least GPUs, while it waits
        ("first", "i8"),  # first of its shares; -1: it has no GPUs
        ("flex", "i8"),  # flexible workers
        ("touched", "i8"),  # 1: in `changed`
    ],
    align=True,
)

SHARE = np.dtype([("node", "i8"), ("fixed", "i8"), ("flex", "i8"), ("next", "i8")], align=True)


class Borrowing(Bundle):
    """Input and memory of the policy."""

    p = rows(ARYL)  # scalars [1]
    hosts = rows(HOST)  # [nodes]
    members = rows(MEMBER)  # [jobs]
    shares = rows(SHARE)  # a job's workers on a node, or spare [GPUs]
    line = ints()  # jobs that have GPUs, in the order of the input
    changed = ints()  # jobs whose GPUs may change at this instant
    load_t = floats()  # seconds from which on [lines of the load] …
    load_free = ints()  # … this many nodes are idle in inference
    load_period = floats()  # … with this period [1]
    heap = ints()  # waiting jobs by shape, the shortest first [jobs]
    first = ints()  # first entry of each shape [shapes + 1]
    size = ints()  # waiting jobs of each shape [shapes]
    group = ints()  # elastic jobs that run
    items = ints()  # choices of flexible workers of each, including none [as many]
    counts = ints()  # chosen number of each [as many]
    values = ints(2)  # microseconds that flexible workers save [as many, most of one + 1]
    best = ints(2)  # most savings of the jobs from one on, by room [as many + 1, GPUs + 1]


@inner
def takes(s, j, gpus):  # type: ignore[no-untyped-def]
    """Remaining seconds of a job on a number of GPUs; its progress must be up to date."""
    job = s.jobs[j]
    return (job.work - job.done) / (scale(s, j, gpus) / scale(s, j, job.gpus) * job.speed0)


@inner
def is_available(s, m, k):  # type: ignore[no-untyped-def]
    """Whether a node is for training, or on loan."""
    return k < m.p[0].training or m.hosts[k].lent == 1


@inner
def usable(s, m, j, k, training, lent):  # type: ignore[no-untyped-def]
    """Whether a node is in the given set and suits a job."""
    if k < m.p[0].training:
        if not training:
            return False
    elif not lent or m.hosts[k].lent == 0:
        return False
    return m.p[0].plain == 1 or suits(s, k, s.jobs[j].mask)


# ---- workers


@inner
def count_free(s, m):  # type: ignore[no-untyped-def]
    """Count free GPUs at the beginning of an instant."""
    p = m.p[0]
    p.free_t = p.free_l = 0
    for k in range(m.hosts.size):
        node, host = s.nodes[k], m.hosts[k]
        host.free = node.free if node.up == 1 and is_available(s, m, k) else 0
        if k < p.training:
            p.free_t += host.free
        else:
            p.free_l += host.free


@inner
def count_on(m, k, base, flex):  # type: ignore[no-untyped-def]
    """Add workers to a node (or remove them)."""
    p, host = m.p[0], m.hosts[k]
    host.fixed += base
    host.flex += flex
    host.free -= base + flex
    if k < p.training:
        p.flex_t += flex
        p.free_t -= base + flex
    else:
        p.flex_l += flex
        p.free_l -= base + flex


@inner
def touch(s, m, j):  # type: ignore[no-untyped-def]
    """Register a job whose GPUs are about to change."""
    member = m.members[j]
    if member.touched == 1:
        return
    member.touched = 1
    if s.jobs[j].state == RUNNING:
        lift(s, j)
    m.changed[m.p[0].changed] = j
    m.p[0].changed += 1


@inner
def add(s, m, j, k, base, flex):  # type: ignore[no-untyped-def]
    """Add a job's workers on a node."""
    touch(s, m, j)
    member = m.members[j]
    at = member.first
    while at >= 0 and m.shares[at].node != k:
        at = m.shares[at].next
    if at < 0:
        at = m.p[0].spare
        m.p[0].spare = m.shares[at].next
        share = m.shares[at]
        share.node, share.fixed, share.flex, share.next = k, 0, 0, member.first
        member.first = at
    m.shares[at].fixed += base
    m.shares[at].flex += flex
    member.flex += flex
    count_on(m, k, base, flex)


@inner
def take_flex(s, m, j, k, some):  # type: ignore[no-untyped-def]
    """Remove a job's flexible workers on a node."""
    touch(s, m, j)
    member = m.members[j]
    before, at = -1, member.first
    while m.shares[at].node != k:
        before, at = at, m.shares[at].next
    share = m.shares[at]
    share.flex -= some
    member.flex -= some
    count_on(m, k, 0, -some)
    if share.fixed + share.flex == 0:
        if before < 0:
            member.first = share.next
        else:
            m.shares[before].next = share.next
        share.next = m.p[0].spare
        m.p[0].spare = at


@inner
def clear(m, j):  # type: ignore[no-untyped-def]
    """Remove all GPUs of a job."""
    p, member = m.p[0], m.members[j]
    if member.first < 0:
        return
    at = member.first
    while at >= 0:
        share = m.shares[at]
        count_on(m, share.node, -share.fixed, -share.flex)
        after = share.next
        share.next = p.spare
        p.spare = at
        at = after
    member.first, member.flex = -1, 0
    k = 0
    while m.line[k] != j:
        k += 1
    p.line -= 1
    for i in range(k, p.line):
        m.line[i] = m.line[i + 1]


@inner
def enter(m, j):  # type: ignore[no-untyped-def]
    """Insert a job that gets GPUs into the line."""
    k = m.p[0].line
    m.p[0].line += 1
    while k > 0 and m.members[m.line[k - 1]].place > m.members[j].place:
        m.line[k] = m.line[k - 1]
        k -= 1
    m.line[k] = j


# ---- cost of returning nodes


@inner
def cheapest(m):  # type: ignore[no-untyped-def]
    """The loaned node that is cheapest to return."""
    p = m.p[0]
    for k in range(p.training, m.hosts.size):
        m.hosts[k].cost = 0.0
    for i in range(p.line):
        first = m.members[m.line[i]].first
        nodes = 0
        at = first
        while at >= 0:
            nodes += m.shares[at].node >= p.training and m.shares[at].fixed > 0
            at = m.shares[at].next
        at = first
        while at >= 0:
            if m.shares[at].node >= p.training and m.shares[at].fixed > 0:
                m.hosts[m.shares[at].node].cost += 1.0 / nodes
            at = m.shares[at].next
    best = -1
    for k in range(p.training, m.hosts.size):
        if m.hosts[k].lent == 1 and (best < 0 or _cheaper(m.hosts[k], m.hosts[best])):
            best = k
    return best


@inner
def _cheaper(one, two):  # type: ignore[no-untyped-def]
    if micro(one.cost) != micro(two.cost):
        return micro(one.cost) < micro(two.cost)
    if one.flex != two.flex:
        return one.flex < two.flex
    return one.fixed < two.fixed


# ---- waiting jobs: a heap per shape


@inner
def ahead(m, a, b):  # type: ignore[no-untyped-def]
    """Whether the first of two waiting jobs comes before the second."""
    one, two = m.members[a], m.members[b]
    return one.key < two.key or (one.key == two.key and one.place < two.place)


@inner
def wait(s, m, j):  # type: ignore[no-untyped-def]
    """Add a waiting job."""
    settle(s, j)
    member = m.members[j]
    member.key = micro(takes(s, j, member.least))
    first = m.first[member.request]
    k = m.size[member.request]
    m.size[member.request] += 1
    while k > 0:
        parent = (k - 1) // 2
        if not ahead(m, j, m.heap[first + parent]):
            break
        m.heap[first + k] = m.heap[first + parent]
        k = parent
    m.heap[first + k] = j


@inner
def pop(m, shape):  # type: ignore[no-untyped-def]
    """Remove the first waiting job of a shape."""
    first = m.first[shape]
    m.size[shape] -= 1
    size = m.size[shape]
    sink(m, m.heap, first, size, 0, m.heap[first + size], ahead)
