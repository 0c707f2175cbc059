"""Accounting logs of PBS Pro, OpenPBS and Torque. Blue Waters published its own.

A line is ``MM/DD/YYYY HH:MM:SS;KIND;JOB;KEY=VALUE KEY=VALUE …``; times in attributes are in seconds from 1970, stamps
are local. A row of the ledger is a line. What the kinds of records mean here:

- ``Q`` queued, ``S`` started, ``E`` ended; ``R`` rerun, ``C`` checkpointed and held: a run ends and the job is back
  in its queue; ``T`` restarted from a checkpoint.
- ``D`` deleted by request, ``A`` aborted by the server: the end of a job that has not started. A running one has a
  record ``E``, too.
- ``a`` altered, ``c`` next phase, ``u`` and ``e`` usage of a phase: nothing is read of them, as ``S`` and ``E`` have
  the whole job. ``z`` suspended, ``r`` resumed: the run is marked. ``M`` moved to another server: no job here.
- ``U``, ``Y``, ``B``, ``F``, ``K``, ``k`` are about reservations, ``P``, ``p`` provisioning, ``L`` licences: no jobs.

The records of an array as a whole (``500[]``) are no jobs: its subjobs have records of their own. Records of one job
may be spread over files, whatever the order in which these are loaded.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, BinaryIO

from gpuctl.core.durations import pbs_walltime
from gpuctl.core.line_reader import Line, RowError, numbered_lines
from gpuctl.core.local_time import LATEST_S
from gpuctl.core.states import State
from gpuctl.ingest.batch.jobs import BATCH, REQUEUED, Job, Writer, differ
from gpuctl.ingest.batch.pbs_attributes import attributes, ending, memory, seconds, size
from gpuctl.ingest.batch.pbs_clock import Clock
from gpuctl.ingest.core.format import RAW_LIMIT, Format, Sink
from gpuctl.ingest.core.job_rows import DUPLICATE_JOB
from gpuctl.ingest.read.csv_header import first_line

_RECORD = re.compile(rb"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];[^;]+;")
_ARRAY = re.compile(r"(\d+)(?:\[(\d*)\]|-(\d+))", re.ASCII)
_OF_JOBS = frozenset("QSERCTDAzM")
_NAME = "torque-accounting"


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read jobs, attempts and placements; a row of the ledger is a line."""
    log = _Log(sink)
    for line in numbered_lines(stream):
        if not line.data.strip():
            continue
        sink.seen()
        try:
            if not log.take(line):
                sink.loaded()
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
    log.finish()


class _Log:
    """The jobs of one file that are not written yet."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._clock = Clock(sink.timezone)
        self._writer = Writer(sink, _NAME, "pbs-qstat-json")
        self._jobs: dict[str, Job] = {}
        self._ended = 0
        self._stamped: list[tuple[str, str, int, str]] = []
        """Records that have no time but their stamp, which is known in UTC only later: kind, job, stamp, message."""

    def take(self, line: Line) -> bool:
        """Take a line; whether it is the record of an end, which is counted here or when its job is written.

        Raises:
            RowError: it is not a record.
        """
        parts = line.text().split(";", 3)
        if len(parts) < 4:
            raise RowError("not DATE;KIND;JOB;KEY=VALUE ...")
        stamp, kind, job_id, text = parts
        name = job_id.strip().partition(".")[0]
        if kind not in _OF_JOBS or name.endswith("[]"):
            return False
        if not name or not name.isprintable():
            raise RowError("no job")
        found = attributes(text)
        if kind == "E":
            return self._end(name, found, stamp, (line.line_no, line.text()[:RAW_LIMIT]))
        self._other(kind, name, found, _stamp(stamp), text)
        return False

    def finish(self) -> None:
        """Write all jobs."""
        self._write(everything=True)
        self._writer.finish()

    def _end(self, name: str, found: dict[str, str], stamp: str, line: tuple[int, str]) -> bool:
        facts, run = _facts(name, found), _run(found)
        if facts["submit_ts"] is None:
            raise RowError("neither ctime nor qtime is there")
        job = self._jobs.get(name)
        if job is not None and job.final:
            if not _repeats(job.runs.get(run["start_ts"]), run):
                raise RowError(DUPLICATE_JOB)
            self._sink.already_stored()
            return True
        if run["end_ts"] is not None and (at := _moment(stamp)) is not None:
            self._clock.learn(at, run["end_ts"])
        job = self._jobs.setdefault(name, Job())
        job.known(facts)
        job.runs[run["start_ts"]] = run | {"quirks": job.runs.get(run["start_ts"], run)["quirks"]}
        job.final, job.line, job.last = True, line, None
        self._ended += 1
        if self._ended == BATCH:
            self._write(everything=False)
        return True

    def _other(self, kind: str, name: str, found: dict[str, str], stamp: int, text: str) -> None:
        facts = _facts(name, found)
        if kind in "SR" and seconds(found, "start") is not None:
            run = _run(found)
            job = self._jobs.setdefault(name, Job())
            job.known(facts, later=not job.final)
            before = job.runs.get(run["start_ts"])
            if kind == "R":
                run |= {"reason": REQUEUED}
                if run["state"] != State.NODE_FAIL.value:
                    run["state"] = State.KILLED.value
                if run["end_ts"] is None:
                    self._stamped.append((kind, name, stamp, ""))
                else:
                    self._clock.learn(stamp, run["end_ts"])
            else:
                run |= {"state": State.RUNNING.value, "end_ts": None, "source_state": None}
            if before is None or kind == "R":
                job.runs[run["start_ts"]] = run | {"quirks": before["quirks"] if before else []}
            return
        if kind == "M":
            # one whose end is here as well came back
            if name in self._jobs and not self._jobs[name].final:
                del self._jobs[name]
            return
        job = self._jobs.setdefault(name, Job())
        job.known(facts, later=not job.final)
        self._stamped.append((kind, name, stamp, text.strip()[:200]))

    def _write(self, *, everything: bool) -> None:
        waiting = self._stamped
        gone = {name for name, job in self._jobs.items() if everything or job.final}
        self._stamped = [each for each in waiting if each[1] not in gone]
        for kind, name, stamp, text in waiting:
            if name in gone and name in self._jobs:
                _settle(self._jobs[name], kind, self._clock.utc(stamp), text)
        self._put({name: job for name, job in self._jobs.items() if name in gone})
        self._jobs = {name: job for name, job in self._jobs.items() if name not in gone}
        self._ended = 0

    def _put(self, jobs: dict[str, Job]) -> None:
        """Write some jobs; the record of an end that adds nothing counts as already stored."""
        known, others = self._writer.stored(list(jobs))
        stale, made = [], {}
        for name, job in jobs.items():
            older = known.get(name)
            reused = older is not None and older.final and differ(job.facts, older.facts)
            if name in others or reused:
                if job.line is not None:
                    self._sink.reject(job.line[0], DUPLICATE_JOB, job.line[1])
                continue
            if older is not None and not job.add(older):
                if job.line is not None:
                    self._sink.already_stored()
                continue
            if older is not None:
                stale.append(name)
            if job.line is not None:
                self._sink.loaded()
            made[name] = job
        self._writer.put(made, stale)


def _repeats(known: dict[str, Any] | None, run: dict[str, Any]) -> bool:
    """Whether the record of an end states what another one has stated."""
    return known is not None and all(known.get(name) == value for name, value in run.items() if name != "quirks")


def _settle(job: Job, kind: str, at: int, text: str) -> None:
    """Add a record that has no time but its stamp."""
    current = max((start for start in job.runs if start is not None and start <= at), default=None)
    run = job.runs.get(current)
    running = run is not None and run["end_ts"] is None
    if kind == "Q":
        job.known({"submit_ts": at}, later=False)
    elif kind in "DA" and not job.final and not running:
        reason = text if kind == "A" and text else "deleted" if kind == "D" else "aborted by the server"
        job.last, job.final = (State.KILLED.value, at, reason), True
    elif kind in "RC" and run is not None and running:
        run |= {"end_ts": at, "state": State.KILLED.value, "reason": REQUEUED}
    elif kind == "T" and not running and at not in job.runs and not job.final:
        job.runs[at] = _run({}) | {"start_ts": at, "state": State.RUNNING.value, "gpus": job.facts.get("gpus")}
    elif kind == "z" and run is not None:
        run["quirks"] = ["suspended"]


def _facts(name: str, found: dict[str, str]) -> dict[str, Any]:
    has = size(found)
    array = _ARRAY.fullmatch(name)
    return {
        "queue": found.get("queue"), "user": found.get("user"), "account": found.get("account"),
        "name": found.get("jobname"), "submit_ts": seconds(found, "ctime", "qtime"),
        "eligible_ts": seconds(found, "etime"), "nodes": has.nodes, "cpus": has.cpus, "gpus": has.gpus,
        "mem_mb": memory(found), "time_limit_s": pbs_walltime(found.get("Resource_List.walltime", "")),
        "array_job": array[1] if array else None, "array_task": (array[2] or array[3]) if array else None,
    }  # fmt: skip


def _run(found: dict[str, str]) -> dict[str, Any]:
    has, limit = size(found), pbs_walltime(found.get("Resource_List.walltime", ""))
    start, end = seconds(found, "start"), seconds(found, "end")
    over = start is not None and end is not None and limit is not None and end - start >= limit
    state, code, signal = ending(found, over=over)
    return {
        "start_ts": start, "end_ts": end, "state": state.value, "source_state": found.get("Exit_status"),
        "gpus": has.gpus, "servers": has.nodes, "exit_code": code, "exit_signal": signal, "reason": None, "quirks": [],
        "placed": has.placed, "estimated": has.estimated, "cpu_s": pbs_walltime(found.get("resources_used.cput", "")),
    }  # fmt: skip


def _moment(text: str) -> int | None:
    try:
        return int(datetime.strptime(text.strip(), "%m/%d/%Y %H:%M:%S").replace(tzinfo=UTC).timestamp())
    except ValueError:
        return None


def _stamp(text: str) -> int:
    at = _moment(text)
    if at is None or not 86_400 <= at <= LATEST_S:
        raise RowError("its stamp is not MM/DD/YYYY HH:MM:SS")
    return at


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the first record."""
    del name
    first = first_line(head)
    return "a record DATE;KIND;JOB;KEY=VALUE ..." if _RECORD.match(first) else None


FORMAT = Format(
    name=_NAME,
    title="PBS Pro, OpenPBS, Torque: accounting log (Blue Waters and others)",
    fills=("jobs", "attempts", "placements", "queues"),
    file_names=("20170328", "torque_logs/*", "server_priv/accounting/*"),
    order=20,
    zoned=True,
    sniff=sniff,
    load=load,
    parser_version=3,
    verified="documentation",
)
