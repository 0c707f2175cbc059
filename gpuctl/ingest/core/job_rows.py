"""What job sources share: the rows of their tables by name, which jobs the store has, and the queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa

    from gpuctl.ingest.core.format import Sink

DUPLICATE_JOB = "duplicate job: a job of this id is in the store already"
AGAIN = "the same job and attempt was loaded before"

_TEXT, _WHOLE, _REAL, _TIME, _TEXTS, _WHOLES = "text", "whole", "real", "time", "texts", "wholes"


class JobRow(NamedTuple):
    """A row of ``jobs``: what no source tells is None, times are whole seconds since 1970 (UTC), durations seconds."""

    job: str
    queue: str | None = None
    user: str | None = None
    submit_ts: int | None = None
    start_ts: int | None = None
    end_ts: int | None = None
    state: str | None = None
    source_state: str | None = None
    gpus: float | None = None
    nodes: int | None = None
    attempts: int | None = None
    wait_s: float | None = None
    run_span_s: float | None = None
    run_sum_s: float | None = None
    run_last_s: float | None = None
    quirks: Sequence[str] = ()


class AttemptRow(NamedTuple):
    """A row of ``attempts``, as `JobRow` is one of ``jobs``; the first attempt of a job is number 0."""

    job: str
    attempt: int
    queued_ts: int | None = None
    start_ts: int | None = None
    end_ts: int | None = None
    released_ts: int | None = None
    state: str | None = None
    gpus: float | None = None
    servers: int | None = None
    wait_s: float | None = None
    run_s: float | None = None
    quirks: Sequence[str] = ()


class PlacementRow(NamedTuple):
    """A row of ``placements``: the GPUs that an attempt has on a machine, and which where that is known."""

    job: str
    attempt: int
    machine: str
    gpus: float | None = None
    gpu_indices: Sequence[int] | None = None


@dataclass(frozen=True)
class Columns:
    """The columns of a table of the store that a source with wall-clock stamps fills, in the order its rows have."""

    table: str
    kinds: dict[str, str]

    def arrow(self, rows: Sequence[tuple[Any, ...]], sink: Sink) -> pa.Table:
        """Make an Arrow table of rows; the sink's cluster and source are added as columns.

        Args:
            rows: at least one `JobRow`, `AttemptRow` or `PlacementRow`, or plain tuples in that order where many are
                kept: the garbage collector leaves these alone, which is a fifth of the time of a large load.
            sink: where the table is to go.
        """
        import pyarrow as pa

        types = {
            _TEXT: pa.string(),
            _WHOLE: pa.int32(),
            _REAL: pa.float64(),
            _TIME: pa.timestamp("s", "UTC"),
            _TEXTS: pa.list_(pa.string()),
            _WHOLES: pa.list_(pa.int32()),
        }
        cells = zip(*rows, strict=True)
        made = {name: pa.array(c, types[kind]) for (name, kind), c in zip(self.kinds.items(), cells, strict=True)}
        made["cluster"] = pa.repeat(sink.cluster, len(rows))
        made["source"] = pa.repeat(pa.scalar(sink.source, pa.int32()), len(rows))
        return pa.table(made)


JOBS = Columns(
    "jobs",
    {
        "job": _TEXT,
        "queue": _TEXT,
        "user": _TEXT,
        "submit_ts": _TIME,
        "start_ts": _TIME,
        "end_ts": _TIME,
        "state": _TEXT,
        "source_state": _TEXT,
        "gpus": _REAL,
        "nodes": _WHOLE,
        "attempts": _WHOLE,
        "wait_s": _REAL,
        "run_span_s": _REAL,
        "run_sum_s": _REAL,
        "run_last_s": _REAL,
        "quirks": _TEXTS,
    },
)
ATTEMPTS = Columns(
    "attempts",
    {
        "job": _TEXT,
        "attempt": _WHOLE,
        "queued_ts": _TIME,
        "start_ts": _TIME,
        "end_ts": _TIME,
        "released_ts": _TIME,
        "state": _TEXT,
        "gpus": _REAL,
        "servers": _WHOLE,
        "wait_s": _REAL,
        "run_s": _REAL,
        "quirks": _TEXTS,
    },
)
PLACEMENTS = Columns(
    "placements", {"job": _TEXT, "attempt": _WHOLE, "machine": _TEXT, "gpus": _REAL, "gpu_indices": _WHOLES}
)


def known_jobs(sink: Sink, jobs: Sequence[str]) -> set[str]:
    """Tell which of these jobs the store has already for the sink's cluster."""
    sql = "SELECT job FROM jobs WHERE cluster = $cluster AND job IN (SELECT unnest($jobs::VARCHAR[]))"
    return set(sink.query(sql, {"cluster": sink.cluster, "jobs": list(jobs)})["job"])


def add_queues(sink: Sink, queues: Iterable[str]) -> None:
    """Add the queues that the store does not know yet for the sink's cluster, without a quota."""
    import polars as pl

    known = sink.query("SELECT queue FROM queues WHERE cluster = $cluster", {"cluster": sink.cluster})["queue"]
    fresh = sorted(set(queues).difference(known))
    if fresh:
        sink.insert("queues", pl.DataFrame({"queue": fresh}).with_columns(cluster=pl.lit(sink.cluster)))
