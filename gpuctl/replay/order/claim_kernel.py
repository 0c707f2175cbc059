"""The compiled search for GPUs that a waiting job may get by preempting running jobs after it."""

from __future__ import annotations

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.placement_kernel import hide, largest, suits
from gpuctl.replay.engine.state import ANY, FILL, SPREAD


@inner
def _claim_on(s, r, number, gpus, at):  # type: ignore[no-untyped-def]
    """Claim GPUs of a node: free ones first, then those being released, then those of running jobs."""
    node = s.nodes[number]
    left = gpus
    some = min(left, node.free - node.hidden)
    if some > 0:
        hide(s, number, node.hidden + some)
        left -= some
    some = min(left, r.coming[number])
    r.coming[number] -= some
    left -= some
    r.held[number] -= left
    r.claim_node[at] = number
    r.claim_gpus[at] = gpus


@inner
def _have(s, r, number):  # type: ignore[no-untyped-def]
    """GPUs of a node available to a claim without further preemptions."""
    node = s.nodes[number]
    return node.free - node.hidden + r.coming[number] + min(r.risen[number], r.held[number])


@inner
def _rise(s, r, k):  # type: ignore[no-untyped-def]
    """Make the GPUs of the running job at place `k` available to a claim."""
    row = s.attempts[s.jobs[r.run[k]].row]
    for at in range(row.first, row.first + row.pieces):
        r.risen[s.pieces[at].node] += s.pieces[at].gpus


@inner
def _one_node(s, r, mask, gpus, place):  # type: ignore[no-untyped-def]
    """The node that can hold the gang after preempting its last running jobs; -1 none."""
    for number in range(s.nodes.size):
        r.risen[number] = 0
        if suits(s, number, mask) and _have(s, r, number) >= gpus:
            return number
    for k in range(r.n[0] - 1, place - 1, -1):
        _rise(s, r, k)
        row = s.attempts[s.jobs[r.run[k]].row]
        for at in range(row.first, row.first + row.pieces):
            number = s.pieces[at].node
            if suits(s, number, mask) and _have(s, r, number) >= gpus:
                return number
    return -1


@inner
def _whole_nodes(s, r, mask, gpus, place):  # type: ignore[no-untyped-def]
    """Put whole nodes and one for the rest, of the last running jobs, into `order`; returns their number, 0 if none."""
    biggest = largest(s, mask)
    whole, rest = gpus // biggest, gpus % biggest
    r.risen[:] = 0
    k = r.n[0]
    while True:
        found = 0
        last = -1
        for number in range(s.nodes.size):
            if found < whole and suits(s, number, mask) and _have(s, r, number) == biggest:
                s.order[found] = number
                found += 1
            elif rest > 0 and last < 0 and suits(s, number, mask) and _have(s, r, number) >= rest:
                last = number
        if found == whole and (rest == 0 or last >= 0):
            if rest > 0:
                s.order[found] = last
                found += 1
            return found
        k -= 1
        if k < place:
            return 0
        _rise(s, r, k)


@inner
def claim_for(s, r, j, place):  # type: ignore[no-untyped-def]
    """Claim GPUs of running jobs after a waiting job, the last one first; false if not enough."""
    job = s.jobs[j]
    how = r.how[j]
    at = r.n[1]
    biggest = largest(s, job.mask)
    if s.nodes.size == 1:
        _claim_on(s, r, 0, job.gpus, at)
        r.n[1] = at + 1
        return True
    if job.gpus <= biggest and how != SPREAD:
        number = _one_node(s, r, job.mask, job.gpus, place)
        if number >= 0:
            _claim_on(s, r, number, job.gpus, at)
            r.n[1] = at + 1
            return True
    if how != ANY and how != FILL and how != SPREAD:
        if job.gpus <= biggest:
            return False
        count = _whole_nodes(s, r, job.mask, job.gpus, place)
        left = job.gpus
        for k in range(count):
            _claim_on(s, r, s.order[k], min(left, biggest), at)
            left -= biggest
            at += 1
        r.n[1] = at
        return count > 0
    total = 0
    for number in range(s.nodes.size):
        r.risen[number] = 0
        if suits(s, number, job.mask):
            total += _have(s, r, number)
    k = r.n[0]
    while total < job.gpus:
        k -= 1
        if k < place:
            return False
        _rise(s, r, k)
        total = 0
        for number in range(s.nodes.size):
            if suits(s, number, job.mask):
                total += _have(s, r, number)
    left = job.gpus
    while left > 0:
        best, most = -1, 0
        for number in range(s.nodes.size):
            if suits(s, number, job.mask) and _have(s, r, number) > most:
                best, most = number, _have(s, r, number)
        some = min(left, most)
        # the GPUs taken from running jobs there are claimed now
        r.risen[best] -= max(0, some - (s.nodes[best].free - s.nodes[best].hidden + r.coming[best]))
        _claim_on(s, r, best, some, at)
        at += 1
        left -= some
    r.n[1] = at
    return True
