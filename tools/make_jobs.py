"""Makes sample_data/jobs.csv: 300 jobs of two queues on about 32 GPUs, busy by day, with sweeps that come at once.

python tools/make_jobs.py sample_data/jobs.csv

The same command gives the same bytes: the draws come from Python's own generator, whose sequence is fixed.
"""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path

SEED = 20171002
JOBS = 300
DAY_S = 86_400
SIZES = {"research": ((1, 2, 4, 8), (60, 15, 15, 10)), "production": ((1, 4, 8, 16), (30, 30, 30, 10))}
MEDIAN_S = {"research": 1_000, "production": 3_000}


def arrivals(rng: random.Random) -> list[float]:
    """Instants of submission over two days: most of them by day, every now and then a sweep of equal jobs."""
    found: list[float] = []
    while len(found) < JOBS:
        at = rng.uniform(0, 2 * DAY_S)
        hour = at % DAY_S / 3600
        if rng.random() < (1.0 if 9 <= hour < 19 else 0.2):
            found += [at] * (rng.randint(4, 12) if rng.random() < 0.06 else 1)
    return sorted(found[:JOBS])


def jobs() -> list[tuple[str, int, int, int, str, int]]:
    """The rows of the file."""
    rng = random.Random(SEED)  # noqa: S311 - a sample, no secret
    rows = []
    last, queue, gpus, duration = -1.0, "", 0, 0
    for number, at in enumerate(arrivals(rng), 1):
        if at != last:
            queue = "research" if rng.random() < 0.7 else "production"
            sizes, weights = SIZES[queue]
            gpus = rng.choices(sizes, weights)[0]
        duration = max(30, round(rng.lognormvariate(0, 1.2) * MEDIAN_S[queue]))
        limit_text = -(-round(duration * rng.uniform(1.1, 4)) // 600) * 600
        rows.append((f"job{number:03}", round(at), duration, gpus, queue, limit_text))
        last = at
    return rows


def main() -> None:
    """Write the file."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with Path(sys.argv[1]).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("job_id", "submit_time", "duration", "num_gpus", "vc", "requested_time"))
        writer.writerows(jobs())


if __name__ == "__main__":
    main()
