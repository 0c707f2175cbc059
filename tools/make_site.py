"""Makes sample_data/site/jobs.csv: 420 jobs of six users on about 32 GPUs, for schedulers that have a configuration.

python tools/make_site.py sample_data/site/jobs.csv

The same command gives the same bytes: the draws come from Python's own generator, whose sequence is fixed.
"""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path

SEED = 20261122
JOBS = 420
DAYS = 3.5
DAY_S = 86_400
USERS = {"ada": "vision", "bo": "vision", "cleo": "speech", "dan": "speech", "eve": "text", "finn": "text"}
BUSY = {"ada": 6, "bo": 1, "cleo": 3, "dan": 3, "eve": 5, "finn": 2}
SIZES = {"research": ((1, 2, 4, 8), (55, 20, 15, 10)), "production": ((2, 4, 8, 16), (30, 35, 25, 10))}
MEDIAN_S = {"research": 2_400, "production": 5_000}
LIMITS_MIN = (60, 120, 240, 480, 1440, 2880)
"""People ask for round limits, and the longer ones by habit."""

COLUMNS = (
    "job_id", "submit_time", "duration", "num_gpus", "vc", "requested_time", "user", "account", "qos", "num_cpus",
    "mem_mb",
)  # fmt: skip


def submissions(rng: random.Random) -> list[tuple[float, str]]:
    """When somebody submits, and who: by day, some in bursts."""
    found: list[tuple[float, str]] = []
    while len(found) < JOBS:
        at = rng.uniform(0, DAYS * DAY_S)
        user = rng.choices(list(BUSY), list(BUSY.values()))[0]
        if rng.random() < (1.0 if 9 <= at % DAY_S / 3600 < 19 else 0.25):
            found += [(at + 5 * k, user) for k in range(rng.randint(4, 9) if rng.random() < 0.08 else 1)]
    return sorted(found[:JOBS])


def limit_s(rng: random.Random, duration: float) -> int:
    """What the user asks for: the next round limit that is enough, or one that is longer."""
    enough = [limit for limit in LIMITS_MIN if limit * 60 >= duration * 1.05]
    return 60 * rng.choice(enough[:3] or [-(-round(duration * 1.05) // DAY_S) * 1440])


def jobs() -> list[tuple[object, ...]]:
    """The rows of the file."""
    rng = random.Random(SEED)  # noqa: S311 - a sample, no secret
    rows: list[tuple[object, ...]] = []
    for number, (at, user) in enumerate(submissions(rng), 1):
        queue = "production" if rng.random() < 0.25 else "research"
        sizes, weights = SIZES[queue]
        gpus = rng.choices(sizes, weights)[0]
        duration = max(60, round(rng.lognormvariate(0, 1.1) * MEDIAN_S[queue]))
        qos = "high" if queue == "production" and rng.random() < 0.3 else "low" if rng.random() < 0.2 else "normal"
        limit_text = limit_s(rng, duration)
        rows.append((
            f"{number}", round(at), duration, gpus, queue, limit_text, user, USERS[user], qos, 6 * gpus, 48_000 * gpus
        ))  # fmt: skip
    return rows


def main() -> None:
    """Write the file."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with Path(sys.argv[1]).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(jobs())


if __name__ == "__main__":
    main()
