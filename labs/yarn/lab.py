"""A real YARN on this machine: ResourceManager, four NodeManagers and timeline server, all on loopback.

From the command line (the README has the recipe):
    python -m labs.yarn.lab start|run|record|stop --folder DIR ...
Everything lies in one folder; daemons end by themselves after `LIFE_S` seconds, whoever forgets them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labs.yarn import conf, jars, manifest, workload

if TYPE_CHECKING:
    pass

LIFE_S = 900
_START_S = 90
_HEAL_AFTER_S = 9.0
_HADOOP = "org.apache.hadoop.yarn.server"
_MAINS = {
    "resourcemanager": f"{_HADOOP}.resourcemanager.ResourceManager",
    "nodemanager": f"{_HADOOP}.nodemanager.NodeManager",
    "timelineserver": f"{_HADOOP}.applicationhistoryservice.ApplicationHistoryServer",
}
# what Hadoop 2 and its Guice, cglib and JAXB reach for inside the JDK; 3.5 needs fewer and minds none
_OPEN = ("java.lang", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent")
_SMALL = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true")
_HEAP = {"resourcemanager": "-Xmx256m", "nodemanager": "-Xmx128m", "timelineserver": "-Xmx128m", "client": "-Xmx128m"}


class Lab:
    """The cluster; a context manager, which stops it at the end but leaves the folder."""

    def __init__(self, folder: Path, version: str = jars.NEWEST, timezone: str = "UTC") -> None:
        self.folder = folder.resolve()
        self.version = version
        self.timezone = timezone
        self.pids: dict[str, int] = {}
        self.web = self.timeline = ""
        self._own: dict[str, subprocess.Popen[bytes]] = {}

    @classmethod
    def reopen(cls, folder: Path) -> Lab:
        """The lab that an earlier command started in a folder."""
        known = json.loads((folder / "lab.json").read_text("utf-8"))
        lab = cls(folder, known["version"], known["timezone"])
        lab.pids, lab.web, lab.timeline = known["pids"], known["web"], known["timeline"]
        return lab

    def __enter__(self) -> Lab:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ---- start and stop

    def start(self) -> None:
        """Make the folder, start all daemons, and wait until the nodes have registered.

        Raises:
            RuntimeError: they do not come up; the ends of their logs are in the message.
        """
        for part in ("logs", "events", "classes", "state", "rest", "tmp"):
            (self.folder / part).mkdir(parents=True)
        ports = conf.free_ports()
        conf.write(self.folder, ports)
        self.web = f"http://127.0.0.1:{ports.rm['web']}"
        self.timeline = f"http://127.0.0.1:{ports.timeline['web']}"
        path = jars.classpath(self.version, download=os.environ.get("GPUCTL_LABS") == "1")
        (self.folder / "classpath").write_text(path, "utf-8")
        sources = sorted(map(str, (jars.HERE / "src").glob("*.java")))
        subprocess.run(
            ["javac", "-nowarn", "-cp", path, "-d", self.folder / "classes", *sources], check=True, timeout=120
        )
        self._daemon("timelineserver", "rm01")
        self._daemon("resourcemanager", "rm01")
        for node in conf.NODES:
            self._daemon("nodemanager", node)
        self.wait_for_nodes(len(conf.NODES))

    def stop(self) -> None:
        """End all daemons, and whatever of their containers outlives them."""
        names = sorted(self.pids, key=lambda name: not name.startswith("nodemanager"))
        for name in names:
            self.end(name, signal.SIGTERM)
        for name in names:
            self._gone(name, 15)
        for pid in _processes_with(f"LAB_EVENTS={self.folder}"):
            _signal(pid, signal.SIGKILL)
        self._save()

    def end(self, name: str, how: signal.Signals) -> None:
        """Signal a daemon and all that it started in its process group (containers have groups of their own)."""
        _signal(-self.pids[name], how)
        if how is signal.SIGKILL:
            self._gone(name, 5)

    def restart_rm(self) -> None:
        """End the ResourceManager as an operator does, and start it again."""
        self.end("resourcemanager.rm01", signal.SIGTERM)
        self._gone("resourcemanager.rm01", 20)
        self._daemon("resourcemanager", "rm01")

    def heal(self) -> None:
        """Start NodeManagers again that a restarted ResourceManager has lost.

        Those of 2.10 fall silent now and then after they have registered anew: their heartbeat thread ends.
        """
        answer = self.get(self.web, "/ws/v1/cluster/nodes?states=LOST") or {}
        for node in (answer.get("nodes") or {}).get("node", []):
            self._note("restart_node", node=node["nodeHostName"])
            self.end(f"nodemanager.{node['nodeHostName']}", signal.SIGKILL)
            self._daemon("nodemanager", node["nodeHostName"])

    def wait_for_nodes(self, count: int) -> None:
        """Wait until so many nodes run and the timeline server answers, `_START_S` seconds at most.

        Raises:
            RuntimeError: it took longer.
        """
        until = time.monotonic() + _START_S
        while time.monotonic() < until:
            metrics = self.get(self.web, "/ws/v1/cluster/metrics")
            up = metrics is not None and metrics["clusterMetrics"]["activeNodes"] == count
            if up and self.get(self.timeline, "/ws/v1/timeline"):
                return
            ended = [name for name in self.pids if self._ended(name)]
            if ended:
                raise RuntimeError("\n".join([f"{', '.join(ended)} ended", *self._tails()]))
            time.sleep(0.25)
        raise RuntimeError("\n".join([f"not {count} nodes after {_START_S} s", *self._tails()]))

    # ---- use

    def get(self, server: str, path: str) -> dict[str, Any] | None:
        """A JSON answer of a server, or None where it does not answer with one."""
        raw = _fetch(server + path)
        return json.loads(raw) if raw else None

    def run(self, plan: workload.Plan) -> None:
        """Run a plan from its first submission to its last job's end.

        Raises:
            RuntimeError: the client failed; what it printed is in the message.
        """
        (self.folder / "plan").write_text(workload.lines(plan), "utf-8")
        events = self.folder / "events" / "client.jsonl"
        client = self._java("client", "base", "LabClient", self.folder / "plan", events, plan.limit_s)
        with (self.folder / "logs" / "client.out").open("wb") as out:
            running = subprocess.Popen(
                client, env=self._env(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )
            try:
                while not events.exists() and running.poll() is None:
                    time.sleep(0.05)
                self._play(plan, running, time.monotonic())
                code = running.wait(plan.limit_s + 30)
            finally:
                running.kill()
        if code:
            raise RuntimeError("\n".join([f"LabClient: exit {code}", *self._tails()]))
        time.sleep(3)  # the last containers' ends are logged, and the timeline server hears of them
        self.sample("end")
        self.sample_timeline()

    def sample(self, when: str) -> None:
        """Write what the ResourceManager's REST interface says now to ``rest/<when>``, byte by byte."""
        out = self.folder / "rest" / when
        out.mkdir(exist_ok=True)
        self._note("sample", when=when)
        for name in ("info", "metrics", "scheduler", "nodes", "apps"):
            _write(out / f"{name}.json", _fetch(f"{self.web}/ws/v1/cluster/{name}"))
        for app in manifest.applications(self.folder):
            path = f"/ws/v1/cluster/apps/{app}/appattempts"
            _write(out / f"{app}-appattempts.json", _fetch(self.web + path))
            for attempt in manifest.attempts(self.folder, app):
                _write(out / f"{attempt}-containers.json", _fetch(f"{self.web}{path}/{attempt}/containers"))

    def sample_timeline(self) -> None:
        """Write what the timeline server says of applications, attempts and containers to ``rest/timeline``."""
        out = self.folder / "rest" / "timeline"
        out.mkdir(exist_ok=True)
        top = f"{self.timeline}/ws/v1/applicationhistory/apps"
        _write(out / "apps.json", _fetch(top))
        for app in manifest.applications(self.folder):
            _write(out / f"{app}-appattempts.json", _fetch(f"{top}/{app}/appattempts"))
            for attempt in manifest.attempts(self.folder, app):
                _write(out / f"{attempt}-containers.json", _fetch(f"{top}/{app}/appattempts/{attempt}/containers"))

    # ---- inside

    def _play(self, plan: workload.Plan, client: subprocess.Popen[bytes], begin: float) -> None:
        """Do what the plan says besides submitting, each when it is due."""
        samples = sorted(plan.samples_at_s)
        restart, lose, heal_at = plan.restart_rm_once, plan.lose_node_once, float("inf")
        while client.poll() is None:
            now = time.monotonic() - begin
            if samples and now >= samples[0]:
                self.sample(f"{samples.pop(0):g}s")
            if restart and self._runs(plan, restart):
                restart = None
                self._note("restart_rm")
                self.restart_rm()
                heal_at = time.monotonic() - begin + _HEAL_AFTER_S
            if now >= heal_at:
                heal_at = float("inf")
                self.heal()
            if lose and self._runs(plan, lose):
                lose = None
                self.sample("busy")
                self._note("lose_node", node=conf.NODES[-1])
                self.end(f"nodemanager.{conf.NODES[-1]}", signal.SIGKILL)
            time.sleep(0.2)

    def _runs(self, plan: workload.Plan, key: str) -> bool:
        """Whether the master of a job has started its whole gang."""
        wanted = next(j["containers"] for j in plan.jobs if j["key"] == key)
        return manifest.started(self.folder, key) >= int(str(wanted))

    def _daemon(self, kind: str, host: str) -> None:
        name = f"{kind}.{host}"
        prefix = "yarn" if self.version.startswith("2.") else "hadoop"
        settings = "base" if host == "rm01" else host
        command = self._java(
            kind, settings, f"-Dhadoop.log.file={prefix}-lab-{kind}-{host}.log", _MAINS[kind], id_=name
        )
        with (self.folder / "logs" / f"{name}.out").open("ab") as out:
            started = subprocess.Popen(
                ["timeout", "--kill-after=5", str(LIFE_S), *command],
                env=self._env(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip
        self.pids[name], self._own[name] = started.pid, started
        self._save()

    def _java(self, kind: str, settings: str, *args: object, id_: str = "client") -> list[str]:
        path = f"{self.folder}/conf/{settings}:{self.folder}/classes:{(self.folder / 'classpath').read_text('utf-8')}"
        opens = [part for package in _OPEN for part in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")]
        own = (
            f"-Djdk.net.hosts.file={self.folder}/conf/hosts", f"-Djava.io.tmpdir={self.folder}/tmp",
            f"-Dhadoop.log.dir={self.folder}/logs",
        )  # fmt: skip
        words = ["java", _HEAP[kind], *_SMALL, *opens, *own, f"-Dproc_{id_}", "-cp", path]
        if kind == "client":
            words.append("-Dhadoop.log.file=client.log")
        return [*words, *map(str, args)]

    def _env(self) -> dict[str, str]:
        path = f"{self.folder}/conf/base:{self.folder}/classes:{(self.folder / 'classpath').read_text('utf-8')}"
        opens = " ".join(f"--add-opens java.base/{package}=ALL-UNNAMED" for package in _OPEN)
        master = f"java -Xmx64m {' '.join(_SMALL)} {opens} -Djdk.net.hosts.file={self.folder}/conf/hosts"
        return {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "TZ": self.timezone,
            "LC_ALL": "C.UTF-8",
            "HADOOP_USER_NAME": "yarn",
            "JAVA_HOME": str(Path(shutil.which("java") or "java").resolve().parent.parent),
            "HADOOP_CONF_DIR": f"{self.folder}/conf/base",
            "CLASSPATH": path,
            "LAB_EVENTS": f"{self.folder}/events",
            "LAB_JAVA": f"{master} -Dhadoop.log.dir={self.folder}/logs -Dhadoop.log.file=masters.log",
        }

    def _gone(self, name: str, limit_s: float) -> None:
        until = time.monotonic() + limit_s
        while not self._ended(name):
            if time.monotonic() > until:
                _signal(-self.pids[name], signal.SIGKILL)
            time.sleep(0.1)
        self.pids.pop(name, None)

    def _ended(self, name: str) -> bool:
        if name in self._own:
            return self._own[name].poll() is not None
        return not Path(f"/proc/{self.pids[name]}").exists()

    def _note(self, event: str, **fields: object) -> None:
        """Write what the lab itself did beside what client and masters wrote."""
        row = {"event": event, "ms": int(time.time() * 1000), **fields}
        with (self.folder / "events" / "lab.jsonl").open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")

    def _save(self) -> None:
        state = {
            "version": self.version, "timezone": self.timezone, "pids": self.pids,
            "web": self.web, "timeline": self.timeline,
        }  # fmt: skip
        (self.folder / "lab.json").write_text(json.dumps(state, indent=1), "utf-8")

    def _tails(self) -> list[str]:
        logs = [log for log in sorted((self.folder / "logs").iterdir()) if log.stat().st_size]
        return [f"--- {log.name}\n" + "\n".join(log.read_text("utf-8", "replace").splitlines()[-12:]) for log in logs]


def _signal(pid: int, how: signal.Signals) -> None:
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        return


def _processes_with(setting: str) -> list[int]:
    """The processes that carry a setting in their environment: the containers of one lab folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(word.startswith(setting.encode()) for word in words):
                found.append(int(entry.name))
    return found


def _fetch(url: str) -> bytes | None:
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return bytes(answer.read())
    except OSError:
        return None


def _write(path: Path, content: bytes | None) -> None:
    # an empty object is what the ResourceManager says of the containers of those that are over
    if content is not None and content != b"{}":
        path.write_bytes(content)


def main() -> None:
    """Start, run, record or stop from the command line."""
    parser = argparse.ArgumentParser(prog="python -m labs.yarn.lab", description=__doc__)
    parser.add_argument("what", choices=("start", "run", "record", "stop"))
    parser.add_argument("--folder", type=Path, required=True, help="where all of the lab lies; made by start")
    parser.add_argument("--version", default=jars.NEWEST, help="Hadoop release")
    parser.add_argument("--timezone", default="UTC", help="that the daemons log in")
    parser.add_argument("--plan", choices=sorted(workload.PLANS), default="full")
    parser.add_argument("--out", type=Path, help="record: the fixture folder")
    given = parser.parse_args()
    if given.what == "start":
        lab = Lab(given.folder, given.version, given.timezone)
        try:
            lab.start()
        except BaseException:
            lab.stop()
            raise
        sys.stdout.write(f"ResourceManager: {lab.web}\n")
        return
    lab = Lab.reopen(given.folder)
    if given.what == "run":
        lab.run(workload.PLANS[given.plan])
    elif given.what == "record":
        manifest.record(lab.folder, lab.version, lab.timezone, given.out or sys.exit("record needs --out"))
    else:
        lab.stop()


if __name__ == "__main__":
    main()
