"""Runs the cases that need a Slurm in the lab of labs/slurm, with memory cgroups, in namespaces of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from record import Case

HERE = Path(__file__).resolve().parent
LAB_SCRIPT = HERE.parent / "slurm" / "slurmlab.sh"
LAB = Path("/tmp/slurmlab")
USER = "games"
ENDED = {"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "PREEMPTED", "NODE_FAIL", "OUT_OF_MEMORY", "BOOT_FAIL"}
LONGEST_S = 240


def record_all(cases: list[Case]) -> Iterator[tuple[Case, int | None, str]]:
    """Runs the cases in one Slurm; yields each with its exit code, or minus its signal, and what was wrong."""
    if not cases:
        return
    result = Path("/tmp/jobs/.slurm.json")
    result.unlink(missing_ok=True)
    flags = ["-n", "-m", "-u", "-i", "-p", "--fork", "--kill-child", "--mount-proc"]
    argv = ["nice", "unshare", *flags, sys.executable, __file__, str(result), *(c.case for c in cases)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    endings: dict[str, Any] = json.loads(result.read_text()) if result.exists() else {}
    for case in cases:
        if case.case not in endings:
            yield case, None, done.stderr[-2000:] or "did not end"
            continue
        state, code, number = endings[case.case]
        wrong = "" if state == (case.state or "completed") else f"ended {state}, not {case.state or 'completed'}"
        yield case, -number if number else code, wrong


def inside(result: Path, names: list[str]) -> None:
    """In namespaces of its own: starts Slurm, submits the cases, waits for them."""
    import record

    # Slurm asks getaddrinfo with AI_ADDRCONFIG, which wants an address other than 127.0.0.1; this one never leaves lo
    record.enter("192.0.2.17/32")
    text = LAB_SCRIPT.read_text()
    for old, new in (
        ("proctrack/linuxproc", "proctrack/cgroup"),
        ("TaskPlugin=task/none", "TaskPlugin=task/cgroup"),
        ("ConstrainRAMSpace=no", "ConstrainRAMSpace=yes\\nConstrainSwapSpace=no\\nCgroupPlugin=cgroup/v1"),
    ):
        if old not in text:
            raise SystemExit(f"slurmlab.sh has no {old}")
        text = text.replace(old, new)
    text = text.replace('echo "ConstrainRAMSpace', 'printf "%b\\n" "ConstrainRAMSpace')
    script = Path("/tmp/gpuctl-failures-slurmlab.sh")
    script.write_text(text)
    env = os.environ | {"SLURM_CONF": str(LAB / "slurm.conf"), "BASEPORT": "17000"}
    log_path = result.with_suffix(".log")
    with log_path.open("w") as log_file:
        started = subprocess.run(
            ["bash", script, "start", LAB],
            env=env,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=log_file,
            stderr=log_file,
        )
    if started.returncode:
        raise SystemExit(f"slurmlab: {log_path.read_text()[-1500:]}")
    chosen = [c for c in record.load() if c.case in names]
    jobs = {case.case: submit(case, env) for case in chosen}
    try:
        endings = wait(chosen, jobs, env)
    finally:
        subprocess.run(["bash", script, "stop", LAB], env=env, check=False, capture_output=True)
        shutil.rmtree(LAB, ignore_errors=True)
        for place in Path("/sys/fs/cgroup").glob("*/slurm_*"):  # slurmd leaves them behind, empty
            for folder, _, _ in os.walk(place, topdown=False):
                Path(folder).rmdir()
        script.unlink()
    result.write_text(json.dumps(endings))


def submit(case: Case, env: dict[str, str]) -> str:
    """Hands a case to sbatch; its number."""
    import record

    work = LAB / "jobs" / record.workdir(case).name
    work.mkdir()
    out = record.ROOM / ".out" / case.case
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    path = work / record.script_name(case)
    path.write_text(record.parse(record.PROGRAMS / f"{case.program}.txt")[1])
    if case.setup:
        subprocess.run(["bash", "-ec", record.fill(case.setup, case)], cwd=work, check=True)
    subprocess.run(["chown", "-R", USER, work, out], check=True)
    streams = [f"--output={work}/stdout.txt", f"--error={work}/stderr.txt"]
    if record.layout(case) != "apart":
        streams = [f"--output={work}/output.txt"]
    argv = [
        "sbatch",
        "--parsable",
        f"--uid={USER}",
        "--export=PATH=/usr/local/bin:/usr/bin:/bin,LANG=C.UTF-8",
        f"--chdir={work}",
        *streams,
    ]
    argv += [*record.fill(case.run, case).split()]
    done = subprocess.run(argv, cwd=work, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def wait(cases: list[Case], jobs: dict[str, str], env: dict[str, str]) -> dict[str, tuple[str, int, int]]:
    """Does what a case's ``after`` says once its job runs; waits for all; by case: state, exit code, signal."""
    import record

    todo = {case.case: case.after for case in cases if case.after}
    began: dict[str, float] = {}
    end = time.time() + LONGEST_S
    endings: dict[str, tuple[str, int, int]] = {}
    while time.time() < end and len(endings) < len(cases):
        time.sleep(1)
        for case in cases:
            job = jobs[case.case]
            shown = subprocess.run(
                ["scontrol", "-o", "show", "job", job], env=env, check=False, capture_output=True, text=True
            ).stdout
            fields = dict(word.split("=", 1) for word in shown.split() if "=" in word)
            state = fields.get("JobState", "")
            if state == "RUNNING" and case.case in todo:
                began.setdefault(case.case, time.time())
                if time.time() - began[case.case] > 4:
                    action = record.fill(todo.pop(case.case), case).replace("{node}", fields.get("NodeList", ""))
                    subprocess.run(["bash", "-c", action], env=env | {"JOB": job}, check=True, cwd=LAB / "jobs")
            if state in ENDED and case.case not in endings:
                code, _, number = fields.get("ExitCode", "0:0").partition(":")
                endings[case.case] = (state.lower(), int(code), int(number))
    time.sleep(2)
    for case in cases:
        for path in (LAB / "jobs" / record.workdir(case).name).glob("*.txt"):
            if path.name in record.OUTPUTS or path.name.startswith("rank"):
                shutil.copyfile(path, record.ROOM / ".out" / case.case / path.name)
    return endings


if __name__ == "__main__":
    inside(Path(sys.argv[1]), sys.argv[2:])
