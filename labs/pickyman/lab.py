"""Trains small models over a real network path, records their traffic, suspends and resumes them.

python labs/pickyman/lab.py setup
python labs/pickyman/lab.py record --out DIR [--only FAMILY] [--quick] [--prefix "nice -n -5"]
"""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from labs.pickyman import data, measure, plan
from labs.pickyman.running import PACKAGES, VENV, WORK, missing

TABLES = ("jobs", "traffic", "epochs", "suspensions")


def setup() -> None:
    """Make the lab's own environment; downloads some 100 MB."""
    subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    subprocess.run([VENV / "bin" / "python", "-m", "pip", "install", "--quiet", *PACKAGES], check=True)


def prepare(families: list[str]) -> None:
    """Write the training data that jobs and chains of these families read."""
    for family in families:
        wanted = [item.shards for item in plan.everything() if item.family == family]
        data.write(
            family, WORK / "data" / family, samples=plan.SHARD_SAMPLES[family], shards=max(wanted),
            valid_shards=plan.VALID_SHARDS[family],
        )  # fmt: skip


def record(out: Path, names: list[str], prefix: list[str], *, again: bool = False) -> None:
    """Measure jobs and chains one after the other, each by a process of its own; the tables grow with each.

    Args:
        out: folder of the tables, and of a part for each that is measured (``parts``).
        names: of jobs and chains, in the order to be measured in.
        prefix: goes before the command line of each measurement.
        again: also those that have a part already.

    Raises:
        RuntimeError: some failed, twice each; the others are there.
    """
    parts = out / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in names:
        part = parts / f"{name}.json"
        if part.exists() and not again:
            continue
        command = [*prefix, sys.executable, __file__, "one", "--name", name, "--part", str(part)]
        start = time.monotonic()
        if subprocess.run(command, check=False).returncode and subprocess.run(command, check=False).returncode:
            failed.append(name)
            continue
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {name}: {time.monotonic() - start:.0f} s\n")
        collect(out)
    if failed:
        raise RuntimeError(f"not measured: {', '.join(failed)}")


def one(name: str, part: Path) -> None:
    """Measure one job or chain and write its rows as JSON."""
    for job in plan.jobs():
        if job.name == name:
            part.write_text(json.dumps(measure.record_one(job)), "utf-8")
    for chain in plan.chains():
        if chain.name == name:
            part.write_text(json.dumps(measure.suspend_one(chain)), "utf-8")


def collect(out: Path) -> None:
    """Join the parts that are there to the tables, in the order of the plan."""
    order = [item.name for item in plan.everything()]
    parts = [out / "parts" / f"{name}.json" for name in order]
    found = [json.loads(part.read_text("utf-8")) for part in parts if part.exists()]
    for table in TABLES:
        rows: list[dict[str, Any]] = [row for part in found for row in part.get(table, [])]
        if not rows:
            continue
        with (out / f"{table}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("setup", help="make the lab's own environment; downloads some 100 MB")
    recorder = commands.add_parser("record", help="measure all, and write the tables")
    recorder.add_argument("--out", type=Path, required=True)
    recorder.add_argument("--only", choices=plan.FAMILIES)
    recorder.add_argument("--quick", action="store_true", help="a few short jobs, in a minute")
    recorder.add_argument("--prefix", default="", help="goes before the command line of each measurement")
    recorder.add_argument("--again", action="store_true", help="also what has been measured already")
    single = commands.add_parser("one", help="measure one; what record runs")
    single.add_argument("--name", required=True)
    single.add_argument("--part", type=Path, required=True)
    given = parser.parse_args(arguments)
    if given.command == "setup":
        setup()
        return
    if why := missing():
        parser.exit(1, f"the lab cannot run here: {why}\n")
    if given.command == "one":
        # ended from outside, it still takes its namespaces and processes away
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
        one(given.name, given.part)
        return
    wanted = [item for item in plan.everything() if item.quick == given.quick]
    wanted = [item for item in wanted if given.only in {None, item.family}]
    prepare(sorted({item.family for item in wanted}))
    record(given.out, [item.name for item in wanted], shlex.split(given.prefix), again=given.again)


if __name__ == "__main__":
    main()
