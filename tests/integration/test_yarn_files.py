"""The real YARN files beside the project: every job of theirs, every record accounted for; skipped where absent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.ingest.yarn import cluster as y

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.ingest.pipeline.report import SourceReport

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "yarn"
RM = "hadoop-2.6.5_yarn-root-resourcemanager-ip-172-31-2-135.log"
EMPTY_RM = "hadoop-2.6.5_yarn-root-resourcemanager-master.log"
NM = "hadoop-2.6.5_yarn-root-nodemanager-ip-172-31-2-135.log"
DATED = rb"(?m)^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} "


def loaded(folder: Path, *names: str) -> tuple[Path, list[SourceReport]]:
    missing = [name for name in names if not (DATA / name).is_file()]
    if missing:
        pytest.skip(f"not beside this checkout: {DATA / missing[0]}")
    return y.load(folder, {name: (DATA / name).read_bytes() for name in names})


def one(db: Path, sql: str) -> tuple[object, ...]:
    return tuple(y.frame(db, sql).row(0))


def counted(db: Path, sql: str) -> pl.DataFrame:
    return y.frame(db, sql)


def test_a_whole_resource_manager_log(tmp_path: Path) -> None:
    import re

    db, (report,) = loaded(tmp_path, RM)
    dated = len(re.findall(DATED, (DATA / RM).read_bytes()))
    assert (report.rows_in, report.rows_loaded, report.rows_rejected) == (dated, dated, 0)
    jobs = y.frame(db, "SELECT * FROM jobs")
    assert jobs.height == 12
    # the audit log calls all of them succeeded
    assert set(jobs["source_state"]) == {"FINISHED/FAILED"}
    assert set(jobs["state"]) == {"failed"}
    # this release knows no GPUs, whatever its containers used
    assert set(jobs["gpus"]) == {None}
    assert set(jobs["attempts"]) == {1}
    assert not jobs["quirks"].explode().drop_nulls().to_list()
    sums = "SELECT count(*), count(allocated_ts), count(running_ts), count(end_ts), count(machine) FROM containers"
    assert one(db, sums) == (69, 69, 65, 69, 69)
    assert one(db, "SELECT count(*) FROM containers WHERE reason = 'released'") == (4,)
    assert one(db, "SELECT count(*) FROM containers WHERE is_master") == (12,)
    first = y.row(db, "SELECT * FROM attempts WHERE job = 'application_1542189090588_0002'")
    shown = {key: str(first[key])[11:23] for key in ("queued_ts", "am_start_ts", "start_ts", "end_ts", "released_ts")}
    assert shown == {
        "queued_ts": "12:38:59.327",  # startTime of its summary
        "am_start_ts": "12:38:59.864",
        "start_ts": "12:39:05.886",  # its map task's container; the next one came after that had ended
        "end_ts": "12:39:22.384",  # finishTime
        "released_ts": "12:39:28.751",  # its master's container
    }


def test_a_resource_manager_log_without_jobs(tmp_path: Path) -> None:
    db, (report,) = loaded(tmp_path, EMPTY_RM)
    assert (report.rows_in, report.rows_rejected) == (127, 0)
    assert y.frame(db, "SELECT * FROM jobs").height == 0
    assert y.row(db, "SELECT machine, cpus, mem_mb FROM machines") == {"machine": "master", "cpus": 8, "mem_mb": 8192}


def test_a_node_manager_log_and_both_together(tmp_path: Path) -> None:
    db, (report,) = loaded(tmp_path, NM)
    assert report.rows_rejected == 0
    codes = y.frame(db, "SELECT exit_code, count(*) AS n FROM containers GROUP BY 1 ORDER BY 1").rows()
    assert codes == [(0, 12), (143, 53)]
    both = tmp_path / "both"
    both.mkdir()
    db, _ = loaded(both, NM, RM)
    assert one(db, "SELECT count(*), count(exit_code), count(running_ts) FROM containers") == (69, 65, 65)
    fields = y.frame(db, "SELECT DISTINCT field FROM field_sources")["field"].to_list()
    assert {"submit_ts", "start_ts", "machines"} <= set(fields)


def test_summaries_of_four_versions(tmp_path: Path) -> None:
    db, (report,) = loaded(tmp_path, "real_appsummary_lines.txt")
    assert (report.rows_in, report.rows_rejected) == (4, 0)
    rows = y.frame(db, "SELECT name, source_state, state, gpus FROM jobs ORDER BY submit_ts").rows()
    assert rows == [
        ("decompress", "FINISHED/FAILED", "failed", None),
        ("select count(*) from ...line_dev.cluster_dim(Stage-1)", "FINISHED/SUCCEEDED", "completed", None),
        # 0 GPU-seconds of an application that may have ended before it got what it asked for
        ("Spark shell", "FINISHED/UNDEFINED", "unknown", None),
        ("grep-search", "FINISHED/SUCCEEDED", "completed", 0.0),
    ]


def test_applications_over_rest(tmp_path: Path) -> None:
    db, (report,) = loaded(tmp_path, "yarn_apps_real_samples.json")
    assert (report.rows_in, report.rows_rejected) == (4, 0)
    rows = y.frame(
        db, "SELECT queue, state, gpus, list_contains(quirks, 'start_is_am') AS am FROM jobs ORDER BY submit_ts"
    )
    assert rows.rows() == [
        ("default", "completed", None, False),
        ("default", "completed", None, False),
        ("root.users.hive", "completed", None, True),  # its resourceSecondsMap lost entries before it was quoted
        ("root.deployer", "completed", None, True),
    ]
    assert one(db, "SELECT count(*) FROM containers WHERE container LIKE 'container_e%'") == (2,)


def test_openpai_gpus(tmp_path: Path) -> None:
    names = [
        f"openpai_yarn2.9_gpu_{what}.json"
        for what in ("nodes", "nodes_with_label", "scheduler", "scheduler_with_label")
    ]
    db, reports = loaded(tmp_path, *names)
    assert [(r.rows_in, r.rows_rejected) for r in reports] == [(1, 0), (2, 0), (2, 0), (5, 0)]
    machines = y.frame(db, "SELECT machine, gpus, partition FROM machines ORDER BY 1").rows()
    assert machines == [("10.151.40.131", 4, None), ("10.151.40.132", 4, "test_vc"), ("10.151.40.4", 4, None)]
    used = y.frame(db, "SELECT machine, gpus_used FROM machine_samples ORDER BY machine").rows()
    assert used == [("10.151.40.131", 1.0), ("10.151.40.132", 0.0), ("10.151.40.4", 1.0)]
    queues = y.frame(db, "SELECT queue, parent FROM queues ORDER BY 1").rows()
    assert ("root", None) in queues
    assert {parent for _, parent in queues} == {None, "root"}
    assert len(queues) == 5
