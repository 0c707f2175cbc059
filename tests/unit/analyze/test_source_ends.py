"""What still ran when its own source was made is not held to have run until another source was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.replay.inputs.trace_rows import holdings, read_rows
from gpuctl.store.database import Store
from gpuctl.store.sources import SOURCE_ENDS
from tests.result_tables import table_of
from tests.sacct_records import PENDING, text

if TYPE_CHECKING:
    from pathlib import Path

RUNS = {"State": "RUNNING", "End": "Unknown", "Elapsed": "00:09:00"}


def export(path: Path, year: int, *more: dict[str, str]) -> None:
    """One job that ended at 10:11, and others."""
    day = {name: f"{year}-11-20T10:0{minute}:00" for minute, name in enumerate(("Submit", "Eligible", "Start"))}
    ended = {**day, "JobIDRaw": f"{year}", "JobID": f"{year}", "End": f"{year}-11-20T10:11:00"}
    path.parent.mkdir(exist_ok=True)
    others = [{**day, **record, "JobIDRaw": f"{year}{n}", "JobID": f"{year}{n}"} for n, record in enumerate(more)]
    path.write_text(text(ended, *others))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    export(tmp_path / "logs" / "old.txt", 2017, RUNS, PENDING | {"Submit": "2017-11-20T10:01:00"})
    export(tmp_path / "logs" / "new.txt", 2026, RUNS)
    ingest([tmp_path / "logs"], tmp_path / "t.duckdb", cluster="c")
    return tmp_path / "t.duckdb"


def test_a_running_job_ends_with_its_own_source(store: Path) -> None:
    with Store(store) as opened:
        found = analyze(opened, Options(sections=("overview", "queueing")))
        held = opened.frame(
            "SELECT job, held_until_ts FROM base_attempts WHERE end_ts IS NULL AND start_ts IS NOT NULL"
        )
        waits = opened.frame("SELECT job, until_ts, so_far_s FROM base_never_started")
    assert dict(held.rows()) == {
        "20170": datetime(2017, 11, 20, 10, 11, tzinfo=UTC),
        "20260": datetime(2026, 11, 20, 10, 11, tzinfo=UTC),
    }
    assert waits.rows() == [("20171", datetime(2017, 11, 20, 10, 11, tzinfo=UTC), 600.0)]
    overview = table_of(found, "overview")
    # four jobs of 2 GPUs, 9 minutes each
    assert overview.frame["gpu_hours"].item() == pytest.approx(4 * 2 * 9 / 60)


def test_a_source_was_made_when_a_job_had_run_for_as_long_as_it_states(tmp_path: Path) -> None:
    export(tmp_path / "logs" / "a.txt", 2026, RUNS | {"Elapsed": "01:00:00", "Suspended": "00:30:00"}, RUNS)
    ingest([tmp_path / "logs"], tmp_path / "t.duckdb", cluster="c")
    with Store(tmp_path / "t.duckdb") as opened:
        analyze(opened, Options(tables=("overview",)))
        ends = opened.frame("SELECT DISTINCT held_until_ts FROM base_attempts WHERE end_ts IS NULL").to_series()
    assert ends.to_list() == [datetime(2026, 11, 20, 11, 32, tzinfo=UTC)], "start, Elapsed and Suspended, for both"


def test_a_replay_takes_the_same_run_times(store: Path) -> None:
    with Store(store) as opened:
        rows = read_rows(opened, None, "none")
    held = holdings(rows)
    assert (held["until_c"] - held["start_c"]).to_list() == [540.0] * 4


def test_the_queue_may_have_been_seen_with_it_later(store: Path) -> None:
    seen = datetime(2017, 11, 20, 12, tzinfo=UTC)
    with Store(store, write=True) as opened:
        for job, state in (("20170", "RUNNING"), ("20171", "PENDING"), ("20260", "COMPLETED")):
            opened.execute(
                "INSERT INTO queue_samples (cluster, ts, job, reason, state, source) VALUES ('c', ?, ?, 'None', ?, 9)",
                [seen if state != "COMPLETED" else seen + timedelta(days=4000), job, state],
            ).fetchall()
    with Store(store) as opened:
        analyze(opened, Options(sections=("overview",)))
        held = opened.frame(
            "SELECT job, held_until_ts FROM base_attempts WHERE end_ts IS NULL AND start_ts IS NOT NULL"
        )
        waits = opened.frame("SELECT until_ts FROM base_never_started")
    assert dict(held.rows()) == {"20170": seen, "20260": datetime(2026, 11, 20, 10, 11, tzinfo=UTC)}
    assert waits.rows() == [(seen,)]


def test_daemons_that_write_on_without_an_end_show_that_it_runs(tmp_path: Path) -> None:
    """A rotated log of YARN's ResourceManager says nothing of what goes on running; a log of another year is not it."""
    days = {1: (0, 1), 2: (1, 9), 3: (500, 501)}
    origin = datetime(2026, 1, 1, tzinfo=UTC)
    with Store(tmp_path / "t.duckdb", write=True) as opened:
        for source, (first, last) in days.items():
            opened.execute(
                "INSERT INTO sources VALUES (?, 'c', 'p', 'yarn-rm-log', 's', 1, 1, 1, 0, 1, now(), 0)", [source]
            ).fetchall()
            opened.execute(
                "INSERT INTO job_rows (cluster, job, submit_ts, end_ts, state, attempts, quirks, source) "
                "VALUES ('c', ?, ?, ?, 'completed', 1, [], ?)",
                [str(source), origin + timedelta(days=first), origin + timedelta(days=last), source],
            ).fetchall()
        ends = dict(opened.frame(SOURCE_ENDS, {"cluster": "c"}).rows())
    assert ends == {s: origin + timedelta(days=d) for s, d in ((1, 9), (2, 9), (3, 501))}
