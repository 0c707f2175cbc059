from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpuctl.predictors import transfer as transfer_module
from gpuctl.predictors.transfer import FORWARD, ProfiledJob, Shape, design, fit, left_out, transfer, validated

TRUE = np.array([0.02, 0.0004, 0.03, 15.0])
FOUR = (Shape(50_000, 32, 1), Shape(50_000, 128, 1), Shape(80_000, 64, 4), Shape(200_000, 64, 2))


def epoch(shape: Shape) -> float:
    return float((design([shape]) @ TRUE)[0])


def jobs(shapes: tuple[Shape, ...], noise: float = 0.0, seed: int = 0) -> list[ProfiledJob]:
    draw = np.random.default_rng(seed)
    return [ProfiledJob(str(k), s, epoch(s) * (1 + noise * draw.standard_normal())) for k, s in enumerate(shapes)]


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


def test_uncertainty_grows_with_distance() -> None:
    four = jobs(FOUR)
    errors = []
    for batch, gpus in ((64, 2), (64, 8), (256, 8), (1024, 32)):
        found = transfer(Shape(100_000, batch, gpus), four)
        assert found is not None
        errors.append(found.error)
    assert errors == sorted(errors)
    assert errors[-1] > 2 * errors[0]
    more = transfer(
        Shape(100_000, 256, 8), [*four, ProfiledJob("near", Shape(90_000, 256, 4), epoch(Shape(90_000, 256, 4)))]
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
    odd = [*jobs(FOUR), ProfiledJob("odd", Shape(70_000, 200, 1), 1e6)]
    errors = {job: error for job, error, _ in left_out(odd)}
    assert errors["odd"] < -0.9


@pytest.mark.parametrize(("off", "weight"), [(0.0, 0.0), (0.01, 0.0), (0.03, 0.3), (0.05, 0.6), (0.5, 0.6)])
def test_the_formula_yields_as_it_misses_what_it_was_fitted_to(
    monkeypatch: pytest.MonkeyPatch, off: float, weight: float
) -> None:
    # from 1 % off the formula on, up to 5 % off, the interpolation gets up to 60 % of the weight
    jobs = [ProfiledJob("job", Shape(100, 8, 1), 100.0) for _ in range(4)]
    monkeypatch.setattr(transfer_module, "design", lambda shapes: np.eye(len(shapes)))
    monkeypatch.setattr(transfer_module, "fit", lambda jobs: 100.0 * np.exp(np.array([off, -off, off, -off])))
    assert transfer_module._pull(jobs, "formula") == pytest.approx(weight, abs=1e-9)
    assert [transfer_module._pull(jobs[:3], method) for method in ("median", "formula")] == [0.5, 0.0]


def test_what_two_jobs_have_in_common_falls_with_the_octaves_between_them() -> None:
    # the first; twice its batch; four times its GPUs and e times its steps
    found = transfer_module._covariance(np.array([[0.0, 0, 0], [1, 0, 0], [0, 2, 1]]))
    batch, gpus = np.exp(-1 / 4.5), np.exp(-2 / 6)
    same = 2.0**2 + 0.2**2 + 0.1**2
    expected = [
        [same, 4 + 0.04 * batch + 0.01, 4 + 0.05 * gpus],
        [4 + 0.04 * batch + 0.01, same + 0.1**2, 4 + 0.04 * batch * gpus + 0.01 * gpus],
        [4 + 0.05 * gpus, 4 + 0.04 * batch * gpus + 0.01 * gpus, same + 0.03**2],
    ]
    assert found == pytest.approx(np.array(expected), rel=1e-12)


def test_a_job_of_the_same_shape_leaves_the_noise_of_both() -> None:
    # 4.05 is what the two have in common, 0.045 squared the noise of each; fewer than four jobs: a quarter wider
    shape = Shape(1000, 10, 1)
    found = transfer(shape, [ProfiledJob("a", shape, 100.0)])
    assert found is not None
    assert found.epoch_s == pytest.approx(100)
    assert found.error == pytest.approx(1.25 * 1.3 * 0.045 * (1 + 4.05 / (4.05 + 0.045**2)) ** 0.5)


def test_of_jobs_of_the_same_batch_and_gpus_those_of_as_many_samples_count_most() -> None:
    # one of as many samples says 100 s, one of e times as many 200 s, with half the weight
    jobs = [ProfiledJob("a", Shape(100, 8, 1), 100.0), ProfiledJob("b", Shape(100 * np.e, 8, 1), 200.0 * np.e)]
    found, method = transfer_module._predict(Shape(100, 8, 1), jobs)
    assert (found, method) == (pytest.approx(400 / 3), "same batch and GPUs")


@pytest.mark.parametrize(
    ("coefficients", "validation", "samples", "epoch_s"),
    [
        # 20 s and 3 s a sample, a third of it to look at one: 30 of the other's 100 s do not grow, 70 s do
        ((0, 3, 0, 20), (10, 30), 200, 70 * 2 + 50),
        # were 95 of 100 s the same for all, a tenth would grow, and nine tenths would not
        ((0, 0, 0, 95), (0, 0), 300, 10 * 3 + 90),
    ],
)
def test_fixed_costs_of_an_epoch_do_not_grow(
    monkeypatch: pytest.MonkeyPatch, coefficients: tuple[float, ...], validation: tuple[float, float], samples: float,
    epoch_s: float,
) -> None:  # fmt: skip
    monkeypatch.setattr(transfer_module, "fit", lambda jobs: np.array(coefficients, float))
    jobs = [ProfiledJob("job", Shape(100, 8, 1, validation[0]), 100.0) for _ in range(4)]
    assert transfer_module._predict(Shape(samples, 8, 1, validation[1]), jobs)[0] == pytest.approx(epoch_s)


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_a_shape_is_known_where_all_of_it_is_above_0(wrong: float) -> None:
    assert Shape(1000, 10, 1).known
    assert not any(shape.known for shape in (Shape(wrong, 10, 1), Shape(1000, wrong, 1), Shape(1000, 10, wrong)))
