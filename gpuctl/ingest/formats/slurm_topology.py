"""``topology.conf`` (tree and block) and ``scontrol show topology``: which nodes share a leaf switch.

A row of the ledger is one statement; comments and blank lines do not count.
"""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.machines import put_machines
from gpuctl.slurm import recognise
from gpuctl.slurm.conf import statements
from gpuctl.slurm.machines import Machine
from gpuctl.slurm.scontrol import name_of
from gpuctl.slurm.topology import read_leaf

_MOST_NODES = 1_000_000


def load(stream: BinaryIO, sink: Sink) -> None:
    """Fill ``rack`` of ``machines``; a node that several leaves name is given the first one.

    Switches above the leaves are counted as loaded: there is nothing to store of them.
    """
    racks: dict[str, str] = {}
    for statement in statements(stream):
        sink.seen()
        try:
            if statement.fault:
                raise RowError(statement.fault)
            leaf, machines = read_leaf(statement.text)
            if len(racks) + len(machines) > _MOST_NODES:
                raise RowError(f"more than {_MOST_NODES} machines")
            for machine in machines:
                racks.setdefault(name_of(machine, "node name"), leaf or "")
        except RowError as bad:
            sink.reject(statement.line_no, str(bad), statement.text)
            continue
        sink.loaded()
    put_machines(sink, [Machine(machine, rack=rack) for machine, rack in racks.items()])


FORMAT = Format(
    name="slurm-topology",
    title="Slurm: leaf switches or blocks of the nodes (topology.conf, scontrol show topology)",
    fills=("machines",),
    file_names=("topology.conf", "scontrol_topology.txt"),
    order=18,
    sniff=recognise.topology,
    load=load,
)
