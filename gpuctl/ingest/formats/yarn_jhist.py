"""MapReduce: a job's history (``.jhist``), as JSON or binary Avro, joined with YARN's logs of the same application.

A row of the ledger is an event. A job is the application with the same numbers; its tasks' containers count from when
their first attempt started to when their last one finished. The history states no GPUs: whether containers had some is
in the job's configuration (``mapreduce.map.resource.yarn.io/gpu``), which is a file of its own, and in the logs of the
ResourceManager. Memory and cores of a container are the totals of all maps (or reduces) over their time: exact, since
all are of one size. Times count milliseconds since 1970.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read import avro
from gpuctl.ingest.read.streams import HeadAgain, peeked
from gpuctl.ingest.yarn import facts as f
from gpuctl.ingest.yarn.ids import attempt_id, container_id
from gpuctl.ingest.yarn.merge import refresh
from gpuctl.ingest.yarn.resources import number_of, text_of
from gpuctl.ingest.yarn.summary import diagnosis

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE_LIMIT, _HEAD_LIMIT = 16 * 2**20, 2**20
_JOB = re.compile(r"job_(\d{1,19}_\d{4,10})", re.ASCII)
_HEAD = re.compile(rb"\s*Avro-(?:Json|Binary)\r?\n\s*\{")
_SCHEMA = (b'"Event"', b'"EventType"', b'"JOB_SUBMITTED"')
_EVENT = re.compile(rb'\{"type":"([A-Z_]{3,60})","event":\{', re.ASCII)
_ENDS = {"FAILED": "FAILED", "ERROR": "FAILED", "KILLED": "KILLED"}
_TASKS = {"MAP": "MAPS", "REDUCE": "REDUCES"}
_COUNTERS = "org.apache.hadoop.mapreduce.JobCounter"
_NO_SCHEMA = "no schema of events on its second line"


class _Event(NamedTuple):
    """An event: its number in the file, its kind and fields; None and a fault if it cannot be read."""

    number: int
    kind: str
    fields: dict[str, Any] | None
    fault: str
    raw: bytes


class _History:
    """Takes the events of a file.

    Args:
        facts: takes what they state.
    """

    def __init__(self, facts: f.Facts) -> None:
        self._facts = facts
        self._containers: dict[str, str] = {}
        """By task attempt, in which container it ran."""
        self._of_tasks: dict[tuple[str, str], set[str]] = {}
        """Containers by application and kind of task."""

    def take(self, kind: str, fields: dict[str, Any]) -> None:
        """Take an event.

        Raises:
            RowError: it lacks what such an event has.
        """
        if kind == "AM_STARTED":
            self._master(fields)
        elif kind.endswith("_ATTEMPT_STARTED"):
            self._task(fields)
        elif kind.endswith(("_ATTEMPT_FINISHED", "_ATTEMPT_FAILED", "_ATTEMPT_KILLED")):
            self._task_end(fields)
        elif kind in {"JOB_SUBMITTED", "JOB_QUEUE_CHANGED"}:
            row = self._facts.row(f.HISTORY, _application(fields))
            if kind == "JOB_SUBMITTED":
                f.advance(row, "RUNNING")
                f.earliest(row, f.SUBMIT, f.epoch_millis(fields.get("submitTime")))
                f.least(row, f.USER, text_of(fields.get("userName")))
                f.least(row, f.NAME, text_of(fields.get("jobName")))
            # the queue after a change counts
            row[f.QUEUE] = text_of(fields.get("jobQueueName")) or row[f.QUEUE]
        elif kind in {"JOB_FINISHED", "JOB_FAILED", "JOB_KILLED", "JOB_ERROR"}:
            self._end(kind, fields)

    def _master(self, fields: dict[str, Any]) -> None:
        attempt, container = fields.get("applicationAttemptId"), fields.get("containerId")
        if not isinstance(attempt, str) or attempt_id(attempt) is None:
            raise RowError("no applicationAttemptId of an attempt")
        self._facts.row(f.HISTORY, attempt)
        if isinstance(container, str) and container_id(container) is not None:
            row = self._facts.row(f.HISTORY, container)
            f.least(row, f.IS_MASTER, True)
            f.earliest(row, f.ALLOCATED, f.epoch_millis(fields.get("startTime")))
            f.least(row, f.MACHINE, _host(fields.get("nodeManagerHost")))

    def _task(self, fields: dict[str, Any]) -> None:
        attempt, container = fields.get("attemptId"), fields.get("containerId")
        if not isinstance(attempt, str):
            raise RowError("no attemptId")
        # histories before Hadoop 2 and attempts that never got one have no container
        if not isinstance(container, str) or (of := container_id(container)) is None:
            return
        self._containers[attempt] = container
        self._of_tasks.setdefault((of.job, str(fields.get("taskType"))), set()).add(container)
        row = self._facts.row(f.HISTORY, container)
        f.earliest(row, f.ALLOCATED, f.epoch_millis(fields.get("startTime")))
        f.least(row, f.MACHINE, _host(fields.get("trackerName")))

    def _task_end(self, fields: dict[str, Any]) -> None:
        attempt = fields.get("attemptId")
        if not isinstance(attempt, str):
            raise RowError("no attemptId")
        end, container = f.epoch_millis(fields.get("finishTime")), self._containers.get(attempt)
        if container is None:
            return
        row = self._facts.row(f.HISTORY, container)
        f.most(row, f.END, end)
        error = text_of(fields.get("error"))
        f.least(row, f.REASON, None if error is None else error.split("\n", 1)[0])

    def _end(self, kind: str, fields: dict[str, Any]) -> None:
        job = _application(fields)
        row = self._facts.row(f.HISTORY, job)
        word = "SUCCEEDED" if kind == "JOB_FINISHED" else _ENDS.get(str(fields.get("jobStatus")))
        f.advance(row, "KILLED" if word == "KILLED" else "FINISHED")
        f.earliest(row, f.END, f.epoch_millis(fields.get("finishTime")))
        f.least(row, f.FINAL_STATUS, word)
        diagnostics = _unwrapped(fields.get("diagnostics"))
        f.least(row, f.REASON, None if kind == "JOB_FINISHED" else diagnosis(text_of(diagnostics)))
        totals = _totals(fields.get("totalCounters"))
        for task, plural in _TASKS.items():
            time = totals.get(f"MILLIS_{plural}")
            if not time:
                continue
            sizes = {f.MEM: totals.get(f"MB_MILLIS_{plural}"), f.CPUS: totals.get(f"VCORES_MILLIS_{plural}")}
            for container in sorted(self._of_tasks.pop((job, task), ())):
                of = self._facts.row(f.HISTORY, container)
                for column, total in sizes.items():
                    if total is not None and 0 < total / time < 2**31:
                        f.least(of, column, round(total / time))


def _application(fields: dict[str, Any]) -> str:
    found = _JOB.fullmatch(str(fields.get("jobid")))
    if found is None:
        raise RowError("no jobid of a job")
    return f"application_{found[1]}"


def _host(name: object) -> str | None:
    text = text_of(name)
    return None if text is None else f.host(text)


def _unwrapped(value: object) -> object:
    """The value of a union with null: Avro's JSON writes ``{"string": …}``."""
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def _totals(counters: object) -> dict[str, float]:
    groups = counters.get("groups") if isinstance(counters, dict) else None
    found = {}
    for group in groups if isinstance(groups, list) else ():
        if isinstance(group, dict) and group.get("name") == _COUNTERS and isinstance(group.get("counts"), list):
            for one in group["counts"]:
                value = number_of(one.get("value")) if isinstance(one, dict) else None
                if value is not None:
                    found[str(one.get("name"))] = value
    return found


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read the job of a history.

    Raises:
        InputError: it has no schema, which tells how its events are written.
    """
    head, stream = peeked(stream, 64)
    facts = f.Facts(sink)
    history = _History(facts)
    events = _binary(stream) if head.lstrip().startswith(b"Avro-Binary") else _json(stream)
    for event in events:
        sink.seen()
        try:
            if event.fields is None:
                raise RowError(event.fault)
            history.take(event.kind, event.fields)
        except RowError as bad:
            sink.reject(event.number, str(bad), event.raw)
            continue
        sink.loaded()
        if facts.many:
            facts.flush()
    facts.flush()


def _json(stream: BinaryIO) -> Iterator[_Event]:
    for line in numbered_lines(stream, _LINE_LIMIT):
        data = line.data.strip()
        if not data or line.line_no <= 2:
            continue
        found = _EVENT.match(data)
        kind = found[1].decode() if found is not None else ""
        if kind.startswith("TASK_") and data.endswith(b"}") and line.fault is None:
            yield _Event(line.line_no, kind, {}, "", b"")
            continue
        try:
            value = json.loads(line.text())
            yield _event(line.line_no, value, data)
        except (ValueError, RecursionError):
            yield _Event(line.line_no, "", None, "not valid JSON", data)
        except RowError as bad:
            yield _Event(line.line_no, "", None, str(bad), data)


def _event(number: int, value: Any, raw: bytes) -> _Event:
    kind = value.get("type") if isinstance(value, dict) else None
    fields = _unwrapped(value.get("event")) if isinstance(kind, str) else None
    if not isinstance(kind, str) or not isinstance(fields, dict):
        return _Event(number, "", None, "not an event: expected an object with type and event", raw)
    return _Event(number, kind, fields, "", raw)


def _binary(stream: BinaryIO) -> Iterator[_Event]:
    """Events behind a first line and a schema; the number of each stands for its line."""
    head = b""
    while head.count(b"\n") < 2 and len(head) < _HEAD_LIMIT and (piece := stream.read(2**16)):
        head += piece
    parts = head.split(b"\n", 2)
    try:
        schema = json.loads(parts[1]) if len(parts) == 3 else None
    except (ValueError, RecursionError):
        schema = None
    if not isinstance(schema, dict):
        raise InputError(_NO_SCHEMA, hint="is the copy complete?")
    try:
        for number, value in enumerate(avro.records(HeadAgain(parts[2], stream), schema), 1):
            if isinstance(value, RowError):
                yield _Event(number, "", None, str(value), b"")
            else:
                yield _event(number, value, json.dumps(value, default=str).encode()[:1000])
    except RowError as bad:
        raise InputError(str(bad), hint="is the copy complete?") from None


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the first line and the schema behind it."""
    del name
    if not _HEAD.match(head.removeprefix(b"\xef\xbb\xbf")) or not all(sign in head for sign in _SCHEMA):
        return None
    return "a job history of MapReduce: Avro-Json or Avro-Binary, and a schema of events"


FORMAT = Format(
    name="yarn-jhist",
    title="Hadoop MapReduce: a job's history (.jhist, JSON or binary)",
    fills=("jobs", "attempts", "containers", "placements", "machines", "queues"),
    file_names=("job_*.jhist",),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    alone=True,
    settle=refresh,
    verified="sample",
)
