"""Records how YARN keeps what containers print, with the real Hadoop of `labs.yarn`.

    GPUCTL_LABS=1 python -m labs.yarnlogs.record --out tests/fixtures/joboutput

For each of `RECORDINGS` a lab with log aggregation is started, an application whose master is `train.py` fails in two
attempts, and then these are kept: the aggregated files as they lie on HDFS (here: a local folder), the containers' log
folders of the NodeManagers, and what ``yarn logs -applicationId`` prints.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from labs.yarn import conf, jars, workload
from labs.yarn.lab import Lab

HERE = Path(__file__).resolve().parent
_CONTROLLER = "org.apache.hadoop.yarn.logaggregation.filecontroller"
_CONTROLLERS = {
    "TFile": f"{_CONTROLLER}.tfile.LogAggregationTFileController",
    "IFile": f"{_CONTROLLER}.ifile.LogAggregationIndexedFileController",
}
_WAIT_S = 60


class Recording(NamedTuple):
    """One way in which a site may have set up log aggregation."""

    name: str
    version: str
    controller: str
    compression: str


RECORDINGS = (
    Recording("3.5.0-gz", jars.NEWEST, "TFile", "gz"),
    Recording("3.5.0-none", jars.NEWEST, "TFile", "none"),
    Recording("3.5.0-indexed", jars.NEWEST, "IFile", "gz"),
    Recording("2.10.2-gz", jars.OLD, "TFile", "gz"),
)
LINES = int(os.environ.get("YARNLOGS_LINES", "0"))
"""Lines of further output, to see how long logs are kept: 100000 make blocks of several chunks."""
PLAN = workload.Plan(jobs=(workload.job("fails", "prod", "alice", name="train"),), samples_at_s=(), limit_s=90)


class _Lab(Lab):
    def _env(self) -> dict[str, str]:
        return {**super()._env(), "LAB_JAVA": f"python3 {self.folder}/train.py {LINES}"}


def _with_aggregation(recording: Recording) -> None:
    before = conf._yarn

    def settings(folder: Path, ports: conf.Ports) -> dict[str, object]:
        controllers = {f"log-aggregation.file-controller.{k}.class": v for k, v in _CONTROLLERS.items()}
        return {
            **before(folder, ports),
            **controllers,
            "log-aggregation.file-formats": recording.controller,
            "log-aggregation-enable": True,
            "nodemanager.remote-app-log-dir": f"file://{folder}/aggregated",
            "nodemanager.log-aggregation.compression-type": recording.compression,
            # the containers' own folders are kept until they are recorded
            "nodemanager.delete.debug-delay-sec": 600,
            # else the environment of this machine is in each recording
            "nodemanager.log-container-debug-info.enabled": False,
        }

    conf._yarn = settings
    conf.NODES = ("node01", "node02")  # type: ignore[assignment]


def record(recording: Recording, out: Path) -> None:
    """Start a lab, let the application fail, keep what it left.

    Raises:
        RuntimeError: its logs were not aggregated in time.
    """
    before: Any = (conf._yarn, conf.NODES)
    _with_aggregation(recording)
    folder = Path(tempfile.mkdtemp(prefix="gpuctl-yarnlogs-"))
    try:
        (folder / "aggregated").mkdir(mode=0o777)
        shutil.copy(HERE / "train.py", folder)
        with _Lab(folder, recording.version) as lab:
            lab.run(PLAN)
            (app,) = _applications(folder)
            _aggregated(folder)
            shutil.rmtree(out, ignore_errors=True)
            _keep(lab, app, out)
    finally:
        conf._yarn, conf.NODES = before
        shutil.rmtree(folder, ignore_errors=True)


def _applications(folder: Path) -> list[str]:
    found = (folder / "nodes").glob("*/logs/application_*")
    return sorted({path.name for path in found})


def _aggregated(folder: Path) -> None:
    until = time.monotonic() + _WAIT_S
    while time.monotonic() < until:
        files = [f for f in (folder / "aggregated").rglob("*") if f.is_file() and not f.name.startswith(".")]
        if files and not any(f.name.endswith(".tmp") for f in files):
            time.sleep(2)
            return
        time.sleep(0.5)
    raise RuntimeError("nothing was aggregated")


def _keep(lab: Lab, app: str, out: Path) -> None:
    for file in sorted((lab.folder / "aggregated").rglob("*")):
        if file.is_file() and not file.name.startswith("."):
            to = out / "aggregated" / file.relative_to(lab.folder / "aggregated")
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, to)
    for container in sorted(lab.folder.glob(f"nodes/*/logs/{app}/container_*")):
        for file in sorted(container.iterdir()):
            to = out / "local" / app / container.name / file.name
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, to)
    words = ("org.apache.hadoop.yarn.client.cli.LogsCLI", "-applicationId", app, "-appOwner", "alice")
    client = lab._java("client", "base", *words)
    done = subprocess.run(client, env=lab._env(), cwd=lab.folder, capture_output=True, check=True, timeout=120)
    (out / f"{app}.log").write_bytes(done.stdout)
    sys.stdout.write(f"{out}: yarn logs printed {len(done.stdout)} bytes\n")


def main() -> None:
    """Record all, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m labs.yarnlogs.record", description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("names", nargs="*", help=", ".join(r.name for r in RECORDINGS))
    given = parser.parse_args()
    for recording in RECORDINGS:
        if not given.names or recording.name in given.names:
            record(recording, given.out / recording.name)


if __name__ == "__main__":
    os.umask(0o022)
    main()
