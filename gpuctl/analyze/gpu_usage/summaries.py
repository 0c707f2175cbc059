"""Figures that a source states itself, for jobs without samples: jobstats, dcgmi, peaks of Slurm's steps."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpuctl.analyze.gpu_usage.holds import Holds
    from gpuctl.store.database import Store

_STATED = ("jobstats", "dcgmi", "gpustats")
_SQL = """
    SELECT DISTINCT s.job, origin, s.machine, gpu, util_mean, util_peak, mem_max_mb, s.run_s, note
    FROM job_gpu_summary AS s
    JOIN (
        SELECT job, max(start_ts) AS last_ts FROM attempts WHERE cluster = $cluster GROUP BY job
    ) AS a ON a.job = s.job
    WHERE s.cluster = $cluster AND (s.start_ts IS NULL OR s.start_ts >= a.last_ts
        -- dcgmi starts in the prolog
        OR (s.origin = 'dcgmi' AND s.start_ts >= a.last_ts - INTERVAL 5 MINUTE))
    ORDER BY ALL
"""
_WHY = {"short": "short", "none": "no_samples"}


class Summary(NamedTuple):
    """A source's summary of a job's last attempt.

    Attributes:
        origin: the source.
        means: node (None: not stated) and mean utilization (%) of each GPU that has one.
        mems: highest memory of each GPU (MiB).
        gpus: GPUs in it.
        run_s: run time of the attempt (s).
        peak: sum over GPUs of the highest utilization (%).
        note: reason for a missing figure.
    """

    origin: str
    means: list[tuple[str | None, float]]
    mems: list[float]
    gpus: int
    run_s: float | None
    peak: float | None
    note: str | None

    def figures(self, held_s: float, run_s: float) -> dict[str, Any]:
        """Return columns of ``job_gpu_usage``."""
        gpus = held_s / run_s if run_s else 0.0
        if self.origin == "step":
            high = min(100.0, self.peak / gpus) if self.peak is not None and gpus else None
            return {"gpu_util_high": high, "withheld": "peak_only", "join_by": "step"}
        row: dict[str, Any] = {"join_by": "summary", "readers": self.origin, "gpu_util_coverage": None}
        row["gpu_mem_max_mb"] = max(self.mems, default=None)
        utils = [util for _, util in self.means]
        if not utils:
            return row | {"withheld": _WHY.get(self.note or "", "mig")}
        if self.origin == "dcgmi" and len(utils) > round(gpus):
            # the summary is of the whole group of GPUs, including those of other jobs
            return row | {"withheld": "ambiguous", "gpu_mem_max_mb": None}
        if gpus and len(utils) < round(gpus):
            row["gpu_util_coverage"] = len(utils) / round(gpus)
            if len(utils) < round(gpus) / 2:
                return row | {"withheld": "coverage", "gpu_mem_max_mb": None}
        unused = sum(util == 0 for util in utils)
        run = run_s if self.run_s is None else self.run_s
        return row | {
            "gpu_util_mean": sum(utils) / len(utils), "gpus_unused": unused,
            "idle_gpu_h": unused * run / 3600, "util_kind": "kernel",
        }  # fmt: skip


def summaries(store: Store, cluster: str) -> dict[str, Summary]:
    """Return the sources' summary of each job; a mean takes precedence over a peak."""
    rows: dict[str, dict[str, list[Any]]] = {}
    for job, origin, *rest in store.execute(_SQL, {"cluster": cluster}).fetchall():
        rows.setdefault(job, {}).setdefault(origin, []).append(rest)
    found: dict[str, Summary] = {}
    for job, by_origin in rows.items():
        origin = next((name for name in _STATED if name in by_origin), "step")
        some = by_origin[origin]
        means = [(machine, util) for machine, _, util, *_ in some if util is not None]
        mems = [mem for _, _, _, _, mem, *_ in some if mem is not None]
        peaks = [peak for _, _, _, peak, *_ in some if peak is not None]
        run = next((run for *_, run, _ in some if run is not None), None)
        note = next((note for *_, note in some if note is not None), None)
        found[job] = Summary(origin, means, mems, len(some), run, max(peaks, default=None), note)
    return found


def over_time(found: Mapping[str, Summary], holds: Holds) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Let the mean of each GPU stand for all of its job's last attempt: rows of ``gpu_use_hours``, ``gpu_use_tenths``.

    Args:
        found: the summaries of jobs whose mean is not withheld.
        holds: who held what.
    """
    last: dict[str, int] = {}
    for at, attempt in enumerate(holds.attempts):
        if attempt.job in found and attempt.end is not None:
            last[attempt.job] = at
    own: dict[int, list[str]] = defaultdict(list)
    spans: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for hold in holds.on_nodes:
        attempt = holds.attempts[hold.attempt]
        own[hold.attempt].append(hold.machine)
        spans[hold.machine].append((attempt.start / 1e6, np.inf if attempt.end is None else attempt.end / 1e6))
    on_machine = {name: tuple(np.sort(some) for some in zip(*each, strict=True)) for name, each in spans.items()}
    rows = []
    for job, at in last.items():
        attempt = holds.attempts[at]
        span = attempt.start / 1e6, (attempt.end or attempt.start) / 1e6
        means = found[job].means
        for machine in own[at]:
            host = machine.partition(".")[0]
            here = [util for name, util in means if len(own[at]) == 1 or (name or "").partition(".")[0] == host]
            for begin, end, colocated in _pieces(span, *on_machine[machine]):
                rows += [(job, attempt.attempt, machine, begin, end - begin, colocated, util) for util in here]
    kinds = {"job": pl.String, "attempt": pl.Int32, "machine": pl.String, "begin": pl.Float64, "length": pl.Float64,
             "colocated": pl.Boolean, "util": pl.Float64}  # fmt: skip
    pieces = pl.DataFrame(rows, schema=kinds, orient="row").with_columns(
        seconds=pl.col("length").round().cast(pl.Int64),
        hour=((pl.col("begin") // 3600).cast(pl.Int64) * 3_600_000_000).cast(pl.Datetime("us", "UTC")),
        tenth=(pl.col("util") * 10).round().cast(pl.Int16),
        total=(pl.col("util") * 1e6).round().cast(pl.Int64),
    )
    sums = pl.col("seconds").sum(), (pl.col("total") * pl.col("seconds")).sum()
    hours = pieces.group_by("job", "attempt", "machine", "hour", "colocated", maintain_order=True).agg(*sums)
    tenths = pieces.group_by("job", "attempt", "colocated", "tenth", maintain_order=True).agg(*sums)
    return hours, tenths


def _pieces(
    span: tuple[float, float], starts: NDArray[np.float64], ends: NDArray[np.float64]
) -> list[tuple[float, float, bool]]:
    """A span cut at full hours and where an attempt on the node starts or ends; whether another one is there."""
    first, last = span
    hours = np.arange(first // 3600 + 1, np.ceil(last / 3600)) * 3600
    inner = [times[np.searchsorted(times, first, "right") : np.searchsorted(times, last)] for times in (starts, ends)]
    cuts = np.unique(np.concatenate([[first, last], hours, *inner]))
    middles = (cuts[:-1] + cuts[1:]) / 2
    there = np.searchsorted(starts, middles, "right") - np.searchsorted(ends, middles, "right")
    return [(float(a), float(b), bool(n > 1)) for a, b, n in zip(cuts[:-1], cuts[1:], there, strict=True)]
