"""``/ws/v1/cluster/nodes`` of a YARN ResourceManager: what nodes offer, and what of it was in use.

A row of the ledger is one node. GPUs are read as Hadoop 3.1 and later write them (``totalResource``,
``usedResource``), and as the GPU-patched Hadoop 2.9 of OpenPAI does (``usedGPUs``, ``availableGPUs``).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO, NamedTuple

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.yarn.dumps import take_items
from gpuctl.ingest.yarn.facts import epoch_millis, host
from gpuctl.ingest.yarn.machines import Machine, add_machines
from gpuctl.ingest.yarn.quotas import fill_quotas
from gpuctl.ingest.yarn.resources import Resource, as_list, resource_of_json, text_of, whole_of

_NODES = re.compile(rb'"nodes"\s*:\s*(?:null|\{\s*\}|\{\s*"node"\s*:)')
_NODE = re.compile(rb'"nodeHostName"\s*:')
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Node(NamedTuple):
    """A node: name, what it offers, when its health was last looked at, GPUs in use (None: not stated), its state."""

    name: str
    machine: Machine
    seen_ms: int | None
    gpus_used: float | None
    state: str | None


def read_node(value: dict[str, Any]) -> Node:
    """Read one node.

    Raises:
        RowError: it is not what a node looks like.
    """
    name = host(text_of(value.get("nodeHostName")) or text_of(value.get("id")) or "")
    if name is None:
        raise RowError("no printable node name")
    labels = [label for label in map(text_of, as_list(value.get("nodeLabels"))) if label is not None]
    machine = Machine(rack=text_of(value.get("rack")), partition=",".join(sorted(labels)) or None)
    total, used = resource_of_json(value.get("totalResource")), resource_of_json(value.get("usedResource"))
    free = resource_of_json(value.get("availableResource"))
    gpus_used = whole_of(value.get("usedGPUs"))
    if total is None and used is not None and free is not None:  # 2.10
        total = Resource(*(a + b for a, b in zip(used, free, strict=True)))  # type: ignore[arg-type]
    if total is not None:
        machine.offers(*total)
        machine.gpus = max(machine.gpus or 0, _sum(value, "usedGPUs", "availableGPUs") or 0)
        gpus_used = int(used.gpus) if used is not None and gpus_used is None else gpus_used
    else:
        machine.mem_mb = _sum(value, "usedMemoryMB", "availMemoryMB")
        machine.cpus = _sum(value, "usedVirtualCores", "availableVirtualCores")
        machine.gpus = _sum(value, "usedGPUs", "availableGPUs")
    return Node(name, machine, epoch_millis(value.get("lastHealthUpdate")), gpus_used, text_of(value.get("state")))


def _sum(value: dict[str, Any], used: str, free: str) -> int | None:
    parts = whole_of(value.get(used)), whole_of(value.get(free))
    if parts[0] is None or parts[1] is None:
        return None
    both = parts[0] + parts[1]
    return both if 0 <= both < 2**31 else None


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read nodes into ``machines``, and what they have in use into ``machine_samples``.

    What is in use is of the moment of the answer, which carries no time. The samples are given the latest at which the
    health of any node was looked at: that was just before if there are many nodes, and up to the interval of the
    checks (10 minutes by default) if there are few.
    """
    nodes: list[Node] = []
    marks = ("id", "nodeHostName", "rack")
    take_items(stream, sink, ("node",), marks, lambda value: nodes.append(read_node(value)))
    machines: dict[str, Machine] = {}
    for node in nodes:
        machines[node.name] = _together(machines.get(node.name), node.machine)
    add_machines(sink, machines)
    fill_quotas(sink)
    response_ms = max((node.seen_ms for node in nodes if node.seen_ms is not None), default=None)
    if response_ms is not None:
        _add_samples(sink, nodes, response_ms)


def _together(known: Machine | None, more: Machine) -> Machine:
    """What two answers report about one machine; the numbers of a lost one are 0."""
    if known is None:
        return more
    numbers = (
        max((n for n in pair if n is not None), default=None)
        for pair in ((known.gpus, more.gpus), (known.cpus, more.cpus), (known.mem_mb, more.mem_mb))
    )
    names = (
        min((n for n in pair if n is not None), default=None)
        for pair in ((known.rack, more.rack), (known.partition, more.partition))
    )
    return Machine(*numbers, *names)  # type: ignore[arg-type]


def _add_samples(sink: Sink, nodes: list[Node], response_ms: int) -> None:
    import polars as pl

    columns = {
        "machine": pl.Series([n.name for n in nodes], dtype=pl.String),
        "gpus_used": pl.Series([n.gpus_used for n in nodes], dtype=pl.Float64),
        "state": pl.Series([n.state for n in nodes], dtype=pl.String),
    }
    at = pl.lit(_EPOCH + timedelta(milliseconds=response_ms), dtype=pl.Datetime("us", "UTC"))
    sink.insert("machine_samples", pl.DataFrame(columns).with_columns(ts=at))


def sniff(name: str, head: bytes) -> str | None:
    """Recognise a list of nodes."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{") and (_NODES.search(text) or _NODE.search(text)):
        return 'nodes with "nodeHostName"'
    return None


FORMAT = Format(
    name="yarn-rest-nodes",
    title="YARN: nodes as a ResourceManager's REST interface lists them (/ws/v1/cluster/nodes)",
    fills=("machines", "machine_samples"),
    file_names=("*nodes*.json",),
    order=10,
    sniff=sniff,
    load=load,
)
