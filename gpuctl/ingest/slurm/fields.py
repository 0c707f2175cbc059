"""The columns of one accounting record, field by field, and columns derived from several fields."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gpuctl.core.durations import slurm_elapsed
from gpuctl.core.states import State
from gpuctl.ingest.slurm.distinct_values import Distinct
from gpuctl.slurm.hostlist import NOBODY
from gpuctl.slurm.states import UNFINISHED, exit_of, state_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

_TEXTS = {
    "queue": "Partition",
    "partition": "Partition",
    "user": "User",
    "account": "Account",
    "qos": "QOS",
    "name": "JobName",
    "reason": "Reason",
    "source_state": "State",
    "node_list": "NodeList",
}
_NO_TEXT = {"reason": ("", "(null)", "None"), "name": ("",), "source_state": ("",)}
_NUMBERS = {"priority": "Priority", "restarts": "Restarts"}
_FOLDED = (4, 6, 7, 8, 9, 11, 13, 15, 127)
"""What 132 (ILL), 134 (ABRT), 135, 136, 137 (KILL), 139 (SEGV), 141, 143 (TERM) and 255 become, less 128."""
_RAN = ("completed", "failed", "out_of_memory", "node_fail", "preempted")
"""States that only a job that started can have."""
_CACHE = 1 << 16
_state = lru_cache(_CACHE)(state_of)
_seconds = lru_cache(_CACHE)(slurm_elapsed)


def identity(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the ids of the job, and the words and numbers that go into the store as they are.

    The job is JobIDRaw; if the source has only JobID it is that, except for the tasks of an array that still wait, of
    which one row shows, the id of the array.

    Args:
        frame: canonical text, one row per job's record.
    """
    import polars as pl

    job = pl.col("JobIDRaw") if "JobIDRaw" in frame.columns else pl.col("JobID").str.replace(r"_\[.*$", "")
    columns = [job.alias("job")]
    columns += [
        pl.when(~_one_of(pl.col(source), _NO_TEXT.get(name, ("", "(null)")))).then(source).alias(name)
        for name, source in _TEXTS.items()
        if source in frame.columns
    ]
    columns += [
        pl.col(source).cast(pl.Int64, strict=False).alias(name)
        for name, source in _NUMBERS.items()
        if source in frame.columns
    ]
    return frame.select(columns).with_columns(_array_and_het(frame["JobID"]) if "JobID" in frame.columns else [])


def _array_and_het(ids: pl.Series) -> list[pl.Series]:
    import polars as pl

    columns = []
    if ids.str.contains("_", literal=True).any():
        parts = ids.str.splitn("_", 2).struct
        task = parts.field("field_1")
        columns += [
            parts.field("field_0").set(task.is_null(), None).alias("array_job"),
            task.str.strip_chars("[]").alias("array_task"),
            task.str.starts_with("[").fill_null(value=False).alias("array_rest"),
        ]
    if ids.str.contains("+", literal=True).any():
        parts = ids.str.splitn("+", 2).struct
        offset = parts.field("field_1").cast(pl.Int32, strict=False)
        columns += [parts.field("field_0").set(offset.is_null(), None).alias("het_job"), offset.alias("het_offset")]
    return columns


def outcome(frame: pl.DataFrame) -> pl.DataFrame:
    """Return state, exit codes, durations (s) and which scheduler started the job.

    Args:
        frame: canonical text, one row per job's record.
    """
    import polars as pl

    columns: dict[str, pl.Series] = {}
    for prefix, source in (("exit", "ExitCode"), ("derived_exit", "DerivedExitCode")):
        if source in frame.columns:
            dtypes = {f"{prefix}_code": pl.Int32, f"{prefix}_signal": pl.Int32}
            columns |= Distinct(frame[source]).fields(exit_of, dtypes)
    if "State" in frame.columns:
        columns["state"] = Distinct(frame["State"]).each(lambda text: _state(text).value, pl.String)
    if "Flags" in frame.columns:
        columns["started_by"] = Distinct(frame["Flags"]).each(_started_by, pl.String)
    if "Timelimit" in frame.columns:
        columns["time_limit_s"] = Distinct(frame["Timelimit"]).each(_seconds, pl.Float64).cast(pl.Int64)
    elif "TimelimitRaw" in frame.columns:
        # as a float first: minutes near the end of 64 bits must not come out as negative seconds
        columns["time_limit_s"] = (frame["TimelimitRaw"].cast(pl.Float64, strict=False) * 60).cast(
            pl.Int64, strict=False
        )
    if not {"Start", "End"} <= set(frame.columns):
        if "Elapsed" in frame.columns:
            columns["elapsed_s"] = Distinct(frame["Elapsed"]).each(_seconds, pl.Float64)
        elif "ElapsedRaw" in frame.columns:
            columns["elapsed_s"] = frame["ElapsedRaw"].cast(pl.Float64, strict=False)
    if "Suspended" in frame.columns:
        columns["suspended_s"] = Distinct(frame["Suspended"]).each(_seconds, pl.Float64)
    stated = _stated_run(frame)
    if stated is not None:
        columns["stated_run_s"] = stated
    return pl.DataFrame(columns)


def _stated_run(frame: pl.DataFrame) -> pl.Series | None:
    """Seconds that a record ran by its own account, without suspensions; None if the source states none."""
    import polars as pl

    if "ElapsedRaw" in frame.columns:
        return frame["ElapsedRaw"].cast(pl.Float64, strict=False)
    if "Elapsed" in frame.columns:
        return Distinct(frame["Elapsed"]).each(_seconds, pl.Float64)
    cpus = next((frame[name] for name in ("NCPUS", "AllocCPUS") if name in frame.columns), None)
    if "CPUTimeRAW" not in frame.columns or cpus is None:
        return None
    seconds, number = (column.cast(pl.Float64, strict=False) for column in (frame["CPUTimeRAW"], cpus))
    return seconds / number.set(number <= 0, None)


def _started_by(flags: str) -> str | None:
    if "SchedBackfill" in flags:
        return "backfill"
    return "main" if "SchedMain" in flags or "SchedSubmit" in flags else None


def settled(wide: pl.DataFrame, fields: set[str], *, folded: bool) -> pl.DataFrame:
    """Reconcile the columns of a record, and record quirks.

    A pending job has neither start nor end and a running one no end, whatever stands there. A cancelled job without
    nodes whose start is its end never started (Slurm wrote that until 20.11). Of a time that the clock showed twice the
    later reading is taken if the earlier one would put an end before a start. An eligible time outside of submission
    and start (or end) is moved to the nearer of them.

    Args:
        wide: the columns of `identity`, `outcome`, `gpuctl.ingest.slurm.resources.resources`, and the times.
        fields: the fields that the source has.
        folded: whether exit codes of 128 and more stand there less 128.

    Returns:
        the columns of ``jobs`` and ``attempts`` and ``job_quirks``, ``attempt_quirks``, ``restarts``, ``node_list``.
    """
    wide = _with_absent(wide)
    wide = _with_times(wide, fields)
    return _with_quirks(wide, fields, folded=folded)


def _with_absent(wide: pl.DataFrame) -> pl.DataFrame:
    """Add the columns that the source does not have."""
    import polars as pl

    time = pl.Datetime("us", "UTC")
    kinds: dict[str, Any] = {
        **dict.fromkeys(("submit_ts", "eligible_ts", "start_ts", "end_ts", "later_start_ts", "later_end_ts"), time),
        **dict.fromkeys(("suspended_s", "elapsed_s", "stated_run_s"), pl.Float64),
        **dict.fromkeys(("exit_code", "exit_signal", "restarts"), pl.Int32),
        **dict.fromkeys(("node_list", "source_state"), pl.String),
    }
    absent = [pl.lit(None, kind).alias(name) for name, kind in kinds.items() if name not in wide.columns]
    if "state" not in wide.columns:
        absent.append(pl.lit(State.UNKNOWN.value).alias("state"))
    if "array_rest" not in wide.columns:
        absent.append(pl.lit(value=False).alias("array_rest"))
    return wide.with_columns(absent)


def _with_times(wide: pl.DataFrame, fields: set[str]) -> pl.DataFrame:
    import polars as pl

    submit, start, end, eligible = (pl.col(f"{name}_ts") for name in ("submit", "start", "end", "eligible"))
    unfinished = _one_of(pl.col("state"), [state.value for state in UNFINISHED])
    pending = pl.col("state") == State.PENDING.value
    nobody = _one_of(pl.col("node_list"), NOBODY) | pl.col("node_list").is_null()
    never = pending | (nobody & (start == end) if "NodeList" in fields else pl.lit(value=False))
    wide = _readings_of_repeated_hours(wide)
    wide = wide.with_columns(
        start_ts=pl.when(never)
        .then(None)
        .when(start < submit)
        .then(pl.coalesce("later_start_ts", start))
        .otherwise(start),
        end_ts=pl.when(unfinished).then(None).otherwise(end),
    )
    if "End" not in fields:
        lasted = pl.duration(microseconds=(pl.col("elapsed_s") + pl.col("suspended_s").fill_null(0)) * 1e6)
        wide = wide.with_columns(end_ts=pl.when(~unfinished).then(start + lasted))
    wide = wide.with_columns(end_ts=pl.when(end < start).then(pl.coalesce("later_end_ts", end)).otherwise(end))
    latest = pl.coalesce(start, end)
    ran = (end - start).dt.total_microseconds() / 1e6
    if not {"Start", "End"} & fields:
        ran = pl.when(~unfinished).then("elapsed_s")
    waited = (start - submit).dt.total_microseconds() / 1e6
    return wide.with_columns(
        eligible_ts=pl.when(eligible > latest).then(latest).when(eligible < submit).then(submit).otherwise(eligible),
        released_ts=pl.when(unfinished).then(None).otherwise(pl.max_horizontal(start, end)),
        wait_s=pl.when(waited >= 0).then(waited),
        run_s=pl.when(ran >= 0).then(ran),
        moved=((eligible > latest) | (eligible < submit)).fill_null(value=False),
        # Elapsed leaves suspensions out, in which the GPUs stay allocated
        stated_gpu_s=pl.when(pl.col("gpus") > 0, start.is_not_null(), ~unfinished, ~pl.col("requested")).then(
            (pl.col("stated_run_s") + pl.col("suspended_s").fill_null(0)) * pl.col("gpus")
        ),
    )


def _readings_of_repeated_hours(wide: pl.DataFrame) -> pl.DataFrame:
    """Of a start or an end that the clock showed twice, take the reading that fits the stated run time."""
    import polars as pl

    if wide["later_start_ts"].null_count() == wide.height and wide["later_end_ts"].null_count() == wide.height:
        return wide
    lasted = pl.col("stated_run_s") + pl.col("suspended_s").fill_null(0)
    starts, ends = ([pl.col(f"{name}_ts"), pl.col(f"later_{name}_ts")] for name in ("start", "end"))
    pairs = [(start, end) for start in starts for end in ends]
    fits = [((end - start).dt.total_microseconds() / 1e6 - lasted).abs() <= 1 for start, end in pairs]
    chosen: list[pl.Expr] = [
        # times distinguished by the source's own run time are not ambiguous
        pl.when(~pl.any_horizontal([fit.fill_null(value=False) for fit in fits])).then(name).alias(name)
        for name in ("later_start_ts", "later_end_ts")
    ]
    for k, name in enumerate(("start_ts", "end_ts")):
        expr: pl.Expr = pl.col(name)
        for pair, fit in reversed(list(zip(pairs, fits, strict=True))):
            expr = pl.when(fit).then(pair[k]).otherwise(expr)
        chosen.append(expr.alias(name))
    return wide.with_columns(chosen)


def _with_quirks(wide: pl.DataFrame, fields: set[str], *, folded: bool) -> pl.DataFrame:
    import polars as pl

    start, end, state = pl.col("start_ts"), pl.col("end_ts"), pl.col("state")
    twice = pl.any_horizontal(
        [pl.lit(value=False), *(pl.col(name).is_not_null() for name in wide.columns if name.startswith("later_"))]
    )
    resizing = pl.col("source_state") == "RESIZING"
    on_attempts = {
        "no_start": start.is_null() & (_one_of(state, _RAN) | resizing) & pl.lit("Start" in fields),
        "no_end": end.is_null() & start.is_not_null() & ~_one_of(state, [s.value for s in UNFINISHED]),
        "end_before_start": end < start,
        "eligible_clamped": pl.col("moved"),
        "suspended": pl.col("suspended_s") > 0,
        "ambiguous_hour": twice,
    }
    on_jobs = {
        "ambiguous_hour": twice,
        "start_before_submit": start < pl.col("submit_ts"),
        "exit_code_may_be_folded": pl.col("exit_code").is_in(_FOLDED) & (pl.col("exit_signal") == 0) & pl.lit(folded),
        "unknown_state": (state == State.UNKNOWN.value) & pl.lit("State" in fields),
        "array_rest": pl.col("array_rest"),
        "shared_gpus": pl.col("shared"),
        "gpus_requested": pl.col("requested"),
        **{name.removeprefix("_"): pl.col(name) for name in wide.columns if name.startswith("_")},
    }
    marks = wide.select(attempt=_mask(on_attempts.values()), job=_mask(on_jobs.values()))
    return wide.with_columns(
        _words(marks["attempt"], list(on_attempts)).alias("attempt_quirks"),
        _words(marks["job"], list(on_jobs)).alias("job_quirks"),
    )


def _one_of(column: pl.Expr, words: Iterable[str]) -> pl.Expr:
    """Whether a text is one of a few: comparing with each is faster than looking each up."""
    import polars as pl

    return pl.any_horizontal([column == word for word in words])


def _mask(conditions: Iterable[pl.Expr]) -> pl.Expr:
    import polars as pl

    bits = [c.fill_null(value=False).cast(pl.UInt16) * (1 << i) for i, c in enumerate(conditions)]
    return pl.sum_horizontal(bits)


def _words(masks: pl.Series, words: list[str]) -> pl.Series:
    """Turn bit masks into lists of words."""
    import polars as pl

    there = masks.unique()
    lists = [[word for i, word in enumerate(words) if mask >> i & 1] for mask in there]
    at = masks.replace_strict(there, pl.Series(range(len(there)), dtype=pl.UInt32), return_dtype=pl.UInt32)
    return pl.Series(lists, dtype=pl.List(pl.String)).gather(at)
