"""Stores that the tests attach to a database of earlier ones (tests/databases.py) are as those of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from gpuctl.core.errors import UsageError
from gpuctl.store.database import Store
from tests import databases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SETTINGS = "SELECT name, value FROM duckdb_settings() ORDER BY name"
INSERT = "INSERT INTO queue_samples (cluster, ts, job, reason, source) VALUES (?, now(), 'j', 'r', 1)"
THEIR_OWN = {"temp_directory", "allowed_directories", "allowed_paths"}
"""What is of each database."""


def used(path: Path) -> dict[str, str]:
    """Use a store in every way that could leave something behind; the settings that it had."""
    with Store(path, write=True) as store:
        settings = dict(store.execute(SETTINGS).fetchall())
        assert store.value("SELECT count(*) FROM duckdb_tables() WHERE temporary") == 0
        assert store.value("SELECT count(*) FROM duckdb_views() WHERE NOT internal AND database_name = 'temp'") == 0
        store.execute("CREATE TEMP TABLE left_over AS SELECT 1 AS a")
        store.view("seen", duckdb.sql("SELECT 1 AS b").arrow())
        store.execute("SET memory_limit = '300MB'")
        store.execute("SET threads = 1")
        store.execute(INSERT, ["kept"])
        store.execute("BEGIN")
        store.execute(INSERT, ["never kept"])
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    return settings


def own(kind: Callable[[], None], path: Path) -> list[Any]:
    kind()
    path.parent.mkdir()
    found = [{name: each for name, each in used(path).items() if name not in THEIR_OWN}]
    with Store(path) as first, Store(path) as second:
        for store in (first, second):
            found.append(store.execute("SELECT cluster FROM queue_samples").fetchall())
            with pytest.raises(duckdb.Error, match="read-only"):
                store.execute(INSERT, ["x"])
            for outside in ("'/etc/passwd'", "'https://example.org/x'"):
                with pytest.raises(UsageError, match="asks for more than the store"):
                    store.asked(f"SELECT * FROM read_text({outside})")
    return found


def test_one_store_after_the_other_finds_what_each_alone_finds(tmp_path: Path) -> None:
    alone = own(databases.make, tmp_path / "alone" / "s.duckdb")
    for name in "abc":
        found = own(databases.share, tmp_path / name / "s.duckdb")
        assert set(found[0].items()) ^ set(alone[0].items()) == set()
        assert found[1:] == alone[1:]


def test_they_share_a_database_and_a_store_with_other_settings_or_a_lake_has_its_own(tmp_path: Path) -> None:
    databases.share()
    with Store(tmp_path / "a.duckdb", write=True) as store:
        first = store._con._base
    with Store(tmp_path / "a.duckdb") as store:
        assert store._con._base is first is not None
        store.execute("SET order_by_non_integer_literal = true")
    with Store(tmp_path / "a.duckdb") as store:
        assert store._con._base is not first
        assert store.value("SELECT current_setting('order_by_non_integer_literal')") is False
    with Store(tmp_path / "b.duckdb", write=True, lake=str(tmp_path / "lake")) as store:
        assert store._con._base is None
    with Store(tmp_path / "b.duckdb") as store:
        assert store._con._base is None
        assert store.lake is not None
