"""``gpuctl explain`` says what interrupted a job: a fault that another job met, and nothing where no event tells."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def store(gpuctl: Cli, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reliability") / "reliability.duckdb"
    gpuctl("-q", "ingest", root / "tests/fixtures/reliability", "--db", path)
    return path


def test_the_xid_of_its_node_is_named(gpuctl: Cli, store: Path) -> None:
    text = gpuctl("-q", "explain", "1006", "--db", store).stdout
    assert "Interrupted by infrastructure hardware (GPU), as an Xid on n005 shows." in text


def test_a_task_and_a_requeued_attempt_are_found_by_the_ids_that_users_see(gpuctl: Cli, store: Path) -> None:
    def first(job: str) -> Any:
        return json.loads(gpuctl("-q", "explain", job, "--db", store, "--json").stdout)["attempts"][0]

    expected = {"cause": "infrastructure_hardware", "component": "network link", "evidence": "event", "machine": "n010"}
    assert expected.items() <= first("1016_0")["interrupted"].items()
    assert first("1112")["interrupted"]["machine"] == "n009"


def test_an_end_without_evidence_has_no_interruption_in_words(gpuctl: Cli, store: Path) -> None:
    assert "Interrupted" not in gpuctl("-q", "explain", "1109", "--db", store).stdout
