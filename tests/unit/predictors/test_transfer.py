from __future__ import annotations

import numpy as np
import pytest

from gpuctl.predictors.transfer import Profiled, Shape, design, fit, left_out, transfer

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


def test_the_stated_error_is_about_as_large_as_the_true_one() -> None:
    inside = 0
    eight = (*FOUR, Shape(60_000, 16, 1), Shape(90_000, 256, 2), Shape(120_000, 32, 8), Shape(40_000, 96, 1))
    for seed in range(60):
        found = transfer(Shape(150_000, 48, 4), jobs(eight, 0.05, seed))
        assert found is not None
        inside += abs(found.epoch_s / epoch(Shape(150_000, 48, 4)) - 1) <= found.error
    assert 40 <= inside <= 60


def test_left_out_jobs_do_not_predict_themselves() -> None:
    odd = [*jobs(FOUR), Profiled("odd", Shape(70_000, 200, 1), 1e6)]
    errors = {job: error for job, error, _ in left_out(odd)}
    assert errors["odd"] < -0.9
