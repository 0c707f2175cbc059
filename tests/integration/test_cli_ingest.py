"""`gpuctl ingest` and `gpuctl formats` as a user meets them."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gpuctl.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def logs(thin_data: Path) -> Path:
    return thin_data / "philly"


def test_reads_the_sample_and_prints_tab_separated_values_into_a_pipe(gpuctl: Run, logs: Path, tmp_path: Path) -> None:
    done = gpuctl("ingest", logs, cwd=tmp_path)
    header, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert header == ["file", "format", "status", "rows", "loaded", "rejected", "bytes", "already_stored"]
    assert [row[0].rsplit("/", 1)[1] for row in rows[:2]] == ["cluster_machine_list", "cluster_job_log"]
    assert {row[2] for row in rows} == {"loaded"}
    assert all(int(row[3]) == int(row[4]) + int(row[5]) for row in rows)
    assert "truth/quotas.csv: no known format" in done.stderr
    with Store(tmp_path / "gpuctl.duckdb") as store:
        assert store.value("SELECT cluster FROM clusters") == "philly"
        assert store.value("SELECT count(*) FROM jobs") == int(rows[1][4])


def test_a_second_time_changes_nothing_and_reports_it(gpuctl: Run, logs: Path, tmp_path: Path) -> None:
    db = tmp_path / "x.duckdb"
    gpuctl("ingest", logs, "--db", db)
    before = db.read_bytes()
    done = gpuctl("ingest", logs, "--db", db)
    assert [line.split("\t")[2:6] for line in done.stdout.splitlines()[1:]] == [["unchanged", "", "", ""]] * 5
    assert db.read_bytes() == before


@pytest.mark.parametrize("before", [True, False])
def test_json_may_stand_before_the_command_or_after_it(gpuctl: Run, logs: Path, tmp_path: Path, before: bool) -> None:
    arguments = ["ingest", str(logs), "--db", str(tmp_path / "x.duckdb"), "--cluster", "my cluster"]
    done = gpuctl(*(["--json", *arguments] if before else [*arguments, "--json"]))
    report = json.loads(done.stdout)
    assert report["cluster"] == "my cluster"
    assert not report["failed"]
    assert {s["format"] for s in report["sources"]} >= {"philly-jobs", "philly-gpu-util"}
    assert all(
        s["rows_in"] == s["rows_loaded"] + s["rows_already_stored"] + s["rows_rejected"] for s in report["sources"]
    )
    assert {n["why"] for n in report["not_read"]} == {"no known format"}


def test_a_dry_run_makes_no_store(gpuctl: Run, logs: Path, tmp_path: Path) -> None:
    done = gpuctl("ingest", logs, "--db", tmp_path / "x.duckdb", "--dry-run")
    assert {line.split("\t")[2] for line in done.stdout.splitlines()[1:]} == {"new"}
    assert "nothing was written" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["--quiet", "ingest"], ["ingest", "-q"]])
def test_quiet_leaves_results_and_errors(gpuctl: Run, logs: Path, tmp_path: Path, arguments: list[str]) -> None:
    done = gpuctl(*arguments, logs, "--db", tmp_path / "x.duckdb")
    assert done.stderr == ""
    assert done.stdout.count("\n") == 6


def test_without_a_path_the_store_is_made_or_migrated(gpuctl: Run, tmp_path: Path) -> None:
    done = gpuctl("ingest", "--db", tmp_path / "x.duckdb")
    assert done.stdout == ""
    assert done.stderr == f"{tmp_path}/x.duckdb is up to date\n"
    with Store(tmp_path / "x.duckdb") as store:
        assert store.value("SELECT count(*) FROM sources") == 0


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["ingest"], 2, "give a log directory"),
        (["ingest", "LOGS", "--timezone", "Mars/Base"], 2, "'Mars/Base': no such time zone"),
        (["ingest", "LOGS", "--cluster", "a\x1b[31m"], 2, "'a\\x1b[31m'"),
        (["ingest", "LOGS", "--db", "TEXT"], 4, "not a DuckDB database"),
        (["ingst"], 2, "gpuctl: no such command 'ingst'\nhint: did you mean 'ingest'?\n"),
        (["ingest", "--nope"], 2, "gpuctl: no such option: --nope\nhint: did you mean --notes, --since?\n"),
        (["ingest", "--clster", "a"], 2, "gpuctl: no such option: --clster\nhint: did you mean --cluster, "),
        (["ingest", "--from", "sge"], 2, "hint: gpuctl ingest -h lists the options\n"),
        ([], 2, "Usage: gpuctl"),
    ],
)
def test_faults_end_with_their_code_and_plain_words(
    gpuctl: Run, logs: Path, tmp_path: Path, arguments: list[str], code: int, says: str
) -> None:
    (tmp_path / "text").write_text("no database, but text that is long enough to be looked at\n" * 100)
    places = {"LOGS": str(logs), "TEXT": str(tmp_path / "text")}
    done = gpuctl(*(places.get(a, a) for a in arguments), cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bug_is_one_line_and_a_traceback_only_on_request(logs: Path, tmp_path: Path, root: Path) -> None:
    code = (
        "import sys\nfrom gpuctl.ingest.pipeline import load\n"
        "def broken(*a, **k): raise ZeroDivisionError('oops [/x]')\n"
        "load.ingest = broken\n"
        "from gpuctl.cli.main import main\n"
        "main()"
    )
    env = {"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}
    plain, debug = (
        subprocess.run(
            [sys.executable, "-c", code, *flags, "ingest", str(logs)],
            env=env,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        for flags in ([], ["--debug"])
    )
    assert plain.returncode == debug.returncode == 70
    assert plain.stderr.startswith("gpuctl: internal error: ZeroDivisionError: oops [/x]\nhint: ")
    assert plain.stderr.count("\n") == 2
    assert "Traceback" in debug.stderr


def test_a_reader_that_goes_away_is_no_error(root: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuctl", "formats"],
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), err) == (0, "")


def test_on_a_terminal_names_are_shown_whole_and_never_as_markup(logs: Path, tmp_path: Path, root: Path) -> None:
    folder = tmp_path / "a[bold]b[x]"
    folder.mkdir()
    name = "cluster_machine_list_with_a_name_that_is_longer_than_any_column_would_ever_be"
    (folder / name).write_bytes((logs / "cluster_machine_list").read_bytes())
    screen = _on_terminal(["ingest", str(folder), "--db", str(tmp_path / "x.duckdb"), "--notes"], root)
    table = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", screen).splitlines()
    start = next(i for i, line in enumerate(table) if line.startswith("file "))
    width = table[start].index("format")
    assert f"a[bold]b[x]/{name}" in "".join(line[:width].strip() for line in table[start + 2 :])
    assert "philly-machines" in "".join(line[width:].split(" ")[0] for line in table[start + 2 :])
    assert "\x1b[1m" in screen
    assert "\x1b[1m" not in _on_terminal(["--no-color", "formats"], root)


def test_lists_the_formats(gpuctl: Run) -> None:
    rows = [line.split("\t") for line in gpuctl("formats").stdout.splitlines()]
    assert rows[0] == ["format", "what", "usual file names", "fills", "time zone", "tried on", "from"]
    described = json.loads(gpuctl("formats", "--json").stdout)
    assert [d["name"] for d in described] == [row[0] for row in rows[1:]]
    assert "philly-jobs" in {d["name"] for d in described}


def _on_terminal(arguments: list[str], root: Path) -> str:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuctl", *arguments],
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "COLUMNS": "100", "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:
        pass  # a terminal whose other end is closed gives an error at its end
    finally:
        os.close(ours)
    assert process.wait() == 0, shown
    return shown.decode().replace("\r\n", "\n")


def test_records_without_a_header_state_what_is_wanted_and_are_read_with_it(gpuctl: Run, tmp_path: Path) -> None:
    (tmp_path / "jobs.txt").write_text("1|COMPLETED|2026-11-20T10:00:00|2026-11-20T10:00:05|2026-11-20T10:00:09|gpu\n")
    refused = gpuctl("ingest", "jobs.txt", cwd=tmp_path, check=False)
    assert refused.returncode == 3
    assert "line 1: records of sacct without a header" in refused.stderr
    assert "--columns JobIDRaw,User,State" in refused.stderr
    wrong = gpuctl("ingest", "jobs.txt", "--columns", "JobID,Stat", cwd=tmp_path, check=False)
    assert (wrong.returncode, wrong.stdout) == (3, "")
    assert "'stat' is not a field of sacct" in wrong.stderr
    columns = "JobID,State,Submit,Start,End,Partition"
    done = gpuctl("ingest", "jobs.txt", "--columns", columns, "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["sources"][0]["rows_loaded"] == 1
    table = gpuctl("analyze", "jobs.txt", "--columns", columns, "--table", "waits", "--json", cwd=tmp_path)
    (wait,) = json.loads(table.stdout)["tables"]["waits"]["rows"]
    assert (wait["wait_min"] * 60, wait["queue"], wait["size_bucket"]) == (5, "gpu", "unknown")
