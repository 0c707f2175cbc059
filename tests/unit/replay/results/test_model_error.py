"""How near a replay is to its trace, and how much wider that makes the intervals of differences: worked by hand."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from gpuctl.core.numbers import lasting
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.results.comparison import OwnRules, against, errors, nearness, widen
from gpuctl.replay.run import replay

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Outcome, Workload


def recorded_late(sample_data: Path, by: float) -> tuple[Workload, list[Outcome]]:
    """Jobs that the trace started so many seconds later than fifo-skip does, and what fifo-skip and fifo do."""
    workload = read_jobs(sample_data / "jobs.csv")
    outcomes = replay(workload, parse_cluster("4x8", workload), [("fifo-skip", {}), ("fifo", {})], processes=1)
    start = outcomes[0].jobs["start_s"].to_numpy()
    return dataclasses.replace(workload, recorded_start=start + by), outcomes


def test_the_nearest_replay_is_the_one_that_is_reported(sample_data: Path) -> None:
    workload, (skip, fifo) = recorded_late(sample_data, 40)
    found = nearness(OwnRules((fifo, skip), workload))
    assert found is not None
    assert not found.calibrated
    assert not found.errors
    assert "Not calibrated" in found.text
    assert "under fifo-skip is" in found.text
    assert "half of the jobs start within 40 s of the recorded start, 100 % within a minute" in found.text


def test_the_error_of_calibrated_rules_is_measured_on_what_they_were_not_fitted_to(sample_data: Path) -> None:
    workload, (skip, _) = recorded_late(sample_data, 0)
    start = workload.recorded_start.copy()
    start[150:] += 100
    workload = dataclasses.replace(workload, recorded_start=start)
    found = nearness(OwnRules((skip,), workload, calibrated=True, fitted=0.5))
    assert found is not None
    assert "nothing was fitted to" in found.text
    assert f"half of the jobs start within {lasting(100)} of" in found.text
    assert found.errors["wait", "all"] >= 100
    whole = nearness(OwnRules((skip,), workload, calibrated=True))
    assert whole is not None
    assert "the trace's mean wait" in whole.text
    assert f"half of the jobs start within {lasting(50)} of" in whole.text


def test_a_trace_without_starts_has_nothing_to_be_near_to(sample_data: Path) -> None:
    workload, outcomes = recorded_late(sample_data, 0)
    blank = dataclasses.replace(workload, recorded_start=np.full_like(workload.recorded_start, np.nan))
    assert nearness(OwnRules(tuple(outcomes), blank)) is None
    unknown = nearness(None)
    assert unknown is not None
    assert "not known" in unknown.text


def with_ends(frame: pl.DataFrame) -> pl.DataFrame:
    """The differences with an interval of 100 s: the sample is too short to have one."""
    ends = {"diff_low_s": pl.col("diff_mean_s") - 60.0, "diff_high_s": pl.col("diff_mean_s") + 40.0, "p": pl.lit(0.01)}
    return frame.with_columns(**ends)


def test_the_errors_make_intervals_wider_as_independent_errors_add(sample_data: Path) -> None:
    workload, (skip, fifo) = recorded_late(sample_data, 0)
    frame = with_ends(against(fifo, skip, workload))
    assert widen(frame, {}).equals(frame)
    row = frame.filter(measure="wait", size_bucket="all").to_dicts()[0]
    error = 2 * abs(row["diff_mean_s"])
    wide = widen(frame, {("wait", "all"): error}).filter(measure="wait", size_bucket="all").to_dicts()[0]
    assert wide["model_error_s"] == error
    assert wide["diff_mean_s"] == row["diff_mean_s"]
    assert wide["diff_low_s"] == pytest.approx(
        row["diff_mean_s"] - math.hypot(row["diff_mean_s"] - row["diff_low_s"], error)
    )
    assert wide["diff_low_s"] < 0 < wide["diff_high_s"]
    assert wide["p"] > 0.05
    none = widen(frame, {("wait", "all"): 0.0}).filter(measure="wait", size_bucket="all").to_dicts()[0]
    assert none["diff_low_s"] == pytest.approx(row["diff_low_s"])


def test_an_error_is_the_end_of_its_interval_that_is_farther_from_nothing(sample_data: Path) -> None:
    workload, (skip, fifo) = recorded_late(sample_data, 0)
    frame = with_ends(against(fifo, skip, workload))
    row = frame.filter(measure="jct", size_bucket="all").to_dicts()[0]
    assert errors(frame)["jct", "all"] == max(abs(row["diff_low_s"]), abs(row["diff_high_s"]))
