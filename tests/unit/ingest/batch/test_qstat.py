"""qstat -f -F json of PBS: what runs, waits and ended, beside the accounting log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.unit.ingest.batch.loaded import JOBS, PLACES, RUNS, ask, fixture, load

if TYPE_CHECKING:
    from pathlib import Path

T0 = 1_800_000_000


def test_the_sample_gives_what_was_worked_out_by_hand(tmp_path: Path) -> None:
    store, report = load(tmp_path, {"qstat.json": fixture("qstat.json")})
    assert [(s.format, s.rows_loaded, s.rows_rejected) for s in report.sources] == [("pbs-qstat-json", 7, 0)]
    assert ask(store, JOBS) == [
        ("501", "completed", 4, 8, 2, 1, 60, 300, 0, None, None, []),
        ("502", "running", 4, 8, 1, 1, 590, None, None, None, None, []),
        ("503", "pending", 4, 8, 2, 1, None, None, None, None, None, []),
        ("504[2]", "pending", 4, 8, 2, 1, None, None, None, None, None, []),
        ("505", "killed", 4, 8, 2, 1, None, None, None, None, "deleted", []),
        ("506", "timeout", 4, 8, 1, 1, 50, 600, None, None, None, []),
    ]
    assert [place for place in ask(store, PLACES) if place[0] == "501"] == [
        ("501", 0, "n1", 2, False), ("501", 0, "n2", 2, False),
    ]  # fmt: skip


def test_accounting_completes_the_jobs_of_a_listing(tmp_path: Path) -> None:
    ended = (
        f"user=eve queue=gpu ctime={T0 + 10} qtime={T0 + 10} start={T0 + 600} end={T0 + 900} Exit_status=1 run_count=1 "
        "exec_vnode=(n3:ncpus=8:ngpus=4) Resource_List.ngpus=4 Resource_List.walltime=00:10:00"
    )
    store, _ = load(tmp_path, {"qstat.json": fixture("qstat.json")})
    _, report = load(tmp_path, {"20270115": f"01/15/2027 08:15:00;E;502.s;{ended}\n"})
    assert [(s.format, s.rows_loaded) for s in report.sources] == [("torque-accounting", 1)]
    assert [run for run in ask(store, RUNS) if run[0] == "502"] == [("502", 0, 10, 600, 900, "failed", 4, None)]
    load(tmp_path, {"again.json": fixture("qstat.json") + "\n"})
    assert [run[5] for run in ask(store, RUNS) if run[0] == "502"] == ["failed"]


def test_damage_costs_the_job_that_it_is_in(tmp_path: Path) -> None:
    text = fixture("qstat.json")
    at = text.index('"503.s"')
    broken = text[:at] + text[at:].replace('"job_state": "Q",', '"job_state": Q",', 1)
    _, report = load(tmp_path, {"qstat.json": broken})
    assert [(s.rows_in, s.rows_loaded, s.rows_rejected) for s in report.sources] == [(7, 6, 1)]
    cut = json.dumps(json.loads(text))[:-200]
    _, report = load(tmp_path / "cut", {"qstat.json": cut})
    assert [(s.rows_in, s.rows_rejected) for s in report.sources] == [(7, 1)]
