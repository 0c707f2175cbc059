"""Reasons of failed attempts, and attempts that infrastructure ended, for replays of their jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.analyze.shared_tables import SharedTables

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.store.database import Store

TABLE = "failures"


def failed_attempts(store: Store, options: Options) -> pl.DataFrame:
    """Return the table `failures` of one cluster: one row per attempt, with its reason, category and confidence."""
    made = analyze(store, replace(options, sections=(), tables=(TABLE,)))
    [table] = [each for each in made.tables if each.name == TABLE]
    return table.frame


def interrupted_attempts(store: Store, options: Options) -> pl.DataFrame:
    """Return the attempts of one cluster that infrastructure ended, as evidence shows: ``job``, ``attempt``."""
    shared = SharedTables(store, store.cluster(options.cluster, "--trace-cluster"), options, lambda _: None)
    shared.ensure(("reliability_interrupted_attempts",))
    return store.frame(
        "SELECT job, attempt FROM base_reliability_interrupted_attempts WHERE starts_with(cause, 'infrastructure') "
        "ORDER BY job, attempt"
    )
