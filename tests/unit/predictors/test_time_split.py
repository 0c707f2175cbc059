"""A log cut in time: which part has a job that was submitted at a cut, and what a job stands for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import polars as pl
import pytest

from gpuctl.predictors import time_split


def test_a_job_submitted_at_a_cut_belongs_to_what_comes_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_split, "FEWEST", {})
    # five jobs: half of them are tested, half of the others calibrate, so that the cuts are at 1 and 2 s
    monkeypatch.setattr(time_split, "CALIBRATION_SHARE", 0.5)
    submit = np.array([0.0, 1, 2, 3, 4])
    rows = pl.DataFrame({"submit_s": submit, "end_s": submit + 0.5, "known": [True] * 5})
    parts = time_split.split(cast("Any", SimpleNamespace(name="log", rows=rows)), 0.5)
    assert parts.fit.tolist() == [True, False, False, False, False]
    assert parts.calibration.tolist() == [False, True, False, False, False]
    assert parts.test.tolist() == [False, False, True, True, True]
    ended_later = {"ended_after_first_cut": 0, "ended_after_second_cut": 0}
    assert parts.counts == {"fit": 1, "calibration": 1, "test": 3, **ended_later}


def test_a_single_job_that_has_ended_stands_for_itself() -> None:
    one = np.array([True])
    assert time_split.weights(np.zeros(1), np.full(1, 10.0), one, one, 20.0).tolist() == [1]
