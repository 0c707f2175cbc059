"""Outputs never replace what a command reads, nor a trace store, nor each other."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def folder(gpuctl: Run, sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("places")
    shutil.copy(sample_data / "jobs.csv", place / "jobs.csv")
    (place / "logs").mkdir()
    shutil.copy(sample_data / "failures" / "sacct.txt", place / "logs" / "sacct.txt")
    gpuctl("-q", "ingest", "logs", "--db", "site.duckdb", cwd=place)
    (place / "expected.csv").write_text("job,run_time_s\nx,1\n")
    gpuctl("-q", "analyze", "site.duckdb", "--table", "overview", "--json", "--output", "old.json", cwd=place)
    return place


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("report site.duckdb --html site.duckdb", "--html site.duckdb: the command uses that file itself"),
        ("report old.json --json --output ./old.json", "--output old.json: the command uses that file itself"),
        ("report site.duckdb --baseline old.json --markdown old.json", "--markdown old.json: the command uses that"),
        ("report old.json --html site.duckdb", "--html site.duckdb: a trace store is"),
        ("report old.json --html new --markdown ./new", "--markdown new: --html writes there too"),
        ("analyze site.duckdb --output site.duckdb", "--output site.duckdb: the command uses that file itself"),
        ("analyze logs --db new.duckdb --html new.duckdb", "--html new.duckdb: the command uses that file itself"),
        ("analyze logs --output logs/sacct.txt", "--output logs/sacct.txt: a log that the command reads (header of"),
        ("analyze logs --csv logs", "--csv logs: the command uses that directory itself"),
        ("explain 4047 logs --html logs/sacct.txt", "--html logs/sacct.txt: a log that the command reads"),
        ("replay jobs.csv --cluster 4x8 --policy fifo --html jobs.csv", "--html jobs.csv: the command uses that"),
        (
            "replay jobs.csv --cluster 4x8 --policy sjf --run-times expected.csv:run_time_s --output expected.csv",
            "--output expected.csv: the command uses that file itself",
        ),
        ("train runtime jobs.csv --model m --output jobs.csv", "--output jobs.csv: the command uses that file itself"),
        ("predict runtime --jobs jobs.csv --output jobs.csv", "--output jobs.csv: the command uses that file itself"),
        ("predict overhead --output site.duckdb", "--output site.duckdb: a trace store is"),
        ("doctor --db site.duckdb --output site.duckdb", "--output site.duckdb: the command uses that file itself"),
    ],
)
def test_input_files_are_not_overwritten(gpuctl: Run, folder: Path, line: str, said: str) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    done = gpuctl(*line.split(), cwd=folder, check=False)
    assert done.returncode == 2
    assert f"gpuctl: {said}" in done.stderr
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_files_next_to_the_logs_may_be_replaced(gpuctl: Run, folder: Path) -> None:
    for _ in range(2):
        gpuctl("-q", "analyze", "logs", "--section", "queueing", "--html", "logs/r.html", cwd=folder)
    (folder / "logs" / "r.html").unlink()
    for _ in range(2):
        gpuctl("-q", "analyze", "site.duckdb", "--table", "overview", "--output", "fifo", cwd=folder)
        gpuctl("-q", "replay", "jobs.csv", "--cluster", "4x8", "--policy", "fifo", "--output", "sjf", cwd=folder)
    (folder / "fifo").unlink()
    (folder / "sjf").unlink()
