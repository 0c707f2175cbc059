"""Flat input and output data of a replay.

Times are seconds since the workload's ``origin``; GPUs are whole GPUs; arrays have one element per job or node, in the
order of their names. The data are independent of a workload's source and an outcome's use.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    import polars as pl
    from numpy.typing import NDArray

    from gpuctl.core.notes import Note
    from gpuctl.replay.models.decision_log import DecisionLog

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


SHOWS = ("one GPU", "several GPUs", "node or service", "not known")
"""How many GPUs show a failure."""


@dataclass(frozen=True)
class Failures:
    """Reasons of failed segments, from logs; arrays have one element per segment of a workload.

    Attributes:
        reason: number of its reason in ``reasons``; -1: it did not fail, or the reason is unknown.
        category: number of its possible origins in ``categories``; -1 as for ``reason``.
        confidence: probability that this is the reason, 0 to 1.
        shows: a number of `SHOWS`; on one GPU it shows as soon as on the whole gang.
        may_pass: a retry may get past it.
        reasons: names.
        categories: names.
    """

    reason: Ints
    category: Ints
    confidence: Floats
    shows: Ints
    may_pass: NDArray[np.bool_]
    reasons: tuple[str, ...]
    categories: tuple[str, ...]

    @property
    def shows_alone(self) -> NDArray[np.bool_]:
        """Whether the reason shows on one GPU."""
        return np.asarray((self.shows == 0) & (self.reason >= 0))

    def of(self, segments: Ints) -> Failures:
        """Select some segments."""
        return Failures(
            self.reason[segments],
            self.category[segments],
            self.confidence[segments],
            self.shows[segments],
            self.may_pass[segments],
            self.reasons,
            self.categories,
        )


@dataclass(frozen=True)
class Workload:
    """Jobs to replay, in order of submission; for ties, the row order decides.

    A job runs one *segment* after the other: the attempts recorded in a trace, of which all except the last ended in a
    failure; if unknown, a job is one segment. ``x_start[i]:x_start[i + 1]`` are the elements that belong to element
    ``i``.

    Attributes:
        name: where it came from, for headings.
        ids: the jobs' names.
        submit: seconds.
        eligible: seconds, not before ``submit``: until then a hold, a begin time or a dependency keeps the job out of
            the queue.
        gpus: the gang's size.
        queue: number of its queue in ``queues``.
        user: number of its user in ``users``; -1 unknown.
        time_limit: requested seconds of run time; NaN if none.
        gpu_type: number of the GPU type that it needs in ``gpu_types``; -1 any.
        app: number of the app that it belongs to; by default each job is its own.
        depends: (k, 2) job numbers: the first may start only after the second has ended.
        think: seconds from the end of each job's last dependency until it may enter the queue; None: 0 for all.
        segment_start: (jobs + 1).
        segment_s: seconds of run time on the recorded placement (at reference speed).
        segment_fails: whether the segment ends in a failure, after which the job queues again.
        recorded_start: seconds when each segment started in the trace; NaN unknown.
        piece_start: (segments + 1); the recorded placement of each segment, empty where not known.
        piece_node: node numbers of the cluster made from the same trace.
        piece_gpus: GPUs there.
        state: final state of each job in the trace, as ``gpuctl.core.states`` names it; "" unknown.
        queues: names.
        users: names.
        gpu_types: names.
        origin: the instant of second 0; None if the input has no calendar.
        notes: what was changed or left out while reading, with counts.
        predicted: seconds of run time of each job that policies see; None: the true ones.
        epochs: epochs of each job; NaN unknown; None: all unknown.
        checkpoint_bytes: of each job; NaN unknown; None: all unknown.
        planned: seconds that planning policies use as each job's time limit; NaN none; None: they use ``time_limit``.
            Jobs are always ended at ``time_limit``.
        cpus: CPUs that each job requests in total; NaN unknown; None: all unknown.
        mem_mb: MB of memory that each job requests in total; NaN unknown; None: all unknown.
        account: number of the account that each job is charged to in ``accounts``; -1 unknown; None: all unknown.
        accounts: names.
        qos: number of its quality of service in ``qos_names``; -1 unknown; None: all unknown. qos_names: names.
        min_nodes: least nodes that each job requests, or if not recorded, that it got; 0 unknown; None: all unknown.
        nice: its user's reduction of priority, as Slurm's ``--nice``; None: all unknown.
        job_class: number of its class in ``job_classes``: jobs of one class (such as a model) are equally fast on equal
            GPUs; -1 unknown; None: all unknown.
        job_classes: names.
        min_gpus: the fewest GPUs that each job can run on, at most ``gpus``; None: no job runs on fewer.
        max_gpus: the most, at least ``gpus``; None: no job runs on more.
        curve: number of its speed curve in ``curves``; -1: by the speed model; None: -1 for all.
        curves: of each, its speed on 1, 2, 3 … GPUs, in any unit; beyond its length the speed is constant.
        phase: number in ``phases`` of each job's change of speeds with progress; -1: ``curve`` holds throughout; None:
            -1 for all.
        phases: of each, pairs of the part of the work from which a curve holds (the first is 0) and its number in
            ``curves``.
        beyond: remaining seconds of each job when its search kills it, above 0 for killed jobs; None: none is killed.
        traits: given values of `gpuctl.replay.models.traits.TRAITS`, by name; NaN if absent.
        line: position of each job in its input; None: in order.
        failures: reasons of failed segments; None: unknown.
        deadline: of each job in seconds, on the clock of ``submit``; NaN: it has none; None: no job has one.
        checkpoint_s: seconds of work between the checkpoints that each job writes against failures; NaN: as the replay
            is set; None: that holds for all.
        own: columns of the input unknown to gpuctl, as text, one row per job, for policies; None: there are none.
    """

    name: str
    ids: tuple[str, ...]
    submit: Floats
    eligible: Floats
    gpus: Ints
    queue: Ints
    user: Ints
    time_limit: Floats
    gpu_type: Ints
    app: Ints
    depends: Ints
    segment_start: Ints
    segment_s: Floats
    segment_fails: NDArray[np.bool_]
    recorded_start: Floats
    piece_start: Ints
    piece_node: Ints
    piece_gpus: Ints
    state: tuple[str, ...]
    queues: tuple[str, ...]
    users: tuple[str, ...]
    gpu_types: tuple[str, ...]
    origin: datetime | None = None
    notes: tuple[Note, ...] = ()
    predicted: Floats | None = None
    epochs: Floats | None = None
    checkpoint_bytes: Floats | None = None
    planned: Floats | None = None
    cpus: Floats | None = None
    mem_mb: Floats | None = None
    account: Ints | None = None
    accounts: tuple[str, ...] = ()
    qos: Ints | None = None
    qos_names: tuple[str, ...] = ()
    min_nodes: Ints | None = None
    nice: Ints | None = None
    job_class: Ints | None = None
    job_classes: tuple[str, ...] = ()
    min_gpus: Ints | None = None
    max_gpus: Ints | None = None
    curve: Ints | None = None
    curves: tuple[Floats, ...] = ()
    beyond: Floats | None = None
    traits: Mapping[str, Floats] = field(default_factory=dict)
    line: Ints | None = None
    failures: Failures | None = None
    think: Floats | None = None
    own: pl.DataFrame | None = None
    deadline: Floats | None = None
    phase: Ints | None = None
    phases: tuple[tuple[tuple[float, int], ...], ...] = ()
    checkpoint_s: Floats | None = None

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.ids)

    @property
    def true_run_time(self) -> Floats:
        """Seconds of run time of each job, all segments together."""
        return np.add.reduceat(self.segment_s, self.segment_start[:-1]) if self.size else np.zeros(0)

    @property
    def run_time(self) -> Floats:
        """Seconds of run time as policies see them: predicted if requested."""
        return self.true_run_time if self.predicted is None else self.predicted

    @property
    def planned_time(self) -> Floats:
        """Seconds of run time of each job that policies plan with; NaN if it has no limit."""
        return self.time_limit if self.planned is None else self.planned


@dataclass(frozen=True)
class Inference:
    """Nodes that a policy may borrow.

    Attributes:
        gpus: of each node.
        time_s: seconds of the replay's clock, ascending, from which on … free: … this many are idle; before the first,
            none.
        period_s: seconds after which the load repeats; inf: never.
        notes: what was assumed.
    """

    gpus: Ints
    time_s: Floats
    free: Ints
    period_s: float = math.inf
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Cluster:
    """The nodes to replay on.

    Attributes:
        name: where it came from, for headings.
        nodes: names.
        gpus: GPUs of each.
        rack: number of its rack in ``racks``; nodes of one rack have fast connections.
        gpu_type: number of its GPU type in the workload's ``gpu_types``; -1 unknown, which suits every job.
        racks: names.
        pool: true if the single "node" stands for GPUs whose places do not matter.
        quota: GPUs of the quota of each queue of the workload; inf if it has none.
        quota_source: ``configured``, ``inferred`` or ``none``.
        queue_nodes: for each queue of the workload the nodes that its jobs may use, or None for all of them.
        down: (k, 3) node number, second from which and second until which it is down (inf: for good).
        notes: what was inferred or left out, with counts.
        gpu_types: names of the GPU types: those of the workload, then those only of nodes, which no job requests; empty
            if there are only the workload's.
        cpus: CPUs of each node; NaN unknown; None: all unknown.
        mem_mb: MB of memory of each node; NaN unknown; None: all unknown.
        listed: whether the log lists the nodes; otherwise they are those that jobs of the trace ran on.
        inference: nodes of an adjacent inference cluster, which a policy may borrow.
        on_loan: number of last nodes that exist only while on loan.
    """

    name: str
    nodes: tuple[str, ...]
    gpus: Ints
    rack: Ints
    gpu_type: Ints
    racks: tuple[str, ...]
    pool: bool
    quota: Floats
    quota_source: str = "none"
    queue_nodes: tuple[Ints | None, ...] = ()
    down: Floats | None = None
    notes: tuple[Note, ...] = ()
    gpu_types: tuple[str, ...] = ()
    cpus: Floats | None = None
    mem_mb: Floats | None = None
    listed: bool = True
    inference: Inference | None = None
    on_loan: int = 0

    @property
    def total_gpus(self) -> int:
        """GPUs of all nodes."""
        return int(self.gpus.sum())


@dataclass(frozen=True)
class Outcome:
    """The outcome of one policy on a workload.

    Attributes:
        policy: its name in a comparison: its own, or its label.
        params: its parameters, by name.
        oracle: whether it saw true run times.
        settings: shared by all policies of a comparison (placement, speed model, overhead model, seed), by name.
        jobs: one row per job, in the workload's order: ``job`` (name), ``queue``, ``user`` (names), ``gpus``,
            ``submit_s``, ``eligible_s`` (when it came into the queue), ``start_s`` (first start), ``end_s``,
            ``wait_s`` (from submission, all time not on GPUs; to the end of the replay if unfinished), ``jct_s``
            (end - submit), ``run_s`` (time on GPUs), ``work_s`` (run time on the recorded placement), ``gpu_s``
            (GPU-seconds held; of a shared GPU an equal part), ``overhead_gpu_s`` (held without progress: suspend,
            resume, gathering), ``lost_gpu_s`` (progress lost and repeated), ``preemptions``, ``attempts``,
            ``max_gpus`` (the most it held), ``t10_s`` (from submission until a tenth of its work was done; null never),
            ``changes`` (number of changes of GPUs), ``least_gpus`` and
            ``most_gpus`` (between which the policy may choose), ``nodes`` (of the last attempt), ``state``:
            finished | running | waiting | held | unplaceable | rejected; times that never came are null. If nodes
            fail: ``interruptions``, ``lost_s`` (seconds of progress that failures undid), and of ``overhead_gpu_s``
            ``checkpoint_gpu_s`` (writes), ``load_gpu_s`` (starts after failures), ``stalled_gpu_s`` (until failures
            were noticed).
        attempts: one row per allocation of a gang: ``job`` (number), ``attempt`` (0-based), ``start_s``, ``end_s``
            (null: still held them at the end), ``end``: finished | failed | preempted | machine_down | migrated |
            resized | lease | time_limit | reclaimed | running, ``gpus``, ``shared`` (it began on GPUs of another job),
            ``own_s`` (when it came to own its GPUs: its start, or for a guest when it took over from its host; null:
            never), ``group`` (row of the attempt that owned the GPUs first).
        pieces: ``row`` (row of ``attempts``), ``node`` (number), ``gpus``; if CPUs and memory count, also ``cpus`` and
            ``mem_mb``.
        turns: if jobs oversubscribed nodes and took turns: ``row`` (of ``attempts``), ``t_s``, ``counted`` (its counted
            GPUs from then on), ``pace`` (its remaining share of speed); before its first row all of an attempt's GPUs
            count.
        log: the decision log.
        end_s: the last instant of the replay.
        wall_s: seconds that the simulation took.
        instants: number of distinct instants.
        notes: further notes.
        kind: the policy's own name.
        by_traits: whether it, or its speeds, used `gpuctl.replay.models.traits`.
        cluster: its nodes if they differ from those given; None: they do not. See `used`.
        never: why jobs could never start under it, by their numbers.
        counts: its policy-specific counters, by name: ``packs``, ``packs_undone`` …
        loaded_gpu_s: GPU-seconds of work (seconds at reference speed x gang) done up to the last submission; None: not
            known.
    """

    policy: str
    params: dict[str, Any]
    oracle: bool
    settings: dict[str, Note]
    jobs: pl.DataFrame
    attempts: pl.DataFrame
    pieces: pl.DataFrame
    log: DecisionLog
    end_s: float
    wall_s: float = 0.0
    instants: int = 0
    notes: tuple[Note, ...] = field(default=())
    kind: str = ""
    turns: pl.DataFrame | None = None
    by_traits: bool = False
    cluster: Cluster | None = None
    counts: Mapping[str, float] = field(default_factory=dict)
    never: Mapping[int, str] = field(default_factory=dict)
    loaded_gpu_s: float | None = None

    def used(self, given: Cluster) -> Cluster:
        """The nodes used: those given, and possibly lendable ones, which are down while not on loan."""
        return given if self.cluster is None else self.cluster

    @property
    def decisions(self) -> pl.DataFrame:
        """The decision log as a table, see `DecisionLog.frame`."""
        return self.log.frame()
