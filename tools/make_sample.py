"""Make sample_data/philly: a random job list, run on the made-up cluster of philly_like.py, and a few real quirks.

    python tools/make_sample.py PATH/TO/philly_like.py sample_data/philly

Standard library only; the same seed gives the same bytes. sample_data/README.md says what comes out.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import random
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SEED = 20_171_002
DAYS = 6
JOBS_A_DAY = 330
TELEMETRY_MINUTES = 48 * 60
CLUSTER = ("--racks", "3", "--big", "4", "--small", "3", "--quota-factor", "2", "--keep-single", "1")

# virtual cluster -> share of the jobs, and how much bigger than usual its gangs are
QUEUES = {
    "3fa1c2": (0.30, 0.7),
    "8b07de": (0.24, 1.0),
    "c5519a": (0.18, 1.5),
    "1d6e40": (0.13, 0.6),
    "e7b238": (0.10, 2.2),
    "94cc07": (0.05, 1.2),
}
SIZES = {1: 0.56, 2: 0.11, 4: 0.13, 8: 0.135, 16: 0.05, 32: 0.015}
MEDIAN_MINUTES = {1: 12.5, 2: 15, 4: 22.5, 8: 37.5, 16: 45, 32: 50}

TELEMETRY = ("cluster_gpu_util", "cluster_cpu_util", "cluster_mem_util")
Log = list[dict[str, Any]]


def random_jobs(rng: random.Random) -> list[tuple[float, float, int, str]]:
    """Submission (s), run time (s), GPUs and virtual cluster of every job; busier by day, and in bursts."""
    jobs = []
    now = 0.0
    while now < DAYS * 86400:
        hour = now / 3600 % 24
        daily = 0.45 + 1.1 * math.exp(-(((hour - 14) / 5) ** 2))
        now += rng.expovariate(JOBS_A_DAY / 86400 * daily)
        queue = rng.choices(list(QUEUES), [share for share, _ in QUEUES.values()])[0]
        bigger = QUEUES[queue][1]
        weights = [w * (bigger if size >= 8 else 1.0) for size, w in SIZES.items()]
        gpus = rng.choices(list(SIZES), weights)[0]
        # several users start the same thing over and over: sweeps
        for _ in range(rng.choices([1, 2, 6], [0.9, 0.07, 0.03])[0]):
            minutes = rng.lognormvariate(math.log(MEDIAN_MINUTES[gpus]), 1.5)
            jobs.append((now, min(60 * minutes, 1.5 * 86400), gpus, queue))
            now += rng.uniform(1, 20)
    return jobs


class Quirks:
    """Puts the oddities of the real log into a made-up one, and keeps the list of what they touch."""

    def __init__(self, log: Log, rng: random.Random) -> None:
        self.log = log
        self.rng = rng
        self.touched: list[tuple[str, int | str, str]] = []

    def apply(self) -> None:
        """Change the log in place."""
        for job in self.log:
            for attempt in job["attempts"]:
                attempt["end_time"] = attempt["end_time"] or "None"
        retried = self._retried_small_jobs()
        for job in retried[:3]:
            job["attempts"][0]["end_time"] = "None"
            self._touch(job, 0, "end is None")
            self._touch(job, 1, "wait unknown: the attempt before it has no end")
        for job in retried[3:5]:
            job["attempts"][0]["end_time"] = job["attempts"][-1]["end_time"]
            self._touch(job, 0, "carries the end of the job: overlaps the next attempt")
            self._touch(job, 1, "wait unknown: the attempt before it ends later")
        for job in self._short_small_jobs()[:3]:
            last = len(job["attempts"]) - 1
            job["attempts"][last]["start_time"] = "None"
            self._touch(job, last, "start is None")
        for number in range(4):
            like = self.rng.choice(self.log)
            job = {**like, "status": "Killed", "jobid": f"application_1506638472019_{90000 + number}", "attempts": []}
            self.log.insert(self.rng.randrange(len(self.log)), job)
            self._touch(job, "", "no attempts; the made-up cluster knows nothing of it")

    def label_wrongly(self, machines: list[str]) -> list[str]:
        """Label one machine, of which a gang used all 8 GPUs, as one with 2."""
        whole = {d["ip"] for job in self.log for a in job["attempts"] for d in a["detail"] if len(d["gpus"]) == 8}
        machine = min(whole)
        self.touched.append((machine, "", "labelled with 2 GPUs, has 8"))
        return [f"{machine},2, 12GB" if line.startswith(f"{machine},") else line for line in machines]

    def _touch(self, job: dict[str, Any], attempt: int | str, what: str) -> None:
        self.touched.append((job["jobid"], attempt, what))

    def _retried_small_jobs(self) -> list[dict[str, Any]]:
        """1-GPU jobs whose second attempt started a few seconds after the first: what others saw hardly changes."""
        found = []
        for job in self.log:
            attempts = job["attempts"]
            if len(attempts) == 2 and _gpus(attempts[0]) == 1 and attempts[1]["end_time"] != "None":
                gap = _clock(attempts[1]["start_time"]) - _clock(attempts[0]["end_time"])
                if gap <= 10:
                    found.append(job)
        return self.rng.sample(found, len(found))

    def _short_small_jobs(self) -> list[dict[str, Any]]:
        found = []
        for job in self.log:
            last = job["attempts"][-1] if job["attempts"] else None
            if last is None or _gpus(last) != 1 or "None" in (last["start_time"], last["end_time"]):
                continue
            if _clock(last["end_time"]) - _clock(last["start_time"]) < 90:
                found.append(job)
        return self.rng.sample(found, len(found))


def _gpus(attempt: dict[str, Any]) -> int:
    return sum(len(part["gpus"]) for part in attempt["detail"])


def _clock(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()


def spoil_telemetry(lines: list[str], rng: random.Random) -> list[str]:
    """Cells without a value, a machine silent for half an hour, nine minutes without any row, and two rows in one."""
    lines = [line for line in lines if not (",m4," in line and "2017-10-02 20:" in line and line[14] in "012")]
    lines = [line for line in lines if not line.startswith("2017-10-03 05:4") or line[15] == "0"]
    for row in rng.sample(range(1, len(lines)), 25):
        cells = lines[row].split(",")
        cells[2] = "NA"
        lines[row] = ",".join(cells)
    glued = rng.randrange(1, len(lines) - 1)
    lines[glued : glued + 2] = [lines[glued] + lines[glued + 1]]
    return lines


def finish(folder: Path, rng: random.Random) -> None:
    """Turn what the generator wrote into the sample: quirks, one job a line, telemetry packed."""
    log = json.loads((folder / "cluster_job_log").read_text("utf-8"))
    quirks = Quirks(log, rng)
    quirks.apply()
    (folder / "cluster_job_log").write_text("[\n" + ",\n".join(map(json.dumps, log)) + "\n]\n", "utf-8")
    machines = quirks.label_wrongly((folder / "cluster_machine_list").read_text("utf-8").splitlines())
    (folder / "cluster_machine_list").write_text("\n".join(machines) + "\n", "utf-8")
    with (folder / "truth" / "quirks.csv").open("w", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(("jobid_or_machine", "attempt", "quirk"))
        writer.writerows(quirks.touched)
    for name in TELEMETRY:
        plain = folder / name
        lines = plain.read_text("utf-8").splitlines()
        if name == "cluster_gpu_util":
            lines = spoil_telemetry(lines, rng)
        packed = gzip.compress(("\n".join(lines) + "\n").encode(), compresslevel=9, mtime=0)
        plain.with_name(name + ".gz").write_bytes(packed)
        plain.unlink()


def main() -> None:
    """Write the sample to the folder named on the command line; it must not exist."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("generator", type=Path, help="philly_like.py")
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    if args.folder.exists():
        parser.error(f"{args.folder} exists already; remove it first")
    rng = random.Random(SEED)  # noqa: S311 - the same sample every time
    with tempfile.TemporaryDirectory() as temporary:
        jobs = Path(temporary) / "jobs.csv"
        with jobs.open("w", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(("submit_time", "duration", "num_gpus", "vc"))
            writer.writerows((f"{at:.0f}", f"{run:.0f}", gpus, queue) for at, run, gpus, queue in random_jobs(rng))
        settings = [*CLUSTER, "--util-minutes", str(TELEMETRY_MINUTES), "--seed", str(SEED)]
        subprocess.run([sys.executable, args.generator, jobs, args.folder, *settings], check=True)
    finish(args.folder, rng)


if __name__ == "__main__":
    main()
