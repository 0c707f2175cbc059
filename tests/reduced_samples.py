"""The sample data with fewer jobs and fewer of their logs, for tests of how commands end, not of what they find."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from pathlib import Path

NAMED = ("application_1506638472019_00186", "4047")
"""Jobs that the documents ask about."""
EVERY = 3
"""Of how many jobs one is kept."""
SITE_JOBS = 270
"""Of the site; fewer are too few to learn run times from."""
EVERY_LOG = 12
"""Of how many logs of jobs one is kept."""


def make(samples: Path, folder: Path) -> None:
    """Make a folder like `samples`: Philly, failures and the jobs of the site are thin, all else is linked."""
    folder.mkdir()
    for each in samples.iterdir():
        if each.name not in {"philly", "failures", "site"}:
            (folder / each.name).symlink_to(each)
    shutil.copytree(samples / "site", folder / "site")
    jobs = (samples / "site" / "jobs.csv").read_text("utf-8").splitlines(keepends=True)
    (folder / "site" / "jobs.csv").write_text("".join(jobs[: 1 + SITE_JOBS]), "utf-8")
    _philly(samples / "philly", folder / "philly")
    _failures(samples / "failures", folder / "failures")


def _philly(source: Path, place: Path) -> None:
    place.mkdir()
    # a link in a folder of logs is not followed
    shutil.copytree(source / "truth", place / "truth")
    shutil.copy(source / "cluster_machine_list", place)
    jobs = json.loads((source / "cluster_job_log").read_text("utf-8"))
    some = [job for number, job in enumerate(jobs) if number % EVERY == 0 or job["jobid"] in NAMED]
    (place / "cluster_job_log").write_text("[\n" + ",\n".join(map(json.dumps, some)) + "\n]\n", "utf-8")
    for each in source.glob("*.gz"):
        text = gzip.decompress(each.read_bytes())
        short = text[: text.index(b"\n", len(text) // EVERY) + 1]
        (place / each.name).write_bytes(gzip.compress(short, 1))


def _failures(source: Path, place: Path) -> None:
    place.mkdir()
    for name in ("sacct.txt", "slurm.conf", "topology.conf", "truth.csv"):
        shutil.copy(source / name, place)
    with (
        tarfile.open(source / "job-logs.tar.gz") as logs,
        tarfile.open(place / "job-logs.tar.gz", "w:gz", compresslevel=1) as kept,
    ):
        for number, member in enumerate(logs):
            if number % EVERY_LOG == 0 or Path(member.name).stem.rpartition("-")[2] in NAMED:
                kept.addfile(member, logs.extractfile(member))
