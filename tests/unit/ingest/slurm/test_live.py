"""Asking sacct day by day: what is asked, what is kept, what is asked again. The real Slurm is in labs/slurm."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard

from gpuctl.core.errors import DependencyError, InputError, UsageError
from gpuctl.ingest.read import fetched_days
from gpuctl.ingest.slurm import live
from gpuctl.ingest.slurm.live import DayCheck

if TYPE_CHECKING:
    from collections.abc import Callable

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp()
US = "\x1f"
HEADER = US.join(("JobIDRaw", "JobID", "JobName", "State", "Submit", "Flags"))
SACCT = """#!/bin/sh
case " $* " in *" --helpformat "*) echo "JobIDRaw JobID   State"; echo "Submit JobName Flags"; exit;; esac
printf '%s|%s|%s|' "$TZ" "$SLURM_TIME_FORMAT" "$SLURM_BITSTR_LEN" >>"$LOG"
echo "$*" >>"$LOG"
. "$FOLDER/behave"
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> live.Slurm:
    """A sacct that writes down what it was called with and then does what the file ``behave`` says."""
    program = tmp_path / "bin" / "sacct"
    program.parent.mkdir()
    program.write_text(SACCT)
    program.chmod(0o755)
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("FOLDER", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (tmp_path / "behave").write_text(f"printf '{HEADER}\\n1{US}1{US}a{US}COMPLETED{US}5{US}\\n'\n")
    return live.Slurm(str(program))


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    def set_clock(seconds: float) -> None:
        monkeypatch.setattr(live.time, "time", lambda: seconds)

    set_clock(NOON)
    return set_clock


def calls(tmp_path: Path) -> list[str]:
    """Days that sacct was asked for since the last look."""
    log = tmp_path / "log"
    lines = log.read_text().splitlines() if log.exists() else []
    log.write_text("")
    return [line.partition("--starttime=")[2][:10] for line in lines if "--starttime" in line]


def put(folder: Path, name: str, script: str) -> None:
    path = folder / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.usefixtures("at")
def test_each_day_is_requested_by_itself_with_the_settings_that_lose_nothing(tmp_path: Path, slurm: live.Slurm) -> None:
    live.fetch(tmp_path / "kept", slurm, date(2026, 3, 8))
    lines = (tmp_path / "log").read_text().splitlines()
    assert all(line.startswith("UTC|%s|0|--allusers --duplicates --parsable2") for line in lines)
    assert all(
        f"--delimiter={US} --format=JobIDRaw,JobID,JobName,State,Submit,Flags --starttime" in line for line in lines
    )
    windows = [line.partition("--starttime=")[2].partition(" --state=") for line in lines]
    assert [w[0] for w in windows] == [
        f"2026-03-{day:02}T00:00:00 --endtime=2026-03-{day:02}T23:59:59" for day in (8, 9, 10)
    ]
    running = [{"PD", "R", "S"} <= set(w[2].split(",")) for w in windows]
    assert running == [False, False, True], "only the day at hand has jobs that have not ended"
    assert all({"CD", "CA", "RQ", "PR", "NF"} <= set(w[2].split(",")) for w in windows)


def test_days_that_are_over_are_requested_once_and_today_every_time(
    tmp_path: Path, slurm: live.Slurm, at: Callable[[float], None]
) -> None:
    folder = tmp_path / "kept"
    live.fetch(folder, slurm, date(2026, 3, 8))
    assert calls(tmp_path) == ["2026-03-08", "2026-03-09", "2026-03-10"]
    found = live.fetch(folder, slurm, date(2026, 3, 8))
    assert calls(tmp_path) == ["2026-03-10"]
    assert [f.name for f in found.files] == [f"sacct-2026-03-{day:02}.txt.zst" for day in (8, 9, 10)]
    at(NOON + 86400)
    live.fetch(folder, slurm, date(2026, 3, 11))
    assert calls(tmp_path) == ["2026-03-10", "2026-03-11"], "the day that was half over is asked for again"
    at(NOON + 3 * 86400)
    live.fetch(folder, slurm, None)
    assert calls(tmp_path) == ["2026-03-11", "2026-03-12", "2026-03-13"], "without --since it goes on"


def test_a_day_is_not_whole_until_an_hour_after_its_end(
    tmp_path: Path, slurm: live.Slurm, at: Callable[[float], None]
) -> None:
    midnight = datetime(2026, 3, 10, tzinfo=UTC).timestamp()
    at(midnight + fetched_days.SETTLE_S - 1)
    live.fetch(tmp_path / "kept", slurm, date(2026, 3, 9))
    calls(tmp_path)
    at(midnight + fetched_days.SETTLE_S)
    live.fetch(tmp_path / "kept", slurm, date(2026, 3, 9))
    assert calls(tmp_path) == ["2026-03-09", "2026-03-10"]
    live.fetch(tmp_path / "kept", slurm, date(2026, 3, 9))
    assert calls(tmp_path) == ["2026-03-10"]


@pytest.mark.usefixtures("at")
def test_a_day_whose_file_is_gone_is_requested_again(tmp_path: Path, slurm: live.Slurm) -> None:
    live.fetch(tmp_path / "kept", slurm, date(2026, 3, 8))
    calls(tmp_path)
    (tmp_path / "kept" / "sacct-2026-03-08.txt.zst").unlink()
    live.fetch(tmp_path / "kept", slurm, date(2026, 3, 8))
    assert calls(tmp_path) == ["2026-03-08", "2026-03-10"]


@pytest.mark.usefixtures("at")
def test_a_failure_shows_sacct_s_message_and_keeps_the_days_before(tmp_path: Path, slurm: live.Slurm) -> None:
    (tmp_path / "behave").write_text(
        'case "$*" in *2026-03-09*) printf half; printf "sacct: error: no dbd\nmore\n" >&2; exit 1;; esac\n'
        + f"echo '{HEADER}'\n"
    )
    with pytest.raises(InputError, match=r"exit 1: sacct: error: no dbd$"):
        live.fetch(tmp_path / "kept", slurm, date(2026, 3, 8))
    assert {p.name for p in (tmp_path / "kept").iterdir()} == {".fetched.json", "sacct-2026-03-08.txt.zst"}
    (tmp_path / "behave").write_text(f"echo '{HEADER}'\n")
    calls(tmp_path)
    live.fetch(tmp_path / "kept", slurm, date(2026, 3, 8))
    assert calls(tmp_path) == ["2026-03-09", "2026-03-10"]


def test_without_sacct_it_reports_it(tmp_path: Path) -> None:
    with pytest.raises(DependencyError, match="no sacct here"):
        live.fetch(tmp_path / "kept", live.Slurm(str(tmp_path / "sacct")), date(2026, 3, 8))
    assert not (tmp_path / "kept").exists()


@pytest.mark.usefixtures("at")
def test_days_that_do_not_fit_together_are_refused(tmp_path: Path, slurm: live.Slurm) -> None:
    for since, until in ((None, None), (date(2026, 3, 9), date(2026, 3, 8)), (date(2026, 3, 11), None)):
        with pytest.raises(UsageError):
            live.fetch(tmp_path / "kept", slurm, since, until)
    assert calls(tmp_path) == []


@pytest.mark.usefixtures("at")
def test_a_damaged_note_is_reported_with_what_to_do(tmp_path: Path, slurm: live.Slurm) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    for damaged in ("{", "[]", '{"x": 1}', '{"2026-03-08": null}'):
        (folder / ".fetched.json").write_text(damaged)
        with pytest.raises(InputError, match="damaged") as raised:
            live.fetch(folder, slurm, date(2026, 3, 8))
        assert "remove" in str(raised.value.hint)


@pytest.mark.usefixtures("at")
def test_held_jobs_are_requested_by_id_and_only_their_pending_records_stored(tmp_path: Path, slurm: live.Slurm) -> None:
    rows = "\\n".join([
        f"9{US}9_1{US}a\\nb{US}COMPLETED{US}5{US}",
        f"9{US}9_[2-3]{US}two\\nlines{US}PENDING{US}5{US}Main",
        f"20{US}20{US}x{US}RUNNING{US}5{US}",
        "",
    ])  # fmt: skip
    (tmp_path / "behave").write_text(
        f'case "$*" in *--jobs=9,20) printf "{rows}";; *--start*) echo "{HEADER}";; *) exit 1; esac\n'
    )
    put(tmp_path, "squeue", "printf '20 N/A\\n9 N/A\\n30 1773100000\\nCLUSTER: x\\n'")
    found = live.fetch(tmp_path / "kept", slurm, date(2026, 3, 10))
    with zstandard.open(tmp_path / "kept" / "sacct-2026-03-10.txt.zst", "rt") as file:
        assert file.read() == f"{HEADER}\n9{US}9_[2-3]{US}two\nlines{US}PENDING{US}5{US}Main\n"
    assert not [note for note in found.notes if "held" in note]


@pytest.mark.usefixtures("at")
def test_unavailable_answers_are_reported(tmp_path: Path, slurm: live.Slurm) -> None:
    put(tmp_path, "scontrol", 'case "$*" in *node*) echo NodeName=n1;; *) echo "no controller" >&2; exit 1;; esac')
    found = live.fetch(tmp_path / "kept", slurm, date(2026, 3, 10))
    assert (tmp_path / "kept" / "nodes.txt").read_text() == "NodeName=n1\n"
    assert [note.partition(":")[0] for note in found.notes] == [
        "jobs that are held now are left out", "no events", "no config", "no partitions", "no topology",
    ]  # fmt: skip
    assert "no controller" in found.notes[2]


@pytest.mark.usefixtures("at")
def test_another_cluster_is_named_to_every_program(tmp_path: Path, slurm: live.Slurm) -> None:
    for name in ("squeue", "scontrol", "sacctmgr"):
        put(tmp_path, name, f'echo "{name} $*" >>"$LOG"')
    other = live.Slurm(slurm.sacct, "green")
    assert live.cluster_name(other) == "green"
    live.fetch(tmp_path / "kept", other, date(2026, 3, 10))
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) == 7
    assert all("--clusters=green" in line or ("sacctmgr" in line and "cluster=green" in line) for line in lines)


def test_the_cluster_is_called_what_slurm_calls_it(tmp_path: Path, slurm: live.Slurm) -> None:
    assert live.cluster_name(slurm) == "slurm"
    put(tmp_path, "scontrol", "printf 'Configuration data\\nClusterName             = green\\n'")
    assert live.cluster_name(slurm) == "green"


@pytest.mark.usefixtures("at")
def test_a_plan_asks_for_nothing(tmp_path: Path, slurm: live.Slurm) -> None:
    commands = live.plan(tmp_path / "kept", slurm, date(2026, 3, 9))
    assert calls(tmp_path) == []
    assert not (tmp_path / "kept").exists()
    assert len(commands) == 2
    shown = subprocess.run(["bash", "-c", commands[0]], capture_output=True, text=True, check=True)
    assert shown.stdout == f"{HEADER}\n1{US}1{US}a{US}COMPLETED{US}5{US}\n"
    assert f"--delimiter={US} " in (tmp_path / "log").read_text()


def test_ctrl_c_keeps_whole_days_and_ends_sacct(tmp_path: Path, slurm: live.Slurm, root: Path) -> None:
    """In a process of its own; sacct hangs, as it does where slurmdbd is busy."""
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    (tmp_path / "behave").write_text(
        f'case "$*" in *starttime={yesterday}*) echo $$ >"$FOLDER/pid"; exec sleep 60;; esac\necho "{HEADER}"\n'
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuctl", "ingest", "--from", "sacct", "--sacct", slurm.sacct, "--since",
         str(yesterday - timedelta(days=1)), "--db", str(tmp_path / "x.duckdb")],
        env={**os.environ, "PYTHONPATH": str(root)}, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert "are saved in" in err
    assert "Traceback" not in err
    folder = tmp_path / "x.sacct" / "slurm"
    assert {p.name for p in folder.iterdir()} == {
        ".fetched.json", f"sacct-{yesterday - timedelta(days=1)}.txt.zst",
    }  # fmt: skip
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (
            ["--from", "sacct", "--since", "2026-03-08", "--sacct", "/nowhere/sacct"],
            5,
            "hint: run this on a host with Slurm's",
        ),
        (["--from", "sacct", "--since", "2026-03-08", "--until", "2026-03-08"], 3, "exit 3: no cluster here"),
        (["--from", "sacct"], 2, "--since YYYY-MM-DD"),
        (["--from", "sacct", "--since", "yesterday"], 2, "'yesterday'"),
        (["--from", "sacct", "--since", "2026-03-08", "--timeout", "nan"], 2, "'nan' is not a finite number"),
        (["--from", "yarn", "--url", "http://rm:8088", "--timeout", "1e9"], 2, "--timeout 1e+09: expected"),
        (["--timeout", "5", "logs"], 2, "need --from"),
        (["--from", "slurm"], 2, "'slurm'"),
        (["--since", "2026-03-08"], 2, "--from sacct"),
        (["--from", "sacct", "--since", "2026-03-08", "--url", "http://rm:8088"], 2, "--url does not go"),
        (["--from", "yarn", "--since", "2026-03-08", "--url", "http://rm:8088"], 2, "--since does not go"),
        (["--from", "yarn"], 2, "--url http://rm:8088"),
        (["--from", "yarn", "--url", "http://127.0.0.1:1"], 3, "cannot be fetched"),
        (["--url", "http://rm:8088"], 2, "need --from"),
        (["--from", "sacct", "--since", "2026-03-08", "logs"], 2, "omit logs"),
        (["--from", "sacct", "--since", "2026-03-08", "--clusters", "a,--x"], 2, "'a,--x': not a comma-separated list"),
        (["--from", "sacct", "--since", "2026-03-08", "--clusters", "a,b", "--cluster", "c"], 2, "omit --cluster"),
    ],
)
def test_faults_of_the_command_line_end_with_their_code(
    tmp_path: Path, slurm: live.Slurm, gpuctl: Gpuctl, arguments: list[str], code: int, says: str
) -> None:
    (tmp_path / "behave").write_text("echo no cluster here >&2; exit 3\n")
    where = ["--sacct", slurm.sacct] if "sacct" in arguments and "--sacct" not in arguments else []
    done = gpuctl("ingest", *arguments, *where, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "gpuctl.duckdb").exists()


def test_a_dry_run_prints_the_commands_and_writes_nothing(tmp_path: Path, slurm: live.Slurm, gpuctl: Gpuctl) -> None:
    options = ("--from", "sacct", "--sacct", slurm.sacct, "--since", "2026-03-08", "--until", "2026-03-09")
    done = gpuctl("ingest", *options, "--dry-run", cwd=tmp_path)
    assert [line.rpartition("--starttime=")[2][:10] for line in done.stdout.splitlines()[1:]] == [
        "2026-03-08", "2026-03-09",
    ]  # fmt: skip
    assert not list(tmp_path.glob("gpuctl.*"))


@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ("sacct: error: slurmdbd is away", "its first line is not a header of sacct: 'sacct: error: slurmdbd is away'"),
        ("", "not even a header"),
        (HEADER, None),
        (f"{HEADER}\n1{US}1{US}a{US}COMPLETED{US}5{US}\n2{US}2{US}b{US}COMPL", "the last record is cut off: '2"),
        (f"{HEADER}\n1{US}1{US}a{US}b{US}COMPLETED{US}5{US}\n", "a record of 7 cells, expected 6: '1'"),
        (f"{HEADER}\n1{US}1{US}a{US}" + "x" * (2 << 20), "a record of more than 1 MiB"),
        (f"{HEADER}\n1{US}1{US}a\nname\nof lines{US}COMPLETED{US}5{US}\n", None),
    ],
)
@pytest.mark.usefixtures("at")
def test_a_day_is_stored_only_when_it_is_what_sacct_prints(
    tmp_path: Path, slurm: live.Slurm, printed: str, found: str | None
) -> None:
    (tmp_path / "answer").write_text(printed + ("\n" if printed == HEADER else ""))
    (tmp_path / "behave").write_text('cat "$FOLDER/answer"\n')
    folder = tmp_path / "kept"
    if found is None:
        live.fetch(folder, slurm, date(2026, 3, 8), date(2026, 3, 8))
        assert calls(tmp_path) == ["2026-03-08"]
        return
    with pytest.raises(InputError) as raised:
        live.fetch(folder, slurm, date(2026, 3, 8), date(2026, 3, 8))
    assert raised.value.message.startswith(f"sacct of 2026-03-08: no output of sacct: {found}")
    assert list(folder.iterdir()) == []
    (tmp_path / "behave").write_text(f"echo '{HEADER}'\n")
    live.fetch(folder, slurm, date(2026, 3, 8), date(2026, 3, 8))
    assert calls(tmp_path) == ["2026-03-08", "2026-03-08"], "it is asked for again"


def test_a_day_of_other_days_records_is_not_stored() -> None:
    day = datetime(2026, 3, 8, tzinfo=UTC).timestamp()
    for end, stored in ((day + 5, True), (day - 86_400, False), (day + 2 * 86_400, False)):
        check = DayCheck(("JobID", "End", "Flags"), b"|", (day, day + 86_399), "sacct of 2026-03-08")
        for piece in (b"JobID|E", b"nd|Flags\n", b"1|Unknown|\n", f"2|{end:.0f}|\n".encode()):
            check.feed(piece)
        if stored:
            check.end()
        else:
            with pytest.raises(InputError, match="1 records, of which none ended on that day"):
                check.end()


@pytest.mark.parametrize(
    ("script", "code", "says"),
    [
        ('#!/bin/sh\ncase "$*" in *help*) exec cat /dev/zero;; esac', 3, "sacct printed more than 1 MiB (the names of"),
        ("echo no interpreter", 3, "sacct cannot be run: Exec format error"),
        ("#!/bin/sh\nsleep 60", 3, "sacct did not answer within 0.5 s (the names of its columns) and was stopped"),
        ('#!/bin/sh\ncase "$*" in *help*) echo JobID State; exit;; esac; sleep 60', 3, "(the records of 2026-03-08)"),
        ("#!/bin/sh\necho JobID", 3, "--helpformat names no column State"),
    ],
)
def test_a_sacct_that_is_none_ends_with_a_message(
    tmp_path: Path, slurm: live.Slurm, gpuctl: Gpuctl, script: str, code: int, says: str
) -> None:
    Path(slurm.sacct).write_text(script + "\n")
    options = ("--from", "sacct", "--sacct", slurm.sacct, "--since", "2026-03-08", "--until", "2026-03-08")
    for more in ((), ("--dry-run",)) if "help" not in script else ((),):
        done = gpuctl("ingest", *options, "--timeout", "0.5", *more, cwd=tmp_path, check=False)
        assert (done.returncode, done.stdout) == (code, "")
        assert says in done.stderr
        assert "hint: " in done.stderr
    assert not (tmp_path / "gpuctl.duckdb").exists()
