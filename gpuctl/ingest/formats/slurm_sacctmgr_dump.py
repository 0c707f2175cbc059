"""``sacctmgr dump``: accounts and users with their limits, as the file that ``sacctmgr load`` reads.

A row of the ledger is one line that is neither blank nor a comment. What is taken:
`gpuctl.ingest.slurm.site.limits.KINDS`.
"""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.limits import Holder, LimitRows
from gpuctl.slurm import recognise
from gpuctl.slurm.dump import checked, read_line


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``gpu_limits``; lines without a limit on GPUs are counted as loaded."""
    rows, parent = LimitRows(sink), "root"
    for line in numbered_lines(stream):
        if not line.data.strip() or line.data.lstrip().startswith(b"#"):
            continue
        sink.seen()
        try:
            kind, name, options = read_line(line.text())
            if kind == "parent":
                parent = name
            elif kind == "cluster":
                rows.take(Holder("cluster", account="root"), options)
            elif kind == "account":
                rows.take(Holder("account", account=name, parent=parent), options)
            else:
                user_partition = checked(options.get("partition"))
                rows.take(Holder("user", account=parent, user=name, partition=user_partition), options)
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        sink.loaded()
    rows.flush()


FORMAT = Format(
    name="slurm-sacctmgr-dump",
    title="Slurm: limits on GPUs (sacctmgr dump)",
    fills=("gpu_limits", "settings"),
    file_names=("sacctmgr_dump.cfg",),
    order=20,
    parser_version=2,
    sniff=recognise.dump,
    load=load,
)
