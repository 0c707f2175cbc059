"""The job list of Turnstile, a made-up scheduler: the worked example of docs/how-to/add-a-format.md.

After the line ``#turnstile jobs 1`` each line is one job, its nine fields with tabs between them, ``-`` where there is
nothing to say: id, user, queue, GPUs asked for, submitted, started, ended (seconds since 1970), result, places
(``machine:GPUs`` with commas between). Nobody is tried again, so that a job has one attempt, or none.
"""

from __future__ import annotations

import re
from itertools import compress
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from gpuctl.plugins import (
    ATTEMPTS,
    JOBS,
    PLACEMENTS,
    AttemptRow,
    Format,
    InputError,
    JobRow,
    Line,
    PlacementRow,
    RowError,
    Sink,
    State,
    add_queues,
    new_jobs,
    numbered_lines,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

FIRST_LINE = b"#turnstile jobs 1"
FIELDS = ("id", "user", "queue", "gpus", "submitted", "started", "ended", "result", "places")
RESULTS = {
    "ok": State.COMPLETED,
    "error": State.FAILED,
    "cancelled": State.KILLED,
    "running": State.RUNNING,
    "waiting": State.PENDING,
}
BATCH = 10_000

_WHOLE = re.compile(r"\d{1,10}", re.ASCII)
_PLACE = re.compile(r"([\w.-]{1,255}):(\d{1,4})", re.ASCII)


class Job(NamedTuple):
    """One line, understood; times in seconds since 1970, None where the line says nothing."""

    name: str
    user: str | None
    queue: str | None
    gpus: int
    submitted: int
    started: int | None
    ended: int | None
    result: str
    places: dict[str, int]


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the first line."""
    del name
    return "first line #turnstile jobs 1" if head.split(b"\n", 1)[0].rstrip(b"\r") == FIRST_LINE else None


def read(line: Line) -> Job:
    """Return what one line says.

    Raises:
        RowError: what was found and what was expected.
    """
    cells = line.text().split("\t")
    if len(cells) != len(FIELDS):
        raise RowError(f"not {len(FIELDS)} fields with tabs between them")
    name, user, queue, gpus, submitted, started, ended, result, places = cells
    if not name.isprintable() or name in {"", "-"}:
        raise RowError("id is empty, or cannot be printed")
    if result not in RESULTS:
        raise RowError(f"result is none of {', '.join(RESULTS)}")
    job = Job(
        name,
        _text(user, "user"),
        _text(queue, "queue"),
        _whole(gpus, "gpus"),
        _whole(submitted, "submitted"),
        None if started == "-" else _whole(started, "started"),
        None if ended == "-" else _whole(ended, "ended"),
        result,
        _places(places),
    )
    if job.started is not None and job.started < job.submitted:
        raise RowError("started before it was submitted")
    if job.ended is not None and job.ended < (job.submitted if job.started is None else job.started):
        raise RowError("ended before it was started or submitted")
    if (job.started is None) != (not job.places) or (job.places and sum(job.places.values()) != job.gpus):
        raise RowError("places do not hold the GPUs of a job that started")
    return job


def _text(cell: str, name: str) -> str | None:
    if not cell.isprintable():
        raise RowError(f"{name} contains unprintable characters")
    return None if cell in {"", "-"} else cell


def _whole(cell: str, name: str) -> int:
    if not _WHOLE.fullmatch(cell):
        raise RowError(f"{name} is not a whole number of at most 10 digits")
    return int(cell)


def _places(cell: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in cell.split(",") if cell != "-" else ():
        place = _PLACE.fullmatch(part)
        if place is None or place[1] in found or int(place[2]) == 0:
            raise RowError("places are not machine:GPUs with commas between, each machine once")
        found[place[1]] = int(place[2])
    return found


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read a job list into ``jobs``, ``attempts``, ``placements`` and ``queues``.

    Raises:
        InputError: the first line is not that of such a list.
    """
    lines = numbered_lines(stream)
    first = next(lines, None)
    if first is None or first.fault or first.data != FIRST_LINE:
        raise InputError(f"line 1 is not {FIRST_LINE.decode()}", line=1, hint="export it with: turnstile jobs --all")
    batch: list[tuple[Line, Job]] = []
    for line in lines:
        if not line.data.strip():
            continue
        sink.seen()
        try:
            job = read(line)
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        batch.append((line, job))
        if len(batch) == BATCH:
            _write(sink, batch)
            batch = []
    _write(sink, batch)


def _write(sink: Sink, batch: list[tuple[Line, Job]]) -> None:
    """Write the jobs that the store does not have yet."""
    rows = [_job_row(job) for _, job in batch]
    new = new_jobs(sink, rows, [(line.line_no, line.data) for line, _ in batch])
    jobs = [job for _, job in compress(batch, new)]
    started = [job for job in jobs if job.started is not None]
    _insert(sink, JOBS, list(compress(rows, new)))
    _insert(sink, ATTEMPTS, [_attempt_row(job) for job in started])
    _insert(sink, PLACEMENTS, [PlacementRow(j.name, 0, *place) for j in started for place in j.places.items()])
    add_queues(sink, {job.queue for job in jobs if job.queue is not None})
    sink.loaded(len(jobs))


def _insert(sink: Sink, table: Any, rows: Sequence[Any]) -> None:
    if rows:
        sink.insert(table.table, table.arrow(rows, sink))


def _spans(job: Job) -> tuple[int | None, int | None]:
    """Seconds waited and run, None where not known."""
    wait = None if job.started is None else job.started - job.submitted
    return wait, None if job.started is None or job.ended is None else job.ended - job.started


def _job_row(job: Job) -> JobRow:
    """One row of ``jobs``."""
    wait, run = _spans(job)
    return JobRow(
        job=job.name,
        queue=job.queue,
        user=job.user,
        submit_ts=job.submitted,
        start_ts=job.started,
        end_ts=job.ended,
        state=RESULTS[job.result].value,
        source_state=job.result,
        gpus=job.gpus,
        nodes=len(job.places) or None,
        attempts=0 if job.started is None else 1,
        wait_s=wait,
        run_span_s=run,
        run_sum_s=run,
        run_last_s=run,
    )


def _attempt_row(job: Job) -> AttemptRow:
    """One row of ``attempts``; its GPUs are free again when it ends."""
    wait, run = _spans(job)
    return AttemptRow(
        job=job.name,
        attempt=0,
        queued_ts=job.submitted,
        start_ts=job.started,
        end_ts=job.ended,
        released_ts=job.ended,
        state=RESULTS[job.result].value,
        gpus=job.gpus,
        servers=len(job.places),
        wait_s=wait,
        run_s=run,
    )


FORMAT = Format(
    name="turnstile-jobs",
    title="Turnstile, job list (the worked example of docs/how-to/add-a-format.md)",
    fills=("jobs", "attempts", "placements", "queues"),
    file_names=("jobs.turnstile",),
    order=20,
    timezone="UTC",
    zoned=True,
    clock="utc",
    parser_version=1,
    sniff=sniff,
    load=load,
)
