"""Accuracy of predicted run times; each figure has its number of jobs and a 95 % interval.

Intervals are percentile intervals of a bootstrap over blocks of jobs that were submitted together, since jobs of one
day are not independent: days if there are at least `ENOUGH_DAYS`, otherwise `FEW_BLOCKS` blocks of equally many
jobs. A rank correlation uses the ranks among all scored jobs; they are not recomputed per resample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.predictors.job_table import SHORTEST_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

RESAMPLES = 500
SEED = 20170807
ENOUGH_DAYS = 5
FEW_BLOCKS = 20

MEASURES: dict[str, tuple[str, str]] = {
    "median_ape_pct": ("%", "Median of |predicted - true| / true."),
    "mae_s": ("s", "Mean of |predicted - true|."),
    "mean_abs_log_error": ("-", "Mean of |ln(predicted / true)|: 0.69 is a factor of 2."),
    "within_10_pct": ("%", "Jobs for which |predicted - true| is at most 10 % of the true run time."),
    "within_50_pct": ("%", "The same with 50 %."),
    "rank_correlation": ("-", "Spearman's: 1 where predictions put all jobs in the true order, which is what a "
                              "shortest-first scheduler needs; none where they do not vary."),
    "pinball_s": ("s", "Mean over the three quantiles of the pinball loss: what each quantile minimizes. Of a rule "
                       "that gives one number, that number takes the place of all three."),
    "coverage_pct": ("%", "Jobs whose true run time lies in the interval."),
    "below_pct": ("%", "Jobs that ran shorter than the interval's lower end."),
    "above_pct": ("%", "Jobs that ran longer than its upper end."),
    "width_mean_s": ("s", "Mean width of the interval."),
    "width_factor": ("-", "Geometric mean of upper / lower end of the interval."),
}  # fmt: skip
"""Unit and definition of each measure."""


@dataclass(frozen=True)
class Guess:
    """Predictions of one predictor.

    Attributes:
        name: of the predictor.
        middle: predicted run time, s, shape (jobs,); NaN where it has no answer.
        lower: lower end of its interval, s; None without intervals.
        upper: upper end.
    """

    name: str
    middle: Floats
    lower: Floats | None = None
    upper: Floats | None = None


def score(guess: Guess, truth: Floats, day: Ints, quantiles: tuple[float, ...]) -> pl.DataFrame:
    """Score one predictor.

    Args:
        guess: its predictions.
        truth: run times, s, shape (jobs,), in order of submission.
        day: number of the day of each submission.
        quantiles: that lower end, prediction and upper end are of.

    Returns:
        One row per measure: ``predictor``, ``measure``, ``jobs`` (with an answer), ``value``, ``low`` and
        ``high`` (95 %; null with fewer than two blocks); measures of the interval only if there is one.
    """
    has = ~np.isnan(guess.middle)
    true, day = np.maximum(truth[has], SHORTEST_S), day[has]
    predicted = np.maximum(guess.middle[has], SHORTEST_S)
    ends = None if guess.lower is None or guess.upper is None else (guess.lower[has], guess.upper[has])
    drawn, block = _draws(day)
    found = {m: _mean(values, block, drawn) for m, values in _by_job(true, predicted, ends, quantiles).items()}
    found["median_ape_pct"] = _median(100 * np.abs(predicted - true) / true, block, drawn)
    found["rank_correlation"] = _correlation(predicted, true, block, drawn)
    if "log_width" in found:
        value, low, high = (float(np.exp(x)) for x in found["log_width"])
        found["width_factor"] = value, low, high
    rows = [(guess.name, measure, int(has.sum()), *found[measure]) for measure in MEASURES if measure in found]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row").with_columns(pl.col(pl.Float64).fill_nan(None))


_SCHEMA = {
    "predictor": pl.String,
    "measure": pl.String,
    "jobs": pl.Int64,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
}


def _by_job(
    true: Floats, predicted: Floats, ends: tuple[Floats, Floats] | None, quantiles: tuple[float, ...]
) -> dict[str, Floats]:
    """Return the values per job whose mean is each measure."""
    error = np.abs(predicted - true)
    lower, upper = ends or (predicted, predicted)
    pinball = np.zeros(len(true))
    for quantile, value in zip(quantiles, (lower, predicted, upper), strict=True):
        pinball += np.maximum(quantile * (true - value), (quantile - 1) * (true - value)) / len(quantiles)
    found = {
        "mae_s": error,
        "mean_abs_log_error": np.abs(np.log(predicted / true)),
        "within_10_pct": _percent(error <= 0.1 * true),
        "within_50_pct": _percent(error <= 0.5 * true),
        "pinball_s": pinball,
    }
    if ends is None:
        return found
    return found | {
        "coverage_pct": _percent((lower <= true) & (true <= upper)),
        "below_pct": _percent(true < lower),
        "above_pct": _percent(true > upper),
        "width_mean_s": upper - lower,
        "log_width": np.log(upper / lower),
    }


def _percent(holds: NDArray[np.bool_]) -> Floats:
    found: Floats = 100.0 * holds.astype(np.float64)
    return found


def _draws(day: Ints) -> tuple[Ints, Ints]:
    """Return how often each block is drawn, shape (resamples, blocks), and the block of each job."""
    days, block = np.unique(day, return_inverse=True)
    count = len(days)
    if count < ENOUGH_DAYS:
        count = min(FEW_BLOCKS, len(day))
        block = np.arange(len(day)) * count // max(len(day), 1)
    if count < 2:
        return np.zeros((0, max(count, 1)), np.int64), np.asarray(block)
    drawn = np.random.default_rng(SEED).multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    return drawn, np.asarray(block)


Interval = tuple[float, float, float]


def _interval(value: float, resampled: Floats) -> Interval:
    usable = resampled[np.isfinite(resampled)]
    if not usable.size:
        return value, float("nan"), float("nan")
    low, high = np.quantile(usable, (0.025, 0.975))
    return value, float(low), float(high)


def _sums(values: Floats, block: Ints, drawn: Ints) -> Floats:
    """Return the sum of the values in each resample, shape (resamples,)."""
    of_block = np.asarray(np.bincount(block, weights=values, minlength=drawn.shape[1]), np.float64)
    found: Floats = drawn @ of_block
    return found


def _mean(values: Floats, block: Ints, drawn: Ints) -> Interval:
    if not len(values):
        return float("nan"), float("nan"), float("nan")
    counted = _sums(np.ones(len(values)), block, drawn)
    return _interval(float(values.mean()), _sums(values, block, drawn) / counted)


def _median(values: Floats, block: Ints, drawn: Ints) -> Interval:
    if not len(values):
        return float("nan"), float("nan"), float("nan")
    order = np.argsort(values, kind="stable")
    ordered, block = values[order], block[order]
    found = np.empty(len(drawn))
    for k, times in enumerate(drawn):
        drawn_so_far = np.cumsum(times[block])
        found[k] = ordered[np.searchsorted(drawn_so_far, drawn_so_far[-1] / 2)]
    return _interval(float(np.median(values)), found)


def _correlation(predicted: Floats, true: Floats, block: Ints, drawn: Ints) -> Interval:
    from scipy.stats import rankdata

    if len(predicted) < 2 or np.ptp(predicted) == 0 or np.ptp(true) == 0:
        return float("nan"), float("nan"), float("nan")
    a, b = (np.asarray(rankdata(x), np.float64) / len(predicted) for x in (predicted, true))
    # the first row is the sample itself
    times = np.vstack([np.ones((1, drawn.shape[1]), np.int64), drawn])
    n, sa, sb = (_sums(x, block, times) for x in (np.ones(len(a)), a, b))
    saa, sbb, sab = (_sums(x, block, times) for x in (a * a, b * b, a * b))
    with np.errstate(invalid="ignore", divide="ignore"):
        r = (n * sab - sa * sb) / np.sqrt((n * saa - sa * sa) * (n * sbb - sb * sb))
    return _interval(float(np.clip(r[0], -1, 1)), r[1:])
