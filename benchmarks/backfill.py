"""Backfilling: how fast on 82,247 Philly jobs, and beside AccaSim on the same 10,000 jobs.

    python benchmarks/backfill.py [REPEATS] [JOBS.csv]

The jobs are those of ../shared/data/philly/sia_philly.csv, as benchmarks/replay.py reads them; the 10,000 those of
../shared/oracles/fifo_strict (submissions from 2017-10-09 on, 512 GPUs). No trace tells their time limits: ``true``
plans with run times, ``factor:3`` with three times those, ``steps`` with limits as users round them (see
`gpuctl.replay.inputs.estimates`). Ours is `Simulation.wall_s`, the smallest of REPEATS (3) after one run that warms
the compiled code.

AccaSim 1.1.3 (PyPI; it needs Python 3.9 or older) runs once, where ``ACCASIM_PYTHON`` is the Python of an environment
that has it, as ``python3.9 -m venv /tmp/acca && /tmp/acca/bin/pip install accasim``: EASYBackfilling with FirstFit on
64 nodes of 8, its seconds without the start of Python, but with reading jobs and writing results, which it does
on the way. Its reservation stays once it is made, so that its waits are not those of EASY as published. The ratio is
that of its seconds on the processor, so that it is not in favour of ours where others use the machine, too: ours are
short and the smallest of some, AccaSim's go on while the others run. On two hyper-threads of a Xeon with Python 3.11
and 3.9.18:

    2026-11-22, machine busy    ours 0.028 s, AccaSim 38.8 s, 8.6 s of them on the processor: 311 times as fast
    before, machine idle        ours 0.013 s, AccaSim 10.5 s: 800 times as fast

pyss, whose results `easy` is checked with (`--param passes=event`), is not timed: it needs Python 2, and PyPI has
another program of that name only.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent))

import replay as common

from gpuctl.replay.inputs.estimates import plan_limits, steps
from gpuctl.replay.inputs.job_csv import read_jobs

if TYPE_CHECKING:
    from gpuctl.replay.engine.simulation import Simulation
    from gpuctl.replay.models.records import Workload

TEN_THOUSAND = common.HERE.parent.parent / "shared" / "oracles" / "fifo_strict" / "philly_10k_g512_input.csv"
CLUSTERS = ("pool:512", "64x8", "83x2+469x8")
LIMITS = ("true", "factor:3", "steps")
MOST_S = 1800
"""Seconds after which another simulator is given up."""

ACCASIM = """
import json, sys, time
from accasim.base.simulator_class import Simulator
from accasim.base.scheduler_class import EASYBackfilling
from accasim.base.allocator_class import FirstFit
begin, begin_cpu = time.perf_counter(), time.process_time()
Simulator("jobs.swf", "nodes.json", EASYBackfilling(FirstFit())).start_simulation()
print("seconds", time.perf_counter() - begin, time.process_time() - begin_cpu)
"""


def swf(path: Path, work: Workload, limits: list[float]) -> None:
    """Write jobs in the Standard Workload Format: id, submission, run time, processors, requested ones and time."""
    with path.open("w", encoding="utf-8") as file:
        file.write("; UnixStartTime: 0\n; TimeZoneString: UTC\n")
        rows = zip(work.submit, work.true_run_time, work.gpus, limits, strict=True)
        for number, (submit, run, gpus, limit) in enumerate(rows, 1):
            file.write(f"{number} {submit:.0f} -1 {run:.0f} {gpus} -1 -1 {gpus} {limit:.0f} -1 1 1 1 1 1 -1 -1 -1\n")


def best(work: Workload, nodes: str, policy: str, repeats: int) -> Simulation:
    """The fastest of some runs, after one that is not counted."""
    common.run(work, nodes, policy)
    return min((common.run(work, nodes, policy) for _ in range(repeats)), key=lambda done: done.wall_s)


def whole_trace(path: Path, repeats: int) -> None:
    """Print seconds and means for all jobs."""
    work = read_jobs(path)
    print(f"{work.size:,} jobs\n{'policy':<13} {'limits':<9} {'cluster':<12} {'seconds':>8} {'mean wait s':>12}")
    for nodes in CLUSTERS:
        for policy in ("fifo", "fifo-skip", "easy", "conservative"):
            for how in LIMITS if policy in {"easy", "conservative"} else ("-",):
                jobs = work if how == "-" else plan_limits(work, how)
                # half a minute where thousands of jobs wait: once, its code compiled by the smaller ones before
                once = policy == "conservative" and how != "true"
                done = common.run(jobs, nodes, policy) if once else best(jobs, nodes, policy, repeats)
                wait = float(done.outcome().jobs["wait_s"].mean())  # type: ignore[arg-type]
                print(f"{policy:<13} {how:<9} {nodes:<12} {done.wall_s:8.3f} {wait:12.1f}", flush=True)


def theirs(python: str, code: str, folder: Path) -> tuple[float, float] | None:
    """Seconds of another simulator, by the clock and of the processor; None where it was given up."""
    try:
        done = subprocess.run(
            [python, "-c", code], cwd=folder, check=True, capture_output=True, text=True, timeout=MOST_S
        )
    except subprocess.TimeoutExpired:
        return None
    line = next(line for line in done.stdout.splitlines() if line.startswith("seconds "))
    return float(line.split()[1]), float(line.split()[2])


def beside_others(repeats: int, folder: Path) -> None:
    """Print seconds of ours and of others on the same 10,000 jobs, and their ratio."""
    if not TEN_THOUSAND.is_file():
        print(f"skipped: {TEN_THOUSAND} is not there")
        return
    work = read_jobs(TEN_THOUSAND)
    # whole seconds, as the format has them
    planned = steps(work.true_run_time)
    work, limits = dataclasses.replace(work, planned=planned), planned.tolist()
    swf(folder / "jobs.swf", work, limits)
    nodes = {"system_name": "philly", "start_time": 0, "equivalence": {"processor": {"core": 1}}}
    nodes |= {"groups": {"g": {"core": 8}}, "resources": {"g": 64}}
    (folder / "servers.json").write_text(json.dumps(nodes))
    ours = best(work, "64x8", "easy", repeats).wall_s
    print(f"\n{work.size:,} jobs, easy on 64x8, limits in steps: ours {ours:.4f} s")
    python = os.environ.get("ACCASIM_PYTHON")
    if not python:
        print("AccaSim not run: ACCASIM_PYTHON does not say which Python has it")
        return
    seconds = theirs(python, ACCASIM, folder)
    if seconds is None:
        print(f"AccaSim more than {MOST_S} s: ours is more than {MOST_S / ours:,.0f} times as fast")
    else:
        clock, processor = seconds
        ratio = f"ours is {processor / ours:,.0f} times as fast"
        print(f"AccaSim {clock:.2f} s, {processor:.2f} s of them on the processor: {ratio}", flush=True)


def main() -> None:
    """Run all of it."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    source = Path(sys.argv[2]) if len(sys.argv) > 2 else common.PHILLY
    if not source.is_file():
        raise SystemExit(f"skipped: {source} is not there")
    with tempfile.TemporaryDirectory() as folder:
        beside_others(repeats, Path(folder))
        whole_trace(common.write(Path(folder) / "jobs.csv", common.philly(source)), repeats)


if __name__ == "__main__":
    main()
