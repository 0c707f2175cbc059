"""Telemetry as Parquet beside the store: the same answers, at any moment, wherever it is, whoever made it."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from gpuctl.core.errors import StoreError, UsageError
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from gpuctl.store.lake_place import MARKER
from gpuctl.store.views import VIEWS, show
from tests.example_counts import SEARCHING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl

    from tests.conftest import Run

KILLS = 6 if SEARCHING else 3
_COUNT = "SELECT count(*), count(DISTINCT machine), min(ts)::VARCHAR, sum(len(util)) FROM gpu_samples"


@pytest.fixture(scope="module")
def logs(sample_data: Path, thin_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A third of the jobs, and of the telemetry of every day."""
    folder = tmp_path_factory.mktemp("lake") / "philly"
    shutil.copytree(thin_data / "philly", folder, ignore=shutil.ignore_patterns("truth"))
    for each in (sample_data / "philly").glob("*.gz"):
        head, *lines = gzip.decompress(each.read_bytes()).splitlines(keepends=True)
        (folder / each.name).write_bytes(gzip.compress(head + b"".join(lines[::3]), 1))
    return folder


def test_telemetry_for_a_lake_that_is_only_read_is_refused_at_the_start(logs: Path, tmp_path: Path) -> None:
    db = tmp_path / "s.duckdb"
    with pytest.raises(UsageError, match=r"only read, and .*_util\S* is telemetry"):
        ingest([logs], db, lake="s3://telemetry/copy")
    assert not db.exists()


@pytest.fixture
def kept(logs: Path, tmp_path: Path) -> Path:
    """A store with one file of telemetry in its lake, `lake` beside it."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in ("cluster_machine_list", "cluster_gpu_util.gz"):
        shutil.copy(logs / name, folder)
    ingest([folder], tmp_path / "s.duckdb", lake=str(tmp_path / "lake"))
    return tmp_path / "s.duckdb"


def _count(db: Path) -> list[tuple[object, ...]]:
    with Store(db) as store:
        return store.execute(_COUNT).fetchall()


def _files(lake: Path) -> set[str]:
    return {str(path.relative_to(lake)) for path in lake.rglob("*.parquet")}


def test_every_table_is_the_same(gpuctl: Run, logs: Path, tmp_path: Path) -> None:
    whole, beside = tmp_path / "whole.duckdb", tmp_path / "beside.duckdb"
    lake = tmp_path / "it's a lake"
    gpuctl("ingest", logs, "--db", whole)
    gpuctl("ingest", logs, "--db", beside, "--lake", lake)
    with Store(beside) as store:
        assert store.value("SELECT count(*) FROM trace.main.gpu_samples") == 0
        assert store.value("SELECT count(*) FROM trace.main.host_util") == 0
        days = store.value("SELECT count(DISTINCT day) FROM (SELECT ts::DATE AS day FROM gpu_samples)")
    assert len({name.split("/")[2] for name in _files(lake) if name.startswith("gpu_samples/cluster=philly/")}) == days
    found = [json.loads(gpuctl("analyze", "--db", db, "--json").stdout) for db in (whole, beside)]
    for one in found:
        del one["command"]
    assert found[0].keys() == found[1].keys()
    for name in found[0]:
        assert found[0][name] == found[1][name], name
    for view, *rows in zip(VIEWS, _views(whole), _views(beside), strict=True):
        assert rows[0].equals(rows[1]), view.name


def _views(db: Path) -> list[pl.DataFrame]:
    """All rows of each view, but for when they were loaded."""
    told = [", ".join(f'"{field.name}"' for field in view.fields if field.name != "loaded_at") for view in VIEWS]
    with Store(db) as store:
        show(store)
        return [
            store.read_only_query(f"SELECT {c} FROM {v.name} ORDER BY ALL") for c, v in zip(told, VIEWS, strict=True)
        ]


@pytest.mark.slow
def test_a_killed_ingest_leaves_store_and_lake_sound(
    logs: Path, tmp_path: Path, kill_gpuctl: Callable[..., float | None]
) -> None:
    expected = tmp_path / "whole.duckdb"
    ingest([logs], expected)
    chance, stages = random.Random(20171009), set()
    took = kill_gpuctl("ingest", logs, "--db", tmp_path / "w", "--lake", tmp_path / "wl", after_s=200) or 200
    for number in range(KILLS):
        db, lake = tmp_path / f"{number}.duckdb", tmp_path / f"lake{number}"
        kill_gpuctl("ingest", logs, "--db", db, "--lake", lake, after_s=took * (number + chance.random()) / KILLS)
        if db.exists():
            with duckdb.connect(str(db)) as con:
                known = con.execute("SELECT table_name FROM duckdb_tables() WHERE table_name = 'sources'").fetchall()
                stages.add(con.execute("SELECT count(*) FROM sources").fetchall()[0][0] if known else -1)
        ingest([logs], db, lake=str(lake))
        assert _count(db) == _count(expected)
        with Store(db) as store:
            assert _files(lake) == {row[0] for row in store.execute("SELECT file FROM lake_files").fetchall()}
    assert stages - {5}, "all kills came after the end"


def test_left_overs_are_not_read_and_go_with_the_next_ingest(kept: Path) -> None:
    lake = kept.parent / "lake"
    before, files = _count(kept), _files(lake)
    first = lake / min(files)
    left = first.with_name("0" * 32 + "_0.parquet")
    shutil.copy(first, left)
    foreign = first.with_name("mine.txt")
    foreign.write_text("not gpuctl's")
    assert _count(kept) == before
    ingest([kept.parent / "logs"], kept)
    assert not left.exists()
    assert foreign.exists()
    assert _files(lake) == files
    assert _count(kept) == before


def test_other_bytes_take_the_place_of_a_file(kept: Path) -> None:
    path = kept.parent / "logs" / "cluster_gpu_util.gz"
    lines = gzip.decompress(path.read_bytes()).splitlines(keepends=True)
    path.write_bytes(gzip.compress(b"".join(lines[:1001])))
    files = _files(kept.parent / "lake")
    ingest([kept.parent / "logs"], kept)
    assert _count(kept)[0][0] == 1000
    assert files.isdisjoint(_files(kept.parent / "lake"))
    # a source that cannot be loaded leaves what was there
    path.write_bytes(b"\x1f\x8b broken")
    ingest([kept.parent / "logs"], kept)
    assert _count(kept)[0][0] == 1000


def test_a_lake_that_was_moved_is_reported_and_found(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, lake, away = _count(kept), kept.parent / "lake", kept.parent / "away"
    lake.rename(away)
    with pytest.raises(StoreError, match="which is not there") as told:
        Store(kept)
    assert f"gpuctl ingest --db {kept} --lake DIR" in str(told.value.hint)
    with pytest.raises(UsageError, match="not the lake of"):
        ingest([], kept, lake=str(kept.parent / "nothing"))
    monkeypatch.setenv("GPUCTL_LAKE", str(away))
    assert _count(kept) == before
    monkeypatch.delenv("GPUCTL_LAKE")
    ingest([], kept, lake=str(away))
    assert _count(kept) == before
    # both together
    together = kept.parent / "together"
    together.mkdir()
    away.rename(together / "away")
    kept.rename(together / kept.name)
    assert _count(together / kept.name) == before


def test_files_that_are_gone_and_copies_that_are_older_are_reported(kept: Path) -> None:
    lake, copy = kept.parent / "lake", kept.parent / "copy.duckdb"
    shutil.copy(kept, copy)
    ingest([], kept)
    with pytest.raises(StoreError, match="an older copy"):
        ingest([], copy)
    with pytest.raises(UsageError, match="the lake of another store"):
        ingest([], kept.parent / "new.duckdb", lake=str(lake))
    (lake / min(_files(lake))).unlink()
    with pytest.raises(StoreError, match=r"1 of .* files are missing"):
        Store(kept)


def test_doctor_tells_of_the_lake(gpuctl: Run, kept: Path) -> None:
    lake = kept.parent / "lake"

    def found(code: int) -> dict[str, Any]:
        done = gpuctl("doctor", "--db", kept, "--json", check=False)
        assert done.returncode == code
        rows = json.loads(done.stdout)["tables"]["checks"]["rows"]
        return next(row for row in rows if row["check"] == "store_lake")

    assert found(0)["status"] == "ok"
    assert "20,087 rows" in found(0)["evidence"]
    assert "every byte as written" in found(0)["evidence"]
    path = lake / min(_files(lake))
    whole = path.read_bytes()
    with duckdb.connect() as con:
        rows = con.execute("SELECT count(*) FROM read_parquet(?)", [str(path)]).fetchall()[0][0]
    # a flipped bit of a page is seen by nobody else
    path.write_bytes(whole[:5000] + bytes([whole[5000] ^ 4]) + whole[5001:])
    told = found(1)
    assert told["status"] == "fail"
    assert f"1 file of {rows:,} rows damaged, the first {path.relative_to(lake)}" in told["evidence"]
    assert f"bytes differ from those written; {rows:,} rows expected, {rows:,} found" in told["evidence"]
    assert "put the files back from a copy" in told["fix"]
    path.write_bytes(whole[:-8] + b"12345678")
    assert f"{path}" in found(1)["evidence"]
    done = gpuctl("analyze", "--db", kept, check=False)
    assert done.returncode == 4
    assert f"its lake {lake} cannot be read" in done.stderr
    path.write_bytes(whole[:-1])
    assert f"1 of 3 files are missing or of another size ({rows:,} of 20,087 rows)" in found(1)["evidence"]
    path.write_bytes(whole)
    lake.rename(kept.parent / "away")
    assert "which is not there" in found(1)["evidence"]
    assert f"gpuctl ingest --db {kept} --lake DIR" in found(1)["fix"]


@pytest.mark.parametrize(
    "name", ["../s.parquet", "/etc/passwd", "gpu_samples/cluster=a/day=2017-10-03/x' OR 1.parquet"]
)
def test_a_stranger_s_file_name_is_refused(kept: Path, name: str) -> None:
    with duckdb.connect(str(kept)) as con:
        con.execute("UPDATE lake_files SET file = ?", [name])
    with pytest.raises(StoreError, match="a file of its lake has a name that gpuctl does not give"):
        Store(kept)


def test_nothing_outside_the_lake_is_read(kept: Path) -> None:
    lake = kept.parent / "lake"
    outside = kept.parent / "outside.csv"
    outside.write_text("a\n1\n")
    with Store(kept) as store:
        show(store)
        with pytest.raises(UsageError, match="more than the store"):
            store.read_only_query(f"SELECT * FROM read_csv('{outside}')")
    first = lake / min(_files(lake))
    shutil.move(first, kept.parent / "elsewhere.parquet")
    first.symlink_to(kept.parent / "elsewhere.parquet")
    with pytest.raises(StoreError, match="a link in the lake"):
        Store(kept)
    # a store may say that its lake is anywhere: it is none of its own
    other = kept.parent / "other"
    other.mkdir()
    (other / MARKER).write_text('{"id": "another", "writes": 1}')
    with duckdb.connect(str(kept)) as con:
        con.execute("UPDATE lake SET location = 'other'")
    with pytest.raises(StoreError, match="the lake of another store"):
        Store(kept)


@pytest.mark.parametrize("place", ["a*b", "s4://bucket/x", "file:///etc"])
def test_a_place_that_is_none_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(UsageError, match="no place for a lake"):
        Store(tmp_path / "s.duckdb", write=True, lake=place)


def test_a_directory_with_other_files_is_no_lake(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.parquet").write_text("mine")
    with pytest.raises(UsageError, match="not empty"):
        Store(tmp_path / "s.duckdb", write=True, lake=str(tmp_path / "home"))
