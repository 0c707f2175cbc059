"""Simulation forward: against the replay's policy slurm, which it was not made from, and never from what came later."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from gpuctl.compiled.jit import interpreted
from gpuctl.predictors import limit_share
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.run import replay
from gpuctl.waits import forward, quantiles, run_times
from gpuctl.waits.features import WaitQueries
from gpuctl.waits.forward_kernel import run_of, seeded
from gpuctl.waits.queue_log import WaitLog, log_of

if TYPE_CHECKING:
    from pathlib import Path

NODES, WIDTH = 4, 8
LIKE_SLURM = {
    "fair_share": "none",
    "batch_sched_delay": "0",
    "bf_interval": "10",
    "weight_fairshare": "0",
    "weight_job_size": "0",
}


def asked(log: WaitLog) -> WaitQueries:
    return WaitQueries(log.rows, log.ready_s, np.arange(log.ready_s.size))


def replayed(path: Path, seed: int, jobs: int = 80, sizes: tuple[int, ...] = (1, 1, 2, 4, 8, 16)) -> WaitLog:
    """A queue whose jobs use up their limits, with the starts of the policy slurm of a replay."""
    draw = np.random.default_rng(seed)
    submit = np.sort(draw.integers(0, 20_000, jobs))
    gpus = draw.choice(sizes, jobs)
    run = draw.choice([1800, 3600, 7200, 14_400], jobs)
    lines = [f"{k},{a},{r},{g},u{k % 5},q,{r}" for k, (a, r, g) in enumerate(zip(submit, run, gpus, strict=True))]
    path.write_text("job_id,submit_time,duration,num_gpus,user,vc,requested_time\n" + "\n".join(lines) + "\n")
    work = read_jobs(path)
    outcome = replay(work, parse_cluster(f"{NODES}x{WIDTH}", work), [("slurm", LIKE_SLURM)], processes=1)[0]
    start = dict(zip(outcome.jobs["job"].to_list(), outcome.jobs["start_s"].to_list(), strict=True))
    begin = np.array([start[str(k)] for k in range(jobs)])
    told = {
        "job": [str(k) for k in range(jobs)], "submit_s": submit.astype(float), "start_s": begin,
        "end_s": begin + run, "state": ["passed"] * jobs, "user": [f"u{k % 5}" for k in range(jobs)],
        "queue": ["q"] * jobs, "gpus": gpus.astype(float), "nodes": np.ceil(gpus / WIDTH),
        "time_limit_s": run.astype(float),
    }  # fmt: skip
    return log_of("made up", pl.DataFrame(told))


def planned(path: Path, seed: int, sizes: tuple[int, ...]) -> tuple[float, float]:
    """The last job's wait in the plan, and as the policy let it wait."""
    log = replayed(path, seed, sizes=sizes)
    last = np.arange(log.ready_s.size) == log.ready_s.size - 1
    _, plan = forward.of_log(log, "age", last, 1)
    return float(plan[-1]), float(log.wait_s[-1])


def test_the_plan_is_what_the_policy_slurm_does_where_limits_are_used_up(tmp_path: Path) -> None:
    whole = [planned(tmp_path / "jobs.csv", seed, (8,)) for seed in range(4)]
    assert all(plan == wait > 3600 for plan, wait in whole), whole
    # reservations are cruder here where sizes differ: a node that is reserved once is not planned for another job
    mixed = [planned(tmp_path / "jobs.csv", seed, (1, 1, 2, 4, 8, 16)) for seed in range(8)]
    assert np.median([abs(plan - wait) / wait for plan, wait in mixed]) < 0.15, mixed


def test_nothing_that_comes_later_is_known(tmp_path: Path) -> None:
    log, told = replayed(tmp_path / "jobs.csv", 3, 40), []
    half = float(log.ready_s[20])
    rows = log.rows.select("job", "user", "queue", "time_limit_s", gpus="size").with_columns(
        submit_s=log.ready_s, start_s=log.leave_s, end_s=log.end_s, state=pl.lit("passed"),
        nodes=(pl.col("gpus") / WIDTH).ceil(),
    )  # fmt: skip
    later = rows.with_columns(
        start_s=pl.when(pl.col("start_s") >= half).then(pl.col("start_s") + 777).otherwise("start_s"),
        end_s=pl.when(pl.col("end_s") >= half).then(pl.col("end_s") * 3).otherwise("end_s"),
        gpus=pl.when(pl.col("submit_s") > half).then(4.0).otherwise("gpus"),
    )
    with interpreted():
        one, other = (forward.of_log(log_of("made up", each), "fair-share", None, 2) for each in (rows, later))
    came = int((log.ready_s <= half).sum())
    # nor do trees that tell run times know of later ends, or look at them
    for each, cut in ((rows, half), (later, half), (later, np.inf)):
        it = log_of("made up", each)
        names = limit_share.names(run_times.rows_of(it))
        seen = limit_share.submission_features(run_times.rows_of(it), names)
        fitted = run_times.fit(it, seen, names, cut, fewest=1)
        assert fitted is not None
        told.append((fitted.texts, seen[:came].tobytes()))
    assert told[0] == told[1]
    assert told[1][0] != told[2][0]
    for before, after in zip(one, other, strict=True):
        assert np.array_equal(before[:came], after[:came], equal_nan=True)
    assert np.isfinite(one[0][:came]).any()


def test_run_times_are_drawn_as_trees_tell_them_given_how_long_a_job_has_run(tmp_path: Path) -> None:
    log = replayed(tmp_path / "jobs.csv", 1, 3)
    curve = np.tile(np.log(np.linspace(0.05, 0.55, len(limit_share.LEVELS))), (3, 1))
    queue, *_ = forward.empty(log, np.zeros(3, np.int64), "age", curve)
    numbers = [seeded(k, 5) for k in range(4000)]
    limit = queue.limit[0]
    with interpreted():
        drawn, left = (np.array([run_of(queue, 0, s, x) for x in numbers]) / limit for s in (0.0, 0.25 * limit))
    # half are drawn from the past, of which nothing is known: these use up their limits
    by_trees = drawn[drawn < 1]
    assert by_trees.size / drawn.size == pytest.approx(0.5, abs=0.03)
    assert np.quantile(by_trees, limit_share.LEVELS) == pytest.approx(np.exp(curve[0]), abs=0.02)
    # a quarter of the limit was reached by 0.4 of the jobs
    rest = left[left < 1]
    assert rest.min() > 0.25
    assert np.quantile(rest, [0.5, 5 / 6]) == pytest.approx(np.exp(curve[0])[[7, 9]], abs=0.02)


def test_no_user_runs_more_jobs_at_once_than_any_has_where_three_have_come_to_as_many() -> None:
    """A cluster of 8 GPUs on which each user runs two jobs of one GPU at most, though GPUs are free."""
    rows = [(f"{u}{k}", u, 0.0, 1000.0 * (k // 2), 1000.0 * (k // 2 + 1)) for u in "abc" for k in range(4)]
    # one that holds all of it shows how large it is
    rows += [
        ("large", "d", 5000.0, 5000.0, 6000.0),
        ("e0", "e", 7000.0, 7000.0, None),
        ("e1", "e", 7001.0, 7001.0, None),
    ]
    columns = {name: [row[k] for row in rows] for k, name in enumerate(("job", "user", "submit_s", "start_s", "end_s"))}
    told = pl.DataFrame(columns).with_columns(
        state=pl.when(pl.col("end_s").is_null()).then(pl.lit("running")).otherwise(pl.lit("passed")), queue=pl.lit("q"),
        gpus=pl.when(pl.col("job") == "large").then(8.0).otherwise(1.0), nodes=pl.lit(1.0), time_limit_s=pl.lit(1000.0),
    )  # fmt: skip

    def simulated(jobs: pl.DataFrame, user: str) -> tuple[float, float]:
        log = log_of("made up", jobs, taken_s=7002.0)
        one = log.rows.filter(job="e1").with_columns(user=pl.lit(user))
        with interpreted():
            samples, plan = forward.for_queries(
                log, WaitQueries(one, np.array([7002.0]), np.array([log.ready_s.size])), "age"
            )
        return float(samples.min()), float(plan[0])

    with_limit, plan = simulated(told, "e")
    assert with_limit >= 998
    assert plan == 0  # Slurm does not estimate what a limit holds up
    assert simulated(told, "f")[0] < 300
    # two users say nothing
    assert simulated(told.filter(~pl.col("user").is_in(["a", "b"])), "e")[0] < 300


def test_answers_lie_between_trees_and_simulations_except_at_the_ends() -> None:
    trees, simulated = np.linspace(1, 13, 13)[:, None], np.linspace(3, 15, 13)[:, None]
    share = (forward.blended(trees, simulated) - trees)[:, 0] / 2
    assert share.max() == share[quantiles.LEVELS.index(0.5)] == 0.5
    assert share[[0, -1]] == pytest.approx(0.02 * 0.5 / 0.3)
    assert np.isnan(forward.blended(trees, simulated * np.nan)).all()
