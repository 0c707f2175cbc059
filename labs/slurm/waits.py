"""Records a queue of a real Slurm and what became of it: ``python -m labs.slurm.waits FOLDER``.

Jobs of four users, of one to four GPUs, that use up 4 to 60 % of limits of two minutes: first a past, then a queue.
`squeue`, `sinfo` and the accounting are written as they are when all of the queue has come, and the accounting once
more when all of it has ended. Waits are of seconds: a scheduler that takes two seconds for a pass is part of them.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from labs.slurm.lab import Lab

USERS = ("games", "mail", "news", "uucp")
PAST, QUEUED, LIMIT_S = 30, 120, 120
FIELDS = "JobIDRaw,JobID,User,Partition,State,Submit,Eligible,Start,End,Timelimit,NNodes,ReqTRES,AllocTRES"
LEFT_IN_CONF = ("ClusterName", "Scheduler", "Select", "Gres", "AccountingStorageTRES", "AccountingStorageEnforce",
                "Priority", "Preempt", "NodeName", "PartitionName", "KillWait", "JobRequeue")  # fmt: skip
"""Statements of slurm.conf that bear on starts; the others name folders and ports of a node."""


def submit(lab: Lab, draw: np.random.Generator, number: int) -> str:
    user, gpus = USERS[number % 4], int(draw.choice([1, 2, 4], p=[0.4, 0.3, 0.3]))
    # users have habits of their own
    share = float(np.clip(draw.beta(2, 6) * (0.5 + 0.5 * (number % 4)), 0.04, 0.6))
    words = ["sbatch", "--parsable", "--output=/dev/null", "--cpus-per-task=1", "--mem-per-cpu=50M", f"--uid={user}"]
    words += ["--partition=gpu", f"--gres=gpu:{gpus}", "--time=2", f"--wrap=sleep {share * LIMIT_S:.0f}"]
    return lab.run(*words).strip()


def accounting(lab: Lab) -> str:
    return lab.run("sacct", "-X", "-P", "-S", "now-1hour", "-o", FIELDS)


def settle(lab: Lab, jobs: list[str], within_s: float) -> None:
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        text = accounting(lab)
        done = {line.split("|")[0] for line in text.splitlines() if "|COMPLETED|" in line or "|TIMEOUT|" in line}
        if done.issuperset(jobs):
            return
        time.sleep(3)
    raise TimeoutError("jobs did not end")


def main() -> None:
    """Record one queue."""
    place = Path(sys.argv[1])
    place.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 5)
    with Lab() as lab:
        conf = (lab.folder / "slurm.conf").read_text().splitlines()
        lines = [line for line in conf if line.startswith(LEFT_IN_CONF)]
        (place / "slurm.conf").write_text("\n".join(lines) + "\n")
        settle(lab, [submit(lab, draw, k) for k in range(PAST)], 600)
        queue = [submit(lab, draw, PAST + k) for k in range(QUEUED)]
        # Slurm estimates starts in passes of backfill, and tells the accounting of starts a little later
        time.sleep(12)
        (place / "sacct.txt").write_text(accounting(lab))
        for name, words in (("squeue", ("--json", "--all", "--array")), ("sinfo", ("--json",))):
            (place / f"{name}.json").write_text(lab.run(name, *words))
        (place / "taken.txt").write_text(f"{time.time():.0f}\n")
        settle(lab, queue, 900)
        (place / "later.txt").write_text(accounting(lab))


if __name__ == "__main__":
    main()
