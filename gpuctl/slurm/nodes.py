"""Nodes and node sets of slurm.conf.

Source: slurm.conf(5) of Slurm 22.05, *NODE CONFIGURATION*, *DOWN NODE CONFIGURATION* and *NODESET CONFIGURATION*.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError
from gpuctl.slurm.conf import hosts
from gpuctl.slurm.machines import machine_of, read_node
from gpuctl.slurm.scontrol import fields, name_of, records, whole

if TYPE_CHECKING:
    from typing import BinaryIO

    from gpuctl.slurm.partitions import Partition

MOST_NODES = 1_000_000
MOST_MEMBERS = 1_000_000
"""Names of nodes in all partitions and node sets together."""
_UNUSABLE = ("DOWN", "DRAIN", "FAIL", "FUTURE")
_RESERVED = ("corespeccount", "cpuspeclist", "memspeclimit")
"""CPUs and memory that jobs do not get."""


@dataclass(frozen=True)
class Node:
    """One node of slurm.conf.

    Attributes:
        name: its name.
        cpus: ``CPUs``, or boards x sockets x cores x threads.
        mem_mb: ``RealMemory``, MiB; None if unstated.
        gpus: GPUs of ``Gres``.
        gpu_type: of ``Gres``; several are joined by commas; None if none is named.
        weight: ``Weight``: nodes of lower weight are filled first.
        features: ``Features``, which a node set may refer to.
        usable: whether its ``State`` lets jobs start on it.
    """

    name: str
    cpus: int = 1
    mem_mb: int | None = None
    gpus: int = 0
    gpu_type: str | None = None
    weight: int = 1
    features: tuple[str, ...] = ()
    usable: bool = True


@dataclass
class Nodes:
    """The nodes of the statements read so far.

    Attributes:
        nodes: by name, in the order of the file.
        sets: nodes and features of each node set.
        default: settings of ``NodeName=DEFAULT``.
        unmodelled: settings that are not modelled: name and reason.
        left: remaining number of names that partitions and node sets may list.
    """

    KEYS: ClassVar[frozenset[str]] = frozenset({"nodename", "nodeset", "downnodes"})

    nodes: dict[str, Node] = field(default_factory=dict)
    sets: dict[str, tuple[list[str], frozenset[str]]] = field(default_factory=dict)
    default: dict[str, str] = field(default_factory=dict)
    unmodelled: list[tuple[str, str]] = field(default_factory=list)
    left: int = MOST_MEMBERS

    def take(self, found: dict[str, str]) -> None:
        """Process a statement, its words in lower case.

        Raises:
            RowError: it cannot be parsed, or names duplicate or unknown nodes.
        """
        if "nodeset" in found:
            features = frozenset(filter(None, found.get("feature", "").split(",")))
            names = hosts(found.get("nodes", ""))
            self._count(len(names))
            self.sets[name_of(found["nodeset"], "node set")] = (names, features)
        elif "downnodes" in found:
            for name in hosts(found["downnodes"]):
                if name not in self.nodes:
                    raise RowError(f"DownNodes: there is no node {name}")
                if found.get("state", "DOWN").upper().startswith(_UNUSABLE):
                    self.nodes[name] = replace(self.nodes[name], usable=False)
        elif found["nodename"].upper() == "DEFAULT":
            self.default |= found
        else:
            self._nodes({**self.default, **found})

    def _nodes(self, found: dict[str, str]) -> None:
        names = hosts(found["nodename"])
        if not names or len(self.nodes) + len(names) > MOST_NODES:
            raise RowError("no node name" if not names else f"more than {MOST_NODES} nodes")
        model, weight = machine_of(found), whole(found.get("weight"))
        reserved = ", ".join(f"{key}={found[key]}" for key in _RESERVED if found.get(key, "0") != "0")
        if reserved:
            self.unmodelled.append(
                (f"nodes {found['nodename']}", f"{reserved} is not modelled: jobs get all of the node")
            )
        for name in names:
            if name in self.nodes:
                raise RowError(f"node {name} occurs twice, which Slurm refuses")
            self.nodes[name] = Node(
                name_of(name, "node name"),
                model.cpus or 1,
                model.mem_mb,
                model.gpus or 0,
                model.gpu_type,
                1 if weight is None else weight,
                tuple(filter(None, (found.get("features") or found.get("feature") or "").split(","))),
                not found.get("state", "UNKNOWN").upper().startswith(_UNUSABLE),
            )

    def members(self, partition: Partition) -> Partition:
        """Return the partition with its node sets expanded.

        Raises:
            InputError: all partitions so far have more than `MOST_MEMBERS` nodes together.
        """
        found: dict[str, None] = {}
        for name in partition.nodes:
            if name not in self.sets:
                found[name] = None
                continue
            listed, features = self.sets[name]
            found |= dict.fromkeys(listed)
            if features:
                found |= {node.name: None for node in self.nodes.values() if not features.isdisjoint(node.features)}
        try:
            self._count(len(found))
        except RowError as bad:
            raise InputError(f"partition {partition.name}: {bad}") from None
        return replace(partition, nodes=tuple(found)) if self.sets else partition

    def _count(self, names: int) -> None:
        self.left -= names
        if self.left < 0:
            raise RowError(f"more than {MOST_MEMBERS} nodes in all partitions and node sets")


def read_shown_nodes(stream: BinaryIO) -> Nodes:
    """Read ``scontrol show node``, with or without ``-o``.

    Whether a node is down or drained is ignored: only ``FUTURE`` ones are unusable.

    Raises:
        InputError: a record cannot be parsed.
    """
    found = Nodes()
    for record in records(stream, b"NodeName="):
        try:
            if record.fault:
                raise RowError(record.fault)
            machine, _ = read_node(record.text)
            cells = fields(record.text)
            weight = whole(cells.get("Weight"))
            if len(found.nodes) >= MOST_NODES:
                raise RowError(f"more than {MOST_NODES} nodes")
        except RowError as bad:
            raise InputError(f"scontrol show node, line {record.line_no}: {bad}") from None
        features = cells.get("AvailableFeatures", "(null)")
        found.nodes[machine.machine] = Node(
            machine.machine,
            machine.cpus or 1,
            machine.mem_mb,
            machine.gpus or 0,
            machine.gpu_type,
            1 if weight is None else weight,
            () if features == "(null)" else tuple(filter(None, features.split(","))),
            "FUTURE" not in cells.get("State", ""),
        )
    return found
