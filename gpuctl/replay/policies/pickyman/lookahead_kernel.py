"""Memory and predictions of the `pickyman` policy: predicted ends, costs of preemption, progress of the queue."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints, rows
from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.state import ABORT, E_QUEUED, EPOCH, RUNNING, SUSPENDING, WAITING

PICKY = np.dtype(
    [
        ("age", "f8"),  # seconds of waiting that double a job's priority
        ("every", "f8"),  # seconds between passes while jobs wait
        ("near", "f8"),  # share of an epoch left that counts as near its end, for the log
        ("most", "i8"),  # preemptions after which a job is protected
        ("depth", "i8"),  # waiting jobs, in order, for which preemptions are considered at a pass
        ("waiting", "i8"),
        ("running", "i8"),
        ("claims", "i8"),
        ("pieces", "i8"),
        ("victims", "i8"),
        ("passes", "i8"),
        ("ends", "i8"),
        ("spare", "i8"),
    ],
    align=True,
)


class Picky(Bundle):
    """Memory of the policy."""

    p = rows(PICKY)  # one record of `PICKY`
    bias = floats()  # predicted less true run time of each job, seconds at reference speed
    rest = floats()  # seconds of later segments, by segment
    how = ints()  # placement of each job
    kind = ints()  # jobs of one size, placement and set of nodes are of one kind
    # waiting jobs in order, and their keys
    wait = ints()
    key = floats()
    # running jobs by predicted end; seconds lost and seconds until free if preempted
    run = ints()
    end = floats()
    loss = floats()
    delay = floats()
    picked = ints()  # 1: a victim of the current gang
    leaving = ints()  # 1: preempted, but ends with its epoch anyway
    bad = ints()  # pass in which a kind was found not to fit
    # second at which a kind will fit by itself, and the pass of that estimate
    natural = floats()
    natural_of = ints()
    victims = ints()  # of the current gang, in the order of choice
    # gangs that wait for their victims' GPUs, and their first pieces
    claim_job = ints()
    claim_first = ints()
    # the pieces
    claim_node = ints()
    claim_gpus = ints()
    claimed = ints()  # claimed GPUs of each node
    sim = ints()  # GPUs of each node available to the current gang
    # a heap of predicted ends and the GPUs that they free, to simulate the queue without preemption
    ends = floats()
    ends_gpus = ints()


# ---- predictions per job


@inner
def _progress(s, j):  # type: ignore[no-untyped-def]
    """Completed seconds of the job's present segment, at reference speed."""
    job = s.jobs[j]
    done = job.done
    if job.state == RUNNING and s.g[0].now > job.last:
        done += (s.g[0].now - job.last) * job.rate
    return done


@inner
def predicted_of(s, f, j):  # type: ignore[no-untyped-def]
    """Predicted remaining seconds of the job; one more epoch if it has exceeded its prediction."""
    job = s.jobs[j]
    left = job.work - _progress(s, j) + f.rest[job.segment]
    guess = left + f.bias[j]
    if guess <= 0.0 and left > 1e-6:
        return job.epoch if job.epoch < np.inf else f.p[0].every
    return max(guess, 0.0)


@inner
def foresee(s, f, j):  # type: ignore[no-untyped-def]
    """Set a running job's predicted end, and the cost and duration of preempting it now."""
    job = s.jobs[j]
    now, mode = s.g[0].now, s.g[0].mode
    f.end[j] = max(now, job.last) + predicted_of(s, f, j) / max(job.rate, 1e-9)
    move = job.bytes / job.link
    f.loss[j] = job.suspend + job.resume + 2.0 * move + job.charge
    f.delay[j] = job.suspend + move
    if mode != EPOCH and mode != ABORT:
        return
    done = _progress(s, j)
    begun = done - np.floor(done / job.epoch + 1e-9) * job.epoch if job.epoch < np.inf else done
    resuming = max(job.last - now, 0.0)
    if mode == ABORT:
        f.loss[j] = begun / max(job.rate, 1e-9) + job.resume + move
        f.delay[j] = 0.0
    elif job.epoch < np.inf and begun > 0:
        f.delay[j] += resuming + (job.epoch - begun) / max(job.rate, 1e-9)


# ---- the lists


@inner
def refresh(s, f):  # type: ignore[no-untyped-def]
    """Update and sort both lists."""
    g = s.g[0]
    p = f.p[0]
    size = 0
    for k in range(p.running):
        j = f.run[k]
        if s.jobs[j].state == RUNNING or s.jobs[j].state == SUSPENDING:
            f.run[size] = j
            size += 1
        else:
            f.leaving[j] = 0
    p.running = size
    for k in range(size):
        j = f.run[k]
        if s.jobs[j].state == RUNNING:
            foresee(s, f, j)
        else:
            f.end[j] = s.heap_t[s.node_at[j]]
    for k in range(1, size):
        j = f.run[k]
        at = k
        while at > 0 and (f.end[f.run[at - 1]] > f.end[j] or (f.end[f.run[at - 1]] == f.end[j] and f.run[at - 1] > j)):
            f.run[at] = f.run[at - 1]
            at -= 1
        f.run[at] = j
    size = 0
    for k in range(p.waiting):
        j = f.wait[k]
        if s.jobs[j].state == WAITING:
            f.wait[size] = j
            size += 1
    p.waiting = size
    for k in range(g.events):
        j = s.events[k].who
        if s.events[k].kind == E_QUEUED and s.jobs[j].state == WAITING:
            f.wait[p.waiting] = j
            p.waiting += 1
    for k in range(p.waiting):
        j = f.wait[k]
        waited = g.now - s.jobs[j].ready - s.jobs[j].ran
        f.key[j] = predicted_of(s, f, j) * s.jobs[j].gpus / (1.0 + max(waited, 0.0) / p.age)
    for k in range(1, p.waiting):
        j = f.wait[k]
        at = k
        while at > 0 and (
            f.key[f.wait[at - 1]] > f.key[j] or (f.key[f.wait[at - 1]] == f.key[j] and f.wait[at - 1] > j)
        ):
            f.wait[at] = f.wait[at - 1]
            at -= 1
        f.wait[at] = j


@inner
def start_on_choice(s, f, j, reason):  # type: ignore[no-untyped-def]
    """Start a waiting job on the GPUs in `choice`."""
    p = f.p[0]
    launch(s, j, reason)
    f.leaving[j] = 0
    foresee(s, f, j)
    at = p.running
    while at > 0 and f.end[f.run[at - 1]] > f.end[j]:
        f.run[at] = f.run[at - 1]
        at -= 1
    f.run[at] = j
    p.running += 1


# ---- the queue without preemption


@inner
def begin_queue(s, f):  # type: ignore[no-untyped-def]
    """Initialize the simulation of free GPUs: free ones now, and those that running jobs are predicted to free."""
    p = f.p[0]
    p.spare = s.g[0].free
    for number in range(s.nodes.size):
        p.spare -= f.claimed[number]
    p.ends = p.running
    for k in range(p.running):
        # in order, which makes it a heap
        f.ends[k] = f.end[f.run[k]]
        f.ends_gpus[k] = s.jobs[f.run[k]].held


@inner
def turn_of(s, f, j, predicted):  # type: ignore[no-untyped-def]
    """The second of the job's turn if all before it go first; only the number of GPUs counts."""
    p = f.p[0]
    at = s.g[0].now
    while p.spare < s.jobs[j].gpus and p.ends > 0:
        at = max(at, f.ends[0])
        p.spare += f.ends_gpus[0]
        p.ends -= 1
        _sift_down(f, f.ends[p.ends], f.ends_gpus[p.ends])
    p.spare -= s.jobs[j].gpus
    _sift_up(f, at + predicted, s.jobs[j].gpus)
    return at


@inner
def _sift_down(f, t, gpus):  # type: ignore[no-untyped-def]
    size = f.p[0].ends
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and f.ends[child + 1] < f.ends[child]:
            child += 1
        if f.ends[child] >= t:
            break
        f.ends[at], f.ends_gpus[at] = f.ends[child], f.ends_gpus[child]
        at = child
    f.ends[at], f.ends_gpus[at] = t, gpus


@inner
def _sift_up(f, t, gpus):  # type: ignore[no-untyped-def]
    at = f.p[0].ends
    f.p[0].ends += 1
    while at > 0 and f.ends[(at - 1) // 2] > t:
        f.ends[at], f.ends_gpus[at] = f.ends[(at - 1) // 2], f.ends_gpus[(at - 1) // 2]
        at = (at - 1) // 2
    f.ends[at], f.ends_gpus[at] = t, gpus
