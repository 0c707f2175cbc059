"""Loads files of batch systems for tests, and asks the store what it made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.example_files import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gpuctl.ingest.pipeline.report import IngestReport

BATCH = FIXTURES / "batch"
JOBS = (
    "SELECT job, state, gpus, cpus, nodes, attempts, wait_s, run_sum_s, exit_code, exit_signal, reason, quirks "
    "FROM jobs ORDER BY job"
)
RUNS = (
    "SELECT job, attempt, epoch(queued_ts)::BIGINT - 1800000000, epoch(start_ts)::BIGINT - 1800000000, "
    "epoch(end_ts)::BIGINT - 1800000000, state, gpus, reason FROM attempts ORDER BY job, attempt"
)
PLACES = "SELECT job, attempt, machine, gpus, estimated FROM placements ORDER BY ALL"
COUNTS = (
    "SELECT rows_in, rows_loaded, rows_already_stored, rows_rejected FROM sources ORDER BY loaded_at DESC, source DESC"
)
"""Of each source, the last one first."""


def load(place: Path, files: Mapping[str, str | bytes], *, store: str = "store.duckdb") -> tuple[Path, IngestReport]:
    """Write files and load them into a store, which may have others already."""
    folder = place / f"files{len(list(place.iterdir())) if place.is_dir() else 0}"
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return place / store, ingest([folder], place / store, cluster="site")


def ask(store: Path, sql: str) -> list[tuple[Any, ...]]:
    """Query a store."""
    with Store(store) as opened:
        return opened.execute(sql).fetchall()


def fixture(name: str) -> str:
    """The text of a sample."""
    return (BATCH / name).read_text()
