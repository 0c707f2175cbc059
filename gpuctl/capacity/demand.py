"""The demand of a trace by week, and its forecast with intervals.

Demand is the GPU-hours of the jobs submitted in a week: run times times gangs, whatever the jobs waited. Its logarithm
is a line over the weeks with a weak prior of no growth, plus noise that may persist from week to week (an AR(1), whose
coefficient widens all errors). What a line says beyond the last week is a choice: it goes on (``trend``), its growth
fades by a twentieth each week (``damped``), or the mean of the last 13 weeks stays (``level``); with two years of weeks
also a line with a yearly wave (``season``). Rolling origins choose: the form with the least error on weeks that it had
not seen; ``level`` only if growth does not differ from chance. The interval is the line's own standard error, widened
until it holds the errors of the rolling origins.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.replay.models.records import Floats, Ints, Workload

WEEK_S = 7 * 86_400.0
LEAST_WEEKS = 8
"""Fewest whole weeks for a forecast."""
PERIOD = 4
"""Weeks over which demand and waits are counted: the last ones up to the horizon."""
LEVEL_WEEKS = 13
FADE = 0.95
"""Factor of the growth of each week, beyond the last one, under ``damped``."""
GROWTH_PRIOR = 0.02
"""Standard deviation of the growth a week (of the logarithm) before any week is seen: a factor of 2.8 a year."""
WAVE_PRIOR = 0.3
"""Standard deviation of the amplitude of the yearly wave."""
SEASON_WEEKS = 104
YEAR_WEEKS = 365.25 / 7
MOST_PERSISTENCE = 0.7
LEVEL = 0.9
"""Share of futures that an interval is to hold."""
MODELS = ("level", "damped", "trend", "season")
LEAST_FILLED = 0.2
"""Share of the median jobs a week that the first week has at least: with fewer, the log only begins to fill."""
WIDEST = 4.0
"""Upper end of the interval over the median from which a forecast is too wide to plan with."""
LEAST_TRAINING = 6
"""Fewest weeks that a rolling origin has before it."""


@dataclass(frozen=True)
class Weeks:
    """Whole weeks of a trace; the last one ends with the last submission, an incomplete first one is left out.

    So are first weeks in which hardly any job was submitted (`LEAST_FILLED`): the log only begins to fill there.

    Attributes:
        start_s: second of the workload at which each begins, shape (n,).
        gpu_h: GPU-hours of the jobs submitted in each.
        jobs: their number.
        users: the users who submitted them; 0 if users are not known.
    """

    start_s: Floats
    gpu_h: Floats
    jobs: Ints
    users: Ints

    @property
    def count(self) -> int:
        """Number of weeks."""
        return self.start_s.size


@dataclass(frozen=True)
class Backtest:
    """Errors of one model at rolling origins.

    Attributes:
        model: one of `MODELS`.
        horizon: weeks from the origin to the end of the weeks forecast.
        error: ln(actual / forecast) of each origin.
        spread: standard error that the model gave itself.
    """

    model: str
    horizon: int
    error: Floats
    spread: Floats


@dataclass(frozen=True)
class Forecast:
    """Demand of the `PERIOD` weeks that end at a horizon, in GPU-hours a week.

    Attributes:
        horizon: weeks from the last week of the trace.
        model: what was chosen.
        middle: median.
        spread: standard error of its logarithm, widened by the backtest.
        freedom: degrees of freedom of the t distribution of its logarithm.
        widened: factor by which the backtest widened the interval.
        backtests: of all models, at all horizons up to this one.
        path: forecasts up to the horizon: weeks ahead of the last of `PERIOD` weeks, median, ends of the interval.
    """

    horizon: int
    model: str
    middle: float
    spread: float
    freedom: float
    widened: float
    backtests: tuple[Backtest, ...]
    path: tuple[tuple[int, float, float, float], ...] = ()

    def quantile(self, share: float) -> float:
        """Return a quantile of demand, in GPU-hours a week."""
        return self.middle * math.exp(self.spread * float(stats.t.ppf(share, self.freedom)))

    @property
    def too_wide(self) -> bool:
        """Whether the interval is too wide for a plan."""
        return self.interval()[1] > WIDEST * self.middle

    def interval(self) -> tuple[float, float]:
        """The interval that is to hold demand in `LEVEL` of the futures."""
        return self.quantile((1 - LEVEL) / 2), self.quantile((1 + LEVEL) / 2)


@dataclass(frozen=True)
class Growth:
    """Growth of a weekly figure, with a 95 % interval, as a factor a week less 1.

    Attributes:
        weekly: growth.
        low: lower end.
        high: upper end.
    """

    weekly: float
    low: float
    high: float

    @property
    def shown(self) -> bool:
        """Whether the interval excludes no growth."""
        return self.low > 0 or self.high < 0


def weeks_of(workload: Workload) -> Weeks:
    """Return the whole weeks of a workload."""
    if not workload.size:
        none = np.zeros(0, np.int64)
        return Weeks(none.astype(np.float64), none.astype(np.float64), none, none)
    first, last = float(workload.submit.min()), float(workload.submit.max())
    count = int((last - first) // WEEK_S)
    begin = last - count * WEEK_S
    # the last submission belongs to the last week
    week = np.minimum(np.floor((workload.submit - begin) / WEEK_S).astype(np.int64), count - 1)
    here = (week >= 0) & (workload.submit >= begin)
    gpu_h = workload.true_run_time * workload.gpus / 3600
    known = here & (workload.user >= 0)
    users = np.unique(np.stack([week[known], workload.user[known]]), axis=1)[0]
    jobs = np.bincount(week[here], minlength=count)
    filled = np.flatnonzero(jobs >= LEAST_FILLED * np.median(jobs)) if count else np.zeros(1, np.int64)
    since = int(filled[0])
    return Weeks(
        (begin + np.arange(count, dtype=np.float64) * WEEK_S)[since:],
        np.bincount(week[here], gpu_h[here], minlength=count).astype(np.float64)[since:],
        jobs[since:],
        np.bincount(users, minlength=count)[since:],
    )


@dataclass(frozen=True)
class _Line:
    """A line fitted to logarithms of weekly figures.

    Attributes:
        at: coefficients: value at the last week, growth a week, and perhaps the two of the yearly wave.
        cover: their covariance, widened for persistence.
        noise: standard deviation of a week.
        persistence: of the noise from week to week.
        freedom: degrees of freedom.
        recent: mean logarithm of the last `LEVEL_WEEKS`.
    """

    at: Floats
    cover: np.ndarray
    noise: float
    persistence: float
    freedom: float
    recent: float


def _design(week: Floats, size: int) -> np.ndarray:
    angle = 2 * np.pi * week / YEAR_WEEKS
    return np.stack([np.ones(week.size), week, np.cos(angle), np.sin(angle)][:size], axis=1)


def _fit(log: Floats, *, season: bool = False) -> _Line:
    """Fit a line; NaN are weeks without demand, which do not count."""
    size = 4 if season else 2
    week = np.arange(log.size, dtype=np.float64) - (log.size - 1.0)
    there = np.isfinite(log)
    x, y = _design(week[there], size), log[there]
    prior = np.array([1e3, GROWTH_PRIOR, WAVE_PRIOR, WAVE_PRIOR][:size])
    noise, inflated, persistence = 0.2, 1.0, 0.0
    freedom = max(float(there.sum() - size), 1.0)
    for _ in range(3):
        # the prior counts more if the noise hides the growth
        inverse = x.T @ x / (noise**2 * inflated) + np.diag(1 / prior**2)
        cover = np.linalg.inv(inverse)
        at = cover @ (x.T @ y) / (noise**2 * inflated)
        rest = y - x @ at
        noise = max(float(np.sqrt(np.square(rest).sum() / freedom)), 1e-6)
        persistence = _persistence(rest)
        inflated = (1 + persistence) / (1 - persistence)
    recent = float(y[-LEVEL_WEEKS:].mean())
    return _Line(at, cover, noise, persistence, max(freedom / inflated, 2.0), recent)


def _persistence(rest: Floats) -> float:
    """Autocorrelation from one week to the next, corrected for few weeks and for the fitted line."""
    if rest.size < LEAST_WEEKS or not rest.any():
        return 0.0
    r1 = float((rest[1:] * rest[:-1]).sum() / np.square(rest).sum())
    return float(np.clip(r1 + (1 + 4 * r1) / rest.size, 0.0, MOST_PERSISTENCE))


def _ahead(line: _Line, model: str, horizon: int) -> tuple[float, float]:
    """Logarithm of the mean demand of the last weeks up to a horizon, and its standard error."""
    period = min(PERIOD, horizon)
    h = np.arange(horizon - period + 1, horizon + 1, dtype=np.float64)
    x = _design(h, line.at.size)
    own = x.copy()
    if model == "damped":
        own[:, 1] = FADE * (1 - FADE**h) / (1 - FADE)
    means = own @ line.at if model != "level" else np.full(period, line.recent)
    # the mean of weeks is above the exponential of the mean logarithm
    middle = float(np.log(np.exp(means).mean())) + line.noise**2 / 2 * (1 - 1 / period)
    mean_x = x.mean(axis=0)
    rho = line.persistence
    together = min((1 + rho) / (1 - rho), float(period)) / period
    return middle, math.sqrt(float(mean_x @ line.cover @ mean_x) + line.noise**2 * together)


def _logs(values: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.where(values > 0, np.log(values), np.nan)


def _models(count: int) -> tuple[str, ...]:
    return MODELS if count >= SEASON_WEEKS else MODELS[:3]


def backtests(gpu_h: Floats, horizon: int) -> tuple[Backtest, ...]:
    """Forecast every part of a history from the weeks before it, with each model, at horizons up to one.

    Args:
        gpu_h: by week.
        horizon: weeks.
    """
    found: dict[tuple[str, int], list[tuple[float, float]]] = {}
    log = _logs(gpu_h)
    for origin in range(LEAST_TRAINING, gpu_h.size):
        if np.isfinite(log[:origin]).sum() < LEAST_TRAINING:
            continue
        lines = {season: _fit(log[:origin], season=season) for season in (False, True) if not season or origin >= 52}
        for ahead in range(min(PERIOD, horizon), min(horizon, gpu_h.size - origin) + 1):
            actual = gpu_h[origin + ahead - min(PERIOD, ahead) : origin + ahead].mean()
            for model in _models(gpu_h.size) if actual > 0 else ():
                if (line := lines.get(model == "season")) is not None:
                    middle, spread = _ahead(line, model, ahead)
                    found.setdefault((model, ahead), []).append((math.log(actual) - middle, spread))
    return tuple(
        Backtest(model, ahead, *np.array(pairs).T)
        for (model, ahead), pairs in sorted(found.items(), key=lambda one: (MODELS.index(one[0][0]), one[0][1]))
    )


def forecast(weeks: Weeks, horizon: int) -> Forecast:
    """Forecast the demand of the `PERIOD` weeks that end at a horizon.

    Args:
        weeks: the history, at least `LEAST_WEEKS`.
        horizon: weeks, at most `farthest` of them.
    """
    tests = backtests(weeks.gpu_h, horizon)
    errors = {model: [test for test in tests if test.model == model] for model in _models(weeks.count)}
    # growth that chance does not explain does not stop with the last week
    slope = growth(weeks.gpu_h)
    grown = slope is not None and slope.shown
    scores = {model: _score(of) for model, of in errors.items() if of and not (grown and model == "level")}
    model = min(scores, key=lambda one: scores[one]) if scores else "level"
    line = _fit(_logs(weeks.gpu_h), season=model == "season")
    middle, spread = _ahead(line, model, horizon)
    widened = _widened(errors.get(model, []), line.freedom)
    found = Forecast(horizon, model, math.exp(middle), spread * widened, line.freedom, widened, tests)
    return dataclasses.replace(found, path=tuple(_path(line, found)))


def _path(line: _Line, found: Forecast) -> Iterator[tuple[int, float, float, float]]:
    for ahead in range(min(PERIOD, found.horizon), found.horizon + 1):
        middle, spread = _ahead(line, found.model, ahead)
        half = spread * found.widened * float(stats.t.ppf((1 + LEVEL) / 2, found.freedom))
        yield ahead, math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def _score(tests: list[Backtest]) -> float:
    """Mean error of the farther half of the horizons: these are what a plan is for."""
    far = tests[len(tests) // 2 :]
    return float(np.abs(np.concatenate([test.error for test in far])).mean())


def _widened(tests: list[Backtest], freedom: float) -> float:
    """Factor by which standard errors must grow to hold `LEVEL` of the errors of rolling origins; at least 1."""
    if not tests:
        return 1.0
    ratio = np.abs(np.concatenate([test.error / test.spread for test in tests]))
    rank = min(math.ceil(LEVEL * (ratio.size + 1)), ratio.size)
    return max(1.0, float(np.sort(ratio)[rank - 1]) / float(stats.t.ppf((1 + LEVEL) / 2, freedom)))


def farthest(weeks: Weeks) -> int:
    """Return the weeks that may be forecast: half of the history; 0 if it is too short."""
    return weeks.count // 2 if weeks.count >= LEAST_WEEKS else 0


def growth(values: Floats) -> Growth | None:
    """Return the growth a week of a weekly figure; None with fewer than `LEAST_WEEKS` weeks above 0."""
    log = _logs(values)
    if np.isfinite(log).sum() < LEAST_WEEKS:
        return None
    line = _fit(log)
    half = math.sqrt(line.cover[1, 1]) * float(stats.t.ppf(0.975, line.freedom))
    slope = float(line.at[1])
    return Growth(math.expm1(slope), math.expm1(slope - half), math.expm1(slope + half))
