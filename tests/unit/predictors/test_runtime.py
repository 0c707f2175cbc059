from __future__ import annotations

import numpy as np
import pytest

from gpuctl.predictors.runtime import Described, predict
from gpuctl.predictors.series import Series, series
from gpuctl.predictors.transfer import Shape, design
from tests.profiles import traffic

TRUE = np.array([0.02, 0.0004, 0.03, 15.0])
SHAPES = {
    "a": Shape(50_000, 32, 1), "b": Shape(50_000, 128, 1), "c": Shape(80_000, 64, 4), "d": Shape(200_000, 64, 2),
    "e": Shape(120_000, 64, 8),
}  # fmt: skip


def epoch(shape: Shape) -> float:
    return float((design([shape]) @ TRUE)[0])


def described(**more: float) -> list[Described]:
    return [Described(name, "resnet", shape, 10.0, **more) for name, shape in SHAPES.items()]  # type: ignore[arg-type]


def profile(name: str, epochs: float = 2.5, **how: float) -> Series:
    shape = SHAPES[name]
    return series(*traffic(epoch(shape), epochs, dataset=shape.samples * 1e5, wait=5.0, noise=0.05, **how))  # type: ignore[arg-type]


def run_time(name: str) -> float:
    return 5 + 10.05 * epoch(SHAPES[name])


def test_a_job_from_its_own_traffic() -> None:
    [found] = predict([Described("a", epochs=10)], {"a": profile("a")})
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


def test_a_job_that_has_hardly_begun_goes_by_the_others() -> None:
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
    [alone] = predict([Described("e", epochs=10)], {"e": profiles["e"]})
    assert alone.method == "none"
    assert np.isnan(alone.run_time_s)


def test_where_the_number_of_epochs_comes_from() -> None:
    profiles = {"a": profile("a"), "b": profile("b")}
    unknown = Described("a", "resnet", SHAPES["a"], user="u")
    others = [Described("b", "resnet", SHAPES["b"], 7, user="u"), Described("c", "resnet", SHAPES["c"], 30, user="v")]
    [found] = predict([unknown, *others], profiles, wanted=["a"])
    assert "the user's jobs" in found.provenance
    assert found.run_time_s == pytest.approx(5 + 7.05 * epoch(SHAPES["a"]), rel=0.05)
    [given] = predict([unknown, *others], profiles, epochs=3, wanted=["a"])
    assert given.run_time_s == pytest.approx(5 + 3.05 * epoch(SHAPES["a"]), rel=0.05)
    [none] = predict([Described("a")], profiles, wanted=["a"])
    assert np.isnan(none.run_time_s)
    assert none.epoch_s == pytest.approx(epoch(SHAPES["a"]), rel=0.03)
    assert "--epochs" in none.reason


def test_no_answer_says_why() -> None:
    [found] = predict([Described("x", "alone", SHAPES["a"], 5)], {})
    assert (found.method, found.reason) == ("none", "no traffic of its own; no profiled job of its model")


def test_a_job_is_never_shorter_than_it_has_run() -> None:
    [found] = predict([Described("a", epochs=1)], {"a": profile("a")})
    assert found.lower_s >= found.elapsed_s
    assert found.run_time_s >= found.elapsed_s
    assert found.remaining_s == 0


def test_a_run_whose_later_epochs_are_in_memory_lies_within_what_its_first_epoch_said() -> None:
    # the first of ten epochs reads for 60 s; the others compute for 25 s
    run = 60 + 9 * 25.0
    for seen in (20, 40, 58):
        early = series(np.arange(1.0, seen + 1), np.full(seen, 1e6))
        [found] = predict([Described("j", epochs=10, dataset_bytes=59.4e6)], {"j": early})
        assert found.lower_s < run < found.run_time_s < found.upper_s
        assert "read from memory" in found.reason
