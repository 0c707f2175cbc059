"""An ingest that is killed at any moment leaves a sound store, and the next one finishes its work."""

from __future__ import annotations

import gzip
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import WrongSchemaError
from tests.example_counts import SEARCHING
from tests.fake_format import contents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KILLS = 30 if SEARCHING else 5
PRESSES = 12 if SEARCHING else 3
ROUNDS = 5
# the interpreter's own start, and that of our modules, is not ours to answer for
_PROGRAM = "import os; from gpuctl.cli.main import main; open(os.environ['BEGUN'], 'x').close(); main()"


@pytest.fixture(scope="module")
def logs(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs and a MB of telemetry: enough for a signal to come while they are read."""
    folder = tmp_path_factory.mktemp("kill") / "philly"
    folder.mkdir()
    source = sample_data / "philly"
    shutil.copy(source / "cluster_machine_list", folder)
    shutil.copy(source / "cluster_job_log", folder)
    telemetry = gzip.decompress((source / "cluster_gpu_util.gz").read_bytes())
    (folder / "cluster_gpu_util").write_bytes(telemetry[: telemetry.index(b"\n", len(telemetry) // 3) + 1])
    return folder


@contextmanager
def _running(words: list[str], root: Path) -> Iterator[subprocess.Popen[str]]:
    """The program, as soon as its `main` is called."""
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, *words],
            env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin", "BEGUN": f"{folder}/begun"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        try:
            _wait_for(Path(folder, "begun"), process)
            yield process
        finally:
            process.kill()


def _wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, f"no {path} after 60 s"
        time.sleep(0.002)


def _left(db: Path) -> dict[str, list[tuple[object, ...]]]:
    """What a killed ingest left in a store; nothing where it was killed before it had made the tables."""
    try:
        return contents(db)
    except WrongSchemaError as error:
        if "an empty database" not in error.message:
            raise
        return {}


def _lasts(process: subprocess.Popen[str], most_s: float) -> float | None:
    """After how many seconds a program ended by itself; None where it is still running after the most."""
    begun = time.monotonic()
    try:
        process.communicate(timeout=most_s)
    except subprocess.TimeoutExpired:
        return None
    return time.monotonic() - begun


@pytest.mark.slow
def test_a_killed_ingest_leaves_a_sound_store(
    logs: Path, tmp_path: Path, kill_gpuctl: Callable[..., float | None]
) -> None:
    whole = tmp_path / "whole.duckdb"
    took = kill_gpuctl("ingest", logs, "--db", whole, after_s=200) or 200
    expected = contents(whole)
    assert len(expected["sources"]) == 3
    chance = random.Random(20171009)
    sources_left = set()
    for number in range(KILLS * ROUNDS):
        if number >= KILLS and len(sources_left) > 1:
            break
        db = tmp_path / f"{number}.duckdb"
        moment = took * (number % KILLS + chance.random()) / KILLS
        # a machine that was busy at first may be quicker now, or slower
        took = kill_gpuctl("ingest", logs, "--db", db, after_s=moment) or took
        took *= 2 if number % KILLS == KILLS - 1 else 1
        if db.exists():
            left = _left(db)
            sources_left.add(len(left.get("sources", [])))
            for row in left.get("sources", []):
                assert row in expected["sources"], "a source is in whole or not at all"
        ingest([logs], db)
        assert contents(db) == expected, f"kill {number}"
        db.unlink()
    assert len(sources_left) > 1, "the kills all fell at the same stage: choose other moments"


@pytest.mark.slow
def test_ctrl_c_ends_with_130_and_keeps_whole_sources(logs: Path, tmp_path: Path, root: Path) -> None:
    whole = tmp_path / "whole.duckdb"
    ingest([logs], whole)
    db = tmp_path / "stopped.duckdb"
    with _running(["ingest", str(logs), "--db", str(db)], root) as process:
        _wait_for(db, process)
        time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "gpuctl: interrupted" in err
    # where the store was still being made, there is no file at hand yet
    assert ("the file at hand was rolled back" in err) == ("interrupted" in out)
    ingest([logs], db)
    assert contents(db) == contents(whole)


@pytest.mark.slow
# an analysis that keeps its store ingests first
@pytest.mark.parametrize(
    "command",
    [*([("ingest", "--db"), ("analyze",)] if SEARCHING else []), ("analyze", "--section", "queueing", "--db")],
)
def test_ctrl_c_at_any_moment_is_reported_and_leaves_a_sound_store(
    logs: Path, tmp_path: Path, root: Path, command: tuple[str, ...]
) -> None:
    """Also twice in a row: people press again where the first one takes a moment."""
    db = tmp_path / "stopped.duckdb"
    words = [command[0], str(logs), *command[1:], *([str(db)] if command[1:] else [])]
    with _running(words, root) as process:
        took = _lasts(process, 200) or 200
    known = contents(db)["sources"] if db.exists() else []
    chance = random.Random(20171009)
    stopped = 0
    for number in range(PRESSES * ROUNDS):
        if number >= PRESSES and stopped >= PRESSES // 3:
            break
        db.unlink(missing_ok=True)
        with _running(words, root) as process:
            # a machine that was busy at first, or had yet to compile what is compiled once, is quicker now
            took = _lasts(process, took * (number % PRESSES + chance.random()) / PRESSES) or took
            for _ in range(1 + number % 2):
                process.send_signal(signal.SIGINT)
                time.sleep(0.02)
            _, err = process.communicate(timeout=60)
        assert process.returncode in {0, 130}, err
        assert "internal error" not in err
        assert ("gpuctl: interrupted" in err) == (process.returncode == 130), err
        stopped += process.returncode == 130
        if db.exists():
            assert all(row in known for row in _left(db).get("sources", []))
    assert stopped >= PRESSES // 3, "the signals fell after the end: choose other moments"
