"""CPU seconds and peak memory of each table of ``gpuctl analyze`` alone, and how both grow with the log.

    python benchmarks/tables.py STORE STORE [STORE …] [--table NAME …]

The stores are of the same kind of log, of growing size. Every run is the real program in a process of its own, one at a
time. The growth exponent is that of the CPU seconds above those of the smallest table, from the smallest to the largest
store: 1 is linear. Tables are in the order of their cost on the largest store.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from pathlib import Path

from gpuctl.queries.catalogue import built_in


def run(store: Path, table: str) -> tuple[float, float]:
    """CPU seconds (user and system) and peak MiB of one table of a store."""
    command = [sys.executable, "-m", "gpuctl", "-q", "analyze", str(store), "--table", table, "--format", "tsv"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        message = child.stderr.read().decode(errors="replace") if child.stderr else ""
        sys.exit(f"{' '.join(command)}: ended with {os.waitstatus_to_exitcode(status)}\n{message}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def jobs(store: Path) -> int:
    """Jobs in a store."""
    command = [sys.executable, "-m", "gpuctl", "query", str(store), "SELECT count(*) FROM jobs", "--format", "tsv"]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main() -> None:
    """Print one line per table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores", nargs="+", type=Path)
    parser.add_argument("--table", action="append")
    given = parser.parse_args()
    sizes = {store: jobs(store) for store in given.stores}
    stores = sorted(sizes, key=lambda store: sizes[store])
    found = {}
    for name in given.table or [name for name, one in built_in().items() if not one.reference]:
        found[name] = [run(store, name) for store in stores]
        print(f"measured {name}", file=sys.stderr, flush=True)
    start = min(each[0][0] for each in found.values())
    print("table", *(f"{sizes[s]:,} jobs: CPU s\tMiB" for s in stores), "exponent", sep="\t")
    for name, each in sorted(found.items(), key=lambda item: -item[1][-1][0]):
        low, high = (max(each[k][0] - start, 0.01) for k in (0, -1))
        ratio = sizes[stores[-1]] / max(1, sizes[stores[0]])
        power = f"{math.log(high / low) / math.log(ratio):.2f}" if ratio > 1 else "-"
        print(name, *(f"{cpu:.2f}\t{peak:.0f}" for cpu, peak in each), power, sep="\t")


if __name__ == "__main__":
    main()
