"""Leaf switches of nodes, from topology.conf or ``scontrol show topology``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.core.lines import RowError
from gpuctl.ingest.formats.slurm_topology import read_leaf
from gpuctl.slurm.conf import statements
from gpuctl.slurm.nodes import MOST_NODES

if TYPE_CHECKING:
    from typing import BinaryIO


def read_topology(stream: BinaryIO) -> dict[str, str]:
    """Read the leaf switch or block of each node; of several the first one counts.

    Raises:
        InputError: a statement cannot be read, or there are too many nodes.
    """
    switches: dict[str, str] = {}
    for statement in statements(stream):
        try:
            if statement.fault:
                raise RowError(statement.fault)
            leaf, nodes = read_leaf(statement.text)
            if len(switches) + len(nodes) > MOST_NODES:
                raise RowError(f"more than {MOST_NODES} nodes")
        except RowError as bad:
            raise InputError(f"line {statement.line_no}: {bad}") from None
        for node in nodes:
            switches.setdefault(node, leaf or "")
    return switches
