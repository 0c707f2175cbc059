"""What suspending and resuming a job will cost, learnt from measured suspensions.

The parts are those of `gpuctl.core.suspension`: the rest of the epoch, which the job still uses; writing the
checkpoint and stopping; starting, reading the checkpoint and the first data. How long the last two take is fitted on
``1, M, D, g`` (checkpoint bytes, data set bytes, GPUs), coefficients not below 0, errors relative to the whole; a
model with measurements of its own gets a constant of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.core.suspension import STOP_S, Costs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.core.suspension import Mode

    Floats = NDArray[np.float64]

TERMS = ("1", "checkpoint_bytes", "dataset_bytes", "gpus")
PARTS = ("stop", "abort_stop", "resume")
SHRINK = 0.1
"""A model's own constant counts n / (n + SHRINK) with n measurements: starts differ more than they vary."""


@dataclass(frozen=True)
class Suspended:
    """One measured suspension; seconds and bytes.

    Attributes:
        job, model: names.
        mode: ``epoch`` | ``abort``.
        checkpoint_bytes, dataset_bytes, gpus: what it may depend on.
        epoch_s: length of the job's epochs.
        epoch_left_s: of the epoch under way at the request.
        suspend_s: from the request until the GPUs were free.
        resume_s: from the next start until it made progress.
        loss_s: on GPUs without progress that counts; NaN where it was not measured.
    """

    job: str
    model: str
    mode: Mode
    checkpoint_bytes: float
    dataset_bytes: float
    gpus: float
    epoch_s: float
    epoch_left_s: float
    suspend_s: float
    resume_s: float
    loss_s: float = np.nan


@dataclass(frozen=True)
class OverheadModel:
    """Fitted parts of a suspension.

    Attributes:
        terms: of each part (`PARTS`), seconds for each of `TERMS` [4].
        own: of each part, seconds that a model's own constant adds, by name.
        error: mean absolute relative error for suspensions left out of the fit, by the names of `left_out`.
        rows: suspensions it was fitted on.
    """

    terms: dict[str, tuple[float, ...]]
    own: dict[str, dict[str, float]] = field(default_factory=dict)
    error: dict[str, float] = field(default_factory=dict)
    rows: int = 0

    def part(self, name: str, checkpoint_bytes: float, dataset_bytes: float, gpus: float, model: str = "") -> float:
        """Seconds of one part."""
        row = np.array([1.0, checkpoint_bytes, dataset_bytes, gpus])
        found = float(row @ np.array(self.terms[name])) + self.own.get(name, {}).get(model, 0.0)
        return max(found, 0.0)

    def costs(
        self, *, checkpoint_bytes: float, dataset_bytes: float, gpus: float, epoch_s: float, phase_s: float, mode: Mode,
        model: str = "",
    ) -> Costs:  # fmt: skip
        """What one suspension of a job costs; see `gpuctl.core.suspension.costs`."""
        resume = self.part("resume", checkpoint_bytes, dataset_bytes, gpus, model)
        if mode == "abort":
            return Costs(
                self.part("abort_stop", checkpoint_bytes, dataset_bytes, gpus, model), resume, phase_s + resume
            )
        stop = self.part("stop", checkpoint_bytes, dataset_bytes, gpus, model)
        left = epoch_s - phase_s if mode == "epoch" and np.isfinite(epoch_s) else 0.0
        return Costs(left + stop, resume, stop + resume)


def fit(rows: Sequence[Suspended]) -> OverheadModel:
    """Fit the parts, and say how well they predict suspensions that were left out, one at a time.

    Raises:
        InputError: too few measurements.
    """
    if len(rows) < 8:
        raise InputError(
            f"{len(rows)} measured suspensions; at least 8 are needed to fit what they cost",
            hint="record more, or predict with the defaults: leave --model out",
        )
    model = _fit(rows)
    error = {name: float(np.mean(np.abs(values))) for name, values in left_out(rows).items() if values.size}
    return OverheadModel(model.terms, model.own, error, len(rows))


MOST_FOLDS = 100
"""Up to so many suspensions each is left out alone: what is left out together hangs on an order that means nothing."""


def left_out(rows: Sequence[Suspended]) -> dict[str, Floats]:
    """Relative errors of predictions for suspensions that the fit has not seen; in whatever order they are given.

    Of ``suspend_s`` and ``overhead_s`` (suspend and resume together) where the epoch was finished, of ``abort_s``
    (``suspend_s`` where it was not), ``resume_s`` and ``loss_s``.
    """
    found: dict[str, list[float]] = {name: [] for name in ("suspend_s", "overhead_s", "abort_s", "resume_s", "loss_s")}
    rows = sorted(rows, key=lambda row: (row.job, row.mode, row.epoch_s, row.epoch_left_s, row.suspend_s, row.resume_s))
    folds = min(len(rows), MOST_FOLDS)
    for fold in range(folds):
        train = [row for k, row in enumerate(rows) if k % folds != fold]
        model = _fit(train)
        for row in (row for k, row in enumerate(rows) if k % folds == fold):
            costs = predict(model, row)
            if row.mode == "abort":
                found["abort_s"].append(costs.suspend_s / row.suspend_s - 1)
            else:
                whole = costs.suspend_s + costs.resume_s
                found["suspend_s"].append(costs.suspend_s / row.suspend_s - 1)
                found["overhead_s"].append(whole / (row.suspend_s + row.resume_s) - 1)
            found["resume_s"].append(costs.resume_s / row.resume_s - 1)
            if np.isfinite(row.loss_s) and row.loss_s > 0:
                found["loss_s"].append(costs.loss_s / row.loss_s - 1)
    return {name: np.array(values) for name, values in found.items()}


def predict(model: OverheadModel, row: Suspended) -> Costs:
    """What a fitted model says of a suspension, with what was known at the request."""
    return model.costs(
        checkpoint_bytes=row.checkpoint_bytes, dataset_bytes=row.dataset_bytes, gpus=row.gpus, epoch_s=row.epoch_s,
        phase_s=row.epoch_s - row.epoch_left_s, mode=row.mode, model=row.model,
    )  # fmt: skip


def _fit(rows: Sequence[Suspended]) -> OverheadModel:
    finished = [r for r in rows if r.mode != "abort"]
    aborted = [r for r in rows if r.mode == "abort"]
    parts = (
        ("stop", finished, [r.suspend_s - r.epoch_left_s for r in finished], [r.suspend_s for r in finished]),
        ("abort_stop", aborted, [r.suspend_s for r in aborted], [r.suspend_s for r in aborted]),
        ("resume", rows, [r.resume_s for r in rows], [r.resume_s for r in rows]),
    )
    terms, own = {}, {}
    for name, some, seconds, whole in parts:
        terms[name], own[name] = _part(some, np.array(seconds), np.array(whole))
    return OverheadModel(terms, own)


def _part(rows: Sequence[Suspended], seconds: Floats, whole: Floats) -> tuple[tuple[float, ...], dict[str, float]]:
    """Coefficients of one part, and the constants of models of their own."""
    from scipy.optimize import nnls

    if not rows:
        return (STOP_S, 0.0, 0.0, 0.0), {}
    table = np.array([[1.0, r.checkpoint_bytes, r.dataset_bytes, r.gpus] for r in rows])
    table = np.where(np.isfinite(table), table, 0.0)
    weight = 1.0 / np.maximum(whole, 1e-3)
    scale = np.maximum(np.abs(table).max(axis=0), 1e-9)
    names = sorted({r.model for r in rows if r.model})
    member = np.array([[float(r.model == name) for name in names] for r in rows]).reshape(len(rows), len(names))
    own = np.zeros(len(names))
    found = np.zeros(4)
    # in turns: what all have in common, then what is each model's own
    for _ in range(20):
        found = nnls(table / scale * weight[:, None], (seconds - member @ own) * weight)[0] / scale
        left = seconds - table @ found
        for k in range(len(names)):
            mine = member[:, k] > 0
            w = weight[mine] ** 2
            own[k] = float((left[mine] * w).sum() / w.sum()) * mine.sum() / (mine.sum() + SHRINK)
    return tuple(float(v) for v in found), {name: float(v) for name, v in zip(names, own, strict=True)}


# ---- as JSON


def to_json(model: OverheadModel) -> dict[str, Any]:
    """The model as plain data."""
    return {
        "terms": {k: list(v) for k, v in model.terms.items()},
        "own": model.own,
        "error": model.error,
        "rows": model.rows,
    }


def from_json(data: Any, path: str) -> OverheadModel:
    """A model from plain data.

    Raises:
        InputError: something is missing, or no number.
    """
    try:
        terms = {name: tuple(_number(v) for v in data["terms"][name]) for name in PARTS}
        own = {name: {str(k): _number(v) for k, v in data["own"].get(name, {}).items()} for name in PARTS}
        error = {str(k): _number(v) for k, v in data["error"].items()}
        rows = int(_number(data["rows"]))
    except (KeyError, TypeError, AttributeError, ValueError) as fault:
        raise InputError(f"is no overhead model: {type(fault).__name__}: {fault}", path=path) from fault
    if any(len(v) != len(TERMS) for v in terms.values()):
        raise InputError(f"is no overhead model: expected {len(TERMS)} coefficients a part", path=path)
    return OverheadModel(terms, own, error, rows)


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
        raise ValueError(f"{value!r} is not a finite number")
    return float(value)
