"""CPU seconds of a replay as Python, by policy: the table of `gpuctl.replay.compile_cost`.

python benchmarks/first_run.py
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gpuctl.replay.compile_cost import INTERPRETED_S
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.policies import find
from gpuctl.replay.run import Models

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Print the table."""
    jobs = read_jobs(ROOT / "sample_data" / "jobs.csv")
    cluster = parse_cluster("4x8", jobs)
    for name, before in INTERPRETED_S.items():
        params = {"limits_from": "true"} if "limits_from" in {each.name for each in find(name).parameters} else {}
        begin = time.process_time()
        Simulation(jobs, cluster, find(name)(params), Models().settings(jobs, cluster), interpreted=True).run()
        print(f'"{name}": {time.process_time() - begin:.2f},  # {before:.2f} in the table')


if __name__ == "__main__":
    main()
