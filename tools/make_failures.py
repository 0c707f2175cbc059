"""Makes sample_data/failures: accounting and job logs of a made-up Slurm cluster whose jobs fail for known reasons.

python tools/make_failures.py sample_data/failures

What failing jobs print is what real programs printed as they failed: recordings of labs/failures (the part of
them that signatures may be written from). Around it the log of a training is made up. One node, gpu05, is broken: its
GPU falls off the bus; the wording of that is the driver's. The same command gives the same bytes.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import random
import sys
import tarfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "fixtures" / "failures"
SEED = 20261122
JOBS = 480
NODES = tuple(f"gpu{n:02d}" for n in range(1, 9))
BROKEN = "gpu05"
GPUS = 8
BEGIN = datetime(2026, 11, 2, 8, tzinfo=UTC)
USERS = {"ana": "vision", "ben": "vision", "chi": "speech", "dov": "speech", "eli": "language"}
# how often each reason strikes, after Table 7 of the ATC'19 paper: user errors lead
REASONS = {
    "incorrect_inputs": 10,
    "program_error": 8,
    "cpu_out_of_memory": 7,
    "shape_error": 5,
    "wrong_arguments": 4,
    "import_error": 4,
    "syntax_error": 4,
    "semantic_error": 3,
    "disk_full": 3,
    "model_diverged": 3,
    "permission_error": 3,
    "invalid_memory_access": 2,
    "collective_timeout": 2,
    "network_error": 2,
}
EARLY = frozenset(
    {"wrong_arguments", "import_error", "syntax_error", "semantic_error", "shape_error", "permission_error"}
)
NARROWER = frozenset({"invalid_config"})
"""Reasons that are as right for some cases, and say more."""
COLUMNS = [
    "JobIDRaw",
    "JobID",
    "JobName",
    "User",
    "Account",
    "Partition",
    "QOS",
    "State",
    "ExitCode",
    "DerivedExitCode",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "Elapsed",
    "Timelimit",
    "NNodes",
    "NCPUS",
    "ReqTRES",
    "AllocTRES",
    "NodeList",
    "Reason",
]


class Attempt(NamedTuple):
    """One attempt: where it ran, from when to when (seconds), and how it ended; `broken`: its GPU fell off the bus."""

    nodes: tuple[str, ...]
    begin: float
    end: float
    state: str
    code: str
    broken: bool


@dataclass
class Job:
    """One job as it went.

    Attributes:
        reason: the true one; None where it passed.
        attempts: the last one last.
    """

    number: int
    user: str
    name: str
    gpus: int
    submit: float
    epochs: int
    epoch_s: float
    reason: str | None
    case: str | None
    attempts: list[Attempt]


def cases() -> dict[str, list[str]]:
    """Recorded cases by reason, of those that one log tells whole."""
    found: dict[str, list[str]] = {}
    for line in (CORPUS / "manifest.jsonl").read_text().splitlines():
        entry = json.loads(line)
        plain = entry["split"] == "dev" and entry["state"] == "failed" and NARROWER.issuperset(entry["acceptable"])
        if plain and entry["reason"] in REASONS:
            found.setdefault(entry["reason"], []).append(entry["case"])
    return found


def recorded(case: str) -> str:
    """What a recorded case printed: stdout first."""
    folder = CORPUS / "dev" / case
    return "".join(path.read_text("utf-8", "replace") for path in sorted(folder.iterdir(), reverse=True))


def make(rng: random.Random) -> list[Job]:
    """Draw the jobs, and start each where it fits, in the order of their submission."""
    known = cases()
    free_at = {(node, gpu): 0.0 for node in NODES for gpu in range(GPUS)}
    jobs = []
    at = 0.0
    for number in range(4001, 4001 + JOBS):
        at += rng.expovariate(1 / 1800)
        gpus = rng.choices((1, 2, 4, 8, 16), (40, 20, 20, 15, 5))[0]
        reason = rng.choices(tuple(REASONS), tuple(REASONS.values()))[0] if rng.random() < 0.35 else None
        case = rng.choice(sorted(known[reason])) if reason else None
        user = rng.choice(tuple(USERS))
        epochs, epoch_s = rng.randint(8, 60), rng.uniform(30, 300)
        job = Job(
            number,
            user,
            f"train-{rng.choice(('resnet', 'bert', 'unet', 'gan'))}",
            gpus,
            at,
            epochs,
            epoch_s,
            reason,
            case,
            [],
        )
        while len(job.attempts) < 3 and (not job.attempts or job.attempts[-1].state == "NODE_FAIL"):
            begin, nodes = place(free_at, job, job.attempts[-1].end + 121 if job.attempts else at)
            attempt = outcome(rng, job, nodes, begin)
            for slot in slots(free_at, nodes, gpus):
                free_at[slot] = attempt.end
            job.attempts.append(attempt)
        jobs.append(job)
    return jobs


def slots(free_at: dict[tuple[str, int], float], nodes: tuple[str, ...], gpus: int) -> list[tuple[str, int]]:
    """The GPUs of these nodes that are free first."""
    each = -(-gpus // len(nodes))
    return [
        slot for node in nodes for slot in sorted((s for s in free_at if s[0] == node), key=lambda s: free_at[s])[:each]
    ]


def place(free_at: dict[tuple[str, int], float], job: Job, earliest: float) -> tuple[float, tuple[str, ...]]:
    """When and where the gang can start, on the fewest nodes."""
    count = -(-job.gpus // GPUS)
    each = -(-job.gpus // count)
    ready = sorted((sorted(free_at[node, g] for g in range(GPUS))[each - 1], node) for node in NODES)
    chosen = ready[:count]
    return max([earliest + 5, *(when for when, _ in chosen)]), tuple(sorted(node for _, node in chosen))


def outcome(rng: random.Random, job: Job, nodes: tuple[str, ...], begin: float) -> Attempt:
    """How an attempt goes."""
    whole = job.epochs * job.epoch_s
    if BROKEN in nodes and rng.random() < 0.5:
        state = "NODE_FAIL" if rng.random() < 0.5 else "FAILED"
        return Attempt(nodes, begin, begin + rng.uniform(0.05, 0.6) * whole, state, "1:0", broken=True)
    if job.reason is None:
        return Attempt(nodes, begin, begin + whole, "COMPLETED", "0:0", broken=False)
    seconds = rng.uniform(8, 90) if job.reason in EARLY else rng.uniform(0.02, 0.7) * whole
    return Attempt(nodes, begin, begin + seconds, "FAILED", "1:0", broken=False)


def log(rng: random.Random, job: Job) -> str:
    """What the job's attempts printed, one after the other, as Slurm appends them."""
    lines = []
    for nodes, begin, end, state, _, broken in job.attempts:
        lines.append(f"{stamp(begin)} INFO starting {job.name} on {','.join(nodes)} with {job.gpus} GPUs")
        best = rng.uniform(0.3, 0.9)
        for epoch in range(1, min(job.epochs, int((end - begin) / job.epoch_s)) + 1):
            loss = best * (1 + 3 * math.exp(-epoch / 6)) + rng.gauss(0, 0.004)
            lines.append(f"{stamp(begin + epoch * job.epoch_s)} INFO epoch {epoch}/{job.epochs} loss {loss:.4f}")
        if state == "COMPLETED":
            lines.append(f"{stamp(end)} INFO training complete, model saved")
        elif broken:
            lines.append(
                f"{stamp(end)} kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, "
                "GPU has fallen off the bus."
            )
            if state == "NODE_FAIL":
                lines.append(
                    f"slurmstepd: error: *** JOB {job.number} ON {nodes[0]} CANCELLED AT {when(end)} "
                    "DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"
                )
        else:
            lines.append(recorded(job.case).rstrip("\n"))
    return "\n".join(lines) + "\n"


def truth(job: Job) -> str:
    """Why its last attempt failed; empty where it passed."""
    last = job.attempts[-1]
    if last.state == "COMPLETED":
        return ""
    return "gpu_hardware_error" if last.broken else str(job.reason)


def when(seconds: float) -> str:
    """A time as sacct prints it with TZ=UTC."""
    return (BEGIN + timedelta(seconds=round(seconds))).strftime("%Y-%m-%dT%H:%M:%S")


def stamp(seconds: float) -> str:
    """A time as loggers print it."""
    return when(seconds).replace("T", " ")


def records(job: Job) -> list[list[str]]:
    """The job's rows of `sacct -P -D`."""
    rows = []
    queued = job.submit
    for nodes, begin, end, state, code, _ in job.attempts:
        seconds = round(end) - round(begin)
        days, rest = divmod(seconds, 86_400)
        elapsed = f"{days}-" * bool(days) + f"{rest // 3600:02d}:{rest % 3600 // 60:02d}:{rest % 60:02d}"
        tres = f"billing={job.gpus * 8},cpu={job.gpus * 8},gres/gpu={job.gpus},mem={job.gpus * 50}G,node={len(nodes)}"
        rows.append(
            [
                *(str(job.number), str(job.number), job.name, job.user, USERS[job.user], "gpu", "normal"),
                *(state, code, code),
                *(when(queued), when(queued), when(begin), when(end), elapsed, "2-00:00:00"),
                *(str(len(nodes)), str(job.gpus * 8), tres, tres, ",".join(nodes), "None"),
            ]
        )
        queued = end
    return rows


CONF = f"""\
ClusterName=sample
GresTypes=gpu
SelectType=select/cons_tres
NodeName=gpu[01-{len(NODES):02d}] CPUs=64 RealMemory=412000 Gres=gpu:{GPUS}
PartitionName=gpu Nodes=gpu[01-{len(NODES):02d}] Default=YES MaxTime=2-00:00:00
"""
TOPOLOGY = "SwitchName=leaf1 Nodes=gpu[01-04]\nSwitchName=leaf2 Nodes=gpu[05-08]\nSwitchName=spine Switches=leaf[1-2]\n"


def main(target: Path) -> None:
    """Write the files."""
    rng = random.Random(SEED)  # noqa: S311 - a sample, no secret
    jobs = make(rng)
    target.mkdir(parents=True, exist_ok=True)
    lines = ["|".join(COLUMNS), *("|".join(row) for job in jobs for row in records(job))]
    (target / "sacct.txt").write_text("\n".join(lines) + "\n")
    (target / "slurm.conf").write_text(CONF)
    (target / "topology.conf").write_text(TOPOLOGY)
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for job in jobs:
            data = log(rng, job).encode()
            entry = tarfile.TarInfo(f"slurm-{job.number}.out")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    (target / "job-logs.tar.gz").write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    with (target / "truth.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("job", "reason", "recorded_case"))
        writer.writerows((job.number, truth(job), job.case or "") for job in jobs)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
