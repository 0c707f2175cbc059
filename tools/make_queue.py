"""Writes the accounting of a made-up Slurm of whole nodes under load: ``python tools/make_queue.py sample_data/chain``.

Ours. Four weeks on 16 nodes; users ask for far longer limits than they need, as on real sites; the second half is
busier. Starts are those of the policy ``mirage``.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.run import replay

HEADER = "JobID|User|State|Submit|Start|End|Timelimit|NNodes"
BEGIN = datetime(2026, 3, 2, tzinfo=UTC)
DAYS, NODES = 28, 16
LIMITS_MIN = np.array([30, 120, 480, 1440, 2880])


def jobs(seed: int = 7) -> str:
    """The queue, as a CSV for a replay."""
    draw = np.random.Generator(np.random.PCG64(seed))
    lines = ["job_id,submit_time,duration,nodes,limit_min"]
    second, number = 0.0, 3000
    while True:
        hour = second / 3600 % 24
        busy = (1.6 if 8 <= hour < 19 else 0.6) * (1.12 if second > DAYS / 2 * 86_400 else 0.98)
        second += float(draw.exponential(3500 / busy))
        if second >= DAYS * 86_400:
            return "\n".join(lines) + "\n"
        number += int(draw.integers(1, 4))
        limit = int(draw.choice(LIMITS_MIN, p=[0.1, 0.15, 0.2, 0.25, 0.3]))
        share = float(draw.choice([0.0, 1.0, draw.beta(0.7, 1.6)], p=[0.06, 0.06, 0.88]))
        nodes = int(draw.choice([1, 2, 4, 8], p=[0.75, 0.13, 0.09, 0.03]))
        lines.append(f"{number},{int(second)},{int(share * limit * 60)},{nodes},{limit}")


def accounting(folder: Path, seed: int = 7) -> str:
    """What sacct would say of it, each start and end by the policy."""
    path = folder / "queue.csv"
    path.write_text(jobs(seed))
    work = read_jobs(path)
    outcome = replay(work, parse_cluster(f"{NODES}x1", work), [("mirage", {})], processes=1)[0]
    starts = dict(zip(outcome.jobs["job"].to_list(), outcome.jobs["start_s"].to_list(), strict=True))
    rows = [HEADER]
    for line in path.read_text().splitlines()[1:]:
        name, *numbers = line.split(",")
        submit, duration, nodes, limit = map(int, numbers)
        begin = max(submit, int(starts[name]))
        stamps = [
            (BEGIN + timedelta(seconds=s)).strftime("%Y-%m-%dT%H:%M:%S") for s in (submit, begin, begin + duration)
        ]
        state = "TIMEOUT" if duration == limit * 60 else "COMPLETED"
        hours = f"{limit // 1440}-{limit % 1440 // 60:02}:{limit % 60:02}:00"
        rows.append("|".join([name, f"u{int(name) % 9}", state, *stamps, hours, str(nodes)]))
    return "\n".join(rows) + "\n"


def main() -> None:
    """Write ``sacct.txt.gz`` into the folder that is named."""
    with tempfile.TemporaryDirectory() as place:
        text = accounting(Path(place))
    (Path(sys.argv[1]) / "sacct.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
