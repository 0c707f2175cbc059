"""Policies that order jobs: composable parts for the compiled pass of ``list_kernel``.

An order defines the rank, the placement, and either which jobs may start past the head of the queue (`NonPreemptive`)
or when running and waiting jobs are compared (`Preemptive`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gpuctl.compiled.bundles import records
from gpuctl.replay.engine.placements import placement_number
from gpuctl.replay.engine.program import CompiledProgram
from gpuctl.replay.order import list_kernel
from gpuctl.replay.order import order_kernel as ok
from gpuctl.replay.order.waiting_kernel import empty

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Floats, Workload

Service = Literal["gpu-time", "time"]
"""Attained service of a job: GPU-seconds, or seconds on GPUs."""

# ---- ranks with or without preemption


@dataclass(frozen=True)
class FixedRank:
    """A fixed number per job: the lowest goes first, ties go by row.

    Attributes:
        rank: of each job [jobs].
    """

    rank: Floats

    def kernel_fields(self) -> dict[str, Any]:
        """Its fields of `RULES` and `Rules` for the compiled pass."""
        return {"rule": ok.BY_RANK, "rank": self.rank}


@dataclass(frozen=True)
class LeastShare:
    """The first job of the tenant (queue or user, see `State`) with the fewest GPUs for its weight.

    Attributes:
        weights: of the queues or users [as `State.share_used`].
    """

    weights: Floats

    def kernel_fields(self) -> dict[str, Any]:
        """See `FixedRank.fields`."""
        return {"rule": ok.BY_SHARE, "weights": self.weights}


class BackfillRule(Enum):
    """Which jobs may start past the first job in the order if that one does not fit."""

    NOBODY = "nobody"
    ANY_THAT_FITS = "any that fits"
    HEADS_OF_OTHER_QUEUES = "heads of other queues"


# ---- ranks with preemption


@dataclass(frozen=True)
class LeastRemaining:
    """The least remaining run time.

    Attributes:
        weight: factor of a job's remaining time [jobs]; None: 1.
        waiting_first: of two equal jobs, the waiting one goes first.
    """

    weight: Floats | None = None
    waiting_first: bool = False

    def kernel_fields(self) -> dict[str, Any]:
        """See `FixedRank.fields`."""
        weight = {} if self.weight is None else {"weight": self.weight}
        return {"rule": ok.BY_REMAINING, "ties": self.waiting_first, **weight}


@dataclass(frozen=True)
class LeastService:
    """The least attained service.

    Attributes:
        service: its unit.
    """

    service: Service

    def kernel_fields(self) -> dict[str, Any]:
        """See `FixedRank.fields`."""
        return {"rule": ok.BY_SERVICE, "by_gpus": self.service == "gpu-time"}


class Inside(Enum):
    """Order within a level: by first start, by submission, or as in a list whose running jobs stay ahead."""

    FIRST_START = ok.BY_FIRST_START
    SUBMISSION = ok.BY_SUBMIT
    LIST = ok.BY_LIST

    def kernel_fields(self) -> dict[str, Any]:
        """See `FixedRank.fields`."""
        return {"inner": self.value}


@dataclass(frozen=True)
class Gittins:
    """Inside a level the job with the highest Gittins index goes first.

    Attributes:
        samples: services of past jobs.
    """

    samples: Floats

    def kernel_fields(self) -> dict[str, Any]:
        """See `FixedRank.fields`."""
        samples = np.sort(self.samples)
        return {
            "inner": ok.BY_GITTINS,
            "samples": samples,
            "above": np.append(np.add.accumulate(samples[::-1])[::-1], 0.0),
        }


@dataclass(frozen=True)
class Levels:
    """The highest level; a job falls from level to level as it gets service.

    Attributes:
        limits: service at which a job leaves each level but the last.
        service: its unit.
        inside: order within a level.
        promote: starvation: multiple of its run time that a job waits before it returns to the first level; 0: never.
        tick: demotions at multiples of this many seconds; 0: at once.
    """

    limits: tuple[float, ...]
    service: Service
    inside: Inside | Gittins
    promote: float = 0.0
    tick: float = 0.0

    def kernel_fields(self) -> dict[str, Any]:
        """See `FixedRank.fields`."""
        return {
            "rule": ok.BY_LEVEL,
            "by_gpus": self.service == "gpu-time",
            "promote": self.promote,
            "tick": self.tick,
            "limits": np.array(self.limits, np.float64),
            **self.inside.kernel_fields(),
        }


# ---- times of comparison


@dataclass(frozen=True)
class Quantum:
    """At every event, and `seconds` after the last comparison while jobs wait."""

    seconds: float


@dataclass(frozen=True)
class Rounds:
    """Only at whole multiples of `seconds`, which is above 0."""

    seconds: float


# ---- orders


@dataclass(frozen=True)
class NonPreemptive:
    """Waiting jobs start in an order; running jobs keep their GPUs.

    Attributes:
        ranks: the rank.
        past_head: which jobs may start past the first one if that does not fit.
        placement: where each gang goes [jobs], see `placements`.
        queue_limit: GPUs that each queue may hold; None: any number.
    """

    ranks: FixedRank | LeastShare
    past_head: BackfillRule
    placement: NDArray[np.int64]
    queue_limit: Floats | None = None

    def __post_init__(self) -> None:
        _check(self.ranks, FixedRank, LeastShare)

    def kernel_fields(self) -> dict[str, Any]:
        """See `FixedRank.fields`."""
        return {**self.ranks.kernel_fields(), "strict": self.past_head is BackfillRule.NOBODY}


@dataclass(frozen=True)
class Preemptive:
    """Running and waiting jobs are in one order; running jobs too late in it lose their GPUs.

    A waiting job that would still not fit is skipped.

    Attributes:
        ranks: the rank.
        placement: where each gang goes [jobs], see `placements`.
        compares: times of comparison; None: at every event.
        patience: turns allowed before they must pay for their cost; 0: any number.
    """

    ranks: FixedRank | LeastRemaining | LeastService | Levels
    placement: NDArray[np.int64]
    compares: Quantum | Rounds | None = None
    patience: int = 0

    def __post_init__(self) -> None:
        _check(self.ranks, FixedRank, LeastRemaining, LeastService, Levels)

    def kernel_fields(self) -> dict[str, Any]:
        """See `FixedRank.fields`."""
        quantum = self.compares.seconds if isinstance(self.compares, Quantum) else 0.0
        return {**self.ranks.kernel_fields(), "preempts": True, "quantum": quantum}


Order = NonPreemptive | Preemptive


def _check(ranks: object, *kinds: type) -> None:
    # for authors of policies without a type checker
    if not isinstance(ranks, kinds):
        raise TypeError(
            f"{type(ranks).__name__} ranks no such order: expected {' or '.join(k.__name__ for k in kinds)}"
        )


def rest_of(workload: Workload) -> Floats:
    """Seconds of a job's later segments, by segment."""
    ends = np.append(0.0, np.add.accumulate(workload.segment_s))
    owner = np.repeat(np.arange(workload.size), np.diff(workload.segment_start))
    last = np.arange(owner.size) == workload.segment_start[1:][owner] - 1
    return np.where(last, 0.0, ends[workload.segment_start[1:]][owner] - ends[1:])


def list_program(order: Order, workload: Workload, state: State) -> CompiledProgram:
    """Make the program of an order; sets the state's rounds, patience and queue limits."""
    n, nodes = workload.size, state.nodes.size
    most = int(state.g[0].total)
    fields = order.kernel_fields()
    p = records(1, ok.RULES)
    for name in set(ok.RULES.names or ()) & fields.keys():
        p[name] = fields.pop(name)
    p.fixed = _remaining_falls_equally(order, workload, state)
    if isinstance(order, Preemptive):
        state.g.span = order.compares.seconds if isinstance(order.compares, Rounds) else 0.0
        state.g.patience = order.patience
    elif order.queue_limit is not None:
        state.queue_limit[: order.queue_limit.size] = order.queue_limit
    group = _groups(order, state)
    levels = len(order.ranks.limits) + 1 if isinstance(order.ranks, Levels) else 1
    queue = empty(group * levels, (int(group.max(initial=0)) + 1) * levels)
    arrays = {
        "rank": np.arange(n),
        "weight": np.ones(n),
        "limits": np.zeros(0),
        "samples": np.zeros(0),
        "above": np.zeros(1),
        "weights": np.ones(state.share_used.size),
        **fields,
    }
    rules = ok.Rules(
        p=p,
        rest=rest_of(workload),
        bias=workload.run_time - workload.true_run_time,
        how=order.placement,
        base=n,
        run=n + 64,
        run_level=n + 64,
        run_key=n + 64,
        run_tie=n + 64,
        run_gpus=n + 64,
        claim_node=2 * most + nodes + 64,
        claim_gpus=2 * most + nodes + 64,
        later=n + 64,
        later_end=n + 65,
        lost=n + 64,
        parting=n + 64,
        coming=nodes,
        held=nodes,
        risen=nodes,
        n=4,
        **arrays,
    )
    return CompiledProgram(list_kernel.run, (queue, rules))


def _remaining_falls_equally(order: Order, workload: Workload, state: State) -> bool:
    """Whether remaining times of running jobs all fall by one second per second, so that their order never changes."""
    jobs = state.jobs
    alike = state.g[0].typed == 0 and bool(
        (jobs.speed0 == 1).all() and (jobs.speed1 == 1).all() and (jobs.speed2 == 1).all()
    )
    fields = isinstance(order.ranks, LeastRemaining) and order.ranks.weight is None and workload.predicted is None
    return fields and alike and not jobs.resume.any()


def placements(workload: Workload, own: str, override: str | None) -> NDArray[np.int64]:
    """The placement of every job: the policy's own, or the requested one."""
    return np.full(workload.size, placement_number(override or own), np.int64)


def _groups(order: Order, state: State) -> NDArray[np.int64]:
    """Number the groups of jobs that are identical for placement."""
    jobs = state.jobs
    if isinstance(order, NonPreemptive) and order.past_head is BackfillRule.HEADS_OF_OTHER_QUEUES:
        return np.asarray(jobs.queue, np.int64)
    parts = [jobs.gpus.astype(np.int64), order.placement.astype(np.int64), _ids(jobs.mask)]
    if state.g[0].resources:
        parts += [np.asarray(state.asks[name], np.int64) for name in ("units", "cpu", "mem")]
    if isinstance(order.ranks, LeastShare):
        parts.append(jobs.share.astype(np.int64))
    if isinstance(order, NonPreemptive) and order.queue_limit is not None:
        parts.append(jobs.queue.astype(np.int64))
    group = np.zeros(jobs.size, np.int64)
    for part in parts:
        _, group = np.unique(group * (int(part.max(initial=0)) + 1) + part, return_inverse=True)
    return group.reshape(-1)


def _ids(values: NDArray[np.uint64]) -> NDArray[np.int64]:
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64)
