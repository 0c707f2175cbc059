"""YARN, Kubernetes, PBS, SWF, CSV of jobs, experiments."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Any

from tests.grammars.shapes import faulty, json_text, table, xml_text

if TYPE_CHECKING:
    from tests.grammars.values import Values


QUOTED = '"proj x"'


# ---- YARN


def _properties(pairs: dict[str, str], values: Values) -> bytes:
    root = ET.Element("configuration")
    for name, value in pairs.items():
        one = ET.SubElement(root, "property")
        ET.SubElement(one, "name").text = name
        ET.SubElement(one, "value").text = "".join(each for each in value if each >= " ")
    return xml_text(root, values)


def capacity_scheduler(values: Values) -> dict[str, bytes]:
    """capacity-scheduler.xml, beside jobs of its queues."""
    base = "yarn.scheduler.capacity.root"
    pairs = {
        f"{base}.queues": values.text("a,b", "a, b,c", "a"),
        f"{base}.accessible-node-labels": values.text("*", "gpu"),
    }
    for queue in ("a", "b", "c"):
        pairs |= {
            f"{base}.{queue}.capacity": values.digits(0, 100),
            f"{base}.{queue}.maximum-capacity": values.digits(50, 100),
            f"{base}.{queue}.user-limit-factor": values.digits(1, 3),
            f"{base}.{queue}.minimum-user-limit-percent": values.digits(1, 100),
            f"{base}.{queue}.ordering-policy": values.text("fifo", "fair"),
            f"{base}.{queue}.maximum-applications": values.digits(1, 100),
            f"{base}.{queue}.accessible-node-labels.gpu.capacity": values.digits(0, 100),
            f"{base}.{queue}.state": values.text("RUNNING", "STOPPED"),
        }
    pairs["yarn.scheduler.capacity.node-locality-delay"] = values.digits(0, 40)
    pairs["yarn.scheduler.capacity.resource-calculator"] = values.text(
        "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
    )
    return {"capacity-scheduler.xml": _properties(pairs, values), **job_csv(values, queues=("a", "b"))}


def fair_scheduler(values: Values) -> dict[str, bytes]:
    """fair-scheduler.xml, beside jobs of its queues."""
    root = ET.Element("allocations")
    ET.SubElement(root, "defaultQueueSchedulingPolicy").text = values.one_of(("fair", "drf", "fifo"))
    for name in ("a", "b"):
        queue = ET.SubElement(root, "queue", name=name)
        for tag in (
            "weight",
            "maxRunningApps",
            "fairSharePreemptionTimeout",
            "fairSharePreemptionThreshold",
            "maxAMShare",
        ):
            ET.SubElement(queue, tag).text = "".join(c for c in values.digits(0, 9) if c >= " ")
        ET.SubElement(queue, "minResources").text = values.one_of(("1024 mb,1 vcores", "vcores=1,yarn.io/gpu=2", "10%"))
        inner = ET.SubElement(queue, "queue", name=values.one_of(("x", "a")))
        ET.SubElement(inner, "weight").text = values.one_of(("1", "0", "-1"))
    return {"fair-scheduler.xml": xml_text(root, values), **job_csv(values, queues=("a", "b"))}


def _resources(values: Values) -> dict[str, Any]:
    gpus = values.whole(0, 8)
    return {
        "memory": values.whole(0, 99_999),
        "vCores": values.whole(0, 64),
        "resourceInformations": {
            "resourceInformation": [
                {"name": name, "units": "", "value": value, "resourceType": "COUNTABLE"}
                for name, value in (("memory-mb", 1), ("vcores", 1), ("yarn.io/gpu", gpus))
            ]
        },
    }


def rest_apps(values: Values) -> dict[str, bytes]:
    """What /ws/v1/cluster/apps answers."""
    apps = []
    for k in range(1, values.draw.choice((1, 2, 8))):
        started = values.seconds()
        apps.append(
            {
                "id": values.text(f"application_1790000000000_{k:04}"),
                "user": values.text("ada"),
                "name": values.text("t"),
                "queue": values.text("root.a", "b"),
                "finalStatus": values.text("SUCCEEDED", "FAILED", "KILLED", "UNDEFINED"),
                "state": values.text("FINISHED", "RUNNING", "ACCEPTED", "KILLED", "FAILED", "NEW"),
                "startedTime": started * 1000,
                "launchTime": started * 1000 + values.whole(0, 90_000),
                "finishedTime": values.one_of((0, started * 1000 + 600_000)),
                "diagnostics": values.text("", "preempted"),
                "runningContainers": values.whole(-1, 8),
                "allocatedMB": values.whole(-1, 9999),
                "amContainerLogs": values.text(
                    "http://n1:8042/node/containerlogs/container_1790000000000_0001_01_000001/a"
                ),
                "resourceSecondsMap": {"entry": [{"key": "yarn.io/gpu", "value": values.digits(0, 9999)}]},
                "resourceInfo": {"resourceUsagesByPartition": [{"partitionName": "", "used": _resources(values)}]},
                "priority": values.whole(0, 9),
                "elapsedTime": values.whole(0, 10**6),
            }
        )
    shape = values.one_of(({"apps": {"app": apps}}, {"apps": {"app": apps}}, {"apps": None}, {"app": apps[:1]}))
    return {"apps.json": json_text(faulty(shape, values), values).encode()}


def rest_nodes(values: Values) -> dict[str, bytes]:
    """What /ws/v1/cluster/nodes answers."""
    nodes = [
        {
            "id": values.text(f"n{k}:45454"),
            "nodeHostName": values.text(f"n{k}"),
            "rack": values.text("/rack-a"),
            "state": values.text("RUNNING", "LOST", "UNHEALTHY"),
            "lastHealthUpdate": values.seconds() * 1000,
            "usedMemoryMB": values.whole(0, 999),
            "availMemoryMB": values.whole(0, 9999),
            "nodeLabels": ["gpu"],
            "usedVirtualCores": values.whole(0, 9),
            "availableVirtualCores": values.whole(0, 9),
            "usedResource": _resources(values),
            "availableResource": _resources(values),
            "totalResource": _resources(values),
        }
        for k in range(1, 5)
    ]
    return {"nodes.json": json_text(faulty({"nodes": {"node": nodes}}, values), values).encode()}


# ---- Kubernetes


def kube_objects(values: Values) -> dict[str, bytes]:
    """What kubectl get prints of Kueue's workloads, Volcano's jobs, pending and not, and of nodes."""
    items: list[dict[str, Any]] = []
    for k in range(1, values.draw.choice((1, 2, 6))):
        made = values.draw.randrange(0, 3_000)
        moments = ("QuotaReserved", "Admitted", "PodsReady", "Evicted", "Requeued", "Finished")
        reached = moments[: values.draw.randrange(0, len(moments) + 1)]
        conditions = [
            {
                "type": kind,
                "status": values.text("True", "False"),
                "reason": values.text(kind, "Succeeded", "Preempted"),
                "lastTransitionTime": values.time(made + 100 * n, "%Y-%m-%dT%H:%M:%SZ"),
            }
            for n, kind in enumerate(reached)
        ]
        gpus = values.one_of((values.digits(0, 8), values.whole(0, 8), "500m", "1k", "2Gi"))
        pod = {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": gpus, "cpu": "500m"}}}]}
        spec = {
            "queueName": "local",
            "priority": values.whole(0, 9),
            "podSets": [{"count": values.whole(1, 4), "template": {"spec": pod}}],
        }
        items.append(
            {
                "apiVersion": "kueue.x-k8s.io/v1beta1",
                "kind": "Workload",
                "spec": spec,
                "metadata": {
                    "name": values.text(f"w{k}"),
                    "namespace": "team",
                    "creationTimestamp": values.time(made, "%Y-%m-%dT%H:%M:%SZ"),
                    "ownerReferences": [{"kind": "Job", "name": values.text(f"w{k}")}],
                },
                "status": {"conditions": conditions} if conditions or values.chance(0.5) else {},
            }
        )
    phases = ("Pending", "Running", "Restarting", "Completed", "Failed", "Aborted")
    items.append(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "v", "namespace": "team", "creationTimestamp": values.time(0, "%Y-%m-%dT%H:%M:%SZ")},
            "spec": {
                "queue": "gold",
                "minAvailable": values.whole(1, 2),
                "tasks": [
                    {
                        "replicas": values.whole(1, 4),
                        "template": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 4}}}]}},
                    }
                ],
            },
            "status": {
                "state": {"phase": values.text(*phases)},
                "conditions": [
                    {"status": phase, "lastTransitionTime": values.time(60 * n, "%Y-%m-%dT%H:%M:%SZ")}
                    for n, phase in enumerate(phases[: values.draw.randrange(0, 6)])
                ],
            },
        }
    )
    items.append(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": values.text("n1"), "labels": {}},
            "status": {
                "capacity": {"nvidia.com/gpu": values.digits(8, 8), "cpu": "64", "memory": values.text("1024Gi")}
            },
        }
    )
    kind = values.one_of(("List", "WorkloadList", "List"))
    whole = {"kind": kind, "apiVersion": "v1", "metadata": {"resourceVersion": ""}, "items": items}
    if values.chance(0.2):
        return {"objects.json": "\n".join(json_text(faulty(item, values), values) for item in items).encode()}
    return {"workloads.json": json_text(faulty(whole, values), values).encode()}


# ---- PBS, SWF


def pbs(values: Values) -> dict[str, bytes]:
    """An accounting log of PBS Pro or Torque, with records of every kind."""
    lines = []
    for k in range(1, 8):
        job = values.text(f"{k}.srv", f"{k}[].srv", f"{k}[3].srv")
        queued = 1_790_000_000 + values.draw.randrange(0, 9_000)
        started = queued + values.draw.randrange(0, 900)
        ended = started + values.draw.randrange(0, 9_000)
        ask = values.text("1:ncpus=8:ngpus=4", "2:ncpus=4:ngpus=1:mem=4gb", "1")
        want = values.text("1:ppn=4:gpus=2", "2:ppn=8", "n1/0+n2/0")
        common = (
            f"user={values.text('ada')} group=g account={values.text('a1', QUOTED)} jobname={values.text('t')} "
            f"queue={values.text('gpu')} ctime={values.digits(queued, queued)} qtime={values.digits(queued, queued)} "
            f"etime={values.digits(queued, queued + 60)} start={values.digits(started, started)} "
            f"exec_host={values.text('n1/0*4', 'n1/0-3+n2/0-3', 'n[1-2]/1')} Resource_List.select={ask} "
            f"Resource_List.ngpus={values.digits(0, 8)} Resource_List.ncpus={values.digits(1, 64)} "
            f"Resource_List.nodes={want} "
            f"Resource_List.mem={values.text('4gb', '100mb', '1024kb')} "
            f"Resource_List.walltime={values.text('01:00:00', '3600')} "
        )
        done = (
            f"end={values.digits(ended, ended)} Exit_status={values.digits(-29, 271)} "
            f"resources_used.walltime={values.text('00:10:00')} "
            f"resources_used.mem={values.text('1024kb', '2gb')} resources_used.cput={values.text('00:20:00')}"
        )
        records = [("Q", f"queue={values.text('gpu')}"), ("S", common), ("E", common + done)]
        records += [(values.one_of("RDAKkLCTBUYfM"), values.one_of((common, common + done, "requestor=root@srv", "")))]
        for kind, text in values.draw.sample(records, values.draw.randrange(1, len(records) + 1)):
            stamp = values.time(60 * k, "%m/%d/%Y %H:%M:%S")
            lines.append(f"{stamp};{kind};{job};{text}".replace("\n", " "))
    return {"20261001": ("\n".join(lines) + "\n").encode()}


def swf(values: Values) -> dict[str, bytes]:
    """A log in the Standard Workload Format."""
    head = [
        "; Version: 2.2",
        f"; UnixStartTime: {values.digits(1_790_000_000, 1_790_000_000)}",
        f"; MaxNodes: {values.digits(8, 8)}",
        f"; MaxProcs: {values.digits(64, 64)}",
        f"; TimeZoneString: {values.text('Europe/Berlin', 'UTC')}",
        f"; Queue: 1 {values.text('batch')}",
        f"; Partition: 1 {values.text('gpu')}",
    ]
    rows, at = [], 0
    for k in range(1, 13):
        at += values.draw.randrange(0, 600)
        fields = [
            (k, k),
            (at, at),
            (-1, 900),
            (-1, 9_000),
            (1, 64),
            (-1, 99),
            (-1, 4_096),
            (-1, 64),
            (-1, 9_999),
            (-1, 4_096),
            (-1, 5),
            (-1, 3),
            (-1, 3),
            (-1, 3),
            (-1, 2),
            (-1, 2),
            (-1, k),
            (-1, 600),
        ]
        rows.append(" ".join(values.digits(low, high).replace(" ", "") or "-" for low, high in fields))
    return {
        "log.swf": ("\n".join(line for line in head if not values.is_edge()) + "\n" + "\n".join(rows) + "\n").encode()
    }


# ---- jobs as CSV, experiments


def job_csv(values: Values, queues: tuple[str, ...] = ("q1", "q2")) -> dict[str, bytes]:
    """A CSV of jobs, as replay reads it, with some of the further columns."""
    further = {
        "num_cpus": lambda: values.digits(1, 32),
        "mem_mb": lambda: values.digits(1, 64_000),
        "vc": lambda: values.text(*queues),
        "user": lambda: values.text("ada", "bob"),
        "time_limit": lambda: values.digits(60, 9_000),
        "priority": lambda: values.digits(0, 9),
        "gpu_type": lambda: values.text("V100", ""),
        "predicted_time": lambda: values.digits(1, 9_000),
        "min_gpus": lambda: values.digits(1, 2),
        "max_gpus": lambda: values.digits(2, 8),
        "speed_curve": lambda: values.text("1;1.9;2.7", ""),
        "state": lambda: values.text("completed", "failed"),
        "deadline": lambda: values.digits(60, 99_999),
    }
    names = values.draw.sample(sorted(further), values.draw.randrange(0, 6))
    rows = [
        [values.text(f"j{k}"), values.digits(60 * k, 90 * k), values.digits(0, 4_000), values.digits(0, 8)]
        + [further[name]() for name in names]
        for k in range(1, 11)
    ]
    text = table(["job_id", "submit_time", "duration", "num_gpus", *names], rows, values)
    return {"jobs.csv": text.encode("utf-8", "replace")}


def experiment(values: Values) -> dict[str, bytes]:
    """An experiment as TOML, beside its jobs."""
    number = values.digits
    cluster = values.text("4x8", "2x4", "pool:16").replace("\\", "").replace('"', "")
    seeds = values.one_of(('"1..2"', "[1, 2]", number(1, 2)))
    blocks = values.one_of(("days", "weeks", "users", "none", "x"))
    loads = values.one_of(("[0.8, 1.2]", '"0.8:1.2:0.4"', number(1, 2)))
    limits = values.one_of(('"600,7200"', "[600]", number(1, 9)))
    lines = [
        'input = "jobs.csv"',
        f'cluster = "{cluster}"',
        f"seeds = {seeds}",
        f'blocks = "{blocks}"',
        'measures = ["wait_mean_s"]',
        'baseline = "fifo"',
        "[factors]",
        f"scale_load = {loads}",
        "[[policies]]",
        'policy = "fifo"',
        "[[policies]]",
        f'policy = "{values.one_of(("srtf", "tiresias", "las"))}"',
        'label = "other"',
        f"params = {{ limits = {limits} }}",
    ]
    kept = [line for line in lines if not values.is_edge()]
    return {"experiment.toml": "\n".join(kept).encode("utf-8", "replace"), **job_csv(values)}


GRAMMARS = {
    "yarn-capacity-xml": capacity_scheduler,
    "yarn-fair-xml": fair_scheduler,
    "yarn-rest-apps": rest_apps,
    "yarn-rest-nodes": rest_nodes,
    "kube": kube_objects,
    "pbs": pbs,
    "swf": swf,
    "job-csv": job_csv,
    "experiment": experiment,
}
