"""Forecasts of the waits of jobs: with the queue from a log, or from the job alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.notes import NONE, NamedValue, Note, literal, note
from gpuctl.core.numbers import number
from gpuctl.predictors import job_table
from gpuctl.waits import adaptive_quantiles, features, forward, learn, order_statistics, quantiles, run_times
from gpuctl.waits.queue_log import queue_names

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.waits.learn import Model
    from gpuctl.waits.queue_log import WaitLog

    Floats = NDArray[np.float64]

TOLD = {"p10_s": 0.1, "p50_s": 0.5, "p80_s": 0.8, "p90_s": 0.9}
"""Columns of the answer, and the levels that they are."""
NONE_ = "none"
STALE_S = 3600.0
"""Seconds after the last instant of a log from which its queue is no longer known."""


FOLLOWED = 3000
"""Jobs that came after the model's, the latest, by which levels are moved before they answer."""


@dataclass(frozen=True)
class Forecast:
    """The forecast of one job.

    Attributes:
        job: its name.
        at_s: its eligibility, on the model's clock; NaN: unknown.
        answers: seconds at each of `TOLD`; empty: no answer.
        method: one of `gpuctl.waits.learn.METHODS`, or ``none``.
        reason: reason for no answer, or for a limitation of it.
        waited_s: seconds already waited; NaN: the forecast is for its arrival.
        slurm_s: Slurm's own estimate of its wait; NaN: none.
    """

    job: str
    at_s: float
    answers: tuple[float, ...]
    method: str
    reason: Note = NONE
    waited_s: float = math.nan
    slurm_s: float = math.nan


def forecast(model: Model, jobs: pl.DataFrame, log: WaitLog | None = None) -> list[Forecast]:
    """Forecast how long jobs will wait after their eligibility.

    Args:
        model: trained or loaded.
        jobs: ``job`` and any of ``user``, ``queue``, ``gpus``, ``nodes``, ``time_limit_s``, ``submit_s`` (seconds of
            the model's clock from 1970 on; default: the last instant of the log).
        log: log of the cluster, up to now; a job submitted within it is forecast from what was known then. None: the
            queue is unknown.

    Returns:
        one per job, in the same order.
    """
    size = "gpus" if model.unit == "GPUs" else "nodes"
    now = log.taken_s if log is not None else None
    if "submit_s" not in jobs.columns:
        jobs = jobs.with_columns(submit_s=pl.lit(None, pl.Float64))
    jobs = jobs.with_columns(pl.col("submit_s").fill_null(now) if now is not None else pl.col("submit_s"))
    rows = job_table.describe(jobs, size=size, zone=model.zone, clock=model.clock)
    queues = started_queues(model, log)
    queries = rows.select("size", "time_limit_s", "queue").iter_rows()
    why = [unanswerable(model, size_, limit_s, queue, queues) for size_, limit_s, queue in queries]
    at = rows["submit_s"].to_numpy()
    first = log.ready_s[0] if log is not None else np.nan
    seen = (at >= first) & (at <= now + STALE_S) if now is not None else np.zeros(at.size, bool)
    answered = np.array([not each for each in why], bool)
    found = np.full((at.size, len(quantiles.ANSWERED)), np.nan)
    method = np.full(at.size, NONE_, object)
    if (seen & answered).any() and log is not None:
        mask = np.flatnonzero(seen & answered)
        found[mask], method[mask] = _with_queue(model, rows, at, mask, log)
    left = answered & np.isnan(found[:, 0])
    if left.any():
        found[left] = model.job_only.answer(features.of_jobs(rows.filter(pl.Series(left))))
        method[left] = learn.JOB_ONLY
    columns = [quantiles.ANSWERED.index(level) for level in TOLD.values()]
    result = []
    for k, job in enumerate(rows["job"].to_list()):
        reason = why[k] or (_blind(log, bool(seen[k])) if method[k] == learn.JOB_ONLY else NONE)
        answers = tuple(found[k, columns].tolist()) if answered[k] else ()
        result.append(Forecast(job, float(at[k]), answers, str(method[k]), reason))
    return result


def _with_queue(
    model: Model, rows: pl.DataFrame, at: Floats, which: NDArray[np.int64], log: WaitLog
) -> tuple[Floats, NDArray[np.object_]]:
    """Forecast the jobs whose queue is known, and return the method of each; NaN for no answer.

    If the model's method cannot simulate a job, as behind a very long queue, the trees alone are used.
    """
    order = which[np.argsort(at[which], kind="stable")]
    queries = rows[order.tolist()]
    jobs = log.ready_s.size
    found = np.empty((order.size, len(quantiles.ANSWERED)))
    if model.method == learn.BOUND:
        group, own = features.classes(log.rows) + 1, features.classes(queries) + 1
        # earlier queries decide how much of the past applies
        when = np.concatenate([log.ready_s, at[order]])
        merged = np.argsort(when, kind="stable")
        both = np.concatenate([group, own])[merged], np.concatenate([np.arange(jobs), np.full(own.size, jobs)])[merged]
        forecast_s = order_statistics.bounds(log.leave_s, log.wait_s, group, (when[merged], *both), quantiles.ANSWERED)
        found[merged[merged >= jobs] - jobs] = forecast_s[merged >= jobs]
    else:
        found = _followed(model, model.method, queries, at[order], log)
    method = np.full(order.size, model.method, object)
    left = np.flatnonzero(np.isnan(found[:, 0]))
    if left.size and model.method == learn.BLEND:
        found[left] = _followed(model, learn.BOOSTED, queries[left.tolist()], at[order[left]], log)
        method[left] = learn.BOOSTED
    # `which` ascends, so the order of the numbers is the order of its jobs
    own = np.argsort(order, kind="stable")
    return found[own], method[own]


def _followed(model: Model, method: str, queries: pl.DataFrame, at: Floats, log: WaitLog) -> Floats:
    """Return the answers of a method whose levels adapt to the jobs after its training data."""
    place = _own_places(log, queries, at)
    new = np.flatnonzero((log.ready_s > model.trained_s) & (log.started | np.isinf(log.leave_s)))[-FOLLOWED:]
    when = np.concatenate([log.ready_s[new], at])
    order = np.argsort(when, kind="stable")
    rows = pl.concat([log.rows[new.tolist()], queries.select(log.rows.columns)])[order.tolist()]
    seen = features.WaitQueries(rows, when[order], np.concatenate([new, place])[order])
    curves, group = queue_curves(model, method, log, seen)
    leave = np.concatenate([log.leave_s[new], np.full(at.size, np.inf)])[order]
    known = order < new.size
    answered = ~np.isnan(curves[0])
    times = when[order][answered], leave[answered]
    forecast_s = np.full((order.size, len(quantiles.ANSWERED)), np.nan)
    forecast_s[answered], _ = adaptive_quantiles.follow(
        curves[:, answered], times, model.levels[method], group[answered], known[answered]
    )
    found = np.empty((at.size, forecast_s.shape[1]))
    found[order[~known] - new.size] = forecast_s[~known]
    return found


def queue_curves(
    model: Model, method: str, log: WaitLog, queries: features.WaitQueries
) -> tuple[Floats, NDArray[np.int64]]:
    """Forecast jobs at their arrival by one method: curves [LEVELS, jobs], and a row of levels for each [jobs]."""
    wide = features.for_queries(log, queries)
    load = adaptive_quantiles.loads(log, queries.ready_s)
    if method == learn.BOOSTED:
        curves = model.boosted.curves(wide)
        return curves, adaptive_quantiles.groups(curves, load)
    run_curves = run_times.for_queries(model.run_times, log, queries)
    samples, plan = forward.for_queries(log, queries, model.order, run_curves=run_curves)
    simulated = forward.curves(samples)
    trees = model.blend.curves(np.concatenate([wide, forward.described(samples, plan)], axis=1))
    curves = forward.blended(trees, simulated)
    return curves, adaptive_quantiles.groups(curves, load)


def _own_places(log: WaitLog, queries: pl.DataFrame, at: Floats) -> NDArray[np.int64]:
    """Return each job's row in the log by name and instant, so that it does not wait for itself; else the row count."""
    known = {
        (job, when): k
        for k, (job, when) in enumerate(zip(log.rows["job"].to_list(), log.ready_s.tolist(), strict=True))
    }
    jobs = log.ready_s.size
    return np.array(
        [known.get((job, when), jobs) for job, when in zip(queries["job"].to_list(), at.tolist(), strict=True)]
    )


def started_queues(model: Model, log: WaitLog | None) -> frozenset[str]:
    """Return the queues in which jobs have started, according to the model and a current log."""
    return frozenset(model.queues) | frozenset(log.queues if log is not None else ())


def unanswerable(model: Model, size: float, limit_s: float, queue: str, queues: frozenset[str]) -> Note:
    """Return why a job cannot be forecast; empty if it can.

    Args:
        model: the model.
        size: size of the job, in the model's unit; NaN: unknown.
        limit_s: its time limit; NaN: unknown.
        queue: queue that it is submitted to; "": unknown.
        queues: queues in which jobs have started; empty: no names of queues are known.
    """
    if queues and queue and not queues.intersection(queue_names(queue)):
        return note("no job of queue {queue} has started before", queue=NamedValue("queue", queue))
    if np.isnan(size):
        return note("it is not known how many {unit} it asks for", unit=literal(model.unit))
    if size > model.largest:
        return note(
            "it asks for {size} {unit}; no job that started before asked for more than {largest}",
            size=literal(number(size)), unit=literal(model.unit), largest=literal(number(model.largest)),
        )  # fmt: skip
    if np.isnan(limit_s) and not model.unlimited:
        return note("its time limit is not known, and nearly all jobs learnt from had one")
    return NONE


def _blind(log: WaitLog | None, seen: bool) -> Note:
    if log is None:
        return note("the queue is not known: no log or store of now was named")
    if not seen:
        return note("the queue at that time is not known: it is not within the log, or more than an hour after it")
    return note("too few jobs like it have started")
