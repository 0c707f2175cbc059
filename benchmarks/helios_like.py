"""Jobs like those of Helios' cluster Venus, drawn from what its authors publish, as a CSV for other benchmarks.

    python benchmarks/helios_like.py OUT.csv [--seed 0] [--days 181] [--traces ../shared/data/traces]

The log of Venus itself is not among our data. Published are, every ten minutes of six months of 2020, how many GPU jobs
were submitted and how many GPUs they asked for in all (Lucid's copy, `venus_cluster_throughput.csv`); and the mean and
median run time of GPU jobs (13,041 and 204 s, `helios_cluster_summary.csv`). Submissions are those, at a random second
of their ten minutes. Sizes are powers of two whose sum is as near to the published one as the best of 20 draws. Run
times are lognormal with that mean and median, independent of sizes: assumed, as nothing published relates the two.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

TRACES = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "traces"
SIZES = np.array([1, 2, 4, 8, 16, 32, 64])
SHARES = np.array([0.49, 0.08, 0.10, 0.19, 0.07, 0.04, 0.03])
"""Of the jobs of a draw. All jobs come to a median of 1 GPU, as in Venus, and a mean of 5.7 (Venus: 6.7), as sums of a
few jobs of 64 GPUs are rarely met."""
DRAWS = 20
STEP_S = 600


def lognormal(mean: float, median: float) -> tuple[float, float]:
    """The two parameters of a lognormal distribution."""
    return math.log(median), math.sqrt(2 * math.log(mean / median))


def sizes(draw: np.random.Generator, jobs: int, gpus: int) -> list[int]:
    """Return the GPUs of each job; their sum is as close to the target as possible."""
    tried = draw.choice(SIZES, (DRAWS, jobs), p=SHARES)
    chosen: list[int] = tried[np.abs(tried.sum(axis=1) - gpus).argmin()].tolist()
    return chosen


def main() -> None:
    """Draw, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--days", type=int, default=181)
    parser.add_argument("--traces", type=Path, default=TRACES)
    given = parser.parse_args()
    draw = np.random.default_rng(given.seed)
    with (given.traces / "helios" / "helios_cluster_summary.csv").open(newline="") as file:
        venus = next(row for row in csv.DictReader(file) if row["id"] == "Venus")
    how = lognormal(float(venus["avg_run_time_gpu"]), float(venus["med_run_time_gpu"]))
    begin, rows = None, []
    with gzip.open(given.traces / "lucid" / "venus_cluster_throughput.csv.gz", "rt", newline="") as file:
        for row in csv.DictReader(file):
            when, jobs = datetime.fromisoformat(row["time"]), int(row["submit_gpu_job"])
            begin = begin or when
            if when >= begin + timedelta(days=given.days):
                break
            some = sizes(draw, jobs, int(row["submit_gpu_num"])) if jobs else []
            seconds = np.sort(draw.integers(0, STEP_S, jobs)).tolist()
            rows += [
                (when + timedelta(seconds=at), max(1, round(float(draw.lognormal(*how)))), gpus)
                for at, gpus in zip(seconds, some, strict=True)
            ]
    with given.out.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(("timestamp", "duration", "num_gpus"))
        lines.writerows(rows)
    gpus, run = np.array([row[2] for row in rows]), np.array([row[1] for row in rows])
    print(
        f"{len(rows):,} jobs; GPUs mean {gpus.mean():.2f}, median {np.median(gpus):g}; run time mean {run.mean():,.0f} "
        f"s, median {np.median(run):g} s"
    )


if __name__ == "__main__":
    main()
