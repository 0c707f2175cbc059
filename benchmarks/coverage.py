"""How often intervals of replays, experiments and lessons hold what a long run of the same workload shows.

    python benchmarks/coverage.py --seeds 3000..3049 [--days 14,30,90] [--loads 0.6,0.8,0.95] [--worlds bursts] [--each]
    python benchmarks/coverage.py --seeds 3000..3019 --resample days,weeks,users [--days 14,45]

Each trace is a stretch of a stationary process: independent jobs; a daily and weekly cycle; users whose sessions bring
several like jobs at once; run times with a heavy tail (Pareto, 1.5, at most three days); a heavier one (1.3, at most
a week); all these on 64 GPUs; and the daily cycle with gangs of up to 64 GPUs and that tail on 512 GPUs. It is
replayed under fifo-skip, sjf and two random orders. The truth comes from runs of `TRUTH_DAYS` days, the first
twenty of them left out. The two random orders are equal policies, whose true difference is 0. A replay begins with an
empty cluster and a process does not: short traces of busy clusters differ from the truth for that reason, too.

GPU-hours saved are made up: each job saves a share of what it holds that is its user's, the day's and its own, 5 % on
average, or, where a rule saves nothing, 0 %.

For each figure and process, and with `--each` for each load and length: of the intervals that are given, how many hold
the truth, how many of equal policies exclude 0, how many are withheld as the trace is too short to tell, and half the
width of the middle one, in percent of the true mean. Then that setting of each figure which holds least, of those with
at least `ENOUGH` intervals. Seeds 0 to 1999 are for development.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections import defaultdict
from multiprocessing import Pool
from typing import TYPE_CHECKING, NamedTuple

if __name__ == "coverage":
    # Numba and others look for a package of this name, and do without it
    raise ImportError("benchmarks/coverage.py is not the package coverage")

import numpy as np

from gpuctl.lessons import rules, savings
from gpuctl.lessons.lesson_input import blocks_of, jobs_of
from gpuctl.replay.experiments import cells, table
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.transforms import bootstrap, bootstrap_users
from gpuctl.replay.results.comparison import against, wait_intervals
from gpuctl.replay.results.metrics import SIZES, size_class
from gpuctl.replay.run import replay
from gpuctl.workloads.jobs import Jobs
from gpuctl.workloads.replay_check import workload_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from gpuctl.lessons.finding import Estimate
    from gpuctl.replay.models.records import Outcome, Workload

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

DAY, HOUR = 86400.0, 3600.0
SIGMA, MIDDLE, OF_USER = 1.2, 3600.0, 0.9
SHORTEST = 1200.0
A_SESSION = 8
USERS = 40


class World(NamedTuple):
    """A process.

    Attributes:
        arrivals: ``steady``, ``daily`` or ``bursts``.
        tail: Pareto's exponent of run times; 0: they are lognormal.
        longest: days.
        gpus: of the cluster.
        shares: of the jobs with 1, 2, 4 ... GPUs.
    """

    arrivals: str = "steady"
    tail: float = 0.0
    longest: float = 3.0
    gpus: int = 64
    shares: tuple[float, ...] = (0.5, 0.2, 0.2, 0.1)


WORLDS = {
    "steady": World(),
    "daily": World("daily"),
    "bursts": World("bursts"),
    "tails": World(tail=1.5),
    "heavier": World(tail=1.3, longest=7.0),
    "large": World("daily", 1.3, 7.0, 512, (0.4, 0.15, 0.15, 0.15, 0.06, 0.06, 0.03)),
}
POLICIES = ("fifo-skip", "sjf", "random", "other=random")
NAMES = tuple(name.partition("=")[0] for name in POLICIES)
PAIRS = (("fifo-skip", "sjf"), ("fifo-skip", "random"), ("random", "other"))
SAVED, OF_USERS, OF_DAYS, OF_JOBS = 0.05, 0.1, 0.1, 0.3
TRUTH_DAYS, BEFORE_DAYS, AFTER_DAYS = 400, 20, 10
TRUTH_SEED = 10**6
DRAWS = 8
LONG_DAYS = 14
ENOUGH = 20


class Found(NamedTuple):
    """One interval.

    Attributes:
        figure: what it is of.
        truth: keys of what `long_run` returns: the true mean is the first one's less the second one's, if there is one.
        low: its lower end; None: withheld.
        high: its upper end.
    """

    figure: str
    truth: tuple[str, ...]
    low: float | None
    high: float | None


def mean_run(world: World) -> float:
    """Seconds that a job runs on average."""
    if not world.tail:
        return MIDDLE * float(np.exp(SIGMA**2 / 2))
    longest, tail = world.longest * DAY, world.tail
    whole = tail * SHORTEST / (tail - 1) * (1 - (SHORTEST / longest) ** (tail - 1))
    return float(whole + longest * (SHORTEST / longest) ** tail)


def rate_of(world: World, load: float) -> float:
    """Jobs a second."""
    sizes = 2 ** np.arange(len(world.shares))
    return load * world.gpus / (float(sizes @ np.array(world.shares)) * mean_run(world))


def made(name: str, load: float, days: float, seed: int) -> Workload:
    """A stretch of one of the processes."""
    world = WORLDS[name]
    rng = np.random.default_rng([seed, list(WORLDS).index(name)])
    begin, count = _arrivals(rng, world.arrivals, rate_of(world, load), days * DAY)
    sizes = 2 ** np.arange(len(world.shares))
    size = np.repeat(rng.choice(sizes, begin.size, p=world.shares), count)
    user = np.repeat(rng.integers(USERS, size=begin.size), count)
    if world.tail:
        run = SHORTEST * (1 - rng.random(size.size)) ** (-1 / world.tail)
    else:
        session = np.repeat(rng.normal(0, OF_USER, begin.size), count)
        run = MIDDLE * np.exp(session + rng.normal(0, np.sqrt(SIGMA**2 - OF_USER**2), size.size))
    bursts = world.arrivals == "bursts"
    gaps = [np.cumsum(rng.exponential(120, some)) - 1 for some in count.tolist()] if bursts else []
    submit = np.repeat(begin, count) + (np.concatenate(gaps) if gaps else 0.0)
    order = np.argsort(submit, kind="stable")
    order = order[submit[order] < days * DAY]
    none = np.full(order.size, -1, np.int64)
    work = workload_of(
        Jobs(
            name=name, submit_s=np.maximum(submit[order], 0), size=size[order].astype(np.int64),
            run_s=np.clip(run[order], 1, world.longest * DAY), limit_s=np.full(order.size, np.nan), user=none,
            queue=none, gpu_type=none, state=np.full(order.size, ""),
        )
    )  # fmt: skip
    return dataclasses.replace(work, user=user[order], users=tuple(f"u{k}" for k in range(USERS)))


def _arrivals(rng: np.random.Generator, kind: str, rate: float, end: float) -> tuple[Floats, Ints]:
    """When sessions begin, and how many jobs each has; outside bursts a session is a job."""
    if kind == "bursts":
        begin = np.sort(rng.uniform(0, end, rng.poisson(rate * end / A_SESSION)))
        return begin, rng.geometric(1 / A_SESSION, begin.size)
    if kind == "daily":
        # from a random day of the week on; the mean over a week is 1
        first, most = rng.integers(7) * DAY, 1.8 * 1.2
        begin = np.sort(rng.uniform(0, end, rng.poisson(rate * end * most)))
        at = begin + first
        level = (1 + 0.8 * np.sin(2 * np.pi * (at % DAY / DAY - 9 / 24))) * np.where(at // DAY % 7 < 5, 1.2, 0.5)
        begin = begin[rng.random(begin.size) * most < level]
    else:
        begin = np.sort(rng.uniform(0, end, rng.poisson(rate * end)))
    return begin, np.ones(begin.size, np.int64)


def outcomes(name: str, work: Workload, seed: int, policies: tuple[str, ...] = POLICIES) -> dict[str, Outcome]:
    """What each policy does with a workload."""
    cluster = parse_cluster(f"pool:{WORLDS[name].gpus}", work)
    return {
        policy.partition("=")[0]: replay(work, cluster, [(policy, {})], processes=1, seed=2 * seed + number)[0]
        for number, policy in enumerate(policies)
    }


def long_run(task: tuple[str, float, int]) -> dict[str, float]:
    """Means of a long run; the other random order has those of the first one."""
    name, load, seed = task
    work = made(name, load, TRUTH_DAYS, seed)
    inside = (work.submit > BEFORE_DAYS * DAY) & (work.submit < (TRUTH_DAYS - AFTER_DAYS) * DAY)
    truth = {"nothing": 0.0, "hours a day": load * WORLDS[name].gpus * DAY / HOUR}
    for policy, outcome in outcomes(name, work, seed, POLICIES[:3]).items():
        jobs = outcome.jobs.with_columns(size_class()).filter(inside)
        truth[f"wait {policy} all"] = float(jobs["wait_s"].mean())  # type: ignore[arg-type]
        truth[f"jct {policy} all"] = float(jobs["jct_s"].mean())  # type: ignore[arg-type]
        truth[f"p95 {policy} all"] = float(jobs["wait_s"].quantile(0.95, "linear"))  # type: ignore[arg-type]
        for size in SIZES:
            here = jobs.filter(size_bucket=size)["wait_s"]
            if here.len():
                truth[f"wait {policy} {size}"] = float(here.mean())  # type: ignore[arg-type]
    return truth | {key.replace("random", "other"): value for key, value in truth.items() if "random" in key}


def of_trace(task: tuple[str, float, float, int]) -> list[Found]:
    """Intervals of the replays and lessons of one trace."""
    name, load, days, seed = task
    work = made(name, load, days, seed)
    done = outcomes(name, work, seed)
    rows = []
    for before, after in PAIRS:
        for row in against(done[after], done[before], work).filter(measure="wait").iter_rows(named=True):
            size = row["size_bucket"]
            figure = "difference of waits" + (", by size" if size != "all" else "")
            keys = (f"wait {after} {size}", f"wait {before} {size}")
            rows.append(Found(figure, keys, row["diff_low_s"], row["diff_high_s"]))
    for policy in NAMES[:2]:
        ends = wait_intervals(done[policy], work)
        for figure, key in (("mean wait", "wait_mean"), ("p95 wait", "wait_p95")):
            truth = (f"{key[5:].replace('mean', 'wait')} {policy} all",)
            rows.append(Found(figure, truth, ends[f"{key}_low_s"], ends[f"{key}_high_s"]))
    return rows + _of_lessons(done, work, seed)


def _of_lessons(done: dict[str, Outcome], work: Workload, seed: int) -> list[Found]:
    jobs = {policy: jobs_of(outcome) for policy, outcome in done.items()}
    rows = []
    for before, after in PAIRS:
        wait = rules.wait_estimate(jobs[before], jobs[after])
        rows.append(_in_seconds("lessons: waiting saved", (f"wait {before} all", f"wait {after} all"), wait))
    for policy in NAMES[:2]:
        hours = jobs[policy].jct_s / HOUR
        rows.append(
            _in_seconds("lessons: mean JCT", (f"jct {policy} all",), savings.waited(hours, hours, jobs[policy]))
        )
    # users are the same in all traces, their days and jobs are not
    users = np.random.default_rng(7).normal(0, OF_USERS, USERS)
    rng = np.random.default_rng([seed, 7])
    day = rng.normal(0, OF_DAYS, (USERS, int(work.submit.max() / DAY) + 1))[work.user, (work.submit / DAY).astype(int)]
    share = (users - users.mean())[work.user] + day + rng.normal(0, OF_JOBS, work.size)
    block, _ = blocks_of(work)
    for truth, mean in (("saved", SAVED), ("nothing", 0.0)):
        hours = savings.total((share + mean) * jobs["sjf"].gpu_s / HOUR, block)
        rows.append(Found("lessons: GPU-hours saved", (truth,), hours.low, hours.high))
    return rows


def _in_seconds(figure: str, truth: tuple[str, ...], found: Estimate) -> Found:
    if found.low is None or found.high is None:
        return Found(figure, truth, None, None)
    return Found(figure, truth, found.low * HOUR, found.high * HOUR)


def of_draws(task: tuple[str, float, float, int, str]) -> list[Found]:
    """Intervals of an experiment whose seeds draw jobs of one trace, as ``gpuctl replay --seed 1..N`` makes them."""
    name, load, days, seed, resample = task
    work = made(name, load, days, seed)
    plan = cells.plan([(policy, {}) for policy in POLICIES], {}, range(1, DRAWS + 1))
    figures = []
    for cell in plan:
        drawn = (
            bootstrap_users(work, cell.seed)
            if resample == "users"
            else bootstrap(work, work.size, cell.seed, weeks=resample == "weeks")
        )
        base = cells.Base(drawn, parse_cluster(f"pool:{WORLDS[name].gpus}", work), {}, "none")
        # what is drawn has its seed, and each random order one of its own
        figures.append(cells.run(base, dataclasses.replace(cell, seed=2 * cell.seed + POLICIES.index(cell.policy))))
    frame = table.rows(plan, figures, resample=resample)
    rows = []
    for baseline in ("fifo-skip", "random"):
        for row in table.summarized(frame, [], baseline, resample=resample).iter_rows(named=True):
            policy = row["policy"]
            if (baseline, policy) in PAIRS:
                keys = (f"wait {policy} all", f"wait {baseline} all")
                rows.append(Found(f"{resample}: difference of waits", keys, row["change_low_s"], row["change_high_s"]))
            if baseline != "random" and policy in NAMES[:2]:
                rows += [
                    Found(f"{resample}: {figure}", (key,), row[f"{column}_low"], row[f"{column}_high"])
                    for figure, column, key in (
                        ("mean wait", "wait_mean_s", f"wait {policy} all"),
                        ("p95 wait", "wait_p95_s", f"p95 {policy} all"),
                        ("mean JCT", "jct_mean_s", f"jct {policy} all"),
                    )
                ]
    return rows


@dataclasses.dataclass
class Counts:
    """What came of intervals."""

    given: int = 0
    held: int = 0
    nulls: int = 0
    excluded: int = 0
    withheld: int = 0
    widths: list[float] = dataclasses.field(default_factory=list)

    def add(self, found: Found, truth: dict[str, float]) -> None:
        """Count one."""
        null = found.truth == ("nothing",) or {key.split()[-2] for key in found.truth if " " in key} == set(PAIRS[-1])
        if found.low is None or found.high is None:
            self.withheld += not null
            return
        values = [truth[key] for key in found.truth]
        if null:
            self.nulls += 1
            self.excluded += not found.low <= 0 <= found.high
            return
        self.given += 1
        self.held += found.low <= values[0] - sum(values[1:]) <= found.high
        level = sum(values) / len(values)
        self.widths.append(50 * (found.high - found.low) / level if level else np.inf)

    def line(self, name: str) -> str:
        """In words."""
        share = f"{100 * self.held / self.given:5.1f} % of {self.given:5}" if self.given else f"{'none':>16}"
        null = f"{100 * self.excluded / self.nulls:5.1f} % of {self.nulls:5}" if self.nulls else " " * 16
        withheld = 100 * self.withheld / max(self.withheld + self.given, 1)
        wide = f"{np.median(self.widths):7.0f} %" if self.widths else ""
        return f"{name:52} {share}   {null}   {withheld:5.1f} %   {wide}"


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
    parser.add_argument("--resample", default="", help=f"days, weeks, users: {DRAWS} draws of each trace")
    parser.add_argument("--each", action="store_true", help="a line for each load and length, too")
    parser.add_argument("--processes", type=int, default=1)
    asked = parser.parse_args()
    first, last = (int(each) for each in asked.seeds.split(".."))
    every: dict[tuple[str, str, float, float], Counts] = defaultdict(Counts)
    begin = time.perf_counter()
    with Pool(asked.processes) as pool:
        for world in asked.worlds.split(","):
            for load in asked.loads:
                runs = pool.map(long_run, [(world, load, TRUTH_SEED + k) for k in range(asked.truths)], chunksize=1)
                truth = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
                for days in asked.days:
                    truth["saved"] = SAVED * truth["hours a day"] * days
                    tasks = [(world, load, days, seed) for seed in range(first, last + 1)]
                    drawn = [(*task, how) for how in asked.resample.split(",") if how for task in tasks]
                    found = pool.map(of_draws, drawn, chunksize=1) if drawn else pool.map(of_trace, tasks, chunksize=1)
                    for one in (one for trace in found for one in trace):
                        every[one.figure, world, load, days].add(one, truth)
    _print(every, each=asked.each)
    print(f"{time.perf_counter() - begin:.0f} s")


def _print(every: dict[tuple[str, str, float, float], Counts], *, each: bool) -> None:
    print(f"{'':52} {'holds the truth':>16}   {'null excludes 0':>16}   withheld   half width")
    for figure in dict.fromkeys(key[0] for key in every):
        mine = {key[1:]: one for key, one in every.items() if key[0] == figure}
        for world in dict.fromkeys(key[0] for key in mine):
            print(_sum(one for key, one in mine.items() if key[0] == world).line(f"{figure}, {world}"))
            for (name, load, days), one in mine.items():
                if each and name == world:
                    print(one.line(f"    load {load:g}, {days:g} days"))
        print(_sum(mine.values()).line(f"{figure}, all"))
        print(_sum(one for key, one in mine.items() if key[2] >= LONG_DAYS).line("    from two weeks on"))
        enough = [(one.held / one.given, key, one) for key, one in mine.items() if one.given >= ENOUGH]
        if enough:
            _, (name, load, days), one = min(enough, key=lambda some: some[:2])
            print(one.line(f"    worst: {name}, load {load:g}, {days:g} days"))


def _sum(some: Iterable[Counts]) -> Counts:
    whole = Counts()
    for one in some:
        for name in ("given", "held", "nulls", "excluded", "withheld"):
            setattr(whole, name, getattr(whole, name) + getattr(one, name))
        whole.widths += one.widths
    return whole


if __name__ == "__main__":
    main()
