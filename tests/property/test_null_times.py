"""No time is certain: every analysis stands a store in which any one column of times is empty, in all or some rows."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from gpuctl.store.schema import STORED

if TYPE_CHECKING:
    from pathlib import Path

# ruff: noqa: E501
SACCT = """JobIDRaw|JobID|User|Account|Partition|State|ExitCode|Submit|Eligible|Start|End|NNodes|NCPUS|AllocTRES|NodeList
1|1|ann|a|gpu|COMPLETED|0:0|2026-11-01T10:00:00|2026-11-01T10:00:00|2026-11-01T10:00:10|2026-11-01T12:00:00|1|8|cpu=8,gres/gpu=4|n1
2|2|bob|b|gpu|FAILED|1:0|2026-11-01T10:10:00|2026-11-01T10:10:00|2026-11-01T12:00:00|2026-11-01T13:00:00|1|8|cpu=8,gres/gpu=8|n1
3|3|bob|b|gpu|REQUEUED|0:0|2026-11-01T10:20:00|2026-11-01T10:20:00|2026-11-01T10:30:00|2026-11-01T10:40:00|1|8|cpu=8,gres/gpu=2|n2
3|3|bob|b|gpu|TIMEOUT|0:0|2026-11-01T10:40:00|2026-11-01T10:50:00|2026-11-01T11:00:00|2026-11-01T12:40:00|1|8|cpu=8,gres/gpu=2|n2
4|4|cal|c|gpu|CANCELLED|0:0|2026-11-01T11:00:00|2026-11-01T11:00:00|None|2026-11-01T11:30:00|1|8||None assigned
5|5|cal|c|gpu|RUNNING|0:0|2026-11-01T12:30:00|2026-11-01T12:30:00|2026-11-01T12:45:00|Unknown|1|8|cpu=8,gres/gpu=1|n2
6|6|cal|c|gpu|PENDING|0:0|2026-11-01T13:00:00|2026-11-01T13:00:00|Unknown|Unknown|1|8|cpu=8,gres/gpu=8|None assigned
"""
EVENTS = """NodeName|TimeStart|TimeEnd|State|Reason|User
n1|2026-11-01T09:00:00|2026-11-01T09:30:00|DOWN|power|root
n2|2026-11-01T13:00:00|Unknown|DRAIN|fan|root
"""
COLUMNS = [
    *(("jobs", name) for name in ("submit_ts", "eligible_ts", "start_ts", "end_ts")),
    *(("attempts", name) for name in ("queued_ts", "eligible_ts", "start_ts", "end_ts", "released_ts")),
    *(("clusters", name) for name in ("first_ts", "last_ts")),
    ("machine_events", "to_ts"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("null-times")
    logs = folder / "logs"
    logs.mkdir()
    (logs / "sacct.txt").write_text(SACCT)
    (logs / "events.txt").write_text(EVENTS)
    report = ingest([logs], folder / "s.duckdb", cluster="c")
    assert not report.failed
    return folder / "s.duckdb"


@pytest.mark.parametrize("which", ["true", "hash(rowid) % 2 = 0"], ids=["all", "some"])
@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_every_analysis_stands_a_column_without_times(
    table: str, column: str, which: str, whole: Path, tmp_path: Path
) -> None:
    db = tmp_path / "s.duckdb"
    shutil.copy(whole, db)
    with Store(db, write=True) as store:
        store.execute(f"UPDATE {STORED.get(table, table)} SET {column} = NULL WHERE {which}")
    with Store(db) as store:
        assert analyze(store, Options()).tables


def test_a_job_that_never_started_is_a_log(tmp_path: Path) -> None:
    lines = SACCT.splitlines()
    (tmp_path / "sacct.txt").write_text(
        f"{lines[0]}\n4|4|c|c|gpu|CANCELLED|0:0|2026-11-01T11:00:00|Unknown|None|Unknown|1|8||\n"
    )
    ingest([tmp_path / "sacct.txt"], tmp_path / "s.duckdb")
    with Store(tmp_path / "s.duckdb") as store:
        assert analyze(store, Options()).tables
