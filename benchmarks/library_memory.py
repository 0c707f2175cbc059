"""Peak memory of a notebook that opens a trace store and asks it by SQL.

    python benchmarks/library_memory.py [--jobs 1000000] [--folder FOLDER]

The store is of made-up Slurm jobs (`benchmarks/slurm.py`) and stays in FOLDER for the next run. Each question is asked
in a process of its own: ``import gpuctl``, `gpuctl.open`, one `.sql`. What is printed is the most memory that the whole
process had (VmHWM), interpreter and libraries included. The last question returns a row per job, so that its frame
counts as well.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from slurm import write

QUESTIONS = {
    "open": "SELECT 1",
    "count": "SELECT state, count(*) AS jobs, sum(gpus) AS gpus FROM jobs GROUP BY state ORDER BY jobs DESC",
    "waits": "SELECT queue, quantile_cont(epoch(start_ts - submit_ts), 0.95) AS wait_s FROM jobs GROUP BY queue",
    "GPU-hours": 'SELECT "user", sum(gpu_hours) AS h FROM held JOIN jobs USING (cluster, job) GROUP BY 1 ORDER BY h',
    "nodes": "SELECT machine, count(*) AS n FROM placements GROUP BY machine ORDER BY n DESC LIMIT 10",
    "window": "SELECT job, submit_ts - lag(submit_ts) OVER (PARTITION BY \"user\" ORDER BY submit_ts, job) AS after "
              "FROM jobs ORDER BY after DESC NULLS LAST LIMIT 10",
    "sorted": "SELECT job FROM jobs ORDER BY end_ts, job LIMIT 1 OFFSET 500000",
    "every job": "SELECT job, \"user\", queue, state, submit_ts, start_ts, end_ts, gpus FROM jobs",
}  # fmt: skip
ASK = """
import sys, gpuctl
with gpuctl.open(sys.argv[1]) as trace:
    rows = trace.sql(sys.argv[2]).height
peak = next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(rows, round(peak))
"""


def main() -> None:
    """Print a line per question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "gpuctl-library-memory")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    store = given.folder / f"{given.jobs}.duckdb"
    if not store.exists():
        log = given.folder / f"{given.jobs}.txt"
        write(log, given.jobs)
        subprocess.run([sys.executable, "-m", "gpuctl", "-q", "ingest", log, "--db", store], check=True)
        log.unlink()
    print("question", "rows", "MiB", sep="\t")
    for name, text in QUESTIONS.items():
        done = subprocess.run([sys.executable, "-c", ASK, store, text], check=True, capture_output=True, text=True)
        print(name, *done.stdout.split(), sep="\t", flush=True)


if __name__ == "__main__":
    main()
