"""How often the interval of a difference between two policies on one trace holds the true difference.

    python benchmarks/coverage.py --seeds 2000..2099 [--days 14,30,90] [--loads 0.6,0.8,0.95] [--worlds bursts]

Each trace is a stretch of a stationary process on 64 GPUs: independent jobs; a daily and weekly cycle; users whose
sessions bring several like jobs at once; or run times with a heavy tail (Pareto, 1.5, at
most three days). It is replayed under fifo-skip, sjf and two
random orders. Two comparisons have a true difference, which comes from runs of `TRUTH_DAYS` days, the first twenty of
them left out; the two random orders are equal policies, whose true difference is 0. A replay begins with an empty
cluster and a process does not: short traces of busy clusters differ from the truth for that reason, too.

For each process, load and length: of the intervals that are given, how many hold the truth (of both comparisons
together), how many of equal policies exclude 0, how many are withheld because the trace is too short to tell; beside it
how wide they are: the middle ratio of an end to the mean, away from 0. Seeds 0 to 999 are for development.
`--resample` checks the intervals of experiments, whose seeds draw days of a trace, in place of those of one replay.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field
from multiprocessing import Pool
from typing import TYPE_CHECKING

if __name__ == "coverage":
    # Numba and others look for a package of this name, and do without it
    raise ImportError("benchmarks/coverage.py is not the package coverage")

import numpy as np

from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.transforms import bootstrap
from gpuctl.replay.results.comparison import against
from gpuctl.replay.results.intervals import of_draws, stretches
from gpuctl.replay.run import replay
from gpuctl.workloads.jobs import Jobs
from gpuctl.workloads.replays import workload_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.replay.models.records import Outcome, Workload

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

DAY = 86400.0
GPUS = 64
SIZES, SHARES = np.array([1, 2, 4, 8]), np.array([0.5, 0.2, 0.2, 0.1])
WORLDS = ("steady", "daily", "bursts", "tails")
POLICIES = ("fifo-skip", "sjf", "random", "other=random")
PAIRS = (("fifo-skip", "sjf"), ("fifo-skip", "random"))
NULL = ("random", "other")
LONGEST = 3 * DAY
TAIL, SHORTEST = 1.5, 1200.0
SIGMA, MIDDLE, OF_USER = 1.2, 3600.0, 0.9
A_SESSION = 8
TRUTH_DAYS, BEFORE_DAYS, AFTER_DAYS = 400, 20, 10
TRUTH_SEED = 10**6
DRAWS = 8


def mean_run(world: str) -> float:
    """Seconds that a job runs on average."""
    if world == "tails":
        whole = TAIL * SHORTEST / (TAIL - 1) * (1 - (SHORTEST / LONGEST) ** (TAIL - 1))
        return float(whole + LONGEST * (SHORTEST / LONGEST) ** TAIL)
    return MIDDLE * float(np.exp(SIGMA**2 / 2))


def made(world: str, load: float, days: float, seed: int) -> Workload:
    """A stretch of one of the processes."""
    rng = np.random.default_rng([seed, WORLDS.index(world)])
    rate, end = load * GPUS / (float(SIZES @ SHARES) * mean_run(world)), days * DAY
    begin, count = _arrivals(rng, world, rate, end)
    size = np.repeat(rng.choice(SIZES, begin.size, p=SHARES), count)
    if world == "tails":
        run = SHORTEST * (1 - rng.random(size.size)) ** (-1 / TAIL)
    else:
        user = np.repeat(rng.normal(0, OF_USER, begin.size), count)
        run = MIDDLE * np.exp(user + rng.normal(0, np.sqrt(SIGMA**2 - OF_USER**2), size.size))
    gaps = [np.cumsum(rng.exponential(120, some)) - 1 for some in count.tolist()] if world == "bursts" else []
    submit = np.repeat(begin, count) + (np.concatenate(gaps) if gaps else 0.0)
    order = np.argsort(submit, kind="stable")
    order = order[submit[order] < end]
    none = np.full(order.size, -1, np.int64)
    return workload_of(
        Jobs(
            name=world, submit_s=np.maximum(submit[order], 0), size=size[order].astype(np.int64),
            run_s=np.clip(run[order], 1, LONGEST), limit_s=np.full(order.size, np.nan), user=none, queue=none,
            gpu_type=none, state=np.full(order.size, ""),
        )
    )  # fmt: skip


def _arrivals(rng: np.random.Generator, world: str, rate: float, end: float) -> tuple[Floats, Ints]:
    """When sessions begin, and how many jobs each has; outside bursts a session is a job."""
    if world == "bursts":
        begin = np.sort(rng.uniform(0, end, rng.poisson(rate * end / A_SESSION)))
        return begin, rng.geometric(1 / A_SESSION, begin.size)
    if world == "daily":
        # from a random day of the week on; the mean over a week is 1
        first, most = rng.integers(7) * DAY, 1.8 * 1.2
        begin = np.sort(rng.uniform(0, end, rng.poisson(rate * end * most)))
        at = begin + first
        level = (1 + 0.8 * np.sin(2 * np.pi * (at % DAY / DAY - 9 / 24))) * np.where(at // DAY % 7 < 5, 1.2, 0.5)
        begin = begin[rng.random(begin.size) * most < level]
    else:
        begin = np.sort(rng.uniform(0, end, rng.poisson(rate * end)))
    return begin, np.ones(begin.size, np.int64)


def outcomes(work: Workload, seed: int) -> dict[str, Outcome]:
    """What each policy does with a workload."""
    cluster = parse_cluster(f"pool:{GPUS}", work)
    return {
        name.partition("=")[0]: replay(work, cluster, [(name, {})], processes=1, seed=2 * seed + number)[0]
        for number, name in enumerate(POLICIES)
    }


@dataclass
class Counts:
    """What came of the traces of one setting."""

    given: int = 0
    held: int = 0
    nulls: int = 0
    excluded: int = 0
    withheld: int = 0
    of: int = 0
    ends: list[float] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        """Those of another setting, too."""
        for name in ("given", "held", "nulls", "excluded", "withheld", "of"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.ends += other.ends


def _means(task: tuple[str, float, int]) -> list[float]:
    world, load, seed = task
    work = made(world, load, TRUTH_DAYS, seed)
    inside = (work.submit > BEFORE_DAYS * DAY) & (work.submit < (TRUTH_DAYS - AFTER_DAYS) * DAY)
    found = outcomes(work, seed)
    return [float(found[name].jobs["wait_s"].to_numpy()[inside].mean()) for name in found]


def _intervals(task: tuple[str, float, float, int]) -> list[tuple[float, float | None, float | None]]:
    """Mean difference and ends of its interval, of each pair and of equal policies."""
    world, load, days, seed = task
    work = made(world, load, days, seed)
    found = outcomes(work, seed)
    rows = []
    for before, after in (*PAIRS, NULL):
        row = against(found[after], found[before], work).filter(measure="wait", size_bucket="all").row(0, named=True)
        rows.append((row["diff_mean_s"], row["diff_low_s"], row["diff_high_s"]))
    return rows


def _drawn(task: tuple[str, float, float, int]) -> list[tuple[float, float | None, float | None]]:
    """The same from draws of the trace's days, as ``gpuctl replay --seed 1..N`` makes them."""
    world, load, days, seed = task
    work = made(world, load, days, seed)
    waits: dict[str, list[float]] = {name.partition("=")[0]: [] for name in POLICIES}
    held = {name: list[float]() for name in waits}
    for draw in range(1, DRAWS + 1):
        for name, one in outcomes(bootstrap(work, work.size, draw), DRAWS * seed + draw).items():
            waits[name].append(float(one.jobs["wait_s"].to_numpy().mean()))
            held[name].append(stretches([one]))
    rows = []
    for before, after in (*PAIRS, NULL):
        a, b = np.array(waits[before]), np.array(waits[after])
        fewest = min(float(np.median(held[name])) for name in (before, after))
        low, high, _ = of_draws(b - a, (a + b) / 2, stretches=fewest)
        rows.append((float((b - a).mean()), low, high))
    return rows


def counted(rows: list[list[tuple[float, float | None, float | None]]], truths: list[float]) -> Counts:
    """Count the intervals of the traces of one setting."""
    one = Counts()
    for row in rows:
        for (mean, low, high), truth in zip(row, (*truths, None), strict=True):
            if low is None or high is None:
                one.withheld += truth is not None
                one.of += truth is not None
            elif truth is None:
                one.nulls += 1
                one.excluded += not low <= 0 <= high
            else:
                one.of += 1
                one.given += 1
                one.held += low <= truth <= high
                one.ends.append(max(abs(low), abs(high)) / max(abs(mean), 1e-9))
    return one


def _line(name: str, one: Counts) -> str:
    share = f"{100 * one.held / one.given:5.1f} % of {one.given:5}" if one.given else "          none"
    null = f"{100 * one.excluded / one.nulls:5.1f} % of {one.nulls:5}" if one.nulls else "          none"
    wide = f"{np.median(one.ends):6.1f}" if one.ends else "      "
    return f"{name:28} {share}   {null}   {100 * one.withheld / max(one.of, 1):5.1f} %   {wide}"


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float(each) for each in text.split(","))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0..19", help="A..B, one trace each")
    parser.add_argument("--days", type=_numbers, default=(14.0, 30.0, 90.0))
    parser.add_argument("--loads", type=_numbers, default=(0.6, 0.8, 0.95))
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--truths", type=int, default=8, help="long runs for each process and load")
    parser.add_argument("--resample", action="store_true", help=f"intervals of {DRAWS} draws of each trace's days")
    parser.add_argument("--processes", type=int, default=1)
    asked = parser.parse_args()
    first, last = (int(each) for each in asked.seeds.split(".."))
    whole, long = Counts(), Counts()
    begin = time.perf_counter()
    print(f"{'process, load, days':28} {'holds the truth':>16}   {'null excludes 0':>16}   withheld   end/mean")
    with Pool(asked.processes) as pool:
        for world in asked.worlds.split(","):
            for load in asked.loads:
                runs = pool.map(_means, [(world, load, TRUTH_SEED + k) for k in range(asked.truths)], chunksize=1)
                mean = dict(zip((name.partition("=")[0] for name in POLICIES), np.mean(runs, axis=0), strict=True))
                # both random orders tell of the same mean
                mean["random"] = mean["other"] = (mean["random"] + mean["other"]) / 2
                truths = [float(mean[after] - mean[before]) for before, after in PAIRS]
                for days in asked.days:
                    tasks = [(world, load, days, seed) for seed in range(first, last + 1)]
                    one = counted(pool.map(_drawn if asked.resample else _intervals, tasks, chunksize=1), truths)
                    whole.add(one)
                    if days >= 14:
                        long.add(one)
                    print(_line(f"{world}, {load:g}, {days:g}", one), flush=True)
    print(_line("all", whole))
    print(_line("from two weeks on", long))
    print(f"{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
