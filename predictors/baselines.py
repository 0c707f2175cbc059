"""Baselines that a run-time predictor must beat: rules that need no training.

Each uses only what a scheduler knows at submission, as `gpuctl.predictors.features` provides it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpuctl.predictors.features import ALL
from gpuctl.predictors.job_table import SHORTEST_S

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from gpuctl.predictors.features import Features

    Floats = NDArray[np.float64]

BASELINES = {
    "last_two": "Mean of the last two run times of the same user, at most the limit; without one, the limit, else the "
    "mean of all ended jobs (after Tsafrir et al., 2007).",
    "mean": "Mean run time of all jobs that had ended.",
    "median": "Median run time of the jobs that the model was fitted on.",
    "limit": "The run time that the job asks for; only jobs that ask for one.",
    "qssf": "Mean of the ended jobs of the same user, name (digits masked) and size; else of the same user and name, "
    "the same name, the same user, all jobs (in the manner of Helios' QSSF, whose names match by likeness instead).",
}
_QSSF = ("user_name_size", "user_name", "name", "user", ALL)


def baselines(rows: pl.DataFrame, features: Features, median_s: float) -> dict[str, Floats]:
    """Return the run times that the rules of `BASELINES` predict, s, each of shape (jobs,); NaN for no answer.

    Args:
        rows: of a `gpuctl.predictors.job_table.JobTable`.
        features: of the same jobs.
        median_s: run time of the jobs that the model was fitted on.
    """
    limit = rows["time_limit_s"].to_numpy()
    mean = features.mean(ALL)
    qssf = features.mean(_QSSF[0])
    for group in _QSSF[1:]:
        qssf = _else(qssf, features.mean(group))
    found = {
        "last_two": last_two(rows, features),
        "mean": mean,
        "median": np.full(rows.height, median_s),
        "limit": limit,
        "qssf": qssf,
    }
    return {name: np.maximum(values, SHORTEST_S) for name, values in found.items()}


def last_two(rows: pl.DataFrame, features: Features) -> Floats:
    """Return the run times that the rule ``last_two`` predicts, s, shape (jobs,); NaN before any job has ended."""
    limit = rows["time_limit_s"].to_numpy()
    last, before = (np.exp(features.figure("user", figure).astype(np.float64)) for figure in ("last", "before_last"))
    two = np.where(np.isnan(before), last, (last + before) / 2)
    found: Floats = np.maximum(np.fmin(_else(_else(two, limit), features.mean(ALL)), limit), SHORTEST_S)
    return found


def _else(values: Floats, other: Floats) -> Floats:
    return np.where(np.isnan(values), other, values)
