"""A small Slurm log whose figures were worked out by hand.

Four nodes: n1 (8 GPUs, partition gpu), n2 (16, debug), n3 and n4 (8 each, frag); gpu and debug have a quota of 8 GPUs.
Job 2 waits 3 h behind the quota of gpu, job 6 half an hour behind that of debug, and job 9 waits 1.5 h for 8 GPUs on
one node while n3 and n4 have 4 free each. Job 6 ends in the second in which it starts. Of the 68 GPU-hours 20 are
lost: 16 to a failure, 2 at a time limit, 2 to a cancellation. From the first submission to the last end are 8 h.
"""

from __future__ import annotations

import re
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


MIXED_HEADER = (
    "JobIDRaw|JobID|JobName|User|Account|Partition|Submit|Eligible|Start|End|"
    "State|ExitCode|NNodes|AllocTRES|NodeList|Reason"
)
MIXED = (
    # held until 02:00 by a dependency; runs on two nodes
    "1|1|train|ada|a|gpu|2T00:00|2T02:00|2T02:30|2T04:00|COMPLETED|0:0|2|gres/gpu=8|g[1-2]|Dependency",
    # tasks of an array, one of which fails twice for want of memory, the second time for good
    "11|10_1|sweep|bob|a|gpu|2T01:00|2T01:00|2T01:00|2T01:30|OUT_OF_MEMORY|0:125|1|gres/gpu=2|g1|None",
    "11|10_1|sweep|bob|a|gpu|2T01:30|2T01:30|2T04:00|2T05:00|OUT_OF_MEMORY|0:125|1|gres/gpu=2|g1|None",
    "12|10_2|sweep|bob|a|gpu|2T01:00|2T01:00|2T01:10|2T02:00|COMPLETED|0:0|1|gres/gpu=2|g2|None",
    # loses its node, then passes
    "20|20|train|ada|b|gpu|3T00:00|3T00:00|3T00:10|3T03:00|NODE_FAIL|0:1|1|gres/gpu=4|g2|None",
    "20|20|train|ada|b|gpu|3T03:00|3T03:05|3T03:10|3T08:00|COMPLETED|0:0|1|gres/gpu=4|g1|None",
    "21|21|eval|eve|b|cpu|3T00:00|3T00:00|3T00:01|3T00:06|FAILED|3:0|1|cpu=4|c1|None",
    "22|22|train|eve|b|gpu|4T06:00|4T06:00|4T06:00|4T07:00|TIMEOUT|0:0|1|gres/gpu=16|g3|None",
    "23|23|train|eve|b|gpu|4T06:30|4T06:30|4T07:00|4T08:00|CANCELLED by 7|0:15|1|gres/gpu=16|g3|None",
    "24|24|long|ada|a|gpu|5T00:00|5T00:00|5T00:05|Unknown|RUNNING|0:0|1|gres/gpu=8|g1|None",
    "25|25|late|bob|a|gpu|5T01:00|5T01:00|Unknown|Unknown|PENDING|0:0|1||None assigned|Resources",
    "26|26|off|bob|a|gpu|5T01:00|5T01:00|None|5T02:00|CANCELLED by 7|0:0|1||None assigned|Priority",
)
SAMPLES = (
    "EPOCH|JOBID|ARRAY|STATE|REASON",
    "1772413200.0|1|1|PENDING|Dependency",
    "1772418600.0|1|1|PENDING|Resources",
    "1772674200.0|25|25|PENDING|Resources",
    "1772674200.0|24|24|RUNNING|None",
)


def write_mixed_log(folder: Path) -> Path:
    """Write accounting with retries, arrays, held, running and waiting jobs, and samples of the queue; no node list."""
    logs = folder / "mixed"
    logs.mkdir()
    rows = [re.sub(r"([2-5])T(\d\d:\d\d)", r"2026-03-0\1T\2:00", row) for row in MIXED]
    (logs / "sacct.txt").write_text("\n".join((MIXED_HEADER, *rows)) + "\n", "utf-8")
    (logs / "squeue_samples.txt").write_text("\n".join(SAMPLES) + "\n", "utf-8")
    return logs
