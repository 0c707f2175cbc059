"""``topology.yaml`` of Slurm 25.05 and later: trees and blocks of nodes, several topologies in one file.

Only the block style that Slurm's manual shows is read: ``key: value`` lines and ``- `` items, no ``{…}``.
A row of the ledger is one line; comments and blank lines do not count.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import BinaryIO

from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.machines import put_machines
from gpuctl.slurm.conf import hosts
from gpuctl.slurm.machines import Machine
from gpuctl.slurm.scontrol import name_of

_MOST_NODES = 1_000_000
_LINE = re.compile(r"(?P<dash>(?:-\s+)*)(?:(?P<key>[A-Za-z_]\w*)\s*:(?:\s+(?P<value>.*))?|(?P<item>\d+))")
_TOPOLOGY = re.compile(rb"^(?:-\s+)topology[ \t]*:[ \t]*\S", re.MULTILINE)
_TRUE = frozenset({"true", "yes", "on"})


@dataclass
class _Topology:
    """One topology of the file: the rack of each node."""

    racks: dict[str, str] = field(default_factory=dict)
    default: bool = False


@dataclass
class _File:
    """What the lines read so far state."""

    topologies: list[_Topology] = field(default_factory=list)
    leaf: str | None = None
    left: int = _MOST_NODES

    def take(self, text: str) -> None:
        """Take one line in.

        Raises:
            RowError: it cannot be read.
        """
        line = _LINE.fullmatch(text)
        if line is None:
            raise RowError("not key: value in block style")
        key, value = line["key"], (line["value"] or "").strip().strip("\"'")
        if value.startswith(("{", "&", "*", "|", ">")):
            raise RowError("not key: value in block style")
        if key == "topology":
            self.topologies.append(_Topology())
            self.leaf = None
        elif not self.topologies:
            raise RowError("a line before the first topology")
        elif key == "cluster_default":
            self.topologies[-1].default = value.lower() in _TRUE
        elif key == "switch" or (key == "block" and line["dash"]):
            self.leaf = name_of(value, "switch or block name")
        elif key == "nodes":
            self._nodes(value)

    def _nodes(self, value: str) -> None:
        if self.leaf is None:
            raise RowError("nodes outside of a switch or block")
        machines = hosts(value)
        self.left -= len(machines)
        if self.left < 0:
            raise RowError(f"more than {_MOST_NODES} machines")
        for machine in machines:
            self.topologies[-1].racks.setdefault(name_of(machine, "node name"), self.leaf)

    def racks(self) -> dict[str, str]:
        """The racks of the cluster's default topology, else of the first one that has any."""
        ranked = sorted((t for t in self.topologies if t.racks), key=lambda t: not t.default)
        return ranked[0].racks if ranked else {}


def load(stream: BinaryIO, sink: Sink) -> None:
    """Fill ``rack`` of ``machines`` from the topology that is the cluster's default, else the first with nodes."""
    whole = _File()
    for line in numbered_lines(stream):
        data = line.data.strip()
        if not data or data.startswith(b"#") or data in {b"---", b"..."}:
            continue
        sink.seen()
        try:
            whole.take(re.sub(r"\s#.*", "", line.text().strip()).strip())
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        sink.loaded()
    put_machines(sink, [Machine(machine, rack=rack) for machine, rack in whole.racks().items()])


def sniff(name: str, head: bytes) -> str | None:
    """Recognise a list of topologies."""
    del name
    return "a list of topologies in YAML" if _TOPOLOGY.search(head) else None


FORMAT = Format(
    name="slurm-topology-yaml",
    title="Slurm: leaf switches or blocks of the nodes (topology.yaml, 25.05 and later)",
    fills=("machines",),
    file_names=("topology.yaml",),
    order=18,
    sniff=sniff,
    load=load,
)
