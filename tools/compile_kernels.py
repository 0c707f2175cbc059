"""Compiles the hot loops of all built-in policies, and those of the analyses, once, before the tests want them.

python tools/compile_kernels.py

Tests run in several processes, and whichever came first would compile while its time-outs run; two would do the same
work twice. What is compiled is kept (`gpuctl.compiled.jit.compiled`): a second run takes the time of its imports.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from gpuctl.core.errors import GpuctlError
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.policies import BUILT_IN, find
from gpuctl.replay.run import Models

ROOT = Path(__file__).resolve().parents[1]
NEEDS_MORE = {"recorded"}
"""Policies that a CSV of jobs is not enough for; their loops are small."""


def main() -> int:
    """Compile; returns the exit code."""
    jobs = read_jobs(ROOT / "sample_data" / "jobs.csv")
    servers = parse_cluster("4x8", jobs)
    try:
        for name in BUILT_IN:
            if name not in NEEDS_MORE:
                # `gpuctl replay` would not compile anything for so few jobs
                Simulation(jobs, servers, find(name)(), Models().settings(jobs, servers)).run()
    except GpuctlError as error:
        print(f"compile_kernels: {error}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gpuctl", "--quiet", "analyze", str(ROOT / "sample_data" / "philly")]
        return subprocess.run([*command, "--csv", folder], stdout=subprocess.DEVNULL, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
