"""The compiled search for nodes: an index of nodes by free GPUs, and the ways to place a gang.

A search leaves its pieces in ``choice`` and returns whether it succeeded; nothing is allocated yet.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.state import CONSOLIDATE, FEWEST, FILL, NEAR, RACK, SPREAD

_ONE = np.uint64(1)


@inner
def set_free(s, number, free):  # type: ignore[no-untyped-def]
    """Set the free GPUs of a node, and update the index."""
    node = s.nodes[number]
    if node.up == 0:
        node.free = free
        return
    change = free - node.free
    seen, sees = max(node.free - node.hidden, 0), max(free - node.hidden, 0)
    node.free = free
    g = s.g[0]
    g.free += change
    s.class_free[node.cls] += change
    if node.rack >= 0:
        s.rack_free[node.cls, node.rack] += change
    _reindex(s, number, seen, sees)


@inner
def hold_some(s, number, gpus):  # type: ignore[no-untyped-def]
    """Take GPUs of a node, or return them (below 0); a crowded node can be oversubscribed."""
    node = s.nodes[number]
    if s.g[0].crowded == 0:
        set_free(s, number, node.free - gpus)
        return
    node.requested += gpus
    set_free(s, number, max(node.cap - node.requested, 0))


@inner
def hide(s, number, gpus):  # type: ignore[no-untyped-def]
    """Hide a number of a node's free GPUs from searches (0: show all)."""
    node = s.nodes[number]
    seen, sees = max(node.free - node.hidden, 0), max(node.free - gpus, 0)
    node.hidden = gpus
    if node.up == 1:
        _reindex(s, number, seen, sees)


@inner
def _reindex(s, number, seen, sees):  # type: ignore[no-untyped-def]
    if seen == sees:
        return
    cls = s.nodes[number].cls
    word, bit = number >> 6, _ONE << np.uint64(number & 63)
    s.bits[cls, seen, word] &= ~bit
    s.bits[cls, sees, word] |= bit
    s.count[cls, seen] -= 1
    s.count[cls, sees] += 1


@inner
def _lowest(s, cls, free, start):  # type: ignore[no-untyped-def]
    """The lowest node from `start` on of a class with at least `gpus` free; -1 none."""
    words = s.bits.shape[2]
    word = start >> 6
    if word >= words:
        return -1
    bits = s.bits[cls, free, word] >> np.uint64(start & 63) << np.uint64(start & 63)
    while bits == 0:
        word += 1
        if word == words:
            return -1
        bits = s.bits[cls, free, word]
    low = bits & (~bits + _ONE)
    number = 0
    if low >= np.uint64(1) << np.uint64(32):
        number += 32
        low >>= np.uint64(32)
    if low >= np.uint64(1) << np.uint64(16):
        number += 16
        low >>= np.uint64(16)
    if low >= np.uint64(1) << np.uint64(8):
        number += 8
        low >>= np.uint64(8)
    if low >= np.uint64(1) << np.uint64(4):
        number += 4
        low >>= np.uint64(4)
    if low >= np.uint64(4):
        number += 2
        low >>= np.uint64(2)
    if low >= np.uint64(2):
        number += 1
    return (word << 6) + number


@inner
def lowest_of(s, mask, free, start):  # type: ignore[no-untyped-def]
    """The lowest suitable node from `start` on with at least `gpus` free; -1 none."""
    best = -1
    for cls in range(s.count.shape[0]):
        if s.count[cls, free] > 0 and mask >> np.uint64(cls) & _ONE:
            number = _lowest(s, cls, free, start)
            if number >= 0 and (best < 0 or number < best):
                best = number
    return best


@inner
def suits(s, number, mask):  # type: ignore[no-untyped-def]
    """Whether a node is up and of a class that suits."""
    node = s.nodes[number]
    return node.up == 1 and mask >> np.uint64(node.cls) & _ONE != 0


@inner
def choose(s, number, gpus):  # type: ignore[no-untyped-def]
    """Add a piece to the choice."""
    g = s.g[0]
    if g.chosen >= s.choice.size:
        raise IndexError("a node is chosen twice")
    piece = s.choice[g.chosen]
    piece.node, piece.gpus = number, gpus
    g.chosen += 1


@inner
def free_for(s, mask):  # type: ignore[no-untyped-def]
    """Free GPUs on the nodes that suit."""
    total = 0
    for cls in range(s.class_free.size):
        if mask >> np.uint64(cls) & _ONE:
            total += s.class_free[cls]
    return total


@inner
def largest(s, mask):  # type: ignore[no-untyped-def]
    """GPUs of the largest node that suits."""
    most = 0
    for cls in range(s.class_cap.size):
        if mask >> np.uint64(cls) & _ONE:
            most = max(most, s.class_cap[cls])
    return most


@inner
def tightest(s, mask, gpus):  # type: ignore[no-untyped-def]
    """Best fit: the lowest node with the fewest free GPUs that hold the gang; -1 none."""
    most = s.count.shape[1]
    if s.nodes.size == 1:
        node = s.nodes[0]
        return 0 if suits(s, 0, mask) and node.free - node.hidden >= gpus else -1
    for free in range(gpus, most):
        best = lowest_of(s, mask, free, 0)
        if best >= 0:
            return best
    return -1


@inner
def _sorted_by_free(s, mask, descending, rack):  # type: ignore[no-untyped-def]
    """Put the nodes that suit and have GPUs free into `order`; ties by number. Returns how many."""
    most = s.count.shape[1]
    size = 0
    for k in range(1, most):
        free = most - k if descending else k
        at = 0
        while True:
            best = lowest_of(s, mask, free, at)
            if best < 0:
                break
            if rack < 0 or s.nodes[best].rack == rack:
                s.order[size] = best
                size += 1
            at = best + 1
    return size


@inner
def _in_order(s, gpus, size, most):  # type: ignore[no-untyped-def]
    """Choose the free GPUs of the nodes in `order`, up to a number of nodes."""
    g = s.g[0]
    left = gpus
    for k in range(size):
        if left == 0 or k == most:
            break
        node = s.nodes[s.order[k]]
        some = min(left, node.free - node.hidden)
        choose(s, s.order[k], some)
        left -= some
    if left > 0:
        g.chosen = 0
        return False
    return True


@inner
def _consolidate(s, mask, gpus):  # type: ignore[no-untyped-def]
    """Place a gang larger than a node: whole free nodes, lowest first, and the rest on the freest one left."""
    biggest = largest(s, mask)
    whole, rest = gpus // biggest, gpus % biggest
    have = 0
    for cls in range(s.count.shape[0]):
        if mask >> np.uint64(cls) & _ONE:
            have += s.count[cls, biggest]
    if have < whole:
        return False
    at = -1
    for _ in range(whole):
        best = lowest_of(s, mask, biggest, at + 1)
        choose(s, best, biggest)
        at = best
    if rest == 0:
        return True
    for k in range(biggest + 1 - rest):
        free = biggest - k
        best = lowest_of(s, mask, free, at + 1 if free == biggest else 0)
        if best >= 0:
            choose(s, best, rest)
            return True
    s.g[0].chosen = 0
    return False


@inner
def _one_rack(s, mask, gpus, fewest):  # type: ignore[no-untyped-def]
    """Nodes of one rack, the freest first, in the rack with the least room that holds the gang."""
    biggest = largest(s, mask)
    limit = (gpus + biggest - 1) // biggest if fewest else s.nodes.size
    best, room = -1, 0
    racks = s.rack_free.shape[1]
    for _ in range(racks):
        # racks by room, ascending; racks that need too many nodes are skipped
        found, least = -1, 0
        for rack in range(racks):
            free = 0
            for cls in range(s.count.shape[0]):
                if mask >> np.uint64(cls) & _ONE:
                    free += s.rack_free[cls, rack]
            later = free > room or (free == room and rack > best)
            if free >= gpus and later and (found < 0 or free < least):
                found, least = rack, free
        if found < 0:
            return False
        best, room = found, least
        size = _sorted_by_free(s, mask, True, found)
        if _in_order(s, gpus, size, limit):
            return True
    return False


@inner
def _spread(s, mask, gpus):  # type: ignore[no-untyped-def]
    """Place GPU by GPU on the node with the most left: on as many nodes as possible."""
    size = _sorted_by_free(s, mask, True, -1)
    if size == 0:
        return False
    g = s.g[0]
    base = g.chosen
    level = 0
    left = gpus
    for k in range(size):
        choose(s, s.order[k], 0)
    top = s.nodes[s.order[0]].free - s.nodes[s.order[0]].hidden
    while left > 0 and level < top:
        # the nodes with the most free provide one GPU each, down to the level of the next
        for k in range(size):
            piece = s.choice[base + k]
            node = s.nodes[piece.node]
            if left > 0 and node.free - node.hidden - piece.gpus >= top - level:
                piece.gpus += 1
                left -= 1
        level += 1
    end = base
    for k in range(size):
        piece = s.choice[base + k]
        if piece.gpus > 0:
            s.choice[end].node, s.choice[end].gpus = piece.node, piece.gpus
            end += 1
    g.chosen = end
    if left > 0:
        g.chosen = 0
        return False
    return True


@inner
def find(s, mask, gpus, how):  # type: ignore[no-untyped-def]
    """Choose GPUs for a gang.

    Args:
        s: the state.
        mask: suitable classes of nodes.
        gpus: the gang's size.
        how: ANY: never waits for locality: the fullest node that holds it, else the freest nodes; CONSOLIDATE: one node
            if one can hold it, else whole nodes and a rest, or not at all; SPREAD: on as many nodes as possible; FILL:
            the fullest nodes first; RACK: nodes of one rack; FEWEST: the fewest nodes of one rack; NEAR: nodes of one
            rack if one can hold it, else the freest nodes.

    Returns:
        Whether it fits; the pieces are in `choice`.
    """
    g = s.g[0]
    g.chosen = 0
    if free_for(s, mask) < gpus:
        return False
    if how == SPREAD and s.nodes.size > 1:
        return _spread(s, mask, gpus)
    if how != FILL:
        one = tightest(s, mask, gpus)
        if one >= 0:
            choose(s, one, gpus)
            return True
    if s.nodes.size == 1:
        if tightest(s, mask, gpus) < 0:
            return False
        choose(s, 0, gpus)
        return True
    if how == CONSOLIDATE:
        return gpus > largest(s, mask) and _consolidate(s, mask, gpus)
    if how == FEWEST:
        return gpus > largest(s, mask) and _one_rack(s, mask, gpus, True)
    if how == RACK:
        return _one_rack(s, mask, gpus, False)
    if how == NEAR and _one_rack(s, mask, gpus, False):
        return True
    size = _sorted_by_free(s, mask, how != FILL, -1)
    return _in_order(s, gpus, size, s.nodes.size)
