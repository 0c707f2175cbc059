"""How long an experiment takes on one core, on two, and on two workers of Dask: 350 replays of 10,000 jobs.

python benchmarks/experiments.py [--jobs N] [--seeds N]

Made-up jobs: arrivals by the second of ten days, log-normal run times, gangs of 1 to 8 GPUs; 7 loads, 5 policies,
10 seeds. The tables of all three must be the same. CPU time is that of all processes; of Dask, without its scheduler
and the start of its workers.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

POLICIES = "fifo,sjf,srtf,las,tiresias"
LOADS = "0.8:1.4:0.1"


def write_jobs(path: Path, count: int) -> None:
    """Write made-up jobs: on 16 nodes of 8 GPUs they need about as much as there is."""
    chance = random.Random(7)
    starts = sorted(chance.randrange(864_000) for _ in range(count))
    scale = 10_000 / count
    rows = (
        f"j{k},{at},{chance.lognormvariate(7.6, 1.2) * scale + 1:.0f},{chance.choice((1, 1, 1, 2, 4, 8))}\n"
        for k, at in enumerate(starts)
    )
    path.write_text("job_id,submit_time,duration,num_gpus\n" + "".join(rows), "utf-8")


def measured(command: list[str]) -> tuple[float, float, object]:
    """Run gpuctl; seconds, seconds of CPU of it and the processes that it waited for, and the tables."""
    begun, before = time.perf_counter(), os.times()
    done = subprocess.run([sys.executable, "-m", "gpuctl", *command], check=True, stdout=subprocess.PIPE)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - begun, used, json.loads(done.stdout)["tables"]


def with_dask(command: list[str], folder: Path) -> tuple[float, float, object]:
    """The same on two workers of Dask; CPU of the workers, too."""
    import psutil

    file = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    here = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
    starts = [
        ["scheduler", *here, "--port", "0", "--dashboard-address", "127.0.0.1:0"],
        *[["worker", *here, "--nthreads", "1", "--no-nanny"]] * 2,
    ]
    there = [
        subprocess.Popen([sys.executable, "-m", f"distributed.cli.dask_{kind}", *rest], **quiet)  # type: ignore[call-overload]
        for kind, *rest in starts
    ]
    try:
        while not file.exists() or not file.stat().st_size:
            time.sleep(0.1)
        address = json.loads(file.read_text("utf-8"))["address"].removeprefix("tcp://")
        time.sleep(10)
        workers = [psutil.Process(process.pid) for process in there[1:]]
        before = sum(sum(worker.cpu_times()[:2]) for worker in workers)
        wall, used, tables = measured([*command, "--engine", f"dask://{address}"])
        return wall, used + sum(sum(worker.cpu_times()[:2]) for worker in workers) - before, tables
    finally:
        for process in there:
            process.kill()
            process.wait()


def main() -> int:
    """Measure; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000, help="jobs of a replay")
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_jobs(folder / "jobs.csv", given.jobs)
        command = ["--quiet", "replay", str(folder / "jobs.csv"), "--cluster", "16x8", "--policy", POLICIES, "--json"]
        command += ["--scale-load", LOADS, "--seed", f"1..{given.seeds}"]
        # compiled code is made before anything is measured
        measured([*command[:-1], "1..2", "--jobs", "1"])
        found = {
            "one core": measured([*command, "--jobs", "1"]),
            "two cores": measured([*command, "--jobs", "2"]),
            "two workers of Dask": with_dask(command, folder),
        }
    for what, (wall, used, _) in found.items():
        print(f"{what:20} {wall:7.1f} s, {used:7.1f} s of CPU")
    tables = [tables for _, _, tables in found.values()]
    if tables.count(tables[0]) != len(tables):
        print("the tables differ", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
