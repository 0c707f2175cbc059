"""Figures that a source states itself, for jobs without samples: jobstats, dcgmi, peaks of Slurm's steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gpuctl.store.database import Store

_STATED = ("jobstats", "dcgmi", "gpustats")
_SQL = """
    SELECT DISTINCT s.job, origin, s.machine, gpu, util_mean, util_peak, mem_max_mb, s.run_s, note
    FROM job_gpu_summary AS s
    JOIN (
        SELECT job, max(start_ts) AS last_ts FROM attempts WHERE cluster = $cluster GROUP BY job
    ) AS a ON a.job = s.job
    WHERE s.cluster = $cluster AND (s.start_ts IS NULL OR s.start_ts >= a.last_ts)
    ORDER BY ALL
"""
_WHY = {"short": "short", "none": "no_samples"}


class Summary(NamedTuple):
    """A source's summary of a job's last attempt.

    Attributes:
        origin: the source.
        utils: mean utilization of each GPU that has one (%).
        mems: highest memory of each GPU (MiB).
        gpus: GPUs in it.
        run_s: run time of the attempt (s).
        peak: sum over GPUs of the highest utilization (%).
        note: reason for a missing figure.
    """

    origin: str
    utils: list[float]
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
        if not self.utils:
            return row | {"withheld": _WHY.get(self.note or "", "mig")}
        if gpus and len(self.utils) < round(gpus):
            row["gpu_util_coverage"] = len(self.utils) / round(gpus)
            if len(self.utils) < round(gpus) / 2:
                return row | {"withheld": "coverage", "gpu_mem_max_mb": None}
        unused = sum(util == 0 for util in self.utils)
        run = run_s if self.run_s is None else self.run_s
        return row | {
            "gpu_util_mean": sum(self.utils) / len(self.utils), "gpus_unused": unused,
            "idle_gpu_h": unused * run / 3600, "util_kind": "kernel",
        }  # fmt: skip


def summaries(store: Store, cluster: str) -> dict[str, Summary]:
    """Return the sources' summary of each job; a mean takes precedence over a peak."""
    rows: dict[str, dict[str, list[Any]]] = {}
    for job, origin, _, *rest in store.execute(_SQL, {"cluster": cluster}).fetchall():
        rows.setdefault(job, {}).setdefault(origin, []).append(rest)
    found: dict[str, Summary] = {}
    for job, by_origin in rows.items():
        origin = next((name for name in _STATED if name in by_origin), "step")
        some = by_origin[origin]
        utils = [util for _, util, *_ in some if util is not None]
        mems = [mem for _, _, _, mem, *_ in some if mem is not None]
        peaks = [peak for _, _, peak, *_ in some if peak is not None]
        run = next((run for *_, run, _ in some if run is not None), None)
        note = next((note for *_, note in some if note is not None), None)
        found[job] = Summary(origin, utils, mems, len(some), run, max(peaks, default=None), note)
    return found
