"""How close a replay of a trace under its own rules comes to the record, and the resulting error of differences.

A replay that mispredicts the past also mispredicts a change. Its error in mean waits and JCTs is measured on the trace;
the effect of a change is taken as no more certain than that, in addition to chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.notes import NamedValue, literal, note
from gpuctl.core.numbers import lasting, unit_of
from gpuctl.replay.results import comparison
from gpuctl.replay.results.metrics import warmup_jobs

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Floats, Outcome, Workload

Errors = dict[tuple[str, str], float]
"""Seconds by measure and size class; see `errors`."""

NEAR_S = 60.0
"""Largest distance of near starts, in seconds."""

UNKNOWN = note(
    "How near this replay is to the trace is not known: it was not compared with it. Differences smaller than the "
    "model's own error prove nothing; gpuctl calibrate measures that."
)
"""If the trace cannot be compared with the replay, as on other nodes than its own."""


@dataclass(frozen=True)
class OwnRules:
    """Replays of a trace as it was: its jobs, its nodes, and rules that may be its own.

    Attributes:
        outcomes: one per policy, of which the nearest counts; if the rules were calibrated, the one replay under them.
        workload: what was replayed.
        calibrated: whether the rules were fitted to the trace.
        fitted: share of the jobs, in order of submission, that they were fitted to; the others measure the error.
    """

    outcomes: tuple[Outcome, ...]
    workload: Workload
    calibrated: bool = False
    fitted: float = 0.0


@dataclass(frozen=True)
class Nearness:
    """The distance of the nearest replay of the unchanged trace from the trace.

    Attributes:
        text: a sentence.
        errors: of the replay; empty if the rules are not calibrated, as they may differ from the trace's.
        calibrated: whether they are.
    """

    text: Note
    errors: Errors
    calibrated: bool


def nearness(own: OwnRules | None) -> Nearness | None:
    """Measure how close a replay of the unchanged trace is to the record; None if nothing was recorded.

    Args:
        own: the replays; None if there are none of the unchanged trace.
    """
    if own is None:
        return Nearness(UNKNOWN, {}, calibrated=False)
    truth = comparison.recorded(own.workload)["start_s"].to_numpy().astype(np.float64)
    skip = warmup_jobs(own.workload, own.fitted)
    if np.isnan(truth[skip:]).all():
        return None
    apart = {at: _apart(outcome, truth, skip) for at, outcome in enumerate(own.outcomes)}
    there = {at: values for at, values in apart.items() if values.size}
    if not there:
        return None
    best = min(there, key=lambda at: float(np.log1p(there[at] / 60).mean()))
    frame = _against_recorded(own.outcomes[best], own.workload, own.fitted)
    whole = frame.filter(measure="wait", size_bucket=comparison.ALL).to_dicts()
    if not whole or whole[0]["mean_s"] is None:
        return None
    found = errors(frame)
    text = _fidelity_note(own, own.outcomes[best], whole[0], there[best], found)
    return Nearness(text, found if own.calibrated else {}, own.calibrated)


def _apart(outcome: Outcome, truth: Floats, skip: int) -> Floats:
    """Seconds between replayed and recorded first starts, of the jobs that have both."""
    apart = np.abs(outcome.jobs["start_s"].to_numpy().astype(np.float64) - truth)[skip:]
    return np.asarray(apart[~np.isnan(apart)])


def _against_recorded(outcome: Outcome, workload: Workload, fitted: float) -> pl.DataFrame:
    return comparison.against(outcome, comparison.recorded(workload), workload, warmup=fitted)


def _fidelity_note(own: OwnRules, outcome: Outcome, whole: dict[str, float], apart: Floats, found: Errors) -> Note:
    here, there = whole["mean_s"], whole["baseline_mean_s"]
    unit = unit_of([here, there])
    means: dict[str, float | NamedValue | Note] = {
        "policy": NamedValue("policy", outcome.policy),
        "here": literal(lasting(here, unit)),
        "there": literal(lasting(there, unit)),
        "half": literal(lasting(float(np.median(apart)))),
        "near": 100 * float((apart <= NEAR_S).mean()),
    }
    if not own.calibrated:
        return note(
            "Not calibrated: whether the trace ran under rules like these is not known. Unchanged, its mean wait under "
            "{policy} is {here}, recorded {there}; half of the jobs start within {half} of the recorded start, "
            "{near:.0f} % within a minute. Differences smaller than the model's own error prove nothing; gpuctl "
            "calibrate looks for the trace's rules.",
            **means,
        )
    return note(
        "Replayed under its own rules ({policy}, calibrated), {mean} is {here}, recorded {there}; half of "
        "the jobs start within {half} of the recorded start, {near:.0f} % within a minute. Differences of the mean "
        "wait below {error} are within the model's own error.",
        **means,
        mean=note("the mean wait of the part of the trace that nothing was fitted to")
        if own.fitted
        else note("the trace's mean wait"),
        error=literal(lasting(found.get(("wait", comparison.ALL), math.nan))),
    )


def errors(frame: pl.DataFrame) -> Errors:
    """Return the error of a replay's means, in seconds, by measure and size class.

    It is the end farther from 0 of the 95 % interval of the difference from the record; without an interval, the
    difference itself.

    Args:
        frame: a replay against what was recorded, as `gpuctl.replay.results.comparison.against` returns it.
    """
    found: Errors = {}
    for row in frame.iter_rows(named=True):
        mean, low, high = row["diff_mean_s"], row["diff_low_s"], row["diff_high_s"]
        if mean is not None:
            ends = [abs(end) for end in (mean, low, high) if end is not None]
            found[row["measure"], row["size_bucket"]] = max(ends)
    return found


def widen(frame: pl.DataFrame, found: Errors) -> pl.DataFrame:
    """Include the model's own error in intervals of differences: the ends move as independent errors add.

    Args:
        frame: differences, as `gpuctl.replay.results.comparison.against` returns them.
        found: by measure and size class; empty: nothing is changed.

    Returns:
        the same with ``diff_low_s``, ``diff_high_s`` and ``p`` including that error, and ``model_error_s``.
    """
    if not found:
        return frame
    rows = [_widened(row, found.get((row["measure"], row["size_bucket"]))) for row in frame.iter_rows(named=True)]
    return pl.DataFrame(rows, schema={**frame.schema, "model_error_s": pl.Float64}, orient="row")


def wider(
    mean: float | None, low: float | None, high: float | None, error: float | None
) -> tuple[float | None, float | None]:
    """Return the ends of an interval moved away from its mean by an independent error; unchanged if none is known."""
    if error is None or mean is None or low is None or high is None:
        return low, high
    return mean - math.hypot(mean - low, error), mean + math.hypot(high - mean, error)


def _widened(row: dict[str, float | None], error: float | None) -> dict[str, float | None]:
    mean, low, high = row["diff_mean_s"], row["diff_low_s"], row["diff_high_s"]
    found = {**row, "model_error_s": error}
    if error is None or mean is None or low is None or high is None:
        return found
    found["diff_low_s"], found["diff_high_s"] = wider(mean, low, high, error)
    if row["p"] is not None and mean != 0:
        # an error of 95 % is 1.96 standard deviations; a p by chance alone is never made smaller
        half = math.hypot((high - low) / 2, error)
        found["p"] = max(row["p"], math.erfc(abs(mean) / half * 1.959964 / math.sqrt(2))) if half > 0 else row["p"]
    return found
