"""Write a directory in the format of the Philly trace in which the effects that `gpuctl lessons` measures are planted.

    python tools/make_lessons.py FOLDER --seed 1 --slowdown 0.7 --interference 0.9

A made-up cluster runs jobs of users who repeat themselves. A gang on more servers than it needs runs at `slowdown` of
its speed, a job with a neighbour on one of its servers at `interference`; GPU utilization falls in proportion, and run
times grow. FOLDER/truth.json says what was planted. Nothing of gpuctl is used: what it finds is held against this.
"""

from __future__ import annotations

import argparse
import datetime as dt
import heapq
import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

EPOCH = dt.datetime(2017, 10, 2)
STAMP = "%Y-%m-%d %H:%M:%S"
GPUS = 8
SIZES, SHARES = (1, 2, 4, 8, 16), (0.45, 0.2, 0.2, 0.1, 0.05)


@dataclass(frozen=True)
class Planted:
    """What is planted, and how large the trace is.

    Attributes:
        seed: of everything that is drawn.
        slowdown: speed on more servers than needed, for that on the fewest.
        interference: speed beside a neighbour, for that alone.
        jobs: submitted.
        days: over so many days.
        servers: of 8 GPUs each.
        users: who submit them.
        load: GPU-hours of work over those that there are.
        relax_s: seconds that a gang waits for the fewest servers before it takes any.
        again: share of the jobs that are stopped half-way and start once more, wherever there is room then.
        telemetry_days: so many days have a row of GPU utilization for each server and minute.
    """

    seed: int = 1
    slowdown: float = 0.7
    interference: float = 0.9
    jobs: int = 900
    days: float = 3.0
    servers: int = 12
    users: int = 24
    load: float = 0.8
    relax_s: float = 1800.0
    again: float = 0.0
    telemetry_days: float = 3.0


@dataclass
class Job:
    """One job of the made-up cluster."""

    number: int
    user: int
    gpus: int
    submit: float
    work: float
    use: float
    start: float = math.nan
    end: float = math.nan
    places: tuple[tuple[int, tuple[int, ...]], ...] = ()
    left: float = 0.0
    last: float = 0.0
    rate: float = 1.0
    version: int = 0
    queued: float = 0.0
    parts: int = 1
    attempts: list[Attempt] = field(default_factory=list)


@dataclass
class Attempt:
    """One attempt of a job: where it was, and from which second on at which speed."""

    start: float
    places: tuple[tuple[int, tuple[int, ...]], ...]
    speeds: list[tuple[float, float]]
    end: float = math.nan


def draw(planted: Planted, rng: np.random.Generator) -> list[Job]:
    """The jobs, in order of submission."""
    n = planted.jobs
    user = rng.integers(planted.users, size=n)
    base = rng.uniform(35, 65, planted.users)
    favourite = rng.choice(SIZES, planted.users, p=SHARES)
    gpus = np.where(rng.random(n) < 0.5, favourite[user], rng.choice(SIZES, n, p=SHARES))
    work = np.exp(rng.normal(math.log(3600), 1.1, n))
    work *= planted.load * planted.days * 86400 * planted.servers * GPUS / float((work * gpus).sum())
    submit = np.sort(rng.uniform(0, planted.days * 86400, n))
    use = np.clip(base[user] * np.exp(rng.normal(0, 0.2, n)), 10, 80)
    columns = (user, gpus, submit, np.clip(work, 120, 86400), use)
    jobs = [Job(number, *row) for number, row in enumerate(zip(*(c.tolist() for c in columns), strict=True))]
    for job in jobs:
        job.queued = job.submit
        job.parts = 2 if planted.again and rng.random() < planted.again else 1
    return jobs


class Site:
    """The made-up cluster: first in, first out, but jobs behind one that does not fit may start."""

    def __init__(self, planted: Planted) -> None:
        self.planted = planted
        self.free: list[list[int]] = [list(range(GPUS)) for _ in range(planted.servers)]
        self.on: list[set[int]] = [set() for _ in range(planted.servers)]
        self.spans: list[list[tuple[float, float, bool]]] = []

    def place(self, gpus: int, *, anywhere: bool) -> list[tuple[int, int]] | None:
        """Servers and GPUs of each: the tightest one, whole ones for large gangs; else the freest ones."""
        order = sorted(range(len(self.free)), key=lambda s: (len(self.free[s]), s))
        fits = [s for s in order if len(self.free[s]) >= gpus]
        if gpus <= GPUS and fits:
            return [(fits[0], gpus)]
        whole = [s for s in order if len(self.free[s]) == GPUS]
        if gpus > GPUS and len(whole) * GPUS >= gpus:
            return [(s, GPUS) for s in whole[: gpus // GPUS]]
        if not anywhere or sum(map(len, self.free)) < gpus:
            return None
        chosen = []
        for s in reversed(order):
            some = min(gpus, len(self.free[s]))
            if some:
                chosen.append((s, some))
                gpus -= some
        return chosen

    def speed(self, job: Job) -> float:
        """Of a running job, where and beside whom it is now."""
        spread = len(job.places) > -(-job.gpus // GPUS)
        shared = any(len(self.on[s]) > 1 for s, _ in job.places)
        return (self.planted.slowdown if spread else 1.0) * (self.planted.interference if shared else 1.0)


def run(jobs: list[Job], planted: Planted) -> None:
    """Let the jobs run, which gives them their attempts."""
    site = Site(planted)
    events = [(job.submit, 0, job.number, 0) for job in jobs]
    heapq.heapify(events)
    waiting: list[Job] = []

    def change(numbers: set[int], now: float) -> None:
        for number in numbers:
            job = jobs[number]
            rate = site.speed(job)
            speeds = job.attempts[-1].speeds
            if speeds and rate == job.rate:
                continue
            job.left -= (now - job.last) * job.rate
            job.last, job.rate, job.version = now, rate, job.version + 1
            speeds.append((now, rate))
            heapq.heappush(events, (now + max(job.left, 0.0) / rate, 1, number, job.version))

    while events:
        now, kind, number, version = heapq.heappop(events)
        job = jobs[number]
        if kind == 0:
            waiting.append(job)
            heapq.heappush(events, (now + planted.relax_s, 2, number, 0))
        elif kind == 1:
            if version != job.version:
                continue
            job.end = job.attempts[-1].end = now
            job.version += 1
            for server, indices in job.places:
                site.free[server] = sorted([*site.free[server], *indices])
                site.on[server].discard(number)
            change(set().union(*(site.on[s] for s, _ in job.places)), now)
            if len(job.attempts) < job.parts:
                job.queued = now
                waiting.append(job)
                heapq.heappush(events, (now + planted.relax_s, 2, number, 0))
        remaining, failed = [], set()
        for one in waiting:
            anywhere = now - one.queued >= planted.relax_s
            places = None if (one.gpus, anywhere) in failed else site.place(one.gpus, anywhere=anywhere)
            if places is None:
                failed.add((one.gpus, anywhere))
                remaining.append(one)
                continue
            one.places = tuple((s, tuple(site.free[s][:k])) for s, k in places)
            for s, k in places:
                site.free[s] = site.free[s][k:]
                site.on[s].add(one.number)
            one.start = one.last = now
            one.left = one.work / one.parts
            one.attempts.append(Attempt(now, one.places, []))
            change(set().union(*(site.on[s] for s, _ in one.places)), now)
        waiting = remaining


def stamp(second: float) -> str:
    """A time as the job log has it."""
    return (EPOCH + dt.timedelta(seconds=round(second))).strftime(STAMP)


def write_jobs(folder: Path, jobs: list[Job], cut: float) -> None:
    """The job log, as it was when `cut` came, and the list of machines."""
    log = []
    for job in jobs:
        attempts = []
        for one in job.attempts:
            if one.start < cut:
                detail = [{"ip": f"m{s}", "gpus": [f"gpu{g}" for g in gpus]} for s, gpus in one.places]
                end = stamp(one.end) if one.end <= cut else "None"
                attempts.append({"start_time": stamp(one.start), "end_time": end, "detail": detail})
        log.append(
            {
                "status": "Pass", "vc": f"vc{job.user % 3}", "jobid": f"application_1506638472019_{job.number:05d}",
                "attempts": attempts, "submitted_time": stamp(job.submit), "user": f"u{job.user:03d}",
            }
        )  # fmt: skip
    (folder / "cluster_job_log").write_text(json.dumps(log, indent=1))


def write_use(folder: Path, jobs: list[Job], planted: Planted) -> None:
    """GPU utilization of every server and minute."""
    minutes = int(planted.telemetry_days * 1440)
    rng = np.random.default_rng([planted.seed, 2])
    use = np.zeros((planted.servers, GPUS, minutes))
    for job, one in [(each, one) for each in jobs for one in each.attempts]:
        ends = [*(t for t, _ in one.speeds[1:]), one.end]
        for (begin, rate), end in zip(one.speeds, ends, strict=True):
            a, b = math.ceil(begin / 60), min(math.ceil(end / 60), minutes)
            for server, indices in one.places:
                for gpu in indices:
                    use[server, gpu, a:b] = job.use * rate
    busy = use > 0
    use = np.clip(np.where(busy, use + rng.normal(0, 8, use.shape), 0.0), 0, 100)
    lines = ["time,machineId," + ",".join(f"gpu{i}_util" for i in range(GPUS)) + ",\n"]
    for minute in range(minutes):
        when = (EPOCH + dt.timedelta(minutes=minute)).strftime(STAMP) + " PDT"
        for server in range(planted.servers):
            cells = ",".join(f"{value:.1f}" for value in use[server, :, minute].tolist())
            lines.append(f"{when},m{server},{cells},\n")
    (folder / "cluster_gpu_util").write_text("".join(lines))


def make(folder: Path, planted: Planted) -> None:
    """Write the directory."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs = draw(planted, np.random.default_rng([planted.seed, 1]))
    run(jobs, planted)
    write_jobs(folder, jobs, planted.days * 86400)
    machines = "".join(f"m{s},{GPUS}, 24GB\n" for s in range(planted.servers))
    (folder / "cluster_machine_list").write_text("machineId, number of GPUs, single GPU mem\n" + machines)
    if planted.telemetry_days:
        write_use(folder, jobs, planted)
    (folder / "truth.json").write_text(json.dumps(asdict(planted), indent=1) + "\n")


def main() -> None:
    """See the top of this file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    for name, value in asdict(Planted()).items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(value), default=value)
    given = vars(parser.parse_args())
    make(given.pop("folder"), Planted(**given))


if __name__ == "__main__":
    main()
