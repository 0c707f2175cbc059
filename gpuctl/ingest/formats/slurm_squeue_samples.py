"""Samples of squeue over time (`gpuctl sample`, or another sampler with a header): why jobs wait, as Slurm states it.

A row of the ledger is one line; blank lines do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.site.machines import Rows
from gpuctl.ingest.slurm.site.reconcile import reconcile
from gpuctl.ingest.slurm.site.samples import ALIASES, EPOCH_NAMES, Table, jobs_of, reason_of
from gpuctl.slurm.delimited import header_in

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = {
    **{"ts": "ms", "job": "text", "reason": "text"},
    **dict.fromkeys(("state", "detail", "array_job", "array_task"), "text"),
}
"""The columns of ``queue_samples`` that are filled, and their kinds (`gpuctl.ingest.slurm.site.machines.Rows`)."""
_STARTED = frozenset({"RUNNING", "R"})
_ELSEWHERE = "REVOKED"
"""The state of a federated job that runs on another cluster: it waits for nothing here."""
_WORDS = {
    **{"PD": "PENDING", "CF": "CONFIGURING", "CG": "COMPLETING", "S": "SUSPENDED", "SE": "SPECIAL_EXIT"},
    "RV": "REVOKED",
}
_NEEDED = frozenset({"jobid", "state", "reason"})


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``queue_samples``: one row per job that was in the queue and not simply running.

    Headers and lines of running jobs are counted as loaded: they state no reason. Tasks of an array that have no
    id of their own yet get it once the store knows their jobs (`gpuctl.ingest.slurm.site.reconcile`).
    """
    table, rows = Table(None, read_jobs), Rows(sink, "queue_samples", KINDS)
    for ts, sample in table.samples(stream, sink):
        for waiting in tasks_of(sample):
            rows.add(ts, *waiting)
    rows.flush()
    reconcile(sink)


class Waiting(NamedTuple):
    """What one line states: of which jobs (see `jobs_of`), and why they wait; no job if it states no reason."""

    job: str
    array: str
    reason: str
    state: str
    detail: str | None


def read_jobs(cells: dict[str, str]) -> Waiting | None:
    """Read one line of squeue after its time; None if its job runs, here or on another cluster.

    Raises:
        RowError: a cell is missing or not what it should be.
    """
    if not cells.keys() >= _NEEDED:
        raise RowError("no columns JOBID, STATE and REASON in the header before")
    job, array = cells["jobid"], cells.get("array", "")
    jobs_of(job, array)
    state = _WORDS.get(cells["state"], cells["state"])
    if not state.replace("_", "").isalpha():
        raise RowError("no state of a job")
    reason, detail = reason_of(cells["reason"])
    return None if state in _STARTED or state == _ELSEWHERE else Waiting(job, array, reason, state, detail)


def tasks_of(waiting: Waiting | None) -> Iterator[tuple[str | None, ...]]:
    """Yield a row of ``queue_samples``, its time left out, for every job that a line stands for."""
    if waiting is not None:
        for job in jobs_of(waiting.job, waiting.array):
            yield job.job, waiting.reason, waiting.state, waiting.detail, job.array_job, job.array_task


def sniff(name: str, head: bytes) -> str | None:
    """Recognise a header that begins with a time in seconds and has JOBID, STATE and REASON."""
    del name
    columns = header_in(head)
    fits = bool(columns) and columns[0] in EPOCH_NAMES and {ALIASES.get(c, c) for c in columns} >= _NEEDED
    return "header of squeue samples" if fits else None


FORMAT = Format(
    name="slurm-squeue-samples",
    title="Slurm: why jobs waited, sampled over time (gpuctl sample)",
    fills=("queue_samples",),
    file_names=("squeue-2026-11-20.txt", "squeue_samples.txt"),
    order=50,
    zoned=True,
    sniff=sniff,
    load=load,
)
