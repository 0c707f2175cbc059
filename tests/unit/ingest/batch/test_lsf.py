"""lsb.acct of LSF: records of four versions, GPUs as requested and allocated, ends and their reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.batch.lsf import finished
from tests.batch_records import gpu_alloc, lsf
from tests.unit.ingest.batch.loaded import COUNTS, JOBS, PLACES, RUNS, ask, fixture, load

if TYPE_CHECKING:
    from pathlib import Path

# worked out by hand from the records of tests/fixtures/batch/lsb.acct
WANT: list[tuple[Any, ...]] = [
    ("101", "completed", 0, 1, 1, 1, 60, 300, 0, None, None, []),
    ("102[3]", "failed", 0, 3, 2, 1, 60, 300, 255, None, None, []),
    ("103", "timeout", 4, 32, 2, 1, 60, 43200, 130, None, "TERM_RUNLIMIT", []),
    ("104", "completed", 6, 2, 2, 1, 60, 600, 0, None, None, []),
    ("105", "completed", 8, 4, 2, 1, 60, 600, 0, None, None, []),
    ("106", "killed", 1, None, None, 1, None, None, None, None, "TERM_OWNER", []),
    ("107", "completed", 1, 1, 1, 2, 60, 200, 0, None, None, []),
    ("108", "out_of_memory", 1, 1, 1, 1, 60, 300, 137, None, "TERM_MEMLIMIT", []),
    ("109", "failed", 1, 1, 1, 1, 60, 300, None, 11, None, []),
    ("110", "preempted", 8, 1, 1, 1, 60, 300, 130, None, "TERM_PREEMPT", []),
]


def test_the_sample_gives_what_was_worked_out_by_hand(tmp_path: Path) -> None:
    store, report = load(tmp_path, {"lsb.acct": fixture("lsb.acct")})
    assert [(s.format, s.rows_loaded, s.rows_rejected) for s in report.sources] == [("lsf-acct", 13, 0)]
    assert ask(store, JOBS) == WANT
    assert [run for run in ask(store, RUNS) if run[0] in {"106", "107"}] == [
        ("106", 0, 30, None, 130, "killed", 1, "TERM_OWNER"),
        ("107", 0, 35, 95, 195, "killed", 1, "requeued"),
        ("107", 1, 195, 205, 305, "completed", 1, None),
    ]
    assert [place for place in ask(store, PLACES) if place[0] in {"103", "104", "105"}] == [
        ("103", 0, "n1", 2, False), ("103", 0, "n2", 2, False), ("104", 0, "n1", 4, False), ("104", 0, "n2", 2, False),
        ("105", 0, "n1", 4, False), ("105", 0, "n2", 4, False),
    ]  # fmt: skip
    sql = (
        'SELECT job, array_job, array_task, "user", account, queue, name, gpu_type, time_limit_s, '
        "epoch(eligible_ts)::BIGINT - 1800000000 FROM jobs WHERE job IN ('102[3]', '103', '104', '109') ORDER BY job"
    )
    assert ask(store, sql) == [
        ("102[3]", "102", "3", "eve", "vision", "gpu", "sweep[1-9]", None, None, None),
        ("103", None, None, "eve", "vision", "gpu", "fit", None, 43200, None),
        ("104", None, None, "eve", "vision", "gpu", "fit", "NVIDIAA100", None, 50),
        ("109", None, None, "eve", "vision", "gpu", "fit", None, None, 90),
    ]
    assert ask(store, "SELECT DISTINCT cpu_s FROM attempts WHERE start_ts IS NOT NULL") == [(13.75,)]


@pytest.mark.parametrize(
    ("request_", "hosts", "gpus"),
    [
        ("rusage[mem=6000.00,ngpus_physical=2.00] span[hosts=1] ", 1, 2), ("rusage[ngpus_physical=1/host]", 3, 3),
        ("rusage[ngpus_physical=2:duration=1h:decay=1]", 1, 2), ("rusage[ngpus_physical=8/job]", 3, 8),
        ("rusage[ngpus_physical=2]", 3, 6), ("rusage[ngpus_physical=2/task]", 3, 6), ("rusage[ngpus_shared=2]", 1, 2),
        ("select[((ngpus>0)) && (type == local)] order[r15s:pg] ", 1, 0), ("rusage[ngpus_physical=]", 1, 0),
        ("1*{select[type==local] rusage[ngpus_physical=1]} + 8*{select[type==local]}", 2, None),
        ("rusage[mem=1000] || rusage[ngpus_physical=2]", 1, None), ("rusage[mem=1] || rusage[mem=2]", 1, 0),
    ],
)  # fmt: skip
def test_gpus_of_a_resource_requirement_count_for_each_host_unless_it_says_otherwise(
    request_: str, hosts: int, gpus: float | None
) -> None:
    record = finished(lsf(1, 0, 60, 90, request=request_, hosts=tuple(f"n{k}" for k in range(hosts))))
    assert record.facts["gpus"] == gpus


def test_what_was_allocated_counts_before_what_was_requested() -> None:
    record = finished(lsf(1, 0, 60, 90, hosts=("n1", "n2"), gpu_request="num=4", alloc=gpu_alloc(n1=1)))
    assert record.run is not None
    assert (record.facts["gpus"], record.run["placed"]) == (1, {"n1": 1, "n2": 0})


@pytest.mark.parametrize(
    ("status", "exit_info", "state", "code", "signal"),
    [
        (0, 0, "failed", 0, None), (256, 0, "failed", 1, None), (9, 0, "failed", None, 9),
        (14, 14, "killed", None, None), (33280, 15, "killed", 130, None), (256, 20, "out_of_memory", 1, None),
        (256, 19, "unknown", 1, None),
        (256, 26, "node_fail", 1, None), (256, 99, "failed", 1, None),
    ],
)  # fmt: skip
def test_how_a_job_ended_follows_from_the_reason_before_the_status(
    status: int, exit_info: int, state: str, code: int | None, signal: int | None
) -> None:
    run = finished(lsf(1, 0, 60, 90, status=32, exit_status=status, exit_info=exit_info)).run
    assert run is not None
    assert (run["state"], run["exit_code"], run["exit_signal"]) == (state, code, signal)


def test_a_record_that_is_cut_off_is_rejected_wherever_the_cut_is() -> None:
    whole = lsf(1, 0, 60, 90, hosts=("n1", "n2"), gpu_request="num=4", usage=6, alloc=gpu_alloc(n1=4, n2=4))
    needed = whole.index(' "" -1 "" -1 0 "" 0 0 ')
    for cut in range(20, needed - 1):
        with pytest.raises(RowError):
            finished(whole[:cut])


def test_a_file_whose_beginning_is_cut_off_is_recognised(tmp_path: Path) -> None:
    _, report = load(tmp_path, {"lsb.acct": fixture("lsb.acct")[200:]})
    assert [(s.format, s.rows_loaded, s.rows_rejected) for s in report.sources] == [("lsf-acct", 12, 1)]


def test_rotated_files_that_overlap_give_the_same_as_one(tmp_path: Path) -> None:
    lines = fixture("lsb.acct").splitlines(keepends=True)
    one, _ = load(tmp_path / "one", {"lsb.acct": "".join(lines)})
    parts = {"lsb.acct.1": "".join(lines[:9]), "lsb.acct": "".join(lines[6:])}
    several, _ = load(tmp_path / "several", parts)
    assert [ask(several, sql) for sql in (JOBS, RUNS, PLACES)] == [ask(one, sql) for sql in (JOBS, RUNS, PLACES)]
    assert sorted(ask(several, COUNTS)) == [(7, 7, 0, 0), (9, 6, 3, 0)]


def test_numbers_that_begin_anew_are_other_jobs(tmp_path: Path) -> None:
    text = lsf(7, 0, 60, 90) + "\n" + lsf(7, 86_400, 86_460, 86_500) + "\n"
    store, _ = load(tmp_path, {"lsb.acct": text})
    load(tmp_path, {"lsb.acct": lsf(7, 900_000, 900_060, 900_090) + "\n" + lsf(7, 0, 60, 91) + "\n"})
    assert ask(store, "SELECT job, run_sum_s, quirks FROM jobs ORDER BY job") == [
        ("7", 30, []), ("7@2027-01-16T08:00:00Z", 40, ["id_reused"]), ("7@2027-01-25T18:00:00Z", 30, ["id_reused"]),
    ]  # fmt: skip
    assert ask(store, COUNTS)[0] == (2, 1, 0, 1)
    assert ask(store, "SELECT reason FROM rejects") == [
        ("a record of this job and attempt is in the store already, with other values",)
    ]
