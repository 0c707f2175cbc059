"""The compiled instant of Gandiva: places jobs and relieves crowded nodes; at checks, pairs, gathers and grows jobs.

An instant costs O(nodes) per shape of waiting gangs and per job that starts, ends or moves. A check is free if nothing
changed since the last one, no node is crowded and no pair is on trial.
"""

from __future__ import annotations

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.job_life_kernel import launch, note
from gpuctl.replay.engine.key_kernel import micro
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import choose, largest, suits
from gpuctl.replay.engine.state import D_SHARE, WAITING
from gpuctl.replay.policies.elastic.crowding_kernel import (
    ANY_CLASS,
    FIRST_FREE,
    R_GATHERS,
    R_GIVES_BACK,
    R_GROWS,
    R_OFF,
    R_PACKED,
    R_ROOM,
    R_TURNS,
    add_piece,
    ban,
    dissolve_pair,
    find_node,
    is_banned,
    is_loose,
    join,
    keep,
    leave,
    moves_to,
    pair_speed,
    resize_to,
    room,
    settle_on,
    work_out_shares,
)

# ---- the queue: waiting gangs per shape, in the order of the input


@inner
def waits(s, job, m):  # type: ignore[no-untyped-def]
    """Handle a queued job."""
    leave(s, m, job)
    if s.jobs[job].state != WAITING:
        return
    shape = m.shape[job]
    after, at = -1, m.last[shape]
    while at >= 0 and m.members[at].place > m.members[job].place:
        after, at = at, m.members[at].before
    m.members[job].before, m.members[job].after = at, after
    if at < 0:
        m.first[shape] = job
    else:
        m.members[at].after = job
    if after < 0:
        m.last[shape] = job
    else:
        m.members[after].before = job


@inner
def ends(s, job, m):  # type: ignore[no-untyped-def]
    """Handle an ended job."""
    leave(s, m, job)


@inner
def begins(s, number, m):  # type: ignore[no-untyped-def]
    """Handle the timer of checks."""
    m.p[0].check = 1


@inner
def _pop(m, shape):  # type: ignore[no-untyped-def]
    after = m.members[m.first[shape]].after
    m.first[shape] = after
    if after < 0:
        m.last[shape] = -1
    else:
        m.members[after].before = -1


@inner
def _arrives(s, m, j):  # type: ignore[no-untyped-def]
    """Start a job, all pieces of its gang or none. Returns whether it started."""
    g = s.g[0]
    job = s.jobs[j]
    biggest = largest(s, job.mask)
    left = job.gpus
    crowded = False
    g.chosen = 0
    while left > 0 and biggest > 0:
        gpus = min(left, biggest)
        k = find_node(s, m, job.mask, gpus, ANY_CLASS)
        if k < 0:
            break
        settle_on(m, k, gpus)
        crowded = crowded or room(s, m, k) < gpus
        choose(s, k, gpus)
        left -= gpus
    if left > 0:
        for at in range(g.chosen):
            if m.hosts[s.choice[at].node].jobs == 0:
                m.hosts[s.choice[at].node].affinity = 0
        g.chosen = 0
        return False
    launch(s, j, R_TURNS if crowded else R_ROOM)
    for at in range(g.chosen):
        add_piece(m, j, s.choice[at].node, s.choice[at].gpus)
    g.chosen = 0
    m.p[0].steps += 1
    m.members[j].on, m.members[j].came = 1, m.p[0].steps
    return True


@inner
def _queue(s, m):  # type: ignore[no-untyped-def]
    """Start jobs that find nodes, in the order of the input; after a failure, gangs of its shape are skipped."""
    m.p[0].instant += 1
    while s.g[0].waiting > 0:
        best = -1
        for shape in range(m.first.size):
            j = m.first[shape]
            if j >= 0 and m.bad[shape] != m.p[0].instant:  # noqa: SIM102 - compiled
                if best < 0 or m.members[j].place < m.members[best].place:
                    best = j
        if best < 0:
            return
        shape = m.shape[best]
        if _arrives(s, m, best):
            _pop(m, shape)
        else:
            m.bad[shape] = m.p[0].instant


# ---- at every instant


@inner
def _part_idle_pairs(s, m):  # type: ignore[no-untyped-def]
    """Dissolve pairs on nodes that would not be crowded without them."""
    for k in range(m.hosts.size):
        host = m.hosts[k]
        if host.pairs > 0 and host.raw <= s.nodes[k].cap:
            for at in range(host.jobs):
                if m.members[m.here[k, at]].partner >= 0:
                    dissolve_pair(s, m, m.here[k, at])


@inner
def _by_room(s, m, size, sign):  # type: ignore[no-untyped-def]
    """Sort the nodes in `line` by load, or with sign -1 by room, descending; ties by number."""
    for at in range(1, size):
        k = m.line[at]
        worth = m.hosts[k].load if sign > 0 else room(s, m, k)
        back = at
        while back > 0:
            other = m.line[back - 1]
            if (m.hosts[other].load if sign > 0 else room(s, m, other)) >= worth:
                break
            m.line[back] = other
            back -= 1
        m.line[back] = k


@inner
def _leaves_crowd(s, m):  # type: ignore[no-untyped-def]
    """Move one job off a crowded node to one with room. Returns whether there was one."""
    most, size = 0, 0
    for k in range(m.hosts.size):
        there = room(s, m, k)
        if there < 0:
            m.line[size] = k
            size += 1
        elif s.nodes[k].up == 1:
            most = max(most, there)
    if size == 0 or most == 0:
        return False
    _by_room(s, m, size, 1)
    for at in range(size):
        k = m.line[at]
        latest = m.p[0].steps + 1
        while True:
            best = -1
            for i in range(m.hosts[k].jobs):
                j = m.here[k, i]
                came = m.members[j].came
                if s.jobs[j].gpus <= most and came < latest and is_loose(s, m, j):  # noqa: SIM102 - compiled
                    if best < 0 or came > m.members[best].came:
                        best = j
            if best < 0:
                break
            to = find_node(s, m, s.jobs[best].mask, s.jobs[best].gpus, FIRST_FREE)
            if to >= 0:
                moves_to(s, m, best, to, R_OFF)
                return True
            latest = m.members[best].came
    return False


@inner
def _give_back(s, m):  # type: ignore[no-untyped-def]
    """Reclaim grown GPUs that block waiting jobs, from the last job in the input first."""
    for k in range(m.hosts.size):
        over = m.hosts[k].load + m.hosts[k].extra - s.nodes[k].cap
        while over > 0 and m.hosts[k].extra > 0:
            last = -1
            for at in range(m.hosts[k].jobs):
                j = m.here[k, at]
                if m.members[j].extra > 0 and (last < 0 or m.members[j].place > m.members[last].place):
                    last = j
            less = min(over, m.members[last].extra)
            resize_to(s, m, last, m.members[last].extra - less, R_GIVES_BACK)
            over -= less


# ---- at checks


@inner
def _judge_trials(s, m, k):  # type: ignore[no-untyped-def]
    """Undo pairs that are no faster than running one after the other."""
    for at in range(m.hosts[k].jobs):
        j = m.here[k, at]
        other = m.members[j].partner
        if other >= 0 and m.members[j].tried < s.g[0].now:
            if micro(2.0 * pair_speed(m, j, other)) <= 1_000_000:
                dissolve_pair(s, m, j)
                ban(s, m, j, other)
            else:
                keep(m, j)


@inner
def _before(m, a, b):  # type: ignore[no-untyped-def]
    one, two = micro(m.members[a].util), micro(m.members[b].util)
    return one < two or (one == two and m.members[a].place < m.members[b].place)


@inner
def _pack(s, m, k):  # type: ignore[no-untyped-def]
    """Pack jobs of a crowded node, who uses its GPUs least first, each with the next that fits."""
    size = 0
    for at in range(m.hosts[k].jobs):
        j = m.here[k, at]
        if is_loose(s, m, j):
            back = size
            while back > 0 and _before(m, j, m.line[back - 1]):
                m.line[back] = m.line[back - 1]
                back -= 1
            m.line[back] = j
            size += 1
    for at in range(size):
        a = m.line[at]
        if room(s, m, k) >= 0:
            return
        if m.members[a].partner >= 0:
            continue
        for i in range(at + 1, size):
            b = m.line[i]
            fits = s.jobs[a].gpus == s.jobs[b].gpus and micro(m.members[a].mem + m.members[b].mem) <= 1_000_000
            if fits and m.members[b].partner < 0 and not is_banned(s, m, a, b):
                join(s, m, a, b)
                note(s, D_SHARE, a, s.jobs[a].gpus, s.jobs[a].row, R_PACKED)
                break


@inner
def _target(s, m, j, k):  # type: ignore[no-untyped-def]
    """Target of a job on a nearly empty node: a fuller one with room, preferably of its affinity; -1 none."""
    best, best_key = -1, 0
    gpus = s.jobs[j].gpus
    for to in range(m.hosts.size):
        there = room(s, m, to)
        if m.hosts[to].jobs > 0 and gpus <= there < room(s, m, k) and suits(s, to, s.jobs[j].mask):
            key = there if m.hosts[to].affinity == gpus else there + (1 << 40)
            if best < 0 or key < best_key:
                best, best_key = to, key
    return best


@inner
def _leaves_fragment(s, m):  # type: ignore[no-untyped-def]
    """Move one job off a nearly empty node. Returns whether there was one."""
    size = 0
    for k in range(m.hosts.size):
        if m.hosts[k].jobs > 0 and room(s, m, k) >= m.p[0].fragment * s.nodes[k].cap:
            m.line[size] = k
            size += 1
    _by_room(s, m, size, -1)
    for at in range(size):
        k = m.line[at]
        last = -1
        while True:
            best = -1
            for i in range(m.hosts[k].jobs):
                j = m.here[k, i]
                place = m.members[j].place
                if place > last and m.members[j].moved != m.p[0].checks and is_loose(s, m, j):  # noqa: SIM102 - compiled
                    if best < 0 or place < m.members[best].place:
                        best = j
            if best < 0:
                break
            to = _target(s, m, best, k)
            if to >= 0:
                m.members[best].moved = m.p[0].checks
                moves_to(s, m, best, to, R_GATHERS)
                return True
            last = m.members[best].place
    return False


@inner
def _grow(s, m):  # type: ignore[no-untyped-def]
    """Give the idle GPUs of each node to the first of its jobs that accepts them."""
    for k in range(m.hosts.size):
        idle = room(s, m, k) - m.hosts[k].extra
        if idle <= 0:
            continue
        first = -1
        for at in range(m.hosts[k].jobs):
            j = m.here[k, at]
            if m.members[j].grows == 1 and is_loose(s, m, j):  # noqa: SIM102 - compiled
                if first < 0 or m.members[j].place < m.members[first].place:
                    first = j
        if first >= 0:
            more = min(idle, m.members[first].most - s.jobs[first].held)
            if more > 0:
                resize_to(s, m, first, m.members[first].extra + more, R_GROWS)


@inner
def _check(s, m):  # type: ignore[no-untyped-def]
    p = m.p[0]
    p.check = 0
    p.checks += 1
    crowded = False
    for k in range(m.hosts.size):
        crowded = crowded or room(s, m, k) < 0
    if p.changed == 0 and p.trials == 0 and not crowded:
        return
    p.changed = 0
    if p.pack == 1:
        for k in range(m.hosts.size):
            if m.hosts[k].pairs > 0:
                _judge_trials(s, m, k)
            if room(s, m, k) < 0:
                _pack(s, m, k)
    while p.move == 1 and _leaves_fragment(s, m):
        pass
    if p.grow == 1 and s.g[0].waiting == 0:
        _grow(s, m)


@inner
def decide(s, m):  # type: ignore[no-untyped-def]
    """Decide at an instant, in this order."""
    _queue(s, m)
    _part_idle_pairs(s, m)
    while m.p[0].move == 1 and _leaves_crowd(s, m):
        pass
    if m.p[0].check == 1:
        _check(s, m)
    _give_back(s, m)
    work_out_shares(s, m)


@compiled
def run(s, m, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants."""
    return loop(
        s, (m,), until, steps, decide=decide, on_finish=ends, on_requeue=waits, on_submit=waits, on_round=begins
    )
