"""The compiled pass of the `pickyman` policy: chooses victims, and whether waiting is cheaper.

Reconstructed from the published abstract (PickyMan, IPCCC 2022): the greedy ordered division of running jobs into
victims, with predicted run times and overheads, is from there; scores, limits and order are assumed.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.instant_kernel import named_timer
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import choose, find, hide, largest, suits
from gpuctl.replay.engine.preemption_kernel import must_go_on, preempt
from gpuctl.replay.engine.reasons import R_FIRST, R_GIVES_WAY, R_NEAR_EPOCH_END, R_PREEMPTING, R_SKIPPED
from gpuctl.replay.engine.state import ANY, EPOCH, FILL, RUNNING, SPREAD, SUSPENDING, WAITING
from gpuctl.replay.policies.pickyman.lookahead_kernel import (
    begin_queue,
    predicted_of,
    refresh,
    start_on_choice,
    turn_of,
)

MOST_LOOKS = 1000.0
"""Passes per epoch of any running job: costs of preemption hardly change in between."""

# ---- gangs that wait for their victims


@inner
def _promise(s, f, node, gpus):  # type: ignore[no-untyped-def]
    """Hide more (or fewer) GPUs of a node from other searches."""
    f.claimed[node] += gpus
    hide(s, node, min(s.nodes[node].free, f.claimed[node]))


@inner
def _add_pieces(s, f, j, sign, sim):  # type: ignore[no-untyped-def]
    """Add the GPUs that a running job holds to a count by node, or take them off."""
    row = s.attempts[s.jobs[j].row]
    for at in range(row.first, row.first + row.pieces):
        sim[s.pieces[at].node] += sign * s.pieces[at].gpus


@inner
def _unclaimed(s, f):  # type: ignore[no-untyped-def]
    """Count by node, in `sim`, the unclaimed GPUs that are free or being released."""
    for number in range(s.nodes.size):
        f.sim[number] = (s.nodes[number].free if s.nodes[number].up == 1 else 0) - f.claimed[number]
    for k in range(f.p[0].running):
        j = f.run[k]
        if s.jobs[j].state == SUSPENDING or f.leaving[j] == 1:
            _add_pieces(s, f, j, 1, f.sim)


@inner
def _serve_claims(s, f):  # type: ignore[no-untyped-def]
    """Start the gangs whose victims are gone; drop claims for which too few GPUs are being released."""
    p = f.p[0]
    if p.claims == 0:
        return
    for number in range(s.nodes.size):
        if f.claimed[number] > 0:
            hide(s, number, min(s.nodes[number].free, f.claimed[number]))
    _unclaimed(s, f)
    count, pieces = 0, 0
    for k in range(p.claims):
        j = f.claim_job[k]
        first, until = f.claim_first[k], f.claim_first[k + 1]
        ready, hopeless = True, s.jobs[j].state != WAITING
        for c in range(first, until):
            node = s.nodes[f.claim_node[c]]
            ready &= node.up == 1 and node.free >= f.claim_gpus[c]
            hopeless |= f.sim[f.claim_node[c]] < 0
        ready &= not hopeless
        if ready or hopeless:
            s.g[0].chosen = 0
            for c in range(first, until):
                _promise(s, f, f.claim_node[c], -f.claim_gpus[c])
                f.sim[f.claim_node[c]] += f.claim_gpus[c]
                if ready:
                    choose(s, f.claim_node[c], f.claim_gpus[c])
                    f.sim[f.claim_node[c]] -= f.claim_gpus[c]
            if ready:
                start_on_choice(s, f, j, R_PREEMPTING)
            continue
        f.claim_job[count] = j
        f.claim_first[count] = pieces
        for c in range(first, until):
            f.claim_node[pieces], f.claim_gpus[pieces] = f.claim_node[c], f.claim_gpus[c]
            pieces += 1
        count += 1
        f.claim_first[count] = pieces
    p.claims, p.pieces = count, pieces


@inner
def _claims(f, j):  # type: ignore[no-untyped-def]
    found = False
    for k in range(f.p[0].claims):
        found |= f.claim_job[k] == j
    return found


# ---- whether a gang would fit


@inner
def _on_one(s, f, mask, gpus):  # type: ignore[no-untyped-def]
    """The node that could hold the gang with least to spare; -1 none."""
    best = -1
    for number in range(s.nodes.size):
        if f.sim[number] >= gpus and suits(s, number, mask) and (best < 0 or f.sim[number] < f.sim[best]):
            best = number
    return best


@inner
def _on_several(s, f, mask, gpus, whole):  # type: ignore[no-untyped-def]
    """Whether several nodes could hold the gang: all except one of them completely, if required."""
    biggest = largest(s, mask)
    need, rest = gpus // biggest, gpus % biggest
    full, total, best = 0, 0, 0
    for number in range(s.nodes.size):
        if f.sim[number] > 0 and suits(s, number, mask):
            total += f.sim[number]
            if f.sim[number] >= biggest:
                full += 1
            else:
                best = max(best, f.sim[number])
    if not whole:
        return total >= gpus
    return full > need or (full == need and best >= rest)


@inner
def _fits(s, f, j, scattered):  # type: ignore[no-untyped-def]
    """Whether the gang would fit into `sim`; over several nodes only if it must or may."""
    job = s.jobs[j]
    if job.gpus <= largest(s, job.mask) and _on_one(s, f, job.mask, job.gpus) >= 0:
        return True
    how = f.how[j]
    if how == ANY or how == FILL or how == SPREAD:
        return (scattered or job.gpus > largest(s, job.mask)) and _on_several(s, f, job.mask, job.gpus, False)
    return job.gpus > largest(s, job.mask) and _on_several(s, f, job.mask, job.gpus, True)


@inner
def _natural_start(s, f, j):  # type: ignore[no-untyped-def]
    """The second at which predicted ends of running jobs will have made room for the gang; inf: never."""
    if f.natural_of[f.kind[j]] == f.p[0].passes:
        return f.natural[f.kind[j]]
    _unclaimed(s, f)
    at = s.g[0].now
    k = 0
    while not _fits(s, f, j, True):
        if k == f.p[0].running:
            at = np.inf
            break
        i = f.run[k]
        if s.jobs[i].state == RUNNING and f.leaving[i] == 0:
            _add_pieces(s, f, i, 1, f.sim)
            at = f.end[i]
        k += 1
    f.natural[f.kind[j]] = at
    f.natural_of[f.kind[j]] = f.p[0].passes
    return at


# ---- choice of victims


@inner
def _candidate(s, f, i, mask, predicted):  # type: ignore[no-untyped-def]
    """Whether a running job may be preempted for a job with this predicted run time."""
    job = s.jobs[i]
    if job.state != RUNNING or f.leaving[i] == 1 or f.picked[i] == 1 or job.preempts >= f.p[0].most:
        return False
    now = s.g[0].now
    if max(f.end[i] - now, 0.0) * job.rate <= predicted + f.loss[i]:
        return False
    if must_go_on(s, i, s.g[0].mode):
        return False
    if job.epoch < np.inf and (now - job.start) * job.rate < job.epoch:
        return False
    row = s.attempts[job.row]
    fit = True
    for at in range(row.first, row.first + row.pieces):
        fit &= suits(s, s.pieces[at].node, mask)
    return fit


@inner
def _pick(s, f, j, predicted):  # type: ignore[no-untyped-def]
    """Choose victims for a gang, the cheapest per GPU first, until it fits; then spare superfluous ones.

    Returns:
        Whether it fits; the victims are in `victims`, and the available GPUs in `sim`.
    """
    p = f.p[0]
    job = s.jobs[j]
    for scattered in range(2):
        _unclaimed(s, f)
        p.victims = 0
        fits = False
        while not fits:
            best = -1
            least = 0.0
            for k in range(p.running):
                i = f.run[k]
                score = (f.loss[i] + predicted) / s.jobs[i].held if s.jobs[i].held > 0 else np.inf
                if (best < 0 or score < least) and _candidate(s, f, i, job.mask, predicted):
                    best, least = i, score
            if best < 0:
                break
            f.picked[best] = 1
            f.victims[p.victims] = best
            p.victims += 1
            _add_pieces(s, f, best, 1, f.sim)
            fits = _fits(s, f, j, scattered == 1)
        if fits:
            _spare(s, f, j, scattered == 1)
        for k in range(p.victims):
            f.picked[f.victims[k]] = 0
        if fits:
            return True
    return False


@inner
def _spare(s, f, j, scattered):  # type: ignore[no-untyped-def]
    """Drop victims without which the gang still fits, the costliest first."""
    p = f.p[0]
    for _ in range(p.victims):
        worst = -1
        for k in range(p.victims):
            i = f.victims[k]
            if f.picked[i] == 1 and (worst < 0 or f.loss[i] > f.loss[worst]):
                worst = i
        if worst < 0:
            break
        _add_pieces(s, f, worst, -1, f.sim)
        if _fits(s, f, j, scattered):
            f.picked[worst] = 0
        else:
            _add_pieces(s, f, worst, 1, f.sim)
            # checked: it has to stay
            f.picked[worst] = 2
    size = 0
    for k in range(p.victims):
        i = f.victims[k]
        if f.picked[i] == 2:
            f.victims[size] = i
            size += 1
        f.picked[i] = 0
    p.victims = size


@inner
def _worth_it(s, f, j, predicted, natural):  # type: ignore[no-untyped-def]
    """Whether the gang gains more time than its victims lose together."""
    p = f.p[0]
    wait, cost = 0.0, 0.0
    for k in range(p.victims):
        i = f.victims[k]
        wait = max(wait, f.delay[i])
        cost += f.loss[i] + predicted
    return p.victims > 0 and natural - (s.g[0].now + wait) > cost


@inner
def _claim(s, f, j):  # type: ignore[no-untyped-def]
    """Claim GPUs of `sim` for the gang."""
    p = f.p[0]
    job = s.jobs[j]
    left = job.gpus
    one = _on_one(s, f, job.mask, job.gpus) if left <= largest(s, job.mask) else -1
    while left > 0:
        best = one
        for number in range(s.nodes.size):
            if (
                one < 0
                and f.sim[number] > 0
                and suits(s, number, job.mask)
                and (best < 0 or f.sim[number] > f.sim[best])
            ):
                best = number
        some = min(left, f.sim[best])
        f.claim_node[p.pieces], f.claim_gpus[p.pieces] = best, some
        p.pieces += 1
        f.sim[best] -= some
        left -= some
        _promise(s, f, best, some)
    f.claim_job[p.claims] = j
    p.claims += 1
    f.claim_first[p.claims] = p.pieces


@inner
def _preempt_for(s, f, j):  # type: ignore[no-untyped-def]
    """Preempt the victims, and claim their GPUs for the gang."""
    p = f.p[0]
    g = s.g[0]
    _claim(s, f, j)
    freed = False
    for k in range(p.victims):
        i = f.victims[k]
        ahead = f.delay[i] - s.jobs[i].suspend - s.jobs[i].bytes / s.jobs[i].link
        near = g.mode == EPOCH and ahead * s.jobs[i].rate <= p.near * s.jobs[i].epoch
        if preempt(s, i, g.mode, R_NEAR_EPOCH_END if near else R_GIVES_WAY):
            f.wait[p.waiting] = i
            p.waiting += 1
            freed = True
        elif s.jobs[i].state == RUNNING:
            f.leaving[i] = 1
    if freed:
        _serve_claims(s, f)


@inner
def _shortest_epoch(s, f):  # type: ignore[no-untyped-def]
    """Shortest seconds between two checkpoints of a running job; 0 if none writes any."""
    shortest = np.inf
    for k in range(f.p[0].running):
        job = s.jobs[f.run[k]]
        if job.state == RUNNING and job.rate > 0:
            shortest = min(shortest, job.epoch / job.rate)
    return shortest if shortest < np.inf else 0.0


@inner
def decide(s, f):  # type: ignore[no-untyped-def]
    """One pass at this instant."""
    g = s.g[0]
    p = f.p[0]
    refresh(s, f)
    _serve_claims(s, f)
    p.passes += 1
    skipped = False
    looked = 0
    for k in range(p.waiting):
        j = f.wait[k]
        job = s.jobs[j]
        if job.state != WAITING or _claims(f, j):
            continue
        if f.bad[f.kind[j]] != p.passes:
            if find(s, job.mask, job.gpus, f.how[j]):
                start_on_choice(s, f, j, R_SKIPPED if skipped else R_FIRST)
                continue
            f.bad[f.kind[j]] = p.passes
        if looked == p.depth:
            continue
        if not skipped:
            begin_queue(s, f)
        skipped = True
        looked += 1
        predicted = predicted_of(s, f, j)
        natural = max(turn_of(s, f, j, predicted), _natural_start(s, f, j))
        if natural - g.now > predicted and _pick(s, f, j, predicted) and _worth_it(s, f, j, predicted, natural):
            _preempt_for(s, f, j)
    if g.waiting > 0 and g.running > 0 and p.every > 0:
        named_timer(s, 0, g.now + max(p.every, _shortest_epoch(s, f) / MOST_LOOKS))


@compiled
def run(s, f, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants. Returns as `step` does."""
    return loop(s, (f,), until, steps, decide=decide)
