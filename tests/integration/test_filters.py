"""A filtered analysis against the same analysis of a log from which all other jobs were cut."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.core.job_filter import JobFilter, parse
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.result_tables import table_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.core.results import Analysis

SAMPLE = Path(__file__).resolve().parents[2] / "sample_data" / "philly"
OWN = (
    "status", "users", "runtime_by_size", "runtime_cdf", "job_times", "wait_by_size", "wait_by_queue", "never_started",
    "wait_cdf", "waits", "attempts_by_size", "gpu_hours_lost", "gpu_util_by_state", "gpu_util_by_nodes",
    "gpu_util_cdf", "failure_reasons", "failure_categories", "failures_by_size", "failures_by_queue",
    "failures_by_user", "failures", "retry_by_size", "retry_reasons", "failure_savings", "activity_by_user",
    "activity_by_queue",
)  # fmt: skip
"""Tables that the jobs chosen make alone."""
HELD = frozenset({"users", "gpu_hours_lost", "activity_by_user", "activity_by_queue"})
"""With a time, their GPU-hours are those held in it, by earlier jobs, too: tests/unit/analyze/test_periods.py."""
ABOUT_ALL = ("occupancy", "activity", "fragmentation", "failure_nodes", "delay_settings", "host_util", "sources")
"""Tables of the cluster: the same with and without a filter."""
USERS = ("d5f405", "b4969d", "b49693", "b4969f", "b496a0", "b49691", "b4968e", "b49697")


def _when(job: dict[str, Any]) -> str:
    return str(job["submitted_time"])


def _gpus(job: dict[str, Any]) -> int:
    return sum(len(place["gpus"]) for attempt in job["attempts"][:1] for place in attempt["detail"])


CASES: dict[str, tuple[JobFilter, Callable[[dict[str, Any]], bool]]] = {
    "small gangs of some users": (
        # without the last days: an attempt whose end the log lacks holds its GPUs to the end of the log that is left
        parse(user=[",".join(USERS[1:]), USERS[0]], gpus="2..8", until="2017-10-07"),
        lambda job: job["user"] in USERS and 2 <= _gpus(job) <= 8 and _when(job) < "2017-10-07",
    ),
    "states and time of a queue": (
        parse(queue=["3fa1c2"], state=["killed,failed"], since="2017-10-04", until="2017-10-06T12:00"),
        lambda job: (
            job["vc"] == "3fa1c2"
            and job["status"] in {"Killed", "Failed"}
            and "2017-10-04" <= _when(job) < "2017-10-06 12:00"
        ),
    ),
    "states of a queue": (
        parse(queue=["3fa1c2"], state=["killed,failed"]),
        lambda job: job["vc"] == "3fa1c2" and job["status"] in {"Killed", "Failed"},
    ),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("whole") / "whole.duckdb"
    ingest([SAMPLE], store, cluster="philly")
    return store


def _analyzed(path: Path, **options: Any) -> Analysis:
    with Store(path) as store:
        return analyze(store, Options(cluster="philly", **options))


def _rows(result: Analysis, name: str) -> pl.DataFrame:
    return table_of(result, name).frame


@pytest.mark.parametrize("case", CASES)
def test_a_filter_is_a_log_without_the_others(case: str, whole: Path, tmp_path: Path) -> None:
    wanted, keeps = CASES[case]
    jobs = json.loads((SAMPLE / "cluster_job_log").read_bytes())
    left = [job for job in jobs if keeps(job)]
    assert 40 < len(left) < len(jobs)
    for file in SAMPLE.glob("cluster_*"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "cluster_job_log").write_text(json.dumps(left))
    ingest([tmp_path], tmp_path / "cut.duckdb", cluster="philly")
    cut = _analyzed(tmp_path / "cut.duckdb", tables=OWN)
    found = _analyzed(whole, tables=OWN, filter=wanted)
    assert f" matches {len(left):,} of {len(jobs):,} jobs" in str(found.settings["filter"])
    timed = HELD if wanted.since or wanted.until else frozenset()
    differ = [name for name in OWN if name not in timed and not _rows(found, name).equals(_rows(cut, name))]
    assert differ == []
    told, expected = ([(table.name, table.population) for table in result.tables] for result in (found, cut))
    assert told == expected


def test_causes_are_those_that_all_jobs_make(whole: Path) -> None:
    """A wait's cause is judged with everybody's jobs, and reported for the chosen; the cluster stays the cluster."""
    names = ("queue_delays", "overview", "delay_causes", *ABOUT_ALL)
    every, some = _analyzed(whole, tables=names), _analyzed(whole, tables=names, filter=parse(queue=["94cc07"]))
    delays = _rows(every, "queue_delays")
    assert _rows(some, "queue_delays").equals(delays.filter(pl.col("queue") == "94cc07"))
    for name in ABOUT_ALL:
        assert _rows(some, name).equals(_rows(every, name)), name
        assert "Covers the whole cluster" in str(some.table(name).notes), name  # type: ignore[union-attr]
    cluster = ["machines", "gpus", "first_submit_ts", "last_ts", "occupancy_pct"]
    assert _rows(some, "overview")[cluster].equals(_rows(every, "overview")[cluster])
    assert _rows(some, "overview")["jobs"][0] < _rows(every, "overview")["jobs"][0]
    causes = _rows(some, "delay_causes").filter(pl.col("cause") == "fair_share")
    own = delays.filter(pl.col("queue") == "94cc07")
    assert causes["hours"].to_list() == pytest.approx([own["fair_share_s"].sum() / 3600])
    # the ranges of the waits chosen, added up
    for end in ("low", "high"):
        share = 100 * own[f"fair_share_{end}_s"].sum() / own["wait_s"].sum()
        assert causes[f"{end}_pct"].to_list() == pytest.approx([share], abs=1e-3)


def test_occupancy_is_that_of_the_time_requested(whole: Path) -> None:
    """With --since and --until it is the mean of the hours between them, as the series by hour says it."""
    wanted = parse(since="2017-10-04T06:00Z", until="2017-10-05T18:00Z")
    hours = _rows(_analyzed(whole, tables=("activity",), by="hour"), "activity")
    between = hours.filter(pl.col("ts").is_between(_utc(4, 6), _utc(5, 18), closed="left"))
    assert between.height == 36
    [held] = _rows(_analyzed(whole, tables=("overview",), filter=wanted), "overview")["occupancy_pct"]
    assert held == pytest.approx(between["allocated_pct"].mean(), rel=1e-9)
    [every] = _rows(_analyzed(whole, tables=("overview",)), "overview")["occupancy_pct"]
    assert 0 < every < 100
    assert abs(held - every) > 1


def _utc(day: int, hour: int) -> datetime:
    return datetime(2017, 10, day, hour, tzinfo=UTC)
