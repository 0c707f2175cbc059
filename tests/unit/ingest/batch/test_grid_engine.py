"""Accounting files of Grid Engine: SGE 6, UGE with milliseconds, the reporting file, JSON lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.batch.grid_engine import finished, split
from tests.batch_records import sge
from tests.unit.ingest.batch.loaded import JOBS, PLACES, RUNS, ask, fixture, load

if TYPE_CHECKING:
    from pathlib import Path

# worked out by hand from the records of tests/fixtures/batch/accounting
WANT: list[tuple[Any, ...]] = [
    ("201", "completed", 2, 1, 1, 1, 60, 300, 0, None, None, []),
    ("202.3", "completed", 1, 4, None, 1, 60, 300, 0, None, None, []),
    ("202.4", "failed", 1, 4, None, 1, 61, 300, 1, None, None, []),
    ("203", "completed", 8, 16, 2, 1, 60, 300, 0, None, None, []),
    ("204", "completed", 2, 1, 1, 2, 60, 420, 0, None, None, []),
    ("205", "timeout", 2, 1, 1, 1, 60, 3600, None, 9, "failed 37: run time or memory limit enforced", []),
    ("206", "out_of_memory", 2, 1, 1, 1, 60, 300, None, 9, "failed 100: assumedly after the job", []),
    ("207", "failed", 2, 1, 1, 1, 60, 300, None, 11, "failed 100: assumedly after the job", []),
    ("208", "failed", 2, None, None, 1, None, None, None, None, "failed 1: before the job", []),
    ("209", "completed", 4, 16, None, 1, 60, 300, 0, None, None, []),
    ("210", "killed", 1, 1, 1, 1, 60, 300, None, 9, "deleted by eve@login1", []),
]


def test_the_sample_gives_what_was_worked_out_by_hand(tmp_path: Path) -> None:
    store, report = load(tmp_path, {"accounting": fixture("accounting")})
    assert [(s.format, s.rows_loaded, s.rows_rejected) for s in report.sources] == [("sge-accounting", 13, 0)]
    assert ask(store, JOBS) == WANT
    assert [run for run in ask(store, RUNS) if run[0] in {"204", "208"}] == [
        ("204", 0, 15, 75, 195, "killed", 2, "requeued"),
        ("204", 1, 195, 205, 505, "completed", 2, None),
        ("208", 0, 35, None, 95, "failed", 2, "failed 1: before the job"),
    ]
    assert [place for place in ask(store, PLACES) if place[0] in {"201", "202.3", "203"}] == [
        ("201", 0, "n1", 2, False), ("202.3", 0, "n1", 1, True), ("203", 0, "n1", 4, True), ("203", 0, "n2", 4, True),
    ]  # fmt: skip
    sql = "SELECT job, array_job, array_task, account, queue, gpu_type, time_limit_s FROM jobs"
    assert ask(store, f"{sql} WHERE job IN ('202.3', '209') ORDER BY job") == [
        ("202.3", "202", "3", "vision", "gpu.q", None, 1800), ("209", None, None, "vision", "gpu.q", "a100", None),
    ]  # fmt: skip


def test_json_lines_state_the_same_in_microseconds(tmp_path: Path) -> None:
    store, report = load(tmp_path, {"accounting.jsonl": fixture("accounting.jsonl")})
    assert [(s.format, s.rows_loaded) for s in report.sources] == [("sge-accounting-json", 3)]
    sql = "SELECT job, state, gpus, account, wait_s, run_sum_s, exit_code, exit_signal FROM jobs ORDER BY job"
    assert ask(store, sql) == [
        ("301", "completed", 2, "sge", 60.25, 300.5, 0, None), ("302.7", "killed", 2, "sge", 60.25, 300.5, None, 15),
        ("303", "completed", 2, "vision", 60.25, 300.5, 0, None),
    ]  # fmt: skip


def test_the_reporting_file_has_the_same_records_among_others(tmp_path: Path) -> None:
    lines = [line for line in fixture("accounting").splitlines() if not line.startswith("#")]
    report = [f"{1_800_000_000 + k}:acct:{line}" for k, line in enumerate(lines)]
    others = ["1800000001:new_job:1800000001:201:-1:NONE:fit.sh:eve:staff::defaultdepartment:sge:1024"]
    others += ["1800000002:host:n1:1800000002:X:np_load_avg=0.5"]
    store, found = load(tmp_path, {"reporting": "\n".join([*others, *report]) + "\n"})
    assert [(s.format, s.rows_loaded, s.rows_rejected) for s in found.sources] == [("sge-accounting", 15, 0)]
    assert ask(store, JOBS) == WANT


@pytest.mark.parametrize(
    ("category", "gpus", "kind", "limit"),
    [
        ("NONE", 0, None, None), ("-l gpu=1", 1, None, None), ("-u eve -l ngpus=2 -pe smp 4", 2, None, None),
        ("-l gpu=TRUE,h_rt=24:00:00", 1, None, 86400), ("-l h_rt=600,s_rt=540", 0, None, 540),
        ("-l cuda=0.5,gpu_model=V100", 0.5, "V100", None), ("-l gpu=2(cuda0)", 2, None, None),
        ("-l gpu_mem=16G,gpu_c=6.0", 0, None, None), ("-l h_rt=0:10:0:5", 0, None, None),
    ],
)  # fmt: skip
def test_gpus_and_limits_are_those_of_the_category(
    category: str, gpus: float, kind: str | None, limit: int | None
) -> None:
    facts = finished(split(sge(1, 5, 60, 90, category=category)), set()).facts
    assert (facts["gpus"], facts["gpu_type"], facts["time_limit_s"]) == (gpus, kind, limit)


def test_colons_in_a_category_do_not_shift_the_fields_behind_it() -> None:
    account = split(sge(1, 5, 60, 90, category="-l cpu=24:00:00", pe_task="3.n4"))
    assert (account.category, account.pe_task, account.max_vmem) == ("-l cpu=24:00:00", "3.n4", "189153280.000000")


@pytest.mark.parametrize("cut", [10, 60, 120, 170])
def test_a_line_that_is_cut_off_is_rejected(cut: int) -> None:
    with pytest.raises(RowError):
        finished(split(sge(1, 5, 60, 90)[:cut]), set())


def test_a_record_without_any_time_is_rejected() -> None:
    with pytest.raises(RowError, match="neither submission_time, start_time nor end_time"):
        finished(split(sge(1, 0, 0, 0, failed=9)), set())
