"""``scontrol show partition``: partitions and the QOS whose limits hold for them, a block or one line (``-o``) each.

A row of the ledger is one partition.
"""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.machines import put_members, put_partitions
from gpuctl.slurm import recognise
from gpuctl.slurm.partitions import partition_of
from gpuctl.slurm.scontrol import fields, records

_START = b"PartitionName="
_MOST_MEMBERS = 1_000_000


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read partitions into ``queues`` with their ``qos``, and their nodes into ``queue_machines``.

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


FORMAT = Format(
    name="slurm-partitions",
    title="Slurm: partitions (scontrol show partition, with or without -o)",
    fills=("queues", "queue_machines"),
    file_names=("scontrol_partition.txt",),
    order=15,
    parser_version=2,
    sniff=recognise.partitions,
    load=load,
)
