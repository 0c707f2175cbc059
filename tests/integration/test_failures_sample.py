"""The sample of failing jobs, whose true reasons are known: sample_data/failures/truth.csv."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest

from tools.make_failures import BROKEN, main

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def tables(gpuctl: Run, root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    out = tmp_path_factory.mktemp("failures") / "all.json"
    names = ("failures", "failure_nodes")
    asked = [part for name in names for part in ("--table", name)]
    gpuctl("analyze", root / "sample_data" / "failures", *asked, "--json", "--output", out)
    found = json.loads(out.read_text())["tables"]
    return {name: found[name]["rows"] for name in names}


def test_the_same_command_gives_the_same_bytes(root: Path, tmp_path: Path) -> None:
    main(tmp_path)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (root / "sample_data" / "failures" / path.name).read_bytes(), path.name


def test_jobs_failed_for_their_true_reasons(root: Path, tables: dict[str, list[dict[str, Any]]]) -> None:
    with (root / "sample_data" / "failures" / "truth.csv").open(newline="") as file:
        truth = {row["job"]: row["reason"] for row in csv.DictReader(file)}
    last = {row["job"]: row for row in sorted(tables["failures"], key=lambda row: row["attempt"])}
    # a job whose last attempt passed is told with an earlier one, which lost its node
    failed = {job: reason for job, reason in truth.items() if reason}
    assert failed.keys() <= last.keys()
    right = [job for job, reason in failed.items() if last[job]["reason"] == reason]
    assert len(right) >= 0.9 * len(failed)


def test_the_broken_node_is_the_only_one_blamed(tables: dict[str, list[dict[str, Any]]]) -> None:
    assert [row["machine"] for row in tables["failure_nodes"] if row["bad"] == "yes"] == [BROKEN]
