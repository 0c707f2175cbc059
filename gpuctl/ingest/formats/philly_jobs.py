"""``cluster_job_log`` of the Philly trace: one JSON array of jobs with their attempts and GPUs.

The stamps carry no zone; they are read as local time (``America/Los_Angeles`` unless the user names another).
A row of the ledger is one job object, or one stretch of the file that is not valid JSON.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, BinaryIO, NamedTuple

from gpuctl.core.line_reader import RowError
from gpuctl.core.local_time import MISSING, Stamp, WallClock
from gpuctl.core.states import State
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.core.job_rows import ATTEMPTS, JOBS, PLACEMENTS, add_queues, new_jobs
from gpuctl.ingest.philly.attempts import Span, Timeline, timeline
from gpuctl.ingest.read.json_stream import elements

STATES = {"Pass": State.COMPLETED, "Killed": State.KILLED, "Failed": State.FAILED}
"""Philly's words; any other word is kept as ``source_state`` of a job whose state is unknown."""

_BATCH_JOBS = 20_000
_BATCH_ROWS = 200_000
_GPU_INDEX = {f"gpu{i}": i for i in range(1024)}
_NUMBERED_GPU = re.compile(r"gpu\d+", re.ASCII)
# A whole job begins with any key but those of the objects inside it.
_JOB_START = re.compile(r'\{\s{0,32}"(?!(?:start_time|end_time|detail|ip|gpus)")[^"]{1,64}"')


class Gang(NamedTuple):
    """The GPUs of one attempt: for every machine the sorted indices of those it took, and how many in all."""

    machines: dict[str, list[int]]
    gpus: int


class Job(NamedTuple):
    """One job as read: its own words, its times, and the gang of every attempt."""

    job: str
    queue: str | None
    user: str | None
    status: str | None
    times: Timeline
    gangs: list[Gang]

    @property
    def state(self) -> State:
        """The state that the job's status word stands for."""
        return STATES.get(self.status or "", State.UNKNOWN)


def read_job(value: object, clock: WallClock) -> Job:
    """Read one decoded job object.

    Raises:
        RowError: it is not what a job of this format looks like.
    """
    if not isinstance(value, dict):
        raise RowError("not an object")
    job = _word(value, "jobid")
    if job is None:
        raise RowError("no jobid")
    status, queue, user = _word(value, "status"), _word(value, "vc"), _word(value, "user")
    submit = _stamp(value, "submitted_time", clock)
    attempts = value.get("attempts")
    if not isinstance(attempts, list):
        raise RowError("attempts is not a list")
    spans, gangs = [], []
    for attempt in attempts:
        if not isinstance(attempt, dict):
            raise RowError("an attempt is not an object")
        span: Span = _stamp(attempt, "start_time", clock), _stamp(attempt, "end_time", clock)
        spans.append(span)
        gangs.append(_gang(attempt.get("detail")))
    return Job(job, queue, user, status, timeline(submit, spans), gangs)


def _word(value: dict[str, Any], key: str) -> str | None:
    word = value.get(key)
    if word is None or word == "":
        return None
    if not isinstance(word, str):
        raise RowError(f"{key} is not text")
    if not word.isprintable():
        raise RowError(f"{key} contains unprintable characters")
    return word


def _stamp(value: dict[str, Any], key: str, clock: WallClock) -> Stamp | None:
    text = value.get(key)
    if isinstance(text, str):
        if text in MISSING:
            return None
        stamp = clock.read(text)
        if stamp is not None:
            return stamp
    elif text is None:
        return None
    raise RowError(f'{key} is neither YYYY-MM-DD HH:MM:SS nor "None", "" or null')


def _gang(detail: object) -> Gang:
    if not isinstance(detail, list):
        raise RowError("detail of an attempt is not a list")
    machines: dict[str, list[int]] = {}
    for part in detail:
        if not isinstance(part, dict):
            raise RowError("detail of an attempt holds something that is not an object with ip and gpus")
        machine = _word(part, "ip")
        if machine is None or not machine.strip():
            raise RowError("no node name (ip) in detail of an attempt")
        gpus = part.get("gpus")
        if not isinstance(gpus, list):
            raise RowError("gpus of a node is not a list")
        machines.setdefault(machine, []).extend(map(_gpu_index, gpus))
    for indices in machines.values():
        indices.sort()
        if len(set(indices)) != len(indices):
            raise RowError("a GPU is listed twice in one attempt")
    return Gang(machines, sum(map(len, machines.values())))


def _gpu_index(name: object) -> int:
    index = _GPU_INDEX.get(name) if isinstance(name, str) else None
    if index is None:
        absurd = isinstance(name, str) and _NUMBERED_GPU.fullmatch(name)
        raise RowError(f"GPU index is over {len(_GPU_INDEX) - 1}" if absurd else "GPU name is not gpuN")
    return index


@dataclass
class _Batch:
    """Rows that have been read and not yet written, and the ids of all jobs so far.

    Rows are tuples of plain values: Python's garbage collector leaves such alone, and would else go through all of
    them again and again (more than half of the time of a load).
    """

    sink: Sink
    seen: set[str] = field(default_factory=set)
    queues: set[str] = field(default_factory=set)
    machines: Counter[str] = field(default_factory=Counter)
    places: list[tuple[int, bytes]] = field(default_factory=list)
    jobs: list[tuple[Any, ...]] = field(default_factory=list)
    attempts: list[tuple[Any, ...]] = field(default_factory=list)
    placements: list[tuple[Any, ...]] = field(default_factory=list)
    repeated: list[tuple[tuple[int, bytes], tuple[Any, ...]]] = field(default_factory=list)
    """Jobs whose id was in the file before."""

    def add(self, job: Job, line_no: int, raw: bytes) -> None:
        """Take one job, and write the batch when it is full."""
        if job.job in self.seen:
            self.repeated.append(((line_no, raw), _job_row(job)))
            if len(self.repeated) >= _BATCH_JOBS:
                self.write()
            return
        self.seen.add(job.job)
        self.places.append((line_no, raw))
        self.jobs.append(_job_row(job))
        for number, gang in enumerate(job.gangs):
            self.attempts.append(_attempt_row(job, number))
            self.placements += [(job.job, number, name, len(ids), tuple(ids)) for name, ids in gang.machines.items()]
        if len(self.jobs) >= _BATCH_JOBS or len(self.attempts) + len(self.placements) >= _BATCH_ROWS:
            self.write()

    def write(self) -> None:
        """Write the jobs that the store does not have yet, and count the others."""
        fresh = {row[0] for row in compress(self.jobs, new_jobs(self.sink, self.jobs, self.places))}
        if len(fresh) < len(self.jobs):
            self.jobs, self.attempts, self.placements = (
                [row for row in rows if row[0] in fresh] for rows in (self.jobs, self.attempts, self.placements)
            )
        for columns, rows in ((JOBS, self.jobs), (ATTEMPTS, self.attempts), (PLACEMENTS, self.placements)):
            if rows:
                self.sink.insert(columns.table, columns.arrow(rows, self.sink))
        self.sink.loaded(len(self.jobs))
        self.queues.update(row[1] for row in self.jobs if row[1] is not None)
        for _, _, machine, _, indices in self.placements:
            self.machines[machine] = max(self.machines[machine], indices[-1] + 1 if indices else 0)
        # the jobs that they repeat are in the store by now
        new_jobs(self.sink, [row for _, row in self.repeated], [place for place, _ in self.repeated])
        self.places, self.jobs, self.attempts, self.placements, self.repeated = [], [], [], [], []


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read a job log into jobs, attempts, placements, queues, and what it shows of the nodes.

    The objects may be elements of one array or follow one another. The ids of all jobs are held in memory
    (about 100 bytes each), the rest in batches of 20 000 jobs.

    ``jobs``: ``gpus`` and ``nodes`` are those of the first attempt, NULL without attempts; ``start_ts`` is the first
    attempt's start, ``end_ts`` the last attempt's end. ``quirks`` are those of `Timeline`, and ``gpus_changed``
    if attempts took different numbers of GPUs. Of the attempts, the last one has the state of the job, or
    ``running`` if it has a start and no end; those before it ``failed``, because they were tried again (the log
    gives no reason). All times and durations: `gpuctl.ingest.philly.attempts` and `gpuctl.core.local_time`.

    Args:
        stream: the decompressed file.
        sink: where the rows go; its ``timezone`` is that of the stamps.

    Raises:
        InputError: the file is empty.
    """
    clock = WallClock(sink.timezone)
    batch = _Batch(sink)
    for element in elements(stream, _JOB_START):
        sink.seen()
        if element.fault is not None:
            sink.reject(element.line_no, element.fault, element.raw)
            continue
        try:
            job = read_job(element.value, clock)
        except RowError as bad:
            sink.reject(element.line_no, str(bad), element.raw)
            continue
        batch.add(job, element.line_no, element.raw)
    batch.write()
    add_queues(sink, batch.queues)
    _write_machines(sink, batch.machines)


def _write_machines(sink: Sink, gpus: Counter[str]) -> None:
    """Raise ``gpus_observed`` of the nodes that the store knows, and add the others."""
    import polars as pl

    sql = "SELECT machine FROM machines WHERE cluster = $cluster"
    known = set(sink.query(sql, {"cluster": sink.cluster})["machine"])
    seen = sorted(machine for machine in gpus if machine in known)
    fresh = sorted(machine for machine in gpus if machine not in known)
    if seen:
        sink.execute(
            """
            UPDATE machines SET gpus_observed = greatest(machines.gpus_observed, used.gpus)
            FROM (SELECT unnest($machines::VARCHAR[]) AS machine, unnest($gpus::INTEGER[]) AS gpus) AS used
            WHERE machines.cluster = $cluster AND machines.machine = used.machine
            """,
            {"cluster": sink.cluster, "machines": seen, "gpus": [gpus[machine] for machine in seen]},
        )
    if fresh:
        observed = pl.Series([gpus[machine] for machine in fresh], dtype=pl.Int32)
        names = [sink.cluster] * len(fresh)
        sink.insert("machines", pl.DataFrame({"cluster": names, "machine": fresh, "gpus_observed": observed}))


def _job_row(job: Job) -> tuple[Any, ...]:
    times, gangs = job.times, job.gangs
    quirks = times.quirks
    if len({gang.gpus for gang in gangs}) > 1:
        quirks = [*quirks, "gpus_changed"]
    first, last = (times.attempts[0], times.attempts[-1]) if gangs else (None, None)
    return (
        job.job,
        job.queue,
        job.user,
        times.submit and times.submit.utc,
        first and first.start and first.start.utc,
        last and last.end and last.end.utc,
        job.state.value,
        job.status,
        gangs[0].gpus if gangs else None,
        len(gangs[0].machines) if gangs else None,
        len(gangs),
        times.wait,
        times.run_span,
        times.run_sum,
        times.run_last,
        tuple(quirks),
    )


def _attempt_row(job: Job, number: int) -> tuple[Any, ...]:
    times, gang = job.times.attempts[number], job.gangs[number]
    if number < len(job.gangs) - 1:
        state = State.FAILED
    elif times.start is not None and times.end is None:
        state = State.RUNNING
    else:
        state = job.state
    return (
        job.job,
        number,
        times.queued and times.queued.utc,
        times.start and times.start.utc,
        times.end and times.end.utc,
        times.released and times.released.utc,
        state.value,
        gang.gpus,
        len(gang.machines),
        times.wait,
        times.run,
        tuple(times.quirks),
    )


def sniff(name: str, head: bytes) -> str | None:
    """Recognise JSON objects with the keys of a Philly job, or an empty array under the usual name."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not text.startswith((b"[", b"{")):
        return None
    if b'"jobid"' in text and (b'"attempts"' in text or b'"submitted_time"' in text):
        return 'JSON objects with "jobid" and "attempts" or "submitted_time"'
    if name == "cluster_job_log" and text[1:].lstrip().startswith(b"]"):
        return "file name, and an empty JSON array"
    return None


FORMAT = Format(
    name="philly-jobs",
    title="Philly trace: jobs, attempts and the GPUs they ran on (cluster_job_log)",
    fills=("jobs", "attempts", "placements", "machines", "queues"),
    file_names=("cluster_job_log",),
    order=20,
    timezone="America/Los_Angeles",
    clock="wall",
    sniff=sniff,
    load=load,
)
