"""Accounting logs of Torque and PBS: what is written when a job ends (records ``E``). Blue Waters published its own.

A line is ``MM/DD/YYYY HH:MM:SS;KIND;JOB;KEY=VALUE KEY=VALUE …``; times are in seconds from 1970. The record of an end
repeats what those of the queueing and the start say, so that lines of other kinds are no rows; a job that was deleted
before it started has no such record. GPUs are ``ngpus``, or ``gpus=N`` of each node, or one of each node with the
property ``xk``, the nodes of Blue Waters that have one. Signals 15 and 9 (exit status 271, 265) end jobs that are
deleted or over their limit.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from gpuctl.core.lines import RowError, numbered_lines
from gpuctl.core.states import State
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.traces.records import JobRecords

_RECORD = re.compile(rb"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];[^;]+;")
_PAIR = re.compile(r"([A-Za-z_][\w.]*)=(\S*)", re.ASCII)
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)
_STATUS = re.compile(r"-?\d{1,9}", re.ASCII)
_ENDED_BY_OTHERS = {271, 265}
_LATEST_S = 7_258_118_400


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs; a row of the ledger is a record of an end, or a line that is no record."""
    jobs = JobRecords(sink)
    for line in numbered_lines(stream):
        parts = line.data.split(b";", 3)
        if not line.data.strip() or (len(parts) == 4 and parts[1] != b"E"):
            continue
        sink.seen()
        try:
            if len(parts) < 4:
                raise RowError("not DATE;KIND;JOB;KEY=VALUE ...")
            jobs.add(line.line_no, _row(line.text().split(";", 3)), line.text())
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
    jobs.finish()


def _row(parts: list[str]) -> dict[str, Any]:
    told = dict(_PAIR.findall(parts[3]))
    job = parts[2].strip().partition(".")[0]
    if not job or not job.isprintable():
        raise RowError("no job")
    submit = _seconds(told, "ctime", "qtime")
    if submit is None:
        raise RowError("neither ctime nor qtime is there")
    start, end = _seconds(told, "start"), _seconds(told, "end")
    limit = _length(told.get("Resource_List.walltime", ""))
    nodes = _count(told, "unique_node_count", "Resource_List.nodect")
    over = start is not None and end is not None and limit is not None and end - start >= limit
    return {
        "job": job, "user": told.get("user"), "account": told.get("account"), "name": told.get("jobname"),
        "queue": told.get("queue"), "submit_ts": submit, "start_ts": start, "end_ts": end, "time_limit_s": limit,
        "nodes": nodes, "cpus": _count(told, "total_execution_slots", "Resource_List.ncpus"),
        "gpus": _gpus(told, nodes), "source_state": told.get("Exit_status"),
        "state": _state(told.get("Exit_status", ""), over=over),
    }  # fmt: skip


def _seconds(told: dict[str, str], *names: str) -> int | None:
    text = next((told[name] for name in names if name in told), None)
    if text is None:
        return None
    if not _WHOLE.fullmatch(text) or int(text) > _LATEST_S:
        raise RowError(f"{names[0]} is not in seconds from 1970")
    return int(text) or None


def _count(told: dict[str, str], *names: str) -> int | None:
    return next((int(told[name]) for name in names if re.fullmatch(r"\d{1,9}", told.get(name, ""), re.ASCII)), None)


def _length(text: str) -> int | None:
    """Seconds of ``[[D:]H:]MM:SS``, or of a number of them."""
    if _WHOLE.fullmatch(text):
        return int(text)
    if not re.fullmatch(r"\d{1,6}(:\d{1,6}){1,3}", text, re.ASCII):
        return None
    return sum(int(part) * size for part, size in zip(reversed(text.split(":")), (1, 60, 3600, 86_400), strict=False))


def _gpus(told: dict[str, str], nodes: int | None) -> float:
    whole = _count(told, "Resource_List.ngpus")
    if whole is not None:
        return float(whole)
    found = 0
    # 2:ppn=16:gpus=4+1:ppn=8: parts of a request, each with its number of nodes or the name of one
    for part in told.get("Resource_List.neednodes", told.get("Resource_List.nodes", "")).split("+"):
        count, *traits = part.split(":")
        each = next((int(t[5:]) for t in traits if re.fullmatch(r"gpus=\d{1,6}", t, re.ASCII)), int("xk" in traits))
        found += each * (int(count) if re.fullmatch(r"\d{1,9}", count, re.ASCII) else 1)
    return float(found)


def _state(text: str, *, over: bool) -> str:
    if not _STATUS.fullmatch(text):
        return State.UNKNOWN.value
    if int(text) in _ENDED_BY_OTHERS:
        return (State.TIMEOUT if over else State.KILLED).value
    return (State.FAILED if int(text) else State.COMPLETED).value


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the first record."""
    del name
    first = first_line(head)
    return "a record DATE;KIND;JOB;KEY=VALUE ..." if _RECORD.match(first) and b"=" in first.split(b";", 3)[3] else None


FORMAT = Format(
    name="torque-accounting",
    title="Torque, PBS: accounting log, with a record of each job that ended (Blue Waters and others)",
    fills=("jobs", "attempts", "queues"),
    file_names=("20170328", "torque_logs/*"),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    verified="documentation",
)
