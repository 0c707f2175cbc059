"""Two dozen tasks as a new user does them.

The command is one of the examples of a ``--help``, found by the words of the question, and its options stand in that
page. Its answer is held against the truth of a made-up cluster (`tests.synthetic_site`), a slow simulator, or a sum by
hand.
"""

from __future__ import annotations

import csv
import json
import math
import re
import statistics
from collections import defaultdict
from datetime import timedelta
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tests.new_user import Cli, User, by, near, someone
from tests.replay_reference import Job, by_rank, by_share, without_preemption
from tests.synthetic_site import BAD_MACHINE, BEGIN, OUTPUT, WASTER, Made, minutes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY_S, MONTH_ENDS_S = 86400.0, 86400.0


@pytest.fixture(scope="module")
def user(gpuctl: Cli, tmp_path_factory: pytest.TempPathFactory) -> User:
    return someone(gpuctl, tmp_path_factory.mktemp("site"))


# ---- what happened


def test_who_wastes_most(user: User) -> None:
    lost: dict[str, float] = defaultdict(float)
    for job in user.made.jobs:
        lost[job.user] += 0 if job.state == "completed" else job.gpu_hours
    rows = user.asked("analyze", "wastes the most")["users"]
    assert rows[0]["user"] == WASTER == max(lost, key=lambda one: lost[one])
    assert {row["user"]: row["lost_gpu_hours"] for row in rows} == {one: near(hours) for one, hours in lost.items()}
    killed = sum(job.gpu_hours for job in user.made.jobs if job.user == WASTER and job.state == "killed")
    assert rows[0]["killed_h"] == near(killed)


def test_which_jobs_are_idle(user: User) -> None:
    idle = {job.name: job for job in user.made.jobs if job.util_pct < 5 and minutes(job)}
    rows = user.asked("analyze", "idle")["idle_jobs"]
    assert [row["job"] for row in rows] == sorted(idle, key=lambda name: -idle[name].gpu_hours)
    for row in rows:
        job = idle[row["job"]]
        told = (row["user"], row["gpu_minutes"], row["gpu_hours"], row["util_mean_pct"])
        assert told == (job.user, job.gpus * len(minutes(job)), near(job.gpu_hours), near(job.util_pct))
    half = user.asked("analyze", "idle", more=["--idle-below", "2.5"])["idle_jobs"]
    assert len(half) == sum(job.util_pct < 2.5 for job in idle.values())


def test_utilization_by_user_over_time(user: User) -> None:
    hours: dict[tuple[str, str], float] = defaultdict(float)
    samples: dict[tuple[str, str], list[tuple[int, float]]] = defaultdict(list)
    for job in user.made.jobs:
        for day in range(4):
            begin, end = (after * DAY_S for after in (day, day + 1))
            key = (f"{BEGIN + timedelta(days=day):%Y-%m-%d}", job.user)
            if overlap := max(0.0, min(job.end, end) - max(job.start, begin)):
                hours[key] += job.gpus * overlap / 3600
            if count := sum(begin <= 60 * minute < end for minute in minutes(job)):
                samples[key].append((count * job.gpus, job.util_pct))
    rows = user.asked("analyze", "utilization of each user")["activity_by_user"]
    held = {(row["period"], row["user"]): row["gpu_hours"] for row in rows if row["gpu_hours"]}
    assert held == {k: near(v) for k, v in hours.items()}
    mean = {k: sum(n * u for n, u in of) / sum(n for n, _ in of) for k, of in samples.items()}
    found = {(r["period"], r["user"]): r["util_mean_pct"] for r in rows if r["util_mean_pct"] is not None}
    assert found == {k: near(v, within=1e-7) for k, v in mean.items()}
    assert len({day for day, _ in mean}) >= 3


def test_fragmentation_over_time(user: User) -> None:
    made, given = user.made, ["--racks", user.folder / "racks.csv"]
    rows = user.asked("analyze", "fragmentation", more=given)["fragmentation"]
    moments = sorted({t for job in made.jobs for t in (job.queued, job.start, job.end)})
    sums: dict[int, list[float]] = defaultdict(lambda: [0.0] * 4)
    for begin, end in pairwise(moments):
        free = dict(made.gpus)
        for job in made.jobs:
            if job.start <= begin < job.end:
                for name, indices in job.held.items():
                    free[name] -= len(indices)
        waiting = [job.gpus for job in made.jobs if job.queued <= begin < job.start]
        levels = (sum(free.values()), largest(made, free), stranded(made, free, waiting), sum(waiting))
        for hour in range(int(begin // 3600), int(-(-end // 3600))):
            within = min(end, 3600 * hour + 3600) - max(begin, 3600 * hour)
            sums[hour] = [total + level * within for total, level in zip(sums[hour], levels, strict=True)]
    whole = range(int(-(-moments[0] // 3600)), int(moments[-1] // 3600))
    told = [[row[name] for name in ("free_gpus", "largest_gang", "stranded_gpus", "waiting_gpus")] for row in rows]
    told = told[int(moments[0] % 3600 > 0) :][: len(whole)]
    assert len(whole) > 40
    assert told == [[near(total / 3600) for total in sums[hour]] for hour in whole]
    assert max(row[2] for row in told) > 5


def ways(made: Made, free: dict[str, int], gpus: int) -> Iterator[tuple[set[str], int]]:
    """By rack: the nodes that a gang could use, where it fits on the fewest nodes of 8 that can hold it."""
    fewest = -(-gpus // 8)
    for rack in set(made.rack.values()):
        members = sorted((name for name in free if made.rack[name] == rack), key=lambda name: -free[name])
        best = members[: fewest - 1]
        room = sum(free[name] for name in best)
        able = {name for name in members[fewest - 1 :] if room + free[name] >= gpus}
        if len(members) >= fewest and able:
            yield able | {n for n in members if _swaps(members, free, fewest, n, gpus)}, gpus


def _swaps(members: list[str], free: dict[str, int], fewest: int, name: str, gpus: int) -> bool:
    """Whether some set of so many nodes with this one among them holds the gang: the best others beside it."""
    others = [free[other] for other in members if other != name][: fewest - 1]
    return len(others) == fewest - 1 and free[name] + sum(others) >= gpus


def largest(made: Made, free: dict[str, int]) -> int:
    """The largest gang that would fit."""
    return max((gpus for gpus in range(1, 33) if any(True for _ in ways(made, free, gpus))), default=0)


def stranded(made: Made, free: dict[str, int], waiting: list[int]) -> int:
    """Free GPUs on nodes that none of the waiting gangs could use."""
    if not waiting:
        return 0
    used = {name for gpus in set(waiting) for names, _ in ways(made, free, gpus) for name in names}
    return sum(count for name, count in free.items() if name not in used)


def test_what_queues_wait_for(user: User) -> None:
    rows = by(user.asked("analyze", "queue", "wait for", more=site(user))["delay_by_queue"], "queue")
    causes = ("fair_share_h", "capacity_h", "fragmentation_h")
    assert set(rows) == {*user.made.quotas, "all"}
    for queue, row in rows.items():
        jobs = [job for job in user.made.jobs if queue in (job.queue, "all")]
        for k, cause in enumerate(causes):
            # a minute of slack: a queue may have next to nothing of a cause
            assert row[cause] == pytest.approx(sum(j.causes_s[k] for j in jobs) / 3600, rel=0.01, abs=1 / 60)
    assert all(rows["all"][cause] > 1 for cause in causes)


def site(user: User) -> list[object]:
    """What the made-up scheduler goes by."""
    return ["--quotas", user.folder / "quotas.csv", "--racks", user.folder / "racks.csv", "--borrow-below", "0.8"]


def test_which_nodes_are_bad(user: User) -> None:
    rows = user.asked("analyze", "nodes", "bad")["failure_nodes"]
    assert [row["machine"] for row in rows if row["bad"] == "yes"] == [BAD_MACHINE]
    failed = [job for job in user.made.jobs if job.state == "failed" and BAD_MACHINE in job.held]
    assert (rows[0]["all_trials"], rows[0]["top_reason"]) == (len(failed), "GPU ECC error")


def test_which_failures_burn_most(user: User) -> None:
    burnt: dict[str, float] = defaultdict(float)
    for job in user.made.jobs:
        if job.reason:
            burnt[job.reason] += 60 * job.gpu_hours
    rows = by(user.asked("analyze", "failures cost")["failure_reasons"], "reason")
    assert {reason: row["gpu_minutes"] for reason, row in rows.items() if reason != "all"} == {
        reason: near(gpu_minutes) for reason, gpu_minutes in burnt.items()
    }
    assert set(burnt) == set(OUTPUT)


def held_h(job: Any, begin: float, end: float) -> float:
    """GPU-hours that a job held within a time."""
    return job.gpus * max(0.0, min(job.end, end) - max(job.start, begin)) / 3600


def test_some_jobs_of_a_queue_and_a_time(user: User) -> None:
    large = [j for j in user.made.jobs if j.queue == "vision" and j.gpus >= 8]
    jobs = [j for j in large if 3600 <= j.queued < MONTH_ENDS_S]
    instead = {"gpu": "vision", "2026-11-01": "2017-09-30T01:00", "2026-12-01": "2017-10-01"}
    shown = ["--table", "overview", "--table", "users"]
    tables = user.asked("analyze", "large jobs", more=shown, instead=instead)
    [row] = tables["overview"]
    assert (row["jobs"], row["gpu_hours"]) == (len(jobs), near(sum(held_h(job, 3600, MONTH_ENDS_S) for job in large)))
    assert {r["user"]: r["jobs"] for r in tables["users"] if r["jobs"]} == {
        name: sum(job.user == name for job in jobs) for name in {job.user for job in jobs}
    }
    only = user.asked("analyze", "large jobs", more=["--user", "ann,bob", *shown], instead=instead)
    assert only["overview"][0]["jobs"] == sum(job.user in {"ann", "bob"} for job in jobs)


def test_csv_for_pandas(user: User) -> None:
    user.run("analyze", "CSV")
    with (user.folder / "tables" / "job_times.csv").open(newline="") as file:
        rows = by(list(csv.DictReader(file)), "job")
    assert {name: float(row["queueing_delay_min"]) for name, row in rows.items()} == {
        job.name: near((job.start - job.queued) / 60) for job in user.made.jobs
    }
    assert len(list((user.folder / "tables").glob("*.csv"))) > 40


@pytest.mark.parametrize("cause", range(3))
def test_why_a_job_waited(user: User, cause: int) -> None:
    job = max(user.made.jobs, key=lambda one: one.causes_s[cause])
    options = [*site(user), "--json"]
    told = json.loads(user.run("explain", "wait", more=options, instead={"4047": job.name[-5:]}).stdout)
    [attempt] = told["attempts"]
    wait = attempt["wait"]
    assert (told["job"], wait["seconds"]) == (job.name, job.start - job.queued)
    names = ("fair_share", "capacity", "fragmentation")
    true = {name: pytest.approx(s, abs=10) for name, s in zip(names, job.causes_s[:3], strict=True) if s > 10}
    assert {part["cause"]: part["seconds"] for part in wait["parts"] if part["seconds"] > 10} == true
    assert all(part["low_s"] <= part["seconds"] <= part["high_s"] for part in wait["parts"])
    assert names[cause] in true
    assert {place["machine"]: place["gpu_indices"] for place in attempt["places"]} == job.held


def test_why_a_program_failed(user: User) -> None:
    job = next(job for job in user.made.jobs if job.reason == "GPU out of memory")
    path = user.folder / "logs" / "output" / job.name / "0" / "stderr"
    told = json.loads(user.run("classify", "fail", more=["--json"], instead={"slurm-4047.out": path}).stdout)
    assert "gpu_out_of_memory" in json.dumps(told)
    assert OUTPUT[job.reason] in json.dumps(told)


def test_two_months(user: User) -> None:
    months = ((0.0, MONTH_ENDS_S), (MONTH_ENDS_S, math.inf))
    rows = user.asked("report", "compare", instead={"2026-10": "2017-09", "2026-11": "2017-10"})["changes"]
    found = by([row for row in rows if row["queue"] is row["user"] is row["account"] is None], "metric")
    for at, (begin, end) in zip(("before", "after"), months, strict=True):
        waits = [job.start - job.queued for job in user.made.jobs if begin <= job.queued < end]
        held = {job.name: held_h(job, begin, end) for job in user.made.jobs}
        lost = sum(held[job.name] for job in user.made.jobs if job.state != "completed")
        assert found["queueing.mean_wait_h"][at] == near(statistics.mean(waits) / 3600)
        assert found["failures.lost_gpu_hours_pct"][at] == near(100 * lost / sum(held.values()))


def test_a_ci_fails_above_a_limit(user: User) -> None:
    waits = sorted(job.start - job.queued for job in user.made.jobs)
    p95_h = statistics.quantiles(waits, n=20, method="inclusive")[-1] / 3600
    above, below = (f"queueing.p95_wait_h > {p95_h * share:.6f}" for share in (1.001, 0.999))
    limits = {"queueing.p95_wait_h > 4": below}
    user.run("report", "CI", more=["--fail-if", above], instead=limits, code=1)
    cases = re.findall(r"<testcase.*?(?:/>|</testcase>)", (user.folder / "checks.xml").read_text("utf-8"), re.DOTALL)
    assert [(f"{p95_h * 0.999:.6f}" in case, "<failure" in case) for case in cases] == [(True, True), (False, False)]


def test_a_page_without_names(user: User) -> None:
    user.run("report", "without names")
    page = (user.folder / "public.html").read_text("utf-8")
    made = user.made
    names = {*(job.name for job in made.jobs), *(job.user for job in made.jobs)}
    assert all(re.fullmatch(r"\w+", name) for name in names)
    assert names & set(re.findall(r"\w+", page)) == set()
    assert f"{sum(job.gpu_hours for job in made.jobs):,.0f}" in page


def test_the_ten_longest_waits(user: User) -> None:
    rows = json.loads(user.run("query", "longest", more=["--json"]).stdout)
    true = sorted((job.start - job.queued for job in user.made.jobs), reverse=True)[:10]
    assert [row["wait_s"] for row in rows] == true
    named = {job.name: job for job in user.made.jobs}
    assert [(row["user"], row["wait_s"]) for row in rows] == [
        (named[row["job"]].user, named[row["job"]].start - named[row["job"]].queued) for row in rows
    ]


def test_sql_of_ones_own(user: User) -> None:
    sql = "SELECT queue, sum(a.gpus * run_s) / 3600 AS gpu_hours FROM attempts a JOIN jobs USING (job) GROUP BY queue"
    example = 'SELECT job, "user", wait_s FROM jobs ORDER BY wait_s DESC LIMIT 10'
    rows = json.loads(user.run("query", "longest", more=["--json"], instead={example: sql}).stdout)
    assert {row["queue"]: row["gpu_hours"] for row in rows} == {
        queue: near(sum(job.gpu_hours for job in user.made.jobs if job.queue == queue)) for queue in user.made.quotas
    }


def test_a_table_as_parquet(user: User) -> None:
    user.run("query", "Parquet")
    frame = pl.read_parquet(user.folder / "attempts.parquet")
    assert dict(zip(frame["job"], frame["run_s"], strict=True)) == {j.name: j.end - j.start for j in user.made.jobs}


# ---- what if


def reference(user: User, extra: int, *, fair: bool = False) -> dict[str, float]:
    """Each job's wait under a slow simulator that is right by inspection, on this many nodes more."""
    ordered = sorted(user.made.jobs, key=lambda one: (one.queued, one.name))
    queues = list(user.made.quotas)
    jobs = [Job(int(j.queued), int(j.end - j.start), j.gpus, queues.index(j.queue)) for j in ordered]
    if fair:
        pick = by_share([job.queue for job in jobs], [1.0] * len(queues))
    else:
        pick = by_rank([job.submit for job in jobs], skip=True)
    ran, _ = without_preemption(jobs, [*user.made.gpus.values(), *[8] * extra], pick)
    return {one.name: times[0][0] - job.submit for one, job, times in zip(ordered, jobs, ran, strict=True)}


def test_other_schedulers(user: User) -> None:
    tables = user.asked("replay", "other schedulers", more=["--no-locality"])
    rows = by(tables["replay_summary"], "policy")
    true = {"fifo-skip": reference(user, 0), "fair": reference(user, 0, fair=True)}
    for policy, waits in true.items():
        assert rows[policy]["wait_mean_s"] == near(statistics.mean(waits.values())), policy
    compared = {(r["policy"], r["measure"], r["size_bucket"]): r for r in tables["replay_vs_baseline"]}
    row = compared["fair", "wait", "all"]
    change = statistics.mean(true["fair"].values()) - statistics.mean(true["fifo-skip"].values())
    assert row["diff_mean_s"] == near(change)
    assert row["diff_low_s"] is None or row["diff_low_s"] <= change <= row["diff_high_s"]
    assert rows["srtf"]["jct_mean_s"] < rows["fifo-skip"]["jct_mean_s"]


def test_two_more_nodes(user: User) -> None:
    rows = by(user.asked("replay", "more nodes", more=["--no-locality"])["experiments"], "add_nodes")
    true = {extra: statistics.mean(reference(user, extra).values()) for extra in (0, 2)}
    assert {int(extra): row["wait_mean_s"] for extra, row in rows.items()} == {k: near(v) for k, v in true.items()}
    assert true[2] < true[0]


def test_another_bf_window(user: User) -> None:
    """Worked out by hand, one node of 4 GPUs: only a window that holds the end of A keeps C from delaying B.

    A (3 GPUs, 2,000 min) runs. B (4 GPUs) can start when A ends, which is beyond a window of 1,440 min and within one
    of 4,320. C (1 GPU, 3,000 min) would fit beside A.
    """
    limits = {"A": (0, 2000, 3), "B": (60, 60, 4), "C": (120, 3000, 1)}
    rows = [f"{job},{at},{60 * minutes},{gpus},{60 * minutes}" for job, (at, minutes, gpus) in limits.items()]
    header = "job_id,submit_time,duration,num_gpus,requested_time\n"
    (user.folder / "three.csv").write_text(header + "\n".join(rows) + "\n")
    (user.folder / "slurm.conf").write_text(
        "ClusterName=one\nSchedulerType=sched/backfill\nSchedulerParameters=bf_window=1440\nPriorityType=priority/basic\n"
        "GresTypes=gpu\nSelectType=select/cons_tres\n"
        "NodeName=n1 CPUs=8 RealMemory=64000 Gres=gpu:4\nPartitionName=gpu Nodes=n1 Default=YES MaxTime=INFINITE\n"
    )
    found = user.asked("replay", "bf_window", instead={"site.duckdb": "three.csv"})
    waits = {(row["policy"], row["job"]): row["wait_s"] / 60 for row in found["replay_jobs"]}
    slack = 3  # minutes: passes are half a minute apart, and a requeued plan looks again after one
    assert waits == {
        ("slurm", "A"): pytest.approx(0, abs=slack),
        ("slurm", "C"): pytest.approx(0, abs=slack),
        ("slurm", "B"): pytest.approx(3001, abs=slack),
        ("far", "A"): pytest.approx(0, abs=slack),
        ("far", "B"): pytest.approx(1999, abs=slack),
        ("far", "C"): pytest.approx(2058, abs=slack),
    }


"""Student's t, 97.5 %, for the mean of two (1 degree of freedom; any table)."""


def test_a_sweep_with_intervals_and_plots(user: User) -> None:
    values = {"0.8:1.2:0.1": "0.8:1.2:0.4", "1..10": "1..2"}
    tables = user.asked("replay", "sweep", more=["--jobs", "1", "--no-locality"], instead=values)
    rows, means = tables["experiments"], tables["experiments_summary"]
    assert len(rows) == 2 * 2 * 2
    for mean in means:
        of = [r["wait_mean_s"] for r in rows if (r["policy"], r["scale_load"]) == (mean["policy"], mean["scale_load"])]
        assert mean["wait_mean_s"] == near(statistics.mean(of), within=1e-5)
        # three days of jobs are too few for an interval, and the page says so
        assert mean["wait_mean_s_low"] is mean["wait_mean_s_high"] is None
    by_load = [m["wait_mean_s"] for m in means if m["policy"] == "fifo-skip"]
    assert by_load == sorted(by_load)
    page = (user.folder / "sweep.html").read_text("utf-8")
    assert "<svg" in page
    assert "scale_load" in page
    assert "too short to tell" in " ".join(page.split())


def test_seeds_in_parallel(user: User) -> None:
    few = {"1..10": "1..4", "4": "2"}
    found = user.asked("replay", "Ten seeds", more=["--no-locality"], instead=few)["experiments"]
    rows = pl.read_parquet(user.folder / "runs" / "experiments.parquet")
    assert sorted(zip(rows["policy"], rows["seed"], strict=True)) == [
        (policy, seed) for policy in ("fair", "fifo-skip") for seed in range(1, 5)
    ]
    assert rows["wait_mean_s"].to_list() == [row["wait_mean_s"] for row in found]
    assert rows["wait_mean_s"].n_unique() == 8


def test_how_far_a_replay_is_from_what_happened(user: User) -> None:
    given = ["--quotas", user.folder / "quotas.csv", "--racks", user.folder / "racks.csv"]
    tables = user.asked("replay", "recorded history", more=given)
    true = statistics.mean(job.start - job.queued for job in user.made.jobs)
    [row] = [r for r in tables["replay_vs_recorded"] if (r["measure"], r["size_bucket"]) == ("wait", "all")]
    assert row["baseline_mean_s"] == near(true)


# ---- what will happen


def test_how_long_my_job_will_run(user: User) -> None:
    """Two users whose jobs take ten minutes and two hours, each within 5 %."""
    lines = ["job_id,submit_time,duration,num_gpus,user,vc"]
    for k in range(400):
        owner, base = (("quick", 600), ("slow", 7200))[k % 2]
        lines.append(f"{k},{300 * k},{base * (0.95 + 0.1 * ((k * 37) % 101) / 100):.0f},{1 + k % 4},{owner},q")
    (user.folder / "past.csv").write_text("\n".join(lines) + "\n")
    scores = user.asked("train runtime", "predicted", instead={"site.duckdb": "past.csv"})
    assert scores
    (user.folder / "mine.csv").write_text("job_id,user,queue,gpus\na,quick,q,2\nb,slow,q,1\n")
    rows = by(user.asked("predict runtime", "my jobs")["predictions"], "job")
    assert {name: row["run_time_s"] for name, row in rows.items()} == {
        "a": pytest.approx(600, rel=0.05),
        "b": pytest.approx(7200, rel=0.05),
    }
    assert all(row["lower_s"] <= row["run_time_s"] <= row["upper_s"] for row in rows.values())


def test_how_long_my_jobs_will_wait(user: User) -> None:
    """Gangs of 8 GPUs for a day wait two hours here, single GPUs for an hour ten minutes, each within 5 %."""
    chance = Random(5)
    came, jobs = 1_760_000_000, []
    for _ in range(600):
        came += round(chance.expovariate(1 / 900))
        gpus, wait, limit = chance.choice(((1, 600, "01:00:00"), (8, 7200, "1-00:00:00")))
        jobs.append((came, came + round(wait * chance.uniform(0.95, 1.05)), gpus, limit))
    lines = ["JobIDRaw|User|Partition|State|Submit|Eligible|Start|End|Timelimit|AllocTRES|NNodes"]
    for k, (submitted, start, gpus, limit) in enumerate(jobs):
        # as it was known when the last one came
        end = start + 1800
        state = "PENDING" if start > came else "RUNNING" if end > came else "COMPLETED"
        told = ("Unknown" if start > came else start, "Unknown" if end > came else end)
        times = f"{submitted}|{submitted}|{told[0]}|{told[1]}"
        lines.append(f"{k + 1}|u{k % 3}|gpu|{state}|{times}|{limit}|gres/gpu={gpus}|1")
    (user.folder / "sacct.txt").write_text("\n".join(lines) + "\n")
    log = {"site.duckdb": "sacct.txt"}
    assert user.asked("train wait", "well can waits be forecast", instead=log)["wait_scores"]
    [one] = user.asked("predict wait", "8 GPUs and a day", instead=log)["predictions"]
    assert one["p50_s"] == pytest.approx(7200, rel=0.06)
    (user.folder / "mine.csv").write_text("job_id,user,queue,gpus,time_limit_s\na,u0,gpu,1,3600\nb,u1,gpu,8,86400\n")
    rows = by(user.asked("predict wait", "each of my jobs", instead=log)["predictions"], "job")
    assert {name: row["p50_s"] for name, row in rows.items()} == {
        "a": pytest.approx(600, rel=0.06),
        "b": pytest.approx(7200, rel=0.06),
    }
    assert all(row["p10_s"] <= row["p50_s"] <= row["p80_s"] <= row["p90_s"] for row in rows.values())


def test_when_to_submit_the_successor_of_a_job(user: User, sample_data: Path) -> None:
    tables = user.asked("chain evaluate", "successor", instead={"site.duckdb": sample_data / "chain" / "sacct.txt.gz"})
    rows = by([row for row in tables["chain"] if row["level"] == "all"], "policy")
    assert list(rows) == ["reactive", "avg", "plan"]
    assert rows["plan"]["cost_h"] < rows["reactive"]["cost_h"]


def test_effect_of_a_dependency_on_a_chain(user: User, sample_data: Path) -> None:
    """Where a job that depends gains age while it waits, its predecessor's end finds it first in the queue."""
    log = {"site.duckdb": sample_data / "chain" / "sacct.txt.gz"}
    tables = user.asked("chain evaluate", "dependency", "five jobs", instead=log)
    rows = by([row for row in tables["chain"] if row["level"] == "all"], "policy")
    assert rows["dependency"]["interruption_h"] < rows["reactive"]["interruption_h"]
    assert rows["dependency"]["overlap_h"] == 0


def test_which_rule_keeps_most_deadlines(user: User) -> None:
    rows = by(user.asked("accel simulate", "thousand requests")["accel"], "policy")
    assert list(rows) == ["fcfs-eft", "edf-eft+h", "sjf-eft", "mix-eft"]
    assert rows["mix-eft"]["met"] > rows["fcfs-eft"]["met"]


def test_a_chain_saves_its_training(user: User, sample_data: Path) -> None:
    log = {"site.duckdb": sample_data / "chain" / "sacct.txt.gz"}
    user.run("chain train", "Learn how long", more=["--until", "2026-03-22"], instead=log)
    assert json.loads((user.folder / "chain-model" / "card.json").read_text())


def test_how_much_deferrable_work_fits(user: User) -> None:
    rows = by(user.asked("deferrable simulate", "deferrable work fits")["deferrable"], "policy")
    assert {row["jobs"] for row in rows.values()} == {pl.read_csv(user.folder / "slots" / "jobs.csv").height}
    assert rows["clairvoyant"]["evictions"] == 0 < rows["asap"]["done"]


def test_jobs_for_other_simulators(user: User) -> None:
    user.run("convert", "CSV for gpuctl replay", instead={"jobs.csv": "own.csv"})
    rows = pl.read_csv(user.folder / "own.csv")
    true = sorted((job.gpus, round(job.end - job.start)) for job in user.made.jobs)
    assert sorted(zip(rows["num_gpus"], rows["duration"].round().cast(int), strict=True)) == true
    user.run("convert", "Batsim")
    batsim = json.loads((user.folder / "workload.json").read_text())
    assert sorted(one["res"] for one in batsim["jobs"]) == sorted(job.gpus for job in user.made.jobs)


def test_jobs_like_those_of_a_log(user: User) -> None:
    user.run("fit", "A model of")
    user.run("fit", "published", instead={"model": "public"})
    names = {job.user for job in user.made.jobs}
    texts = [path.read_text("utf-8", "replace") for path in (user.folder / "public").iterdir() if path.is_file()]
    assert texts
    assert [name for name in sorted(names) if any(re.search(rf"\b{name}\b", text) for text in texts)] == []
    few = {"10000": 300, "jobs.csv": "more.csv"}
    user.run("synth", "Ten thousand", instead=few)
    rows = pl.read_csv(user.folder / "more.csv")
    assert rows.height == 300
    assert set(rows["num_gpus"]) <= {job.gpus for job in user.made.jobs}
    user.run("synth", "More users", instead=few)
    rows = pl.read_csv(user.folder / "more.csv")
    assert (rows["num_gpus"] >= 16).mean() == near(0.2, within=0.35)


def test_every_example_was_run_here(request: pytest.FixtureRequest, root: Path) -> None:
    """No example without its task; that of a live Slurm has none to ask (labs/slurm does)."""
    from gpuctl.cli.examples import EXAMPLES

    files = (request.path, request.path.with_name("test_plan_tasks.py"), root / "tests" / "new_user.py")
    text = "".join(path.read_text("utf-8") for path in files)
    run = re.findall(r'user\.(?:run|asked)\(\s*"([a-z ]+)", ((?:"[^"]*"(?:, )?)+)', text)
    asked = [(command, re.findall(r'"([^"]*)"', words)) for command, words in run]
    left = [
        question
        for command, examples in EXAMPLES.items()
        for question, _ in examples
        if not any(of == command and all(word in question for word in words) for of, words in asked)
    ]
    assert left == ["The same from a live Slurm, without files"]
