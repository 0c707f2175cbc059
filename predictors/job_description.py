"""What is known of a job before its run time is predicted."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from gpuctl.predictors.transfer import Shape


@dataclass(frozen=True)
class JobDescription:
    """A job as its owner describes it; NaN, None or "" where it is not known.

    Attributes:
        job: its name.
        model: jobs of one model name share a row of the profile database.
        shape: samples an epoch, batch and GPUs.
        epochs: that it will run.
        dataset_bytes: read in an epoch.
        user: whose it is.
        epoch_s: length of an epoch but the first, as measured.
        first_s: length of the first one, with all that goes before it, as measured.
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
