"""Says which counters figures of GPU utilization come from, and what these measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.notes import listed, literal, note, together

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.store.database import Store

_READERS = """
    SELECT DISTINCT unnest(string_split(readers, ',')) AS reader FROM job_gpu_usage
    WHERE cluster = $cluster AND readers IS NOT NULL ORDER BY reader
"""
_KINDS = """
    SELECT util_kind, join_by = 'summary' AS summary, count(*) AS jobs FROM job_gpu_usage
    WHERE cluster = $cluster AND gpu_util_mean IS NOT NULL GROUP BY ALL ORDER BY ALL
"""
_KERNEL = literal(
    "utilization is the share of time in which a kernel ran (GPU_UTIL), an upper bound of how much of a GPU was used"
)


def sentence(store: Store, cluster: str, *, by_start_minute: bool) -> Note:
    """Say whose a sample is, which tools measured, and which counter they read.

    Args:
        store: open.
        cluster: its name there.
        by_start_minute: a minute belongs to an attempt from the one in which it starts (the published notebook).
    """
    own = {"cluster": cluster}
    kinds = store.execute(_KINDS, own).fetchall()
    readers = [name for (name,) in store.execute(_READERS, own).fetchall() if name]
    parts = [
        literal("a minute belongs to an attempt from the minute in which it starts")
        if by_start_minute
        else literal("a sample belongs to the attempt that holds the GPU at the sample's time")
    ]
    if kinds and all(summary for _, summary, _ in kinds):
        parts = [literal("the mean of a GPU that a summary states stands for all minutes of the job's last attempt")]
    if not kinds or any(kind == "kernel" for kind, _, _ in kinds):
        parts.append(_KERNEL)
    jobs = {kind: sum(n for other, _, n in kinds if other == kind) for kind, _, _ in kinds}
    if jobs.get("engine"):
        parts.append(
            note(
                "for {jobs:,} job{jobs||s} on MIG instances, the share of time in which their engines were busy",
                jobs=jobs["engine"],
            )
        )
    if jobs.get("sm"):
        parts.append(
            note("for {jobs:,} job{jobs||s}, the share of multiprocessors that were busy (SM_ACTIVE)", jobs=jobs["sm"])
        )
    if readers:
        parts.append(note("measured by {readers}", readers=listed("name", readers)))
    return together("; ", parts)
