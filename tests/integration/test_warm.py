"""The forks that stand in for processes of gpuctl (tests/warm.py) do as processes do."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.store.database import Store
from tests import warm

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., subprocess.CompletedProcess[str]]

COMMANDS = {
    "no command": ([], {}),
    "usage": (["analyze", "--nosuch"], {}),
    "a check that failed": (["report", "a.json", "--fail-if", "overview.jobs > 0"], {}),
    "a bug": (["replay", "jobs.csv", "--cluster", "4x8", "--policy", "own.py:Own"], {}),
    "a policy that exits": (["replay", "jobs.csv", "--cluster", "4x8", "--policy", "own.py:Leaves"], {}),
    "a file of the folder": (["replay", "jobs.csv", "--cluster", "4x8", "--policy", "own.py:Beside", "-q"], {}),
    "analyze": (
        ["analyze", "logs/sacct.txt", "--db", "s.duckdb", "--section", "queueing", "--csv", "tables", "--json"],
        {},
    ),
    "a narrow terminal": (["policies"], {"COLUMNS": "50"}),
}
OWN = """import other
import sys
from gpuctl.replay.contract.python_policy import PythonPolicy

class Own(PythonPolicy):
    def decide(self, view):
        raise KeyError("not there")

class Leaves(PythonPolicy):
    def decide(self, view):
        sys.exit(7)

class Beside(PythonPolicy):
    def decide(self, view):
        for job in list(view.waiting):
            view.start(job)
"""


@pytest.fixture(scope="module")
def result(sample_data: Path, tmp_path_factory: pytest.TempPathFactory, gpuctl: Run) -> bytes:
    place = tmp_path_factory.mktemp("result") / "a.json"
    gpuctl("-q", "replay", sample_data / "jobs.csv", "--cluster", "4x8", "--policy", "fifo", "--json",
           "--output", place)  # fmt: skip
    return place.read_bytes()


@pytest.fixture
def inside(sample_data: Path, tmp_path: Path, result: bytes) -> Callable[[], Path]:
    """New folders with the same files."""

    def made() -> Path:
        folder = tmp_path / f"folder{len(list(tmp_path.glob('folder*')))}" / "inside"
        folder.mkdir(parents=True)
        for name, source in {"jobs.csv": "jobs.csv", "logs": "failures"}.items():
            (folder / name).symlink_to(sample_data / source)
        (folder / "a.json").write_bytes(result)
        (folder / "own.py").write_text(OWN)
        (folder / "other.py").write_text("")
        return folder

    return made


@pytest.mark.parametrize("name", COMMANDS)
def test_a_fork_ends_as_a_process_does(name: str, gpuctl: Run, inside: Callable[[], Path]) -> None:
    words, environment = COMMANDS[name]
    found: list[Any] = []
    for started in (False, True):
        place = inside()
        done = gpuctl(*words, cwd=place, env=environment, check=False, started=started)
        told = [text.replace(str(place), "FOLDER") for text in (done.stdout, done.stderr)]
        written = {file.relative_to(place).as_posix() for file in place.rglob("*") if "__pycache__" not in file.parts}
        found.append((done.returncode, *map(_without_times, told), written))
    assert found[0] == found[1]


def _without_times(text: str) -> list[str]:
    import re

    return [
        re.sub(r"\d+(\.\d+)?(e-\d+)? s\b|\d{4}-\d\d-\d\d[ T][\d:.]+\S*", "TIME", line) for line in text.splitlines()
    ]


def test_a_stand_in_reads_and_writes_what_the_shell_gives_it(stand_in: Path, root: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    lines = {
        # whoever goes before it has asked for anything, or is ended, leaves the others alone
        f"{stand_in} profile record --iface lo --for 60 &>out & sleep 0.3; kill -9 $!; wait $! 2>said; exit 5": 5,
        f"{stand_in} formats | head -1; echo ${{PIPESTATUS[0]}}": 0,
        f"{stand_in} analyze absent 2>said; exit $?": 3,
        f"{stand_in} --version >&- 2>&-; exit $?": 0,
        f"PYTHONUTF8=0 {stand_in} --version": 0,
    }
    for line, code in lines.items():
        done = subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == code, (line, done.stdout, done.stderr)
        assert done.stderr == "", line
    assert "no such file" in (tmp_path / "said").read_text()
    assert done.stdout.startswith("gpuctl ")


@pytest.mark.parametrize(
    "name", ["PYTHONHASHSEED", "NUMBA_DISABLE_JIT", "HOME", "XDG_CACHE_HOME", "LC_ALL", "OMP_NUM_THREADS"]
)
def test_what_is_read_at_the_start_needs_a_process(name: str) -> None:
    node = dict(os.environ)
    assert warm.can_run({**node, "COLUMNS": "1", "TZ": "Asia/Kolkata", "PATH": ""}, node)
    assert not warm.can_run({**node, name: "7"}, node)
    assert not warm.can_run(node, {**node, name: "7"})


def test_what_is_remembered_is_what_would_be_found(gpuctl: Run, inside: Callable[[], Path], tmp_path: Path) -> None:
    """A store of logs, the analysis of a store, and its charts; whatever has changed is found anew."""
    place, logs = inside(), "sacct.txt"
    lines = (place / "logs" / logs).read_text().splitlines(keepends=True)
    (place / logs).write_text("".join(lines[:200]))
    kept = tmp_path / "kept"
    kept.mkdir()
    remember = {warm.REMEMBER: str(kept)}

    def told(env: dict[str, str], source: str) -> list[str]:
        words = ["analyze", source, "--section", "queueing", "--json", "--html", "page.html"]
        done = gpuctl(*words, cwd=place, env=env)
        page = (place / "page.html").read_text()
        # a file's time is among what is said of the store
        return [re.sub(r"20\d\d-\d\d-\d\dT[\d:.]+Z", "", text) for text in (done.stdout, done.stderr, page)]

    plain = told({}, logs)
    assert "wait_cdf" in plain[0]
    assert "<svg" in plain[2]
    assert [told(remember, logs), told(remember, logs)] == [plain, plain]
    there = len(list(kept.iterdir()))
    gpuctl("ingest", logs, "--db", "s.duckdb", cwd=place, env=remember)
    gpuctl("ingest", logs, "--db", "t.duckdb", cwd=place, env=remember)
    assert (place / "s.duckdb").read_bytes() == (place / "t.duckdb").read_bytes()
    assert len(list(kept.iterdir())) == there + 1
    with Store(place / "s.duckdb", write=True) as store:
        store.execute("DELETE FROM job_rows WHERE job = (SELECT min(job) FROM jobs)")
    assert told(remember, "s.duckdb") == told({}, "s.duckdb") != told(remember, "t.duckdb")
    (place / logs).write_text("".join(lines[:201]))
    assert told(remember, logs) == told({}, logs) != plain


def test_too_long_is_ended(gpuctl: Run, sample_data: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        OWN.replace("sys.exit(7)", "import time; time.sleep(60)").replace("import other", "")
    )
    with pytest.raises(subprocess.TimeoutExpired):
        gpuctl("replay", sample_data / "jobs.csv", "--cluster", "4x8", "--policy", "own.py:Leaves", cwd=tmp_path,
               timeout_s=2)  # fmt: skip
