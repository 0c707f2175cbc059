"""Predicted run times as a result."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.core.notes import note
from gpuctl.core.results import Analysis, Column, ResultTable, SourceInfo
from gpuctl.predictors.results import RECONSTRUCTED, analysis_of, finite
from gpuctl.predictors.runtime import Prediction

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.core.notes import Note

HISTORY = note(
    "Predicted from past jobs: the card of the model says on which jobs it was scored and how close it came; its "
    "history ends with the log that it was trained on."
)

PREDICTIONS = (
    Column("job", "-", "The job's name."),
    Column("epoch_s", "s", "Length of an epoch, the first one left out."),
    Column("run_time_s", "s", "From the job's start to its end."),
    Column("lower_s", "s", "Lower end of the run time's interval: four of five such jobs end inside it."),
    Column("upper_s", "s", "Upper end of it."),
    Column("remaining_s", "s", "Of the run time, after the end of the profile."),
    Column("elapsed_s", "s", "What the profile covers."),
    Column("phase_s", "s", "Since the last epoch began, at the end of the profile."),
    Column("epoch_left_s", "s", "Of the epoch under way at the end of the profile, as seen in its traffic."),
    Column("epoch_left_lower_s", "s", "Lower end of its interval: four of five such epochs end inside it."),
    Column("epoch_left_upper_s", "s", "Upper end of it."),
    Column("method", "-", "volume, periodicity or change-points: from the job's own traffic; transfer: from other jobs "
           "of its model; history: from past jobs; none: no answer."),
    Column("cached", "-", "Whether its traffic suggests that later epochs are read from a cache."),
    Column("provenance", "-", "What the answer rests on."),
    Column("reason", "-", "Why there is none, or what makes it less certain."),
)  # fmt: skip


def _frame(found: list[Prediction]) -> pl.DataFrame:
    names = [c.name for c in PREDICTIONS]
    texts = {"job", "method", "provenance", "reason"}
    kinds: Mapping[str, Any] = {
        n: pl.String if n in texts else pl.Boolean if n == "cached" else pl.Float64 for n in names
    }
    assert {f.name for f in fields(Prediction)} == set(names)  # noqa: S101 - a column for each field
    rows = [tuple(finite(getattr(p, n)) for n in names) for p in found]
    return pl.DataFrame(rows, schema=kinds, orient="row")


def result_of(
    found: list[Prediction],
    cluster: Note,
    settings: dict[str, Note],
    command: str,
    sources: tuple[SourceInfo, ...],
    *,
    with_traffic: int,
) -> Analysis:
    """Return predicted run times, one row per job.

    Args:
        found: the predictions.
        cluster: of the jobs.
        settings: of the predictions, as shown to readers.
        command: the command line.
        sources: the files that were read.
        with_traffic: number of jobs with their own traffic.
    """
    answered = sum(math.isfinite(p.run_time_s) for p in found)
    table = ResultTable(
        name="predictions",
        section="predictions",
        title="Predicted run times",
        question="How long will each job run, and how certain is that?",
        population=note(
            "{found:,} job{found||s}; {answered:,} have a prediction, {with_traffic:,} have traffic of their own.",
            found=len(found),
            answered=answered,
            with_traffic=with_traffic,
        ),
        notes=(),
        columns=PREDICTIONS,
        frame=_frame(found),
        first_columns=5,
        sentences=tuple(dict.fromkeys(text for p in found for text in (p.provenance, p.reason))),
    )
    methods = {p.method for p in found}
    warnings = ((RECONSTRUCTED,) if with_traffic or methods - {"history", "none"} else ()) + (
        (HISTORY,) if "history" in methods else ()
    )
    return analysis_of(cluster, (table,), settings, command, sources, warnings=warnings)
