"""Directions of schedulers of goodput, prediction and deadlines, in ratios paired over cuts of a trace.

    python benchmarks/goodput.py [--seeds 8] [--jobs 1000] [--cluster 16x8] [--load 1.5] [--error 0.5] [JOBS.csv]

Cuts and ratios are those of benchmarks/directions.py. All policies of a cut have the same jobs and nodes; run times are
as recorded wherever a job is put, except that sia and pollux set speeds themselves and elasticflow uses alpha.
Policies that predict are given run times that are wrong by a factor of exp(error z), z normal.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import directions
import replay as common

from gpuctl.replay.inputs.estimates import plan_limits, with_estimates
from gpuctl.replay.models.traits import deadlines
from gpuctl.replay.run import replay

POLICIES = (
    ("fifo", {}), ("fifo-skip", {}), ("tiresias", {}), ("srtf", {}), ("qssf", {}),
    ("rolling=qssf", {"estimate": "rolling"}), ("lucid", {}), ("alone=lucid", {"share": "0"}), ("pollux", {}),
    ("pollux8=pollux", {"interval": "480"}), ("sia", {}), ("sia300=sia", {"interval": "300"}),
    ("free=sia", {"explore": "0"}), ("edf", {}), ("elasticflow", {}), ("easy", {}), ("wfp3", {}), ("unicep", {}),
    ("f1", {}), ("eased=wfp3", {"backfill": "easy"}),
)  # fmt: skip
RATIOS = (
    ("jct_s", "fifo", "qssf"), ("jct_s", "rolling", "qssf"), ("jct_s", "fifo", "lucid"), ("jct_s", "qssf", "lucid"),
    ("jct_s", "tiresias", "lucid"), ("jct_s", "alone", "lucid"), ("jct_s", "srtf", "pollux"),
    ("jct_s", "tiresias", "pollux"), ("jct_s", "pollux8", "pollux"), ("jct_s", "pollux", "sia"),
    ("jct_s", "tiresias", "sia"), ("jct_s", "sia300", "sia"), ("jct_s", "sia", "free"), ("met", "elasticflow", "edf"),
    ("met", "edf", "fifo"), ("jct_s", "wfp3", "eased"), ("jct_s", "wfp3", "easy"), ("jct_s", "unicep", "easy"),
    ("jct_s", "f1", "easy"),
)  # fmt: skip


def main() -> None:
    """Replay, and print a row a policy and a row a ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", nargs="?", type=Path, default=common.PHILLY)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--cluster", default="16x8")
    parser.add_argument("--load", type=float, default=1.5)
    parser.add_argument("--error", type=float, default=0.5)
    given = parser.parse_args()
    rows = common.philly(given.trace)
    found: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.seeds):
            some = directions.cut(rows, given.jobs, seed)
            workload, nodes = directions.loaded(Path(folder) / "jobs.csv", some, given.cluster, 8, given.load)
            workload = plan_limits(with_estimates(workload, f"error:{given.error}"), "steps")
            by = deadlines(workload)
            for number in range(len(POLICIES)):
                (outcome,) = replay(workload, nodes, [POLICIES[number]], own_speeds=True, processes=1)
                met = int((outcome.jobs["end_s"].to_numpy() <= by + 1e-6).sum())
                row = {"jct_s": float(outcome.jobs["jct_s"].mean() or np.nan), "met": float(met)}
                found.setdefault(outcome.policy, []).append(row)
            print(f"seed {seed} done", file=sys.stderr, flush=True)
    print(f"{given.seeds} cuts of {given.jobs:,} jobs on {given.cluster}, load {given.load:g}\n")
    print("| policy | mean completion, s | deadlines met |\n|---|---|---|")
    for policy, seeds in found.items():
        print(f"| {policy} | {np.mean([s['jct_s'] for s in seeds]):,.0f} | {np.mean([s['met'] for s in seeds]):,.0f} |")
    print("\n| figure | ratio | geometric mean | 95 % interval | above 1 |\n|---|---|---|---|---|")
    for name, one, other in RATIOS:
        pair = ([each[name] for each in found[policy]] for policy in (one, other))
        middle, low, high, more, pairs = directions.ratio(*pair)
        print(f"| {name} | {one} / {other} | {middle:.3g} | {low:.3g} to {high:.3g} | {more} of {pairs} |")


if __name__ == "__main__":
    main()
