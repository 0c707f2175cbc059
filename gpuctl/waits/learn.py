"""Learn how long jobs wait from a log, and score forecasts side by side on its last part.

The log is cut into four parts by the time at which jobs could first start. Forests are fitted on the first, the first
two, and so on, each on waits that had ended when the part did, and asked about the next part, learning on the way how
far their quantiles hold. So the last part is scored by forests that knew nothing of it. What is kept is fitted on all.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.errors import InputError, UsageError
from gpuctl.predictors.time_split import weights
from gpuctl.waits import adapt, bound, features, quantiles, scores

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpuctl.waits.log import WaitLog
    from gpuctl.waits.quantiles import Forests

    Floats = NDArray[np.float64]
    Mask = NDArray[np.bool_]

KIND = "wait"
TEST_SHARE = 0.25
FEWEST = 100
"""Started jobs that each of four parts needs."""
FEW_UNLIMITED = 0.01
"""Share of jobs without a limit below which nothing is learnt of them."""
JOB_TREES = 40
"""A level, of the forests that look at the job alone."""
BOOSTED, BOUND, JOB_ONLY = "boosted", "bound", "job-only"
METHODS = {
    BOOSTED: "Quantiles by regression trees, from the job and from queue and cluster as they were when it came.",
    BOUND: "Waits of the latest jobs of its size and limit that bound quantiles with a confidence of 95 %.",
    JOB_ONLY: "Quantiles by regression trees, from the job's size, limit, hour and weekday: without the queue.",
}
RULES = {
    "mean": "The mean wait of all jobs that had started before.",
    "last": "The wait of the job that had started last.",
}


@dataclass(frozen=True)
class Model:
    """What forecasts waits.

    Attributes:
        boosted: looks at job, queue and cluster.
        job_only: looks at the job.
        method: which of `BOOSTED` and `BOUND` answers where the queue is known: the better one in calibration.
        unit: what a job's size counts: ``GPUs`` or ``nodes``.
        zone: IANA zone of hours and weekdays.
        clock: IANA zone of the clock that times are seconds of.
        unlimited: whether jobs without a limit were learnt from.
        largest: the largest job that was learnt from.
        trained_s: the last instant of the log.
    """

    boosted: Forests
    job_only: Forests
    method: str
    unit: str
    zone: str
    clock: str
    unlimited: bool
    largest: float
    trained_s: float


@dataclass(frozen=True)
class Trained:
    """A model, and how forecasts fared on the last part of the log.

    Attributes:
        model: fitted on the whole log.
        tested: one row a job scored: ``job``, ``queue``, ``load``, ``wait_s``, and for each forecaster its answers.
        answers: of each forecaster, at `quantiles.ANSWERED`; one column for a rule [jobs, levels].
        cut_s: first instant of each part.
        counts: started jobs of each part.
        digest: SHA-256 of what was learnt from.
        log: what it was trained on.
    """

    model: Model
    tested: pl.DataFrame
    answers: dict[str, Floats]
    cut_s: tuple[float, ...]
    counts: tuple[int, ...]
    digest: str
    log: WaitLog = field(repr=False)


def train(log: WaitLog, test_share: float = TEST_SHARE, tell: Callable[[str, int, int], None] | None = None) -> Trained:
    """Learn waits, and score what was learnt; the same log gives the same model, bit for bit.

    Args:
        log: of one cluster.
        test_share: of the jobs that started, the last ones, that are scored on.
        tell: called with (what is being done, steps done, steps in all).

    Raises:
        InputError: there are too few jobs.
        UsageError: the share is not between 0 and 1.
    """
    if not 0 < test_share < 1:
        raise UsageError(f"share to test on: found {test_share:g}, expected a number above 0 and below 1")
    say = tell or (lambda _text, _done, _all: None)
    say("replaying the log", 0, 6)
    wide, narrow = features.of_log(log), features.of_jobs(log.rows)
    wait, started = log.wait_s, log.started
    learnt = 1 - test_share
    cuts = np.quantile(log.ready_s[started], [learnt / 3, 2 * learnt / 3, learnt]).tolist()
    edges = [-np.inf, *cuts, np.inf]
    parts = [started & (log.ready_s >= a) & (log.ready_s < b) for a, b in pairwise(edges)]
    counts = tuple(int(part.sum()) for part in parts)
    if min(counts) < FEWEST:
        shown = ", ".join(f"{n:,}" for n in counts)
        raise InputError(
            f"{log.name}: {shown} started jobs in the four parts of the log, expected at least {FEWEST} in each",
            hint="train on a longer log",
        )
    early = [
        _fitted(log, wide, narrow, cut, partial(say, f"fitting, {k} of 3", k, 6)) for k, cut in enumerate(cuts[1:], 1)
    ]
    whole = _fitted(log, wide, narrow, log.taken_s + 1, partial(say, "fitting, 3 of 3", 3, 6))
    say("scoring", 4, 6)
    group = features.classes(log.rows) + 1
    asks = (log.ready_s, group, np.arange(wait.size))
    bounds = bound.bounds(log.leave_s, wait, group, asks, quantiles.ANSWERED)
    middle, last = parts[2], parts[3]
    method = _better(early[0][BOOSTED].answer(wide[middle]), bounds[middle], wait[middle])
    rows = {BOOSTED: wide, JOB_ONLY: narrow}
    kept, answers = {}, {}
    for name, rows_of in rows.items():
        # each part is told by trees that know nothing of it; levels learnt on one go on into the next
        _, levels = _followed(log, early[0][name], rows_of, middle, quantiles.ANSWERED)
        answers[name], levels = _followed(log, early[1][name], rows_of, last, levels)
        kept[name] = replace(whole[name], levels=levels)
    answers |= {BOUND: bounds[last], **_rules(log, last)}
    told = log.rows["time_limit_s"].to_numpy()[started]
    model = Model(
        boosted=kept[BOOSTED],
        job_only=kept[JOB_ONLY],
        method=method,
        unit=log.unit,
        zone=log.zone,
        clock=log.clock,
        unlimited=bool(np.isnan(told).mean() > FEW_UNLIMITED),
        largest=float(features.sizes(log.rows)[started].max()),
        trained_s=log.taken_s,
    )
    tested = log.rows.filter(pl.Series(last)).select(
        "job", "queue", load=pl.Series(wide[last, features.ALL.index("waiting_work_h")]), wait_s=pl.Series(wait[last])
    )
    digest = hashlib.sha256(wide.tobytes() + wait.tobytes()).hexdigest()
    return Trained(model, tested, answers, tuple(cuts), counts, digest, log)


def _fitted(log: WaitLog, wide: Floats, narrow: Floats, cut: float, tell: Callable[[], None]) -> dict[str, Forests]:
    """Forests of waits that had ended at an instant."""
    tell()
    mask, weight = _known(log, cut)
    wait = log.wait_s[mask]
    return {
        BOOSTED: quantiles.fit(wide[mask], wait, weight, features.ALL),
        JOB_ONLY: quantiles.fit(narrow[mask], wait, weight, features.OF_JOB, JOB_TREES),
    }


def _known(log: WaitLog, cut: float) -> tuple[Mask, Floats]:
    """Jobs whose waits had ended at an instant, and how many each stands for: long waits are missing more often."""
    part = (log.started | np.isinf(log.leave_s)) & (log.ready_s < cut)
    mask = part & (log.leave_s < cut)
    return mask, weights(log.ready_s, log.leave_s, mask, part, cut)


def _followed(
    log: WaitLog, forests: Forests, rows: Floats, part: Mask, levels: tuple[float, ...]
) -> tuple[Floats, tuple[float, ...]]:
    """What forests say of the jobs of a part that started, learning on the way, and the levels at its end."""
    first, end = log.ready_s[part][[0, -1]]
    came = (log.started | np.isinf(log.leave_s)) & (log.ready_s >= first) & (log.ready_s <= end)
    said, levels = adapt.follow(forests.curves(rows[came]), log.ready_s[came], log.leave_s[came], levels)
    return said[part[came]], levels


def _better(boosted: Floats, bounds: Floats, wait_s: Floats) -> str:
    both = ~np.isnan(bounds[:, 0])
    if not both.any():
        return BOOSTED
    losses = [scores.crps(each[both], wait_s[both]) for each in (boosted, bounds)]
    return BOOSTED if losses[0] <= losses[1] else BOUND


def _rules(log: WaitLog, part: Mask) -> dict[str, Floats]:
    """What `RULES` say of the jobs of a part; 0 before the first start."""
    order = np.argsort(log.leave_s[log.started], kind="stable")
    start, wait = log.leave_s[log.started][order], log.wait_s[log.started][order]
    known = np.searchsorted(start, log.ready_s[part], side="left")
    total = np.append(0.0, np.add.accumulate(wait))
    said = {"mean": total[known] / np.maximum(known, 1), "last": np.where(known > 0, wait[known - 1], 0.0)}
    return {name: each[:, None] for name, each in said.items()}
