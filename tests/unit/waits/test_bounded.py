"""Training on long logs and queues takes bounded work: what is looked at, simulated, and reserved."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from gpuctl.compiled.jit import interpreted
from gpuctl.waits import forward, forward_kernel, learn, run_times
from gpuctl.waits.forward_kernel import NODES, PIECES, WINDOW_S
from gpuctl.waits.queue_log import WaitLog, latest, log_of


def jobs(count: int, step_s: float = 60.0) -> WaitLog:
    """Jobs of half a node, each 60 s after the one before; the third never ends within the log."""
    at = np.arange(count) * step_s
    end = np.where(np.arange(count) == 2, np.nan, at + 100)
    told = {
        "job": [str(k) for k in range(count)], "user": ["u"] * count, "queue": ["q"] * count, "gpus": [4.0] * count,
        "nodes": [1.0] * count, "time_limit_s": [1000.0] * count, "submit_s": at, "start_s": at + 10, "end_s": end,
        "state": ["running" if np.isnan(each) else "passed" for each in end],
    }  # fmt: skip
    return log_of("made up", pl.DataFrame(told).with_columns(pl.col("end_s").fill_nan(None)))


def test_of_a_long_log_the_latest_jobs_stay_and_what_ran_when_they_came() -> None:
    whole = jobs(20)
    assert latest(whole, 20) is whole
    found = latest(whole, 5)
    # the first of the latest came at 900 s: job 14 ran until 940, job 2 still runs
    assert found.rows["job"].to_list() == ["2", "14", "15", "16", "17", "18", "19"]
    assert found.since_s == 900
    assert found.counts["latest"] == 5
    assert found.counts["jobs"] == 20
    assert found.taken_s == whole.taken_s
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learn, "FEWEST", 1)
        parts = learn._parts(found, [960, 1020, 1080])
    assert [found.rows["job"].to_numpy()[part].tolist() for part in parts] == [["15"], ["16"], ["17"], ["18", "19"]]


def test_fewer_jobs_are_simulated_where_that_takes_long_and_all_parts_have_some() -> None:
    log = jobs(3000)
    everyone, half = np.ones(3000, np.bool_), float(log.ready_s[1500])
    assert learn._to_simulate(log, everyone, half, 0.0).all()
    few = learn._to_simulate(log, everyone, half, learn.EFFORT / 600)
    assert int(few.sum()) == 600
    assert int(few[:1500].sum()) == 200
    gaps = np.diff(np.flatnonzero(few[1500:]))
    assert set(gaps.tolist()) <= {3, 4}
    assert int(learn._to_simulate(log, everyone, half, float(learn.EFFORT)).sum()) == learn.FEWEST_SIMULATED


def test_a_job_whose_simulations_take_too_long_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    log = jobs(12, 5.0)
    with interpreted():
        samples, _ = forward.of_log(log, "age", None, 2)
        monkeypatch.setattr(forward, "MOST_EFFORT", 1)
        none, _ = forward.of_log(log, "age", None, 2)
    # before the first start it is not known that there is a node
    assert np.isfinite(samples[3:]).all()
    assert np.isnan(none).all()


def reserved(s: Any, job: int, now: float) -> bool:
    """The rule of a reservation, one node after the other: what the compiled loop does with sorted nodes."""
    per, need = s.per[job], s.count[job]
    nodes = range(s.c[NODES])
    open_ = [n for n in nodes if np.isinf(s.taken[n])]
    if len(open_) < need:
        return bool(open_)
    gain, at = {n: int(s.free[n]) for n in nodes}, now
    for k in range(s.c[PIECES]):
        if sum(gain[n] >= per for n in open_) >= need:
            break
        before = sum(gain[n] >= per for n in open_)
        gain[s.piece_node[k]] += int(s.piece_gpus[k])
        if sum(gain[n] >= per for n in open_) > before:
            at = max(s.piece_until[k], now + 1.0)
    able = [n for n in open_ if gain[n] >= per]
    if len(able) >= need and at <= now + WINDOW_S:
        s.taken[able[:need]] = at
    return True


def test_nodes_are_reserved_in_the_order_in_which_they_become_free() -> None:
    draw = np.random.default_rng(4)
    some = 0
    for _ in range(40):
        log = jobs(12)
        s, *_ = forward.empty(log, np.zeros(12, np.int64), "age", run_times.nothing(12), 6)
        s.c[NODES] = s.free.size
        with interpreted():
            s.taken[:] = np.inf
            for job in range(8):
                s.per[job], s.count[job], s.limit[job] = draw.integers(1, 5), 1, draw.choice([500, 9000, 200_000])
                node = int(draw.integers(s.free.size))
                if s.free[node] >= s.per[job]:
                    forward_kernel._hold(s, job, node, int(s.per[job]), float(job), np.inf)
            forward_kernel._count_free(s)
            expected = s.taken.copy()
            for job in range(8, 12):
                s.per[job], s.count[job] = draw.integers(1, 5), draw.integers(1, 5)
                if s.unreserved[s.per[job]] >= s.count[job]:
                    continue  # it would start
                answer = forward_kernel._reserve(s, job, 10.0)
                found, s.taken = s.taken, expected
                assert answer == reserved(s, job, 10.0)
                s.taken = found
                assert np.array_equal(found, expected)
                some += bool(np.isfinite(found).any())
    assert some > 20
