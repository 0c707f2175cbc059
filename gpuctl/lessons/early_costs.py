"""The effect on each job of first runs on one GPU and refused retries, from a replay with and one without."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.lessons import savings
from gpuctl.lessons.lesson_input import jobs_of
from gpuctl.lessons.rules import HOUR_S
from gpuctl.replay.engine.reasons import R_NO_RETRY
from gpuctl.replay.models.records import SHOWS
from gpuctl.replay.policies.philly.prerun import fails_on_one_gpu

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.lessons.finding import Estimate
    from gpuctl.replay.models.records import Failures, Floats, Ints, Outcome, Workload

    Bools = NDArray[np.bool_]

FATES = ("caught", "later than the first run", *SHOWS[1:], "doubted", "not a first try", "gang of one GPU")
"""Fate of a failed attempt: a first run catches it, or it slips through, and why.

A failure that shows on one GPU is *doubted* if the draw makes the classifier err
(`gpuctl.replay.policies.philly.prerun.fails_on_one_gpu`); a try is a *first* one if all before it were caught."""
CAUGHT, LATE, DOUBTED, NOT_FIRST, ALONE = 0, 1, 5, 6, 7


RETRIES = ("refused", "after a refused one", "may pass", "not sure enough", "not known")
"""Fate of a recorded retry: refused, or why it is made."""
REFUSED, GONE, MAY_PASS, UNSURE, UNKNOWN = range(5)


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        first_s: seconds of the first run; 0: none.
        pool: GPUs reserved for it.
        retry: confidence from which a permanent reason ends its job; 0: all retries are made.
    """

    first_s: float = 0.0
    pool: int = 0
    retry: float = 0.0

    @property
    def params(self) -> dict[str, str]:
        """Parameters of ``philly``."""
        first = {"prerun": repr(self.first_s), "pool": str(self.pool)} if self.first_s else {}
        return {**first, **({"retry": repr(self.retry)} if self.retry else {})}


@dataclass(frozen=True)
class RuleEffect:
    """A rule's effect on each job, in the workload's order; NaN if it cannot be compared.

    Attributes:
        saved_gpu_s: GPU-seconds that it holds less. A job that the rule ends, though it passed later in the trace, is
            taken to be submitted again: it saves nothing by that.
        saved_wait_s: seconds that it waits less; a first run that is passed counts as waiting.
        wait_h: hours that a job waits less, on average.
        delay_s: seconds by which its gang starts later; NaN if it never does, or has one GPU.
        ended: the rule ended it in place of a retry.
        again: of these, those that passed, or were stopped by a user, in the trace.
        pool_gpu_s: what first runs took of the pool.
    """

    saved_gpu_s: Floats
    saved_wait_s: Floats
    wait_h: Estimate
    delay_s: Floats
    ended: Bools
    again: Bools
    pool_gpu_s: float


def compare(workload: Workload, base: Outcome, mine: Outcome) -> RuleEffect:
    """Compare a replay under a rule with the one without it, job by job."""
    before, after = jobs_of(base), jobs_of(mine)
    ended = np.zeros(workload.size, np.bool_)
    lines = mine.log.lines
    ended[lines["job"][lines["reason"] == R_NO_RETRY]] = True
    again = ended & ~workload.segment_fails[np.maximum(workload.segment_start[1:] - 1, 0)]
    saved = before.gpu_s - after.gpu_s
    saved[again] -= _rest(workload, mine)[again]
    job, seconds, passed = _first_runs(workload, mine)
    first = np.bincount(job[passed], seconds[passed], workload.size)
    wait = before.wait_s - after.wait_s - first
    wait[again] = np.nan
    hours = savings.waited(wait / HOUR_S, ((before.wait_s + after.wait_s) / 2 + first) / HOUR_S, before, after)
    delay = _gang_start(workload, mine) - _gang_start(workload, base)
    return RuleEffect(saved, wait, hours, delay, ended, again, float(seconds.sum()))


def _first_runs(workload: Workload, mine: Outcome) -> tuple[Ints, Floats, Bools]:
    """Job, length and whether it was passed, of each first run: an attempt on fewer GPUs than the gang's."""
    rows = mine.attempts.select(
        "job", "gpus", (pl.col("end_s") - pl.col("start_s")).alias("s"), pl.col("end") == "lease"
    )
    job, gpus, seconds, passed = (rows[name].to_numpy() for name in rows.columns)
    alone = gpus < workload.gpus[job]
    return job[alone], seconds[alone], passed[alone]


def _rest(workload: Workload, mine: Outcome) -> Floats:
    """GPU-seconds of each job after the last of its segments that failed in a replay."""
    failed = mine.attempts.filter(pl.col("end") == "failed")
    times = np.bincount(failed["job"].to_numpy(), minlength=workload.size)
    fails = np.cumsum(np.append(0, workload.segment_fails))
    seconds = np.cumsum(np.append(0.0, workload.segment_s))
    first, after = workload.segment_start[:-1], workload.segment_start[1:]
    at = np.searchsorted(fails, fails[first] + times)
    return np.asarray((seconds[after] - seconds[np.minimum(at, after)]) * workload.gpus)


def _gang_start(workload: Workload, outcome: Outcome) -> Floats:
    """When each job first held all of its GPUs; NaN: never, or it has only one."""
    rows = outcome.attempts.select("job", "start_s", "gpus")
    job, start, gpus = (rows[name].to_numpy() for name in rows.columns)
    whole = (gpus == workload.gpus[job]) & (gpus > 1)
    first = np.full(workload.size, np.inf)
    np.minimum.at(first, job[whole], start[whole])
    return np.where(np.isinf(first), np.nan, first)


def fates(workload: Workload, known: Failures, first_s: float) -> Ints:
    """Fate of each segment under first runs: a number of `FATES`; -1: it does not fail.

    Args:
        workload: the jobs.
        known: why they failed.
        first_s: seconds of the first run.
    """
    owner = np.repeat(np.arange(workload.size), np.diff(workload.segment_start))
    gpus = workload.gpus[owner]
    soon = workload.segment_s <= first_s
    seen = fails_on_one_gpu(workload, known)
    caught = seen & soon & (gpus > 1)
    fate = np.where(known.shows > 0, known.shows + 1, np.where(seen, np.where(soon, CAUGHT, LATE), DOUBTED))
    fate = np.where(known.reason < 0, 1 + SHOWS.index("not known"), fate)
    missed = np.cumsum(np.append(0, ~caught))
    tried = missed[:-1] - missed[workload.segment_start[:-1]][owner] == 0
    fate = np.where(tried, fate, NOT_FIRST)
    fate = np.where(gpus > 1, fate, ALONE)
    return np.where(workload.segment_fails, fate, -1)


def caught_gpu_s(workload: Workload, fate: Ints) -> Floats:
    """GPU-seconds that each segment saves by failing on one GPU rather than on its gang."""
    owner = np.repeat(np.arange(workload.size), np.diff(workload.segment_start))
    return np.asarray(np.where(fate == CAUGHT, workload.segment_s * (workload.gpus[owner] - 1), 0.0))


def retries(workload: Workload, known: Failures, sure: float) -> Ints:
    """Return the fate of the retry after each segment: a number of `RETRIES`; -1: no failure, or the last segment.

    Args:
        workload: the jobs.
        known: why they failed.
        sure: confidence from which a retry is refused if no retry overcomes the reason.
    """
    owner = np.repeat(np.arange(workload.size), np.diff(workload.segment_start))
    tried = workload.segment_fails & (np.arange(owner.size) < workload.segment_start[1:][owner] - 1)
    refused = tried & (known.reason >= 0) & ~known.may_pass & (known.confidence >= sure)
    fate = np.where(known.may_pass, MAY_PASS, UNSURE)
    fate = np.where(known.reason < 0, UNKNOWN, fate)
    before: Ints = np.cumsum(refused) - refused
    gone = before - before[workload.segment_start[:-1]][owner] > 0
    fate = np.where(refused, REFUSED, fate)
    return np.where(tried, np.where(gone, GONE, fate), -1)


def refused_gpu_s(workload: Workload, fate: Ints) -> Floats:
    """GPU-seconds that each segment saves by a refused retry: all later attempts of jobs that failed in the end."""
    owner = np.repeat(np.arange(workload.size), np.diff(workload.segment_start))
    seconds = np.cumsum(workload.segment_s)
    last = workload.segment_start[1:][owner] - 1
    saved = (seconds[last] - seconds) * workload.gpus[owner]
    return np.where((fate == REFUSED) & workload.segment_fails[last], saved, 0.0)


def pool_for(workload: Workload, known: Failures, first_s: float) -> int:
    """Pool size with hardly any wait for first runs: their mean concurrent number plus two square roots of it.

    The mean is that of the whole trace, from the first submission to the last.
    """
    fate = fates(workload, known, first_s)
    owner = np.repeat(np.arange(workload.size), np.diff(workload.segment_start))
    caught = np.bincount(owner, fate == CAUGHT, workload.size)
    passed = (workload.gpus > 1) & (caught < np.diff(workload.segment_start))
    busy = first_s * float(passed.sum()) + float(workload.segment_s[fate == CAUGHT].sum())
    span = float(np.ptp(workload.submit)) if workload.size else 0.0
    load = busy / span if span > 0 else 1.0
    return max(1, math.ceil(load + 2 * math.sqrt(load)))
