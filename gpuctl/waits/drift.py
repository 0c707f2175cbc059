"""Drift of a model of waits: the coverage of its interval on jobs after its training data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.waits import adaptive_quantiles, features, forecast, learn, order_statistics, quantiles

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.waits.learn import Model
    from gpuctl.waits.queue_log import WaitLog

    Floats = NDArray[np.float64]

FEWEST = 200
"""Jobs from which a coverage is told."""
HOLDS = (72.0, 88.0)
"""Coverage in percent outside of which a model is out of date; of 200 jobs, 80 % is measured within 6 points."""


@dataclass(frozen=True)
class HeldShare:
    """Coverage of a model's 80 % interval on later jobs.

    Attributes:
        jobs: later jobs that started; the latest `forecast.FOLLOWED`.
        as_saved_pct: share within the interval with the saved levels.
        followed_pct: the same with adaptive levels, as ``gpuctl predict wait`` answers with the log.
    """

    jobs: int
    as_saved_pct: float
    followed_pct: float

    @property
    def fails(self) -> bool:
        """Return whether the model is out of date, based on enough jobs."""
        return self.jobs >= FEWEST and not HOLDS[0] <= self.followed_pct <= HOLDS[1]


def measure_coverage(model: Model, log: WaitLog) -> HeldShare:
    """Evaluate a model on the jobs of a log after its training data.

    Args:
        model: trained or loaded.
        log: of the same cluster, in the same unit.
    """
    came = (log.ready_s > model.trained_s) & (log.started | np.isinf(log.leave_s))
    new = np.flatnonzero(came)[-forecast.FOLLOWED :]
    if model.method == learn.BOUND:
        group = features.classes(log.rows) + 1
        asks = (log.ready_s, group, np.arange(log.ready_s.size))
        forecast_s = order_statistics.bounds(log.leave_s, log.wait_s, group, asks, quantiles.ANSWERED)[new]
        return _held(log, new, forecast_s, forecast_s)
    queries = features.WaitQueries(log.rows[new.tolist()], log.ready_s[new], new)
    curves, group = forecast.queue_curves(model, model.method, log, queries)
    answered = ~np.isnan(curves[0])
    new, curves, group = new[answered], curves[:, answered], group[answered]
    levels = model.levels[model.method]
    followed, _ = adaptive_quantiles.follow(curves, (log.ready_s[new], log.leave_s[new]), levels, group)
    return _held(log, new, adaptive_quantiles.answers_at(curves, levels, group), followed)


def _held(log: WaitLog, new: NDArray[np.int64], saved: Floats, followed: Floats) -> HeldShare:
    answered = log.started[new] & ~np.isnan(followed[:, 0])
    wait = log.wait_s[new][answered]
    shares = [
        100 * float(((wait >= forecast_s[answered, 0]) & (wait <= forecast_s[answered, -1])).mean())
        if answered.any()
        else np.nan
        for forecast_s in (saved, followed)
    ]
    return HeldShare(int(answered.sum()), *shares)
