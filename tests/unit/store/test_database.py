"""What a trace store refuses to do for whoever made it."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

import duckdb
import polars.testing as checked
import pytest

from gpuctl.core.errors import StoreError
from gpuctl.store import long_frames, schema
from gpuctl.store.database import Store, WrongSchemaError
from gpuctl.store.saved_results import listed
from gpuctl.store.schema import MIGRATIONS


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("made") / "s.duckdb"
    Store(path, write=True).close()
    return path


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    """A copy of a store that this process made."""
    return Path(shutil.copy(made, tmp_path))


def test_an_unsound_store_is_reported_in_plain_words(store: Path, tmp_path: Path) -> None:
    whole = store.read_bytes()
    newer = tmp_path / "newer"
    duckdb.connect(str(newer)).close()
    files = {
        "not a DuckDB database": b"junk",
        "damaged, cannot be read: it is cut off": whole[:20_000],
        "its bytes are not those that were written": whole[:5000] + b"x" * 12 + whole[5012:],
        "in a newer DuckDB format": newer.read_bytes(),
    }
    for number, (message, data) in enumerate(files.items()):
        path = tmp_path / f"{number}.duckdb"
        path.write_bytes(data)
        for write in (False, True):
            if not write and message == "in a newer DuckDB format":  # may be read, were it a trace store
                continue
            with pytest.raises(StoreError) as error:
                Store(path, write=write)
            assert message in error.value.message
            # DuckDB's own text would begin with the class of its error, and tell where in the file it was
            assert "Error" not in error.value.message
            assert "location" not in error.value.message


@pytest.mark.parametrize("error", [None, FileExistsError, PermissionError])
def test_a_store_is_whole_as_soon_as_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError] | None
) -> None:
    """Whoever is killed while DuckDB writes the headers of a new file must not leave one that nothing opens."""
    path = tmp_path / "s.duckdb"
    link, linked = os.link, []

    def watched(made: Path, place: Path) -> None:
        linked.append(place)
        duckdb.connect(str(made), read_only=True).close()
        if error is FileExistsError:
            # another process was quicker
            made.rename(place)
        if error is not None:
            raise error
        link(made, place)

    monkeypatch.setattr(os, "link", watched)
    Store(path, write=True).close()
    assert linked == [path]
    with Store(path) as again:
        assert again.execute("SELECT count(*) FROM jobs").fetchall() == [(0,)]
    assert list(tmp_path.iterdir()) == [path]


CRAFTED = {
    "a view in a table's place": (
        "DROP TABLE clusters; CREATE VIEW clusters AS SELECT * FROM read_csv('SECRET')",
        "a view that gpuctl did not make: clusters; no table clusters",
    ),
    "a view that asks itself": (
        "CREATE VIEW v AS WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT * FROM r",
        "a view that gpuctl did not make: v",
    ),
    "a macro for count": ("CREATE MACRO count(x) AS 7", "a macro that gpuctl did not make: count"),
    "a macro for what checks ask": (
        "CREATE MACRO duckdb_tables() AS TABLE SELECT 1; CREATE MACRO duckdb_functions() AS TABLE SELECT 1",
        "a macro that gpuctl did not make: duckdb_functions",
    ),
    "versions as text": (
        "ALTER TABLE gpuctl_schema ALTER version TYPE VARCHAR; UPDATE gpuctl_schema SET version = 'x'",
        "its gpuctl_schema is not as gpuctl made it",
    ),
    "a column of another type": (
        "ALTER TABLE machine_samples ALTER gpus_used TYPE VARCHAR",
        "column machine_samples.gpus_used is VARCHAR, expected DOUBLE",
    ),
    "one column more": ("ALTER TABLE queues ADD COLUMN more INTEGER", "a column that gpuctl did not make: queues.more"),
    "one column less": ("ALTER TABLE queues DROP COLUMN parent", "no column parent in queues"),
    "a computed column": (
        "DROP TABLE traffic; CREATE TABLE traffic(cluster VARCHAR NOT NULL, job VARCHAR NOT NULL, ts TIMESTAMPTZ "
        "NOT NULL, source INTEGER NOT NULL, bytes_read DOUBLE GENERATED ALWAYS AS (source * 2.0))",
        "traffic",
    ),
    "a default that does something": (
        "CREATE SEQUENCE q; ALTER TABLE queues ALTER parent SET DEFAULT nextval('q')::VARCHAR",
        "a sequence that gpuctl did not make: q",
    ),
    "a default": ("ALTER TABLE queues ALTER parent SET DEFAULT 'x'", "table queues has another definition"),
    "another schema": ("CREATE SCHEMA other; CREATE TABLE other.t(x INT)", "a schema that gpuctl did not make: other"),
    "a type": ("CREATE TYPE mood AS ENUM ('a')", "a type that gpuctl did not make: mood"),
    "an index": ("CREATE INDEX i ON queues(parent)", "a index that gpuctl did not make: i"),
    "a view of ours made in another way": (
        "CREATE OR REPLACE VIEW gpu_util AS SELECT * FROM gpu_samples",
        "gpu_util",
    ),
}


@pytest.mark.parametrize(
    ("name", "write"), [*((name, False) for name in CRAFTED), ("a macro for what checks ask", True), ("a type", True)]
)
def test_a_store_that_holds_something_else_is_refused(store: Path, tmp_path: Path, name: str, write: bool) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("cluster\nsecret\n")
    statements, message = CRAFTED[name]
    with duckdb.connect(str(store)) as con:
        con.execute(statements.replace("SECRET", str(secret)))
    before = store.read_bytes()
    with pytest.raises(StoreError) as error:
        Store(store, write=write)
    assert message in error.value.message
    assert error.value.hint
    assert store.read_bytes() == before


def test_a_store_changed_after_this_process_is_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []
    store = tmp_path / "s.duckdb"
    Store(store, write=True).close()
    monkeypatch.setattr(schema, "objects", lambda con, name, see=schema.objects: looked.append(name) or see(con, name))
    Store(store).close()
    Store(store, write=True).close()
    Store(tmp_path / "new.duckdb", write=True).close()
    assert looked == []
    other = tmp_path / "copy.duckdb"
    other.write_bytes(store.read_bytes())
    Store(other).close()
    assert looked == ["trace"]
    # another file in its place, of the same bytes but for a macro
    with duckdb.connect(str(other)) as con:
        con.execute("CREATE MACRO count(x) AS 7")
    times = store.stat()
    other.replace(store)
    os.utime(store, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(StoreError, match="a macro that gpuctl did not make: count"):
        Store(store)
    # what is not in the file yet
    left = tmp_path / "left.duckdb"
    Store(left, write=True).close()
    left.with_name("left.duckdb.wal").write_bytes(b"")
    looked.clear()
    with suppress(StoreError):
        Store(left).close()
    assert looked == ["trace"]


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_stores_of_every_older_version_are_brought_up_to_date(tmp_path: Path, version: int) -> None:
    path = tmp_path / "old.duckdb"
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{path}' AS old (STORAGE_VERSION 'v1.5.0')")
        con.execute("USE old")
        con.execute(schema.SCHEMA_TABLE)
        for number, name in enumerate(MIGRATIONS[:version], 1):
            con.execute(schema.migration(name))
            con.execute("INSERT INTO gpuctl_schema VALUES (?, ?)", [number, name])
        con.execute(
            f"INSERT INTO sources VALUES (1, 'c', 'p', 'f', 'd', 1, 1, 1, 0, 1, '2026-01-01'{', 0' * (version > 11)})"
        )
    with pytest.raises(WrongSchemaError, match=f"schema version {version}, this gpuctl wants"):
        Store(path)
    Store(path, write=True).close()
    with Store(path) as opened:
        assert opened.value("SELECT max(version) FROM gpuctl_schema") == len(MIGRATIONS)
        assert opened.value("SELECT count(*) FROM sources") == 1
        assert listed(opened) == []


TIMES = ("infinity", "-infinity", "294246-01-01 00:00:00+00", "10000-01-01 00:00:00+00", "0044-03-15 (BC) 00:00:00+00")


def test_times_without_a_date_are_reported(store: Path) -> None:
    with duckdb.connect(str(store)) as con:
        con.execute("SET TimeZone = 'UTC'")
        for time in TIMES:
            con.execute(
                "INSERT INTO clusters (cluster, source_format, timezone, clock, first_ts, last_ts) "
                "VALUES ($time, 'x', 'UTC', 'utc', $time::TIMESTAMPTZ, now())",
                {"time": time},
            )
    message = "a time in first_ts is not in the years 1 to 9999"
    with Store(store) as opened:
        for time in TIMES:
            with pytest.raises(StoreError, match=message):
                opened.frame(f"SELECT first_ts FROM clusters WHERE cluster = '{time}'")


def test_queries_that_read_files_are_rejected(store: Path, tmp_path: Path) -> None:
    with Store(store, write=True) as opened, pytest.raises(StoreError, match="outside it"):
        opened.execute(f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'")
    assert not (tmp_path / "out.csv").exists()


def test_data_beyond_memory_are_still_spilled(tmp_path: Path) -> None:
    with Store(tmp_path / "s.duckdb", write=True, memory_limit="60MB") as store:
        store.execute("CREATE TABLE t AS SELECT range AS a, repeat('x', 30) || range AS c FROM range(2000000)")
        assert store.value("SELECT a FROM (SELECT a, c FROM t ORDER BY hash(c), c OFFSET 1999999)") is not None


def test_an_impossible_path_is_reported(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="File name too long"):
        Store(tmp_path / ("x" * 300))


def test_rows_are_those_of_the_documented_interface(tmp_path: Path) -> None:
    """Of every kind of column, in more rows than DuckDB hands over at once; with parameters and without."""
    kinds = """
        SELECT n AS whole, n % 7 = 0 AS flag, n / 3 AS real, (n / 4)::FLOAT AS short, 'job ' || n AS name, NULL AS none,
            (n / 8)::DECIMAL(18, 3) AS fixed, sum(n) OVER (ORDER BY n) AS huge, DATE '2026-01-01' + n::INTEGER AS day,
            TIMESTAMP '2026-01-01' + to_seconds(n) AS local, TIMESTAMPTZ '2026-01-01 00:00:00+01' + to_seconds(n) AS at,
            [n, n + 1] AS several, {'user': 'u' || n % 5, 'gpus': n} AS both, nullif(n % 3, 0) AS gaps,
            'x'::ENUM ('x', 'y') AS choice, ('b' || n)::BLOB AS bytes
        FROM range($rows::BIGINT) AS r (n) ORDER BY n"""
    with Store(tmp_path / "s.duckdb", write=True) as store:
        for rows in (0, 3, 150_000):
            con, given = store._con, {"rows": rows}
            checked.assert_frame_equal(long_frames.whole(con, kinds, given), con.sql(kinds, params=given).pl())
            plain = kinds.replace("$rows", str(rows))
            checked.assert_frame_equal(long_frames.whole(con, plain, None), con.sql(plain).pl())
