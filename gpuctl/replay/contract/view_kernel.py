"""The compiled calls behind a policy written in Python: one call per step, one per decision.

Each takes the address of the simulation, since numbers are passed fast, and checks that the given numbers of jobs,
nodes and classes exist. An action returns -1 if it cannot be carried out, and NO_ROOM if it can but arrays lack room
for what it might write; in both cases it has done nothing.
"""

from __future__ import annotations

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.contract.search_kernel import (
    drop_reservation,
    is_job,
    is_node,
    may_hold_until,
    may_run_on,
    reserved,
    search,
    unreserved,
    within_limit,
)
from gpuctl.replay.engine.checkpoint_kernel import progress_at
from gpuctl.replay.engine.gpu_type_kernel import may_pack, rate_now
from gpuctl.replay.engine.instant_kernel import (
    end_leases,
    grant,
    job_timer,
    migrate,
    named_timer,
    next_instant,
    reject,
    resize,
    room,
)
from gpuctl.replay.engine.job_life_kernel import launch, note
from gpuctl.replay.engine.loan_kernel import lend
from gpuctl.replay.engine.placement_kernel import choose, set_free, suits
from gpuctl.replay.engine.preemption_kernel import preempt
from gpuctl.replay.engine.resource_kernel import lend_own, needs_met
from gpuctl.replay.engine.rounds_kernel import rounds
from gpuctl.replay.engine.sharing_kernel import covers_guests, extend, guests_on, lay_out, own_on, regrow, share
from gpuctl.replay.engine.speed_curve_kernel import scale
from gpuctl.replay.engine.state import (
    D_RESERVE,
    D_UNRESERVE,
    E_QUEUED,
    NAMED_TIMERS,
    NO_ROOM,
    RUNNING,
    STEPPED,
    WAITING,
    state_at,
)


@inner
def _news(s):  # type: ignore[no-untyped-def]
    count = 0
    for k in range(s.g[0].events):
        if s.events[k].kind == E_QUEUED:
            if count >= s.fresh.size:
                raise IndexError("a job is queued twice at one instant")
            s.fresh[count] = s.events[k].who
            count += 1
    return count


@inner
def _hears(s, kinds):  # type: ignore[no-untyped-def]
    """Whether an event of a kind that the policy handles has happened at this instant."""
    for k in range(s.g[0].events):
        if kinds >> s.events[k].kind & 1:
            return True
    return False


@compiled
def next_decision(address, until, steps, ask, kinds):  # type: ignore[no-untyped-def]
    """Advance to the next instant at which the policy decides.

    Args:
        address: of the simulation.
        until: the last instant.
        steps: most instants to advance.
        ask: 1: if jobs wait; 2: always; 0: for events only.
        kinds: a bit per kind of event at which it also decides.

    Returns:
        Status, time, number of fresh jobs (-1: no decision), free GPUs, jobs that wait or hold GPUs, and number of node
            events so far.
    """
    s = state_at(address)
    g = s.g[0]
    for _ in range(steps):
        status = next_instant(s, until)
        if status != STEPPED:
            return status, g.now, 0, g.free, 0, g.machine
        if g.span > 0:
            rounds(s)
        if ask == 2 or (ask == 1 and g.waiting > 0) or (kinds != 0 and _hears(s, kinds)):
            return STEPPED, g.now, _news(s), g.free, g.waiting + g.running, g.machine
        end_leases(s)
        g.decision_phase = 0
    return STEPPED, g.now, -1, g.free, 0, g.machine


@compiled
def decided(address):  # type: ignore[no-untyped-def]
    """End the leases that the policy has not renewed; if there are any, it decides once more."""
    s = state_at(address)
    if not room(s):
        return NO_ROOM
    end_leases(s)
    s.g[0].decision_phase = 0
    return 1


@compiled
def start(address, j, wanted, how, kind, reason):  # type: ignore[no-untyped-def]
    """Start a waiting job where it fits, on `wanted` GPUs (0: its gang) of a type.

    Returns the GPUs still free; -1 if it does not fit, does not wait, or cannot run on that many.
    """
    s = state_at(address)
    if not is_job(s, j):
        return -1
    g = s.g[0]
    job = s.jobs[j]
    gpus = wanted if wanted != 0 else job.gpus
    if job.state != WAITING or g.free < gpus or not may_run_on(s, j, gpus) or not within_limit(s, j, gpus):
        return -1
    if not room(s):
        return NO_ROOM
    if not search(s, j, gpus, how, kind):
        return -1
    if g.reservations > 0:
        drop_reservation(s, j)
    launch(s, j, reason)
    return g.free


@compiled
def clear(address):  # type: ignore[no-untyped-def]
    """Begin an explicit choice."""
    state_at(address).g[0].chosen = 0


@inner
def _keeps(s, j, node):  # type: ignore[no-untyped-def]
    """Whether a node has GPUs reserved for another job from before this one's limit."""
    place = s.nodes[node]
    return place.reserved_for >= 0 and place.reserved_for != j and may_hold_until(s, j) > place.reserved_from


@compiled
def add(address, j, node, gpus):  # type: ignore[no-untyped-def]
    """Choose GPUs of a node for a job; false if too few are free or the node does not suit the job.

    The job's own GPUs there count as free, except a guest's, which belong to its host.
    """
    s = state_at(address)
    if not is_job(s, j) or not is_node(s, node):
        return False
    place = s.nodes[node]
    job = s.jobs[j]
    free = place.free
    if job.state == RUNNING:
        free += own_on(s, j, node) + guests_on(s, j, node)
    for k in range(s.g[0].chosen):
        if s.choice[k].node == node:
            return False
    if _keeps(s, j, node):
        free -= place.reserved_gpus
    if gpus < 1 or free < gpus or not suits(s, node, job.mask):
        return False
    choose(s, node, gpus)
    return True


@inner
def _chosen(s):  # type: ignore[no-untyped-def]
    total = 0
    for k in range(s.g[0].chosen):
        total += s.choice[k].gpus
    return total


@compiled
def start_chosen(address, j, wanted, reason):  # type: ignore[no-untyped-def]
    """Start a waiting job on its choice; -1 unless that is the whole gang, or `wanted` GPUs."""
    s = state_at(address)
    if not is_job(s, j):
        return -1
    job = s.jobs[j]
    gpus = wanted if wanted != 0 else job.gpus
    if job.state != WAITING or _chosen(s) != gpus or not may_run_on(s, j, gpus) or not within_limit(s, j, gpus):
        return -1
    if not needs_met(s, j) or s.g[0].chosen == 0:
        return -1
    if not room(s):
        return NO_ROOM
    if s.g[0].reservations > 0:
        drop_reservation(s, j)
    launch(s, j, reason)
    return 1


@inner
def _leaves_guests(s, j):  # type: ignore[no-untyped-def]
    """Whether a host's choice avoids the GPUs on which its guests stay."""
    for k in range(s.g[0].chosen):
        piece = s.choice[k]
        if piece.gpus > s.nodes[piece.node].free + own_on(s, j, piece.node):
            return False
    return True


@compiled
def move_chosen(address, j, other_size, reason):  # type: ignore[no-untyped-def]
    """Move a running job to its choice: as many GPUs as it has, or with `other_size` more or fewer.

    A guest leaves its host. A host keeps its guests if it is resized, and leaves them if it moves.
    """
    s = state_at(address)
    if not is_job(s, j):
        return -1
    job = s.jobs[j]
    total = _chosen(s)
    if job.state != RUNNING or total == 0 or (total != job.held) != other_size:
        return -1
    more = total if job.host >= 0 else total - job.held
    if (other_size and not may_run_on(s, j, total)) or not within_limit(s, j, more):
        return -1
    keeps = job.guest >= 0 and other_size
    if job.guest >= 0 and not (covers_guests(s, j) if keeps else _leaves_guests(s, j)):
        return -1
    lend_own(s, j, 1)
    met = needs_met(s, j)
    lend_own(s, j, -1)
    if not met:
        return -1
    if not room(s):
        return NO_ROOM
    if keeps:
        regrow(s, j, reason)
    elif other_size:
        resize(s, j, reason)
    else:
        migrate(s, j, reason)
    return 1


@compiled
def find_for(address, j, gpus, how, kind, other_size):  # type: ignore[no-untyped-def]
    """Choose places for a running job on GPUs of a type; GPUs that it would leave count as free."""
    s = state_at(address)
    if not is_job(s, j):
        return False
    job = s.jobs[j]
    if job.state != RUNNING or gpus < 1 or gpus > s.g[0].free + job.held:
        return False
    if job.guest >= 0 and other_size:
        mask = job.mask
        job.mask = mask & reserved(s, j, kind)
        found = extend(s, j, gpus, how)
        job.mask = mask
        unreserved(s)
        return found
    row = s.attempts[job.row]
    for k in range(row.first, row.first + row.pieces):
        number = s.pieces[k].node
        set_free(s, number, s.nodes[number].free + own_on(s, j, number))
    lend_own(s, j, 1)
    found = search(s, j, gpus, how, kind)
    lend_own(s, j, -1)
    for k in range(row.first, row.first + row.pieces):
        number = s.pieces[k].node
        set_free(s, number, s.nodes[number].free - own_on(s, j, number))
    return found


@compiled
def stop_job(address, j, mode, reason):  # type: ignore[no-untyped-def]
    """Preempt a running job. Returns -1 if it does not run, 0 if its GPUs come later, 1 if they are free now."""
    s = state_at(address)
    if not is_job(s, j) or s.jobs[j].state != RUNNING:
        return -1
    if not room(s):
        return NO_ROOM
    return 1 if preempt(s, j, mode, reason) else 0


@compiled
def share_with(address, j, host, wanted, sliced, reason):  # type: ignore[no-untyped-def]
    """Start a waiting job on GPUs (0: its gang) of a running one; -1 if impossible."""
    s = state_at(address)
    if not is_job(s, j) or not is_job(s, host):
        return -1
    job, owner = s.jobs[j], s.jobs[host]
    gpus = wanted if wanted != 0 else job.gpus
    if job.state != WAITING or owner.state != RUNNING or owner.host >= 0 or owner.held < gpus or gpus < 1:
        return -1
    if not may_run_on(s, j, gpus) or not within_limit(s, j, gpus):
        return -1
    if owner.sharers > 0 and owner.sliced != sliced:
        return -1
    if sliced == 0 and s.g[0].paired == 1 and not may_pack(s, j, host):
        return -1
    lay_out(s, host, gpus)
    for k in range(s.g[0].chosen):
        number = s.choice[k].node
        if not suits(s, number, job.mask) or _keeps(s, j, number):
            return -1
    if not needs_met(s, j):
        return -1
    if not room(s):
        return NO_ROOM
    if s.g[0].reservations > 0:
        drop_reservation(s, j)
    share(s, j, host, sliced, reason)
    return 1


@compiled
def lease(address, j, until, reason):  # type: ignore[no-untyped-def]
    """Lease a running job its GPUs until `t`."""
    s = state_at(address)
    if not is_job(s, j) or s.jobs[j].state != RUNNING or not until > s.g[0].now:
        return -1
    if not room(s):
        return NO_ROOM
    grant(s, j, until, reason)
    return 1


@compiled
def wake(address, j, t):  # type: ignore[no-untyped-def]
    """Set the job's timer to `t`."""
    s = state_at(address)
    if not is_job(s, j) or not t >= s.g[0].now:
        return False
    job_timer(s, j, t)
    return True


@compiled
def timer(address, number, t):  # type: ignore[no-untyped-def]
    """Set a named timer to `t`."""
    s = state_at(address)
    if not 0 <= number < NAMED_TIMERS or not t >= s.g[0].now:
        return False
    named_timer(s, number, t)
    return True


@compiled
def refuse(address, j, reason):  # type: ignore[no-untyped-def]
    """Take a waiting job out of the queue for good."""
    s = state_at(address)
    if not is_job(s, j) or s.jobs[j].state != WAITING:
        return -1
    if not room(s):
        return NO_ROOM
    if s.g[0].reservations > 0:
        drop_reservation(s, j)
    reject(s, j, reason)
    return 1


@compiled
def loan(address, node, cls, until, notice, reason):  # type: ignore[no-untyped-def]
    """Lend an idle node to another class of nodes until a second."""
    s = state_at(address)
    if not is_node(s, node):
        return -1
    place = s.nodes[node]
    if place.up == 0 or place.free != place.cap or cls < 0 or cls >= s.class_free.size:
        return -1
    if not until > s.g[0].now or not notice >= 0:
        return -1
    if not room(s):
        return NO_ROOM
    lend(s, node, cls, until, notice, reason)
    return 1


@compiled
def may_keep(address, j, node, gpus):  # type: ignore[no-untyped-def]
    """Choose GPUs of a node to reserve for a waiting job; false if another job has a reservation there."""
    s = state_at(address)
    if not is_job(s, j) or not is_node(s, node):
        return False
    place = s.nodes[node]
    if (
        s.jobs[j].state != WAITING
        or gpus < 1
        or gpus > place.cap
        or (place.reserved_for >= 0 and place.reserved_for != j)
    ):
        return False
    choose(s, node, gpus)
    return True


@compiled
def reserve(address, j, t, reason):  # type: ignore[no-untyped-def]
    """Reserve the choice for a waiting job from `t` on: jobs that could run longer do not start there."""
    s = state_at(address)
    g = s.g[0]
    if not is_job(s, j):
        return -1
    if not room(s):
        return NO_ROOM
    for k in range(g.chosen):
        piece = s.choice[k]
        place = s.nodes[piece.node]
        if place.reserved_for < 0:
            g.reservations += 1
        place.reserved_for, place.reserved_gpus, place.reserved_from = j, piece.gpus, t
        note(s, D_RESERVE, j, piece.gpus, -1, reason)
    return 1


@compiled
def unreserve(address, j, reason):  # type: ignore[no-untyped-def]
    """Cancel a job's reservations; -1 if it has none."""
    s = state_at(address)
    if not is_job(s, j):
        return -1
    gpus = 0
    for number in range(s.nodes.size):
        if s.nodes[number].reserved_for == j:
            gpus += s.nodes[number].reserved_gpus
    if gpus == 0:
        return -1
    if not room(s):
        return NO_ROOM
    drop_reservation(s, j)
    note(s, D_UNRESERVE, j, gpus, -1, reason)
    return 1


@compiled
def speed_on(address, j, gpus):  # type: ignore[no-untyped-def]
    """Speed of a job on a number of GPUs, relative to its gang."""
    s = state_at(address)
    if not is_job(s, j) or gpus < 1:
        return 0.0
    return scale(s, j, gpus) / scale(s, j, s.jobs[j].gpus)


@compiled
def up_to_now(address, j):  # type: ignore[no-untyped-def]
    """The job's progress, service and run time now: done and total work of the segment, GPU-seconds, seconds."""
    s = state_at(address)
    if not is_job(s, j):
        return 0.0, 0.0, 0.0, 0.0
    job = s.jobs[j]
    now = s.g[0].now
    done, attained, ran = job.done, job.attained, job.ran
    if job.state == RUNNING:
        done = progress_at(s, j, max(0.0, now - job.last))
        attained += (now - job.seen) * job.counted
        ran += now - job.seen
    return done, job.work, attained, ran


@compiled
def rate(address, j):  # type: ignore[no-untyped-def]
    """A job's present progress, in reference seconds per second."""
    s = state_at(address)
    return rate_now(s, j) if is_job(s, j) else 0.0
