"""CPU seconds and peak memory of ``gpuctl train wait`` and ``gpuctl predict wait`` on stores of growing size.

    python benchmarks/waits_sizes.py STORE [STORE …]

Each run is the real program in a process of its own, one at a time; predictions use the model of the same store. Loops
that are not compiled yet are compiled in the first run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*words: str) -> tuple[float, float]:
    """CPU seconds (user and system) and peak MiB of one command."""
    command = [sys.executable, "-m", "gpuctl", "-q", *words]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)}: ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Print one line per store and command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="+", type=Path)
    given = parser.parse_args()
    print("store", "command", "CPU s", "MiB", sep="\t")
    with tempfile.TemporaryDirectory() as folder:
        for store in given.stores:
            model = str(Path(folder) / f"{store.stem}-model")
            asked = ("predict", "wait", str(store), "--model", model)
            for name, words in {
                "train wait": ("train", "wait", str(store), "--model", model),
                "predict wait, one job": (*asked, "--gpus", "1", "--limit", "1h"),
                "predict wait --all": (*asked, "--all"),
            }.items():
                cpu, peak = run(*words)
                print(store.name, name, f"{cpu:.1f}", f"{peak:.0f}", sep="\t", flush=True)


if __name__ == "__main__":
    main()
