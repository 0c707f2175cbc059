"""First screens from loaded stores, with and without a filter, and of a replay: CPU seconds and peak memory.

    python benchmarks/first_screen.py [--scale F] [--repeats N] [--only philly|slurm|replay]

With scale 1: 80,000 jobs of a Philly trace with 10 million rows of telemetry, 1 million Slurm jobs, and 80,000 jobs to
replay. Every run is the real program in a process of its own, and the smallest of the repeats counts; CPU seconds are
of all threads. The stores are loaded first, which is not timed. Run it on two commits to compare them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

BEGIN = datetime(2017, 10, 3, tzinfo=UTC)
MACHINES = 420
GPUS = 8
DAYS = 33
PARTITIONS = ("gpu", "a100", "v100", "debug")
NODES = 200
"""Of each partition."""


def stamp(seconds: float, between: str = " ") -> str:
    """A time as logs write it."""
    return (BEGIN + timedelta(seconds=round(seconds))).strftime(f"%Y-%m-%d{between}%H:%M:%S")


def write_philly(folder: Path, jobs: int, rows: int) -> None:
    """A job log and GPU telemetry; each gang starts where GPUs come free soonest of a few nodes looked at."""
    rng = random.Random(1)
    free = [[0.0] * GPUS for _ in range(MACHINES)]
    log = []
    for number, submit in enumerate(sorted(rng.uniform(0, DAYS * 86_400) for _ in range(jobs))):
        size, status = (
            rng.choices([1, 2, 4, 8], [85, 5, 5, 5])[0],
            rng.choices(["Pass", "Killed", "Failed"], [69, 14, 17])[0],
        )
        now, attempts = submit, []
        for _ in range(1 + (rng.random() < 0.1)):
            node = min(rng.sample(range(MACHINES), 4), key=lambda s: sorted(free[s])[size - 1])
            lanes = sorted(range(GPUS), key=lambda g, s=node: free[s][g])[:size]
            start = max(now + 1, *(free[node][g] for g in lanes))
            end = start + min(rng.lognormvariate(7.5, 1.8), 5 * 86_400)
            for g in lanes:
                free[node][g] = end
            where = {"ip": f"m{node}", "gpus": [f"gpu{g}" for g in lanes]}
            attempts.append({"start_time": stamp(start), "end_time": stamp(end), "detail": [where]})
            now = end
        log.append(
            {
                "status": status, "vc": f"{rng.randrange(14):06x}", "jobid": f"application_1_{number}",
                "attempts": attempts, "submitted_time": stamp(submit), "user": f"user{rng.randrange(300)}",
            }
        )  # fmt: skip
    (folder / "cluster_job_log").write_text(json.dumps(log))
    pool = [",".join(f"{rng.random() * 100:.6f}" for _ in range(GPUS)) for _ in range(4000)]
    with (folder / "cluster_gpu_util").open("w") as file:
        file.write("time,machineId," + ",".join(f"gpu{g}_util" for g in range(GPUS)) + ",\n")
        for minute in range(rows // MACHINES):
            at = f"{stamp(60 * minute)} PDT"
            file.write("".join(f"{at},m{m},{pool[(minute * 7919 + m * 104729) % 4000]},\n" for m in range(MACHINES)))


def write_slurm(folder: Path, jobs: int) -> None:
    """The text of sacct, of partitions with nodes of their own."""
    rng = random.Random(2)
    states = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 7", "NODE_FAIL")
    head = "JobIDRaw JobID JobName User Account Partition State Submit Eligible Start End ReqTRES AllocTRES NodeList "
    head += "Priority"
    with (folder / "sacct.txt").open("w") as file:
        file.write(head.replace(" ", "|") + "\n")
        submit = 0.0
        for number in range(jobs):
            submit += rng.expovariate(jobs / (DAYS * 86_400))
            start = submit + rng.expovariate(1 / 2400) * (rng.random() < 0.6)
            end = start + max(1.0, min(rng.lognormvariate(7, 2), 7 * 86_400))
            part, gpus = rng.randrange(len(PARTITIONS)), rng.choices([1, 2, 4, 8, 16, 32], [50, 15, 15, 15, 3, 2])[0]
            nodes, first = max(1, gpus // GPUS), rng.randrange(NODES - 4) + part * NODES
            names = f"n{first:04}" if nodes == 1 else f"n[{first:04}-{first + nodes - 1:04}]"
            held, user = f"gres/gpu={gpus},node={nodes}", rng.randrange(2000)
            state = rng.choices(states, [62, 15, 6, 15, 2])[0]
            times = [stamp(second, "T") for second in (submit, submit, start, end)]
            row = [number, number, "train", f"u{user:04}", f"a{user % 150:03}", PARTITIONS[part], state, *times]
            file.write("|".join(map(str, [*row, held, held, names, rng.randrange(10**6)])) + "\n")


def write_csv(path: Path, jobs: int) -> None:
    """Jobs for a replay."""
    rng = random.Random(3)
    with path.open("w") as file:
        file.write("job_id,submit_time,duration,num_gpus\n")
        for number, submit in enumerate(sorted(rng.uniform(0, DAYS * 86_400) for _ in range(jobs))):
            size = rng.choices([1, 2, 4, 8, 16], [85, 5, 5, 4, 1])[0]
            file.write(f"{number},{submit:.0f},{max(1.0, min(rng.lognormvariate(7.5, 1.8), 5e5)):.0f},{size}\n")


def run(*arguments: str) -> tuple[float, float]:
    """CPU seconds and peak MiB of a gpuctl command."""
    child = subprocess.Popen(
        [sys.executable, "-m", "gpuctl", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"gpuctl {' '.join(arguments)}: ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measured(what: str, repeats: int, *arguments: str) -> None:
    """Print a line for a command that has run once before."""
    run(*arguments)
    runs = [run(*arguments) for _ in range(repeats)]
    print(f"{what:60} {min(cpu for cpu, _ in runs):7.2f} CPU s {max(peak for _, peak in runs):7.0f} MiB", flush=True)


def of_store(folder: Path, what: str, user: str, repeats: int) -> None:
    """The screens of the logs in a folder."""
    store = str(folder / "store.duckdb")
    run("ingest", str(folder), "--db", store)
    screen = ("analyze", store, "--format", "table")
    for name, more in (
        ("first screen", ()),
        (f"of one user (--user {user})", ("--user", user)),
        ("of a week (--since, --until)", ("--since", stamp(7 * 86_400)[:10], "--until", stamp(14 * 86_400)[:10])),
        ("--table overview", ("--table", "overview")),
    ):
        measured(f"{what}: {name}", repeats, *screen, *more)


def main() -> None:
    """Print a line a command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of all numbers of jobs and rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=("philly", "slurm", "replay"))
    given = parser.parse_args()
    jobs, rows, many = (int(given.scale * number) for number in (80_000, 10_000_000, 1_000_000))
    with tempfile.TemporaryDirectory() as root:
        for kind in ("philly", "slurm", "replay") if given.only is None else (given.only,):
            folder = Path(root) / kind
            folder.mkdir()
            if kind == "philly":
                write_philly(folder, jobs, rows)
                of_store(folder, f"{jobs:,} Philly jobs, {rows:,} rows", "user7", given.repeats)
            elif kind == "slurm":
                write_slurm(folder, many)
                of_store(folder, f"{many:,} Slurm jobs", "u0007", given.repeats)
            else:
                write_csv(folder / "jobs.csv", jobs)
                what = (
                    "replay",
                    str(folder / "jobs.csv"),
                    "--cluster",
                    "100x8",
                    "--policy",
                    "fifo",
                    "--format",
                    "table",
                )
                measured(f"replay of {jobs:,} jobs, fifo: screen", given.repeats, *what)


if __name__ == "__main__":
    main()
