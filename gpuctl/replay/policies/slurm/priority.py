"""Slurm's multifactor priority of jobs, as arrays over jobs.

Sources: SchedMD's page *Multifactor Priority Plugin*, slurm.conf(5), sprio(1); rounding and gaps as observed in
slurmctld 22.05.8 (tests/fixtures/slurm/priority). In addition to the page:

- the size factor is the mean of the parts of all nodes and of all CPUs; with ``PriorityFavorSmall`` the mean of their
  complements to 1, so that a job of one node does not reach 1;
- with ``SMALL_RELATIVE_TO_TIME`` a job counts at least the CPUs of as many average nodes as it has nodes;
- all factors except those of ``NO_NORMAL_*`` lie between 0 and 1; the sum is cut, not rounded, to a whole number from 1
  to 2**32 - 1; 0 is kept for held jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.replay.models.records import Floats, Ints
    from gpuctl.slurm.config import Multifactor

MOST = 2**32 - 1
LEAST = 1


@dataclass(frozen=True)
class Factors:
    """The factors of some jobs before weights; every field is an array over jobs.

    Attributes:
        age: part of ``PriorityMaxAge`` that they have waited, eligible.
        association: of their association.
        fair_share: of their association (`gpuctl.replay.policies.slurm.fairshare`).
        size: see `size_factor`.
        partition: of the partition.
        qos: of their QOS.
        tres: by the name of a trackable resource, its part of the partition's; in Slurm's order of resources.
        site: what administrators or a plugin add.
        nice: reduction by users.
    """

    age: Floats
    association: Floats
    fair_share: Floats
    size: Floats
    partition: Floats
    qos: Floats
    tres: Mapping[str, Floats]
    site: Ints
    nice: Ints


def size_factor(
    nodes: Ints, cpus: Ints, limit_min: Floats, *, all_nodes: int, all_cpus: int, settings: Multifactor
) -> Floats:
    """How big jobs are.

    Args:
        nodes: least number requested by each.
        cpus: CPUs that each requests or has; 0 if unknown.
        limit_min: time limits in minutes, the partition's if a job has none; only for ``SMALL_RELATIVE_TO_TIME``.
        all_nodes: nodes of the cluster.
        all_cpus: CPUs of the cluster.
        settings: ``PriorityFavorSmall`` and the flags.
    """
    if "SMALL_RELATIVE_TO_TIME" in settings.flags:
        of_nodes = nodes * float(all_cpus) / float(all_nodes)
        size = np.maximum(of_nodes, cpus) / limit_min / all_cpus
        size = 1.0 - size if settings.favor_small else size
    else:
        of_nodes, of_cpus = nodes.astype(float), cpus.astype(float)
        if settings.favor_small:
            of_nodes, of_cpus = all_nodes - of_nodes, all_cpus - of_cpus
        part = of_nodes / all_nodes
        size = np.where(cpus > 0, (part + of_cpus / all_cpus) / 2, part)
    clipped: Floats = np.clip(size, 0.0, 1.0)
    return clipped


def normalized(priorities: Ints, highest: int, *, as_they_are: bool = False) -> Floats:
    """Priorities of partitions, QOS or associations as parts of the highest one.

    Args:
        priorities: each job's.
        highest: of all there are, whether a job has it or not.
        as_they_are: ``NO_NORMAL_PART``, ``_QOS`` or ``_ASSOC``: no division.
    """
    if as_they_are or highest <= 0:
        return priorities.astype(float)
    part: Floats = priorities / float(highest)
    return part


def tres_factor(amounts: Floats, of_partition: Floats, *, as_they_are: bool = False) -> Floats:
    """Amounts of a resource as shares of each job's partition; 0 if it has none.

    Args:
        amounts: requested or held by each job.
        of_partition: amount of its partition, in the same unit.
        as_they_are: ``NO_NORMAL_TRES``: no division.
    """
    if as_they_are:
        return amounts.astype(float)
    return np.divide(amounts, of_partition, out=np.zeros(len(amounts)), where=of_partition > 0)


def weighted(factors: Factors, settings: Multifactor) -> dict[str, Floats]:
    """The parts of the priorities, by the names of sprio's columns; ``TRES`` is their sum."""
    tres = np.zeros(len(factors.age))
    for name, factor in factors.tres.items():
        tres = tres + factor * settings.weight_tres.get(name, 0.0)
    return {
        "SITE": factors.site.astype(float),
        "AGE": factors.age * settings.weight_age,
        "ASSOC": factors.association * settings.weight_assoc,
        "FAIRSHARE": factors.fair_share * settings.weight_fairshare,
        "JOBSIZE": factors.size * settings.weight_job_size,
        "PARTITION": factors.partition * settings.weight_partition,
        "QOS": factors.qos * settings.weight_qos,
        "TRES": tres,
        "NICE": factors.nice.astype(float),
    }


def priorities(factors: Factors, settings: Multifactor, before: Ints | None = None) -> Ints:
    """The priorities of jobs that are not held.

    Args:
        factors: of each job.
        settings: the weights.
        before: the priorities so far; with ``INCR_ONLY`` none goes below its own.
    """
    parts = weighted(factors, settings)
    total = np.zeros(len(factors.age))
    for name in ("SITE", "AGE", "ASSOC", "FAIRSHARE", "JOBSIZE", "PARTITION", "QOS", "TRES"):
        total = total + parts[name]
    whole = np.clip(total - parts["NICE"], LEAST, MOST).astype(np.int64)
    if before is not None and "INCR_ONLY" in settings.flags:
        return np.maximum(whole, before)
    return whole
