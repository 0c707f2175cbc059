"""Compiled: when a gang of the `philly` policy gives up locality, and what it takes for a job's run time by then."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints, rows
from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.event_heap_kernel import cancel
from gpuctl.replay.engine.instant_kernel import job_timer, named_timer
from gpuctl.replay.engine.state import WAITING
from gpuctl.replay.order.waiting_kernel import insert, remove

LEVELS = 3
"""Fewest nodes of one rack; any nodes of one rack; any nodes."""

TRIES, RETRY, NEVER, TIME, ADAPTIVE = range(5)
RELAX = ("tries", "retry", "never", "time", "adaptive")
"""The values of the parameter ``relax``."""

UNKNOWN_S = 3600.0
"""Run time that is taken for a job as long as none has ended."""

RULES = np.dtype(
    [
        ("relax", "i8"),
        ("after", "f8"),  # seconds that a gang asks for the fewest nodes, with TIME
        ("rack_after", "f8"),  # seconds that it asks for one rack after that
        ("interval", "f8"),  # seconds between looks at those that wait, where nothing else happens; 0: none
        ("look", "i8"),  # whether something has happened at this instant that lets the policy look
        ("next", "f8"),  # second of the next look
        ("due", "i8"),  # jobs in `due`
        ("places", "i8"),
        ("classes", "i8"),  # kinds of a user's jobs in `ended`, by size
        ("dedicate", "i8"),
        ("small", "i8"),  # most GPUs of a small job
        ("defragment", "i8"),
        ("worth", "f8"),  # GPU-seconds of waiting that a migration must spare for each that it costs
        ("looked", "f8"),  # last second at which nodes were looked through for jobs to move
        ("running", "i8"),  # jobs in `running`
    ],
    align=True,
)


class Rules(Bundle):
    """What the rules remember."""

    p = rows(RULES)  # one record of `RULES`
    since = floats()  # second from which on a job's wait is for locality alone; NaN: it is not [jobs]
    spent = floats()  # seconds of that before [jobs]
    exposed = floats()  # seconds that gangs of each kind have waited for locality alone [kinds]
    granted = ints()  # how many of them got it [kinds]
    ended = floats(2)  # run times of jobs that have ended: how many, and their sum [users x sizes + sizes + 1, 2]
    base = ints()  # best level that each job can have at all [jobs]
    who = ints()  # row of each job there [jobs]
    colour = ints()  # what a node in use is for: 1 small jobs, 2 gangs; an empty one is for any [nodes]
    running = ints()  # jobs that run, and perhaps some that did [jobs]
    listed = ints()  # whether a job is among them [jobs]
    victims = ints()  # jobs that may be moved, node by node, scratch [jobs]
    ends = ints()  # where each node's begin, scratch [nodes + 1]
    at = ints()  # scratch [nodes]
    line = ints()  # nodes in the order of their names' numbers [nodes]
    racks = ints()  # racks, likewise [racks]
    request_s = floats()  # second from which on a job has asked for locality, with TIME [jobs]
    due = ints()  # jobs that have asked for their level for long enough, and wait for a look [jobs]


@inner
def runs(r, j):  # type: ignore[no-untyped-def]
    """A job has started."""
    if r.p[0].defragment == 1 and r.listed[j] == 0:
        r.listed[j] = 1
        r.running[r.p[0].running] = j
        r.p[0].running += 1


@inner
def mean_run(s, r, j):  # type: ignore[no-untyped-def]
    """Seconds that a job is taken to run: mean of its user's of its size that ended, else of its size, else of all."""
    classes = r.p[0].classes
    rows = r.ended.shape[0]
    own = r.who[j]
    if r.ended[own, 0] > 0:
        return r.ended[own, 1] / r.ended[own, 0]
    size = rows - 1 - classes + own % classes
    if r.ended[size, 0] > 0:
        return r.ended[size, 1] / r.ended[size, 0]
    if r.ended[rows - 1, 0] > 0:
        return r.ended[rows - 1, 1] / r.ended[rows - 1, 0]
    return UNKNOWN_S


@inner
def learn_run(s, r, j):  # type: ignore[no-untyped-def]
    """A job has ended: those that come later are expected to run like it."""
    classes = r.p[0].classes
    rows = r.ended.shape[0]
    ran = s.jobs[j].ran
    for row in (r.who[j], rows - 1 - classes + r.who[j] % classes, rows - 1):
        r.ended[row, 0] += 1
        r.ended[row, 1] += ran


@inner
def loss(s, r, j, level):  # type: ignore[no-untyped-def]
    """Seconds that a job is expected to run longer at a level than at its best one."""
    job = s.jobs[j]
    best = job.speed0 if r.base[j] == 0 else job.speed1
    speed = job.speed1 if level == 1 else job.speed2
    if speed <= 0:
        return np.inf
    return max(best / speed - 1.0, 0.0) * mean_run(s, r, j)


@inner
def waited(s, r, j):  # type: ignore[no-untyped-def]
    """Seconds that a job has waited for locality alone."""
    since = r.since[j]
    return r.spent[j] + (0.0 if np.isnan(since) else s.g[0].now - since)


@inner
def extra_wait(s, r, j, kind):  # type: ignore[no-untyped-def]
    """Seconds that a job is expected to go on waiting for locality.

    Waits are taken to be memoryless: gangs of its kind have waited so long for each time that one got locality, this
    one's own wait, as if it ended now, among them. While none has got it that is its own wait so far.
    """
    return (r.exposed[kind] + waited(s, r, j)) / (r.granted[kind] + 1)


@inner
def wants_locality(s, r, j, so):  # type: ignore[no-untyped-def]
    """From now on a waiting job waits for locality alone, or does not."""
    if so and np.isnan(r.since[j]):
        r.since[j] = s.g[0].now
    elif not so and not np.isnan(r.since[j]):
        r.spent[j] += s.g[0].now - r.since[j]
        r.since[j] = np.nan


@inner
def over(s, r, j, kind, got):  # type: ignore[no-untyped-def]
    """A job's wait for locality is over: it has got it, or gives it up."""
    spent = waited(s, r, j)
    if spent > 0:
        r.exposed[kind] += spent
        if got:
            r.granted[kind] += 1
    r.spent[j] = 0.0
    r.since[j] = np.nan


@inner
def first_level(s, r, f, j):  # type: ignore[no-untyped-def]
    """A job asks for what it asks for at first."""
    p = r.p[0]
    f.level[j] = r.base[j]
    f.tries[j] = 0
    if r.since.size > 1:
        r.spent[j] = 0.0
        r.since[j] = np.nan
    if p.relax == TIME:
        r.request_s[j] = s.g[0].now
        _ask_on(s, r, f, j)


@inner
def _ask_on(s, r, f, j):  # type: ignore[no-untyped-def]
    """Pass over levels that a job has asked for long enough; wake when that is so of the next one."""
    p = r.p[0]
    while f.level[j] < LEVELS - 1:
        until = r.request_s[j] + (p.after if r.base[j] == 0 else 0.0) + (p.rack_after if f.level[j] == 1 else 0.0)
        if until > s.g[0].now:
            job_timer(s, j, until)
            return
        f.level[j] += 1


@inner
def lower(s, q, f, j, level):  # type: ignore[no-untyped-def]
    """Let a job in the waiting list ask for less locality."""
    remove(q, j)
    f.level[j] = level
    group = q.group[j]
    q.group[j] = group - group % LEVELS + level
    insert(q, j)


@inner
def time_is_over(s, q, f, r, j):  # type: ignore[no-untyped-def]
    """A job has asked for its level of locality for long enough: it asks for less, or does so at the next look."""
    if s.jobs[j].state != WAITING or f.level[j] >= LEVELS - 1:
        return
    if r.p[0].interval > 0:
        r.due[r.p[0].due] = j
        r.p[0].due += 1
    else:
        _ask_for_less(s, q, f, r, j)


@inner
def _ask_for_less(s, q, f, r, j):  # type: ignore[no-untyped-def]
    level = f.level[j]
    _ask_on(s, r, f, j)
    if f.level[j] != level:
        new = f.level[j]
        f.level[j] = level
        lower(s, q, f, j, new)


@inner
def look_now(r):  # type: ignore[no-untyped-def]
    """Something has happened that lets the policy look at those that wait."""
    r.p[0].look = 1


@inner
def looks(s, q, f, r):  # type: ignore[no-untyped-def]
    """Whether the policy looks at those that wait at this instant: always, unless it has an interval."""
    p = r.p[0]
    if p.interval <= 0:
        return True
    if p.look == 0:
        return False
    p.look = 0
    for k in range(p.due):
        if s.jobs[r.due[k]].state == WAITING:
            _ask_for_less(s, q, f, r, r.due[k])
    p.due = 0
    return True


@inner
def look_later(s, q, r):  # type: ignore[no-untyped-def]
    """Wake for the next look as long as somebody waits."""
    p = r.p[0]
    if p.interval > 0 and q.counter[2] > 0 and not p.next > s.g[0].now:
        p.next = s.g[0].now + p.interval
        named_timer(s, 1, p.next)


@inner
def adapt(s, q, f, r, j, kind):  # type: ignore[no-untyped-def]
    """Let a job that waits for locality alone give it up where it would lose less by that; true where it does."""
    extra = extra_wait(s, r, j, kind)
    for level in range(f.level[j] + 1, LEVELS):
        if extra > loss(s, r, j, level):
            over(s, r, j, kind, False)
            lower(s, q, f, j, level)
            cancel(s, s.jobs.size + j)
            return True
    # nothing else may happen by then
    at = loss(s, r, j, f.level[j] + 1) * (r.granted[kind] + 1) - r.exposed[kind] - waited(s, r, j)
    if at < np.inf:
        job_timer(s, j, s.g[0].now + max(at, 0.0) + 1.0)
    return False
