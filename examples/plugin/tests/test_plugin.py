"""What gpuctl's own suites say of this package, and that each thing does what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SHEET = Path(__file__).parent / "sheet.csv"


def gpuctl(*arguments: object) -> str:
    """Run a command as its user would; what it printed."""
    command = [sys.executable, "-m", "gpuctl", *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "sheet.duckdb"
    gpuctl("ingest", SHEET, "--db", path)
    return path


@pytest.mark.parametrize("kind", ["policies", "formats", "analyses", "predictors"])
def test_it_is_listed_as_this_package_s(kind: str) -> None:
    assert "package gpuctl-example 1.0" in gpuctl(kind, "--json")


def test_the_policy_passes() -> None:
    gpuctl("policies", "small-users-first", "--check", 5)


def test_the_format_passes() -> None:
    gpuctl("formats", "sign-out-sheet", "--check", SHEET)


def test_the_analysis_passes_and_counts(store: Path) -> None:
    gpuctl("analyses", "gpu_hours_by_weekday", "--check", store)
    rows = json.loads(gpuctl("analyze", store, "--table", "gpu_hours_by_weekday", "--json"))
    table = rows["tables"]["gpu_hours_by_weekday"]
    assert sum(row["attempts"] for row in table["rows"]) == 24
    held = sum((1 + k % 4) * (1 + k % 7) / 2 for k in range(24))
    assert sum(row["gpu_hours"] for row in table["rows"]) == pytest.approx(held)
    assert table["charts"]


def test_the_predictor_passes() -> None:
    gpuctl("predictors", "same-again", "--check", 5)
