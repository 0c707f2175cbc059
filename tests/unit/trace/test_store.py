"""What a trace store refuses to do for whoever made it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from gpuctl.core.errors import StoreError
from gpuctl.trace.store import Store

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.duckdb"
    Store(path, write=True).close()
    return path


@pytest.mark.parametrize("write", [False, True])
def test_a_view_in_a_tables_place_reads_no_file(store: Path, tmp_path: Path, write: bool) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("cluster\nsecret\n")
    with duckdb.connect(str(store)) as con:
        con.execute("DROP TABLE clusters")
        con.execute(f"CREATE VIEW clusters AS SELECT * FROM read_csv('{secret}')")
    with Store(store, write=write) as opened:
        for ask in (opened.execute, opened.frame):
            with pytest.raises(StoreError, match="a view in this store asks for something outside of it"):
                ask("SELECT * FROM clusters")
        with pytest.raises(StoreError, match="outside of it"):
            opened.execute(f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'")
    assert not (tmp_path / "out.csv").exists()


def test_what_does_not_fit_into_memory_is_still_spilled(tmp_path: Path) -> None:
    with Store(tmp_path / "s.duckdb", write=True, memory_limit="60MB") as store:
        store.execute("CREATE TABLE t AS SELECT range AS a, repeat('x', 30) || range AS c FROM range(2000000)")
        assert store.value("SELECT a FROM (SELECT a, c FROM t ORDER BY hash(c), c OFFSET 1999999)") is not None


def test_a_path_that_cannot_be_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="File name too long"):
        Store(tmp_path / ("x" * 300))
