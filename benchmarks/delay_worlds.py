"""Whether the causes of waits claim no more than is known: ``python benchmarks/delay_worlds.py [SEEDS] [WORLD ...]``.

Made-up clusters of several mechanisms, each with its own scheduler, which writes a log and why each attempt waited. The
log is analysed as a user would, and the table says how often a named main cause is right, how often the ranges hold
the truth, for rows, in all and for single waits of more than a minute, and how wide they are (points of 100 %).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store

CAUSES = ("fair_share", "capacity", "fragmentation", "scheduler", "ineligible")
BEGIN = datetime(2017, 10, 2)
WARM_UP, DAY = 2 * 86_400, 86_400
TABLES = ("delay_causes", "delay_by_size", "delay_by_queue", "queue_delays")


@dataclass
class Job:
    """A job; times in seconds. ``held``: until when it is held."""

    name: str
    submit: float
    queue: str
    user: str
    gpus: int
    run: float
    priority: float
    held: float = 0.0
    queued: float = 0.0
    start: float = -1.0
    where: dict[int, int] = field(default_factory=dict)
    left: float = 0.0
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    attempts: list[tuple[float, float, dict[int, int], dict[str, float], float]] = field(default_factory=list)


@dataclass(frozen=True)
class Rules:
    """How a world schedules; a queue's demand is as its quota.

    Attributes:
        quotas: share of all GPUs by queue; empty: none.
        borrow: a queue may exceed its quota while at most this share is in use with the gang.
        reclaim: whether a job within quota takes GPUs from borrowers.
        users: share of all GPUs that one user may hold; 1: any.
        order: ``skip`` (first come, but what fits starts), ``priority`` (strictly), ``easy``.
        change: at half time quotas are multiplied by this.
        down: nodes that are down for some hours now and then, of each hundred.
        holds: share of the jobs that are held at first.
        sizes: GPUs of the nodes.
        log: ``philly`` or ``sacct``.
        reasons: whether sacct names limits.
        cut: share of the time that is cut off at both ends.
        window: whether jobs that ended before a third of the time are not in the log.
        given: whether the analysis gets the true quotas, racks and rule of borrowing.
    """

    quotas: tuple[float, ...] = ()
    borrow: float = 0.0
    reclaim: bool = False
    users: float = 1.0
    order: str = "skip"
    change: float = 1.0
    down: int = 0
    holds: float = 0.0
    sizes: tuple[int, ...] = (8,) * 10
    log: str = "philly"
    reasons: bool = False
    cut: float = 0.0
    window: bool = False
    given: bool = False


HARD = (0.45, 0.3, 0.2)
WORLDS = {
    "hard quotas": Rules(HARD),
    "hard quotas, given": Rules(HARD, given=True),
    "reclaim": Rules((0.4, 0.3, 0.3), borrow=1.0, reclaim=True),
    "borrowing": Rules((0.4, 0.3, 0.2), borrow=0.8),
    "priorities": Rules(order="priority"),
    "quota change": Rules(HARD, change=0.6),
    "quota change, given": Rules(HARD, change=0.6, given=True),
    "nodes down": Rules(HARD, down=20, sizes=(8,) * 8 + (4,) * 4),
    "nodes down, given": Rules(HARD, down=20, sizes=(8,) * 8 + (4,) * 4, given=True),
    "easy": Rules(order="easy"),
    "user limits": Rules(users=0.12),
    "cut": Rules(HARD, cut=0.2),
    "cut, given": Rules(HARD, cut=0.2, given=True),
    "sacct": Rules(log="sacct"),
    "sacct mixed": Rules(log="sacct", sizes=(8,) * 5 + (4,) * 6 + (2,) * 4, order="easy"),
    "sacct limits": Rules(log="sacct", users=0.12, reasons=True),
    "sacct window": Rules(log="sacct", window=True),
    "holds": Rules(log="sacct", holds=0.3, order="priority"),
}


class Cluster:
    """One world, event by event; ``truth`` is filled as time passes."""

    def __init__(self, rules: Rules, seed: int, jobs: int) -> None:
        self.rules, self.draw = rules, random.Random(f"{rules}{seed}")
        self.total = sum(rules.sizes)
        self.free = list(rules.sizes)
        self.up = [True] * len(rules.sizes)
        self.quota = {f"q{k}": max(1, int(share * self.total)) for k, share in enumerate(rules.quotas)}
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.jobs = self._drawn(jobs)
        self.now = 0.0
        self.changes = self._changes()

    def _drawn(self, count: int) -> list[Job]:
        draw, queues = self.draw, len(self.rules.quotas) or 3
        sizes, weights = (1, 2, 4, 8, 16), (40, 15, 20, 18, 7)
        mean = sum(s * w for s, w in zip(sizes, weights, strict=True)) / sum(weights) * 2.2 * 3600
        rate = draw.uniform(0.85, 1.05) * self.total / mean
        at, found = 0.0, []
        largest = max(self.rules.sizes)
        for number in range(count):
            at += draw.expovariate(rate)
            gpus = min(draw.choices(sizes, weights)[0], 2 * largest)
            run = min(max(120.0, draw.lognormvariate(8.3, 1.2)), 2 * DAY)
            held = at + draw.expovariate(1 / 5400) if draw.random() < self.rules.holds else at
            user = f"u{int(draw.paretovariate(1.0)) % 12}"
            name = f"application_1506638472019_{number:05d}"
            queue = f"q{draw.choices(range(queues), self.rules.quotas or None)[0]}"
            found.append(Job(name, at, queue, user, gpus, run, draw.random(), held, at, left=run))
        return found

    def _changes(self) -> list[tuple[float, int]]:
        """Nodes that go down and come up: time, and the node's number, or its complement."""
        last, found = self.jobs[-1].submit, []
        for node in range(len(self.rules.sizes)):
            if self.draw.random() < 5 * self.rules.down / 100:
                begin = self.draw.uniform(0, last)
                end = begin + self.draw.uniform(0.1, 0.5) * last
                found += [(begin, ~node), (end, node)]
        return sorted(found)

    # what holds a job back

    def over(self, job: Job) -> bool:
        """Whether a job would take its queue over its quota, or its user over the limit."""
        used = self.total - sum(self.free)
        held = sum(other.gpus for other in self.running if other.queue == job.queue)
        quota = self.quota.get(job.queue, self.total)
        if held + job.gpus > quota and used + job.gpus > self.rules.borrow * self.total:
            return True
        mine = sum(other.gpus for other in self.running if other.user == job.user)
        return self.rules.users < 1 and mine + job.gpus > max(16, self.rules.users * self.total)

    def place(self, gpus: int) -> dict[int, int] | None:
        """The fullest node that can hold a gang, or the fewest nodes."""
        largest = max(self.rules.sizes)
        able = [k for k in range(len(self.free)) if self.up[k]]
        if gpus <= largest:
            fit = [k for k in able if self.free[k] >= gpus]
            return {min(fit, key=lambda k: (self.free[k], k)): gpus} if fit else None
        whole = [k for k in able if self.free[k] >= largest][: gpus // largest]
        return dict.fromkeys(whole, largest) if len(whole) * largest == gpus else None

    def cause(self, job: Job) -> str:
        """What holds a waiting job back now."""
        if self.now < job.held:
            return "ineligible"
        if self.over(job):
            return "fair_share"
        if sum(free for free, up in zip(self.free, self.up, strict=True) if up) < job.gpus:
            return "capacity"
        return "fragmentation" if self.place(job.gpus) is None else "scheduler"

    # what happens

    def go(self) -> None:
        """Run all jobs to their ends."""
        pending = list(self.jobs)
        half = self.jobs[len(self.jobs) // 2].submit if self.rules.change != 1 else float("inf")
        while pending or self.waiting or self.running:
            ends = [job.start + job.left for job in self.running]
            held = [job.held for job in self.waiting if job.held > self.now]
            next_at = min(
                [*ends, *held, half, *(at for at, _ in self.changes[:1]), *(job.submit for job in pending[:1])]
            )
            for job in self.waiting:
                job.seconds[self.cause(job)] += next_at - self.now
            self.now = next_at
            for job in [job for job in self.running if job.start + job.left <= self.now]:
                self.stop(job, done=True)
            while pending and pending[0].submit <= self.now:
                self.waiting.append(pending.pop(0))
            if half <= self.now:
                half = float("inf")
                self.quota = {queue: max(16, int(self.rules.change * quota)) for queue, quota in self.quota.items()}
            while self.changes and self.changes[0][0] <= self.now:
                self.change(self.changes.pop(0)[1])
            self.schedule()

    def change(self, what: int) -> None:
        """Take a node down, with all that runs there, or up again."""
        if what >= 0:
            self.up[what] = True
            return
        node = ~what
        self.up[node] = False
        for job in [job for job in self.running if node in job.where]:
            self.stop(job, done=False)

    def stop(self, job: Job, *, done: bool) -> None:
        """End a running job's attempt; one that is not done waits again."""
        self.running.remove(job)
        for node, gpus in job.where.items():
            self.free[node] += gpus
        job.attempts.append((job.start, self.now, job.where, dict(job.seconds), job.queued))
        job.left -= self.now - job.start
        job.seconds, job.queued, job.where = defaultdict(float), self.now, {}
        if not done:
            self.waiting.append(job)

    def start(self, job: Job, where: dict[int, int]) -> None:
        """Give a waiting job its GPUs."""
        for node, gpus in where.items():
            self.free[node] -= gpus
        job.start, job.where = self.now, where
        self.waiting.remove(job)
        self.running.append(job)

    def schedule(self) -> None:
        """Start what the rules let start."""
        by = (lambda job: (-job.priority, job.submit)) if self.rules.order == "priority" else (lambda job: job.submit)
        head: float | None = None
        for job in sorted(self.waiting, key=by):
            if self.now < job.held or self.over(job):
                continue
            where = self.place(job.gpus)
            if where is None and self.rules.reclaim and head is None:
                where = self.reclaim(job)
            if head is not None and self.now + job.left > head:
                continue
            if where is not None:
                self.start(job, where)
            elif self.rules.order == "priority":
                break
            elif self.rules.order == "easy" and head is None:
                head = self.reserved(job)

    def reserved(self, job: Job) -> float:
        """When enough GPUs will be free for a job, whatever the nodes."""
        free = sum(self.free)
        for other in sorted(self.running, key=lambda other: other.start + other.left):
            free += other.gpus
            if free >= job.gpus:
                return other.start + other.left
        return float("inf")

    def reclaim(self, job: Job) -> dict[int, int] | None:
        """Stop the latest borrowers until a job within its quota has a place."""
        held = defaultdict(int)
        for other in self.running:
            held[other.queue] += other.gpus
        if held[job.queue] + job.gpus > self.quota[job.queue]:
            return None
        for other in sorted(self.running, key=lambda other: -other.start):
            if held[other.queue] > self.quota[other.queue] and other.queue != job.queue:
                held[other.queue] -= other.gpus
                self.stop(other, done=False)
                if (where := self.place(job.gpus)) is not None:
                    return where
        return self.place(job.gpus)


def stamp(second: float) -> str:
    """A time as Philly's log writes it."""
    return (BEGIN + timedelta(seconds=round(second))).strftime("%Y-%m-%d %H:%M:%S")


def philly(world: Cluster, folder: Path, first: float, last: float) -> None:
    """Write the log as Philly's, of the jobs submitted between two times, as it was at the last of them."""
    jobs = []
    for job in world.jobs:
        attempts = [
            {
                "start_time": stamp(start),
                "end_time": stamp(end) if end <= last else None,
                "detail": [{"ip": f"m{k}", "gpus": [f"gpu{g}" for g in range(n)]} for k, n in where.items()],
            }
            for start, end, where, _, _ in job.attempts
            if start <= last
        ]
        status = "Pass" if attempts and attempts[-1]["end_time"] else "Killed"
        if first <= job.submit <= last:
            jobs.append(
                {"status": status, "vc": job.queue, "jobid": job.name, "attempts": attempts,
                 "submitted_time": stamp(job.submit), "user": job.user}
            )  # fmt: skip
    (folder / "cluster_job_log").write_text(json.dumps(jobs))
    rows = [f"m{k},{gpus}, 24GB" for k, gpus in enumerate(world.rules.sizes)]
    (folder / "cluster_machine_list").write_text("\n".join(["machineId,number of GPUs,single GPU mem", *rows]) + "\n")


def sacct(world: Cluster, folder: Path, first: float) -> None:
    """Write the log as sacct prints it, of the jobs that had not ended before a time."""
    lines = ["JobIDRaw|Partition|User|State|Submit|Eligible|Start|End|Reason|AllocTRES|NNodes|NodeList"]
    for number, job in enumerate(world.jobs):
        [(start, end, where, seconds, _)] = job.attempts
        job.name = str(number + 1)
        if end < first:
            continue
        limited = seconds.get("fair_share", 0.0) > 60
        reason = "QOSMaxGRESPerUser" if limited and world.rules.reasons else "None"
        times = "|".join(stamp(t).replace(" ", "T") for t in (job.submit, job.held, start, end))
        nodes = ",".join(f"n{k}" for k in where)
        row = f"{job.name}|gpu|{job.user}|COMPLETED|{times}|{reason}|billing=1,gres/gpu={job.gpus}|{len(where)}|{nodes}"
        lines.append(row)
    (folder / "sacct.txt").write_text("\n".join(lines) + "\n")


def written(world: Cluster, folder: Path) -> tuple[dict[str, Any], dict[tuple[str, int], dict[str, float]]]:
    """Write a world's log, and return the options of its analysis and the truth of each attempt in it."""
    rules = world.rules
    last_submit = world.jobs[-1].submit
    first, last = rules.cut * last_submit, (1 - rules.cut) * last_submit if rules.cut else float("inf")
    options: dict[str, Any] = {}
    if rules.log == "philly":
        philly(world, folder, first, last)
    else:
        sacct(world, folder, last_submit / 3 if rules.window else 0.0)
    if rules.given:
        options = {
            "quotas": {queue: float(quota) for queue, quota in world.quota.items()},
            "racks": {f"m{k}": "r1" for k in range(len(rules.sizes))},
            "borrow_below": rules.borrow,
        }
    truth = {(job.name, k): attempt[3] for job in world.jobs for k, attempt in enumerate(job.attempts)}
    return options, truth


@dataclass
class Score:
    """Counts of one mechanism: right and all, of what is named, held by rows, in all, and by wait; widths."""

    named: list[bool] = field(default_factory=list)
    rows: list[bool] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    waits: list[bool] = field(default_factory=list)
    width: list[float] = field(default_factory=list)
    row_width: list[float] = field(default_factory=list)
    open_rows: int = 0


def judge(
    score: Score, tables: dict[str, list[dict[str, Any]]], truth: dict[tuple[str, int], dict[str, float]]
) -> None:
    """Compare an analysis with the truth. Of earlier versions, which had no ranges of rows, each is a single value."""
    sums: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in tables["queue_delays"]:
        true = truth[row["job"], row["attempt"]]
        for cause in CAUSES:
            for key in (
                ("delay_by_size", row["size_bucket"]),
                ("delay_by_queue", row["queue"]),
                ("delay_causes", "all"),
            ):
                sums[key][cause] += true.get(cause, 0.0)
        if row["wait_s"] > 60:
            score.waits.append(
                all(_held(true.get(c, 0.0), *_ends(row, c, "s"), 2 + 0.01 * row["wait_s"]) for c in CAUSES)
            )
    total = sum(sums["delay_causes", "all"].values())
    for row in tables["delay_causes"]:
        if row["cause"] in CAUSES and total and row["low_pct"] is not None:
            share = 100 * sums["delay_causes", "all"][row["cause"]] / total
            score.whole.append(_held(share, row["low_pct"], row["high_pct"], 1.0))
            if row["cause"] != "ineligible":
                score.width.append(row["high_pct"] - row["low_pct"])
    for name in ("delay_by_size", "delay_by_queue"):
        for row in tables[name]:
            true = sums.get((name, row["size_bucket" if name == "delay_by_size" else "queue"]))
            if true is not None and row["wait_h"] and row["wait_h"] >= 0.1:
                _judge_row(score, row, true)


def _judge_row(score: Score, row: dict[str, Any], true: dict[str, float]) -> None:
    main = row["main_cause"] if "main_cause" in row else max(CAUSES, key=lambda c: row[f"{c}_h"])
    score.open_rows += main is None
    if main is not None:
        score.named.append(main == max(CAUSES, key=lambda c: true[c]))
    for cause in CAUSES:
        low, high = _ends(row, cause, "h")
        score.rows.append(_held(true[cause] / 3600, low, high, 0.01 * row["wait_h"]))
        if cause != "ineligible":
            score.row_width.append(100 * (high - low) / row["wait_h"])


def _ends(row: dict[str, Any], cause: str, unit: str) -> tuple[float, float]:
    point = row[f"{cause}_{unit}"]
    return row.get(f"{cause}_low_{unit}", point), row.get(f"{cause}_high_{unit}", point)


def _held(true: float, low: float, high: float, slack: float) -> bool:
    return low - slack <= true <= high + slack


def run(name: str, seeds: range, jobs: int) -> Score:
    """Judge a mechanism on worlds of some seeds."""
    score = Score()
    for seed in seeds:
        world = Cluster(WORLDS[name], seed, jobs)
        world.go()
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            options, truth = written(world, folder)
            ingest([folder], folder / "x.duckdb")
            with Store(folder / "x.duckdb") as store:
                found = analyze(store, Options(tables=TABLES, **options))
            tables = {one.name: one.frame.to_dicts() for one in found.tables}
        judge(score, tables, truth)
    return score


def line(name: str, score: Score) -> str:
    """One row of the printed table."""

    def share(of: list[bool]) -> str:
        return f"{100 * sum(of) / len(of):7.1f}" if of else "      -"

    def mean(of: list[float]) -> str:
        return f"{sum(of) / len(of):7.1f}" if of else "      -"

    named = f"{share(score.named)} ({len(score.named):4d}, {score.open_rows:4d} open)"
    cells = [share(score.rows), share(score.whole), share(score.waits), mean(score.width), mean(score.row_width)]
    return f"{name:20s} {named} " + " ".join(cells)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seeds", nargs="?", type=int, default=20)
    parser.add_argument("worlds", nargs="*", default=list(WORLDS))
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--jobs", type=int, default=400)
    given = parser.parse_args()
    print("% right, % held               named right               rows    all    waits   width  of rows")
    every = Score()
    for name in given.worlds:
        begun = time.process_time()
        score = run(name, range(given.first, given.first + given.seeds), given.jobs)
        for part in ("named", "rows", "whole", "waits", "width", "row_width"):
            getattr(every, part).extend(getattr(score, part))
        every.open_rows += score.open_rows
        print(line(name, score), f" {time.process_time() - begun:5.0f} s CPU", flush=True)
    print(line("every world", every))


if __name__ == "__main__":
    sys.exit(main())
