"""The compiled heap of coming events: at most one per heap node, ordered by time, class and number."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner

NUMBERS = np.int64(1) << 48


@inner
def _before(s, t, c, k):  # type: ignore[no-untyped-def]
    return t < s.heap_t[k] or (t == s.heap_t[k] and c < s.heap_c[k])


@inner
def _up(s, k, t, c, node):  # type: ignore[no-untyped-def]
    while k > 0:
        parent = (k - 1) >> 1
        if not _before(s, t, c, parent):
            break
        s.heap_t[k], s.heap_c[k] = s.heap_t[parent], s.heap_c[parent]
        moved = s.heap_node[parent]
        s.heap_node[k] = moved
        s.node_at[moved] = k
        k = parent
    s.heap_t[k], s.heap_c[k], s.heap_node[k] = t, c, node
    s.node_at[node] = k


@inner
def _down(s, k, size, t, c, node):  # type: ignore[no-untyped-def]
    while True:
        child = 2 * k + 1
        if child >= size:
            break
        if child + 1 < size and _before(s, s.heap_t[child + 1], s.heap_c[child + 1], child):
            child += 1
        if not (s.heap_t[child] < t or (s.heap_t[child] == t and s.heap_c[child] < c)):
            break
        s.heap_t[k], s.heap_c[k] = s.heap_t[child], s.heap_c[child]
        moved = s.heap_node[child]
        s.heap_node[k] = moved
        s.node_at[moved] = k
        k = child
    s.heap_t[k], s.heap_c[k], s.heap_node[k] = t, c, node
    s.node_at[node] = k


@inner
def schedule(s, node, t, kind):  # type: ignore[no-untyped-def]
    """Schedule a node's event at `t`, replacing any that it has."""
    g = s.g[0]
    cancel(s, node)
    g.sequence += 1
    k = g.heap
    g.heap += 1
    _up(s, k, t, kind * NUMBERS + g.sequence, node)


@inner
def cancel(s, node):  # type: ignore[no-untyped-def]
    """Cancel a node's event, if it has one."""
    k = s.node_at[node]
    if k < 0:
        return
    g = s.g[0]
    g.heap -= 1
    s.node_at[node] = -1
    if k == g.heap:
        return
    t, c, moved = s.heap_t[g.heap], s.heap_c[g.heap], s.heap_node[g.heap]
    if k > 0 and _before(s, t, c, (k - 1) >> 1):
        _up(s, k, t, c, moved)
    else:
        _down(s, k, g.heap, t, c, moved)
