"""A node's properties in slurm.conf and in the output of ``scontrol show node``."""

from __future__ import annotations

from typing import NamedTuple

from gpuctl.core.line_reader import RowError
from gpuctl.slurm.gres import read_gres, read_tres
from gpuctl.slurm.scontrol import fields, name_of, whole


class Machine(NamedTuple):
    """A node's properties in one source; None if not stated.

    Attributes:
        machine: its name.
        gpus: number of GPUs.
        gpu_type: Slurm's name of the type; several joined by commas.
        cpus: CPUs as counted by Slurm.
        mem_mb: memory that jobs may have, MiB.
        partition: the first one listed.
        rack: its leaf switch or block.
    """

    machine: str
    gpus: int | None = None
    gpu_type: str | None = None
    cpus: int | None = None
    mem_mb: int | None = None
    partition: str | None = None
    rack: str | None = None


def machine_of(found: dict[str, str]) -> Machine:
    """Parse the properties in a node statement; the name is left empty.

    Raises:
        RowError: a number or the generic resources cannot be parsed.
    """
    try:
        gres = read_gres(found.get("gres", ""))
    except ValueError as bad:
        raise RowError(str(bad)) from None
    per_node = 1
    for key in ("boards", "sockets", "corespersocket", "threadspercore"):
        per_node *= whole(found.get(key), 2**16) or 1
    sockets = whole(found.get("socketsperboard"), 2**16)
    cpus = whole(found.get("cpus") or found.get("procs")) or per_node * (sockets or 1)
    if cpus > 2**20:
        raise RowError("a node with more than 1048576 CPUs")
    return Machine("", gres.gpus, gres.gpu_type, cpus, whole(found.get("realmemory"), 2**50))


def read_node(text: str) -> tuple[Machine, list[str]]:
    """Parse one node: its properties in the store, and all of its partitions.

    Raises:
        RowError: a name or number is invalid.
    """
    return node_of(fields(text))


def node_of(found: dict[str, str]) -> tuple[Machine, list[str]]:
    """Return the same from its fields, named as in scontrol.

    ``gpus`` comes from ``Gres``, or from ``CfgTRES`` if there is no ``Gres``; typed and untyped entries of CfgTRES
    are the same GPUs and are counted once. Memory is ``RealMemory`` (MiB).

    Raises:
        RowError: a name or number is invalid.
    """
    machine = name_of(found.get("NodeName"), "node name")
    gpus, kind = _gpus(found)
    partitions = [p for p in found.get("Partitions", "").split(",") if p and p != "(null)"]
    for partition in partitions:
        name_of(partition, "partition name")
    cpus, memory = whole(found.get("CPUTot")), whole(found.get("RealMemory"), 2**50)
    return Machine(machine, gpus, kind, cpus, memory, partitions[0] if partitions else None), partitions


def _gpus(found: dict[str, str]) -> tuple[int | None, str | None]:
    try:
        if "Gres" in found:
            gres = read_gres(found["Gres"])
            return gres.gpus, gres.gpu_type
        if "CfgTRES" in found:
            tres = read_tres(found["CfgTRES"])
            typed = {name: count for name, count in tres.items() if name}
            return int(tres.get(None, sum(typed.values()))), ",".join(typed) or None
    except ValueError as bad:
        raise RowError(str(bad)) from None
    return None, None
