"""Splits gangs over nodes if their requested split is impossible, and finds gangs that no permitted nodes could hold.

Slurm refuses a job at its submission that could not start if all nodes were idle. In a replay on other nodes than the
recorded ones, a job may request too few nodes: it gets more, or others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.notes import note
from gpuctl.replay.engine.state import ANY, CONSOLIDATE, SPREAD
from gpuctl.replay.models.resources import capacity
from gpuctl.replay.policies.slurm.records_kernel import FIRST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Ints


def fit_requests(x: Any, part_ok: NDArray[np.uint64], cluster: Cluster, state: State) -> list[Note]:
    """Adapt each job's request to nodes that could hold it, or mark the job as never starting; returns notes.

    Args:
        x: records of `gpuctl.replay.policies.slurm.records_kernel.JOBX` with their forms numbered; ``nodes``,
            ``how`` and ``never`` may change.
        part_ok: nodes of each partition, a bit each.
        cluster: the nodes.
        state: of the simulation, before any job runs.
    """
    forms, first = np.unique(x.form, return_index=True)
    nodes, how, never = (np.zeros(int(forms.max(initial=0)) + 1, np.int64) for _ in range(3))
    for form, j in zip(forms.tolist(), first.tolist(), strict=True):
        holds = _capacities(state, cluster, part_ok[x.part[j]], j)
        units = int(state.asks[j].units if state.g[0].resources else state.jobs[j].gpus)
        nodes[form], how[form], never[form] = _way(units, holds, int(x.nodes[j]), int(x.how[j]))
    split = (nodes[x.form] != x.nodes) | (how[x.form] != x.how)
    large = (never[x.form] == 1) & (x.never == 0)
    split &= ~large
    x.nodes, x.how = nodes[x.form], how[x.form]
    x.never |= never[x.form]
    notes = []
    if split.any():
        notes.append(
            note(
                "{split:,} job{split||s} {split|does|do} not fit on as many nodes as {split|it asks|they ask} for, "
                "or on whole ones: {split|it is|they are} split over "
                "others",
                split=int(split.sum()),
            )
        )
    if large.any():
        notes.append(
            note(
                "{large:,} job{large||s} can never start and {large|is|are} turned away: the nodes of "
                "{large|its|their} partition could not hold them",
                large=int(large.sum()),
            )
        )
    return notes


def _capacities(state: State, cluster: Cluster, bits: NDArray[np.uint64], j: int) -> Ints:
    """Units of a gang that each permitted idle node holds, descending."""
    number = np.arange(len(cluster.nodes))
    word, bit = number >> 6, (number & 63).astype(np.uint64)
    own = (bits[word] >> bit & np.uint64(1)).astype(bool)
    own &= (state.jobs[j].mask >> state.nodes.cls.astype(np.uint64) & np.uint64(1)).astype(bool)
    gpus = int(state.jobs[j].gpus)
    found = capacity(gpus, state.asks[j], state.stock, cluster) if state.g[0].resources else cluster.gpus
    return np.sort(found[own])[::-1].astype(np.int64)


def _way(units: int, holds: Ints, nodes: int, how: int) -> tuple[int, int, int]:
    """Nodes to request, a placement that idle nodes can hold, and 1 if there is none.

    Args:
        units: of the gang.
        holds: what each node holds, most first.
        nodes: requested; 0 or 1: as few as possible.
        how: the placement.
    """
    if not holds.size or int(holds.sum()) < units:
        return nodes, how, 1
    most = int(holds[0])
    if nodes > 1 and units > 1:
        for count in range(max(min(nodes, units), -(-units // most)), min(units, holds.size) + 1):
            part, over = divmod(units, count)
            # the first ones have one unit more
            if holds[count - 1] >= part and (over == 0 or holds[over - 1] > part):
                return max(nodes, count), how, 0
        nodes = 0
    if most >= units:
        return nodes, how, 0
    if how == SPREAD:
        return 0, how, 0
    if how in {FIRST, CONSOLIDATE}:
        whole, rest = divmod(units, most)
        if holds[whole - 1] >= most and (rest == 0 or (holds.size > whole and holds[whole] >= rest)):
            return nodes, how, 0
    return 0, ANY, 0
