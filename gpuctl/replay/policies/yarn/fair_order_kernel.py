"""The compiled order of the fair scheduler: which queue and application is next, and comparisons of amounts.

Exact on Hadoop 3.5.0, including its single and double precision, since ties matter.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.policies.yarn.fair_state import DRF, FIFO

# ---- order


@inner
def ratio(f, held, whole):  # type: ignore[no-untyped-def]
    """Return `held / whole` in the comparison's precision; for an empty whole: 0 for none, infinity for some."""
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
    """Write the ratios of one side of a comparison, and the order of resources by ratio; returns the first."""
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
    """Queues below the minimum of the dominant resource first; then by dominant share over weight."""
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
    """Queues with requests first; then those below their minimum; then by use over weight."""
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
def more(f, policy, one, a, other, b):  # type: ignore[no-untyped-def]
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


@inner
def is_none(array, row):  # type: ignore[no-untyped-def]
    """Whether an amount is zero."""
    return array[row, 0] == 0 and array[row, 1] == 0 and array[row, 2] == 0


@inner
def fits_in(one, a, other, b):  # type: ignore[no-untyped-def]
    """Whether an amount is at most another in every resource."""
    return one[a, 0] <= other[b, 0] and one[a, 1] <= other[b, 1] and one[a, 2] <= other[b, 2]
