"""The logs that the cluster of `tests.synthetic_waits` would have left, in Philly's format, and the truth about it.

Ours. Planted: a user who kills jobs after hours, a machine on which gangs fail, jobs that leave their GPUs idle, each
job's utilization, and why attempts failed. Whoever asks counts with plain loops over `Made.jobs`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from tests import synthetic_waits
from tests.philly_log import attempt, job, log
from tests.synthetic_waits import Site

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = datetime(2017, 9, 30)
"""On the log's clock, which is seven hours behind UTC throughout; one day before a month ends."""
BEHIND_UTC = timedelta(hours=7)
USERS = ("ann", "bob", "cem", "dia", "eve", "fay")
QUEUES = ("vision", "speech", "text", "robots")
WASTER, BAD_MACHINE = "dia", "m5"
OUTPUT = {
    "GPU ECC error": "RuntimeError: CUDA error: uncorrectable ECC error encountered",
    "GPU out of memory": "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "Import error": "ModuleNotFoundError: No module named 'apex'",
}
"""What failed jobs print, by reason."""
STATES = {"completed": "Pass", "killed": "Killed", "failed": "Failed"}


@dataclass(frozen=True)
class Job:
    """One job of one attempt; times in seconds after `BEGIN`.

    Attributes:
        name: the log's id.
        user: who submitted it.
        queue: its virtual cluster.
        gpus: of its gang.
        queued: submission.
        start: begin of its attempt.
        end: end of its attempt.
        state: one of `STATES`.
        util_pct: utilization of each of its GPUs at every sample.
        reason: one of `OUTPUT` where it failed.
        held: numbers of GPUs by machine.
        causes_s: seconds that it waited for its queue's quota, for GPUs, and for GPUs close together.
    """

    name: str
    user: str
    queue: str
    gpus: int
    queued: float
    start: float
    end: float
    state: str
    util_pct: float
    reason: str
    held: dict[str, list[int]]
    causes_s: tuple[float, ...]

    @property
    def gpu_hours(self) -> float:
        """What its attempt held."""
        return self.gpus * (self.end - self.start) / 3600


@dataclass(frozen=True)
class Made:
    """All jobs, GPUs and rack by machine, and each queue's quota in GPUs."""

    jobs: list[Job]
    gpus: dict[str, int]
    rack: dict[str, int]
    quotas: dict[str, int]


def make(seed: int, jobs: int) -> Made:
    """Run the cluster and draw final state of its jobs."""
    site = Site(seed, jobs, load=1.0, racks=((8, 8, 8, 4),) * 3)
    ran = synthetic_waits.run(site)
    rng = random.Random(seed)
    free = {f"m{k}": list(range(gpus)) for k, gpus in enumerate(ran.cluster.gpus)}
    gpus, rack = ({name: of[k] for k, name in enumerate(free)} for of in (ran.cluster.gpus, ran.cluster.rack))
    held: dict[int, dict[str, list[int]]] = {}
    moments = [(one.start + one.length, 0, k) for k, one in enumerate(ran.jobs)]
    for _, begins, k in sorted(moments + [(one.start, 1, k) for k, one in enumerate(ran.jobs)]):
        if not begins:
            for name, indices in held[k].items():
                free[name] = sorted(free[name] + indices)
            continue
        held[k] = {f"m{node}": free[f"m{node}"][:count] for node, count in ran.jobs[k].held}
        for name, indices in held[k].items():
            free[name] = free[name][len(indices) :]
    made = []
    for k, one in enumerate(ran.jobs):
        user = USERS[one.user]
        state = _fate(rng, user, held[k])
        reason = _reason(rng, held[k]) if state == "failed" else ""
        util = rng.uniform(0.5, 4.5) if rng.random() < 0.05 else 30 + 9 * one.user + rng.uniform(-8, 8)
        made.append(
            Job(
                f"application_1506638472019_{k:05}", user, QUEUES[one.queue], one.gpus, one.queued, one.start,
                one.start + one.length, state, round(util, 1), reason, held[k], tuple(ran.truth[k]),
            )
        )  # fmt: skip
    return Made(made, gpus, rack, dict(zip(QUEUES, ran.quotas, strict=True)))


def _fate(rng: random.Random, user: str, held: dict[str, list[int]]) -> str:
    failed = 0.75 if BAD_MACHINE in held else 0.08
    killed = 0.5 if user == WASTER else 0.04
    draw = rng.random()
    return "failed" if draw < failed else "killed" if draw < failed + killed else "completed"


def _reason(rng: random.Random, held: dict[str, list[int]]) -> str:
    if BAD_MACHINE in held and rng.random() < 0.9:
        return "GPU ECC error"
    return rng.choice(list(OUTPUT))


def stamp(seconds: float) -> str:
    """A time as the log has it."""
    return f"{BEGIN + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"


def write(made: Made, folder: Path) -> None:
    """Write the log, machines, utilization by minute, the output of failed jobs, and beside them quotas and racks."""
    logs = folder / "logs"
    logs.mkdir()
    listed = []
    for one in made.jobs:
        ran = attempt(stamp(one.start), stamp(one.end), *one.held.items())
        listed.append(
            job(one.name, stamp(one.queued), ran, status=STATES[one.state], vc=one.queue, user=one.user),
        )
        if one.reason:
            place = logs / "output" / one.name / "0"
            place.mkdir(parents=True)
            (place / "stderr").write_text(f"Traceback (most recent call last):\n{OUTPUT[one.reason]}\n")
    (logs / "cluster_job_log").write_text(log(*listed))
    rows = "".join(f"{name},{gpus}, {3 * gpus}GB\n" for name, gpus in made.gpus.items())
    (logs / "cluster_machine_list").write_text(f"machineId,number of GPUs,single GPU mem\n{rows}")
    _write_utilization(made, logs / "cluster_gpu_util")
    (folder / "quotas.csv").write_text("vc,quota_gpus\n" + "".join(f"{q},{n}\n" for q, n in made.quotas.items()))
    (folder / "racks.csv").write_text("machine,rack\n" + "".join(f"{m},r{n}\n" for m, n in made.rack.items()))


def minutes(one: Job) -> range:
    """The minutes at whose begin it held its GPUs."""
    return range(int(-(-one.start // 60)), int(-(-one.end // 60)))


def _write_utilization(made: Made, path: Path) -> None:
    last = max(minutes(one).stop for one in made.jobs)
    level = {name: np.zeros((last, gpus)) for name, gpus in made.gpus.items()}
    for one in made.jobs:
        at = minutes(one)
        for name, indices in one.held.items():
            level[name][at.start : at.stop, indices] = one.util_pct
    with path.open("w") as file:
        file.write("time,machineId," + ",".join(f"gpu{k}_util" for k in range(8)) + "\n")
        for minute in range(last):
            at_text = stamp(60 * minute)
            for name, table in level.items():
                file.write(f"{at_text} PDT,{name},{','.join(map(str, table[minute].tolist()))},\n")
