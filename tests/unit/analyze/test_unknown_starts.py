"""GPU-hours of jobs whose run time the log states and whose start it does not, as in SWF without waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import formats_for
from gpuctl.store.database import Store
from tests.result_tables import table_of
from tests.synthetic_store import make_store

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "; MaxProcs: 16\n; UnixStartTime: 1500000000\n"
COMPLETED, FAILED = (
    "1 0 {} 7200 3 -1 -1 3 9000 -1 1 1 1 1 1 1 -1 -1\n",
    "2 50 {} 3600 2 -1 -1 2 9000 -1 0 2 1 1 1 1 -1 -1\n",
)
TABLES = ("overview", "status", "queues", "users", "accounts", "gpu_hours_lost", "failures_by_user", "never_started")


@pytest.mark.parametrize("waits", [(-1, -1), (-1, 5), (5, -1), (5, 5)])
def test_every_table_counts_gpu_hours_with_and_without_a_start(waits: tuple[int, int], tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(HEADER + COMPLETED.format(waits[0]) + FAILED.format(waits[1]))
    ingest([tmp_path / "log.swf"], tmp_path / "t.duckdb", formats=formats_for(None, swf_unit="gpu"))
    with Store(tmp_path / "t.duckdb") as store:
        found = analyze(store, Options(tables=TABLES))
    held = {name: sum(row["gpu_hours"] for row in table_of(found, name).frame.to_dicts()) for name in TABLES[:5]}
    assert held == {"overview": 8.0, "status": 16.0, "queues": 8.0, "users": 8.0, "accounts": 8.0}
    [*_, lost] = table_of(found, "gpu_hours_lost").frame.to_dicts()
    assert (lost["gpu_hours"], lost["succeeded_h"], lost["failed_h"], lost["lost_pct"]) == (8.0, 6.0, 2.0, 25.0)
    [user] = table_of(found, "failures_by_user").frame.to_dicts()
    assert (user["user"], user["gpu_hours"], user["lost_gpu_hours"], user["rtf_p50_min"]) == ("2", 2.0, 2.0, 60.0)
    [overview] = table_of(found, "overview").frame.to_dicts()
    # 8 GPU-hours of 16 GPUs; where a start is unknown, nobody can say that they lie within the log
    dated = 100 * 8 / (16 * (7205 / 3600)) if waits == (5, 5) else None
    assert overview["occupancy_pct"] == (None if dated is None else pytest.approx(dated))
    assert table_of(found, "never_started").frame.height == 0


@pytest.mark.parametrize(
    ("state", "column"),
    [
        ("completed", "succeeded_h"), ("killed", "killed_h"), ("timeout", "killed_h"), ("preempted", "killed_h"),
        ("failed", "failed_h"), ("out_of_memory", "failed_h"), ("node_fail", "failed_h"), ("running", "other_h"),
    ],
)  # fmt: skip
def test_gpu_hours_of_a_job_without_attempts_are_those_of_its_final_state(
    tmp_path: Path, state: str, column: str
) -> None:
    path = make_store(tmp_path / "t.duckdb")
    job = "state = CASE job WHEN 'j1' THEN ? ELSE 'completed' END, attempts = 0, start_ts = NULL"
    with Store(path, write=True) as store:
        store.execute("DELETE FROM attempt_rows")
        store.execute("DELETE FROM job_rows WHERE job NOT IN ('j0', 'j1')")
        store.execute(
            f"UPDATE job_rows SET {job}, gpus = 2, run_span_s = CASE job WHEN 'j1' THEN 5400 ELSE 1800 END",
            [state],
        )
        [*_, lost] = table_of(analyze(store, Options(tables=("gpu_hours_lost",))), "gpu_hours_lost").frame.to_dicts()
    hours = dict.fromkeys(("succeeded_h", "retried_h", "killed_h", "failed_h", "other_h"), 0.0)
    hours["succeeded_h"] += 1.0
    hours[column] += 3.0
    assert {name: lost[name] for name in hours} == hours
    assert (lost["gpu_hours"], lost["lost_pct"]) == (4.0, 75.0 if column in {"killed_h", "failed_h"} else 0.0)
