"""The compiled forward simulation of a queue: Slurm's main pass and backfill on nodes, with drawn run times.

The rules are those of the policy ``slurm`` of a replay without limits and preemption, reduced to the rules that decide
when a job starts: priority (age, fair-share of users with equal shares, size), jobs in order up to the first that does
not fit, then backfill around the nodes reserved for those that do not. Passes take place at each end and submission.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints
from gpuctl.compiled.jit import inner
from gpuctl.predictors.limit_share import LEVELS

NODES, PIECES, WAITING, USERS = range(4)
COUNTERS = 4
NOW, USED_AT, RANKED_AT, WIDTH = range(4)
"""WIDTH: GPUs of a node."""
CLOCKS = 4
AGE, FAIR, SIZE = range(3)
WEIGHTS = 3
ARRIVAL, TARGET, OTHER = -1, -2, -3
"""Who waits, where it is none of the jobs that have a number."""
PLAN = -1
"""Number of the simulation in which jobs use up their limits, and nobody else comes: a plan, as Slurm makes one."""
OWN, POOL, CLASSES, DELAYS = 32, 512, 8, 256
"""Latest run times of a user, and of jobs of about such a limit; latest short waits."""
TRIES = 24
SHARED = 2
"""One run time in so many is drawn by trees, where these say something of the job: they know more, but are too sure."""
STEPS = np.array([0.0, *LEVELS, 1.0])
BEYOND = 1.0
"""How far the ends of a distribution lie beyond the outermost levels of trees, in the logarithm."""
MOST_EFFORT = 12_000_000
"""Of the simulations of one job: jobs, nodes and users looked at, about 0.1 s. What takes longer is not simulated."""
MOST_TESTED = 500
"""Jobs that a pass looks at (``bf_max_job_test``)."""
WINDOW_S = 86_400.0
"""How far ahead nodes are reserved (``bf_window``)."""
MAX_AGE_S = 7 * 86_400.0
RANK_EVERY_S = 1800.0
FEW = 48
"""Waiting jobs up to which each is moved to its place one by one."""
DECAY = np.log(2.0) / (7 * 86_400.0)
REACHED = 3
"""Users who had as many jobs of a queue running at once as any, from which on that is taken for a limit."""
SLOTS = 16
"""Sizes on a node for which the order in which nodes become free is stored during a pass."""
HORIZON_S = 30 * 86_400.0
"""What has not started by then counts as starting then."""


class Queue(Bundle):
    """A cluster and its queue at one instant; copies share the arrays that describe jobs and the past."""

    per = ints()  # GPUs that each job has on a node [jobs + 1]; the last is the queried job
    count = ints()  # nodes
    limit = floats()  # s
    kind = ints()  # class of its limit
    user = ints()
    queue = ints()
    pair = ints()  # number of its user in its queue
    own = floats(2)  # shares of limits that jobs of each user ran for, a ring [users + 1, OWN]
    own_count = ints()  # number of these
    curve = floats(2)  # logarithms of shares of limits, by trees, at their levels; NaN: none [jobs + 1, LEVELS]
    pool = floats(2)  # the same of all jobs, by class of limit [CLASSES, POOL]
    pool_count = ints()
    delays = floats()  # short waits, a ring [DELAYS]
    delay_count = ints()  # number of these [1]
    weights = floats()  # of AGE, FAIR and SIZE
    free = ints()  # GPUs of each node
    piece_job = ints()  # running pieces, one per job and node, by the end of its limit
    piece_node = ints()
    piece_gpus = ints()
    piece_start = floats()
    piece_until = floats()
    piece_end = floats()
    line_job = ints()  # waiting jobs, by priority
    line_who = ints()  # its number from 0 on, or ARRIVAL, TARGET or OTHER
    line_ready = floats()
    line_key = floats()
    usage = floats()  # GPU-seconds of each user, decayed [users + 1]
    rate = floats()  # resources that each holds now
    rank = floats()  # fair-share factor
    runs = ints()  # running jobs of each user in each queue [pairs + 1]
    peak = ints()  # maximum of the above so far
    cap = ints()  # largest number that any user had in a queue [queues + 1]
    reached = ints()  # number of users that reached it
    taken = floats()  # scratch: time from which a node is reserved [nodes]
    gain = ints()  # scratch: GPUs that a node will have [nodes]
    able = ints()  # scratch: number of nodes with at least this many free GPUs [WIDTH + 1]
    unreserved = ints()  # scratch: the unreserved ones of those
    later = ints()  # scratch: jobs for which nodes are to be reserved, by priority
    turn = ints(2)  # scratch: nodes by the time at which they will have this many GPUs [SLOTS, nodes]
    turn_at = floats(2)  # scratch: that time
    turn_of = ints(2)  # scratch: number of GPUs, number of nodes, and index of the first unreserved one [SLOTS, 3]
    effort = ints()  # effort of the simulations of a job, and its maximum [2]
    c = ints()
    t = floats()


@inner
def copy_to(s, f):  # type: ignore[no-untyped-def]
    """Copy the state of `s` to `f`."""
    f.c[:] = s.c
    f.t[:] = s.t
    f.free[:] = s.free
    for k in range(s.c[PIECES]):
        f.piece_job[k], f.piece_node[k], f.piece_gpus[k] = s.piece_job[k], s.piece_node[k], s.piece_gpus[k]
        f.piece_start[k], f.piece_until[k], f.piece_end[k] = s.piece_start[k], s.piece_until[k], s.piece_end[k]
    for k in range(s.c[WAITING]):
        f.line_job[k], f.line_who[k] = s.line_job[k], s.line_who[k]
        f.line_ready[k], f.line_key[k] = s.line_ready[k], s.line_key[k]
    f.usage[:] = s.usage
    f.rate[:] = s.rate
    f.rank[:] = s.rank
    f.runs[:] = s.runs


@inner
def random(x):  # type: ignore[no-untyped-def]
    """Return the next random number from 1 to 2**31 - 2 (Park and Miller's generator)."""
    return (x * 48271) % 2147483647


@inner
def seeded(number, job):  # type: ignore[no-untyped-def]
    """Return the seed of a job in one of several simulations."""
    x = (number * 7919 + job * 104729 + 12345) % 2147483646 + 1
    return random(random(random(x)))


@inner
def _knot(s, job, k):  # type: ignore[no-untyped-def]
    """Return the logarithm of the share at one of `STEPS`."""
    last = s.curve.shape[1] - 1
    if k == 0:
        return s.curve[job, 0] - BEYOND
    return min(s.curve[job, last] + BEYOND, 0.0) if k > last + 1 else s.curve[job, k - 1]


@inner
def log_share_used(s, job, least, x):  # type: ignore[no-untyped-def]
    """Draw the logarithm of the share of its limit that a job uses, by trees, given that it exceeds `least`."""
    level = x / 2147483647.0
    top = STEPS.size - 1
    if least >= _knot(s, job, top):
        return least + BEYOND * level
    k = 0
    if least > _knot(s, job, 0):
        while _knot(s, job, k + 1) <= least:
            k += 1
        low, high = _knot(s, job, k), _knot(s, job, k + 1)
        passed = STEPS[k] + (STEPS[k + 1] - STEPS[k]) * (least - low) / (high - low)
        level = passed + (1.0 - passed) * level
    while STEPS[k + 1] < level:
        k += 1
    low, high = _knot(s, job, k), _knot(s, job, k + 1)
    return low + (high - low) * (level - STEPS[k]) / (STEPS[k + 1] - STEPS[k])


@inner
def run_of(s, job, elapsed, x):  # type: ignore[no-untyped-def]
    """Draw a job's run time, s, given its elapsed time: a share of its limit.

    Half are drawn from the forecast of trees, if there is one; the others from the past of its user or of all jobs.

    Args:
        s: the queue.
        job: its number.
        elapsed: s.
        x: its seed.
    """
    limit = s.limit[job]
    least = elapsed / limit
    own = min(s.own_count[s.user[job]], OWN)
    known = min(s.pool_count[s.kind[job]], POOL)
    if not np.isnan(s.curve[job, 0]):
        x = random(x)
        if x % SHARED == 0:
            share = np.exp(log_share_used(s, job, np.log(least) if least > 0 else -np.inf, random(x)))
            return max(min(share, 1.0) * limit, elapsed + 1.0)
    for attempt in range(TRIES):
        x = random(x)
        from_own = x % (own + 4) < own and attempt < TRIES // 2
        x = random(x)
        if from_own:
            share = s.own[s.user[job], x % own]
        elif known > 0:
            share = s.pool[s.kind[job], x % known]
        else:
            share = 1.0
        if share > least or (share == least and elapsed == 0.0):
            return max(min(share, 1.0) * limit, 1.0)
    return max(limit, elapsed + 60.0)


@inner
def advance(s, now):  # type: ignore[no-untyped-def]
    """Update the users' usage to now: it decays by half in a week."""
    passed = now - s.t[USED_AT]
    if passed > 0:
        left = np.exp(-DECAY * passed)
        usage, rate = s.usage, s.rate
        for u in range(usage.size):
            usage[u] = usage[u] * left + rate[u] * (1.0 - left) / DECAY
        s.t[USED_AT] = now


@inner
def _key(s, k, now):  # type: ignore[no-untyped-def]
    """Return the priority of the job at an index of the line."""
    job = s.line_job[k]
    key = s.weights[AGE] * min(max(now - s.line_ready[k], 0.0) / MAX_AGE_S, 1.0)
    if s.weights[FAIR] > 0:
        key += s.weights[FAIR] * s.rank[s.user[job]]
    return key + s.weights[SIZE] * s.per[job] * s.count[job] / max(s.c[NODES] * s.t[WIDTH], 1.0)


@inner
def _sift(s, k):  # type: ignore[no-untyped-def]
    """Move the job at an index of the line ahead of those with a lower priority, or a later turn at equal priority."""
    job, who, ready, key = s.line_job[k], s.line_who[k], s.line_ready[k], s.line_key[k]
    while k > 0 and (s.line_key[k - 1] < key or (s.line_key[k - 1] == key and s.line_ready[k - 1] > ready)):
        s.line_job[k], s.line_who[k] = s.line_job[k - 1], s.line_who[k - 1]
        s.line_ready[k], s.line_key[k] = s.line_ready[k - 1], s.line_key[k - 1]
        k -= 1
    s.line_job[k], s.line_who[k], s.line_ready[k], s.line_key[k] = job, who, ready, key


@inner
def reorder(s, now):  # type: ignore[no-untyped-def]
    """Recompute all priorities."""
    s.t[RANKED_AT] = now
    if s.weights[FAIR] > 0:
        advance(s, now)
        users = s.c[USERS]
        order = np.argsort(s.usage[:users])
        for k in range(users):
            tied = k > 0 and s.usage[order[k]] == s.usage[order[k - 1]]
            s.rank[order[k]] = s.rank[order[k - 1]] if tied else (users - k) / users
        for u in range(users, s.rank.size):
            s.rank[u] = 1.0
    for k in range(s.c[WAITING]):
        s.line_key[k] = _key(s, k, now)
    length = s.c[WAITING]
    if length <= FEW:
        for k in range(1, length):
            _sift(s, k)
        return
    # moving each job to its place takes too long if the shares of many jobs' users have changed
    order = np.argsort(-s.line_key[:length], kind="mergesort")
    s.line_job[:length], s.line_who[:length] = s.line_job[:length][order], s.line_who[:length][order]
    s.line_ready[:length], s.line_key[:length] = s.line_ready[:length][order], s.line_key[:length][order]


@inner
def enter(s, job, who, ready, now):  # type: ignore[no-untyped-def]
    """Append a job to the line."""
    k = s.c[WAITING]
    s.line_job[k], s.line_who[k], s.line_ready[k] = job, who, ready
    s.line_key[k] = _key(s, k, now)
    s.c[WAITING] += 1
    _sift(s, k)


@inner
def _hold(s, job, node, gpus, now, end):  # type: ignore[no-untyped-def]
    """Allocate GPUs of a node to a job."""
    until = now + s.limit[job]
    k = s.c[PIECES]
    while k > 0 and s.piece_until[k - 1] > until:
        s.piece_job[k], s.piece_node[k], s.piece_gpus[k] = s.piece_job[k - 1], s.piece_node[k - 1], s.piece_gpus[k - 1]
        s.piece_start[k], s.piece_until[k] = s.piece_start[k - 1], s.piece_until[k - 1]
        s.piece_end[k] = s.piece_end[k - 1]
        k -= 1
    s.piece_job[k], s.piece_node[k], s.piece_gpus[k] = job, node, gpus
    s.piece_start[k], s.piece_until[k], s.piece_end[k] = now, until, end
    s.c[PIECES] += 1
    for g in range(s.free[node] - gpus + 1, s.free[node] + 1):
        s.able[g] -= 1
        if np.isinf(s.taken[node]):
            s.unreserved[g] -= 1
    s.free[node] -= gpus
    s.rate[s.user[job]] += gpus


@inner
def _capped(s, job):  # type: ignore[no-untyped-def]
    """Return whether a user runs as many jobs in a queue as any ever had, if that seems to be a limit."""
    queue = s.queue[job]
    return s.reached[queue] >= REACHED and s.runs[s.pair[job]] >= s.cap[queue]


@inner
def _fits(s, job, now):  # type: ignore[no-untyped-def]
    """Return whether a job can start now without a node that is reserved before its limit."""
    per, left, end = s.per[job], s.count[job], now + s.limit[job]
    if s.able[per] < left:
        return False
    if s.unreserved[per] >= left:
        return True
    free, taken = s.free, s.taken
    for n in range(s.c[NODES]):
        if free[n] >= per and taken[n] >= end:
            left -= 1
            if left == 0:
                return True
    return False


@inner
def start(s, job, now, end):  # type: ignore[no-untyped-def]
    """Start a job on the first nodes that hold it and are not reserved before its limit."""
    s.runs[s.pair[job]] += 1
    per, left, until = s.per[job], s.count[job], now + s.limit[job]
    free, taken = s.free, s.taken
    n = 0
    while left > 0:
        if free[n] >= per and taken[n] >= until:
            _hold(s, job, n, per, now, end)
            left -= 1
        n += 1


@inner
def force(s, job, now):  # type: ignore[no-untyped-def]
    """Start a job that the log records as started, on any nodes; add nodes if necessary."""
    queue, pair = s.queue[job], s.pair[job]
    s.runs[pair] += 1
    if s.runs[pair] > s.peak[pair]:
        s.peak[pair] = s.runs[pair]
        if s.runs[pair] > s.cap[queue]:
            s.cap[queue], s.reached[queue] = s.runs[pair], 0
        s.reached[queue] += s.runs[pair] == s.cap[queue]
    per, left = s.per[job], s.count[job]
    for n in range(s.c[NODES]):
        if left > 0 and s.free[n] >= per:
            _hold(s, job, n, per, now, np.inf)
            left -= 1
    rest = left * per
    n = 0
    while rest > 0:
        if n == s.c[NODES]:
            if n == s.free.size:
                break
            s.c[NODES] += 1
        if s.free[n] > 0:
            gpus = min(rest, s.free[n])
            rest -= gpus
            _hold(s, job, n, gpus, now, np.inf)
        n += 1


@inner
def release(s, job, now):  # type: ignore[no-untyped-def]
    """Free the resources of a job, or, if below 0, of all jobs whose ends have passed."""
    kept, last, began = 0, -1, 0.0
    piece_job, piece_end = s.piece_job, s.piece_end
    for k in range(s.c[PIECES]):
        if (piece_job[k] == job) if job >= 0 else piece_end[k] <= now:
            s.free[s.piece_node[k]] += s.piece_gpus[k]
            s.rate[s.user[s.piece_job[k]]] -= s.piece_gpus[k]
            if s.piece_job[k] != last or s.piece_start[k] != began:
                # pieces of a job are adjacent
                last, began = s.piece_job[k], s.piece_start[k]
                s.runs[s.pair[last]] -= 1
        else:
            if kept < k:
                s.piece_job[kept], s.piece_node[kept] = s.piece_job[k], s.piece_node[k]
                s.piece_gpus[kept], s.piece_start[kept] = s.piece_gpus[k], s.piece_start[k]
                s.piece_until[kept], s.piece_end[kept] = s.piece_until[k], s.piece_end[k]
            kept += 1
    s.c[PIECES] = kept


@inner
def _count_free(s):  # type: ignore[no-untyped-def]
    """Begin a pass: clear reservations; count the nodes by their free GPUs.

    Returns:
        the most GPUs that are free on one node.
    """
    s.taken[:] = np.inf
    s.turn_of[:, 0] = -1
    s.able[:] = 0
    most, free, able = 0, s.free, s.able
    for n in range(s.c[NODES]):
        able[free[n]] += 1
        most = max(most, free[n])
    for g in range(most - 1, -1, -1):
        able[g] += able[g + 1]
    s.unreserved[:] = able
    return most


@inner
def _order_nodes(s, per, slot, now):  # type: ignore[no-untyped-def]
    """Write the order in which, and the times at which, nodes will have this many GPUs, by time limits."""
    size, nodes, gain, free, turn, turn_at = 0, s.c[NODES], s.gain, s.free, s.turn[slot], s.turn_at[slot]
    for n in range(nodes):
        gain[n] = free[n]
        if gain[n] >= per:
            turn[size], turn_at[size] = n, now
            size += 1
    piece_node, piece_gpus, piece_until = s.piece_node, s.piece_gpus, s.piece_until
    for k in range(s.c[PIECES]):
        if size == nodes:
            break
        n = piece_node[k]
        before = gain[n]
        gain[n] += piece_gpus[k]
        if before < per and gain[n] >= per:
            turn[size], turn_at[size] = n, max(piece_until[k], now + 1.0)
            size += 1
    s.turn_of[slot, 0], s.turn_of[slot, 1], s.turn_of[slot, 2] = per, size, 0


@inner
def _reserve(s, job, now):  # type: ignore[no-untyped-def]
    """Reserve the earliest nodes that time limits free for a job; return whether there were any left to reserve."""
    per, need = s.per[job], s.count[job]
    if s.unreserved[0] < need:
        return s.unreserved[0] > 0
    slot = per % SLOTS
    if s.turn_of[slot, 0] != per:
        _order_nodes(s, per, slot, now)
    size, first = s.turn_of[slot, 1], s.turn_of[slot, 2]
    while first < size and not np.isinf(s.taken[s.turn[slot, first]]):
        first += 1
    s.turn_of[slot, 2] = first
    last, got = first, 0
    while last < size and s.turn_at[slot, last] <= now + WINDOW_S:
        got += np.isinf(s.taken[s.turn[slot, last]])
        if got == need:
            break
        last += 1
    if got < need:
        return True
    at = s.turn_at[slot, last]
    for k in range(first, last + 1):
        n = s.turn[slot, k]
        if np.isinf(s.taken[n]):
            s.taken[n] = at
            for g in range(s.free[n] + 1):
                s.unreserved[g] -= 1
    return True


@inner
def one_pass(s, now, number, begins):  # type: ignore[no-untyped-def]
    """Start the jobs that can start now; write the start times of numbered jobs.

    Returns:
        whether the queried job is among them, and the number of numbered ones.
    """
    most = _count_free(s)
    blocked, open_, found, started = False, True, False, 0
    pending = reserved = 0
    length, kept, tested = s.c[WAITING], 0, 0
    for k in range(length):
        if most == 0 or tested == MOST_TESTED:
            rest = length - k
            if kept < k:
                s.line_job[kept : kept + rest] = s.line_job[k:length].copy()
                s.line_who[kept : kept + rest] = s.line_who[k:length].copy()
                s.line_ready[kept : kept + rest] = s.line_ready[k:length].copy()
                s.line_key[kept : kept + rest] = s.line_key[k:length].copy()
            kept += rest
            break
        job, who = s.line_job[k], s.line_who[k]
        if number != PLAN and _capped(s, job):
            s.line_job[kept], s.line_who[kept] = job, who
            s.line_ready[kept], s.line_key[kept] = s.line_ready[k], s.line_key[k]
            kept += 1
            continue
        goes = False
        if s.per[job] <= most and s.able[s.per[job]] >= s.count[job]:
            # reservations only matter for jobs with enough free GPUs
            while open_ and reserved < pending:
                open_ = _reserve(s, s.later[reserved], now)
                reserved += 1
            goes = _fits(s, job, now)
        blocked = blocked or not goes
        tested += blocked
        if goes:
            ran = s.limit[job]
            if number != PLAN:
                ran = min(run_of(s, job, 0.0, seeded(number, job if who != ARRIVAL else job + 7)), ran)
            start(s, job, now, now + ran)
            s.turn_of[:, 0] = -1
            while most > 0 and s.able[most] == 0:
                most -= 1
            if who == TARGET:
                found = True
            elif who >= 0:
                begins[who] = now
                started += 1
            continue
        s.later[pending] = job
        pending += 1
        s.line_job[kept], s.line_who[kept] = job, who
        s.line_ready[kept], s.line_key[kept] = s.line_ready[k], s.line_key[k]
        kept += 1
    s.c[WAITING] = kept
    return found, started
