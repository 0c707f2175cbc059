"""The compiled life of a job: progress, the GPUs that it holds, and the effects of starting and stopping it.

A request beyond the room ensured by `room` raises an error here before it writes past an array's end.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.checkpoint_kernel import keep, loading, progress, reload_cost, writes_before
from gpuctl.replay.engine.event_heap_kernel import cancel, schedule
from gpuctl.replay.engine.gpu_type_kernel import packed_speed, type_speed
from gpuctl.replay.engine.placement_kernel import hold_some
from gpuctl.replay.engine.resource_kernel import hold, let_go
from gpuctl.replay.engine.speed_curve_kernel import scale
from gpuctl.replay.engine.state import (
    A_FAILED,
    A_FINISHED,
    A_PREEMPTED,
    A_RUNNING,
    A_TIMEOUT,
    C_ARRIVE,
    C_END,
    C_SUSPENDED,
    D_FAIL,
    D_FINISH,
    D_PREEMPT,
    D_START,
    D_TIMEOUT,
    E_FINISHED,
    E_QUEUED,
    FINISHED,
    HELD,
    RUNNING,
    SUSPENDING,
    WAITING,
)

# ---- bookkeeping


@inner
def note(s, what, job, gpus, row, reason):  # type: ignore[no-untyped-def]
    """Append a line to the decision log."""
    g = s.g[0]
    if g.log >= s.log.size:
        raise IndexError("no room in the decision log")
    line = s.log[g.log]
    g.log += 1
    line.t, line.what, line.job, line.gpus, line.row, line.reason = g.now, what, job, gpus, row, reason


@inner
def emit(s, kind, who):  # type: ignore[no-untyped-def]
    """Append an event of this instant for the policy."""
    g = s.g[0]
    if g.events >= s.events.size:
        raise IndexError("no room for events")
    event = s.events[g.events]
    event.kind, event.who = kind, who
    g.events += 1


@inner
def early(s, j):  # type: ignore[no-untyped-def]
    """Record the second at which a tenth of a job's work was first done."""
    job = s.jobs[j]
    if job.done >= job.tenth:
        job.t10 = job.last - ((job.done - job.tenth) / job.rate if job.rate > 0 else 0.0)
        job.tenth = np.inf


@inner
def set_phase(s, j):  # type: ignore[no-untyped-def]
    """Set the speeds of a job with phases to those of its present progress."""
    job = s.jobs[j]
    if job.phases == 0:
        return
    k = job.first_phase
    while job.done >= s.phases[k].until - 1e-9:
        k += 1
    phase = s.phases[k]
    job.change, job.curve, job.points = phase.until, phase.curve, phase.points


@inner
def next_segment(s, j):  # type: ignore[no-untyped-def]
    """Advance a job to its next segment."""
    job = s.jobs[j]
    job.segment += 1
    job.tenth -= job.work
    job.work = s.segment_s[job.segment]
    job.done = 0.0
    job.anew = job.ran
    set_phase(s, j)


@inner
def settle(s, j):  # type: ignore[no-untyped-def]
    """Bring a job's progress and service up to now."""
    now = s.g[0].now
    job = s.jobs[j]
    if job.state == RUNNING or job.state == SUSPENDING:
        until = now
        if job.state == SUSPENDING and s.node_at[j] >= 0:
            # no progress while the checkpoint is written
            until = min(now, s.heap_t[s.node_at[j]] - job.stopping)
        if until > job.last:
            progress(s, j, until - job.last)
            job.last = until
            early(s, j)
        job.ran += now - job.seen
        job.attained += (now - job.seen) * job.counted
        if job.stalls == 1:
            job.stalled += (now - job.seen) * job.counted
    job.seen = now


@inner
def rate_of(s, j):  # type: ignore[no-untyped-def]
    """Progress in reference seconds per second, at the job's present placement and sharing."""
    job = s.jobs[j]
    rate = job.speed0
    if job.level == 1:
        rate = job.speed1
    elif job.level == 2:
        rate = job.speed2
    if job.held != job.gpus:
        rate *= scale(s, j, job.held) / scale(s, j, job.gpus)
    if s.g[0].typed == 1:
        rate *= type_speed(s, j)
    host = j if job.host < 0 else job.host
    others = s.jobs[host].sharers
    if others > 0:
        if s.jobs[host].sliced == 1:
            g = s.g[0]
            rate *= g.slice / (g.slice + g.switch) / (others + 1)
        elif s.g[0].paired == 1:
            rate *= packed_speed(s, j, host)
        else:
            rate *= job.pack
    return rate * job.pace


@inner
def snapped(s, t):  # type: ignore[no-untyped-def]
    """Snap an instant to a whole second within the grain."""
    grain = s.g[0].grain
    if grain > 0 and t < np.inf:
        whole = np.floor(t + 0.5)
        if abs(t - whole) <= grain:
            return whole
    return t


@inner
def plan_end(s, j):  # type: ignore[no-untyped-def]
    """Schedule the end of the job's segment from its progress and rate, or its time limit if enforced and earlier."""
    job = s.jobs[j]
    left = min(job.work, job.change) - job.done
    end = np.inf
    if job.rate > 0:
        writes = writes_before(s, j, min(job.work, job.change))
        end = snapped(s, job.last + max(left, 0.0) / job.rate + writes)
    if s.g[0].limits == 1:
        end = min(end, job.due)
    if end < np.inf:
        schedule(s, j, end, C_END)
    else:
        cancel(s, j)


@inner
def change_rate(s, j):  # type: ignore[no-untyped-def]
    """Settle progress up to now and apply the present rate."""
    settle(s, j)
    job = s.jobs[j]
    rate = rate_of(s, j)
    if job.state == RUNNING:
        job.rate = rate
        plan_end(s, j)
    elif job.rate > 0:
        # it is to be suspended at the end of its epoch, which has moved; else it makes no progress
        left = (s.heap_t[s.node_at[j]] - job.stopping - job.last) * job.rate
        if left > 0 and rate > 0:
            schedule(s, j, job.last + left / rate + job.stopping, C_SUSPENDED)
            job.rate = rate


@inner
def enqueue(s, j):  # type: ignore[no-untyped-def]
    """Enqueue the job."""
    g = s.g[0]
    job = s.jobs[j]
    job.state = WAITING
    job.queued = g.now
    if np.isnan(job.ready):
        job.ready = g.now
    job.seen = g.now
    g.waiting += 1
    emit(s, E_QUEUED, j)


# ---- holding and giving back GPUs


@inner
def take(s, j, shared):  # type: ignore[no-untyped-def]
    """Allocate the GPUs in `choice` (its host's if `shared`) and open an attempt. Returns their number."""
    g = s.g[0]
    job = s.jobs[j]
    if g.attempts >= s.attempts.size or g.pieces + g.chosen > s.pieces.size:
        raise IndexError("no room for an attempt")
    row = s.attempts[g.attempts]
    row.start, row.end, row.job, row.first, row.how = g.now, np.nan, j, g.pieces, A_RUNNING
    row.own = np.inf if shared == 1 else g.now
    row.group = s.attempts[s.jobs[job.host].row].group if shared == 1 else g.attempts
    row.pieces = g.chosen
    gpus = 0
    rack = -1
    level = 0
    for k in range(g.chosen):
        piece = s.choice[k]
        node = s.nodes[piece.node]
        s.pieces[g.pieces + k].node = piece.node
        s.pieces[g.pieces + k].gpus = piece.gpus
        gpus += piece.gpus
        if shared == 0:
            hold_some(s, piece.node, piece.gpus)
        if k == 0:
            rack = node.rack
        elif node.rack != rack:
            level = 2
    if g.chosen > 1 and level == 0 and (g.whole == 0 or g.chosen > (gpus + g.whole - 1) // g.whole):
        level = 1
    if g.resources == 1:
        hold(s, j)
    row.gpus = gpus
    job.row = g.attempts
    job.held = gpus
    job.counted = gpus
    job.pace = 1.0
    job.peak = max(job.peak, gpus)
    job.level = level
    g.pieces += g.chosen
    g.attempts += 1
    job.attempts += 1
    if shared == 0:
        s.queue_used[job.queue] += gpus
        s.share_used[job.share] += gpus
    g.running += 1
    return gpus


@inner
def give_back(s, j, how):  # type: ignore[no-untyped-def]
    """Release a job's GPUs, and close its attempt."""
    g = s.g[0]
    job = s.jobs[j]
    row = s.attempts[job.row]
    row.end = g.now
    row.how = how
    if g.resources == 1:
        let_go(s, j)
    held = job.held
    job.held = 0
    job.counted = 0.0
    keep(s, j)
    g.running -= 1
    job.lease = np.inf
    cancel(s, 2 * s.jobs.size + j)
    if job.host >= 0:
        _leave(s, j)
        return
    s.queue_used[job.queue] -= held
    s.share_used[job.share] -= held
    heir = _heir(s, j) if job.guest >= 0 else -1
    count = s.attempts[s.jobs[heir].row].pieces if heir >= 0 else 0
    first = s.attempts[s.jobs[heir].row].first if heir >= 0 else 0
    for k in range(row.pieces):
        piece = s.pieces[row.first + k]
        stays = 0
        for i in range(first, first + count):
            if s.pieces[i].node == piece.node:
                stays = s.pieces[i].gpus
        hold_some(s, piece.node, stays - piece.gpus)


@inner
def _leave(s, j):  # type: ignore[no-untyped-def]
    # a guest leaves: the others get faster
    job = s.jobs[j]
    host = job.host
    job.host = -1
    owner = s.jobs[host]
    owner.sharers -= 1
    before = -1
    at = owner.guest
    while at != j:
        before = at
        at = s.jobs[at].next_guest
    if before < 0:
        owner.guest = job.next_guest
    else:
        s.jobs[before].next_guest = job.next_guest
    job.next_guest = -1
    new_rates(s, host)


@inner
def join(s, j, host):  # type: ignore[no-untyped-def]
    """Insert a job among a host's guests: by GPUs, ascending; of equal ones, the latest first."""
    job, owner = s.jobs[j], s.jobs[host]
    before, at = -1, owner.guest
    while at >= 0 and s.jobs[at].held < job.held:
        before, at = at, s.jobs[at].next_guest
    job.next_guest = at
    if before < 0:
        owner.guest = j
    else:
        s.jobs[before].next_guest = j
    owner.sharers += 1


@inner
def new_rates(s, host):  # type: ignore[no-untyped-def]
    """Update the rates of a host and its guests from now on.

    Each GPU is split evenly among the jobs on it. Guests are nested: the smallest one shares all its GPUs with all
    others, the next one the rest of its own with all except that one, and so on.
    """
    on = s.jobs[host].sharers + 1
    counted, gpus = 0.0, 0
    at = s.jobs[host].guest
    while at >= 0:
        job = s.jobs[at]
        counted += (job.held - gpus) / on
        gpus = job.held
        change_rate(s, at)
        charge_for(s, at, counted)
        on -= 1
        at = job.next_guest
    change_rate(s, host)
    charge_for(s, host, counted + (s.jobs[host].held - gpus))


@inner
def charge_for(s, j, counted):  # type: ignore[no-untyped-def]
    """Set the GPUs counted for a job from now on; pending overhead was charged for the former number."""
    job = s.jobs[j]
    if job.stalls == 0:
        job.overhead += _to_come(s, j) * (counted - job.counted)
    if job.reload == 1:
        job.load += loading(s, j) * (counted - job.counted)
    job.counted = counted


@inner
def _to_come(s, j):  # type: ignore[no-untyped-def]
    """Charged but still pending seconds of a job's overhead."""
    job = s.jobs[j]
    now = s.g[0].now
    seconds = max(job.last - now, 0.0)
    if job.state == SUSPENDING and s.node_at[j] >= 0:
        seconds += min(job.stopping, s.heap_t[s.node_at[j]] - now)
    return seconds


@inner
def _heir(s, j):  # type: ignore[no-untyped-def]
    # A host leaves: its largest guest takes over, of several the earliest. It covers all others.
    job = s.jobs[j]
    before, heir = -1, job.guest
    while s.jobs[heir].next_guest >= 0:
        before, heir = heir, s.jobs[heir].next_guest
    new = s.jobs[heir]
    if before >= 0:
        s.jobs[before].next_guest = -1
        new.guest = job.guest
    new.sharers = job.sharers - 1
    new.sliced = job.sliced
    new.host = -1
    job.guest = -1
    job.sharers = 0
    at = new.guest
    while at >= 0:
        s.jobs[at].host = heir
        at = s.jobs[at].next_guest
    s.attempts[new.row].own = s.g[0].now
    s.queue_used[new.queue] += new.held
    s.share_used[new.share] += new.held
    new_rates(s, heir)
    return heir


@inner
def begin(s, j, cost):  # type: ignore[no-untyped-def]
    """Run a job that holds its GPUs, after `cost` seconds of overhead."""
    now = s.g[0].now
    job = s.jobs[j]
    job.state = RUNNING
    job.start = now
    # its earlier run time also counts if it resumes with its progress
    job.due = now + job.limit - (job.ran - job.anew)
    job.seen = now
    job.last = now + cost
    job.overhead += cost * job.counted
    if np.isnan(job.first_start):
        job.first_start = now
    set_phase(s, j)
    job.rate = rate_of(s, j)
    plan_end(s, j)


@inner
def transfer(s, j, start):  # type: ignore[no-untyped-def]
    """Seconds of the transfer of the job's checkpoint to or from storage, starting at `start`.

    Concurrent transfers share the storage's bandwidth; a share is fixed until the transfer's end.
    """
    g = s.g[0]
    job = s.jobs[j]
    if job.bytes <= 0:
        return 0.0
    wanted = job.link
    size = 0
    for k in range(g.moving):
        i = s.moving[k]
        other = s.jobs[i]
        if i != j and other.moved > g.now:
            s.moving[size] = i
            size += 1
            if other.moved > start:
                wanted += other.link
    s.moving[size] = j
    g.moving = size + 1
    seconds = job.bytes / job.link * max(1.0, wanted / g.storage)
    job.moved = start + seconds
    return seconds


@inner
def resume_cost(s, j):  # type: ignore[no-untyped-def]
    """Seconds of overhead at the job's start, if it was preempted and loads a checkpoint."""
    job = s.jobs[j]
    if job.reload == 1:
        return reload_cost(s, j)
    if job.preempts == 0 or job.done <= 0:
        return 0.0
    return job.resume + transfer(s, j, s.g[0].now + job.resume)


@inner
def launch(s, j, reason):  # type: ignore[no-untyped-def]
    """Start a waiting job on the GPUs in `choice`."""
    g = s.g[0]
    job = s.jobs[j]
    g.waiting -= 1
    gpus = take(s, j, 0)
    note(s, D_START, j, gpus, job.row, reason)
    begin(s, j, resume_cost(s, j))


@inner
def unspent(s, j):  # type: ignore[no-untyped-def]
    """Refund overhead that was charged at the start but not used."""
    job = s.jobs[j]
    now = s.g[0].now
    if job.last > now:
        job.overhead -= (job.last - now) * job.counted
        if job.reload == 1:
            job.load -= loading(s, j) * job.counted
        job.last = now
    else:
        job.reload = 0
    if job.state == SUSPENDING and s.node_at[j] >= 0 and job.stalls == 0:
        job.overhead -= min(job.stopping, s.heap_t[s.node_at[j]] - now) * job.counted


@inner
def stop(s, j, how):  # type: ignore[no-untyped-def]
    """Release a job's GPUs and requeue it."""
    cancel(s, j)
    s.jobs[j].rate = 0.0
    give_back(s, j, how)
    enqueue(s, j)


@inner
def finish(s, j):  # type: ignore[no-untyped-def]
    """End the job for good."""
    g = s.g[0]
    job = s.jobs[j]
    job.state = FINISHED
    job.end = g.now
    g.left -= 1
    cancel(s, s.jobs.size + j)
    emit(s, E_FINISHED, j)
    if s.children.size > 0:
        for k in range(s.child_first[j], s.child_first[j + 1]):
            child = s.jobs[s.children[k]]
            child.parents -= 1
            if child.parents == 1 and child.think > 0:
                schedule(s, s.children[k], g.now + child.think, C_ARRIVE)
            elif child.parents == 0 and child.eligible == 1 and child.state == HELD:
                enqueue(s, s.children[k])


@inner
def time_is_up(s, j):  # type: ignore[no-untyped-def]
    """End the job at its time limit."""
    job = s.jobs[j]
    note(s, D_TIMEOUT, j, job.held, job.row, 0)
    give_back(s, j, A_TIMEOUT)
    finish(s, j)


@inner
def segment_ends(s, j):  # type: ignore[no-untyped-def]
    """End the job's segment: the job ends, or requeues if the trace records a failure there."""
    g = s.g[0]
    job = s.jobs[j]
    settle(s, j)
    unspent(s, j)
    timed_out = g.limits == 1 and g.now >= job.due and job.done < job.work - 1e-9
    if not timed_out and job.change < job.work:
        job.done = max(job.done, job.change)
        set_phase(s, j)
        change_rate(s, j)
        return
    if not timed_out:
        job.done = job.work
        early(s, j)
    fails = s.segment_fails[job.segment] == 1
    held = job.held
    if not timed_out and fails and job.segment < job.last_segment:
        note(s, D_FAIL, j, held, job.row, 0)
        next_segment(s, j)
        stop(s, j, A_FAILED)
        return
    if not timed_out and job.segment < job.last_segment and g.stops == 1:
        note(s, D_PREEMPT, j, held, job.row, 0)
        job.preempts += 1
        next_segment(s, j)
        stop(s, j, A_PREEMPTED)
        return
    if not timed_out and job.segment < job.last_segment:
        # segments that the trace ended for another reason (its own preemption) are one piece of work here
        job.segment += 1
        job.work += s.segment_s[job.segment]
        plan_end(s, j)
        return
    if timed_out:
        time_is_up(s, j)
        return
    note(s, D_FAIL if fails else D_FINISH, j, held, job.row, 0)
    give_back(s, j, A_FAILED if fails else A_FINISHED)
    finish(s, j)
