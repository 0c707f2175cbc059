"""Checks that no policy knows the future: with the same past and another future, its decisions are the same."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.replay.inputs.transforms import gather
from gpuctl.replay.models.records import SHOWS, Failures

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.models.records import Cluster, Ints, Outcome, Workload


def some_instant(draw: np.random.Generator, outcome: Outcome) -> float:
    """A second with a decision, or one before all of them."""
    times = outcome.decisions["t_s"].unique().sort()
    return float(times[int(draw.integers(len(times)))]) if len(times) else 0.0


def other_future(
    draw: np.random.Generator,
    case: tuple[Workload, Cluster, Settings],
    instant: float,
    unfinished: Ints,
    *,
    run_times_known: bool,
    oracle: bool,
    record: bool = True,
) -> tuple[Workload, Cluster, Settings]:
    """The same case with everything after an instant changed.

    Other jobs are submitted after it, more or fewer, with other gangs, users, queues, time limits and run times, and
    nodes go down and come back at other times. The log's record of unfinished jobs (starts, places, final states, and
    whether and why they fail again) also changes.

    Args:
        draw: random generator.
        case: workload, cluster, settings.
        instant: second up to and including which nothing changes.
        unfinished: jobs that still run or wait then.
        run_times_known: run times of jobs submitted before stay; otherwise those of the unfinished ones are longer.
        oracle: jobs submitted before fail as often as before.
        record: whether the log's record changes.
    """
    workload, cluster, settings = case
    n = workload.size
    early = np.flatnonzero(workload.submit <= instant)
    like = np.sort(draw.integers(0, n, int(draw.integers(0, 2 * n + 2))))
    k = early.size
    jobs = np.concatenate([early, like])
    new = gather(workload, jobs)
    submit, limit, user = new.submit.copy(), new.time_limit.copy(), new.user.copy()
    submit[k:] = instant + np.sort(draw.uniform(0.001, 60.0, like.size))
    limit[k:] = draw.permutation(limit[k:])
    user[k:] = draw.integers(0, len(workload.users), like.size) if workload.users else -1
    seconds = new.segment_s.copy()
    seconds[new.segment_start[k] :] = draw.uniform(1.0, 60.0, seconds.size - int(new.segment_start[k]))
    if not run_times_known:
        last = new.segment_start[1:][np.flatnonzero(np.isin(early, unfinished))] - 1
        seconds[last] += draw.uniform(0.0, 60.0, last.size)
    place = np.full(n, -1, np.int64)
    place[early] = np.arange(k)
    depends = place[workload.depends]
    new = replace(
        new,
        ids=(*new.ids[:k], *(f"later{number}" for number in range(like.size))),
        submit=submit,
        eligible=np.concatenate([new.eligible[:k], submit[k:]]),
        time_limit=limit,
        user=user,
        app=np.concatenate([new.app[:k], np.arange(n, n + like.size)]),
        segment_s=seconds,
        depends=depends[(depends >= 0).all(axis=1)],
    )
    breakdowns = _other_breakdowns(draw, cluster, instant)
    settings = _of_jobs(settings, jobs, n)
    open_jobs = np.concatenate([np.isin(early, unfinished), np.ones(like.size, np.bool_)])
    if not oracle:
        new = _fails_again(draw, new, open_jobs)
    return _other_record(draw, new, breakdowns, open_jobs) if record else new, breakdowns, settings


def with_record(seed: int, case: tuple[Workload, Cluster, Settings]) -> tuple[Workload, Cluster, Settings]:
    """The same case with a trace's record: starts, places, final states, why attempts failed."""
    workload, cluster, settings = case
    draw = np.random.Generator(np.random.PCG64([seed, 7]))
    size = workload.segment_s.size
    bare = replace(
        workload,
        recorded_start=np.zeros(size),
        piece_start=np.arange(size + 1),
        piece_node=np.zeros(size, np.int64),
        piece_gpus=np.zeros(size, np.int64),
        failures=Failures(
            np.full(size, -1), np.full(size, -1), np.zeros(size), np.zeros(size, np.int64), np.zeros(size, np.bool_),
            ("an error", "another"), ("the job", "the machine"),
        ),
    )  # fmt: skip
    return _other_record(draw, bare, cluster, np.ones(workload.size, np.bool_)), cluster, settings


def _fails_again(draw: np.random.Generator, workload: Workload, jobs: NDArray[np.bool_]) -> Workload:
    """Let some of these jobs fail once or twice more, after their last segment."""
    w = workload
    more = np.where(jobs & (draw.random(w.size) < 0.5), draw.integers(1, 3, w.size), 0)
    counts = np.diff(w.segment_start)
    owner = np.repeat(np.arange(w.size), counts + more)
    within = _within(counts + more)
    # each job's segments, its last one repeated for each added failure
    took = w.segment_start[owner] + np.minimum(within, counts[owner] - 1)
    again, last = more[owner] > 0, within == (counts + more)[owner] - 1
    fails = np.where(again, ~last, w.segment_fails[took])
    seconds = np.where(within >= counts[owner], draw.uniform(1.0, 60.0, owner.size), w.segment_s[took])
    pieces = np.diff(w.piece_start)[took]
    rows = np.repeat(w.piece_start[took], pieces) + _within(pieces)
    return replace(
        w,
        segment_start=np.concatenate([[0], np.cumsum(counts + more)]),
        segment_s=seconds,
        segment_fails=fails,
        recorded_start=w.recorded_start[took],
        piece_start=np.concatenate([[0], np.cumsum(pieces)]),
        piece_node=w.piece_node[rows],
        piece_gpus=w.piece_gpus[rows],
        failures=None if w.failures is None else w.failures.of(took),
    )


def _within(counts: Ints) -> Ints:
    """0, 1, 2 … for each of several groups, one after the other."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)


def _other_record(draw: np.random.Generator, workload: Workload, cluster: Cluster, jobs: NDArray[np.bool_]) -> Workload:
    """The log's record of these jobs, redrawn; a workload without a record stays without."""
    w = workload
    if w.failures is None:
        return w
    counts = np.diff(w.segment_start)
    owner = np.repeat(np.arange(w.size), counts)
    some, size = jobs[owner], owner.size
    start = w.submit[owner] + 60 * _within(counts) + draw.uniform(0, 60, size)
    node = draw.integers(0, len(cluster.nodes), size)
    gpus = np.minimum(w.gpus[owner], cluster.gpus[node])
    reason = np.where(w.segment_fails, draw.integers(-1, 2, size), -1)
    known, f = reason >= 0, w.failures
    state = draw.choice(np.array(["completed", "failed", "killed"], object), w.size)
    return replace(
        w,
        recorded_start=np.where(some, start, w.recorded_start),
        # a log without places stays without
        piece_node=np.where(some, node, w.piece_node) if w.piece_node.size else w.piece_node,
        piece_gpus=np.where(some, gpus, w.piece_gpus) if w.piece_gpus.size else w.piece_gpus,
        state=tuple(np.where(jobs, state, np.array(w.state, object)).tolist()),
        failures=replace(
            f,
            reason=np.where(some, reason, f.reason),
            category=np.where(some, np.where(known, draw.integers(0, 2, size), -1), f.category),
            confidence=np.where(some, np.where(known, draw.random(size), 0.0), f.confidence),
            shows=np.where(some, draw.integers(0, len(SHOWS), size), f.shows),
            may_pass=np.where(some, draw.random(size) < 0.5, f.may_pass),
        ),
    )


def _of_jobs(settings: Settings, jobs: Ints, size: int) -> Settings:
    """Overheads and speeds of some jobs."""

    def taken(models: Any) -> Any:
        values = {field.name: getattr(models, field.name) for field in dataclasses.fields(models)}
        arrays = {k: v[jobs] for k, v in values.items() if isinstance(v, np.ndarray) and v.shape[:1] == (size,)}
        return replace(models, **arrays)

    return replace(settings, rates=taken(settings.rates), overhead=taken(settings.overhead))


def _other_breakdowns(draw: np.random.Generator, cluster: Cluster, instant: float) -> Cluster:
    if cluster.down is None:
        return cluster
    down = cluster.down.copy()
    later = draw.uniform(0.0, 30.0, (2, down.shape[0]))
    down[:, 1] += np.where(down[:, 1] > instant, later[0], 0.0)
    down[:, 2] = np.where(down[:, 2] > instant, np.maximum(down[:, 2], down[:, 1]) + later[1], down[:, 2])
    return replace(cluster, down=down)


def unfinished_at(outcome: Outcome, instant: float) -> Ints:
    """Jobs that have not ended by an instant."""
    ends = outcome.jobs["end_s"].fill_null(np.inf).to_numpy()
    return np.flatnonzero(ends > instant)


def differs(one: Outcome, two: Outcome, instant: float) -> str:
    """The first decision up to an instant that differs between both; "" if there is none."""
    logs = [outcome.decisions.filter(pl.col("t_s") <= instant) for outcome in (one, two)]
    if logs[0].equals(logs[1]):
        return ""
    rows = [log.rows() for log in logs]
    at = next((k for k, (a, b) in enumerate(zip(*rows, strict=False)) if a != b), min(map(len, rows)))
    t, what, job, *_ = next(of[at] for of in rows if at < len(of))
    return f"{what} of {job or 'a node'} at {t:g}"
