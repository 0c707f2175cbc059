"""The views that SQL of one's own reads: they show what the tables have, and are documented."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.store.database import Store
from gpuctl.store.views import VIEWS, show

if TYPE_CHECKING:
    from pathlib import Path


def test_columns_and_types_are_those_of_the_store(tmp_path: Path) -> None:
    path = tmp_path / "s.duckdb"
    with Store(path, write=True):
        pass
    with Store(path) as store:
        show(store)
        for view in VIEWS:
            found = store.read_only_query(f"DESCRIBE {view.name}").select("column_name", "column_type").rows()
            assert found == [(field.name, field.kind) for field in view.fields], view.name
