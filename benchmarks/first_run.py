"""CPU seconds of a replay as Python and of compiling, by policy: what `gpuctl.replay.run` assumes of all.

python benchmarks/first_run.py [POLICY ...]

Compiling is that of a process of its own with an empty cache, less the same process once more with a full one.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gpuctl.replay import run
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.policies import BUILT_IN, find
from gpuctl.replay.run import Models

ROOT = Path(__file__).resolve().parent.parent


REPLAY = """
import gc, sys
sys.path.insert(0, {root!r})
from benchmarks.first_run import replay
# as `gpuctl replay` compiles
gc.disable()
replay({name!r}, interpreted=False)
"""


def replay(name: str, *, interpreted: bool) -> None:
    """Replay the sample's jobs under a policy."""
    jobs = read_jobs(ROOT / "sample_data" / "jobs.csv")
    cluster = parse_cluster("4x8", jobs)
    params = {"limits_from": "true"} if "limits_from" in {each.name for each in find(name).parameters} else {}
    models = Models().settings(jobs, cluster)
    Simulation(jobs, cluster, find(name)(params), models, interpreted=interpreted).run()


def compiling_s(name: str) -> float:
    """CPU seconds to compile a policy."""
    taken = []
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(2):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(
                [sys.executable, "-c", REPLAY.format(root=str(ROOT), name=name)],
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
                check=True,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return taken[0] - taken[1]


def main() -> None:
    """Print the tables."""
    for name in sys.argv[1:] or [name for name in BUILT_IN if name != "recorded"]:
        begin = time.process_time()
        replay(name, interpreted=True)
        spent = time.process_time() - begin
        print(
            f"{name}: interpreted {spent:.2f} s ({run.SAMPLE_S:.2f} assumed), "
            f"compiling {compiling_s(name):.1f} s ({run.COMPILING_S:.1f} assumed)",
            flush=True,
        )


if __name__ == "__main__":
    main()
