"""``sacctmgr dump``: accounts and users with their limits, as the file that ``sacctmgr load`` reads.

A row of the ledger is one line that is neither blank nor a comment. What is taken:
`gpuctl.ingest.slurm.site.limits.KINDS`.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from gpuctl.core.lines import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.limits import Holder, LimitRows, checked

_LINE = re.compile(r"(Cluster|Parent|Account|User)\s*-\s*'([^']*)'(?::(.*))?", re.IGNORECASE)
_OPTION = re.compile(r"(\w+)=(?:'([^']*)'|([^:]*))(?::|$)")
_SNIFF = re.compile(rb"^Cluster\s*-\s*'[^'\n]*'", re.MULTILINE | re.IGNORECASE)
_SNIFF_MORE = re.compile(rb"^(?:Parent|Account|User)\s*-\s*'[^'\n]*'", re.MULTILINE | re.IGNORECASE)


def read_line(text: str) -> tuple[str, str, dict[str, str]]:
    """Read one line: its kind in lower case, the name, and its options with keys in lower case.

    Raises:
        RowError: it is none.
    """
    line = _LINE.fullmatch(text.strip())
    if line is None:
        raise RowError("neither Cluster - 'name' nor Parent, Account or User")
    options = {m[1].lower(): m[2] if m[2] is not None else m[3] for m in _OPTION.finditer(line[3] or "")}
    return line[1].lower(), checked(line[2]) or "", options


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


def sniff(name: str, head: bytes) -> str | None:
    """Recognise a line Cluster - 'name' and one of Parent, Account or User."""
    del name
    return "Cluster - 'name' lines of sacctmgr dump" if _SNIFF.search(head) and _SNIFF_MORE.search(head) else None


FORMAT = Format(
    name="slurm-sacctmgr-dump",
    title="Slurm: limits on GPUs (sacctmgr dump)",
    fills=("gpu_limits", "settings"),
    file_names=("sacctmgr_dump.cfg",),
    order=20,
    timezone="UTC",
    clock="utc",
    parser_version=2,
    sniff=sniff,
    load=load,
)
