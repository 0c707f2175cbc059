"""Clusters with more or fewer nodes of one kind, and the least size at which a goal is met."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.core.suggestions import meant
from gpuctl.replay.inputs.clusters import add_nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.replay.models.records import Cluster, Ints

MOST_TIMES = 4
"""Sizes are sought up to this many times the present GPUs."""
POOL_NODE = 8
"""GPUs by which a pool without nodes grows, if the user does not say."""


@dataclass(frozen=True)
class Kind:
    """A kind of node.

    Attributes:
        gpus: of each.
        gpu_type: number of its type in the cluster's types; -1 unknown.
        name: of the type; "" unknown.
        count: nodes of this kind in the cluster.
    """

    gpus: int
    gpu_type: int
    name: str
    count: int


def kind_of(cluster: Cluster, gpus: int | None = None, gpu_type: str | None = None) -> Kind:
    """Return the kind of node that is added or removed: the most frequent one among those that fit.

    Args:
        cluster: the present nodes.
        gpus: of a node, if the user says so; there need not be such nodes.
        gpu_type: name of its type, likewise; there must be one.

    Raises:
        UsageError: no node has this type.
    """
    names = cluster.gpu_types
    if cluster.pool:
        if gpu_type is not None:
            raise UsageError(f"--node-type {gpu_type}: a pool of GPUs has no types", hint="leave it out")
        return Kind(gpus or POOL_NODE, -1, "", int(cluster.gpus[0]) // (gpus or POOL_NODE))
    kinds = Counter(zip(cluster.gpus.tolist(), cluster.gpu_type.tolist(), strict=True))
    kinds = Counter({kind: n for kind, n in kinds.items() if kind[0] > 0})
    if gpu_type is not None:
        there = {names[at].lower(): at for _, at in kinds if 0 <= at < len(names)}
        at = there.get(gpu_type.lower())
        if at is None:
            hint = meant(gpu_type, [names[each] for each in there.values()], "no node has a known type")
            raise UsageError(f"--node-type {gpu_type}: no node of the cluster has this type", hint=hint)
        kinds = Counter({kind: n for kind, n in kinds.items() if kind[1] == at})
    if gpus is not None:
        kinds = Counter({kind: n for kind, n in kinds.items() if kind[0] == gpus}) or Counter(
            {(gpus, max(kinds, key=lambda kind: (kinds[kind], kind[0]))[1]): 0}
        )
    (size, at), count = max(kinds.items(), key=lambda one: (one[1], one[0][0]))
    return Kind(size, at, names[at] if 0 <= at < len(names) else "", count)


def resized(cluster: Cluster, kind: Kind, more: int) -> Cluster:
    """Return the cluster with more nodes of a kind, or without its last ones of it.

    Args:
        cluster: the present nodes.
        kind: of the nodes.
        more: number of nodes; below 0: fewer, at most as many as there are.
    """
    if more == 0:
        return cluster
    if cluster.pool and more < 0:
        return dataclasses.replace(cluster, gpus=cluster.gpus + more * kind.gpus)
    if more < 0:
        alike = np.flatnonzero((cluster.gpus == kind.gpus) & (cluster.gpu_type == kind.gpu_type))
        return without(cluster, alike[more:])
    made = add_nodes(cluster, f"{more}x{kind.gpus}")
    if cluster.pool:
        return made
    types = made.gpu_type.copy()
    types[-more:] = kind.gpu_type
    return dataclasses.replace(made, gpu_type=types)


def without(cluster: Cluster, nodes: Ints) -> Cluster:
    """Return the cluster without some nodes; the others are numbered anew, in their order."""
    stays = np.setdiff1d(np.arange(len(cluster.nodes)), nodes)
    place = np.full(len(cluster.nodes), -1, np.int64)
    place[stays] = np.arange(stays.size)
    down = cluster.down
    if down is not None:
        down = down[np.isin(down[:, 0].astype(np.int64), stays)].copy()
        down[:, 0] = place[down[:, 0].astype(np.int64)]
    return dataclasses.replace(
        cluster,
        nodes=tuple(cluster.nodes[at] for at in stays.tolist()),
        gpus=cluster.gpus[stays],
        rack=cluster.rack[stays],
        gpu_type=cluster.gpu_type[stays],
        cpus=None if cluster.cpus is None else cluster.cpus[stays],
        mem_mb=None if cluster.mem_mb is None else cluster.mem_mb[stays],
        down=down,
        queue_nodes=tuple(None if own is None else place[own][place[own] >= 0] for own in cluster.queue_nodes),
    )


def least(met: Callable[[int], bool], low: int, high: int, step: int) -> float:
    """Return the least number of nodes to add at which a goal is met; inf if it is not met at `high`.

    From 0 on the steps double, in the direction of the answer, until it lies between two sizes; bisection does the
    rest. A goal met at one size is taken as met at all larger ones.

    Args:
        met: whether the goal is met with this many more nodes.
        low: fewest, at most 0.
        high: most, above 0.
        step: the first one, above 0.
    """
    good = bad = 0
    if met(0):
        while good > low and bad == 0:
            at = max(low, good - step)
            good, bad = (at, 0) if met(at) else (good, at)
            step *= 2
        if bad == 0:
            return good
    else:
        while bad < high and good == 0:
            at = min(high, bad + step)
            good, bad = (at, bad) if met(at) else (0, at)
            step *= 2
        if good == 0:
            return math.inf
    while good - bad > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if met(middle) else (good, middle)
    return good
