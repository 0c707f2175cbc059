"""Tables over time: GPU-hours split at the borders of periods, against a slow count of every quarter of an hour."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, Any, Literal
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.core.job_filter import parse
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.result_tables import table_of
from tests.sacct_records import text

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.core.results import Analysis

Period = Literal["hour", "day", "week", "month", "quarter"]
STEP_S = 900
OWNERS = {"user": "User", "queue": "Partition", "account": "Account"}


@dataclass(frozen=True)
class Job:
    """A job of one attempt; times in seconds since 1970, all of them whole quarters of an hour."""

    owner: dict[str, str]
    gpus: int
    submit_s: int
    start_s: int
    end_s: int
    state: str


def drawn(seed: int) -> list[Job]:
    """Jobs around the nights in which Berlin's clocks change."""
    chance = random.Random(seed)
    changes = [datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)]
    found = []
    for _ in range(40):
        around = int(chance.choice(changes).timestamp()) + STEP_S * chance.randrange(-2000, 2000)
        start = around + STEP_S * chance.choice([0, 0, 1, 40, 300])
        owner = {kind: f"{kind}{chance.randrange(3)}" for kind in OWNERS}
        length = STEP_S * chance.choice([1, 7, 100, 900, 4000])
        state = chance.choice(["COMPLETED", "FAILED", "CANCELLED"])
        found.append(Job(owner, chance.choice([1, 2, 8]), around, start, start + length, state))
    return found


def loaded(jobs: list[Job], folder: Path) -> Path:
    records = [
        {
            "JobIDRaw": str(k), "Submit": str(job.submit_s), "Eligible": str(job.submit_s), "Start": str(job.start_s),
            "End": str(job.end_s), "State": job.state, "AllocTRES": f"billing=1,cpu=1,gres/gpu={job.gpus}",
            **{column: job.owner[kind] for kind, column in OWNERS.items()},
        }
        for k, job in enumerate(jobs, 1)
    ]  # fmt: skip
    (folder / "sacct.txt").write_text(text(*records))
    ingest([folder / "sacct.txt"], folder / "t.duckdb", cluster="c", timezone="Europe/Berlin")
    return folder / "t.duckdb"


def label(at_s: int, by: Period, zone: str) -> str:
    when = datetime.fromtimestamp(at_s, ZoneInfo(zone))
    week = date(when.year, when.month, when.day).isocalendar()
    return {
        "hour": f"{when:%Y-%m-%d %H:00}",
        "day": f"{when:%Y-%m-%d}",
        "week": f"{week.year}-W{week.week:02}",
        "month": f"{when:%Y-%m}",
        "quarter": f"{when.year}-Q{(when.month + 2) // 3}",
    }[by]


def counted(jobs: list[Job], by: Period, zone: str, kind: str) -> dict[tuple[str, str], tuple[float, int]]:
    """GPU-hours and jobs by period and owner, quarter of an hour by quarter of an hour."""
    hours: defaultdict[tuple[str, str], float] = defaultdict(float)
    for job in jobs:
        for at in range(job.start_s, job.end_s, STEP_S):
            hours[label(at, by, zone), job.owner[kind]] += job.gpus * STEP_S / 3600
    submitted = Counter((label(job.submit_s, by, zone), job.owner[kind]) for job in jobs)
    return {key: (hours[key], submitted[key]) for key in {*hours, *submitted}}


def analyzed(path: Path, *tables: str, **options: Any) -> Analysis:
    with Store(path) as store:
        return analyze(store, Options(tables=tables, **options))


@pytest.fixture(scope="module", params=[1])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Job], Path]:
    jobs = drawn(request.param)
    return jobs, loaded(jobs, tmp_path_factory.mktemp("periods"))


@pytest.mark.parametrize(
    ("by", "zone"),
    [("week", None), ("quarter", None), ("month", "America/New_York"), ("day", "Asia/Kolkata")],
)
def test_periods_have_what_was_held_in_them(site: tuple[list[Job], Path], by: Period, zone: str | None) -> None:
    jobs, path = site
    tables = [f"activity_by_{kind}" for kind in OWNERS]
    found = analyzed(path, *tables, by=by, period_zone=zone)
    for kind in OWNERS:
        frame = table_of(found, f"activity_by_{kind}").frame
        rows = {(row["period"], row[kind]): (row["gpu_hours"], row["jobs"]) for row in frame.to_dicts()}
        expected = counted(jobs, by, zone or "Europe/Berlin", kind)
        assert rows.keys() == expected.keys()
        assert {key: hours for key, (hours, _) in rows.items()} == pytest.approx(
            {key: hours for key, (hours, _) in expected.items()}
        )
        assert {key: n for key, (_, n) in rows.items()} == {key: n for key, (_, n) in expected.items()}


def test_waits_are_in_the_period_of_the_submission(site: tuple[list[Job], Path]) -> None:
    jobs, path = site
    waits: defaultdict[str, list[float]] = defaultdict(list)
    for job in jobs:
        waits[label(job.submit_s, "week", "Europe/Berlin")].append((job.start_s - job.submit_s) / 60)
    frame = table_of(analyzed(path, "activity", by="week"), "activity").frame.filter(pl.col("submitted") > 0)
    assert dict(frame.select("period", "wait_p50_min").iter_rows()) == pytest.approx(
        {week: median(minutes) for week, minutes in waits.items()}
    )
    assert dict(frame.select("period", "submitted").iter_rows()) == {week: len(each) for week, each in waits.items()}


@pytest.mark.parametrize(("by", "clock"), [("hour", "utc"), ("month", "utc"), ("day", "wall"), ("quarter", "wall")])
def test_periods_add_up_to_the_tables_without_them(
    site: tuple[list[Job], Path], by: Period, clock: str, tmp_path: Path
) -> None:
    """Also on a log whose durations are differences of wall-clock times, which skip an hour or repeat one."""
    path = tmp_path / "t.duckdb"
    path.write_bytes(site[1].read_bytes())
    with Store(path, write=True) as store:
        store.execute("UPDATE clusters SET clock = $clock", {"clock": clock})
    names = ("activity", "activity_by_user", "activity_by_queue", "activity_by_account", "charges_by_user", "charges")
    found = analyzed(path, *names, "overview", "gpu_hours_lost", "users", by=by)
    [held] = table_of(found, "overview").frame["gpu_hours"]
    lost = table_of(found, "users").frame["lost_gpu_hours"].sum()
    for name in names:
        frame = table_of(found, name).frame
        assert frame["gpu_hours"].sum() == pytest.approx(held, rel=1e-9), name
        if "lost_gpu_hours" in frame.columns:
            assert frame["lost_gpu_hours"].sum() == pytest.approx(lost, rel=1e-9), name
    by_user = table_of(found, "users").frame.select("user", "gpu_hours").sort("user")
    split = table_of(found, "activity_by_user").frame.group_by("user").agg(pl.col("gpu_hours").sum()).sort("user")
    assert split["gpu_hours"].to_list() == pytest.approx(by_user["gpu_hours"].to_list())


def test_a_filter_by_time_has_the_hours_held_in_it(site: tuple[list[Job], Path]) -> None:
    """--since and --until give a period the same figures as --by does, also of users who submitted nothing in it."""
    jobs, path = site
    month = counted(jobs, "month", "Europe/Berlin", "user")
    wanted = parse(since="2026-04-01T00:00+02:00", until="2026-05-01T00:00+02:00")
    names = ("overview", "users", "queues", "accounts", "gpu_hours_lost", "charges_by_user", "activity_by_user")
    found = analyzed(path, *names, "activity", "occupancy", by="month", filter=wanted)
    april = {user: hours for (period, user), (hours, _) in month.items() if period == "2026-04" and hours}
    total = sum(april.values())
    assert april
    for name in ("users", "charges_by_user", "activity_by_user"):
        held = table_of(found, name).frame.filter(pl.col("gpu_hours") > 0)
        assert dict(held.select("user", "gpu_hours").iter_rows()) == pytest.approx(april), name
    for name in ("overview", "queues", "accounts", "activity"):
        assert table_of(found, name).frame["gpu_hours"].sum() == pytest.approx(total), name
    lost = table_of(found, "gpu_hours_lost").frame.filter(pl.col("size_bucket") == "all")
    assert lost["gpu_hours"].to_list() == pytest.approx([total])
    submitted = {user: n for (period, user), (_, n) in month.items() if period == "2026-04" and n}
    assert (
        dict(table_of(found, "users").frame.filter(pl.col("jobs") > 0).select("user", "jobs").iter_rows()) == submitted
    )
    times = table_of(found, "occupancy").frame["ts"]
    assert (times.min(), times.max() < datetime(2026, 5, 1, tzinfo=UTC)) == (
        datetime(2026, 3, 31, 22, tzinfo=UTC),
        True,
    )


def test_series_on_the_screen_end_with_the_filter(site: tuple[list[Job], Path]) -> None:
    jobs, path = site
    since, until = datetime(2026, 3, 28, 5, tzinfo=UTC), datetime(2026, 4, 2, 5, tzinfo=UTC)
    wanted = parse(since=since.isoformat(), until=until.isoformat())
    frame = table_of(analyzed(path, "occupancy", filter=wanted), "occupancy").frame
    length = (until - since) / frame.height
    assert frame["ts"][0] == since
    assert length <= timedelta(hours=1)
    held = [
        sum(job.gpus * max(0, min(job.end_s, until.timestamp()) - max(job.start_s, since.timestamp())) for job in jobs)
    ]
    assert [frame["gpus_busy"].mean() * (until - since).total_seconds()] == pytest.approx(held, rel=0.01)
