"""Forecasts for all waiting jobs: one set of simulations of the whole queue, next to Slurm's own estimates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.notes import Note, note
from gpuctl.predictors import job_table
from gpuctl.waits import adaptive_quantiles, features, forward, learn, quantiles, run_times
from gpuctl.waits.forecast import NONE_, TOLD, Forecast, started_queues, unanswerable
from gpuctl.waits.forward_kernel import HORIZON_S
from gpuctl.waits.queue_snapshot import CLOCK_S, LATER, on_clock, snapshot_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.waits.learn import Model
    from gpuctl.waits.queue_log import WaitLog
    from gpuctl.waits.queue_snapshot import QueuedJob, Snapshot

    Floats = NDArray[np.float64]

_COLUMNS = [quantiles.ANSWERED.index(level) for level in TOLD.values()]


def of_all(
    model: Model, log: WaitLog, snapshot: Snapshot | None = None, conf: Sequence[Path] = ()
) -> tuple[list[Forecast], tuple[Note, ...]]:
    """Forecast the waits of all jobs that wait at a log's last instant, from eligibility, elapsed wait included.

    Args:
        model: trained or loaded.
        log: log of the cluster, up to now, merged with the current queue, if any.
        snapshot: the current queue, with jobs that wait for other reasons, and Slurm's own estimates.
        conf: files of the site's configuration; empty: simulate in the model's order, on identical nodes.

    Returns:
        the forecasts, and notes on approximations of the configuration or the queue.
    """
    queued = {} if snapshot is None else {each.job: each for each in snapshot.waiting}
    runs, _ = run_times.for_queries(model.run_times, log)
    notes: tuple[Note, ...] = ()
    if not run_times.hold(log, runs):
        runs = run_times.nothing(log.ready_s.size)
        notes = (
            note(
                "The model's run times are off for the jobs that ended last: run times are drawn from the past alone. "
                "If that lasts, train a new model."
            ),
        )
    if conf:
        from gpuctl.waits.site_forward import of_waiting

        ruled = of_waiting(log, conf, model.order, runs)
        which, samples, notes = ruled.which, ruled.samples, (*notes, *ruled.notes)
    else:
        priority = _priorities(log.rows["job"].to_list(), queued)
        which, samples, _ = forward.of_waiting(
            log, model.order, priority, _nodes(model, log, snapshot), run_curves=runs
        )
    open_ = np.flatnonzero(~log.started & np.isinf(log.leave_s))
    load = np.repeat(adaptive_quantiles.loads(log, np.array([log.taken_s])), which.size)
    curves = forward.curves(samples)
    forecast_s = adaptive_quantiles.answers_at(
        curves, model.levels[learn.SIMULATED], adaptive_quantiles.groups(curves, load)
    )
    queues = started_queues(model, log)
    simulated = {int(j): k for k, j in enumerate(which.tolist())}
    names, found = log.rows["job"].to_list(), {}
    for j in open_.tolist():
        waited = log.taken_s - float(log.ready_s[j])
        k = simulated.get(j)
        size, limit = log.rows["size"][j], log.rows["time_limit_s"][j]
        queue = log.rows["queue"][j]
        why = unanswerable(model, size, math.nan if limit is None else limit, queue, queues)
        if not why and waited < -CLOCK_S:
            why = LATER
        elif not why and k is None:
            why = _no_place(size)
        elif not why and k is not None and samples[k, 0] >= HORIZON_S:
            why = note("it started within 30 days in none of the simulations")
        answers = () if why or k is None else tuple((waited + forecast_s[k, _COLUMNS]).tolist())
        method = learn.SIMULATED if answers else NONE_
        found[names[j]] = Forecast(names[j], float(log.ready_s[j]), answers, method, why, waited)
    if snapshot is None:
        return list(found.values()), notes
    return [_as_listed(each, found.get(each.job), snapshot) for each in snapshot.waiting], notes


def _priorities(jobs: Sequence[str], queued: Mapping[str, QueuedJob]) -> Floats | None:
    """Return Slurm's priorities (of a task, its array's), NaN for a job that does not wait; None if incomplete."""
    if not queued or any(each.priority is None for each in queued.values() if each.row is not None):
        return None
    of = {job: each.priority for job, each in queued.items()}
    return np.array([of.get(str(job).partition("_+")[0], math.nan) for job in jobs], np.float64)


def _nodes(model: Model, log: WaitLog, snapshot: Snapshot | None) -> int | None:
    """Return the number of nodes of the simulation that are up, if the snapshot states it."""
    if snapshot is None or snapshot.nodes is None:
        return None
    if model.unit == "nodes":
        return snapshot.nodes
    return max(math.ceil((snapshot.gpus or 0.0) / log.width), 1)


def _no_place(size: float) -> Note:
    if size == 0:
        return note("it asks for no GPUs; those of other jobs were learnt from")
    return note("it asks for more than there is")


def _as_listed(each: QueuedJob, answer: Forecast | None, snapshot: Snapshot) -> Forecast:
    """Return the forecast of a job of the queue, with its reasons and Slurm's estimate."""
    if answer is None:
        reason = each.reason or note("it is not in accounting, and the queue does not say enough about it")
        return Forecast(each.job, math.nan, (), NONE_, reason)
    reason = answer.reason
    if not reason and each.more:
        if each.row is not None and each.row["array_job"] is not None:
            reason = note("{n:,} further task{n||s} of its array wait, too: this is the first to start", n=each.more)
        else:
            reason = note("with its {n:,} further part{n||s}, which start with it", n=each.more)
    since = snapshot.taken_s - answer.waited_s
    slurm = math.nan if each.starts_s is None else max(each.starts_s, snapshot.taken_s) - since
    return Forecast(answer.job, answer.at_s, answer.answers, answer.method, reason, answer.waited_s, slurm)


def without_accounting(model: Model, snapshot: Snapshot) -> list[Forecast]:
    """Forecast from the jobs alone, given how long each has waited: neither the past nor run times are known."""
    clock = model.clock
    jobs = on_clock(snapshot, clock).unique("job", keep="first", maintain_order=True)
    size = "gpus" if model.unit == "GPUs" else "nodes"
    rows = {row["job"]: row for row in jobs.iter_rows(named=True)}
    listed = [each for each in snapshot.waiting if each.row is not None]
    blind = note("no accounting was named: how long jobs run here is not known, so the queue cannot be simulated")
    described = job_table.describe(
        pl.DataFrame([rows[each.job] for each in listed], schema=jobs.schema), size=size, zone=model.zone, clock=clock
    )
    curves = model.job_only.curves(features.of_jobs(described)) if listed else np.empty((len(quantiles.LEVELS), 0))
    now = snapshot_time(snapshot, clock)
    found = {}
    for k, each in enumerate(listed):
        row = described.row(k, named=True)
        why = unanswerable(model, row["size"], row["time_limit_s"], row["queue"], started_queues(model, None))
        eligible = rows[each.job]["eligible_s"]
        ready = row["submit_s"] if eligible is None or eligible > now else max(eligible, row["submit_s"])
        waited = max(now - ready, 0.0)
        answers: tuple[float, ...] = () if why else _beyond_elapsed(curves[:, k : k + 1], model.job_only.levels, waited)
        if not answers and not why:
            why = note("it has waited longer than such jobs did")
        found[each.job] = Forecast(each.job, ready, answers, learn.JOB_ONLY if answers else NONE_, why or blind, waited)
    return [_as_listed(each, found.get(each.job), snapshot) for each in snapshot.waiting]


def _beyond_elapsed(curve: Floats, levels: tuple[float, ...], waited_s: float) -> tuple[float, ...]:
    """Return quantiles of a wait that exceeds `waited_s`; empty: it exceeds nearly all."""
    grid, full = quantiles.whole(curve)
    passed = float(np.interp(math.log1p(waited_s), full[:, 0], grid)) if waited_s > 0 else 0.0
    if passed > max(quantiles.LEVELS):
        return ()
    levels_left = [passed + (1 - passed) * levels[k] for k in _COLUMNS]
    return tuple(np.maximum(np.expm1(np.interp(levels_left, grid, full[:, 0])), waited_s).tolist())
