"""What the tests of a Slurm site's files share: a sink without a store, small excerpts, where the real files lie."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.philly_log import RecordingSink

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.ingest.core.format import Format
    from gpuctl.store.database import Store

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "slurm"
NAMES = (
    *("conf", "config", "ctld", "events", "gres_conf", "job_detail", "limits", "nodes", "partitions"),
    *("sacctmgr_dump", "sinfo_samples", "squeue_samples", "topology", "topology_yaml"),
)
CLUSTER = "lab"
PLACE: dict[str, Any] = {"cluster": CLUSTER, "timezone": "UTC"}


def site_format(name: str) -> Format:
    """The format of a module, by the module's name without ``slurm_``."""
    found: Format = importlib.import_module(f"gpuctl.ingest.formats.slurm_{name}").FORMAT
    return found


def site_formats() -> list[Format]:
    """All formats of files that a Slurm site has beside accounting, in the order of loading."""
    return sorted(map(site_format, NAMES), key=lambda f: (f.order, f.name))


def real(*parts: str) -> Path:
    """A real file; the test is skipped where there is none."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is not installed on this machine")
    return path


@dataclass
class Loose(RecordingSink):
    """A sink of an empty store; changes of what is in it come to nothing."""

    cluster: str = CLUSTER
    timezone: str = "UTC"

    def query(self, sql: str, params: dict[str, object] | None = None) -> pl.DataFrame:
        import polars as pl

        names = ("machine", "queue")
        return pl.DataFrame(schema={name: pl.String for name in names if name in sql})

    def execute(self, sql: str, params: dict[str, object] | None = None) -> None:
        """Change nothing."""


def machines(store: Store) -> dict[str, dict[str, Any]]:
    """The machines of a store by name."""
    rows = store.frame("SELECT * FROM machines").to_dicts()
    assert len({row["machine"] for row in rows}) == len(rows), "a machine has two rows"
    return {row["machine"]: row for row in rows}


NODES = """\
NodeName=c1-1 Arch=x86_64 CoresPerSocket=16
   CPUAlloc=0 CPUEfctv=32 CPUTot=32 CPULoad=5.61
   AvailableFeatures=(null)
   Gres=(null)
   NodeAddr=127.0.0.1 NodeHostName=vm Port=17051 Version=22.05.8
   OS=Linux 6.18.44-fc-v669 #1 SMP PREEMPT_DYNAMIC @0
   RealMemory=120000 AllocMem=0 FreeMem=22297 Sockets=2 Boards=1
   State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=cpu,preempt
   CfgTRES=cpu=32,mem=120000M,billing=32

NodeName=gpu001 Arch=x86_64 CoresPerSocket=32
   CPUAlloc=0 CPUEfctv=64 CPUTot=64 CPULoad=5.61
   Gres=gpu:a100:8(S:0-1)
   RealMemory=500000 AllocMem=0 FreeMem=22297 Sockets=2 Boards=1
   State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=20 Owner=N/A MCS_label=N/A
   Partitions=gpu,a100,debug,preempt
   CfgTRES=cpu=64,mem=500000M,billing=314,gres/gpu=8,gres/gpu:a100=8
   Reason=Gres=gpu:a100:99 is wrong RealMemory=1 [root@2026-11-20T21:06:50]

"""
CONF = """\
ClusterName=lab
SlurmctldHost=vm(127.0.0.1)
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=3,bf_continue  # a comment
AccountingStoragePass=/secret/socket
NodeName=DEFAULT RealMemory=250000 Sockets=2 CoresPerSocket=16 ThreadsPerCore=1
NodeName=gpu[001-002] Gres=gpu:a100:8 CPUs=64 \\
    RealMemory=500000 Feature=a100,ib
NodeName=gpu003 Gres=gpu:v100:2,gpu:a100:2,mps:100
NodeName=c1-1 RealMemory=120000
PartitionName=DEFAULT MaxTime=1-0 State=UP
PartitionName=gpu Nodes=gpu[001-003] Default=YES QOS=part-gpu
PartitionName=all Nodes=ALL
"""
GRES = """\
# who has what
NodeName=gpu[001-002] Name=gpu Type=a100 File=/dev/nvidia[0-3] Cores=0-31
NodeName=gpu[001-002] Name=gpu Type=a100 File=/dev/nvidia[4-7] Cores=32-63
NodeName=gpu003 Name=gpu Type=v100 Count=4
NodeName=gpu003 Name=mps Count=100
Name=gpu Type=h100 File=/dev/nvidia0
"""
TOPOLOGY = (
    "SwitchName=leaf1 Nodes=gpu[001-002]\nSwitchName=leaf2 Nodes=gpu003,c1-1\nSwitchName=spine Switches=leaf[1-2]\n"
)
SHOWN_TOPOLOGY = """\
SwitchName=leaf1 Level=0 LinkSpeed=1 Nodes=gpu[001-002]
SwitchName=leaf2 Level=0 LinkSpeed=1 Nodes=gpu003,c1-1
SwitchName=spine Level=1 LinkSpeed=1 Nodes=c1-1,gpu[001-003] Switches=leaf[1-2]
"""
YAML = """\
---
- topology: flat1
  cluster_default: false
  flat: true
- topology: blocks
  block:
    block_sizes:
      - 4
      - 16
    blocks:
      - block: b1
        nodes: gpu[001-003]
- topology: tree
  cluster_default: true
  tree:
    switches:
      - switch: spine
        children: leaf[1-2]
      - switch: leaf1
        nodes: gpu[001-002]   # two of them
      - switch: "leaf2"
        nodes: "gpu003,c1-1"
"""
PARTITIONS = """\
PartitionName=gpu
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=YES QoS=part-gpu
   Nodes=gpu[001-003]

PartitionName=cpu
   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL
   AllocNodes=ALL Default=NO QoS=N/A
   Nodes=c1-1
"""
CONFIG = """\
Configuration data as of 2026-11-20T21:12:58
AccountingStorageTRES   = cpu,mem,energy,node,billing,gres/gpu
AuthInfo                = socket=/lab/munge/s
SchedulerParameters     = bf_interval=3
SlurmctldHost[0]        = vm(127.0.0.1)

Cgroup Support Configuration:
ConstrainCores          = no

Slurmctld(primary) at vm is UP
"""
QOS = """\
Name|Priority|Flags|GrpTRES|GrpTRESMins|GrpJobs|MaxTRES|MaxTRESPerNode|MaxTRESPU|MaxTRESPA|MinTRES
normal|100|||||||||
capped|100|||||||gres/gpu=8||
part-gpu|100||cpu=64,gres/gpu=24,gres/gpu:a100=16|gres/gpu=1000||gres/gpu=8||gres/gpu=-1||
"""
ASSOC = """\
Cluster|Account|User|Partition|Share|GrpTRES|MaxTRES|QOS|Def QOS
lab|root|||1|gres/gpu=40||normal|
lab|teaching|||1|gres/gpu=12||normal|
lab|teaching|erin|a100|1||gres/gpu=2|normal|
lab|vision|bob||1|cpu=4|||
"""
DUMP = """\
# To edit this file start with a cluster line for the new cluster
Cluster - 'lab':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'teaching':Description='a: b':Organization='teaching':Fairshare=1:GrpTRES=gres/gpu=12
Parent - 'teaching'
User - 'erin':DefaultAccount='teaching':MaxTRESPerJob=gres/gpu=2,node=1
"""
EVENTS = """\
Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
lab||2026-11-20T21:04:24|Unknown||Cluster Registered TRES|
lab|c1-1|2026-11-20T21:04:24|2026-11-20T21:04:37|UNK|cold-start|root(0)
lab|gpu003|2026-11-20T21:06:50|2026-11-20T21:07:07|DRAIN|ECC errors | row remap pending|root(0)
lab|gpu001|2026-11-20T21:08:00|Unknown|DOWN*|Not responding|slurm(64030)
"""
SINFO = """\
1795208681.9|c1-1|idle|(null) |gpu:0 |0/32/0/32|0|none
1795208681.9|gpu001|mixed|gpu:a100:8(S:0-1) |gpu:a100:3(IDX:0,2-3) |2/62/0/64|2000|none
1795208681.9|gpu001|mixed|gpu:a100:8(S:0-1) |gpu:a100:3(IDX:0,2-3) |2/62/0/64|2000|none
1795208687.4|gpu001|drained*|gpu:a100:8(S:0-1) |gpu:a100:0(IDX:N/A) |0/64/0/64|0|ECC | remap
"""
SQUEUE = """\
SAMPLE_EPOCH|JOBID|ARRAY|STATE|REASON|PARTITION|QOS
1795208678.8|1|1|RUNNING|None|preempt|low
1795208678.8|7|7|PENDING|ReqNodeNotAvail, UnavailableNodes:gpu[001-004]|gpu|normal
1795208678.8|11|11_4|PENDING|Priority|gpu|normal
1795208678.8|11|11_[5-9:2,12%3]|PENDING|JobArrayTaskLimit|gpu|normal
1795208678.8|8|8|CONFIGURING|None|gpu|normal
1795208678.8|9|9|PENDING|Nodes required for job are DOWN, DRAINED or reserved|gpu|normal
"""
DETAIL = (
    "JobId=123 JobName=a UserId=x b UserId=alice(1001) GroupId=alice(1001) MCS_label=N/A Priority=1026 Nice=0 "
    "Account=vision QOS=normal JobState=RUNNING Reason=None Dependency=(null) Requeue=1 Restarts=0 BatchFlag=1 "
    "SubmitTime=2026-11-20T21:05:08 EligibleTime=2026-11-20T21:05:08 StartTime=2026-11-20T21:05:54 "
    "EndTime=2026-11-20T21:10:54 Partition=gpu AllocNode:Sid=localhost:3234 NodeList=gpu[007-008] NumNodes=2 "
    "TRES=cpu=2,mem=2000M,node=2,billing=98,gres/gpu=6,gres/gpu:v100=6 JOB_GRES=gpu:v100:6   Nodes=gpu007 CPU_IDs=0 "
    "Mem=1000 GRES=gpu:v100:4(IDX:0-3)   Nodes=gpu008 CPU_IDs=0 Mem=1000 GRES=gpu:v100:2(IDX:0,2) MinCPUsNode=1 "
    "Comment=Nodes=gpu009 CPU_IDs=0 Mem=1 GRES=gpu:v100:8(IDX:0-7) TresPerJob=gres:gpu:6 \n"
)
CTLD = """\
[2026-11-20T21:04:23.323] slurmctld version 22.05.8 started on cluster lab
[2026-11-20T21:04:37.750] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=80 usec=1162
[2026-11-20T21:04:38.586] sched: Allocate JobId=1 NodeList=gpu001 #CPUs=1 Partition=preempt
[2026-11-20T21:04:41.594] sched: Allocate JobId=11_0(14) NodeList=gpu006 #CPUs=2 Partition=gpu
[2026-11-20T21:04:42.797] update_node: node gpu005 reason set to: XID 79: GPU | fallen off
[2026-11-20T21:04:42.951] Killing JobId=8 on failed node gpu005
[2026-11-20T21:04:43.140] update_node: node gpu005 state set to DOWN
[2026-11-20T21:04:44.140] node_did_resp: node gpu005 returned to service
[2026-11-20T21:04:46.634] preempted JobId=1 has been requeued to reclaim resources for JobId=20_4(41)
[2026-11-20T21:04:46.637] slurm_job_preempt: preempted JobId=5 had to be killed
[2026-11-20T21:05:26.198] error: Nodes gpu[006-007] not responding, setting DOWN
[2026-11-20T21:05:28.411] node gpu006 returned to service
[2026-11-20T21:05:58.499] sched/backfill: _start_job: Started JobId=211 in gpu on gpu007
[2026-11-20T21:06:24.419] job_time_limit: Configuration for JobId=211 complete
[2026-11-20T21:06:24.419] Resetting JobId=211 start time for node power up
[2026-11-20T21:06:29.411] _job_complete: JobId=211 WEXITSTATUS 0
[2026-11-20T21:06:29.411] _job_complete: JobId=211 done
[2026-11-20T21:06:30.411] _job_complete: JobId=13+1(14) OOM failure
"""
EXCERPTS = {
    "conf": CONF,
    "config": CONFIG,
    "ctld": CTLD,
    "events": EVENTS,
    "gres_conf": GRES,
    "job_detail": DETAIL,
    "limits": ASSOC,
    "nodes": NODES,
    "partitions": PARTITIONS,
    "sacctmgr_dump": DUMP,
    "sinfo_samples": SINFO,
    "squeue_samples": SQUEUE,
    "topology": TOPOLOGY,
    "topology_yaml": YAML,
}
