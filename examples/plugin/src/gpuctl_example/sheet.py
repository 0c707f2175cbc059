"""A log format: the sheet on which people sign out GPUs.

After the line ``job,user,gpus,asked,from,to`` each line is a job; the last three are seconds since 1970. Nobody is
tried again, and who is on the sheet has had the GPUs.
"""

from __future__ import annotations

import re
from itertools import compress
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.plugins import (
    ATTEMPTS,
    JOBS,
    AttemptRow,
    Format,
    InputError,
    JobRow,
    Line,
    RowError,
    Sink,
    State,
    new_jobs,
    numbered_lines,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

FIRST_LINE = b"job,user,gpus,asked,from,to"
BATCH = 10_000

_NAME = re.compile(r"[\w.-]{1,100}", re.ASCII)
_NUMBER = re.compile(r"\d{1,10}", re.ASCII)

Row = tuple[str, str, int, int, int, int]


def sniff(_name: str, head: bytes) -> str | None:
    """Recognise the first line."""
    return "header of a sign-out sheet" if head.split(b"\n", 1)[0].rstrip(b"\r") == FIRST_LINE else None


def read(line: Line) -> Row:
    """Return what one line says.

    Raises:
        RowError: what was found and what was expected.
    """
    cells = line.text().split(",")
    if len(cells) != FIRST_LINE.count(b",") + 1:
        raise RowError("not six fields with commas between them")
    job, user, *numbers = cells
    if not (_NAME.fullmatch(job) and _NAME.fullmatch(user)):
        raise RowError("job or user is no name")
    if not all(map(_NUMBER.fullmatch, numbers)):
        raise RowError("a number is none, or has more than 10 digits")
    gpus, asked, start, end = map(int, numbers)
    if not asked <= start <= end:
        raise RowError("not asked for, given and returned in that order")
    return job, user, gpus, asked, start, end


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read a sheet into ``jobs`` and ``attempts``.

    Raises:
        InputError: the first line is not that of a sheet.
    """
    lines = numbered_lines(stream)
    first = next(lines, None)
    if first is None or first.fault or first.data != FIRST_LINE:
        raise InputError(f"line 1 is not {FIRST_LINE.decode()}", line=1)
    batch: list[tuple[Line, Row]] = []
    for line in lines:
        sink.seen()
        try:
            row = read(line)
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        batch.append((line, row))
        if len(batch) == BATCH:
            _write(sink, batch)
            batch = []
    _write(sink, batch)


def _write(sink: Sink, batch: Sequence[tuple[Line, Row]]) -> None:
    """Write the jobs that the store does not have yet."""
    state = State.COMPLETED.value
    jobs = [
        JobRow(
            job=job, user=user, submit_ts=asked, start_ts=start, end_ts=end, state=state, source_state="returned",
            gpus=gpus, attempts=1, wait_s=start - asked, run_span_s=end - start, run_sum_s=end - start,
            run_last_s=end - start,
        )
        for _, (job, user, gpus, asked, start, end) in batch
    ]  # fmt: skip
    new = new_jobs(sink, jobs, [(line.line_no, line.data) for line, _ in batch])
    if not any(new):
        return
    attempts = [
        AttemptRow(
            job=job, attempt=0, queued_ts=asked, start_ts=start, end_ts=end, released_ts=end, state=state, gpus=gpus,
            wait_s=start - asked, run_s=end - start,
        )
        for _, (job, _, gpus, asked, start, end) in compress(batch, new)
    ]  # fmt: skip
    sink.insert("jobs", JOBS.arrow(list(compress(jobs, new)), sink))
    sink.insert("attempts", ATTEMPTS.arrow(attempts, sink))
    sink.loaded(sum(new))


FORMAT = Format(
    name="sign-out-sheet",
    title="Sign-out sheet of GPUs",
    fills=("jobs", "attempts"),
    file_names=("sheet.csv",),
    order=20,
    timezone="UTC",
    zoned=True,
    clock="utc",
    parser_version=1,
    sniff=sniff,
    load=load,
)
