"""``scontrol show partition``: partitions and the QOS whose limits hold for them, a block or one line (``-o``) each.

A row of the ledger is one partition.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from gpuctl.core.lines import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.machines import put_members, put_partitions
from gpuctl.slurm.conf import hosts
from gpuctl.slurm.scontrol import fields, name_of, records

_START = b"PartitionName="
_SHAPE = re.compile(rb"PartitionName=\S+\s+AllowGroups=")
_MOST_MEMBERS = 1_000_000
_NO_QOS = frozenset({"", "N/A", "(null)"})


def partition_of(found: dict[str, str]) -> tuple[str, str | None, list[str]]:
    """Read one partition of its fields: its name, its QOS, if it has one of its own, and its machines.

    Raises:
        RowError: the name or the host list is none.
    """
    qos = found.get("QoS", "")
    name = name_of(found.get("PartitionName"), "partition name")
    return name, None if qos in _NO_QOS else qos, hosts(found.get("Nodes", ""))


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read partitions into ``queues`` with their ``qos``, and their machines into ``queue_machines``.

    The limits of such a QOS (`slurm_limits`) are the partition's quota.
    """
    partitions: dict[str, str | None] = {}
    members: list[tuple[str, str]] = []
    for record in records(stream, _START):
        sink.seen()
        try:
            if record.fault:
                raise RowError(record.fault)
            partition, qos, machines = partition_of(fields(record.text))
            if len(members) + len(machines) > _MOST_MEMBERS:
                raise RowError(f"partitions list more than {_MOST_MEMBERS} nodes")
        except RowError as bad:
            sink.reject(record.line_no, str(bad), record.text)
            continue
        partitions[partition] = qos
        members += [(partition, machine) for machine in machines]
        sink.loaded()
    put_members(sink, members, whole="queue")
    put_partitions(sink, partitions)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise PartitionName= followed by AllowGroups=, in the order in which scontrol prints them."""
    del name
    return "PartitionName= records of scontrol" if _SHAPE.match(head.removeprefix(b"\xef\xbb\xbf").lstrip()) else None


FORMAT = Format(
    name="slurm-partitions",
    title="Slurm: partitions (scontrol show partition, with or without -o)",
    fills=("queues", "queue_machines"),
    file_names=("scontrol_partition.txt",),
    order=15,
    timezone="UTC",
    clock="utc",
    parser_version=2,
    sniff=sniff,
    load=load,
)
