"""Compiled memory of conservative backfilling: waiting jobs in order, and reservations in the profile."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuctl.compiled.bundles import Bundle, array_of, floats, ints, rows
from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.state import NEED
from gpuctl.replay.policies.backfill.profile_kernel import joined, span

CONSERVATIVE = np.dtype(
    [
        ("counts", "i8"),  # 1: only how many GPUs are free decides whether a job can be placed
        ("quotas", "i8"),  # 1: columns for queues
        ("cpu", "i8"),  # if CPUs or memory count: the column of the first node's CPUs; those of memory follow
        ("waiting", "i8"),
        ("stale", "i8"),  # 1: a reservation was due and could not be kept
        ("freed_from", "f8"),  # time that became free since all reservations were last checked: from …
        ("freed_to", "f8"),  # … to
        ("next", "f8"),  # no reservation is for a second before this one
        ("bell", "f8"),  # when the policy is to be woken
        ("looks", "i8"),  # jobs marked in `look`
        ("turn", "i8"),  # position in the line of the present turn, plus the line's length per completed round
    ],
    align=True,
)


class Reservations(Bundle):
    """Memory of the policy."""

    p = rows(CONSERVATIVE)  # one record of `CONSERVATIVE`
    how = ints()  # placement of each job [jobs]
    rank = ints()  # place of each job in the order of the queue [jobs]
    line = ints()  # waiting jobs in order [jobs]
    at = floats()  # second reserved for each waiting job; inf: it cannot be placed on present nodes [jobs]
    first = ints()  # where each job's reserved pieces begin [jobs]
    pieces = ints()  # how many they are [jobs]
    node = ints()  # of each reserved piece
    gpus = ints()  # GPUs there
    need = rows(NEED)  # CPUs and memory there, records of `NEED`; none where neither counts
    least = ints()  # least GPUs free on each node in a time, scratch [nodes]
    step = ints()  # row of the step with which a job's reservation begins [jobs]
    ahead = ints()  # the previous job that begins with that step; -1: none [jobs]
    behind = ints()  # the next one; -1: none [jobs]
    place = ints()  # a job's place in `line`, while reservations are moved [jobs]
    # marks of the places in `line` whose jobs may be moved, see `compress_kernel` [jobs]
    look: NDArray[np.int8] = array_of("i1")
    block = ints()  # their number per 64 positions
    far = ints()  # place in the line of the job of a size that may be moved by its length or more; -1: none [sizes]
    size = ints()  # GPUs of each size of gangs, ascending [sizes]
    gang = ints()  # index of each job's size [jobs]
    gpus_of = ints()  # GPUs of each job [jobs]
    fewest = floats()  # least planned seconds of the waiting jobs of a size [sizes]
    last = floats()  # the latest reserved second of one of them; -inf: none waits [sizes]
    room = floats()  # a job of a size can be moved by its length or more to between this second … [sizes]
    until = floats()  # … and that one only; -inf: to none [sizes]
    most_s = floats()  # seconds of the longest stretch in it with room; -inf: none [sizes]
    turns = ints()  # turn at which the last of them has been visited since that was found [sizes]
    members = ints()  # places in the line of the waiting jobs of each size, one size after the other [jobs]
    plans = floats()  # seconds that they are planned for [jobs]
    group = ints()  # first entry of each size, and the end [sizes + 1]


# ---- the line


@inner
def place_in_line(f, j):  # type: ignore[no-untyped-def]
    """Number of waiting jobs before one."""
    a, b = 0, f.p[0].waiting
    while a < b:
        middle = (a + b) >> 1
        if f.rank[f.line[middle]] < f.rank[j]:
            a = middle + 1
        else:
            b = middle
    return a


@inner
def into_line(f, j):  # type: ignore[no-untyped-def]
    """Insert a waiting job at its position in the order."""
    at = place_in_line(f, j)
    for k in range(f.p[0].waiting, at, -1):
        f.line[k] = f.line[k - 1]
    f.line[at] = j
    f.p[0].waiting += 1


# ---- what the profile holds


@inner
def column_of(s, f, queue):  # type: ignore[no-untyped-def]
    """The column of the profile with a queue's remaining quota."""
    return queue + (0 if f.p[0].counts == 1 else s.nodes.size)


@inner
def begins(f, c, j, row):  # type: ignore[no-untyped-def]
    """Register a job whose reservation begins with the step of this row."""
    other = c.starts[row]
    f.step[j], f.ahead[j], f.behind[j] = row, -1, other
    if other >= 0:
        f.ahead[other] = j
    c.starts[row] = j


@inner
def begins_no_more(f, c, j):  # type: ignore[no-untyped-def]
    """Unregister a job's reservation: it starts, or is moved."""
    ahead, behind = f.ahead[j], f.behind[j]
    if ahead >= 0:
        f.behind[ahead] = behind
    else:
        c.starts[f.step[j]] = behind
    if behind >= 0:
        f.ahead[behind] = ahead


@inner
def reserve_count(f, c, j, gpus, begin, end):  # type: ignore[no-untyped-def]
    """Reserve GPUs for a job without a reservation, if only their number matters."""
    first, last = span(c, begin, end)
    begins(f, c, j, c.row[first])
    for k in range(first, last):
        c.level[k] -= gpus
    joined(c, first, last)


@inner
def _change_need(s, f, c, row, number, cpu, mem):  # type: ignore[no-untyped-def]
    """Return CPUs and memory of a node in one step, or take them if negative."""
    column = f.p[0].cpu + number
    c.free[row, column] += cpu
    c.free[row, column + s.nodes.size] += mem


@inner
def change_reserved(s, f, c, j, begin, end, sign):  # type: ignore[no-untyped-def]
    """Return (1) or take (-1) a job's reservation."""
    job = s.jobs[j]
    first, last = span(c, begin, end)
    for k in range(first, last):
        row = c.row[k]
        c.level[k] += sign * job.gpus
        if f.p[0].counts == 0:
            for i in range(f.first[j], f.first[j] + f.pieces[j]):
                c.free[row, f.node[i]] += sign * f.gpus[i]
                if s.g[0].resources == 1:
                    _change_need(s, f, c, row, f.node[i], sign * f.need[i].cpu, sign * f.need[i].mem)
        if f.p[0].quotas == 1:
            c.free[row, column_of(s, f, job.queue)] += sign * job.gpus
    joined(c, first, last)


@inner
def change_running(s, f, c, j, begin, end, sign):  # type: ignore[no-untyped-def]
    """Return (1) or take (-1) the holdings of a job's present or last attempt."""
    job = s.jobs[j]
    attempt = s.attempts[job.row]
    first, last = span(c, begin, end)
    for k in range(first, last):
        row = c.row[k]
        c.level[k] += sign * attempt.gpus
        if f.p[0].counts == 0:
            for i in range(attempt.first, attempt.first + attempt.pieces):
                c.free[row, s.pieces[i].node] += sign * s.pieces[i].gpus
                if s.g[0].resources == 1:
                    _change_need(s, f, c, row, s.pieces[i].node, sign * s.needs[i].cpu, sign * s.needs[i].mem)
        if f.p[0].quotas == 1:
            c.free[row, column_of(s, f, job.queue)] += sign * attempt.gpus
    joined(c, first, last)


@inner
def change_node(s, f, c, number):  # type: ignore[no-untyped-def]
    """Handle a node that has come up."""
    first, last = span(c, s.g[0].now, np.inf)
    for k in range(first, last):
        c.level[k] += s.nodes[number].cap
        if f.p[0].counts == 0:
            c.free[c.row[k], number] += s.nodes[number].cap
        if s.g[0].resources == 1:
            _change_need(s, f, c, c.row[k], number, s.stock[number].cpu, s.stock[number].mem)
    joined(c, first, last)


@inner
def freed(f, begin, end):  # type: ignore[no-untyped-def]
    """Record that more is free from `begin` to `end`."""
    p = f.p[0]
    p.freed_from = min(p.freed_from, begin)
    p.freed_to = max(p.freed_to, end)
