"""Reasons of failed attempts become those of a workload's segments, and stay with them."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import polars as pl

from gpuctl.joblogs.retry_prospects import Place
from gpuctl.replay.inputs.trace_rows import why_failed
from gpuctl.replay.inputs.transforms import gather
from gpuctl.replay.models.records import SHOWS
from tests.unit.replay.outcomes import make_workload


def test_each_segment_has_the_reason_of_its_attempt() -> None:
    rows = pl.DataFrame({"number": [0, 1], "name": ["a", "b"]})
    # the second attempt of a has no known length and is no segment; b's has no reason
    segments = pl.DataFrame(
        {"number": [1, 0, 0], "start_c": [5.0, 30.0, 10.0], "attempt": [0, 2, 0]},
        schema_overrides={"attempt": pl.Int32},
    )
    told = pl.DataFrame(
        {
            "job": ["a", "a", "b", "c"],
            "attempt": [0, 1, 0, 0],
            "reason": ["incorrect_inputs", "nccl_error", "no_signature", "syntax_error"],
            "category": ["infrastructure", "infrastructure+ai_engine", None, "user"],
            "confidence": [0.8, 0.5, 0.0, 0.95],
        }
    )
    found = why_failed(rows, segments, told)
    assert [found.reasons[code] if code >= 0 else None for code in found.reason.tolist()] == [
        "incorrect_inputs",
        None,
        None,
    ]
    assert [found.categories[code] if code >= 0 else None for code in found.category.tolist()] == [
        "infrastructure", None, None,
    ]  # fmt: skip
    assert found.confidence.tolist() == [0.8, 0.0, 0.0]
    assert [SHOWS[code] for code in found.shows.tolist()] == ["node or service", "not known", "not known"]
    assert found.may_pass.tolist() == [True, True, True]
    assert get_args(Place) == SHOWS

    jobs = replace(make_workload([0.0, 1.0, 2.0], [1.0] * 3, [1] * 3), failures=found)
    kept = gather(jobs, np.array([2, 0])).failures
    assert kept is not None
    assert kept.confidence.tolist() == [0.0, 0.8]
