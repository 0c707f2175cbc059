"""Intervals of means over the jobs of one trace: what another stretch of the same workload might show.

Jobs that queue together share one backlog, so a trace of thousands of jobs may hold a handful of independent stretches.
Three things are uncertain about a mean difference D = r L of paired jobs, with L their mean level (the wait under
both):

* r, the difference relative to the level: from `PARTS` parts of equal time, a ratio estimate (Cochran, Sampling
  Techniques, chapter 6) with the correlation of neighbouring parts (Newey and West, Econometrica 1987), by Student's t
  with as many degrees of freedom as parts that count, less one. A part without waiting is uninformative.
* L, by its logarithm, since sums of waits are skewed: from the same parts, but never more certain than the load allows.
  Near its capacity a queue grows with 1 / (capacity - load) and forgets in (spread / (capacity - load))^2, so a trace
  whose load is not significantly below the capacity does not determine waits (`stretches`), even if its queues happened
  to be short: waits alone would not reveal it. A trace may well have missed long queues, but hardly has too many: L is
  less certain upwards than downwards.
* how r changes with L: busier times than this trace's may differ more, by as much as its parts differ. This widens an
  interval but does not change its sign: if r alone excludes 0, so does the interval.

The interval is that of the product, from equally likely values of r and of L: both are unlikely to be at their ends at
once.

benchmarks/coverage.py measures how often such an interval contains the truth.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.replay.models.records import Outcome

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

PARTS = 10
"""Parts of equal time, from the first submission to the last one."""

LOAD_PARTS = 14
"""Likewise, for the error of the total load: two weeks of days."""

LEAST_STRETCHES = 6.0
"""Fewest independent stretches for an interval …"""

LEAST_S = 10 * 86400.0
"""… and the least length: a whole week after its queue has filled."""

LEAST_COUNT = 1.5
"""Fewest informative parts: with fewer, there is only one backlog."""

TURNOVER = 4.0
"""Least length of a stretch, as a multiple of the GPU-time-weighted mean run time of jobs."""

LOAD_WEIGHT = 2.4
"""Least upward error of the logarithm of a mean wait: this over the fourth root of the stretches.

A square root would suffice, but a trace with a low load by chance also looks steadier than it is:
benchmarks/coverage.py.
"""

LOAD_WEIGHT_DOWN = 1.2
"""Likewise downwards."""

WIDEST = 40.0
"""Factor of uncertainty from which a level counts as unknown."""

CHANGES = 2.0
"""Spreads between parts by which r may change if L changes by a factor e."""

GRID = 120
"""Equally likely values of r, and of L."""

MOST = 2.0
"""The largest difference of two waits, relative to their mean: one of them is 0."""


class Interval(NamedTuple):
    """The uncertainty of a mean.

    Attributes:
        low: lower end of its interval; None if the trace is too short.
        high: upper end.
        p: two-sided probability of a mean at least this far from 0 if the true one is 0; None if `low` is None or all
            values are 0.
    """

    low: float | None
    high: float | None
    p: float | None


UNKNOWN = Interval(None, None, None)


def stretches(outcomes: Sequence[Outcome]) -> float:
    """Return the number of independent stretches of time in a trace, under the policy with the fewest.

    ((capacity - load) / error of the load)^2: the capacity is the mean use while some job waits (the largest use if
    none does), the load is the GPU-time of jobs over the time of their submissions, and its error comes from the spread
    of the loads of `LOAD_PARTS` parts of that time. At most the trace's length over `TURNOVER` runs: a replay begins
    with an empty cluster, and waits are too short until the trace's jobs have filled it. 0: the load may reach the
    capacity, so that waits would grow forever; or the trace is shorter than `LEAST_S`.

    Args:
        outcomes: of one workload.
    """
    return min((_stretches(outcome) for outcome in outcomes), default=0.0)


def _stretches(outcome: Outcome) -> float:
    submit = outcome.jobs["submit_s"].to_numpy().astype(np.float64)
    run = outcome.jobs["run_s"].fill_null(0).to_numpy().astype(np.float64)
    work = outcome.jobs["gpu_s"].fill_null(0).to_numpy().astype(np.float64)
    # a cluster of CPUs alone counts jobs
    of_gpus = bool(work.any())
    work = work if of_gpus else run
    span = float(np.ptp(submit)) if submit.size else 0.0
    if span < LEAST_S:
        return 0.0
    loads = np.bincount(part_of(submit, LOAD_PARTS), work, LOAD_PARTS) / span
    error = np.sqrt(_shared(loads - loads.mean()) * LOAD_PARTS / (LOAD_PARTS - 1))
    slack = max(_capacity(outcome, of_gpus=of_gpus) - float(loads.sum()), 0.0)
    most = span * float(work.sum()) / (TURNOVER * float(work @ run)) if work.any() else np.inf
    return min(float((slack / error) ** 2) if error > 0 else np.inf if slack > 0 else 0.0, most)


def _capacity(outcome: Outcome, *, of_gpus: bool) -> float:
    """Mean GPUs (or jobs) held while some job waits and more are still to come; the most held if none waits."""
    frame = outcome.attempts
    start = frame["start_s"].to_numpy().astype(np.float64)
    end = frame["end_s"].fill_null(outcome.end_s).to_numpy().astype(np.float64)
    held = frame["gpus"].to_numpy().astype(np.float64) if of_gpus else np.ones(start.size)
    there = ~outcome.jobs["state"].is_in(["unplaceable", "rejected", "held"]).to_numpy()
    arrive = outcome.jobs["eligible_s"].fill_null(outcome.end_s).to_numpy().astype(np.float64)[there]
    leave = outcome.jobs["end_s"].fill_null(outcome.end_s).to_numpy().astype(np.float64)[there]
    if not start.size:
        return 0.0
    times = np.concatenate([arrive, leave, start, end])
    one = np.ones(start.size)
    waits = np.concatenate([np.ones(arrive.size), -np.ones(leave.size), -one, one])
    gpus = np.concatenate([np.zeros(2 * arrive.size), held, -held])
    order = np.argsort(times, kind="stable")
    times, waiting, busy = times[order], np.cumsum(waits[order]), np.cumsum(gpus[order])
    length = np.append(np.diff(times), 0.0)
    queued = (waiting > 0.5) & (times < float(arrive.max()))
    whole = float(length[queued].sum())
    # 0 / 0 if no job waits
    return float((busy * length)[queued].sum()) / whole if whole > 0 else float(busy[length > 0].max(initial=0.0))


def of_mean(
    values: Floats, submit: Floats, level: Floats | None = None, *, stretches: float, share: float = 0.95
) -> Interval:
    """Return an interval of the mean of values, such as differences of waits, waits or savings.

    Args:
        values: one per job, shape (n,).
        submit: seconds, shape (n,).
        level: what values scale with, at least 0, shape (n,); for differences of waits the mean of both waits. None:
            the values' own sizes.
        stretches: their number in the trace, see `stretches`; inf if no queue couples the values.
        share: confidence level.
    """
    level = np.abs(values) if level is None else level
    if values.size < 2 or np.ptp(submit) <= 0 or stretches < LEAST_STRETCHES:
        return UNKNOWN
    if not values.any():
        return Interval(0.0, 0.0, None)
    part = part_of(submit, PARTS)
    count = np.bincount(part, minlength=PARTS).astype(np.float64)
    sums = np.bincount(part, values, PARTS).astype(np.float64)
    levels = np.bincount(part, np.maximum(level, np.abs(values) / 2), PARTS).astype(np.float64)
    return _of_parts(sums, levels, count, stretches, share)


def of_draws(values: Floats, level: Floats | None = None, *, stretches: float, share: float = 0.95) -> Interval:
    """Return an interval of a mean from draws of one trace, each a resampled trace as long as this and replayed.

    The spread of draws estimates how the trace itself may differ from others, so more draws do not narrow it further.

    Args:
        values: of each draw, shape (n,).
        level: what values scale with, at least 0, shape (n,), see `of_mean`; None: the values' own sizes.
        stretches: their number in the trace.
        share: confidence level.
    """
    level = np.abs(values) if level is None else level
    count = values.size
    if count < 2 or stretches < LEAST_STRETCHES:
        return UNKNOWN
    if not values.any():
        return Interval(0.0, 0.0, None)
    level = np.maximum(level, np.abs(values) / 2)
    mean = float(level.mean())
    ratio = float(values.sum()) / float(level.sum())
    # the trace itself is one more draw
    both = (1 + 1 / count) / mean**2
    own = float(np.var(values - ratio * level, ddof=1)) * both
    return _interval(
        ratio,
        mean,
        own,
        float(np.var(level, ddof=1)) * both,
        counts=(count, count, PARTS),
        stretches=stretches,
        share=share,
    )


def _of_parts(sums: Floats, levels: Floats, count: Floats, stretches: float, share: float) -> Interval:
    whole = float(levels.sum())
    counted = whole**2 / _shared(levels)
    if counted < LEAST_COUNT:
        return UNKNOWN
    ratio, level = float(sums.sum()) / whole, whole / float(count.sum())
    own = _shared(sums - ratio * levels) * counted / (counted - 1) / whole**2
    spread = _shared(levels - level * count) * PARTS / (PARTS - 1) / whole**2
    return _interval(ratio, level, own, spread, counts=(counted, PARTS, counted), stretches=stretches, share=share)


def _interval(
    ratio: float,
    level: float,
    own: float,
    spread: float,
    *,
    counts: tuple[float, float, float],
    stretches: float,
    share: float,
) -> Interval:
    """Combine an interval.

    Args:
        ratio: r.
        level: L.
        own: the variance of r.
        spread: the variance of the logarithm of L.
        counts: number of values behind r and L, and of parts behind the variation of r.
        stretches: their number in the trace.
        share: see `of_mean`.
    """
    from scipy.special import stdtr, stdtrit

    end = (1 + share) / 2
    of_load = stretches**-0.25
    if max(stdtrit(counts[1] - 1, end) * np.sqrt(spread), stdtrit(PARTS - 1, end) * LOAD_WEIGHT * of_load) > np.log(
        WIDEST
    ):
        return UNKNOWN
    error = float(np.sqrt(own))
    wide = float(stdtrit(counts[0] - 1, end)) * error
    likely = (np.arange(GRID) + 0.5) / GRID
    of_level = stdtrit(counts[1] - 1, likely) * np.sqrt(spread)
    by_load = stdtrit(PARTS - 1, likely) * of_load
    logs = np.where(
        likely > 0.5, np.maximum(of_level, LOAD_WEIGHT * by_load), np.minimum(of_level, LOAD_WEIGHT_DOWN * by_load)
    )
    apart = error * stdtrit(counts[0] - 1, likely)[:, None]
    # busier times may differ more, but that does not put the sign in doubt
    shown = np.sign(ratio) if abs(ratio) > wide else 0.0
    more = np.where(apart * shown < 0, 1.0, np.sqrt(1 + CHANGES**2 * counts[2] * logs**2))
    # of nonnegative values, a difference is at most twice the mean
    values = np.clip(ratio + apart * more, -MOST, MOST) * level * np.exp(logs)
    low = float(np.quantile(values, 1 - end, method="higher"))
    high = float(np.quantile(values, end, method="lower"))
    p = 2 * float(stdtr(counts[0] - 1, -abs(ratio) / error)) if error > 0 else 0.0
    return Interval(low, high, p) if shown else Interval(min(low, 0.0), max(high, 0.0), p)


def part_of(submit: Floats, parts: int) -> Ints:
    """Return the part of equal time of each submission; submissions must not all be at one instant."""
    first = float(submit.min())
    return np.minimum(((submit - first) / (float(submit.max()) - first) * parts).astype(np.int64), parts - 1)


def _shared(sums: Floats) -> float:
    """The sum of squares of parts' sums, plus the covariance of neighbours if positive."""
    count = sums.size
    reach = min(count - 1, max(1, int(4 * (count / 100) ** (2 / 9))))
    pairs = ((1 - lag / (reach + 1), float((sums[:-lag] * sums[lag:]).sum())) for lag in range(1, reach + 1))
    return float((sums**2).sum()) + max(sum(2 * weight * product for weight, product in pairs), 0.0)
