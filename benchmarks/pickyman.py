"""PickyMan beside fifo, sjf, srtf and tiresias on days of the Philly trace: waits and makespans, with intervals.

    python benchmarks/pickyman.py [--jobs JOBS.csv] [--days 14] [--loads .7,.9,1.1] [--seeds 5] [--cluster 64x8]

Each seed draws whole days of the trace at random, with replacement, and puts them one after the other: another
workload of the same kind, submitted so fast that its GPU-seconds over the time from the first submission to the last
one are a load of so much of the cluster's GPUs. All policies of a comparison get the same jobs, the same overhead
model (`--overhead pickyman`), the same epochs (ten minutes, at most 90 a job, since the trace tells none) and the same
way to preempt.
Figures are means over seeds, with 95 % t-intervals of the difference to PickyMan seed by seed.

Printed as Markdown, as docs/research/pickyman.md has it:

1. mean wait and makespan by load, jobs preempted at the end of their epochs;
2. the same with the policies' own ways to preempt, and with jobs aborted, at the second of the loads;
3. the price of prediction errors: run times that policies are told, wrong by 10, 30 and 100 %.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.estimates import with_estimates
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.inputs.transforms import offered_gpus, scale_load
from gpuctl.replay.run import replay

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Cluster, Workload

PHILLY = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "philly" / "sia_philly.csv"
POLICIES = ("pickyman", "fifo", "sjf", "srtf", "tiresias")
DAY_S = 86_400.0
ERRORS = ("true", "error:0.1", "error:0.3", "error:1")
FORETELLING = ("pickyman", "sjf", "srtf")
Row = tuple[float, float, int]


def rows_of(path: Path) -> list[Row]:
    """Submission (s), duration (s), GPUs, by submission; columns as in the trace or as in ``gpuctl replay``'s CSV."""
    with path.open(newline="") as file:
        table = list(csv.DictReader(file))
    if "timestamp" in table[0]:
        times = [datetime.fromisoformat(row["timestamp"]).timestamp() for row in table]
    else:
        times = [float(row["submit_time"]) for row in table]
    first = min(times)
    rows = [(t - first, float(r["duration"]), int(float(r["num_gpus"]))) for t, r in zip(times, table, strict=True)]
    return sorted(rows)


def drawn(rows: list[Row], days: int, seed: int) -> Workload:
    """A workload of days drawn at random; none that is the trace's first or last, which are cut off."""
    draw = np.random.default_rng(seed)
    whole = int(rows[-1][0] // DAY_S)
    by_day: dict[int, list[Row]] = {}
    for row in rows:
        by_day.setdefault(int(row[0] // DAY_S), []).append(row)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.csv"
        with path.open("w") as file:
            file.write("job_id,submit_time,duration,num_gpus\n")
            for place, day in enumerate(draw.integers(1, whole, days).tolist()):
                for k, (t, duration, gpus) in enumerate(by_day.get(day, [])):
                    file.write(f"{place}-{k},{t - day * DAY_S + place * DAY_S},{duration},{gpus}\n")
        return read_jobs(path)


def measure(
    workload: Workload, cluster: Cluster, policies: tuple[str, ...], mode: str | None
) -> dict[str, tuple[float, float]]:
    """Mean wait and makespan of each policy, hours."""
    found = replay(
        workload, cluster, [(name, {}) for name in policies], overhead="pickyman", mode=mode, processes=os.cpu_count(),
        skip_unplaceable=True,
    )  # fmt: skip
    result = {}
    for outcome in found:
        ended = outcome.jobs.filter(outcome.jobs["state"] == "finished")
        makespan = float(ended["end_s"].max() - ended["submit_s"].min())  # type: ignore[operator]
        result[outcome.policy] = float(ended["wait_s"].mean()) / 3600, makespan / 3600  # type: ignore[arg-type]
    return result


def interval(values: list[float]) -> tuple[float, float]:
    """Mean and half the width of its 95 % t-interval."""
    from scipy.stats import t

    n = len(values)
    half = float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return float(np.mean(values)), half


def against(title: str, runs: list[dict[str, tuple[float, float]]]) -> list[str]:
    """Rows of a table: each policy, and PickyMan's change against it."""
    lines = []
    for name in (p for p in POLICIES if p in runs[0]):
        wait, wait_half = interval([run[name][0] for run in runs])
        span, _ = interval([run[name][1] for run in runs])
        changes = []
        for k in range(2):
            mean, half = interval([100 * (run["pickyman"][k] / max(run[name][k], 1e-9) - 1) for run in runs])
            changes.append(
                "" if name == "pickyman" else f"{mean:+.0f} % ± {half:.0f}" if k == 0 else f"{mean:+.1f} % ± {half:.1f}"
            )
        lines.append(f"| {title} | {name} | {wait:.2f} ± {wait_half:.2f} | {changes[0]} | {span:.1f} | {changes[1]} |")
    return lines


def head(first: str) -> list[str]:
    """The head of such a table."""
    columns = (first, "policy", "mean wait (h)", "PickyMan's wait against it", "makespan (h)", "PickyMan's against it")
    return ["| " + " | ".join(columns) + " |", "|---|---|---:|---:|---:|---:|"]


def main() -> None:
    """Run the comparisons and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=Path, default=PHILLY)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--loads", default="0.7,0.9,1.1")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cluster", default="64x8")
    given = parser.parse_args()
    rows = rows_of(given.jobs)
    seeds = range(given.seeds)
    works = [drawn(rows, given.days, seed) for seed in seeds]
    clusters = [parse_cluster(given.cluster, work) for work in works]

    def at(load: float) -> list[tuple[Workload, Cluster]]:
        return [(scale_load(w, load * c.total_gpus / offered_gpus(w)), c) for w, c in zip(works, clusters, strict=True)]

    loads = [float(text) for text in given.loads.split(",")]
    size = np.mean([w.size for w in works])
    print(f"{given.seeds} workloads of {given.days} days, {size:,.0f} jobs each on average, on {given.cluster}\n")
    lines = head("load")
    for load in loads:
        runs = [measure(w, c, POLICIES, "epoch") for w, c in at(load)]
        lines += against(f"{load:g}", runs)
    print("\n".join(lines), "\n", flush=True)
    lines = head("preemption")
    for mode, text in ((None, "own way"), ("abort", "abort")):
        runs = [measure(w, c, POLICIES, mode) for w, c in at(loads[1])]
        lines += against(text, runs)
    print("\n".join(lines), "\n", flush=True)
    lines = ["| run times told | policy | mean wait (h) | against true ones |", "|---|---|---:|---:|"]
    true: list[dict[str, tuple[float, float]]] = []
    for how in ERRORS:
        runs = [measure(with_estimates(w, how), c, FORETELLING, "epoch") for w, c in at(loads[1])]
        true = true or runs
        for name in FORETELLING:
            wait, half = interval([run[name][0] for run in runs])
            mean, error = interval([100 * (a[name][0] / b[name][0] - 1) for a, b in zip(runs, true, strict=True)])
            change = "" if how == "true" else f"{mean:+.0f} % ± {error:.0f}"
            lines.append(f"| {how} | {name} | {wait:.2f} ± {half:.2f} | {change} |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
