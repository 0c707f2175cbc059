"""Directions of schedulers of goodput, prediction and deadlines: ratios paired over cuts, and differences job by job.

    python benchmarks/goodput.py [--seeds 8] [--jobs 1000] [--cluster 16x8] [--load 1.5] [--error 0.5] [JOBS.csv]
    python benchmarks/goodput.py --whole 4000 [JOBS.csv]
    python benchmarks/goodput.py --searches 10 --cluster 16x4 [JOBS.csv]

Cuts and ratios are those of benchmarks/directions.py; benchmarks/helios_like.py makes another JOBS.csv. All policies of
a cut have the same jobs and nodes; run times are as recorded wherever a job is put, except that sia and pollux set
speeds themselves and elasticflow uses alpha. Policies that predict are given run times that are wrong by a factor of
exp(error z), z normal.

`--whole JOBS` replays one cut of that many jobs; differences of mean completion and their intervals are those of
`replay_vs_baseline`, job by job. With `--searches` pollux' genetic search is compared with the exact one on as many
cuts, from one seed each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import directions
import replay as common

from gpuctl.replay.inputs.estimates import plan_limits, with_estimates
from gpuctl.replay.models.traits import deadlines
from gpuctl.replay.policies import label
from gpuctl.replay.results import comparison
from gpuctl.replay.run import replay

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Cluster, Outcome, Workload

POLICIES = (
    ("fifo", {}), ("fifo-skip", {}), ("tiresias", {}), ("srtf", {}), ("qssf", {}),
    ("rolling=qssf", {"estimate": "rolling"}), ("lucid", {}), ("alone=lucid", {"share": "0"}), ("pollux", {}),
    ("pollux8=pollux", {"interval": "480"}), ("sia", {}), ("sia300=sia", {"interval": "300"}),
    ("free=sia", {"explore": "0"}), ("edf", {}), ("elasticflow", {}), ("easy", {}), ("wfp3", {}), ("unicep", {}),
    ("f1", {}), ("f2", {}), ("f3", {}), ("f4", {}), ("eased=wfp3", {"backfill": "easy"}),
    ("eased1=f1", {"backfill": "easy"}),
)  # fmt: skip
RATIOS = (
    ("jct_s", "fifo", "qssf"), ("jct_s", "rolling", "qssf"), ("jct_s", "fifo", "lucid"), ("jct_s", "qssf", "lucid"),
    ("jct_s", "tiresias", "lucid"), ("jct_s", "alone", "lucid"), ("jct_s", "srtf", "pollux"),
    ("jct_s", "tiresias", "pollux"), ("jct_s", "pollux8", "pollux"), ("jct_s", "pollux", "sia"),
    ("jct_s", "tiresias", "sia"), ("jct_s", "sia300", "sia"), ("jct_s", "sia", "free"), ("met", "elasticflow", "edf"),
    ("met", "edf", "fifo"), ("met", "srtf", "edf"), ("jct_s", "wfp3", "eased"),
    *(("jct_s", name, "easy") for name in ("wfp3", "unicep", "f1", "f2", "f3", "f4")),
    *(("jct_s", "fifo", name) for name in ("wfp3", "unicep", "f1", "f2", "f3", "f4")), ("jct_s", "f1", "eased1"),
    ("slowdown", "wfp3", "f1"), ("slowdown", "unicep", "f1"),
)  # fmt: skip


def chosen(given: argparse.Namespace) -> list[tuple[str, dict[str, str]]]:
    """The policies to replay."""
    return [policy for policy in POLICIES if not given.only or label(policy[0]) in given.only.split(",")]


def inputs(
    rows: common.Rows, given: argparse.Namespace, jobs: int, seed: int, folder: Path
) -> tuple[Workload, Cluster]:
    """A cut of the trace, with predicted run times and limits, on its nodes."""
    some = directions.cut(rows, jobs, seed)
    workload, nodes = directions.loaded(folder / "jobs.csv", some, given.cluster, 8, given.load)
    return plan_limits(with_estimates(workload, f"error:{given.error}"), "steps"), nodes


def replayed(workload: Workload, nodes: Cluster, policy: tuple[str, dict[str, str]], seed: int = 0) -> Outcome:
    """One policy alone, with its own speeds."""
    (outcome,) = replay(workload, nodes, [policy], own_speeds=True, processes=1, seed=seed)
    return outcome


def figures(outcome: Outcome, workload: Workload) -> dict[str, float]:
    """What ratios are about."""
    jobs = outcome.jobs
    slowdown = (jobs["jct_s"] / jobs["work_s"].clip(10)).clip(1)
    return {
        "jct_s": float(jobs["jct_s"].mean() or np.nan),
        "met": float((jobs["end_s"].to_numpy() <= deadlines(workload) + 1e-6).sum()),
        "slowdown": float(slowdown.mean() or np.nan),
    }


def over_cuts(rows: common.Rows, given: argparse.Namespace, folder: Path) -> None:
    """Print a row a policy and a row a ratio."""
    found: dict[str, list[dict[str, float]]] = {}
    for seed in range(given.seeds):
        workload, nodes = inputs(rows, given, given.jobs, seed, folder)
        for policy in chosen(given):
            outcome = replayed(workload, nodes, policy)
            found.setdefault(outcome.policy, []).append(figures(outcome, workload))
        print(f"seed {seed} done", file=sys.stderr, flush=True)
    print(f"{given.seeds} cuts of {given.jobs:,} jobs on {given.cluster}, load {given.load:g}\n")
    print("| policy | mean completion, s | mean bounded slowdown | deadlines met |\n|---|---|---|---|")
    for policy, seeds in found.items():
        each = (np.mean([one[name] for one in seeds]) for name in ("jct_s", "slowdown", "met"))
        print(f"| {policy} | " + " | ".join(f"{value:,.0f}" for value in each) + " |")
    print("\n| figure | ratio | geometric mean | 95 % interval | above 1 |\n|---|---|---|---|---|")
    for name, one, other in RATIOS:
        if not {one, other} <= found.keys():
            continue
        pair = ([each[name] for each in found[policy]] for policy in (one, other))
        middle, low, high, more, pairs = directions.ratio(*pair)
        print(f"| {name} | {one} / {other} | {middle:.3g} | {low:.3g} to {high:.3g} | {more} of {pairs} |")


def job_by_job(rows: common.Rows, given: argparse.Namespace, folder: Path) -> None:
    """Print the change of mean completion of each ratio's second policy from its first."""
    workload, nodes = inputs(rows, given, given.whole, 0, folder)
    found = {}
    for policy in chosen(given):
        outcome = replayed(workload, nodes, policy)
        found[outcome.policy] = outcome
        print(f"{outcome.policy} done", file=sys.stderr, flush=True)
    print(f"one cut of {given.whole:,} jobs on {given.cluster}, load {given.load:g}: mean completion, s\n")
    print("| policy | from | pairs | mean | of the other | difference | 95 % interval |\n|---|---|---|---|---|---|---|")
    for name, other, one in RATIOS:
        if name != "jct_s" or not {one, other} <= found.keys():
            continue
        frame = comparison.against(found[one], found[other], workload)
        [row] = frame.filter(measure="jct", size_bucket="all").to_dicts()
        low, high = row["diff_low_s"], row["diff_high_s"]
        ends = "too short to tell" if low is None else f"{low:,.0f} to {high:,.0f}"
        means = f"{row['mean_s']:,.0f} | {row['baseline_mean_s']:,.0f} | {row['diff_mean_s']:,.0f}"
        print(f"| {one} | {other} | {row['pairs']:,} | {means} | {ends} |")


def searches(rows: common.Rows, given: argparse.Namespace, folder: Path) -> None:
    """Print how pollux' genetic search compares with the exact choice, over cuts and over seeds of one cut."""
    exact, genetic = [], []
    for seed in range(given.searches):
        workload, nodes = inputs(rows, given, given.jobs, seed, folder)
        exact.append(figures(replayed(workload, nodes, ("pollux", {})), workload)["jct_s"])
        genetic.append(figures(replayed(workload, nodes, ("pollux", {"search": "ga"}), seed), workload)["jct_s"])
        print(f"seed {seed} done", file=sys.stderr, flush=True)
    workload, nodes = inputs(rows, given, given.jobs, 0, folder)
    ga = ("pollux", {"search": "ga"})
    same = [figures(replayed(workload, nodes, ga, seed), workload)["jct_s"] for seed in range(given.searches)]
    middle, low, high, more, pairs = directions.ratio(genetic, exact)
    print(f"{given.searches} cuts of {given.jobs:,} jobs on {given.cluster}, load {given.load:g}\n")
    print(f"mean completion: exact {np.mean(exact):,.0f} s, ga {np.mean(genetic):,.0f} s")
    print(f"ga / exact {middle:.4g}, {low:.4g} to {high:.4g}, above 1 in {more} of {pairs}")
    spread = np.std(same, ddof=1)
    print(f"the first cut, {given.searches} seeds: {np.mean(same):,.0f} s, sd {spread:,.0f} s; exact {exact[0]:,.0f} s")


def main() -> None:
    """Replay, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", nargs="?", type=Path, default=common.PHILLY)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--cluster", default="16x8")
    parser.add_argument("--load", type=float, default=1.5)
    parser.add_argument("--error", type=float, default=0.5)
    parser.add_argument("--only", default="", help="names of policies, with commas between them; empty: all")
    parser.add_argument("--whole", type=int, default=0)
    parser.add_argument("--searches", type=int, default=0)
    given = parser.parse_args()
    rows = common.philly(given.trace)
    what = job_by_job if given.whole else searches if given.searches else over_cuts
    with tempfile.TemporaryDirectory() as folder:
        what(rows, given, Path(folder))


if __name__ == "__main__":
    main()
