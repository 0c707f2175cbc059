"""The compiled loop: stages of jobs on executors, in integer milliseconds.

A decision gives executors to a stage; an executor stays with its stage until all its tasks are assigned.
Policies are kernels of `choices_kernel`, which ask this module to copy the state and play it to its end.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, ints
from gpuctl.compiled.jit import inner

NOW, NEXT, LAST, ACTIVE, FREE, MOVES, DECISIONS, DELAY, TASKS, LOGGED, STAGE, AMOUNT, ACTIONS = range(13)
COUNTERS = 13
FAR = 1 << 62
NONE = -1


class Work(Bundle):
    """The jobs, by arrival, then in file order."""

    arrival = ints()  # [jobs]
    first = ints()  # its first stage; one more than jobs [jobs + 1]
    total = ints()  # tasks * task_ms of all stages [jobs]
    job = ints()  # of a stage [stages]
    tasks = ints()  # [stages]
    task_ms = ints()  # [stages]
    path = ints()  # task_ms and the longest path of its children [stages]
    parents = ints()  # how many [stages]
    kids_at = ints()  # where its children begin in kids; one more than stages [stages + 1]
    kids = ints()  # stages [edges]


class State(Bundle):
    """The executors and jobs at one instant."""

    left = ints()  # tasks not yet assigned [stages]
    unfinished = ints()  # tasks [stages]
    blocked = ints()  # parents that are not finished [stages]
    rest = ints()  # ms of unassigned tasks [jobs]
    stages = ints()  # unfinished stages [jobs]
    held = ints()  # executors that run or move for it [jobs]
    near = ints()  # free executors whose last job it is [jobs]
    pick = ints()  # its candidate: the runnable stage with the longest path, or NONE [jobs]
    begin = ints()  # start of its first task [jobs]
    end = ints()  # of its last task [jobs]
    active = ints()  # jobs that have arrived and not ended, in order [jobs]
    at = ints()  # the stage that an executor runs or moves to, or NONE [executors]
    until = ints()  # end of its task [executors]
    last = ints()  # the job it was last given to, or NONE [executors]
    candidates = ints()  # jobs, in order [jobs]
    by_rest = ints()  # places in candidates, least rest first [jobs]
    rank = ints()  # index of a candidate among them [jobs]
    action_stage = ints()  # actions of the search [2 * jobs]
    action_amount = ints()  # executors [2 * jobs]
    action_cost = ints()  # sum of end times [2 * jobs]
    log = ints(2)  # start, end, stage, executor; in order of assignment [tasks, 4]
    c = ints()  # the counters named above, in that order [COUNTERS]


@inner
def _repick(w, s, j):  # type: ignore[no-untyped-def]
    """Update the candidate of a job."""
    best = NONE
    for v in range(w.first[j], w.first[j + 1]):
        if s.left[v] > 0 and s.blocked[v] == 0 and (best == NONE or w.path[v] > w.path[best]):
            best = v
    s.pick[j] = best


@inner
def _begin(w, s, e, v, at):  # type: ignore[no-untyped-def]
    """Start a task of a stage on an executor at an instant."""
    j = w.job[v]
    s.at[e], s.until[e] = v, at + w.task_ms[v]
    s.left[v] -= 1
    s.rest[j] -= w.task_ms[v]
    if s.left[v] == 0:
        _repick(w, s, j)
    if s.c[LOGGED] == 1:
        k = s.c[TASKS]
        s.log[k, 0], s.log[k, 1], s.log[k, 2], s.log[k, 3] = at, s.until[e], v, e
        s.c[TASKS] += 1


@inner
def _finish_task(w, s, e, now):  # type: ignore[no-untyped-def]
    """End the task of an executor; it continues with its stage, or is free."""
    v = s.at[e]
    j = w.job[v]
    s.unfinished[v] -= 1
    if s.unfinished[v] == 0:
        for k in range(w.kids_at[v], w.kids_at[v + 1]):
            s.blocked[w.kids[k]] -= 1
        _repick(w, s, j)
        s.stages[j] -= 1
        if s.stages[j] == 0:
            s.end[j] = now
            to = 0
            for k in range(s.c[ACTIVE]):
                if s.active[k] != j:
                    s.active[to] = s.active[k]
                    to += 1
            s.c[ACTIVE] = to
    if s.left[v] > 0:
        _begin(w, s, e, v, now)
    else:
        s.at[e] = NONE
        s.held[j] -= 1
        s.near[j] += 1
        s.c[FREE] += 1


@inner
def advance(w, s):  # type: ignore[no-untyped-def]
    """Advance to the next event and process it; False: no event is left."""
    now = np.int64(FAR)
    size = s.at.size
    if s.c[FREE] < size:
        for e in range(size):
            if s.at[e] >= 0 and s.until[e] < now:
                now = s.until[e]
    if s.c[NEXT] < s.c[LAST] and w.arrival[s.c[NEXT]] < now:
        now = w.arrival[s.c[NEXT]]
    if now == FAR:
        return False
    s.c[NOW] = now
    if s.c[FREE] < size:
        for e in range(size):
            if s.at[e] >= 0 and s.until[e] == now:
                _finish_task(w, s, e, now)
    while s.c[NEXT] < s.c[LAST] and w.arrival[s.c[NEXT]] == now:
        j = s.c[NEXT]
        s.active[s.c[ACTIVE]] = j
        s.c[ACTIVE] += 1
        s.c[NEXT] += 1
        _repick(w, s, j)
    return True


@inner
def act(w, s, v, n):  # type: ignore[no-untyped-def]
    """Give up to n free executors to a stage: those whose last job is its job first, then by number."""
    j = w.job[v]
    n = min(n, s.left[v], s.c[FREE])
    now = s.c[NOW]
    for local in (1, 0):
        e = 0
        while n > 0 and e < s.at.size:
            if s.at[e] == NONE and (s.last[e] == j) == (local == 1):
                at = now
                if local == 1:
                    s.near[j] -= 1
                else:
                    at += s.c[DELAY]
                    if s.c[DELAY] > 0:
                        s.c[MOVES] += 1
                    if s.last[e] >= 0:
                        s.near[s.last[e]] -= 1
                    s.last[e] = j
                s.held[j] += 1
                s.c[FREE] -= 1
                n -= 1
                if s.begin[j] == NONE or at < s.begin[j]:
                    s.begin[j] = at
                _begin(w, s, e, v, at)
            e += 1


@inner
def list_candidates(s):  # type: ignore[no-untyped-def]
    """List jobs with a candidate; returns their number."""
    count = 0
    for k in range(s.c[ACTIVE]):
        j = s.active[k]
        if s.pick[j] != NONE:
            s.candidates[count] = j
            count += 1
    return count


@inner
def sort_by_rest(s, count):  # type: ignore[no-untyped-def]
    """Sort the candidates by remaining work, ties: the first; by Shell's sort, with no key twice."""
    for k in range(count):
        s.by_rest[k] = k
    gap = count // 2
    while gap > 0:
        for k in range(gap, count):
            one = s.by_rest[k]
            rest = s.rest[s.candidates[one]]
            to = k
            while to >= gap:
                other = s.by_rest[to - gap]
                other_rest = s.rest[s.candidates[other]]
                if other_rest < rest or (other_rest == rest and other < one):
                    break
                s.by_rest[to] = other
                to -= gap
            s.by_rest[to] = one
        gap //= 2
    for k in range(count):
        s.rank[s.by_rest[k]] = k


@inner
def copy_to(w, s, to):  # type: ignore[no-untyped-def]
    """Copy `s` to `to`, except jobs that have not arrived."""
    for k in range(s.c.size):
        to.c[k] = s.c[k]
    to.c[LAST] = s.c[NEXT]
    to.c[LOGGED] = 0
    for e in range(s.at.size):
        to.at[e], to.until[e], to.last[e] = s.at[e], s.until[e], s.last[e]
    for k in range(s.c[ACTIVE]):
        j = s.active[k]
        to.active[k] = j
        to.rest[j], to.stages[j], to.held[j], to.near[j] = s.rest[j], s.stages[j], s.held[j], s.near[j]
        to.pick[j], to.begin[j] = s.pick[j], s.begin[j]
        for v in range(w.first[j], w.first[j + 1]):
            to.left[v], to.unfinished[v], to.blocked[v] = s.left[v], s.unfinished[v], s.blocked[v]
