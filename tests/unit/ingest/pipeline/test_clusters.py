"""What is of several clusters is not loaded as one; what is of one cluster is, in whatever order it lies there."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpuctl.cli import main
from gpuctl.core.errors import ExitCode, InputError
from gpuctl.ingest.pipeline.clusters import A_DAY_S, GAP_S, Span, distance, scheduler_of
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.store.database import Store
from tests.sacct_records import text

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.ingest.pipeline.report import IngestReport


def month(folder: Path, year: int, of: int = 11, jobs: int = 4) -> Path:
    """An export of one month's jobs."""
    at = f"{year}-{of:02}"
    records = [
        {
            "JobIDRaw": f"{year}{of:02}{n:04}",
            "JobID": f"{year}{of:02}{n:04}",
            **{
                name: f"{at}-{1 + n % 28:02}T1{hour}:00:00"
                for hour, name in enumerate(("Submit", "Eligible", "Start", "End"))
            },
        }
        for n in range(jobs)
    ]
    folder.mkdir(exist_ok=True)
    path = folder / f"sacct-{at}.txt"
    path.write_text(text(*records))
    return path


def became(report: IngestReport) -> dict[str, str]:
    return {source.path.rpartition("/")[2]: source.status for source in report.sources}


def jobs_in(path: Path) -> list[tuple[str, int]]:
    with Store(path) as store:
        return store.execute("SELECT cluster, count(*) FROM jobs GROUP BY ALL ORDER BY ALL").fetchall()


def test_logs_of_two_schedulers_are_refused_before_anything_is_loaded(sample_data: Path, tmp_path: Path) -> None:
    logs, db = tmp_path / "logs", tmp_path / "t.duckdb"
    month(logs, 2026)
    shutil.copy(sample_data / "philly" / "cluster_job_log", logs)
    with pytest.raises(InputError) as refused:
        ingest([logs], db)
    assert refused.value.message.splitlines()[0] == "logs of 2 schedulers are not one cluster, logs:"
    assert "Philly: " in refused.value.message
    assert "cluster_job_log" in refused.value.message
    assert "sacct-2026-11.txt" in refused.value.message
    assert "--cluster" in (refused.value.hint or "")
    assert not db.exists()


def test_nor_is_a_cluster_of_the_store_added_to(sample_data: Path, tmp_path: Path) -> None:
    db = tmp_path / "t.duckdb"
    ingest([month(tmp_path / "logs", 2017)], db, cluster="c")
    with pytest.raises(InputError, match=r"Slurm: .*\(in the store\)"):
        ingest([sample_data / "philly" / "cluster_job_log"], db, cluster="c")
    ingest([sample_data / "philly" / "cluster_job_log"], db, cluster="d")
    assert [name for name, _ in jobs_in(db)] == ["c", "d"]


def test_telemetry_and_output_are_of_any_scheduler() -> None:
    of = {fmt.name: scheduler_of(fmt) for fmt in all_formats()}
    assert {of[f"philly-{name}"] for name in ("gpu-util", "cpu-util", "mem-util", "machines")} == {None}
    assert {of[name] for name in ("job-output", "yarn-container-logs", "traffic-csv", "profile-jobs")} == {None}
    assert (of["philly-jobs"], of["slurm-squeue-samples"], of["slurm-ctld"], of["yarn-rm-log"]) == (
        "philly", "slurm", "slurm", "yarn",
    )  # fmt: skip


def test_times_that_do_not_meet_are_refused_and_both_sides_named(tmp_path: Path) -> None:
    logs, db = tmp_path / "logs", tmp_path / "t.duckdb"
    month(logs, 2017)
    month(logs, 2026)
    report = ingest([logs], db)
    assert became(report) == {"sacct-2017-11.txt": "loaded", "sacct-2026-11.txt": "failed"}
    (message,) = [source.message for source in report.sources if source.apart]
    assert "its times, 2026-11-01 to 2026-11-04, are 3,284 days from" in message
    assert "2017-11-01 to 2017-11-04 (sacct-2017-11.txt)" in message
    assert "--cluster" in message
    assert jobs_in(db) == [("logs", 4)]
    assert became(ingest([logs], db)) == {"sacct-2017-11.txt": "unchanged", "sacct-2026-11.txt": "failed"}
    assert became(ingest([logs / "sacct-2026-11.txt"], db, cluster="new")) == {"sacct-2026-11.txt": "loaded"}
    assert jobs_in(db) == [("logs", 4), ("new", 4)]


def test_they_are_one_cluster_where_the_user_reports_it(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    month(logs, 2017)
    month(logs, 2026)
    report = ingest([logs], tmp_path / "t.duckdb", cluster="one")
    assert set(became(report).values()) == {"loaded"}


def test_values_in_between_may_be_last(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    month(logs, 2026, 1).rename(logs / "a.txt")
    month(logs, 2026, 4).rename(logs / "b.txt")
    for number in (2, 3):
        month(logs, 2026, number)
    assert set(became(ingest([logs], tmp_path / "t.duckdb")).values()) == {"loaded"}
    assert jobs_in(tmp_path / "t.duckdb") == [("logs", 16)]


def test_a_few_jobs_with_odd_times_are_loaded_and_reported(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    month(logs, 2026, jobs=400)
    month(logs, 2001, 1)
    report = ingest([logs], tmp_path / "t.duckdb")
    assert set(became(report).values()) == {"loaded"}
    (message,) = report.warnings
    assert "the 400 jobs of sacct-2026-11.txt are 9,432 days" in message


def test_nothing_is_analyzed_where_half_of_it_was_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    month(tmp_path / "logs", 2017)
    month(tmp_path / "logs", 2026)
    code = main.run(["analyze", str(tmp_path / "logs")])
    out, message = capsys.readouterr()
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert "sacct-2026-11.txt: its times" in message
    assert "hint: give the files of one" in message
    assert main.run(["analyze", str(tmp_path / "logs"), "--cluster", "c", "--table", "queues"]) == 0


day = st.floats(0, 4000).map(lambda days: days * A_DAY_S)


@given(st.lists(st.tuples(day, st.floats(0, 300).map(lambda days: days * A_DAY_S)), min_size=2, max_size=6))
@example([(0.0, 0.0), (GAP_S, 0.0)])
def test_a_pause_is_short_or_shorter_than_what_there_is(found: list[tuple[float, float]]) -> None:
    new, *others = [Span(low, low + length, 1, "") for low, length in found]
    gap = distance(new, others)
    nearest = min(max(o.low - new.high, new.low - o.high, 0.0) for o in others)
    longest = max(span.high - span.low for span in (new, *others))
    if gap is None:
        assert nearest <= GAP_S or nearest <= sum(span.high - span.low for span in (new, *others)) + 1
    else:
        assert gap == pytest.approx(nearest)
        assert gap > GAP_S
        assert gap > longest
