"""Compiled: when a gang of the `philly` policy gives up locality, and its estimate of run times."""

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
"""Estimated run time of a job while none has ended."""

RULES = np.dtype(
    [
        ("relax", "i8"),
        ("after", "f8"),  # seconds that a gang requires the fewest nodes, with TIME
        ("rack_after", "f8"),  # seconds that it requires one rack after that
        ("interval", "f8"),  # seconds between passes without other events; 0: none
        ("look", "i8"),  # whether an event of this instant allows a pass
        ("next", "f8"),  # second of the next pass
        ("due", "i8"),  # jobs in `due`
        ("places", "i8"),
        ("classes", "i8"),  # kinds of a user's jobs in `ended`, by size
        ("dedicate", "i8"),
        ("small", "i8"),  # most GPUs of a small job
        ("defragment", "i8"),
        ("worth", "f8"),  # GPU-seconds of waiting that a migration must save per GPU-second that it costs
        ("looked", "f8"),  # last second of a search for jobs to move
        ("running", "i8"),  # jobs in `running`
    ],
    align=True,
)


class Rules(Bundle):
    """Memory of the rules."""

    p = rows(RULES)  # one record of `RULES`
    since = floats()  # second from which a job waits for locality alone; NaN: it does not [jobs]
    spent = floats()  # earlier seconds of such waiting [jobs]
    exposed = floats()  # seconds that gangs of each kind have waited for locality alone [kinds]
    granted = ints()  # number of them that got it [kinds]
    ended = floats(2)  # run times of ended jobs: number and sum [users x sizes + sizes + 1, 2]
    base = ints()  # best possible level of each job [jobs]
    who = ints()  # row of each job there [jobs]
    colour = ints()  # use of a nonempty node: 1 small jobs, 2 gangs [nodes]
    running = ints()  # running jobs, possibly with some that have stopped [jobs]
    listed = ints()  # whether a job is among them [jobs]
    victims = ints()  # jobs that may be moved, node by node, scratch [jobs]
    ends = ints()  # first victim of each node, scratch [nodes + 1]
    at = ints()  # scratch [nodes]
    line = ints()  # nodes in the order of their names' numbers [nodes]
    racks = ints()  # racks, likewise [racks]
    request_s = floats()  # second from which a job has required locality, with TIME [jobs]
    due = ints()  # jobs due to relax their level at the next pass [jobs]


@inner
def runs(r, j):  # type: ignore[no-untyped-def]
    """Handle a started job."""
    if r.p[0].defragment == 1 and r.listed[j] == 0:
        r.listed[j] = 1
        r.running[r.p[0].running] = j
        r.p[0].running += 1


@inner
def mean_run(s, r, j):  # type: ignore[no-untyped-def]
    """Estimated run time of a job: the mean of ended jobs of its user and size, else of its size, else of all."""
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
    """Record an ended job's run time for later estimates."""
    classes = r.p[0].classes
    rows = r.ended.shape[0]
    ran = s.jobs[j].ran
    for row in (r.who[j], rows - 1 - classes + r.who[j] % classes, rows - 1):
        r.ended[row, 0] += 1
        r.ended[row, 1] += ran


@inner
def loss(s, r, j, level):  # type: ignore[no-untyped-def]
    """Expected additional run time of a job at a level, compared with its best one."""
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
    """Expected further wait of a job for locality.

    Waits are taken as memoryless: the total wait of gangs of its kind, including this one's so far, per gang that got
    locality. While none has, it is its own wait so far.
    """
    return (r.exposed[kind] + waited(s, r, j)) / (r.granted[kind] + 1)


@inner
def wants_locality(s, r, j, so):  # type: ignore[no-untyped-def]
    """Set whether a waiting job waits for locality alone from now on."""
    if so and np.isnan(r.since[j]):
        r.since[j] = s.g[0].now
    elif not so and not np.isnan(r.since[j]):
        r.spent[j] += s.g[0].now - r.since[j]
        r.since[j] = np.nan


@inner
def over(s, r, j, kind, got):  # type: ignore[no-untyped-def]
    """End a job's wait for locality: it has got it, or gives it up."""
    spent = waited(s, r, j)
    if spent > 0:
        r.exposed[kind] += spent
        if got:
            r.granted[kind] += 1
    r.spent[j] = 0.0
    r.since[j] = np.nan


@inner
def first_level(s, r, f, j):  # type: ignore[no-untyped-def]
    """Reset a job to its initial level."""
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
    """Skip levels that a job has required for long enough; set a timer for the next one."""
    p = r.p[0]
    while f.level[j] < LEVELS - 1:
        until = r.request_s[j] + (p.after if r.base[j] == 0 else 0.0) + (p.rack_after if f.level[j] == 1 else 0.0)
        if until > s.g[0].now:
            job_timer(s, j, until)
            return
        f.level[j] += 1


@inner
def lower(s, q, f, j, level):  # type: ignore[no-untyped-def]
    """Relax the locality of a job in the waiting list."""
    remove(q, j)
    f.level[j] = level
    group = q.group[j]
    q.group[j] = group - group % LEVELS + level
    insert(q, j)


@inner
def time_is_over(s, q, f, r, j):  # type: ignore[no-untyped-def]
    """Relax a job that has required its level for long enough, now or at the next pass."""
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
def request_pass(r):  # type: ignore[no-untyped-def]
    """Record an event that allows a pass."""
    r.p[0].look = 1


@inner
def is_pass_due(s, q, f, r):  # type: ignore[no-untyped-def]
    """Whether a pass is due at this instant: always, unless the policy has an interval."""
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
def schedule_pass(s, q, r):  # type: ignore[no-untyped-def]
    """Set the timer of the next pass while jobs wait."""
    p = r.p[0]
    if p.interval > 0 and q.counter[2] > 0 and not p.next > s.g[0].now:
        p.next = s.g[0].now + p.interval
        named_timer(s, 1, p.next)


@inner
def adapt(s, q, f, r, j, kind):  # type: ignore[no-untyped-def]
    """Relax a job that waits for locality alone if that costs less; true if it does."""
    extra = extra_wait(s, r, j, kind)
    for level in range(f.level[j] + 1, LEVELS):
        if extra > loss(s, r, j, level):
            over(s, r, j, kind, False)
            lower(s, q, f, j, level)
            cancel(s, s.jobs.size + j)
            return True
    # no other event may happen by then
    at = loss(s, r, j, f.level[j] + 1) * (r.granted[kind] + 1) - r.exposed[kind] - waited(s, r, j)
    if at < np.inf:
        job_timer(s, j, s.g[0].now + max(at, 0.0) + 1.0)
    return False
