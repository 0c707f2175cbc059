from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpuctl.predictors import transfer as transfer_module
from gpuctl.predictors.transfer import FORWARD, Profiled, Shape, design, fit, left_out, transfer, validated

TRUE = np.array([0.02, 0.0004, 0.03, 15.0])
FOUR = (Shape(50_000, 32, 1), Shape(50_000, 128, 1), Shape(80_000, 64, 4), Shape(200_000, 64, 2))


def epoch(shape: Shape) -> float:
    return float((design([shape]) @ TRUE)[0])


def jobs(shapes: tuple[Shape, ...], noise: float = 0.0, seed: int = 0) -> list[Profiled]:
    draw = np.random.default_rng(seed)
    return [Profiled(str(k), s, epoch(s) * (1 + noise * draw.standard_normal())) for k, s in enumerate(shapes)]


def test_the_terms_of_an_epoch() -> None:
    assert design([Shape(1000, 10, 4)]).tolist() == [[25, 250, 25 * 1.5, 1]]
    assert design([Shape(1000, 10, 1)])[0, 2] == 0


def test_four_jobs_tell_the_fifth() -> None:
    # with 2 % noise all of 50 other shapes within 10 %, 2 % in the median
    draw = np.random.default_rng(1)
    errors = []
    for seed in range(50):
        shape = Shape(
            float(draw.integers(10, 500) * 1000),
            float(draw.choice([16, 32, 64, 128, 256])),
            float(draw.choice([1, 2, 4, 8])),
        )
        found = transfer(shape, jobs(FOUR, 0.02, seed))
        assert found is not None
        errors.append(abs(found.epoch_s / epoch(shape) - 1))
    assert np.median(errors) < 0.03
    assert max(errors) < 0.11


def test_terms_that_the_jobs_cannot_tell_apart_are_left_out() -> None:
    one_gpu = fit(jobs((Shape(5e4, 32, 1), Shape(9e4, 64, 1), Shape(7e4, 128, 1), Shape(3e4, 16, 1))))
    assert one_gpu[2] == 0
    one_batch = fit(jobs((Shape(5e4, 32, 1), Shape(9e4, 32, 2), Shape(7e4, 32, 4), Shape(3e4, 32, 1))))
    assert one_batch[0] == 0
    assert (fit(jobs(FOUR, 0.3, 5)) >= 0).all()


def test_the_chain() -> None:
    four = jobs(FOUR)
    same = transfer(Shape(100_000, 32, 1), four)
    assert same is not None
    assert same.method == "same batch and GPUs"
    assert same.epoch_s == pytest.approx(epoch(Shape(100_000, 32, 1)), rel=0.05)
    other = transfer(Shape(100_000, 256, 8), four)
    assert other is not None
    assert (other.method, other.jobs) == ("fit of the model's jobs", 4)
    few = transfer(Shape(100_000, 256, 8), four[:2])
    assert few is not None
    assert few.method == "median of the model's jobs"
    assert few.error >= 0.1
    assert transfer(Shape(100_000, 256, 8), []) is None
    assert transfer(Shape(np.nan, 256, 8), four) is None


def test_what_is_farther_off_is_less_certain() -> None:
    four = jobs(FOUR)
    errors = []
    for batch, gpus in ((64, 2), (64, 8), (256, 8), (1024, 32)):
        found = transfer(Shape(100_000, batch, gpus), four)
        assert found is not None
        errors.append(found.error)
    assert errors == sorted(errors)
    assert errors[-1] > 2 * errors[0]
    more = transfer(
        Shape(100_000, 256, 8), [*four, Profiled("near", Shape(90_000, 256, 4), epoch(Shape(90_000, 256, 4)))]
    )
    assert more is not None
    assert more.error < errors[2]


def test_validation_is_a_part_of_an_epoch() -> None:
    assert design([Shape(1000, 10, 4, 300)]).tolist() == [[25, 250 + 300 * FORWARD, 25 * 1.5, 1]]
    assert validated(1000, 1.3e6, 0.3e6) == pytest.approx(300)
    assert validated(1000, np.nan, 0.3e6) == validated(1000, 1e6, 1e6) == 0
    shapes = [replace(shape, validation=v) for shape, v in zip(FOUR, (0, 60_000, 10_000, 90_000), strict=True)]
    target = Shape(100_000, 64, 2, 120_000)
    known = transfer(target, jobs(tuple(shapes)))
    unknown = transfer(
        replace(target, validation=0.0), [replace(p, shape=q) for p, q in zip(jobs(tuple(shapes)), FOUR, strict=True)]
    )
    assert known is not None
    assert unknown is not None
    assert abs(known.epoch_s / epoch(target) - 1) < 0.08 < abs(unknown.epoch_s / epoch(target) - 1)


def test_left_out_jobs_do_not_predict_themselves() -> None:
    odd = [*jobs(FOUR), Profiled("odd", Shape(70_000, 200, 1), 1e6)]
    errors = {job: error for job, error, _ in left_out(odd)}
    assert errors["odd"] < -0.9


@pytest.mark.parametrize(("off", "weight"), [(0.0, 0.0), (0.01, 0.0), (0.03, 0.3), (0.05, 0.6), (0.5, 0.6)])
def test_the_formula_yields_as_it_misses_what_it_was_fitted_to(
    monkeypatch: pytest.MonkeyPatch, off: float, weight: float
) -> None:
    # from 1 % off the formula on, up to 5 % off, the interpolation gets up to 60 % of the weight
    jobs = [Profiled("job", Shape(100, 8, 1), 100.0) for _ in range(4)]
    monkeypatch.setattr(transfer_module, "design", lambda shapes: np.eye(len(shapes)))
    monkeypatch.setattr(transfer_module, "fit", lambda jobs: 100.0 * np.exp(np.array([off, -off, off, -off])))
    assert transfer_module._pull(jobs, "formula") == pytest.approx(weight, abs=1e-9)
    assert [transfer_module._pull(jobs[:3], method) for method in ("median", "formula")] == [0.5, 0.0]
