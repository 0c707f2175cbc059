"""Replayed policies that differ from the baseline beyond chance: for the findings, and for the cards of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpuctl.core.results import Analysis

    Row = dict[str, Any]

CHANCE = 0.02
"""Maximum p of a finding; strict, as a screen has several such sentences."""
_COMPARED = frozenset(
    {
        "policy", "measure", "size_bucket", "mean_s", "baseline_mean_s", "baseline", "diff_mean_s", "diff_low_s",
        "diff_high_s", "p",
    }
)  # fmt: skip


def paired(analysis: Analysis, measure: str) -> list[Row]:
    """Return the policies with jobs that also ended under the baseline, over all jobs, by their mean.

    Args:
        analysis: a replay.
        measure: ``wait`` or ``jct``.
    """
    table = analysis.table("replay_vs_baseline")
    if table is None or not set(table.frame.columns) >= _COMPARED:
        return []
    rows = table.frame.iter_rows(named=True)
    whole = [row for row in rows if row["measure"] == measure and row["size_bucket"] == "all"]
    return sorted((row for row in whole if row["diff_mean_s"] is not None), key=lambda row: float(row["diff_mean_s"]))


def compared(analysis: Analysis, measure: str) -> list[Row]:
    """Return those of `paired` with an interval: for the others the trace is too short."""
    return [row for row in paired(analysis, measure) if row["diff_low_s"] is not None]


def is_significant(row: Row, policies: int) -> bool:
    """Return whether a difference is beyond chance, given the number of policies compared."""
    return row["p"] is not None and row["p"] * policies <= CHANCE


def better(analysis: Analysis, measure: str) -> list[Row]:
    """Return those of `compared` that are better than the baseline beyond chance."""
    every = compared(analysis, measure)
    return [row for row in every if row["diff_mean_s"] < 0 and is_significant(row, len(every))]
