"""The facts known of a job before its run time is predicted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gpuctl.predictors.transfer import Shape


@dataclass(frozen=True)
class JobDescription:
    """A job as its owner describes it; NaN, None or "" if unknown.

    Attributes:
        job: its name.
        model: jobs of one model name share a row of the profile database.
        shape: samples per epoch, batch and GPUs.
        epochs: number of epochs.
        dataset_bytes: bytes read per epoch.
        user: its owner.
        epoch_s: measured length of an epoch except the first.
        first_s: measured length of the first one, including start-up.
        cached: whether later epochs are read from a cache; None unknown.
    """

    job: str
    model: str = ""
    shape: Shape = field(default_factory=lambda: Shape(np.nan, np.nan, np.nan))
    epochs: float = np.nan
    dataset_bytes: float = np.nan
    user: str = ""
    epoch_s: float = np.nan
    first_s: float = np.nan
    cached: bool | None = None
