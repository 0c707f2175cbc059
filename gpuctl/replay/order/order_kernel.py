"""The compiled order of jobs: keys, levels, and the list of running jobs of an ordering policy."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints, rows
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.event_heap_kernel import cancel
from gpuctl.replay.engine.instant_kernel import job_timer
from gpuctl.replay.engine.requeue_kernel import joins_tail, last_rank
from gpuctl.replay.engine.state import RUNNING, WAITING
from gpuctl.replay.order.waiting_kernel import insert, remove

# ---- rules of order
BY_RANK, BY_REMAINING, BY_SERVICE, BY_LEVEL, BY_SHARE = range(5)
# ---- inside a level
BY_FIRST_START, BY_SUBMIT, BY_LIST, BY_GITTINS = range(4)

RULES = np.dtype(
    [
        ("rule", "i8"),
        ("inner", "i8"),
        ("preempts", "i8"),
        ("strict", "i8"),  # the first job that does not fit blocks all others
        ("ties", "i8"),  # 1: of equal ones the waiting job goes first
        ("by_gpus", "i8"),  # service in GPU-seconds rather than seconds
        ("quantum", "f8"),  # seconds between passes while jobs wait; 0: only at events
        ("fixed", "i8"),  # 1: remaining times of running jobs all fall equally, so that their order stays
        ("tick", "f8"),  # demotions at whole multiples of it; 0: to the instant
        ("promote", "f8"),  # multiple of a job's run time that it waits before promotion; 0: never
    ],
    align=True,
)


class Rules(Bundle):
    """Input of an ordering policy."""

    p = rows(RULES)  # one record of `RULES`
    rank = floats()  # fixed order of the jobs, if that is the rule [jobs]
    weight = floats()  # factor of the remaining time [jobs]
    rest = floats()  # seconds of later segments, by segment
    bias = floats()  # predicted less true run time of each job, seconds; 0 if policies see true ones
    how = ints()  # placement of each job
    limits = floats()  # service at which a job leaves each level but the last
    samples = floats()  # services of past jobs, ascending (Gittins)
    above = floats()  # sum of the samples from each one on
    weights = floats()  # of the queues or users among which GPUs are shared
    base = floats()  # service at the last promotion
    # running jobs in order, and their keys
    run = ints()
    run_level = ints()
    run_key = floats()
    run_tie = ints()
    run_gpus = ints()
    # GPUs promised to jobs that start once others are preempted
    claim_node = ints()
    claim_gpus = ints()
    # such jobs, and where the claims of each end
    later = ints()
    later_end = ints()
    lost = ints()  # displaced jobs
    parting = ints()  # jobs that are being suspended
    # by node: GPUs being released, unclaimed GPUs of running jobs
    coming = ints()
    held = ints()
    risen = ints()  # by node, scratch of a claim
    n = ints()  # counters: jobs in `run`, claims, jobs in `parting`, timers that ring at this instant, in `lost`


@inner
def remaining(s, r, j):  # type: ignore[no-untyped-def]
    """Remaining work of the job, in seconds at reference speed."""
    job = s.jobs[j]
    done = job.done
    now = s.g[0].now
    if job.state == RUNNING and now > job.last:
        done += (now - job.last) * job.rate
    left = job.work - done + r.rest[job.segment]
    guess = left + r.bias[j]
    if guess <= 0 and left > 0:
        # it has outlived its prediction: one more epoch, then
        return job.epoch
    return guess


@inner
def service(s, r, j):  # type: ignore[no-untyped-def]
    """Attained service since the job's last promotion: GPU-seconds or seconds."""
    job = s.jobs[j]
    got = job.attained if r.p[0].by_gpus == 1 else job.ran
    if job.state == RUNNING:
        got += (s.g[0].now - job.seen) * (job.held if r.p[0].by_gpus == 1 else 1)
    return got - r.base[j]


@compiled
def gittins(samples, above, a, delta):  # type: ignore[no-untyped-def]
    """The Gittins index of a job that has got service `a`, from the services of past jobs.

    P(S <= a + delta | S > a) / E[min(S - a, delta) | S > a]; 0 beyond all samples. Tiresias (NSDI 2019), section 3.

    Args:
        samples: services of past jobs, ascending.
        above: sum of the samples from each one on; one element more, 0.
        a: attained service.
        delta: further service considered; inf for all of it.
    """
    n = samples.size
    lo = np.searchsorted(samples, a, side="right")
    if lo == n:
        return 0.0
    hi = n if delta == np.inf else np.searchsorted(samples, a + delta, side="right")
    cut = 0.0 if hi == n else delta * (n - hi)
    spent = above[lo] - above[hi] - a * (hi - lo) + cut
    return (hi - lo) / spent if spent > 0 else np.inf


@inner
def set_key(s, q, r, j):  # type: ignore[no-untyped-def]
    """Set the job's key within its level, as of now."""
    p = r.p[0]
    if p.rule == BY_RANK or p.rule == BY_SHARE:
        q.key[j] = r.rank[j]
    elif p.rule == BY_REMAINING:
        q.key[j] = remaining(s, r, j) * r.weight[j]
    elif p.rule == BY_SERVICE:
        q.key[j] = service(s, r, j)
    elif p.inner == BY_FIRST_START:
        began = s.jobs[j].first_start
        q.key[j] = np.inf if np.isnan(began) else began
    elif p.inner == BY_SUBMIT:
        q.key[j] = s.jobs[j].submit
    elif p.inner == BY_GITTINS:
        level = q.level[j]
        delta = r.limits[level] if level < r.limits.size else np.inf
        q.key[j] = -gittins(r.samples, r.above, service(s, r, j), delta)


@inner
def stamp(s, q, late):  # type: ignore[no-untyped-def]
    """A key for the end of the list; `late` ones come after all others of this instant."""
    q.counter[1] += 1
    return s.g[0].instants * (1 << 32) + late * (1 << 31) + q.counter[1] % (1 << 31)


@inner
def has_stamp(r):  # type: ignore[no-untyped-def]
    """Whether ties go by position in the list, rather than by row."""
    p = r.p[0]
    if p.rule == BY_LEVEL:
        return p.inner == BY_LIST or p.inner == BY_SUBMIT
    return p.rule == BY_REMAINING or p.rule == BY_SERVICE


@inner
def has_got(s, r, j, level):  # type: ignore[no-untyped-def]
    """Whether a job has attained the service of its level, within rounding and the grain."""
    rounding = max(1e-6, s.g[0].grain * s.jobs[j].held)
    return service(s, r, j) >= r.limits[level] - rounding


@inner
def wait(s, q, r, j, late):  # type: ignore[no-untyped-def]
    """Insert a newly queued job into the order."""
    p = r.p[0]
    if joins_tail(s, j):
        # between those that have arrived and those to come; of such jobs the latest goes last
        r.rank[j] = last_rank(s) + 0.5
        q.counter[1] += 1
        q.tie[j] = s.jobs.size + q.counter[1]
    if p.rule == BY_LEVEL:
        # service during its suspension also counts
        level = q.level[j]
        while level < r.limits.size and has_got(s, r, j, level):
            level += 1
        to_level(q, j, level)
    set_key(s, q, r, j)
    if has_stamp(r):
        # in one list, jobs preempted at an instant precede jobs that arrive at it
        q.tie[j] = stamp(s, q, late if p.rule == BY_REMAINING and p.ties == 0 else 0)
        if p.rule == BY_LEVEL and p.inner == BY_LIST:
            q.key[j] = 1.0
    insert(q, j)
    if p.rule != BY_LEVEL:
        return
    cancel(s, s.jobs.size + j)
    if p.promote > 0 and q.level[j] > 0:
        job = s.jobs[j]
        if job.ran > 0:
            at = s.g[0].now + p.promote * service(s, r, j) / (job.gpus if p.by_gpus == 1 else 1)
            job_timer(s, j, at)


@inner
def demotion(s, q, r, j):  # type: ignore[no-untyped-def]
    """Set a timer for when the running job attains the service of its level."""
    level = q.level[j]
    if level >= r.limits.size:
        return
    p = r.p[0]
    left = max(r.limits[level] - service(s, r, j), 0.0)
    at = s.g[0].now + left / (s.jobs[j].held if p.by_gpus == 1 else 1)
    if p.tick > 0:
        at = max(np.ceil(at / p.tick - 1e-9) * p.tick, s.g[0].now)
        if left > 0 and at <= s.g[0].now:
            at = (np.floor(s.g[0].now / p.tick) + 1.0) * p.tick
    job_timer(s, j, at)


@inner
def to_level(q, j, level):  # type: ignore[no-untyped-def]
    """Move the job to a level; it must not be in the waiting list."""
    q.group[j] += level - q.level[j]
    q.level[j] = level


@inner
def began(s, q, r, j):  # type: ignore[no-untyped-def]
    """Note that a job runs from now on."""
    p = r.p[0]
    if p.rule == BY_LEVEL:
        cancel(s, s.jobs.size + j)
        if p.inner == BY_LIST:
            q.key[j] = 0.0
            q.tie[j] = stamp(s, q, 0)
        elif p.inner == BY_FIRST_START:
            q.key[j] = s.jobs[j].first_start
        demotion(s, q, r, j)


@inner
def on_wake(s, j, q, r):  # type: ignore[no-untyped-def]
    """Record a job's expired timer, in order of arrival, for `timers_fire`."""
    at = r.n[3]
    while at > 0 and r.lost[at - 1] > j:
        r.lost[at] = r.lost[at - 1]
        at -= 1
    r.lost[at] = j
    r.n[3] += 1


@inner
def timers_fire(s, q, r):  # type: ignore[no-untyped-def]
    """Demote running jobs and promote waiting ones that are due, in order of arrival."""
    n = r.n[3]
    r.n[3] = 0
    for k in range(n):
        j = r.lost[k]
        job = s.jobs[j]
        if job.state == WAITING:
            remove(q, j)
            to_level(q, j, 0)
            r.base[j] = job.attained if r.p[0].by_gpus == 1 else job.ran
            wait(s, q, r, j, 0)
        elif job.state == RUNNING:
            level = q.level[j]
            if level < r.limits.size and has_got(s, r, j, level):
                to_level(q, j, level + 1)
                if r.p[0].inner == BY_LIST:
                    q.key[j] = 1.0
                    q.tie[j] = stamp(s, q, 0)
                elif r.p[0].inner == BY_GITTINS:
                    set_key(s, q, r, j)
                out_of_run(r, j)
                into_run(s, q, r, j, place_of(s, q, r, j))
            demotion(s, q, r, j)


# ---- the list of running jobs, in order


@inner
def out_of_run(r, j):  # type: ignore[no-untyped-def]
    """Remove the job from the running ones, if present."""
    n = r.n[0]
    at = 0
    while at < n and r.run[at] != j:
        at += 1
    if at < n:
        _cut(r, at)


@inner
def _cut(r, at):  # type: ignore[no-untyped-def]
    n = r.n[0] - 1
    for k in range(at, n):
        r.run[k] = r.run[k + 1]
        r.run_level[k] = r.run_level[k + 1]
        r.run_key[k] = r.run_key[k + 1]
        r.run_tie[k] = r.run_tie[k + 1]
        r.run_gpus[k] = r.run_gpus[k + 1]
    r.n[0] = n


@inner
def into_run(s, q, r, j, at):  # type: ignore[no-untyped-def]
    """Insert the job at this place of the running ones."""
    for k in range(r.n[0], at, -1):
        r.run[k] = r.run[k - 1]
        r.run_level[k] = r.run_level[k - 1]
        r.run_key[k] = r.run_key[k - 1]
        r.run_tie[k] = r.run_tie[k - 1]
        r.run_gpus[k] = r.run_gpus[k - 1]
    r.run[at] = j
    r.run_level[at] = q.level[j]
    r.run_key[at] = q.key[j] + (s.g[0].now if r.p[0].fixed == 1 else 0.0)
    r.run_tie[at] = q.tie[j]
    r.run_gpus[at] = s.jobs[j].held
    r.n[0] += 1


@inner
def precedes(s, q, r, w, k):  # type: ignore[no-untyped-def]
    """Whether the waiting job `w` comes before the running job at place `k`."""
    if q.level[w] != r.run_level[k]:
        return q.level[w] < r.run_level[k]
    p = r.p[0]
    key = q.key[w] + s.g[0].now if p.fixed == 1 else q.key[w]
    if key != r.run_key[k]:
        return key < r.run_key[k]
    j = r.run[k]
    now = s.g[0].now
    if p.rule == BY_REMAINING or p.rule == BY_SERVICE:
        if p.ties == 1 and s.jobs[j].start < now:
            return True
        # One list, sorted stably by key at each pass. A running job whose remaining time has fallen to a waiting one's
        # was behind it, and a new arrival goes to the end; but a running job whose service has risen to a waiting one's
        # was ahead of it.
        if s.jobs[j].start == now or (p.rule == BY_REMAINING and s.jobs[j].last >= now):
            return q.tie[w] < r.run_tie[k]
        return p.rule == BY_REMAINING and s.jobs[w].queued < now
    if p.rule == BY_LEVEL and p.inner == BY_SUBMIT:
        return False
    return q.tie[w] < r.run_tie[k]


@inner
def place_of(s, q, r, w):  # type: ignore[no-untyped-def]
    """Place of the first running job that comes after the job `w`."""
    low, high = 0, r.n[0]
    while low < high:
        middle = (low + high) >> 1
        if precedes(s, q, r, w, middle):
            high = middle
        else:
            low = middle + 1
    return low


@inner
def sort_running(s, q, r):  # type: ignore[no-untyped-def]
    """Sort the running jobs if keys change as they run; they are nearly sorted, so insertion is quick."""
    by_row = not has_stamp(r)
    for k in range(1, r.n[0] + 1):
        i = k - 1
        j = r.run[i]
        set_key(s, q, r, j)
        key, level, tie, gpus = q.key[j], r.run_level[i], r.run_tie[i], r.run_gpus[i]
        at = i
        while at > 0:
            if level != r.run_level[at - 1]:
                ahead = level < r.run_level[at - 1]
            elif key != r.run_key[at - 1]:
                ahead = key < r.run_key[at - 1]
            else:
                ahead = by_row and tie < r.run_tie[at - 1]
            if not ahead:
                break
            r.run[at], r.run_level[at], r.run_key[at] = r.run[at - 1], r.run_level[at - 1], r.run_key[at - 1]
            r.run_tie[at], r.run_gpus[at] = r.run_tie[at - 1], r.run_gpus[at - 1]
            at -= 1
        r.run[at], r.run_level[at], r.run_key[at], r.run_tie[at], r.run_gpus[at] = j, level, key, tie, gpus
