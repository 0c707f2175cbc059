"""``topology.conf`` (tree and block) and ``scontrol show topology``: which machines share a leaf switch.

A row of the ledger is one statement; comments and blank lines are none.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from gpuctl.core.lines import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.machines import Machine, put_machines
from gpuctl.slurm.conf import INCLUDED, hosts, statements, words
from gpuctl.slurm.scontrol import name_of

_MOST_NODES = 1_000_000
_LINE = re.compile(rb"^[ \t]*(?:SwitchName|BlockName)[ \t]*=[ \t]*\S", re.IGNORECASE | re.MULTILINE)


def read_leaf(text: str) -> tuple[str | None, list[str]]:
    """Read one statement: the leaf switch or block and its machines; (None, []) for all other statements.

    A switch is a leaf where it names nodes and no switches below it, and, in scontrol's output, has Level=0.

    Raises:
        RowError: it cannot be read.
    """
    if re.match(r"include\s", text, re.IGNORECASE):
        raise RowError(INCLUDED)
    found = words(text)
    leaf = found.get("switchname") or found.get("blockname")
    if leaf is None:
        if next(iter(found)) in {"blocksizes", "blocklevels"}:
            return None, []
        raise RowError("neither SwitchName= nor BlockName= nor BlockSizes=")
    name_of(leaf, "switch or block name")
    if found.get("level", "0") != "0" or found.get("switches"):
        return None, []
    return leaf, hosts(found.get("nodes", ""))


def load(stream: BinaryIO, sink: Sink) -> None:
    """Fill ``rack`` of ``machines``; a machine that several leaves name is given the first one.

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


def sniff(name: str, head: bytes) -> str | None:
    """Recognise statements that begin with SwitchName= or BlockName=."""
    del name
    return "SwitchName= or BlockName= statements" if _LINE.search(head) else None


FORMAT = Format(
    name="slurm-topology",
    title="Slurm: leaf switches or blocks of the machines (topology.conf, scontrol show topology)",
    fills=("machines",),
    file_names=("topology.conf", "scontrol_topology.txt"),
    order=18,
    timezone="UTC",
    clock="utc",
    parser_version=1,
    sniff=sniff,
    load=load,
)
