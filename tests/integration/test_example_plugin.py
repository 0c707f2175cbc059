"""The package in examples/plugin, installed: its four things work through the real commands, and pass every suite."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.predictors.conformance import random_log
from gpuctl.predictors.contract import answers
from gpuctl.predictors.registry import find
from tests.cli_runner import run_command
from tests.installed_package import forget, on_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = {
    "policies": "small-users-first",
    "formats": "sign-out-sheet",
    "analyses": "gpu_hours_by_weekday",
    "predictors": "same-again",
}


@pytest.fixture(scope="module")
def site(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the package is installed into, from its sources alone."""
    folder = tmp_path_factory.mktemp("site")
    source = folder.with_name("source")
    subprocess.run(["cp", "-r", str(root / "examples" / "plugin"), str(source)], check=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run(
        [*pip, "--no-compile", "--disable-pip-version-check", "--target", str(folder), str(source)], check=True
    )
    return folder


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    on_path(site, monkeypatch)
    yield
    monkeypatch.undo()
    forget()


@pytest.mark.usefixtures("installed")
def test_all_four_are_listed_with_the_package_that_they_are_from() -> None:
    for kind, name in NAMES.items():
        listed = {one["name"]: one["from"] for one in json.loads(run_command(kind, "--json").stdout)}
        assert listed[name] == "package gpuctl-example 1.0", kind


@pytest.mark.usefixtures("installed")
def test_each_works_and_passes_its_suite(root: Path, tmp_path: Path) -> None:
    sheet, store, page = root / "examples/plugin/tests/sheet.csv", tmp_path / "s.duckdb", tmp_path / "page.html"
    read = json.loads(run_command("ingest", sheet, "--db", store, "--json").stdout)["sources"][0]
    assert (read["format"], read["rows_loaded"], read["rows_rejected"]) == ("sign-out-sheet", 24, 1)
    told = json.loads(run_command("analyze", store, "--section", "utilization", "--html", page, "--json").stdout)[
        "tables"
    ]["gpu_hours_by_weekday"]
    assert sum(row["gpu_hours"] for row in told["rows"]) == sum((1 + k % 4) * (1 + k % 7) / 2 for k in range(24))
    assert "GPU-hours by the weekday of the start" in page.read_text("utf-8")
    replayed = run_command("replay", store, "--cluster", "2x4", "--policy", "fifo,small-users-first", "--json")
    assert {row["policy"] for row in json.loads(replayed.stdout)["tables"]["replay_summary"]["rows"]} == {
        "fifo", "small-users-first",
    }  # fmt: skip
    checks = {"policies": "3", "formats": sheet, "analyses": store, "predictors": "6"}
    for kind, how in checks.items():
        ended = run_command(kind, NAMES[kind], "--check", how)
        assert (ended.returncode, "0 violations" in ended.stderr) == (0, True), ended
    assert np.isfinite(answers(find("same-again"), random_log(1).rows)).sum() > 10
