"""What conservative backfilling remembers, compiled: waiting jobs in order, and what is reserved in the profile."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gpuctl.replay.arrays import Bundle
from gpuctl.replay.profile_kernel import joined, span
from gpuctl.trace.jit import inner

CONSERVATIVE = np.dtype(
    [
        ("counts", "i8"),  # 1: only how many GPUs are free decides whether a job can be placed
        ("quotas", "i8"),  # 1: columns for queues
        ("waiting", "i8"),
        ("stale", "i8"),  # 1: a reservation was due and could not be kept
        ("freed_from", "f8"),  # what became free since every reservation was looked at last lies in …
        ("freed_to", "f8"),  # … this time
        ("next", "f8"),  # no reservation is for a second before this one
        ("bell", "f8"),  # when the policy is to be woken
        ("turns", "i8"),  # rounds in which reservations were moved
        ("moves", "i8"),  # of reservations in this round
        ("lows", "i8"),  # entries of `low_move` and `low_from`
    ],
    align=True,
)


class Reservations(Bundle):
    """What the policy knows.

    Attributes:
        p: one record of `CONSERVATIVE`.
        how: placement of each job [jobs].
        rank: place of each job in the order of the queue [jobs].
        line: waiting jobs in order [jobs].
        at: second reserved for each waiting job; inf: it cannot be placed on the servers there are [jobs].
        first: where each job's reserved pieces begin [jobs].
        pieces: how many they are [jobs].
        server: of each reserved piece.
        gpus: GPUs there.
        least: least GPUs free on each server in a time, scratch [servers].
        kind: number of each job's gang and planned seconds, alike for jobs that are alike [jobs].
        known: before which second no job of a kind can be moved, as far as was found in this round [kinds].
        known_at: the reservation of the job of that kind for which it was found [kinds].
        known_round: the round in which that was found [kinds].
        known_moves: the moves before it in that round [kinds].
        low_move: of the moves of this round, those that left a second before those that all later ones left, …
        low_from: … and that second: both ascend.
    """

    p: Any
    how: NDArray[np.int64]
    rank: NDArray[np.int64]
    line: NDArray[np.int64]
    at: NDArray[np.float64]
    first: NDArray[np.int64]
    pieces: NDArray[np.int64]
    server: NDArray[np.int64]
    gpus: NDArray[np.int64]
    least: NDArray[np.int64]
    kind: NDArray[np.int64]
    known: NDArray[np.float64]
    known_at: NDArray[np.float64]
    known_round: NDArray[np.int64]
    known_moves: NDArray[np.int64]
    low_move: NDArray[np.int64]
    low_from: NDArray[np.float64]

    fields: ClassVar[dict[str, tuple[Any, int]]] = {
        "p": (CONSERVATIVE, 1),
        "how": ("i8", 1),
        "rank": ("i8", 1),
        "line": ("i8", 1),
        "at": ("f8", 1),
        "first": ("i8", 1),
        "pieces": ("i8", 1),
        "server": ("i8", 1),
        "gpus": ("i8", 1),
        "least": ("i8", 1),
        "kind": ("i8", 1),
        "known": ("f8", 1),
        "known_at": ("f8", 1),
        "known_round": ("i8", 1),
        "known_moves": ("i8", 1),
        "low_move": ("i8", 1),
        "low_from": ("f8", 1),
    }


# ---- the line


@inner
def place_in_line(f, j):  # type: ignore[no-untyped-def]
    """How many waiting jobs come before one."""
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
    """Let a job wait, in its place in the order."""
    at = place_in_line(f, j)
    for k in range(f.p[0].waiting, at, -1):
        f.line[k] = f.line[k - 1]
    f.line[at] = j
    f.p[0].waiting += 1


# ---- what the profile holds


@inner
def column_of(s, f, queue):  # type: ignore[no-untyped-def]
    """The column of the profile that holds what a queue may still hold."""
    return 1 + queue + (0 if f.p[0].counts == 1 else s.servers.size)


@inner
def change_reserved(s, f, c, j, begin, end, sign):  # type: ignore[no-untyped-def]
    """Give back (1) or take (-1) what is reserved for a job."""
    job = s.jobs[j]
    first, last = span(c, begin, end)
    for k in range(first, last):
        row = c.row[k]
        c.free[row, 0] += sign * job.gpus
        if f.p[0].counts == 0:
            for i in range(f.first[j], f.first[j] + f.pieces[j]):
                c.free[row, 1 + f.server[i]] += sign * f.gpus[i]
        if f.p[0].quotas == 1:
            c.free[row, column_of(s, f, job.queue)] += sign * job.gpus
    joined(c, first, last)


@inner
def change_running(s, f, c, j, begin, end, sign):  # type: ignore[no-untyped-def]
    """Give back (1) or take (-1) the GPUs of a job's present or last attempt."""
    job = s.jobs[j]
    attempt = s.attempts[job.row]
    first, last = span(c, begin, end)
    for k in range(first, last):
        row = c.row[k]
        c.free[row, 0] += sign * attempt.gpus
        if f.p[0].counts == 0:
            for i in range(attempt.first, attempt.first + attempt.pieces):
                c.free[row, 1 + s.pieces[i].server] += sign * s.pieces[i].gpus
        if f.p[0].quotas == 1:
            c.free[row, column_of(s, f, job.queue)] += sign * attempt.gpus
    joined(c, first, last)


@inner
def change_server(s, f, c, number):  # type: ignore[no-untyped-def]
    """A server has come up."""
    first, last = span(c, s.g[0].now, np.inf)
    for k in range(first, last):
        c.free[c.row[k], 0] += s.servers[number].cap
        if f.p[0].counts == 0:
            c.free[c.row[k], 1 + number] += s.servers[number].cap
    joined(c, first, last)


@inner
def freed(f, begin, end):  # type: ignore[no-untyped-def]
    """Remember that more is free from `begin` to `end`."""
    p = f.p[0]
    p.freed_from = min(p.freed_from, begin)
    p.freed_to = max(p.freed_to, end)
