"""Policies that put jobs into an order: parts that are put together, told to the compiled pass of ``list_kernel``.

An order says what ranks, where a gang goes, and either what may start past the head of the queue (`NonPreemptive`) or
when running and waiting jobs are compared (`Preemptive`). What one of them alone can do only that one has.
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
"""What a job has got: GPU-seconds, or seconds on GPUs."""

# ---- what ranks, whether running jobs may lose their GPUs or not


@dataclass(frozen=True)
class FixedRank:
    """A number that a job keeps: the lowest goes first, of equal ones the earlier row.

    Attributes:
        rank: of each job [jobs].
    """

    rank: Floats

    def kernel_fields(self) -> dict[str, Any]:
        """What the compiled pass is told of it: fields of `RULES` and of `Rules`."""
        return {"rule": ok.BY_RANK, "rank": self.rank}


@dataclass(frozen=True)
class LeastShare:
    """The first job of the queue or user that holds the fewest GPUs for its weight; which of the two, `State` says.

    Attributes:
        weights: of the queues or users [as `State.share_used`].
    """

    weights: Floats

    def kernel_fields(self) -> dict[str, Any]:
        """See `FixedRank.fields`."""
        return {"rule": ok.BY_SHARE, "weights": self.weights}


class BackfillRule(Enum):
    """What may start past the first job in the order, where that one does not fit."""

    NOBODY = "nobody"
    ANY_THAT_FITS = "whoever fits"
    HEADS_OF_OTHER_QUEUES = "heads of other queues"


# ---- what ranks, where running jobs may lose their GPUs


@dataclass(frozen=True)
class LeastRemaining:
    """The least remaining run time.

    Attributes:
        weight: factor of a job's remaining time [jobs]; None: 1.
        waiting_first: of two jobs alike, the one that waits goes before the one that runs.
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
        service: what that is.
    """

    service: Service

    def kernel_fields(self) -> dict[str, Any]:
        """See `FixedRank.fields`."""
        return {"rule": ok.BY_SERVICE, "by_gpus": self.service == "gpu-time"}


class Inside(Enum):
    """Which job of a level goes first: by first start, by submission, or as in a list whose running jobs stay ahead."""

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
        service: what that is.
        inside: which job of a level goes first.
        promote: starvation: multiple of its run time that a job waits before it goes to the first level; 0: never.
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


# ---- when they are compared


@dataclass(frozen=True)
class Quantum:
    """At every event, and so many seconds after the last comparison while jobs wait."""

    seconds: float


@dataclass(frozen=True)
class Rounds:
    """At whole multiples of so many seconds, and at nothing else; `seconds` is above 0."""

    seconds: float


# ---- orders


@dataclass(frozen=True)
class NonPreemptive:
    """Waiting jobs start in an order; who runs keeps its GPUs.

    Attributes:
        ranks: what goes first.
        past_head: what may start past the first job in the order, where that one does not fit.
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
    """Running and waiting jobs stand in one order, and those that come too late in it lose their GPUs.

    A waiting job that would not fit even so is skipped.

    Attributes:
        ranks: what goes first.
        placement: where each gang goes [jobs], see `placements`.
        compares: when; None: at every event.
        patience: turns that jobs are given to get further than these cost; 0: any number.
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
    # for those who write policies without a checker of types
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
    p.fixed = _all_fall_alike(order, workload, state)
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


def _all_fall_alike(order: Order, workload: Workload, state: State) -> bool:
    """Whether remaining times of running jobs all fall by one second a second, so that their order never changes."""
    jobs = state.jobs
    alike = state.g[0].typed == 0 and bool(
        (jobs.speed0 == 1).all() and (jobs.speed1 == 1).all() and (jobs.speed2 == 1).all()
    )
    fields = isinstance(order.ranks, LeastRemaining) and order.ranks.weight is None and workload.predicted is None
    return fields and alike and not jobs.resume.any()


def placements(workload: Workload, own: str, override: str | None) -> NDArray[np.int64]:
    """The placement of every job: the policy's own, or the one that was asked for."""
    return np.full(workload.size, placement_number(override or own), np.int64)


def _groups(order: Order, state: State) -> NDArray[np.int64]:
    """Number the groups of jobs that differ in nothing that decides whether they fit."""
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
