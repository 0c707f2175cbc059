"""Rows of published traces as jobs, attempts and queues of the store: one attempt per job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuctl.core.states import State
from gpuctl.ingest.core.job_rows import DUPLICATE_JOB, add_queues, standing
from gpuctl.ingest.core.known_jobs import KnownJobs
from gpuctl.ingest.traces.marks import as_lists, as_text, words

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl

    from gpuctl.ingest.core.format import Sink

LINE = "line"
"""The column that `Jobs.add` needs in addition to those of the store."""

BATCH = 61_440
"""Least number of rows per insert: a row group of the store."""

JOB_COLUMNS = (
    *("job", "queue", "user", "account", "name", "submit_ts", "start_ts", "end_ts", "state", "source_state", "gpus"),
    *("gpu_type", "nodes", "cpus", "mem_mb", "time_limit_s", "priority", "qos", "reason", "attempts", "wait_s"),
    *("partition", "run_span_s", "run_sum_s", "run_last_s", "quirks", "deadline_ts"),
)
ONCE = {
    **{name: name for name in ("job", "queue", "user", "account", "name", "submit_ts", "start_ts", "end_ts", "state")},
    **{name: name for name in ("source_state", "gpus", "gpu_type", "nodes", "cpus", "mem_mb", "time_limit_s")},
    **{name: name for name in ("partition", "quirks")},
    **{"wait_s": "told_wait_s", "run_span_s": "told_run_s"},
}
"""Columns of these that the table ``trace_jobs`` has -> their names there."""
SHORT = frozenset(
    (
        *("job", "queue", "user", "submit_ts", "start_ts", "end_ts", "state", "source_state", "gpus", "nodes"),
        *("cpus", "quirks"),
    )
)
"""Columns of these that ``trace_jobs_short`` has."""
_MORE = frozenset({"priority", "qos", "reason", "attempts", "run_sum_s", "run_last_s", "deadline_ts"})
"""Jobs with any of these are stored in ``jobs`` and ``attempts``."""
_ATTEMPT = {
    **{name: name for name in ("job", "attempt", "start_ts", "end_ts", "released_ts", "state", "source_state", "gpus")},
    **{"submit_ts": "queued_ts", "servers": "servers", "wait_s": "wait_s", "run_span_s": "run_s"},
    "attempt_quirks": "quirks",
}
_UNFINISHED = [State.PENDING.value, State.RUNNING.value, State.SUSPENDED.value]
_RAN = [state.value for state in (State.COMPLETED, State.FAILED, State.TIMEOUT, State.OUT_OF_MEMORY, State.NODE_FAIL)]
"""A job in one of these states has started, even if the source has no start."""


def unrun_jobs(work: str | None) -> dict[str, str]:
    """Formulas (`Table.derive`) for the input of a simulator: jobs that have not run.

    Args:
        work: the column with their run times in seconds; None if the source has none.
    """
    run = work or "cast(null as double)"
    return {"state": f"'{State.PENDING}'", "attempts": "cast(0 as int)", "run_sum_s": run, "run_last_s": run}


class Jobs:
    """Takes jobs of one source, one row per job, and writes them to the store.

    The first row of a job is stored. A second one, here or in another source of the cluster, counts as already in the
    store if it has the same values, and is rejected if it has others. A start before the submission, or an end before
    the start, gives no wait or no run time and is a quirk.

    Args:
        sink: takes the rows; `add` and `finish` call `Sink.loaded` for written rows and `Sink.reject` for all others.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._waiting: list[pl.DataFrame] = []
        self._rows = 0
        self._seen = KnownJobs()
        self._queues: set[str] = set()
        has_jobs = "SELECT count(*) > 0 FROM jobs WHERE cluster = $cluster"
        self._others = bool(sink.query(has_jobs, {"cluster": sink.cluster}).item())

    def add(self, rows: pl.DataFrame, raw: Callable[[Sequence[int]], list[str]]) -> pl.DataFrame:
        """Take some jobs, and return the new ones.

        Args:
            rows: columns as in the table ``jobs`` (``job`` and ``state`` are required; times in UTC, NULL if unknown),
                `LINE`, and optionally words ``quirks``: lists, or text with commas between them.
            raw: returns the text of lines.
        """
        rows = self._fresh(rows, raw) if rows.height else rows
        if rows.height:
            self._waiting.append(rows)
            self._rows += rows.height
        if self._rows >= BATCH:
            self._flush()
        return rows

    def finish(self) -> None:
        """Write the jobs that are not yet written, and the queues."""
        self._flush()
        add_queues(self._sink, self._queues)

    def _flush(self) -> None:
        import polars as pl

        if not self._waiting:
            return
        rows = pl.concat(self._waiting, how="diagonal")
        self._waiting, self._rows = [], 0
        if "queue" in rows.columns:
            self._queues.update(rows["queue"].drop_nulls().unique())
        if _MORE.isdisjoint(rows.columns):
            made = _once(rows)
            self._sink.insert("trace_jobs_short" if SHORT.issuperset(made.columns) else "trace_jobs", made)
        else:
            self._insert(_settled(rows))
        self._sink.loaded(rows.height)

    def _insert(self, made: pl.DataFrame) -> None:
        import polars as pl

        there = set(made.columns)
        tried = made.filter(made["attempts"] > 0)
        attempts = tried.select(pl.col(name).alias(to) for name, to in _ATTEMPT.items() if name in there)
        for table, frame in (
            ("attempts", attempts),
            ("jobs", made.select(name for name in JOB_COLUMNS if name in there)),
        ):
            if frame.height:
                self._sink.insert(table, frame)

    def _fresh(self, rows: pl.DataFrame, raw: Callable[[Sequence[int]], list[str]]) -> pl.DataFrame:
        """Drop the jobs that are already known; reject their rows if these have other values."""
        jobs = rows["job"]
        maybe = self._seen.add(jobs, rows[LINE]) > 0
        if not (self._others or maybe.any()):
            return rows
        # the jobs not yet written must be in the store, too
        self._flush()
        looked = rows if self._others else rows.filter(jobs.is_in(jobs.filter(maybe).implode()))
        found = standing(self._sink, looked)
        if found.new.all():
            return rows
        self._sink.already_stored(int(found.same.sum()))
        others = looked.filter(~(found.new | found.same))[LINE].to_list()
        for number, text in zip(others, raw(others) if others else (), strict=True):
            self._sink.reject(number, DUPLICATE_JOB, text)
        old = looked.filter(~found.new)[LINE]
        return rows.filter(~rows[LINE].is_in(old.implode()))


def _once(rows: pl.DataFrame) -> pl.DataFrame:
    """Columns from which the store's views ``jobs`` and ``attempts`` derive all others."""
    made = rows.with_columns(_quirks(_complete(rows)))
    return made.select(made[name].alias(to) for name, to in ONCE.items() if name in made.columns)


def _complete(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the columns that are needed below and that a source lacks."""
    import polars as pl

    time = pl.Datetime("us", "UTC")
    kinds: dict[str, Any] = {**dict.fromkeys(("submit_ts", "start_ts", "end_ts"), time), "nodes": pl.Int32}
    return rows.with_columns(pl.lit(None, kind).alias(name) for name, kind in kinds.items() if name not in rows.columns)


def _quirks(rows: pl.DataFrame) -> pl.Series:
    """Oddities of jobs, as text: those that the source states, and those of their times and states."""
    import polars as pl

    late, unknown = pl.col("start_ts") < pl.col("submit_ts"), pl.col("state") == State.UNKNOWN.value
    own = words(rows, {"start_before_submit": late, "unknown_state": unknown}).alias("quirks")
    if "quirks" not in rows.columns:
        return own
    stated = as_text(rows["quirks"])
    if own.null_count() == own.len():
        return stated
    both = pl.DataFrame({"stated": stated, "own": own})
    return both.select(
        pl.when(pl.any_horizontal(pl.all().is_not_null()))
        .then(pl.concat_str(pl.all(), separator=",", ignore_nulls=True))
        .alias("quirks")
    )["quirks"]


def _settled(rows: pl.DataFrame) -> pl.DataFrame:
    """Add what follows from the times and the state of a job: waits, run times, quirks."""
    import polars as pl

    rows = _complete(rows)
    submit, start, end, state = (pl.col(name) for name in ("submit_ts", "start_ts", "end_ts", "state"))
    unfinished = state.is_in(_UNFINISHED)
    waited, ran = _seconds(submit, start), _seconds(start, end)
    on_attempts = {
        "no_start": start.is_null() & (state.is_in(_RAN) | (_column(rows, "run_span_s").is_not_null() & ~unfinished)),
        "end_unknown": end.is_null() & start.is_not_null() & ~unfinished,
        "end_before_start": end < start,
        "nodes_unknown": pl.lit(value=True),
    }

    def stated(name: str) -> list[str]:
        """The column of a length that the source itself states, used if there are no times."""
        return [name] if name in rows.columns else []

    if "attempts" not in rows.columns:
        rows = rows.with_columns(attempts=pl.lit(1, pl.Int32))
    rows = rows.with_columns(
        attempt=pl.lit(0, pl.Int32),
        servers=pl.col("nodes").fill_null(0),
        wait_s=pl.coalesce(pl.when(waited >= 0).then(waited), *stated("wait_s")),
        run_span_s=pl.coalesce(pl.when(ran >= 0).then(ran), *stated("run_span_s")),
        released_ts=pl.when(~unfinished).then(pl.max_horizontal(start, end)),
    )
    rows = rows.with_columns(as_lists(words(rows, on_attempts)).alias("attempt_quirks"), as_lists(_quirks(rows)))
    if "run_sum_s" in rows.columns:
        return rows
    return rows.with_columns(run_sum_s="run_span_s", run_last_s="run_span_s")


def _column(rows: pl.DataFrame, name: str) -> pl.Expr:
    """A column, NULL if the source has none of that name."""
    import polars as pl

    return pl.col(name) if name in rows.columns else pl.lit(None)


def _seconds(since: pl.Expr, until: pl.Expr) -> pl.Expr:
    return (until - since).dt.total_microseconds() / 1e6
