"""One small file of every format that gpuctl reads, for tests that go over all of them."""

from __future__ import annotations

import gzip
import json
import zipfile
from functools import cache
from pathlib import Path

from tests import slurm_site_files
from tests.trace_files import TRACES
from tests.unit.ingest.slurm.test_dbd import QOS
from tests.unit.ingest.slurm.test_limits_json import ASSOC
from tests.unit.ingest.slurm.test_tacc import HEADER, ROW
from tests.unit.ingest.yarn import cluster as yarn

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "tests" / "fixtures"
SAMPLES = ROOT / "sample_data"

PHILLY_JOB = (
    '{"status": "Pass", "vc": "ee9e8c", "jobid": "application_1506638472019_%d", "attempts": [{"start_time": '
    '"2017-10-09 10:2%d:01", "end_time": "2017-10-09 11:00:00", "detail": [{"ip": "m%d", "gpus": ["gpu0", "gpu1"]}]}], '
    '"submitted_time": "2017-10-09 10:19:00", "user": "abc123"}'
)
PHILLY = {
    "cluster_job_log": ("[" + ",\n".join(PHILLY_JOB % (i, i % 10, i % 3) for i in range(12)) + "]").encode(),
    "cluster_machine_list": b"machineId, number of GPUs, single GPU mem\nm0,8, 24GB\nm1,2, 12GB\nm2,8, 24GB\n",
    "cluster_gpu_util": b"time,machineId,gpu0_util,gpu1_util\n"
    + b"".join(b"2017-10-09 10:%02d:00 PDT,m%d,60.8,NA,\n" % (i, i % 3) for i in range(40)),
    "cluster_cpu_util": b"time,machine_id,cpu_util\n"
    + b"".join(b"2017-10-09 10:%02d:00 PDT,m%d,%d.5\n" % (i, i % 3, i) for i in range(40)),
    "cluster_mem_util": b"time,machine_id,mem_total,mem_free\n"
    + b"".join(b"2017-10-09 10:%02d:00 PDT,m%d,528272672.0,%d.5\n" % (i, i % 3, i) for i in range(40)),
}
PHILLY_CSV = "timestamp,duration,num_gpus,gpu_time,cluster\n" + "".join(
    f"2017-10-09 10:{minute}:00,{60 * minute},{gpus},{60 * minute * gpus},ee9e8c\n"
    for minute, gpus in ((10, 1), (11, 8), (13, 2), (25, 16))
)
HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n" + "".join(
    f"{k},u{k % 3},vc{k % 2},{k},{4 * k},1,{state},{day} 10:00:00,{day} 10:05:0{k},{day} 12:00:00,0,0\n"
    for k, state in enumerate(("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"), 1)
    for day in [f"2020-04-0{k}"]
)
SEREN = (
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
) + "".join(
    f"{k},u{k % 3},1,8,128,Eval,{state},{hour}:00:00+08:00,{hour}:00:32+08:00,{hour}:30:00+08:00,1768,32,14144.0\n"
    for k, state in enumerate(("COMPLETED", "FAILED", "CANCELLED"), 1)
    for hour in [f"2023-03-01 0{k}"]
)
KALOS = (
    "job_id,user,node_num,gpu_num,cpu_num,mem_per_pod_GB,shared_mem_per_pod,type,state,submit_time,start_time,end_time,"
    "fail_time,stop_time,duration,queue,gpu_time\n"
) + "".join(
    f"dlc{k}a,u{k % 3},2,16,128,1000,100.0,Pretrain,{state},{hour}:00:00+00:00,{hour}:00:10+00:00,{hour}:00:30+00:00,,,"
    "30,10.0,480.0\n"
    for k, state in enumerate(("COMPLETED", "FAILED", "CANCELLED"), 1)
    for hour in [f"2023-05-17 0{k}"]
)
SREPORT = "\n".join([
    "-" * 80,
    "Cluster/Account/User Utilization 2026-11-20T00:00:00 - 2026-11-20T23:59:59 (86400 secs)",
    "Usage reported in TRES Hours",
    "-" * 80,
    "Cluster|Account|Login|Proper Name|TRES Name|Used",
    "c|root|||gres/gpu|53",
    "c|vision|||gres/gpu|53",
    *(f"c|vision|u{k}|A B|gres/gpu|{10 * k}" for k in range(4)),
    "",
])  # fmt: skip
PAI = "".join(f"job{k % 3},task,w{k},inst{k},m{k},V100,{k}.5,1.5,2.5,3.5,0.1,0.2,{k}e6,{k}e5,1,2\n" for k in range(9))


@cache
def example_files() -> dict[str, tuple[str, bytes]]:
    """Format name -> (a usual file name, the bytes of a small file of it); archives hold many formats."""
    site = {
        f"slurm-{name.replace('_', '-')}": (_site_name(name), text.encode())
        for name, text in slurm_site_files.EXCERPTS.items()
    }
    application = f"application_{yarn.START}_0001"
    return {
        **{f"philly-{name}": (f"cluster_{name.replace('-', '_')}", PHILLY[f"cluster_{name.replace('-', '_')}"])
           for name in ("gpu-util", "cpu-util", "mem-util")},
        "philly-jobs": ("cluster_job_log", PHILLY["cluster_job_log"]),
        "philly-machines": ("cluster_machine_list", PHILLY["cluster_machine_list"]),
        "philly-jobs-csv": ("philly.csv", PHILLY_CSV.encode()),
        "helios-jobs": ("cluster_log.csv", HELIOS.encode()),
        "acme-seren": ("trace_seren.csv", SEREN.encode()),
        "acme-kalos": ("trace_kalos.csv", KALOS.encode()),
        **{name: (file, text.encode()) for name, (file, text) in TRACES.items()},
        **site,
        "slurm-sacct": ("sacct.txt", _first_lines(FIXTURES / "slurm/scheduling/gpus/sacct.txt", 30)),
        "slurm-sacct-json": ("sacct.json", (FIXTURES / "slurm/other/sacct.json").read_bytes()),
        "slurm-limits-json": ("assoc.json", json.dumps({"associations": ASSOC}, indent=1).encode()),
        "slurm-state-json": ("sinfo.json", (FIXTURES / "slurm/state/sinfo.json").read_bytes()),
        "slurm-jobcomp": ("jobcomp.log", _first_lines(FIXTURES / "slurm/other/jobcomp.log", 20)),
        "slurm-dbd": ("slurmdbd.sql", (FIXTURES / "slurm/other/slurmdbd.sql").read_bytes()),
        "slurm-dbd-names": ("qos_table.tsv", QOS.encode()),
        "slurm-tacc": ("ls6-a100.log", (HEADER + ROW.rstrip("\n") + "\n").encode()),
        "yarn-rm-log": ("yarn-rm.log", yarn.rm_log(yarn.everything(), modern=True).text()),
        "yarn-nm-log": ("yarn-nm.log", yarn.nm_log(yarn.everything(), "n1").text()),
        "yarn-app-summary": ("rm-appsummary.log", yarn.summary_log(yarn.everything())),
        "yarn-rest-apps": ("apps.json", yarn.rest_apps(yarn.everything())),
        "yarn-rest-nodes": ("nodes.json", _member("rest-30s.zip", "nodes")),
        "yarn-rest-scheduler": ("scheduler.json", _member("rest-30s.zip", "scheduler")),
        "yarn-ats": ("applicationhistory.json", yarn.ats_apps(yarn.everything())),
        "yarn-container-logs": (
            "application_1795312917097_0001.log",
            (FIXTURES / "joboutput/3.5.0-gz/application_1795312917097_0001.log").read_bytes(),
        ),
        "yarn-aggregated-logs": (
            f"logs/{application}/node01_45454",
            next((FIXTURES / "joboutput/3.5.0-none/aggregated").rglob("node01_*")).read_bytes(),
        ),
        "slurm-sreport": ("sreport.txt", SREPORT.encode()),
        "job-output": ("slurm-4711.out", (FIXTURES / "progress/torch_example.log").read_bytes()),
        "traffic-csv": ("profile.csv", _first_lines(SAMPLES / "pickyman/traffic.csv", 60)),
        "traffic-flows": ("flows.csv", (FIXTURES / "traffic/nfdump-1.7.1.csv").read_bytes()),
        "traffic-mountstats": ("mountstats.txt", (FIXTURES / "traffic/mountstats.txt").read_bytes()),
        "traffic-netdev": ("netdev.txt", (FIXTURES / "traffic/netdev.txt").read_bytes()),
        "traffic-nfsiostat": ("nfsiostat.txt", (FIXTURES / "traffic/nfsiostat.txt").read_bytes()),
        "traffic-prometheus": ("prometheus.json", (FIXTURES / "traffic/prometheus.json").read_bytes()),
        "traffic-pai": ("pai_sensor_table.csv", PAI.encode()),
        "profile-jobs": ("jobs.csv", _first_lines(SAMPLES / "pickyman/jobs.csv", 20)),
        "node-list": ("nodes.csv", _first_lines(FIXTURES / "reliability/nodes.csv", 12)),
        "gpu-amd-smi": _telemetry("amd01.csv"),
        "gpu-dcgmi-dmon": _telemetry("dcgmi-dmon.gpu03.20261031T020700Z.1s.txt"),
        "gpu-dcgmi-stats": _telemetry("dcgmi-stats-410202.gpu02.txt"),
        "gpu-gmond": _telemetry("gmond.gpu01.xml"),
        "gpu-dmon": _telemetry("dmon.gpu01.log"),
        "gpu-ganglia": ("gpu05/gpu0_util.fetch.txt", _telemetry("gpu0_util.fetch.txt")[1]),
        "gpu-kernel-log": _telemetry("kernel.gpu03.log"),
        "gpu-ldms": _telemetry("dcgm.1793401200.csv"),
        "gpu-nvidia-smi": _telemetry("gpu02.csv"),
        "gpu-nvidia-smi-xml": _telemetry("nvidia-smi-q.gpu02.xml"),
        "gpu-prometheus-answers": _telemetry("query.json"),
        "gpu-prometheus-text": _telemetry("gpu03.20261031T020700Z.prom"),
        "gpu-telegraf": _telemetry("telegraf.influx"),
        "suspensions": ("suspensions.csv", _first_lines(SAMPLES / "pickyman/suspensions.csv", 20)),
        "lsf-acct": _batch("lsb.acct"),
        "sge-accounting": _batch("accounting"),
        "sge-accounting-json": _batch("accounting.jsonl"),
        "htcondor-history": _batch("history"),
        "pbs-qstat-json": _batch("qstat.json"),
        "yarn-jhist": (
            "job_1800000000000_0011-json.jhist",
            (FIXTURES / "yarn/jhist/job_1800000000000_0011-json.jhist").read_bytes(),
        ),
        "yarn-sls": ("jobs.json", (FIXTURES / "yarn/sls/jobs.json").read_bytes()),
        "spark-events": _spark("app-20270115080000-0001"),
    }  # fmt: skip


def _telemetry(name: str) -> tuple[str, bytes]:
    return name, (FIXTURES / "telemetry" / name).read_bytes()


def _batch(name: str) -> tuple[str, bytes]:
    return name, (FIXTURES / "batch" / name).read_bytes()


def _spark(name: str) -> tuple[str, bytes]:
    return name, (FIXTURES / "spark" / name).read_bytes()


def _site_name(name: str) -> str:
    return {
        "conf": "slurm.conf",
        "ctld": "slurmctld.log",
        "gres_conf": "gres.conf",
        "topology": "topology.conf",
        "topology_yaml": "topology.yaml",
        "sacctmgr_dump": "dump.cfg",
    }.get(name, f"{name}.txt")


def _first_lines(path: Path, count: int) -> bytes:
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    return b"".join(data.splitlines(keepends=True)[:count])


def _member(archive: str, word: str) -> bytes:
    with zipfile.ZipFile(FIXTURES / "yarn/3.5.0" / archive) as packed:
        return packed.read(next(name for name in packed.namelist() if word in name))
