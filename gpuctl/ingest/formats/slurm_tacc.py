"""Job logs as TACC published them with Mirage: ``JobID JobName UID Start Submit End Priority … NNodes``, tabs between.

A row of the ledger is one line after the header. The source has no states, queues, GPUs, nodes or eligible times:
what it does not have stays unknown. Its times are local ones of TACC.
"""

from __future__ import annotations

from typing import BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.record_batches import Batches
from gpuctl.ingest.slurm.records import Records
from gpuctl.ingest.slurm.tacc_fields import COLUMNS, NAMES, fields

_HEAD_LINES = 5
_HEADER = [name.encode() for name in NAMES]


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read a job log into jobs and attempts; see `Records` for what becomes of them.

    Raises:
        InputError: the header is not within the first lines.
    """
    records = Records(sink)
    batches = Batches(COLUMNS, records.add)
    lines = numbered_lines(stream)
    if not any(line.data.split() == _HEADER for line in (next(lines, None) for _ in range(_HEAD_LINES)) if line):
        raise InputError(f"no header within {_HEAD_LINES} lines; expected {' '.join(NAMES)}", line=1)
    for line in lines:
        if not line.data.strip(b" -\t\r"):
            continue
        try:
            batches.add(line.line_no, fields(line.text()))
        except RowError as bad:
            sink.seen()
            sink.reject(line.line_no, str(bad), line.data)
    batches.flush()
    records.finish()


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header, which a line with the number of lines may precede."""
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", _HEAD_LINES)[:_HEAD_LINES]
    return f"header {' '.join(NAMES)}" if any(line.split() == _HEADER for line in lines) else None


FORMAT = Format(
    name="slurm-tacc",
    title="Slurm job log as TACC published it (JobID … TimelimitR ExitCode NNodes)",
    fills=("jobs", "attempts"),
    file_names=("ls6-a100.log",),
    order=20,
    timezone="America/Chicago",
    sniff=sniff,
    load=load,
    alone=True,
)
