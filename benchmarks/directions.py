"""Whether the directions that papers on deep-learning schedulers publish show here, in ratios paired over seeds.

    python benchmarks/directions.py [--seeds 8] [--jobs 1000] [--cluster 64x8] [--per-rack 8] [--load 2.2] [JOBS.csv]

Each seed is a cut of the 82,247 Philly jobs of ../shared/data/philly/sia_philly.csv, or of another CSV like it: from a
day drawn at random on, all jobs of several GPUs and a quarter of the others until there are so many, run times of at
most a day, submissions squeezed until the jobs ask for `--load` times the cluster's GPUs until the last one comes. All
policies of a seed have the same jobs, speeds and costs. A ratio is the geometric mean over seeds of the one's figure by
the other's, with a 95 % interval of Student's t over the logarithms; "above 1" counts seeds.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import math
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from scipy.special import stdtrit

sys.path.insert(0, str(Path(__file__).resolve().parent))

import replay as common

from gpuctl.replay.inputs.clusters import in_racks, parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.inference import parse_inference
from gpuctl.replay.results.metrics import goodput_loaded, rhos, use
from gpuctl.replay.run import replay

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Cluster, Outcome, Workload

LONGEST_S = 86_400.0
SINGLES = 0.25

POLICIES = (
    ("fifo", {}), ("fifo-skip", {}), ("srtf", {}), ("las", {}), ("tiresias", {}),
    ("never=tiresias", {"promote": "0"}), ("promote1=tiresias", {"promote": "1"}),
    ("gandiva", {}), ("nopack=gandiva", {"pack": "0"}), ("nomove=gandiva", {"move": "0"}),
    ("noover=gandiva", {"over": "0"}), ("nomix=gandiva", {"mix": "0"}),
    ("themis", {}), ("lease600=themis", {"lease": "600"}), ("lease3600=themis", {"lease": "3600"}),
    ("f0=themis", {"f": "0"}), ("unpaid=themis", {"payments": "0"}), ("rigid=themis", {"rigid": "1"}),
    ("optimus", {}), ("most1=optimus", {"most": "1"}), ("wrong=optimus", {"error": "0.5"}),
)  # fmt: skip
DIRECTIONS = (
    ("t10_s", "fifo", "gandiva"), ("t10_s", "fifo-skip", "gandiva"), ("t10_s", "tiresias", "gandiva"),
    ("t10_s", "las", "gandiva"), ("t10_s", "noover", "gandiva"), ("t10_s", "nomix", "gandiva"),
    ("jct_s", "fifo", "gandiva"), ("jct_s", "nopack", "gandiva"), ("jct_s", "nomove", "gandiva"),
    ("goodput_loaded", "gandiva", "fifo"), ("goodput_loaded", "gandiva", "fifo-skip"),
    ("goodput_loaded", "gandiva", "nopack"),
    ("rho_max", "lease3600", "lease600"), ("rho_max", "lease3600", "themis"), ("rho_max", "themis", "lease600"),
    ("rho_p95", "lease3600", "lease600"),
    ("rho_max", "tiresias", "themis"), ("rho_p95", "tiresias", "themis"), ("rho_max", "never", "themis"),
    ("rho_p95", "never", "themis"), ("rho_max", "promote1", "themis"), ("rho_p95", "promote1", "themis"),
    ("rho_max", "las", "themis"), ("rho_p95", "las", "themis"), ("rho_max", "gandiva", "themis"),
    ("rho_p95", "gandiva", "themis"), ("rho_max", "srtf", "themis"),
    ("rho_max", "themis", "f0"), ("gpu_h", "themis", "f0"),
    ("jct_s", "themis", "unpaid"), ("gpu_h", "themis", "unpaid"),
    ("rho_max", "rigid", "themis"), ("jct_s", "rigid", "themis"), ("jct_s", "tiresias", "themis"),
    ("jct_s", "tiresias", "optimus"), ("jct_s", "srtf", "optimus"), ("jct_s", "most1", "optimus"),
    ("jct_s", "srtf", "most1"), ("jct_s", "wrong", "optimus"), ("rho_max", "optimus", "srtf"),
)  # fmt: skip
"""A figure, and of which two policies the ratio is: the first by the second."""

ARYL = (
    ("neither=aryl", {"loan": "0", "elastic": "0"}), ("loan=aryl", {"elastic": "0"}), ("scale=aryl", {"loan": "0"}),
    ("both=aryl", {}),
)  # fmt: skip
"""Replayed apart: at these its own speeds hold, places do not matter, and inference has the assumed daily curve."""

OF_ARYL = tuple(
    (name, "neither", other)
    for other in ("loan", "scale", "both")
    for name in ("delay_s", "jct_s", "rho_max", "utilization_pct")
)


def cut(rows: common.Rows, size: int, seed: int) -> common.Rows:
    """So many jobs from a day drawn at random on."""
    draw = np.random.default_rng(seed)
    last = rows[-1][0] / common.DAY_S
    while True:
        begin = float(draw.integers(0, int(last))) * common.DAY_S
        found = [r for r in rows if r[0] >= begin]
        kept = [r for r, part in zip(found, draw.random(len(found)), strict=True) if r[2] > 1 or part < SINGLES]
        if len(kept) >= size:
            return kept[:size]


def loaded(path: Path, rows: common.Rows, cluster: str, per_rack: int, load: float) -> tuple[Workload, Cluster]:
    """These jobs on nodes that they load so much."""
    total = sum(math.prod(map(int, part.split("x"))) for part in cluster.split("+"))
    asked = sum(min(duration, LONGEST_S) * min(gpus, total) for _, duration, gpus in rows)
    first, span = rows[0][0], rows[-1][0] - rows[0][0]
    squeeze = span * load * total / asked
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["job_id", "submit_time", "duration", "num_gpus"])
        for number, (submit, duration, gpus) in enumerate(rows):
            seconds = max(1, round(min(duration, LONGEST_S)))
            lines.writerow([f"p{number}", round((submit - first) / squeeze), seconds, min(gpus, total)])
    workload = read_jobs(path)
    return workload, in_racks(parse_cluster(cluster, workload), cluster, per_rack)


def figures(outcome: Outcome, workload: Workload, cluster: Cluster) -> dict[str, float]:
    """What directions are about; a rho of a job is its time from submission to end by its run time."""
    rho = rhos(outcome, workload, cluster)["rho"]
    jobs = outcome.jobs.with_columns(delay_s=pl.col("start_s") - pl.col("submit_s"))
    means = jobs.select(pl.col("t10_s", "jct_s", "delay_s").mean())
    return {
        **means.row(0, named=True),
        "rho_mean": float(np.nanmean(rho)),
        "rho_p95": float(np.nanquantile(rho, 0.95)),
        "rho_max": float(np.nanmax(rho)),
        "goodput_loaded": goodput_loaded(outcome, cluster) or math.nan,
        "gpu_h": float(jobs["gpu_s"].sum()) / 3600,
        "utilization_pct": use(outcome, cluster)["utilization_pct"] or math.nan,
    }


def ratio(above: list[float], below: list[float]) -> tuple[float, float, float, int, int]:
    """Geometric mean of the paired ratios, the ends of its 95 % interval, how many are above 1, and of how many."""
    over, under = np.array(above), np.array(below)
    # where nobody waited there is nothing to compare
    some = (over > 0) & (under > 0)
    logs = np.log(over[some] / under[some])
    wide = stdtrit(logs.size - 1, 0.975) * logs.std(ddof=1) / math.sqrt(logs.size) if logs.size > 1 else math.nan
    middle, low, high = (float(np.exp(logs.mean() + by)) for by in (0.0, -wide, wide))
    return middle, low, high, int((logs > 0).sum()), logs.size


def main() -> None:
    """Replay, and print a row a direction and a row a policy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", nargs="?", type=Path, default=common.PHILLY)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--cluster", default="64x8")
    parser.add_argument("--per-rack", type=int, default=8)
    parser.add_argument("--inference", default="64x8")
    parser.add_argument("--load", type=float, default=2.2)
    parser.add_argument("--aryl", action="store_true", help="the variants of aryl alone")
    given = parser.parse_args()
    rows = common.philly(given.trace)
    found: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.first, given.first + given.seeds):
            some = cut(rows, given.jobs, seed)
            workload, cluster = loaded(Path(folder) / "jobs.csv", some, given.cluster, given.per_rack, given.load)
            for outcome in replay(
                workload, cluster, [] if given.aryl else list(POLICIES), own_speeds=True, processes=1
            ):
                found.setdefault(outcome.policy, []).append(figures(outcome, workload, cluster))
            lending = dataclasses.replace(cluster, inference=parse_inference(given.inference, None))
            for outcome in replay(workload, lending, list(ARYL), own_speeds=True, processes=1):
                found.setdefault(outcome.policy, []).append(figures(outcome, workload, lending))
            print(f"seed {seed} done", file=sys.stderr, flush=True)
    print(f"{given.seeds} cuts of {given.jobs:,} jobs on {given.cluster}, load {given.load:g}\n")
    names = list(next(iter(found.values()))[0])
    print("| policy | " + " | ".join(names) + " |\n|---|" + "---|" * len(names))
    for policy, seeds in found.items():
        print(f"| {policy} | " + " | ".join(f"{np.mean([each[name] for each in seeds]):.4g}" for name in names) + " |")
    print("\n| figure | ratio | geometric mean | 95 % interval | above 1 |\n|---|---|---|---|---|")
    for name, one, other in DIRECTIONS + OF_ARYL:
        if one not in found or other not in found:
            continue
        middle, low, high, more, pairs = ratio(*([each[name] for each in found[policy]] for policy in (one, other)))
        print(f"| {name} | {one} / {other} | {middle:.3g} | {low:.3g} to {high:.3g} | {more} of {pairs} |")


if __name__ == "__main__":
    main()
