"""Checks of a store: good ones, and such as are locked, cut off, foreign, of another version, or implausible."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from gpuctl.doctor import store as checks_store
from gpuctl.doctor.check import DoctorContext, Finding, Status
from gpuctl.store import schema
from gpuctl.store.database import Store
from gpuctl.store.schema import MIGRATIONS
from tests.locked_store import held_open
from tests.synthetic_store import JOBS, NOW, change, make_store

if TYPE_CHECKING:
    from collections.abc import Callable

IDS = (
    "store_file", "store_lock", "store_schema", "ledger", "parsers", "clusters", "clocks", "gpu_counts", "submit_times",
)  # fmt: skip


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("made") / "good.duckdb")


@pytest.fixture
def store(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(good, tmp_path / "a.duckdb"))


def look(path: Path, now: float = NOW) -> dict[str, Finding]:
    found, _ = checks_store.check_store(DoctorContext(db=path, now=now))
    for one in found:
        assert bool(one.fix) == (one.status is not Status.OK), one
    assert len({one.check for one in found}) == len(found)
    return {one.check: one for one in found}


def test_a_good_store(store: Path) -> None:
    before = store.read_bytes()
    found, ledger = checks_store.check_store(DoctorContext(db=store, now=NOW))
    assert tuple(one.check for one in found) == IDS
    assert {one.status for one in found} == {Status.OK}, found
    told = {one.check: one.evidence for one in found}
    assert f"version {len(MIGRATIONS)}" in told["store_schema"]
    assert duckdb.__version__ in told["store_schema"]
    assert "storage version v1.5.0" in told["store_schema"]
    assert told["ledger"] == f"1 file, {JOBS} rows, 0 rejected (0.0 %)"
    assert told["clusters"] == "1: west: philly-jobs, America/Los_Angeles (wall), 2023-07-22 to 2023-07-23"
    assert told["gpu_counts"] == f"{JOBS} of {JOBS} jobs have a GPU count"
    assert ledger is not None
    assert ledger.rows() == [("west", "/logs/jobs", "philly-jobs", JOBS, 0, 0, 0.0)]
    assert store.read_bytes() == before
    assert [path.name for path in store.parent.iterdir()] == [store.name]


def test_no_store_no_findings() -> None:
    assert checks_store.check_store(DoctorContext()) == ([], None)


# ---- stores that do not open


def test_a_store_that_another_process_writes_to(store: Path, root: Path) -> None:
    with held_open(store, root) as holder:
        found = look(store)
    (only,) = found.values()
    assert (only.check, only.status) == ("store_lock", Status.FAIL)
    name = Path(sys.executable).resolve().name
    assert f"process {holder} has this store open" in only.evidence
    assert f"({name[:15]})" in only.evidence or "(python" in only.evidence
    assert look(store)["store_lock"].status is Status.OK


def test_who_holds_it_is_reported_if_the_kernel_tells(tmp_path: Path) -> None:
    (tmp_path / "proc" / "7").mkdir(parents=True)
    (tmp_path / "proc" / "7" / "comm").write_text("gpuctl\n")
    given = DoctorContext(db=Path("x"), root=tmp_path)
    from gpuctl.store.database import StoreLockedError

    told = [checks_store.open_failure(StoreLockedError(Path("x"), n), given).evidence for n in (7, 8, None)]
    assert told[0] == "x: process 7 has this store open (gpuctl)"
    assert told[1] == "x: process 8 has this store open"
    assert told[2] == "x: another process has this store open"


@pytest.mark.parametrize("share", [0.0, 0.0001, 0.002, 0.05, 0.3, 0.6, 0.9, 0.999])
def test_a_store_that_is_cut_off(store: Path, share: float) -> None:
    # errors quote the path, whatever words it holds
    store = store.rename(store.with_name("set lock on file.duckdb"))
    whole = store.stat().st_size
    with store.open("r+b") as file:
        file.truncate(int(share * whole))
    before = store.read_bytes()
    found = list(look(store).values())
    assert found[-1].status is Status.FAIL
    assert found[-1].check in {"store_file", "store_schema", "store_rows"}, found
    assert store.read_bytes() == before


@pytest.mark.parametrize("more", ["DELETE FROM progress", "DELETE FROM progress WHERE epoch < 0.9", "SELECT 1"])
def test_blocks_missing_at_the_end_are_reported(store: Path, more: str) -> None:
    """Also where DuckDB opens it all the same; free blocks at the end may be missing."""
    rows = "SELECT 'west', 'j', range, random(), 1 FROM range(300000)"
    change(store, f"INSERT INTO progress (cluster, job, step, epoch, source) {rows}", "CHECKPOINT trace")
    change(store, more, "CHECKPOINT trace")
    with Store(store) as opened:
        real = checks_store.OpenStore(opened, store, NOW)
        (whole,) = checks_store.file(real)
        short = store.with_name("short.duckdb")
        short.write_bytes(store.read_bytes()[:300_000])
        (cut,) = checks_store.file(checks_store.OpenStore(opened, short, NOW))
    assert whole.status is Status.OK
    assert cut.status is Status.FAIL
    assert "the end is missing" in cut.evidence


@pytest.mark.parametrize(("start", "end"), [(0, 4096), (4096, 12_288), (12_288, None), (20_000, 24_000)])
def test_damage_is_reported(store: Path, start: int, end: int | None) -> None:
    whole = store.stat().st_size
    with store.open("r+b") as file:
        file.seek(start)
        file.write(b"\xa5" * ((end or whole) - start))
    found = list(look(store).values())
    assert found[-1].status is Status.FAIL
    assert store.stat().st_size == whole


def _text(path: Path) -> None:
    path.write_text("jobid,state\n1,done\n" * 1000)


def _sqlite(path: Path) -> None:
    with closing(sqlite3.connect(path)) as con:
        con.execute("CREATE TABLE jobs (a)")
        con.commit()


def _directory(path: Path) -> None:
    path.mkdir()


def _other_duckdb(path: Path) -> None:
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE sales (a INTEGER)")


def _empty_duckdb(path: Path) -> None:
    duckdb.connect(str(path)).close()


def _nothing(_path: Path) -> None: ...


@pytest.mark.parametrize(
    ("make", "check", "evidence"),
    [
        (_text, "store_file", "not a DuckDB database"),
        (_sqlite, "store_file", ""),
        (_directory, "store_file", "no trace store here"),
        (_nothing, "store_file", "no trace store here"),
        (_other_duckdb, "store_file", "not a trace store (it has tables sales"),
        (_empty_duckdb, "store_schema", "an empty database"),
    ],
)
def test_files_of_other_programs(make: Callable[[Path], None], check: str, evidence: str, tmp_path: Path) -> None:
    path = tmp_path / "block lock.duckdb"
    make(path)
    (only,) = look(path).values()
    assert (only.check, only.status) == (check, Status.FAIL)
    assert evidence in only.evidence
    assert "has this store open" not in only.evidence


@pytest.mark.parametrize("version", [len(MIGRATIONS) - 1, len(MIGRATIONS) + 1])
def test_another_schema_version(store: Path, version: int) -> None:
    store.unlink()
    with duckdb.connect(str(store)) as con:
        con.execute(schema.SCHEMA_TABLE)
        for name in MIGRATIONS[:version]:
            con.execute(schema.migration(name))
        con.execute("INSERT INTO gpuctl_schema VALUES (?, 'x')", [version])
    (only,) = look(store).values()
    assert (only.check, only.status) == ("store_schema", Status.FAIL)
    assert f"schema version {version}" in only.evidence


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DROP TABLE placements", "no table placements"),
        ("ALTER TABLE containers DROP COLUMN gpus", "no column gpus in containers"),
        ("CREATE VIEW mine AS SELECT 1", "a view that gpuctl did not make: mine"),
        ("CREATE MACRO own(x) AS x + 1", "a macro that gpuctl did not make: own"),
    ],
)
def test_a_store_that_is_not_as_gpuctl_made_it(store: Path, statement: str, told: str) -> None:
    with duckdb.connect(str(store)) as con:
        con.execute(statement)
    (only,) = look(store).values()
    assert (only.check, only.status) == ("store_schema", Status.FAIL)
    assert told in only.evidence


def test_leftovers_of_a_killed_writer(store: Path, root: Path) -> None:
    program = (
        "import os, sys; from pathlib import Path; from gpuctl.store.database import Store\n"
        "store = Store(Path(sys.argv[1]), write=True)\n"
        "store.execute('UPDATE job_rows SET gpus = NULL')\nos.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(store)], env={"PYTHONPATH": str(root)}, check=False)
    beside = {path.name: path.read_bytes() for path in store.parent.iterdir()}
    found = look(store)
    # it counts, and is not taken in: that is a writer's work
    assert found["gpu_counts"].status is Status.WARN
    assert {path.name: path.read_bytes() for path in store.parent.iterdir()} == beside
    assert found["store_file"].status is Status.WARN
    assert "a.duckdb.wal" in found["store_file"].evidence


# ---- rows


@pytest.mark.parametrize(("rejects", "status"), [(0, Status.OK), (2, Status.OK), (3, Status.WARN), (200, Status.WARN)])
def test_rejected_rows(store: Path, rejects: int, status: Status) -> None:
    change(store, f"UPDATE sources SET rows_rejected = {rejects}, rows_loaded = rows_in - {rejects}")
    found = look(store)["ledger"]
    assert found.status is status
    assert f"{rejects} rejected" in found.evidence
    assert ("/logs/jobs" in found.evidence) == (status is Status.WARN)


def test_a_file_without_rows_has_no_share(store: Path) -> None:
    change(store, "UPDATE sources SET rows_in = 0, rows_loaded = 0, rows_rejected = 0")
    assert look(store)["ledger"].status is Status.OK


def test_the_worst_files_are_first(store: Path) -> None:
    change(
        store,
        "INSERT INTO sources SELECT i, 'west', 'f' || i, format, 'x', 1, 100, 100 - i, i, parser_version, loaded_at, 0 "
        "FROM sources, range(2, 8) AS t(i)",
    )
    found, ledger = checks_store.check_store(DoctorContext(db=store, now=NOW))
    told = next(one for one in found if one.check == "ledger").evidence
    assert "over 1 % in 6: f7 (7.0 %), f6 (6.0 %), f5 (5.0 %) and 3 more" in told
    assert ledger is not None
    assert ledger["path"].to_list() == ["f7", "f6", "f5", "f4", "f3", "f2", "/logs/jobs"]


def test_an_empty_store(tmp_path: Path) -> None:
    path = tmp_path / "empty.duckdb"
    with Store(path, write=True):
        pass
    found = look(path)
    assert {one.check for one in found.values() if one.status is Status.WARN} == {"ledger", "clusters"}
    assert Status.FAIL not in {one.status for one in found.values()}


def test_files_read_by_an_older_parser(store: Path) -> None:
    change(store, "UPDATE sources SET parser_version = 0")
    found = look(store)["parsers"]
    assert found.status is Status.WARN
    assert "1 of 1 file read by an older parser version: /logs/jobs" in found.evidence


def test_a_trace_without_dates_has_days(store: Path) -> None:
    change(store, "UPDATE clusters SET first_ts = to_timestamp(0), last_ts = to_timestamp(149 * 86400 + 5)")
    assert look(store)["clusters"].evidence.endswith("(wall), day 0 to day 149")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../../etc/passwd", "", "UTC\x1b[2J"])
def test_zones_that_are_not_known(store: Path, zone: str) -> None:
    change(store, f"UPDATE clusters SET timezone = '{zone}'")
    assert look(store)["clusters"].status is Status.WARN


@pytest.mark.parametrize(
    ("change_s", "status", "evidence"),
    [
        ("end_ts = to_timestamp(epoch(start_ts) - 3600)", Status.OK, "; 2 out of order by less"),
        ("end_ts = to_timestamp(epoch(start_ts) - 90000)", Status.WARN, "west: 2 out of order by more than a day"),
        (f"end_ts = to_timestamp({NOW} + 80000)", Status.OK, "no time is a day ahead"),
        (f"end_ts = to_timestamp({NOW} + 90000)", Status.WARN, "west: 2 more than a day ahead of now"),
        ("start_ts = NULL", Status.OK, "no time is a day ahead"),
    ],
)
def test_clocks(store: Path, change_s: str, status: Status, evidence: str) -> None:
    change(store, *(f"UPDATE {table} SET {change_s} WHERE job = 'j7'" for table in ("job_rows", "attempt_rows")))
    found = look(store)["clocks"]
    assert found.status is status
    assert evidence in found.evidence


@pytest.mark.parametrize(("column", "check"), [("gpus", "gpu_counts"), ("submit_ts", "submit_times")])
@pytest.mark.parametrize(("lacking", "status"), [(2, Status.OK), (3, Status.WARN), (JOBS, Status.WARN)])
def test_columns_that_are_missing(store: Path, column: str, check: str, lacking: int, status: Status) -> None:
    change(store, f"UPDATE job_rows SET {column} = NULL WHERE job IN (SELECT job FROM jobs LIMIT {lacking})")
    found = look(store)
    assert found[check].status is status
    number = f"{JOBS - lacking} of {JOBS}" if status is Status.OK else f"west: {lacking} of {JOBS} jobs"
    assert number in found[check].evidence
    others = {"gpu_counts", "submit_times"} - {check}
    assert {found[name].status for name in others} == {Status.OK}
