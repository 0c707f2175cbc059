"""Jobs that have not ended, or never began: what is counted of them, and what is left out and said to be."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import polars.selectors as cs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.analyze.shared_sql import base_sql
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.example_counts import examples
from tests.result_tables import table_of

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from gpuctl.core.results import Analysis

HEADER = "JobIDRaw|JobID|JobName|User|Partition|State|Submit|Eligible|Start|End|Elapsed|ReqTRES|AllocTRES|NodeList"
DAY = "2026-01-01T"


def row(number: int, state: str, times: str, gpus: int, queue: str = "gpu", *, ran: bool = True) -> str:
    """`times`: submit, eligible, start, end as HH:MM, or a word of Slurm's."""
    stamps = "|".join(f"{DAY}{word}:00" if word[0].isdigit() else word for word in times.split())
    held = f"gres/gpu={gpus},node=1|n1" if ran else "|None assigned"
    return f"{number}|{number}|n|u|{queue}|{state}|{stamps}|00:04:00|gres/gpu={gpus}|{held}"


ROWS = (
    row(1, "COMPLETED", "10:00 10:00 10:10 12:00", 2),
    row(2, "PENDING", "10:30 10:30 Unknown Unknown", 8, ran=False),
    row(3, "CANCELLED by 1", "10:30 10:30 None 11:00", 4, ran=False),
    row(4, "RUNNING", "11:30 11:30 11:40 Unknown", 2),
    row(5, "FAILED", "11:00 11:00 11:00 11:10", 2),
    row(6, "FAILED", "11:00 11:00 Unknown 11:10", 2),
    row(7, "RUNNING", "11:50 11:55 11:56 Unknown", 1, "other"),
    row(8, "COMPLETED", "11:00 11:20 11:25 11:30", 1),
)


def result(folder: Path, rows: tuple[str, ...] = ROWS, **options: Any) -> Analysis:
    logs = folder / "logs"
    logs.mkdir()
    (logs / "sacct.txt").write_text("\n".join([HEADER, *rows]) + "\n")
    ingest([logs], folder / "t.duckdb")
    with Store(folder / "t.duckdb") as store:
        return analyze(store, Options(**options))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return result(tmp_path_factory.mktemp("unfinished"))


def table(found: Analysis, name: str) -> pl.DataFrame:
    made = table_of(found, name)
    return made.frame


def rows(found: Analysis, name: str, key: str) -> dict[Any, dict[str, Any]]:
    return {line[key]: line for line in table(found, name).to_dicts()}


def test_series_agree_on_who_waits_after_the_end_of_their_own_log(tmp_path: Path) -> None:
    # of two logs, the one with the pending job ends at noon, the other one four hours later
    logs = tmp_path / "logs"
    logs.mkdir()
    early = (
        row(1, "COMPLETED", "10:00 10:00 10:00 12:00", 2),
        row(2, "PENDING", "10:00 10:00 Unknown Unknown", 8, ran=False),
    )
    late = (row(3, "COMPLETED", "11:00 11:00 11:00 16:00", 2, "other"),)
    for name, own in (("a.txt", early), ("b.txt", late)):
        (logs / name).write_text("\n".join([HEADER, *own]) + "\n")
    ingest([logs], tmp_path / "t.duckdb", cluster="c")
    with Store(tmp_path / "t.duckdb") as store:
        made = analyze(store, Options(tables=("occupancy", "activity")))
    waiting = {line["ts"].hour: line["waiting"] for line in table(made, "activity").to_dicts()}
    assert waiting == {10: 1, 11: 1, 12: 0, 13: 0, 14: 0, 15: 0}
    for line in table(made, "occupancy").to_dicts():
        assert (line["jobs_waiting"], line["gpus_waited_for"]) == ((1, 8) if line["ts"].hour < 12 else (0, 0)), line[
            "ts"
        ]


def test_waits_that_never_ended_are_counted_to_the_end_of_the_log(found: Analysis) -> None:
    sizes = rows(found, "never_started", "size_bucket")
    assert set(sizes) == {"2-4", "5-8", "all"}
    assert sizes["5-8"] == {
        **{"size_bucket": "5-8", "waiting": 1, "waiting_gpus": 8, "waiting_p50_min": 90, "waiting_max_min": 90},
        **{"waiting_h": 1.5, "given_up": 0, "given_up_p50_min": None, "given_up_h": None},
    }
    assert (sizes["2-4"]["given_up"], sizes["2-4"]["given_up_p50_min"]) == (1, 30)
    assert (sizes["all"]["waiting"], sizes["all"]["given_up"]) == (1, 1)


def test_waits_that_never_ended_are_in_the_waits(found: Analysis, tmp_path: Path) -> None:
    every = rows(found, "wait_by_size", "size_bucket")
    assert [every[size]["not_started"] for size in ("1", "2-4", "5-8", "all")] == [0, 1, 1, 2]
    assert (every["5-8"]["waits"], every["5-8"]["p50_min"], every["5-8"]["km_p50_min"]) == (0, None, None)
    # 0, 6, 10, 10 and 25 min to the start; 30 given up, 90 and more: half of seven start within 10 min
    assert every["all"]["waits"] == 5
    assert (every["all"]["p50_min"], every["all"]["km_p50_min"], every["all"]["km_p95_min"]) == (10, 10, None)
    queues = [row for row in table(found, "wait_by_queue").to_dicts() if row["size_bucket"] == "all"]
    assert [(row["queue"], row["not_started"]) for row in queues] == [("gpu", 2), ("other", 0)]
    # worked out by hand: 2 of 4 start at 10 min; the third is given up at 20; the last one starts at 40, alone by then
    four = (
        row(1, "COMPLETED", "10:00 10:00 10:10 12:00", 1),
        row(2, "COMPLETED", "10:00 10:00 10:10 12:00", 1),
        row(3, "CANCELLED by 1", "10:00 10:00 None 10:20", 1, ran=False),
        row(4, "COMPLETED", "10:00 10:00 10:40 12:00", 1),
    )
    one = rows(result(tmp_path, four, tables=("wait_by_size",)), "wait_by_size", "size_bucket")["1"]
    assert (one["not_started"], one["km_p50_min"], one["km_p95_min"]) == (1, 10, 40)


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=30))
def test_kaplan_and_meier_as_their_formula_has_it(spells: list[tuple[int, bool]]) -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE base_waits (queue VARCHAR, size_bucket VARCHAR, seconds DOUBLE)")
    con.execute("CREATE TABLE base_never_started (queue VARCHAR, size_bucket VARCHAR, so_far_s DOUBLE)")
    for into, which in (("base_waits", True), ("base_never_started", False)):
        seconds = [at for at, started in spells if started is which]
        con.execute(f"INSERT INTO {into} SELECT 'q', '1', unnest(?::INTEGER[])", [seconds])
    for name, share in (("km_p50_min", 0.5), ("km_p95_min", 0.95)):
        left, answer = Fraction(1), None
        for at in sorted({seconds for seconds, started in spells if started}):
            waiting = sum(seconds >= at for seconds, _ in spells)
            left *= 1 - Fraction(spells.count((at, True)), waiting)
            if left <= 1 - Fraction(str(share)):
                answer = at / 60
                break
        found = con.execute(f"SELECT DISTINCT {name}, not_started FROM ({base_sql('wait_survival')})").fetchall()
        assert found == [(None if answer is None else pytest.approx(answer), sum(not s for _, s in spells))]


def test_a_source_without_starts_does_not_tell_what_never_started(tmp_path: Path) -> None:
    (tmp_path / "derived.csv").write_text(
        "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,vc1\n"
    )
    texts = [HEADER.replace("|Start", "")] + [
        "|".join(cell for at, cell in enumerate(line.split("|")) if at != 8) for line in ROWS
    ]
    (tmp_path / "sacct.txt").write_text("\n".join(texts) + "\n")
    for name, waiting in (("derived.csv", []), ("sacct.txt", [(1, 0), (1, 0)])):
        ingest([tmp_path / name], tmp_path / "t.duckdb", cluster=name)
        with Store(tmp_path / "t.duckdb") as store:
            table = analyze(store, Options(cluster=name, tables=("never_started",))).table("never_started")
        assert table is not None
        assert table.frame.select("waiting", "given_up").rows() == waiting


def test_a_job_whose_end_is_not_reported_has_no_waiting_time(tmp_path: Path, sample_data: Path) -> None:
    ingest([sample_data / "philly" / "cluster_job_log"], tmp_path / "t.duckdb", cluster="c")
    with Store(tmp_path / "t.duckdb") as store:
        given_up = rows(analyze(store, Options(tables=("never_started",))), "never_started", "size_bucket")["all"]
    assert (given_up["given_up"], given_up["given_up_p50_min"], given_up["given_up_h"]) == (4, None, None)


def test_the_curve_ends_with_those_that_still_wait(found: Analysis) -> None:
    table = table_of(found, "occupancy")
    curve = {row["ts"].strftime("%H:%M"): row for row in table.frame.to_dicts()}
    assert (curve["11:59"]["jobs_waiting"], curve["11:59"]["gpus_waited_for"]) == (1, 8)
    assert curve["10:45"]["jobs_waiting"] == 2, "the one that was cancelled at 11:00 waited too"
    assert curve["11:15"]["jobs_waiting"] == 2, "2, and 8 until it starts"


def test_bins_are_means_of_every_minute(tmp_path: Path) -> None:
    # bins of three minutes, times in whole minutes: each bin is the mean of its minutes
    rng = random.Random(5)
    jobs = [[*sorted(rng.randrange(1200) for _ in range(3)), rng.choice([1, 2, 8])] for _ in range(300)]
    jobs += [[0, 0, 1200, 1]]
    lines = []
    for number, (queued, start, end, gpus) in enumerate(jobs):
        at = [f"{minute // 60:02}:{minute % 60:02}" for minute in (queued, queued, start, end)]
        lines.append(row(number, "COMPLETED", " ".join(at), gpus))
    bins = table(result(tmp_path, tuple(lines), tables=("occupancy",)), "occupancy").to_dicts()
    assert len(bins) == 400
    held, waiting, asked = (np.zeros(1200) for _ in range(3))
    for queued, start, end, gpus in jobs:
        held[start:end] += gpus
        waiting[queued:start] += 1
        asked[queued:start] += gpus
    for name, each in (("gpus_busy", held), ("jobs_waiting", waiting), ("gpus_waited_for", asked)):
        assert [line[name] for line in bins] == pytest.approx(each.reshape(400, 3).mean(axis=1).tolist(), rel=1e-12)


def test_overview_and_data_quality_mean_the_same(found: Analysis) -> None:
    overview, quality = found.table("overview"), rows(found, "data_quality", "finding")
    assert overview is not None
    assert "3 without a start: the log lacks the start of 1; the rest are in never_started" in overview.population
    assert quality["ended attempts without a start in the log"]["rows"] == 1
    assert quality["attempts, and jobs without an attempt, that never started"]["rows"] == 2


def test_jobs_that_are_not_over_are_no_successes(found: Analysis) -> None:
    # 1, 3, 5 and 6 of 1 to 6 are over, 8 of 7 and 8
    assert rows(found, "attempts_by_size", "size_bucket")["all"]["failed_pct"] == pytest.approx(100 * 2 / 5)


def test_waits_mostly_before_eligibility_have_a_count(found: Analysis) -> None:
    for name, key in (("delay_by_size", "size_bucket"), ("delay_by_queue", "queue")):
        row = rows(found, name, key)["all"]
        assert row["ineligible"] == 2, "7 and 8"
        parts = ("fair_share", "capacity", "fragmentation", "scheduler", "ineligible")
        assert sum(row[part] for part in parts) == row["waits"]


def test_gpu_hours_that_are_not_known_are_empty(found: Analysis) -> None:
    states = rows(found, "status", "state")
    assert states["running"]["gpu_hours_span"] is None, "its run time is not known, what it held so far is"
    assert states["running"]["gpu_hours"] == pytest.approx(44 / 60)
    assert states["pending"]["gpu_hours"] == 0
    queues = rows(found, "queues", "queue")
    # held so far by what still runs, as in overview and for users
    assert queues["other"]["gpu_hours"] == pytest.approx(240 / 3600)
    [overview] = table(found, "overview").to_dicts()
    assert sum(row["gpu_hours"] for row in queues.values()) == pytest.approx(overview["gpu_hours"])


def test_gpu_hours_of_a_duration_that_the_source_does_not_tell_are_empty(tmp_path: Path) -> None:
    (tmp_path / "derived.csv").write_text(
        "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,3600.0,2,7200.0,vc1\n"
    )
    ingest([tmp_path / "derived.csv"], tmp_path / "t.duckdb", cluster="c")
    with Store(tmp_path / "t.duckdb") as store:
        everything = rows(analyze(store, Options(tables=("status",))), "status", "state")["all"]
    hours = [everything[f"gpu_hours{kind}"] for kind in ("", "_sum", "_span", "_last")]
    assert hours == [2, 2, None, None]


def test_attempts_of_unknown_size_are_counted_wherever_they_lack(tmp_path: Path, root: Path) -> None:
    """A dump of YARN's REST interface tells what applications held only while they ran."""
    ingest([root / "tests" / "fixtures" / "yarn" / "2.10.2" / "rest-end.zip"], tmp_path / "t.duckdb")
    with Store(tmp_path / "t.duckdb") as store:
        found = analyze(store, Options(tables=("overview", "gpu_hours_lost")))
    assert table(found, "overview")["size_unknown"].item() == 13
    assert "no source states how many GPUs 13 of 15 attempts held, 0.08 hours in all" in " ".join(found.warnings)
    lost = table_of(found, "gpu_hours_lost")
    assert "no source states the GPUs of 13" in lost.population


def test_waits_without_a_cause_are_reported_if_no_quota_is_guessed(found: Analysis) -> None:
    assert any("no known limit, capacity or fragmentation explains" in warning for warning in found.warnings)


def test_guessed_racks_are_reported(tmp_path: Path) -> None:
    gang = row(1, "COMPLETED", "10:00 10:00 10:10 12:00", 2).replace("node=1|n1", "node=2|n[1-2]")
    warning = "the rack is a guess"
    assert any(warning in text for text in result(tmp_path, (gang,), tables=("queue_delays",)).warnings)
    (tmp_path / "given").mkdir()
    given = result(tmp_path / "given", (gang,), tables=("queue_delays",), racks={"n1": "r", "n2": "r"})
    assert not any("racks" in text for text in given.warnings)


def test_sources_are_a_table(found: Analysis) -> None:
    table = table_of(found, "sources")
    [line] = table.frame.to_dicts()
    assert line["path"].endswith("logs/sacct.txt")
    assert (line["format"], line["rows_in"], line["rows_loaded"], line["rows_rejected"]) == ("slurm-sacct", 8, 8, 0)


def test_seconds_have_no_noise_of_binary_numbers(tmp_path: Path, root: Path) -> None:
    """YARN's times have milliseconds; as seconds since 1970 they are exact to a few ten-millionths only."""
    ingest([root / "tests" / "fixtures" / "yarn" / "3.5.0" / "rest-end.zip"], tmp_path / "t.duckdb")
    ingest(
        [root / "tests" / "fixtures" / "yarn" / "3.5.0" / "hadoop-lab-resourcemanager-rm01.log.gz"],
        tmp_path / "t.duckdb",
        cluster="rest-end",
    )
    with Store(tmp_path / "t.duckdb") as store:
        table = analyze(store, Options(tables=("queue_delays",))).table("queue_delays")
    assert table is not None
    seconds = table.frame.select(cs.ends_with("_s") & cs.float()).unpivot()["value"].drop_nulls()
    assert any(not value.is_integer() for value in seconds), "nothing here that could be inexact"
    assert [value for value in seconds if round(value, 6) != value] == []
