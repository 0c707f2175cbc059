"""One store, one writer: the other one is told so and touches nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.fake_format import contents
from tests.locked_store import held_open

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def held(
    tmp_path: Path, root: Path, gpuctl: Callable[..., subprocess.CompletedProcess[str]]
) -> Iterator[tuple[Path, int]]:
    """A store with contents, and the number of the process that has it open for writing."""
    db = tmp_path / "held.duckdb"
    gpuctl("ingest", root / "sample_data" / "philly" / "cluster_machine_list", "--db", db)
    with held_open(db, root) as holder:
        yield db, holder


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_a_second_process_is_told_who_holds_the_store(
    held: tuple[Path, int], root: Path, gpuctl: Callable[..., subprocess.CompletedProcess[str]], more: list[str]
) -> None:
    db, holder = held
    done = gpuctl("ingest", root / "sample_data" / "philly", "--db", db, *more, check=False)
    assert done.returncode == 4
    assert done.stdout == ""
    assert done.stderr == (
        f"gpuctl: {db}: process {holder} has this store open\nhint: wait until it is done, then run this again\n"
    )


def test_two_ingests_at_once_never_spoil_the_store(
    tmp_path: Path, root: Path, thin_data: Path, gpuctl: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    logs, db = thin_data / "philly", tmp_path / "both.duckdb"
    command = [sys.executable, "-m", "gpuctl", "ingest", str(logs), "--db", str(db), "--quiet"]
    env = {"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}
    both = [subprocess.Popen(command, env=env, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in "ab"]
    ends = [(p.communicate(timeout=120)[1], p.returncode) for p in both]
    assert all(code == 0 or (code == 4 and "has this store open" in err) for err, code in ends), ends
    assert any(code == 0 for _, code in ends), ends
    alone = tmp_path / "alone.duckdb"
    gpuctl("ingest", logs, "--db", alone)
    assert contents(db) == contents(alone)
