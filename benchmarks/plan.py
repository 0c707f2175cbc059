"""Whether `gpuctl plan` is right about futures that then come: made demand with known growth, planned from its past.

    python benchmarks/plan.py --seeds 1000:1100 --growth 0,0.01,0.02

Each seed makes 39 weeks of jobs. The plan sees the first 26 and answers for 13 weeks ahead; then the weeks that came
are replayed. Printed per growth: in how many seeds the interval of demand held the demand of the last four weeks, how
often growth was claimed, how often the goal was met with ``nodes_high`` and missed with one node less than
``nodes_low``.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.capacity import demand
from gpuctl.capacity.goal import parse_goal
from gpuctl.capacity.run import ALL, Question, plan
from gpuctl.capacity.sizes import kind_of, resized
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.inputs.transforms import take
from gpuctl.replay.run import replay
from gpuctl.spread.engine import Engine

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Cluster, Workload

PAST, AHEAD = 26, 13
NODES = "8x8"
POLICY: tuple[str, dict[str, str]] = ("fifo-skip", {})
HOURS = np.array([2, 2, 1, 1, 1, 1, 2, 3, 6, 9, 10, 10, 8, 9, 10, 10, 9, 8, 6, 5, 4, 4, 3, 3], float)
"""How busy each hour of a day is; weekends have a third of the sessions of a working day."""
SESSIONS_A_WEEK = 110.0
GPUS, SHARES = (1, 2, 4, 8, 16), (0.5, 0.15, 0.15, 0.17, 0.03)
USERS = 30


def made(path: Path, weeks: int, growth: float, seed: int) -> None:
    """Write a CSV of jobs: sessions of a user's equal jobs, at rates that grow by `growth` a week (of the logarithm).

    Run times are log-normal (median 1.5 h, sigma 1.3), and sessions have one to eight jobs, so that a week's GPU-hours
    vary by about a fifth.
    """
    rng = np.random.default_rng(seed)
    day = np.repeat([1, 1, 1, 1, 1, 1 / 3, 1 / 3], 24)
    hourly = day * np.tile(HOURS, 7)
    hourly /= hourly.sum()
    rows = []
    for week in range(weeks):
        counts = rng.poisson(SESSIONS_A_WEEK * np.exp(growth * week) * hourly)
        for hour in np.repeat(np.arange(168), counts).tolist():
            begin, user = week * 604_800 + hour * 3600 + rng.uniform(0, 3600), int(rng.integers(USERS))
            gpus, run_s = int(rng.choice(GPUS, p=SHARES)), 5400 * np.exp(1.3 * rng.normal())
            size = int(min(rng.geometric(0.4), 8))
            rows += [(begin + 30 * k, run_s * np.exp(0.2 * rng.normal()), gpus, f"u{user}") for k in range(size)]
    rows.sort()
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(("job_id", "submit_time", "duration", "num_gpus", "user"))
        out.writerows((at, f"{t:.0f}", f"{max(run_s, 10):.0f}", gpus, user) for at, (t, run_s, gpus, user) in
                      enumerate(rows))  # fmt: skip


def split(jobs: Workload) -> tuple[Workload, Workload, float]:
    """The past; the five last weeks of what came; and the second from which the latter count."""
    end = jobs.submit.min() + PAST * demand.WEEK_S
    last = end + AHEAD * demand.WEEK_S
    counted = last - demand.PERIOD * demand.WEEK_S
    came = (jobs.submit >= counted - demand.WEEK_S) & (jobs.submit < last)
    return take(jobs, np.flatnonzero(jobs.submit < end)), take(jobs, np.flatnonzero(came)), float(counted)


def figure(came: Workload, cluster: Cluster, counted: float, goal: str) -> float:
    """What the goal bounds, in the weeks that came."""
    [outcome] = replay(came, cluster, [POLICY], processes=1)
    waits = outcome.jobs["start_s"].to_numpy() - came.submit
    return parse_goal(goal).of(waits[came.submit >= counted])


def one(growth: float, seed: int, draws: int, goal: str) -> dict[str, float]:
    """Plan one made past, and replay what came; without draws, only forecast demand."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.csv"
        made(path, PAST + AHEAD, growth, seed)
        jobs = read_jobs(path, ("gpu",))
    past, came, counted = split(jobs)
    weeks = demand.weeks_of(past)
    ahead = demand.forecast(weeks, AHEAD)
    low, high = ahead.interval()
    here = came.submit >= counted
    truth = float((came.true_run_time * came.gpus)[here].sum()) / 3600 / demand.PERIOD
    row = {"held": low <= truth <= high, "width": high / low, "wide": ahead.too_wide}
    if (slope := demand.growth(weeks.gpu_h)) is not None:
        row |= {"claimed": slope.shown, "slope_held": slope.low <= np.expm1(growth) <= slope.high}
    if ahead.too_wide or not draws:
        return row
    cluster = parse_cluster(NODES, jobs)
    found = plan(
        past, cluster, POLICY, Question(parse_goal(goal), None, False, draws, seed, kind_of(cluster)),
        weeks_ahead=AHEAD, models={}, engine=Engine(processes=1), progress=lambda *_: None, notify=lambda _: None,
    )  # fmt: skip
    least, _, most = found.needed(1, ALL)
    bound = parse_goal(goal).most
    row |= {"least": least, "most": most}
    if np.isfinite(most):
        row["met"] = figure(came, resized(cluster, found.base.question.kind, int(most)), counted, goal) <= bound
    if np.isfinite(least) and int(least) - 1 >= found.base.limits()[0]:
        row["missed"] = figure(came, resized(cluster, found.base.question.kind, int(least) - 1), counted, goal) > bound
    return row


def main() -> None:
    """Print the figures for each growth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0:20", help="FIRST:LAST, the last one not included")
    parser.add_argument("--growth", default="0,0.01,0.02", help="a week, of the logarithm")
    parser.add_argument("--draws", type=int, default=40, help="0: only forecast demand")
    parser.add_argument("--goal", default="p95-wait=1h")
    given = parser.parse_args()
    first, last = (int(part) for part in given.seeds.split(":"))
    for growth in (float(part) for part in given.growth.split(",")):
        rows = [one(growth, seed, given.draws, given.goal) for seed in range(first, last)]
        parts = [f"growth {growth:g}, {len(rows)} seeds"]
        for name in ("held", "claimed", "slope_held", "wide", "met", "missed"):
            known = [row[name] for row in rows if name in row]
            parts.append(f"{name} {sum(known)} of {len(known)}")
        sizes = [(row["least"], row["most"]) for row in rows if "most" in row]
        if sizes:
            parts.append("nodes {:g} to {:g} in the median".format(*np.median(sizes, axis=0)))
        parts.append(f"interval x {np.median([row['width'] for row in rows]):.2f}")
        print("; ".join(parts), flush=True)


if __name__ == "__main__":
    main()
