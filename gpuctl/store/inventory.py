"""Contents of trace stores: clusters and saved results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.core.notes import note
from gpuctl.core.results import Analysis, Column, ResultTable
from gpuctl.store import saved_results
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def clusters(store: Store) -> list[str]:
    """Return the clusters that have jobs, by name."""
    return [name for (name,) in store.execute("SELECT DISTINCT cluster FROM jobs ORDER BY cluster").fetchall()]


def listing(paths: Sequence[Path], command: str) -> Analysis:
    """Return clusters and saved results of stores, one row each, as a result table ``kept``.

    Args:
        paths: trace stores.
        command: the command line, for the record.
    """
    rows: list[tuple[object, ...]] = []
    for path in paths:
        with Store(path) as store:
            rows += [(str(path), name, "cluster", None, None, None, None) for name in clusters(store)]
            for one in saved_results.listed(store):
                rows.append((str(path), one.name, one.kind, one.made_at, one.bytes, one.gpuctl, one.command))
    types: tuple[Any, ...] = (pl.String, pl.String, pl.String, pl.Datetime("us", "UTC"), pl.Int64, pl.String, pl.String)
    columns = (
        Column("store", "-", "the trace store"),
        Column("name", "-", "of the cluster, or that the result was kept as"),
        Column("kind", "-", "cluster: it is analyzed for the report; else the command whose result was kept"),
        Column("made_at", "-", "when it was kept (UTC)"),
        Column("bytes", "bytes", "of the result as JSON; in the store it is compressed"),
        Column("gpuctl", "-", "version that made it"),
        Column("command", "-", "the command line"),
    )
    schema = {column.name: kind for column, kind in zip(columns, types, strict=True)}
    table = ResultTable(
        name="kept",
        section="report",
        title="What there is to report",
        question="Which clusters and kept results does the store have?",
        population=note("Clusters and kept results: {rows}.", rows=len(rows)),
        notes=(note("--cluster chooses clusters, --only chooses kept results; gpuctl report takes all by default."),),
        columns=columns,
        frame=pl.DataFrame(rows, schema=schema, orient="row"),
    )
    return Analysis(note("kept"), (table,), (("report", "Report"),), (), {}, command)
