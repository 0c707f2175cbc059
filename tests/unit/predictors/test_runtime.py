from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpuctl.predictors import runtime
from gpuctl.predictors.epochs import Epochs
from gpuctl.predictors.job_description import JobDescription
from gpuctl.predictors.runtime import examine, predict, profiled
from gpuctl.predictors.series import Series, series
from gpuctl.predictors.transfer import Shape, design
from gpuctl.predictors.validation import ValidationInference
from tests.traffic_profiles import traffic

TRUE = np.array([0.02, 0.0004, 0.03, 15.0])
SHAPES = {
    "a": Shape(50_000, 32, 1), "b": Shape(50_000, 128, 1), "c": Shape(80_000, 64, 4), "d": Shape(200_000, 64, 2),
    "e": Shape(120_000, 64, 8),
}  # fmt: skip


def epoch(shape: Shape) -> float:
    return float((design([shape]) @ TRUE)[0])


def described(**more: float) -> list[JobDescription]:
    return [JobDescription(name, "resnet", shape, 10.0, **more) for name, shape in SHAPES.items()]  # type: ignore[arg-type]


def profile(name: str, epochs: float = 2.5, **how: float) -> Series:
    shape = SHAPES[name]
    return series(*traffic(epoch(shape), epochs, dataset=shape.samples * 1e5, wait=5.0, noise=0.05, **how))  # type: ignore[arg-type]


def run_time(name: str) -> float:
    return 5 + 10.05 * epoch(SHAPES[name])


def test_a_job_from_its_own_traffic() -> None:
    [found] = predict([JobDescription("a", epochs=10)], {"a": profile("a")})
    assert found.method == "periodicity"
    assert found.run_time_s == pytest.approx(run_time("a"), rel=0.03)
    assert found.lower_s < run_time("a") < found.upper_s
    assert found.remaining_s == pytest.approx(found.run_time_s - found.elapsed_s)
    assert "of its own traffic" in found.provenance


def test_a_job_from_four_others_of_its_model() -> None:
    found = predict(described(), {name: profile(name) for name in "abcd"}, wanted=["e"])
    assert [p.method for p in found] == ["transfer"]
    assert found[0].run_time_s == pytest.approx(run_time("e"), rel=0.06)
    assert found[0].lower_s < run_time("e") < found[0].upper_s
    assert "4 profiled jobs" in found[0].provenance


def test_a_job_that_has_just_started_follows_the_others() -> None:
    profiles = {name: profile(name) for name in "abcd"} | {"e": profile("e", 0.3)}
    [found] = predict(described(), profiles, wanted=["e"])
    assert found.method == "transfer"
    assert np.isfinite(found.elapsed_s)


def test_bytes_an_epoch_come_from_the_others() -> None:
    profiles = {name: profile(name) for name in "ab"} | {"d": profile("d", 1.8)}
    [found] = predict(described(), profiles, wanted=["d"])
    assert found.method in {"volume", "transfer"}
    assert found.run_time_s == pytest.approx(run_time("d"), rel=0.12)


def test_a_cache_is_noticed_and_answered_from_the_others() -> None:
    profiles = {name: profile(name) for name in "abcd"} | {"e": profile("e", 3.0, cached=True)}
    [found] = predict(described(), profiles, wanted=["e"])
    assert (found.cached, found.method) == (True, "transfer")
    assert "cache" in found.reason
    [alone] = predict([JobDescription("e", epochs=10)], {"e": profiles["e"]})
    assert alone.method == "none"
    assert np.isnan(alone.run_time_s)


def test_where_the_number_of_epochs_comes_from() -> None:
    profiles = {"a": profile("a"), "b": profile("b")}
    unknown = JobDescription("a", "resnet", SHAPES["a"], user="u")
    others = [
        JobDescription("b", "resnet", SHAPES["b"], 7, user="u"),
        JobDescription("c", "resnet", SHAPES["c"], 30, user="v"),
    ]
    [found] = predict([unknown, *others], profiles, wanted=["a"])
    assert "the user's jobs" in found.provenance
    assert found.run_time_s == pytest.approx(5 + 7.05 * epoch(SHAPES["a"]), rel=0.05)
    [given] = predict([unknown, *others], profiles, epochs=3, wanted=["a"])
    assert given.run_time_s == pytest.approx(5 + 3.05 * epoch(SHAPES["a"]), rel=0.05)
    [none] = predict([JobDescription("a")], profiles, wanted=["a"])
    assert np.isnan(none.run_time_s)
    assert none.epoch_s == pytest.approx(epoch(SHAPES["a"]), rel=0.03)
    assert "--epochs" in none.reason


def test_no_answer_states_why() -> None:
    [found] = predict([JobDescription("x", "alone", SHAPES["a"], 5)], {})
    assert (found.method, found.reason) == ("none", "no traffic of its own; no profiled job of its model")


def test_a_job_is_never_shorter_than_it_has_run() -> None:
    [found] = predict([JobDescription("a", epochs=1)], {"a": profile("a")})
    assert found.lower_s >= found.elapsed_s
    assert found.run_time_s >= found.elapsed_s
    assert found.remaining_s == 0


def test_a_run_whose_later_epochs_are_in_memory_lies_within_what_its_first_epoch_said() -> None:
    # the first of ten epochs reads for 60 s; the others compute for 25 s
    run = 60 + 9 * 25.0
    for seen in (20, 40, 58):
        early = series(np.arange(1.0, seen + 1), np.full(seen, 1e6))
        [found] = predict([JobDescription("j", epochs=10, dataset_bytes=59.4e6)], {"j": early})
        assert found.lower_s < run < found.run_time_s < found.upper_s
        assert "read from memory" in found.reason


def test_the_bytes_of_an_epoch_come_from_jobs_of_the_same_model_whose_samples_are_known() -> None:
    # 2,000 B for 1,000 samples and 1 % of overhead: 101 B for 50 samples, read at 1 B/s
    asked = JobDescription("asked", "m", Shape(50, 10, 1))
    told = JobDescription("told", "m", Shape(1000, 10, 1), dataset_bytes=2000)
    others = [
        JobDescription("another model's", "n", Shape(1000, 10, 1), dataset_bytes=9000),
        JobDescription("of no shape", "m", dataset_bytes=9000),
    ]
    profiles = {"asked": series(np.arange(1.0, 151), np.ones(150))}
    found = examine({d.job: d for d in (asked, told, *others)}, profiles)["asked"]
    assert (found.method, found.reason) == ("volume", "bytes an epoch from 1 other job of the model")
    assert (found.epoch_bytes, found.epoch_s, found.first_s) == pytest.approx((101, 101, 101))
    # without its model or its own shape it has no others
    for lacks in (
        (replace(asked, model=""), replace(told, model="")),
        (replace(asked, shape=Shape(50, np.nan, 1)), told),
    ):
        assert examine({d.job: d for d in lacks}, profiles)["asked"].method == "none"
    # epochs of 400 B that the traffic of a job of 200 samples shows: 2 B a sample, with whatever overhead
    shown = JobDescription("shown", "m", Shape(200, 10, 1))
    bursts = series(np.arange(1.0, 301), np.tile(np.r_[np.full(40, 10.0), np.zeros(20)], 5))
    found = examine({d.job: d for d in (asked, shown)}, {**profiles, "shown": bursts})["asked"]
    assert found.epoch_bytes == pytest.approx(100, rel=1e-3)


def test_jobs_of_no_model_have_nothing_in_common() -> None:
    [found] = predict(
        [JobDescription("a", "", SHAPES["a"], 10), JobDescription("b", "", SHAPES["a"], 10, epoch_s=50)],
        {},
        wanted=["a"],
    )
    assert found.method == "none"
    assert "its model is not known" in found.reason


def test_a_job_is_profiled_by_what_was_measured_or_by_enough_of_its_traffic() -> None:
    shape = Shape(1000, 10, 1)
    seen = {name: Epochs("volume", 70.0, seen=epochs) for name, epochs in (("a", 3), ("b", 1.5), ("c", 1.49))}
    others = [JobDescription("a", "m", shape, epoch_s=50), *(JobDescription(name, "m", shape) for name in "bcd")]
    found = profiled([*others, JobDescription("e", "m", epoch_s=50)], seen)
    assert [(each.job, each.epoch_s) for each in found] == [("a", 50), ("b", 70)]


@pytest.mark.parametrize(
    ("seen", "spread_s", "others", "method"),
    [
        (1.5, 50, 4, "volume"),
        (1.49, 50, 4, "transfer"),
        (1.49, 1, 4, "volume"),
        (0.5, 1, 4, "volume"),
        (0.49, 1, 4, "transfer"),
        (0.49, 1, 3, "volume"),
    ],
)
def test_its_own_traffic_takes_precedence_over_others_once_there_is_enough_of_it_or_it_is_surer(
    seen: float, spread_s: float, others: int, method: str
) -> None:
    shape = Shape(1000, 10, 1)
    known = {name: JobDescription(name, "m", shape, 10, epoch_s=200) for name in "abcd"[:others]}
    job = JobDescription("x", "m", shape, 10)
    own = Epochs("volume", 100.0, float(spread_s), 110.0, 30.0, seen)
    found = runtime._predict(job, ValidationInference({**known, "x": job}, {"x": own}, frozenset()), None, np.nan)
    assert (found.method, found.epoch_s) == (method, pytest.approx(100 if method == "volume" else 200))
    assert found.run_time_s == pytest.approx(110 + 9 * found.epoch_s)


def test_validation_that_a_job_tells_itself_is_not_said_to_be_from_others() -> None:
    others = [JobDescription(name, "m", Shape(1000, 10, 1, 300), 10, epoch_s=50) for name in "abcd"]
    silent, telling = (
        JobDescription("silent", "m", Shape(1000, 10, 1), 10),
        JobDescription("x", "m", Shape(1000, 10, 1, 300), 10),
    )
    found = {each.job: each for each in predict([*others, silent, telling], {}, wanted=["silent", "x"])}
    assert found["silent"].provenance.endswith("validation of 300 samples an epoch, as other jobs of the model show")
    assert "validation" not in found["x"].provenance
    assert found["silent"].epoch_s == found["x"].epoch_s == pytest.approx(50)


def test_without_a_first_epoch_all_epochs_are_similar() -> None:
    assert runtime._run(100.0, 0.0, np.nan, 0.0, 10) == pytest.approx((1000, 1000, 1000))
