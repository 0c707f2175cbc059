"""What is submitted to a real Slurm, when, and how it is configured: the scenarios that scheduling.py records.

Every job sleeps for some seconds and asks for a time limit of whole minutes, which is longer. Partitions are the
scenarios' own; the lab's five nodes are those of README.md. A job's words are sbatch's; `{name}` in them is another
job's number.
"""

from __future__ import annotations

import random
from typing import NamedTuple

FIRST_S = 5.0
"""Seconds from a full minute, or a calculation of fair-share, to the first instant of a scenario."""
A100 = "Nodes=gpu[001-002] MaxTime=1-0 DefaultTime=5 State=UP"
GPUS = "Nodes=gpu[001-004] MaxTime=1-0 DefaultTime=5 State=UP"
COMMON = """
DebugFlags=Backfill,BackfillMap,Priority
LogTimeFormat=iso8601_ms
SlurmctldDebug=debug3
MinJobAge=2000
TopologyPlugin=topology/none
PriorityCalcPeriod=1
PriorityDecayHalfLife=10
"""
"""Added to the lab's slurm.conf in every scenario; what a scenario says comes after it and wins."""


class Job(NamedTuple):
    """One submission.

    Attributes:
        at: seconds after the first instant of the scenario.
        name: of the job; no two share one.
        user: who submits it.
        sleep: seconds that it sleeps.
        words: options of sbatch.
    """

    at: float
    name: str
    user: str
    sleep: int
    words: str


class Scenario(NamedTuple):
    """One recording.

    Attributes:
        about: what it is for.
        conf: lines for slurm.conf.
        jobs: in the order of their submission.
        accounts: words of sacctmgr, a line each.
        seconds: when the recording ends at the latest, after the first instant.
    """

    about: str
    conf: str
    jobs: tuple[Job, ...]
    accounts: tuple[str, ...] = ()
    seconds: int = 280


def _order() -> tuple[Job, ...]:
    """Three jobs fill gpu001; the others wait with priorities of every kind, in gangs of 1 to 8."""
    one = "--partition=one -N1 -n1"
    fill = (
        Job(0.0, "fill_a", "games", 24, f"{one} -c4 --gres=gpu:4 --time=2"),
        Job(0.2, "fill_b", "news", 38, f"{one} -c2 --gres=gpu:2 --time=3"),
        Job(0.4, "fill_c", "mail", 31, f"{one} -c2 --gres=gpu:2 --time=1"),
    )
    waiting = (
        Job(5.0, "low_1", "games", 10, f"{one} -c1 --gres=gpu:1 --time=1 --qos=low"),
        Job(5.2, "two_1", "mail", 12, f"{one} -c2 --gres=gpu:2 --time=1"),
        Job(5.4, "six_1", "news", 14, f"{one} -c24 --gres=gpu:6 --time=2"),
        Job(5.6, "one_1", "uucp", 9, f"{one} -c1 --gres=gpu:1 --time=1"),
        Job(7.0, "all_1", "uucp", 11, f"{one} -c60 --gres=gpu:8 --time=1"),
        Job(7.2, "high_1", "games", 13, f"{one} -c4 --gres=gpu:3 --time=2 --qos=high"),
        Job(7.4, "nice_1", "mail", 10, f"{one} -c1 --gres=gpu:1 --time=1 --nice=20000"),
        Job(9.0, "four_1", "news", 16, f"{one} -c4 --gres=gpu:4 --time=3"),
        Job(9.2, "after_1", "news", 8, f"{one} -c2 --gres=gpu:2 --time=1 --dependency=afterok:{{one_1}}"),
        Job(20.0, "high_2", "uucp", 12, f"{one} -c4 --gres=gpu:4 --time=1 --qos=high"),
        Job(20.2, "one_2", "games", 15, f"{one} -c1 --gres=gpu:1 --time=2"),
        Job(30.0, "five_1", "mail", 9, f"{one} -c5 --gres=gpu:5 --time=1"),
        Job(50.0, "two_2", "news", 10, f"{one} -c2 --gres=gpu:2 --time=4"),
        Job(50.2, "high_3", "mail", 9, f"{one} -c1 --gres=gpu:1 --time=1 --qos=high"),
    )
    return fill + waiting


_ONE = f"PartitionName=one {A100.replace('gpu[001-002]', 'gpu001')}"
_MIXED = f"PartitionName=mixed {GPUS}"
_ORDER = f"""
PriorityMaxAge=10
PriorityWeightAge=20000
PriorityWeightFairshare=50000
PriorityWeightJobSize=10000
PriorityWeightQOS=30000
PreemptType=preempt/none
PreemptMode=OFF
{_ONE}
"""


def _backfill() -> tuple[Job, ...]:
    """gpu001 is full for two minutes by its limit, half of gpu002 for four; `wide` wants both."""
    part = "--partition=two -n1 -N1"
    return (
        Job(0.0, "run_1", "games", 62, f"{part} -w gpu001 --gres=gpu:8 --time=2"),
        Job(0.2, "run_2", "mail", 140, f"{part} -w gpu002 --gres=gpu:4 --time=4"),
        Job(4.0, "wide", "news", 12, "--partition=two -N2 -n2 --gres=gpu:8 --time=3 --qos=high"),
        Job(6.0, "long_1", "games", 20, f"{part} --gres=gpu:2 --time=10"),
        Job(6.2, "short_1", "games", 25, f"{part} --gres=gpu:2 --time=1"),
        Job(6.4, "short_2", "uucp", 30, f"{part} --gres=gpu:1 --time=2"),
        Job(6.6, "half_1", "uucp", 15, f"{part} --gres=gpu:4 --time=2"),
        Job(6.8, "edge_1", "mail", 20, f"{part} --gres=gpu:3 --time=3"),
        Job(7.0, "long_2", "mail", 10, f"{part} --gres=gpu:1 --time=5"),
        Job(7.2, "pair_1", "games", 14, "--partition=two -N2 -n2 --gres=gpu:2 --time=1"),
        Job(40.0, "short_3", "news", 18, f"{part} --gres=gpu:2 --time=1"),
        Job(66.0, "late_1", "uucp", 16, f"{part} --gres=gpu:8 --time=1"),
        Job(66.2, "late_2", "uucp", 17, f"{part} --gres=gpu:3 --time=2"),
        Job(66.4, "late_3", "news", 11, f"{part} --gres=gpu:5 --time=3"),
        Job(100.0, "tiny_1", "games", 9, f"{part} --gres=gpu:1 --time=1"),
        Job(100.2, "tiny_2", "games", 9, f"{part} --gres=gpu:1 --time=1"),
        Job(100.4, "tiny_3", "mail", 9, f"{part} --gres=gpu:1 --time=1"),
    )


def _backfill_conf(more: str) -> str:
    return f"""
PriorityWeightAge=0
PreemptType=preempt/none
PreemptMode=OFF
SchedulerParameters=bf_interval=5{more}
PartitionName=two {A100}
"""


_NO_PREEMPTION = """
PriorityWeightAge=0
PreemptType=preempt/none
PreemptMode=OFF
"""


def _preempt_partitions() -> tuple[Job, ...]:
    """`lo` fills up and is preempted by `mid` and `hi`, `mid` by `hi`, with one victim, several, and whole nodes."""
    return (
        Job(0.0, "lo_1", "games", 70, "--partition=lo -N1 -n1 --gres=gpu:4 --time=5"),
        Job(2.0, "lo_2", "news", 60, "--partition=lo -N1 -n1 --gres=gpu:3 --time=4"),
        Job(4.0, "lo_3", "mail", 50, "--partition=lo -N1 -n1 --gres=gpu:2 --time=6"),
        Job(12.0, "mid_1", "uucp", 80, "--partition=mid -N1 -n1 --gres=gpu:5 --time=5"),
        Job(24.0, "hi_1", "games", 40, "--partition=hi -N1 -n1 --gres=gpu:4 --time=2"),
        Job(40.0, "hi_2", "news", 30, "--partition=hi -N1 -n1 --gres=gpu:8 --time=2"),
        Job(44.0, "lo_4", "uucp", 20, "--partition=lo -N1 -n1 --gres=gpu:2 --time=3"),
        Job(56.0, "mid_2", "mail", 25, "--partition=mid -N1 -n1 --gres=gpu:3 --time=3"),
        Job(90.0, "hi_3", "mail", 15, "--partition=hi -N2 -n2 --gres=gpu:8 --time=1"),
        Job(92.0, "mid_3", "games", 15, "--partition=mid -N1 -n1 --gres=gpu:1 --time=1"),
        Job(120.0, "hi_4", "news", 12, "--partition=hi -N1 -n1 --gres=gpu:2 --time=1"),
    )


def _preempt_partition_conf(more: str) -> str:
    return f"""
PriorityWeightAge=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=bf_interval=5{more}
PartitionName=lo {A100} PriorityTier=1 PreemptMode=REQUEUE
PartitionName=mid {A100} PriorityTier=5 PreemptMode=CANCEL
PartitionName=hi {A100} PriorityTier=10 PreemptMode=OFF
"""


def _preempt_qos() -> tuple[Job, ...]:
    """`low` is requeued and `scav` cancelled for `high`; `normal` neither preempts nor is preempted."""
    part = "--partition=two -N1 -n1"
    return (
        Job(0.0, "low_1", "games", 70, f"{part} --qos=low --gres=gpu:4 --time=5"),
        Job(2.0, "scav_1", "news", 80, f"{part} --qos=scav --gres=gpu:3 --time=4"),
        Job(4.0, "norm_1", "mail", 60, f"{part} --gres=gpu:3 --time=6"),
        Job(6.0, "low_2", "uucp", 90, f"{part} --qos=low --gres=gpu:5 --time=6"),
        Job(24.0, "high_1", "games", 30, f"{part} --qos=high --gres=gpu:2 --time=2"),
        Job(40.0, "high_2", "news", 25, f"{part} --qos=high --gres=gpu:4 --time=2"),
        Job(42.0, "norm_2", "uucp", 15, f"{part} --gres=gpu:3 --time=2"),
        Job(44.0, "low_3", "mail", 30, f"{part} --qos=low --gres=gpu:1 --time=2"),
        Job(70.0, "high_3", "mail", 20, f"{part} --qos=high --gres=gpu:8 --time=2"),
        Job(84.0, "high_4", "games", 12, f"{part} --qos=high --gres=gpu:1 --time=1"),
    )


def _preempt_qos_conf(more: str) -> str:
    return f"""
PriorityWeightAge=0
PriorityWeightQOS=5000
PreemptType=preempt/qos
PreemptMode=REQUEUE
SchedulerParameters=bf_interval=5
{more}
PartitionName=two {A100}
"""


_SCAVENGER = (
    "add qos scav Priority=0 PreemptMode=cancel",
    "modify qos high set Preempt=low,scav",
    "modify user where account=vision,nlp set qos=normal,low,high,scav",
)


def _limits() -> tuple[Job, ...]:
    """Every kind of limit keeps a job back that would fit; others behind it have none."""
    part = "--partition=two -N1 -n1"
    return (
        Job(0.0, "cap_1", "games", 22, f"{part} --qos=cap --gres=gpu:2 --time=2"),
        Job(0.2, "cap_2", "games", 34, f"{part} --qos=cap --gres=gpu:2 --time=2"),
        Job(0.4, "cap_3", "games", 12, f"{part} --qos=cap --gres=gpu:2 --time=2"),
        Job(0.6, "cap_4", "games", 10, f"{part} --qos=cap --gres=gpu:4 --time=1"),
        Job(3.0, "grp_1", "news", 30, f"{part} --qos=grp --gres=gpu:3 --time=2"),
        Job(3.2, "grp_2", "uucp", 20, f"{part} --qos=grp --gres=gpu:2 --time=1"),
        Job(3.4, "grp_3", "news", 10, f"{part} --qos=grp --gres=gpu:1 --time=1"),
        Job(3.6, "grp_4", "uucp", 11, f"{part} --qos=grp --gres=gpu:2 --time=1"),
        Job(6.0, "two_1", "uucp", 16, f"{part} --qos=two --gres=gpu:1 --time=1"),
        Job(6.2, "two_2", "uucp", 24, f"{part} --qos=two --gres=gpu:1 --time=2"),
        Job(6.4, "two_3", "uucp", 10, f"{part} --qos=two --gres=gpu:1 --time=1"),
        Job(9.0, "own_1", "mail", 18, f"{part} --gres=gpu:1 --time=1"),
        Job(9.2, "own_2", "mail", 10, f"{part} --gres=gpu:1 --time=1"),
        Job(12.0, "vis_1", "games", 14, f"{part} --gres=gpu:4 --time=1"),
        Job(12.2, "vis_2", "games", 12, f"{part} --gres=gpu:3 --time=1"),
        Job(15.0, "wall_1", "news", 10, f"{part} --gres=gpu:1 --time=11"),
        Job(15.2, "pair_1", "news", 10, "--partition=two -N2 -n2 --gres=gpu:1 --time=1"),
        Job(18.0, "free_1", "news", 15, f"{part} --gres=gpu:6 --time=1"),
        Job(18.2, "free_2", "uucp", 13, f"{part} --gres=gpu:3 --time=1"),
        Job(40.0, "free_3", "uucp", 10, f"{part} --gres=gpu:1 --time=1"),
    )


_LIMITS = (
    "add qos cap MaxTRESPerUser=gres/gpu=4",
    "add qos grp GrpTRES=gres/gpu=6",
    "add qos two MaxJobsPerUser=2",
    "modify account vision set GrpTRES=gres/gpu=8",
    "modify user mail where account=vision set MaxJobs=1",
    "modify user where account=vision,nlp set qos=normal,low,high,cap,grp,two",
)


def _limits_conf(more: str) -> str:
    part = A100.replace("MaxTime=1-0", "MaxTime=10 MaxNodes=1")
    return f"{_NO_PREEMPTION}\nSchedulerParameters=bf_interval=5{more}\nPartitionName=two {part}\n"


def _partitions() -> tuple[Job, ...]:
    """`pb` shares gpu002 with `pa`, whose tier is lower; `pc` is alone on gpu004."""
    return (
        Job(0.0, "a_1", "mail", 46, "--partition=pa -N1 -n1 -w gpu001 --gres=gpu:6 --time=2"),
        Job(0.2, "b_1", "games", 30, "--partition=pb -N1 -n1 -w gpu002 --gres=gpu:5 --time=3"),
        Job(0.4, "b_2", "news", 22, "--partition=pb -N1 -n1 -w gpu003 --gres=gpu:3 --time=1"),
        Job(8.0, "a_2", "mail", 14, "--partition=pa -N1 -n1 --gres=gpu:3 --time=1"),
        Job(8.2, "a_3", "games", 12, "--partition=pa -N1 -n1 --gres=gpu:1 --time=1"),
        Job(8.4, "c_1", "uucp", 25, "--partition=pc -N1 -n1 --gres=gpu:2 --time=1"),
        Job(8.6, "c_2", "uucp", 15, "--partition=pc -N1 -n1 --gres=gpu:3 --time=1"),
        Job(8.8, "c_3", "news", 10, "--partition=pc -N1 -n1 --gres=gpu:1 --time=1"),
        Job(16.0, "b_3", "uucp", 16, "--partition=pb -N1 -n1 --gres=gpu:6 --time=2"),
        Job(16.2, "a_4", "mail", 11, "--partition=pa -N1 -n1 --gres=gpu:2 --time=1"),
        Job(16.4, "b_4", "games", 18, "--partition=pb -N1 -n1 --gres=gpu:1 --time=1"),
        Job(16.6, "a_5", "news", 13, "--partition=pa -N1 -n1 --gres=gpu:1 --time=1 --qos=high"),
        Job(28.0, "b_5", "news", 10, "--partition=pb -N2 -n2 --gres=gpu:2 --time=1"),
        Job(28.2, "c_4", "mail", 10, "--partition=pc -N1 -n1 --gres=gpu:1 --time=1"),
        Job(28.4, "a_6", "uucp", 10, "--partition=pa -N2 -n2 --gres=gpu:2 --time=1"),
    )


def _partitions_conf(scheduler: str) -> str:
    return f"""{_NO_PREEMPTION}
{scheduler}
PartitionName=pa {A100} PriorityTier=1
PartitionName=pb {A100.replace("gpu[001-002]", "gpu[002-003]")} PriorityTier=5
PartitionName=pc {A100.replace("gpu[001-002]", "gpu004")} PriorityTier=1
"""


def _gpus() -> tuple[Job, ...]:
    """One job after the other on all nodes: where does each go, and what when some have ended?"""
    part = "--partition=every"
    words = (
        ("cpu_1", "games", 90, "-N1 -n1 -c4"),
        ("cpu_2", "news", 80, "-N1 -n1 -c30"),
        ("one_1", "mail", 26, "-N1 -n1 --gres=gpu:1"),
        ("two_1", "uucp", 70, "-N1 -n1 --gres=gpu:2"),
        ("one_2", "games", 85, "-N1 -n1 --gres=gpu:1"),
        ("three_1", "news", 30, "-N1 -n1 --gres=gpu:3"),
        ("a100_1", "mail", 75, "-N1 -n1 --gres=gpu:a100:2"),
        ("five_1", "uucp", 60, "-N1 -n1 --gres=gpu:5"),
        ("pair_1", "games", 40, "-N2 -n2 --gres=gpu:1"),
        ("tasks_1", "news", 50, "-n40 --mem-per-cpu=100"),
        ("mem_1", "mail", 45, "-N1 -n1 --mem=300000"),
        ("gpus_6", "uucp", 30, "--gpus=6 --mem-per-cpu=100"),
        ("one_3", "games", 30, "-N1 -n1 --gres=gpu:1"),
        ("one_4", "news", 30, "-N1 -n1 --gres=gpu:1"),
        ("alone_1", "mail", 15, "-N1 -n1 --exclusive --gres=gpu:1"),
        ("two_2", "uucp", 20, "-N1 -n1 --gres=gpu:2"),
        ("pair_2", "games", 14, "-N2 -n2 --gres=gpu:3"),
        ("four_1", "news", 12, "-N1 -n1 --gres=gpu:4"),
        ("pair_3", "mail", 14, "-N2 -n2 --exclusive"),
        ("eight_1", "uucp", 12, "-N1 -n1 --gres=gpu:8"),
    )
    return tuple(Job(4.0 * n, a, b, c, f"{part} {d} --time=5") for n, (a, b, c, d) in enumerate(words))


def _gpus_conf(more: str, partition: str = "") -> str:
    every = GPUS.replace("gpu[001-004]", "gpu[001-004],c1-1")
    return f"""{_NO_PREEMPTION}
SchedulerParameters=bf_interval=5,batch_sched_delay=0
{more}
PartitionName=every {every} {partition}
"""


def _exclusive() -> tuple[Job, ...]:
    """Whole nodes, one to four, with limits of one to four minutes and much shorter runs."""
    jobs = (
        (0.0, "games", 1, 2, 50),
        (0.2, "news", 2, 3, 95),
        (0.4, "mail", 1, 1, 40),
        (8.0, "uucp", 3, 2, 20),
        (8.2, "games", 1, 1, 30),
        (8.4, "news", 1, 4, 25),
        (8.6, "mail", 2, 1, 15),
        (8.8, "uucp", 4, 1, 10),
        (9.0, "games", 1, 2, 35),
        (9.2, "news", 1, 3, 12),
        (30.0, "mail", 2, 2, 18),
        (30.2, "uucp", 1, 1, 16),
        (45.0, "games", 1, 1, 10),
        (60.0, "news", 2, 4, 14),
        (60.2, "mail", 1, 1, 12),
    )
    return tuple(
        Job(at, f"job_{n + 1}", user, sleep, f"--partition=whole -N{nodes} --time={limit}")
        for n, (at, user, nodes, limit, sleep) in enumerate(jobs)
    )


def _timelimit() -> tuple[Job, ...]:
    """Jobs that would run past their limit, begun at different times, and one behind each."""
    part = "--partition=two -N1 -n1"
    jobs = [Job(0.0, "full_1", "games", 100, f"{part} --gres=gpu:8 --time=1")]
    jobs += [Job(9.0, "full_2", "news", 120, f"{part} --gres=gpu:8 --time=1")]
    jobs += [
        Job(12.0 + n, f"next_{n + 1}", "mail", 100 if n else 30, f"{part} --gres=gpu:8 --time=1") for n in range(3)
    ]
    return tuple(jobs)


def _mix() -> tuple[Job, ...]:
    """Fifty jobs of every size on all GPUs, drawn once and for all."""
    draw = random.Random(20261122)
    jobs = []
    for number in range(50):
        user = draw.choice(("games", "mail", "news", "uucp"))
        gpus = draw.choice((1, 1, 1, 2, 2, 3, 4, 4, 8))
        nodes = 2 if draw.random() < 0.12 and gpus <= 4 else 1
        sleep = draw.randint(12, 60)
        qos = draw.choice(("normal", "normal", "normal", "low", "high"))
        limit = draw.choice((1, 1, 2, 3, 5)) if sleep < 55 else draw.choice((2, 3, 5))
        words = f"--partition=mixed -N{nodes} -n{nodes} --gres=gpu:{gpus} --time={limit} --qos={qos}"
        jobs.append(Job(2.5 * number, f"job_{number + 1:02}", user, sleep, words))
    return tuple(jobs)


def _site() -> tuple[Job, ...]:
    """Sixty jobs of three partitions, one of them preempted, with priorities and limits: all at once."""
    draw = random.Random(41)
    jobs = []
    for number in range(60):
        user = draw.choice(("games", "mail", "news", "uucp"))
        partition = draw.choice(("short", "batch", "batch", "batch", "scav"))
        gpus = draw.choice((1, 1, 2, 2, 3, 4, 4, 8))
        nodes = 2 if draw.random() < 0.15 and gpus <= 4 else 1
        sleep = draw.randint(12, 50)
        qos = draw.choice(("normal", "normal", "cap", "high"))
        limit = 1 if partition == "short" else draw.choice((1, 2, 3, 5))
        cores = draw.choice((1, 1, 2, 4, 8))
        words = f"--partition={partition} -N{nodes} -n{nodes} -c{cores} --gres=gpu:{gpus} --time={limit} --qos={qos}"
        jobs.append(Job(2.0 * number, f"job_{number + 1:02}", user, sleep, words))
    return tuple(jobs)


_SITE = f"""
PriorityMaxAge=10
PriorityWeightAge=20000
PriorityWeightFairshare=50000
PriorityWeightJobSize=10000
PriorityWeightQOS=30000
PriorityWeightPartition=5000
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=bf_interval=10
PartitionName=short {GPUS} PriorityTier=10 PriorityJobFactor=10 PreemptMode=OFF
PartitionName=batch {GPUS} PriorityTier=5 PriorityJobFactor=5 PreemptMode=OFF
PartitionName=scav {GPUS} PriorityTier=1 PreemptMode=REQUEUE
"""
_SITE_LIMITS = (
    "add qos cap MaxTRESPerUser=gres/gpu=5",
    "modify account nlp set GrpTRES=gres/gpu=14",
    "modify user mail where account=vision set MaxJobs=3",
    "modify user where account=vision,nlp set qos=normal,low,high,cap",
    "modify account vision set fairshare=3",
)
_BUILTIN = "SchedulerType=sched/builtin\nSchedulerParameters=batch_sched_delay=3"
_FIVE = "SchedulerParameters=bf_interval=5"
SCENARIOS = {
    "order_builtin": Scenario(
        "age, fair-share, size, QOS and nice on one full node, without backfill", f"{_ORDER}{_BUILTIN}\n", _order()
    ),
    "order": Scenario("the jobs of order_builtin with backfill", f"{_ORDER}{_FIVE}\n", _order()),
    "backfill": Scenario(
        "a wide job at the head, small ones whose limits fit before it or not", _backfill_conf(""), _backfill()
    ),
    "backfill_test3": Scenario("with bf_max_job_test=3", _backfill_conf(",bf_max_job_test=3"), _backfill()),
    "backfill_test3_table": Scenario(
        "with bf_max_job_test=3,bf_node_space_size=200",
        _backfill_conf(",bf_max_job_test=3,bf_node_space_size=200"),
        _backfill(),
    ),
    "backfill_window": Scenario(
        "with bf_window=2, shorter than a running limit", _backfill_conf(",bf_window=2"), _backfill()
    ),
    "backfill_user1": Scenario("with bf_max_job_user=1", _backfill_conf(",bf_max_job_user=1"), _backfill()),
    "exclusive": Scenario(
        "whole nodes with backfill",
        f"{_NO_PREEMPTION}{_FIVE}\nPartitionName=whole {GPUS} OverSubscribe=EXCLUSIVE\n",
        _exclusive(),
    ),
    "partitions": Scenario(
        "overlapping partitions of two tiers, without backfill", _partitions_conf(_BUILTIN), _partitions()
    ),
    "partitions_backfill": Scenario("the same with backfill", _partitions_conf(_FIVE), _partitions()),
    "partitions_depth": Scenario(
        "without backfill, default_queue_depth=3, sched_interval=30",
        _partitions_conf(_BUILTIN + ",default_queue_depth=3,sched_interval=30"),
        _partitions(),
    ),
    "preempt_partition": Scenario(
        "preemption by PriorityTier, REQUEUE and CANCEL", _preempt_partition_conf(""), _preempt_partitions()
    ),
    "preempt_partition_young": Scenario(
        "with preempt_youngest_first", _preempt_partition_conf(",preempt_youngest_first"), _preempt_partitions()
    ),
    "preempt_qos": Scenario("preemption by QOS", _preempt_qos_conf(""), _preempt_qos(), _SCAVENGER),
    "preempt_qos_exempt": Scenario(
        "with PreemptExemptTime=00:00:45", _preempt_qos_conf("PreemptExemptTime=00:00:45"), _preempt_qos(), _SCAVENGER
    ),
    "limits": Scenario("limits of QOS, associations and partitions", _limits_conf(""), _limits(), _LIMITS, seconds=130),
    "limits_stop": Scenario(
        "with assoc_limit_stop", _limits_conf(",assoc_limit_stop"), _limits(), _LIMITS, seconds=160
    ),
    "timelimit": Scenario("jobs that outlive their limit", _backfill_conf(""), _timelimit()),
    "mix": Scenario(
        "fifty jobs of every size with age, fair-share, size and QOS",
        f"{_ORDER.replace(_ONE, _MIXED)}{_FIVE}\n",
        _mix(),
        seconds=600,
    ),
    "site": Scenario(
        "sixty jobs of three partitions with priorities, preemption and limits", _SITE, _site(), _SITE_LIMITS, 600
    ),
    "gpus": Scenario("where jobs go: GPUs, CPUs, memory, several nodes, whole nodes", _gpus_conf(""), _gpus()),
    "gpus_lln": Scenario("with LLN=YES", _gpus_conf("", "LLN=YES"), _gpus()),
    "gpus_tree": Scenario("with topology/tree", _gpus_conf("TopologyPlugin=topology/tree"), _gpus()),
}
