"""All that is known of one job: why it waited, where it ran, why it failed; rendered by terminal, JSON and HTML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True)
class SampledReason:
    """A reason that the scheduler gave at several instants of a wait.

    Attributes:
        reason: the scheduler's record.
        samples: at how many instants.
        eligible: whether the attempt requested GPUs then.
        cause: the cause by the cluster's state at most of these instants; None if it was not eligible.
    """

    reason: str
    samples: int
    eligible: bool
    cause: str | None


@dataclass(frozen=True)
class Part:
    """The share of a wait that one cause may have.

    Attributes:
        cause: one of `gpuctl.core.causes.ALL_CAUSES`.
        seconds: the most likely value.
        low_s: the minimum, considering all that the logs leave open.
        high_s: the maximum; equal to `low_s` if nothing is open.
    """

    cause: str
    seconds: float
    low_s: float
    high_s: float


@dataclass(frozen=True)
class Wait:
    """One wait.

    Attributes:
        queued_ts: its start; None if the source does not record it.
        seconds: its length, up to the end of the log if it still waits; None if no source records when it gave up.
        still_waits: it has not started yet.
        never_started: it ended, or the log does, before it started.
        parts: every cause with its seconds; empty if unknown.
        main: the cause with more seconds than any other can have; None if that is open.
        behind_s: seconds during which others of its queue that had waited longer could have started; None if unknown.
        scheduler_reason: the last reason that the scheduler gave.
        sampled: the reasons that it gave at several instants.
    """

    queued_ts: datetime | None
    seconds: float | None
    still_waits: bool = False
    never_started: bool = False
    parts: tuple[Part, ...] = ()
    main: str | None = None
    behind_s: float | None = None
    scheduler_reason: str | None = None
    sampled: tuple[SampledReason, ...] = ()


@dataclass(frozen=True)
class Neighbour:
    """Another job on the same machine: GPUs held there, seconds at the same time."""

    job: str
    gpus: float | None
    seconds: float


@dataclass(frozen=True)
class Place:
    """The resources that an attempt held on one machine.

    Attributes:
        machine: its name.
        rack: its rack, if known.
        gpus: GPUs held there.
        gpu_indices: their indices; None if the source does not record them.
        estimated: `gpus` is a guess: spread evenly.
        gpu_type: of the node.
        machine_gpus: of the node.
        others: number of other jobs that held GPUs there at the same time.
        longest: those of them that did so longest.
    """

    machine: str
    rack: str | None
    gpus: float
    gpu_indices: tuple[int, ...] | None
    estimated: bool
    gpu_type: str | None
    machine_gpus: int | None
    others: int
    longest: tuple[Neighbour, ...]


@dataclass(frozen=True)
class Use:
    """How an attempt used its GPUs by telemetry: samples, mean and median utilization, share of samples at 0 (%)."""

    samples: int
    mean_pct: float
    p50_pct: float
    idle_pct: float
    whole_machines: bool


@dataclass(frozen=True)
class GpuUse:
    """The utilization of one GPU that an attempt held, over time.

    Attributes:
        machine: its node.
        gpu: its NVML index; None if no source states it.
        instance: the MIG instance; None: the whole GPU.
        slot: its number within the job, or its UUID, if no source states its index.
        mean_pct: mean utilization (%).
        coverage: share of the time held that samples represent, 0 to 1.
        period_s: length of a period in seconds.
        pct: means of periods from the attempt's start on; None: no samples.
    """

    machine: str
    gpu: int | None
    instance: str | None
    slot: str | None
    mean_pct: float
    coverage: float
    period_s: float
    pct: tuple[float | None, ...]


@dataclass(frozen=True)
class Line:
    """A line taken from a log; `count`: lines of the log with the same signature."""

    stream: str
    line_no: int
    text: str
    signature: str | None
    reason: str | None
    count: int


@dataclass(frozen=True)
class Log:
    """A log; `of_all`: it does not record which attempt it belongs to."""

    stream: str
    path: str
    size: int
    lines: int
    of_all: bool


@dataclass(frozen=True)
class Cause:
    """Why an attempt failed, as `gpuctl.joblogs.evidence.Verdict` states it, with the title of the reason."""

    reason: str
    title: str
    category: str | None
    confidence: float
    signature: str | None
    stream: str | None
    path: str | None
    line_no: int | None
    evidence: str | None
    others: tuple[str, ...]


@dataclass(frozen=True)
class Training:
    """Training progress of one metric that the logs of one attempt report."""

    metric: str | None
    points: int
    first: float | None
    lowest: float | None
    last: float | None
    not_finite: int
    last_epoch: float | None
    epochs: float | None
    last_step: int | None
    steps: int | None
    stream: str | None
    line_no: int | None


@dataclass(frozen=True)
class Interruption:
    """What ended an attempt before it was done, by all evidence of the store.

    Attributes:
        cause: as in the table ``interruptions``.
        component: what failed; None if unknown.
        evidence: what shows it: state, log, event, xid, counter, co_occurrence or repeats; None if nothing does.
        machine: node to which the evidence points.
        attempts: that the same fault ended, this one among them; None if it was no fault of infrastructure.
        second_order: a job that infrastructure had ended before preempted it.
    """

    cause: str
    component: str | None
    evidence: str | None
    machine: str | None
    attempts: int | None
    second_order: bool


@dataclass(frozen=True)
class Tried:
    """One attempt.

    Attributes:
        number: from 0.
        state: how it ended; ``resized``: the job continued with another number of GPUs, as the next attempt.
        source_state: the state as the source names it.
        reason: the reason of its end as the source states it.
        gpus: GPUs.
        servers: nodes that it ran on.
        fewest_servers: fewest nodes that could have held it.
        racks: number of racks it ran in.
        fewest_racks: fewest racks that could have held it.
        start_ts: its start.
        end_ts: its end.
        run_s: seconds it ran.
        gpu_hours: held.
        exit_code: of the program.
        exit_signal: that ended it.
        preempted_by: the job that received its GPUs.
        wait: None if unknown.
        places: where it ran.
        use: of its GPUs; None without telemetry.
        cause: why it failed; None if it did not.
        logs: its logs.
        lines: the lines taken from them.
        training: the training progress that they report.
        interrupted: what interrupted it, beside its own logs; None if nothing did, or no events of nodes are known.
    """

    number: int
    state: str
    source_state: str | None
    reason: str | None
    gpus: float | None
    servers: int | None
    fewest_servers: int | None
    racks: int | None
    fewest_racks: int | None
    start_ts: datetime | None
    end_ts: datetime | None
    run_s: float | None
    gpu_hours: float | None
    exit_code: int | None
    exit_signal: int | None
    preempted_by: str | None
    wait: Wait | None
    places: tuple[Place, ...]
    use: Use | None
    cause: Cause | None
    logs: tuple[Log, ...]
    lines: tuple[Line, ...]
    training: tuple[Training, ...]
    interrupted: Interruption | None = None
    gpus_over_time: tuple[GpuUse, ...] = ()


@dataclass(frozen=True)
class Measure:
    """A figure of the job compared with that of similar jobs.

    Attributes:
        name: ``wait_s`` (submission to first start), ``run_s`` (first start to last end) or ``util_pct`` (mean GPU
            utilization).
        own: of this job; None if unknown.
        known: number of the others for which it is known.
        p10: their 10th percentile.
        p50: their median.
        p90: their 90th percentile.
    """

    name: str
    own: float | None
    known: int
    p10: float
    p50: float
    p90: float


@dataclass(frozen=True)
class Similar:
    """Jobs like this one.

    Attributes:
        alike: what they have in common with it, by name: user, name of the job, queue, GPUs.
        jobs: their number: at most the 50 submitted nearest to it.
        failed: number of them that failed, ran out of memory or lost a node.
        measures: their figures compared with its own.
    """

    alike: dict[str, object]
    jobs: int
    failed: int
    measures: tuple[Measure, ...]


@dataclass(frozen=True)
class Decision:
    """One decision of a replayed policy about the job: second of the replay, action, GPUs, nodes and reason."""

    t_s: float
    decision: str
    gpus: int
    nodes: int
    reason: str


@dataclass(frozen=True)
class Explanation:
    """All that is known of one job.

    Attributes:
        cluster: in the store.
        job: its id in the store.
        asked: the name that the user gave.
        facts: facts that the source records, by name, in display order; missing ones are left out.
        attempts: in order.
        never_started: its wait, if it has no attempt.
        similar: jobs like it; None if there are fewer than five.
        decisions: of the policy, if a replay wrote the store and its log of decisions exists.
        decisions_from: the file that holds them.
        notes: caveats for the reader.
        version: gpuctl's version.
        command: the command line.
    """

    cluster: str
    job: str
    asked: str
    facts: dict[str, object]
    attempts: tuple[Tried, ...]
    never_started: Wait | None = None
    similar: Similar | None = None
    decisions: tuple[Decision, ...] = ()
    decisions_from: str | None = None
    notes: tuple[str, ...] = ()
    version: str = ""
    command: str = ""
