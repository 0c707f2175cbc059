"""Grid Engine: accounting files of SGE 6 to 8, OGE and UGE, and ``acct`` records of the reporting file.

A line is a record with 43 fields and more between colons; lines that begin with ``#`` are comments. A rescheduled job
has a record for each run. Tasks of a tightly integrated parallel job may have records of their own, before that of the
job: they give the nodes. GPUs are those of ``-l gpu=N`` and its usual other names, for the job as a whole: whether a
site counts them per slot is in its configuration alone. Times count from 1970, in seconds, or in milliseconds in UGE.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.batch.grid_engine import Accounts, split
from gpuctl.ingest.batch.run_records import RunRecords
from gpuctl.ingest.core.format import Format, Sink

NAME, JSON_NAME = "sge-accounting", "sge-accounting-json"
_RECORD = re.compile(
    rb"(?:\d{9,13}:acct:)?[^:\r\n]{0,200}:[^:\r\n]{0,300}:[^:\r\n]{0,100}:[^:\r\n]{1,100}:[^\r\n:]{0,300}:\d{1,10}:"
    rb"[^:\r\n]{0,300}:-?\d{1,6}(?::\d{1,13}){3}:\d{1,3}:\d{1,4}:"
)
_REPORT = re.compile(r"\d{9,16}:([a-z_]{2,20}):")
_COMMENTS = 50


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs, attempts and placements; a row of the ledger is a line that is no comment."""
    records = RunRecords(sink, NAME, JSON_NAME)
    accounts = Accounts(sink, records)
    for line in numbered_lines(stream):
        if len(line.data.strip()) <= 1 or line.data.startswith(b"#"):
            continue
        sink.seen()
        try:
            text = line.text()
            report = _REPORT.match(text)
            if report is not None and report[1] != "acct":
                # the reporting file has records about hosts, queues and steps of a job, too
                sink.loaded()
                continue
            accounts.take(split(text[report.end() :] if report is not None else text), line.line_no, text)
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
    records.finish()


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the first record behind the comments."""
    del name
    lines = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", _COMMENTS)[:_COMMENTS]
    for line in lines:
        if len(line.strip()) > 1 and not line.startswith(b"#") and not _REPORT.match(line[:40].decode("latin-1")):
            return "a record of Grid Engine's accounting" if _RECORD.match(line) else None
        if _RECORD.match(line):
            return "a record acct of Grid Engine's reporting file"
    return None


FORMAT = Format(
    name=NAME,
    title="Grid Engine: accounting and reporting files (SGE, OGE, UGE)",
    fills=("jobs", "attempts", "placements", "queues"),
    file_names=("accounting", "accounting.0", "reporting"),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    verified="documentation",
)
