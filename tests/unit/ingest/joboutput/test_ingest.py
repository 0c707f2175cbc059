from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from typing import TYPE_CHECKING, BinaryIO

import pytest
import zstandard

from gpuctl.core.errors import InputError
from gpuctl.ingest.pipeline import small_files
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import formats_for
from gpuctl.ingest.pipeline.report import IngestInterrupted
from tests.fake_format import contents
from tests.signatures import site_table
from tests.unit.ingest.joboutput.logs import FAILED, OOM, formats, load, outputs, rows, statuses, stored_lines

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.ingest.core.sink import StoreSink
    from gpuctl.ingest.pipeline.detect import Finding

PATTERN = "{job}/{attempt}/{stream}"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "store.duckdb"


def put(logs: Path, name: str, data: bytes = FAILED) -> Path:
    path = logs / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def tar(path: Path, members: dict[str, bytes], mode: str = "w:gz") -> None:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))


# ---- what is stored


def test_informative_lines_are_stored_and_all_are_counted(logs: Path, db: Path) -> None:
    put(logs, "7/0/stderr", b"starting\n" + FAILED)
    put(logs, "7/0/stdout", b"epoch 1 loss 0.5\nepoch 2 loss 0.25\nbye\n")
    report = load(logs, db, PATTERN)
    assert [(s.rows_in, s.rows_loaded, s.rows_rejected) for s in report.sources] == [(4, 4, 0), (3, 3, 0)]
    assert outputs(db) == [("7", 0, "stderr", "7/0/stderr", 4), ("7", 0, "stdout", "7/0/stdout", 3)]
    assert ("7", 4, OOM) in stored_lines(db)
    unmatched = rows(db, "SELECT signature, text FROM job_logs WHERE stream = 'stdout' ORDER BY line_no")
    assert (None, "bye") in unmatched
    steps = "SELECT job, attempt, stream, line_no, epoch, metric, loss FROM progress ORDER BY line_no"
    assert rows(db, steps) == [("7", 0, "stdout", 1, 1.0, "loss", 0.5), ("7", 0, "stdout", 2, 2.0, "loss", 0.25)]


def test_the_names_of_slurm_need_no_pattern(logs: Path, db: Path) -> None:
    for name in ("slurm-5.out", "run/slurm-6_2.out", "slurm-7_4294967294.err", "slurm-x.out", "slurm-5.out.txt"):
        put(logs, name)
    report = load(logs, db)
    assert [row[:3] for row in outputs(db)] == [("5", None, "output"), ("6_2", None, "output"), ("7", None, "stderr")]
    assert {n.shown.rsplit("/", 1)[-1] for n in report.not_read} == {"slurm-x.out", "slurm-5.out.txt"}


def test_the_folders_of_yarn_need_no_pattern(logs: Path, db: Path) -> None:
    app = "application_1528800000000_0001"
    for name in ("stdout", "stderr.gz", "syslog", "launch_container.sh", "directory.info"):
        put(logs, f"{app}/container_e17_1528800000000_0001_02_000003/{name}", gzip.compress(b"x\n"))
    put(logs, f"usercache/bob/appcache/{app}/container_1528800000000_0001_01_000003/train.py", b"x\n")
    report = load(logs, db)
    stream = "container_e17_1528800000000_0001_02_000003"
    assert [row[:3] for row in outputs(db)] == [(app, 1, f"{name}:{stream}") for name in ("stderr", "stdout", "syslog")]
    assert {n.shown.rsplit("/", 1)[-1] for n in report.not_read} == {
        "launch_container.sh",
        "directory.info",
        "train.py",
    }


def test_a_folder_of_a_container_can_be_named_itself(logs: Path, db: Path) -> None:
    put(logs, "container_1528800000000_0001_01_000003/stderr")
    load(logs / "container_1528800000000_0001_01_000003", db)
    assert outputs(db)[0][:2] == ("application_1528800000000_0001", 0)


def test_compressed_logs_fit_the_same_pattern(logs: Path, db: Path) -> None:
    packed = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstandard.compress}
    for job, (suffix, pack) in enumerate(packed.items()):
        put(logs, f"{job}/0/stderr.{suffix}", pack(FAILED))
    load(logs, db, PATTERN)
    assert outputs(db) == [(str(job), 0, "stderr", f"{job}/0/stderr", 3) for job in range(len(packed))]


def test_an_archive_counts_as_unpacked_if_it_lies(logs: Path, db: Path) -> None:
    (logs / "old").mkdir()
    tar(logs / "old" / "a.tar.gz", {"./7/0/stderr": FAILED, "7/1/stderr.gz": gzip.compress(FAILED), "7/x": FAILED})
    report = load(logs, db, "old/" + PATTERN)
    assert [row[:4] for row in outputs(db)] == [
        ("7", 0, "stderr", "old/7/0/stderr"),
        ("7", 1, "stderr", "old/7/1/stderr"),
    ]
    assert [n.shown.rsplit("!", 1)[-1] for n in report.not_read] == ["7/x"]


def test_a_named_archive_and_a_named_file_are_below_themselves(logs: Path, db: Path) -> None:
    tar(logs / "a.tar", {"7/0/stderr": FAILED}, "w")
    put(logs, "12.log")
    ingest([logs / "a.tar", logs / "12.log"], db, cluster="c", formats=formats(PATTERN, "{job}.log"))
    assert [row[0] for row in outputs(db)] == ["12", "7"]


def test_links_count_where_they_lead_to(logs: Path, db: Path) -> None:
    put(logs, "slurm-5.out")
    (logs / "latest").symlink_to(logs / "slurm-5.out")
    (logs / "slurm-6.out").symlink_to("/etc/passwd")
    load(logs, db)
    assert [row[0] for row in outputs(db)] == ["5"]


def test_ranks_of_files_are_those_of_their_lines(logs: Path, db: Path) -> None:
    for rank in (0, 3):
        put(logs, f"7/rank{rank}.err")
    load(logs, db, "{job}/rank{rank}.err")
    found = rows(db, "SELECT DISTINCT stream, rank FROM job_logs WHERE signature IS NOT NULL ORDER BY ALL")
    assert found == [("stderr:0", 0), ("stderr:3", 3)]


def test_any_bytes_are_a_log(logs: Path, db: Path) -> None:
    long = b"x" * 3_000_000
    put(logs, "1/0/u", b"\xff\xfe caf\xe9 \xf0\x9f\n" + FAILED)
    put(logs, "1/0/v", b"")
    put(logs, "1/0/w", b"\n\n\n")
    put(logs, "1/0/x", long + b"\n" + FAILED)
    put(logs, "1/0/y", b"\0" * 70_000 + b"\n" + FAILED)
    put(logs, "1/0/z", b"\xef\xbb\xbf" + FAILED.replace(b"\n", b"\r\n"))
    report = load(logs, db, PATTERN)
    assert not report.failed
    assert [(row[2], row[4]) for row in outputs(db)] == [("u", 4), ("v", 0), ("w", 3), ("x", 4), ("y", 4), ("z", 3)]
    found = rows(db, "SELECT stream, max(signature) FROM job_logs WHERE signature IS NOT NULL GROUP BY 1 ORDER BY 1")
    assert [row[0] for row in found] == ["u", "v", "w", "x", "y", "z"]
    assert {row[0] for row in found if row[1] == "structure-nothing"} == {"v", "w"}
    assert rows(db, "SELECT stream FROM job_outputs WHERE long_lines > 0") == [("x",)]


def test_binary_files_are_no_logs(logs: Path, db: Path) -> None:
    put(logs, "1/0/model.pt", bytes(range(256)) * 10)
    put(logs, "1/0/stderr")
    report = load(logs, db, PATTERN)
    assert [n.why for n in report.not_read] == ["binary"]


def test_a_truncated_log_keeps_what_was_read_and_reports_it(logs: Path, db: Path) -> None:
    whole = gzip.compress(FAILED + b"".join(b"line %d\n" % n for n in range(50_000)), mtime=0)
    put(logs, "7/0/stderr.gz", whole[: len(whole) // 2])
    (source,) = load(logs, db, PATTERN).sources
    assert source.status == "loaded"
    assert "truncated" in source.message
    assert source.rows_rejected == 1
    assert ("7", 3, OOM) in stored_lines(db)


def test_a_log_wins_over_what_its_text_looks_like(logs: Path, db: Path) -> None:
    """Jobs print what commands of Slurm say: it is their output all the same."""
    squeue = b"EPOCH|JOBID|ARRAY|STATE|REASON|PARTITION|NODELIST\n1700000000|7|7|PENDING|Priority|a|\n"
    put(logs, "slurm-5.out", squeue)
    put(logs, "samples.txt", squeue)
    report = load(logs, db)
    assert [source.format for source in report.sources] == ["slurm-squeue-samples", "job-output"]
    assert outputs(db)[0][0] == "5"


def test_text_of_yarn_logs_is_no_single_log(logs: Path, db: Path) -> None:
    container = "container_1528800000000_0001_01_000001"
    text = f"Container: {container} on node01_1\n{'=' * 50}\nLogType:stderr\nLogLength:2\nLog Contents:\nx\n\n"
    put(logs, "application_1528800000000_0001.log", text.encode())
    (source,) = load(logs, db, "{job}.log").sources
    assert source.format == "yarn-container-logs"
    assert (source.rows_in, source.rows_loaded) == (7, 7)


def test_names_which_patterns_fit_nothing_and_which_jobs_are_unknown(logs: Path, db: Path) -> None:
    for job in "abcd":
        put(logs, f"{job}/0/stderr")
    warnings = load(logs, db, PATTERN, "{job}.log").warnings
    assert any(w.startswith("--job-logs {job}.log fits no file") for w in warnings)
    assert any(
        w.startswith("4 logs of 4 jobs that cluster c has no record of: a, b, c …; they are stored") for w in warnings
    )


# ---- again


def test_the_same_bytes_are_the_logs_of_each_job(logs: Path, db: Path) -> None:
    for job in range(5):
        put(logs, f"{job}/0/stderr")
        put(logs, f"{job}/0/stdout", b"")
    load(logs, db, PATTERN)
    assert len(outputs(db)) == 10
    before = contents(db, without=())
    assert set(statuses(load(logs, db, PATTERN)).values()) == {"unchanged"}
    assert contents(db, without=()) == before


def test_a_log_that_grew_takes_its_own_place(logs: Path, db: Path, tmp_path: Path) -> None:
    put(logs, "7/0/stderr", b"starting\n")
    put(logs, "8/0/stdout", b"epoch 1 loss 1.0\n")
    load(logs, db, PATTERN)
    put(logs, "7/0/stderr", b"starting\n" + FAILED)
    assert statuses(load(logs, db, PATTERN)) == {"stderr": "replaced", "stdout": "unchanged"}
    load(logs, tmp_path / "fresh.duckdb", PATTERN)
    without = ("loaded_at", "source")
    assert contents(db, without=without) == contents(tmp_path / "fresh.duckdb", without=without)


def test_a_log_that_was_compressed_in_its_place_is_the_same_log(logs: Path, db: Path) -> None:
    path = put(logs, "7/0/stderr")
    load(logs, db, PATTERN)
    path.unlink()
    put(logs, "7/0/stderr.gz", gzip.compress(FAILED))
    assert statuses(load(logs, db, PATTERN)) == {"stderr.gz": "replaced"}
    assert len(outputs(db)) == 1


def test_logs_that_went_into_an_archive_are_the_same(logs: Path, db: Path) -> None:
    path = put(logs, "7/0/stderr")
    load(logs, db, PATTERN)
    path.unlink()
    tar(logs / "all.tar.gz", {"7/0/stderr": FAILED})
    assert statuses(load(logs, db, PATTERN)) == {"stderr": "unchanged"}
    assert rows(db, "SELECT path LIKE '%all.tar.gz!7/0/stderr' FROM sources") == [(True,)]


def test_a_copy_of_the_logs_elsewhere_is_not_loaded_again(logs: Path, db: Path) -> None:
    put(logs, "7/0/stderr")
    put(logs, "8/0/stderr")
    load(logs, db, PATTERN)
    (logs / "backup").mkdir()
    tar(logs / "backup" / "all.tar.gz", {"data/7/0/stderr": FAILED, "data/9/0/stderr": FAILED})
    report = load(logs / "backup", db, "data/" + PATTERN)
    assert [(s.status, s.path.rsplit("!", 1)[-1]) for s in report.sources] == [
        ("unchanged", "data/7/0/stderr"),
        ("loaded", "data/9/0/stderr"),
    ]
    assert [row[0] for row in outputs(db)] == ["7", "8", "9"]


def test_another_pattern_reads_its_logs_again(logs: Path, db: Path) -> None:
    put(logs, "7/0/stderr")
    put(logs, "8/1/stderr")
    load(logs, db, PATTERN)
    assert statuses(load(logs, db, "{job}/{attempt}/{stream}")) == {"stderr": "unchanged"}
    assert set(statuses(load(logs, db, "{job}/{rank}/{stream}")).values()) == {"replaced"}
    assert [row[:3] for row in outputs(db)] == [("7", None, "stderr:0"), ("8", None, "stderr:1")]


def test_other_signatures_read_all_logs_again(logs: Path, db: Path, tmp_path: Path) -> None:
    put(logs, "slurm-7.out", b"lmgrd: checkout of feature solver failed\n")
    put(logs, "slurm-8.out", b"nothing\n")
    load(logs, db)
    own = tmp_path / "own.toml"
    one = "id = 'own-jam'\nreason = 'program_error'\nexamples = ['checkout of feature a failed']"
    own.write_text(site_table(one))
    known = formats_for(None, signatures=[own])
    assert set(statuses(ingest([logs], db, cluster="c", formats=known)).values()) == {"replaced"}
    assert rows(db, "SELECT job, line_no FROM job_logs WHERE signature = 'own-jam'") == [("7", 1)]
    assert set(statuses(ingest([logs], db, cluster="c", formats=known)).values()) == {"unchanged"}
    assert set(statuses(load(logs, db)).values()) == {"replaced"}
    assert rows(db, "SELECT count(*) FROM job_logs WHERE signature = 'own-jam'") == [(0,)]


def test_unreadable_signatures_are_reported_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("[[signature]]\nid = 3\n")
    with pytest.raises(InputError, match=r"own\.toml"):
        formats_for(None, signatures=[tmp_path / "own.toml"])


# ---- jobs


def test_tasks_of_arrays_get_the_ids_of_their_jobs_whichever_came_first(logs: Path, db: Path) -> None:
    put(logs, "slurm-100_7.out")
    load(logs, db)
    assert outputs(db)[0][0] == "100_7"
    add_job(db, "107", array_job="100", array_task="7")
    assert not load(logs, db).warnings
    for table in ("job_outputs", "job_logs"):
        assert rows(db, f"SELECT DISTINCT job FROM {table}") == [("107",)]
    assert statuses(load(logs, db)) == {"slurm-100_7.out": "unchanged"}


def test_parts_of_heterogeneous_jobs_get_their_ids(logs: Path, db: Path) -> None:
    put(logs, "100+1.log")
    load(logs, db, "{job}.log")
    add_job(db, "101", het_job="100", het_offset=1)
    load(logs, db, "{job}.log")
    assert outputs(db)[0][0] == "101"


def test_the_ids_of_other_clusters_are_not_taken(logs: Path, db: Path) -> None:
    put(logs, "slurm-100_7.out")
    load(logs, db)
    add_job(db, "107", cluster="other", array_job="100", array_task="7")
    load(logs, db)
    assert outputs(db)[0][0] == "100_7"


def add_job(db: Path, job: str, cluster: str = "c", **more: object) -> None:
    from gpuctl.store.database import Store

    with Store(db, write=True) as store:
        values = {"cluster": cluster, "job": job, "state": "failed", "attempts": 1, "quirks": [], "source": 0, **more}
        names = ", ".join(values)
        store.execute(f"INSERT INTO job_rows ({names}) VALUES ({', '.join(f'${n}' for n in values)})", values)


def test_stamps_are_in_the_zone_of_the_cluster(logs: Path, db: Path) -> None:
    put(logs, "slurm-7.out", b"2026-11-20 10:00:00,500 ERROR " + OOM.encode() + b"\n")
    ingest([logs], db, cluster="c", timezone="Europe/Berlin", formats=formats())
    put(logs, "slurm-8.out", b"2026-11-20 10:00:00,500 ERROR " + OOM.encode() + b"\n")
    load(logs, db)
    found = rows(db, "SELECT DISTINCT job, ts::VARCHAR FROM job_logs WHERE signature IS NOT NULL ORDER BY ALL")
    assert found == [("7", "2026-11-20 09:00:00.5+00"), ("8", "2026-11-20 09:00:00.5+00")]


def test_stamps_in_logs_do_not_move_the_span_of_the_cluster(logs: Path, db: Path) -> None:
    put(logs, "slurm-7.out", b"2031-01-01 00:00:00,000 ERROR " + OOM.encode() + b"\n")
    load(logs, db)
    assert rows(db, "SELECT first_ts, last_ts FROM clusters") == [(None, None)]


# ---- many files, and what goes wrong


def test_groups_are_whole_or_not_at_all(logs: Path, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_files, "FILES", 3)
    for job in range(10):
        put(logs, f"{job}/0/stderr")
    real = small_files.Group.take
    seen: list[str] = []

    def stopped(self: small_files.Group, finding: Finding, read: object, *, dry_run: bool) -> object:
        seen.append(finding.candidate.inside)
        if len(seen) == 8:
            raise KeyboardInterrupt
        return real(self, finding, read, dry_run=dry_run)  # type: ignore[arg-type]

    monkeypatch.setattr(small_files.Group, "take", stopped)
    with pytest.raises(IngestInterrupted) as stop:
        load(logs, db, PATTERN)
    assert [s.status for s in stop.value.report.sources] == ["loaded"] * 6 + ["interrupted"] * 3
    assert len(outputs(db)) == 6
    assert rows(db, "SELECT count(*) FROM sources") == [(6,)]
    monkeypatch.setattr(small_files.Group, "take", real)
    assert sorted(statuses_of(load(logs, db, PATTERN))) == ["loaded"] * 4 + ["unchanged"] * 6
    assert len(outputs(db)) == 10


def statuses_of(report: object) -> list[str]:
    return [source.status for source in report.sources]  # type: ignore[attr-defined]


def test_a_log_that_cannot_be_read_leaves_the_others_alone(
    logs: Path, db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for job in range(4):
        put(logs, f"{job}/0/stderr", b"epoch %d loss 0.5\n" % job)
    from gpuctl.ingest.pipeline.load import _Run

    real = _Run._read

    def broken(self: _Run, finding: Finding, sink: StoreSink) -> tuple[str, int, str]:
        done = real(self, finding, sink)
        if finding.candidate.inside.startswith("2/"):
            raise InputError("the disk gives an error", path="2")
        return done

    monkeypatch.setattr(_Run, "_read", broken)
    report = load(logs, db, PATTERN)
    assert statuses_of(report) == ["loaded", "loaded", "failed", "loaded"]
    assert report.failed
    assert [row[0] for row in outputs(db)] == ["0", "1", "3"]
    assert rows(db, "SELECT job FROM progress ORDER BY 1") == [("0",), ("1",), ("3",)]
    assert rows(db, "SELECT source FROM sources ORDER BY 1") == [(1,), (2,), (3,)]
    monkeypatch.setattr(_Run, "_read", real)
    assert statuses_of(load(logs, db, PATTERN)) == ["unchanged", "unchanged", "loaded", "unchanged"]


def test_rows_are_inserted_in_parts(logs: Path, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpuctl.ingest.joboutput import rows as of_rows

    monkeypatch.setattr(small_files, "MOST_PENDING_ROWS", 10)
    monkeypatch.setattr(of_rows, "BATCH", 7)
    put(logs, "7/0/stdout", b"".join(b"epoch %d loss 0.5\n" % n for n in range(1, 101)))
    put(logs, "8/0/stdout", b"".join(b"epoch %d loss 0.5\n" % n for n in range(1, 31)))
    load(logs, db, PATTERN)
    assert rows(db, "SELECT job, count(*), max(epoch) FROM progress GROUP BY 1 ORDER BY 1") == [
        ("7", 100, 100.0),
        ("8", 30, 30.0),
    ]


def test_a_dry_run_only_looks(logs: Path, db: Path) -> None:
    put(logs, "7/0/stderr")
    report = ingest([logs], db, cluster="c", formats=formats(PATTERN, "{job}.x"), dry_run=True)
    assert statuses(report) == {"stderr": "new"}
    assert any("fits no file" in w for w in report.warnings)
    assert not db.exists()
    load(logs, db, PATTERN)
    put(logs, "7/0/stderr", b"x\n")
    assert statuses(ingest([logs], db, cluster="c", formats=formats(PATTERN), dry_run=True)) == {"stderr": "replaced"}
    assert outputs(db)[0][4] == 3


def test_streams_without_a_place_are_identified_by_their_name(tmp_path: Path) -> None:
    from gpuctl.ingest.joboutput.reader import place_of

    path = put(tmp_path, "slurm-3.out")
    with path.open("rb") as file:
        stream: BinaryIO = file
        assert place_of(stream).path == str(path)
