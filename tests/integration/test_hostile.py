"""What is damaged, full or crafted ends in a message and a code of its own, in every command: never in 70."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli_runner import run_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Run = Callable[..., subprocess.CompletedProcess[str]]

FIRST = int(os.environ.get("GPUCTL_FUZZ_SEED") or "0")
SEEDS = range(FIRST, FIRST + max(4, int(os.environ.get("GPUCTL_FUZZ_CASES", "4"))))
"""Damages that are tried; ``make fuzz`` tries others."""
COMMANDS = {
    "analyze": ["analyze", "STORE", "--html", "page.html", "--json"],
    "explain": ["explain", "application_1506638472019_00794", "STORE"],
    "replay": ["replay", "STORE", "--policy", "fifo", "--json"],
    "report": ["report", "STORE", "--html", "page.html"],
    "train": ["train", "runtime", "STORE", "-o", "model"],
    "predict": ["predict", "runtime", "STORE"],
    "doctor": ["doctor", "--db", "STORE"],
    "ingest": ["ingest", "LOGS", "--db", "STORE", "--cluster", "other"],
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, sample_data: Path) -> bytes:
    """The bytes of a small store."""
    folder = tmp_path_factory.mktemp("whole")
    logs = folder / "logs"
    logs.mkdir()
    jobs = json.loads((sample_data / "philly" / "cluster_job_log").read_text())
    (logs / "cluster_job_log").write_text("[\n" + ",\n".join(map(json.dumps, jobs[:250])) + "\n]\n")
    shutil.copy(sample_data / "philly" / "cluster_machine_list", logs)
    store = folder / "s.duckdb"
    code, said = run(["-q", "ingest", str(logs), "--db", str(store)])
    assert code == 0, said
    return store.read_bytes()


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: list[str]) -> tuple[int, str]:
    """Run a command in this process; its exit code and what it said on stderr."""
    done = run_command(*command)
    return done.returncode, done.stderr


def damaged(data: bytes, seed: int) -> bytes:
    """The store cut off, with bits turned, with pages of nothing, or with another byte in its headers."""
    draw, spoilt = random.Random(seed), bytearray(data)
    what = seed % 4
    if what == 0:
        return data[: draw.randrange(len(data))]
    if what == 1:
        for _ in range(draw.choice((1, 3, 30))):
            spoilt[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif what == 2:
        at, size = draw.randrange(0, len(data), 4096), 4096 * draw.choice((1, 4, 64))
        spoilt[at : at + size] = bytes(len(spoilt[at : at + size]))
    else:
        spoilt[draw.randrange(12_288)] = draw.randrange(256)
    return bytes(spoilt)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_damaged_store_is_reported_by_every_command(whole: bytes, sample_data: Path, inside: Path, name: str) -> None:
    places = {"STORE": "s.duckdb", "LOGS": str(sample_data / "philly" / "cluster_machine_list")}
    command = ["-q", *(places.get(word, word) for word in COMMANDS[name])]
    for seed in SEEDS:
        for left in inside.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        (inside / "s.duckdb").write_bytes(damaged(whole, seed))
        code, said = run(command)
        # what no damage has reached works; the store has little to learn from and no profiles
        assert code in {0, 1 if name == "doctor" else 0, 3 if name in {"train", "predict"} else 0, 4}, (seed, said)
        if code == 4:
            assert "hint: " in said, (seed, said)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("command", [["formats"], ["--help"], ["policies", "--json"], ["--version"]])
def test_a_full_disk_behind_standard_output(root: Path, command: list[str]) -> None:
    program = [sys.executable, "-c", "from gpuctl.cli.main import main; main()", *command]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, text=True, cwd=root, check=False)
    assert done.returncode == 3, done.stderr
    assert "gpuctl: standard output: cannot be written: No space left on device" in done.stderr
    assert "internal error" not in done.stderr
    assert "Exception ignored" not in done.stderr


LIMITED = "import resource as r, sys; r.setrlimit(r.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2); "


@pytest.mark.parametrize(
    ("most", "command", "code", "said"),
    [
        (200_000, ["ingest", "LOGS", "--db", "s.duckdb"], 4, "its disk is full"),
        (700_000, ["ingest", "LOGS", "--db", "s.duckdb"], 4, "its disk is full"),
        (4_000, ["replay", "JOBS", "--cluster", "8x8", "--policy", "fifo", "--decisions", "d"], 2, "--decisions d"),
        (4_000, ["replay", "JOBS", "--cluster", "8x8", "--policy", "fifo", "--store", "r.duckdb"], 4, "disk is full"),
        (4_000, ["replay", "JOBS", "--cluster", "8x8", "--policy", "fifo", "--csv", "d"], 2, "cannot be written"),
    ],
)
def test_a_full_disk_behind_a_file(
    sample_data: Path, root: Path, tmp_path: Path, most: int, command: list[str], code: int, said: str
) -> None:
    """A limit on the size of files stands for it: it fails at the same calls."""
    places = {"LOGS": str(sample_data / "philly"), "JOBS": str(sample_data / "jobs.csv")}
    program = LIMITED + "from gpuctl.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program, str(most), "-q", *(places.get(word, word) for word in command)],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(root)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "hint: " in done.stderr
    if (tmp_path / "d").exists():
        assert list((tmp_path / "d").glob(".*")) == []


@pytest.mark.parametrize("at", [20, 150, 600, -6])
@pytest.mark.parametrize(
    "start", [["replay", "--policy", "fifo", "--cluster", "8x8"], ["train", "runtime", "-o", "model"]]
)
def test_a_damaged_table_of_jobs(sample_data: Path, inside: Path, at: int, start: list[str]) -> None:
    data = bytearray(gzip.compress((sample_data / "jobs.csv").read_bytes(), mtime=0))
    data[at] ^= 0x55
    (inside / "jobs.csv.gz").write_bytes(data)
    code, said = run([*start, "jobs.csv.gz"])
    assert code == 3, said
    assert "jobs.csv.gz" in said
