"""GPU-hours for a reader's own SQL: the view ``held``, by the definition of every analysis."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.analyze import shared_sql
from gpuctl.analyze.options import Options
from gpuctl.analyze.shared_tables import SharedTables
from gpuctl.store.views import HELD, HELD_ROWS

if TYPE_CHECKING:
    from gpuctl.store.database import Store

_NAMED = re.compile(rf"\b{HELD}\b", re.IGNORECASE)
_SHARED = "SELECT table_name FROM duckdb_tables() WHERE temporary AND starts_with(table_name, 'base_')"


def provide_held(store: Store, sql: str) -> None:
    """Compute the rows of the view ``held``, of every cluster of an open store, if a statement may read it.

    Raises:
        StoreError: the store is damaged, or there is not enough memory.
    """
    if not _NAMED.search(sql):
        return
    clusters = [name for [name] in store.execute("SELECT cluster FROM clusters ORDER BY cluster").fetchall()]
    for number, cluster in enumerate(clusters):
        rows = shared_sql.base_sql("held_attempts")
        shared = SharedTables(store, cluster, Options(), lambda _: None, [rows])
        made = shared.resolve_tables(rows)
        # constant names, and SQL from queries/
        into = f"INSERT INTO {HELD_ROWS}" if number else f"CREATE TEMP TABLE {HELD_ROWS} AS"
        store.execute(f"{into} {made}", shared.bind(made))
        for [name] in store.execute(_SHARED).fetchall():
            store.execute(f"DROP TABLE temp.main.{name}")
