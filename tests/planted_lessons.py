"""Traces whose early failures and convergence are planted, and how much there is to save in them, by other code.

`failing` draws gangs that fail early or late, alone or only together, with a classifier that is right as often as it
says; `savings_of` and `delay_of` work out from what was planted, and not from what the classifier says, what rules
save; neither replays anything. `curves` draws losses that come to rest at a known point.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.replay.models.records import Cluster, Failures, Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

WEEK_S = 7 * 86400.0
ORIGIN = datetime(2018, 1, 1, tzinfo=UTC)
"""A Monday."""
PROGRAM, TOGETHER, MACHINE, WELL = range(4)
"""What is wrong with a job: its program, which shows on one GPU; what only several GPUs show; a machine; nothing."""
SIZES, OF_SIZES = np.array([1, 2, 4, 8, 16]), np.array([0.3, 0.05, 0.15, 0.3, 0.2])
SURE, OF_SURE = np.array([0.55, 0.8, 0.95]), np.array([0.15, 0.3, 0.55])


TRAP = 8
"""Points for which a trap stays at rest before it falls again."""


@dataclass(frozen=True)
class Planted:
    """What was planted: arrays of jobs, and of their segments, ``start[k]:start[k + 1]`` of job k."""

    submit: Floats
    gpus: Ints
    wrong: Ints
    verdict: Ints
    sure: Floats
    start: Ints
    seconds: Floats
    fails: NDArray[np.bool_]


def failing(seed: int, weeks: int, *, effect: bool, jobs_a_week: int = 60) -> Planted:
    """Draw jobs. Without `effect` what a program does wrong shows late, and only machines' faults are tried again."""
    draw = np.random.default_rng([seed, 3])
    count = int(draw.poisson(jobs_a_week * weeks))
    submit = np.sort(draw.uniform(0, weeks * WEEK_S, count))
    gpus = draw.choice(SIZES, count, p=OF_SIZES)
    verdict = draw.choice(4, count, p=[0.35, 0.05, 0.1, 0.5])
    sure = draw.choice(SURE, count, p=OF_SURE)
    # a verdict of so much confidence is right so often, however soon the job failed; else one of the two others holds
    other = (verdict + draw.integers(1, 3, count)) % 3
    wrong = np.where((draw.random(count) < sure) | (verdict == WELL), verdict, other)
    if not effect:
        # the classifier takes none for a program's fault that is not
        wrong = verdict
    soon = draw.lognormal(np.log(np.array([300.0, 400.0, 3600.0, 1.0])[verdict]), 1.2)
    late = draw.lognormal(np.log(4 * 3600.0), 0.7, count) + 3600.0
    tries = np.where(wrong == WELL, 0, draw.integers(1, 6, count))
    if not effect:
        soon = np.where(wrong == PROGRAM, late, soon)
        tries = np.where((wrong == PROGRAM) | (wrong == TOGETHER), 1, tries)
    # after a machine's fault the retry goes well; what is wrong with a program stays wrong
    well = (wrong == WELL) | (wrong == MACHINE)
    size = tries + well
    start = np.append(0, np.cumsum(size))
    owner = np.repeat(np.arange(count), size)
    place = np.arange(owner.size) - start[owner]
    fails = place < tries[owner]
    run = draw.lognormal(np.log(2 * 3600.0), 0.9, owner.size)
    seconds = np.where(fails, soon[owner] * draw.lognormal(0, 0.1, owner.size), run)
    return Planted(submit, gpus, wrong, verdict, sure, start, seconds, fails)


def workload_of(planted: Planted) -> Workload:
    """What a log of these jobs tells: of what is wrong only the verdicts."""
    count, segments = planted.gpus.size, planted.seconds.size
    owner = np.repeat(np.arange(count), np.diff(planted.start))
    verdict = np.where(planted.fails, planted.verdict[owner], -1)
    known = Failures(
        reason=verdict,
        category=verdict,
        confidence=planted.sure[owner],
        shows=np.maximum(verdict, 0),
        may_pass=verdict == MACHINE,
        reasons=("program_error", "nccl_error", "gpu_hardware_error"),
        categories=("user", "infrastructure+ai_engine", "infrastructure"),
    )
    last = planted.fails[planted.start[1:] - 1]
    return Workload(
        name="planted",
        ids=tuple(f"job-{k}" for k in range(count)),
        submit=planted.submit,
        eligible=planted.submit.copy(),
        gpus=planted.gpus,
        queue=np.zeros(count, np.int64),
        user=np.full(count, -1),
        time_limit=np.full(count, np.nan),
        gpu_type=np.full(count, -1),
        app=np.arange(count),
        depends=np.zeros((0, 2), np.int64),
        segment_start=planted.start,
        segment_s=planted.seconds,
        segment_fails=planted.fails,
        recorded_start=np.full(segments, np.nan),
        piece_start=np.zeros(segments + 1, np.int64),
        piece_node=np.zeros(0, np.int64),
        piece_gpus=np.zeros(0, np.int64),
        state=tuple(np.where(last, "failed", "completed").tolist()),
        queues=("q",),
        users=(),
        gpu_types=(),
        origin=ORIGIN,
        failures=known,
    )


def nodes(count: int = 60, gpus: int = 8) -> Cluster:
    """More GPUs than the jobs ask for."""
    return Cluster(
        name="planted",
        nodes=tuple(f"s{k}" for k in range(count)),
        gpus=np.full(count, gpus),
        rack=np.zeros(count, np.int64),
        gpu_type=np.full(count, -1),
        racks=("r",),
        pool=False,
        quota=np.array([np.inf]),
    )


def savings_of(planted: Planted, first_s: float, retry: float) -> Floats:
    """GPU-seconds that each job would have saved in truth, by what is wrong with it; a loop over its attempts."""
    saved = np.zeros(planted.gpus.size)
    for job, (begin, end) in enumerate(zip(planted.start[:-1].tolist(), planted.start[1:].tolist(), strict=True)):
        gpus, wrong = int(planted.gpus[job]), int(planted.wrong[job])
        alone = first_s > 0 and gpus > 1
        for at in range(begin, end):
            length = float(planted.seconds[at])
            if alone and planted.fails[at] and wrong == PROGRAM and length <= first_s:
                saved[job] += length * (gpus - 1)
            elif alone:
                saved[job] -= first_s
                alone = False
            ends = planted.fails[at] and planted.verdict[job] != MACHINE and 0 < retry <= planted.sure[job]
            if ends and planted.fails[end - 1]:
                # none of its later attempts is made
                saved[job] += gpus * float(planted.seconds[at + 1 : end].sum())
            if ends:
                # what went on well after a retry is submitted again, and saves nothing
                break
    return saved


def delay_of(planted: Planted, first_s: float, pool: int) -> Floats:
    """Seconds by which gangs that pass the pool start later, in truth, where nothing else makes them wait."""
    free = [0.0] * pool
    line = [(float(planted.submit[k]), k, int(planted.start[k])) for k in np.flatnonzero(planted.gpus > 1).tolist()]
    heapq.heapify(line)
    delays = []
    while line:
        came, job, at = heapq.heappop(line)
        begin = max(came, heapq.heappop(free))
        length = float(planted.seconds[at])
        shows = bool(planted.fails[at]) and planted.wrong[job] == PROGRAM and length <= first_s
        ends = begin + (length if shows else first_s)
        heapq.heappush(free, ends)
        if not shows:
            delays.append(ends - float(planted.submit[job]))
        elif at + 1 < planted.start[job + 1]:
            heapq.heappush(line, (ends, job, at + 1))
    return np.array(delays)


@dataclass(frozen=True)
class Losses:
    """What was planted of jobs that log their loss.

    Attributes:
        submit: seconds.
        gpus: of each.
        points: of its curve.
        point_gpu_s: GPU-seconds from one point to the next.
        rest: the point from which on its loss stays, from 1; the last one: it falls to the end.
        trap: it stays for `TRAP` points in the middle, and falls again.
    """

    submit: Floats
    gpus: Ints
    points: Ints
    point_gpu_s: Floats
    rest: Ints
    trap: NDArray[np.bool_]


def logging(seed: int, weeks: int, *, effect: bool, jobs_a_week: int = 25) -> Losses:
    """Draw jobs that log their loss; without `effect` all of them fall to the end."""
    draw = np.random.default_rng([seed, 4])
    count = int(draw.poisson(jobs_a_week * weeks))
    submit = np.sort(draw.uniform(0, weeks * WEEK_S, count))
    gpus = draw.choice(SIZES, count, p=OF_SIZES)
    points = draw.integers(30, 100, count)
    share = draw.beta(4, 2, count) if effect else np.ones(count)
    rest = np.where(draw.random(count) < 0.2, points, np.maximum(np.ceil(share * points), 24).astype(np.int64))
    trap = draw.random(count) < 0.1
    return Losses(submit, gpus, points, draw.lognormal(np.log(600), 0.8, count) * gpus, rest, trap)


def curves_of(planted: Losses, seed: int) -> tuple[Floats, Floats, Ints]:
    """Their losses, in a line down to half, with 0.01 % of noise; GPU-seconds so far; and where each curve begins."""
    draw = np.random.default_rng([seed, 5])
    start = np.append(0, np.cumsum(planted.points))
    owner = np.repeat(np.arange(planted.gpus.size), planted.points)
    at = (np.arange(owner.size) - start[owner] + 1).astype(np.float64)
    rest, stays = planted.rest[owner].astype(np.float64), np.where(planted.trap, TRAP, 0)[owner]
    held = np.clip(at - planted.rest[owner] // 2, 0, stays)
    fall = np.minimum(at - held, rest - stays) / (rest - stays)
    loss = (2.0 - fall) * (1 + draw.uniform(-1e-4, 1e-4, owner.size))
    return loss, at * planted.point_gpu_s[owner], start


def stopping_of(planted: Losses, points: int | None) -> Floats:
    """GPU-seconds saved in truth: in hindsight (None), or by so many points of patience, where traps cost a run."""
    if points is None:
        return planted.point_gpu_s * (planted.points - planted.rest)
    # a trap is left at the end of a patience that is shorter than its points of rest
    trapped = planted.trap & (points < TRAP)
    left = np.where(trapped, -(planted.rest // 2 + points), np.maximum(planted.points - planted.rest - points, 0))
    return planted.point_gpu_s * left
