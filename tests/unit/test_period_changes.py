"""Two periods of one store compared: figures against a plain count, and nothing claimed where nothing changed."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from gpuctl.analyze.options import Options
from gpuctl.core.errors import UsageError
from gpuctl.core.job_filter import EVERY_JOB, parse
from gpuctl.core.periods import parse_period
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.services.period_changes import compare_periods
from gpuctl.store.database import Store
from tests.sacct_records import text

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.core.job_filter import JobFilter

DAY_S = 86400


def at(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp())


JANUARY, FEBRUARY, MARCH = (at(2026, month, 1) for month in (1, 2, 3))
END = at(2026, 4, 1)


def drawn() -> list[dict[str, Any]]:
    """Three months of jobs: February is like January; in March, jobs of queue big wait thrice as long and fail."""
    chance = random.Random(5)
    found = []
    for day in range((END - JANUARY) // DAY_S):
        for _ in range(12):
            submit = JANUARY + day * DAY_S + chance.randrange(DAY_S)
            queue = chance.choice(["big", "small"])
            worse = submit >= MARCH and queue == "big"
            start = submit + int(chance.expovariate(1 / (3000 if worse else 1000)))
            end = start + 60 + int(chance.expovariate(1 / 20000))
            failed = chance.random() < (0.6 if worse else 0.1)
            found.append(
                {"submit": submit, "start": start, "end": end, "gpus": chance.choice([1, 2, 8]), "queue": queue,
                 "failed": failed, "user": f"u{chance.randrange(3)}"}
            )  # fmt: skip
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], Path]:
    jobs = drawn()
    folder = tmp_path_factory.mktemp("changes")
    records = [
        {
            "JobIDRaw": str(k), "Submit": str(job["submit"]), "Eligible": str(job["submit"]),
            "Start": str(job["start"]), "End": str(job["end"]), "State": "FAILED" if job["failed"] else "COMPLETED",
            "AllocTRES": f"billing=1,cpu=1,gres/gpu={job['gpus']}", "User": job["user"], "Partition": job["queue"],
        }
        for k, job in enumerate(jobs, 1)
    ]  # fmt: skip
    (folder / "sacct.txt").write_text(text(*records))
    ingest([folder / "sacct.txt"], folder / "t.duckdb", cluster="c", timezone="UTC")
    return jobs, folder / "t.duckdb"


def changes(path: Path, *periods: str, chosen: JobFilter = EVERY_JOB) -> pl.DataFrame:
    with Store(path) as store:
        [table] = compare_periods(store, (periods[0], periods[1]), Options(), chosen, lambda _: None).tables
    assert [column.name for column in table.columns] == table.frame.columns
    return table.frame


def row(frame: pl.DataFrame, metric: str, **owner: str) -> dict[str, Any]:
    owners = {kind: owner.get(kind) for kind in ("queue", "account", "user")}
    match = [each for each in frame.to_dicts() if each["metric"] == metric and owners.items() <= each.items()]
    assert len(match) == 1
    return match[0]


def held_h(job: dict[str, Any], start: int, end: int) -> float:
    seconds: int = max(0, min(job["end"], end) - max(job["start"], start))
    return float(job["gpus"]) * seconds / 3600


def test_values_and_costs_are_those_of_a_plain_count(site: tuple[list[dict[str, Any]], Path]) -> None:
    jobs, path = site
    frame = changes(path, "2026-02", "2026-03")
    months = ((FEBRUARY, MARCH), (MARCH, END))
    for queue in (None, "big"):
        mine = [job for job in jobs if queue in {None, job["queue"]}]
        owner = {} if queue is None else {"queue": queue}
        held = [sum(held_h(job, *month) for job in mine) for month in months]
        lost = [sum(held_h(job, *month) for job in mine if job["failed"]) for month in months]
        share = [100 * a / b for a, b in zip(lost, held, strict=True)]
        found = row(frame, "failures.lost_gpu_hours_pct", **owner)
        assert [found["before"], found["after"]] == pytest.approx(share)
        assert found["cost_gpu_hours"] == pytest.approx((share[1] - share[0]) / 100 * held[1])
        waited = [[job for job in mine if start <= job["submit"] < end] for start, end in months]
        means = [sum(j["start"] - j["submit"] for j in each) / len(each) / 3600 for each in waited]
        found = row(frame, "queueing.mean_wait_h", **owner)
        assert [found["before"], found["after"]] == pytest.approx(means)
        assert found["cost_gpu_hours"] == pytest.approx((means[1] - means[0]) * sum(j["gpus"] for j in waited[1]))
    costs = [abs(each) for each in frame["cost_gpu_hours"].drop_nulls()]
    assert costs == sorted(costs, reverse=True)


def test_what_changed_is_found_and_what_did_not_is_not(site: tuple[list[dict[str, Any]], Path]) -> None:
    _, path = site
    worse = changes(path, "2026-02", "2026-03").filter(pl.col("verdict") == "worse")
    assert set(worse["queue"]) <= {"big", None}
    assert {"failures.lost_gpu_hours_pct", "queueing.mean_wait_h", "queueing.p95_wait_h"} <= set(
        worse.filter(pl.col("queue") == "big")["metric"]
    )
    same = changes(path, "2026-01", "2026-02")
    assert same["low"].null_count() == 0
    assert same["verdict"].count() <= same.height / 10
    either = same.filter(pl.col("verdict").is_null())
    assert ((either["low"] <= 0) & (either["high"] >= 0)).all()
    # the other way round, every change has the other sign
    back = row(changes(path, "2026-03", "2026-02"), "failures.lost_gpu_hours_pct")
    assert back["verdict"] == "better"
    short = changes(path, "2026-02-01..2026-02-04", "2026-03-01..2026-03-04")
    assert short["verdict"].count() == short["low"].count() == 0


def test_a_filter_chooses_jobs_and_leaves_out_the_share_of_the_cluster(
    site: tuple[list[dict[str, Any]], Path],
) -> None:
    jobs, path = site
    frame = changes(path, "2026-02", "2026-03", chosen=parse(user=["u1"]))
    assert "overview.occupancy_pct" not in frame["metric"]
    expected = sum(held_h(job, MARCH, END) for job in jobs if job["user"] == "u1") / 31
    assert row(frame, "overview.gpu_hours_a_day")["after"] == pytest.approx(expected)
    with pytest.raises(UsageError, match="names both periods"):
        changes(path, "2026-02", "2026-03", chosen=parse(since="2026-02-01"))
    with pytest.raises(UsageError, match="nothing of it"):
        changes(path, "2025-02", "2026-03")


@pytest.mark.parametrize(
    ("written", "first", "last"),
    [
        ("2026-12", "2026-12-01", "2027-01-01"),
        ("2026Q4", "2026-10-01", "2027-01-01"),
        ("2026-Q1", "2026-01-01", "2026-04-01"),
        ("2026-W01", "2025-12-29", "2026-01-05"),
        ("2024-02-29", "2024-02-29", "2024-03-01"),
        ("2026", "2026-01-01", "2027-01-01"),
        ("2026-02..2026-03-15", "2026-02-01", "2026-03-16"),
    ],
)
def test_periods_as_users_write_them(written: str, first: str, last: str) -> None:
    found = parse_period(written, ZoneInfo("Europe/Berlin"))
    assert (f"{found.start:%Y-%m-%d %H}", f"{found.end:%Y-%m-%d %H}") == (f"{first} 00", f"{last} 00")


@pytest.mark.parametrize("written", ["", "2026-13", "2026Q5", "2026-W54", "2026-02-30", "..", "2026-03..2026-02", "x"])
def test_what_is_no_period_is_refused(written: str) -> None:
    with pytest.raises(UsageError, match="period"):
        parse_period(written, ZoneInfo("UTC"))
