"""A small trace store of made-up rows, for tests of what looks into stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = "philly-jobs"
NOW = 1_700_000_000.0
"""2023-11-14 22:13:20; all times of the store lie before it."""
JOBS = 200


def make_store(path: Path) -> Path:
    """Make a store of one cluster `west` with `JOBS` jobs of one attempt each, from one file without rejected rows."""
    parser = next(fmt.parser_version for fmt in all_formats() if fmt.name == FORMAT)
    with Store(path, write=True) as store:
        store.execute(
            "INSERT INTO sources VALUES (1, 'west', '/logs/jobs', ?, 'ab', 10, ?, ?, 0, ?, now(), 0)",
            [FORMAT, JOBS, JOBS, parser],
        )
        store.execute(
            "INSERT INTO clusters (cluster, source_format, timezone, clock, first_ts, last_ts) "
            "VALUES ('west', ?, 'America/Los_Angeles', 'wall', "
            "to_timestamp(1690000000), to_timestamp(1690100000))",
            [FORMAT],
        )
        store.execute(
            "INSERT INTO job_rows BY NAME SELECT 'west' AS cluster, 'j' || i AS job, 'passed' AS state, 1 AS attempts, "
            "1.0 AS gpus, to_timestamp(1690000000 + 100 * i) AS submit_ts, "
            "to_timestamp(1690000060 + 100 * i) AS start_ts, to_timestamp(1690000600 + 100 * i) AS end_ts, "
            "[]::VARCHAR[] AS quirks, 1 AS source FROM range(?) AS t(i)",
            [JOBS],
        )
        store.execute(
            "INSERT INTO attempt_rows BY NAME SELECT cluster, job, 0 AS attempt, submit_ts AS queued_ts, start_ts, "
            "end_ts, state, gpus, 1 AS servers, quirks, source FROM jobs"
        )
    return path


def change(path: Path, *statements: str) -> None:
    """Change rows of a store."""
    with Store(path, write=True) as store:
        for statement in statements:
            store.execute(statement)
