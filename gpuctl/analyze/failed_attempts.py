"""Reasons of failed attempts, for replays of their jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.store.database import Store

TABLE = "failures"


def failed_attempts(store: Store, options: Options) -> pl.DataFrame:
    """Return the table `failures` of one cluster: one row per attempt, with its reason, category and confidence."""
    made = analyze(store, replace(options, sections=(), tables=(TABLE,)))
    [table] = [each for each in made.tables if each.name == TABLE]
    return table.frame
