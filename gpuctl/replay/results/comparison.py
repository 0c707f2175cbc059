"""Differences between a replay and something else, job by job: another policy, or what the trace recorded.

Both sides of a pair are the same job, so what jobs have in common (size, day, user) cancels out. Jobs share their queue
and are not independent: see `gpuctl.replay.results.intervals`.

A replay that mispredicts the past also mispredicts a change. Its error in mean waits and JCTs is measured on the trace;
the effect of a change is taken as no more certain than that, in addition to chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.core.notes import NamedValue, literal, note
from gpuctl.core.numbers import lasting, unit_of
from gpuctl.core.states import State
from gpuctl.replay.results.intervals import PARTS, of_mean, part_of, stretches
from gpuctl.replay.results.metrics import SIZES, size_class, warmup_jobs
from gpuctl.replay.results.timelines import ENDED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.replay.models.records import Outcome, Workload

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


RESAMPLES = 1000
SEED = 20170807
"""Seed of the resampling; the same pairs always give the same interval."""

QUANTILE_PLACES = 2000
"""Number of values among which quantiles of resamples are searched: ranks are exact to 0.05 %."""

_ENDS = (0.025, 0.975)

SAME_S = 1e-3
"""Times that differ by less than a millisecond are equal."""

ALL = "all"
MEASURES = ("jct", "wait")
WITHIN = (("1s", 1.0), ("1min", 60.0), ("10min", 600.0), ("1h", 3600.0))

_UNFINISHED = frozenset({State.PENDING, State.RUNNING, State.SUSPENDED})


def recorded(workload: Workload) -> pl.DataFrame:
    """Return the record of each job, one row per job: ``start_s``, ``end_s``, ``jct_s``, ``wait_s``.

    The end is the last segment's start plus its run time, the wait is all time from submission to the end except the
    segments' run times. Unknown values are null: jobs that never started, and the end of jobs that were still queued or
    running when the trace ended.
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
        ``diff_low_s`` and ``diff_high_s`` (95 %; null: the trace is too short to tell), ``p`` (see
        `gpuctl.replay.results.intervals.Interval`), ``diff_p50_s``, ``change_pct``, ``better_pct``, ``worse_pct``,
        ``equal_pct``, ``stretches`` (`gpuctl.replay.results.intervals.stretches`; null: no bound is known).
    """
    rows = _sides(outcome, other).slice(warmup_jobs(workload, warmup))
    label = name or ("recorded" if isinstance(other, pl.DataFrame) else other.policy)
    submit = np.asarray(workload.submit)[warmup_jobs(workload, warmup) :]
    independent = stretches([outcome] if isinstance(other, pl.DataFrame) else [outcome, other])
    sizes = rows["size_bucket"].to_numpy()
    values = {name: rows[name].to_numpy().astype(np.float64) for name in rows.columns if name != "size_bucket"}
    found = []
    for measure in MEASURES:
        mine, theirs, level = (values[f"{measure}{side}"] for side in ("", "_other", "_level"))
        for size in (ALL, *SIZES):
            here = np.ones(len(sizes), dtype=bool) if size == ALL else sizes == size
            if not here.any():
                continue
            keys = {"policy": outcome.policy, "baseline": label, "measure": measure, "size_bucket": size}
            found.append(_difference(mine[here], theirs[here], level[here], submit[here], independent) | keys)
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


def quantile_bootstrap(
    values: Floats, part: Ints, share: float, *, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float | None, float | None]:
    """Return a 95 % interval of a quantile of values, from resampling its parts with replacement.

    Args:
        values: see `quantile_draws`, as for the others.
        part: of each value.
        share: of the values.
        resamples: how many.
        seed: of the resamples.

    Returns:
        Its ends; None if there are fewer than two parts.
    """
    drawn = quantile_draws(values, part, share, resamples=resamples, seed=seed)
    if drawn is None:
        return None, None
    low, high = np.quantile(drawn, _ENDS)
    return float(low), float(high)


def quantile_draws(
    values: Floats, part: Ints, share: float, *, resamples: int = RESAMPLES, seed: int = SEED
) -> Floats | None:
    """Return a quantile of values in resamples of their parts, drawn with replacement.

    A resample's quantile is the least value not below this share of it, among up to
    `QUANTILE_PLACES` values in equal steps of rank.

    Args:
        values: in order of submission, shape (n,).
        part: the part of the time of each value, shape (n,).
        share: of the values at or below the quantile, 0 to 1.
        resamples: how many.
        seed: of numpy's generator.

    Returns:
        shape (resamples,); None if there are fewer than two parts.
    """
    known, part = np.unique(part, return_inverse=True)
    count = known.size
    if count < 2:
        return None
    order = np.argsort(values, kind="stable")
    places = np.unique(np.linspace(0, len(values) - 1, min(len(values), QUANTILE_PLACES)).round().astype(np.int64))
    # number of each part at or below each place
    below = np.stack([np.cumsum(part[order] == one)[places] for one in range(count)])
    ranks = draws(count, resamples, seed).astype(np.float64) @ below.astype(np.float64)
    first = [int(np.searchsorted(row, share * row[-1])) for row in ranks]
    found: Floats = values[order][places[first]]
    return found


def draws(count: int, resamples: int, seed: int) -> Ints:
    """Return how often each of so many parts is in each resample, shape (resamples, count)."""
    # Only the number of draws of each part matters: one matrix of counts replaces the draws.
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
    waits, submit = waits[known], np.asarray(workload.submit)[skip:][known]
    mean = of_mean(waits, submit, stretches=stretches([outcome]))
    names = ("wait_mean_low_s", "wait_mean_high_s", "wait_p95_low_s", "wait_p95_high_s")
    if mean.low is None or mean.high is None:
        return dict.fromkeys(names)
    low, high = quantile_bootstrap(waits, part_of(submit, PARTS), 0.95, resamples=resamples, seed=seed)
    # no more certain than the mean, which includes the load: long waits may be longer by that factor, or more frequent
    whole, p95 = float(waits.mean()), float(np.quantile(waits, 0.95))
    times = (mean.low / whole, mean.high / whole) if whole > 0 else (1.0, 1.0)
    fewer, more = (float(np.quantile(waits, max(1 - 0.05 / each, 0.0))) if each > 0 else 0.0 for each in times)
    ends = (
        None if low is None else min(low, p95 * times[0], fewer),
        None if high is None else max(high, p95 * times[1], more),
    )
    return dict(zip(names, (mean.low, mean.high, *ends), strict=True))


def fidelity(outcome: Outcome, workload: Workload, *, warmup: float = 0.0) -> pl.DataFrame:
    """Return how close a replay comes to the recorded first starts, for all jobs, by gang size and by queue.

    Args:
        outcome: of the replay, as a rule of the policy that was in force when the trace was recorded.
        workload: what was replayed.
        warmup: see `gpuctl.replay.results.metrics.counted_jobs`.

    Returns:
        ``policy``, ``by`` (``all``, ``size_bucket`` or ``queue``), ``value``, ``jobs`` (counted), ``pairs`` (started in
        both), ``only_recorded``, ``only_replayed``; the error (replayed - recorded first start, positive: too late)
        ``error_mean_s``, ``error_p5_s`` … ``error_p95_s``, ``error_abs_mean_s``; ``within_1s_pct`` … ``within_1h_pct``
        (of pairs, within that distance); ``delay_recorded_mean_s``, ``delay_replayed_mean_s`` (first start - submit),
        ``correlation`` (Pearson) and ``rank_correlation`` (Spearman) of the two delays, null if one does not vary.
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
    wait, other_wait = mine["wait_s"], theirs["wait_s"]
    # differences other than waiting, such as of jobs that run faster elsewhere, count by their own size
    apart = ((mine["jct_s"] - wait) - (theirs["jct_s"] - other_wait)).abs()
    return pl.DataFrame(
        {
            "size_bucket": outcome.jobs.select(size_class())["size_bucket"],
            **{m: mine[f"{m}_s"] for m in MEASURES},
            **{f"{m}_other": theirs[f"{m}_s"] for m in MEASURES},
            "wait_level": (wait + other_wait) / 2,
            "jct_level": (wait + other_wait) / 2 + apart,
        }
    )


def _finished_times(outcome: Outcome) -> pl.DataFrame:
    # A wait cut off by the end of the replay cannot be compared.
    done = pl.col("state").is_in(ENDED)
    return outcome.jobs.select(pl.when(done).then(pl.col(f"{m}_s")).alias(f"{m}_s") for m in MEASURES)


def _difference(mine: Floats, theirs: Floats, level: Floats, submit: Floats, independent: float) -> dict[str, Any]:
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
        return {**dict.fromkeys(_SCHEMA), **counts}
    mine, theirs = mine[both], theirs[both]
    change = mine - theirs
    known = of_mean(change, submit[both], level[both], stretches=independent)
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
        "stretches": independent if np.isfinite(independent) else None,
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
    # Values that vary only by rounding have no correlation.
    steady = min(np.abs(a).max(), np.abs(b).max()) < SAME_S
    return None if steady else float(np.clip((a * b).sum() / size, -1, 1))


_SCHEMA: dict[str, Any] = {
    "policy": pl.String, "baseline": pl.String, "measure": pl.String, "size_bucket": pl.String,
    "jobs": pl.Int64, "pairs": pl.Int64, "unpaired_policy": pl.Int64, "unpaired_baseline": pl.Int64,
    "unpaired_both": pl.Int64, "mean_s": pl.Float64, "baseline_mean_s": pl.Float64, "diff_mean_s": pl.Float64,
    "diff_low_s": pl.Float64, "diff_high_s": pl.Float64, "p": pl.Float64, "diff_p50_s": pl.Float64,
    "change_pct": pl.Float64,
    "better_pct": pl.Float64, "worse_pct": pl.Float64, "equal_pct": pl.Float64, "stretches": pl.Float64,
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


Errors = dict[tuple[str, str], float]
"""Seconds by measure and size class; see `errors`."""

NEAR_S = 60.0
"""Largest distance of near starts, in seconds."""

UNKNOWN = note(
    "How near this replay is to the trace is not known: it was not compared with it. Differences smaller than the "
    "model's own error prove nothing; gpuctl calibrate measures that."
)
"""If the trace cannot be compared with the replay, as on other nodes than its own."""


@dataclass(frozen=True)
class OwnRules:
    """Replays of a trace as it was: its jobs, its nodes, and rules that may be its own.

    Attributes:
        outcomes: one per policy, of which the nearest counts; if the rules were calibrated, the one replay under them.
        workload: what was replayed.
        calibrated: whether the rules were fitted to the trace.
        fitted: share of the jobs, in order of submission, that they were fitted to; the others measure the error.
    """

    outcomes: tuple[Outcome, ...]
    workload: Workload
    calibrated: bool = False
    fitted: float = 0.0


@dataclass(frozen=True)
class Nearness:
    """The distance of the nearest replay of the unchanged trace from the trace.

    Attributes:
        text: a sentence.
        errors: of the replay; empty if the rules are not calibrated, as they may differ from the trace's.
        calibrated: whether they are.
    """

    text: Note
    errors: Errors
    calibrated: bool


def nearness(own: OwnRules | None) -> Nearness | None:
    """Measure how close a replay of the unchanged trace is to the record; None if nothing was recorded.

    Args:
        own: the replays; None if there are none of the unchanged trace.
    """
    if own is None:
        return Nearness(UNKNOWN, {}, calibrated=False)
    truth = recorded(own.workload)["start_s"].to_numpy().astype(np.float64)
    skip = warmup_jobs(own.workload, own.fitted)
    if np.isnan(truth[skip:]).all():
        return None
    apart = {at: _apart(outcome, truth, skip) for at, outcome in enumerate(own.outcomes)}
    there = {at: values for at, values in apart.items() if values.size}
    if not there:
        return None
    best = min(there, key=lambda at: float(np.log1p(there[at] / 60).mean()))
    frame = _against_recorded(own.outcomes[best], own.workload, own.fitted)
    whole = frame.filter(measure="wait", size_bucket=ALL).to_dicts()
    if not whole or whole[0]["mean_s"] is None:
        return None
    found = errors(frame)
    text = _fidelity_note(own, own.outcomes[best], whole[0], there[best], found)
    return Nearness(text, found if own.calibrated else {}, own.calibrated)


def _apart(outcome: Outcome, truth: Floats, skip: int) -> Floats:
    """Seconds between replayed and recorded first starts, of the jobs that have both."""
    apart = np.abs(outcome.jobs["start_s"].to_numpy().astype(np.float64) - truth)[skip:]
    return np.asarray(apart[~np.isnan(apart)])


def _against_recorded(outcome: Outcome, workload: Workload, fitted: float) -> pl.DataFrame:
    return against(outcome, recorded(workload), workload, warmup=fitted)


def _fidelity_note(own: OwnRules, outcome: Outcome, whole: dict[str, float], apart: Floats, found: Errors) -> Note:
    here, there = whole["mean_s"], whole["baseline_mean_s"]
    unit = unit_of([here, there])
    means: dict[str, float | NamedValue | Note] = {
        "policy": NamedValue("policy", outcome.policy),
        "here": literal(lasting(here, unit)),
        "there": literal(lasting(there, unit)),
        "half": literal(lasting(float(np.median(apart)))),
        "near": 100 * float((apart <= NEAR_S).mean()),
    }
    if not own.calibrated:
        return note(
            "Not calibrated: whether the trace ran under rules like these is not known. Unchanged, its mean wait under "
            "{policy} is {here}, recorded {there}; half of the jobs start within {half} of the recorded start, "
            "{near:.0f} % within a minute. Differences smaller than the model's own error prove nothing; gpuctl "
            "calibrate looks for the trace's rules.",
            **means,
        )
    return note(
        "Replayed under its own rules ({policy}, calibrated), {mean} is {here}, recorded {there}; half of "
        "the jobs start within {half} of the recorded start, {near:.0f} % within a minute. Differences of the mean "
        "wait below {error} are within the model's own error.",
        **means,
        mean=note("the mean wait of the part of the trace that nothing was fitted to")
        if own.fitted
        else note("the trace's mean wait"),
        error=literal(lasting(found.get(("wait", ALL), math.nan))),
    )


def errors(frame: pl.DataFrame) -> Errors:
    """Return the error of a replay's means, in seconds, by measure and size class.

    It is the end farther from 0 of the 95 % interval of the difference from the record; without an interval, the
    difference itself.

    Args:
        frame: a replay against what was recorded, as `gpuctl.replay.results.comparison.against` returns it.
    """
    found: Errors = {}
    for row in frame.iter_rows(named=True):
        mean, low, high = row["diff_mean_s"], row["diff_low_s"], row["diff_high_s"]
        if mean is not None:
            ends = [abs(end) for end in (mean, low, high) if end is not None]
            found[row["measure"], row["size_bucket"]] = max(ends)
    return found


def widen(frame: pl.DataFrame, found: Errors) -> pl.DataFrame:
    """Include the model's own error in intervals of differences: the ends move as independent errors add.

    Args:
        frame: differences, as `gpuctl.replay.results.comparison.against` returns them.
        found: by measure and size class; empty: nothing is changed.

    Returns:
        the same with ``diff_low_s``, ``diff_high_s`` and ``p`` including that error, and ``model_error_s``.
    """
    if not found:
        return frame
    rows = [_widened(row, found.get((row["measure"], row["size_bucket"]))) for row in frame.iter_rows(named=True)]
    return pl.DataFrame(rows, schema={**frame.schema, "model_error_s": pl.Float64}, orient="row")


def wider(
    mean: float | None, low: float | None, high: float | None, error: float | None
) -> tuple[float | None, float | None]:
    """Return the ends of an interval moved away from its mean by an independent error; unchanged if none is known."""
    if error is None or mean is None or low is None or high is None:
        return low, high
    return mean - math.hypot(mean - low, error), mean + math.hypot(high - mean, error)


def _widened(row: dict[str, float | None], error: float | None) -> dict[str, float | None]:
    mean, low, high = row["diff_mean_s"], row["diff_low_s"], row["diff_high_s"]
    found = {**row, "model_error_s": error}
    if error is None or mean is None or low is None or high is None:
        return found
    found["diff_low_s"], found["diff_high_s"] = wider(mean, low, high, error)
    if row["p"] is not None and mean != 0:
        # an error of 95 % is 1.96 standard deviations; a p by chance alone is never made smaller
        half = math.hypot((high - low) / 2, error)
        found["p"] = max(row["p"], math.erfc(abs(mean) / half * 1.959964 / math.sqrt(2))) if half > 0 else row["p"]
    return found
