"""Cluster managers' own policies on 82,247 Philly jobs: seconds, and how many times those of EASY backfilling.

    python benchmarks/managers.py [REPEATS] [JOBS.csv]

The jobs are those of ../shared/data/philly/sia_philly.csv, as benchmarks/replay.py reads them, with limits as users
round them (``--limits-from steps``) for the policies that plan ahead. The policies have their defaults: no site's
configuration. Seconds are those of the processor, which others on the machine change less than the clock's, the
smallest of REPEATS (1), after a run of the first 500 jobs that compiles the code, and with reading the cluster; the
ratio is to ``easy`` on the same nodes. On 64x8 thousands of jobs wait; 83x2+469x8 is about as large as the cluster
that the trace was recorded on.

On 2026-11-22, on two hyper-threads of a Xeon that others used, too, each once, seconds (times ``easy``):

    policy              64x8           83x2+469x8
    easy                 0.29            0.19
    conservative        29.7  (102)      0.14 (0.7)
    slurm               12.7   (43)      1.06   (6)
    yarn-capacity        0.94   (3)      0.33   (2)
    yarn-fair            5.1   (17)      9.1   (49)
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent))

import replay as common

from gpuctl.replay.inputs.estimates import plan_limits
from gpuctl.replay.inputs.job_csv import read_jobs

if TYPE_CHECKING:
    from gpuctl.replay.engine.simulation import Simulation
    from gpuctl.replay.models.records import Workload

CLUSTERS = ("64x8", "83x2+469x8")
POLICIES = ("easy", "conservative", "slurm", "yarn-capacity", "yarn-fair")
FEW = 500
"""Jobs of the run that compiles the code."""


def timed(work: Workload, nodes: str, policy: str) -> tuple[float, Simulation]:
    """Seconds of one simulation, and what came of it."""
    begin = time.process_time()
    done = common.run(work, nodes, policy)
    return time.process_time() - begin, done


def main() -> None:
    """Print the table."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    source = Path(sys.argv[2]) if len(sys.argv) > 2 else common.PHILLY
    if not source.is_file():
        raise SystemExit(f"skipped: {source} is not there")
    rows = common.philly(source)
    with tempfile.TemporaryDirectory() as folder:
        work = plan_limits(read_jobs(common.write(Path(folder) / "jobs.csv", rows)), "steps")
        few = plan_limits(read_jobs(common.write(Path(folder) / "few.csv", rows[:FEW])), "steps")
    print(f"{work.size:,} jobs, smallest of {repeats} runs each")
    print(f"{'policy':<14} {'cluster':<12} {'seconds':>8} {'jobs/s':>9} {'x easy':>7} {'mean wait s':>12}")
    for nodes in CLUSTERS:
        easy = 0.0
        for policy in POLICIES:
            common.run(few, nodes, policy)
            seconds, done = min((timed(work, nodes, policy) for _ in range(repeats)), key=lambda run: run[0])
            easy = easy or seconds
            wait = float(done.outcome().jobs["wait_s"].mean())  # type: ignore[arg-type]
            line = f"{policy:<14} {nodes:<12} {seconds:8.3f} {work.size / seconds:9,.0f}"
            print(f"{line} {seconds / easy:7.1f} {wait:12.1f}", flush=True)


if __name__ == "__main__":
    main()
