"""The compiled pass of Tetris: the job whose demands align best with a node's free resources, less its remaining work.

A shape's score on nodes changes only with the nodes: it is kept between passes, and recomputed only for changed nodes.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints, rows
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.engine.job_life_kernel import launch
from gpuctl.replay.engine.loop_kernel import loop
from gpuctl.replay.engine.placement_kernel import free_for
from gpuctl.replay.engine.reasons import REASONS
from gpuctl.replay.engine.resource_kernel import choose_for, dominant_share, room_for, room_in, units_of
from gpuctl.replay.engine.state import WAITING
from gpuctl.replay.models.resources import UNBOUND
from gpuctl.replay.order.order_kernel import remaining
from gpuctl.replay.order.waiting_kernel import insert, pop

R_ALIGNED = len(REASONS)
TETRIS_REASONS = ("aligns best with what is free, less its remaining work",)

LONGEST_S = 1e12
"""Cap of remaining work, also used for a job that exceeds its prediction and has no epochs."""

NOWHERE, SEVERAL = -1, -2

TETRIS = np.dtype(
    [
        ("weight", "f8"),  # weight of the remaining work against alignment
        ("fairness", "f8"),  # share of the tenants left out, those with the largest shares
        ("whole", "i8"),  # a gang is split over as few nodes as possible, or waits
        ("parties", "i8"),  # in `order`
    ],
    align=True,
)

SHAPE = np.dtype(
    [
        ("job", "i8"),  # one of the jobs with this request
        ("node", "i8"),  # where it aligns best; or NOWHERE, SEVERAL
        ("align", "f8"),
        ("stale", "i8"),
        ("demand", "f8"),  # sum of its shares of the total of all nodes
    ],
    align=True,
)

GROUP = np.dtype([("kind", "i8"), ("waiting", "i8"), ("work", "f8")], align=True)
"""The jobs of a tenant with equal requests: number waiting, and the sum of their remaining work."""

SEEN = np.dtype([("free", "i8"), ("cpu", "i8"), ("mem", "i8"), ("up", "i8")], align=True)


class Packing(Bundle):
    """Input and memory of the policy."""

    p = rows(TETRIS)  # one record of `TETRIS`
    shapes = rows(SHAPE)  # records of `SHAPE`
    groups = rows(GROUP)  # records of `GROUP`
    first = ints()  # first group of each tenant [tenants + 1]
    weights = floats()  # of the parties [parties]
    order = ints()  # tenants by share, ascending, as last sorted [tenants]
    share = floats()  # of each party
    waiting = ints()  # jobs of each party that wait
    seen = rows(SEEN)  # nodes at the last update of shapes
    room = ints()  # units that fit, by node, scratch
    rest = floats()  # seconds of later segments, by segment
    bias = floats()  # predicted less true run time of each job


# ---- alignment


@inner
def alignment(s, number, j, units):  # type: ignore[no-untyped-def]
    """The dot product of a node's free resources and the need of some units, both as shares of the node."""
    node = s.nodes[number]
    total = 0.0
    if s.jobs[j].gpus > 0:
        total = (node.free / node.cap) * (units / node.cap)
    if s.g[0].resources == 1:
        ask, stock = s.asks[j], s.stock[number]
        part = units / ask.units
        if 0 < stock.cpu < UNBOUND:
            total += (stock.cpu_free / stock.cpu) * (ask.cpu * part / stock.cpu)
        if 0 < stock.mem < UNBOUND:
            total += (stock.mem_free / stock.mem) * (ask.mem * part / stock.mem)
    return total


@inner
def _on_one(s, f, k):  # type: ignore[no-untyped-def]
    """The node on which a shape aligns best as a whole, the lowest of several."""
    shape = f.shapes[k]
    units = units_of(s, shape.job)
    shape.node, shape.align = NOWHERE, 0.0
    for number in range(s.nodes.size):
        if room_for(s, number, shape.job) >= units:
            found = alignment(s, number, shape.job, units)
            if shape.node < 0 or found > shape.align:
                shape.node, shape.align = number, found


@inner
def _on_several(s, f, j):  # type: ignore[no-untyped-def]
    """Place a gang piece by piece, each where it aligns best, and put the pieces into the choice.

    Returns:
        the sum of the pieces' alignments; below 0 if the gang does not fit, with nothing chosen.
    """
    g = s.g[0]
    g.chosen = 0
    units = units_of(s, j)
    if units <= 1 or free_for(s, s.jobs[j].mask) < s.jobs[j].gpus:
        return -1.0
    total, biggest = 0, 0
    for number in range(s.nodes.size):
        f.room[number] = room_for(s, number, j)
        total += f.room[number]
    if total < units:
        return -1.0
    most = s.nodes.size
    if f.p[0].whole == 1:
        for number in range(s.nodes.size):
            biggest = max(biggest, room_in(s, number, j))
        if biggest >= units:
            return -1.0
        most = (units + biggest - 1) // biggest
    left, score = units, 0.0
    while left > 0:
        best, its = -1, 0.0
        for number in range(s.nodes.size):
            if f.room[number] > 0:
                found = alignment(s, number, j, min(left, f.room[number]))
                if best < 0 or found > its:
                    best, its = number, found
        if g.chosen == most:
            # too many nodes: undo
            g.chosen = 0
            return -1.0
        some = min(left, f.room[best])
        choose_for(s, best, j, some)
        f.room[best] = 0
        left -= some
        score += its
    return score


@inner
def _evaluate(s, f, k):  # type: ignore[no-untyped-def]
    """Update where a shape aligns best."""
    shape = f.shapes[k]
    shape.stale = 0
    _on_one(s, f, k)
    if shape.node == NOWHERE:
        score = _on_several(s, f, shape.job)
        if score >= 0:
            shape.node, shape.align = SEVERAL, score


@inner
def _update_shapes(s, f):  # type: ignore[no-untyped-def]
    """Find the changed nodes, and update the shapes."""
    for number in range(s.nodes.size):
        node, seen = s.nodes[number], f.seen[number]
        cpu, mem = 0, 0
        if s.g[0].resources == 1:
            cpu, mem = s.stock[number].cpu_free, s.stock[number].mem_free
        if seen.free == node.free and seen.cpu == cpu and seen.mem == mem and seen.up == node.up:
            continue
        seen.free, seen.cpu, seen.mem, seen.up = node.free, cpu, mem, node.up
        for k in range(f.shapes.size):
            shape = f.shapes[k]
            if shape.stale == 1:
                continue
            if shape.node < 0 or shape.node == number:
                shape.stale = 1
                continue
            units = units_of(s, shape.job)
            if room_for(s, number, shape.job) >= units:
                found = alignment(s, number, shape.job, units)
                if found > shape.align or (found == shape.align and number < shape.node):
                    shape.node, shape.align = number, found


# ---- the pass


@inner
def _considered(s, f):  # type: ignore[no-untyped-def]
    """Sort the tenants by share; returns the position after the last one considered."""
    p = f.p[0]
    count = 0
    for k in range(p.parties):
        party = f.order[k]
        f.share[party] = dominant_share(s, party, f.weights[party])
        count += f.waiting[party] > 0
        at = k
        while at > 0:
            other = f.order[at - 1]
            if f.share[other] < f.share[party] or (f.share[other] == f.share[party] and other < party):
                break
            f.order[at] = other
            at -= 1
        f.order[at] = party
    wanted = int(np.ceil((1.0 - p.fairness) * count - 1e-9))
    for k in range(p.parties):
        if wanted == 0:
            return k
        wanted -= f.waiting[f.order[k]] > 0
    return p.parties


@inner
def _best(s, q, f, end):  # type: ignore[no-untyped-def]
    """The group whose first job scores best; -1 none fits."""
    aligned, work = 0.0, 0.0
    for k in range(end):
        party = f.order[k]
        if f.waiting[party] == 0:
            continue
        for at in range(f.first[party], f.first[party + 1]):
            group = f.groups[at]
            if group.waiting > 0:
                shape = f.shapes[group.kind]
                if shape.stale == 1:
                    _evaluate(s, f, group.kind)
                if shape.node != NOWHERE:
                    aligned += group.waiting * shape.align
                    work += group.work
    epsilon = f.p[0].weight * aligned / work if work > 0 else 0.0
    best, most = -1, 0.0
    for k in range(end):
        party = f.order[k]
        if f.waiting[party] == 0:
            continue
        for at in range(f.first[party], f.first[party + 1]):
            group = f.groups[at]
            if group.waiting > 0 and f.shapes[group.kind].node != NOWHERE:
                j = q.head[at]
                score = f.shapes[group.kind].align - epsilon * q.key[j]
                if best < 0 or score > most or (score == most and j < q.head[best]):
                    best, most = at, score
    return best


@inner
def _pass(s, q, f):  # type: ignore[no-untyped-def]
    while s.g[0].waiting > 0:
        _update_shapes(s, f)
        at = _best(s, q, f, _considered(s, f))
        if at < 0:
            return
        j = pop(q, at)
        group = f.groups[at]
        group.waiting -= 1
        group.work = group.work - q.key[j] if group.waiting > 0 else 0.0
        f.waiting[s.jobs[j].share] -= 1
        node = f.shapes[group.kind].node
        if node == SEVERAL:
            _on_several(s, f, j)
        else:
            s.g[0].chosen = 0
            choose_for(s, node, j, units_of(s, j))
        launch(s, j, R_ALIGNED)


@inner
def waits(s, j, q, f):  # type: ignore[no-untyped-def]
    """Handle a job queued for the first time or again."""
    if s.jobs[j].state != WAITING:
        return
    group = f.groups[q.group[j]]
    q.key[j] = f.shapes[group.kind].demand * min(remaining(s, f, j), LONGEST_S)
    insert(q, j)
    group.waiting += 1
    group.work += q.key[j]
    f.waiting[s.jobs[j].share] += 1


@inner
def decide(s, q, f):  # type: ignore[no-untyped-def]
    """Start the jobs that align best with free resources."""
    g = s.g[0]
    if g.waiting > 0 and (g.free > 0 or g.resources == 1):
        _pass(s, q, f)


@compiled
def run(s, q, f, until, steps):  # type: ignore[no-untyped-def]
    """Advance by a number of instants, or to the end. Returns as `step` does."""
    return loop(s, (q, f), until, steps, decide=decide, on_submit=waits, on_requeue=waits)
