"""Makes the rows of jobs and attempts from the rows that SQL gathered: states, times, waits, quirks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.states import State

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

FINAL = {"SUCCEEDED": State.COMPLETED, "FAILED": State.FAILED, "KILLED": State.KILLED}
"""What the final status of a FINISHED application stands for; UNDEFINED, ENDED and none are unknown."""
OPEN = {
    **dict.fromkeys(("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED"), State.PENDING),
    **dict.fromkeys(("RUNNING", "KILLING"), State.RUNNING),
    **{"FAILED": State.FAILED, "KILLED": State.KILLED},
}
"""What YARN's state of an application stands for, except for FINISHED, which states nothing of success."""
EXITS = {-100: State.NODE_FAIL, -102: State.PREEMPTED, -103: State.OUT_OF_MEMORY, -104: State.OUT_OF_MEMORY}
"""Exit codes of the master's container that show why an attempt failed."""
ENDED = ("FINISHED", "FAILED", "KILLED")
ATTEMPT_COLUMNS = (
    *("job", "attempt", "queued_ts", "start_ts", "end_ts", "released_ts", "state", "source_state", "gpus", "servers"),
    *("wait_s", "run_s", "exit_code", "reason", "am_start_ts", "first_container_ts", "quirks", "source"),
)
JOB_COLUMNS = (
    *("job", "queue", "user", "name", "submit_ts", "start_ts", "end_ts", "state", "source_state", "gpus", "nodes"),
    *("cpus", "mem_mb", "priority", "exit_code", "reason", "attempts", "wait_s", "run_span_s", "run_sum_s"),
    *("run_last_s", "quirks", "source"),
)
_WHOLE_WITHIN, _PART_WITHIN, _ESTIMATED_FROM_S = 0.2, 0.02, 600


def attempt_rows(gathered: pl.DataFrame) -> pl.DataFrame:
    """Make rows of ``attempts``, with some columns of their jobs.

    ``start_ts`` is when the last member of the initial gang was allocated; if no source describes containers, when
    the master was launched (quirk ``start_is_am``). ``end_ts`` is when the application or the attempt began to save
    its final state. ``released_ts`` is when its last container with GPUs was gone (the last of all if none has
    any), cut if the next attempt had started.

    Args:
        gathered: the rows of ``yarn_attempts``, sorted by job and attempt.
    """
    import polars as pl

    c = pl.col
    over_last = c("is_last") & c("job_state").is_in(ENDED)
    frame = gathered.with_columns(
        start_ts=pl.coalesce("gang_ts", "master_ts", "launch_ts"),
        am_start_ts=pl.coalesce("master_ts", "launch_ts"),
        first_container_ts=pl.when(~c("only_master")).then("first_container_ts"),
        start_is_am=c("gang_ts").is_null() & pl.coalesce("master_ts", "launch_ts").is_not_null(),
        end_ts=pl.coalesce(
            pl.when(over_last).then("job_end_ts"),
            "end_ts",
            pl.when(c("is_last")).then("job_end_ts"),
            pl.when(c("all_ended") & (~c("is_last") | c("job_state").is_in(ENDED))).then("last_end"),
        ),
        is_over=~c("is_last") | c("job_state").is_in(ENDED) | c("state").is_in(ENDED),
    )
    frame = frame.with_columns(
        queued_ts=pl.when(c("attempt") == 0).then("submit_ts").otherwise(c("end_ts").shift(1).over("job")),
        next_ts=c("start_ts").shift(-1).over("job"),
    )
    frame = _releases(_states(_gpus(frame)))
    wait, run = _seconds("queued_ts", "start_ts"), _seconds("start_ts", "end_ts")
    return frame.with_columns(
        wait_s=pl.when(wait >= 0).then(wait),
        run_s=pl.when(run >= 0).then(run),
        quirks=_listed(
            start_is_am=c("start_is_am"),
            gpus_estimated=c("gpus_estimated"),
            gpus_partial=c("gpus_partial"),
            container_end_inferred=c("end_inferred"),
            containers_preempted=c("preempted") > 0,
            no_start=c("start_ts").is_null() & c("is_over"),
            no_end=c("is_over") & c("end_ts").is_null(),
            overlap=c("overlap"),
            start_before_submit=wait < 0,
            end_before_start=run < 0,
        ),
    )


def job_rows(
    gathered: pl.DataFrame, attempts: pl.DataFrame, paths: Mapping[str, str], clock_quirk: str | None
) -> pl.DataFrame:
    """Make rows of ``jobs``.

    Args:
        gathered: the rows of ``yarn_jobs``.
        attempts: as `attempt_rows` made them.
        paths: last part of a queue's path -> the path.
        clock_quirk: what jobs with log stamps are marked with.
    """
    import polars as pl

    c = pl.col
    # an attempt whose master was lost before it got a worker does not show the size of the job
    gang_gpus = c("gpus").filter(~c("only_master")).drop_nulls()
    firsts = attempts.group_by("job").agg(
        attempts=pl.len().cast(pl.Int32),
        start_ts=c("start_ts").drop_nulls().first(),
        gpus=pl.coalesce(gang_gpus.first(), c("gpus").drop_nulls().first()),
        nodes=c("servers").drop_nulls().first(),
        cpus=c("cpus").drop_nulls().first(),
        mem_mb=c("mem_mb").drop_nulls().first(),
        run_sum_s=pl.when(c("run_s").is_not_null().any()).then(c("run_s").sum()),
        run_last_s=c("run_s").last(),
        exit_code=c("exit_code").last(),
        last_state=c("attempt_state").last(),
        last_end=c("end_ts").last(),
        gpus_changed=gang_gpus.n_unique() > 1,
        start_is_am=c("start_is_am").first(),
        gpus_estimated=c("gpus_estimated").any(),
        gpus_partial=c("gpus_partial").any(),
    )
    frame = gathered.drop("gpus", "machine").join(firsts, on="job", how="left")
    leaf = c("queue").str.extract(r"([^.]*)$")
    known = leaf.replace_strict(list(paths), list(paths.values()), default=None, return_dtype=pl.String)
    span, wait = _seconds("start_ts", "end_ts"), _seconds("submit_ts", "start_ts")
    frame = frame.with_columns(
        queue=pl.when(c("queue").str.contains(".", literal=True)).then("queue").otherwise(pl.coalesce(known, "queue")),
        end_ts=pl.coalesce("end_ts", pl.when(c("state").is_in(ENDED)).then("last_end")),
        source_state=c("state")
        + pl.when(c("final_status").is_null()).then(pl.lit("")).otherwise("/" + c("final_status")),
    )
    stated = _job_state(c("state"), c("final_status"))
    return frame.with_columns(
        state=pl.when((stated == State.FAILED.value) & c("last_state").is_not_null())
        .then("last_state")
        .otherwise(stated),
        attempts=c("attempts").fill_null(0),
        gpus=pl.coalesce("gpus", pl.when(_succeeded() & (c("gpu_seconds") == 0)).then(0.0)),
        wait_s=pl.when(wait >= 0).then(wait),
        run_span_s=pl.when(span >= 0).then(span),
        source=c("sources").list.max().cast(pl.Int32),
        quirks=_listed(
            no_attempts=c("attempts").is_null(),
            gpus_changed=c("gpus_changed"),
            gpus_estimated=c("gpus_estimated"),
            gpus_partial=c("gpus_partial"),
            start_is_am=c("start_is_am"),
            start_before_submit=wait < 0,
            **({clock_quirk: c("stamped")} if clock_quirk else {}),
        ),
    )


def _job_state(state: pl.Expr, final: pl.Expr) -> pl.Expr:
    import polars as pl

    finished = final.replace_strict({k: v.value for k, v in FINAL.items()}, default=State.UNKNOWN.value)
    others = state.replace_strict({k: v.value for k, v in OPEN.items()}, default=State.UNKNOWN.value)
    return pl.when(state == "FINISHED").then(finished).otherwise(others)


def _states(frame: pl.DataFrame) -> pl.DataFrame:
    """Settle ``state`` (the last one has its job's; a failed master's exit code shows more) and ``source_state``."""
    import polars as pl

    c = pl.col
    own = _job_state(c("state"), c("final_status"))
    running = (
        pl.when(c("start_ts").is_not_null()).then(pl.lit(State.RUNNING.value)).otherwise(pl.lit(State.PENDING.value))
    )
    state = (
        pl.when(~c("is_last"))
        .then(pl.when(c("state") == "KILLED").then(pl.lit(State.KILLED.value)).otherwise(pl.lit(State.FAILED.value)))
        .when(c("job_state").is_in(ENDED))
        .then(_job_state(c("job_state"), c("final_status")))
        .when(c("state").is_in(ENDED))
        .then(own)
        .when(c("end_ts").is_not_null())
        .then(pl.lit(State.UNKNOWN.value))
        .otherwise(running)
    )
    why = c("exit_code").replace_strict({k: v.value for k, v in EXITS.items()}, default=None, return_dtype=pl.String)
    return frame.with_columns(
        attempt_state=pl.when(state == State.FAILED.value).then(pl.coalesce(why, state)).otherwise(state),
        source_state=pl.coalesce("state", pl.when(c("is_last")).then("job_state")),
    ).with_columns(state=c("attempt_state"))


def _gpus(frame: pl.DataFrame) -> pl.DataFrame:
    """Fill in GPUs if logs and timeline do not describe containers, and mark them.

    ``gpus_estimated``: GPU-seconds over the time from the master's launch to the end, only for a job of one attempt
    that ran for ten minutes or more, and where that comes within 0.2 and 2 % of a whole number, which is taken. It is a
    mean: a gang that was long in gathering, or lost members, comes out too small, by about the share of its GPU time
    that is missing (30 s of ten minutes: 5 %); only GPUs that were kept past the end make it too great. On a real
    cluster, applications of half a minute came out at 11 and 15 GPUs in place of 12: hence the ten minutes.

    ``gpus_partial``: the most GPUs that any dump of the ResourceManager saw the application hold, which may have been
    on the way to more. Holding none shows nothing.

    0 GPU-seconds stand for 0 GPUs if the application succeeded; another may have ended before it got any.
    """
    import polars as pl

    c = pl.col
    # a master alone, without success, does not show how many GPUs its workers would have had
    succeeded = _succeeded() & c("is_last")
    nothing_got = (c("only_master") & (c("gpus") == 0) & ~succeeded).fill_null(value=False)
    frame = frame.with_columns(gpus=pl.when(~nothing_got).then("gpus"))
    alone = c("is_last") & (c("attempt") == 0)
    ratio = c("gpu_seconds") / _seconds("start_ts", "end_ts")
    off = (ratio - ratio.round()).abs()
    near = (ratio.round() >= 1) & (off <= _WHOLE_WITHIN) & (off <= _PART_WITHIN * ratio)
    long_enough = _seconds("start_ts", "end_ts") >= _ESTIMATED_FROM_S
    estimate = pl.when(alone & (c("gpu_seconds") > 0) & long_enough & near).then(ratio.round())
    whole = pl.when(~c("only_held").fill_null(value=False)).then("gpus")
    none = pl.when(succeeded & (c("gpu_seconds") == 0)).then(0.0)
    known = pl.coalesce(whole, none)
    seen = pl.max_horizontal(pl.when(c("only_held")).then("gpus"), pl.when(c("is_last")).then("job_gpus"))
    seen = pl.when(seen > 0).then(seen)
    least = pl.max_horizontal(estimate, seen)
    return frame.with_columns(
        gpus=pl.coalesce(known, least),
        gpus_estimated=(known.is_null() & (estimate >= pl.coalesce(seen, 0.0))).fill_null(value=False),
        gpus_partial=(known.is_null() & (seen > pl.coalesce(estimate, 0.0))).fill_null(value=False),
    )


def _succeeded() -> pl.Expr:
    """Whether the application, by its final status, succeeded; columns of jobs or attempts."""
    import polars as pl

    return (pl.col("final_status") == "SUCCEEDED").fill_null(value=False)


def _releases(frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    c = pl.col
    gone = pl.when(c("all_ended")).then(pl.coalesce("last_gpu_end", "last_end", "end_ts")).otherwise("end_ts")
    return frame.with_columns(
        overlap=(gone > c("next_ts")).fill_null(value=False),
        released_ts=pl.when(c("is_over")).then(pl.min_horizontal(pl.coalesce(gone, "next_ts"), "next_ts")),
    )


def _seconds(start: str, end: str) -> pl.Expr:
    import polars as pl

    return (pl.col(end) - pl.col(start)).dt.total_microseconds() / 1e6


def _listed(**quirks: pl.Expr) -> pl.Expr:
    """Names of the conditions that are true, as a list."""
    import polars as pl

    words = [pl.when(holds).then(pl.lit(name)) for name, holds in quirks.items()]
    return pl.concat_list(words).list.drop_nulls()
