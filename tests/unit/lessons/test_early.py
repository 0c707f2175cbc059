"""Lesson 3: what first runs and refused retries save, by hand and on planted traces."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import lessons_early as planted_check
from gpuctl.lessons import early
from gpuctl.lessons.early_costs import (
    FATES,
    RETRIES,
    Rule,
    caught_gpu_s,
    compare,
    fates,
    pool_for,
    refused_gpu_s,
    retries,
)
from gpuctl.replay.models.records import SHOWS, Failures
from gpuctl.replay.run import replay
from tests import planted_lessons as planted
from tests.unit.replay.outcomes import make_cluster, make_workload

KINDS = {"program": (0, False), "together": (1, False), "machine": (2, True), "unknown": (-1, True)}


def _workload(jobs: list[tuple[int, str, list[tuple[float, bool]]]]) -> planted.Workload:
    """Jobs a minute apart: GPUs, what is wrong, attempts of (seconds, whether it fails)."""
    tries = [one for *_, attempts in jobs for one in attempts]
    fails = np.array([failed for _, failed in tries])
    kind = [KINDS[what] for _, what, attempts in jobs for _ in attempts]
    reason = np.where(fails, [code for code, _ in kind], -1)
    base = make_workload([60.0 * k for k in range(len(jobs))], [1.0] * len(jobs), [gpus for gpus, *_ in jobs])
    return replace(
        base,
        state=tuple("failed" if attempts[-1][1] else "completed" for *_, attempts in jobs),
        segment_start=np.cumsum([0, *(len(attempts) for *_, attempts in jobs)]),
        segment_s=np.array([seconds for seconds, _ in tries]),
        segment_fails=fails,
        recorded_start=np.full(len(tries), np.nan),
        piece_start=np.zeros(len(tries) + 1, np.int64),
        failures=Failures(
            reason, reason, np.ones(len(tries)), np.maximum(reason, 0), np.array([passes for _, passes in kind]),
            ("a", "b", "c"), ("user", "infrastructure+ai_engine", "infrastructure"),
        ),
    )  # fmt: skip


JOBS = [
    (4, "program", [(100.0, True), (100.0, True)]),  # both caught
    (4, "program", [(900.0, True), (100.0, True)]),  # too late, and then no first try
    (4, "together", [(50.0, True)]),
    (2, "machine", [(50.0, True), (1000.0, False)]),
    (2, "unknown", [(50.0, True)]),
    (1, "program", [(50.0, True)]),
    (8, "program", [(50.0, True), (500.0, False)]),  # completed: the classifier was wrong
]


def test_fate_of_each_failure() -> None:
    workload = _workload(JOBS)
    assert workload.failures is not None
    found = [FATES[code] if code >= 0 else None for code in fates(workload, workload.failures, 600.0).tolist()]
    assert found == [
        "caught", "caught", "later than the first run", "not a first try", SHOWS[1], SHOWS[2], None, SHOWS[3],
        "gang of one GPU", "doubted", None,
    ]  # fmt: skip
    saved = caught_gpu_s(workload, fates(workload, workload.failures, 600.0))
    assert saved.tolist() == [300.0, 300.0, *[0.0] * 9]
    # five gangs pass their 600 s, 200 s end early, in 360 s: 8.9 GPUs, and two roots of that
    assert pool_for(workload, workload.failures, 600.0) == 15


@pytest.mark.parametrize(
    ("rule", "saved", "again"),
    [
        (Rule(600.0, 4), [600.0, -600.0, -600.0, -600.0, -600.0, 0.0, -600.0], []),
        # the first job's retry is not made, nor the second's; the last one's is submitted again
        (Rule(retry=0.9), [400.0, 400.0, 0.0, 0.0, 0.0, 0.0, 0.0], [6]),
        (Rule(600.0, 4, 0.9), [700.0, -200.0, -600.0, -600.0, -600.0, 0.0, -600.0], [6]),
    ],
)
def test_what_rules_save_job_by_job(rule: Rule, saved: list[float], again: list[int]) -> None:
    workload, cluster = _workload(JOBS), make_cluster(8, 8)
    base, mine = replay(workload, cluster, [("philly", {}), ("rule=philly", rule.params)])
    found = compare(workload, base, mine)
    assert found.saved_gpu_s.tolist() == pytest.approx(saved)
    assert np.flatnonzero(found.again).tolist() == again
    late = found.delay_s[np.isfinite(found.delay_s)]
    assert late.min() == (600.0 if rule.first_s else 0.0)


def test_planted_savings_are_found_and_none_is_claimed_without_them() -> None:
    truth = planted_check.truths(300)
    sums = dict.fromkeys(truth, 0.0)
    seeds = range(1, 3)
    for seed in seeds:
        for name, one in (
            planted_check.found_early(seed, effect=True) | planted_check.found_stops(seed, effect=True)
        ).items():
            assert one.value is not None
            sums[name] += one.value / len(seeds)
        said = planted_check.found_early(seed, effect=False) | planted_check.found_stops(seed, effect=False)
        assert {name for name, one in said.items() if one.shown == "saves"} <= {"delay"}
    assert sums == pytest.approx(truth, rel=0.25)


def test_the_lesson_of_a_planted_trace() -> None:
    case = planted_check.case_of(planted.workload_of(planted.failing(3, 8, effect=True)))
    found = early.learn(case)
    rules, failed, retried = found.tables
    assert [answer.gpu_hours.value for answer in found.answers] == sorted(
        (answer.gpu_hours.value or 0.0 for answer in found.answers), reverse=True
    )
    assert rules.frame.height == len(set(rules.frame.select("first_run_min", "pool", "retry_sure").rows())) > 3 + 3
    whole = failed.frame.filter(failed.frame["category"] == "all").row(0, named=True)
    parts = failed.frame.filter(failed.frame["category"] != "all")
    assert parts["trials"].sum() == whole["trials"] == case.workload.segment_fails.sum()
    assert parts["saved_gpu_hours"].sum() == pytest.approx(whole["saved_gpu_hours"])
    slipped = sum(
        whole[name] for name in failed.frame.columns if name.endswith("_gpu_hours") and name != "saved_gpu_hours"
    )
    caught = (
        float(
            (case.workload.segment_s * np.repeat(case.workload.gpus, np.diff(case.workload.segment_start)))[
                fates(case.workload, case.workload.failures, 600.0) == 0  # type: ignore[arg-type]
            ].sum()
        )
        / 3600
    )
    every = retried.frame.filter(retried.frame["category"] == "all").row(0, named=True)
    [alone] = [
        one for one in rules.frame.iter_rows(named=True) if (one["first_run_min"], one["retry_sure"]) == (0.0, 0.8)
    ]
    # the same as its replay: nothing else changes there
    assert every["saved_gpu_hours"] == pytest.approx(alone["gpu_hours_saved"])
    assert every["refused_passed"] == alone["ended_that_passed"]
    assert slipped + caught == pytest.approx(whole["gpu_hours"])


def test_fate_of_retries() -> None:
    tries = [(100.0, True), (100.0, True), (10.0, True)]
    jobs = [(2, "program", tries), (2, "machine", [(5.0, True), (9.0, False)]), (4, "unknown", tries[:2]), JOBS[-1]]
    workload = _workload(jobs)
    assert workload.failures is not None
    fate = retries(workload, workload.failures, 0.9)
    assert [RETRIES[code] if code >= 0 else None for code in fate.tolist()] == [
        "refused", "after a refused one", None, "may pass", None, "not known", None, "refused", None,
    ]  # fmt: skip
    # the last job completed after its retry: it is submitted again
    assert refused_gpu_s(workload, fate).tolist() == [220.0, *[0.0] * 8]
    assert (
        RETRIES[int(retries(workload, replace(workload.failures, confidence=np.full(9, 0.5)), 0.9)[0])]
        == "not sure enough"
    )


def test_a_pool_that_the_largest_gang_leaves_no_room_for_is_left_out() -> None:
    workload = _workload([(480, "unknown", [(50.0, False)]), *JOBS])
    found = early.learn(planted_check.case_of(workload))
    assert "too few would remain for the largest gang" in str(found.warnings[0])
    assert [answer.rule for answer in found.answers] == [found.answers[0].rule]
    assert set(found.tables[0].frame["pool"]) == {0}


def test_without_reasons_the_lesson_reports_it() -> None:
    workload = _workload([(4, "unknown", [(50.0, True)])] * 3)
    found = early.learn(planted_check.case_of(workload))
    assert found.answers == ()
    assert "not known" in str(found.warnings[0])
    bound = found.inputs[-1]
    assert bound.origin == "unknown"
    assert bound.estimate.value == pytest.approx(3 * 50 * 3 / 3600)
