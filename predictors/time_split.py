"""Cuts a log in time into jobs to fit on, to calibrate on and to score on: a model learns only from the past.

A part holds jobs that were submitted in its time; the first two only those that had also ended by its end. A long job
is less likely than a short one to have ended by then: each one that did represents those that did not, with a weight of
1 / the share of the part's jobs submitted early enough to have ended after that run time (inverse probability of
censoring).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.predictors.job_table import JobTable

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

CALIBRATION_SHARE = 0.2
"""Of the jobs that are not scored on."""
MOST_WEIGHT = 5.0
FEWEST = {"fit": 100, "calibration": 30, "test": 30}
"""With fewer jobs nothing is learnt or said."""

COUNTS = {
    "fit": "Fitted on: submitted, and ended, before the first cut.",
    "ended_after_first_cut": "Left out: submitted before the first cut, but ended after it.",
    "calibration": "Set the intervals' width: submitted, and ended, between the cuts.",
    "ended_after_second_cut": "Left out: submitted between the cuts, but ended after the second.",
    "test": "Scored on: submitted after the second cut.",
}
"""What `TimeSplit.counts` count."""


@dataclass(frozen=True)
class TimeSplit:
    """The assignment of jobs to parts.

    Attributes:
        fit: jobs to fit on, shape (jobs,).
        calibration: jobs to calibrate intervals on.
        test: jobs to score on.
        fit_weight: weights of the jobs to fit on, shape (their number,).
        calibration_weight: weights of the jobs to calibrate on.
        counts: by the keys of `COUNTS`.
    """

    fit: Mask
    calibration: Mask
    test: Mask
    fit_weight: Floats
    calibration_weight: Floats
    counts: dict[str, int]

    def windows(self, submit: Floats) -> dict[str, tuple[float, float]]:
        """Return first and last submission of each part, s."""
        masks = {"fit": self.fit, "calibration": self.calibration, "test": self.test}
        return {name: (float(submit[mask].min()), float(submit[mask].max())) for name, mask in masks.items()}


def split(table: JobTable, test_share: float) -> TimeSplit:
    """Cut a log in time.

    Args:
        table: the jobs.
        test_share: share of the jobs with a known run time, the last submitted ones, to score on.

    Raises:
        InputError: a part has too few jobs.
    """
    submit, end, known = (table.rows[name].to_numpy() for name in ("submit_s", "end_s", "known"))
    learnt = 1 - test_share
    first, second = np.quantile(submit[known], (learnt * (1 - CALIBRATION_SHARE), learnt)).tolist()
    early, middle = known & (submit < first), known & (submit >= first) & (submit < second)
    fit, calibration, test = early & (end < first), middle & (end < second), known & (submit >= second)
    counts = {
        "fit": fit,
        "ended_after_first_cut": early & ~fit,
        "calibration": calibration,
        "ended_after_second_cut": middle & ~calibration,
        "test": test,
    }
    parts = TimeSplit(
        fit=fit,
        calibration=calibration,
        test=test,
        fit_weight=weights(submit, end, fit, early, first),
        calibration_weight=weights(submit, end, calibration, middle, second),
        counts={name: int(mask.sum()) for name, mask in counts.items()},
    )
    for name, fewest in FEWEST.items():
        if parts.counts[name] < fewest:
            raise InputError(
                f"{table.name}: {parts.counts[name]:,} jobs for the part {name!r}, expected at least {fewest:,}",
                hint="train on a longer log, or test on another share of it",
            )
    return parts


def weights(submit: Floats, end: Floats, ended: Mask, part: Mask, cut: float) -> Floats:
    """Return 1 / the share of a part's jobs that would have ended before the cut with the same run time.

    Args:
        submit: s, shape (jobs,).
        end: s.
        ended: the jobs to weight.
        part: jobs of the part, ended or not.
        cut: end of the part, s.

    Returns:
        at least 1 and at most `MOST_WEIGHT`, shape (number of `ended`,).
    """
    took = end[ended] - submit[ended]
    share = np.searchsorted(np.sort(submit[part]), cut - took) / max(int(part.sum()), 1)
    found: Floats = 1 / np.maximum(share, 1 / MOST_WEIGHT)
    return found
