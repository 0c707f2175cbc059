"""How much room a job found under the limits of its user and QOS: by hand, and from a store against a plain count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from gpuctl.store.database import Store
from gpuctl.waits import features
from gpuctl.waits.limits import Limits, Times, rooms
from gpuctl.waits.queue_log import from_store, log_of
from tests import synthetic_store

if TYPE_CHECKING:
    from pathlib import Path


def test_room_is_what_the_tightest_limit_leaves() -> None:
    # limit 0 (8 GPUs, all jobs), limit 1 (4 GPUs, user a). At 25 s job 0 (a, 2 GPUs) has ended, 1 (a, 3 GPUs) and
    # 2 (b, 2 GPUs) run, 3 (a, 1 GPU) waits
    times = Times(
        np.array([0.0, 5, 6, 20]), np.array([0.0, 10, 10, 40]), np.array([9.0, 90, 90, 50]), np.ones(4, bool),
        np.array([2.0, 3, 2, 1]),
    )  # fmt: skip
    of = {("a", "q"): (0, 1), ("b", "q"): (0,)}
    limits = Limits((8.0, 4.0), ((0, 1), (0, 1), (0,), (0, 1)), of)
    asked = pl.DataFrame({"user": ["a", "b", "new", "a"], "queue": ["q"] * 4, "size": [2.0, 2.0, 1.0, 1.0]})
    # the last one is job 3 itself, as it comes: it is not in its own way
    found = rooms(limits, times, asked, np.array([25.0, 25, 25, 20]), np.array([4, 4, 4, 3]))
    assert found[:2].tolist() == [[4 - 3 - 2, 1], [8 - 5 - 2, 1]]
    assert np.isnan(found[2]).all()
    assert found[3].tolist() == [4 - 3 - 1, 0]
    assert np.isnan(rooms(Limits(), times, asked, np.full(4, 25.0), np.full(4, 4))).all()


def test_limits_of_a_store_bear_on_what_a_forecast_sees(tmp_path: Path) -> None:
    draw = np.random.default_rng(4)
    path = synthetic_store.make_store(tmp_path / "s.duckdb")
    synthetic_store.change(path, "DELETE FROM job_rows", "DELETE FROM attempt_rows")
    jobs = []
    for k in range(200):
        came = int(draw.integers(0, 100_000))
        start = came + int(draw.integers(0, 2000))
        end = start + int(draw.integers(100, 9000))
        jobs.append((f"{k}", f"u{k % 4}", ("long", "short")[k % 2], int(draw.choice([1, 2, 4])), came, start, end))
    with Store(path, write=True) as store:
        [(name,)] = store.frame("SELECT cluster FROM clusters").rows()
        for job, user, qos, gpus, *when in jobs:
            values = {"c": name, "job": job, "user": user, "qos": qos, "gpus": gpus}
            at = dict(zip("abe", when, strict=True))
            store.execute(
                "INSERT INTO job_rows BY NAME SELECT $c AS cluster, $job AS job, $user AS \"user\", 'main' AS queue, "
                "$qos AS qos, $gpus AS gpus, 3600 AS time_limit_s, to_timestamp($a) AS submit_ts, "
                "to_timestamp($b) AS start_ts, to_timestamp($e) AS end_ts, 'passed' AS state, 1 AS attempts, "
                "[]::VARCHAR[] AS quirks, 1 AS source",
                {**values, **at},
            )
        store.execute(
            "INSERT INTO gpu_limits BY NAME SELECT $c AS cluster, 'qos' AS scope, 'long' AS qos, "
            "'per_user' AS limit_kind, 6 AS gpus, 1 AS source",
            {"c": name},
        )
    with Store(path) as store:
        log, _ = from_store(store, name)
    seen = features.of_log(log)[:, [features.ALL.index(each) for each in ("limit_room", "limit_waiting")]]
    place = {job: k for k, job in enumerate(log.rows["job"].to_list())}
    for job, user, qos, gpus, came, *_ in jobs:
        others = [o for o in jobs if (o[1], o[2]) == (user, qos)]
        held = sum(o[3] for o in others if o[5] < came <= o[6])
        waiting = sum(o[3] for o in others if o[4] < came <= o[5])
        expected = [6 - held - gpus, waiting] if qos == "long" else [np.nan, np.nan]
        assert seen[place[job]] == pytest.approx(expected, nan_ok=True), job


def test_without_limits_nothing_is_known_of_them() -> None:
    told = pl.DataFrame(
        {"job": ["1"], "submit_s": [0.0], "start_s": [1.0], "end_s": [2.0], "state": ["passed"], "gpus": [1.0]}
    )
    assert np.isnan(features.of_log(log_of("made up", told))[:, -2:]).all()
