"""OpenPBS and PBS Pro: jobs as ``qstat -f -F json`` lists them; with ``-x`` those that ended lately, too.

A row of the ledger is a job. The accounting log (`torque-accounting`) has what ended, with all runs; this has what
waits and runs. Jobs that both describe are put together: a job that ended is completed by its accounting record. Times
are seconds from 1970, or the server's clock without a zone (``Mon Apr  9 09:34:07 2018``), which ``--timezone`` names.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, BinaryIO
from zoneinfo import ZoneInfo

from gpuctl.core.durations import pbs_walltime
from gpuctl.core.line_reader import RowError
from gpuctl.core.local_time import LATEST_S
from gpuctl.core.states import State
from gpuctl.ingest.batch.pbs_attributes import ending, memory, size
from gpuctl.ingest.batch.run_records import Record, RunRecords, run_of
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.json_walk import members

NAME = "pbs-qstat-json"
_START = re.compile(r'"\d{1,15}(?:\[\d{0,9}\])?\.[^"]{1,60}"\s{0,2}:\s{0,2}\{')
_MARKS = (b'"pbs_version"', b'"Jobs"')
_ARRAY = re.compile(r"(\d{1,15})\[(\d{1,9})\]", re.ASCII)
_DIGITS = re.compile(r"\d+", re.ASCII)
_WHOLE = re.compile(r"\d{1,12}", re.ASCII)
_CTIME = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}")
_WAITS = frozenset("QHWTMB")
_SLACK_S = 120.0
_MAPS = ("Resource_List", "resources_used")


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs, attempts and placements."""
    records = RunRecords(sink, NAME, "torque-accounting", slack_s=_SLACK_S, reused=False)
    zone = ZoneInfo(sink.timezone)
    found: list[tuple[Record, int, str]] = []
    for _, job_id, element in members(stream, "Jobs", _START):
        sink.seen()
        try:
            if not isinstance(element.value, dict):
                raise RowError(element.fault or "not an object")
            name = job_id.partition(".")[0]
            if not name:
                raise RowError("no job")
            if name.endswith("[]"):
                # an array as a whole: its subjobs are listed by -t
                sink.loaded()
                continue
            record = _job(name, element.value, zone)
        except RowError as bad:
            sink.reject(element.line_no, str(bad), element.raw)
            continue
        found.append((record, element.line_no, element.raw.decode("utf-8", "replace")))
    # jobs are members of an object, whose order has no meaning: the earlier job is the one with the lower number
    for record, line_no, raw in sorted(found, key=lambda one: ([*map(int, _DIGITS.findall(one[0].job))], one[0].job)):
        records.add(record, line_no, raw)
    records.finish()


def _job(name: str, found: dict[str, Any], zone: ZoneInfo) -> Record:
    texts = _texts(found)
    state = texts.get("job_state", "")
    if len(state) != 1 or state not in "QHWTMBRESUFX":
        raise RowError("job_state is not one of PBS's letters")
    submit, start = _time(texts, zone, "ctime", "qtime"), _time(texts, zone, "stime")
    if submit is None:
        raise RowError("neither ctime nor qtime is there")
    has = size(texts)
    limit = pbs_walltime(texts.get("Resource_List.walltime", ""))
    array = _ARRAY.fullmatch(name)
    facts = {
        "queue": texts.get("queue"),
        "user": texts.get("euser") or texts.get("Job_Owner", "").partition("@")[0] or None,
        "account": texts.get("Account_Name") or texts.get("project"), "name": texts.get("Job_Name"),
        "submit_ts": submit, "eligible_ts": _time(texts, zone, "etime"), "nodes": has.nodes, "cpus": has.cpus,
        "gpus": has.gpus, "mem_mb": memory(texts), "time_limit_s": limit,
        "priority": int(texts["Priority"]) if _WHOLE.fullmatch(texts.get("Priority", "")) else None,
        "array_job": array[1] if array else None, "array_task": array[2] if array else None,
    }  # fmt: skip
    if state in _WAITS:
        return Record(name, facts, None)
    more: dict[str, Any] = {"servers": has.nodes, "placed": has.placed, "estimated": has.estimated}
    more["cpu_s"] = pbs_walltime(texts.get("resources_used.cput", ""))
    if state not in "FX":
        now = State.SUSPENDED if state in "SU" else State.RUNNING
        if start is None:
            raise RowError("a job that runs, without stime")
        return Record(name, facts, run_of(start, None, now, state, has.gpus, **more))
    end = _time(texts, zone, "obittime", "mtime")
    if start is None:
        return Record(name, facts, run_of(None, end, State.KILLED, state, has.gpus, reason=texts.get("comment")))
    over = end is not None and limit is not None and end - start >= limit
    last, code, signal = ending(texts, over=over)
    run = run_of(start, end, last, texts.get("Exit_status"), has.gpus, exit_code=code, exit_signal=signal, **more)
    return Record(name, facts, run)


def _texts(found: dict[str, Any]) -> dict[str, str]:
    """Attributes as an accounting record has them: ``Resource_List.ngpus``, all of them texts."""
    texts = {name: str(value) for name, value in found.items() if isinstance(value, str | int | float)}
    for outer in _MAPS:
        inner = found.get(outer)
        if isinstance(inner, dict):
            texts |= {f"{outer}.{name}": str(v) for name, v in inner.items() if isinstance(v, str | int | float)}
    return texts


def _time(texts: dict[str, str], zone: ZoneInfo, *names: str) -> int | None:
    text = next((texts[name] for name in names if name in texts), "")
    if _WHOLE.fullmatch(text):
        return int(text) if 86_400 <= int(text) <= LATEST_S else None
    if not _CTIME.fullmatch(text):
        return None
    try:
        local = datetime.strptime(text, "%a %b %d %H:%M:%S %Y").replace(tzinfo=zone)
    except ValueError:
        return None
    at = int(local.astimezone(UTC).timestamp())
    return at if 86_400 <= at <= LATEST_S else None


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the object around the jobs."""
    del name
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "qstat -F json of PBS" if text[:1] == b"{" and all(mark in text for mark in _MARKS) else None


FORMAT = Format(
    name=NAME,
    title="OpenPBS, PBS Pro: jobs in the queue (qstat -f -F json, with -x and -t)",
    fills=("jobs", "attempts", "placements", "queues"),
    file_names=("qstat.json",),
    order=21,
    sniff=sniff,
    load=load,
    verified="documentation",
)
