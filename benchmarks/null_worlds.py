"""How often a sentence of a first answer is false where there is nothing to find, and how often an effect is found.

    python benchmarks/null_worlds.py --seeds 1..20

Each null world is a made-up cluster in the format of the Philly trace without any effect: spreading a gang costs
nothing, though users (or, among the jobs of one user, models) that use their GPUs badly are spread more; no node
is bad; waits do not depend on queue or size; and a second period is drawn in the same way. Beside it, equal policies
(jobs in a random order, each policy with an order of its own) replay one list of jobs, on a cluster where they wait and
on one where nothing does. Every sentence of the screen, of the page and of `gpuctl report` is read. Each other world
has one effect, of a known size. Seeds 1 to 40 are for development.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import heapq
import json
import re
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.lessons.lesson_input import open_case
from gpuctl.lessons.slowdowns import measure
from gpuctl.lessons.utilization import read
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.results.tables import result
from gpuctl.replay.run import replay
from gpuctl.reports import report as reports
from gpuctl.reports.ci import write_markdown
from gpuctl.reports.screens import analysis as first_screen
from gpuctl.reports.screens import replay as replay_screen
from gpuctl.reports.screens import report as report_screen
from gpuctl.reports.screens.draw import drawn
from gpuctl.reports.summary import headlines
from gpuctl.reports.terminal.text_graphics import signs_of
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.core.results import Analysis
    from gpuctl.lessons.slowdowns import Slowdowns
    from gpuctl.reports.screens.model import Screen

EPOCH = dt.datetime(2017, 10, 2)
STAMP = "%Y-%m-%d %H:%M:%S"
GPUS = 8
DAY = 86400.0
SIZES, SHARES = np.array([1, 2, 4, 8, 16]), np.array([0.35, 0.15, 0.2, 0.2, 0.1])


@dataclass(frozen=True)
class World:
    """What is planted; as it is, nothing.

    Attributes:
        seed: of everything that is drawn.
        spread: GPU utilization of a gang on more nodes than needed, for that on the fewest.
        unlike: each user runs two models, of which the one that uses its GPUs badly is spread more; without it users
            have one each, and those of bad models are spread more.
        bad: share of the attempts on node m3 that fail besides.
        queue: how many times as long attempts of queue vc2 wait.
        gangs: how many times as long attempts of more than 8 GPUs wait.
        days: in the log.
        again: share of the jobs that are started a second time, at another place.
    """

    seed: int = 1
    spread: float = 1.0
    unlike: bool = False
    bad: float = 0.0
    queue: float = 1.0
    gangs: float = 1.0
    days: float = 7.0
    jobs: int = 1200
    users: int = 30
    machines: int = 30
    again: float = 0.15


def make(folder: Path, world: World) -> None:
    """Write the directory of a world."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng([world.seed, 7])
    attempts = _attempts(world, rng)
    _write_jobs(folder, attempts)
    machines = "".join(f"m{m},{GPUS}, 24GB\n" for m in range(world.machines))
    (folder / "cluster_machine_list").write_text("machineId, number of GPUs, single GPU mem\n" + machines)
    _write_use(folder, attempts, world, rng)


@dataclass
class Attempt:
    """One attempt, with what its job is."""

    job: int
    user: int
    queue: str
    submit: float
    start: float
    end: float
    places: list[tuple[int, list[int]]]
    use: float
    fails: bool
    last: bool


def _attempts(world: World, rng: np.random.Generator) -> list[Attempt]:
    n = world.jobs
    user = rng.choice(world.users, n, p=rng.dirichlet(np.full(world.users, 2.0)))
    gpus = rng.choice(SIZES, n, p=SHARES)
    submit = np.sort(rng.uniform(0, (world.days - 0.5) * DAY, n))
    badly = (rng.random(n) < 0.5) if world.unlike else (np.arange(world.users) % 2 == 0)[user]
    base = rng.uniform(0.85, 1.15, world.users)[user]
    use = base * np.where(badly, 36.0, 56.0) * np.exp(rng.normal(0, 0.08, n))
    fails = rng.beta(1.0, 6.0, world.users)[user]
    wait = _waits(world, rng, submit, user % 5, gpus)
    run = np.exp(rng.normal(np.log(2500.0), 1.0, n))
    free = [list(range(GPUS)) for _ in range(world.machines)]
    starts = [(float(submit[j] + wait[j]), j, 0) for j in range(n)]
    heapq.heapify(starts)
    ends: list[tuple[float, int]] = []
    found: list[Attempt] = []
    while starts:
        now, job, number = heapq.heappop(starts)
        while ends and ends[0][0] <= now:
            for machine, lanes in found[heapq.heappop(ends)[1]].places:
                free[machine] = sorted([*free[machine], *lanes])
        spread = bool(gpus[job] > 1 and rng.random() < (0.7 if badly[job] else 0.2))
        places = _place(free, int(gpus[job]), rng, spread=spread)
        if places is None:
            heapq.heappush(starts, (now + 300.0, job, number))
            continue
        hit = world.bad > 0 and any(m == 3 for m, _ in places) and rng.random() < world.bad
        failed = bool(rng.random() < fails[job] or hit)
        again = bool(rng.random() < world.again) and number == 0
        length = float(np.clip(run[job] * (0.4 if failed else 1.0), 120, DAY))
        here = use[job] * (world.spread if len(places) > -(-int(gpus[job]) // GPUS) else 1.0)
        found.append(
            Attempt(job, int(user[job]), f"vc{user[job] % 5}", float(submit[job]), now, now + length, places,
                    float(here), failed or again, not again)
        )  # fmt: skip
        heapq.heappush(ends, (now + length, len(found) - 1))
        for machine, lanes in places:
            free[machine] = [lane for lane in free[machine] if lane not in lanes]
        if again:
            heapq.heappush(starts, (now + length + 60.0, job, 1))
    return found


def _waits(
    world: World, rng: np.random.Generator, submit: np.ndarray, queue: np.ndarray, gpus: np.ndarray
) -> np.ndarray:
    """Waits of a cluster that is busy for hours at a time: all of it, and each queue by itself."""
    steps = int(world.days * 24) + 1

    def level(wide: float) -> np.ndarray:
        values = [rng.normal(0, wide)]
        for _ in range(steps):
            values.append(0.9 * values[-1] + rng.normal(0, wide * np.sqrt(1 - 0.9**2)))
        return np.array(values)

    hour = (submit / 3600).astype(np.int64)
    own = np.stack([level(0.6) for _ in range(5)])
    wait = np.exp(np.log(900.0) + level(1.0)[hour] + own[queue, hour]) * rng.exponential(1.0, submit.size)
    wait *= np.where(queue == 2, world.queue, 1.0) * np.where(gpus > 8, world.gangs, 1.0)
    return np.asarray(np.minimum(wait, DAY))


def _place(
    free: list[list[int]], gpus: int, rng: np.random.Generator, *, spread: bool
) -> list[tuple[int, list[int]]] | None:
    fewest = -(-gpus // GPUS)
    pieces = [gpus // (2 * fewest)] * (2 * fewest) if spread else [min(gpus, GPUS)] * fewest
    fits = [m for m in range(len(free)) if len(free[m]) >= pieces[0]]
    if len(fits) < len(pieces):
        return None
    chosen = rng.choice(fits, len(pieces), replace=False).tolist()
    return [(m, free[m][:piece]) for m, piece in zip(chosen, pieces, strict=True)]


def _stamp(second: float) -> str:
    return (EPOCH + dt.timedelta(seconds=round(second))).strftime(STAMP)


def _write_jobs(folder: Path, attempts: list[Attempt]) -> None:
    jobs: dict[int, dict[str, Any]] = {}
    for one in sorted(attempts, key=lambda each: (each.job, each.start)):
        job = jobs.setdefault(
            one.job,
            {"status": "Pass", "vc": one.queue, "jobid": f"application_1506638472019_{one.job:05d}", "attempts": [],
             "submitted_time": _stamp(one.submit), "user": f"u{one.user:03d}"},
        )  # fmt: skip
        detail = [{"ip": f"m{m}", "gpus": [f"gpu{g}" for g in lanes]} for m, lanes in one.places]
        job["attempts"].append({"start_time": _stamp(one.start), "end_time": _stamp(one.end), "detail": detail})
        job["status"] = "Failed" if one.fails and one.last else "Pass"
    (folder / "cluster_job_log").write_text(json.dumps(list(jobs.values()), indent=1))


def _write_use(folder: Path, attempts: list[Attempt], world: World, rng: np.random.Generator) -> None:
    minutes = int(world.days * 1440)
    use = np.zeros((minutes, world.machines, GPUS), np.float32)
    for one in attempts:
        a, b = int(np.ceil(one.start / 60)), int(np.ceil(one.end / 60))
        for machine, lanes in one.places:
            use[a:b, machine, lanes] = one.use
    use = np.where(use > 0, np.clip(use + rng.normal(0, 8, use.shape), 0, 100), 0)
    tenths = np.round(use, 1)
    with (folder / "cluster_gpu_util").open("w") as file:
        file.write("time,machineId," + ",".join(f"gpu{i}_util" for i in range(GPUS)) + ",\n")
        for minute in range(minutes):
            when = _stamp(60.0 * minute) + " PDT"
            for machine, cells in enumerate(tenths[minute].tolist()):
                file.write(f"{when},m{machine},{','.join(map(str, cells))},\n")


POLICIES = """
import hashlib
from gpuctl.replay.contract.python_policy import RankPolicy

def number(salt, text):
    return int.from_bytes(hashlib.sha256(f"{salt} {text}".encode()).digest()[:4], "big")

class Order(RankPolicy):
    name = "order-SALT"
    title = "in a random order"
    placement = "consolidate"
    def begin(self):
        pass
    def rank(self, jobs):
        return [number("SALT", text) for text in jobs.ids]
"""


def _jobs_csv(path: Path, seed: int) -> None:
    rng = np.random.default_rng([seed, 9])
    n = 500
    gpus = rng.choice([1, 2, 4, 8], n, p=[0.5, 0.2, 0.2, 0.1])
    work = np.exp(rng.normal(np.log(3600), 1.2, n))
    days = float((work * gpus).sum()) / (0.85 * 32 * DAY)
    submit = np.sort(rng.uniform(0, days * DAY, n))
    rows = [f"j{k:04},{submit[k]:.0f},{work[k]:.0f},{gpus[k]}" for k in range(n)]
    path.write_text("\n".join(["job_id,submit_time,duration,num_gpus", *rows]) + "\n")


def replayed(folder: Path, seed: int, cluster: str, names: list[str]) -> Analysis:
    """A replay of random jobs, against the first of the policies."""
    folder.mkdir(parents=True, exist_ok=True)
    _jobs_csv(folder / "jobs.csv", seed)
    for name in names:
        salt = name.removeprefix("order-")
        if salt != name:
            (folder / f"{name}.py").write_text(POLICIES.replace("SALT", f"{seed}-{salt}"))
    given = [f"{folder / name}.py:Order" if name.startswith("order-") else name for name in names]
    jobs = read_jobs(folder / "jobs.csv")
    nodes = parse_cluster(cluster, jobs)
    outcomes = replay(jobs, nodes, [(name, {}) for name in given], processes=1)
    return result(outcomes, jobs, nodes)


def text_of(screen: Screen) -> str:
    """The text of a screen, its notes left out."""
    return "\n".join(line.plain for line in drawn(screen, 400, signs_of("utf-8")))


def page_of(analysis: Analysis) -> str:
    """The cards of a page."""
    return "\n".join(f"{one.label} {one.value} {one.unit} ({one.detail})" for one in headlines(analysis))


def report_of(folder: Path, analyses: list[Analysis], names: list[str], *, before: Analysis | None = None) -> str:
    """What `gpuctl report` prints of results, and writes for a CI."""
    parts = reports.labelled(analyses, names)
    old = None if before is None else reports.labelled([before], names)
    summary = reports.summarize(parts, baseline=old)
    write_markdown(summary, folder / "report.md")
    return text_of(report_screen.screen(parts, summary)) + "\n" + (folder / "report.md").read_text()


CLAIMS = {
    "spreading costs": r"GPU utilization on \d+ nodes(?!.*not an effect)|of the GPU utilization of like ones",
    "a node is bad": r"^Node \S+ fails more often|^Suspect nodes: (?!none|no )",
    "a queue waits longest": r"Queue \S+ waits longest",
    "large gangs wait longest": r"Large gangs wait longest",
    "a policy is better or worse": r"cuts the mean wait|[Bb]etter than|lengthens the mean wait|^Shortest mean",
    "a period is better or worse": r"\((?:better|worse)\)",
    "a reason costs most": r"costliest reason",
    "nothing is there, with little power": r"none of \d+ fails more often than chance explains",
    "no difference, where nothing waited": r"No policy's mean wait differs",
}
"""Sentences that say more than is true in a null world."""
SPREADING = "lessons: spreading costs"
SHOW = "--show" in sys.argv


def claims(text: str, *, but: tuple[str, ...] = ()) -> Counter[str]:
    """False claims of a text, by what they say; a sentence that is printed twice counts once."""
    found: dict[str, set[str]] = {}
    for kind, pattern in CLAIMS.items():
        lines = [line.strip(" -|") for line in text.splitlines()]
        hits = {re.sub(r"\W+", " ", line) for line in lines if kind not in but and re.search(pattern, line)}
        if hits:
            found[kind] = hits
            if SHOW:
                print(*(f"  {line[:160]}" for line in hits), sep="\n", file=sys.stderr)
    return Counter({kind: len(hits) for kind, hits in found.items()})


@contextlib.contextmanager
def analysed(world: World) -> Iterator[tuple[Path, Analysis, Slowdowns | None]]:
    """A world, analysed, and what the lesson of locality measures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder / "log", world)
        ingest([folder / "log"], folder / "trace.duckdb")
        with Store(folder / "trace.duckdb") as store:
            made = analyze(store, Options())
            case = open_case(store, None, {}, lambda _text: None, processes=1, reasons=False)
            used = read(case)
            found = None if used is None else measure(used)
        yield folder, made, found


EQUAL = ("no difference, where nothing waited",)


def null(seed: int) -> Counter[str]:
    """False claims of one null world."""
    world = World(seed=seed, unlike=seed % 2 == 0)
    with analysed(world) as (folder, first, measured), analysed(replace(world, seed=seed + 10_000)) as (_, second, _):
        texts = [text_of(first_screen.screen(first)), page_of(first), report_of(folder, [first], ["one"])]
        found = claims("\n".join(texts))
        found += claims(
            report_of(folder, [second], ["one"], before=first), but=tuple(k for k in CLAIMS if "period" not in k)
        )
        if measured is not None and measured.all_sizes[0].shown:
            found[SPREADING] += 1
        equal = replayed(folder / "equal", seed, "4x8", [f"order-{k}" for k in range(5)])
        found += claims(_said(folder, equal), but=EQUAL)
        idle = replayed(folder / "idle", seed, "99x8", ["fifo", "las", "order-1"])
        found += claims(_said(folder, idle))
    return found


def _said(folder: Path, analysis: Analysis) -> str:
    return "\n".join(
        [text_of(replay_screen.screen(analysis)), page_of(analysis), report_of(folder, [analysis], ["one"])]
    )


EFFECTS = {
    "spreading costs 15 %": (World(spread=0.85, again=0.3), r"GPU utilization.*\d+ nodes|on more nodes"),
    "a node spoils 30 %": (World(bad=0.3), r"m3 "),
    "a queue waits 6 times as long": (World(queue=6.0), r"Queue vc2 waits"),
    "large gangs wait 6 times as long": (World(gangs=6.0), r"Large gangs wait"),
}


def found_effects(seed: int) -> Counter[str]:
    """Which effects the screen names."""
    found = Counter[str]()
    for name, (world, pattern) in EFFECTS.items():
        with analysed(replace(world, seed=seed)) as (folder, made, _):
            text = text_of(first_screen.screen(made)) + report_of(folder, [made], ["one"])
            lines = [line for line in text.splitlines() if "difference, not an effect" not in line]
            found[name] += any(re.search(pattern, line) for line in lines if re.match(r"\s*(-|Suspect)", line))
    with tempfile.TemporaryDirectory() as name:
        text = text_of(replay_screen.screen(replayed(Path(name), seed, "4x8", ["fifo", "las"])))
        found["las, against fifo, by a policy that preempts"] += bool(re.search("[Bb]etter than fifo|cuts", text))
    return found


def main() -> None:
    """Print Markdown tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", default="1..20")
    parser.add_argument("--only", choices=["null", "effects"])
    parser.add_argument("--show", action="store_true", help="print each false claim")
    given = parser.parse_args()
    first, _, last = given.seeds.partition("..")
    seeds = range(int(first), int(last or first) + 1)
    begin = time.process_time()
    if given.only != "effects":
        every = [null(seed) for seed in seeds]
        whole = sum(every, Counter[str]())
        print(f"| false claim | in {len(seeds)} null worlds | worlds with it |\n|---|---:|---:|")
        for kind in [*CLAIMS, SPREADING]:
            print(f"| {kind} | {whole[kind]} | {sum(bool(one[kind]) for one in every)} |")
        print(f"| all | {whole.total()} | {sum(bool(one.total()) for one in every)} |")
    if given.only != "null":
        hits = sum((found_effects(seed) for seed in seeds), Counter[str]())
        print(f"\n| effect | named, in {len(seeds)} worlds |\n|---|---:|")
        for kind in [*EFFECTS, "las, against fifo, by a policy that preempts"]:
            print(f"| {kind} | {hits[kind]} |")
    print(f"\n{(time.process_time() - begin) / len(seeds):.0f} s of CPU a seed")


if __name__ == "__main__":
    main()
