"""What the user is told beside the results: on stderr, once, with the exit code that fits."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from gpuctl.cli import main

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]

HEADER = "JobIDRaw|JobID|JobName|User|Partition|State|Submit|Start|End|Elapsed|AllocTRES|NodeList\n"


def sacct(folder: Path, *rows: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sacct.txt").write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return folder


def job(number: int, *, queue: str = "gpu", minute: int = 0) -> str:
    start = f"2026-01-01T10:{minute:02d}:00|2026-01-01T11:00:00|00:{60 - minute:02d}:00"
    return f"{number}|{number}|train|ann|{queue}|COMPLETED|2026-01-01T10:00:00|{start}|gres/gpu=2,node=1|n1"


@pytest.mark.parametrize("form", ["tsv", "table", "json"])
def test_warnings_go_to_stderr_and_are_not_in_tables(gpuctl: Run, tmp_path: Path, form: str) -> None:
    done = gpuctl("analyze", sacct(tmp_path / "a", job(1)), "--format", form, "--section", "overview")
    assert "Warning: the GPUs of 1 node are inferred" in done.stderr
    assert "Warning:" not in done.stdout


def test_a_quiet_command_warns_of_nothing(gpuctl: Run, tmp_path: Path) -> None:
    assert "Warning" not in gpuctl("--quiet", "analyze", sacct(tmp_path / "a", job(1)), "--table", "status").stderr


@pytest.mark.parametrize("option", ["--html", "--output", "--csv", "--parquet"])
def test_a_place_that_is_not_there_is_refused_before_the_work(gpuctl: Run, tmp_path: Path, option: str) -> None:
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "x" if option in {"--csv", "--parquet"} else tmp_path / "none" / "x.html"
    db = tmp_path / "t.duckdb"
    done = gpuctl("analyze", sacct(tmp_path / "a", job(1)), "--db", db, option, place, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"gpuctl: {option} {place}: there is no directory")
    assert not db.exists(), "the work had begun"


def test_a_directory_in_place_of_a_file_is_refused(gpuctl: Run, tmp_path: Path) -> None:
    done = gpuctl("analyze", sacct(tmp_path / "a", job(1)), "--html", tmp_path, check=False)
    assert (done.returncode, "is a directory, expected a file" in done.stderr) == (2, True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_to_is_refused(gpuctl: Run, tmp_path: Path) -> None:
    place = tmp_path / "ours"
    place.mkdir(mode=0o500)
    done = gpuctl("analyze", sacct(tmp_path / "a", job(1)), "--csv", place / "x", check=False)
    assert (done.returncode, "is not writable" in done.stderr) == (2, True)


@pytest.mark.parametrize("command", ["ingest", "analyze"])
def test_a_file_without_a_row_reports_it_and_ends_with_3(gpuctl: Run, tmp_path: Path, command: str) -> None:
    db = tmp_path / "t.duckdb"
    done = gpuctl(command, sacct(tmp_path / "a"), "--db", db, check=False)
    assert done.returncode == 3
    assert "sacct.txt: no rows; nothing was loaded from it" in done.stderr


@pytest.mark.parametrize("command", ["ingest", "analyze"])
def test_a_file_of_which_all_is_rejected_reports_it_and_ends_with_3(gpuctl: Run, tmp_path: Path, command: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "cluster_machine_list").write_text("machineId,number of GPUs,single GPU mem\nm1,many,12GB\n")
    done = gpuctl(command, tmp_path / "a", "--db", tmp_path / "t.duckdb", check=False)
    assert done.returncode == 3, done.stderr
    assert "rows rejected: 1 of 1; nothing was loaded from it" in done.stderr


def test_a_file_that_cannot_be_loaded_is_bad_input_for_analyze_too(gpuctl: Run, tmp_path: Path) -> None:
    folder = sacct(tmp_path / "a", job(1).replace("2026-01-01T", "Uhr "))
    done = gpuctl("analyze", folder, check=False)
    assert done.returncode == 3, done.stderr
    assert "no cluster" not in done.stderr


def test_a_cluster_without_jobs_is_reported(gpuctl: Run, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "cluster_machine_list").write_text("machineId,number of GPUs,single GPU mem\nm1,8,12GB\n")
    done = gpuctl("analyze", tmp_path / "a")
    assert "Warning: the store has no jobs of cluster a, only data from philly-machines" in done.stderr


def test_quotas_and_racks_of_what_is_not_there_are_named(gpuctl: Run, tmp_path: Path) -> None:
    folder = sacct(tmp_path / "a", job(1))
    (tmp_path / "q.csv").write_text("queue,quota_gpus\ngpu,2\nnosuch,5\n")
    (tmp_path / "r.csv").write_text("machine,rack\nn1,r1\nn77,r1\n")
    done = gpuctl("analyze", folder, "--quotas", tmp_path / "q.csv", "--racks", tmp_path / "r.csv")
    assert "--quotas names queues that are not in the trace: nosuch\n" in done.stderr
    assert "--racks names nodes that are not in the trace: n77\n" in done.stderr


def test_a_quota_of_a_queue_that_may_be_misspelt_is_an_error(gpuctl: Run, tmp_path: Path) -> None:
    folder = sacct(tmp_path / "a", job(1))
    (tmp_path / "q.csv").write_text("queue,quota_gpus\ngpus,2\nnosuch,5\n")
    done = gpuctl("analyze", folder, "--quotas", tmp_path / "q.csv", check=False)
    assert done.returncode == 3
    assert "are not in the trace: 'gpus' (did you mean 'gpu'?), 'nosuch'\n" in done.stderr
    assert "hint: queues without a quota in that file: gpu;" in done.stderr
    replayed = gpuctl("replay", folder, "--policy", "fifo", "--quotas", tmp_path / "q.csv", check=False)
    assert (replayed.returncode, replayed.stderr.splitlines()[-2:]) == (3, done.stderr.splitlines()[-2:])


@pytest.mark.parametrize("command", ["analyze", "ingest", "explain 1", "replay --policy fifo", "train runtime -o"])
def test_a_zone_that_there_is_not_is_wrong_usage(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*command.split(), *([str(tmp_path / "model")] if command.endswith("-o") else [])]
    folder, db = str(sacct(tmp_path / "a", job(1))), str(tmp_path / "t.duckdb")
    assert main.run(["ingest", folder, "--db", db]) == 0
    for where in ([folder], ["--db", db]):
        assert main.run([*words, *where, "--timezone", "Mars"]) == 2
        assert "--timezone 'Mars': no such time zone" in capsys.readouterr().err


def test_a_zone_comes_too_late_for_what_was_read(gpuctl: Run, tmp_path: Path) -> None:
    db = tmp_path / "t.duckdb"
    gpuctl("ingest", sacct(tmp_path / "a", job(1)), "--db", db)
    done = gpuctl("analyze", db, "--timezone", "Asia/Tokyo", check=False)
    assert done.returncode == 2
    assert "--timezone Asia/Tokyo says how to read logs, and those of" in done.stderr


def test_the_same_log_under_two_names_is_reported(gpuctl: Run, tmp_path: Path) -> None:
    folder, db = sacct(tmp_path / "a", job(1)), tmp_path / "t.duckdb"
    assert "Warning" not in gpuctl("ingest", folder, "--db", db, "--cluster", "one").stderr
    assert "1 file of cluster a is in the store as cluster one too" in gpuctl("ingest", folder, "--db", db).stderr
    assert "Warning" not in gpuctl("ingest", folder, "--db", db).stderr, "nothing was loaded this time"


def test_two_folders_that_become_one_cluster_are_reported(gpuctl: Run, tmp_path: Path) -> None:
    paths = (sacct(tmp_path / "a", job(1)), sacct(tmp_path / "b", job(2)))
    told = "Warning: a, b were read as one cluster, a;"
    assert told in gpuctl("ingest", *paths, "--db", tmp_path / "1.duckdb").stderr
    assert told not in gpuctl("ingest", *paths, "--db", tmp_path / "2.duckdb", "--cluster", "c").stderr
    assert told not in gpuctl("ingest", paths[0], paths[0] / "sacct.txt", "--db", tmp_path / "3.duckdb").stderr


def test_a_zone_that_is_not_used_is_reported(gpuctl: Run, tmp_path: Path, root: Path) -> None:
    recorded = root / "tests" / "fixtures" / "yarn" / "3.5.0"
    db, tokyo = tmp_path / "t.duckdb", ("--timezone", "Asia/Tokyo")
    done = gpuctl("ingest", recorded / "rest-end.zip", "--db", db, *tokyo)
    assert re.search(
        r"--timezone Asia/Tokyo is not used for \d+ files whose times carry their own zone or", done.stderr
    )
    assert "no rows" not in done.stderr
    done = gpuctl("ingest", recorded / "hadoop-lab-resourcemanager-rm01.log.gz", "--db", db, "--cluster", "rm", *tokyo)
    assert "--timezone Asia/Tokyo does not fit the times of" in done.stderr
    done = gpuctl("ingest", sacct(tmp_path / "b", job(1)), "--db", db, *tokyo)
    assert "--timezone" not in done.stderr
    for name, form in (("c", "1767261600"), ("d", "2026-01-01T10:00:00+0100")):
        text = re.sub(r"2026-01-01T[0-9:]+", form, job(1))
        done = gpuctl("ingest", sacct(tmp_path / name, text), "--db", db, *tokyo)
        assert "--timezone Asia/Tokyo is not used for 1 file whose times carry their own zone or" in done.stderr


def test_the_end_of_a_file_that_is_cut_off_is_reported_once(gpuctl: Run, tmp_path: Path, sample_data: Path) -> None:
    (tmp_path / "a").mkdir()
    whole = (sample_data / "philly" / "cluster_gpu_util.gz").read_bytes()
    (tmp_path / "a" / "cluster_gpu_util.gz").write_bytes(whole[: len(whole) // 2])
    done = gpuctl("ingest", tmp_path / "a", "--db", tmp_path / "t.duckdb", check=False)
    assert done.stderr.count("truncated gzip stream") == 1, done.stderr


def test_the_table_of_jobs_that_a_replay_wrote_is_no_log(gpuctl: Run, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,submit_time,duration,num_gpus\na,0,10,1\n")
    gpuctl("replay", tmp_path / "jobs.csv", "--cluster", "1x8", "--policy", "fifo", "--csv", tmp_path / "out")
    for command in ("analyze", "replay"):
        options = ("--policy", "fifo") if command == "replay" else ()
        refused = gpuctl(command, tmp_path / "out" / "jobs.csv", *options, check=False)
        assert refused.returncode == 3
        assert "is the outcome of a replay" in refused.stderr
        assert "--store OUT.duckdb" in refused.stderr
