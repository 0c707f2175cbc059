"""What was known when a job came: against counting it anew, and never what came later."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gpuctl.compiled.jit import interpreted
from gpuctl.waits import features
from gpuctl.waits.queue_log import WaitLog, log_of

UNLIMITED_H = 365 * 24


def made_up(seed: int, jobs: int = 60) -> pl.DataFrame:
    """Jobs of a few users and queues; some cancelled while they waited, some still waiting or running."""
    draw = np.random.default_rng(seed)
    submit = np.sort(draw.integers(0, 40_000, jobs)).astype(float)
    start = submit + draw.choice([0, 0, 5, 900, 20_000], jobs)
    end = start + draw.integers(0, 9000, jobs)
    state = np.array(["passed"] * jobs, dtype=object)
    never, open_, runs = (draw.random(jobs) < share for share in (0.1, 0.08, 0.08))
    state[never], state[runs], state[open_] = "killed", "running", "pending"
    end[never] = start[never]
    start[never | open_], end[open_ | runs] = np.nan, np.nan
    return pl.DataFrame(
        {
            "job": [f"{k:03}" for k in range(jobs)], "submit_s": submit, "start_s": start, "end_s": end,
            "state": state.tolist(), "user": draw.choice(["a", "b", "c"], jobs).tolist(),
            "queue": draw.choice(["x", "y"], jobs).tolist(), "gpus": draw.choice([1.0, 2.0, 8.0], jobs),
            "time_limit_s": np.where(draw.random(jobs) < 0.1, np.nan, draw.choice([3600.0, 14_400.0], jobs)),
        }
    )  # fmt: skip


def counted(log: WaitLog, k: int) -> dict[str, float]:
    """Some of the features of one job, counted anew from all jobs."""
    now = log.ready_s[k]
    rows, size, limit = log.rows, features.sizes(log.rows), features.limits(log.rows)
    here = (log.ready_s < now) | ((log.ready_s == now) & (np.arange(now.size + log.ready_s.size - 1) < k))
    waits = here & ~(log.leave_s < now)
    runs = log.started & (log.leave_s < now) & ~(log.end_s < now)
    queue, user = rows["queue"].to_numpy(), rows["user"].to_numpy()
    began = np.flatnonzero(log.started & (log.leave_s < now))
    last = began[np.lexsort((began, log.leave_s[began]))[-1]] if began.size else -1
    left = np.maximum(log.leave_s + limit - now, 0)
    return {
        "waiting": waits.sum(),
        "waiting_size": size[waits].sum(),
        "waiting_work_h": (size * limit)[waits].sum() / 3600,
        "oldest_wait_h": (now - log.ready_s[waits]).max(initial=0) / 3600,
        "queue_waiting": (waits & (queue == queue[k])).sum(),
        "user_waiting": (waits & (user == user[k])).sum(),
        "waiting_as_large": (waits & (size >= size[k])).sum(),
        "running": runs.sum(),
        "running_size": size[runs].sum(),
        "running_work_h": (size * left)[runs].sum() / 3600,
        "user_running_size": size[runs & (user == user[k])].sum(),
        "came_1h": (here & (log.ready_s >= now - 3600)).sum(),
        "came_24h": (here & (log.ready_s >= now - 86_400)).sum(),
        "last_start_h": (now - log.leave_s[began].max()) / 3600 if began.size else np.nan,
        "all_last": np.log1p(log.wait_s[last]) if began.size else np.nan,
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_features_are_what_counting_again_gives(seed: int) -> None:
    log = log_of("made up", made_up(seed))
    with interpreted():
        found = features.of_log(log)
    for k in range(log.ready_s.size):
        for name, value in counted(log, k).items():
            said = found[k, features.ALL.index(name)]
            assert said == pytest.approx(value, nan_ok=True), (k, name)


def test_nothing_that_comes_later_is_known() -> None:
    jobs = made_up(3)
    half = float(jobs["submit_s"][30])
    # whatever starts or ends at that instant or later does so at other times, and other jobs follow
    later = jobs.with_columns(
        start_s=pl.when(pl.col("start_s") >= half).then(pl.col("start_s") + 777).otherwise("start_s"),
        end_s=pl.when(pl.col("end_s") >= half).then(pl.col("end_s") * 3).otherwise("end_s"),
        gpus=pl.when(pl.col("submit_s") > half).then(4.0).otherwise("gpus"),
    )
    with interpreted():
        one, other = (features.of_log(log_of("made up", each)) for each in (jobs, later))
    came = (jobs["submit_s"] <= half).sum()
    assert np.array_equal(one[:came], other[:came], equal_nan=True)
    assert not np.array_equal(one, other, equal_nan=True)


def test_a_logged_job_and_the_same_query_have_equal_features() -> None:
    log = log_of("made up", made_up(4))
    asked = features.WaitQueries(log.rows[40:41], log.ready_s[40:41], np.array([40]))
    with interpreted():
        assert np.array_equal(features.for_queries(log, asked), features.of_log(log)[40:41], equal_nan=True)
