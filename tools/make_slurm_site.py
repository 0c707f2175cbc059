"""Writes the accounting of a made-up Slurm site under load: ``python tools/make_slurm_site.py FILE.gz [JOBS] [SEED]``.

Ours. Users with habits of their own (sizes, limits, how much of a limit is used, bursts of like jobs), three queues,
demand that follows the hour, the weekday and a slow random walk. Starts are those of the policy ``slurm``.
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

HEADER = "JobID|User|Partition|State|Submit|Eligible|Start|End|Timelimit|NNodes|AllocTRES"
BEGIN = datetime(2025, 9, 1, tzinfo=UTC)
SERVERS, GPUS, DAYS = 16, 8, 120
SIZES = np.array([1, 2, 4, 8, 16, 32])
LIMITS_H = np.array([1, 2, 6, 12, 24, 48])
DAY_S = 86_400
LOAD = 0.8


def jobs(count: int, seed: int) -> list[tuple[int, int, int, int, str, str]]:
    """Jobs in order: submission, run time and limit in seconds, GPUs, user, queue."""
    draw = np.random.Generator(np.random.PCG64(seed))
    users = 40
    weight = draw.lognormal(0, 0.8, users)
    size = [draw.dirichlet([2.5, 0.8, 0.8, 1.2, 0.2, 0.06]) for _ in range(users)]
    limit = [draw.dirichlet([0.4, 0.5, 0.6, 1.0, 0.8, 0.3]) for _ in range(users)]
    usage = draw.beta(0.9, 1.8, users)
    queue = draw.choice(["normal", "normal", "long", "short"], users)
    walk = np.cumsum(draw.normal(0, 0.12, DAYS))
    walk = np.exp(0.2 * (walk - walk.mean()) / max(walk.std(), 0.1))
    second = np.arange(0, DAYS * DAY_S, 600)
    hour, weekday = second / 3600 % 24, second // DAY_S % 7
    rate = walk[second // DAY_S] * np.where((hour >= 8) & (hour < 19), 1.7, 0.55) * np.where(weekday >= 5, 0.6, 1.0)
    found: list[tuple[int, int, int, int, str, str]] = []
    starts = np.sort(draw.choice(second, count, p=rate / rate.sum()) + draw.integers(0, 600, count))
    for at in starts.tolist():
        if len(found) >= count:
            break
        u = int(draw.choice(users, p=weight / weight.sum()))
        burst = int(draw.choice([1, 1, 1, 1, 2, 6]))
        gpus, hours = int(draw.choice(SIZES, p=size[u])), int(draw.choice(LIMITS_H, p=limit[u]))
        for k in range(burst):
            share = float(np.clip(draw.beta(0.6, 0.6 / max(usage[u], 0.05)), 0.0005, 1.0))
            share = 1.0 if draw.random() < 0.04 else share
            found.append((at + k, max(int(share * hours * 3600), 5), hours * 3600, gpus, f"u{u}", str(queue[u])))
    found = sorted(found)[:count]
    # to the load that is wanted: time is stretched
    work = sum(run * gpus for _, run, _, gpus, _, _ in found)
    stretch = work / (LOAD * SERVERS * GPUS) / max(found[-1][0] - found[0][0], 1)
    return [(int(at * stretch), *rest) for at, *rest in found]


def accounting(folder: Path, count: int, seed: int) -> str:
    """What sacct would say of them, each start and end by the policy."""
    path = folder / "site.csv"
    drawn = jobs(count, seed)
    lines = ["job_id,submit_time,duration,num_gpus,user,vc,requested_time"]
    lines += [
        f"{k},{at},{run},{gpus},{user},{queue},{limit}" for k, (at, run, limit, gpus, user, queue) in enumerate(drawn)
    ]
    path.write_text("\n".join(lines) + "\n")
    work = read_jobs(path)
    cluster = parse_cluster(f"{SERVERS}x{GPUS}", work)
    outcome = replay(work, cluster, [("slurm", {})], processes=1)[0]
    starts = dict(zip(outcome.jobs["job"].to_list(), outcome.jobs["start_s"].to_list(), strict=True))
    rows = [HEADER]
    for k, (at, run, limit, gpus, user, queue) in enumerate(drawn):
        begin = max(at, int(starts[str(k)]))
        submit, start, end = (f"{BEGIN + timedelta(seconds=s):%Y-%m-%dT%H:%M:%S}" for s in (at, begin, begin + run))
        state = "TIMEOUT" if run == limit else "COMPLETED"
        limit_text = f"{limit // DAY_S}-{limit % DAY_S // 3600:02}:00:00"
        tres = f"billing={gpus},cpu={gpus * 8},gres/gpu={gpus},node={-(-gpus // GPUS)}"
        cells = [str(1000 + k), user, queue, state, submit, submit, start, end, limit_text, str(-(-gpus // GPUS)), tres]
        rows.append("|".join(cells))
    return "\n".join(rows) + "\n"


def main() -> None:
    """Write the file that is named."""
    count, seed = (int(word) for word in (*sys.argv[2:], *("12000", "1")[len(sys.argv) - 2 :]))
    with tempfile.TemporaryDirectory() as place:
        text = accounting(Path(place), count, seed)
    Path(sys.argv[1]).write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
