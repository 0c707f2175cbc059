"""Draws futures, replays them on clusters of different sizes, and finds the sizes that meet a goal."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from gpuctl.capacity import demand, futures
from gpuctl.capacity.demand import PERIOD, Forecast, Weeks
from gpuctl.capacity.sizes import MOST_TIMES, Kind, least, resized, without
from gpuctl.core.errors import InputError
from gpuctl.replay.inputs.check import unplaceable
from gpuctl.replay.inputs.transforms import take
from gpuctl.replay.run import compile_for, replay
from gpuctl.spread.engine import LOCAL
from gpuctl.spread.run import run as spread_on

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpuctl.capacity.goal import Goal
    from gpuctl.replay.models.records import Cluster, Floats, Ints, Workload
    from gpuctl.spread.engine import Engine

ALL = "all"
"""Scope of the jobs of every queue."""
FEW_JOBS = 10_000
"""Jobs of all first replays together below which one process is faster than starting a second."""
CURVE = 9
"""Sizes at which every future is replayed."""
SHARE = 0.9
"""Share of the futures in which the upper end of the range of sizes meets the goal."""


@dataclass(frozen=True)
class Question:
    """What is planned.

    Attributes:
        goal: bound on waits.
        queue: only the jobs of this queue must meet it; None: all jobs.
        by_queue: the jobs of each queue must meet it.
        draws: number of futures.
        seed: decides which.
        removed: numbers of the nodes whose removal is weighed; None: none.
        kind: of nodes to add or to remove.
    """

    goal: Goal
    queue: str | None
    by_queue: bool
    draws: int
    seed: int
    kind: Kind
    removed: Ints | None = None


@dataclass(frozen=True)
class Time:
    """A time for which sizes are sought.

    Attributes:
        weeks: after the end of the trace; 0: now.
        demand: GPU-hours a week of each future; NaN: as drawn.
    """

    weeks: int
    demand: Floats


@dataclass(frozen=True)
class Base:
    """What all futures have in common.

    Attributes:
        workload: jobs of the trace.
        weeks: its weeks.
        cluster: the present nodes.
        policy: with its parameters.
        models: as `gpuctl.replay.run.replay` takes them.
        question: what is planned.
        times: now, and the horizon.
    """

    workload: Workload
    weeks: Weeks
    cluster: Cluster
    policy: tuple[str, dict[str, str]]
    models: dict[str, Any]
    question: Question
    times: tuple[Time, ...]

    @property
    def by_weeks(self) -> bool:
        """Whether futures are drawn from weeks, not from days."""
        return self.weeks.count >= futures.LEAST_BLOCKS

    @property
    def scopes(self) -> tuple[str, ...]:
        """Which jobs must meet the goal: all, one queue's, or those of each queue."""
        if self.question.queue is not None:
            return (self.question.queue,)
        queues = np.unique(self.workload.queue).tolist() if self.question.by_queue else []
        return (ALL, *(self.workload.queues[at] for at in queues))

    def limits(self) -> tuple[int, int]:
        """Fewest and most nodes to add."""
        kind, total = self.question.kind, self.cluster.total_gpus
        fewest = -min(kind.count, (total - 1) // kind.gpus)
        return fewest, max(1, math.ceil((MOST_TIMES - 1) * total / kind.gpus))


Values = dict[int, dict[str, float]]
"""By nodes added, and by scope: the figure that the goal bounds."""


@dataclass(frozen=True)
class Draw:
    """One future on clusters of several sizes.

    Attributes:
        gpu_h: GPU-hours a week that it asks for.
        jobs: number of jobs that count.
        values: at each size that was replayed.
        least: fewest nodes to add at which the goal is met, by scope; inf: at no size.
        removed: the figures without the nodes of `Question.removed`.
    """

    gpu_h: float
    jobs: int
    values: Values
    least: dict[str, float] = field(default_factory=dict)
    removed: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """The result of a plan.

    Attributes:
        base: what was replayed.
        forecast: at the horizon; None: there is none. One that is too wide has no futures.
        draws: the futures of each time.
        grid: nodes added at which every future was replayed.
        too_large: jobs left out because the present nodes cannot hold them.
    """

    base: Base
    forecast: Forecast | None
    draws: tuple[tuple[Draw, ...], ...]
    grid: tuple[int, ...]
    too_large: int

    def needed(self, time: int, scope: str) -> tuple[float, float, float]:
        """Nodes to add: 10 %, half and 90 % of the futures meet the goal with them; inf: at no size sought."""
        sizes = np.sort([draw.least[scope] for draw in self.draws[time]])
        count = sizes.size
        ranks = (max(math.floor((1 - SHARE) * (count + 1)), 1), math.ceil(count / 2), math.ceil(SHARE * (count + 1)))
        low, middle, high = (float(sizes[min(rank, count) - 1]) for rank in ranks)
        return low, middle, high

    def values(self, time: int, scope: str, more: int) -> Floats:
        """The figure of each future at a size of the grid; NaN in futures without jobs of the scope."""
        return np.array([draw.values[more][scope] for draw in self.draws[time]])


def plan(
    workload: Workload,
    cluster: Cluster,
    policy: tuple[str, dict[str, str]],
    question: Question,
    *,
    weeks_ahead: int,
    models: Mapping[str, Any],
    engine: Engine,
    progress: Callable[[str, int, int], None],
    notify: Callable[[str], None],
) -> Found:
    """Find how many nodes meet a goal now and at a horizon.

    Args:
        workload: jobs of the trace.
        cluster: the present nodes; outages in it are left out, since futures are at other times.
        policy: with its parameters.
        question: what is planned.
        weeks_ahead: the horizon; 0: only now.
        models: as `gpuctl.replay.run.replay` takes them.
        engine: where replays run.
        progress: called with what is done, the number of futures that are, and that of all.
        notify: called with a line for the user.

    Raises:
        InputError: no job can be planned with.
    """
    resources = models.get("resources", ("gpu",))
    cluster = dataclasses.replace(cluster, down=None)
    large = unplaceable(workload, cluster, resources)
    weeks = demand.weeks_of(workload)
    workload = take(workload, np.setdiff1d(np.arange(workload.size), large)) if large.size else workload
    if not workload.size:
        raise InputError("every job is larger than the nodes", hint="--cluster gives other nodes")
    ahead = demand.forecast(weeks, weeks_ahead) if weeks_ahead else None
    base = Base(workload, weeks, cluster, policy, dict(models), question, _times(weeks, ahead, question))
    compile_for(workload, cluster, [policy], workload.size * question.draws, notify=notify, **models)
    count = question.draws * len(base.times)
    if engine.kind == LOCAL and engine.processes is None and _jobs_of_a_draw(base) * count < FEW_JOBS:
        engine = dataclasses.replace(engine, processes=1)

    def spread(tasks: dict[str, tuple[int, int, tuple[int, ...]]], what: str) -> dict[str, Draw]:
        done: dict[str, Draw] = {}
        progress(what, 0, len(tasks))
        for key, draw in spread_on(_work, base, tasks, engine, notify):
            done[key] = draw
            progress(what, len(done), len(tasks))
        return done

    keys = {f"{time} {number}": (time, number) for time in range(len(base.times)) for number in range(question.draws)}
    first = spread({key: (*at, ()) for key, at in keys.items()}, "futures at several sizes")
    draws = tuple(tuple(first[f"{time} {n}"] for n in range(question.draws)) for time in range(len(base.times)))
    found = Found(base, ahead, draws, (), int(large.size))
    grid = _grid(found)
    missing = {key: (*at, tuple(k for k in grid if k not in first[key].values)) for key, at in keys.items()}
    more = spread({key: task for key, task in missing.items() if task[2]}, "futures at the sizes of the curve")
    filled = tuple(
        tuple(
            dataclasses.replace(draw, values=draw.values | more[f"{time} {n}"].values)
            if f"{time} {n}" in more
            else draw
            for n, draw in enumerate(each)
        )
        for time, each in enumerate(draws)
    )
    return dataclasses.replace(found, draws=filled, grid=grid)


def _jobs_of_a_draw(base: Base) -> int:
    if not base.by_weeks:
        return base.workload.size
    return int(base.workload.size / base.weeks.count * (PERIOD + 1))


def _times(weeks: Weeks, ahead: Forecast | None, question: Question) -> tuple[Time, ...]:
    """Now, with the demand of the last weeks, and the horizon, with demands spread over the forecast."""
    now = float(weeks.gpu_h[-PERIOD:].mean()) if weeks.count >= futures.LEAST_BLOCKS else math.nan
    times = [Time(0, np.full(question.draws, now))]
    if ahead is not None and not ahead.too_wide:
        shares = (np.arange(question.draws) + 0.5) / question.draws
        shares = np.random.default_rng([question.seed, 1]).permutation(shares)
        spread = stats.t.ppf(shares, ahead.freedom) * ahead.spread
        times.append(Time(ahead.horizon, ahead.middle * np.exp(spread)))
    return tuple(times)


def _work(base: Base, task: tuple[int, int, tuple[int, ...]]) -> Draw:
    """Replay one future: at the given sizes, or without any, at those that the search for the least one visits."""
    time, number, sizes = task
    jobs, begin = _future(base, time, number)
    counted = jobs.submit >= begin
    run = _Sizes(base, jobs, counted)
    span = float(base.weeks.count and (PERIOD + 1)) if base.by_weeks else 1.0
    gpu_h = float((jobs.true_run_time * jobs.gpus).sum()) / 3600 / span
    draw = Draw(gpu_h, int(counted.sum()), run.values)
    if sizes:
        for more in sizes:
            run.at(more)
        return draw
    low, high = base.limits()
    step = max(1, base.cluster.total_gpus // base.question.kind.gpus // 16)
    found = {
        scope: least(lambda more, scope=scope: run.met(more, scope), low, high, step)  # type: ignore[misc]
        for scope in base.scopes
    }
    gone: dict[str, float] = {}
    if base.question.removed is not None:
        run.at(0)
        gone = run.replayed(without(base.cluster, base.question.removed))
    return dataclasses.replace(draw, least=found, removed=gone)


def _future(base: Base, time: int, number: int) -> tuple[Workload, float]:
    """The jobs of a future, and the second from which they count: those before it fill the empty cluster."""
    question = base.question
    if not base.by_weeks:
        drawn = np.random.default_rng([question.seed, 2, number]).integers(2**31)
        jobs = futures.short_future(base.workload, int(drawn))
        return jobs, float(np.quantile(jobs.submit, 0.2))
    # the same weeks now and at the horizon: they differ by demand alone
    rng = np.random.default_rng([question.seed, 2, number])
    jobs = futures.future(base.workload, base.weeks, float(base.times[time].demand[number]), PERIOD + 1, rng)
    return jobs, demand.WEEK_S


class _Sizes:
    """Replays of one future on clusters of several sizes, each once."""

    def __init__(self, base: Base, jobs: Workload, counted: np.ndarray) -> None:
        self._base = base
        self._jobs = jobs
        self._counted = counted
        self.values: Values = {}

    def met(self, more: int, scope: str) -> bool:
        """Whether the goal is met with more nodes; a future without jobs of the scope meets it."""
        value = self.at(more)[scope]
        return math.isnan(value) or value <= self._base.question.goal.most

    def at(self, more: int) -> dict[str, float]:
        """The figure of each scope with more nodes."""
        if more not in self.values:
            self.values[more] = self.replayed(resized(self._base.cluster, self._base.question.kind, more))
        return self.values[more]

    def replayed(self, cluster: Cluster) -> dict[str, float]:
        """The figure of each scope on a cluster; inf if a job fits on none of its nodes."""
        base = self._base
        if unplaceable(self._jobs, cluster, base.models.get("resources", ("gpu",))).size:
            return dict.fromkeys(base.scopes, math.inf)
        [outcome] = replay(self._jobs, cluster, [base.policy], processes=1, **base.models)
        start = outcome.jobs["start_s"].fill_null(math.inf).to_numpy().astype(np.float64)
        waits = np.nan_to_num(start, nan=math.inf, posinf=math.inf) - self._jobs.submit
        goal, names = base.question.goal, self._jobs.queues
        return {
            scope: goal.of(
                waits[self._counted if scope == ALL else self._counted & (self._jobs.queue == names.index(scope))]
            )
            for scope in base.scopes
        }


def _grid(found: Found) -> tuple[int, ...]:
    """Sizes of the curve: evenly from the fewest to the most that any time needs, with those of the answer."""
    low, high = found.base.limits()
    ends = [0]
    for time in range(len(found.draws)):
        for scope in found.base.scopes:
            ends += [int(size) for size in found.needed(time, scope) if math.isfinite(size)]
    total = max(1, found.base.cluster.total_gpus // found.base.question.kind.gpus)
    unmet = any(math.isinf(draw.least[scope]) for each in found.draws for draw in each for scope in found.base.scopes)
    if unmet:
        ends.append(total)
    most = max(ends) + max(1, (max(ends) - min(ends)) // 4)
    steps = np.linspace(max(low, min(ends) - 1), min(high, most), CURVE).round().astype(int).tolist()
    return tuple(sorted({*ends, *steps}))


def twice(found: Found) -> int:
    """Nodes to add for twice the GPUs."""
    return max(1, found.base.cluster.total_gpus // found.base.question.kind.gpus)
