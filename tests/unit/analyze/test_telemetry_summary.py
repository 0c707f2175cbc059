"""What is kept of telemetry: that it is what the telemetry says, and is not used once anything else is there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gpuctl.analyze import telemetry_renewal
from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.analyze.shared_tables import SharedTables
from gpuctl.analyze.telemetry_renewal import renew
from gpuctl.core.job_filter import JobFilter
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.result_tables import table_of

if TYPE_CHECKING:
    from pathlib import Path


def job(name: str, user: str, status: str, start: str, end: str, gpu: str) -> dict[str, object]:
    where = [{"ip": "m1", "gpus": [gpu]}]
    attempts = [{"start_time": f"2017-10-03 {start}", "end_time": f"2017-10-03 {end}", "detail": where}]
    submitted = "2017-10-03 00:00:00"
    return {
        "status": status, "vc": "a", "jobid": name, "user": user, "submitted_time": submitted, "attempts": attempts
    }  # fmt: skip


JOBS = json.dumps([
    job("j1", "u", "Pass", "00:00:30", "02:00:00", "gpu0"), job("j2", "v", "Failed", "00:30:00", "01:00:00", "gpu1"),
])  # fmt: skip
HEAD = "time,machineId,gpu0_util,gpu1_util,\n"
TABLES = ("gpu_util_by_state", "gpu_util_cdf")


def telemetry(hours: range) -> str:
    minutes = [60 * hour + minute for hour in hours for minute in range(60)]
    return "".join(f"2017-10-03 {m // 60:02}:{m % 60:02}:00 PDT,m1,{m % 100}.5,{m % 7},\n" for m in minutes)


def kept(db: Path) -> list[tuple[object, ...]]:
    with Store(db) as store:
        return store.execute("FROM util_histograms ORDER BY ALL").fetchall()


def figures(db: Path, **options: object) -> list[list[dict[str, object]]]:
    with Store(db) as store:
        found = analyze(store, Options(tables=TABLES, **options))  # type: ignore[arg-type]
        return [table_of(found, name).frame.to_dicts() for name in TABLES]


def test_a_summary_gives_the_figures_of_the_telemetry_until_something_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, db = tmp_path / "logs", tmp_path / "s.duckdb"
    logs.mkdir()
    (logs / "cluster_job_log").write_text(JOBS)
    (logs / "cluster_gpu_util").write_text(HEAD + telemetry(range(2)))
    ingest([logs], db, cluster="c", then=renew)
    assert kept(db) == [], "so few rows are read faster than anything is kept"
    read = figures(db)
    monkeypatch.setattr(telemetry_renewal, "LEAST_ROWS", 1)
    with Store(db, write=True) as store:
        renew(store, "c")
    first = kept(db)
    assert sum(row[-2] for row in first) == 119 + 30, "00:01 to 01:59, 00:30 to 00:59"  # type: ignore[misc]
    assert figures(db) == read
    # it is the summary that is read
    with Store(db, write=True) as store:
        store.execute("UPDATE util_histograms SET tenth = 1000, total = samples * 100000000")
    changed = figures(db)
    assert changed != read
    assert {row["mean_pct"] for row in changed[0]} == {100.0}
    # neither by those who choose jobs, nor by the notebook's definition
    assert figures(db, filter=JobFilter(user=("u", "v"))) == read
    with Store(db) as store:
        shared = SharedTables(store, "c", Options(definition="notebook"), lambda _: None)
        shared.ensure(["util_histogram"])
        assert store.value("SELECT count(*) FROM base_util_histogram WHERE tenth = 1000") == 0
    # and not once something else was loaded, whether it is renewed or not
    (logs / "more").mkdir()
    (logs / "more" / "cluster_gpu_util").write_text(HEAD + telemetry(range(2, 3)))
    ingest([logs / "more"], db, cluster="c")
    assert figures(db) == read
    ingest([logs], db, cluster="c", then=renew)
    assert [row[1:] for row in kept(db)] != [row[1:] for row in first]


def test_a_summary_that_is_interrupted_leaves_the_store_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpuctl.ingest.pipeline.report import IngestInterrupted

    (tmp_path / "cluster_job_log").write_text(JOBS)
    db = tmp_path / "s.duckdb"

    def interrupted(store: Store, cluster: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(IngestInterrupted) as stopped:
        ingest([tmp_path / "cluster_job_log"], db, cluster="c", then=interrupted)
    assert [source.status for source in stopped.value.report.sources] == ["loaded"]
    with Store(db) as store:
        assert store.value("SELECT count(*) FROM jobs") == 2
