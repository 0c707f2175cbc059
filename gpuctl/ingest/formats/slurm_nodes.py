"""``scontrol show node``: the nodes of a Slurm cluster, a block of lines each, or one line each (``-o``).

A row of the ledger is one node.
"""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.core.job_rows import add_queues
from gpuctl.ingest.slurm.site.machines import put_machines, put_members
from gpuctl.ingest.slurm.site.reconcile import reconcile
from gpuctl.slurm import recognise
from gpuctl.slurm.machines import Machine, read_node
from gpuctl.slurm.recognise import NODE_START
from gpuctl.slurm.scontrol import records


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read nodes into ``machines``, their partitions into ``queues``, and which belongs to which.

    Of a node that is listed twice the last one counts.
    """
    machines: list[Machine] = []
    members: list[tuple[str, str]] = []
    for record in records(stream, NODE_START):
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
    reconcile(sink)


FORMAT = Format(
    name="slurm-nodes",
    title="Slurm: nodes, their GPUs and partitions (scontrol show node, with or without -o)",
    fills=("machines", "queues", "queue_machines"),
    file_names=("scontrol_node.txt", "nodes.txt"),
    order=14,
    parser_version=2,
    sniff=recognise.nodes,
    load=load,
)
