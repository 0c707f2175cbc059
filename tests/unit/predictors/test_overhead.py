from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from gpuctl.core.errors import InputError
from gpuctl.core.suspension_cost import costs, resume_seconds, stop_seconds
from gpuctl.predictors import overhead
from gpuctl.predictors.epoch_left import Lengths, rest_of
from gpuctl.predictors.overhead import (
    Apart,
    MeasuredSuspension,
    OverheadModel,
    Predicted,
    fit,
    from_json,
    left_out,
    to_json,
    usable,
)


def test_the_costs_of_an_epochs_end() -> None:
    # by hand: an epoch of 600 s, 540 s into it, a checkpoint of 1 GB at 1 GB/s
    parts = stop_seconds(1e9), resume_seconds(1e9)
    found = costs(*parts, epoch_s=600, phase_s=540, mode="epoch")
    assert (found.suspend_s, found.resume_s, found.loss_s) == (63, 21, 24)
    abort = costs(*parts, epoch_s=600, phase_s=540, mode="abort")
    assert (abort.suspend_s, abort.loss_s) == (2, 561)
    now = costs(*parts, epoch_s=600, phase_s=540, mode="now")
    assert (now.suspend_s, now.loss_s) == (3, 24)
    assert costs(*parts, epoch_s=float("inf"), phase_s=0, mode="epoch").suspend_s == 3


def measured(count: int, noise: float, seed: int = 0, *, epochs: float = 0.0) -> list[MeasuredSuspension]:
    """Suspensions as the model has them: two training models whose starts differ; epochs as long as told, but for so
    much (relative standard deviation)."""
    draw = np.random.default_rng(seed)
    rows = []
    for k in range(count):
        size, gpus = draw.uniform(1e8, 5e9), float(draw.integers(1, 5))
        length = 200.0 * np.exp(epochs * draw.standard_normal())
        done = draw.uniform(0.0, length)
        start = {"x": 10.0, "y": 25.0}["xy"[k % 2]]
        stop, resume = 2 + size / 1e9, start + size / 0.8e9 + 0.5 * gpus
        stop, resume = (v * np.exp(noise * draw.standard_normal()) for v in (stop, resume))
        left = length - done
        parts = size, 0.0, gpus, 200.0, done, left, left + stop, resume, stop + resume
        rows.append(MeasuredSuspension(f"j{k}", "xy"[k % 2], "epoch", *parts))
    return rows


def said(model: OverheadModel, row: MeasuredSuspension) -> Predicted:
    """What a model says at the request of a suspension: nothing that was measured afterwards goes in."""
    return model.predict(
        checkpoint_bytes=row.checkpoint_bytes, dataset_bytes=row.dataset_bytes, gpus=row.gpus, epoch_s=row.epoch_s,
        phase_s=row.epoch_done_s, mode=row.mode, model=row.model,
    )  # fmt: skip


def errors(rows: list[MeasuredSuspension], cost: str, apart: Apart = "suspension") -> Any:
    return np.abs([test.error for test in left_out(rows, apart) if test.cost == cost])


def test_what_was_measured_is_learnt() -> None:
    rows = measured(40, 0.0)
    model = fit(rows)
    for row in rows:
        found = said(model, row).costs
        assert found.resume_s == pytest.approx(row.resume_s, rel=0.04)
        assert found.loss_s == pytest.approx(row.loss_s, rel=0.04)
        assert abs(found.suspend_s - row.suspend_s) < 0.05 * row.epoch_s
    assert model.terms["stop"][1] == pytest.approx(1e-9, rel=0.02)
    assert all(v >= 0 for part in model.terms.values() for v in part)


def test_errors_are_of_what_was_known_at_the_request() -> None:
    # what is measured afterwards must not go into a prediction: epochs that vary make its error, however well the
    # rest of the epoch is known in the end
    told, varied = measured(60, 0.02), measured(60, 0.02, epochs=0.15)
    assert errors(told, "suspend_s").mean() < 0.25 * errors(varied, "suspend_s").mean()
    assert np.median([t.epochs for t in left_out(varied, "job") if t.cost == "suspend_s"]) > 0.05
    later = [replace(row, epoch_left_s=row.epoch_left_s + 40, suspend_s=row.suspend_s + 40) for row in varied]
    model = fit(varied)
    for before, after in zip(varied, later, strict=True):
        assert said(model, before) == said(model, after)


def test_the_error_is_that_of_suspensions_left_out() -> None:
    for noise, limit in ((0.0, 0.03), (0.05, 0.08)):
        assert errors(measured(60, noise), "loss_s").mean() < limit
    assert 0.08 < errors(measured(60, 0.2), "loss_s").mean() < 0.3
    assert errors(measured(60, 0.0), "suspend_s").size == 60


def test_intervals_hold() -> None:
    """Four of five new suspensions lie inside; of so many, no fewer than chance has once in a thousand such tests."""
    held: dict[str, list[bool]] = {"suspend_s": [], "resume_s": [], "loss_s": [], "overhead_s": [], "left": []}
    nearly_over: list[bool] = []
    for seed in range(20):
        rows = measured(30, 0.1, 100 + seed, epochs=0.12)
        model = fit(rows[:24])
        for row in rows[24:]:
            found = said(model, row)
            true = {"left": row.epoch_left_s, "overhead_s": row.suspend_s + row.resume_s}
            for cost, inside_of in held.items():
                lower, upper = getattr(found, cost)[-2:]
                inside_of.append(lower <= true.get(cost, getattr(row, cost, 0.0)) <= upper)
            if found.left.left_s < 0.25 * row.epoch_s:
                nearly_over.append(held["left"][-1])
    for cost, some in held.items():
        assert binom.cdf(sum(some), len(some), 0.8) > 0.001, f"{cost}: {np.mean(some):.3f} of {len(some)}"
        assert np.mean(some) < 0.95
    # also of those that are asked shortly before the end of the epoch, where errors weigh most
    assert len(nearly_over) > 20
    assert binom.cdf(sum(nearly_over), len(nearly_over), 0.8) > 0.001


def test_an_abort_is_fitted_apart() -> None:
    rows = [*measured(20, 0.0)]
    rows += [MeasuredSuspension(f"a{k}", "x", "abort", 1e9, 0, 1, 200, 150, 50, 0.2, 12.0, 162.0) for k in range(5)]
    found = said(fit(rows), rows[-1]).costs
    assert found.suspend_s == pytest.approx(0.2, abs=0.05)
    assert found.loss_s == pytest.approx(150 + found.resume_s)


def test_rows_unusable_for_training_are_counted() -> None:
    rows = measured(20, 0.05)
    rows[3] = replace(rows[3], epoch_done_s=np.nan)
    rows[5] = replace(rows[5], checkpoint_bytes=np.nan)
    rows[7] = replace(rows[7], epoch_s=0.0)
    kept, lacking = usable(rows)
    assert (len(kept), lacking) == (17, {"checkpoint_bytes": 1, "epoch_done_s": 1, "epoch_s above 0": 1})
    assert fit(rows).rows == 17
    unknown = [replace(row, checkpoint_bytes=np.nan) for row in rows]
    assert usable(unknown)[1] == {"epoch_done_s": 1, "epoch_s above 0": 1}
    assert all(np.isfinite(v) for part in fit(unknown).terms.values() for v in part)
    none = [replace(row, suspend_s=0.0, resume_s=0.0, loss_s=0.0) for row in measured(10, 0.0)]
    assert json.dumps(to_json(fit(none)), allow_nan=False)


def test_an_epoch_that_is_over_its_time_is_a_long_one() -> None:
    lengths = Lengths(0.0, 0.15, 20)
    early, late, over = (rest_of(100.0, done, lengths) for done in (10.0, 95.0, 300.0))
    assert early.left_s == pytest.approx(90, abs=1)
    assert 0 < late.lower_s < late.left_s < late.upper_s
    assert late.left_s > 5
    assert 0 <= over.lower_s < over.left_s < over.upper_s


def test_too_few() -> None:
    with pytest.raises(InputError, match="7 measured suspensions"):
        fit(measured(7, 0.0))


def test_json_and_back() -> None:
    model = fit(measured(20, 0.1))
    assert from_json(json.loads(json.dumps(to_json(model))), "x") == model


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.pop("terms"),
        lambda d: d["terms"].pop("stop"),
        lambda d: d["terms"]["stop"].append(1.0),
        lambda d: d["terms"].update(stop=["1", 0, 0, 0]),
        lambda d: d["terms"].update(stop=[True, 0, 0, 0]),
        lambda d: d["own"].update(stop=[1]),
        lambda d: d.update(rows=None),
        lambda d: d.pop("reach"),
        lambda d: d["reach"]["job"].update(loss_s=-1.0),
        lambda d: d["lengths"].update(spread=-0.1),
    ],
)
def test_a_model_of_another_kind_is_rejected(damage: object) -> None:
    data = to_json(fit(measured(20, 0.1)))
    data = json.loads(json.dumps(data))
    damage(data)  # type: ignore[operator]
    with pytest.raises(InputError, match="is not an overhead model"):
        from_json(data, "model/overhead.json")


def test_errors_hang_on_no_order() -> None:
    rows = measured(30, 0.1)
    for k in range(3):
        shuffled = random.Random(k).sample(rows, len(rows))
        for cost in ("suspend_s", "resume_s", "loss_s", "overhead_s"):
            assert sorted(errors(shuffled, cost)) == pytest.approx(sorted(errors(rows, cost)))


@pytest.mark.parametrize(("scores", "reach"), [(3, None), (4, 4), (8, 8), (9, 8), (19, 16)])
def test_the_reach_is_the_score_that_four_of_five_stay_within(scores: int, reach: float | None) -> None:
    # of n scores that of rank 0.8 * (n + 1), rounded up; with three there is none
    found = overhead._reach([float(score) for score in range(scores, 0, -1)])
    assert found == pytest.approx(np.nan if reach is None else reach, nan_ok=True)


def test_errors_of_a_part_are_relative_to_how_long_it_took() -> None:
    # a constant c of 1 s and 10 s: the least (c - 1) ** 2 + (c / 10 - 1) ** 2 is at (1 + 1 / 10) / (1 + 1 / 100)
    rows = [
        MeasuredSuspension(job, "", "abort", 0.0, 0.0, 0.0, *[np.nan] * 3, seconds, 0.0)
        for job, seconds in (("a", 1.0), ("b", 10.0))
    ]
    seconds = np.array([1.0, 10.0])
    (constant, *others), models = overhead._part(rows, seconds, seconds)
    assert constant == pytest.approx(1.1 / 1.01)
    assert (others, models) == ([0, 0, 0], {})
