"""Compiles the hot loops of all policies, analyses, waits, and of worlds of their own, before the tests want them.

python tools/compile_kernels.py

Tests run in several processes, and whichever came first would compile while its time-outs run; two would do the same
work twice. What is compiled is kept (`gpuctl.compiled.jit.compiled`): a second run takes the time of its imports.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import GpuctlError
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.policies import BUILT_IN, find
from gpuctl.replay.run import Models, entries

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[1]
GARBAGE = 100_000, 50, 1000
"""How rarely Python looks for garbage: most of what a compiler makes stays, and looking took a seventh of the time."""
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


def run_commands(commands: list[list[str]]) -> str:
    """Run commands, which compile their loops; returns what is wrong, else nothing."""
    from gpuctl.cli.main import app

    with tempfile.TemporaryDirectory() as folder:
        for words in commands:
            line = ["--quiet", *(word.replace("FOLDER", folder) for word in words)]
            with Path(os.devnull).open("w") as nothing, redirect_stdout(nothing):
                code = app(line, prog_name="gpuctl", standalone_mode=False)
            if code:
                return f"compile_kernels: {' '.join(line)} ends with {code}"
    return ""


def compile_sweeps(_: list[Any]) -> str:
    """Compile what few jobs are swept without: as many instants as take compiled code."""
    from gpuctl.analyze import fragmentation
    from gpuctl.analyze.occupancy import Nodes

    whole, none = np.zeros(0, np.int64), np.zeros(0)
    nodes = Nodes(np.array([8]), np.array([0]), none, none, whole, whole)
    demand = fragmentation.Demand(none, none, whole, whole)
    fragmentation.means(nodes, [np.ones(1, bool)], demand, np.arange(50_000.0))
    return ""


def work() -> list[tuple[Callable[[list[Any]], str], list[Any]]]:
    """What there is to do, the longest first."""
    trace, cases = ROOT / "sample_data" / "chain" / "sacct.txt.gz", ROOT / "docs" / "examples" / "chain_cases.csv"
    evaluate = ["chain", "evaluate", str(trace)]
    # by one process: all of them run the loop of episodes; a short limit has few of them
    chains = [
        [*evaluate, "--compat", "mirage", "--cases", str(cases)],
        [*evaluate, "--nodes", "16", "--limit", "4h", "--split", "2026-03-16", "--policy", "plan,newsvendor"],
        ["train", "wait", str(trace), "-o", "FOLDER/model"],
        ["predict", "wait", str(trace), "--model", "FOLDER/model", "--nodes", "1", "--limit", "1h"],
    ]
    deferrable = [
        ["deferrable", "convert", str(ROOT / "sample_data" / "jobs.csv"), "--gpus", "32", "-o", "FOLDER/slots"],
        ["deferrable", "train", "FOLDER/slots", "--minutes", "0.01", "-o", "FOLDER/rule"],
    ]
    analyses = [["analyze", str(ROOT / "sample_data" / "philly"), "--csv", "FOLDER"]]
    logs = ROOT / "tests" / "fixtures"
    yarn = logs / "yarn" / "3.5.0" / "hadoop-lab-resourcemanager-rm01.log.gz"
    slurm = logs / "slurm" / "scheduling" / "backfill" / "slurmctld.log.gz"
    ingests = [["ingest", str(file), "--db", f"FOLDER/{file.name}.duckdb"] for file in (yarn, slurm)]
    example = f"{ROOT / 'docs' / 'examples' / 'compiled_policy.py'}:LongestWait"
    # what a Python policy calls is compiled one by one
    elastic, policy = (ROOT / "docs" / "examples" / name for name in ("elastic_jobs.csv", "elastic.py"))
    python = [
        ["replay", str(elastic), "--cluster", "2x8", "--overhead", "const:30", "--policy", f"{policy}:GrowAndShrink"]
    ]
    accels = [["accel", "generate", "-o", "FOLDER/r.csv"], ["accel", "simulate", "FOLDER/r.csv"]]
    # its fidelity runs all that there is
    stages = [["dag", "distil", "--train", "1", "--rounds", "1", "--test", "1", "--load", "0.5", "-o", "FOLDER/tree"]]
    policies = ((compile_policies, names) for names in together())
    commands = [(run_commands, each) for each in (chains, accels, stages)]
    last = [(run_commands, each) for each in (deferrable, python, analyses, ingests)]
    return [*commands, *policies, (compile_policies, [example]), *last, (compile_sweeps, [])]


def main() -> int:
    """Compile, a process a core; returns the exit code."""
    # a process that has compiled is not forked: its threads would not be there
    new = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), new, initializer=gc.set_threshold, initargs=GARBAGE) as processes:
        parts = [processes.submit(run, what) for run, what in work()]
        wrong = [text for text in (part.result() for part in parts) if text]
    print(*wrong, sep="\n", end="\n" if wrong else "", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
