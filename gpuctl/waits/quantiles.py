"""Quantiles of waits by regression trees: fitted, and sorted.

One forest (LightGBM) per level; crossing quantiles are sorted (Chernozhukov, Fernandez-Val, Galichon, 2010).
`gpuctl.waits.adaptive_quantiles` adapts their coverage to later jobs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.predictors import trees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEVELS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
"""That are fitted."""
ANSWERED = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""That are answered."""
PARAMETERS: dict[str, Any] = {
    "num_leaves": 15, "learning_rate": 0.08, "min_data_in_leaf": 50, "max_bin": 127, "seed": 1,
    "deterministic": True, "force_row_wise": True, "num_threads": 1,
}  # fmt: skip
"""Of LightGBM; one thread, so that the same jobs give the same bytes on any machine."""
TREES = 120
SAMPLE = 100_000
"""Of more jobs each tree sees a random sample of about so many."""
_LONGEST = float(np.log1p(1e9))
_TAIL = 1.0
"""The end of the distribution: so much beyond the logarithm of the highest level, 2.7 times the wait."""


@dataclass(frozen=True)
class Forests:
    """Forests that return quantiles.

    Attributes:
        features: names of their features, in order.
        fitted: trees of each of `LEVELS`, for log(1 + seconds).
        texts: LightGBM's text of each.
        levels: levels used for `ANSWERED`.
    """

    features: tuple[str, ...]
    fitted: tuple[trees.Trees, ...]
    texts: tuple[str, ...]
    levels: tuple[float, ...] = ANSWERED

    def curves(self, rows: Floats) -> Floats:
        """Return the fitted levels, sorted, of log(1 + seconds) [LEVELS, jobs]."""
        levels_s = np.stack([forest.answer(rows) for forest in self.fitted])
        found: Floats = np.sort(levels_s.clip(0, _LONGEST), axis=0)
        return found

    def answer(self, rows: Floats) -> Floats:
        """Return the seconds at each of `ANSWERED` [jobs, ANSWERED]."""
        return np.expm1(at_levels(self.curves(rows), self.levels)).T


def fit(rows: Floats, wait_s: Floats, weight: Floats, features: Sequence[str], rounds: int = TREES) -> Forests:
    """Fit all levels.

    Args:
        rows: features of each job, NaN if unknown [jobs, features].
        wait_s: its wait.
        weight: number of jobs that each represents.
        features: names of the columns.
        rounds: trees per level.
    """
    lightgbm = trees.load_lightgbm()
    sample = {"bagging_fraction": SAMPLE / len(rows), "bagging_freq": 1} if len(rows) > SAMPLE else {}
    parameters = {**PARAMETERS, **sample, "objective": "quantile", "verbose": -1}
    target = np.log1p(wait_s)
    names = list(features)
    texts = []
    data = lightgbm.Dataset(rows, target, weight=weight, feature_name=names, params=parameters).construct()
    for level in LEVELS:
        fitted = lightgbm.train({**parameters, "alpha": level}, data, num_boost_round=rounds)
        texts.append(trees.strip(fitted.model_to_string()))
    parsed = tuple(trees.parse(text, names, "what LightGBM wrote") for text in texts)
    return Forests(tuple(names), parsed, tuple(texts))


def at_levels(curves: Floats, levels: Sequence[float]) -> Floats:
    """Interpolate linearly between the fitted quantiles [levels, jobs]."""
    grid, full = whole(curves)
    found = np.empty((len(levels), curves.shape[1]))
    for k, level in enumerate(levels):
        at = min(int(np.searchsorted(grid, level, side="right")) - 1, grid.size - 2)
        part = (level - grid[at]) / (grid[at + 1] - grid[at])
        found[k] = (1 - part) * full[at] + part * full[at + 1]
    return found


def whole(curves: Floats) -> tuple[Floats, Floats]:
    """Return levels from 0 to 1, and the curves with both ends."""
    top = np.minimum(curves[-1:] + _TAIL, _LONGEST)
    return np.array([0.0, *LEVELS, 1.0]), np.concatenate(
        [np.zeros_like(curves[:1]), curves, np.maximum(top, curves[-1:])]
    )
