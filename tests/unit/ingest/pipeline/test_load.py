from __future__ import annotations

import gzip
import hashlib
import io
import os
import signal
import tarfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pytest
from polars.exceptions import PanicException

from gpuctl.core.errors import InputError, StoreError, UsageError
from gpuctl.ingest.pipeline.load import cluster_name, ingest
from gpuctl.ingest.pipeline.report import IngestInterrupted, IngestReport
from gpuctl.store.database import Store
from tests.fake_format import FAKE, HEADER, contents, lines, load, variant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.ingest.core.format import Format, Sink


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "store.duckdb"


def run(logs: Path, db: Path, formats: Sequence[Format] = (FAKE,), **more: Any) -> IngestReport:
    return ingest([logs], db, formats=formats, **more)


def statuses(report: IngestReport) -> dict[str, str]:
    return {s.path.rsplit("/", 1)[-1]: s.status for s in report.sources}


def machines(db: Path) -> list[str]:
    with Store(db) as store:
        rows = store.execute("SELECT DISTINCT machine FROM host_util ORDER BY 1").fetchall()
    return [row[0] for row in rows]


# ---- what is stored


def test_loads_a_file_and_writes_its_ledger_row_and_rejects(logs: Path, db: Path) -> None:
    data = gzip.compress(lines(10, bad=3))
    (logs / "log.gz").write_bytes(data)
    report = run(logs, db)
    (source,) = report.sources
    assert (source.status, source.rows_in, source.rows_loaded, source.rows_rejected) == ("loaded", 13, 10, 3)
    assert source.reasons == (("not a number", 3),)
    assert not report.failed
    stored = contents(db)
    path = str(logs / "log.gz")
    assert stored["sources"] == [
        ("1", "logs", path, "fake", hashlib.sha256(data).hexdigest(), str(len(data)), "13", "10", "3", "1", "0")
    ]
    assert stored["rejects"] == [("1", str(n), "not a number", f"m0,x{n - 12}\n") for n in (12, 13, 14)]
    assert {row[0] for row in stored["host_util"]} == {"logs"}
    assert {row[-1] for row in stored["host_util"]} == {"1"}
    assert stored["clusters"] == [
        ("logs", "fake", "America/Los_Angeles", "wall", "2024-01-01 00:02:00+00", "2024-01-01 00:11:00+00", None, None)
    ]


def test_clusters_span_all_sources_and_are_separate(logs: Path, db: Path) -> None:
    (logs / "a").write_bytes(lines(5))
    (logs / "b").write_bytes(lines(50))
    run(logs, db, timezone="Europe/Berlin")
    (logs / "c").write_bytes(lines(20))
    run(logs, db, cluster="other")
    assert [(r[0], r[2], r[4], r[5]) for r in contents(db)["clusters"]] == [
        ("logs", "Europe/Berlin", "2024-01-01 00:02:00+00", "2024-01-01 00:51:00+00"),
        ("other", "America/Los_Angeles", "2024-01-01 00:02:00+00", "2024-01-01 00:51:00+00"),
    ]
    assert len(contents(db)["sources"]) == 5


def test_loads_in_the_order_of_formats_then_of_paths(logs: Path, db: Path) -> None:
    late = variant(name="late", order=90, sniff=lambda name, head: "name" if name.startswith("late") else None)
    fake = variant(sniff=lambda name, head: None if name.startswith("late") else "name")
    for name in ("z", "late", "b", "a"):
        (logs / name).write_bytes(lines(len(name)))
    report = run(logs, db, [late, fake])
    assert list(statuses(report)) == ["a", "b", "z", "late"]


def test_many_rejects_are_all_stored(logs: Path, db: Path) -> None:
    (logs / "log").write_bytes(HEADER + b"".join(b"bad,%s\n" % (b"y" * 3000) for _ in range(15_000)))
    assert run(logs, db).sources[0].rows_rejected == 15_000
    with Store(db) as store:
        rows = store.execute("SELECT count(*), min(length(raw)), max(length(raw)) FROM rejects").fetchall()
    assert rows == [(15_000, 500, 500)]


def test_rejects_take_any_bytes(logs: Path, db: Path) -> None:
    (logs / "log").write_bytes(HEADER + b"\xff\xfe\0'; DROP TABLE jobs; --\n")
    run(logs, db)
    assert contents(db)["rejects"] == [("1", "2", "not a number", "\ufffd\ufffd\0'; DROP TABLE jobs; --\n")]


# ---- again


def test_the_same_bytes_change_nothing_wherever_they_lie(logs: Path, db: Path) -> None:
    (logs / "log").write_bytes(lines(10))
    run(logs, db)
    before = contents(db, without=())
    assert statuses(run(logs, db)) == {"log": "unchanged"}
    (logs / "copy").write_bytes(lines(10))
    report = run(logs, db)
    assert statuses(report) == {"copy": "unchanged", "log": "unchanged"}
    assert report.sources[0].message == f"the same bytes as {logs}/log"
    assert contents(db, without=()) == before


def test_two_copies_in_one_ingest_are_loaded_once(logs: Path, db: Path) -> None:
    for name in ("a", "b"):
        (logs / name).write_bytes(lines(10))
    assert statuses(run(logs, db)) == {"a": "loaded", "b": "unchanged"}


def test_a_log_that_grew_replaces_what_it_was(logs: Path, db: Path, tmp_path: Path) -> None:
    (logs / "other").write_bytes(lines(3))
    (logs / "log").write_bytes(lines(40, bad=2))
    run(logs, db)
    (logs / "log").write_bytes(lines(60))
    assert statuses(run(logs, db)) == {"log": "replaced", "other": "unchanged"}
    fresh = tmp_path / "fresh.duckdb"
    run(logs, fresh)
    now, anew = contents(db, without=("loaded_at", "source")), contents(fresh, without=("loaded_at", "source"))
    assert now == anew


def test_a_replacement_narrows_the_span_of_its_cluster(logs: Path, db: Path) -> None:
    (logs / "log").write_bytes(lines(40))
    run(logs, db)
    (logs / "log").write_bytes(lines(10))
    run(logs, db)
    assert contents(db)["clusters"][0][5] == "2024-01-01 00:11:00+00"


def test_a_newer_parser_reads_its_files_again(logs: Path, db: Path) -> None:
    (logs / "log").write_bytes(lines(10))
    run(logs, db, [variant(parser_version=2)])
    assert statuses(run(logs, db)) == {"log": "unchanged"}, "an older parser leaves newer rows alone"
    assert statuses(run(logs, db, [variant(parser_version=3)])) == {"log": "replaced"}
    assert [row[0] for row in contents(db)["sources"]] == ["2"]
    assert len(contents(db)["host_util"]) == 10


def test_a_rotated_log_is_not_lost(logs: Path, db: Path) -> None:
    (logs / "log").write_bytes(HEADER + b"old,1\n")
    run(logs, db)
    (logs / "log").rename(logs / "a_log.1")
    (logs / "log").write_bytes(HEADER + b"new,1\nnew,2\n")
    assert statuses(run(logs, db)) == {"a_log.1": "unchanged", "log": "loaded"}
    assert machines(db) == ["new", "old"]
    assert statuses(run(logs, db)) == {"a_log.1": "unchanged", "log": "unchanged"}


def test_members_of_an_archive_are_known_again_and_are_the_same_as_files(logs: Path, db: Path) -> None:
    for name, count in (("b", 8), ("a", 9)):
        (logs / name).write_bytes(lines(count))
    with tarfile.open(logs / "x.tgz", "w:gz") as tar:
        for name in ("b", "a"):
            tar.add(logs / name, name)
            (logs / name).unlink()
    assert statuses(run(logs, db)) == {"x.tgz!b": "loaded", "x.tgz!a": "loaded"}
    assert statuses(run(logs, db)) == {"x.tgz!b": "unchanged", "x.tgz!a": "unchanged"}
    (logs / "a").write_bytes(lines(9))
    (logs / "x.tgz").unlink()
    assert statuses(run(logs, db)) == {"a": "unchanged"}


def test_of_two_members_of_one_name_the_later_counts(logs: Path, db: Path) -> None:
    with tarfile.open(logs / "x.tar", "w") as tar:
        for machine in (b"old", b"new"):
            data = HEADER + machine + b",1\n"
            info = tarfile.TarInfo("log")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    report = run(logs, db)
    assert machines(db) == ["new"]
    assert [n.why for n in report.not_read] == ["a later member of the archive has the same name"]
    assert statuses(run(logs, db)) == {"x.tar!log": "unchanged"}


# ---- what goes wrong


def test_a_source_that_fails_leaves_the_others_and_no_trace(logs: Path, db: Path) -> None:
    (logs / "a").write_bytes(lines(3))
    (logs / "b").write_bytes(HEADER + b"m1,1\ngive up\n")
    (logs / "c").write_bytes(lines(4))
    report = run(logs, db)
    assert statuses(report) == {"a": "loaded", "b": "failed", "c": "loaded"}
    assert report.failed
    assert report.sources[1].message == "line 3: cannot go on"
    assert [row[0] for row in contents(db)["sources"]] == ["1", "2"]


def test_a_replacement_that_fails_keeps_the_old_rows(logs: Path, db: Path) -> None:
    (logs / "log").write_bytes(lines(10, bad=1))
    run(logs, db)
    before = contents(db, without=())
    (logs / "log").write_bytes(lines(10) + b"give up\n")
    assert run(logs, db).failed
    assert contents(db, without=()) == before


def test_a_truncated_file_keeps_its_rows_and_counts_one_reject(logs: Path, db: Path) -> None:
    whole = lines(5000)
    (logs / "log.gz").write_bytes(gzip.compress(whole)[:-2000])
    (source,) = run(logs, db).sources
    assert source.rows_rejected == 1
    assert source.rows_loaded > 1000
    assert source.message == "truncated gzip stream"
    ((_, line, reason, raw),) = contents(db)["rejects"]
    assert reason == "truncated gzip stream"
    assert int(str(line)) == source.rows_loaded + 2
    assert whole.splitlines(keepends=True)[int(str(line)) - 1].startswith(str(raw).encode())
    assert statuses(run(logs, db)) == {"log.gz": "unchanged"}


def test_rows_that_do_not_add_up_are_a_bug_and_are_not_stored(logs: Path, db: Path) -> None:
    def miscounting(stream: BinaryIO, sink: Sink) -> None:
        load(stream, sink)
        sink.seen()

    (logs / "log").write_bytes(lines(3))
    report = run(logs, db, [variant(load=miscounting)])
    assert report.failed
    assert "4 in, 3 loaded, 0 already in the store, 0 rejected; this is a bug" in report.sources[0].message
    assert contents(db)["host_util"] == []
    assert contents(db)["sources"] == []


def test_exceptions_of_a_stream_of_batches_are_not_converted(logs: Path, db: Path) -> None:
    import pyarrow as pa

    schema = pa.schema([("machine", pa.string()), ("ts", pa.timestamp("us", "UTC"))])

    def sometimes_broken(stream: BinaryIO, sink: Sink) -> None:
        broken = b"broken" in stream.read()

        def batches() -> Any:
            yield pa.RecordBatch.from_pydict({"machine": ["m1"], "ts": [0]}, schema)
            if broken:
                raise InputError("broken in the middle")

        sink.insert("host_util", pa.RecordBatchReader.from_batches(schema, batches()))

    for name in ("a", "b", "c", "d"):
        (logs / name).write_bytes(HEADER + name.encode() + b" broken" * (name in "bc"))
    report = run(logs, db, [variant(load=sometimes_broken)])
    assert statuses(report) == {"a": "loaded", "b": "failed", "c": "failed", "d": "loaded"}
    assert report.sources[1].message == "broken in the middle"
    assert len(contents(db)["host_util"]) == 2


def test_only_the_tables_of_the_store_can_be_filled(logs: Path, db: Path) -> None:
    import polars as pl

    def wrong(stream: BinaryIO, sink: Sink) -> None:
        sink.insert("sources; DROP TABLE jobs", pl.DataFrame({"a": [1]}))

    (logs / "log").write_bytes(lines(3))
    (source,) = run(logs, db, [variant(load=wrong)]).sources
    assert "KeyError: 'sources; DROP TABLE jobs: no table that a format fills'" in source.message


def test_deep_nesting_is_bad_input(logs: Path, db: Path) -> None:
    def deep(stream: BinaryIO, sink: Sink) -> None:
        deep(stream, sink)

    (logs / "log").write_bytes(lines(3))
    assert run(logs, db, [variant(load=deep)]).sources[0].message == "nested too deeply"


# ---- Ctrl-C


def test_ctrl_c_keeps_what_was_done_and_rolls_back_the_rest(logs: Path, db: Path) -> None:
    def stopping(stream: BinaryIO, sink: Sink) -> None:
        load(stream, sink)
        if sink.source == 2:
            raise KeyboardInterrupt

    for name, count in (("a", 3), ("b", 4), ("c", 5)):
        (logs / name).write_bytes(lines(count))
    with pytest.raises(IngestInterrupted) as stop:
        run(logs, db, [variant(load=stopping)])
    assert statuses(stop.value.report) == {"a": "loaded", "b": "interrupted"}
    assert len(contents(db)["host_util"]) == 3
    assert statuses(run(logs, db)) == {"a": "unchanged", "b": "loaded", "c": "loaded"}


def test_ctrl_c_stops_a_statement_that_would_run_for_hours(logs: Path, db: Path) -> None:
    def endless(stream: BinaryIO, sink: Sink) -> None:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        sink.query("SELECT count(*) FROM range(1000000000000) r(x) WHERE hash(x) % 7 = 3")

    (logs / "log").write_bytes(lines(3))
    # a process that a script started in the background is born deaf to SIGINT
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(IngestInterrupted):
            run(logs, db, [variant(load=endless)])
    finally:
        signal.signal(signal.SIGINT, before)
    assert contents(db)["sources"] == []


# ---- names, zones, dry runs


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("philly/", "philly"),
        ("philly/log", "philly"),
        ("trace.tar.gz", "trace"),
        ("a b;c$(x)/", "a-b-c-x"),
        ("…/", "cluster"),
    ],
)
def test_names_a_cluster_after_its_path(tmp_path: Path, path: str, name: str) -> None:
    where = tmp_path / path
    if path.endswith("/"):
        where.mkdir()
    assert cluster_name([where]) == name


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "x\x1b[31m", "y" * 101])
def test_refuses_names_of_clusters_that_cannot_be_shown(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        cluster_name([tmp_path], name)


@pytest.mark.parametrize("zone", ["Nowhere/Land", "../../etc/passwd", "/etc/passwd", "", "Europe"])
def test_refuses_zones_that_do_not_exist(logs: Path, db: Path, zone: str) -> None:
    with pytest.raises(UsageError, match="no such time zone"):
        run(logs, db, timezone=zone)
    assert not db.exists()


def test_a_cluster_keeps_its_zone(logs: Path, db: Path) -> None:
    zones: list[str] = []

    def noting(stream: BinaryIO, sink: Sink) -> None:
        zones.append(sink.timezone)
        load(stream, sink)

    fake = variant(load=noting)
    (logs / "a").write_bytes(lines(1))
    run(logs, db, [fake], timezone="Asia/Tokyo")
    (logs / "b").write_bytes(lines(2))
    run(logs, db, [fake])
    assert zones == ["Asia/Tokyo", "Asia/Tokyo"]
    with pytest.raises(UsageError, match="was read with the time zone Asia/Tokyo"):
        run(logs, db, [fake], timezone="UTC")


def test_a_dry_run_writes_nothing_and_predicts_the_outcome(logs: Path, db: Path) -> None:
    (logs / "log").write_bytes(lines(3))
    assert statuses(run(logs, db, dry_run=True)) == {"log": "new"}
    assert not db.exists()
    run(logs, db)
    before = db.read_bytes()
    (logs / "log").write_bytes(lines(4))
    (logs / "new").write_bytes(lines(5))
    assert statuses(run(logs, db, dry_run=True)) == {"log": "replaced", "new": "new"}
    assert db.read_bytes() == before


def test_nothing_known_lists_what_was_seen_and_makes_no_store(logs: Path, db: Path) -> None:
    with pytest.raises(InputError, match="no file here"):
        run(logs, db)
    (logs / "readme").write_text("hello")
    with pytest.raises(InputError, match="readme: no known format"):
        run(logs, db)
    assert not db.exists()


def test_without_paths_the_store_is_only_made_or_migrated(db: Path) -> None:
    assert ingest([], db).sources == ()
    with Store(db) as store:
        assert store.value("SELECT count(*) FROM sources") == 0


def test_progress_hears_of_every_byte(logs: Path, db: Path) -> None:
    heard: dict[str, list[int]] = {}

    class Listener:
        def start(self, what: str, total: int) -> None:
            self.now = heard.setdefault(what, [total, 0])

        def advance(self, size: int) -> None:
            self.now[1] += size

    data = gzip.compress(lines(5000))
    (logs / "log").write_bytes(data)
    run(logs, db, progress=Listener())
    assert heard[str(logs / "log")] == [len(data), len(data)]


def test_the_store_itself_is_no_log(logs: Path) -> None:
    (logs / "log").write_bytes(lines(3))
    run(logs, logs / "store.duckdb")
    assert [n.why for n in run(logs, logs / "store.duckdb").not_read] == ["the trace store"]


def test_a_directory_as_store_is_a_plain_error(logs: Path) -> None:
    (logs / "log").write_bytes(lines(3))
    with pytest.raises(StoreError):
        run(logs, logs)


@pytest.mark.parametrize("error", [ValueError("odd"), KeyError("x"), PanicException("range")], ids=repr)
def test_a_bug_that_one_file_shows_spoils_no_other(logs: Path, db: Path, error: BaseException) -> None:
    def failing(stream: BinaryIO, sink: Sink) -> None:
        load(stream, sink)
        if sink.rows_in == 3:  # type: ignore[attr-defined]
            raise error

    for name, count in (("a", 2), ("b", 3), ("c", 4)):
        (logs / name).write_bytes(lines(count))
    notices: list[str] = []
    report = ingest([logs], db, formats=[variant(load=failing)], notify=notices.append, debug=True)
    assert [source.status for source in report.sources] == ["loaded", "failed", "loaded"]
    assert report.failed
    assert "this is a bug in gpuctl: please report it" in report.sources[1].message
    assert [line for line in notices if line.startswith("Traceback")], notices
    assert len(contents(db)["host_util"]) == 6


def test_a_bug_in_recognising_one_file_spoils_no_other(logs: Path, db: Path) -> None:
    def sniffing(name: str, head: bytes) -> str | None:
        if name == "b":
            raise PanicException("range")
        return "name"

    for name in ("a", "b", "c"):
        (logs / name).write_bytes(lines(2 + ord(name)))
    report = run(logs, db, [variant(sniff=sniffing)])
    assert [source.status for source in report.sources] == ["loaded", "loaded"]
    assert [(Path(one.shown).name, one.failed) for one in report.not_read] == [("b", True)]
