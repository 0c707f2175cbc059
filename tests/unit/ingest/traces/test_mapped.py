"""Any other CSV of jobs, by what the user says of its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import formats_for
from gpuctl.ingest.traces.mapped import NAME, ColumnMapping, column_mapping, with_map
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path


TABLE = """id;who;gpu milli;queued at;run_min;outcome;memory
a;u1;4000;2026-01-01 10:00:00;90;Pass;1.5
b;u2;500;2026-01-01 11:00:00;10.5;gone;
c;u2;x;2026-01-01 11:00:00;10.5;gone;
"""
MAP = ["id=job_id,who=user,gpu milli=num_gpus", "queued at=submit_time,run_min=duration,outcome=state,memory=mem_mb"]
JOBS = 'SELECT job, "user", gpus, epoch(submit_ts), run_sum_s, state, mem_mb FROM jobs ORDER BY job'


def loaded(folder: Path, text: str, mapping: ColumnMapping) -> Store:
    path = folder / "jobs.csv"
    path.write_text(text)
    ingest([path], folder / "s.duckdb", formats=formats_for(None, mapped=mapping), log_format=NAME, timezone="UTC")
    return Store(folder / "s.duckdb")


def test_columns_are_what_the_user_says_and_a_file_keeps_it(tmp_path: Path) -> None:
    mapping = column_mapping(MAP, ["duration=min,num_gpus=milli", "mem_mb=gb"])
    assert mapping is not None
    saved = tmp_path / "site.toml"
    # states and separators are said in the file alone
    saved.write_text(
        ColumnMapping(mapping.columns, mapping.units, {"gone": "node_fail"}, ";")
        .toml()
        .replace('"gpu milli"', '"gpu milli" ')
    )
    again = column_mapping([str(saved)], [])
    assert again == ColumnMapping(mapping.columns, mapping.units, {"gone": "node_fail"}, ";")
    assert with_map(again).sniff("x", TABLE.encode()) is not None
    assert with_map(mapping).sniff("x", TABLE.encode()) is None
    with loaded(tmp_path, TABLE, again) as store:
        assert store.execute(JOBS).fetchall() == [
            ("a", "u1", 4.0, 1767261600.0, 5400.0, "completed", 1536),
            ("b", "u2", 0.5, 1767265200.0, 630.0, "node_fail", None),
        ]
        assert store.execute("SELECT line_no, reason FROM rejects").fetchall() == [
            (4, "gpu milli is not a number, 0 or more")
        ]
        assert store.value("SELECT epoch FROM clusters") is None


def test_columns_with_our_names_need_not_be_named_and_seconds_have_no_dates(tmp_path: Path) -> None:
    text = "n,submit_time,wait,duration,gpus\n1,60,30,100,8\n1,90,0,10,1\n"
    mapping = column_mapping(["gpus=num_gpus"], ["submit_time=min"])
    assert mapping is not None
    with loaded(tmp_path, text, mapping) as store:
        times = "epoch(submit_ts), epoch(start_ts), epoch(end_ts)"
        sql = f"SELECT job, gpus, {times}, wait_s, run_sum_s FROM jobs ORDER BY job"
        assert store.execute(sql).fetchall() == [
            ("row-2", 8.0, 3600.0, 3630.0, 3730.0, 30.0, 100.0), ("row-3", 1.0, 5400.0, 5400.0, 5410.0, 0.0, 10.0),
        ]  # fmt: skip
        assert store.value("SELECT epoch FROM clusters") == "relative"


@pytest.mark.parametrize(
    ("rows", "starts", "epoch"),
    [
        ('"1","a","1767261600","2026-01-01 11:00:00"', [1767265200.0], None),
        ("1,a,1767261600,\n2,b,1767261601,2026-01-01 11:00:00", [None, 1767265200.0], None),
        ('1,"a,b",1767261600,2026-01-01 11:00:00', [1767265200.0], None),
        ("1,a,60,\n2,b,61,90", [None, 90.0], "relative"),
        ("1,a,1767261600,0\n2,b,1767261601,1767261605", [0.0, 1767261605.0], None),
    ],
)
def test_the_form_of_times_follows_from_the_first_one(
    rows: str, starts: list[float | None], epoch: str | None, tmp_path: Path
) -> None:
    mapping = column_mapping(["id=job_id,at=submit_time,from=start_time"], [])
    assert mapping is not None
    with loaded(tmp_path, f"id,name,at,from\n{rows}\n", mapping) as store:
        found = store.execute("SELECT epoch(start_ts) FROM jobs ORDER BY job").fetchall()
        assert [start for (start,) in found] == starts
        assert store.value("SELECT epoch FROM clusters") == epoch


def test_a_submission_follows_of_start_and_wait(tmp_path: Path) -> None:
    mapping = column_mapping(["gpus=num_gpus"], ["wait=min"])
    assert mapping is not None
    with loaded(tmp_path, "gpus,start_time,wait,duration\n8,600,2,100\n", mapping) as store:
        sql = "SELECT epoch(submit_ts), epoch(start_ts), wait_s FROM jobs"
        assert store.execute(sql).fetchall() == [(480.0, 600.0, 120.0)]


@pytest.mark.parametrize(
    ("maps", "units", "match"),
    [
        (["gpu_num"], [], "cannot be opened|no such file|cannot be read"),
        (["a=num_gpu"], [], "no column 'num_gpu'"),
        (["a=num_gpus,b=num_gpus"], [], "two columns are num_gpus"),
        (["a="], [], "expected NAME=VALUE"),
        ([], ["duration=min"], "--unit needs --map"),
        (["a=num_gpus"], ["duration=weeks"], "units of duration are us, ms, s, min, h, d"),
        (["a=num_gpus"], ["user=s"], "units of user are none"),
    ],
)
def test_an_empty_file_is_rejected(maps: list[str], units: list[str], match: str) -> None:
    with pytest.raises((UsageError, InputError), match=match):
        column_mapping(maps, units)


def test_a_file_without_those_columns_is_refused(tmp_path: Path) -> None:
    mapping = column_mapping(["a=num_gpus"], [])
    assert mapping is not None
    report_of = tmp_path / "jobs.csv"
    report_of.write_text("b,submit_time\n1,2\n")
    known = formats_for(None, mapped=mapping)
    report = ingest([report_of], tmp_path / "s.duckdb", formats=known, log_format=NAME)
    assert "no column a; found b, submit_time" in report.sources[0].message
