"""Samples that an epoch validates, inferred from other jobs of the model if a job's owner does not state them.

Jobs of one model usually share a validation set. So a stated number of one job applies to the others; else it is the
common part of their data sets, independent of their training samples (if dataset_bytes includes validation); else the
part that their epochs read beyond their data sets (if it does not).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.predictors.epochs import OVERHEAD, find_epochs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpuctl.predictors.epochs import Epochs
    from gpuctl.predictors.job_description import JobDescription
    from gpuctl.predictors.series import Series

FEWEST = 3
"""Numbers of samples that differ, from which a common part of the data sets is told from the rest."""
FITS = 0.005
"""Share of a data set by which a straight line over samples may miss it."""
LEAST = 0.03
"""Share of an epoch's bytes below which validation does not matter, or is protocol."""
MOST = 0.5
UNSURE = 1.2
"""Times as wide an interval where nothing tells whether epochs validate."""


@dataclass(frozen=True)
class ValidationInference:
    """Jobs with their validation samples filled in.

    Attributes:
        known: the jobs, by name.
        seen: the epochs of each profile.
        unsure: models whose validation cannot be inferred.
    """

    known: dict[str, JobDescription]
    seen: dict[str, Epochs]
    unsure: frozenset[str]


def fill(
    known: Mapping[str, JobDescription],
    profiles: Mapping[str, Series],
    examine: Callable[[Mapping[str, JobDescription]], dict[str, Epochs]],
) -> ValidationInference:
    """Infer unstated validation samples, and with them the bytes of epochs.

    Args:
        known: jobs, by name.
        profiles: traffic of jobs.
        examine: estimates the epochs from profiles and the known facts of the jobs.
    """
    found, models = dict(known), _models(known)
    unsure = set()
    for model, jobs in models.items():
        stated = [job.shape.validation for job in jobs if job.shape.validation > 0]
        common = float(np.median(stated)) if stated else _in_common(jobs)
        if np.isnan(common):
            unsure.add(model)
        found |= {job.job: _validating(job, common) for job in jobs if common > 0 and job.shape.validation <= 0}
    seen = examine(found)
    for model, jobs in models.items():
        measured = [each for job in jobs if (each := _beyond(job, seen.get(job.job))) is not None]
        samples = float(np.median(measured)) if measured else 0.0
        if measured:
            unsure.discard(model)
        for job in jobs if samples > 0 else ():
            whole = found[job.job] if found[job.job].shape.validation > 0 else _validating(job, samples)
            size = job.dataset_bytes * (1 + samples / job.shape.samples)
            found[job.job] = replace(whole, dataset_bytes=size)
            if job.job in profiles and np.isfinite(size):
                seen[job.job] = find_epochs(profiles[job.job], size)
    return ValidationInference(found, seen, frozenset(unsure))


def _models(known: Mapping[str, JobDescription]) -> dict[str, list[JobDescription]]:
    """Return the jobs of each model whose samples and other properties are known."""
    found: dict[str, list[JobDescription]] = {}
    for job in known.values():
        if job.model and job.shape.known:
            found.setdefault(job.model, []).append(job)
    return found


def _validating(job: JobDescription, samples: float) -> JobDescription:
    return replace(job, shape=replace(job.shape, validation=samples))


def _in_common(jobs: Sequence[JobDescription]) -> float:
    """Return the samples common to all data sets beyond the training samples; 0: none; NaN: undetermined."""
    sized = [job for job in jobs if np.isfinite(job.dataset_bytes) and job.dataset_bytes > 0]
    n = np.array([job.shape.samples for job in sized])
    size = np.array([job.dataset_bytes for job in sized])
    if np.unique(n).size < FEWEST or n.max() < 1.1 * n.min():
        return np.nan
    slope, common = np.polyfit(n, size, 1)
    missed = np.abs(slope * n + common - size) / size
    share = float(np.median(common / size))
    if slope <= 0 or missed.max() > FITS or share > MOST:
        return np.nan
    # through the origin, data sets may also be those of training alone
    return float(common / slope) if share > LEAST else np.nan


def _beyond(job: JobDescription, epochs: Epochs | None) -> float | None:
    """Return the samples that an epoch reads beyond the data set; None: its traffic does not show it, 0: none."""
    if epochs is None or epochs.method != "volume" or not np.isfinite(job.dataset_bytes):
        return None
    extra = epochs.epoch_bytes / job.dataset_bytes - 1
    if abs(extra - OVERHEAD) < 1e-9:
        # as assumed: no period showed the bytes of an epoch
        return None
    return job.shape.samples * extra if extra > LEAST else 0.0
