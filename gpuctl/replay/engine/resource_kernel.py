"""The compiled search for nodes by GPUs, CPUs and memory, and their allocation to gangs.

A gang consists of equal units: its GPUs, or, of a job without any, its CPUs. A unit takes an equal part of the gang's
request: a piece of ``p`` of ``n`` units takes ``ceil(p / n)`` of it, in thousandths of a CPU and in MB. If both are
abundant, every search chooses the same GPUs as ``placement_kernel``.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.placement_kernel import choose, find, free_for, lowest_of, suits
from gpuctl.replay.engine.state import CONSOLIDATE, FILL, SPREAD
from gpuctl.replay.models.resources import UNBOUND

# ---- what is held


@inner
def hold(s, j):  # type: ignore[no-untyped-def]
    """Allocate CPUs and memory of the pieces in `choice` to the new attempt."""
    g = s.g[0]
    used = s.share_need[s.jobs[j].share]
    for k in range(g.chosen):
        need, held = s.need[k], s.needs[g.pieces + k]
        stock = s.stock[s.choice[k].node]
        held.cpu, held.mem = need.cpu, need.mem
        stock.cpu_free -= need.cpu
        stock.mem_free -= need.mem
        used.cpu += need.cpu
        used.mem += need.mem


@inner
def let_go(s, j):  # type: ignore[no-untyped-def]
    """Release the CPUs and memory of a job's present attempt."""
    row = s.attempts[s.jobs[j].row]
    used = s.share_need[s.jobs[j].share]
    for k in range(row.first, row.first + row.pieces):
        held = s.needs[k]
        stock = s.stock[s.pieces[k].node]
        stock.cpu_free += held.cpu
        stock.mem_free += held.mem
        used.cpu -= held.cpu
        used.mem -= held.mem


@inner
def node_counts(s, number, sign):  # type: ignore[no-untyped-def]
    """Add a node's CPUs and memory (1), or remove them (-1)."""
    g = s.g[0]
    if g.resources == 1:
        stock = s.stock[number]
        if stock.cpu < UNBOUND:
            g.cpu += sign * stock.cpu
        if stock.mem < UNBOUND:
            g.mem += sign * stock.mem


# ---- how much of a gang fits


@inner
def room_on(s, number, j):  # type: ignore[no-untyped-def]
    """Units of a gang that fit on a node now; may exceed the gang."""
    node, job, ask, stock = s.nodes[number], s.jobs[j], s.asks[j], s.stock[number]
    if node.hidden > node.free or not suits(s, number, job.mask):
        return 0
    room = node.free - node.hidden if job.gpus > 0 else ask.units
    if stock.cpu_free < ask.cpu:
        room = min(room, stock.cpu_free * ask.units // ask.cpu)
    if stock.mem_free < ask.mem:
        room = min(room, stock.mem_free * ask.units // ask.mem)
    return room


@inner
def room_in(s, number, j):  # type: ignore[no-untyped-def]
    """Units of a gang that a node could hold if empty and up; 0 if it does not suit."""
    node, job = s.nodes[number], s.jobs[j]
    if job.mask >> np.uint64(node.cls) & np.uint64(1) == 0:
        return 0
    if s.g[0].resources == 0:
        return node.cap
    ask, stock = s.asks[j], s.stock[number]
    room = node.cap if job.gpus > 0 else ask.units
    if stock.cpu < ask.cpu:
        room = min(room, stock.cpu * ask.units // ask.cpu)
    if stock.mem < ask.mem:
        room = min(room, stock.mem * ask.units // ask.mem)
    return room


@inner
def units_of(s, j):  # type: ignore[no-untyped-def]
    """Units of a gang: its GPUs, or those of `asks` if CPUs and memory count."""
    return s.jobs[j].gpus if s.g[0].resources == 0 else s.asks[j].units


@inner
def room_for(s, number, j):  # type: ignore[no-untyped-def]
    """Units of a gang that fit on a node now, with or without CPUs and memory; may exceed the gang."""
    if s.g[0].resources == 1:
        return room_on(s, number, j)
    return s.nodes[number].free if suits(s, number, s.jobs[j].mask) else 0


@inner
def choose_for(s, number, j, units):  # type: ignore[no-untyped-def]
    """Add a piece to the choice, with or without CPUs and memory."""
    if s.g[0].resources == 1:
        choose_units(s, number, j, units)
    else:
        choose(s, number, units)


@inner
def choose_units(s, number, j, units):  # type: ignore[no-untyped-def]
    """Add a piece of a number of units to the choice."""
    g = s.g[0]
    ask = s.asks[j]
    if g.chosen >= s.choice.size:
        raise IndexError("a node is chosen twice")
    piece, need = s.choice[g.chosen], s.need[g.chosen]
    piece.node = number
    piece.gpus = units if s.jobs[j].gpus > 0 else 0
    need.cpu = (ask.cpu * units + ask.units - 1) // ask.units
    need.mem = (ask.mem * units + ask.units - 1) // ask.units
    g.chosen += 1


# ---- searches


@inner
def find_for(s, j, how):  # type: ignore[no-untyped-def]
    """Choose nodes for a waiting job, by all resources that count; see `placement_kernel.find`."""
    job = s.jobs[j]
    if s.g[0].resources == 0:
        return find(s, job.mask, job.gpus, how)
    s.g[0].chosen = 0
    if free_for(s, job.mask) < job.gpus:
        return False
    if s.nodes.size == 1 or (how != SPREAD and how != FILL):
        one = tightest_for(s, j)
        if one >= 0:
            choose_units(s, one, j, s.asks[j].units)
            return True
    return s.nodes.size > 1 and _several(s, j, how)


@inner
def find_units(s, j, gpus, how):  # type: ignore[no-untyped-def]
    """The same for another number of GPUs, with CPUs and memory in proportion."""
    job = s.jobs[j]
    if s.g[0].resources == 0:
        return find(s, job.mask, gpus, how)
    if gpus == job.gpus:
        return find_for(s, j, how)
    ask = s.asks[j]
    gang, units, cpu, mem = job.gpus, ask.units, ask.cpu, ask.mem
    job.gpus, ask.units = gpus, gpus
    ask.cpu, ask.mem = (cpu * gpus + units - 1) // units, (mem * gpus + units - 1) // units
    found = find_for(s, j, how)
    job.gpus, ask.units, ask.cpu, ask.mem = gang, units, cpu, mem
    return found


@inner
def lend_own(s, j, sign):  # type: ignore[no-untyped-def]
    """Count a running job's CPUs and memory as free (1), or undo that (-1)."""
    if s.g[0].resources == 1:
        row = s.attempts[s.jobs[j].row]
        for k in range(row.first, row.first + row.pieces):
            stock = s.stock[s.pieces[k].node]
            stock.cpu_free += sign * s.needs[k].cpu
            stock.mem_free += sign * s.needs[k].mem


@inner
def needs_met(s, j):  # type: ignore[no-untyped-def]
    """Whether the nodes of a choice have free CPUs and memory for its GPUs; sets the amounts per piece."""
    if s.g[0].resources == 0:
        return True
    ask = s.asks[j]
    for k in range(s.g[0].chosen):
        piece, need = s.choice[k], s.need[k]
        need.cpu = (ask.cpu * piece.gpus + ask.units - 1) // ask.units
        need.mem = (ask.mem * piece.gpus + ask.units - 1) // ask.units
        if need.cpu > s.stock[piece.node].cpu_free or need.mem > s.stock[piece.node].mem_free:
            return False
    return True


@inner
def tightest_for(s, j):  # type: ignore[no-untyped-def]
    """The node with the fewest free GPUs that holds the gang, the lowest of several; -1 none."""
    job = s.jobs[j]
    units = s.asks[j].units
    if s.nodes.size == 1:
        return 0 if room_on(s, 0, j) >= units else -1
    for free in range(job.gpus, s.count.shape[1]):
        at = 0
        while True:
            number = lowest_of(s, job.mask, free, at)
            if number < 0:
                break
            if room_on(s, number, j) >= units:
                return number
            at = number + 1
    return -1


@inner
def _several(s, j, how):  # type: ignore[no-untyped-def]
    """Choose several nodes."""
    units = s.asks[j].units
    total = 0
    for number in range(s.nodes.size):
        room = room_on(s, number, j)
        s.stock[number].room = room
        total += room
    if total < units:
        return False
    if how == CONSOLIDATE:
        return _whole_nodes(s, j)
    if how == SPREAD:
        _spread(s, j)
        return True
    left = units
    while left > 0:
        number = _emptiest(s) if how != FILL else _fullest(s)
        some = min(left, s.stock[number].room)
        s.stock[number].room = 0
        choose_units(s, number, j, some)
        left -= some
    return True


@inner
def _emptiest(s):  # type: ignore[no-untyped-def]
    """The node with the most room, the lowest of several; -1 none has any."""
    best, most = -1, 0
    for number in range(s.nodes.size):
        if s.stock[number].room > most:
            best, most = number, s.stock[number].room
    return best


@inner
def _fullest(s):  # type: ignore[no-untyped-def]
    """The node with the least room above 0, the lowest of several; -1 none has any."""
    best = -1
    for number in range(s.nodes.size):
        room = s.stock[number].room
        if room > 0 and (best < 0 or room < s.stock[best].room):
            best = number
    return best


@inner
def _whole_nodes(s, j):  # type: ignore[no-untyped-def]
    """Place a gang larger than a node: nodes at full capacity, and one for the rest."""
    units = s.asks[j].units
    biggest = 0
    for number in range(s.nodes.size):
        biggest = max(biggest, room_in(s, number, j))
    if biggest >= units:
        return False
    whole, rest = units // biggest, units % biggest
    for number in range(s.nodes.size):
        if whole > 0 and s.stock[number].room >= biggest:
            choose_units(s, number, j, biggest)
            s.stock[number].room = 0
            whole -= 1
    last = _emptiest(s)
    if whole > 0 or (rest > 0 and (last < 0 or s.stock[last].room < rest)):
        s.g[0].chosen = 0
        return False
    if rest > 0:
        choose_units(s, last, j, rest)
    return True


@inner
def _spread(s, j):  # type: ignore[no-untyped-def]
    """Place unit by unit on the node with the most room: on as many nodes as possible."""
    size = 0
    for number in range(s.nodes.size):
        if s.stock[number].room > 0:
            # in order of room, descending; those alike by number
            at = size
            while at > 0 and s.stock[s.order[at - 1]].room < s.stock[number].room:
                s.order[at] = s.order[at - 1]
                at -= 1
            s.order[at] = number
            size += 1
    left = s.asks[j].units
    top = s.stock[s.order[0]].room
    for k in range(size):
        s.choice[k].gpus = 0
    level = 0
    while left > 0:
        for k in range(size):
            if left > 0 and s.stock[s.order[k]].room - s.choice[k].gpus >= top - level:
                s.choice[k].gpus += 1
                left -= 1
        level += 1
    for k in range(size):
        units = s.choice[k].gpus
        if units > 0:
            choose_units(s, s.order[k], j, units)


@inner
def dominant_share(s, party, weight):  # type: ignore[no-untyped-def]
    """Weighted dominant share: the largest share of any resource of the nodes that are up.

    Ghodsi et al., NSDI 2011, sections 4.1 and 4.3. One division each, so that equal shares are equal numbers.
    """
    g = s.g[0]
    share = s.share_used[party] / (g.total * weight) if g.total > 0 else 0.0
    if g.resources == 1:
        used = s.share_need[party]
        if g.cpu > 0:
            share = max(share, used.cpu / (g.cpu * weight))
        if g.mem > 0:
            share = max(share, used.mem / (g.mem * weight))
    return share
