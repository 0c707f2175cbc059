"""A small Slurm log whose figures were worked out by hand.

Four nodes: n1 (8 GPUs, partition gpu), n2 (16, debug), n3 and n4 (8 each, frag); gpu and debug have a quota of 8 GPUs.
Job 2 waits 3 h behind the quota of gpu, job 6 half an hour behind that of debug, and job 9 waits 1.5 h for 8 GPUs on
one node while n3 and n4 have 4 free each. Job 6 ends in the second in which it starts. Of the 68 GPU-hours 20 are
lost: 16 to a failure, 2 at a time limit, 2 to a cancellation. From the first submission to the last end are 8 h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "JobID|User|Partition|Submit|Eligible|Start|End|State|Timelimit|NNodes|AllocCPUS|AllocTRES|NodeList"
JOBS = (
    ("1", "ada", "gpu", "00:00", "00:00", "04:00", "COMPLETED", 4, "n1"),
    ("2", "bob", "gpu", "01:00", "04:00", "06:00", "FAILED", 8, "n1"),
    ("3", "ada", "gpu", "06:00", "06:00", "07:00", "TIMEOUT", 2, "n1"),
    ("4", "ada", "gpu", "06:00", "06:00", "08:00", "CANCELLED by 1", 1, "n1"),
    ("5", "bob", "debug", "07:00", "07:00", "08:00", "COMPLETED", 8, "n2"),
    ("6", "bob", "debug", "07:30", "08:00", "08:00", "COMPLETED", 1, "n2"),
    ("7", "eve", "frag", "00:00", "00:00", "02:00", "COMPLETED", 4, "n3"),
    ("8", "eve", "frag", "00:00", "00:00", "02:00", "COMPLETED", 4, "n4"),
    ("9", "eve", "frag", "00:30", "02:00", "03:00", "COMPLETED", 8, "n3"),
)
NODES = (("n1", 8, "gpu"), ("n2", 16, "debug"), ("n3", 8, "frag"), ("n4", 8, "frag"))
QUOTAS = "vc,quota_gpus\ndebug,8\ngpu,8\nfrag,16\n"


def write_worked_log(folder: Path) -> Path:
    """Write the logs and the quotas into a folder; return the directory of the logs."""
    lines = [HEADER]
    for job, user, queue, *times, state, gpus, node in JOBS:
        submit, start, end = (f"2026-03-02T{time}:00" for time in times)
        tres = f"cpu=8,gres/gpu={gpus},node=1"
        lines.append(
            "|".join((job, user, queue, submit, submit, start, end, state, "1-00:00:00", "1", "8", tres, node))
        )
    logs = folder / "logs"
    logs.mkdir()
    (logs / "sacct.txt").write_text("\n".join(lines) + "\n", "utf-8")
    nodes = "".join(
        f"NodeName={name} Arch=x86_64 CoresPerSocket=16 CPUAlloc=0 CPUEfctv=64 CPUTot=64 CPULoad=0.1 Gres=gpu:{gpus} "
        f"RealMemory=500000 State=IDLE ThreadsPerCore=1 Partitions={queue} "
        f"CfgTRES=cpu=64,mem=500000M,gres/gpu={gpus} AllocTRES=\n"
        for name, gpus, queue in NODES
    )
    (logs / "nodes.txt").write_text(nodes, "utf-8")
    (folder / "quotas.csv").write_text(QUOTAS, "utf-8")
    return logs
