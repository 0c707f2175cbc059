"""A whole ``gpuctl analyze`` of a large made-up trace: seconds and peak memory, for telemetry of growing length.

    python benchmarks/analyze.py [JOBS] [ROWS …]

Every run is the real program in a process of its own, from raw logs to Parquet and HTML. Peak memory is the resident
set of that process: DuckDB keeps pages up to its limit (900 MB), past which it must not grow with the telemetry.
Beside it stands the job log alone, read by json.load into dicts.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path

BEGIN = datetime(2017, 10, 3)
MACHINES = 420


def write_jobs(path: Path, jobs: int, days: float) -> None:
    """A job log: no GPU is held twice, jobs wait for the first GPUs that come free on one or more nodes."""
    rng = random.Random(1)
    free = [[0.0] * 8 for _ in range(MACHINES)]
    log = []
    for number in range(jobs):
        submit = rng.uniform(0, days * 86400)
        size = rng.choices([1, 2, 4, 8, 16], [85, 4, 4, 6, 1])[0]
        now, attempts = submit, []
        for _ in range(1 + (rng.random() < 0.1)):
            nodes = rng.sample(range(MACHINES), -(-size // 8))
            start = max([now + 1, *(max(sorted(free[s])[: min(size, 8)]) for s in nodes)])
            end = start + rng.lognormvariate(7.5, 1.8)
            detail = []
            for s in nodes:
                lanes = sorted(range(8), key=lambda g, s=s: free[s][g])[: min(size, 8)]
                for g in lanes:
                    free[s][g] = end
                detail.append({"ip": f"m{s}", "gpus": [f"gpu{g}" for g in lanes]})
            attempts.append({"start_time": stamp(start), "end_time": stamp(end), "detail": detail})
            now = end
        log.append(
            {
                "status": rng.choices(["Pass", "Killed", "Failed"], [69, 14, 17])[0],
                "vc": f"{rng.randrange(14):06x}",
                "jobid": f"application_1506638472019_{number}",
                "attempts": attempts,
                "submitted_time": stamp(submit),
                "user": f"{rng.randrange(300):06x}",
            }
        )
    path.write_text(json.dumps(log, indent=4))


def stamp(seconds: float) -> str:
    """A time as the Philly job log writes it."""
    return str(BEGIN + timedelta(seconds=round(seconds)))


def write_telemetry(path: Path, rows: int) -> None:
    """Minutes of all nodes, as many as there are rows."""
    rng = random.Random(2)
    pool = [
        ",".join("NA" if rng.random() < 0.002 else f"{rng.random() * 100:.6f}" for _ in range(8)) for _ in range(4000)
    ]
    with path.open("w") as file:
        file.write("time,machineId," + ",".join(f"gpu{g}_util" for g in range(8)) + "\n")
        for minute in range(rows // MACHINES):
            at = f"{BEGIN + timedelta(minutes=minute)} PDT"
            file.write("".join(f"{at},m{m},{pool[(minute * 7919 + m * 104729) % 4000]},\n" for m in range(MACHINES)))


def run(command: list[str]) -> tuple[float, float]:
    """Seconds and peak MiB of a command."""
    began = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{command}: ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def main() -> None:
    """Print a line a run."""
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 80_000
    sizes = [int(rows) for rows in sys.argv[2:]] or [0, 5_000_000, 10_000_000, 20_000_000]
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder) / "logs"
        logs.mkdir()
        write_jobs(logs / "cluster_job_log", jobs, days=33)
        load = f"import json; json.load(open({str(logs / 'cluster_job_log')!r}))"
        seconds, peak = run([sys.executable, "-c", load])
        print(f"json.load of {jobs} jobs alone: {seconds:.1f} s, {peak:.0f} MiB peak")
        for rows in sizes:
            write_telemetry(logs / "cluster_gpu_util", rows)
            out = Path(folder) / "out"
            command = [
                sys.executable,
                "-m",
                "gpuctl",
                "analyze",
                str(logs),
                "--parquet",
                str(out),
                "--html",
                f"{out}.html",
            ]
            seconds, peak = run(command)
            print(f"gpuctl analyze, {jobs} jobs, {rows} rows: {seconds:.1f} s, {peak:.0f} MiB peak", flush=True)


if __name__ == "__main__":
    main()
