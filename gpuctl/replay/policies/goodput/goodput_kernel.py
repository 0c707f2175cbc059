"""The compiled round of Sia and Pollux: what each job would gain on which GPUs, the best choice for all, its places."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, array_of, floats, ints, rows
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.checkpoint_kernel import reload_cost
from gpuctl.replay.engine.crowd_kernel import set_turn
from gpuctl.replay.engine.job_life_kernel import begin, note, rate_of, settle, take
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import choose as choose_node
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.reshuffle_kernel import drop, is_there, lift, lower, relocate
from gpuctl.replay.engine.state import D_START, FINISHED, REJECTED, RUNNING
from gpuctl.replay.policies.goodput.choice_kernel import exactly, join, narrow
from gpuctl.replay.policies.goodput.options_kernel import key_of, options
from gpuctl.replay.policies.goodput.search_kernel import search

R_BEST, R_NONE = len(REASONS), len(REASONS) + 1
GOODPUT_REASONS = ("the best choice for all jobs gives it these GPUs", "the best choice for all jobs gives it none")

GOODPUT = np.dtype(
    [
        ("pollux", "i8"),
        ("explore", "i8"),  # a job may have at most twice the GPUs that it has had
        ("line", "i8"),  # jobs in `line`
        ("keys", "i8"),  # keys in `keys`
        ("made", "i8"),  # keys in `made`
        ("due", "i8"),  # this instant is a round
        ("power", "f8"),
        ("no_alloc", "f8"),
        ("tables", "i8"),  # the last GPUs in `fair`
    ],
    align=True,
)

ABOUT = np.dtype(
    [
        ("place", "i8"),  # of the job in its input
        ("app", "i8"),
        ("unit", "f8"),  # seconds of its work that a second at goodput 1 does
        ("whole", "f8"),  # seconds of its work
        ("restart", "f8"),  # seconds that a start or change holds GPUs without progress …
        ("penalty", "f8"),  # … and as the factor of a change counts them
        ("cap", "i8"),  # GPUs that it may have at most
        ("most", "i8"),  # GPUs with which it has made progress
        ("restarts", "i8"),  # starts and changes after the first start; -1 before that
        ("until", "f8"),  # when its last start or change is over
        ("tenth", "i8"),  # of its work that it is in
        ("waits", "i8"),  # it waits, and what is known of it is up to date
        ("kind", "i8"),  # jobs of one kind are of one application and may use the same nodes
        ("key", "i8"),  # waiting jobs of one key have the same options at the same costs, under Sia
        ("mask", "u8"),  # classes of nodes that suit it
        ("group", "i8"),  # of the GPUs that it holds
        ("to_group", "i8"),  # of those that it is to hold; -1 none …
        ("to_gpus", "i8"),  # … and how many
        ("first", "i8"),  # of its places in `at_node` …
        ("nodes", "i8"),  # … and how many
    ],
    align=True,
)


class Goodput(Bundle):
    """What the policy goes by, and what it remembers. Nodes of one type, size and use are a group."""

    p = rows(GOODPUT)  # one record of `GOODPUT`
    about = rows(ABOUT)  # each job [jobs]
    rest = floats()  # seconds of later segments, by segment
    goodput = floats(4)  # [apps, groups, counts, tenths]
    fair = floats(3)  # goodput of the reference on so many GPUs, pollux [apps, GPUs + 1, tenths]
    count = ints(2)  # numbers of GPUs that a job may have, ascending, then 0 [groups, counts]
    size = ints()  # GPUs of a node of each group [groups]
    first_node = ints()  # [groups + 1]: nodes of a group: `node[first_node[t]:first_node[t + 1]]`
    node = ints()  # node numbers
    free = ints()  # free GPUs of each node, for a trial [nodes]
    at_node = ints()  # nodes chosen …
    at_gpus = ints()  # … and GPUs there [2 x GPUs of the cluster]
    line = ints()  # jobs that rounds look at one by one, in the order of the input [jobs]
    moving = ints()  # jobs to be placed, in order [jobs]
    owner = ints()  # the job whose list of options this is, or the first one of several [lists]
    core = ints()  # jobs that the choice looks at one by one, in the order of the input [jobs]
    # Sia's waiting jobs by `key`, each in the order of the input
    keys = ints()  # keys that some have
    head = ints()  # the first job of each key, and the last; -1: none
    tail = ints()
    size_of = ints()
    before = ints()  # the jobs beside each one, -1: none [jobs]
    after = ints()
    # options of Sia's jobs by `key`, made when they are first needed
    place = ints()  # of each key in `listed`; -1: not made
    made = ints()  # keys whose options are made [POOL]
    listed = ints()  # how many options each of these has [POOL]
    in_group = array_of("i4")  # group of each option, the same number of places for each key … [options]
    of_gpus = array_of("i4")  # … GPUs …
    gain = floats()  # … goodput for the least one …
    power = floats()  # … that to the power p …
    plain = ints()  # … and cost, if it is no change


@inner
def comes(s, job, m, c, g):  # type: ignore[no-untyped-def]
    """A job is in the queue for the first time: it takes its place in line."""
    _line_up(m, job)


@inner
def _line_up(m, job):  # type: ignore[no-untyped-def]
    p = m.p[0]
    k = p.line
    p.line += 1
    while k > 0 and m.about[m.line[k - 1]].place > m.about[job].place:
        m.line[k] = m.line[k - 1]
        k -= 1
    m.line[k] = job


@inner
def _wait(m, j):  # type: ignore[no-untyped-def]
    """Let a job wait with those that have the same options."""
    p, key = m.p[0], m.about[j].key
    if m.size_of[key] == 0:
        m.keys[p.keys] = key
        p.keys += 1
        m.head[key], m.tail[key] = -1, -1
    # from both ends at once: who was preempted is among the first, who has just come is the last
    left, right = m.tail[key], m.head[key]
    while left >= 0 and m.about[left].place > m.about[j].place and m.about[right].place < m.about[j].place:
        left, right = m.before[left], m.after[right]
    if left >= 0 and m.about[left].place > m.about[j].place:
        left = m.before[right]
    else:
        right = m.after[left] if left >= 0 else m.head[key]
    m.before[j], m.after[j] = left, right
    if left >= 0:
        m.after[left] = j
    else:
        m.head[key] = j
    if right >= 0:
        m.before[right] = j
    else:
        m.tail[key] = j
    m.size_of[key] += 1


@inner
def _wait_no_more(m, j):  # type: ignore[no-untyped-def]
    key, left, right = m.about[j].key, m.before[j], m.after[j]
    if left >= 0:
        m.after[left] = right
    else:
        m.head[key] = right
    if right >= 0:
        m.before[right] = left
    else:
        m.tail[key] = left
    m.size_of[key] -= 1
    _line_up(m, j)


@inner
def begins(s, number, m, c, g):  # type: ignore[no-untyped-def]
    """It is time for a round."""
    m.p[0].due = 1


@inner
def _look(s, m, j):  # type: ignore[no-untyped-def]
    """Bring what is known of a job up to now; of one that waits nothing changes."""
    job, about = s.jobs[j], m.about[j]
    if job.state == RUNNING:
        settle(s, j)
        if s.g[0].now > about.until:
            about.most = max(about.most, job.held)
    else:
        about.group = -1
        about.waits = 1
    done = about.whole - m.rest[job.segment] - (job.work - job.done)
    about.tenth = min(max(int(np.floor(10.0 * done / about.whole + 1e-9)), 0), 9)
    about.key = key_of(m, j)


@inner
def _look_at_all(s, m):  # type: ignore[no-untyped-def]
    """Bring what is known of the jobs in line up to now; who has ended leaves, and Sia's that wait go to their key."""
    p = m.p[0]
    kept = 0
    for k in range(p.keys):
        if m.size_of[m.keys[k]] > 0:
            m.keys[kept] = m.keys[k]
            kept += 1
    p.keys = kept
    kept = 0
    for k in range(p.line):
        j = m.line[k]
        about = m.about[j]
        if about.waits == 0:
            if s.jobs[j].state == FINISHED or s.jobs[j].state == REJECTED:
                continue
            _look(s, m, j)
            if p.pollux == 0 and about.waits == 1:
                about.to_group, about.to_gpus = -1, 0
                _wait(m, j)
                continue
        m.line[kept] = j
        kept += 1
    p.line = kept


@inner
def _list_options(s, m, c):  # type: ignore[no-untyped-def]
    """Make a list of options for each job in line, then for each key; returns how many of either."""
    p = m.p[0]
    fair = max(1, min((s.g[0].total + max(p.line, 1) - 1) // max(p.line, 1), p.tables))
    lists, at = 0, 0
    for k in range(p.line):
        j = m.line[k]
        about = m.about[j]
        if p.pollux == 0 and about.until > s.g[0].now + 1e-6:
            # in its restart it keeps what it has
            c.room[about.group] -= s.jobs[j].held
            about.to_group, about.to_gpus = about.group, s.jobs[j].held
            continue
        m.owner[lists], c.jobs_of[lists], c.first[lists] = j, 1, at
        at = options(s, m, c, j, fair, at)
        lists += 1
    alone = lists
    for k in range(p.keys):
        key = m.keys[k]
        m.owner[lists], c.jobs_of[lists], c.first[lists] = m.head[key], m.size_of[key], at
        at = options(s, m, c, m.head[key], fair, at)
        lists += 1
    c.first[lists] = at
    return alone, lists


@inner
def _give(m, c, j, o, waits):  # type: ignore[no-untyped-def]
    """Let a job have an option."""
    about = m.about[j]
    about.to_group, about.to_gpus = c.group[o], c.gpus[o]
    if waits and about.to_group >= 0:
        _wait_no_more(m, j)


@inner
def _give_all(m, c, e, wait):  # type: ignore[no-untyped-def]
    """Let all jobs of a list have the option that is best for them."""
    j = m.owner[e]
    for _ in range(c.jobs_of[e]):
        later = m.after[j] if wait else -1
        _give(m, c, j, c.best[e], wait)
        j = later


@inner
def _to_core(m, c, e, lists, core):  # type: ignore[no-untyped-def]
    """Put the jobs of a list and its twins that are still to be decided into the core; returns how many are there."""
    for i in range(c.most[e]):
        first = -1
        for f in range(e, lists):
            if c.twin[f] != e or m.owner[f] < 0:
                continue
            if first < 0 or m.about[m.owner[f]].place < m.about[m.owner[first]].place:
                first = f
        j = m.owner[first]
        m.owner[first] = m.after[j] if c.jobs_of[first] > 1 else -1
        if i < c.sure[e]:
            _give(m, c, j, c.take[first], True)
            continue
        at = core
        core += 1
        while at > 0 and m.about[m.core[at - 1]].place > m.about[j].place:
            m.core[at], c.core[at] = m.core[at - 1], c.core[at - 1]
            at -= 1
        m.core[at], c.core[at] = j, first
    return core


@inner
def _search(s, m, c, g, lists):  # type: ignore[no-untyped-def]
    """Choose by the genetic search."""
    for e in range(lists):
        g.now[e] = 0 if m.about[m.owner[e]].group >= 0 else -1
    search(g, c, lists, m.owner)
    for e in range(lists):
        _give(m, c, m.owner[e], c.best[e], False)


@inner
def _choose(s, m, c, g):  # type: ignore[no-untyped-def]
    """Choose GPUs for all jobs; who is in its restart under Sia keeps what it has."""
    for t in range(m.size.size):
        c.room[t] = 0
        for k in range(m.first_node[t], m.first_node[t + 1]):
            c.room[t] += m.size[t] * s.nodes[m.node[k]].up
    _look_at_all(s, m)
    alone, lists = _list_options(s, m, c)
    if g.p[0].on == 1:
        if lists > 0:
            _search(s, m, c, g, lists)
        return
    narrow(c, lists)
    join(c, alone, lists)
    core = 0
    for e in range(lists):
        if c.best[e] >= 0:
            if e < alone or c.group[c.best[e]] >= 0:
                _give_all(m, c, e, e >= alone)
        elif c.twin[e] == e:
            core = _to_core(m, c, e, lists, core)
    exactly(c, core)
    for i in range(core):
        _give(m, c, m.core[i], c.pick[i], c.core[i] >= alone)


@inner
def _stays(s, m, j):  # type: ignore[no-untyped-def]
    about = m.about[j]
    return about.group >= 0 and about.to_group == about.group and about.to_gpus == s.jobs[j].held


@inner
def _list(s, m, group, everybody):  # type: ignore[no-untyped-def]
    """Put the jobs that need places in a group into `moving`, who has most GPUs ahead; returns how many."""
    size = 0
    for k in range(m.p[0].line):
        j = m.line[k]
        if m.about[j].to_group == group and (everybody or not _stays(s, m, j)):
            at = size
            size += 1
            while at > 0 and m.about[m.moving[at - 1]].to_gpus < m.about[j].to_gpus:
                m.moving[at] = m.moving[at - 1]
                at -= 1
            m.moving[at] = j
    return size


@inner
def _find(s, m, group, jobs, at):  # type: ignore[no-untyped-def]
    """Find places for the jobs in `moving`; whole empty nodes, or the fullest that holds the job. -1: one has none."""
    size = m.size[group]
    for k in range(m.first_node[group], m.first_node[group + 1]):
        there = s.nodes[m.node[k]]
        m.free[m.node[k]] = there.free if there.up == 1 else 0
    for i in range(jobs):
        about = m.about[m.moving[i]]
        left = about.to_gpus
        about.first = at
        best = -1
        for k in range(m.first_node[group], m.first_node[group + 1]):
            node = m.node[k]
            if left >= size and m.free[node] == size:
                m.free[node] = 0
                m.at_node[at], m.at_gpus[at] = node, size
                at += 1
                left -= size
                if left == 0:
                    break
            elif 0 < left < size and m.free[node] >= left and (best < 0 or m.free[node] < m.free[best]):
                best = node
        if best >= 0:
            m.free[best] -= left
            m.at_node[at], m.at_gpus[at] = best, left
            at += 1
            left = 0
        about.nodes = at - about.first
        if left > 0:
            return -1
    return at


@inner
def _start(s, j, cost, reason):  # type: ignore[no-untyped-def]
    """Start a waiting job on the GPUs in `choice`; the first time, too, it holds them for a while without progress."""
    s.g[0].waiting -= 1
    gpus = take(s, j, 0)
    note(s, D_START, j, gpus, s.jobs[j].row, reason)
    begin(s, j, cost + reload_cost(s, j))


@inner
def _put(s, m, j):  # type: ignore[no-untyped-def]
    """Let a job have the places that were found for it."""
    about, job = m.about[j], s.jobs[j]
    s.g[0].chosen = 0
    for k in range(about.first, about.first + about.nodes):
        choose_node(s, m.at_node[k], m.at_gpus[k])
    if job.state == RUNNING and is_there(s, j):
        lower(s, j)
        return
    if job.state == RUNNING:
        relocate(s, j, R_BEST)
    else:
        _start(s, j, about.restart, R_BEST)
    about.group = about.to_group
    about.waits = 0
    about.restarts += 1
    about.until = s.g[0].now + about.restart


@inner
def _place(s, m):  # type: ignore[no-untyped-def]
    """Who keeps number and type keeps its nodes, unless others find no places then."""
    for k in range(m.p[0].line):
        j = m.line[k]
        if m.about[j].group >= 0 and not _stays(s, m, j):
            lift(s, j)
            if m.about[j].to_gpus == 0:
                drop(s, j, R_NONE)
                m.about[j].group = -1
    for t in range(m.size.size):
        jobs = _list(s, m, t, False)
        if jobs > 0 and _find(s, m, t, jobs, 0) < 0:
            for k in range(m.p[0].line):
                j = m.line[k]
                if m.about[j].to_group == t and _stays(s, m, j):
                    lift(s, j)
            jobs = _list(s, m, t, True)
            _find(s, m, t, jobs, 0)
        for i in range(jobs):
            _put(s, m, m.moving[i])


@inner
def _set_speeds(s, m):  # type: ignore[no-untyped-def]
    for k in range(m.p[0].line):
        j = m.line[k]
        job, about = s.jobs[j], m.about[j]
        if about.group < 0:
            continue
        at = 0
        while m.count[about.group, at] != job.held:
            at += 1
        rate = m.goodput[about.app, about.group, at, about.tenth] * about.unit
        set_turn(s, j, rate / (rate_of(s, j) / job.pace), job.counted)


@inner
def decide(s, m, c, g):  # type: ignore[no-untyped-def]
    """At a round all GPUs are given out again."""
    if m.p[0].due == 1:
        m.p[0].due = 0
        _choose(s, m, c, g)
        _place(s, m)
        _set_speeds(s, m)


@compiled
def run(s, m, c, g, until, steps):  # type: ignore[no-untyped-def]
    """Go on for so many instants."""
    return loop(s, (m, c, g), until, steps, decide=decide, on_submit=comes, on_round=begins)
