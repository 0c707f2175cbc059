"""``gpuctl sample``, against stand-ins for squeue and sinfo that each test writes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import ExitCode, InputError
from gpuctl.ingest.slurm import sampler
from gpuctl.ingest.slurm.site.samples import SINFO, SQUEUE
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., subprocess.CompletedProcess[str]]

PENDING = "7\x1f7\x1fPENDING\x1fReqNodeNotAvail, UnavailableNodes:gpu[001-002]\x1fgpu\x1f"
ARRAY = "11\x1f11_[3-4%2]\x1fPENDING\x1fPriority\x1fgpu\x1f"
RUNNING = "5\x1f5\x1fRUNNING\x1fNone\x1fgpu\x1fgpu001"
NODE = "gpu001\x1fmixed\x1fgpu:a100:8(S:0-1)\x1fgpu:a100:3(IDX:0-2)\x1fnone\x1f"


def stand_in(folder: Path, name: str, body: str) -> Path:
    """A program of that name; `body` is Python."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(
        f"#!{sys.executable}\nimport os, sys, time\nfrom pathlib import Path\nhere = Path({str(folder)!r})\n{body}\n"
    )
    path.chmod(0o755)
    return path


def cluster(folder: Path, *, jobs: str = "", nodes: str = "") -> dict[str, str]:
    """Stand-ins for both programs; the environment that finds them."""
    said = "\n".join((PENDING, ARRAY, RUNNING))
    stand_in(folder, "squeue", f"{jobs}\nprint({said!r})\nassert os.environ['SLURM_BITSTR_LEN'] == '0'")
    # sinfo lists a node once a partition
    stand_in(folder, "sinfo", f"{nodes}\nprint({NODE!r})\nprint({NODE!r})")
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def written(folder: Path, name: str) -> list[list[str]]:
    """The rows of all files of a program, whole lines only, without the header."""
    rows = []
    for path in sorted(folder.glob(f"{name}-*.txt")):
        text = path.read_text()
        assert text.endswith("\n")
        rows += [line.split("\x1f") for line in text.splitlines()]
    columns = list(SQUEUE if name == "squeue" else SINFO)
    assert rows[0] == columns
    body = [row for row in rows if row != columns]
    assert all(len(row) == len(columns) for row in body)
    return body


def test_samples_go_into_the_store(gpuctl: Run, tmp_path: Path) -> None:
    env = cluster(tmp_path / "bin")
    out = tmp_path / "samples"
    done = gpuctl("sample", "--interval", "0.1", "--count", "3", "--output", out, "--json", env=env)
    summary = json.loads(done.stdout)
    assert (summary["samples"], summary["failed"]) == (3, 0)
    assert sorted(summary["rows"].values()) == [3, 9]
    assert [row[1:] for row in written(out, "squeue")] == [r.split("\x1f") for r in (PENDING, ARRAY, RUNNING)] * 3
    assert len({row[0] for row in written(out, "squeue")}) == 3
    db = tmp_path / "g.duckdb"
    loaded = json.loads(gpuctl("ingest", out, "--db", db, "--json").stdout)
    assert {s["format"]: s["rows_rejected"] for s in loaded["sources"]} == {
        "slurm-squeue-samples": 0,
        "slurm-sinfo-samples": 0,
    }
    with Store(db) as store:
        reasons = store.frame(
            "SELECT reason, detail, array_task, count(*) AS n FROM queue_samples GROUP BY ALL ORDER BY ALL"
        )
        assert reasons.rows() == [
            ("Priority", None, "3", 3),
            ("Priority", None, "4", 3),
            ("ReqNodeNotAvail", "UnavailableNodes:gpu[001-002]", None, 3),
        ]
        assert (
            store.frame("SELECT machine, gpus_used, state FROM machine_samples").rows()
            == [("gpu001", 3.0, "mixed")] * 3
        )


def test_without_squeue_it_refuses_with_advice(gpuctl: Run, tmp_path: Path) -> None:
    done = gpuctl("sample", "--output", tmp_path / "s", env={"PATH": str(tmp_path)}, check=False)
    assert done.returncode == ExitCode.MISSING_DEPENDENCY
    assert "no program squeue on the PATH" in done.stderr
    assert "--squeue FILE" in done.stderr
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("--interval", "0"),
        ("--interval", "nan"),
        ("--count", "0"),
        ("--duration", "-1"),
        ("--count", "1", "--duration", "1"),
    ],
)
def test_wrong_usage(gpuctl: Run, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    env = cluster(tmp_path / "bin")
    assert gpuctl("sample", *arguments, cwd=tmp_path, env=env, check=False).returncode == ExitCode.USAGE


def test_a_duration_ends_it(gpuctl: Run, tmp_path: Path) -> None:
    env = cluster(tmp_path / "bin")
    gpuctl("sample", "--interval", "0.4", "--duration", "0.5", "--output", tmp_path / "s", env=env)
    assert len({row[0] for row in written(tmp_path / "s", "sinfo")}) in {1, 2}


def test_a_first_sample_that_fails_ends_it(gpuctl: Run, tmp_path: Path) -> None:
    env = cluster(tmp_path / "bin", jobs="sys.exit('slurm_load_jobs error: Unable to contact slurm controller')")
    done = gpuctl("sample", "--output", tmp_path / "s", env=env, check=False)
    assert done.returncode == ExitCode.BAD_INPUT
    assert "Unable to contact slurm controller" in done.stderr


def test_a_later_sample_that_fails_is_reported_and_tried_again(gpuctl: Run, tmp_path: Path) -> None:
    fails_second = "n = here / 'n'; n.write_text(n.read_text() + 'x' if n.exists() else 'x')\n"
    fails_second += "if n.read_text() == 'xx': sys.exit('controller is away')"
    env = cluster(tmp_path / "bin", jobs=fails_second)
    done = gpuctl("sample", "--interval", "0.1", "--count", "3", "--output", tmp_path / "s", "--json", env=env)
    assert json.loads(done.stdout)["failed"] == 1
    assert "controller is away" in done.stderr
    assert len(written(tmp_path / "s", "squeue")) == 6
    assert len(written(tmp_path / "s", "sinfo")) == 3


def test_notes_of_a_wrapper_are_left_out_and_told(gpuctl: Run, tmp_path: Path) -> None:
    env = cluster(tmp_path / "bin", jobs="print('the cluster is down on Monday')")
    done = gpuctl("sample", "--interval", "0.1", "--count", "1", "--output", tmp_path / "s", env=env)
    assert "1 lines of another shape left out" in done.stderr
    assert len(written(tmp_path / "s", "squeue")) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_at_any_time_it_leaves_whole_lines(
    gpuctl: Run, root: Path, tmp_path: Path, number: signal.Signals
) -> None:
    many = "print('\\n'.join(f'{i}\\x1f{i}\\x1fPENDING\\x1fPriority\\x1fgpu\\x1f' for i in range(20000)))"
    env = {**os.environ, **cluster(tmp_path / "bin", jobs=many), "PYTHONPATH": str(root)}
    out = tmp_path / "s"
    command = [sys.executable, "-m", "gpuctl", "sample", "--interval", "0.1", "--output", str(out)]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        until = time.monotonic() + 60
        while not list(out.glob("sinfo-*.txt")) and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(0.15)
        running.send_signal(number)
        running.communicate(timeout=60)
    expected = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.OK, signal.SIGKILL: -signal.SIGKILL}
    assert running.returncode == expected[number]
    files = {path.name: path.read_bytes() for path in out.iterdir()}
    cut = sum(not data.endswith(b"\n") for data in files.values())
    if number == signal.SIGKILL:
        # Linux ends the write of a killed process at a page's end: one line at most is not whole, and is told
        assert cut <= 1
        loaded = json.loads(gpuctl("ingest", out, "--db", tmp_path / "g.duckdb", "--json").stdout)
        lines = sum(data.count(b"\n") for data in files.values()) + cut
        assert sum(s["rows_loaded"] + s["rows_rejected"] for s in loaded["sources"]) == lines
        assert sum(s["rows_rejected"] for s in loaded["sources"]) <= cut
    else:
        assert cut == 0
        assert len(written(out, "squeue")) % 20003 == 0


def test_a_broken_last_line_is_closed_and_the_rest_stays_readable(tmp_path: Path) -> None:
    path = tmp_path / "squeue-2026-11-20.txt"
    path.write_bytes("\x1f".join(SQUEUE).encode() + b"\n1795208678.8\x1f7\x1f7\x1fPEN")
    sampler.append(path, SQUEUE, [b"1795208679.8\x1f" + PENDING.encode()])
    assert path.read_bytes().split(b"\n")[1:] == [
        b"1795208678.8\x1f7\x1f7\x1fPEN",
        b"1795208679.8\x1f" + PENDING.encode(),
        b"",
    ]


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "squeue.txt"
    sampler.append(path, SQUEUE, [b"first"])
    before = path.read_bytes()
    real = os.write

    def full(number: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(28, "No space left on device")
        return real(number, data[:10])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(InputError, match="No space left"):
        sampler.append(path, SQUEUE, [b"x" * 50])
    assert path.read_bytes() == before


def test_files_are_never_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("precious\n")
    (tmp_path / "squeue.txt").symlink_to(tmp_path / "target")
    with pytest.raises(InputError, match="cannot be written"):
        sampler.append(tmp_path / "squeue.txt", SQUEUE, [b"x"])
    assert (tmp_path / "target").read_text() == "precious\n"


def test_a_program_that_hangs_is_stopped(tmp_path: Path) -> None:
    program = stand_in(tmp_path / "bin", "squeue", "time.sleep(60)")
    begun = time.monotonic()
    with pytest.raises(InputError, match=r"did not answer within 0\.5 s"):
        sampler.ask(sampler.Program("squeue", str(program), (), SQUEUE), timeout_s=0.5)
    assert time.monotonic() - begun < 20


def test_nothing_a_job_is_called_reaches_a_shell(tmp_path: Path) -> None:
    program = stand_in(tmp_path / "bin", "squeue", "print(sys.argv[1:])")
    with pytest.raises(InputError, match="another shape"):
        sampler.ask(sampler.Program("squeue", str(program), ("$(touch owned)", "; ls"), SQUEUE))
    assert not Path("owned").exists()
