"""CPU seconds and peak memory of commands that read a whole log, and how both grow with it.

    python benchmarks/commands.py STORE STORE [STORE …] [--command NAME …]

The stores are of the same kind of log, of growing size. Every run is the real program in a process of its own, one at a
time; `explain` is asked of the job submitted last, and `predict wait` of a gang of 8 GPUs, with a model that is trained
first if it is not yet. The growth exponent is that of the CPU seconds, from the smallest to
the largest store: 1 is linear, and less where starting the program is most of the time.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

COMMANDS = {
    "analyze": ["analyze", "{store}", "--json"],
    "analyze --all": ["analyze", "{store}", "--all", "--json", "--html", "{folder}/page.html"],
    "explain": ["explain", "{job}", "{store}"],
    "report": ["report", "{store}", "--html", "{folder}/report.html"],
    "lessons": ["lessons", "{store}", "--json"],
    "fit": ["fit", "{store}", "--model", "{folder}/model"],
    "train wait": ["train", "wait", "{store}", "--model", "{folder}/waits"],
    "predict wait": ["predict", "wait", "{store}", "--model", "{folder}/waits", "--gpus", "8"],
}
"""By what they are called, as arguments of gpuctl."""


def run(arguments: list[str]) -> tuple[float, float] | None:
    """CPU seconds (user and system) and peak MiB of one command; None where it fails, which is said."""
    command = [sys.executable, "-m", "gpuctl", "-q", *arguments]
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)
        if status:
            errors.seek(0)
            print(f"{' '.join(arguments)}: {errors.read().decode(errors='replace').strip()}", file=sys.stderr)
            return None
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def asked(store: Path, sql: str) -> str:
    """The first value of the answer to a query."""
    command = [sys.executable, "-m", "gpuctl", "query", str(store), sql, "--format", "tsv"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1]


def main() -> None:
    """Print one line per command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="+", type=Path)
    parser.add_argument("--command", action="append", choices=COMMANDS)
    given = parser.parse_args()
    sizes = {store: int(asked(store, "SELECT count(*) FROM jobs")) for store in given.stores}
    stores = sorted(sizes, key=lambda store: sizes[store])
    last = "SELECT job FROM jobs WHERE wait_s > 0 ORDER BY submit_ts DESC, job LIMIT 1"
    jobs = {store: asked(store, last) for store in stores}
    with tempfile.TemporaryDirectory() as folder:
        measure(given.command or list(COMMANDS), stores, sizes, jobs, Path(folder))


def measure(names: list[str], stores: list[Path], sizes: dict[Path, int], jobs: dict[Path, str], folder: Path) -> None:
    """Run each command on each store and print its line."""
    print("command", *(f"{sizes[s]:,} jobs: CPU s\tMiB" for s in stores), "exponent", sep="\t")
    for name in names:
        found = []
        for number, store in enumerate(stores):
            values = {"store": store, "job": jobs[store], "folder": folder / str(number)}
            (folder / str(number)).mkdir(exist_ok=True)
            if name == "predict wait" and not (folder / str(number) / "waits").exists():
                run([part.format(**values) for part in COMMANDS["train wait"]])
            found.append(run([part.format(**values) for part in COMMANDS[name]]))
        cells = ("-\t-" if each is None else f"{each[0]:.2f}\t{each[1]:.0f}" for each in found)
        first, last_one = found[0], found[-1]
        power = "-"
        if first and last_one and sizes[stores[-1]] > sizes[stores[0]] > 0:
            power = f"{math.log(last_one[0] / first[0]) / math.log(sizes[stores[-1]] / sizes[stores[0]]):.2f}"
        print(name, *cells, power, sep="\t", flush=True)


if __name__ == "__main__":
    main()
