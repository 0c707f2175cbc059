"""The share of its limit that a job will use: quantiles by regression trees, from what was known at its submission.

For simulations that draw run times: they need the whole distribution, whereas `gpuctl.predictors.history` returns an
interval. The features are the same. The trees fit shares, not run times: all jobs that are ended at their limits then
have one value, which none exceeds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.predictors import features, history, trees
from gpuctl.predictors.job_table import SHORTEST_S, JobTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Singles = NDArray[np.float32]

LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""That are fitted."""
TREES = 60
"""A level."""
_TYPICAL_S = 3600.0
"""What the rule of the last two run times says before any job has ended, and of a job without a limit."""


@dataclass(frozen=True)
class Shares:
    """Trees that predict the share of its limit that a job uses.

    Attributes:
        features: names of its features, in order.
        fitted: trees of each of `LEVELS`, for the logarithm of the share.
        texts: LightGBM's text of each.
    """

    features: tuple[str, ...]
    fitted: tuple[trees.Trees, ...]
    texts: tuple[str, ...]

    def answer(self, rows: Singles) -> Floats:
        """Return `LEVELS` of the logarithm of the share, in order, none above 0 [jobs, LEVELS]."""
        levels = np.stack([forest.answer(rows) for forest in self.fitted], axis=1)
        found: Floats = np.sort(np.minimum(levels, 0.0), axis=1)
        return found


def names(rows: pl.DataFrame) -> tuple[str, ...]:
    """Return the names of the features of jobs in the columns of `JobTable.rows` that their log provides."""
    stated = features.stated_columns(rows)
    return (*stated, *history.relative(stated))


def submission_features(rows: pl.DataFrame, wanted: Sequence[str]) -> Singles:
    """Return what was known of each job at its submission [jobs, wanted].

    Args:
        rows: as `JobTable.rows` has them, ascending in ``submit_s``; ``known``: whether ``run_s`` and ``end_s`` are.
        wanted: names, as `names` has them.
    """
    known, _ = features.of_log(JobTable("", rows, "UTC", "UTC", "", {}))
    matrix, _ = history.columns(rows, known, wanted, _TYPICAL_S)
    return matrix


def share(run_s: Floats, limit_s: Floats) -> Floats:
    """Return the logarithm of the share of its limit that each job used, none above 0."""
    found: Floats = np.minimum(np.log(np.maximum(run_s, SHORTEST_S) / limit_s), 0.0)
    return found


def fit(rows: Singles, run_s: Floats, limit_s: Floats, weight: Floats, wanted: Sequence[str]) -> Shares:
    """Fit all levels; the same jobs give the same bytes.

    Args:
        rows: features of each job [jobs, wanted].
        run_s: its run time.
        limit_s: its limit, or a substitute for one.
        weight: number of jobs that each represents.
        wanted: names of the columns.
    """
    lightgbm = trees.load_lightgbm()
    sample = {"bagging_fraction": history.SAMPLE / len(rows), "bagging_freq": 1} if len(rows) > history.SAMPLE else {}
    parameters: dict[str, Any] = {
        **history.PARAMETERS, **sample, "objective": "quantile", "num_threads": 1, "verbose": -1
    }  # fmt: skip
    target = share(run_s, limit_s)
    data = lightgbm.Dataset(rows, target, weight=weight, feature_name=list(wanted), params=parameters).construct()
    texts = tuple(
        trees.strip(lightgbm.train({**parameters, "alpha": level}, data, num_boost_round=TREES).model_to_string())
        for level in LEVELS
    )
    fitted = tuple(trees.parse(text, wanted, "what LightGBM wrote") for text in texts)
    return Shares(tuple(wanted), fitted, texts)
