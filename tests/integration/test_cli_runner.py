"""Commands that the tests run in their own process (tests/cli_runner.py) end as those of users do."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import cli_runner

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., subprocess.CompletedProcess[str]]

OWN = """import sys
from gpuctl.replay.contract.python_policy import PythonPolicy

class Raises(PythonPolicy):
    def decide(self, view):
        raise KeyError("not there")

class Exits(PythonPolicy):
    def decide(self, view):
        sys.exit(7)
"""
REPLAY = ("replay", "jobs.csv", "--cluster", "4x8", "--policy")
COMMANDS = {
    "no command": ([], {}),
    "version": (["--version"], {}),
    "usage": (["analyze", "--nosuch"], {}),
    "no input": (["analyze", "absent"], {}),
    "a check that fails": (["report", "a.json", "--fail-if", "overview.jobs > 0"], {}),
    "a bug": ([*REPLAY, "own.py:Raises"], {}),
    "a policy that exits": ([*REPLAY, "own.py:Exits"], {}),
    "analyze": (
        ["analyze", "logs/sacct.txt", "--db", "s.duckdb", "--section", "queueing", "--csv", "tables", "--json"],
        {},
    ),
    "a warning that is logged": (["ingest", "odd.txt", "--db", "s.duckdb"], {}),
    "another time zone": (["profile", "--help"], {"TZ": "Asia/Kolkata"}),
    "a narrow terminal": (["policies"], {"COLUMNS": "50"}),
}


@pytest.fixture
def folder(sample_data: Path, tmp_path: Path) -> Callable[[], Path]:
    """New folders with the same files."""

    def made() -> Path:
        place = tmp_path / f"folder{len(list(tmp_path.iterdir()))}"
        place.mkdir()
        for name, source in {"jobs.csv": "jobs.csv", "logs": "failures"}.items():
            (place / name).symlink_to(sample_data / source)
        lines = (sample_data / "failures" / "sacct.txt").read_text().splitlines()[:50]
        (place / "odd.txt").write_text(
            "".join(f"{line}|{'1' if number else 'Odd'}\n" for number, line in enumerate(lines))
        )
        (place / "a.json").write_text("{}")
        (place / "own.py").write_text(OWN)
        return place

    return made


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_ends_in_this_process_as_in_its_own(name: str, gpuctl: Run, folder: Callable[[], Path]) -> None:
    words, environment = COMMANDS[name]
    ends = []
    for own in (False, True):
        place = folder()
        done = gpuctl(*words, cwd=place, env=environment, check=False, own_process=own)
        texts = [_without_times(text.replace(str(place), "FOLDER")) for text in (done.stdout, done.stderr)]
        written = {file.relative_to(place).as_posix() for file in place.rglob("*") if "__pycache__" not in file.parts}
        ends.append((done.returncode, *texts, written))
    assert ends[0] == ends[1]
    assert ("columns that no release of sacct has" in ends[0][2]) == (name == "a warning that is logged")


def _without_times(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?(e-\d+)? s\b|\d{4}-\d\d-\d\d[ T][\d:.]+\S*", "TIME", text)


def test_this_process_stays_as_it_was(tmp_path: Path) -> None:
    def state() -> list[object]:
        streams = [sys.stdin, sys.stdout, sys.stderr, sys.stdout.encoding, sys.stdout.errors]
        return [*streams, sys.argv, sys.path[:], Path.cwd(), dict(os.environ), signal.getsignal(signal.SIGINT)]

    before = state()
    assert cli_runner.run_command("formats", cwd=tmp_path, env={"TZ": "Asia/Kolkata"}).returncode == 0
    assert cli_runner.run_command("nosuch", cwd=tmp_path).returncode == 2
    assert state() == before
