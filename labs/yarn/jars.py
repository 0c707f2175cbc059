"""The jars of a Hadoop release, by way of Maven: what they are, and whether this machine has them."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
NEWEST = "3.5.0"
OLD = "2.10.2"
_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
_TRIES = 3


def missing(version: str = NEWEST) -> str | None:
    """Why no lab of this release can run here, or None; jars are downloaded only where GPUCTL_LABS is 1.

    CI runs this lab on demand only: else it would depend on what an earlier user of the machine left in Maven's cache.
    """
    requested = os.environ.get("GPUCTL_LABS") == "1"
    if os.environ.get("CI") == "true" and not requested:
        return "in CI only with GPUCTL_LABS=1: make labs"
    absent = [name for name in ("java", "javac", "mvn") if shutil.which(name) is None]
    if absent:
        return f"no {', '.join(absent)} on this machine: apt-get install openjdk-17-jdk-headless maven"
    try:
        classpath(version, download=requested)
    except RuntimeError as error:
        return f"the jars of Hadoop {version} are not in the Maven cache (GPUCTL_LABS=1 fetches them): {error}"
    return None


def classpath(version: str, *, download: bool) -> str:
    """The class path of ResourceManager, NodeManager, timeline server and client.

    Raises:
        RuntimeError: a jar is not in the cache (without `download`), or Maven cannot fetch it.
    """
    message = ""
    with tempfile.TemporaryDirectory(prefix="gpuctl-yarn-jars-") as folder:
        answer = Path(folder) / "classpath"
        # the cache first: it saves asking the network; then again, since a connection may break
        for attempt in range(1 + _TRIES * download):
            offline = [] if attempt else ["-o"]
            command = [
                "mvn", "-B", "-q", "-Dstyle.color=never", *offline, "-f", str(HERE / "pom.xml"),
                f"-Dhadoop.version={version}", f"-Dmdep.outputFile={answer}", *_repository(), _GOAL,
            ]  # fmt: skip
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=900)
            if done.returncode == 0:
                return answer.read_text("utf-8").strip()
            message = next((x for x in done.stdout.decode(errors="replace").splitlines() if "ERROR" in x), "mvn failed")
    raise RuntimeError(message)


def _repository() -> list[str]:
    # for measurements with an empty cache
    repository = os.environ.get("GPUCTL_LABS_M2")
    return [f"-Dmaven.repo.local={repository}"] if repository else []
