"""Runs Hadoop's real schedulers on scripted workloads and records what they decide.

From the command line (the README has the recipe):
    python -m labs.yarnsched.lab --out tests/fixtures/yarnsched [--times 3] [SCENARIO...]
"""

from __future__ import annotations

import argparse
import csv
import gzip
import hashlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from labs.yarn import conf, jars
from labs.yarnsched import capacity, fair

if TYPE_CHECKING:
    from collections.abc import Iterable

    from labs.yarnsched.scenario import Scenario

SCENARIOS = {**capacity.SCENARIOS, **fair.SCENARIOS}
HERE = Path(__file__).resolve().parent
USERS = ("alice", "bob", "carol", "dave", "erin")
TABLES = ("events", "shares", "users", "monitor")
_PACKAGE = "org.apache.hadoop.yarn.server.resourcemanager.scheduler"
_LIMIT_S = 120
_NODE_COLUMNS = ("node", "rack", "mb", "vcores", "gpus")
_WORKLOAD_COLUMNS = (
    "app", "submit_ms", "queue", "user", "priority", "am_mb",
    "containers", "mb", "vcores", "gpus", "duration_ms", "hosts",
)  # fmt: skip
_MONITOR = "yarn.resourcemanager.monitor.capacity.preemption."


def compile_driver(folder: Path, path: str) -> Path:
    """Compile the driver against a class path; returns the folder of its classes."""
    classes = folder / "classes"
    classes.mkdir()
    sources = sorted(map(str, (HERE / "src").glob("*.java")))
    subprocess.run(["javac", "-nowarn", "-cp", path, "-d", classes, *sources], check=True, timeout=180)
    return classes


def run(scenario: Scenario, folder: Path, classes: Path, path: str) -> None:
    """Run a scenario in a new folder; its tables lie there afterwards as CSV files.

    Raises:
        RuntimeError: the driver failed; the end of what it said is in the message.
    """
    folder.mkdir(parents=True)
    configure(scenario, folder)
    log = folder / "driver.log"
    command = [
        "java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Djdk.net.hosts.file={folder}/hosts",
        "-Djava.net.preferIPv4Stack=true", "--add-opens=java.base/java.lang=ALL-UNNAMED",
        f"-Dhadoop.log.dir={folder}", "-cp", f"{folder}/conf:{classes}:{path}", "SchedLab", str(folder),
    ]  # fmt: skip
    with log.open("wb") as out:
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "TZ": "UTC", "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, check=False, timeout=_LIMIT_S
        )
    if done.returncode:
        raise RuntimeError("\n".join(log.read_text("utf-8", "replace").splitlines()[-40:]))


def configure(scenario: Scenario, folder: Path) -> None:
    """Write what the driver reads: conf/, hosts, nodes.csv and workload.csv."""
    settings = folder / "conf"
    settings.mkdir()
    names = [f"node{number:02d}" for number in range(1, scenario.nodes + 1)]
    racks = [f"/rack{number * scenario.racks // scenario.nodes + 1}" for number in range(scenario.nodes)]
    (folder / "hosts").write_text(
        f"127.0.0.1 localhost {socket.gethostname()}\n" + "".join(f"127.0.1.{n} node{n:02d}\n" for n in range(1, 100))
    )
    (settings / "racks").write_text(
        "".join(f"{name} {rack}\n127.0.1.{int(name[4:])} {rack}\n" for name, rack in zip(names, racks, strict=True))
    )
    _table(
        folder / "nodes.csv", _NODE_COLUMNS,
        ((n, r, *scenario.node) for n, r in zip(names, racks, strict=True)),
    )  # fmt: skip
    _table(
        folder / "workload.csv", _WORKLOAD_COLUMNS,
        (
            (a.name, round(a.submit_s * 1000), a.queue, a.user, a.priority, a.am_mb, a.containers, *a.size,
             round(a.duration_s * 1000), " ".join(a.hosts))
            for a in scenario.apps
        ),
    )  # fmt: skip
    core = {
        "fs.defaultFS": "file:///",
        "hadoop.tmp.dir": f"{folder}/tmp",
        "hadoop.user.group.static.mapping.overrides": "".join(f"{user}=lab;" for user in USERS) + "dr.who=",
        "net.topology.node.switch.mapping.impl": "org.apache.hadoop.net.TableMapping",
        "net.topology.table.file.name": f"{settings}/racks",
    }
    conf._xml(settings / "core-site.xml", core)
    conf._xml(settings / "yarn-site.xml", _site(scenario, settings))
    conf._xml(settings / "resource-types.xml", {"yarn.resource-types": conf.GPU} if scenario.node[2] else {})
    if scenario.fair:
        (settings / "fair-scheduler.xml").write_text(scenario.fair, "utf-8")
    else:
        calculator = "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator"
        prefix = "yarn.scheduler.capacity."
        # 3.5.0 schedules asynchronously unless it is told not to: threads of its own, in an order that chance decides
        usual = {"resource-calculator": calculator, "schedule-asynchronously.enable": False}
        own = {prefix + key: value for key, value in {**usual, **scenario.settings}.items()}
        conf._xml(settings / "capacity-scheduler.xml", own)
    (settings / "log4j.properties").write_text(
        "log4j.rootLogger=WARN,out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\n"
        "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
        "log4j.appender.out.layout.ConversionPattern=%p %c: %m%n\n",
        "utf-8",
    )


def _site(scenario: Scenario, settings: Path) -> dict[str, object]:
    kind = "fair.LabFairScheduler" if scenario.fair else "capacity.LabCapacityScheduler"
    memory, vcores, gpus = scenario.node
    site: dict[str, object] = {
        "yarn.resourcemanager.scheduler.class": f"{_PACKAGE}.{kind}",
        "yarn.resourcemanager.hostname": "localhost",
        "yarn.resourcemanager.recovery.enabled": False,
        "yarn.resourcemanager.work-preserving-recovery.enabled": False,
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": 1000,
        "yarn.nm.liveness-monitor.expiry-interval-ms": 3_600_000,
        "yarn.am.liveness-monitor.expiry-interval-ms": 3_600_000,
        "yarn.resourcemanager.rm.container-allocation.expiry-interval-ms": 3_600_000,
        "yarn.node-attribute.fs-store.root-dir": f"file://{settings.parent}/attributes",
        "yarn.resourcemanager.scheduler.monitor.policies": "QuietMonitor",
        "yarn.scheduler.minimum-allocation-mb": 1024,
        "yarn.scheduler.maximum-allocation-mb": memory,
        "yarn.scheduler.maximum-allocation-vcores": vcores,
    }
    if gpus:
        site[f"yarn.resource-types.{conf.GPU}.maximum-allocation"] = gpus
    if scenario.fair:
        site["yarn.scheduler.fair.allocation.file"] = "fair-scheduler.xml"
        site["yarn.scheduler.fair.update-interval-ms"] = 3_600_000  # the driver does it each 500 ms of its clock
    for key, value in scenario.site.items():
        if key == "scheduler.monitor.enable":
            site["yarn.resourcemanager.scheduler.monitor.enable"] = value
        elif key.startswith("scheduler.monitor."):
            site[_MONITOR + key.removeprefix("scheduler.monitor.")] = value
        else:
            site[key] = value
    return site


def record(names: Iterable[str], out: Path, times: int) -> dict[str, bool]:
    """Record scenarios; returns which of them were the same, to the byte, each time.

    The first run of each is kept in ``out/NAME``: its configuration, nodes.csv, workload.csv, and what it wrote
    (gzip), beside run.json with Hadoop's release and the digests of all runs.
    """
    same: dict[str, bool] = {}
    path = jars.classpath(jars.NEWEST, download=os.environ.get("GPUCTL_LABS") == "1")
    with tempfile.TemporaryDirectory(prefix="gpuctl-yarnsched-") as temporary:
        top = Path(temporary)
        classes = compile_driver(top, path)
        for name in names:
            digests = []
            for number in range(times):
                folder = top / f"{name}-{number}"
                run(SCENARIOS[name], folder, classes, path)
                digests.append({table: _digest(folder / f"{table}.csv") for table in TABLES})
            same[name] = all(digest == digests[0] for digest in digests)
            keep(SCENARIOS[name], top / f"{name}-0", out / name, digests)
            sys.stderr.write(f"{name}: {'the same' if same[name] else 'DIFFERENT'} {times} times\n")
    return same


def keep(scenario: Scenario, folder: Path, out: Path, digests: list[dict[str, str]]) -> None:
    """Copy a run to a fixture folder, with this machine's paths taken out."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    scheduler = "fair-scheduler.xml" if scenario.fair else "capacity-scheduler.xml"
    for name in ("yarn-site.xml", "resource-types.xml", scheduler):
        text = (folder / "conf" / name).read_text("utf-8").replace(str(folder), "/lab")
        (out / name).write_text(text, "utf-8")
    for name in ("nodes.csv", "workload.csv"):
        shutil.copyfile(folder / name, out / name)
    for table in TABLES:
        content = (folder / f"{table}.csv").read_bytes()
        if content.count(b"\n") > 1:
            with gzip.GzipFile(out / f"{table}.csv.gz", "wb", mtime=0) as packed:
                packed.write(content)
    facts = {
        "hadoop": jars.NEWEST,
        "scheduler": "fair" if scenario.fair else "capacity",
        "what": scenario.what,
        "seed": None,
        "runs_sha256": digests,
    }
    (out / "run.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _table(file: Path, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    file.write_text(text.getvalue(), "utf-8")


def main() -> None:
    """Record from the command line."""
    parser = argparse.ArgumentParser(prog="python -m labs.yarnsched.lab", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; default: all")
    parser.add_argument("--out", type=Path, required=True, help="the fixture folder")
    parser.add_argument("--times", type=int, default=3, help="how often each is run")
    given = parser.parse_args()
    same = record(given.scenarios or list(SCENARIOS), given.out, given.times)
    if not all(same.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
