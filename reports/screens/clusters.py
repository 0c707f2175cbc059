"""The screen of a store with several clusters, or with none: its content, and further commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.numbers import MISSING, lasting, number, percent, timed, unit_of
from gpuctl.reports.cell_text import shown
from gpuctl.reports.screens.model import Grid, Head, Line, Screen
from gpuctl.reports.screens.words import clipped, count, day, known, only

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.results import Analysis

LINES = 45
TABLES = ("overview",)
"""The tables of each cluster that the screen is made from."""


def screen(store: str, clusters: Sequence[Analysis]) -> Screen:
    """Return the screen.

    Args:
        store: name of the store.
        clusters: an analysis of each of its clusters, with `TABLES`.
    """
    name = clipped(store, 60)
    if not clusters:
        return Screen(f"{name}: no cluster yet", "", (Line("Next", f"gpuctl ingest LOGDIR --db {name}"),), LINES)
    every = [only(one, "overview") for one in clusters]
    unit = unit_of(60 * row["wait_p95_min"] for row in every if known(row["wait_p95_min"]))
    heads = (
        Head("Cluster", right=False), Head("jobs"), Head("users"), Head("GPUs"), Head("allocated"),
        Head("wait p95", unit.name), Head("from"), Head("span"),
    )  # fmt: skip
    cells = tuple(
        (
            clipped(one.cluster), shown(row["jobs"]), shown(row["users"]), number(row["gpus"], "GPUs"),
            percent(row["occupancy_pct"]), timed(row["wait_p95_min"] and 60 * row["wait_p95_min"], unit),
            day(row["first_submit_ts"])[:10], lasting(86400 * row["span_days"]) if known(row["span_days"]) else MISSING,
        )
        for one, row in zip(clusters, every, strict=True)
    )  # fmt: skip
    grid = Grid(heads, cells, "... and {count} more clusters: gpuctl report STORE --list")
    ways = "--cluster NAME for one of them, gpuctl report STORE to compare them"
    return Screen(f"{name}: {count(len(clusters), 'cluster')}", "", (grid, Line("Next", ways)), LINES)
