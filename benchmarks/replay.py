"""Replay of 82,247 Philly jobs: how fast, against a C++ loop that does less, with how much memory, and how it grows.

    python benchmarks/replay.py [REPEATS] [JOBS.csv]

The jobs are those of ../shared/data/philly/sia_philly.csv (timestamp, duration, num_gpus), by submission. Ours is
`Simulation.wall_s`, which has no reading of files and no tables in it, but placement, the decision log and every
attempt; one run before warms the compiled code. The C++ (benchmarks/replay_reference.cpp, -O2) counts GPUs and keeps
end times, no more; it is given as many GPUs, in one pool, for every cluster. Both are the smallest of REPEATS (3), one
after the other. Where both do the same thing (fifo, sjf, srtf and tiresias on a pool), mean times from submission to
end must agree to the second, or it ends there.

Then: larger workloads, made of days of the trace drawn at random and put one after the other, so that the load stays
what it is; the peak of memory that a simulation adds to the process, without and with its tables; and the first run
without compiled code.

Before that, CPU seconds by part: reading the file, making the simulation's arrays, the compiled loop, what else runs
until the last instant, the outcome's tables, and the result tables; and the peak of memory of the whole command.
"""

from __future__ import annotations

import csv
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gpuctl.core.errors import UsageError
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import BUILT_IN, find
from gpuctl.replay.results.tables import result

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.replay.models.records import Workload

HERE = Path(__file__).resolve().parent
PHILLY = HERE.parent.parent / "shared" / "data" / "philly" / "sia_philly.csv"
CLUSTERS = ("pool:512", "64x8", "83x2+469x8")
IN_CPP = ("fifo", "sjf", "srtf", "tiresias")
IN_PARTS = ("fifo", "easy", "philly", "srtf", "tiresias")
GROWING = ("fifo", "srtf", "tiresias")
SIZES = (125_000, 250_000, 500_000, 1_000_000)
DAY_S = 86_400
Rows = list[tuple[float, float, int]]
"""Submission, duration, GPUs."""

MEMORY = """
import sys
from pathlib import Path
def kib(word):
    return int(Path("/proc/self/status").read_text().split(word + ":")[1].split()[0])
sys.path.insert(0, {here!r})
import replay
work = replay.read_jobs({jobs!r})
replay.run(replay.read_jobs({small!r}), "pool:512", {policy!r})
Path("/proc/self/clear_refs").write_text("5")  # the peak so far, of reading the file, does not count
before = kib("VmRSS")
done = replay.run(work, "pool:512", {policy!r})
simulated = kib("VmHWM")
outcome = done.outcome()
print(simulated - before, kib("VmHWM") - before)
"""
PEAK = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-m", "gpuctl", *sys.argv[1:]], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
COLD = """
import sys, time
sys.path.insert(0, {here!r})
import replay
work = replay.read_jobs({small!r})
begin = time.perf_counter()
replay.run(work, "pool:512", "fifo")
print(time.perf_counter() - begin)
"""


def philly(path: Path) -> Rows:
    """The trace's jobs by submission; seconds from midnight before the first."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [
            (datetime.fromisoformat(row["timestamp"]), float(row["duration"]), int(row["num_gpus"]))
            for row in csv.DictReader(file)
            if row["timestamp"]
        ]
    rows.sort(key=lambda row: row[0])
    origin = rows[0][0].replace(hour=0, minute=0, second=0, microsecond=0)
    return [((when - origin).total_seconds(), duration, gpus) for when, duration, gpus in rows]


def grown(rows: Rows, size: int) -> Rows:
    """So many jobs, of days drawn at random with replacement."""
    days: dict[int, Rows] = {}
    for row in rows:
        days.setdefault(int(row[0] // DAY_S), []).append(row)
    rng = np.random.default_rng(1)
    every = list(range(max(days) + 1))  # days without jobs too: they are part of the load
    result: Rows = []
    day = 0
    while len(result) < size:
        drawn = int(rng.choice(every))
        result += [(row[0] + (day - drawn) * DAY_S, row[1], row[2]) for row in days.get(drawn, [])]
        day += 1
    return result[:size]


def write(path: Path, rows: Rows) -> Path:
    """The jobs as `read_jobs` wants them and, beside it, as the C++ does."""
    with path.open("w", encoding="utf-8") as file, path.with_suffix(".bare").open("w", encoding="utf-8") as bare:
        file.write("job_id,submit_time,duration,num_gpus\n")
        for number, (submit, duration, gpus) in enumerate(rows):
            file.write(f"{number},{submit:.0f},{duration:g},{gpus}\n")
            bare.write(f"{submit:.0f},{duration:g},{gpus}\n")
    return path


def run(work: Workload, nodes: str, policy: str) -> Simulation:
    """One simulation, to its end."""
    cluster = parse_cluster(nodes, work)
    settings = Settings(rates("recorded", work, cluster), overhead("none", work, cluster))
    done = Simulation(work, cluster, find(policy)(), settings)
    done.run()
    return done


def mean_jct(done: Simulation) -> float:
    """Mean seconds from submission to end."""
    return float(done.outcome().jobs["jct_s"].mean())  # type: ignore[arg-type]


def compiled(folder: Path) -> Path:
    """The C++ loops."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise SystemExit("skipped: there is no g++ to compile benchmarks/replay_reference.cpp with")
    program = folder / "replay_reference"
    source = str(HERE / "replay_reference.cpp")
    subprocess.run([compiler, "-O2", "-std=c++17", "-o", str(program), source], check=True)
    return program


def bare(program: Path, jobs: Path, gpus: int, repeats: int, policy: str) -> tuple[float, float]:
    """Seconds and mean time from submission to end of the C++."""
    command = [str(program), str(jobs.with_suffix(".bare")), str(gpus), str(repeats), policy]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    _, seconds, jct = done.stdout.split()
    return float(seconds), float(jct)


def compare(program: Path, jobs: Path, repeats: int) -> None:
    """Print seconds of every policy on every cluster, beside those of the C++."""
    work = read_jobs(jobs)
    print(f"{'policy':<10} {'cluster':<12} {'mean JCT s':>11} {'ours s':>8} {'C++ s':>8} {'ratio':>6}   jobs/s")
    for policy in BUILT_IN:
        for nodes in CLUSTERS:
            try:
                run(work, nodes, policy)
            except UsageError as error:
                print(f"{policy:<10} {nodes:<12} not run: {error}")
                continue
            done = [run(work, nodes, policy) for _ in range(repeats)]
            ours, jct = min(d.wall_s for d in done), mean_jct(done[0])
            line = f"{policy:<10} {nodes:<12} {jct:11.1f} {ours:8.3f}"
            if policy not in IN_CPP:
                print(f"{line} {'-':>8} {'-':>6} {work.size / ours:8.0f}")
                continue
            gpus = int(done[0].cluster.total_gpus)
            theirs, its_jct = bare(program, jobs, gpus, repeats, policy)
            if done[0].cluster.pool and abs(jct - its_jct) >= 1:
                raise SystemExit(f"{policy} on {nodes}: mean JCT {jct:.3f} s, C++ {its_jct:.3f} s")
            print(f"{line} {theirs:8.3f} {ours / theirs:6.2f} {work.size / ours:8.0f}", flush=True)


def parts(jobs: Path, repeats: int) -> None:
    """Print CPU seconds of each part of a replay on 64x8, and the peak of memory of the command with all tables."""
    spent: dict[str, float] = {}

    def timed(name: str, do: Callable[[], Any]) -> Any:
        begin = time.process_time()
        done = do()
        spent[name] = time.process_time() - begin
        return done

    print(f"\n{'policy':<10} {'input':>8} {'setup':>8} {'loop':>8} {'rest':>8} {'outcome':>8} {'tables':>8}  peak MB")
    for policy in IN_PARTS:
        least: dict[str, float] = {}
        for _ in range(repeats + 1):  # the first one warms the compiled code
            work = timed("input", lambda: read_jobs(jobs))
            cluster = parse_cluster("64x8", work)
            settings = Settings(rates("recorded", work, cluster), overhead("none", work, cluster))
            done = timed("setup", lambda: Simulation(work, cluster, find(policy)(), settings))  # noqa: B023
            advance, loop = done.program.advance, [0.0]

            def counted(*given: Any) -> int:
                begin = time.process_time()
                status: int = advance(*given)  # noqa: B023
                loop[0] += time.process_time() - begin  # noqa: B023
                return status

            done.program.advance = counted
            timed("rest", done.run)
            spent["loop"] = loop[0]
            spent["rest"] -= loop[0]
            outcome = timed("outcome", done.outcome)
            timed("tables", lambda: result([outcome], work, cluster))  # noqa: B023
            least = {name: min(least.get(name, math.inf), value) for name, value in spent.items()}
        names = ("input", "setup", "loop", "rest", "outcome", "tables")
        print(f"{policy:<10} {' '.join(f'{least[name]:8.4f}' for name in names)} {peak(jobs, policy):8.0f}", flush=True)


def peak(jobs: Path, policy: str) -> float:
    """MB of memory that the command with all tables has at its peak."""
    command = ["replay", str(jobs), "--cluster", "64x8", "--policy", policy, "--limits-from", "true"]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *command], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    return float(done.stdout.splitlines()[-1]) * 1024 / 1e6


def grow(program: Path, rows: Rows, folder: Path) -> None:
    """Print how seconds and memory grow with the number of jobs."""
    small = write(folder / "small.csv", rows[:1000])
    head = f"{'policy':<10} {'jobs':>9} {'ours s':>8} {'ns/(n log2 n)':>14} {'C++ s':>8} {'ratio':>6}"
    print(f"\n{head} {'B/job':>7} {'+tables':>7}")
    for size in SIZES:
        jobs = write(folder / "grown.csv", grown(rows, size))
        work = read_jobs(jobs)
        for policy in GROWING:
            run(read_jobs(small), "pool:512", policy)
            ours = run(work, "pool:512", policy).wall_s
            theirs, _ = bare(program, jobs, 512, 1, policy)
            code = MEMORY.format(here=str(HERE), jobs=str(jobs), small=str(small), policy=policy)
            done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
            simulated, shown = (int(part) * 1024 / size for part in done.stdout.split())
            each = ours / (size * math.log2(size)) * 1e9
            line = f"{policy:<10} {size:9} {ours:8.3f} {each:14.1f} {theirs:8.3f} {ours / theirs:6.2f}"
            print(f"{line} {simulated:7.0f} {shown:7.0f}", flush=True)


def first_run(folder: Path) -> None:
    """Print how long the first run takes, with and without compiled code in the cache."""
    code = COLD.format(here=str(HERE), small=str(folder / "small.csv"))
    cache = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "cache")}
    seconds = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=cache)
        seconds.append(float(done.stdout))
    print(f"\nfirst run of 1,000 jobs, fifo: {seconds[0]:.1f} s without compiled code, {seconds[1]:.2f} s with it")


def main() -> None:
    """Print the tables."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    path = Path(sys.argv[2]) if len(sys.argv) > 2 else PHILLY
    if not path.is_file():
        raise SystemExit(f"skipped: {path} is not there")
    rows = philly(path)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = compiled(folder)
        jobs = write(folder / "philly.csv", rows)
        hours = sum(duration * gpus for _, duration, gpus in rows) / 3600
        print(f"{len(rows)} jobs, {hours:.0f} GPU-hours, smallest of {repeats} runs each")
        compare(program, jobs, repeats)
        parts(jobs, repeats)
        grow(program, rows, folder)
        first_run(folder)


if __name__ == "__main__":
    main()
