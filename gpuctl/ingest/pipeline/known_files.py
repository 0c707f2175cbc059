"""Files that gpuctl recognises and does not read: what each is, and what to export instead.

Asked only about files that no format claims. An entry decides by text at the beginning of a file that such a file has
and others have not.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Known(NamedTuple):
    """A kind of file that is not read.

    Attributes:
        what: what it is.
        instead: what to export instead.
        sign: matches somewhere in the first 64 KiB of such a file.
        example: the beginning of one, for tests.
    """

    what: str
    instead: str
    sign: re.Pattern[bytes]
    example: bytes


def _sign(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode())


_LSF = "the accounting file lsb.acct (LSB_SHAREDIR/CLUSTER/logdir), which has every job that ended"
_SGE = "the accounting file ($SGE_ROOT/$SGE_CELL/common/accounting or accounting.jsonl)"
_CONDOR = "condor_history -json, condor_history -epochs -json, and for what waits and runs condor_q -json"
_PBS = "the accounting log (server_priv/accounting), and for what waits and runs qstat -f -F json"
_YARN = "the ResourceManager's log, or its answer /ws/v1/cluster/apps, which have the GPUs of every application"
_RAY = (
    "the jobs that hold the GPUs for it, by the scheduler below Ray (sacct, kubectl get workloads -o json, ...), "
    "and its use of them by Prometheus (gpuctl ingest --from prometheus)"
)
KNOWN = (
    Known(
        "events of LSF (lsb.events)", _LSF,
        _sign(r'\A(?:#[ \d]*\r?\n)?"(?:JOB_NEW|JOB_START|JOB_START_ACCEPT|JOB_STATUS|JOB_EXECUTE|MBD_START)" "\d'),
        b'#5120\n"JOB_NEW" "10.1" 1800000000 101 1001 33816578\n',
    ),
    Known(
        "the event stream of LSF (lsb.stream)", _LSF, _sign(r'\A"JOB_FINISH2" "\d'),
        b'"JOB_FINISH2" "10.1" 1800000000 101 3 "userId" "1001"\n',
    ),
    Known(
        "the task log of LSF's remote execution (lsf.acct)", _LSF,
        _sign(r'\A\d{1,9} "[^"\s]+" -?\d+ \d{9,10} \d{9,10} "[^"]*" "[^"]*" '),
        b'4711 "eve" 0 1800000000 1800000060 "login1" "n1" "/home/eve" "hostname" 0.1 0.1\n',
    ),
    Known(
        "the screen of bhist, bjobs -l or bacct -l", _LSF, _sign(r"(?m)^Job <\d+(?:\[\d+\])?>, "),
        b"\nJob <101>, Job Name <fit>, User <eve>, Project <vision>, Command <run>\n",
    ),
    Known(
        "bjobs -json, whose times have no year and no seconds", _LSF, _sign(r'"COMMAND"\s?:\s?"bjobs"'),
        b'{"COMMAND":"bjobs","JOBS":1,"RECORDS":[{"JOBID":"101","STAT":"RUN","SUBMIT_TIME":"Jan 15 08:00"}]}',
    ),
    Known(
        "the table of bjobs", _LSF, _sign(r"(?m)\A\s*JOBID +USER +STAT +QUEUE"),
        b"JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME\n",
    ),
    Known(
        "the screen of qacct -j", _SGE, _sign(r"(?m)^={20,}\s*\r?\nqname +\S"),
        b"==============================================================\nqname        gpu.q\nhostname     n1\n",
    ),
    Known(
        "the table of qstat of Grid Engine", _SGE, _sign(r"(?m)^job-ID +prior +name"),
        b"job-ID  prior   name       user         state submit/start at     queue\n-------\n",
    ),
    Known(
        "qstat -xml of Grid Engine", _SGE, _sign(r"<(?:job_info|detailed_job_info)\b"),
        b"<?xml version='1.0'?>\n<job_info  xmlns:xsd=\"x\">\n  <queue_info>\n",
    ),
    Known(
        "a job's event log of HTCondor", _CONDOR, _sign(r"\A0\d\d \(\d+\.\d{3}\.\d{3}\) "),
        b"000 (107.000.000) 2027-01-15 08:00:00 Job submitted from host: <10.0.0.1:9618>\n...\n",
    ),
    Known(
        "the table of condor_q or condor_history", _CONDOR,
        _sign(r"(?m)^-- Schedd: \S|\A\s*ID +OWNER +SUBMITTED +RUN_TIME +ST"),
        b"\n\n-- Schedd: ap1.site : <10.0.0.1:9618> @ 01/15/27 08:00:00\nOWNER BATCH_NAME SUBMITTED\n",
    ),
    Known(
        "ClassAds of HTCondor's machines", f"jobs: {_CONDOR}; nodes: a CSV with the columns node, gpus, gpu_type",
        _sign(r'(?m)^MyType = "(?:Machine|Slot)"|"MyType"\s?:\s?"(?:Machine|Slot)"|<a n="MyType"><s>(?:Machine|Slot)<'),
        b'Activity = "Busy"\nMyType = "Machine"\nTotalGPUs = 8\n',
    ),
    Known(
        "qstat -f of PBS or Torque as text", _PBS, _sign(r"(?m)\A\s*Job Id: \d+\S*\r?\n\s+Job_Name = "),
        b"Job Id: 101.server\n    Job_Name = fit\n    Job_Owner = eve@login1\n",
    ),
    Known(
        "qstat -f -x of Torque (XML)", f"{_PBS}; Torque has no JSON, its accounting log has all that ended",
        _sign(r"\A\s*(?:<\?xml[^>]*>\s*)?<Data><Job><Job_Id>"),
        b"<Data><Job><Job_Id>101.server</Job_Id><Job_Name>fit</Job_Name>",
    ),
    Known(
        "pbsnodes as JSON", f"jobs: {_PBS}; nodes: a CSV with the columns node, gpus, gpu_type",
        _sign(r'"pbs_version"[\s\S]{0,400}"nodes"\s?:'),
        b'{"timestamp":1800000000,"pbs_version":"23.06","nodes":{"n1":{}}}',
    ),
    Known(
        "qstat -Q of PBS as JSON", _PBS, _sign(r'"pbs_version"[\s\S]{0,400}"Queue"\s?:'),
        b'{"timestamp":1800000000,"pbs_version":"23.06","pbs_server":"s","Queue":{"gpu":{}}}',
    ),
    Known(
        "a server log of PBS", _PBS, _sign(r"\A\d\d/\d\d/\d{4} \d\d:\d\d:\d\d(?:\.\d+)?;[0-9a-f]{4};"),
        b"01/15/2027 08:00:00;0008;Server@s;Job;101.s;Job Queued at request of eve@login1\n",
    ),
    Known(
        "sshare of Slurm",
        "sacctmgr -P show assoc, which has shares and limits; usage follows from sacct, and replay counts it",
        _sign(r"\A\s*Account\s*\|?\s*User\s*\|?\s*(?:Partition\s*\|?\s*)?(?:RawShares|NormShares)"),
        b"             Account       User  RawShares  NormShares    RawUsage  EffectvUsage  FairShare\n",
    ),
    Known(
        "sprio of Slurm",
        "sacct with the column Priority; weights are in slurm.conf, and jobs that wait in squeue --json",
        _sign(r"\A\s*JOBID[\s|]+(?:PARTITION[\s|]+)?(?:USER[\s|]+)?(?:ACCOUNT[\s|]+)?(?:QOS[\s|]+)?PRIORITY[\s|]"),
        b"          JOBID PARTITION   PRIORITY       SITE        AGE  FAIRSHARE\n",
    ),
    Known(
        "sreport of Slurm about something else than GPU time",
        "sreport -P -t hours -T gres/gpu cluster Utilization or AccountUtilizationByUser, which is compared with sacct",
        _sign(r"\A-{20,}\r?\n[^\n]{3,120} \d{4}-\d\d-\d\dT"),
        b"-" * 80 + b"\nTop 10 Users 2027-01-15T00:00:00 - 2027-01-15T23:59:59 (86400 secs)\n",
    ),
    Known(
        "the table of squeue, which has no time", "squeue --json, or samples of it (gpuctl sample)",
        _sign(r"\A\s*JOBID\s+PARTITION\s+(?:NAME|USER\s+(?!PRIORITY))|\A(?=[^\n]*\bJOBID\|)[^\n]*\|NODELIST"),
        b"             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n",
    ),
    Known(
        "the table of sinfo, which has no time",
        "sinfo -N --json, scontrol show node, or samples of it (gpuctl sample)",
        _sign(r"\APARTITION\s+AVAIL\s|\AAVAIL\||\APARTITION\|AVAIL|\AREASON\s+USER\s+TIMESTAMP"),
        b"PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\n",
    ),
    Known(
        "reservations of Slurm (scontrol show reservation)",
        "nothing: sacct has the jobs that ran in them, and sacctmgr -P show event the nodes that were taken out",
        _sign(r'(?m)\AReservationName=\S|"reservations"\s?:\s?\['),
        b"ReservationName=maint StartTime=2027-01-15T08:00:00 EndTime=2027-01-15T12:00:00 Duration=04:00:00\n",
    ),
    Known(
        "sdiag of Slurm", "sacct; gpuctl sample records squeue and sinfo at instants",
        _sign(r'(?m)^sdiag output at |"statistics"\s?:\s?\{[\s\S]{0,200}"(?:parts_packed|req_time)"'),
        b"*" * 55 + b"\nsdiag output at Fri Jan 15 08:00:00 2027 (1800000000)\n",
    ),
    Known(
        "a job trace of Rumen", _YARN,
        _sign(r'"jobID"\s?:\s?"job_\d+_\d+"[\s\S]{0,4000}"(?:mapTasks|heapMegabytes|computonsPerMapInputByte)"'),
        b'{"jobID" : "job_1800000000000_0001", "user" : "eve", "computonsPerMapInputByte" : -1, "mapTasks" : []}',
    ),
    Known(
        "events of Kubernetes without the objects that they are about",
        "the objects with them: kubectl get workloads.kueue.x-k8s.io,events -A -o json, or as they change: "
        "kubectl get workloads.kueue.x-k8s.io -A -w --output-watch-events -o json",
        _sign(r'"kind"\s?:\s?"Event(?:List)?"'),
        b'{"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Event","reason":"FailedScheduling"}],"kind":"List"}',
    ),
    Known(
        "jobs of Ray (api/jobs, ray list jobs), which do not state the GPUs of their tasks", _RAY,
        _sign(r'"submission_id"\s?:[\s\S]{0,4000}"entrypoint"\s?:|"entrypoint"\s?:[\s\S]{0,4000}"submission_id"\s?:'),
        b'[{"type":"SUBMISSION","job_id":"01000000","submission_id":"raysubmit_1","entrypoint":"python fit.py"}]',
    ),
    Known(
        "the screen of ray job list", _RAY, _sign(r"\bJobDetails\(\s*type=<JobType\."),
        b"[JobDetails(type=<JobType.SUBMISSION: 'SUBMISSION'>, job_id='01000000', status=<JobStatus.RUNNING>)]",
    ),
    Known(
        "exported events of Ray", _RAY, _sign(r'"source_type"\s?:\s?"EXPORT_[A-Z_]{3,40}"'),
        b'{"event_id":"1","timestamp":1800000000,"source_type":"EXPORT_SUBMISSION_JOB","event_data":{}}\n',
    ),
    Known(
        "a log of Ray's daemons", _RAY,
        _sign(r"(?m)^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [IWEC] \d+ \d+\] \(?(?:gcs_server|raylet)\)?"),
        b"[2027-01-15 08:00:00,123 I 4711 4711] (gcs_server) io_service_pool.cc:35: started\n",
    ),
)  # fmt: skip
"""In the order in which they are tried."""


def known_file(head: bytes) -> str | None:
    """Return what a file is that is not read, and what to export instead; None if it is none of these.

    Args:
        head: its first 64 KiB, decompressed.
    """
    text = head.removeprefix(b"\xef\xbb\xbf")
    found = next((known for known in KNOWN if known.sign.search(text)), None)
    return None if found is None else f"{found.what}, which is not read; export instead: {found.instead}"
