"""Records what a real Slurm says of priorities and fair-share while jobs use them up: tests/fixtures/slurm/priority.

    python -m labs.slurm.priority VARIANT FOLDER    # as root, with Debian's Slurm; see README.md; 5 minutes

Nothing here is judged: the tests read the recording and compare it with `gpuctl.replay.policies.slurm`.
"""

from __future__ import annotations

import os
import re
import struct
import sys
import time
from pathlib import Path

from labs.slurm.lab import Lab

SNAPSHOTS = 13
EVERY_S = 20
_COMMON = """
DebugFlags=Priority
LogTimeFormat=iso8601_ms
MinJobAge=2000
PriorityCalcPeriod=1
PriorityMaxAge=10
PriorityWeightAge=100000
PriorityWeightAssoc=20000
PriorityWeightFairshare=1000000
PriorityWeightJobSize=50000
PriorityWeightPartition=70000
PriorityWeightQOS=30000
PriorityWeightTRES=CPU=10000,Mem=20000,GRES/gpu=30000
PartitionName=px Nodes=gpu[001-004] PriorityJobFactor=300 TRESBillingWeights=CPU=1000,Mem=100G,GRES/gpu=20000
PartitionName=py Nodes=gpu[001-004],c1-1 PriorityJobFactor=1000 PriorityTier=2 TRESBillingWeights=CPU=500.5
PartitionName=pz Nodes=gpu[003-004],c1-1 MaxTime=1-0 State=UP PriorityJobFactor=0
"""
VARIANTS = {
    "fair_tree": "PriorityDecayHalfLife=3\n",
    "classic": "PriorityDecayHalfLife=10\nPriorityFavorSmall=YES\n"
    "PriorityFlags=NO_FAIR_TREE,ACCRUE_ALWAYS,NO_NORMAL_QOS\n",
    "relative": "PriorityDecayHalfLife=7-0\n"
    "PriorityFlags=SMALL_RELATIVE_TO_TIME,CALCULATE_RUNNING,MAX_TRES,NO_NORMAL_ALL\n",
    "upward": "PriorityDecayHalfLife=0\nPriorityUsageResetPeriod=YEARLY\nFairShareDampeningFactor=3\n"
    "PriorityFavorSmall=YES\nPriorityFlags=NO_FAIR_TREE,INCR_ONLY,SMALL_RELATIVE_TO_TIME\n",
}
_ACCOUNTS = (
    # account, parent, shares, {user: (shares, priority)}
    ("hpc", "root", "30", {"backup": ("3", 10)}),
    ("hpc_a", "hpc", "5", {"man": ("2", 0), "lp": ("2", 40)}),
    ("hpc_b", "hpc", "7", {"proxy": ("1", 0), "games": ("2", 25)}),
    ("none1", "root", "0", {"list": ("1", 0), "irc": ("1", 0)}),
    ("none2", "root", "0", {"daemon": ("1", 0), "bin": ("1", 0)}),
    ("idle1", "root", "4", {"sys": ("1", 0)}),
    ("idle2", "root", "6", {"news": ("1", 0), "uucp": ("2", 0)}),
    ("same", "root", "parent", {"www-data": ("2", 0), "mail": ("1", 15)}),
)
_JOB_KEYS = (
    *("JobId", "UserId", "Account", "QOS", "Priority", "Nice", "JobState", "Reason"),
    *("Partition", "NumNodes", "NumCPUs", "TRES", "TimeLimit"),
    *("SubmitTime", "EligibleTime", "AccrueTime", "StartTime", "EndTime", "Dependency"),
)
_ASSOC_COLUMNS = "format=account,parentname,user,partition,fairshare,priority"
_LOG = re.compile(r"Decay factor|(?:SUM|MAX)\(.*TRES|priority_p_job_end|_ft_debug|starting at root")


def _accounts(lab: Lab) -> None:
    def add(*words: str) -> None:
        lab.run("sacctmgr", "--immediate", *words)

    add("add", "qos", "half", "Priority=300", "UsageFactor=0.5")
    add("add", "qos", "gratis", "Priority=1", "UsageFactor=0")
    add("modify", "account", "vision", "set", "fairshare=10")
    add("modify", "account", "nlp", "set", "fairshare=20")
    add("modify", "user", "games", "where", "account=vision", "set", "fairshare=3", "priority=50")
    add("modify", "user", "uucp", "where", "account=nlp", "set", "fairshare=parent")
    every = "qos=normal,low,high,half,gratis"
    for account, parent, shares, users in _ACCOUNTS:
        add("add", "account", account, f"parent={parent}", f"fairshare={shares}", "Description=x", "Organization=lab")
        for user, (own, priority) in users.items():
            add("add", "user", user, f"account={account}", f"fairshare={own}", every, "defaultqos=normal")
            if priority:
                add("modify", "user", user, "where", f"account={account}", "set", f"priority={priority}")
    add("modify", "account", "idle2", "set", "priority=30")
    add("modify", "user", "where", "account=vision,nlp", "set", every)


def _submit(lab: Lab, user: str, account: str, partition: str, seconds: int, *more: str) -> str:
    words = ("sbatch", "--parsable", f"--uid={user}", f"--account={account}", f"--partition={partition}", *more)
    return lab.run(*words, "--output=/dev/null", f"--wrap=sleep {seconds}").strip()


def _until_running(lab: Lab, jobs: int) -> None:
    """Wait until so many jobs run: what comes next is to find the nodes as they leave them."""
    for _ in range(300):
        if len(lab.run("squeue", "--noheader", "--states=RUNNING").splitlines()) == jobs:
            return
        time.sleep(0.1)
    raise RuntimeError(f"{jobs} jobs do not run within 30 seconds")


def _first_jobs(lab: Lab) -> None:
    for node in ("gpu003", "gpu004"):
        _submit(lab, "mail", "same", "gpu", 3000, f"--nodelist={node}", "--exclusive", "--time=60", "--qos=gratis")
    _until_running(lab, 2)
    runs = [
        ("games", "vision", "px", 47, "-c4 --gres=gpu:1 --mem=8000"),
        ("games", "vision", "gpu", 95, "-c2 --mem=2000 --time=4"),
        ("mail", "vision", "px", 130, "-c2 --mem=4000 --qos=half"),
        ("news", "nlp", "py", 150, "-c3 --mem=1000 --time=2:00:00"),
        ("uucp", "nlp", "px", 75, "-c8 --gres=gpu:2 --mem=16000"),
        ("man", "hpc_a", "px", 110, "-c2 --mem=4000"),
        ("lp", "hpc_a", "py", 33, "-c2 --mem=4000 --qos=high"),
        ("games", "hpc_b", "px", 83, "-c1 --mem=500"),
        ("backup", "hpc", "gpu", 61, "-c5 --mem=500"),
        ("list", "none1", "px", 50, "-c3 --mem=3000"),
        ("daemon", "none2", "px", 70, "-c2 --mem=3000"),
        ("bin", "none2", "py", 40, "-c6 --mem=3000"),
        ("www-data", "same", "px", 90, "-N2 --ntasks-per-node=2 --mem=1000"),
    ]
    for user, account, partition, seconds, more in runs:
        pin = ["--nodelist=gpu001"] if "-N2" not in more else ["--nodelist=gpu001,gpu002"]
        limit = [] if "--time" in more else ["--time=30"]
        _submit(lab, user, account, partition, seconds, *pin, *more.split(), *limit)
    _until_running(lab, 2 + len(runs))


def _waiting(lab: Lab) -> None:
    """Jobs that cannot start, for the nodes that they ask for are taken."""
    waits = [
        ("games", "vision", "px", "-c4 --gres=gpu:1 --mem=8000 --time=10"),
        ("mail", "vision", "py", "-c2 --mem=2000 --time=1 --qos=high"),
        ("news", "nlp", "gpu", "-c3 --mem=1000 --time=2:00:00 --nice=77"),
        ("uucp", "nlp", "px", "-c32 --gres=gpu:4 --mem=160000 --time=2"),
        ("man", "hpc_a", "pz", "-c2 --mem=4000 --time=9 --qos=low"),
        ("lp", "hpc_a", "py", "-N2 -n2 --mem=4000 --time=3"),
        ("games", "hpc_b", "px,py", "-c1 --mem=500 --time=11"),
        ("proxy", "hpc_b", "gpu", "-c1 --mem=500 --time=13 --qos=half"),
        ("backup", "hpc", "px", "-n7 --mem=500 --time=17"),
        ("list", "none1", "px", "-c3 --mem=3000 --time=30"),
        ("irc", "none1", "px", "-c3 --mem=3000 --time=30"),
        ("daemon", "none2", "py", "-c2 --mem=3000 --time=30"),
        ("sys", "idle1", "px", "-c2 --mem=3000 --time=30"),
        ("news", "idle2", "px", "-c2 --mem=3000 --time=30"),
        ("www-data", "same", "px", "-c2 --mem=3000 --time=30"),
        ("mail", "same", "px", "-c2 --mem=3000 --time=30 --nice=-500"),
    ]
    jobs = []
    for user, account, partition, more in waits:
        node = "gpu003,gpu004" if "-N2" in more else "gpu003"
        jobs.append(_submit(lab, user, account, partition, 5, f"--nodelist={node}", *more.split()))
    pin = ("--nodelist=gpu004", "--time=5", "-c2", "--mem=100")
    _submit(lab, "games", "vision", "px", 5, *pin, f"--dependency=afterany:{jobs[0]}")
    _submit(lab, "games", "vision", "px", 5, *pin, "--begin=now+70")
    held = _submit(lab, "games", "vision", "px", 5, *pin, "--hold")
    lab.run("scontrol", "update", f"JobId={jobs[8]}", "SiteFactor=1234")
    lab.run("scontrol", "update", f"JobId={held}", "Comment=held")


def _later_jobs(lab: Lab, number: int) -> None:
    """A few that start between snapshots, so that usage grows in the middle of a period."""
    more = {
        3: ("irc", "none1", "px", 35, "-c2 --mem=1000 --time=5"),
        5: ("proxy", "hpc_b", "py", 60, "-c4 --mem=1000 --time=5"),
        7: ("mail", "vision", "px", 45, "-c2 --mem=1000 --time=5 --gres=gpu:1"),
        9: ("backup", "hpc", "px", 20, "-c9 --mem=1000 --time=5 --qos=half"),
    }
    if number in more:
        user, account, partition, seconds, words = more[number]
        _submit(lab, user, account, partition, seconds, "--nodelist=gpu002", *words.split())
    if number == 4:
        _submit(lab, "sys", "idle1", "px,gpu", 5, "--nodelist=gpu003", "-c2", "--mem=100", "--time=5")


def _snapshot(lab: Lab) -> str:
    before = time.time()
    names = ("i", "r", "u", "Y", "A", "a", "B", "b", "F", "f", "J", "j", "P", "p", "Q", "q", "S", "N", "T", "t")
    sprio = lab.run("sprio", "--noheader", "--format=" + "|".join(f"%{name}" for name in names))
    # the columns after these say what limits are left, in TRES minutes
    shares = [line.split("|")[:9] for line in lab.run("sshare", "--all", "--long", "--parsable2").splitlines()]
    sshare = "\n".join("|".join(cells) for cells in shares)
    last_ran = struct.unpack(">qq", (lab.folder / "state" / "priority_last_decay_ran").read_bytes()[:16])
    jobs = lab.run("scontrol", "--oneliner", "show", "jobs")
    rows = ["|".join(_JOB_KEYS)]
    for line in jobs.splitlines():
        found = dict(word.split("=", 1) for word in line.split() if "=" in word)
        rows.append("|".join(found.get(key, "") for key in _JOB_KEYS))
    when = f"before={before:.3f} after={time.time():.3f} last_decay_ran={last_ran[0]} last_reset={last_ran[1]}"
    parts = {"when": when, "sprio": "|".join(names) + "\n" + sprio, "sshare": sshare, "jobs": "\n".join(rows)}
    return "".join(f"== {name}\n{text.rstrip()}\n" for name, text in parts.items())


def record(variant: str, out: Path, snapshots: int = SNAPSHOTS) -> None:
    """Run one variant and write its recording; a snapshot every 20 seconds."""
    out.mkdir(parents=True, exist_ok=True)
    lab = Lab()
    extra = out / "extra.conf"
    extra.write_text(_COMMON + VARIANTS[variant], "utf-8")
    lab.env |= {"EXTRACONF": str(extra.resolve()), "SLURM_TIME_FORMAT": "%s", "TZ": "UTC"}
    with lab:
        extra.unlink()
        _accounts(lab)
        _first_jobs(lab)
        _waiting(lab)
        for number in range(snapshots):
            began = time.time()
            (out / f"snapshot_{number:02}.txt").write_text(_snapshot(lab), "utf-8")
            _later_jobs(lab, number)
            time.sleep(max(0.0, began + EVERY_S - time.time()))
        for name, command in {
            "config.txt": ("scontrol", "show", "config"),
            "partitions.txt": ("scontrol", "--oneliner", "show", "partitions"),
            "nodes.txt": ("scontrol", "--oneliner", "show", "nodes"),
            "qos.txt": ("sacctmgr", "--parsable2", "show", "qos"),
            "assoc.txt": ("sacctmgr", "--parsable2", "show", "assoc", _ASSOC_COLUMNS),
        }.items():
            (out / name).write_text(lab.run(*command).replace(str(lab.folder), "/lab"), "utf-8")
        lab.run("sacctmgr", "dump", "lab", f"file={lab.work / 'dump.cfg'}")
        for name, source in {"slurm.conf": lab.folder / "slurm.conf", "dump.cfg": lab.work / "dump.cfg"}.items():
            (out / name).write_text(source.read_text("utf-8").replace(str(lab.folder), "/lab"), "utf-8")
        log = (lab.folder / "log" / "slurmctld.log").read_text("utf-8", "replace").splitlines()
        (out / "slurmctld.log").write_text("\n".join(line for line in log if _LOG.search(line)) + "\n", "utf-8")


if __name__ == "__main__":
    if sys.argv[1] not in VARIANTS or os.geteuid():
        sys.exit(f"as root: python -m labs.slurm.priority {'|'.join(VARIANTS)} FOLDER")
    record(sys.argv[1], Path(sys.argv[2]))
