"""Quantiles of waits: put in order, and brought to hold on jobs that they have not seen."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from gpuctl.waits import adaptive_quantiles, quantiles, scores
from gpuctl.waits.queue_log import log_of


def curves(scale: np.ndarray) -> np.ndarray:
    """Levels of waits whose log(1 + s) is even from 0 to the scale."""
    return np.array(quantiles.LEVELS)[:, None] * scale


def test_levels_follow_what_they_held() -> None:
    draw = np.random.default_rng(5)
    scale = draw.uniform(1, 8, 12_000)
    # waits are longer than the trees thought
    wait = np.expm1(scale * np.sqrt(draw.random(scale.size)))
    ready = np.arange(scale.size) * 600.0
    said, levels = adaptive_quantiles.follow(curves(scale), (ready, ready + wait), (quantiles.ANSWERED,))
    late = slice(4000, None)
    assert (wait[late] < said[late, 0]).mean() == pytest.approx(0.1, abs=0.015)
    assert (wait[late] > said[late, -1]).mean() == pytest.approx(0.1, abs=0.015)
    assert levels[0] == pytest.approx(np.sqrt(quantiles.ANSWERED), abs=0.08)
    assert (np.diff(said, axis=1) >= 0).all()


def test_jobs_that_still_wait_count_and_those_to_come_do_not() -> None:
    said = curves(np.full(400, 3.0))
    group = np.isin(np.arange(400), (3, 9)).astype(np.int64)
    ready = np.arange(400) * 600.0
    _, levels = adaptive_quantiles.follow(said, (ready, np.full(400, np.inf)), (quantiles.ANSWERED,) * 2, group)
    # each group has its own levels: the second has two jobs
    assert min(np.array(levels[0]) - quantiles.ANSWERED) > 0.07
    assert levels[0][-1] == adaptive_quantiles.MOST
    assert 0 < max(np.array(levels[1]) - quantiles.ANSWERED) < 0.02
    # none has started before the last one comes
    one, _ = adaptive_quantiles.follow(said, (ready / 1e6, ready + 1e6), (quantiles.ANSWERED,))
    assert (one == one[0]).all()
    _, none = adaptive_quantiles.follow(said, (ready, ready), (quantiles.ANSWERED,), None, np.zeros(400, bool))
    assert none == (quantiles.ANSWERED,)


def test_forests_learn_what_the_wait_depends_on() -> None:
    draw = np.random.default_rng(6)
    queue = draw.integers(0, 4, 4000).astype(float)
    wait = np.expm1(queue * 2 * draw.random(4000))
    found, again = (quantiles.fit(queue[:, None], wait, np.ones(4000), ["waiting"]) for _ in range(2))
    # the same jobs give the same bytes
    assert found.texts == again.texts
    said = found.answer(np.array([[0.0], [3.0]]))
    assert (np.diff(said, axis=1) >= 0).all()
    assert said[0, -1] < 0.1
    assert np.log1p(said[1, [0, 4, 8]]) == pytest.approx([0.6, 3.0, 5.4], abs=0.4)


def test_loads_are_thirds_of_what_came_lately(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptive_quantiles, "RECENT", 7)
    draw = np.random.default_rng(3)
    submit = np.sort(draw.integers(0, 400, 60)).astype(float)
    start = submit + draw.integers(0, 60, 60)
    told = pl.DataFrame({"job": [str(k) for k in range(60)], "submit_s": submit, "start_s": start}).with_columns(
        end_s=pl.col("start_s") + 9, state=pl.lit("passed"), user=pl.lit("u"), queue=pl.lit("q"),
        gpus=pl.lit(1.0) + pl.int_range(60) % 3, nodes=pl.lit(1.0), time_limit_s=pl.lit(3600.0),
    )  # fmt: skip
    log = log_of("made up", told)
    size, leave = log.rows["size"].to_numpy(), log.leave_s
    waits = [float(size[(log.ready_s < at) & (leave >= at)].sum()) for at in log.ready_s.tolist()]
    for at, group in zip(
        (50.0, 123.0, 399.0), adaptive_quantiles.loads(log, np.array([50.0, 123.0, 399.0])).tolist(), strict=True
    ):
        own = float(size[(log.ready_s < at) & (leave >= at)].sum())
        last = [w for w, came in zip(waits, log.ready_s.tolist(), strict=True) if came <= at][-7:]
        assert group == min(int(3 * sum((w < own) + (w == own) / 2 for w in last) / len(last)), 2)


def test_levels_of_long_forecasts_are_their_own() -> None:
    # nine of ten jobs start at once, as forecast; of those forecast to wait for hours most waits fall outside
    draw = np.random.default_rng(7)
    jobs = 12_000
    long = draw.random(jobs) < 0.1
    middle = np.where(long, np.log1p(4 * 3600.0), 0.0)
    width = np.where(long, 0.5, 0.0)
    said = np.maximum(middle + (np.array(quantiles.LEVELS)[:, None] - 0.5) * width, 0.0)
    wait = np.expm1(np.maximum(middle + 4 * width * draw.uniform(-0.5, 0.5, jobs), 0.0))
    ready = np.arange(jobs) * 600.0
    load = np.zeros(jobs, np.int64)
    group = adaptive_quantiles.groups(said, load)
    assert set(group[long].tolist()) == {adaptive_quantiles.GROUPS - 1}
    assert set(group[~long].tolist()) == {0}
    late = np.arange(jobs) > jobs // 2

    def held(of: np.ndarray) -> np.ndarray:
        found, _ = adaptive_quantiles.follow(
            said, (ready, ready + wait), (quantiles.ANSWERED,) * adaptive_quantiles.GROUPS, of
        )
        return (wait >= found[:, 0]) & (wait <= found[:, -1])

    assert held(group)[late & long].mean() == pytest.approx(0.8, abs=0.08)
    together = held(load)
    assert together.mean() > 0.8
    assert together[late & long].mean() < 0.5


def test_forecasts_are_scored_by_what_they_say() -> None:
    middle = np.array([0.0, 30.0, 60.0, 3599.0, 3600.0, 1e5])
    assert scores.forecast_classes(middle[:, None]).tolist() == [0, 0, 1, 1, 2, 2]
    said = middle[:, None] * np.linspace(0.5, 1.5, 9)
    wait = np.array([0.0, 30.0, 60.0, 1e4, 3600.0, 0.0])
    found = scores.table({"one": said}, wait, middle)
    rows = found.filter(pl.col("forecast") != "all").select("forecast", "jobs", "coverage_pct").rows()
    assert rows == [("below 1 min", 2, 100.0), ("1 min to 1 h", 2, 50.0), ("1 h or more", 2, 50.0)]
