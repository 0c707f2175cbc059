"""Usage of requested resources by accounting: CPU time, memory, how jobs were started, and their steps."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from gpuctl.ingest.slurm.distinct_values import Distinct
from gpuctl.slurm import jobstats
from gpuctl.slurm.times import instants

if TYPE_CHECKING:
    import polars as pl

_DURATION = r"^(?:(\d{1,7})-)?(?:(\d{1,7}):)?(\d{1,7}):(\d{1,2}(?:\.\d{1,9})?)$"
_SIZE = r"(\d+(?:\.\d*)?)([KMGTP]?)(?:,|$)"
_MIB = {"": 2**-20, "K": 2**-10, "M": 1.0, "G": 2.0**10, "T": 2.0**20, "P": 2.0**30}
_MOST_MIB = 2**40
"""More is one of Slurm's signs for "not set" (2^64 - 2), not a size."""
_JUPYTER = re.compile(r"jupyter", re.IGNORECASE)
_STARTERS = frozenset({"sbatch", "salloc", "srun"})


def seconds(texts: pl.Series) -> pl.Series:
    """Seconds of durations as Slurm writes them: ``[D-][HH:]MM:SS[.mmm]``; null if a text is none."""
    import polars as pl

    parts = texts.str.extract_groups(_DURATION).struct
    days, hours, minutes, rest = (parts.field(str(k)).cast(pl.Float64) for k in range(1, 5))
    total = days.fill_null(0) * 86_400 + hours.fill_null(0) * 3600 + minutes * 60 + rest
    return total.alias(texts.name)


def mebibytes(texts: pl.Series, key: str = "^") -> pl.Series:
    """MiB of sizes such as ``54525952K`` (no suffix: bytes); null if there is none, 0 or a sign for "not set".

    Args:
        texts: a size each, or lists as in TRESUsageInTot.
        key: a regular expression of what stands before the size.
    """
    import polars as pl

    parts = texts.str.extract_groups(key + _SIZE).struct
    unit = parts.field("2").replace_strict(_MIB, default=None, return_dtype=pl.Float64)
    size = parts.field("1").cast(pl.Float64, strict=False) * unit
    return size.set(~((size > 0) & (size < _MOST_MIB)), None).alias(texts.name)


def of_jobs(frame: pl.DataFrame) -> pl.DataFrame:
    """Return ``cpu_s``, ``started_as`` and, by jobstats' summary, ``mem_used_mb``, ``mem_limit_mb``, ``mem_node_pct``.

    A damaged summary is no summary: the job is loaded without it, with the quirk ``_jobstats_damaged``.

    Args:
        frame: canonical text, one row per job's record.
    """
    import polars as pl

    columns: dict[str, pl.Series] = {}
    if "TotalCPU" in frame.columns:
        columns["cpu_s"] = seconds(frame["TotalCPU"])
    if "AdminComment" in frame.columns and frame["AdminComment"].str.starts_with(jobstats.PREFIX).any():
        dtypes = {
            **dict.fromkeys(("mem_used_mb", "mem_limit_mb", "mem_node_pct"), pl.Float64),
            "_jobstats_damaged": pl.Boolean,
        }
        rows = [_summarized(text) for text in frame["AdminComment"]]
        columns |= {
            name: pl.Series([row[k] for row in rows], dtype=dtype) for k, (name, dtype) in enumerate(dtypes.items())
        }
        if not columns["_jobstats_damaged"].any():
            del columns["_jobstats_damaged"]
    if "SubmitLine" in frame.columns:
        named = pl.lit(value=False)
        if "JobName" in frame.columns:
            named = pl.col("JobName").str.contains("(?i)jupyter")
        started = Distinct(frame["SubmitLine"]).each(started_as, pl.String)
        columns["started_as"] = frame.select(
            pl.when(named & pl.lit(started).is_in(["batch", "jupyter"])).then(pl.lit("jupyter")).otherwise(started)
        ).to_series()
    return pl.DataFrame(columns)


def _summarized(text: str | None) -> tuple[float | None, float | None, float | None, bool]:
    try:
        return *jobstats.memory(jobstats.summary(text or "")), False
    except ValueError:
        return None, None, None, True


def started_as(line: str) -> str | None:
    """Determine from a job's command line how it was started; None if it does not show.

    Returns:
        ``batch``, ``salloc``, ``srun --pty``, ``srun``, or ``jupyter`` if the line names Jupyter.
    """
    words = line.split()
    starter = PurePosixPath(words[0]).name if words else ""
    if starter not in _STARTERS:
        return None
    if _JUPYTER.search(line):
        return "jupyter"
    if starter == "srun" and any(word == "--pty" or word.startswith("--pty=") for word in words):
        return "srun --pty"
    return "batch" if starter == "sbatch" else starter


def of_steps(frame: pl.DataFrame, timezone: str) -> pl.DataFrame:
    """Return the rows of ``step_usage``: the steps of each record of a job, together.

    ``.extern`` holds no program: its memory counts only beside that of another step.

    Args:
        frame: canonical text of steps and the column ``_record``, which differs for the steps of different records.
        timezone: IANA name of the zone of times without an offset.
    """
    import polars as pl

    ids = frame["JobIDRaw" if "JobIDRaw" in frame.columns else "JobID"].str.splitn(".", 2).struct
    none = pl.lit(None, pl.Float64)
    tasks = pl.lit(frame["NTasks"].cast(pl.Float64, strict=False)) if "NTasks" in frame.columns else none
    found: dict[str, Any] = {
        "job": ids.field("field_0").str.replace(r"_\[.*$", ""),
        "step": ids.field("field_1"),
        "cpu_s": seconds(frame["TotalCPU"]) if "TotalCPU" in frame.columns else none,
        "total": mebibytes(frame["TRESUsageInTot"], "(?:^|,)mem=") if "TRESUsageInTot" in frame.columns else none,
        "task": mebibytes(frame["MaxRSS"]) * tasks if "MaxRSS" in frame.columns else none,
        "start_ts": instants(frame["Start"], timezone).utc
        if "Start" in frame.columns
        else pl.lit(None, pl.Datetime("us", "UTC")),
    }
    outside = pl.col("step") == "extern"

    def largest(name: str) -> pl.Expr:
        return pl.when(pl.col(name).filter(~outside).count() > 0).then(pl.col(name).max())

    return (
        frame.select("_record", **found)
        .group_by("job", "_record", maintain_order=True)
        .agg(
            start_ts=pl.col("start_ts").min(),
            steps=pl.len().cast(pl.Int32),
            cpu_s=pl.when(pl.col("cpu_s").count() > 0).then(pl.col("cpu_s").sum()),
            mem_total_mb=largest("total"),
            mem_task_mb=largest("task"),
            batch=(pl.col("step") == "batch").any(),
            interactive=(pl.col("step") == "interactive").any(),
        )
        .drop("_record")
    )
