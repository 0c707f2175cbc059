"""An ingest that is killed at any moment leaves a sound store, and the next one finishes its work."""

from __future__ import annotations

import gzip
import random
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from gpuctl.ingest.load import ingest
from tests.fake_format import contents

if TYPE_CHECKING:
    from pathlib import Path

KILLS = 15
PRESSES = 6
# a script that runs in the background makes its children deaf to SIGINT
_PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from gpuctl.cli.main import main; main()"
)


@pytest.fixture(scope="module")
def logs(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Jobs and a few MB of telemetry, compressed and not."""
    folder = tmp_path_factory.mktemp("kill") / "philly"
    folder.mkdir()
    source = sample_data / "philly"
    shutil.copy(source / "cluster_machine_list", folder)
    shutil.copy(source / "cluster_job_log", folder)
    telemetry = gzip.decompress((source / "cluster_gpu_util.gz").read_bytes())
    (folder / "cluster_gpu_util").write_bytes(telemetry)
    return folder


def _start(logs: Path, db: Path, root: Path) -> subprocess.Popen[str]:
    return _popen(["ingest", str(logs), "--db", str(db)], root)


def _popen(words: list[str], root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *words],
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_a_killed_ingest_leaves_a_sound_store(logs: Path, tmp_path: Path, root: Path) -> None:
    whole = tmp_path / "whole.duckdb"
    begun = time.monotonic()
    with _start(logs, whole, root) as process:
        assert process.wait() == 0
    took = time.monotonic() - begun
    expected = contents(whole)
    assert len(expected["sources"]) == 3
    chance = random.Random(20171009)
    sources_left = set()
    for number in range(KILLS):
        db = tmp_path / f"{number}.duckdb"
        with _start(logs, db, root) as process:
            time.sleep(took * (number + chance.random()) / KILLS)
            process.kill()
            process.wait()
        if db.exists():
            left = contents(db)
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
    with _start(logs, db, root) as process:
        deadline = time.monotonic() + 60
        while not db.exists() and time.monotonic() < deadline:
            time.sleep(0.005)
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
@pytest.mark.parametrize("command", [("ingest", "--db"), ("analyze",), ("analyze", "--db")])
def test_ctrl_c_at_any_moment_is_told_and_leaves_a_sound_store(
    logs: Path, tmp_path: Path, root: Path, command: tuple[str, ...]
) -> None:
    """Also twice in a row: people press again where the first one takes a moment."""
    db = tmp_path / "stopped.duckdb"
    words = [command[0], str(logs), *command[1:], *([str(db)] if command[1:] else [])]
    whole = tmp_path / "whole.duckdb"
    ingest([logs], whole)
    begun = time.monotonic()
    with _popen(words, root) as process:
        process.communicate()
    took = time.monotonic() - begun
    chance = random.Random(20171009)
    stopped = 0
    for number in range(PRESSES):
        db.unlink(missing_ok=True)
        with _popen(words, root) as process:
            # the interpreter's own start is not ours
            time.sleep(0.25 + (took - 0.25) * (number + chance.random()) / PRESSES)
            for _ in range(1 + number % 2):
                process.send_signal(signal.SIGINT)
                time.sleep(0.02)
            _, err = process.communicate(timeout=60)
        assert process.returncode in {0, 130}, err
        assert "internal error" not in err
        assert ("gpuctl: interrupted" in err) == (process.returncode == 130), err
        stopped += process.returncode == 130
        if db.exists():
            known = contents(whole)["sources"]
            assert all(row in known for row in contents(db).get("sources", []))
    assert stopped >= PRESSES // 3, "the signals fell after the end: choose other moments"
