"""What accounting states of the use of GPUs: jobstats' summaries, gpustats in Comment, peaks of steps.

``gres/gpuutil`` of TRESUsageInTot is the sum over tasks of the highest utilization that a poll saw (Slurm
gpu_nvml.c, common_jag.c): a peak, which bounds a mean from above and is none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from gpuctl.ingest.slurm.usage import mebibytes
from gpuctl.slurm import jobstats
from gpuctl.slurm.times import instants

if TYPE_CHECKING:
    import polars as pl

_MIB = 1 / 2**20
_MOST_PCT = 1_000_000.0
"""More is one of Slurm's signs for "not set"."""
_GPUSTATS = '"gpu_util"'
_MOST_GPUS = 1024


def of_accounting(jobs: pl.DataFrame, steps: pl.DataFrame, timezone: str) -> pl.DataFrame | None:
    """Return rows of ``job_gpu_summary``; None if nothing is stated.

    Args:
        jobs: canonical text, one row a job's record.
        steps: the records of steps, with ``_record``.
        timezone: IANA name of the zone of times without an offset.
    """
    import polars as pl

    kinds = {
        **dict.fromkeys(("job", "start", "machine", "gpu"), pl.String),
        **dict.fromkeys(("util_mean", "util_peak", "mem_max_mb", "run_s"), pl.Float64),
        **dict.fromkeys(("origin", "note"), pl.String),
    }
    found = [pl.DataFrame(rows, schema=kinds) for rows in (_of_comments(jobs),) if rows]
    if "TRESUsageInTot" in steps.columns and steps["TRESUsageInTot"].str.contains("gres/gpuutil=", literal=True).any():
        found.append(_of_steps(steps))
    if not found:
        return None
    rows = pl.concat(found, how="diagonal")
    return rows.with_columns(start_ts=instants(rows["start"], timezone).utc).drop("start")


def _of_comments(jobs: pl.DataFrame) -> list[dict[str, Any]]:
    import polars as pl

    begins = {"AdminComment": jobstats.PREFIX, "Comment": "{"}
    stated = [pl.col(n).str.starts_with(t).fill_null(value=False) for n, t in begins.items() if n in jobs.columns]
    some = jobs.filter(pl.any_horizontal(stated)) if stated else jobs.clear()
    rows: list[dict[str, Any]] = []
    for record in some.iter_rows(named=True):
        own = {"job": record.get("JobIDRaw") or record.get("JobID"), "start": record.get("Start")}
        rows += [own | row for row in (*_jobstats(record.get("AdminComment")), *_gpustats(record.get("Comment")))]
    return rows


def _jobstats(text: str | None) -> list[dict[str, Any]]:
    """A row a GPU of a summary; its key is the minor number."""
    if not text or not text.startswith(jobstats.PREFIX):
        return []
    word = text[len(jobstats.PREFIX) :].strip()
    if word in jobstats.NOTHING:
        return [{"origin": "jobstats", "note": word.lower()}]
    try:
        found = jobstats.summary(text)
    except ValueError:
        # counted and named with the job
        return []
    rows = []
    run = _number(found.get("total_time")) if found else None
    for machine, node in (found or {"nodes": {}})["nodes"].items():
        parts = {key: node.get(key) for key in ("gpu_utilization", "gpu_used_memory", "gpu_total_memory")}
        utils, mems, _ = (part if isinstance(part, dict) else {} for part in parts.values())
        gpus = {key for part in parts.values() if isinstance(part, dict) for key in part}
        for gpu in sorted(gpus):
            util, mem = _number(utils.get(gpu), 100.5), _number(mems.get(gpu))
            rows.append(
                {"machine": str(machine), "gpu": str(gpu), "util_mean": util, "run_s": run, "origin": "jobstats",
                 "mem_max_mb": None if mem is None else mem * _MIB}
            )  # fmt: skip
    return rows


def _gpustats(text: str | None) -> list[dict[str, Any]]:
    """A row a GPU: the mean over them and over rounds, as an epilog left it (nauhpc/ansible-role-sacct_gpu)."""
    if not text or _GPUSTATS not in text or len(text) > 10_000:
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    util = _number(found.get("gpu_util"), 100.5) if isinstance(found, dict) else None
    if util is None:
        return []
    row = {"util_mean": util, "mem_max_mb": _number(found.get("gpu_mem_max")), "origin": "gpustats"}
    gpus = _number(found.get("ngpu"), _MOST_GPUS)
    return [row | {"gpu": str(gpu)} for gpu in range(int(gpus))] if gpus and gpus >= 1 else [row]


def _of_steps(steps: pl.DataFrame) -> pl.DataFrame:
    """The step with the highest utilization of each record: steps of a job mostly follow one another."""
    import polars as pl

    tres = steps["TRESUsageInTot"]
    util = tres.str.extract(r"(?:^|,)gres/gpuutil=(\d{1,12})(?:,|$)", 1).cast(pl.Float64)
    rows = steps.select(
        "_record",
        job=pl.coalesce([n for n in ("JobIDRaw", "JobID") if n in steps.columns]).str.replace(r"\..*$", ""),
        start=pl.col("Start") if "Start" in steps.columns else pl.lit(None, pl.String),
        util_peak=pl.when(pl.lit(util) <= _MOST_PCT).then(pl.lit(util)),
        mem_max_mb=mebibytes(tres, "(?:^|,)gres/gpumem="),
    )
    # 0 is idle or not measured; memory in use shows that the step was measured
    measured = (pl.col("util_peak") > 0) | (pl.col("mem_max_mb") > 0)
    best = (
        rows.filter(measured)
        .group_by("job", "_record", maintain_order=True)
        .agg(pl.col("start").min(), pl.col("util_peak").max(), pl.col("mem_max_mb").max())
    )
    return best.drop("_record", "mem_max_mb").with_columns(origin=pl.lit("step"))


def _number(value: object, most: float = 2.0**60) -> float | None:
    sound = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
    return float(value) if sound else None  # type: ignore[arg-type]
