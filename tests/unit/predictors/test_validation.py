"""What jobs validate where nobody says so: from their data sets, from their traffic, or not known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpuctl.predictors.job_description import JobDescription
from gpuctl.predictors.runtime import predict
from gpuctl.predictors.series import Series, series
from gpuctl.predictors.transfer import Shape
from gpuctl.predictors.validation import UNSURE
from tests.traffic_profiles import traffic

BYTES = 1e5
"""A sample."""
VALIDATED = 20_000.0
SHAPES = {
    "a": Shape(50_000, 32, 1), "b": Shape(60_000, 128, 1), "c": Shape(80_000, 64, 4), "d": Shape(120_000, 64, 2),
    "e": Shape(60_000, 64, 8),
}  # fmt: skip


def epoch(shape: Shape, validated: float = VALIDATED) -> float:
    """Seconds of an epoch: 20 ms a step, 4 ms a sample, and validation by one GPU at a third of that."""
    steps = shape.samples / (shape.batch * shape.gpus)
    return 0.02 * steps + 0.004 * steps * shape.batch + 0.004 / 3 * validated


def jobs(*, whole: bool) -> dict[str, JobDescription]:
    """Five jobs whose data sets are told with what is validated, or without."""
    return {
        name: JobDescription(name, "m", shape, 10.0, BYTES * (shape.samples + VALIDATED * whole))
        for name, shape in SHAPES.items()
    }


def profiles() -> dict[str, Series]:
    """Of four of them; each epoch reads what is validated, too."""
    found = {}
    for name in "abcd":
        shape = SHAPES[name]
        size = BYTES * (shape.samples + VALIDATED)
        found[name] = series(*traffic(epoch(shape), 2.5, dataset=size, noise=0.05, longer=1.0))
    return found


@pytest.mark.parametrize("whole", [True, False])
def test_validation_is_reported_by_data_sets_or_by_traffic(whole: bool) -> None:
    told = jobs(whole=whole)
    [found] = predict(list(told.values()), profiles(), wanted=["e"])
    assert found.method == "transfer"
    assert "validation of" in found.provenance
    assert found.epoch_s == pytest.approx(epoch(SHAPES["e"]), rel=0.12)
    assert found.lower_s < 10 * epoch(SHAPES["e"]) < found.upper_s
    # as one of them says: the others are taken to do the same
    said = replace(told["a"], shape=replace(SHAPES["a"], validation=VALIDATED))
    [same] = predict([said, *(job for name, job in told.items() if name != "a")], profiles(), wanted=["e"])
    assert "validation of 20,000 samples" in same.provenance
    assert same.epoch_s == pytest.approx(found.epoch_s, rel=0.05)


def test_unknown_validation_is_reported_and_allowed_for() -> None:
    told = [
        replace(job, dataset_bytes=np.nan, epoch_s=epoch(job.shape), first_s=epoch(job.shape))
        for job in jobs(whole=True).values()
    ]
    told[-1] = replace(told[-1], epoch_s=np.nan, first_s=np.nan)
    [found] = predict(told, {}, wanted=["e"])
    assert "whether its epochs validate is not known" in found.reason
    said = [replace(job, shape=replace(job.shape, validation=1e-9)) for job in told]
    [known] = predict(said, {}, wanted=["e"])
    assert "validate" not in known.reason
    assert np.log(found.upper_s / found.run_time_s) == pytest.approx(
        UNSURE * np.log(known.upper_s / known.run_time_s), rel=0.02
    )
