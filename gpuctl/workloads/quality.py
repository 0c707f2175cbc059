"""How similar synthetic jobs are to a trace, compared with how similar one half of the trace is to the other half.

A distance alone is hard to judge: the months of one cluster also differ. Each measure is therefore taken of the trace,
of synthetic traces of several seeds, and of the trace's two halves, and a synthetic trace counts as similar if its
distance is at most `MARGIN` times that between the halves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import anderson_ksamp, ks_2samp, spearmanr, wasserstein_distance

from gpuctl.workloads.jobs import DAY_S, HOUR_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuctl.workloads.jobs import Floats, Jobs

MARGIN = 1.5
LIKE, UNLIKE, UNKNOWN = "like its halves", "unlike", "not compared"
JOBS_COMPARED = 2_000_000
"""Synthetic jobs of all traces that a fit compares, unless three traces hold more."""
_SAMPLE = 5_000
_MOST_KS = 200_000
_TINY = 1e-12


@dataclass(frozen=True)
class Score:
    """One measure.

    Attributes:
        group: ``replay``, ``dependence``, ``marginal`` or ``copy``.
        measure: its name.
        of: its subject.
        trace: its value for the trace; NaN for distances between samples, which are none of one trace.
        synthetic: median of the seeds; of distances, that to the trace.
        low: 5 % quantile of the seeds.
        high: 95 % quantile.
        halves: of the trace's halves: their distance, or the difference of their values.
        verdict: `LIKE`, `UNLIKE` or `UNKNOWN`.
    """

    group: str
    measure: str
    of: str
    trace: float
    synthetic: float
    low: float
    high: float
    halves: float
    verdict: str


def synthetic_traces(jobs: int) -> int:
    """Return the number of synthetic traces to compare with a trace: 20, or fewer, as each is replayed twice."""
    return max(3, min(20, JOBS_COMPARED // max(jobs, 1)))


def halves(jobs: Jobs) -> tuple[Jobs, Jobs]:
    """Return the jobs submitted in the first and in the second half of the time."""
    middle = (jobs.submit_s[0] + jobs.submit_s[-1]) / 2
    at = int(np.searchsorted(jobs.submit_s, middle))
    return jobs.take(slice(0, at)), jobs.take(slice(at, None))


def scores(trace: Jobs, drawn: Sequence[Jobs]) -> list[Score]:
    """Score the marginals and dependence of synthetic traces against a trace.

    Args:
        trace: the trace's jobs.
        drawn: synthetic ones, one per seed.
    """
    first, second = halves(trace)
    found = []
    for of, values in _MARGINALS.items():
        whole, one, other = values(trace), values(first), values(second)
        if whole.size < 20 or min(one.size, other.size) < 10:
            continue
        samples = [values(each) for each in drawn]
        for measure, distance in _DISTANCES.items():
            between = [distance(whole, sample) for sample in samples if sample.size]
            apart = distance(one, other)
            found.append(_of_distances("marginal", measure, of, between, apart))
    for measure, value in _VALUES.items():
        numbers = [value(each) if each.submit_s.size else np.nan for each in (trace, first, second)]
        synthetic = [value(each) for each in drawn if each.submit_s.size]
        found.append(of_values("dependence", measure, "", numbers, synthetic))
    order = ("dependence", "marginal")
    known = sorted(
        (score for score in found if np.isfinite(score.synthetic)), key=lambda score: order.index(score.group)
    )
    return [*known, _copied(trace, drawn)]


def _copied(trace: Jobs, drawn: Sequence[Jobs]) -> Score:
    """Return the share of synthetic jobs that copy a job of the trace: same time, size and length."""

    def keys(jobs: Jobs) -> Floats:
        return np.column_stack([np.rint(jobs.submit_s), jobs.size, np.rint(jobs.run_s)])

    own = set(map(tuple, keys(trace).tolist()))
    shares = [float(np.mean([key in own for key in map(tuple, keys(each).tolist())])) for each in drawn[:5]]
    median, low, high = _band(shares)
    return Score(
        "copy",
        "jobs at the time, size and run time of a job of the trace, share",
        "",
        np.nan,
        median,
        low,
        high,
        np.nan,
        UNKNOWN,
    )


def _of_distances(group: str, measure: str, of: str, between: Sequence[float], apart: float) -> Score:
    median, low, high = _band(between)
    return Score(group, measure, of, np.nan, median, low, high, apart, _verdict(median, apart))


def of_values(group: str, measure: str, of: str, trace: Sequence[float], drawn: Sequence[float]) -> Score:
    """Compare a number of the trace with those of synthetic traces.

    Args:
        group: of the measure.
        measure: its name.
        of: its subject.
        trace: of the whole trace, its first half and its second one.
        drawn: of each synthetic trace.
    """
    median, low, high = _band(drawn)
    apart = abs(trace[1] - trace[2])
    return Score(group, measure, of, trace[0], median, low, high, apart, _verdict(abs(median - trace[0]), apart))


def _verdict(distance: float, apart: float) -> str:
    if not (np.isfinite(distance) and np.isfinite(apart)):
        return UNKNOWN
    return LIKE if distance <= MARGIN * apart + _TINY else UNLIKE


def _band(values: Sequence[float]) -> tuple[float, float, float]:
    known = np.array([v for v in values if np.isfinite(v)])
    if not known.size:
        return np.nan, np.nan, np.nan
    low, median, high = np.quantile(known, [0.05, 0.5, 0.95])
    return float(median), float(low), float(high)


def _ln_gaps(jobs: Jobs) -> Floats:
    return np.log(np.maximum(np.diff(jobs.submit_s), 0.5))


def _ln_limits(jobs: Jobs) -> Floats:
    known = np.isfinite(jobs.limit_s)
    return np.log(jobs.limit_s[known] / jobs.run_s[known])


_MARGINALS: dict[str, Callable[[Jobs], Floats]] = {
    "ln gap": _ln_gaps,
    "size": lambda jobs: jobs.size.astype(np.float64),
    "ln run time": lambda jobs: np.log(jobs.run_s),
    "ln limit / run time": _ln_limits,
    "ln size x run time": lambda jobs: np.log(jobs.size * jobs.run_s),
}


def _some(values: Floats, most: int) -> Floats:
    """Return evenly spaced ones of the sorted values, if there are too many."""
    if values.size <= most:
        return values
    ranked = np.sort(values)
    return ranked[np.linspace(0, values.size - 1, most).round().astype(np.int64)]


def _ks(a: Floats, b: Floats) -> float:
    return float(ks_2samp(_some(a, _MOST_KS), _some(b, _MOST_KS), method="asymp").statistic)


def _anderson(a: Floats, b: Floats) -> float:
    """Return the k-sample statistic divided by the number of values, so that samples of other sizes can be compared."""
    import warnings

    a, b = _some(a, _SAMPLE), _some(b, _SAMPLE)
    if min(a.min(), b.min()) == max(a.max(), b.max()):
        return 0.0
    with warnings.catch_warnings():
        # the p-value, which is not used, is clipped at the ends of its table
        warnings.simplefilter("ignore")
        found = anderson_ksamp([a, b])
    return float(found.statistic) * (1 / a.size + 1 / b.size)


_DISTANCES: dict[str, Callable[[Floats, Floats], float]] = {
    "KS distance": _ks,
    "Anderson-Darling, scaled": _anderson,
    "Wasserstein distance": lambda a, b: float(wasserstein_distance(_some(a, _MOST_KS), _some(b, _MOST_KS))),
}


def autocorrelation(values: Floats, lag: int) -> float:
    """Return the correlation of a series with itself `lag` later; NaN for short or constant ones."""
    if values.size <= lag + 2:
        return np.nan
    x = values - values.mean()
    below = float((x**2).sum())
    return float((x[lag:] * x[:-lag]).sum() / below) if below > 0 else np.nan


def counts(jobs: Jobs, span_s: float) -> Floats:
    """Count the jobs submitted in each whole span of time after the first submission."""
    at = (jobs.submit_s // span_s).astype(np.int64)
    found = np.bincount(at - at[0]).astype(np.float64)
    return found[1:-1] if found.size > 2 else np.zeros(0)


def dispersion(jobs: Jobs, span_s: float) -> float:
    """Return the index of dispersion of counts: variance over mean; 1 for a Poisson process."""
    found = counts(jobs, span_s)
    return float(found.var() / found.mean()) if found.size > 5 and found.mean() > 0 else np.nan


def _rank_correlation(a: Floats, b: Floats) -> float:
    if a.size < 10 or a.min() == a.max() or b.min() == b.max():
        return np.nan
    return float(spearmanr(a, b).statistic)


def _size_and_run(jobs: Jobs) -> float:
    return _rank_correlation(jobs.size.astype(np.float64), jobs.run_s)


def _run_and_limit(jobs: Jobs) -> float:
    known = np.isfinite(jobs.limit_s)
    return _rank_correlation(jobs.run_s[known], jobs.limit_s[known])


def _user_and_size(jobs: Jobs) -> float:
    """Return the share of the variance of ln size between users."""
    known = jobs.user >= 0
    x = np.log(jobs.size[known])
    if x.size < 10 or x.var() == 0:
        return np.nan
    user = np.unique(jobs.user[known], return_inverse=True)[1]
    mean = np.bincount(user, x) / np.bincount(user)
    return float(mean[user].var() / x.var())


def _repeats(jobs: Jobs) -> float:
    order = np.lexsort((jobs.submit_s, jobs.user))
    same = jobs.user[order][1:] == jobs.user[order][:-1]
    return float((np.diff(jobs.size[order]) == 0)[same].mean()) if same.any() else np.nan


def _top_users(jobs: Jobs) -> float:
    known = jobs.user >= 0
    if not known.any():
        return np.nan
    work = np.sort(np.bincount(np.unique(jobs.user[known], return_inverse=True)[1], (jobs.size * jobs.run_s)[known]))
    top = max(int(np.ceil(0.05 * work.size)), 1)
    return float(work[-top:].sum() / work.sum()) if work.sum() > 0 else np.nan


def _peak_hours(jobs: Jobs) -> float:
    """Return the share of jobs that are submitted in the busiest eight consecutive hours of the day."""
    hour = np.bincount((jobs.submit_s // HOUR_S).astype(np.int64) % 24, minlength=24)
    rounds = np.convolve(np.append(hour, hour[:7]), np.ones(8), "valid")
    return float(rounds.max() / hour.sum())


def _weekend(jobs: Jobs) -> float:
    day = (jobs.submit_s // DAY_S).astype(np.int64) % 7
    return float((day >= 5).mean())


_VALUES: dict[str, Callable[[Jobs], float]] = {
    "Spearman correlation of size and run time": _size_and_run,
    "Spearman correlation of run time and limit": _run_and_limit,
    "variance of ln size between users, share": _user_and_size,
    "jobs of the size of their user's job before, share": _repeats,
    "work of the top 5 % of users, share": _top_users,
    "jobs in the busiest 8 hours of the day, share": _peak_hours,
    "jobs on Saturday and Sunday, share": _weekend,
    "autocorrelation of ln run time, lag 1": lambda jobs: autocorrelation(np.log(jobs.run_s), 1),
    "autocorrelation of ln run time, lag 24": lambda jobs: autocorrelation(np.log(jobs.run_s), 24),
    "autocorrelation of arrivals an hour, 1 h": lambda jobs: autocorrelation(counts(jobs, HOUR_S), 1),
    "autocorrelation of arrivals an hour, 24 h": lambda jobs: autocorrelation(counts(jobs, HOUR_S), 24),
    "autocorrelation of arrivals an hour, 168 h": lambda jobs: autocorrelation(counts(jobs, HOUR_S), 168),
    "index of dispersion of arrivals, 1 min": lambda jobs: dispersion(jobs, 60.0),
    "index of dispersion of arrivals, 1 h": lambda jobs: dispersion(jobs, HOUR_S),
    "index of dispersion of arrivals, 1 day": lambda jobs: dispersion(jobs, DAY_S),
}
