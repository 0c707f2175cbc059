"""As much of GitHub Actions and GitLab CI as the examples need: which steps run, in which shell, with which variables.

What ``uses:`` names is not run but played: a checkout has been done by the caller, a cache and an artifact are folders.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "ci"
ALWAYS = "${{ !cancelled() }}"
_PYTHON = """#!/bin/sh
# stands in for a Python whose pip installs from the network: says what was asked for, and gives gpuctl
case "$*" in
  "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python";;
  "-m pip install --quiet "*)
    test -f "$5" || { echo "no wheel $5" >&2; exit 1; }
    echo "$5" >>"$INSTALLED"; cp "$STAND_IN" "$(dirname "$0")/gpuctl";;
  *) echo "stand-in for python: $*" >&2; exit 1;;
esac
"""
DAYS = 4
"""Days of the sample that the services ask for, night after night: each of them is a file to load."""
_SACCT = """#!{python} -SE
# stands in for sacct: a recorded answer, day by day, in the columns that it is asked for
import sys
if "--helpformat" in sys.argv:
    sys.exit(print("{names}"))
said = dict(arg[2:].split("=", 1) for arg in sys.argv[1:] if arg.startswith("--") and "=" in arg)
names = "{names}".split()
print(*said["format"].split(","), sep=said["delimiter"])
for line in open("{answer}"):
    record = dict(zip(names, line.rstrip("\\n").split("|")))
    if record["End"][:10] == said["starttime"][:10]:
        print(*(record[name] for name in said["format"].split(",")), sep=said["delimiter"])
"""


@dataclass
class Service:
    """A place to run jobs in.

    Attributes:
        place: the working directory of the next job.
        stand_ins: programs that come before those of the machine.
        cache: what caches keep between jobs.
        artifacts: what jobs hand out.
        environment: further variables.
    """

    place: Path
    stand_ins: Path
    cache: Path
    artifacts: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def installed(self) -> list[str]:
        """What pip was told to install."""
        log = self.stand_ins / "installed"
        return log.read_text().splitlines() if log.exists() else []


def service(folder: Path, gpuctl: Path) -> Service:
    """Make a place with Python, a program that is gpuctl, and nothing of Slurm."""
    made = Service(folder / "work", folder / "bin", folder / "cache", folder / "artifacts")
    for path in (made.place, made.stand_ins, made.cache, made.artifacts):
        path.mkdir(parents=True)
    for name in ("python", "python3"):
        put(made.stand_ins / name, _PYTHON)
    made.environment |= {
        "PYTHONPATH": str(ROOT),
        "STAND_IN": str(gpuctl),
        "INSTALLED": str(made.stand_ins / "installed"),
    }
    return made


def put(path: Path, script: str) -> None:
    """Write a program."""
    path.write_text(script)
    path.chmod(0o755)


def accounting(path: Path, *, late_h: float = 0) -> None:
    """Write the last days of the sample's accounting as of yesterday, every start and end a number of hours later."""
    lines = (ROOT / "sample_data" / "failures" / "sacct.txt").read_text().splitlines()
    names = lines[0].split("|")
    rows = [dict(zip(names, line.split("|"), strict=True)) for line in lines[1:]]
    newest = max(datetime.fromisoformat(row["End"]) for row in rows if row["End"][:1] == "2")
    rows = [row for row in rows if row["Submit"] >= (newest - timedelta(days=DAYS)).isoformat()]
    by = timedelta(days=(datetime.now(UTC).replace(tzinfo=None) - newest).days - 1)
    for row in rows:
        for name in ("Submit", "Eligible", "Start", "End"):
            if row[name][:1] == "2":
                more = timedelta(hours=late_h) if name in {"Start", "End"} else timedelta()
                row[name] = (datetime.fromisoformat(row[name]) + by + more).isoformat()
    path.write_text("\n".join([lines[0], *("|".join(row.values()) for row in rows)]) + "\n")


def put_sacct(folder: Path, *, late_h: float = 0) -> None:
    """Put a sacct there that gives the sample's accounting."""
    accounting(folder / "answer.txt", late_h=late_h)
    names = (folder / "answer.txt").read_text().partition("\n")[0].replace("|", " ")
    put(folder / "sacct", _SACCT.format(python=sys.executable, names=names, answer=folder / "answer.txt"))


def read(name: str) -> Any:
    """One of the examples, parsed as YAML 1.2: ``on`` is a word."""
    return YAML(typ="safe", pure=True).load(EXAMPLES / name)


def shell(where: Service, script: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a script as both services start theirs: bash, and the first command that fails ends it."""
    path = os.pathsep.join([str(where.stand_ins), os.environ["PATH"]])
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=where.place, env={**os.environ, "PATH": path, **where.environment, **more}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip


# ---- GitHub Actions


def github(where: Service, workflow: dict[str, Any], *, run_id: int = 1) -> tuple[int, str, str]:
    """Run the only job of a workflow; returns the exit code of the step that failed, all output, the summary."""
    (job,) = workflow["jobs"].values()
    files = {name: where.stand_ins / name for name in ("GITHUB_PATH", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    code, said = 0, []
    for step in job["steps"]:
        if code and step.get("if") != ALWAYS:
            continue
        if "uses" in step:
            _github_action(where, step, run_id)
            continue
        added = [os.environ["PATH"], str(where.stand_ins), *files["GITHUB_PATH"].read_text().splitlines()]
        told = {**workflow["env"], **step.get("env", {}), **{name: str(file) for name, file in files.items()}}
        done = shell(where, step["run"], **told, PATH=os.pathsep.join(reversed(added)))
        said.append(f"--- {step['name']}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        code = code or done.returncode
    return code, "\n".join(said), files["GITHUB_STEP_SUMMARY"].read_text()


def _github_action(where: Service, step: dict[str, Any], run_id: int) -> None:
    action, given = step["uses"].partition("@")[0], step.get("with", {})
    key = given.get("key", "").replace("${{ github.run_id }}", str(run_id))
    if action == "actions/cache/restore":
        found = sorted(where.cache.glob(given["restore-keys"].strip() + "*"))
        if found:
            shutil.copytree(found[-1], where.place / given["path"])
    elif action == "actions/cache/save":
        shutil.copytree(where.place / given["path"], where.cache / key)
    elif action == "actions/upload-artifact":
        # where there is nothing, the action warns
        if (where.place / given["path"]).exists():
            shutil.copytree(where.place / given["path"], where.artifacts / given["name"], dirs_exist_ok=True)
    elif action not in {"actions/checkout", "actions/setup-python"}:
        raise NotImplementedError(action)


# ---- GitLab CI


def gitlab_job(document: dict[str, Any], name: str) -> dict[str, Any]:
    """A job with what it extends: its own keys win, and mappings are merged."""
    job = document[name]
    base = gitlab_job(document, job["extends"]) if "extends" in job else {}
    return _merged(_merged({"variables": document["variables"]}, base), job)


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    both = {key: _merged(old[key], new[key]) for key in old.keys() & new.keys() if isinstance(old[key], dict)}
    return {**old, **new, **both}


def gitlab_script(job: dict[str, Any]) -> str:
    """All that a job runs: one shell, line by line."""
    return "\n".join([*job.get("before_script", ()), *job["script"]])


def gitlab(where: Service, job: dict[str, Any], **more: str) -> tuple[int, str]:
    """Run a job; returns its exit code and all output."""
    kept = job.get("cache", {})
    if kept and (where.cache / kept["key"]).exists():
        shutil.copytree(where.cache / kept["key"], where.place, dirs_exist_ok=True)
    done = shell(where, gitlab_script(job), **job["variables"], **more)
    for path in job["artifacts"]["paths"]:
        if (done.returncode == 0 or job["artifacts"].get("when") == "always") and (where.place / path).exists():
            shutil.copytree(where.place / path, where.artifacts / path, dirs_exist_ok=True)
    if kept and (done.returncode == 0 or kept.get("when") == "always"):
        for path in kept["paths"]:
            shutil.copytree(where.place / path, where.cache / kept["key"] / path, dirs_exist_ok=True)
    return done.returncode, done.stdout + done.stderr
