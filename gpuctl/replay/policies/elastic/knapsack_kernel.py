"""Compiled: the multiple-choice knapsack of Aryl: one item per group; item i takes i units of room.

With G groups of up to E items and room R it costs O(G R E); O(G E) if all groups fit with their best.
"""

from __future__ import annotations

from gpuctl.compiled.jit import inner


@inner
def knapsack(values, best, items, counts, groups, room):  # type: ignore[no-untyped-def]
    """Choose items with the largest sum of values within the room; of several choices the lexicographically largest.

    Args:
        values: of each group's items, the first 0 [groups, most items].
        best: scratch [groups + 1, room + 1].
        items: number of items of each group, including the empty one [groups].
        counts: the result [groups].
        groups: number of groups.
        room: whole units.
    """
    whole = 0
    for g in range(groups):
        top = 0
        for k in range(items[g]):
            if values[g, k] >= values[g, top]:
                top = k
        counts[g] = top
        whole += top
    if whole <= room:
        return
    for r in range(room + 1):
        best[groups, r] = 0
    for g in range(groups - 1, -1, -1):
        for r in range(room + 1):
            best[g, r] = best[g + 1, r]
        for k in range(1, min(items[g], room + 1)):
            value = values[g, k]
            for r in range(k, room + 1):
                best[g, r] = max(best[g, r], value + best[g + 1, r - k])
    for g in range(groups):
        k = min(items[g] - 1, room)
        while values[g, k] + best[g + 1, room - k] != best[g, room]:
            k -= 1
        counts[g] = k
        room -= k
