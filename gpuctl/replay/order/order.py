"""Policies that put jobs into an order, told to the compiled pass of ``list_kernel`` as numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.replay.engine.state import ANY, CONSOLIDATE, FILL, SPREAD
from gpuctl.replay.order import list_kernel
from gpuctl.replay.order import order_kernel as ok
from gpuctl.replay.order.waiting_kernel import Queue, empty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Floats, Workload

PLACEMENTS = {"any": ANY, "consolidate": CONSOLIDATE, "spread": SPREAD, "fill": FILL}


@dataclass(frozen=True)
class Order:
    """How a policy orders jobs and whom it may stop.

    Attributes:
        rule: ``BY_RANK`` …, see ``order_kernel``.
        inner: order inside a level.
        rank: (jobs) for ``BY_RANK`` and ``BY_SHARE``.
        weight: (jobs) factor of the remaining time.
        how: (jobs) placement.
        preempts: running jobs may lose their GPUs.
        strict: the first job that does not fit keeps all others waiting.
        waiting_first: of two jobs alike, the one that waits goes before the one that runs.
        by_gpus: service is GPU-seconds, not seconds.
        quantum: seconds between passes while jobs wait; 0: at events only.
        tick: demotions at whole multiples of so many seconds; 0: to the instant.
        promote: starvation: multiple of its run time that a job waits before it goes to the first level; 0: never.
        limits: service at which a job leaves each level but the last.
        samples: services of past jobs.
        weights: of the queues or users among which GPUs are shared.
        queue_limit: GPUs that each queue may hold.
        by_queue: jobs of one queue start strictly in order, whatever their sizes.
        span: seconds of a round; 0: none.
        patience: turns that jobs are given to get further than these cost; 0: any number.
    """

    rule: int
    rank: Floats
    how: NDArray[np.int64]
    inner: int = ok.BY_SUBMIT
    weight: Floats | None = None
    preempts: bool = False
    strict: bool = False
    waiting_first: bool = False
    by_gpus: bool = True
    quantum: float = 0.0
    tick: float = 0.0
    promote: float = 0.0
    limits: tuple[float, ...] = ()
    samples: Floats = field(default_factory=lambda: np.zeros(0))
    weights: Floats | None = None
    queue_limit: Floats | None = None
    by_queue: bool = False
    span: float = 0.0
    patience: int = 0


class ListProgram:
    """Runs an `Order` on one simulation."""

    def __init__(self, queue: Queue, rules: ok.Rules) -> None:
        self._queue = queue
        self._rules = rules

    def advance(self, state: State, until: float, steps: int) -> int:
        """Go on for so many instants."""
        return int(list_kernel.run(state, self._queue, self._rules, until, steps))

    def copy(self) -> ListProgram:
        """The same with a memory of its own."""
        return ListProgram(self._queue.copy(), self._rules.copy())


def rest_of(workload: Workload) -> Floats:
    """Seconds of a job's later segments, by segment."""
    ends = np.append(0.0, np.add.accumulate(workload.segment_s))
    owner = np.repeat(np.arange(workload.size), np.diff(workload.segment_start))
    last = np.arange(owner.size) == workload.segment_start[1:][owner] - 1
    return np.where(last, 0.0, ends[workload.segment_start[1:]][owner] - ends[1:])


def list_program(order: Order, workload: Workload, state: State) -> ListProgram:
    """Make the program of an order; sets the state's rounds and queue limits."""
    n, servers = workload.size, state.servers.size
    most = int(state.g[0].total)
    p = records(1, ok.RULES)
    p.rule, p.inner, p.preempts, p.strict = order.rule, order.inner, order.preempts, order.strict
    p.ties, p.by_gpus = order.waiting_first, order.by_gpus
    p.quantum, p.tick, p.promote = order.quantum, order.tick, order.promote
    jobs = state.jobs
    # running jobs all come nearer to their ends at one second a second: then their order never changes
    alike = state.g[0].typed == 0 and bool(
        (jobs.speed0 == 1).all() and (jobs.speed1 == 1).all() and (jobs.speed2 == 1).all()
    )
    p.fixed = (
        order.rule == ok.BY_REMAINING
        and order.weight is None
        and alike
        and not jobs.resume.any()
        and workload.predicted is None
    )
    state.g.span, state.g.patience = order.span, order.patience
    if order.queue_limit is not None:
        state.queue_limit[: order.queue_limit.size] = order.queue_limit
    group = _groups(order, state)
    levels = len(order.limits) + 1 if order.rule == ok.BY_LEVEL else 1
    queue = empty(group * levels, (int(group.max(initial=0)) + 1) * levels)
    samples = np.sort(order.samples)
    rules = ok.Rules(
        p=p,
        rank=order.rank.astype(np.float64),
        weight=np.ones(n) if order.weight is None else order.weight.astype(np.float64),
        rest=rest_of(workload),
        bias=workload.run_time - workload.true_run_time,
        how=order.how,
        limits=np.array(order.limits, np.float64),
        samples=samples,
        above=np.append(np.add.accumulate(samples[::-1])[::-1], 0.0),
        weights=np.ones(state.share_used.size) if order.weights is None else order.weights,
        base=np.zeros(n),
        run=np.zeros(n + 64, np.int64),
        run_level=np.zeros(n + 64, np.int64),
        run_key=np.zeros(n + 64),
        run_tie=np.zeros(n + 64, np.int64),
        run_gpus=np.zeros(n + 64, np.int64),
        claim_server=np.zeros(2 * most + servers + 64, np.int64),
        claim_gpus=np.zeros(2 * most + servers + 64, np.int64),
        later=np.zeros(n + 64, np.int64),
        later_end=np.zeros(n + 65, np.int64),
        lost=np.zeros(n + 64, np.int64),
        parting=np.zeros(n + 64, np.int64),
        coming=np.zeros(servers, np.int64),
        held=np.zeros(servers, np.int64),
        risen=np.zeros(servers, np.int64),
        n=np.zeros(4, np.int64),
    )
    return ListProgram(queue, rules)


def placements(workload: Workload, own: str, override: str | None) -> NDArray[np.int64]:
    """The placement of every job: the policy's own, or the one that was asked for."""
    return np.full(workload.size, PLACEMENTS[override or own], np.int64)


def _groups(order: Order, state: State) -> NDArray[np.int64]:
    """Number the groups of jobs that differ in nothing that decides whether they fit."""
    jobs = state.jobs
    if order.by_queue:
        return np.asarray(jobs.queue, np.int64)
    parts = [jobs.gpus.astype(np.int64), order.how.astype(np.int64), _ids(jobs.mask)]
    if state.g[0].resources:
        parts += [np.asarray(state.asks[name], np.int64) for name in ("units", "cpu", "mem")]
    if order.rule == ok.BY_SHARE:
        parts.append(jobs.share.astype(np.int64))
    if order.queue_limit is not None:
        parts.append(jobs.queue.astype(np.int64))
    group = np.zeros(jobs.size, np.int64)
    for part in parts:
        _, group = np.unique(group * (int(part.max(initial=0)) + 1) + part, return_inverse=True)
    return group.reshape(-1)


def _ids(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)
