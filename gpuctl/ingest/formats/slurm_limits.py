"""``sacctmgr -P show assoc`` and ``sacctmgr -P show qos``: limits on the GPUs of accounts, users and QOS.

A row of the ledger is one line after the header; blank lines do not count. What is taken: ``GrpTRES``, ``MaxTRES``,
``MaxTRESPerNode``, ``MaxTRESPU``, ``MaxTRESPA`` if they name ``gres/gpu`` or ``gres/gpu:TYPE``. A QOS's group
limit on ``gres/gpu`` becomes the quota of the partitions whose own QOS it is.
Limits on GPU minutes, wall time and numbers
of jobs are not modelled: rows with nothing else are counted as loaded.
"""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.limits import KINDS, Holder, LimitRows
from gpuctl.ingest.slurm.site.machines import put_quotas
from gpuctl.slurm.delimited import cells_of, header_line, sacctmgr_header
from gpuctl.slurm.dump import checked

_ASSOC = frozenset({"account", "user"})
_QOS = frozenset({"name", "grptres"})


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``gpu_limits``, and set the quotas of partitions that have a QOS of their own.

    Raises:
        InputError: the first line is not the header.
    """
    lines = numbered_lines(stream)
    hint = "write them with: sacctmgr -P show assoc > assoc.txt; sacctmgr -P show qos > qos.txt"
    layout = header_line(lines, _fits, "`sacctmgr -P show assoc` or `show qos`", hint)
    assoc = columns_are_assoc(layout.columns)
    rows = LimitRows(sink)
    for line in lines:
        if not line.data.strip():
            continue
        sink.seen()
        try:
            cells = cells_of(line.text(), layout, "descr")
            rows.take(_holder(cells, assoc=assoc), cells)
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        sink.loaded()
    rows.flush()
    put_quotas(sink)


def columns_are_assoc(columns: tuple[str, ...]) -> bool:
    """Tell associations from QOS."""
    return set(columns) >= _ASSOC


def _holder(cells: dict[str, str], *, assoc: bool) -> Holder:
    if not assoc:
        return Holder("qos", qos=checked(cells["name"]))
    account, user = checked(cells["account"]), checked(cells["user"])
    # the root account's own row is the cluster's
    scope = "user" if user else "cluster" if account == "root" else "account"
    parent = checked(cells.get("parname") or cells.get("parentname"))
    return Holder(scope, account, parent, user, checked(cells.get("partition")))


def _fits(columns: tuple[str, ...]) -> bool:
    names = set(columns)
    return bool(names & set(KINDS)) and (names >= _ASSOC or names >= _QOS) and "jobid" not in names


def sniff(name: str, head: bytes) -> str | None:
    """Recognise a header with Account and User, or Name and GrpTRES, and at least one limit on TRES."""
    del name
    columns = sacctmgr_header(head)
    if not _fits(columns):
        return None
    return "header of sacctmgr show assoc" if columns_are_assoc(columns) else "header of sacctmgr show qos"


FORMAT = Format(
    name="slurm-limits",
    title="Slurm: limits on GPUs (sacctmgr -P show assoc, sacctmgr -P show qos)",
    fills=("gpu_limits", "queues", "settings"),
    file_names=("sacctmgr_assoc.txt", "sacctmgr_qos.txt"),
    order=20,
    parser_version=2,
    sniff=sniff,
    load=load,
)
