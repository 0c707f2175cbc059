"""Reads a recording of a real Slurm's priorities (labs/slurm/priority.py) and replays its usage with ours."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import numpy as np

from gpuctl.replay.policies.slurm import priority
from gpuctl.replay.policies.slurm.fairshare import Tree, build_tree
from gpuctl.replay.policies.slurm.usage import billable
from gpuctl.slurm import accounts, config
from gpuctl.slurm.units import minutes, tres_amounts
from tests.slurm_fairshare import Classic, Usage, fair_tree, norm_usage

FIXTURES = Path(__file__).parent / "fixtures" / "slurm" / "priority"
VARIANTS = ("classic", "fair_tree", "relative", "upward")
_STAMP = re.compile(r"\[(\S+)\] ")
_TICK = re.compile(r"Decay factor over (\d+) seconds goes from ([\d.]+) -> ([\d.]+)")
_END = re.compile(r"priority_p_job_end: called for (?:JobId=|job )(\d+)")

Row = dict[str, str]


@dataclass
class Snapshot:
    """What Slurm said at one moment."""

    number: int
    before: float
    last_ran: int
    sprio: list[Row]
    sshare: list[Row]
    jobs: dict[str, Row]


@dataclass
class Ours:
    """What our functions say at the moment of a snapshot; arrays over associations, as of Slurm's last calculation."""

    raw: np.ndarray
    norm_usage: np.ndarray
    effective: np.ndarray
    level: np.ndarray
    factor: np.ndarray


@dataclass
class Recording:
    """One variant."""

    name: str
    site: config.Site
    running: config.Site
    tree: Tree
    qos: dict[str, accounts.Qos]
    nodes: int
    cpus: int
    snapshots: list[Snapshot]
    log: list[str]
    ours: dict[int, Ours] = field(default_factory=dict)


def read(folder: Path) -> Recording:
    """Read one variant's files; nothing of Slurm's numbers is used for ours but times, jobs and configuration."""

    def opened(name: str) -> BinaryIO:
        return (folder / name).open("rb")

    with opened("slurm.conf") as conf, opened("config.txt") as running, opened("partitions.txt") as partitions:
        site, in_force = config.read_conf(conf), config.read_running(running, partitions)
    with opened("dump.cfg") as dump, opened("qos.txt") as qos:
        tree, levels = build_tree(accounts.read_dump(dump)), accounts.read_qos(qos)
    nodes = (folder / "nodes.txt").read_text("utf-8")
    cpus = [int(number) for number in re.findall(r"CPUTot=(\d+)", nodes)]
    snapshots = [_snapshot(number, path) for number, path in enumerate(sorted(folder.glob("snapshot_*.txt")))]
    log = (folder / "slurmctld.log").read_text("utf-8").splitlines()
    found = Recording(folder.name, site, in_force, tree, levels, len(cpus), sum(cpus), snapshots, log)
    _replay(found)
    return found


def _snapshot(number: int, path: Path) -> Snapshot:
    parts: dict[str, list[str]] = {}
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("== "):
            lines = parts[line[3:]] = []
        else:
            lines.append(line)
    when = dict(word.split("=") for word in parts["when"][0].split())
    jobs = _table(parts["jobs"])
    return Snapshot(
        number, float(when["before"]), int(when["last_decay_ran"]), _table(parts["sprio"]), _table(parts["sshare"]),
        {row["JobId"]: row for row in jobs},
    )  # fmt: skip


def _table(lines: list[str]) -> list[Row]:
    names = lines[0].split("|")
    return [dict(zip(names, line.split("|"), strict=True)) for line in lines[1:]]


def events(log: list[str]) -> list[tuple[float, str, float]]:
    """Calculations and ends of jobs as slurmctld's log tells them: when it says so, what, and seconds or job."""
    found = []
    for line in log:
        stamp = _STAMP.match(line)
        assert stamp is not None, line
        at = datetime.fromisoformat(stamp[1]).replace(tzinfo=UTC).timestamp()
        if tick := _TICK.search(line):
            found.append((at, "tick", float(tick[1])))
        elif end := _END.search(line):
            found.append((at, "end", float(end[1])))
    return found


def association(recording: Recording, job: Row) -> int:
    return recording.tree.index(job["Account"], job["UserId"].partition("(")[0])


def _replay(recording: Recording) -> None:
    settings = recording.site.multifactor
    assert settings is not None
    tree, last = recording.tree, recording.snapshots[-1].jobs
    usage = Usage(tree.parent, settings.half_life_s)
    now = usage.last_s = float(recording.snapshots[0].last_ran)
    classic = None if settings.fair_tree else Classic(tree)
    tick = Ours(*(np.zeros(len(tree.parent)) for _ in range(5)))
    rates = {job: _rate(recording, row) for job, row in last.items()}
    ended: set[str] = set()
    todo = [*events(recording.log), *((s.before, "snapshot", float(s.number)) for s in recording.snapshots)]
    for at, what, number in sorted(todo):
        job = f"{number:.0f}"
        if what == "end":
            ended.add(job)
            usage.end(association(recording, last[job]), float(last[job]["StartTime"]), _end(last[job]), rates[job])
        elif what == "tick":
            now += number
            # held jobs have no priority, so nothing is worked out for them
            rows = [
                (name, row) for name, row in sorted(last.items(), key=lambda item: int(item[0]))
                if name not in ended and float(row["SubmitTime"]) <= at and row["Reason"] != "JobHeldUser"
            ]  # fmt: skip
            runs = np.array([row["StartTime"].isdecimal() and float(row["StartTime"]) <= now for _, row in rows])
            who = np.array([association(recording, row) for _, row in rows])
            starts = np.array([float(row["StartTime"]) if go else 0.0 for (_, row), go in zip(rows, runs, strict=True)])
            rate = np.array([rates[name] for name, _ in rows])
            if classic is not None:
                classic.calculate(usage, who, runs, starts_s=starts, rates=rate, now_s=now)
            else:
                usage.decay(now)
                usage.charge_running(who[runs], starts[runs], rate[runs], now)
                tick.norm_usage = norm_usage(usage.raw)
                tick.effective, tick.level, tick.factor = fair_tree(tree, usage.raw)
        elif recording.snapshots[int(number)].last_ran > recording.snapshots[0].last_ran:
            assert recording.snapshots[int(number)].last_ran == now
            if classic is not None:
                for user in np.flatnonzero(tree.is_user):  # sshare asks for all of them
                    classic.user(int(user), usage.raw)
                tick.norm_usage, tick.effective = classic.norm_usage.copy(), classic.effective.copy()
                tick.factor = classic.factors(settings.dampening)
            recording.ours[int(number)] = Ours(
                usage.raw.copy(), tick.norm_usage, tick.effective, tick.level, tick.factor
            )


def _end(job: Row) -> float:
    return float(job["EndTime"])


def _rate(recording: Recording, job: Row) -> float:
    settings = recording.site.multifactor
    assert settings is not None
    partition = recording.site.partitions[job["Partition"].split(",")[0]]
    cost = billable(tres_amounts(job["TRES"]), partition.billing, max_tres="MAX_TRES" in settings.flags)
    return cost * recording.qos[job["QOS"]].usage_factor


def _compared(of: Recording) -> list[Snapshot]:
    """Snapshots after a calculation that knew the accounts and jobs."""
    return [one for one in of.snapshots if one.number in of.ours]


def _digits(value: float) -> str:
    return f"{value:.6f}"


def check_usage(of: Recording) -> int:
    """RawUsage of every line of sshare is ours; returns how many lines have any."""
    used = 0
    for one in _compared(of):
        ours = of.ours[one.number]
        for row in one.sshare:
            at = of.tree.index(row["Account"].strip(), row["User"].strip() or None)
            assert int(row["RawUsage"]) == int(ours.raw[at]), (one.number, row)
            used += int(row["RawUsage"]) > 0
    return used


def check_shares(of: Recording) -> int:
    """Every other number of sshare is ours as printed; returns how many snapshots were compared."""
    assert of.site.multifactor is not None
    fair_tree = of.site.multifactor.fair_tree
    norm = of.tree.level_norm if fair_tree else of.tree.norm
    for one in _compared(of):
        ours = of.ours[one.number]
        for row in one.sshare:
            at = of.tree.index(row["Account"].strip(), row["User"].strip() or None)
            where = (one.number, row)
            assert row["NormShares"] == _digits(norm[at]) or at == 0, where
            assert row["EffectvUsage"] == _digits(ours.effective[at]), where
            if at:
                assert row["NormUsage"] == _digits(ours.norm_usage[at]), where
            if row["FairShare"] and at:
                assert row["FairShare"] == _digits(ours.factor[at]), where
            if row.get("LevelFS"):
                assert row["LevelFS"] == _digits(ours.level[at]), where
    return len(_compared(of))


def check_priorities(of: Recording) -> int:
    """All that sprio prints is ours as printed; returns how many jobs were compared."""
    seen = set()
    for one in _compared(of):
        rows = one.sprio
        ours, total, tres = ours_of(of, one)
        for k, row in enumerate(rows):
            where = (one.number, row)
            for column, letter in _COLUMNS.items():
                assert row[letter] == f"{ours[column][k]:.0f}", (column, *where)
            found = dict(part.split("=") for part in filter(None, row["T"].split(",")))
            printed = {name: f"{cost[k]:.0f}" for name, cost in tres.items() if cost[k]}
            assert {n: v for n, v in found.items() if v != "0"} == {n: v for n, v in printed.items() if v != "0"}, where
            assert int(row["Y"]) == total[k], where
            seen.add(row["i"])
    return len(seen)


_COLUMNS = {
    "AGE": "A", "ASSOC": "B", "FAIRSHARE": "F", "JOBSIZE": "J", "PARTITION": "P", "QOS": "Q", "SITE": "S", "NICE": "N",
}  # fmt: skip


def age_factor(now_s: float, accrues_s: np.ndarray, max_age_s: float) -> np.ndarray:
    """How long jobs have waited, as a part of ``PriorityMaxAge``.

    Args:
        now_s: the time of the calculation, whole seconds.
        accrues_s: since when each has been eligible, or, with ``ACCRUE_ALWAYS``, submitted; NaN for one that is not
            eligible yet: it has no age.
        max_age_s: ``PriorityMaxAge`` in seconds.
    """
    waited = np.nan_to_num(np.maximum(now_s - accrues_s, 0.0))
    return np.where(waited < max_age_s, waited / max_age_s, 1.0)


def ours_of(
    of: Recording, one: Snapshot, before: np.ndarray | None = None
) -> tuple[dict[str, np.ndarray], np.ndarray, dict[str, np.ndarray]]:
    settings = of.site.multifactor
    assert settings is not None
    flags = settings.flags
    rows = one.sprio
    jobs = [one.jobs[row["i"]] for row in rows]
    # what a job showed when it came in stays until the next calculation
    accrues = np.array([float(job["AccrueTime"]) if job["AccrueTime"].isdecimal() else np.nan for job in jobs])
    who = [association(of, job) for job in jobs]
    given = np.array([a.priority or 0 for a in of.tree.associations])
    partitions = [of.running.partitions[row["r"]] for row in rows]
    amounts = [tres_amounts(job["TRES"]) for job in jobs]
    tres = {
        name: priority.tres_factor(
            np.array([amount.get(name, 0.0) for amount in amounts]),
            np.array([partition.tres.get(name, 0.0) for partition in partitions]),
            as_they_are="NO_NORMAL_TRES" in flags,
        )
        for name in settings.weight_tres
    }
    factors = priority.Factors(
        age=age_factor(one.last_ran, accrues, settings.max_age_s),
        association=priority.normalized(given[who], given.max(), as_they_are="NO_NORMAL_ASSOC" in flags),
        fair_share=of.ours[one.number].factor[who],
        size=priority.size_factor(
            np.array([int(job["NumNodes"].split("-")[0]) for job in jobs]),
            np.array([int(job["NumCPUs"]) for job in jobs]),
            np.array([minutes("TimeLimit", job["TimeLimit"]) for job in jobs]),
            all_nodes=of.nodes, all_cpus=of.cpus, settings=settings,
        ),
        partition=priority.normalized(
            np.array([partition.job_factor for partition in partitions]),
            max(partition.job_factor for partition in of.running.partitions.values()),
            as_they_are="NO_NORMAL_PART" in flags,
        ),
        qos=priority.normalized(
            np.array([of.qos[job["QOS"]].priority for job in jobs]),
            max(qos.priority for qos in of.qos.values()),
            as_they_are="NO_NORMAL_QOS" in flags,
        ),
        tres=tres,
        site=np.array([int(row["S"]) for row in rows]),
        nice=np.array([int(job["Nice"]) for job in jobs]),
    )  # fmt: skip
    costs = {name: factor * settings.weight_tres[name] for name, factor in tres.items()}
    return priority.weighted(factors, settings), priority.priorities(factors, settings, before), costs
