"""What is known of one job: why it waited, where it ran, why it failed. The terminal, JSON and HTML render this."""

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
        eligible: whether the attempt asked for GPUs then.
        cause: what the cluster's state shows at most of these instants; None where it was not eligible.
    """

    reason: str
    samples: int
    eligible: bool
    cause: str | None


@dataclass(frozen=True)
class Part:
    """What of a wait one cause may be.

    Attributes:
        cause: one of `gpuctl.core.causes.ALL_CAUSES`.
        seconds: what is most likely.
        low_s: the least seconds, given all that the logs leave open.
        high_s: the most seconds; equal to `low_s` where nothing is open.
    """

    cause: str
    seconds: float
    low_s: float
    high_s: float


@dataclass(frozen=True)
class Wait:
    """One wait.

    Attributes:
        queued_ts: since when; None where the source does not tell.
        seconds: how long; to the end of the log where it still waits; None where no source tells when it gave up.
        still_waits: it has not started yet.
        never_started: it ended, or the log does, before it started.
        parts: every cause with its seconds; empty where they are not known.
        main: the cause with more seconds than any other may have; None where that is open.
        behind_s: seconds while others of its queue waited for longer and could have started; None where not known.
        scheduler_reason: the scheduler's last word on it.
        sampled: what it said at instants.
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
    """What an attempt held on one machine.

    Attributes:
        machine: its name.
        rack: its rack, where it is known.
        gpus: GPUs held there.
        gpu_indices: which; None where the source does not tell.
        estimated: `gpus` is a guess: spread evenly.
        gpu_type: of the node.
        machine_gpus: of the node.
        others: so many other jobs held GPUs there meanwhile.
        longest: those of them that did so for longest.
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
    """How an attempt used its GPUs, by telemetry: samples, mean and median utilization, share of samples of 0 (%)."""

    samples: int
    mean_pct: float
    p50_pct: float
    idle_pct: float
    whole_machines: bool


@dataclass(frozen=True)
class Line:
    """A kept line of a log; `count`: in how many lines of it the same signature was found."""

    stream: str
    line_no: int
    text: str
    signature: str | None
    reason: str | None
    count: int


@dataclass(frozen=True)
class Log:
    """A log; `of_all`: it does not say of which attempt it is."""

    stream: str
    path: str
    size: int
    lines: int
    of_all: bool


@dataclass(frozen=True)
class Cause:
    """Why an attempt failed, as `gpuctl.joblogs.evidence.Verdict` has it, with the reason's title."""

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
    """Training progress that the logs of one attempt tell, of one metric."""

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
class Tried:
    """One attempt.

    Attributes:
        number: from 0.
        state: how it ended; ``resized``: the job ran on with another number of GPUs, as the next attempt.
        source_state: the source's own word.
        reason: the source's words on its end.
        gpus: GPUs.
        servers: nodes that it ran on.
        fewest_servers: that could have held it.
        racks: in so many racks.
        fewest_racks: that could have held it.
        start_ts: its start.
        end_ts: its end.
        run_s: seconds it ran.
        gpu_hours: held.
        exit_code: of the program.
        exit_signal: that ended it.
        preempted_by: the job that its GPUs went to.
        wait: None where it is not known.
        places: where it ran.
        use: of its GPUs; None without telemetry.
        cause: why it failed; None where it did not.
        logs: its logs.
        lines: what their kept lines say.
        training: what they say of training progress.
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


@dataclass(frozen=True)
class Measure:
    """A figure of the job beside those of jobs like it.

    Attributes:
        name: ``wait_s`` (submission to first start), ``run_s`` (first start to last end) or ``util_pct`` (mean GPU
            utilization).
        own: of this job; None where it is not known.
        known: of so many of the others it is known.
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
        jobs: how many: the 50 submitted nearest to it at most.
        failed: so many of them failed, ran out of memory or lost a node.
        measures: their figures beside its own.
    """

    alike: dict[str, object]
    jobs: int
    failed: int
    measures: tuple[Measure, ...]


@dataclass(frozen=True)
class Decision:
    """One decision of a replayed policy about the job: second of the replay, what, GPUs, nodes, and why."""

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
        asked: what the user called it.
        facts: what the source tells of it, by name, in the order to be shown; what it does not tell is left out.
        attempts: in order.
        never_started: its wait, where it has no attempt.
        similar: jobs like it; None where there are fewer than five.
        decisions: of the policy, where a replay wrote the store and its log of decisions is there.
        decisions_from: the file that they are from.
        notes: what a reader must know.
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
