"""What job sources share: the rows of their tables by name, which jobs the store has, and the queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl
    import pyarrow as pa

    from gpuctl.ingest.core.format import Sink

DUPLICATE_JOB = "duplicate job: a job of this id is in the store already, with other values"
OTHER_RECORD = "a record of this job and attempt is in the store already, with other values"

_TEXT, _WHOLE, _REAL, _TIME, _TEXTS, _WHOLES = "text", "whole", "real", "time", "texts", "wholes"


class JobRow(NamedTuple):
    """A row of ``jobs``: unknown values are None, times are whole seconds since 1970 (UTC), durations seconds."""

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
    """A row of ``placements``: the GPUs that an attempt has on a machine, and which if that is known."""

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
            rows: at least one `JobRow`, `AttemptRow` or `PlacementRow`, or plain tuples in that order if many are held:
                the garbage collector ignores these, which is a fifth of the time of a large load.
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


_IDENTITY = ("queue", "user", "submit_ts", "start_ts", "end_ts", "state", "gpus", "nodes", "attempts")
"""Columns in which two rows of one job agree, where both have a value."""


def stored_jobs(sink: Sink, jobs: Sequence[str]) -> set[str]:
    """Find which of these jobs the store has for the sink's cluster; for formats that compare rows themselves."""
    sql = "SELECT job FROM jobs WHERE cluster = $cluster AND job IN (SELECT unnest($jobs::VARCHAR[]))"
    return set(sink.query(sql, {"cluster": sink.cluster, "jobs": list(jobs)})["job"])


class Standing(NamedTuple):
    """Which rows of jobs the store had already: one truth per row.

    Attributes:
        new: the store does not have the job, and no earlier one of these rows is of it.
        same: it has, and nothing in the row contradicts it. All others have a job's id and other values.
    """

    new: pl.Series
    same: pl.Series


def standing(sink: Sink, rows: pl.DataFrame) -> Standing:
    """Compare rows of jobs with those of the store, and with one another: an id alone does not make two jobs the same.

    Args:
        sink: of whose cluster.
        rows: ``job``, and any columns of the table ``jobs``, as the store will have them.
    """
    import polars as pl

    names = ["job", *(name for name in _IDENTITY if name in rows.columns)]
    quoted = ", ".join(f'"{name}"' for name in names)
    sql = f"SELECT {quoted} FROM jobs WHERE cluster = $cluster AND job IN (SELECT unnest($jobs::VARCHAR[]))"  # noqa: S608
    stored = sink.query(sql, {"cluster": sink.cluster, "jobs": rows["job"].unique().to_list()})
    stored = stored.unique("job", keep="first").cast({name: rows.schema[name] for name in names})
    new = rows["job"].is_first_distinct() & ~rows["job"].is_in(stored["job"].implode())
    known_rows = pl.concat([stored, rows.filter(new).select(names)])
    both = rows.select(names).join(known_rows, on="job", how="left", suffix=" stored", maintain_order="left")
    # a value that only one of the two states contradicts nothing
    agree = [(pl.col(name) == pl.col(f"{name} stored")).fill_null(value=True) for name in names[1:]]
    same = both.select(pl.all_horizontal(pl.lit(value=True), *agree).alias("same"))["same"] & ~new
    return Standing(new, same)


def new_jobs(sink: Sink, rows: Sequence[tuple[Any, ...]], places: Sequence[tuple[int, bytes]]) -> list[bool]:
    """Find which of these jobs are new, row by row, and count the rows of all others.

    Args:
        sink: takes the counts, and rejects the rows of a job whose id the store has with other values.
        rows: as `JOBS` has them.
        places: line and text of each.
    """
    import polars as pl

    if not rows:
        return []
    found = standing(sink, pl.DataFrame(pl.from_arrow(JOBS.arrow(rows, sink))))
    sink.already_stored(int(found.same.sum()))
    for number in (~(found.new | found.same)).arg_true():
        sink.reject(places[number][0], DUPLICATE_JOB, places[number][1])
    return found.new.to_list()


def replace_rows(sink: Sink, table: Literal["machines", "queues"], rows: pl.DataFrame) -> None:
    """Insert machines or queues in place of those that the sink's cluster has under the same names.

    Args:
        sink: takes the rows.
        table: its names are in the column ``machine`` or ``queue``.
        rows: without ``cluster``.
    """
    import polars as pl

    if rows.is_empty():
        return
    key = table.removesuffix("s")
    sink.execute(
        f"DELETE FROM {table} WHERE cluster = $cluster AND {key} IN (SELECT unnest($names::VARCHAR[]))",  # noqa: S608
        {"cluster": sink.cluster, "names": rows[key].to_list()},
    )
    sink.insert(table, rows.with_columns(cluster=pl.lit(sink.cluster)))


def add_queues(sink: Sink, queues: Iterable[str]) -> None:
    """Add the queues that the store does not know yet for the sink's cluster, without a quota."""
    import polars as pl

    known = sink.query("SELECT queue FROM queues WHERE cluster = $cluster", {"cluster": sink.cluster})["queue"]
    fresh = sorted(set(queues).difference(known))
    if fresh:
        sink.insert("queues", pl.DataFrame({"queue": fresh}).with_columns(cluster=pl.lit(sink.cluster)))
