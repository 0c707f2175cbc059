"""Ingest of ResourceManager logs: how fast, with how much memory, and what the time goes into.

    python benchmarks/yarn.py [MEGABYTES] [REPEATS]

The log is made up: applications of four GPU containers, with the lines that a Capacity Scheduler of 2.6 writes for
each (25 kB an application; a real log of that version has 50 kB). Ways:
  lines      a plain Python loop over the lines that looks for the words of the lines worth reading, and keeps nothing
  python     the same loop with regular expressions: a dictionary of the times, sizes and nodes of containers, and of
             the times and final states of applications; nothing is checked, counted, merged or stored
  scan       the compiled scanner alone: dates, messages, marks
  gpuctl     ingest into a new store, with checks, rejects, ledger, digest, jobs, gangs and placements
Each runs in a process of its own; imports and the first compilation are made before. The smallest time counts; CPU
seconds are given beside it, for machines that do other things meanwhile; the ratios are of CPU seconds.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

WAYS = {
    "lines": """
words = (b"Container Transitioned", b"State change", b"Assigned container", b"USER=", b"appId=")
begin()
found = 0
with open(path, "rb") as file:
    for line in file:
        found += any(word in line for word in words)
""",
    "python": """
import re
from datetime import datetime
move = re.compile(r"(container_\\w+) Container Transitioned from [A-Z]+ to ([A-Z]+)")
change = re.compile(r"(app\\w+) State change from ([A-Z_]+) to ([A-Z_]+)")
size = r"of capacity <memory:(\\d+), vCores:(\\d+)(.*?)>"
assigned = re.compile(rf"Assigned container (container_\\w+) {size} on host (.*?):")
audited = re.compile(r"OPERATION=AM (\\w+) Container\\t.*CONTAINERID=(container_\\w+)")
summary = re.compile(r"(?:^|,)(\\w+)=((?:[^,\\\\]|\\\\.)*)")
begin()
times, sizes, apps = {}, {}, {}
with open(path, encoding="utf-8") as file:
    for line in file:
        if "Container Transitioned" in line:
            found = move.search(line)
            times.setdefault((found[1], found[2]), datetime.fromisoformat(line[:23]))
        elif "State change" in line:
            found = change.search(line)
            times.setdefault(found.groups(), datetime.fromisoformat(line[:23]))
        elif "Assigned container" in line:
            found = assigned.search(line)
            sizes[found[1]] = found.groups()
        elif "USER=" in line:
            found = audited.search(line)
            if found:
                times.setdefault((found[2], found[1]), datetime.fromisoformat(line[:23]))
        elif "appId=" in line:
            fields = dict(summary.findall(line[line.index("appId="):]))
            apps[fields["appId"]] = fields
assert len(sizes) == 5 * len(apps)
""",
    "scan": """
import numpy as np
from gpuctl.ingest.yarn import scan_kernel
from gpuctl.ingest.yarn.bulk import MARKS
marks = np.frombuffer(b"".join(MARKS), np.uint8)
ends = np.cumsum([len(mark) for mark in MARKS]).astype(np.int64)
scan_kernel.scan(np.frombuffer(b"x\\n", np.uint8), marks, ends)
begin()
with open(path, "rb") as file:
    while data := file.read(16 << 20):
        scan_kernel.scan(np.frombuffer(data, np.uint8), marks, ends)
""",
    "gpuctl": """
from pathlib import Path
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
small = Path(out + ".small.log")
with open(path, "rb") as file:
    small.write_bytes(file.read(100_000).rpartition(b"\\n")[0] + b"\\n")
ingest([small], Path(out + ".small"), cluster="c")
begin()
report = ingest([Path(path)], Path(out), cluster="c")
assert not report.failed and not report.sources[0].rows_rejected, report
""",
}
HEAD = """
import resource, time
def used():
    now = resource.getrusage(resource.RUSAGE_SELF)
    return now.ru_utime + now.ru_stime
def begin():
    global began, cpu
    began, cpu = time.perf_counter(), used()
"""
END = """
print(time.perf_counter() - began, used() - cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
RM = "org.apache.hadoop.yarn.server.resourcemanager"
WORKERS = 4
SIZE = "<memory:49152, vCores:8, yarn.io/gpu: 1>"
LEFT = "<memory:344064, vCores:56, yarn.io/gpu: 7>"


def application(seq: int) -> str:
    """All lines of one application that starts `seq` half minutes into 2024."""
    app, attempt = f"application_1704067200000_{seq:04}", f"appattempt_1704067200000_{seq:04}_000001"
    start = seq * 30
    lines: list[tuple[int, str, str]] = []

    def add(second: int, logger: str, message: str) -> None:
        lines.append((start + second, logger, message))

    def audit(second: int, operation: str, target: str, more: str = "") -> None:
        text = f"USER=ada\tOPERATION={operation}\tTARGET={target}\tRESULT=SUCCESS\tAPPID={app}{more}"
        add(second, "RMAuditLogger", text)

    add(0, "ClientRMService", f"Allocated new applicationId: {seq}")
    audit(1, "Submit Application Request", "ClientRMService")
    states = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING", "FINAL_SAVING", "FINISHING", "FINISHED")
    for nth, (old, new) in enumerate(pairwise(states)):
        add(1 if nth < 3 else 4 if nth == 3 else 900, "rmapp.RMAppImpl", f"{app} State change from {old} to {new}")
    steps = ("NEW", "SUBMITTED", "SCHEDULED", "ALLOCATED_SAVING", "ALLOCATED", "LAUNCHED", "RUNNING", "FINAL_SAVING")
    for nth, (old, new) in enumerate(zip(steps, (*steps[1:], "FINISHED"), strict=False)):
        add(
            1 + nth // 3 if nth < 6 else 900,
            "rmapp.attempt.RMAppAttemptImpl",
            f"{attempt} State change from {old} to {new}",
        )
    add(1, "scheduler.capacity.CapacityScheduler", f"Accepted application {app} from user: ada, in queue: gpu")
    for number in range(1, WORKERS + 2):
        container(add, audit, f"container_1704067200000_{seq:04}_01_{number:06}", attempt, number)
    submit = (1704067200 + start + 1) * 1000
    summary = f"appId={app},name=train,user=ada,queue=gpu,state=FINISHED,appMasterHost=n1,startTime={submit}"
    summary += f",finishTime={submit + 899_000},finalStatus=SUCCEEDED"
    add(906, "RMAppManager$ApplicationSummary", summary)
    return "".join(f"{stamp(second)} INFO {RM}.{logger}: {message}\n" for second, logger, message in sorted(lines))


def container(add, audit, name: str, attempt: str, number: int) -> None:  # noqa: ANN001
    """The lines of one container."""
    host = f"n{number % 40}:8041"
    begin = 2 + 3 * number
    queue = "queue=gpu: capacity=0.5, absoluteCapacity=0.5, usedResources=" + LEFT + ", usedCapacity=0.25, numApps=3"
    body = f"Container: [ContainerId: {name}, NodeId: {host}, NodeHttpAddress: n:8042, Resource: {SIZE}, Token: null, ]"
    moves = ((begin, "NEW", "ALLOCATED"), (begin + 1, "ALLOCATED", "ACQUIRED"), (begin + 2, "ACQUIRED", "RUNNING"))
    for second, old, new in (*moves, (900, "RUNNING", "COMPLETED")):
        add(second, "rmcontainer.RMContainerImpl", f"{name} Container Transitioned from {old} to {new}")
    for second, word, has in ((begin, "Assigned", "which has"), (900, "Released", "which currently has")):
        tail = f"on host {host}, {has} 1 containers, {SIZE} used and {LEFT} available"
        after = " after allocation" if word == "Assigned" else ", release resources=true"
        add(second, "scheduler.SchedulerNode", f"{word} container {name} of capacity {SIZE} {tail}{after}")
        audit(second, f"AM {word.replace('Assigned', 'Allocated')} Container", "SchedulerApp", f"\tCONTAINERID={name}")
        verb = "assignedContainer" if word == "Assigned" else "completedContainer"
        more = "clusterResource=<memory:15728640, vCores:2560, yarn.io/gpu: 320>"
        add(
            second,
            "scheduler.capacity.LeafQueue",
            f"{verb} application attempt={attempt} container={body} {queue} {more}",
        )
        add(
            second,
            "scheduler.capacity.ParentQueue",
            f"{verb} queue=root usedCapacity=0.25 absoluteUsedCapacity=0.25 used={LEFT} {more}",
        )
        add(second, "scheduler.capacity.ParentQueue", f"Re-sorting assigned queue: root.gpu stats: gpu: {queue}")


def stamp(seconds: int) -> str:
    """Seconds into 2024 as a log stamp."""
    day, rest = divmod(seconds, 86400)
    month, day = divmod(day, 28)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02},123"
    return f"{2024 + month // 12}-{month % 12 + 1:02}-{day + 1:02} {clock}"


def write(path: Path, megabytes: int) -> int:
    """Write a log of that size; returns how many applications are in it."""
    seq = size = 0
    with path.open("w") as file:
        while size < megabytes * 1_000_000:
            seq += 1
            size += file.write(application(seq))
    return seq


def main() -> None:
    """Print seconds, MB a second and peak memory of each way, and how they compare."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    best = dict.fromkeys(WAYS, (float("inf"), 0.0))
    memory = dict.fromkeys(WAYS, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rm.log"
        apps = write(path, megabytes)
        size = path.stat().st_size / 1e6
        print(f"{size:.0f} MB, {apps} applications, {apps * (WORKERS + 1)} containers, smallest of {repeats} runs each")
        for turn in range(repeats):
            for way, code in WAYS.items():
                names = f"path, out = {str(path)!r}, {str(Path(folder) / f'{way}{turn}.duckdb')!r}\n"
                command = [sys.executable, "-c", names + HEAD + code + END]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                seconds, cpu, mib = map(float, done.stdout.split())
                best[way], memory[way] = min(best[way], (seconds, cpu)), max(memory[way], mib)
    for way, (seconds, cpu) in best.items():
        rate = f"{seconds:7.2f} s {size / seconds:6.0f} MB/s {cpu:7.2f} CPU s {size / cpu:6.0f} MB/CPU s"
        print(f"{way:8} {rate} {memory[way]:6.0f} MiB peak")
    ours = best["gpuctl"][1]
    print(
        f"gpuctl takes {ours / best['lines'][1]:.2f} times the CPU of lines, {ours / best['python'][1]:.2f} of python"
    )


if __name__ == "__main__":
    main()
