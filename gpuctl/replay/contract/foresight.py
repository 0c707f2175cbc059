"""A check that no policy knows the future: the same past, another future, and the same decisions up to there."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.replay.inputs.transforms import gather

if TYPE_CHECKING:
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.models.records import Cluster, Ints, Outcome, Workload


def some_instant(draw: np.random.Generator, outcome: Outcome) -> float:
    """A second at which something was decided, or the one before all."""
    times = outcome.decisions["t_s"].unique().sort()
    return float(times[int(draw.integers(len(times)))]) if len(times) else 0.0


def other_future(
    draw: np.random.Generator,
    case: tuple[Workload, Cluster, Settings],
    instant: float,
    unfinished: Ints | None,
) -> tuple[Workload, Cluster, Settings]:
    """The same case with everything after an instant changed.

    Other jobs are submitted after it, more or fewer, with other gangs, users, queues, time limits and run times, and
    servers go down and come back at other times.

    Args:
        draw: draws what is changed.
        case: workload, cluster, settings.
        instant: second up to which, itself included, all stays as it is.
        unfinished: jobs that still run or wait then: they take longer. None: run times of jobs submitted before stay.
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
    if unfinished is not None:
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
    return new, _other_breakdowns(draw, cluster, instant), _of_jobs(settings, jobs, n)


def _of_jobs(settings: Settings, jobs: Ints, size: int) -> Settings:
    """What jobs cost and how fast they are, for some of them."""

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
    """The first decision up to an instant that is not the same in both; "" where there is none."""
    logs = [outcome.decisions.filter(pl.col("t_s") <= instant) for outcome in (one, two)]
    if logs[0].equals(logs[1]):
        return ""
    rows = [log.rows() for log in logs]
    at = next((k for k, (a, b) in enumerate(zip(*rows, strict=False)) if a != b), min(map(len, rows)))
    t, what, job, *_ = next(of[at] for of in rows if at < len(of))
    return f"{what} of {job or 'a server'} at {t:g}"
