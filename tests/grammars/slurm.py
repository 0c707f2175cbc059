"""Slurm: accounting as text and JSON, the queue and the nodes as JSON, scontrol, slurm.conf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.grammars.shapes import faulty, json_text, table

if TYPE_CHECKING:
    from tests.grammars.values import Values

STATES = (
    *("COMPLETED", "COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "CANCELLED by 1001", "NODE_FAIL"),
    *("OUT_OF_MEMORY", "PREEMPTED", "REQUEUED", "RUNNING", "PENDING", "SUSPENDED", "RESIZING", "REVOKED", "DEADLINE"),
    *("BOOT_FAIL", "COMPLETING", "CONFIGURING", "SPECIAL_EXIT", "STOPPED"),
)
NODES = ("n1", "n2", "n[1-2]", "n[1,3]", "gpu[001-003],n4", "None assigned", "", "n1-ib")
GRES = (
    *("gpu:4", "gpu:a100:8", "gpu:a100:4,gpu:h100:4", "gpu:(null):3(IDX:0-1,3)", "gpu:a100:2(IDX:0,5)", "(null)", ""),
    *(
        "gpu:1g.10gb:7",
        "gpu:a100_3g.20gb:2",
        "mps:400",
        "shard:32",
        "gpu",
        "gpu:no_consume:4",
        "gpu:0",
        "nic:2,gpu:2(S:0)",
    ),
)
COLUMNS = (
    *("JobID", "JobIDRaw", "JobName", "User", "Account", "QOS", "Partition", "Submit", "Eligible", "Start", "End"),
    *(
        "State",
        "ExitCode",
        "DerivedExitCode",
        "Priority",
        "Timelimit",
        "TimelimitRaw",
        "Elapsed",
        "ElapsedRaw",
        "Restarts",
    ),
    *("NNodes", "AllocCPUS", "ReqCPUS", "ReqMem", "ReqTRES", "AllocTRES", "NodeList", "Reason", "Cluster", "Suspended"),
)


def _job(values: Values, number: int) -> dict[str, object]:
    submit = values.draw.randrange(0, 86_400)
    start = submit + values.draw.randrange(0, 7_200)
    run = values.draw.randrange(0, 14_400)
    state = values.text(*STATES)
    gpus = values.digits(0, 16)
    tres = values.text(
        f"billing=8,cpu=8,gres/gpu={gpus},mem=64G,node=1",
        f"cpu=8,gres/gpu:a100={gpus},gres/gpu={gpus},node=2",
        "cpu=8,mem=4000M,node=1",
        "billing=1",
        "",
        f"gres/gpu:1g.10gb={gpus}",
        f"gres/mps={gpus}",
        "gres/shard=2,cpu=1",
    )
    form = "%s" if values.draw.random() < 0.1 else "%Y-%m-%dT%H:%M:%S"
    started = state not in ("PENDING", "REVOKED")
    job_id = values.text(
        str(number), str(number), f"{number}_{number % 5}", f"{number}+1", f"{number}_[1-9%2]", f"{number}.batch"
    )
    return {
        "JobID": job_id,
        "JobIDRaw": str(number),
        "JobName": values.text("train", "bash", "eval x"),
        "User": values.text("ada", "bob"),
        "Account": values.text("vision", "nlp"),
        "QOS": values.text("normal", "high"),
        "Partition": values.text("gpu", "cpu", "gpu,cpu"),
        "Submit": values.time(submit, form),
        "Eligible": values.time(submit + values.draw.choice((0, 0, 60)), form),
        "Start": values.time(start, form) if started else "Unknown",
        "End": "Unknown" if state in ("RUNNING", "PENDING") else values.time(start + run, form),
        "State": state,
        "ExitCode": values.text("0:0", "1:0", "0:9", "137:0"),
        "DerivedExitCode": "0:0",
        "Priority": values.digits(0, 5000),
        "Timelimit": values.duration(values.draw.randrange(60, 900_000)),
        "TimelimitRaw": values.digits(1, 9000),
        "Elapsed": values.duration(run),
        "ElapsedRaw": values.digits(run, run),
        "Restarts": values.digits(0, 3),
        "NNodes": values.digits(1, 4),
        "AllocCPUS": values.digits(1, 128),
        "ReqCPUS": values.digits(1, 128),
        "ReqMem": values.text("4000M", "64G", "2Gc", "1Tn", "0"),
        "ReqTRES": tres,
        "AllocTRES": tres if started else "",
        "NodeList": values.text(*NODES),
        "Reason": values.text("None", "Resources"),
        "Cluster": "lab",
        "Suspended": values.duration(0),
    }


def sacct_text(values: Values) -> dict[str, bytes]:
    """What sacct -P prints, in some choice of columns."""
    left_out = set(values.draw.sample(COLUMNS[1:], values.draw.randrange(0, 12)))
    columns = [name for name in COLUMNS if name not in left_out]
    jobs = [_job(values, values.draw.randrange(1, 60) if values.chance(0.1) else k) for k in range(1, 13)]
    rows = [[job[name] for name in columns] for job in jobs]
    return {"sacct.txt": table(columns, rows, values, "|").encode("utf-8", "replace")}


def _set_number(values: Values, number: object) -> object:
    """A number as newer versions of Slurm's JSON have it: in an object that says whether it is set."""
    if values.chance(0.5):
        return number
    return {"set": values.chance(0.8), "infinite": values.chance(0.1), "number": number}


def sacct_json(values: Values) -> dict[str, bytes]:
    """What sacct --json prints, old and new forms mixed."""
    jobs = []
    for number in range(1, 9):
        submit = values.seconds()
        start = submit + 60 if isinstance(submit, int) else 0
        gpus = values.whole(0, 8)
        state = values.text(*STATES)
        jobs.append(
            {
                "job_id": values.whole(number, number),
                "name": values.text("train"),
                "user": values.text("ada", "bob"),
                "account": values.text("nlp"),
                "partition": values.text("gpu"),
                "qos": "normal",
                "cluster": "lab",
                "state": {"current": values.one_of((state, [state], [state, "COMPLETING"])), "reason": "None"},
                "time": {
                    "submission": submit,
                    "eligible": submit,
                    "start": values.one_of((start, start, 0)),
                    "end": values.one_of((start + 600, 0)),
                    "elapsed": values.whole(600, 600),
                    "suspended": 0,
                    "limit": _set_number(values, values.whole(1, 9000)),
                },
                "exit_code": {"status": ["SUCCESS"], "return_code": _set_number(values, values.whole(0, 255))},
                "nodes": values.text(*NODES),
                "allocation_nodes": values.whole(1, 4),
                "array": {
                    "job_id": values.whole(0, 9),
                    "task_id": _set_number(values, None),
                    "task": values.text("", "1-3"),
                },
                "het": {"job_id": 0, "job_offset": None},
                "restart_cnt": values.whole(0, 2),
                "priority": _set_number(values, values.whole(0, 5000)),
                "required": {"CPUs": values.whole(1, 64)},
                "tres": {
                    kind: [
                        {"type": "cpu", "name": None, "id": 1, "count": values.whole(1, 64)},
                        {"type": "gres", "name": "gpu", "id": 1001, "count": gpus},
                        {
                            "type": "gres",
                            "name": values.text("gpu:a100", "gpu:1g.10gb", "mps"),
                            "id": 1002,
                            "count": gpus,
                        },
                    ]
                    for kind in ("allocated", "requested")
                },
                "steps": [],
                "flags": [],
            }
        )
    answer = {"meta": {"plugin": {"type": "openapi/v0.0.40"}}, "errors": [], "jobs": jobs}
    return {"sacct.json": json_text(faulty(answer, values), values).encode()}


def squeue_json(values: Values) -> dict[str, bytes]:
    """What squeue --json prints, under a name that has its time."""
    jobs: list[dict[str, Any]] = [
        {
            "job_id": values.whole(k, k),
            "job_state": values.one_of((["PENDING"], "PENDING", ["RUNNING"], "RUNNING")),
            "state_reason": values.text("Resources", "Priority", "QOSMaxGRESPerUser", "None", "Dependency"),
            "submit_time": _set_number(values, values.seconds()),
            "eligible_time": _set_number(values, values.seconds()),
            "start_time": _set_number(values, values.seconds()),
            "end_time": _set_number(values, values.seconds(90_000)),
            "user_name": values.text("ada", "bob"),
            "account": values.text("nlp"),
            "partition": values.text("gpu"),
            "name": values.text("train"),
            "nodes": values.text(*NODES),
            "node_count": _set_number(values, values.whole(1, 4)),
            "cpus": _set_number(values, values.whole(1, 64)),
            "time_limit": _set_number(values, values.whole(1, 9000)),
            "tres_req_str": values.text("cpu=1,gres/gpu=4", "cpu=2"),
            "tres_alloc_str": values.text("cpu=1,gres/gpu=4", ""),
            "gres_detail": values.one_of(([values.text(*GRES)], [])),
            "priority": _set_number(values, values.whole(0, 9999)),
            "array_job_id": _set_number(values, values.whole(0, 9)),
            "restart_cnt": values.whole(0, 3),
        }
        for k in range(1, values.draw.choice((1, 2, 9)))
    ]
    answer = {"meta": {}, "errors": [], "jobs": jobs, "last_update": _set_number(values, values.seconds())}
    name = values.one_of(("squeue.json", f"squeue-{values.digits(1_790_000_000, 1_799_999_999).strip()}.json"))
    return {name.replace("/", "_"): json_text(faulty(answer, values), values).encode()}


def sinfo_json(values: Values) -> dict[str, bytes]:
    """What sinfo --json or scontrol show node --json prints."""
    nodes = [
        {
            "name": values.text(f"n{k}"),
            "state": values.one_of((["IDLE"], "mixed", ["ALLOCATED", "DRAIN"], ["DOWN"])),
            "gres": values.text(*GRES),
            "gres_used": values.text(*GRES),
            "cpus": values.whole(32, 32),
            "real_memory": values.whole(120_000, 120_000),
            "partitions": values.one_of((["gpu"], ["gpu", "cpu"], [])),
            "free_memory": _set_number(values, values.whole(0, 9)),
            "tres": values.text("cpu=32,mem=120000M,gres/gpu=4", ""),
            "tres_used": values.text("cpu=2,gres/gpu=3", ""),
            "boot_time": _set_number(values, values.seconds()),
            "reason": "",
            "sockets": 2,
            "cores": 16,
            "threads": 1,
            "alloc_cpus": values.whole(0, 32),
        }
        for k in range(1, values.draw.choice((1, 2, 6)))
    ]
    answer = {"meta": {"slurm": {}}, "errors": [], "nodes": nodes}
    return {"sinfo.json": json_text(faulty(answer, values), values).encode()}


def scontrol_node(values: Values) -> dict[str, bytes]:
    """What scontrol show node prints, a line per node or several."""
    between = values.one_of(("\n   ", " "))
    found = []
    for k in range(1, 5):
        state = values.text("IDLE", "MIXED+DRAIN", "DOWN*")
        parts = [
            f"NodeName={values.text(f'n{k}')} Arch=x86_64 CoresPerSocket=16",
            f"CPUAlloc={values.digits(0, 32)} {values.one_of(('CPUEfctv=32 ', ''))}"
            f"CPUTot={values.digits(32, 32)} CPULoad=5.6",
            "AvailableFeatures=(null)",
            f"Gres={values.text(*GRES)}",
            f"RealMemory={values.digits(120_000, 120_000)} AllocMem=0 FreeMem=22297 Sockets=2 Boards=1",
            f"State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1",
            f"Partitions={values.text('gpu', 'gpu,cpu')}",
            f"BootTime={values.time(0)} SlurmdStartTime={values.time(5)}",
            f"CfgTRES={values.text('cpu=32,mem=120000M,billing=32,gres/gpu=4', 'cpu=32')}",
            "AllocTRES=",
        ]
        found.append(between.join(part for part in parts if not values.is_edge()))
    return {"scontrol_node.txt": ("\n\n".join(found) + "\n").encode()}


def scontrol_job(values: Values) -> dict[str, bytes]:
    """What scontrol show job -d prints."""
    found = []
    for k in range(1, 5):
        parts = [
            f"JobId={values.digits(k, k)} JobName={values.text('train')}",
            f"UserId={values.text('ada')}(1001) GroupId=ada(1001) MCS_label=N/A",
            f"Priority={values.digits(1, 9)} Nice=0 Account={values.text('nlp')} QOS=normal",
            f"JobState={values.text('RUNNING', 'PENDING', 'COMPLETED')} Reason={values.text('None')} Dependency=(null)",
            f"Requeue=1 Restarts={values.digits(0, 3)} BatchFlag=1 Reboot=0 ExitCode=0:0",
            f"RunTime={values.duration(60)} TimeLimit={values.duration(3600)} TimeMin=N/A",
            f"SubmitTime={values.time(0)} EligibleTime={values.time(0)} AccrueTime={values.time(0)}",
            f"StartTime={values.time(60)} EndTime={values.time(3660)} Deadline=N/A",
            f"Partition=gpu AllocNode:Sid=login:1 NodeList={values.text(*NODES)} BatchHost=n1",
            f"NumNodes={values.digits(1, 2)} NumCPUs={values.digits(4, 4)} NumTasks=1 CPUs/Task=1",
            f"TRES={values.text('cpu=4,mem=4G,node=1,billing=4,gres/gpu=2', 'cpu=4')}",
            f"Nodes={values.text('n1', 'n[1-2]')} CPU_IDs=0-3 Mem=4000 GRES={values.text(*GRES)}",
        ]
        found.append("\n   ".join(part for part in parts if not values.is_edge()))
    return {"scontrol_job_detail.txt": ("\n\n".join(found) + "\n").encode()}


def slurm_conf(values: Values) -> dict[str, bytes]:
    """slurm.conf with its nodes and partitions, beside some accounting."""
    lines = [
        f"ClusterName={values.text('lab')}",
        f"SchedulerType={values.text('sched/backfill', 'sched/builtin')}",
        f"SelectType={values.text('select/cons_tres')}",
        f"PriorityType={values.text('priority/multifactor')}",
        f"PriorityWeightAge={values.digits(0, 9000)}",
        f"PriorityWeightFairShare={values.digits(0, 9000)}",
        f"PriorityDecayHalfLife={values.duration(604_800)}",
        f"PriorityMaxAge={values.duration(604_800)}",
        f"SchedulerParameters={values.text('bf_window=1440,bf_interval=30', 'bf_max_job_test=9', 'defer')}",
        f"AccountingStorageTRES={values.text('gres/gpu', 'gres/gpu,gres/gpu:a100', '')}",
        "GresTypes=gpu",
        f"NodeName={values.text('n[1-3]', 'n1')} CPUs={values.digits(32, 32)} RealMemory={values.digits(9000, 9000)} "
        f"Gres={values.text(*GRES)} State=UNKNOWN Weight={values.digits(1, 9)}",
        f"NodeName={values.text('n4')} Sockets={values.digits(2, 2)} CoresPerSocket=8 \\\n  Gres=gpu:2",
        f"PartitionName={values.text('gpu')} Nodes={values.text('n[1-3]', 'ALL')} Default=YES "
        f"MaxTime={values.duration(86_400)} State=UP PriorityTier={values.digits(1, 9)} OverSubscribe=NO",
        f"PartitionName={values.text('cpu')} Nodes={values.text('n4')} MaxNodes={values.digits(1, 9)} "
        f"PreemptMode={values.text('OFF', 'REQUEUE')} TRESBillingWeights=CPU=1.0,GRES/gpu={values.digits(1, 9)}",
    ]
    kept = [line for line in lines if not values.is_edge()]
    return {"slurm.conf": ("\n".join(kept) + "\n").encode(), **sacct_text(values)}


GRAMMARS = {
    "sacct-text": sacct_text,
    "sacct-json": sacct_json,
    "squeue-json": squeue_json,
    "sinfo-json": sinfo_json,
    "scontrol-node": scontrol_node,
    "scontrol-job": scontrol_job,
    "slurm-conf": slurm_conf,
}
