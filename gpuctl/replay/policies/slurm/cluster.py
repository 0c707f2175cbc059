"""The nodes of a site's slurm.conf, as a replay takes them."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.core.notes import NONE, NamedValue, listed, note
from gpuctl.replay.inputs.clusters import ONE_RACK, merged
from gpuctl.replay.inputs.transforms import forget_placement
from gpuctl.replay.models.records import Cluster
from gpuctl.replay.models.resources import GPUS_ONLY

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Floats, Ints, Workload
    from gpuctl.slurm.config import Site
    from gpuctl.slurm.nodes import Node

NO_SWITCH = "(no switch)"


def cluster_of(site: Site, workload: Workload, resources: tuple[str, ...] = GPUS_ONLY) -> Cluster:
    """The nodes of slurm.conf as nodes.

    Nodes without GPUs are included only if CPUs or memory count; nodes whose ``State`` excludes jobs are not. Racks are
    leaf switches if the site has topology.conf. A queue has the nodes of its partition; a queue that is no partition
    has those of the default one. A QOS limit on all GPUs of a partition becomes its quota.

    Args:
        site: from `gpuctl.slurm.site.read_site`.
        workload: whose queues and GPU types the cluster's numbers refer to.
        resources: what counts, see `gpuctl.replay.models.resources`.

    Raises:
        UsageError: slurm.conf names no node that jobs could use.
    """
    nodes = [node for node in site.nodes if node.usable and (node.gpus or resources != GPUS_ONLY)]
    if not nodes:
        raise UsageError(
            f"{_title(site)} names no nodes{'' if site.nodes else ' at all'} "
            f"{'with GPUs ' if resources == GPUS_ONLY else ''}that jobs can use",
            hint="say what to replay on: --cluster 64x8 (nodes x GPUs of each), or a TOML file",
        )
    notes = []
    if off := sum(not node.usable for node in site.nodes):
        notes.append(note("{off:,} node{off||s} whose State keeps jobs off {off|is|are} left out", off=off))
    if len(nodes) + off < len(site.nodes):
        notes.append(
            note(
                "{value:,} node{value||s} without GPUs {value|is|are} left out",
                value=len(site.nodes) - len(nodes) - off,
            )
        )
    names = list(workload.gpu_types)
    mixed = sum("," in (node.gpu_type or "") for node in nodes)
    if mixed:
        notes.append(
            note(
                "{mixed:,} node{mixed||s} {mixed|has|have} GPUs of several types: {mixed|it suits|they suit} jobs "
                "that ask for any type",
                mixed=mixed,
            )
        )
    types = [None if node.gpu_type is None or "," in node.gpu_type else node.gpu_type for node in nodes]
    names += sorted({kind for kind in types if kind is not None} - set(names))
    switches = [site.switches.get(node.name, NO_SWITCH) if site.switches else ONE_RACK for node in nodes]
    racks = tuple(dict.fromkeys(switches))
    queue_nodes, more = _queues(site, workload, nodes)
    quota = _quotas(site, workload)
    return Cluster(
        name=_title(site),
        nodes=tuple(node.name for node in nodes),
        gpus=np.array([node.gpus for node in nodes], np.int64),
        rack=np.array([racks.index(name) for name in switches], np.int64),
        gpu_type=np.array([-1 if kind is None else names.index(kind) for kind in types], np.int64),
        racks=racks,
        pool=False,
        quota=quota,
        quota_source="configured" if np.isfinite(quota).any() else "none",
        queue_nodes=queue_nodes,
        notes=(*notes, *more),
        gpu_types=tuple(names) if len(names) > len(workload.gpu_types) else (),
        cpus=np.array([node.cpus for node in nodes], np.float64),
        mem_mb=np.array([math.nan if node.mem_mb is None else node.mem_mb for node in nodes], np.float64),
    )


def on_nodes(workload: Workload, own: Cluster, cluster: Cluster) -> tuple[Workload, Cluster]:
    """Map jobs of a trace without listed nodes to the nodes of slurm.conf, by node name.

    Args:
        workload: the jobs, their recorded placements numbers of the nodes of `own`.
        own: the nodes that they ran on; times at which one was down are kept.
        cluster: from `cluster_of`.

    Returns:
        the jobs with their placements on the nodes, or without any if some ran on a node missing in slurm.conf, and the
            nodes with their down times. A job that names GPU types of no node, such as two types at once, may use any.
    """
    types = cluster.gpu_type[cluster.gpus > 0]
    if (types >= 0).all():
        other = (workload.gpu_type >= 0) & ~np.isin(workload.gpu_type, types)
        if other.any():
            names = listed("value", sorted({workload.gpu_types[k] for k in workload.gpu_type[other].tolist()}), 5)
            text = note(
                "{other:,} job{other||s} {other|names|name} GPU types that no node has ({names}): {other|it|they} "
                "may use any type",
                other=other.sum(),
                names=names,
            )
            gpu_type = np.where(other, -1, workload.gpu_type)
            workload = dataclasses.replace(workload, gpu_type=gpu_type, notes=(*workload.notes, text))
    place = {name: number for number, name in enumerate(cluster.nodes)}
    number = np.array([place.get(name, -1) for name in own.nodes], np.int64)
    if own.down is not None and len(own.down):
        down = own.down.copy()
        down[:, 0] = number[down[:, 0].astype(np.int64)]
        cluster = dataclasses.replace(cluster, down=merged(down[down[:, 0] >= 0]))
    piece_node = number[workload.piece_node]
    strange = sorted({own.nodes[k] for k in np.unique(workload.piece_node[piece_node < 0]).tolist()})
    if not strange:
        return dataclasses.replace(workload, piece_node=piece_node), cluster
    text = note(
        "jobs ran on {strange:,} node{strange||s} that slurm.conf does not have: {few}{more}",
        strange=len(strange),
        few=listed("machine", strange, 5),
        more=note(" and {more:,} more", more=len(strange) - 5) if len(strange) > 5 else note(""),
    )
    return forget_placement(workload), dataclasses.replace(cluster, notes=(*cluster.notes, text))


def _title(site: Site) -> str:
    return f"the nodes of slurm.conf{f' of {site.name}' if site.name else ''}"


def _queues(site: Site, workload: Workload, nodes: list[Node]) -> tuple[tuple[Ints | None, ...], list[Note]]:
    """The nodes of each queue, None for all of them; and notes."""
    place = {node.name: number for number, node in enumerate(nodes)}
    usual = next((partition.name for partition in site.partitions.values() if partition.default), None)
    strangers = [name for name in workload.queues if name not in site.partitions]
    found: list[Ints | None] = []
    for queue in workload.queues:
        partition = site.partitions.get(queue) or site.partitions.get(usual or "")
        if partition is None or partition.all_nodes:
            found.append(None)
            continue
        own = sorted(place[name] for name in partition.nodes if name in place)
        found.append(None if len(own) == len(nodes) else np.array(own, np.int64))
    if not strangers:
        return tuple(found), []
    where = note("have all nodes")
    if usual:
        where = note("have the nodes of the default partition {usual}", usual=NamedValue("queue", usual))
    text = note(
        "queues that are no partition of slurm.conf {where}: {few}{more}",
        where=where,
        few=listed("queue", strangers, 5),
        more=note(" and {more} more", more=len(strangers) - 5) if len(strangers) > 5 else NONE,
    )
    return tuple(found), [text]


def _quotas(site: Site, workload: Workload) -> Floats:
    """GPUs that the QOS of each queue's partition lets its jobs hold together; inf if there is no such limit."""
    quota = np.full(len(workload.queues), np.inf)
    for number, queue in enumerate(workload.queues):
        partition = site.partitions.get(queue)
        qos = site.qos.get(partition.qos or "") if partition is not None and site.limits_hold else None
        if qos is not None:
            quota[number] = qos.limits.grp_tres.get("gres/gpu", math.inf)
    return quota
