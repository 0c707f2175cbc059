"""Results on suspension costs: the prediction for one job, and the accuracy of a fitted model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.core import suspension_cost
from gpuctl.core.errors import UsageError
from gpuctl.core.notes import counted, literal, note
from gpuctl.core.results import Analysis, Column, ResultTable
from gpuctl.predictors import overhead
from gpuctl.predictors.card import load_folder
from gpuctl.predictors.epoch_left import Rest
from gpuctl.predictors.overhead import from_json, inside
from gpuctl.predictors.results import analysis_of, finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.notes import Note
    from gpuctl.core.suspension_cost import Mode
    from gpuctl.predictors.overhead import MeasuredSuspension, Tried

COSTS = (
    Column("suspend_s", "s", "From the request until its GPUs are free; the job works on to the end of its epoch."),
    Column("suspend_lower_s", "s", "Lower end of its interval: four of five such suspensions are inside it; none with "
           "the defaults, which no measurement stands behind."),
    Column("suspend_upper_s", "s", "Upper end of it."),
    Column("resume_s", "s", "From its next start until it makes progress."),
    Column("resume_lower_s", "s", "Lower end of its interval."),
    Column("resume_upper_s", "s", "Upper end of it."),
    Column("loss_s", "s", "On GPUs without progress that counts, in all."),
    Column("loss_lower_s", "s", "Lower end of its interval."),
    Column("loss_upper_s", "s", "Upper end of it."),
    Column("overhead_s", "s", "suspend_s and resume_s together."),
    Column("overhead_lower_s", "s", "Lower end of its interval."),
    Column("overhead_upper_s", "s", "Upper end of it."),
    Column("epoch_left_s", "s", "Of suspend_s, the rest of the epoch: not known at the request, and what is most "
           "uncertain; none where the job does not finish its epoch."),
    Column("epoch_left_lower_s", "s", "Lower end of its interval."),
    Column("epoch_left_upper_s", "s", "Upper end of it."),
    Column("method", "-", "defaults: the constants of the documentation; fitted: a model of gpuctl train overhead."),
    Column("error_pct", "%", "Mean absolute error of the fitted model's loss for jobs that it has not seen."),
)  # fmt: skip

FITTED = (
    Column("cost", "-", "As gpuctl predict overhead gives them; epoch_left_s may be next to nothing, so that of its "
           "errors only epochs_pct means much; abort_s: suspend_s of jobs that were stopped without finishing their "
           "epochs."),
    Column("suspensions", "suspensions", "Predicted from what was known at the request."),
    Column("mean_pct", "%", "Mean absolute relative error."),
    Column("median_pct", "%", "Median of it."),
    Column("worst_pct", "%", "The largest."),
    Column("epochs_pct", "%", "Mean absolute error as a share of the job's epoch, where it includes the rest of one."),
    Column("inside_pct", "%", "Inside an interval that was meant to hold four of five, and that other jobs' gave."),
)  # fmt: skip


@dataclass(frozen=True)
class Suspension:
    """One suspension, as passed to ``gpuctl predict overhead``.

    Attributes:
        epoch_s: length of the job's epoch; None: unknown.
        phase_s: seconds since the epoch began.
        left: rest of the epoch in seconds, with bounds; None: derived from `phase_s`.
        checkpoint_bytes: of the job's checkpoint; None: by its GPUs.
        first_bytes: bytes that it reads before it makes progress.
        gpus: of the job.
        bandwidth: bytes per second of the storage; None: the default.
        mode: ``epoch``, ``now`` or ``abort``.
        model_name: name of the job's model, as in measured suspensions.
    """

    epoch_s: float | None
    phase_s: float
    left: tuple[float, float, float] | None
    checkpoint_bytes: float | None
    first_bytes: float
    gpus: int
    bandwidth: float | None
    mode: str
    model_name: str | None


def predict_overhead(suspension: Suspension, model: Path | None, command: str) -> Analysis:
    """Predict the cost of one suspension.

    Raises:
        InputError: the model cannot be read.
    """
    size = suspension.checkpoint_bytes
    if size is None:
        size = min(suspension_cost.CHECKPOINT_BYTES_PER_GPU * suspension.gpus, suspension_cost.MOST_CHECKPOINT_BYTES)
    epoch_s = math.inf if suspension.epoch_s is None else suspension.epoch_s
    mode: Mode = suspension.mode  # type: ignore[assignment]
    error: float | None = None
    bounds: tuple[float | None, ...] = (None,) * 10
    if model is None:
        rate = suspension.bandwidth or suspension_cost.NODE_RATE
        resume = suspension_cost.resume_seconds(size, suspension.first_bytes, rate)
        stop = suspension_cost.stop_seconds(size, rate)
        left_s = suspension.left[0] if suspension.left else epoch_s - suspension.phase_s
        phase_s = epoch_s - left_s if math.isfinite(epoch_s) and mode != "abort" else suspension.phase_s
        costs = suspension_cost.costs(stop, resume, epoch_s=epoch_s, phase_s=phase_s, mode=mode)
        rest = left_s if mode == "epoch" else math.nan
        method = "defaults"
    else:
        if suspension.bandwidth is not None:
            raise UsageError("--bandwidth and --model: a fitted model has its own rates", hint="give one of them")
        fitted = from_json(load_folder(model, "overhead").json("overhead.json"), str(model / "overhead.json"))
        left = Rest(*suspension.left) if suspension.left else None
        found = fitted.predict(
            checkpoint_bytes=size, dataset_bytes=suspension.first_bytes, gpus=suspension.gpus, epoch_s=epoch_s,
            phase_s=suspension.phase_s, mode=mode, model=suspension.model_name or "", left=left,
        )  # fmt: skip
        costs, rest = found.costs, found.left.left_s
        ends = (*found.suspend_s, *found.resume_s, *found.loss_s, *found.overhead_s, *found.left[1:])
        bounds = tuple(map(finite, ends))
        method, error = "fitted", 100 * fitted.error.get("loss_s", math.nan)
    row = (
        costs.suspend_s, *bounds[:2], costs.resume_s, *bounds[2:4], costs.loss_s, *bounds[4:6],
        costs.suspend_s + costs.resume_s, *bounds[6:8], finite(rest), *bounds[8:], method,
        None if error is None else finite(error),
    )  # fmt: skip
    types = {c.name: pl.String if c.name == "method" else pl.Float64 for c in COSTS}
    frame = pl.DataFrame([row], schema=types, orient="row")
    table = ResultTable(
        name="overhead",
        section="overhead",
        title="Cost of one suspension",
        question="What does suspending and resuming this job cost?",
        population=note(
            "One job of {gpus} with a checkpoint of {size:,.0f} bytes, mode {mode}.",
            gpus=counted(suspension.gpus, "GPU"),
            size=size,
            mode=literal(suspension.mode),
        ),
        notes=(),
        columns=COSTS,
        frame=frame,
    )
    return analysis_of(note("suspension"), (table,), {"mode": literal(suspension.mode)}, command, ())


def error_tables(
    usable: Sequence[MeasuredSuspension], population: Note, notes: tuple[Note, ...]
) -> tuple[ResultTable, ...]:
    """Return the accuracy of a model for suspensions, and for jobs, that it was not fitted on.

    Args:
        usable: measured suspensions.
        population: the sentence about their number.
        notes: rows that were left out.
    """
    share = 100 - 100 // overhead.MOST_FOLDS
    alone = note(
        "Each suspension is predicted by a model fitted on all others, other suspensions of its job among them; of "
        "more than {most}, by one fitted on {share} % of them.",
        most=overhead.MOST_FOLDS,
        share=share,
    )
    new = note("Each suspension is predicted by a model fitted on those of all other jobs.")
    return (
        ResultTable(
            name="overhead_errors",
            section="overhead",
            title="Errors of the fitted costs",
            question="How close are predictions for suspensions that the model has not seen?",
            population=population,
            notes=(alone, *notes),
            columns=FITTED,
            frame=_errors(overhead.left_out(usable, "suspension")),
        ),
        ResultTable(
            name="overhead_new_jobs",
            section="overhead",
            title="Errors for jobs that were never suspended",
            question="How close are they for jobs that the model has not seen?",
            population=population,
            notes=(new, *notes),
            columns=FITTED,
            frame=_errors(overhead.left_out(usable, "job")),
        ),
    )


def _errors(tests: list[Tried]) -> pl.DataFrame:
    """Return one row of `FITTED` per cost."""
    lines = []
    for cost in dict.fromkeys(test.cost for test in tests):
        errors = 100 * abs(np.array([t.error for t in tests if t.cost == cost]))
        epochs = [t.epochs for t in tests if t.cost == cost and math.isfinite(t.epochs)]
        held = inside(tests, cost)
        lines.append((
            cost, int(errors.size), float(errors.mean()), float(np.median(errors)), float(errors.max()),
            100 * float(np.mean(epochs)) if epochs else None, 100 * float(np.mean(held)) if held else None,
        ))  # fmt: skip
    kinds: dict[str, Any] = {c.name: pl.Float64 for c in FITTED} | {"cost": pl.String, "suspensions": pl.Int64}
    return pl.DataFrame(lines, schema=kinds, orient="row")
