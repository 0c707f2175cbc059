"""Leaf switches of nodes, from topology.conf or ``scontrol show topology``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError
from gpuctl.slurm.conf import INCLUDED, hosts, statements, words
from gpuctl.slurm.nodes import MOST_NODES
from gpuctl.slurm.scontrol import name_of

if TYPE_CHECKING:
    from typing import BinaryIO


def read_topology(stream: BinaryIO) -> dict[str, str]:
    """Read the leaf switch or block of each node; the first one counts.

    Raises:
        InputError: a statement cannot be parsed, or there are too many nodes.
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


def read_leaf(text: str) -> tuple[str | None, list[str]]:
    """Parse one statement: the leaf switch or block and its nodes; (None, []) for all other statements.

    A switch is a leaf if it names nodes and no switches below it, and, in scontrol's output, has Level=0.

    Raises:
        RowError: it cannot be parsed.
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
