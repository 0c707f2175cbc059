from __future__ import annotations

import json
import random

import numpy as np
import pytest

from gpuctl.core.errors import InputError
from gpuctl.core.suspension import costs, resume_seconds, stop_seconds
from gpuctl.predictors.overhead import Suspended, fit, from_json, left_out, predict, to_json


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


def measured(count: int, noise: float, seed: int = 0) -> list[Suspended]:
    """Suspensions as the model has them: two training models whose starts differ."""
    draw = np.random.default_rng(seed)
    rows = []
    for k in range(count):
        size, gpus, left = draw.uniform(1e8, 5e9), float(draw.integers(1, 5)), draw.uniform(0, 100)
        start = {"x": 10.0, "y": 25.0}["xy"[k % 2]]
        stop, resume = 2 + size / 1e9, start + size / 0.8e9 + 0.5 * gpus
        stop, resume = (v * (1 + noise * draw.standard_normal()) for v in (stop, resume))
        rows.append(
            Suspended(f"j{k}", "xy"[k % 2], "epoch", size, 0.0, gpus, 200.0, left, left + stop, resume, stop + resume)
        )
    return rows


def test_what_was_measured_is_learnt() -> None:
    rows = measured(40, 0.0)
    model = fit(rows)
    for row in rows:
        found = predict(model, row)
        assert found.suspend_s == pytest.approx(row.suspend_s, rel=0.01)
        assert found.resume_s == pytest.approx(row.resume_s, rel=0.04)
    assert model.terms["stop"][1] == pytest.approx(1e-9, rel=0.02)
    assert all(v >= 0 for part in model.terms.values() for v in part)


def test_the_error_is_that_of_suspensions_left_out() -> None:
    for noise, limit in ((0.0, 0.03), (0.05, 0.08)):
        model = fit(measured(60, noise))
        assert model.error["loss_s"] < limit
    noisy = fit(measured(60, 0.2)).error["loss_s"]
    assert 0.08 < noisy < 0.3
    assert left_out(measured(60, 0.0))["suspend_s"].size == 60


def test_an_abort_is_fitted_apart() -> None:
    rows = [*measured(20, 0.0)]
    rows += [Suspended(f"a{k}", "x", "abort", 1e9, 0, 1, 200, 50, 0.2, 12.0, 162.0) for k in range(5)]
    found = predict(fit(rows), rows[-1])
    assert found.suspend_s == pytest.approx(0.2, abs=0.05)
    assert found.loss_s == pytest.approx(150 + found.resume_s)


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
    ],
)
def test_a_foreign_model_is_refused(damage: object) -> None:
    data = to_json(fit(measured(20, 0.1)))
    data = json.loads(json.dumps(data))
    damage(data)  # type: ignore[operator]
    with pytest.raises(InputError, match="no overhead model"):
        from_json(data, "model/overhead.json")


def test_errors_hang_on_no_order() -> None:
    rows = measured(30, 0.1)
    for k in range(3):
        shuffled = random.Random(k).sample(rows, len(rows))
        for name, values in left_out(rows).items():
            assert sorted(left_out(shuffled)[name]) == pytest.approx(sorted(values))
