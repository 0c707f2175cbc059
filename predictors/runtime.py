"""The run time of training jobs: from their own traffic, from profiled jobs of their model, or from history.

Reconstructed from the published abstract (PickyMan, IPCCC 2022): that execution times can be predicted from the traffic
between storage and computing together with a database of profiles comes from the paper; the chain and the intervals are
gpuctl's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.notes import NONE, NamedValue, literal, note, together
from gpuctl.predictors import validation
from gpuctl.predictors.epoch_left import rest_by_bytes
from gpuctl.predictors.epochs import OVERHEAD, Epochs, by_volume, find_epochs
from gpuctl.predictors.job_description import JobDescription
from gpuctl.predictors.transfer import ENOUGH, EpochEstimate, ProfiledJob, transfer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuctl.core.notes import Note
    from gpuctl.predictors.series import Series
    from gpuctl.predictors.validation import ValidationInference

Z = 1.2816
"""Standard errors to either side that hold 80 % of normal errors: as many run times should lie between the bounds."""
ENOUGH_SEEN = 1.5
"""With so many epochs seen, a job's own traffic goes before other jobs, however alike those are."""
HARDLY_BEGUN = 0.5
"""Less of its first epoch says nothing of whether others are shorter: four jobs of its model say more."""
LEAST_ERROR = 0.03
"""Epochs of one job differ by about so much, however well its mean is known."""


@dataclass(frozen=True)
class Prediction:
    """The prediction for one job; NaN for no answer, with the `reason`.

    Attributes:
        job: its name.
        epoch_s: seconds of an epoch, except the first one.
        run_time_s: seconds from its start to its end.
        lower_s, upper_s: four of five such jobs end between them.
        remaining_s: of the run time, after the end of the profile.
        elapsed_s: time that the profile covers.
        phase_s: time since the last epoch began, at the end of the profile.
        epoch_left_s: rest of the current epoch at the end of the profile.
        epoch_left_lower_s, epoch_left_upper_s: four of five such epochs end between them.
        method: volume | periodicity | change-points (its own traffic), transfer (other jobs of its model), history
            or none.
        provenance: basis of the answer.
        reason: reason for no answer, or for less confidence.
        cached: whether its later epochs come from a cache, as far as its traffic shows.
    """

    job: str
    epoch_s: float = np.nan
    run_time_s: float = np.nan
    lower_s: float = np.nan
    upper_s: float = np.nan
    remaining_s: float = np.nan
    elapsed_s: float = np.nan
    phase_s: float = np.nan
    epoch_left_s: float = np.nan
    epoch_left_lower_s: float = np.nan
    epoch_left_upper_s: float = np.nan
    method: str = "none"
    provenance: Note = NONE
    reason: Note = NONE
    cached: bool | None = None


def predict(
    jobs: Sequence[JobDescription],
    profiles: Mapping[str, Series],
    *,
    epochs: float = np.nan,
    wanted: Sequence[str] | None = None,
) -> list[Prediction]:
    """Predict the run times of jobs.

    Args:
        jobs: descriptions of jobs, both to predict and to learn from.
        profiles: traffic of jobs, by name; a job may have no description.
        epochs: number of epochs of jobs that do not state it.
        wanted: the jobs to predict; None: all of them.

    Returns:
        one prediction per wanted job, in order of their names.
    """
    known = {d.job: d for d in jobs}
    for job in profiles:
        known.setdefault(job, JobDescription(job))
    filled = validation.fill(known, profiles, lambda jobs: examine(jobs, profiles))
    names = sorted(known if wanted is None else set(wanted) & set(known))
    found = [_predict(filled.known[name], filled, profiles.get(name), epochs) for name in names]
    return [_with_validation(each, known[each.job], filled) for each in found]


def _with_validation(found: Prediction, job: JobDescription, filled: ValidationInference) -> Prediction:
    """Return a prediction from other jobs, with a note on its assumption about validation."""
    samples = filled.known[found.job].shape.validation
    if found.method != "transfer":
        return found
    if job.model in filled.unsure:
        text = note("whether its epochs validate is not known (give validation_samples)")
        return replace(found, reason=_both(found.reason, text))
    if samples > 0 and samples != job.shape.validation:
        text = note("validation of {n:,.0f} sample{n||s} an epoch, as other jobs of the model show", n=samples)
        return replace(found, provenance=_both(found.provenance, text))
    return found


def examine(known: Mapping[str, JobDescription], profiles: Mapping[str, Series]) -> dict[str, Epochs]:
    """Return the epochs in each profile; an unknown data set size is taken from other jobs of the model."""
    found = {job: find_epochs(series, known[job].dataset_bytes) for job, series in profiles.items()}
    for job, epochs in found.items():
        described = known[job]
        if epochs.method != "none" or epochs.cached or not described.model or not described.shape.known:
            continue
        others = [
            _bytes_a_sample(other, found.get(name))
            for name, other in known.items()
            if name != job and other.model == described.model
        ]
        rates = [rate for rate in others if np.isfinite(rate)]
        if rates:
            size = float(np.median(rates)) * described.shape.samples
            again = by_volume(profiles[job], size / (1 + OVERHEAD))
            if again.method != "none":
                text = note("bytes an epoch from {others:,} other job{others||s} of the model", others=len(rates))
                found[job] = replace(again, reason=_both(again.reason, text))
    return found


def _bytes_a_sample(job: JobDescription, epochs: Epochs | None) -> float:
    if not job.shape.known:
        return np.nan
    if np.isfinite(job.dataset_bytes):
        return job.dataset_bytes * (1 + OVERHEAD) / job.shape.samples
    return epochs.epoch_bytes / job.shape.samples if epochs is not None else np.nan


# ---- one job


def _predict(job: JobDescription, filled: ValidationInference, series: Series | None, epochs: float) -> Prediction:
    known, seen = filled.known, filled.seen
    own = seen.get(job.job)
    others = [other for name, other in known.items() if name != job.job and job.model and other.model == job.model]
    moved = from_model(job, others, seen)
    if moved is not None and job.model in filled.unsure:
        moved = replace(moved, error=validation.UNSURE * moved.error)
    elapsed = series.seconds if series is not None else np.nan
    cached = own.cached if own is not None else job.cached
    count, how_many = _count(job, others, epochs)
    if own is not None and own.method != "none" and (own.seen >= ENOUGH_SEEN or moved is None or _surer(own, moved)):
        error = np.hypot(Z * own.spread_s / own.epoch_s, LEAST_ERROR)
        text = note("{seen:.1f} epochs of its own traffic", seen=own.seen)
        found = _run(own.epoch_s, error, own.first_s, 0.1 * error * own.epoch_s, count, shortest_s=own.shortest_s)
        method: str = own.method
        reason, phase = own.reason, own.phase_s
    elif moved is not None:
        if own is not None and np.isfinite(own.first_s):
            found = _run(moved.epoch_s, moved.error, own.first_s, 0.02 * own.first_s, count)
        else:
            found = _run(moved.epoch_s, moved.error, np.nan, 0.0, count, longer=_longer(others, seen))
        method, text = (
            "transfer",
            note(
                "{how}, {jobs:,} profiled job{jobs||s} of model {model}",
                how=literal(moved.method),
                jobs=moved.jobs,
                model=NamedValue("model", job.model),
            ),
        )
        reason, phase = note("") if own is None else own.reason, own.phase_s if own is not None else np.nan
    else:
        why = own.reason if own is not None else note("no traffic of its own")
        more = note("no profiled job of its model") if job.model else note("its model is not known")
        return Prediction(job.job, elapsed_s=elapsed, reason=together("; ", [why, more]), cached=cached)
    if not np.isfinite(count):
        reason = _both(reason, note("the number of epochs is unknown: give --epochs"))
    elif how_many:
        text = _both(text, how_many)
    run, lower, upper = found
    if np.isfinite(elapsed) and np.isfinite(run):
        # it has already run for that long
        run, lower, upper = max(run, elapsed), max(lower, elapsed), max(upper, elapsed)
    left = None if own is None or series is None else rest_by_bytes(series, own)
    return Prediction(
        job.job, _of(moved, own, method), run, lower, upper, run - elapsed, elapsed, phase,
        *(left or (np.nan, np.nan, np.nan)), method, text, reason, cached,
    )  # fmt: skip


def _both(first: Note, second: Note) -> Note:
    return together("; ", [one for one in (first, second) if one])


def _surer(own: Epochs, moved: EpochEstimate) -> bool:
    if own.seen < HARDLY_BEGUN and moved.jobs >= ENOUGH:
        return False
    return Z * own.spread_s / own.epoch_s <= moved.error


def _of(moved: EpochEstimate | None, own: Epochs | None, method: str) -> float:
    return moved.epoch_s if method == "transfer" and moved is not None else own.epoch_s if own is not None else np.nan


def _run(
    epoch_s: float, error: float, first_s: float, first_error_s: float, count: float, *,
    longer: tuple[float, float] = (0.0, 0.0), shortest_s: float = np.nan,
) -> tuple[float, float, float]:  # fmt: skip
    """Return the run time and its bounds: the first epoch, and the others at the usual length.

    Args:
        epoch_s: length of an epoch; `error` refers to its logarithm.
        error: bound that holds in four of five cases.
        first_s: length of the first epoch; NaN: as uncertain as the others.
        first_error_s: error of `first_s`.
        count: epochs.
        longer: excess of an unknown first epoch, and its error.
        shortest_s: least length of later epochs; NaN: as the error implies.
    """
    if np.isfinite(first_s):
        known, doubt, others = first_s, first_error_s, (count - 1) * epoch_s
    else:
        (known, doubt), others = longer, count * epoch_s
    # an epoch that is as likely twice as long as half as long: bounds are factors
    short = np.exp(-error) if np.isnan(shortest_s) else min(shortest_s / epoch_s, np.exp(-error))
    lower, upper = known - doubt + others * short, known + doubt + others * np.exp(error)
    return known + others, max(lower, 0.0), upper


def _count(job: JobDescription, others: Sequence[JobDescription], epochs: float) -> tuple[float, Note]:
    """Return the epochs that a job will run, and their origin if not the job itself."""
    if np.isfinite(job.epochs):
        return job.epochs, note("")
    if np.isfinite(epochs):
        return epochs, note("epochs as given")
    for some, text in (
        (
            [o.epochs for o in others if o.user and o.user == job.user],
            note("number of epochs: median of the user's jobs of this model"),
        ),
        ([o.epochs for o in others], note("number of epochs: median of this model's jobs")),
    ):
        stated = [e for e in some if np.isfinite(e)]
        if stated:
            return float(np.median(stated)), text
    return np.nan, note("")


# ---- other jobs of the model


def profiled(others: Sequence[JobDescription], seen: Mapping[str, Epochs]) -> list[ProfiledJob]:
    """Return the jobs whose epoch length is known: as measured, else from their traffic."""
    found = []
    for other in others:
        own = seen.get(other.job)
        epoch_s = other.epoch_s
        if not np.isfinite(epoch_s) and own is not None and own.method != "none" and own.seen >= ENOUGH_SEEN:
            epoch_s = own.epoch_s
        if np.isfinite(epoch_s) and other.shape.known:
            found.append(ProfiledJob(other.job, other.shape, epoch_s))
    return found


def from_model(
    job: JobDescription, others: Sequence[JobDescription], seen: Mapping[str, Epochs]
) -> EpochEstimate | None:
    """Return the epoch length of a job from others of its model; from those with the same cache use, if any."""
    own = seen.get(job.job)
    cached = own.cached if own is not None else bool(job.cached)
    alike = [o for o in others if (seen[o.job].cached if o.job in seen else bool(o.cached)) == cached]
    return transfer(job.shape, profiled(alike, seen)) or transfer(job.shape, profiled(others, seen))


def _longer(others: Sequence[JobDescription], seen: Mapping[str, Epochs]) -> tuple[float, float]:
    """Return the seconds by which first epochs of other jobs were longer than usual ones, and the error of that."""
    extra = []
    for other in others:
        found = seen.get(other.job)
        if np.isfinite(other.first_s) and np.isfinite(other.epoch_s):
            extra.append(other.first_s - other.epoch_s)
        elif found is not None and found.method != "none" and np.isfinite(found.first_s) and found.seen >= ENOUGH_SEEN:
            extra.append(found.first_s - found.epoch_s)
    if not extra:
        return 0.0, 0.0
    middle = float(np.median(extra))
    return middle, 1.5 * float(np.median(np.abs(np.array(extra) - middle)))
