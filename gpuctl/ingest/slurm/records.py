"""The one road from Slurm accounting records, whatever form they came in, into the trace store."""

from __future__ import annotations

import re
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.job_rows import add_queues
from gpuctl.ingest.core.known_jobs import KnownJobs
from gpuctl.ingest.slurm.attempts import settle
from gpuctl.ingest.slurm.distinct_values import Distinct
from gpuctl.ingest.slurm.gpu_summary import of_accounting
from gpuctl.ingest.slurm.site.reconcile import reconcile
from gpuctl.ingest.slurm.typed_columns import normal, sort_out
from gpuctl.ingest.slurm.usage import of_steps
from gpuctl.slurm.hostlist import NOBODY, count, expand

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from gpuctl.ingest.core.format import Sink
    from gpuctl.ingest.slurm.typed_columns import Bad


PIECE = 1_000_000
"""Placements made at a time; one record may have 65 536."""
_CACHE = 1 << 13
_FEW = 32
"""Lists of more names are not cached."""
_SEVERAL = frozenset("[],")


def sizes(node_list: pl.Series) -> pl.Series:
    """Count the nodes in every node list; null if it is none or has more than 65 536 names."""
    import polars as pl

    return Distinct(node_list).each(_count, pl.Int32)


def placements(records: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the nodes of every record that started, one row each, about `PIECE` rows at a time.

    The GPUs of a job are known as a total: on several nodes an even share of it is an estimate. GPUs that the
    source does not show are 0 and an estimate, too.

    Args:
        records: ``job``, ``attempt``, ``start_ts``, ``gpus``, ``node_list`` and ``named`` (from `sizes`).
    """
    import polars as pl

    there = records.lazy().filter((pl.col("named") > 0) & pl.col("start_ts").is_not_null())
    there = there.select("job", "attempt", "gpus", "named", "node_list")
    frame = there.with_columns(piece=(pl.col("named").cast(pl.Int64).cum_sum() - 1) // PIECE).collect()
    if frame.is_empty():
        return
    pieces = [frame] if frame["piece"][-1] == 0 else frame.partition_by("piece", maintain_order=True)
    for piece in pieces:
        yield _rows(piece)


def _rows(piece: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    gpus = pl.col("gpus").fill_null(0.0)
    rows = piece.select(
        "job",
        "attempt",
        (gpus / pl.col("named")).alias("gpus"),
        (pl.col("gpus").is_null() | ((gpus > 0) & (pl.col("named") > 1))).alias("estimated"),
        "node_list",
    )
    single = ~rows["node_list"].str.contains_any(["[", ","])
    machines = rows.filter(single).rename({"node_list": "machine"})
    if machines.height == rows.height:
        return machines
    several = rows.filter(~single)
    names = Distinct(several["node_list"]).lists(_names)
    more = several.drop("node_list").with_columns(names.alias("machine")).explode("machine")
    return pl.concat([machines, more])


@lru_cache(_CACHE)
def _count(text: str) -> int | None:
    if not _SEVERAL.intersection(text):
        return 0 if text.strip() in NOBODY else 1 if len(text.split()) == 1 else None
    try:
        # names that are written twice are one node
        return len(expand(text)) if "," in text else count(text)
    except ValueError:
        return None


def _names(text: str) -> list[str]:
    number = _count(text)
    return _few(text) if number is not None and number <= _FEW else expand(text)


@lru_cache(_CACHE)
def _few(text: str) -> list[str]:
    return expand(text)


_OPTION = re.compile(
    r"\s(?:--(?P<long>dependency|exclude|array)[= ]\s{0,4}|-(?P<short>[dxa])[= ]?\s{0,4})(?P<value>[^\s'\"]{1,2000})"
)
_SHORT = {"d": "dependency", "x": "exclude", "a": "array"}
_ANY = r"\s(?:--(?:dependency|exclude|array)\b|-[dxa])"


def submit_options(records: pl.DataFrame) -> list[pl.DataFrame]:
    """Read the rows of ``submit_options`` out of records with ``job`` and ``submit_line``, once for each job.

    What follows the first word without a dash that ends like a script is the script's own.

    Returns:
        One frame, or none if no record has such options.
    """
    import polars as pl

    if "submit_line" not in records.columns:
        return []
    some = records.filter(pl.col("submit_line").str.contains(_ANY)).unique("job", keep="first", maintain_order=True)
    rows = [
        (job, _SHORT.get(found["short"] or "", found["long"]), found["value"])
        for job, line in some.select("job", "submit_line").iter_rows()
        for found in _OPTION.finditer(re.split(r"\s\S{1,400}\.(?:sh|sbatch|slurm|py)(?:\s|$)", line)[0])
    ]
    return [pl.DataFrame(rows, schema=["job", "option", "value"], orient="row")] if rows else []


BATCH = 122_880
"""Records made into rows at a time: two row groups of the store."""
FIRST = BATCH // 2

MEMORY_LIMIT = "150MB"
"""What DuckDB may hold while it takes in batches; it would keep all that it has written, up to its limit."""
MEMORY_LIMIT_AFTER = "600MB"
"""What it may hold from then on, to compare whole columns: this process as a whole stays under 1 GB."""

_ATTEMPT = {
    "job": "job",
    "attempt": "attempt",
    "submit_ts": "queued_ts",
    "eligible_ts": "eligible_ts",
    "start_ts": "start_ts",
    "end_ts": "end_ts",
    "released_ts": "released_ts",
    "state": "state",
    "source_state": "source_state",
    "started_by": "started_by",
    "gpus": "gpus",
    "servers": "servers",
    "wait_s": "wait_s",
    "run_s": "run_s",
    "stated_gpu_s": "stated_gpu_s",
    "stated_run_s": "elapsed_s",
    **{
        name: name
        for name in (
            *("suspended_s", "cpu_s", "mem_used_mb", "mem_limit_mb", "mem_node_pct", "billing", "gpus_by_type"),
            "started_as",
        )
    },
    "exit_code": "exit_code",
    "exit_signal": "exit_signal",
    "reason": "reason",
    "attempt_quirks": "quirks",
}
_JOB = {
    **{
        name: name
        for name in (
            *("job", "queue", "user", "account", "name", "array_job", "array_task", "het_job", "het_offset"),
            *("submit_ts", "eligible_ts", "start_ts", "end_ts", "state", "source_state", "gpus", "gpu_type", "nodes"),
            *("gpu_type_request", "cpus", "mem_mb", "time_limit_s", "priority", "qos", "exit_code", "exit_signal"),
            *("derived_exit_code", "derived_exit_signal", "reason", "partition", "attempts", "wait_s"),
        )
    },
    "run_s": "run_last_s",
    "span_s": "run_span_s",
    "sum_s": "run_sum_s",
    "job_quirks": "quirks",
}


class _Batch(NamedTuple):
    """Records as rows of the tables."""

    rows: int
    aside: int
    bad: list[Bad]
    tables: list[tuple[str, pl.DataFrame]]
    more_placed: Iterator[pl.DataFrame]


class Records:
    """Takes canonical frames of accounting records, batch by batch; `finish` completes the tables.

    A frame has one row per record and columns named as sacct names its fields (``JobIDRaw``, ``State``, ``AllocTRES``
    …), all of them text as ``sacct -P`` prints it, null or empty if it prints nothing; absent columns are fields that
    the source does not have. Times may be zone-less text (of the sink's zone), text with an offset, or seconds since
    the epoch, value by value. A column of truths whose name begins with ``_`` is a quirk that the source adds to its
    jobs. Records of steps (``1234.batch``) are counted as loaded; what they used fills ``step_usage``.

    A record is one attempt of a job; attempts are distinguished by Submit, which Slurm resets on a requeue (by Start if
    there is no Submit), and numbered in its order. A second record of the same attempt, in this source or in one loaded
    before, counts as already stored (as rejected if the two contradict each other), unless it has come further: the
    record of a finished attempt takes the place of that of a running or pending one, that of a running one the place of
    that of a pending one. Copies of a federated job that another cluster ran (REVOKED) are counted as loaded and fill
    no table.

    The caller counts no rows of the sink itself for what it adds here: `add` and `finish` call `Sink.seen`,
    `Sink.loaded` and `Sink.reject`.

    Args:
        sink: takes the rows.
        folded_exit_codes: whether the source shows exit codes of 128 and more less 128, as sacct's text did until 25.05
            (false for JSON, database dumps, job completion files).
    """

    def __init__(self, sink: Sink, *, folded_exit_codes: bool = False) -> None:
        self._sink = sink
        self._folded = folded_exit_codes
        self._next_line = 1
        self._written = 0
        self._waiting: list[tuple[pl.DataFrame, pl.Series]] = []
        self._waiting_rows = 0
        self._worker = ThreadPoolExecutor(1)
        """Prepares a batch while the store takes in the one before it."""
        self._coming: Future[_Batch] | None = None
        self._seen = KnownJobs()
        self._queues: set[str] = set()
        self._clusters: set[str] = set()
        self._restarts: dict[str, int] = {}
        self._revoked: list[str] = []
        sink.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")

    def add(self, frame: pl.DataFrame, lines: pl.Series | None = None) -> None:
        """Take some records.

        Args:
            frame: one row per record, columns of text; JobIDRaw or JobID must be there.
            lines: the 1-based line on which each record starts; numbered on from the records before unless given.

        Raises:
            InputError: the records are of several clusters, whose job ids would be mixed up.
        """
        import polars as pl

        if lines is None:
            lines = pl.Series(range(self._next_line, self._next_line + frame.height), dtype=pl.Int64)
        self._next_line += frame.height
        self._sink.seen(frame.height)
        self._check_cluster(frame)
        if self._waiting and _fields(frame) != _fields(self._waiting[0][0]):
            self._flush()
        if frame.height:
            self._waiting.append((frame, lines))
            self._waiting_rows += frame.height
        while self._waiting_rows >= self._batch():
            self._flush()

    def finish(self) -> None:
        """Number the attempts, settle what was stated more than once, and total the jobs; call it once, at the end."""
        while self._waiting_rows:
            self._flush()
        if self._coming is not None:
            self._write(self._coming.result())
            self._coming = None
        self._worker.shutdown()
        self._sink.execute(f"SET memory_limit = '{MEMORY_LIMIT_AFTER}'")
        self._sink.after(_settled, self._seen, self._restarts, self._written, sorted(self._queues), self._revoked)

    def _batch(self) -> int:
        """Records of the next batch; the first one is smaller, so that the store has something to do early."""
        return min(BATCH, FIRST) if self._coming is None else BATCH

    def _flush(self) -> None:
        """Start on what waits, a batch at most, and insert the batch before it meanwhile."""
        import polars as pl

        size = self._batch()
        frame = pl.concat([frame for frame, _ in self._waiting], how="diagonal")
        lines = pl.concat([lines for _, lines in self._waiting])
        rest = (frame.slice(size), lines.slice(size))
        self._waiting, self._waiting_rows = ([rest] if rest[0].height else []), rest[0].height
        # every step is slower on a column in pieces
        frame, lines = frame.head(size).rechunk(), lines.head(size).rechunk()
        before, self._coming = self._coming, self._worker.submit(self._prepare, frame, lines)
        del frame, lines, rest
        if before is not None:
            self._write(before.result())

    def _prepare(self, frame: pl.DataFrame, lines: pl.Series) -> _Batch:
        """Make rows of records; runs in the worker."""
        import polars as pl

        parts = sort_out(frame, lines)
        self._revoked += parts.revoked
        steps = [("step_usage", of_steps(parts.steps, self._sink.timezone))] if parts.steps.height else []
        if (gpus := of_accounting(parts.jobs, parts.steps, self._sink.timezone)) is not None:
            steps.append(("job_gpu_summary", gpus))
        if parts.jobs.is_empty():
            return _Batch(0, parts.aside, parts.bad, steps, iter(()))
        made = normal(parts.jobs, parts.lines, self._sink.timezone, folded=self._folded)
        records = made.records
        if records.is_empty():
            return _Batch(0, parts.aside, [*parts.bad, *made.bad], steps, iter(()))
        ordinals = self._seen.add(records["job"], records["line"])
        named = sizes(records["node_list"])
        records = records.with_columns(
            ordinals.alias("attempt"), (ordinals + 1).alias("attempts"), named.alias("named")
        ).with_columns(**_totals())
        records = records.rechunk()
        self._remember(records)
        tables = steps + [
            (table, records.select(pl.col(name).alias(to) for name, to in names.items() if name in records.columns))
            for table, names in (("attempts", _ATTEMPT), ("jobs", _JOB))
        ]
        tables += [("submit_options", rows) for rows in submit_options(records)]
        placed = placements(records)
        # what comes after the first piece, which is so only if node lists are long, is made when it is wanted
        tables += [("placements", piece) for piece in islice(placed, 1)]
        return _Batch(records.height, parts.aside, [*parts.bad, *made.bad], tables, placed)

    def _write(self, batch: _Batch) -> None:
        self._sink.loaded(batch.aside)
        bad = [
            (line, reason, "|".join(cell for cell in row if isinstance(cell, str)))
            for reason, rows, where in batch.bad
            for row, line in zip(rows.iter_rows(), where, strict=True)
        ]
        for line, reason, raw in sorted(bad):
            self._sink.reject(line, reason, raw)
        while batch.tables:
            # a table is forgotten as soon as the store has it
            self._insert(*batch.tables.pop(0))
        for rows in batch.more_placed:
            self._insert("placements", rows)
        self._written += batch.rows

    def _insert(self, table: str, rows: pl.DataFrame) -> None:
        self._sink.insert(table, rows)

    def _remember(self, records: pl.DataFrame) -> None:
        import polars as pl

        if "queue" in records.columns:
            for names in records["queue"].unique().drop_nulls():
                # a pending job may name several partitions
                self._queues.update(filter(None, names.split(",")))
        again = records.filter(pl.col("restarts") > 0).select("job", "restarts")
        for job, restarts in again.iter_rows():
            self._restarts[job] = max(restarts, self._restarts.get(job, 0))

    def _check_cluster(self, frame: pl.DataFrame) -> None:
        if "Cluster" in frame.columns:
            self._clusters.update(name for name in frame["Cluster"].unique().drop_nulls() if name)
        if len(self._clusters) > 1:
            raise InputError(
                f"records of {len(self._clusters)} clusters ({', '.join(sorted(self._clusters)[:3])}), whose job ids "
                "would be mixed up",
                hint="export one cluster at a time: sacct -M NAME, and give each its own --cluster",
            )


def _settled(  # noqa: PLR0917
    sink: Sink, seen: KnownJobs, restarts: dict[str, int], written: int, queues: list[str], revoked: list[str]
) -> None:
    """Settle what several records show, of this source and of others, and drop jobs that another cluster ran."""
    for table in ("attempt_rows", "job_rows") if revoked else ():
        sink.execute(
            f"DELETE FROM {table} WHERE cluster = $cluster AND state = 'pending' "  # noqa: S608
            "AND job IN (SELECT unnest($jobs::VARCHAR[]))",
            {"cluster": sink.cluster, "jobs": revoked},
        )
    sink.loaded(written - settle(sink, seen, restarts))
    add_queues(sink, queues)
    reconcile(sink)


def _fields(frame: pl.DataFrame) -> list[str]:
    """The fields of sacct that a frame has; an absent field and an empty one are not the same."""
    return sorted(name for name in frame.columns if not name.startswith("_"))


def _totals() -> dict[str, pl.Expr]:
    """Columns of the tables that a record lacks, for a job of one attempt."""
    import polars as pl

    return {
        "servers": pl.when(pl.col("named") > 0).then("named").otherwise(pl.col("nodes").fill_null(0)),
        "span_s": pl.col("run_s"),
        "sum_s": pl.col("run_s"),
        "attempt_quirks": pl.when(pl.col("named").is_not_null())
        .then("attempt_quirks")
        .otherwise(pl.col("attempt_quirks").list.concat(pl.lit(["nodes_unknown"]))),
    }
