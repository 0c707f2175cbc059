"""``scontrol show node``: the machines of a Slurm cluster, a block of lines each, or one line each (``-o``).

A row of the ledger is one node.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from gpuctl.core.lines import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.core.job_rows import add_queues
from gpuctl.ingest.slurm.site.machines import Machine, put_machines, put_members
from gpuctl.slurm.gres import read_gres, read_tres
from gpuctl.slurm.scontrol import fields, name_of, records, whole

_START = b"NodeName="
_SHAPE = re.compile(rb"\sCPUAlloc=\d+\s.*?\sCPUTot=\d+", re.DOTALL)


def read_node(text: str) -> tuple[Machine, list[str]]:
    """Read one node: what the store keeps of it, and all of its partitions.

    Raises:
        RowError: a name or number is none.
    """
    return node_of(fields(text))


def node_of(found: dict[str, str]) -> tuple[Machine, list[str]]:
    """The same of its fields, which are named as scontrol names them.

    ``gpus`` is what ``Gres`` says, or ``CfgTRES`` where there is no ``Gres``; typed and untyped entries of CfgTRES
    are the same GPUs and are counted once. Memory is ``RealMemory`` (MiB).

    Raises:
        RowError: a name or number is none.
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


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read nodes into ``machines``, their partitions into ``queues``, and which belongs to which.

    Of a node that is listed twice the last one counts.
    """
    machines: list[Machine] = []
    members: list[tuple[str, str]] = []
    for record in records(stream, _START):
        sink.seen()
        try:
            if record.fault:
                raise RowError(record.fault)
            machine, listed = read_node(record.text)
        except RowError as bad:
            sink.reject(record.line_no, str(bad), record.text)
            continue
        machines.append(machine)
        members += [(partition, machine.machine) for partition in listed]
        sink.loaded()
    put_machines(sink, machines)
    put_members(sink, members, whole="machine")
    add_queues(sink, {partition for partition, _ in members})


def sniff(name: str, head: bytes) -> str | None:
    """Recognise records that begin with NodeName= and say how many CPUs are allocated."""
    del name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "NodeName= records with CPUAlloc=" if text.startswith(_START) and _SHAPE.search(text) else None


FORMAT = Format(
    name="slurm-nodes",
    title="Slurm: machines, their GPUs and partitions (scontrol show node, with or without -o)",
    fills=("machines", "queues", "queue_machines"),
    file_names=("scontrol_node.txt", "nodes.txt"),
    order=14,
    timezone="UTC",
    clock="utc",
    parser_version=2,
    sniff=sniff,
    load=load,
)
