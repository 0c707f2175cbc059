"""A CSV of jobs as a store: what it tells is there, and nothing that it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.inputs.jobs_store import write_jobs
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

CSV = """job_id,submit_time,duration,num_gpus,vc,user
a,0,3600,1,x,ann
b,5.5,1800,2,x,bob
c,9,7200,4,y,
"""


def test_a_csv_is_analyzed(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(CSV)
    name = write_jobs(tmp_path / "jobs.duckdb", read_jobs(path), path)
    with Store(tmp_path / "jobs.duckdb") as store:
        found = analyze(store, Options(cluster=name))
        submitted = store.frame("SELECT job, epoch(submit_ts) AS s FROM jobs ORDER BY job")["s"].to_list()
    assert submitted == [0.0, 5.5, 9.0]
    rows = {table.name: table.frame.to_dicts() for table in found.tables}
    [about] = rows["overview"]
    assert (about["jobs"], about["users"], about["queues"], about["gpu_hours"]) == (3, 2, 2, 1 + 1 + 8)
    assert (about["wait_p50_min"], about["occupancy_pct"]) == (None, None)
    assert {row["queue"]: row["gpu_hours"] for row in rows["queues"]} == {"y": 8.0, "x": 2.0}
    assert rows["waits"] == rows["queue_delays"] == rows["failures"] == []
    assert [(row["state"], row["jobs"]) for row in rows["status"]] == [("unknown", 3), ("all", 3)]
    [source] = rows["sources"]
    assert (source["rows_in"], source["rows_loaded"], source["rows_rejected"]) == (3, 3, 0)
    assert any("does not record when and where jobs ran" in warning for warning in found.warnings)


@pytest.mark.parametrize("option", ["--db", "--columns"])
def test_it_takes_no_options_of_logs(option: str, tmp_path: Path) -> None:
    from gpuctl.cli.main import app
    from gpuctl.core.errors import UsageError

    (tmp_path / "jobs.csv").write_text(CSV)
    with pytest.raises(UsageError, match=f"{option} is for logs"):
        app(["analyze", str(tmp_path / "jobs.csv"), option, str(tmp_path / "x")])
