"""Learns how long jobs wait from a log, and scores forecasts side by side on its last part.

The log is cut into four parts by the time at which jobs could first start. Forests are fitted on the first part, on the
first two, and so on, each on waits that had ended by the end of the part. They forecast the next part, which shows the
coverage of their quantiles. So forests that have not seen the last part score it. The saved model is fitted on all
parts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.compiled.background_loop import DONE, watch
from gpuctl.compiled.background_loop import EFFORT as SPENT
from gpuctl.core.errors import InputError, UsageError
from gpuctl.predictors import limit_share
from gpuctl.predictors.time_split import weights
from gpuctl.waits import adaptive_quantiles, features, forward, order_statistics, quantiles, run_times, scores

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpuctl.predictors.limit_share import Shares
    from gpuctl.waits.quantiles import Forests
    from gpuctl.waits.queue_log import WaitLog

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Mask = NDArray[np.bool_]

KIND = "wait"
TEST_SHARE = 0.25
FEWEST = 100
"""Started jobs that each of four parts needs."""
FEW_UNLIMITED = 0.01
"""Share of jobs without a limit below which nothing is learnt of them."""
JOB_TREES = 40
"""A level, of the forests that look at the job alone."""
LEARNT = 10_000
"""Jobs that are learnt from and scored; of more, so many, evenly spread over the log."""
EARLY_SIMULATED = 4_000
"""Of those in the first two parts, so many are simulated: trees learn from them, nothing is scored on them."""
FEWEST_SIMULATED = 300
"""Jobs that are simulated, however long that takes."""
EFFORT = 800_000_000
"""Of all simulations of a training, about: jobs, nodes and users looked at. It takes about 6 s of CPU time."""
FOR_ORDER = 400
"""Jobs on which the order of the queue is chosen; fewer, at least so many, where simulations take long."""
FEWEST_FOR_ORDER = 40
FOR_EFFORT = 60
"""Jobs by which it is seen how long simulations take."""
FOR_ORDER_SAMPLES = 8
"""Simulations of each."""
BLEND, BOOSTED, SIMULATED, BOUND, JOB_ONLY = "blend", "boosted", "simulated", "bound", "job-only"
PLAN = "plan"
WITH_QUEUE = (BLEND, BOOSTED, BOUND)
"""One of which answers about one more job; simulations by themselves do not know how far they are off."""
METHODS = {
    BLEND: "The middle between the simulated waits and quantiles by regression trees that see them and what boosted "
    "sees; far ends by the trees.",
    BOOSTED: "Quantiles by regression trees, from the job and from queue and cluster as they were when it came.",
    SIMULATED: "The queue run forward by Slurm's rules, with run times and submissions drawn from the past.",
    BOUND: "Waits of the latest jobs of its size and limit that bound quantiles with a confidence of 95 %.",
    JOB_ONLY: "Quantiles by regression trees, from the job's size, limit, hour and weekday: without the queue.",
}
RULES = {
    "mean": "The mean wait of all jobs that had started before.",
    "last": "The wait of the job that had started last.",
    PLAN: "Its start in a plan in which all jobs use up their limits and nobody else comes. So Slurm estimates starts; "
    "the plan is ours.",
}


@dataclass(frozen=True)
class Model:
    """A model that forecasts waits.

    Attributes:
        blend: uses job, queue, cluster and simulated waits.
        boosted: uses job, queue and cluster.
        job_only: uses the job.
        levels: levels by method, of `BLEND`, `BOOSTED` and `SIMULATED`: one row per group of
            `adaptive_quantiles.groups`.
        order: of the queue in simulations, one of `forward.ORDERS`: the more accurate one.
        run_times: trees for the run times that simulations draw; None: drawing from the past alone was more accurate.
        method: the one of `WITH_QUEUE` used if the queue is known: the best one in calibration.
        unit: unit of a job's size: ``GPUs`` or ``nodes``.
        zone: IANA zone of hours and weekdays.
        clock: IANA zone of the clock that times are seconds of.
        unlimited: whether the training data has jobs without a limit.
        largest: the largest job in the training data.
        queues: queues in which jobs of the training data started; empty: the log names none.
        trained_s: the last instant of the log.
    """

    blend: Forests
    boosted: Forests
    job_only: Forests
    levels: dict[str, adaptive_quantiles.Levels]
    order: str
    run_times: Shares | None
    method: str
    unit: str
    zone: str
    clock: str
    unlimited: bool
    largest: float
    queues: tuple[str, ...]
    trained_s: float


@dataclass(frozen=True)
class TrainedModel:
    """A model, and the scores of forecasts on the last part of the log.

    Attributes:
        model: fitted on the whole log.
        tested: one row per scored job: ``job``, ``queue``, ``load``, ``wait_s``, and for each forecaster its answers.
        answers: answers of each forecaster, at `quantiles.ANSWERED`; one column for a rule [jobs, levels].
        cut_s: first instant of each part.
        counts: started jobs of each part.
        digest: SHA-256 of the training data.
        log: the training log.
        run_error_s: median's pinball loss of simulations of the second part that draw run times from the past, and by
            trees; infinite: too few jobs for trees.
        sizes: numbers of jobs: ``learnt`` from and scored, and ``could`` be; ``simulated`` ones, and those for the
            ``order`` of the queue.
    """

    model: Model
    tested: pl.DataFrame
    answers: dict[str, Floats]
    cut_s: tuple[float, ...]
    counts: tuple[int, ...]
    digest: str
    log: WaitLog = field(repr=False)
    run_error_s: tuple[float, float]
    sizes: dict[str, int]


def train(
    log: WaitLog, test_share: float = TEST_SHARE, progress: Callable[[str, int, int], None] | None = None
) -> TrainedModel:
    """Learn waits, and score the model; the same log gives the same model, bit for bit.

    Args:
        log: of one cluster.
        test_share: share of the started jobs, the last ones, for scoring.
        progress: called with (step, steps done, total steps).

    Raises:
        InputError: there are too few jobs.
        UsageError: the share is not between 0 and 1.
    """
    if not 0 < test_share < 1:
        raise UsageError(f"share to test on: found {test_share:g}, expected a number above 0 and below 1")
    report_step = progress or (lambda _text, _done, _all: None)
    learnt = 1 - test_share
    able = log.ready_s >= log.since_s
    cuts = np.quantile(log.ready_s[log.started & able], [learnt / 3, 2 * learnt / 3, learnt]).tolist()
    picked = _spread(able, LEARNT)
    parts = [part & picked for part in _parts(log, cuts)]
    counts = tuple(int(part.sum()) for part in parts)
    report_step("trying orders of the queue", 0, STEPS)
    order, runs = _simulated_as(log, parts[1], cuts)
    wanted = _to_simulate(log, picked, cuts[1], runs.effort)
    seen = _method_inputs(log, order, runs.run_curves, (picked, wanted), report_step)
    early = [
        _fitted(log, seen, picked, cut, partial(report_step, f"fitting, {k} of 3", 20 + 20 * k, STEPS))
        for k, cut in enumerate(cuts[1:], 1)
    ]
    whole = _fitted(log, seen, picked, log.taken_s + 1, partial(report_step, "fitting, 3 of 3", 80, STEPS))
    report_step("scoring", 95, STEPS)
    of = np.flatnonzero(picked)
    group = features.classes(log.rows) + 1
    asks = (log.ready_s[of], group[of], of)
    bounds = np.full((picked.size, len(quantiles.ANSWERED)), np.nan)
    bounds[of] = order_statistics.bounds(log.leave_s, log.wait_s, group, asks, quantiles.ANSWERED)
    middle, last = parts[2], parts[3]
    load = np.zeros(picked.size, np.int64)
    load[of] = adaptive_quantiles.loads(log, log.ready_s[of])
    levels: dict[str, adaptive_quantiles.Levels] = {}
    answers: dict[str, Floats] = {}
    tried = {BOUND: bounds[middle]}
    for name in (BLEND, BOOSTED, SIMULATED, JOB_ONLY):
        # trees that have not seen a part forecast it; levels learned on one part carry over to the next
        first = (quantiles.ANSWERED,) * (1 if name == JOB_ONLY else adaptive_quantiles.GROUPS)
        tried[name], then = _followed(log, _curves(name, early[0], seen, of), middle, first, load)
        answers[name], levels[name] = _followed(log, _curves(name, early[1], seen, of), last, then, load)
    answers |= {BOUND: bounds[last], **_rules(log, last), PLAN: seen[PLAN][last]}
    method = _best({name: tried[name] for name in WITH_QUEUE}, log.wait_s[middle])
    answered = log.rows["time_limit_s"].to_numpy()[log.started]
    model = Model(
        blend=_forests(whole[BLEND]),
        boosted=_forests(whole[BOOSTED]),
        job_only=replace(_forests(whole[JOB_ONLY]), levels=levels.pop(JOB_ONLY)[0]),
        levels=levels,
        order=order,
        run_times=runs.kept(log),
        method=method,
        unit=log.unit,
        zone=log.zone,
        clock=log.clock,
        unlimited=bool(np.isnan(answered).mean() > FEW_UNLIMITED),
        largest=float(features.sizes(log.rows)[log.started].max()),
        queues=log.queues,
        trained_s=log.taken_s,
    )
    tested = log.rows.filter(pl.Series(last)).select(
        "job",
        "queue",
        load=pl.Series(seen[BOOSTED][last, WORK]),
        wait_s=pl.Series(log.wait_s[last]),
    )
    digest = hashlib.sha256(seen[BOOSTED][of].tobytes() + log.wait_s[of].tobytes()).hexdigest()
    sizes = {
        "could": int((able & log.started).sum()),
        "learnt": sum(counts),
        "simulated": int((wanted & log.started).sum()),
        "order": runs.tried,
    }
    return TrainedModel(model, tested, answers, tuple(cuts), counts, digest, log, runs.error, sizes)


STEPS = 100
"""Of a training, as progress shows them: about percent of its time."""
WORK = features.ALL.index("waiting_work_h")
"""Column of the load."""


def _parts(log: WaitLog, cuts: list[float]) -> list[Mask]:
    """Return which started jobs belong to each of four parts.

    Raises:
        InputError: one has too few jobs.
    """
    edges = [-np.inf, *cuts, np.inf]
    able = log.started & (log.ready_s >= log.since_s)
    parts = [able & (log.ready_s >= a) & (log.ready_s < b) for a, b in pairwise(edges)]
    counts = [int(part.sum()) for part in parts]
    if min(counts) < FEWEST:
        shown = ", ".join(f"{n:,}" for n in counts)
        raise InputError(
            f"{log.name}: {shown} started jobs in the four parts of the log, expected at least {FEWEST} in each",
            hint="train on a longer log",
        )
    return parts


@dataclass(frozen=True)
class Runs:
    """Run times for simulations: by trees, per part, or none.

    Attributes:
        run_curves: `limit_share.LEVELS` of each job, by trees not fitted on it [jobs, levels]; None: not by trees.
        names: names of the trees' features.
        seen: the features of each job.
        error: of the simulations' medians on some jobs of the second part, s: without trees, and with them.
        tried: number of these jobs.
        effort: effort to simulate one of them, for as many simulations as an answer has.
    """

    run_curves: Floats | None
    names: tuple[str, ...]
    seen: NDArray[np.float32]
    error: tuple[float, float]
    tried: int
    effort: float

    def kept(self, log: WaitLog) -> Shares | None:
        """Return trees fitted on the whole log."""
        return None if self.run_curves is None else run_times.fit(log, self.seen, self.names, np.inf)


def _simulated_as(log: WaitLog, part: Mask, cuts: list[float]) -> tuple[str, Runs]:
    """Return the order of the queue, and the run times, whose simulations predict the waits of a part best."""
    spent = watch()

    def off(order: str, some: Mask, run_curves: Floats | None = None) -> float:
        found, _ = forward.of_log(log, order, some, FOR_ORDER_SAMPLES, run_curves=run_curves, watched=spent)
        answered = some & ~np.isnan(found[:, 0])
        return scores.pinball(np.median(found[answered], axis=1), log.wait_s[answered], 0.5) if answered.any() else 0.0

    # measure the effort of simulations all over the log: a cluster fills up, queues grow
    off("fair-share", _spread(log.ready_s >= cuts[0], FOR_EFFORT))
    each = float(spent[SPENT]) / max(int(spent[DONE]), 1)
    runs = len(forward.ORDERS) + 1
    some = _spread(part, int(np.clip(EFFORT / 3 / runs / max(each, 1.0), FEWEST_FOR_ORDER, FOR_ORDER)))
    error = {order: off(order, some) for order in forward.ORDERS}
    effort = each * (forward.SAMPLES + 1) / (FOR_ORDER_SAMPLES + 1)
    order = min(error, key=lambda name: error[name])
    rows = run_times.rows_of(log)
    names = limit_share.names(rows)
    seen = limit_share.submission_features(rows, names)
    fitted = [run_times.fit(log, seen, names, cuts[0])]
    by_trees = np.inf
    if fitted[0] is not None:
        by_trees = off(order, some, run_times.by_part(log, seen, fitted, cuts[:1], cuts[1]))
    about = ((error[order], by_trees), int(some.sum()), effort)
    if by_trees >= error[order]:
        return order, Runs(None, names, seen, *about)
    fitted += [run_times.fit(log, seen, names, cut) for cut in cuts[1:]]
    return order, Runs(run_times.by_part(log, seen, fitted, cuts), names, seen, *about)


def _spread(mask: Mask, most: int) -> Mask:
    """Return at most `most` of those in a mask, evenly spread."""
    of = np.flatnonzero(mask)
    found = np.zeros(mask.size, np.bool_)
    found[of[np.linspace(0, of.size - 1, min(most, of.size)).astype(np.int64)]] = True
    return found


def _to_simulate(log: WaitLog, picked: Mask, half: float, effort: float) -> Mask:
    """Select the jobs to simulate: few of the first two parts, all others, fewer of both if simulations take long.

    Args:
        log: of one cluster.
        picked: jobs for training.
        half: second at which the third part begins.
        effort: effort of the simulations of one job.
    """
    early = _spread(picked & (log.ready_s < half), EARLY_SIMULATED)
    late = picked & (log.ready_s >= half)
    most = max(int(EFFORT / max(effort, 1.0)), FEWEST_SIMULATED)
    if (early | late).sum() <= most:
        return early | late
    return _spread(early, most // 3) | _spread(late, most - most // 3)


def _method_inputs(
    log: WaitLog,
    order: str,
    run_curves: Floats | None,
    masks: tuple[Mask, Mask],
    report_step: Callable[[str, int, int], None],
) -> dict[str, Floats]:
    """Return the input of each method for every job at its submission; NaN for jobs that are not selected.

    Args:
        log: of one cluster.
        order: of the queue.
        run_curves: run times by trees.
        masks: jobs for training, and those of them to simulate.
        report_step: called with the current step, the steps done and the total.
    """
    picked, wanted = masks
    report_step("replaying the log", 15, STEPS)
    wide = features.of_log(log, picked)
    count = int(wanted.sum())

    def progress(done: int) -> None:
        report_step(f"simulating, {done:,} of {count:,} jobs", 20 + 20 * done // max(count, 1), STEPS)

    samples, plan = forward.of_log(log, order, wanted, run_curves=run_curves, progress=progress)
    return {
        BLEND: np.concatenate([wide, forward.described(samples, plan)], axis=1),
        BOOSTED: wide,
        SIMULATED: samples,
        JOB_ONLY: features.of_jobs(log.rows),
        PLAN: plan[:, None],
    }


@dataclass(frozen=True)
class Simulations:
    """Curves of simulated waits, with the interface of `quantiles.Forests`."""

    def curves(self, samples: Floats) -> Floats:
        """Return `quantiles.LEVELS` of log(1 + seconds) [LEVELS, jobs]."""
        return forward.curves(samples)


Method = quantiles.Forests | Simulations


def _curves(name: str, methods: dict[str, Method], seen: dict[str, Floats], of: Ints) -> Floats:
    """Return a method's curves of some jobs [LEVELS, all jobs]; NaN for others, and for jobs it cannot simulate."""
    found = np.full((len(quantiles.LEVELS), seen[name].shape[0]), np.nan)
    found[:, of] = methods[name].curves(seen[name][of])
    if name == BLEND:
        found[:, of] = forward.blended(found[:, of], methods[SIMULATED].curves(seen[SIMULATED][of]))
    return found


def _forests(method: Method) -> Forests:
    assert isinstance(method, quantiles.Forests)  # noqa: S101 - those that were fitted
    return method


def _fitted(
    log: WaitLog, seen: dict[str, Floats], picked: Mask, cut: float, progress: Callable[[], None]
) -> dict[str, Method]:
    """Fit the methods to waits of selected jobs that had ended at an instant."""
    progress()
    mask, weight = _ended_waits(log, picked, cut)
    wait = log.wait_s[mask]
    answered = ~np.isnan(seen[SIMULATED][mask, 0])
    if answered.sum() < FEWEST:
        answered = np.ones_like(answered)
    return {
        BLEND: quantiles.fit(seen[BLEND][mask][answered], wait[answered], weight[answered], BLENDED),
        BOOSTED: quantiles.fit(seen[BOOSTED][mask], wait, weight, features.ALL),
        SIMULATED: Simulations(),
        JOB_ONLY: quantiles.fit(seen[JOB_ONLY][mask], wait, weight, features.OF_JOB, JOB_TREES),
    }


BLENDED = (*features.ALL, *forward.FEATURES)
"""What the trees of `BLEND` look at."""


def _ended_waits(log: WaitLog, picked: Mask, cut: float) -> tuple[Mask, Floats]:
    """Return the jobs whose waits had ended at an instant, and their weights: long waits are missing more often."""
    part = picked & (log.started | np.isinf(log.leave_s)) & (log.ready_s < cut)
    mask = part & (log.leave_s < cut)
    return mask, weights(log.ready_s, log.leave_s, mask, part, cut)


def _followed(
    log: WaitLog, curves: Floats, part: Mask, levels: adaptive_quantiles.Levels, load: Ints
) -> tuple[Floats, adaptive_quantiles.Levels]:
    """Return answers from curves, learning from started jobs of a part on the way, and the final levels."""
    group = adaptive_quantiles.groups(curves, load) if len(levels) > 1 else np.zeros_like(load)
    first, end = log.ready_s[part][[0, -1]]
    answered = ~np.isnan(curves[0])
    came = answered & (log.started | np.isinf(log.leave_s)) & (log.ready_s >= first) & (log.ready_s <= end)
    times = log.ready_s[came], log.leave_s[came]
    run_curves, levels = adaptive_quantiles.follow(curves[:, came], times, levels, group[came])
    found = np.full((part.size, run_curves.shape[1]), np.nan)
    found[came] = run_curves
    return found[part], levels


def _best(forecasts: dict[str, Floats], wait_s: Floats) -> str:
    """Return the method with the least CRPS on jobs that all of them answer, among those with answers."""
    answered = {name: ~np.isnan(each[:, 0]) for name, each in forecasts.items()}
    able = [name for name in forecasts if answered[name].any()]
    both = np.logical_and.reduce([answered[name] for name in able])
    if not both.any():
        return BOOSTED
    losses = {name: scores.crps(forecasts[name][both], wait_s[both]) for name in able}
    return min(losses, key=lambda name: losses[name])


def _rules(log: WaitLog, part: Mask) -> dict[str, Floats]:
    """Return the answers of `RULES` for the jobs of a part; 0 before the first start."""
    order = np.argsort(log.leave_s[log.started], kind="stable")
    start, wait = log.leave_s[log.started][order], log.wait_s[log.started][order]
    known = np.searchsorted(start, log.ready_s[part], side="left")
    total = np.append(0.0, np.add.accumulate(wait))
    run_curves = {"mean": total[known] / np.maximum(known, 1), "last": np.where(known > 0, wait[known - 1], 0.0)}
    return {name: each[:, None] for name, each in run_curves.items()}
