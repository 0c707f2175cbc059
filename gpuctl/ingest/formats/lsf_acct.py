"""LSF: accounting of finished jobs, ``lsb.acct`` of LSF 5 to 10.1, and the files ``lsb.acct.N`` before it.

A line is a record; texts are in double quotes. ``JOB_FINISH`` is read: a run of a job that ended. A requeued job has a
record for each run. Records of other types (``JOB_RESIZE``, ``EVENT_ADRSV_FINISH`` and the like) are counted, and
nothing is read of them. Times are in seconds from 1970.

GPUs are those that LSF allocated (``GPU_ALLOC``, 10.1), else those of ``bsub -gpu``, else ``ngpus_…`` of the effective
resource requirement; where none is there, 0. A number without ``/task`` or ``/job`` counts for each host.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.batch.lsf import finished
from gpuctl.ingest.batch.run_records import RunRecords
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import first_line

NAME = "lsf-acct"
_TYPE = re.compile(rb'"([A-Z][A-Z0-9_]{2,40})" "(\d{1,3}(?:\.\d{1,4})?)" \d{1,12} ')
_JOB = re.compile(rb'(?m)^"(JOB_FINISH)" "(\d{1,3}(?:\.\d{1,4})?)" \d{9,10} \d{1,10} ')
_TYPES = frozenset((b"JOB_FINISH", b"JOB_RESIZE", b"EVENT_ADRSV_FINISH"))
_NOT_A_RECORD = 'not a record of LSF: "TYPE" "VERSION" TIME ...'


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs, attempts and placements; a row of the ledger is a line."""
    records = RunRecords(sink, NAME, "lsf-bjobs")
    for line in numbered_lines(stream):
        if not line.data.strip():
            continue
        sink.seen()
        try:
            text = line.text()
            kind = _TYPE.match(line.data)
            if kind is None:
                raise RowError(_NOT_A_RECORD)
            record = finished(text) if kind[1] == b"JOB_FINISH" else None
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        if record is None:
            sink.loaded()
        else:
            records.add(record, line.line_no, text)
    records.finish()


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the first record; if the beginning is cut off, the first whole record of a job."""
    del name
    found = _TYPE.match(first_line(head)) or _JOB.search(head)
    if found is None or found[1] not in _TYPES:
        return None
    return f"a record {found[1].decode()} of LSF {found[2].decode()}"


FORMAT = Format(
    name=NAME,
    title="LSF: accounting file lsb.acct (LSF 5 to 10.1)",
    fills=("jobs", "attempts", "placements", "queues"),
    file_names=("lsb.acct", "lsb.acct.1"),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    verified="documentation",
)
