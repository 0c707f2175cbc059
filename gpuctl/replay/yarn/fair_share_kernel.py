"""The compiled order of the fair scheduler and its fair shares: who is next, who is starved, what is due to whom.

Exact on Hadoop 3.5.0, its numbers of single and double precision included: ties decide who goes first.
"""

from __future__ import annotations

import numpy as np

from gpuctl.replay.yarn.fair_state import DRF, FIFO, RUNNABLE, UNBOUNDED
from gpuctl.trace.jit import inner

# ---- order


@inner
def ratio(f, held, whole):  # type: ignore[no-untyped-def]
    """Return `held / whole` in the precision that the comparison has; of nothing: 0 for none, infinity for some."""
    if whole == 0:
        return 0.0 if held == 0 else np.inf
    if f.p[0].single == 1:
        return float(np.float32(held) / np.float32(whole))
    return held / whole


@inner
def _weighed(f, share, weight):  # type: ignore[no-untyped-def]
    if weight == 0.0:
        return 0.0 if share == 0.0 else np.inf
    if f.p[0].single == 1:
        return float(np.float32(share) / np.float32(weight))
    return share / weight


@inner
def _compared(a, b):  # type: ignore[no-untyped-def]
    if a < b:
        return -1
    return 1 if a > b else 0


@inner
def _lay_out(f, side, mem, cpu, gpu, weight):  # type: ignore[no-untyped-def]
    """Lay out the ratios of one side of a comparison, and which resource has the largest, then the next; returns it."""
    f.some[0], f.some[1], f.some[2] = mem, cpu, gpu
    dominant = 0
    for r in range(3):
        f.share[side, r] = ratio(f, f.some[r], f.cluster[r])
        f.fair[side, r] = _weighed(f, f.share[side, r], weight)
        if f.share[side, r] > f.share[side, dominant]:
            dominant = r
        at = r
        while at > 0 and f.share[side, f.sorted[side, at - 1]] < f.share[side, r]:
            f.sorted[side, at] = f.sorted[side, at - 1]
            at -= 1
        f.sorted[side, at] = r
    return dominant


@inner
def _by_ratios(f):  # type: ignore[no-untyped-def]
    for k in range(3):
        found = _compared(f.fair[0, f.sorted[0, k]], f.fair[1, f.sorted[1, k]])
        if found != 0:
            return found
    return 0


@inner
def _drf_queues(f, a, b):  # type: ignore[no-untyped-def]
    """Below the minimum of the dominant resource first; then by dominant share over weight."""
    u = f.q_used
    first = _lay_out(f, 0, u[a, 0], u[a, 1], u[a, 2], f.queues[a].weight)
    second = _lay_out(f, 1, u[b, 0], u[b, 1], u[b, 2], f.queues[b].weight)
    needy_a, needy_b = u[a, first] < f.q_min[a, first], u[b, second] < f.q_min[b, second]
    if needy_a != needy_b:
        return -1 if needy_a else 1
    if needy_a:
        for r in range(3):
            f.fair[0, r] = ratio(f, u[a, r], f.q_min[a, r])
            f.fair[1, r] = ratio(f, u[b, r], f.q_min[b, r])
    return _by_ratios(f)


@inner
def _fair_numbers(used_a, used_b, weight_a, weight_b):  # type: ignore[no-untyped-def]
    if weight_a > 0.0 and weight_b > 0.0:
        return _compared(used_a / weight_a, used_b / weight_b)
    if weight_a == weight_b:
        return _compared(used_a, used_b)
    return _compared(-weight_a, -weight_b)


@inner
def _fair_queues(f, a, b):  # type: ignore[no-untyped-def]
    """Those that ask for something first; then those below their minimum; then by use over weight."""
    r = f.p[0].by
    none_a, none_b = f.q_demand[a, r] == 0, f.q_demand[b, r] == 0
    if none_a != none_b:
        return 1 if none_a else -1
    used_a, used_b = f.q_used[a, r], f.q_used[b, r]
    least_a, least_b = min(f.q_min[a, r], f.q_demand[a, r]), min(f.q_min[b, r], f.q_demand[b, r])
    needy_a, needy_b = used_a < least_a, used_b < least_b
    if needy_a != needy_b:
        return -1 if needy_a else 1
    if needy_a:
        found = _compared(used_a / max(least_a, 1), used_b / max(least_b, 1))
        if found != 0:
            return found
    return _fair_numbers(used_a, used_b, f.queues[a].weight, f.queues[b].weight)


@inner
def queue_first(f, policy, a, b):  # type: ignore[no-untyped-def]
    """Whether queue `a` goes before its sibling `b`; they have no start times, so ties go by name."""
    found = _drf_queues(f, a, b) if policy == DRF else _fair_queues(f, a, b)
    return found < 0 or (found == 0 and f.queues[a].rank < f.queues[b].rank)


@inner
def app_first(f, policy, a, b):  # type: ignore[no-untyped-def]
    """Whether application `a` goes before `b` of the same queue; ties go by start time, then number."""
    found = 0
    if policy == DRF:
        u = f.a_used
        _lay_out(f, 0, u[a, 0], u[a, 1], u[a, 2], f.apps[a].weight)
        _lay_out(f, 1, u[b, 0], u[b, 1], u[b, 2], f.apps[b].weight)
        found = _by_ratios(f)
    elif policy != FIFO:
        r = f.p[0].by
        found = _fair_numbers(f.a_used[a, r], f.a_used[b, r], f.apps[a].weight, f.apps[b].weight)
    if found != 0:
        return found < 0
    if f.apps[a].start != f.apps[b].start:
        return f.apps[a].start < f.apps[b].start
    return a < b


# ---- below, above


@inner
def _sort_shares(f, side, array, row):  # type: ignore[no-untyped-def]
    for r in range(3):
        f.share[side, r] = array[row, r] / f.cluster[r] if f.cluster[r] > 0 else 0.0
        at = r
        while at > 0 and f.share[side, f.sorted[side, at - 1]] < f.share[side, r]:
            f.sorted[side, at] = f.sorted[side, at - 1]
            at -= 1
        f.sorted[side, at] = r


@inner
def below(f, policy, used, a, due, b):  # type: ignore[no-untyped-def]
    """Whether the amount in row `a` of `used` is less than that in row `b` of `due`, by the largest share of either."""
    if policy != DRF:
        return used[a, f.p[0].by] < due[b, f.p[0].by]
    most, other = 0.0, 0.0
    for r in range(3):
        if f.cluster[r] > 0:
            most = max(most, used[a, r] / f.cluster[r])
            other = max(other, due[b, r] / f.cluster[r])
    return most < other


@inner
def _more(f, policy, one, a, other, b):  # type: ignore[no-untyped-def]
    """Whether the amount in row `a` of `one` is more than that of `other`: by their shares, the largest first."""
    if policy != DRF:
        return one[a, f.p[0].by] > other[b, f.p[0].by]
    _sort_shares(f, 0, one, a)
    _sort_shares(f, 1, other, b)
    for k in range(3):
        x, y = f.share[0, f.sorted[0, k]], f.share[1, f.sorted[1, k]]
        if x != y:
            return x > y
    return False


# ---- shares


@inner
def _given(weight, rate, least, most):  # type: ignore[no-untyped-def]
    """Whole units that one gets at a rate."""
    share = min(max(weight * rate, float(least)), float(most))
    return UNBOUNDED if share >= float(UNBOUNDED) else np.int64(share)


@inner
def _sum_at(f, q, r, rate):  # type: ignore[no-untyped-def]
    total = np.int64(0)
    queue = f.queues[q]
    for k in range(queue.first, queue.first + queue.count):
        child = f.children[k]
        if f.q_fair[child, r] < 0:
            total += _given(f.queues[child].weight, rate, f.q_min[child, r], f.q_max[child, r])
            if total >= UNBOUNDED:
                return UNBOUNDED
    return total


@inner
def _share_out(f, q, r):  # type: ignore[no-untyped-def]
    """Give a resource of a queue's fair share to its children: weighted, within minimum and maximum, in whole units.

    The rate is searched for by halving, 25 times, as Hadoop has it (class ComputeFairShares): sums may be off by some.
    """
    queue = f.queues[q]
    fixed, most, free = np.int64(0), np.int64(0), 0
    for k in range(queue.first, queue.first + queue.count):
        child = f.children[k]
        if f.q_max[child, r] <= 0 or f.queues[child].runnable == 0:
            f.q_fair[child, r] = 0
        elif f.queues[child].weight <= 0:
            f.q_fair[child, r] = f.q_min[child, r]
            fixed += f.q_min[child, r]
        else:
            f.q_fair[child, r] = -1
            most = min(most + f.q_max[child, r], UNBOUNDED)
            free += 1
    if free == 0:
        return
    total = min(most, max(f.q_fair[q, r] - fixed, 0))
    high = 1.0
    while _sum_at(f, q, r, high) < total:
        high *= 2.0
    low = 0.0
    for _ in range(25):
        middle = (low + high) / 2.0
        planned = _sum_at(f, q, r, middle)
        if planned < total:
            low = middle
        else:
            high = middle
            if planned == total:
                break
    for k in range(queue.first, queue.first + queue.count):
        child = f.children[k]
        if f.q_fair[child, r] < 0:
            f.q_fair[child, r] = _given(f.queues[child].weight, high, f.q_min[child, r], f.q_max[child, r])


@inner
def _equal_parts(total, count):  # type: ignore[no-untyped-def]
    """What each of so many applications of weight 1 gets of a queue's fair share, by the same search."""
    high = 1.0
    while count * np.int64(high) < total:
        high *= 2.0
    low = 0.0
    for _ in range(25):
        middle = (low + high) / 2.0
        planned = count * np.int64(middle)
        if planned < total:
            low = middle
        else:
            high = middle
            if planned == total:
                break
    return np.int64(high)


@inner
def _sum_apps(f, q, rate):  # type: ignore[no-untyped-def]
    total = np.int64(0)
    a = f.queues[q].members
    while a >= 0:
        total += np.int64(min(f.apps[a].weight * rate, float(UNBOUNDED) / 1024.0))
        a = f.apps[a].newer
    return min(total, UNBOUNDED)


@inner
def _rate_of_apps(f, q, total):  # type: ignore[no-untyped-def]
    high = 1.0
    while _sum_apps(f, q, high) < total:
        high *= 2.0
    low = 0.0
    for _ in range(25):
        middle = (low + high) / 2.0
        planned = _sum_apps(f, q, middle)
        if planned < total:
            low = middle
        else:
            high = middle
            if planned == total:
                break
    return high


@inner
def share_of(f, a):  # type: ignore[no-untyped-def]
    """Lay the fair share of an application, as of the last update, into row 0 of `a_picked`."""
    app = f.apps[a]
    policy = f.queues[app.queue].policy
    f.a_picked[0, :] = 0
    if app.state != RUNNABLE or app.since >= f.p[0].updates:
        return
    if policy == FIFO:
        # the earliest application gets all
        first = f.queues[app.queue].members
        at = first
        while at >= 0:
            if f.apps[at].start < f.apps[first].start:
                first = at
            at = f.apps[at].newer
        if first == a:
            f.a_picked[0, :] = f.q_fair[app.queue, :]
        return
    for r in range(3):
        if policy == DRF or r == f.p[0].by:
            if f.p[0].sized == 1:
                f.a_picked[0, r] = np.int64(app.weight * _rate_of_apps(f, app.queue, f.q_fair[app.queue, r]))
            else:
                f.a_picked[0, r] = f.q_app[app.queue, r]


@inner
def update_shares(f):  # type: ignore[no-untyped-def]
    """Compute fair shares from the root down, as the set of active queues has them."""
    f.q_fair[0, :] = f.cluster
    for q in range(f.queues.size):
        queue = f.queues[q]
        for r in range(3):
            if queue.count > 0 and f.cluster[r] > 0 and (queue.policy == DRF or r == f.p[0].by):
                _share_out(f, q, r)


@inner
def update_demands(f):  # type: ignore[no-untyped-def]
    """Let what applications and queues are known to ask for be what they ask for now."""
    for k in range(f.p[0].fresh):
        a = f.touched[k]
        app = f.apps[a]
        app.touched = 0
        f.a_demand[a, :] = f.a_used[a, :] + f.a_asks[a, :]
        if f.p[0].sized == 1:
            app.weight = np.float64(np.float32(np.log1p(float(f.a_demand[a, f.p[0].by])) / np.log(2.0)))
    f.p[0].fresh = f.p[0].unknown = 0
    for k in range(f.queues.size):
        q = f.queues.size - 1 - k
        if f.queues[q].count > 0:
            f.q_demand[q, :] = 0
            for c in range(f.queues[q].first, f.queues[q].first + f.queues[q].count):
                f.q_demand[q, :] += f.q_demand[f.children[c], :]
        else:
            f.q_demand[q, :] = f.q_used[q, :] + f.q_asks[q, :]
            for r in range(3):
                if f.queues[q].runnable > 0 and (f.queues[q].policy == DRF or r == f.p[0].by):
                    f.q_app[q, r] = _equal_parts(f.q_fair[q, r], f.queues[q].runnable)
        for r in range(3):
            f.q_demand[q, r] = min(f.q_demand[q, r], f.q_max[q, r])


# ---- starvation


@inner
def _lack(f, a, floor):  # type: ignore[no-untyped-def]
    """Find how far an application is below its share, and whether for long enough; false where it is not below."""
    app, now = f.apps[a], floor
    queue = f.queues[app.queue]
    share_of(f, a)
    for r in range(3):
        part = np.int64(f.a_picked[0, r] * queue.threshold)
        f.a_picked[1, r] = min(part, f.a_demand[a, r])
    starved = below(f, queue.policy, f.a_used, a, f.a_picked, 1)
    if not starved:
        app.fed = now
        app.full = f.p[0].updates
    f.a_lack[a, :] = 0
    if starved and now - app.fed >= queue.fair_wait:
        for r in range(3):
            f.a_lack[a, r] = max(f.a_picked[1, r] - f.a_used[a, r], 0)
    return starved


@inner
def is_none(array, row):  # type: ignore[no-untyped-def]
    """Whether an amount is nothing at all."""
    return array[row, 0] == 0 and array[row, 1] == 0 and array[row, 2] == 0


@inner
def fits_in(one, a, other, b):  # type: ignore[no-untyped-def]
    """Whether an amount is nowhere more than another."""
    return one[a, 0] <= other[b, 0] and one[a, 1] <= other[b, 1] and one[a, 2] <= other[b, 2]


@inner
def _greedier(f, a, b):  # type: ignore[no-untyped-def]
    """The order of starved applications (class FSStarvedApps): `a` before `b` where it lacks no more anywhere."""
    for r in range(3):
        if f.a_lack[a, r] + f.a_low[a, r] > f.a_lack[b, r] + f.a_low[b, r]:
            return False
    return True


@inner
def _put_hungry(f, a):  # type: ignore[no-untyped-def]
    if f.apps[a].queued == 1:
        return
    f.apps[a].queued = 1
    k = f.p[0].hungry
    f.p[0].hungry += 1
    while k > 0:
        parent = (k - 1) >> 1
        if not _greedier(f, a, f.hungry[parent]):
            break
        f.hungry[k] = f.hungry[parent]
        k = parent
    f.hungry[k] = a


@inner
def take_hungry(f):  # type: ignore[no-untyped-def]
    """Take the next starved application, in the order in which a binary heap gives them; -1 none."""
    p = f.p[0]
    if p.hungry == 0:
        return -1
    found = f.hungry[0]
    f.apps[found].queued = 0
    p.hungry -= 1
    last, k = f.hungry[p.hungry], 0
    while 2 * k + 1 < p.hungry:
        child = 2 * k + 1
        if child + 1 < p.hungry and not _greedier(f, f.hungry[child], f.hungry[child + 1]):
            child += 1
        if _greedier(f, last, f.hungry[child]):
            break
        f.hungry[k] = f.hungry[child]
        k = child
    f.hungry[k] = last
    return found


@inner
def _first_tick(f, t):  # type: ignore[no-untyped-def]
    return np.ceil(t / f.p[0].tick - 1e-9) * f.p[0].tick if t < np.inf else np.inf


@inner
def _starved_by_share(f, q, now, since):  # type: ignore[no-untyped-def]
    """Look at the applications of a queue in order, up to the first that is not below its share.

    Leaves what they lack together in row 2 of `a_picked`; returns when the next look may find something else.
    """
    f.a_picked[2, :] = 0
    wake = np.inf
    a = f.queues[q].line
    while a >= 0:
        app = f.apps[a]
        if app.next > now:
            wake = min(wake, _first_tick(f, app.next))
            a = app.after
            continue
        if since >= 0 and app.full == f.p[0].updates - 1 and app.fed < now:
            # nothing has changed in between: the updates that were left out would have found it fed as well
            app.fed = max(app.fed, now - f.p[0].tick)
        starved = _lack(f, a, now)
        if starved and is_none(f.a_lack, a):
            wake = min(wake, _first_tick(f, app.fed + f.queues[q].fair_wait))
        if is_none(f.a_lack, a):
            break
        _put_hungry(f, a)
        f.a_picked[2, :] += f.a_lack[a, :]
        a = app.after
    return wake


@inner
def _starved_by_minimum(f, q, now):  # type: ignore[no-untyped-def]
    """Give what a queue lacks of its minimum to its applications as their starvation (class FSLeafQueue).

    An application is starved by what it asks for less what the queue lacks, as in Hadoop, not by the smaller of the two.
    """
    queue = f.queues[q]
    starved = False
    for r in range(3):
        lack = max(min(f.q_min[q, r], f.q_demand[q, r]) - f.q_used[q, r], 0)
        f.a_picked[3, r] = lack
        starved = starved or lack > 0
    if queue.above == 1:
        queue.fed = max(queue.fed, now - f.p[0].tick)
    queue.above = 0 if starved else 1
    if not starved:
        queue.fed = now
    wake = np.inf
    if now - queue.fed < queue.min_wait:
        f.a_picked[3, :] = 0
        wake = _first_tick(f, queue.fed + queue.min_wait) if starved else np.inf
    for r in range(3):
        f.a_picked[3, r] = max(f.a_picked[3, r] - f.a_picked[2, r], 0)
    a = queue.line
    while a >= 0:
        app = f.apps[a]
        if app.next <= now:
            if is_none(f.a_picked, 3):
                f.a_low[a, :] = 0
            else:
                for r in range(3):
                    f.a_picked[4, r] = max(f.a_demand[a, r] - f.a_used[a, r] - f.a_lack[a, r], 0)
                if _more(f, queue.policy, f.a_picked, 4, f.a_picked, 3):
                    for r in range(3):
                        f.a_picked[4, r] = max(f.a_picked[4, r] - f.a_picked[3, r], 0)
                    f.a_picked[3, :] = 0
                else:
                    for r in range(3):
                        f.a_picked[3, r] = max(f.a_picked[3, r] - f.a_picked[4, r], 0)
                f.a_low[a, :] = f.a_picked[4, :]
                _put_hungry(f, a)
        a = app.after
    return wake


@inner
def update_starved(f, now):  # type: ignore[no-untyped-def]
    """Find the applications that are starved; returns the next update at which there may be others."""
    p = f.p[0]
    since = 0 if p.tried == 1 else -1
    p.tried = 0
    whole = 0.0
    for r in range(2):
        if f.cluster[r] > 0:
            whole = max(whole, float(np.float32(f.q_used[0, r]) / np.float32(f.cluster[r])))
    if f.cluster[0] == 0 and f.cluster[1] == 0 and f.cluster[2] > 0:
        # ours: Hadoop looks at memory and CPUs only, which do not count here
        whole = float(np.float32(f.q_used[0, 2]) / np.float32(f.cluster[2]))
    if p.utilization >= whole:
        return np.inf
    p.tried = 1
    wake = np.inf
    for q in range(f.queues.size):
        if f.queues[q].count == 0:
            wake = min(wake, _starved_by_share(f, q, now, since))
            if since < 0:
                f.queues[q].above = 0
            wake = min(wake, _starved_by_minimum(f, q, now))
    return wake
