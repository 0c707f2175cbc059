"""The compiled loop of the capacity scheduler: from one heartbeat that may change something to the next.

A heartbeat is processed if its node has not been offered since the last change. After a whole round without a change,
heartbeats are skipped until an event, or until an application with reservations has missed enough opportunities for
another one; skipped heartbeats are only counted.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.event_heap_kernel import cancel
from gpuctl.replay.engine.instant_kernel import named_timer, room
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.resource_kernel import room_in, units_of
from gpuctl.replay.engine.state import E_FINISHED, E_JOB_TIMER, E_NODE_DOWN, E_NODE_UP, E_QUEUED, WAITING
from gpuctl.replay.models.resources import UNBOUND
from gpuctl.replay.policies.yarn.amounts_kernel import at, minus, ratio
from gpuctl.replay.policies.yarn.capacity_apps_kernel import arrives, handle_end, returns, rings
from gpuctl.replay.policies.yarn.capacity_kernel import heartbeat
from gpuctl.replay.policies.yarn.capacity_limits_kernel import unreserve, wants_more
from gpuctl.replay.policies.yarn.capacity_lists_kernel import pending_list, recount, size_queues
from gpuctl.replay.policies.yarn.capacity_preemption_kernel import monitor_round
from gpuctl.replay.policies.yarn.capacity_tree_kernel import CAP, GIVEN, LARGEST, LEAST
from gpuctl.replay.policies.yarn.heartbeat_kernel import NEAR, beat_from, beat_time
from gpuctl.replay.policies.yarn.linked_lists_kernel import first

T_BEAT, T_ROUND, T_AGAIN = range(3)
"""Named timers."""


@inner
def _count_nodes(s, f):  # type: ignore[no-untyped-def]
    """Handle a change of nodes: guarantees depend on those that are up."""
    cpu, mem, gpus = 0, 0, 0
    all_cpus, all_mem = True, True
    for number in range(s.nodes.size):
        up = s.nodes[number].up == 1
        gpus += s.nodes[number].cap if up else 0
        if s.g[0].resources == 1:
            stock = s.stock[number]
            all_cpus, all_mem = all_cpus and stock.cpu < UNBOUND, all_mem and stock.mem < UNBOUND
            cpu += stock.cpu if up and stock.cpu < UNBOUND else 0
            mem += stock.mem if up and stock.mem < UNBOUND else 0
        if not up and f.nodes[number].app >= 0:
            unreserve(s, f, number)
    # as in `capacity_build.known`
    f.sizes[CAP, 0], f.sizes[CAP, 1], f.sizes[CAP, 2] = mem if all_mem else 0, cpu if all_cpus else 0, gpus
    size_queues(f)
    recount(f)
    f.p[0].version += 1


@inner
def _begin(s, f):  # type: ignore[no-untyped-def]
    """Before the first instant: mark jobs larger than any node that they may use."""
    _count_nodes(s, f)
    for j in range(s.jobs.size):
        room_most = 0
        for number in range(s.nodes.size):
            room_most = max(room_most, room_in(s, number, j))
            if room_most >= units_of(s, j):
                break
        f.jobs[j].wide = room_most < units_of(s, j)


@inner
def _sleep_on(s, f):  # type: ignore[no-untyped-def]
    """Count the heartbeats skipped up to now."""
    p, nodes = f.p[0], s.nodes.size
    number = beat_from(s.g[0].now - p.phase, nodes, p.interval)
    if number <= p.slept:
        return
    if p.reserved > 0:
        rounds, rest = (number - p.slept) // nodes, (number - p.slept) % nodes
        first = p.slept % nodes
        for node in range(nodes):
            a = f.nodes[node].app
            if a >= 0:
                f.apps[a].again += rounds + ((node - first) % nodes < rest)
    p.slept = number


@inner
def _is_round(p, now):  # type: ignore[no-untyped-def]
    """Whether the monitor has a round at an instant; none at the first one."""
    return p.monitor > 0 and now > 0 and abs(np.rint(now / p.monitor) * p.monitor - now) <= NEAR


@inner
def _listen(s, f):  # type: ignore[no-untyped-def]
    """Process the events of this instant: ends, a round of the monitor, requests."""
    g, p = s.g[0], f.p[0]
    counted = False
    for k in range(g.events):
        event = s.events[k]
        if event.kind == E_FINISHED:
            if f.jobs[event.who].state == GIVEN:
                returns(f, event.who)
            handle_end(s, f, event.who)
        elif event.kind == E_QUEUED and f.jobs[event.who].state == GIVEN:
            # its resources are free: a round at this instant must not count them as used
            returns(f, event.who)
        elif (event.kind == E_NODE_DOWN or event.kind == E_NODE_UP) and not counted:
            counted = True
            _count_nodes(s, f)
    # if no round was due as nothing had changed, the ended jobs may make one due now
    now_due = p.next_round == np.inf and p.version != p.changed and _is_round(p, g.now)
    if min(p.next_round, p.again) <= g.now + NEAR or now_due:
        p.next_round = np.inf
        p.changed = p.version
        monitor_round(s, f)
        if p.again < np.inf:
            p.again = max(np.ceil(p.again / p.monitor - 1e-9), np.floor(g.now / p.monitor + 1e-9) + 1) * p.monitor
            named_timer(s, T_AGAIN, p.again)
    k = 0
    while k < g.events:
        event = s.events[k]
        if event.kind == E_QUEUED and s.jobs[event.who].state == WAITING:
            arrives(s, f, event.who)
        elif event.kind == E_JOB_TIMER:
            rings(s, f, event.who)
        k += 1


@inner
def _next_round(s, f):  # type: ignore[no-untyped-def]
    """Schedule the monitor after a change, or while marked containers wait for their end."""
    p = f.p[0]
    if p.monitor > 0 and p.next_round == np.inf and (p.marked > 0 or p.version != p.changed or p.plain == 1):
        p.next_round = (np.floor(s.g[0].now / p.monitor + 1e-9) + 1) * p.monitor
        named_timer(s, T_ROUND, p.next_round)


@inner
def _rounds_of_sleep(f):  # type: ignore[no-untyped-def]
    """Rounds of heartbeats after which an application may reserve another node; 0: never."""
    fewest = np.int64(0)
    if f.p[0].asks == 0:
        return 0
    for number in range(f.nodes.size):
        a = f.nodes[number].app
        if a < 0 or f.apps[a].asks == 0:
            continue
        app = f.apps[a]
        j = first(f.job_lists, pending_list(a))
        amount = at(f.ask, j)
        if f.jobs[j].wide == 1 or wants_more(f, a, amount):
            continue
        large = at(f.sizes, LARGEST)
        part = min(ratio(amount, large), ratio(minus(large, at(f.sizes, LEAST)), large))
        if part >= 1:
            continue
        needed = (app.nodes - app.asks + 1) * app.nodes / (1.0 - part)
        rounds = np.int64(max(np.ceil((needed - app.again) / app.nodes), 1.0))
        fewest = rounds if fewest == 0 else min(fewest, rounds)
    return fewest


@inner
def _next_event(s):  # type: ignore[no-untyped-def]
    g = s.g[0]
    t = s.heap_t[0] if g.heap > 0 else np.inf
    if g.arrival < s.arrivals.size:
        t = min(t, s.arrive_t[g.arrival])
    if g.machine < s.machine_t.size:
        t = min(t, s.machine_t[g.machine])
    return t


@inner
def _beats(s, f, until):  # type: ignore[no-untyped-def]
    """Process the heartbeats that may change something, up to the next event."""
    g, p, nodes = s.g[0], f.p[0], s.nodes.size
    timer = 3 * s.jobs.size + T_BEAT
    # coming heartbeats that would have had no effect may have one by now
    p.still = 0
    p.beat, p.quiet, p.asleep = max(p.gone, beat_from(g.now - p.phase, nodes, p.interval)), 0, 0
    while True:
        cancel(s, timer)
        if p.asks == 0 and p.reserved == 0:
            p.asleep, p.slept = 1, p.gone
            return
        while p.quiet < nodes and p.plain == 0:
            node = p.beat % nodes
            if f.nodes[node].app >= 0 or (f.nodes[node].seen != p.version + p.missed and s.nodes[node].up == 1):
                break
            p.beat += 1
            p.quiet += 1
        rounds = 0
        coming = _next_event(s)
        if coming == np.inf and p.still > 4 * nodes * (nodes + 2):
            # opportunities pass and nothing else happens: this would continue forever
            p.asleep, p.slept = 1, p.gone
            return
        if p.quiet >= nodes and p.plain == 0:
            rounds = _rounds_of_sleep(f)
            if rounds != 1:
                p.asleep, p.slept = 1, p.gone
                if rounds > 1:
                    named_timer(
                        s, T_BEAT, max(beat_time(p.beat + (rounds - 1) * nodes, nodes, p.interval) + p.phase, g.now)
                    )
                return
            p.quiet = 0
            continue
        t = beat_time(p.beat, nodes, p.interval) + p.phase
        if coming <= max(t, g.now) + NEAR:
            # a job ends at this beat: the beat counts as after it, regardless of rounding of seconds
            named_timer(s, T_BEAT, max(coming, t))
            return
        if t > g.now + NEAR / 10:
            if t > until or not room(s):
                named_timer(s, T_BEAT, t)
                return
            g.now = t
            g.instants += 1
        version, before = p.version, p.version + p.missed
        heartbeat(s, f, p.beat % nodes)
        if p.version + p.missed == before:
            f.nodes[p.beat % nodes].seen = before
            p.quiet += 1
        else:
            p.quiet = 0
        p.still = p.still + 1 if p.version == version else 0
        p.beat += 1
        p.gone = p.beat
        g.events = 0
        _next_round(s, f)


@inner
def decide(s, f, until):  # type: ignore[no-untyped-def]
    """Process this instant, and heartbeats up to the next one."""
    if f.p[0].asleep == 1:
        _sleep_on(s, f)
    _listen(s, f)
    _next_round(s, f)
    _beats(s, f, until)


@compiled
def run(s, f, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants, or to the end. Returns as `step` does."""
    if f.p[0].version == 0:
        _begin(s, f)
    return loop(s, (f, until), until, steps, decide=decide)
