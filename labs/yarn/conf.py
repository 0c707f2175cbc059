"""The configuration of the YARN lab: one folder of Hadoop files a daemon, every address on loopback."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

GPU = "yarn.io/gpu"
NODES = ("node01", "node02", "node03", "node04")
RACKS = {"node01": "/rack-a", "node02": "/rack-a", "node03": "/rack-b", "node04": "/rack-b"}
NODE_SIZE = {"gpus": 8, "mem_mb": 16384, "vcores": 16}
USERS = ("alice", "bob", "carol", "dave", "erin")
QUEUES = {
    "root.prod": {"capacity": 40, "maximum-capacity": 100},
    "root.batch": {"capacity": 20, "maximum-capacity": 25, "user-limit-factor": 10},
    "root.research": {"capacity": 40, "maximum-capacity": 100},
    "root.research.vision": {"capacity": 50, "maximum-capacity": 100, "user-limit-factor": 10},
    "root.research.speech": {"capacity": 50, "maximum-capacity": 100, "user-limit-factor": 10},
}
"""Percent of the parent queue; batch is small and cannot borrow beyond 8 of the 32 GPUs."""
_RM_PORTS = {
    "resourcemanager.address": "rm",
    "resourcemanager.scheduler.address": "scheduler",
    "resourcemanager.resource-tracker.address": "tracker",
    "resourcemanager.admin.address": "admin",
    "resourcemanager.webapp.address": "web",
}
# as the conf/log4j.properties that Hadoop 2 and 3 are shipped with: audit and summary go where the rest goes
_LOG4J = """\
hadoop.root.logger=INFO,RFA
log4j.rootLogger=${hadoop.root.logger}
log4j.threshold=ALL
log4j.appender.RFA=org.apache.log4j.RollingFileAppender
log4j.appender.RFA.File=${hadoop.log.dir}/${hadoop.log.file}
log4j.appender.RFA.MaxFileSize=256MB
log4j.appender.RFA.MaxBackupIndex=20
log4j.appender.RFA.layout=org.apache.log4j.PatternLayout
log4j.appender.RFA.layout.ConversionPattern=%d{ISO8601} %p %c: %m%n
yarn.server.resourcemanager.appsummary.logger=${hadoop.root.logger}
"""


@dataclass(frozen=True)
class Ports:
    """The ports of the daemons; every node has two, on an address of its own."""

    rm: dict[str, int]
    timeline: dict[str, int]
    nodes: dict[str, tuple[int, int, int]]


def free_ports() -> Ports:
    """Ports that are free now; all are held until the last is found, so that none is given twice."""
    held: list[socket.socket] = []

    def free(address: str = "127.0.0.1") -> int:
        probe = socket.socket()
        held.append(probe)
        probe.bind((address, 0))
        return int(probe.getsockname()[1])

    try:
        return Ports(
            rm={name: free() for name in _RM_PORTS.values()},
            timeline={name: free() for name in ("rpc", "web")},
            nodes={name: (free(address(name)), free(address(name)), free(address(name))) for name in NODES},
        )
    finally:
        for probe in held:
            probe.close()


def address(node: str) -> str:
    """The loopback address that a node listens on."""
    return f"127.0.0.{10 + int(node[-2:])}"


def write(folder: Path, ports: Ports) -> None:
    """Write `folder`/conf: `base` for ResourceManager, timeline server and clients, one more a NodeManager."""
    conf = folder / "conf"
    conf.mkdir(parents=True)
    hosts = [f"127.0.0.1 rm01 localhost {socket.gethostname()}", *(f"{address(n)} {n}" for n in NODES)]
    (conf / "hosts").write_text("".join(f"{line}\n" for line in hosts), "utf-8")
    racks = "".join(f"{address(node)} {rack}\n" for node, rack in RACKS.items())
    (conf / "racks").write_text(racks, "utf-8")
    _daemon(folder, "base", ports, {})
    for node in NODES:
        rpc, web, localizer = ports.nodes[node]
        own = {
            "nodemanager.hostname": node,
            "nodemanager.address": f"{node}:{rpc}",
            "nodemanager.webapp.address": f"{node}:{web}",
            "nodemanager.localizer.address": f"{node}:{localizer}",
            "nodemanager.local-dirs": f"{folder}/nodes/{node}/local",
            "nodemanager.log-dirs": f"{folder}/nodes/{node}/logs",
        }
        _daemon(folder, node, ports, own)


def _daemon(folder: Path, name: str, ports: Ports, own: Mapping[str, object]) -> None:
    conf = folder / "conf" / name
    conf.mkdir()
    groups = "".join(f"{user}=lab;" for user in USERS)
    core = {
        "fs.defaultFS": "file:///",
        "hadoop.tmp.dir": f"{folder}/tmp/{name}",
        "hadoop.user.group.static.mapping.overrides": groups + "dr.who=",
        "net.topology.node.switch.mapping.impl": "org.apache.hadoop.net.TableMapping",
        "net.topology.table.file.name": f"{folder}/conf/racks",
    }
    _xml(conf / "core-site.xml", core)
    _xml(conf / "yarn-site.xml", _prefixed("yarn.", {**_yarn(folder, ports), **own}))
    _xml(conf / "capacity-scheduler.xml", _prefixed("yarn.scheduler.capacity.", _capacity()))
    _xml(conf / "resource-types.xml", {"yarn.resource-types": GPU})
    _xml(conf / "node-resources.xml", {f"yarn.nodemanager.resource-type.{GPU}": NODE_SIZE["gpus"]})
    (conf / "log4j.properties").write_text(_LOG4J, "utf-8")


def _yarn(folder: Path, ports: Ports) -> dict[str, object]:
    monitor = "resourcemanager.monitor.capacity.preemption."
    package = "org.apache.hadoop.yarn.server"
    return {
        **{key: f"rm01:{ports.rm[name]}" for key, name in _RM_PORTS.items()},
        "resourcemanager.hostname": "rm01",
        "resourcemanager.scheduler.class": f"{package}.resourcemanager.scheduler.capacity.CapacityScheduler",
        "resourcemanager.nodemanagers.heartbeat-interval-ms": 250,
        "nm.liveness-monitor.expiry-interval-ms": 5000,
        "resourcemanager.scheduler.monitor.enable": True,
        monitor + "monitoring_interval": 1000,
        monitor + "max_wait_before_kill": 2000,
        monitor + "total_preemption_per_round": 1.0,
        monitor + "natural_termination_factor": 1.0,
        "resourcemanager.recovery.enabled": True,
        "resourcemanager.work-preserving-recovery.scheduling-wait-ms": 2000,
        "resourcemanager.store.class": f"{package}.resourcemanager.recovery.FileSystemRMStateStore",
        "resourcemanager.fs.state-store.uri": f"file://{folder}/state",
        "resourcemanager.connect.retry-interval.ms": 500,
        "node-attribute.fs-store.root-dir": f"file://{folder}/state/attributes",
        "resourcemanager.system-metrics-publisher.enabled": True,
        "scheduler.minimum-allocation-mb": 128,
        "scheduler.maximum-allocation-mb": NODE_SIZE["mem_mb"],
        "timeline-service.enabled": True,
        "timeline-service.generic-application-history.enabled": True,
        "timeline-service.store-class": f"{package}.timeline.MemoryTimelineStore",
        "timeline-service.recovery.enabled": False,
        "timeline-service.hostname": "rm01",
        "timeline-service.address": f"rm01:{ports.timeline['rpc']}",
        "timeline-service.webapp.address": f"rm01:{ports.timeline['web']}",
        "nodemanager.resource.memory-mb": NODE_SIZE["mem_mb"],
        "nodemanager.resource.cpu-vcores": NODE_SIZE["vcores"],
        "nodemanager.vmem-check-enabled": False,
        "nodemanager.recovery.enabled": False,
        "nodemanager.delete.debug-delay-sec": 0,
        "nodemanager.sleep-delay-before-sigkill.ms": 250,
        "nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": 100,
    }


def _capacity() -> dict[str, object]:
    settings: dict[str, object] = {
        "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        "maximum-am-resource-percent": 0.5,
        "root.queues": ",".join(q.split(".")[1] for q in QUEUES if q.count(".") == 1),
        "root.research.queues": ",".join(q.split(".")[2] for q in QUEUES if q.count(".") == 2),
    }
    for queue, own in QUEUES.items():
        settings.update({f"{queue}.{key}": value for key, value in own.items()})
    return settings


def _prefixed(prefix: str, settings: Mapping[str, object]) -> dict[str, object]:
    return {prefix + key: value for key, value in settings.items()}


def _xml(path: Path, settings: Mapping[str, object]) -> None:
    rows = []
    for name, value in settings.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        rows.append(f"  <property><name>{escape(name)}</name><value>{escape(text)}</value></property>\n")
    path.write_text(f"<?xml version='1.0'?>\n<configuration>\n{''.join(rows)}</configuration>\n", "utf-8")
