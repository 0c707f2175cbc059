"""First runs on one GPU and refused retries under `philly`: worked by hand, and held to what no replay may break."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from gpuctl.core.errors import UsageError
from gpuctl.replay.contract.conformance import foresight, random_case, run, violations
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.inputs.transforms import gather
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.records import Failures
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find
from tests.unit.replay.outcomes import make_cluster, make_workload

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Cluster, Outcome, Workload

REASONS = ("user", "network", "scale")


def _failing(workload: Workload, reason: list[int], confidence: float | list[float] = 1.0) -> Workload:
    """Reasons by segment: 0 shows alone and no retry cures it, 1 may pass, 2 neither."""
    code = np.array(reason)
    sure = np.full(code.size, confidence) if isinstance(confidence, float) else np.array(confidence)
    return replace(workload, failures=Failures(code, code, sure, np.maximum(code, 0), code == 1, REASONS, REASONS))


def _tries(gpus: list[int], tries: list[list[tuple[float, bool]]]) -> Workload:
    """Jobs submitted at second 0, each with attempts of (seconds, whether it fails)."""
    workload = make_workload([0.0] * len(gpus), [1.0] * len(gpus), gpus)
    every = [one for job in tries for one in job]
    count = len(every)
    return replace(
        workload,
        state=tuple("failed" if job[-1][1] else "completed" for job in tries),
        segment_start=np.cumsum([0, *(len(job) for job in tries)]),
        segment_s=np.array([seconds for seconds, _ in every]),
        segment_fails=np.array([fails for _, fails in every]),
        recorded_start=np.full(count, np.nan),
        piece_start=np.zeros(count + 1, np.int64),
    )


def _replay(workload: Workload, params: dict[str, str], nodes: tuple[int, int] = (2, 8)) -> Outcome:
    cluster, settings = _on(workload, nodes)
    return run(find("philly")({"acquire": "0", **params}), workload, cluster, settings)


def _on(workload: Workload, nodes: tuple[int, int] = (2, 8)) -> tuple[Cluster, Settings]:
    cluster = make_cluster(*nodes)
    return cluster, Settings(rates("recorded", workload, cluster), overhead("none", workload, cluster))


def test_a_first_run_ends_early_failures_and_delays_what_passes() -> None:
    # an error of the user's after 40 s and again, a failure that needs all GPUs, a job that passes, one of one GPU
    workload = _failing(
        _tries(
            [4, 4, 4, 1],
            [[(40.0, True), (40.0, True)], [(40.0, True), (100.0, False)], [(500.0, False)], [(9.0, True)]],
        ),
        [0, 0, 2, -1, -1, 0],
    )
    outcome = _replay(workload, {"prerun": "60", "pool": "2"})
    jobs = outcome.jobs
    # the first fails twice in the pool; the second and third run 60 s there, and then as ever; the last one skips it
    assert jobs["gpu_s"].to_list() == [80.0, 60 + 4 * 140.0, 60 + 4 * 500.0, 9.0]
    assert jobs["overhead_gpu_s"].to_list() == [0.0, 60.0, 60.0, 0.0]
    # two GPUs: the third job's turn there comes when the first one has failed
    gangs = outcome.attempts.filter(pl.col("gpus") == 4).select("job", "start_s").rows()
    assert gangs == [(1, 60.0), (1, 100.0), (2, 100.0)]
    alone = outcome.attempts.filter((pl.col("gpus") == 1) & (pl.col("job") < 3))
    assert alone.select("job", "start_s", "end_s", "end").rows() == [
        (0, 0.0, 40.0, "failed"), (1, 0.0, 60.0, "lease"), (2, 40.0, 100.0, "lease"), (0, 60.0, 100.0, "failed"),
    ]  # fmt: skip
    assert outcome.cluster is not None
    assert outcome.cluster.total_gpus == 16
    # the one that failed alone did not do its work at the speed of one GPU: it failed as soon as on four
    assert [line for line in violations(outcome, workload, *_on(workload)) if not line.startswith("j0: ")] == []


def test_a_retry_is_refused_only_where_the_classifier_is_sure_enough() -> None:
    workload = _failing(
        _tries([2] * 4, [[(10.0, True), (20.0, False)]] * 4),
        [0, -1, 0, -1, 1, -1, -1, -1],
        [0.9, 0, 0.5, 0, 0.9, 0, 0, 0],
    )
    outcome = _replay(workload, {"retry": "0.8"})
    assert outcome.jobs["gpu_s"].to_list() == [20.0, 60.0, 60.0, 60.0]
    assert outcome.jobs["end_s"].to_list() == [10.0, 30.0, 30.0, 30.0]
    assert outcome.decisions.filter(pl.col("decision") == "give_up")["reason"].to_list() == [
        "no retry gets past this failure"
    ]
    assert _replay(workload, {}).jobs["gpu_s"].to_list() == [60.0] * 4


def test_what_the_classifier_doubts_shows_as_often_as_it_is_right() -> None:
    count = 400
    workload = _failing(_tries([2] * count, [[(10.0, True)]] * count), [0] * count, 0.7)
    outcome = _replay(workload, {"prerun": "60", "pool": "400"}, (150, 8))
    early = (outcome.jobs["gpu_s"] == 10.0).mean()
    assert early == pytest.approx(0.7, abs=0.07)
    # by the name of the job, whatever else is replayed
    some = gather(workload, np.arange(0, count, 2))
    again = _replay(some, {"prerun": "60", "pool": "400"}, (150, 8))
    assert again.jobs["gpu_s"].to_list() == outcome.jobs["gpu_s"].to_list()[::2]


def test_without_reasons_nothing_shows_and_a_note_reports_it() -> None:
    outcome = _replay(_tries([4], [[(40.0, True), (40.0, False)]]), {"prerun": "60", "retry": "0.5"})
    assert outcome.jobs["gpu_s"].to_list() == [60 + 4 * 80.0]
    assert any("no failure shows early" in str(line) for line in outcome.notes)


@pytest.mark.parametrize(("pool", "says"), [("1.5", "whole number"), ("16", "whole number"), ("9", "too few GPUs")])
def test_a_pool_that_cannot_be(pool: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        _replay(_tries([8], [[(40.0, False)]]), {"prerun": "60", "pool": pool})


def test_no_invariant_is_broken_and_nothing_is_foreseen() -> None:
    tried = 0
    for seed in range(60):
        workload, cluster, shared = random_case(seed)
        draw = np.random.default_rng(seed)
        size = workload.segment_s.size
        code = np.where(workload.segment_fails & (draw.random(size) < 0.8), draw.integers(0, 3, size), -1)
        workload = _failing(workload, code.tolist(), draw.choice([0.5, 0.9, 1.0], size).tolist())
        params = {"prerun": str((3, 10, 30)[seed % 3]), "pool": "1", "retry": ("0", "0.6")[seed % 2]}
        # beside other rules of the same policy, whose timers are those of jobs, too
        params |= {"relax": ("tries", "time", "adaptive")[seed % 3], "defragment": str(seed % 4 == 0).lower()}
        if cluster.total_gpus - int(workload.gpus.max()) < 1:
            continue
        outcome = run(find("philly")(params), workload, cluster, shared)
        tried += 1
        ended = outcome.decisions.filter(pl.col("reason") == "no retry gets past this failure")["job"].to_list()
        found = [
            line for line in violations(outcome, workload, cluster, shared) if line.split()[0].strip(":") not in ended
        ]
        assert found == []
        case = (workload, cluster, shared)
        assert foresight(lambda params=params: find("philly")(params), case, outcome, seed, record=False) == []
    assert tried > 30
