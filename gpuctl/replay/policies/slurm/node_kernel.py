"""Compiled choice of nodes: sets of nodes as bits, free resources, and placements of a gang.

Row 0 of free resources is now, row 1 a trial time. A search uses the nodes in ``ok``, leaves its pieces in the state's
``choice`` and returns whether it succeeded; nothing is allocated yet.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.placement_kernel import suits
from gpuctl.replay.engine.resource_kernel import choose_for, room_in, units_of
from gpuctl.replay.engine.state import ANY, CONSOLIDATE, SPREAD
from gpuctl.replay.policies.slurm.records_kernel import FIRST

NOW, THEN = 0, 1
_ONE = np.uint64(1)
_NONE = np.uint64(0)

# ---- sets of nodes


@inner
def has(words, number):  # type: ignore[no-untyped-def]
    """Whether a node is in a set."""
    return words[number >> 6] >> np.uint64(number & 63) & _ONE != _NONE


@inner
def put(words, number):  # type: ignore[no-untyped-def]
    """Add a node to a set."""
    words[number >> 6] |= _ONE << np.uint64(number & 63)


# loops, since each assignment to a slice is compiled into a loop of its own with checks of shapes


@inner
def fill(words, word):  # type: ignore[no-untyped-def]
    """Set a set to empty (0) or all nodes (its complement)."""
    for k in range(words.size):
        words[k] = word


@inner
def copy_set(words, others):  # type: ignore[no-untyped-def]
    """Copy a set."""
    for k in range(words.size):
        words[k] = others[k]


@inner
def meets(a, b):  # type: ignore[no-untyped-def]
    """Whether two sets have a node in common."""
    for k in range(a.size):
        if a[k] & b[k] != _NONE:
            return True
    return False


@inner
def counted(words):  # type: ignore[no-untyped-def]
    """Number of nodes in a set."""
    total = 0
    for k in range(words.size):
        word = words[k]
        while word != _NONE:
            word &= word - _ONE
            total += 1
    return total


@inner
def mark_choice(s, words):  # type: ignore[no-untyped-def]
    """Put the nodes of the choice into a set."""
    fill(words, _NONE)
    for k in range(s.g[0].chosen):
        put(words, s.choice[k].node)


# ---- free resources


@inner
def refresh(s, f):  # type: ignore[no-untyped-def]
    """Set row 0 to the free resources now."""
    more = s.g[0].resources == 1
    for number in range(s.nodes.size):
        f.gpu[NOW, number] = s.nodes[number].free
        if more:
            f.cpu[NOW, number], f.mem[NOW, number] = s.stock[number].cpu_free, s.stock[number].mem_free


@inner
def as_now(s, f):  # type: ignore[no-untyped-def]
    """Copy row 0 to row 1."""
    more = s.g[0].resources == 1
    for number in range(s.nodes.size):
        f.gpu[THEN, number] = f.gpu[NOW, number]
        f.busy[THEN, number], f.sole[THEN, number] = f.busy[NOW, number], f.sole[NOW, number]
        if more:
            f.cpu[THEN, number], f.mem[THEN, number] = f.cpu[NOW, number], f.mem[NOW, number]


@inner
def release(s, f, j):  # type: ignore[no-untyped-def]
    """Release a running job's resources in row 1."""
    row = s.attempts[s.jobs[j].row]
    more = s.g[0].resources == 1
    for k in range(row.first, row.first + row.pieces):
        number = s.pieces[k].node
        f.gpu[THEN, number] += s.pieces[k].gpus
        f.busy[THEN, number] -= 1
        f.sole[THEN, number] -= f.x[j].exclusive
        if more:
            f.cpu[THEN, number] += s.needs[k].cpu
            f.mem[THEN, number] += s.needs[k].mem


@inner
def runs_on(s, f, j):  # type: ignore[no-untyped-def]
    """Whether a running job holds anything on the nodes in ``ok``."""
    row = s.attempts[s.jobs[j].row]
    for k in range(row.first, row.first + row.pieces):
        if has(f.ok, s.pieces[k].node):
            return True
    return False


@inner
def occupy(s, f, j, sign):  # type: ignore[no-untyped-def]
    """Count a job on its nodes (1), or remove it (-1)."""
    row = s.attempts[s.jobs[j].row]
    for k in range(row.first, row.first + row.pieces):
        number = s.pieces[k].node
        f.busy[NOW, number] += sign
        f.sole[NOW, number] += sign * f.x[j].exclusive


@inner
def room(s, f, j, row, number):  # type: ignore[no-untyped-def]
    """Units of a gang that fit on a node; may exceed the gang."""
    job = s.jobs[j]
    if f.sole[row, number] > 0 or not suits(s, number, job.mask):
        return 0
    if f.x[j].exclusive == 1 and f.busy[row, number] > 0:
        return 0
    if s.g[0].resources == 0:
        return f.gpu[row, number]
    ask = s.asks[j]
    found = f.gpu[row, number] if job.gpus > 0 else ask.units
    if f.cpu[row, number] < ask.cpu:
        found = min(found, max(f.cpu[row, number], 0) * ask.units // ask.cpu)
    if f.mem[row, number] < ask.mem:
        found = min(found, max(f.mem[row, number], 0) * ask.units // ask.mem)
    return found


@inner
def biggest(s, f, j):  # type: ignore[no-untyped-def]
    """Most units of a gang that one empty node of its partition holds."""
    form = f.x[j].form
    if f.biggest[form] < 0:
        most = 0
        for number in range(s.nodes.size):
            if has(f.part_ok[f.x[j].part], number):
                most = max(most, room_in(s, number, j))
        f.biggest[form] = most
    return f.biggest[form]


@inner
def least_nodes(s, f, j):  # type: ignore[no-untyped-def]
    """Least nodes that a gang needs; above the number of nodes if none holds any of it."""
    units = units_of(s, j)
    if f.x[j].nodes > 1:
        return min(f.x[j].nodes, units)
    most = biggest(s, f, j)
    return s.nodes.size + 1 if most == 0 and units > 0 else (units + most - 1) // max(most, 1)


# ---- the ways to place a gang


@inner
def _pick(s, f, j, row, units):  # type: ignore[no-untyped-def]
    """A node that holds a number of units and is not in ``tmp``; -1 none.

    The first one by weight, as in select/cons_tres; with ``LLN``, of the first weight the one with the largest share of
    idle CPUs; with a set placement, the one with the fewest free GPUs, the lowest of several.
    """
    best = -1
    by_weight = f.x[j].how == FIRST
    idlest = by_weight and f.x[j].lln == 1
    for k in range(s.nodes.size):
        number = f.by_weight[k]
        if not has(f.ok, number) or has(f.tmp, number):
            continue
        if best >= 0 and idlest:
            if f.weight[number] != f.weight[best]:
                break
            if f.cpu[row, number] * s.stock[best].cpu <= f.cpu[row, best] * s.stock[number].cpu:
                continue
        elif best >= 0 and f.gpu[row, number] >= f.gpu[row, best]:
            continue
        if room(s, f, j, row, number) >= units:
            best = number
            if by_weight and not idlest:
                break
    return best


@inner
def _freest(s, f, j, row):  # type: ignore[no-untyped-def]
    """The node with the most room that is not in ``tmp``, the lowest of several; -1 none. Returns it and its room."""
    best, most = -1, 0
    for number in range(s.nodes.size):
        if has(f.ok, number) and not has(f.tmp, number):
            found = room(s, f, j, row, number)
            if found > most:
                best, most = number, found
    return best, most


@inner
def _even(s, f, j, row, nodes, units):  # type: ignore[no-untyped-def]
    """Choose a number of nodes with equal parts of the gang; the first ones have one unit more if uneven."""
    part, over = units // nodes, units % nodes
    fill(f.tmp, _NONE)
    for k in range(nodes):
        piece = part + (1 if k < over else 0)
        best = _pick(s, f, j, row, piece)
        if best < 0:
            s.g[0].chosen = 0
            return False
        put(f.tmp, best)
        choose_for(s, best, j, piece)
    return True


@inner
def _whole(s, f, j, row, units):  # type: ignore[no-untyped-def]
    """Nodes that hold as much of the gang as any could, and the emptiest one left for the rest."""
    most = biggest(s, f, j)
    if most == 0 or most >= units:
        return False
    left = units
    fill(f.tmp, _NONE)
    for k in range(s.nodes.size):
        number = f.by_weight[k]
        if left >= most and has(f.ok, number) and room(s, f, j, row, number) >= most:
            put(f.tmp, number)
            choose_for(s, number, j, most)
            left -= most
    if left >= most:
        s.g[0].chosen = 0
        return False
    if left > 0:
        number, there = _freest(s, f, j, row)
        if there < left:
            s.g[0].chosen = 0
            return False
        choose_for(s, number, j, left)
    return True


@inner
def _anywhere(s, f, j, row, units):  # type: ignore[no-untyped-def]
    """The freest nodes, one after the other."""
    left = units
    fill(f.tmp, _NONE)
    while left > 0:
        number, there = _freest(s, f, j, row)
        if number < 0:
            s.g[0].chosen = 0
            return False
        put(f.tmp, number)
        choose_for(s, number, j, min(left, there))
        left -= there
    return True


@inner
def _spread(s, f, j, row, units):  # type: ignore[no-untyped-def]
    """Spread over as many nodes as possible: unit by unit where most is left."""
    size = 0
    for number in range(s.nodes.size):
        there = room(s, f, j, row, number) if has(f.ok, number) else 0
        if there > 0:
            # in order of room, descending; those alike by number
            at = size
            while at > 0 and f.spare[2 * (at - 1) + 1] < there:
                f.spare[2 * at], f.spare[2 * at + 1] = f.spare[2 * at - 2], f.spare[2 * at - 1]
                at -= 1
            f.spare[2 * at], f.spare[2 * at + 1] = number, there
            size += 1
    total = 0
    for k in range(size):
        total += f.spare[2 * k + 1]
    if total < units:
        return False
    left, level = units, f.spare[1]
    # down to the level at which the gang is placed
    while True:
        above = 0
        for k in range(size):
            above += max(f.spare[2 * k + 1] - (level - 1), 0)
        if above >= units:
            break
        level -= 1
    for k in range(size):
        f.spare[2 * size + k] = max(f.spare[2 * k + 1] - level, 0)
        left -= f.spare[2 * size + k]
    for k in range(size):
        more = 1 if left > 0 and f.spare[2 * k + 1] >= level else 0
        left -= more
        units_here = f.spare[2 * size + k] + more
        if units_here > 0:
            choose_for(s, f.spare[2 * k], j, units_here)
    return True


@inner
def place(s, f, j, row):  # type: ignore[no-untyped-def]
    """Choose nodes for a job from those in ``ok``, by the free resources of a row."""
    g = s.g[0]
    x = f.x[j]
    units = units_of(s, j)
    g.chosen = 0
    if x.nodes > 1 and units > 1:
        return _even(s, f, j, row, min(x.nodes, units), units)
    if x.how == SPREAD and x.nodes != 1 and s.nodes.size > 1:
        return _spread(s, f, j, row, units)
    fill(f.tmp, _NONE)
    one = _pick(s, f, j, row, units)
    if one >= 0:
        choose_for(s, one, j, units)
        return True
    if s.nodes.size == 1:
        return False
    if x.how == CONSOLIDATE or x.how == FIRST:
        return _whole(s, f, j, row, units)
    if x.how == ANY and x.nodes != 1:
        return _anywhere(s, f, j, row, units)
    return False


@inner
def update_up_nodes(s, f):  # type: ignore[no-untyped-def]
    """Set ``up`` to the nodes that are up."""
    fill(f.up, _NONE)
    for number in range(s.nodes.size):
        if s.nodes[number].up == 1:
            put(f.up, number)


@inner
def usable(f, j):  # type: ignore[no-untyped-def]
    """Set ``ok`` to the nodes of a job's partition that are up."""
    part = f.x[j].part
    for k in range(f.ok.size):
        f.ok[k] = f.part_ok[part, k] & f.up[k]
