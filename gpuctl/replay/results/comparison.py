"""Differences between a replay and something else, job by job: another policy, or what the trace recorded.

Both sides of a pair are the same job, so what jobs have in common (size, day, user) cancels out. Intervals go by blocks
of jobs that were submitted together, since jobs of one day share their queue and are not independent: days where the
pairs span at least `ENOUGH_DAYS`, otherwise `FEW_DAYS_BLOCKS` blocks of equally many jobs in order of submission.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from gpuctl.core.states import State
from gpuctl.replay.results.metrics import SIZES, size_class, warmup_jobs
from gpuctl.replay.results.timelines import ENDED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.replay.models.records import Outcome, Workload

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

RESAMPLES = 1000
SEED = 20170807
"""Of the resampling; the same pairs give the same interval every time."""

ENOUGH_DAYS = 5
"""With fewer days, days say nothing …"""

FEW_DAYS_BLOCKS = 20
"""… and so many blocks of equally many jobs take their place (fewer where there are fewer pairs)."""

LEAST_INDEPENDENT = 1.5
"""With fewer blocks that tell something by themselves, a mean has no interval."""

QUANTILE_PLACES = 2000
"""Quantiles of resamples are looked for among so many values: ranks are right to 0.05 %."""

_ENDS = (0.025, 0.975)

SAME_S = 1e-3
"""Times that differ by less than a millisecond are equal."""

ALL = "all"
MEASURES = ("jct", "wait")
WITHIN = (("1s", 1.0), ("1min", 60.0), ("10min", 600.0), ("1h", 3600.0))

_UNFINISHED = frozenset({State.PENDING, State.RUNNING, State.SUSPENDED})


def recorded(workload: Workload) -> pl.DataFrame:
    """Return what the trace recorded of each job, one row a job: ``start_s``, ``end_s``, ``jct_s``, ``wait_s``.

    The end is the last segment's start plus its run time, the wait is all time from submission to the end but the
    segments' run times. What is not known is null: jobs that never started, and the end of jobs that were
    still queued or running when the trace ended.
    """
    first, last = np.asarray(workload.segment_start[:-1]), np.asarray(workload.segment_start[1:]) - 1
    some = last >= first
    run = np.concatenate([[0.0], np.cumsum(workload.segment_s)])
    work = run[workload.segment_start[1:]] - run[workload.segment_start[:-1]]
    start, end = np.full(workload.size, np.nan), np.full(workload.size, np.nan)
    start[some] = workload.recorded_start[first[some]]
    end[some] = workload.recorded_start[last[some]] + workload.segment_s[last[some]]
    end[np.fromiter((s in _UNFINISHED for s in workload.state), bool, workload.size)] = np.nan
    jct = end - workload.submit
    columns = {"start_s": start, "end_s": end, "jct_s": jct, "wait_s": jct - work}
    return pl.DataFrame(columns).with_columns(pl.all().fill_nan(None))


def against(
    outcome: Outcome,
    other: Outcome | pl.DataFrame,
    workload: Workload,
    *,
    name: str = "",
    warmup: float = 0.0,
) -> pl.DataFrame:
    """Return the paired differences of a replay from another one, for all jobs and by gang size.

    Args:
        outcome: of the replay.
        other: of another policy on the same workload, or `recorded`.
        workload: what was replayed.
        name: of the other side; by default its policy's.
        warmup: see `gpuctl.replay.results.metrics.counted_jobs`.

    Returns:
        Two rows (JCT, wait) for all jobs and for each class of `gpuctl.replay.results.metrics.SIZES` with counted jobs:
        ``policy``, ``baseline``, ``measure``, ``size_bucket``, ``jobs`` (counted), ``pairs`` (finished under both),
        ``unpaired_policy`` (finished under the baseline alone), ``unpaired_baseline`` (under the policy alone),
        ``unpaired_both`` (under neither), ``mean_s``, ``baseline_mean_s``, ``diff_mean_s`` (policy - baseline) with
        ``diff_low_s`` and ``diff_high_s`` (95 %), ``p`` (`Interval`), ``diff_p50_s``, ``change_pct``, ``better_pct``,
        ``worse_pct``, ``equal_pct``, ``blocks``, ``block`` (``day`` or ``jobs``).
    """
    rows = _sides(outcome, other).slice(warmup_jobs(workload, warmup))
    label = name or ("recorded" if isinstance(other, pl.DataFrame) else other.policy)
    day = _days(workload)[warmup_jobs(workload, warmup) :]
    sizes = rows["size_bucket"].to_numpy()
    found = []
    for measure in MEASURES:
        mine, theirs = (rows[f"{measure}{side}"].to_numpy().astype(np.float64) for side in ("", "_other"))
        for size in (ALL, *SIZES):
            here = np.ones(len(sizes), dtype=bool) if size == ALL else sizes == size
            if not here.any():
                continue
            keys = {"policy": outcome.policy, "baseline": label, "measure": measure, "size_bucket": size}
            found.append(_difference(mine[here], theirs[here], day[here]) | keys)
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


class Interval(NamedTuple):
    """How well a mean is known.

    Attributes:
        low: lower end of its 95 % interval; None where there are fewer than two blocks.
        high: upper end.
        p: probability of a mean so far from 0, on either side, where the true one is 0; None where `low` is None or all
            values are 0.
        blocks: how many there are.
        block: what they are: ``day`` or ``jobs``.
    """

    low: float | None
    high: float | None
    p: float | None
    blocks: int
    block: str


def block_interval(values: Floats, day: Ints, level: Floats | None = None) -> Interval:
    """Return a 95 % interval of the mean of values, by Student's t of blocks of them.

    Values that grow with a level, as differences of waits do with the waits, are held against it: what varies from
    block to block is then their ratio, and not how busy each block was (a ratio estimate; Cochran, Sampling Techniques,
    chapter 6). A queue outlasts its block, so what neighbouring blocks have in common counts (Newey and West,
    Econometrica 1987); here it can only make the interval wider.

    Args:
        values: in order of submission, shape (n,).
        day: the day that each belongs to, shape (n,).
        level: at least 0, shape (n,); None: the same for all.
    """
    block, count, kind = _blocks(day)
    if count < 2:
        return Interval(None, None, None, count, kind)
    from scipy.special import stdtr, stdtrit

    mean = float(values.mean())
    level = np.ones(values.size) if level is None or not level.any() else level
    sums, levels = (np.bincount(block, weights=each, minlength=count).astype(np.float64) for each in (values, level))
    apart = sums - float(sums.sum()) / float(levels.sum()) * levels
    # a queue that fills a few blocks in a row tells as much as one block
    independent = float(levels.sum()) ** 2 / _shared(levels)
    if independent < LEAST_INDEPENDENT:
        return Interval(None, None, None, count, kind)
    error = float(np.sqrt(_shared(apart) * independent / (independent - 1))) / values.size
    wide = float(stdtrit(independent - 1, _ENDS[1])) * error
    p = (2 * float(stdtr(independent - 1, -abs(mean) / error)) if error > 0 else 0.0) if values.any() else None
    return Interval(mean - wide, mean + wide, p, count, kind)


def _shared(sums: Floats) -> float:
    """The sum of squares of blocks' sums, and of what neighbours have in common where that is more than nothing."""
    count = sums.size
    reach = min(count - 1, max(1, int(4 * (count / 100) ** (2 / 9))))
    pairs = ((1 - lag / (reach + 1), float((sums[:-lag] * sums[lag:]).sum())) for lag in range(1, reach + 1))
    return float((sums**2).sum()) + max(sum(2 * weight * product for weight, product in pairs), 0.0)


def quantile_bootstrap(
    values: Floats, day: Ints, share: float, *, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float | None, float | None]:
    """Return a 95 % interval of a quantile of values, from resampling its blocks with replacement.

    A resample's quantile is the least value that at least this share of it is not above, among up to
    `QUANTILE_PLACES` values in equal steps of rank.

    Args:
        values: in order of submission, shape (n,).
        day: the day that each belongs to, shape (n,).
        share: of the values at or below the quantile, 0 to 1.
        resamples: how many.
        seed: of numpy's generator.

    Returns:
        Its ends; None where there are fewer than two blocks.
    """
    block, count, _ = _blocks(day)
    if count < 2:
        return None, None
    order = np.argsort(values, kind="stable")
    places = np.unique(np.linspace(0, len(values) - 1, min(len(values), QUANTILE_PLACES)).round().astype(np.int64))
    # how many of each block lie at or below each place
    below = np.stack([np.cumsum(block[order] == one)[places] for one in range(count)])
    ranks = _draws(count, resamples, seed).astype(np.float64) @ below.astype(np.float64)
    first = [int(np.searchsorted(row, share * row[-1])) for row in ranks]
    low, high = np.quantile(values[order][places[first]], _ENDS)
    return float(low), float(high)


def _blocks(day: Ints) -> tuple[Ints, int, str]:
    """The block of each value, how many there are, and what they are."""
    days, block = np.unique(day, return_inverse=True)
    if len(days) >= ENOUGH_DAYS:
        return block, len(days), "day"
    count = min(FEW_DAYS_BLOCKS, len(day))
    return np.arange(len(day)) * count // max(len(day), 1), count, "jobs"


def _draws(count: int, resamples: int, seed: int) -> Ints:
    # How often each block is drawn is all that matters: one matrix of counts takes the place of the draws.
    return np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=resamples)


def wait_intervals(
    outcome: Outcome, workload: Workload, *, warmup: float = 0.0, resamples: int = RESAMPLES, seed: int = SEED
) -> dict[str, float | None]:
    """Return the 95 % intervals of a replay's mean wait and of its 95th percentile, over finished jobs, in seconds.

    Args:
        outcome: of the replay.
        workload: what was replayed.
        warmup: see `gpuctl.replay.results.metrics.counted_jobs`.
        resamples: of the bootstrap.
        seed: of the bootstrap.
    """
    skip = warmup_jobs(workload, warmup)
    waits = _finished_times(outcome)["wait_s"].slice(skip).to_numpy().astype(np.float64)
    known = ~np.isnan(waits)
    waits, day = waits[known], _days(workload)[skip:][known]
    mean = block_interval(waits, day)
    low_p95, high_p95 = quantile_bootstrap(waits, day, 0.95, resamples=resamples, seed=seed)
    return {
        "wait_mean_low_s": None if mean.low is None else max(mean.low, 0.0), "wait_mean_high_s": mean.high,
        "wait_p95_low_s": low_p95, "wait_p95_high_s": high_p95
    }  # fmt: skip


def fidelity(outcome: Outcome, workload: Workload, *, warmup: float = 0.0) -> pl.DataFrame:
    """Return how near a replay comes to the recorded first starts, for all jobs, by gang size and by queue.

    Args:
        outcome: of the replay, as a rule of the policy that was in force when the trace was recorded.
        workload: what was replayed.
        warmup: see `gpuctl.replay.results.metrics.counted_jobs`.

    Returns:
        ``policy``, ``by`` (``all``, ``size_bucket`` or ``queue``), ``value``, ``jobs`` (counted), ``pairs`` (started in
        both), ``only_recorded``, ``only_replayed``; the error (replayed - recorded first start, positive: too late)
        ``error_mean_s``, ``error_p5_s`` … ``error_p95_s``, ``error_abs_mean_s``; ``within_1s_pct`` … ``within_1h_pct``
        (of pairs, at most so far away); ``delay_recorded_mean_s``, ``delay_replayed_mean_s`` (first start - submit),
        ``correlation`` (Pearson) and ``rank_correlation`` (Spearman) of the two delays, null where one does not vary.
    """
    skip = warmup_jobs(workload, warmup)
    jobs = outcome.jobs.with_columns(size_class()).slice(skip)
    submit = jobs["submit_s"].to_numpy().astype(np.float64)
    replayed = jobs["start_s"].to_numpy().astype(np.float64)
    truth = recorded(workload)["start_s"].slice(skip).to_numpy().astype(np.float64)
    found = [_nearness((outcome.policy, ALL, ALL), submit, replayed, truth)]
    for key, order in (("size_bucket", SIZES), ("queue", sorted(set(jobs["queue"].drop_nulls())))):
        values = jobs[key].to_numpy()
        for value in order:
            here = values == value
            if here.any():
                found.append(_nearness((outcome.policy, key, value), submit[here], replayed[here], truth[here]))
    return pl.DataFrame(found, schema=_FIDELITY, orient="row")


def _sides(outcome: Outcome, other: Outcome | pl.DataFrame) -> pl.DataFrame:
    theirs = other if isinstance(other, pl.DataFrame) else _finished_times(other)
    mine = _finished_times(outcome)
    return pl.DataFrame(
        {
            "size_bucket": outcome.jobs.select(size_class())["size_bucket"],
            **{m: mine[f"{m}_s"] for m in MEASURES},
            **{f"{m}_other": theirs[f"{m}_s"] for m in MEASURES},
        }
    )


def _finished_times(outcome: Outcome) -> pl.DataFrame:
    # A wait that was cut off by the end of the replay is no wait to compare.
    done = pl.col("state").is_in(ENDED)
    return outcome.jobs.select(pl.when(done).then(pl.col(f"{m}_s")).alias(f"{m}_s") for m in MEASURES)


def _days(workload: Workload) -> Ints:
    """Number of the calendar day (UTC) of each submission; days of 24 h from second 0 without a calendar."""
    zero = workload.origin.timestamp() if workload.origin is not None else 0.0
    return np.floor((np.asarray(workload.submit) + zero) / 86400).astype(np.int64)


def _difference(mine: Floats, theirs: Floats, day: Ints) -> dict[str, Any]:
    has, had = ~np.isnan(mine), ~np.isnan(theirs)
    both = has & had
    pairs = int(both.sum())
    counts = {
        "jobs": len(mine),
        "pairs": pairs,
        "unpaired_policy": int((had & ~has).sum()),
        "unpaired_baseline": int((has & ~had).sum()),
        "unpaired_both": int((~has & ~had).sum()),
    }
    if not pairs:
        return {**dict.fromkeys(_SCHEMA), **counts, "blocks": 0}
    mine, theirs = mine[both], theirs[both]
    change = mine - theirs
    known = block_interval(change, day[both], (mine + theirs) / 2)
    mean, base = float(mine.mean()), float(theirs.mean())
    return counts | {
        "mean_s": mean,
        "baseline_mean_s": base,
        "diff_mean_s": float(change.mean()),
        "diff_low_s": known.low,
        "diff_high_s": known.high,
        "p": known.p,
        "diff_p50_s": float(np.median(change)),
        "change_pct": 100 * (mean - base) / base if base > 0 else None,
        "better_pct": 100 * float((change <= -SAME_S).mean()),
        "worse_pct": 100 * float((change >= SAME_S).mean()),
        "equal_pct": 100 * float((np.abs(change) < SAME_S).mean()),
        "blocks": known.blocks,
        "block": known.block,
    }


def _nearness(keys: tuple[str, str, str], submit: Floats, replayed: Floats, truth: Floats) -> dict[str, Any]:
    policy, by, value = keys
    has, had = ~np.isnan(replayed), ~np.isnan(truth)
    both = has & had
    counts = {
        "policy": policy,
        "by": by,
        "value": value,
        "jobs": len(submit),
        "pairs": int(both.sum()),
        "only_recorded": int((had & ~has).sum()),
        "only_replayed": int((has & ~had).sum()),
    }
    if not both.any():
        return dict.fromkeys(_FIDELITY) | counts
    error = (replayed - truth)[both]
    here, there = (replayed - submit)[both], (truth - submit)[both]
    spread = np.quantile(error, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist()
    names = [f"error_p{q}_s" for q in (5, 25, 50, 75, 95)]
    line, rank = _correlations(here, there)
    return {
        **counts,
        "error_mean_s": float(error.mean()),
        **dict(zip(names, spread, strict=True)),
        "error_abs_mean_s": float(np.abs(error).mean()),
        **{f"within_{name}_pct": 100 * float((np.abs(error) <= limit).mean()) for name, limit in WITHIN},
        "delay_recorded_mean_s": float(there.mean()),
        "delay_replayed_mean_s": float(here.mean()),
        "correlation": line,
        "rank_correlation": rank,
    }


def _correlations(a: Floats, b: Floats) -> tuple[float | None, float | None]:
    ranks = (pl.Series(values).rank("average").to_numpy() for values in (a, b))
    return _correlation(a, b), _correlation(*ranks)


def _correlation(a: Floats, b: Floats) -> float | None:
    if len(a) < 2:
        return None
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt(np.square(a).sum()) * np.sqrt(np.square(b).sum()))
    # What does not vary but for rounding has no correlation.
    steady = min(np.abs(a).max(), np.abs(b).max()) < SAME_S
    return None if steady else float(np.clip((a * b).sum() / size, -1, 1))


_SCHEMA: dict[str, Any] = {
    "policy": pl.String, "baseline": pl.String, "measure": pl.String, "size_bucket": pl.String,
    "jobs": pl.Int64, "pairs": pl.Int64, "unpaired_policy": pl.Int64, "unpaired_baseline": pl.Int64,
    "unpaired_both": pl.Int64, "mean_s": pl.Float64, "baseline_mean_s": pl.Float64, "diff_mean_s": pl.Float64,
    "diff_low_s": pl.Float64, "diff_high_s": pl.Float64, "p": pl.Float64, "diff_p50_s": pl.Float64,
    "change_pct": pl.Float64,
    "better_pct": pl.Float64, "worse_pct": pl.Float64, "equal_pct": pl.Float64, "blocks": pl.Int64, "block": pl.String,
}  # fmt: skip
_FIDELITY: dict[str, Any] = {
    "policy": pl.String, "by": pl.String, "value": pl.String, "jobs": pl.Int64, "pairs": pl.Int64,
    "only_recorded": pl.Int64, "only_replayed": pl.Int64,
    "error_mean_s": pl.Float64, "error_p5_s": pl.Float64, "error_p25_s": pl.Float64, "error_p50_s": pl.Float64,
    "error_p75_s": pl.Float64, "error_p95_s": pl.Float64, "error_abs_mean_s": pl.Float64,
    **{f"within_{name}_pct": pl.Float64 for name, _ in WITHIN},
    "delay_recorded_mean_s": pl.Float64, "delay_replayed_mean_s": pl.Float64,
    "correlation": pl.Float64, "rank_correlation": pl.Float64,
}  # fmt: skip
