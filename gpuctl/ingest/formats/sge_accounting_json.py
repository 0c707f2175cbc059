"""Open Cluster Scheduler and Gridware Cluster Scheduler: ``accounting.jsonl``, one JSON object a line.

What an object states is that of a line of Grid Engine's accounting file, with times in microseconds. Records of other
types, as ``reporting.jsonl`` has them, are counted, and nothing is read of them.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.batch.grid_engine import Account, Accounts
from gpuctl.ingest.batch.run_records import RunRecords
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.formats.sge_accounting import JSON_NAME, NAME
from gpuctl.ingest.read.json_stream import elements

_START = re.compile(r'\{\s{0,8}"[a-z_]{2,30}"\s{0,2}:')
_NEEDED = ("job_number", "submission_time", "start_time", "end_time", "exit_status")
_FIELDS = {
    **{"queue": "qname", "host": "hostname", "owner": "owner", "name": "job_name", "job": "job_number"},
    **{"account": "account", "submitted": "submission_time", "started": "start_time", "ended": "end_time"},
    **{"failed": "failed", "exit_status": "exit_status", "project": "project", "pe": "granted_pe", "slots": "slots"},
    **{"task": "task_number", "category": "category", "pe_task": "pe_taskid"},
}
"""Fields of `Account` and their names here."""
_NUMBERS = frozenset(("job", "submitted", "started", "ended", "failed", "exit_status", "slots", "task"))


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs, attempts and placements; a row of the ledger is an object.

    Raises:
        InputError: there is nothing in the file.
    """
    records = RunRecords(sink, NAME, JSON_NAME)
    accounts = Accounts(sink, records)
    for element in elements(stream, _START):
        sink.seen()
        try:
            if not isinstance(element.value, dict):
                raise RowError(element.fault or "not an object")
            found = element.value
            if found.get("type", "acct") != "acct" or "job_number" not in found:
                sink.loaded()
                continue
            accounts.take(_account(found), element.line_no, element.raw.decode("utf-8", "replace"))
        except RowError as bad:
            sink.reject(element.line_no, str(bad), element.raw)
    records.finish()


def _account(found: dict[str, Any]) -> Account:
    absent = [name for name in _NEEDED if name not in found]
    if absent:
        raise RowError(f"no {absent[0]}")
    texts = {field: _text(found.get(name, 0 if field in _NUMBERS else "NONE")) for field, name in _FIELDS.items()}
    usage = found.get("usage")
    used = usage.get("usage") if isinstance(usage, dict) else None
    used = used if isinstance(used, dict) else {}
    return Account(**texts, cpu=_text(used.get("cpu", "NONE")), max_vmem=_text(used.get("maxvmem", "NONE")))


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int | float) else "NONE"


def sniff(name: str, head: bytes) -> str | None:
    """Recognise an object by the names that it must have."""
    del name
    first = head.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)[0]
    if first.startswith(b"{") and all(f'"{field}"'.encode() in first for field in (*_NEEDED, "qname", "task_number")):
        return "an accounting record of Open Cluster Scheduler as JSON"
    return None


FORMAT = Format(
    name=JSON_NAME,
    title="Open Cluster Scheduler, Gridware Cluster Scheduler: accounting.jsonl",
    fills=("jobs", "attempts", "placements", "queues"),
    file_names=("accounting.jsonl",),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    verified="documentation",
)
