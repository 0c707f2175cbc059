"""Compiled: placement of the `philly` policy with dedicated nodes, or nodes separated by job size."""

from __future__ import annotations

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.placement_kernel import choose, find, largest, suits
from gpuctl.replay.engine.state import ANY, FEWEST, RACK

SHARED, APART, ALONE = range(3)
DEDICATE = ("none", "small", "server")
"""The values of the parameter ``dedicate``."""
TIGHT, RACKS = range(2)
PLACES = ("tight", "racks")
"""The values of the parameter ``places``."""
SMALL, GANG = 1, 2


@inner
def kind_of_job(s, r, j):  # type: ignore[no-untyped-def]
    """Whether a job is a small one or a gang."""
    return SMALL if s.jobs[j].gpus <= r.p[0].small else GANG


@inner
def may_use(s, r, j, number):  # type: ignore[no-untyped-def]
    """Whether a job may use a node now: an empty one suits all."""
    node = s.nodes[number]
    if r.p[0].dedicate == SHARED or node.free == node.cap:
        return True
    return r.p[0].dedicate == APART and r.colour[number] == kind_of_job(s, r, j)


@inner
def paint(s, r, j):  # type: ignore[no-untyped-def]
    """Dedicate the nodes in `choice` to this kind of job until they are empty."""
    if r.p[0].dedicate == APART:
        kind = kind_of_job(s, r, j)
        for k in range(s.g[0].chosen):
            r.colour[s.choice[k].node] = kind


@inner
def seek(s, r, j, level):  # type: ignore[no-untyped-def]
    """Choose GPUs for a job at a level of locality; returns whether it fits."""
    job = s.jobs[j]
    if r.p[0].places == RACKS:
        return _rack_by_rack(s, r, j, level)
    if r.p[0].dedicate == SHARED:
        return find(s, job.mask, job.gpus, FEWEST if level == 0 else RACK if level == 1 else ANY)
    s.g[0].chosen = 0
    one = -1
    for number in range(s.nodes.size):
        # the fullest node that holds it; of several the first one
        free = s.nodes[number].free - s.nodes[number].hidden
        if free < job.gpus or not suits(s, number, job.mask) or not may_use(s, r, j, number):
            continue
        if one < 0 or free < s.nodes[one].free:
            one = number
    if one >= 0:
        choose(s, one, job.gpus)
        return True
    most = largest(s, job.mask)
    if level == 0 and job.gpus <= most:
        return False
    limit = (job.gpus + most - 1) // most if level == 0 else s.nodes.size
    if level == 2:
        return _gather_from(s, r, j, -1, limit)
    for rack in range(s.rack_free.shape[1]):
        if _gather_from(s, r, j, rack, limit):
            return True
    return False


@inner
def _gather_from(s, r, j, rack, limit):  # type: ignore[no-untyped-def]
    """Choose up to a number of the freest nodes of a rack (-1: any), one after the other."""
    g = s.g[0]
    job = s.jobs[j]
    g.chosen = 0
    left = job.gpus
    while left > 0 and g.chosen < limit:
        best, most = -1, 0
        for number in range(s.nodes.size):
            node = s.nodes[number]
            if rack >= 0 and node.rack != rack:
                continue
            if node.free - node.hidden <= most or not suits(s, number, job.mask) or not may_use(s, r, j, number):
                continue
            taken = False
            for k in range(g.chosen):
                if s.choice[k].node == number:
                    taken = True
            if not taken:
                best, most = number, node.free
        if best < 0:
            break
        some = min(left, most)
        choose(s, best, some)
        left -= some
    if left > 0:
        g.chosen = 0
    return left == 0


@inner
def _rack_by_rack(s, r, j, level):  # type: ignore[no-untyped-def]
    """Choose nodes of the rack in which the job needs fewest, of several the first; at the last level, of any rack."""
    if level == 2:
        return _tight_in(s, r, j, -1)
    g = s.g[0]
    most = largest(s, s.jobs[j].mask)
    fewest = (s.jobs[j].gpus + most - 1) // most
    best, least = -1, 0
    for k in range(r.racks.size):
        rack = r.racks[k]
        if _tight_in(s, r, j, rack) and (level == 1 or g.chosen == fewest) and (best < 0 or g.chosen < least):
            best, least = rack, g.chosen
            if least <= fewest:
                break
    g.chosen = 0
    return best >= 0 and _tight_in(s, r, j, best)


@inner
def _tight_in(s, r, j, rack):  # type: ignore[no-untyped-def]
    """Choose the fullest node of a rack (-1: any) that holds the rest of a gang; before that, the freest ones."""
    g = s.g[0]
    g.chosen = 0
    left = s.jobs[j].gpus
    while left > 0:
        tight, freest, most = -1, -1, 0
        for k in range(r.line.size):
            number = r.line[k]
            node = s.nodes[number]
            free = node.free - node.hidden
            if (rack >= 0 and node.rack != rack) or free <= 0 or not suits(s, number, s.jobs[j].mask):
                continue
            if (free <= most and free < left) or _is_chosen(s, number) or not may_use(s, r, j, number):
                continue
            if free >= left and (tight < 0 or free < s.nodes[tight].free - s.nodes[tight].hidden):
                tight = number
            if free > most:
                freest, most = number, free
        if tight >= 0:
            choose(s, tight, left)
            return True
        if freest < 0:
            break
        choose(s, freest, most)
        left -= most
    g.chosen = 0
    return False


@inner
def _is_chosen(s, number):  # type: ignore[no-untyped-def]
    for k in range(s.g[0].chosen):
        if s.choice[k].node == number:
            return True
    return False
