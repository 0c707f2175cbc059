"""Records how a real Slurm schedules: tests/fixtures/slurm/scheduling.

    python -m labs.slurm.scheduling SCENARIO FOLDER    # as root, with Debian's Slurm; README.md; 2 to 6 minutes

Nothing here is judged: tests read the recording and hold it against the policy `slurm`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import sys
import time
from pathlib import Path

from gpuctl.slurm.hostlist import expand
from labs.slurm import scheduling_tables as tables
from labs.slurm.lab import Lab
from labs.slurm.scheduling_scenarios import COMMON, FIRST_S, SCENARIOS, Job

SACCT = (
    "JobIDRaw,JobName,User,Account,QOS,Partition,Submit,Eligible,Start,End,State,Flags,Priority,Timelimit,NNodes,ReqCPUS,"
    "ReqMem,ReqTRES,AllocTRES,NodeList,Reason"
)
WATCH_S = 2.0
"""Seconds between two looks at where jobs run; no job of a scenario is shorter than twice that."""
SLURMDBD_S = 8.0
"""Seconds until slurmdbd has been told of the last end."""


def _submit(lab: Lab, job: Job, numbers: dict[str, str]) -> str:
    words = job.words.format_map(numbers).split()
    command = ("sbatch", "--parsable", f"--uid={job.user}", f"--job-name={job.name}", *words)
    return lab.run(*command, "--output=/dev/null", f"--wrap=exec sleep {job.sleep}").strip()


def _begin(lab: Lab, after_usage: bool) -> float:
    """Wait for the first instant: FIRST_S after a full minute, for that is what backfill rounds to.

    With `after_usage` it is FIRST_S after a calculation of fair-share, Slurm's first or second, instead: priorities
    change at these, every minute since slurmctld began.
    """
    if not after_usage:
        time.sleep((60 + FIRST_S - time.time() % 60) % 60)
        return time.time()
    log = lab.folder / "log" / "slurmctld.log"
    found: list[float] = []
    while not found or time.time() > found[-1] + FIRST_S:
        time.sleep(0.5)
        found = [when for when, text in tables.parsed(log.read_text("utf-8", "replace")) if tables.DECAY.search(text)]
    time.sleep(found[-1] + FIRST_S - time.time())
    return time.time()


def _watch(lab: Lab, seen: dict[tuple[str, ...], tables.Row]) -> bool:
    """Note where running jobs run, for no file of Slurm's says so afterwards; return whether a job waits or runs."""
    text = lab.run("scontrol", "--details", "--oneliner", "show", "jobs")
    for job, restarts, nodes, cpus, mem, gpus, kind, indices in tables.placements(text):
        for node in expand(nodes):
            attempt = str(int(restarts) + 1)
            more = {"cpus": str(cpus), "mem": str(mem), "gpus": str(gpus), "gpu_type": kind, "indices": indices}
            seen[job, attempt, node] = {"job": job, "attempt": attempt, "node": node, **more}
    return " JobState=RUNNING " in text or " JobState=PENDING " in text


def record(name: str, out: Path) -> None:
    """Run one scenario and write its recording into `out`."""
    scenario = SCENARIOS[name]
    out.mkdir(parents=True, exist_ok=True)
    lab = Lab()
    extra = out / "extra.conf"
    extra.write_text(COMMON + scenario.conf, "utf-8")
    lab.env |= {"EXTRACONF": str(extra.resolve()), "SLURM_TIME_FORMAT": "%s", "TZ": "UTC"}
    with lab:
        extra.unlink()
        for words in scenario.accounts:
            lab.run("sacctmgr", "--immediate", *words.split())
        first = _begin(lab, "PriorityWeightFairshare" in scenario.conf)
        numbers: dict[str, str] = {}
        seen: dict[tuple[str, ...], tables.Row] = {}
        submitted = []
        late = 0.0
        waiting = list(scenario.jobs)
        watched = 0.0
        while (now := time.time()) < first + scenario.seconds:
            due = first + waiting[0].at if waiting else math.inf
            if now >= due:
                job = waiting.pop(0)
                late = max(late, now - due)
                numbers[job.name] = _submit(lab, job, numbers)
                row = {"job": numbers[job.name], "name": job.name, "at": str(job.at), "user": job.user}
                submitted.append(row | {"sleep": str(job.sleep), "words": job.words.format_map(numbers)})
            elif now > watched + WATCH_S and due > now + 0.5:
                watched = now
                if not _watch(lab, seen) and not waiting:
                    break
            else:
                time.sleep(0.02)
        time.sleep(SLURMDBD_S)
        _keep(lab, out)
    about = {"scenario": name, "about": scenario.about, "zero": int(first // 60) * 60}
    about |= {"first": round(first - int(first // 60) * 60, 3), "late_s": round(late, 3)}
    (out / "recording.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")
    (out / "submitted.csv").write_text(
        tables.write_rows(("job", "name", "at", "user", "sleep", "words"), submitted), "utf-8"
    )
    (out / "placements.csv").write_text(
        tables.write_rows(tables.PLACEMENTS, sorted(seen.values(), key=lambda row: (int(row["job"]), row["node"]))),
        "utf-8",
    )
    derive(out)


def _keep(lab: Lab, out: Path) -> None:
    """Copy what Slurm says of its configuration, its jobs and its passes."""
    for file, command in {
        "qos.txt": ("sacctmgr", "--parsable2", "show", "qos"),
        "assoc.txt": ("sacctmgr", "--parsable2", "show", "assoc"),
        "sacct.txt": ("sacct", "--allusers", "-X", "--duplicates", "--parsable2", f"--format={SACCT}"),
    }.items():
        (out / file).write_text(lab.run(*command).replace(str(lab.folder), "/lab"), "utf-8")
    lab.run("sacctmgr", "dump", "lab", f"file={lab.work / 'dump.cfg'}")
    for file, source in {"slurm.conf": lab.folder / "slurm.conf", "dump.cfg": lab.work / "dump.cfg"}.items():
        (out / file).write_text(source.read_text("utf-8").replace(str(lab.folder), "/lab"), "utf-8")
    config = lab.run("scontrol", "show", "config").replace(str(lab.folder), "/lab")
    (out / "config.txt.gz").write_bytes(gzip.compress(config.encode(), mtime=0))
    log = (lab.folder / "log" / "slurmctld.log").read_text("utf-8", "replace").replace(str(lab.folder), "/lab")
    lines = "".join(f"{line}\n" for line in log.splitlines() if tables.KEPT.search(line))
    (out / "slurmctld.log.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))


def derive(out: Path) -> None:
    """Write the tables that follow from a recording's own files, and the sums of all its files."""
    for file, text in tables.tables(out).items():
        (out / file).write_text(text, "utf-8")
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(out.iterdir())}
    sums.pop("SHA256SUMS", None)
    (out / "SHA256SUMS").write_text("".join(f"{value}  {file}\n" for file, value in sums.items()), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in SCENARIOS or os.geteuid():
        sys.exit(f"as root: python -m labs.slurm.scheduling {'|'.join(SCENARIOS)} FOLDER")
    record(sys.argv[1], Path(sys.argv[2]))
