"""Rules that every analysis must follow, built in or third-party: checked on an empty store and on given stores."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.core.errors import GpuctlError
from gpuctl.core.plugins import BUILT_IN
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.results import ResultTable
    from gpuctl.queries.catalogue import Query

_CLUSTER = (
    "INSERT INTO clusters (cluster, source_format, timezone, clock) "
    "VALUES ('c', 'philly-jobs', 'America/Los_Angeles', 'wall')"
)
_THREADS = (1, 4)
_SUFFIXES = {"s": "s", "min": "min", "%": "pct"}
"""How names of columns in these units end, or go on."""


def check(query: Query, stores: Sequence[Path] = ()) -> list[str]:
    """Return the rules that an analysis violates; empty if there are none.

    Args:
        query: the analysis.
        stores: further trace stores to run it on, on every cluster of each.
    """
    found = [f"column {c.name}: no unit or definition" for c in query.columns if not (c.unit and c.description)]
    for column in query.columns:
        suffix = _SUFFIXES.get(column.unit)
        if suffix and f"_{suffix}" not in f"_{column.name}":
            found.append(f"column {column.name}: is in {column.unit}, but its name does not end in _{suffix}")
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.duckdb"
        with Store(empty, write=True) as store:
            store.execute(_CLUSTER)
        for path in (empty, *stores):
            what = "an empty store" if path is empty else str(path)
            try:
                found += [f"{what}: {text}" for text in _of_store(query, path)]
            except GpuctlError as error:
                found.append(f"{what}: {error.message}")
    return found


def _of_store(query: Query, path: Path) -> list[str]:
    found = []
    with Store(path) as store:
        clusters = [row[0] for row in store.execute("SELECT cluster FROM clusters ORDER BY cluster").fetchall()]
    for cluster in clusters:
        runs = [_run(query, path, cluster, threads) for threads in _THREADS]
        names = [column.name for column in query.columns]
        if runs[0].frame.columns != names:
            found.append(
                f"its header names the columns {', '.join(names)}, its rows have {', '.join(runs[0].frame.columns)}"
            )
        if "{" in runs[0].population:
            found.append("its population has an unfilled brace")
        if not runs[0].frame.equals(runs[1].frame):
            found.append(f"other rows, or in another order, with {_THREADS[1]} threads than with {_THREADS[0]}")
    return found


def _run(query: Query, path: Path, cluster: str, threads: int) -> ResultTable:
    own = () if query.origin == BUILT_IN else (query,)
    with Store(path) as store:
        store.execute(f"SET threads = {threads}")
        [table] = analyze(store, Options(cluster=cluster, tables=(query.name,), own=own)).tables
    return table
