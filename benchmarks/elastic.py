"""Schedulers of deep learning: processor seconds on Philly's jobs beside what was asked, and how they grow with jobs.

    python benchmarks/elastic.py [--jobs 1000,10000,82247] [--grow 300000,1000000] [--cluster 64x8] [JOBS.csv]

The jobs are those of ../shared/data/philly/sia_philly.csv as benchmarks/replay.py reads them: the first so many by
submission, and for more than there are so many of days drawn with replacement (`replay.grown`). Speeds, costs and
traits are each policy's own; aryl has an inference cluster of as many nodes, with the assumed daily curve. Seconds
are of the processor, of the replay alone, after one of 10,000 jobs, too many to be replayed uncompiled. The ratio is to
the limit; "by 2" is the factor by which seconds grow where jobs double, since the row above.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import replay as common

from gpuctl.replay.inputs.clusters import in_racks, parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.inference import parse_inference
from gpuctl.replay.policies import BUILT_IN
from gpuctl.replay.run import replay

LIMITS_S = {"optimus": 20.0, "gandiva": 20.0, "aryl": 30.0, "themis": 60.0}
"""Of all jobs of Philly on 64x8."""

CUT_S = 5.0
"""Of 10,000."""

GROWING = ("gandiva", "aryl")
WHOLE = 82_247


def seconds(path: Path, policy: str, cluster: str) -> float:
    """Processor seconds of one replay."""
    workload = read_jobs(path)
    nodes = in_racks(parse_cluster(cluster, workload), cluster, 8)
    if policy == "aryl":
        nodes = dataclasses.replace(nodes, inference=parse_inference(cluster, None))
    begin = time.process_time()
    (outcome,) = replay(workload, nodes, [(policy, {})], own_speeds=True, processes=1)
    spent = time.process_time() - begin
    if (outcome.jobs["state"] != "finished").any():
        raise SystemExit(f"{policy}: not all of {workload.size:,} jobs finished")
    return spent


def main() -> None:
    """Print a row a policy and number of jobs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", nargs="?", type=Path, default=common.PHILLY)
    parser.add_argument("--jobs", default="1000,10000,82247")
    parser.add_argument("--grow", default="300000,1000000")
    parser.add_argument("--cluster", default="64x8")
    parser.add_argument("--policy", default=",".join(LIMITS_S))
    given = parser.parse_args()
    rows = common.philly(given.trace)
    sizes = [int(text) for text in given.jobs.split(",") if text]
    grow = [int(text) for text in given.grow.split(",") if text]
    print(f"| policy | jobs | CPU s | limit | ratio | us a job | by 2 |\n{'|---' * 7}|")
    with tempfile.TemporaryDirectory() as folder:
        first = common.write(Path(folder) / "first.csv", rows[:10_000])
        for policy in [name for name in given.policy.split(",") if name in BUILT_IN]:
            seconds(first, policy, given.cluster)
            before: tuple[int, float] | None = None
            for size in [*sizes, *(grow if policy in GROWING else [])]:
                path = common.write(
                    Path(folder) / "jobs.csv", rows[:size] if size <= len(rows) else common.grown(rows, size)
                )
                spent = seconds(path, policy, given.cluster)
                limit = LIMITS_S[policy] if size == WHOLE else CUT_S if size == 10_000 else math.nan
                by = (
                    "" if before is None else f"{(spent / before[1]) ** (math.log(2) / math.log(size / before[0])):.2f}"
                )
                told = "" if math.isnan(limit) else f"{limit:g} | {spent / limit:.2f}"
                print(
                    f"| {policy} | {size:,} | {spent:.2f} | {told or ' | '} | {spent / size * 1e6:.0f} | {by} |",
                    flush=True,
                )
                before = size, spent


if __name__ == "__main__":
    main()
