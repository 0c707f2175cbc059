"""Compiles the hot loops of all policies, of the analyses, of chains and of waits, once, before the tests want them.

python tools/compile_kernels.py

Tests run in several processes, and whichever came first would compile while its time-outs run; two would do the same
work twice. What is compiled is kept (`gpuctl.compiled.jit.compiled`): a second run takes the time of its imports.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

from gpuctl.core.errors import GpuctlError
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.policies import BUILT_IN, find
from gpuctl.replay.run import Models, entries

ROOT = Path(__file__).resolve().parents[1]
NEEDS_MORE = {"recorded"}
"""Policies that a CSV of jobs is not enough for; their loops are small."""


def together() -> list[list[str]]:
    """The policies, those that run the same loops side by side: two processes would compile them twice."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in BUILT_IN:
        if name not in NEEDS_MORE:
            loops = sorted(f"{loop.__module__}.{loop.__qualname__}" for loop in entries(find(name)))
            groups.setdefault(tuple(loops), []).append(name)
    return list(groups.values())


def compile_policies(names: list[str]) -> str:
    """Compile what some policies run; returns what is wrong, else nothing."""
    jobs = read_jobs(ROOT / "sample_data" / "jobs.csv")
    servers = parse_cluster("4x8", jobs)
    try:
        for name in names:
            # `gpuctl replay` would not compile anything for so few jobs
            Simulation(jobs, servers, find(name)(), Models().settings(jobs, servers)).run()
    except GpuctlError as error:
        return f"compile_kernels: {error}"
    return ""


def compile_analyses() -> int:
    """Compile what the analyses run; returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gpuctl", "--quiet", "analyze", str(ROOT / "sample_data" / "philly")]
        return subprocess.run([*command, "--csv", folder], stdout=subprocess.DEVNULL, check=False).returncode


def compile_chains() -> int:
    """Compile what pairs of jobs run; returns the exit code."""
    sample, pairs = ROOT / "sample_data" / "chain" / "sacct.txt.gz", ROOT / "docs" / "examples" / "chain_cases.csv"
    command = [sys.executable, "-m", "gpuctl", "--quiet", "chain", "evaluate", str(sample)]
    split = ["--nodes", "16", "--limit", "24h", "--split", "2026-03-16", "--policy", "plan"]
    return max(
        subprocess.run([*command, *words], stdout=subprocess.DEVNULL, check=False).returncode
        for words in (["--compat", "mirage", "--cases", str(pairs)], split)
    )


def compile_waits() -> int:
    """Compile what forecasts of waits run; returns the exit code."""
    sample = ROOT / "sample_data" / "chain" / "sacct.txt.gz"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gpuctl", "--quiet", "train", "wait", str(sample), "-o", f"{folder}/model"]
        return subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode


def main() -> int:
    """Compile, a process a core; returns the exit code."""
    # a process that has compiled is not forked: its threads would not be there
    new = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), new) as processes, ThreadPoolExecutor(1) as thread:
        policies = processes.map(compile_policies, together())
        code = thread.submit(lambda: compile_analyses() or compile_chains() or compile_waits()).result()
        wrong = [text for text in policies if text]
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else code


if __name__ == "__main__":
    sys.exit(main())
