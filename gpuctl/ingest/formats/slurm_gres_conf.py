"""``gres.conf``: which GPUs the nodes have, if slurm.conf or scontrol have not stated it already.

A row of the ledger is one statement; comments and blank lines do not count.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.machines import Rows, put_machines
from gpuctl.ingest.slurm.site.reconcile import reconcile
from gpuctl.slurm.conf import INCLUDED, hosts, statements, words
from gpuctl.slurm.gres import MOST_GPUS
from gpuctl.slurm.machines import Machine
from gpuctl.slurm.scontrol import name_of, whole

_FILE = re.compile(r"/dev/nvidia(\d{1,4})", re.ASCII)
_MOST_NODES = 1_000_000
_LINE = re.compile(
    rb"^[ \t]*(?:AutoDetect[ \t]*=[ \t]*\w+|(?:NodeName[ \t]*=\S+[ \t]+)?(?:AutoDetect=\w+[ \t]+)?Name[ \t]*=[ \t]*\w+"
    rb"(?:[ \t]+(?:Type|File|Count|Cores|CPUs|Links|Flags|MultipleFiles)[ \t]*=|[ \t]*$))",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass
class _Inventory:
    """GPUs of each node as the statements read so far state."""

    gpus: Counter[str] = field(default_factory=Counter)
    types: dict[str, dict[str, None]] = field(default_factory=dict)
    files: dict[str, list[int]] = field(default_factory=dict)
    """Of each node, the numbers N of its files /dev/nvidiaN, in the order in which Slurm numbers its GPUs."""
    budget: int = _MOST_NODES

    def take(self, text: str) -> None:
        """Take one statement in.

        Raises:
            RowError: it cannot be read.
        """
        if re.match(r"include\s", text, re.IGNORECASE):
            raise RowError(INCLUDED)
        found = words(text)
        if found.get("name", "").lower() != "gpu" or "nodename" not in found:
            return
        count = _count(found)
        nodes = hosts(found["nodename"])
        self.budget -= len(nodes)
        if self.budget < 0:
            raise RowError(f"more than {_MOST_NODES} nodes in all statements")
        for node in nodes:
            self.gpus[name_of(node, "node name")] += count
            numbers = [_FILE.fullmatch(file) for file in hosts(found["file"])] if found.get("file") else []
            self.files.setdefault(node, []).extend(int(number[1]) for number in numbers if number)
            if found.get("type"):
                self.types.setdefault(node, {})[found["type"]] = None


def _count(found: dict[str, str]) -> int:
    """GPUs of one statement: its ``Count``, else the files it names, else one.

    ``MultipleFiles`` are the device files of one MIG instance.
    """
    count = whole(found.get("count"), MOST_GPUS)
    if count is None:
        count = len(hosts(found["file"])) if found.get("file") else 1
    return count


def load(stream: BinaryIO, sink: Sink) -> None:
    """Fill ``gpus_labelled`` and ``gpu_type`` of ``machines`` that name none yet.

    Statements without ``NodeName`` (they hold for whatever node reads the file), of other resources than GPUs, and
    ``AutoDetect`` are counted as loaded: there is nothing to store of them.
    """
    inventory = _Inventory()
    for statement in statements(stream):
        sink.seen()
        try:
            if statement.fault:
                raise RowError(statement.fault)
            inventory.take(statement.text)
        except RowError as bad:
            sink.reject(statement.line_no, str(bad), statement.text)
            continue
        sink.loaded()
    machines = [
        Machine(node, min(count, MOST_GPUS), ",".join(inventory.types.get(node, {})) or None)
        for node, count in inventory.gpus.items()
    ]
    put_machines(sink, machines, keep=True)
    numbering = Rows(sink, "gpu_numbering", {"machine": "text", "idx": "whole", "minor": "whole"})
    for node, files in inventory.files.items():
        for idx, minor in enumerate(files):
            numbering.add(node, idx, minor)
    numbering.flush()
    reconcile(sink)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise ``Name=… File=…``, or AutoDetect= in a file of that name."""
    found = _LINE.search(head)
    if found is None or b"CPUAlloc=" in head or re.search(rb"^[ \t]*(?:ClusterName|PartitionName)[ \t]*=", head, re.M):
        return None
    if b"name" not in found[0].lower().replace(b"nodename", b"") and not name.startswith("gres"):
        return None
    return "Name= statements of gres.conf"


FORMAT = Format(
    name="slurm-gres-conf",
    title="Slurm: gres.conf with the GPUs of the nodes",
    fills=("machines", "gpu_numbering"),
    file_names=("gres.conf",),
    order=16,
    sniff=sniff,
    load=load,
    parser_version=2,
)
