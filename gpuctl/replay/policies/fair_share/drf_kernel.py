"""The compiled pass of dominant resource fairness: progressive filling over queues or users at every event."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints, rows
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.resource_kernel import dominant_share, find_for
from gpuctl.replay.engine.state import WAITING
from gpuctl.replay.order.waiting_kernel import insert, pop, sooner

R_LEAST = len(REASONS)
R_LEAST_THAT_FITS = R_LEAST + 1
DRF_REASONS = (
    "its queue or user has the least dominant share",
    "its queue or user has the least dominant share of those with a job that fits",
)

DRF = np.dtype(
    [
        ("strict", "i8"),  # the tenant with the least share blocks all others until its job fits
        ("any_job", "i8"),  # any job of a tenant may start, in order; otherwise only its first one
        ("freed", "i8"),  # number of releases so far
    ],
    align=True,
)


class Shares(Bundle):
    """Input and memory of the policy."""

    p = rows(DRF)  # one record of `DRF`
    weights = floats()  # of the tenants [tenants]
    how = ints()  # placement of each job
    shape = ints()  # jobs of one number have equal requests
    bad = ints()  # by shape, the number of releases when it was found not to fit
    first = ints()  # first group of each tenant [tenants + 1]
    # tenants with a waiting job, a heap by share; ties by job [tenants]
    party = ints()
    share = floats()
    job = ints()


@inner
def next_of(q, f, party):  # type: ignore[no-untyped-def]
    """The next job of a tenant: its first one, or the first one not known not to fit; -1 none."""
    best = -1
    for group in range(f.first[party], f.first[party + 1]):
        j = q.head[group]
        if j >= 0 and (best < 0 or sooner(q, j, best)) and (f.p[0].any_job == 0 or f.bad[f.shape[j]] != f.p[0].freed):
            best = j
    return best


@inner
def _ahead(q, f, a, b):  # type: ignore[no-untyped-def]
    return f.share[a] < f.share[b] or (f.share[a] == f.share[b] and sooner(q, f.job[a], f.job[b]))


@inner
def _swap(f, a, b):  # type: ignore[no-untyped-def]
    f.party[a], f.party[b] = f.party[b], f.party[a]
    f.share[a], f.share[b] = f.share[b], f.share[a]
    f.job[a], f.job[b] = f.job[b], f.job[a]


@inner
def _sink(q, f, size):  # type: ignore[no-untyped-def]
    """Sink the top of the heap."""
    k = 0
    while True:
        child = 2 * k + 1
        if child >= size:
            return
        if child + 1 < size and _ahead(q, f, child + 1, child):
            child += 1
        if not _ahead(q, f, child, k):
            return
        _swap(f, k, child)
        k = child


@inner
def _fill(s, q, f):  # type: ignore[no-untyped-def]
    """Build the heap of all tenants with a waiting job; returns their number."""
    size = 0
    for party in range(f.weights.size):
        j = next_of(q, f, party)
        if j >= 0:
            f.party[size], f.job[size] = party, j
            f.share[size] = dominant_share(s, party, f.weights[party])
            k = size
            while k > 0 and _ahead(q, f, k, (k - 1) >> 1):
                _swap(f, k, (k - 1) >> 1)
                k = (k - 1) >> 1
            size += 1
    return size


@inner
def _pass(s, q, f):  # type: ignore[no-untyped-def]
    p = f.p[0]
    size = _fill(s, q, f)
    skipped = False
    while size > 0:
        party, j = f.party[0], f.job[0]
        if f.bad[f.shape[j]] != p.freed and find_for(s, j, f.how[j]):
            pop(q, q.group[j])
            launch(s, j, R_LEAST_THAT_FITS if skipped else R_LEAST)
            f.share[0] = dominant_share(s, party, f.weights[party])
            f.job[0] = next_of(q, f, party)
        else:
            f.bad[f.shape[j]] = p.freed
            if p.strict == 1:
                return
            skipped = True
            f.job[0] = next_of(q, f, party) if p.any_job == 1 else -1
        if f.job[0] < 0:
            size -= 1
            _swap(f, 0, size)
        _sink(q, f, size)


@inner
def on_submit(s, j, q, f):  # type: ignore[no-untyped-def]
    """Handle a submitted job."""
    if s.jobs[j].state == WAITING:
        insert(q, j)


@inner
def on_requeue(s, j, q, f):  # type: ignore[no-untyped-def]
    """Handle a requeued job, whose resources are free."""
    f.p[0].freed += 1
    on_submit(s, j, q, f)


@inner
def freed(s, _who, q, f):  # type: ignore[no-untyped-def]
    """Handle released resources: jobs that did not fit may do so now."""
    f.p[0].freed += 1


@inner
def decide(s, q, f):  # type: ignore[no-untyped-def]
    """Distribute free resources."""
    if s.g[0].waiting > 0:
        _pass(s, q, f)


@compiled
def run(s, q, f, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants, or to the end. Returns as `step` does."""
    return loop(
        s, (q, f), until, steps, decide=decide, on_submit=on_submit, on_requeue=on_requeue, on_finish=freed,
        on_node_up=freed,
    )  # fmt: skip
