"""``slurm.conf`` and the files it includes: nodes, partitions, and the settings that scheduling depends on.

A row of the ledger is one statement; comments and blank lines do not count.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.machines import put_machines, put_members, put_partitions
from gpuctl.ingest.slurm.site.reconcile import reconcile
from gpuctl.ingest.slurm.site.settings import is_stored, settings_rows
from gpuctl.slurm import recognise
from gpuctl.slurm.conf import INCLUDED, hosts, statements, without_secret, words
from gpuctl.slurm.machines import Machine, machine_of
from gpuctl.slurm.scontrol import name_of

_DEFAULT = "DEFAULT"
_MOST_MACHINES = 1_000_000
_MOST_MEMBERS = 1_000_000


@dataclass
class _Site:
    """What the statements read so far state."""

    machines: dict[str, Machine] = field(default_factory=dict)
    partitions: dict[str, dict[str, str]] = field(default_factory=dict)
    sets: dict[str, list[str]] = field(default_factory=dict)
    node_default: dict[str, str] = field(default_factory=dict)
    partition_default: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    rank: dict[str, int] = field(default_factory=dict)
    members: list[tuple[str, str]] = field(default_factory=list)
    all_rank: int = _MOST_MACHINES
    budget: int = _MOST_MEMBERS

    def take(self, text: str) -> None:
        """Take one statement in.

        Raises:
            RowError: it cannot be read.
        """
        if text.lower().startswith("include") and "=" not in text.split(None, 1)[0]:
            raise RowError(INCLUDED)
        found = words(text)
        first = next(iter(found))
        if first == "nodename":
            self._nodes(found)
        elif first == "partitionname":
            self._partition(found)
        elif first == "nodeset":
            self.sets[name_of(found["nodeset"], "node set")] = hosts(found.get("nodes", ""))
        else:
            self.settings.update((name, value) for name, value in found.items() if is_stored(name))

    def _nodes(self, found: dict[str, str]) -> None:
        if found["nodename"].upper() == _DEFAULT:
            self.node_default.update(found)
            return
        names = hosts(found["nodename"])
        if not names:
            raise RowError("no node name")
        model = machine_of({**self.node_default, **found})
        if len(self.machines) + len(names) > _MOST_MACHINES:
            raise RowError(f"more than {_MOST_MACHINES} machines")
        for name in names:
            self.machines[name_of(name, "node name")] = model._replace(machine=name)

    def _partition(self, found: dict[str, str]) -> None:
        if found["partitionname"].upper() == _DEFAULT:
            self.partition_default.update(found)
            return
        for name in found["partitionname"].split(","):
            partition = name_of(name, "partition name")
            self.partitions[partition] = {**self.partitions.get(partition, self.partition_default), **found}
            rank = list(self.partitions).index(partition)
            nodes = self.partitions[partition].get("nodes", "")
            if nodes.upper() == "ALL":
                self.all_rank = min(rank, self.all_rank)
                continue
            for node in hosts(nodes):
                for member in self.sets.get(node, [node]):
                    self.budget -= 1
                    if self.budget < 0:
                        raise RowError(f"partitions list more than {_MOST_MEMBERS} nodes")
                    self.members.append((partition, member))
                    self.rank[member] = min(rank, self.rank.get(member, rank))

    def finish(self) -> tuple[list[Machine], dict[str, str | None]]:
        """Return the nodes, each with the first partition that lists it, and the partitions with their QOS."""
        names = list(self.partitions)
        machines = []
        for name, machine in self.machines.items():
            rank = min(self.rank.get(name, len(names)), self.all_rank)
            machines.append(machine._replace(partition=names[rank] if rank < len(names) else None))
        return machines, {name: found.get("qos") or None for name, found in self.partitions.items()}


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``machines``, partitions (``queues``, ``queue_machines``) and ``settings``.

    GPUs are those of ``Gres``, none if a node has no ``Gres``. A partition's ``QOS`` is stored, because its limits
    (`slurm_limits`) are the partition's quota. Statements with nothing of this kind are counted as loaded; ``Include``
    is rejected, for the file it names is not followed.
    """
    site = _Site()
    for statement in statements(stream):
        sink.seen()
        try:
            if statement.fault:
                raise RowError(statement.fault)
            site.take(statement.text)
        except RowError as bad:
            sink.reject(statement.line_no, str(bad), without_secret(statement.text))
            continue
        sink.loaded()
    machines, partitions = site.finish()
    put_machines(sink, machines)
    put_members(sink, site.members, whole="queue")
    put_partitions(sink, partitions)
    settings_rows(sink, site.settings)
    reconcile(sink)


FORMAT = Format(
    name="slurm-conf",
    title="Slurm: slurm.conf with its nodes and partitions",
    fills=("machines", "queues", "queue_machines", "settings"),
    file_names=("slurm.conf",),
    order=10,
    sniff=recognise.conf,
    load=load,
)
