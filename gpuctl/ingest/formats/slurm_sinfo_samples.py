"""Samples of ``sinfo -N`` over time (`gpuctl sample`, or the same columns without a header): GPUs in use.

A row of the ledger is one line; blank lines do not count.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.machines import Rows
from gpuctl.ingest.slurm.site.samples import ALIASES, EPOCH_NAMES, Table
from gpuctl.slurm.delimited import Layout, header_in
from gpuctl.slurm.gres import read_gres
from gpuctl.slurm.scontrol import name_of

KINDS = {"ts": "ms", "machine": "text", "gpus_used": "real", "state": "text"}
"""The columns of ``machine_samples`` that are filled, and their kinds (`gpuctl.ingest.slurm.site.machines.Rows`)."""
_DEFAULT = Layout("|", ("node", "state", "gres", "gresused", "cpusstate", "allocmem", "reason"))
_ROW = re.compile(
    rb"\d{9,10}(?:\.\d+)?\|[^|\s]+\|[a-z_+-]+[*~#!%$@^]*\|[^|]*\|"
    rb"\s*(?:gpu:|\(null\)|N/A)[^|]*\|\d+/\d+/\d+/\d+ ?\|[^|]*\|"
)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``machine_samples``; ``gpus_used`` is NULL if there is no column GresUsed.

    A node that sinfo lists several times in one sample (once per partition) is stored once.
    """
    table, rows = Table(_DEFAULT, read_machine), Rows(sink, "machine_samples", KINDS)
    at, seen = -1, set[str]()
    for ts, (machine, used, state) in table.samples(stream, sink):
        if ts != at:
            at, seen = ts, set()
        if machine not in seen:
            seen.add(machine)
            rows.add(ts, machine, used, state)
    rows.flush()


def read_machine(cells: dict[str, str]) -> tuple[str, float | None, str | None]:
    """Read one line of sinfo after its time: node, GPUs in use, state.

    Raises:
        RowError: a cell is missing or not what it should be.
    """
    machine = name_of(cells.get("node") or cells.get("nodelist"), "node name")
    state = cells.get("state") or None
    if state is not None and not state.isprintable():
        raise RowError("no printable state")
    used = cells.get("gresused")
    try:
        return machine, None if used is None else float(read_gres(used).gpus), state
    except ValueError as bad:
        raise RowError(str(bad)) from None


def sniff(name: str, head: bytes) -> str | None:
    """Recognise a header with a time and GRES_USED, or rows of that kind without one."""
    del name
    columns = {ALIASES.get(c, c) for c in header_in(head)}
    if columns & EPOCH_NAMES and "gresused" in columns and columns & {"node", "nodelist"}:
        return "header of sinfo samples"
    return "rows of sinfo samples" if _ROW.match(head.removeprefix(b"\xef\xbb\xbf").lstrip()) else None


FORMAT = Format(
    name="slurm-sinfo-samples",
    title="Slurm: GPUs in use on each node, sampled over time (gpuctl sample)",
    fills=("machine_samples",),
    file_names=("sinfo-2026-11-20.txt", "sinfo_samples.txt"),
    order=50,
    zoned=True,
    sniff=sniff,
    load=load,
)
