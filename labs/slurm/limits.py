"""Records what a real Slurm says of a configuration with limits of every kind: ``tests/fixtures/slurm/limits``.

    python -m labs.slurm.limits DIRECTORY

It takes a minute, needs root and Slurm's daemons (README.md), and writes the configuration and what scontrol and
sacctmgr print of it.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from labs.slurm.lab import Lab

MORE = """
EnforcePartLimits=ANY
OverTimeLimit=3
KillWait=45
JobRequeue=0
PreemptExemptTime=00:02:30
PriorityWeightTRES=CPU=2000,GRES/gpu=3000
SchedulerParameters=bf_window=2880,bf_resolution=300,default_queue_depth=50,partition_job_depth=7,bf_max_job_user=11
NodeSet=big Feature=a100
DownNodes=gpu004 State=DRAIN Reason=test
PartitionName=DEFAULT MaxTime=2-0 GraceTime=20 OverTimeLimit=9
PartitionName=wide Nodes=big,gpu003 MinNodes=2 MaxNodes=3 PriorityTier=5 AllowAccounts=vision,deep AllowQos=high,low \\
    State=DRAIN OverSubscribe=EXCLUSIVE QOS=part
PartitionName=deny Nodes=ALL DenyAccounts=nlp DenyQos=low State=DOWN OverSubscribe=FORCE:4 DefaultTime=30:00 \\
    TRESBillingWeights=CPU=1.0,Mem=0.25G,GRES/gpu=16 PriorityJobFactor=7 MaxTime=UNLIMITED
PartitionName=more Nodes=c1-1 MaxCPUsPerNode=8 LLN=YES State=INACTIVE MaxTime=90 GraceTime=0
"""
QOS = (
    "part GrpTRES=gres/gpu=12,cpu=100 MaxJobsPerUser=3 MaxTRESPerUser=gres/gpu=4 Flags=DenyOnLimit,PartitionMaxNodes",
    "all GrpJobs=5 GrpSubmitJobs=6 GrpWall=90 MaxTRESPerJob=gres/gpu:a100=2,mem=200G MaxTRESPerNode=cpu=7 "
    "MaxWall=1-01:30:00 MaxJobsPerAccount=4 MaxSubmitJobsPerAccount=8 MaxSubmitJobsPerUser=9 "
    "MaxTRESPerAccount=node=3 MinTRESPerJob=gres/gpu=1 MinPrioThres=77 GraceTime=75 PreemptExemptTime=10 "
    "PreemptMode=cancel Priority=3 UsageFactor=0.25 Preempt=low,part "
    "Flags=NoReserve,OverPartQOS,PartitionTimeLimit,PartitionMinNodes,NoDecay GrpTRESMins=cpu=1000",
    "zero MaxWall=0 MaxJobsPerUser=0 PreemptExemptTime=0 Flags=RequiresReservation PreemptMode=requeue,within",
)
ACCOUNTS = (
    ("deep", "vision", "MaxJobs=9 MaxSubmitJobs=20 MaxTRESPerJob=gres/gpu=8,cpu=64 GrpTRES=gres/gpu=10 Priority=5"),
    ("deeper", "deep", "MaxTRESPerJob=cpu=32,node=2 GrpJobs=4 MaxWall=2-0 QOS=+all DefaultQOS=all"),
    ("deepest", "deeper", "MaxJobs=2 GrpSubmitJobs=7 GrpWall=600 MaxTRESPerNode=gres/gpu=4 Fairshare=parent"),
)
USERS = (
    ("games", "deepest", ""),
    ("mail", "deepest", "MaxJobs=1 MaxTRESPerJob=gres/gpu=2 MaxSubmitJobs=3 QOS=all,high DefaultQOS=high Priority=8"),
    ("news", "deeper", "MaxWall=30 QOS-=low Fairshare=7 MaxTRESMinsPerJob=cpu=99"),
    ("uucp", "deep", "MaxTRESPerJob=gres/gpu=1 GrpTRES=cpu=5"),
)
COLUMNS = (
    "account,parentname,user,partition,share,priority,grpjobs,grptres,grpsubmit,grpwall,grptresmins,grptresrunmins,"
    "maxjobs,maxtres,maxtrespernode,maxsubmit,maxwall,maxtresmins,minpriothres,qos,defaultqos"
)


def record(lab: Lab, folder: Path) -> None:
    """Configure a lab, and write down what it says."""

    def change(*words: str) -> None:
        lab.run("sacctmgr", "--immediate", *words)

    for one in QOS:
        change("add", "qos", *one.split())
    # limits of the cluster are handed down to all accounts
    change("modify", "cluster", "lab", "set", "MaxSubmitJobs=50", "MaxTRESPerJob=node=3")
    for name, parent, limits in ACCOUNTS:
        change("add", "account", name, f"parent={parent}", *(w for w in limits.split() if "QOS" not in w))
        for word in (w for w in limits.split() if "QOS" in w):
            change("modify", "account", name, "set", word.replace("QOS=+", "QOS+="))
    for name, account, limits in USERS:
        change("add", "user", name, f"account={account}", *(w for w in limits.split() if "QOS-" not in w))
        for word in (w for w in limits.split() if "QOS-" in w):
            change("modify", "user", name, "set", word, "where", f"account={account}")
    change("add", "user", "news", "account=vision", "partition=gpu", "MaxJobs=6")
    conf = lab.folder / "slurm.conf"
    conf.write_text(conf.read_text("utf-8") + MORE, "utf-8")
    lab.run("scontrol", "reconfigure")
    lab.run("sacctmgr", "dump", "lab", f"file={lab.folder / 'work' / 'dump.cfg'}")
    commands = {
        "config.txt": ("scontrol", "show", "config"),
        "partitions.txt": ("scontrol", "--oneliner", "show", "partitions"),
        "nodes.txt": ("scontrol", "--oneliner", "show", "nodes"),
        "assoc.txt": ("sacctmgr", "-P", "show", "assoc", f"format={COLUMNS}"),
        "qos.txt": ("sacctmgr", "-P", "show", "qos"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, command in commands.items():
        (folder / name).write_text(_plain(lab, lab.run(*command)), "utf-8")
    for path in (conf, lab.folder / "topology.conf", lab.folder / "jobs" / "dump.cfg"):
        (folder / path.name).write_text(_plain(lab, path.read_text("utf-8")), "utf-8")


def _plain(lab: Lab, text: str) -> str:
    """The text without what differs from one recording to the next and means nothing."""
    text = text.replace(str(lab.folder), "/lab")
    text = re.sub(r"(?m)^(Configuration data as of|BOOT_TIME\s*=).*$", r"\1 2026-11-22T00:00:00", text)
    return re.sub(r"\b(CPULoad|FreeMem|BootTime|SlurmdStartTime|LastBusyTime|OS)=\S.*?(?= \w+=|$)", r"\1=0", text)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    with Lab() as running:
        record(running, target)
