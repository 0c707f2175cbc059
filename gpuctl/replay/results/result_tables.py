"""A result table of a replay with its documented columns, and the columns shown first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.results import ResultTable
from gpuctl.replay.results.columns import OPTIONAL, columns

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.core.notes import Note

FIRST_COLUMNS = {
    "replay_summary": 15,
    "replay_by_size": 12,
    "replay_by_queue": 12,
    "replay_vs_baseline": 13,
    "replay_vs_recorded": 13,
    "replay_vs_unchanged": 13,
    "replay_fidelity": 12,
}
"""Columns that a terminal shows of wide tables."""

_FIGURES = ("jobs_finished", "wait_mean_s", "wait_p95_s", "jct_mean_s")
_DIFFERENCES = (
    "policy", "measure", "size_bucket", "pairs", "diff_mean_s", "diff_low_s", "diff_high_s", "change_pct"
)  # fmt: skip
KEY_COLUMNS = {
    "replay_summary": ("policy", *_FIGURES, "jct_p95_s", "utilization_pct", "preemptions"),
    "replay_by_size": ("policy", "size_bucket", *_FIGURES, "slowdown_mean", "preemptions"),
    "replay_by_queue": ("policy", "queue", *_FIGURES, "slowdown_mean", "preemptions"),
    "replay_vs_baseline": _DIFFERENCES,
    "replay_vs_recorded": _DIFFERENCES,
    "replay_vs_unchanged": _DIFFERENCES,
    "replay_preemptions": (
        "policy", "jobs", "jobs_preempted", "preempted_pct", "preemptions", "most_of_a_job", "overhead_gpu_h",
        "lost_gpu_h",
    ),
    "replay_failures": (
        "policy", "seed", "interruptions", "mttf_h", "ettr", "ettr_running", "productive_gpu_hours",
        "lost_gpu_hours", "down_gpu_hours",
    ),
    "replay_unfinished": ("policy", "job", "state", "queue", "user", "gpus", "wait_s", "reason"),
}  # fmt: skip
"""Columns that a page shows of wide tables."""


def documented(
    name: str,
    frame: pl.DataFrame,
    population: Note,
    *,
    section: str,
    title: str,
    question: str,
    notes: tuple[Note, ...] = (),
    detail: bool = False,
    sentences: tuple[Note, ...] = (),
    charts: tuple[str, ...] = (),
) -> ResultTable:
    """Return a result table of a replay, its columns documented and in their order.

    Args:
        name: of the table, a key of `gpuctl.replay.results.columns`.
        frame: its rows, with at least these columns.
        population: what is counted.
        section: where it is shown.
        title: its heading.
        question: answered by the table.
        notes: on this replay.
        detail: one row per job, or points of a curve.
        sentences: what its columns of sentences hold, each once.
        charts: declarations of charts, for a table that not every replay has.
    """
    shown = tuple(c for c in columns(name) if c.name not in OPTIONAL or c.name in frame.columns)
    return ResultTable(
        name=name,
        section=section,
        title=title,
        question=question,
        population=population,
        notes=notes,
        columns=shown,
        frame=frame.select(c.name for c in shown),
        detail=detail,
        first_columns=FIRST_COLUMNS.get(name, 0),
        key_columns=KEY_COLUMNS.get(name, ()),
        sentences=sentences,
        charts=charts,
    )
