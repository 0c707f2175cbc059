"""ClassAds of HTCondor: three encodings, evictions as attempts, epoch ads, removal and holds, nodes of DAGMan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.batch_records import T0, condor, long_ad, xml_ads
from tests.unit.ingest.batch.loaded import COUNTS, JOBS, PLACES, RUNS, ask, fixture, load

if TYPE_CHECKING:
    from pathlib import Path

# worked out by hand from the ads of tests/fixtures/batch/history
WANT: list[tuple[Any, ...]] = [
    ("401.0", "completed", 2, 4, 1, 1, 60, 300, 0, None, None, []),
    ("402.0", "failed", 2, 4, 1, 2, 60, 500, None, 11, None, []),
    ("403.0", "completed", 2, 4, 1, 3, 60, 400, 0, None, None, ["earlier_attempts_lost"]),
    ("404.0", "killed", 1, 4, None, 1, None, None, None, None, "via condor_rm (by user eve)", []),
    ("405.0", "killed", 1, 4, 1, 1, 60, 100, None, None, 'removed: "out of time"', []),
    ("406.0", "pending", 1, 4, None, 2, 60, 100, None, None, None, []),
    ("407.0", "running", 1, 4, 1, 1, 60, None, None, None, None, []),
    ("408.0", "pending", 4, 4, None, 1, None, None, None, None, None, []),
    ("410.0", "completed", 2, 4, 1, 1, 60, 100, 0, None, None, []),
    ("411.0", "completed", 2, 4, 1, 1, 60, 100, 0, None, None, []),
]


@pytest.mark.parametrize("name", ["history", "history.json", "history.xml"])
def test_the_three_encodings_give_what_was_worked_out_by_hand(tmp_path: Path, name: str) -> None:
    store, report = load(tmp_path, {name: fixture(name)})
    assert [(s.format, s.rows_loaded, s.rows_rejected) for s in report.sources] == [("htcondor-history", 11, 0)]
    assert ask(store, JOBS) == WANT
    assert [run for run in ask(store, RUNS) if run[0] in {"402.0", "403.0", "406.0"}] == [
        ("402.0", 0, 5, 65, 265, "preempted", 2, "requeued"),
        ("402.0", 1, 265, 365, 665, "failed", 2, None),
        ("403.0", 0, 10, 70, None, "preempted", 2, "requeued"),
        ("403.0", 1, None, 400, 700, "preempted", 2, "requeued"),
        ("403.0", 2, 700, 800, 900, "completed", 2, None),
        ("406.0", 0, 25, 85, 185, "out_of_memory", 1, "requeued"),
        ("406.0", 1, 185, None, None, "pending", 1, None),
    ]
    assert [place for place in ask(store, PLACES) if place[0] in {"401.0", "407.0"}] == [
        ("401.0", 0, "n1", 2, False), ("407.0", 0, "n3", 1, False),
    ]  # fmt: skip
    assert ask(store, "SELECT job, after_job FROM job_dependencies") == [("411.0", "410.0")]
    # the first run of three: nothing counts as held, as nobody knows until when
    held = "SELECT epoch(released_ts)::BIGINT - 1800000000 FROM attempts WHERE job = '403.0' ORDER BY attempt"
    assert ask(store, held) == [(70,), (700,), (900,)]
    own = "SELECT \"user\", account, queue, name, mem_mb, epoch(submit_ts)::BIGINT FROM jobs WHERE job = '401.0'"
    assert ask(store, own) == [("eve", "vision", "vision", "fit.sh", 4096, T0)]


@pytest.mark.parametrize("order", [("history", "epochs.json"), ("epochs.json", "history")])
def test_epoch_ads_complete_the_runs_of_a_job(tmp_path: Path, order: tuple[str, str]) -> None:
    for name in order:
        store, report = load(tmp_path, {name: fixture(name)})
        assert [s.rows_rejected for s in report.sources] == [0]
    assert [run for run in ask(store, RUNS) if run[0] == "403.0"] == [
        ("403.0", 0, 10, 70, 170, "preempted", 2, "requeued"),
        ("403.0", 1, 170, 200, 250, "preempted", 2, "requeued"),
        ("403.0", 2, 250, 300, 350, "preempted", 2, "requeued"),
        ("403.0", 3, 350, 400, 700, "preempted", 2, "requeued"),
        ("403.0", 4, 700, 800, 901 if order[0] == "epochs.json" else 900, "completed", 2, None),
    ]
    assert ask(store, "SELECT quirks FROM jobs WHERE job = '403.0'") == [([],)]


def test_a_job_of_the_queue_is_completed_by_its_history(tmp_path: Path) -> None:
    waits = condor(7, 0, JobStatus=1, RequestGPUs=1, NumJobStarts=0)
    runs = {**waits, "JobStatus": 2, "JobCurrentStartDate": T0 + 60, "NumJobStarts": 1, "RemoteHost": "slot1@n1"}
    done = {**runs, "JobStatus": 4, "CompletionDate": T0 + 90, "ExitCode": 3, "ExitBySignal": False}
    states = ((waits, "pending"), (runs, "running"), (done, "failed"), (runs, "failed"), (waits, "failed"))
    for number, (ad, state) in enumerate(states):
        store, _ = load(tmp_path, {"ads.json": json.dumps([ad]) + "\n" * number})
        assert ask(store, "SELECT state, attempts FROM jobs") == [(state, 1)]
    assert ask(store, COUNTS)[:2] == [(1, 0, 1, 0), (1, 0, 1, 0)]


@pytest.mark.parametrize(
    ("more", "gpus"),
    [
        ({"RequestGPUs": 2}, 2), ({"requestgpus": 2, "AssignedGPUs": "CUDA0"}, 1), ({}, 0),
        ({"RequestGpus": 1, "GpusProvisioned": 4}, 4), ({"RequestGPUs": "/Expr(ifThenElse(a,1,2))/"}, None),
    ],
)  # fmt: skip
def test_gpus_are_those_that_a_job_had_before_those_that_it_requested(
    tmp_path: Path, more: dict[str, Any], gpus: float | None
) -> None:
    times = {"JobCurrentStartDate": T0 + 60, "CompletionDate": T0 + 90, "NumJobStarts": 1}
    ad = condor(7, 0, JobStatus=4, ExitCode=0, ExitBySignal=False, **times, **more)
    store, _ = load(tmp_path, {"ads.json": json.dumps([ad])})
    assert ask(store, "SELECT gpus FROM jobs") == [(gpus,)]


def test_what_is_no_ad_is_rejected_alone(tmp_path: Path) -> None:
    good = condor(7, 0, JobStatus=4, CompletionDate=T0 + 9, JobCurrentStartDate=T0 + 5, ExitCode=0)
    other = {**good, "ClusterId": 8}
    text = long_ad(good) + "\n" + "ClusterId = 9\nQDa\n\n" + "JobStatus = 4\nQDate = 5\n\n" + long_ad(other)
    _, report = load(tmp_path / "long", {"history": text})
    assert [(s.rows_in, s.rows_loaded, s.rows_rejected) for s in report.sources] == [(4, 2, 2)]
    assert sorted(reason for reason, _ in report.sources[0].reasons) == [
        "its line 2: not ATTRIBUTE = VALUE", "no ClusterId, or ProcId is not a number",
    ]  # fmt: skip
    cut = xml_ads([good, other])
    _, report = load(tmp_path / "xml", {"history.xml": cut[: cut.rindex("</c>")]})
    assert [(s.rows_in, s.rows_loaded, s.rows_rejected) for s in report.sources] == [(2, 1, 1)]
