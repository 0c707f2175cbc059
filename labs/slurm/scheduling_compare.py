"""Says how far repetitions of a recorded scenario differ: in the order of starts, by whom, where, and in seconds.

    python -m labs.slurm.scheduling_compare FOLDER OTHER [OTHER ...]

Starts within SAME_S of each other are of one pass; their order in it is not compared.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from labs.slurm.scheduling_tables import Row, read_rows

SAME_S = 0.5


def starts(folder: Path) -> dict[tuple[str, str], Row]:
    """Rows of events.csv that are starts, by the job's name and its attempt; seconds after the scenario's beginning."""
    first = json.loads((folder / "recording.json").read_text("utf-8"))["first"]
    names = {row["job"]: row["name"] for row in read_rows((folder / "jobs.csv").read_text("utf-8"))}
    rows = read_rows((folder / "events.csv").read_text("utf-8"))
    found = {(names[row["job"]], row["attempt"]): row for row in rows if row["event"] == "start"}
    return {key: row | {"time_s": f"{float(row['time_s']) - first:.3f}"} for key, row in found.items()}


def swapped(first: dict[tuple[str, str], Row], second: dict[tuple[str, str], Row]) -> list[str]:
    """Pairs of starts whose order differs: `a>b` where `a` came first in the first recording only."""

    def when(found: dict[tuple[str, str], Row], key: tuple[str, str]) -> float:
        return float(found[key]["time_s"])

    keys = [key for key in first if key in second]
    return [
        f"{a[0]}>{b[0]}"
        for a in keys
        for b in keys
        if when(first, a) < when(first, b) - SAME_S and when(second, a) > when(second, b) + SAME_S
    ]


def compare(first: Path, second: Path) -> str:
    """One line: how the second recording's starts differ from the first's."""
    one, two = starts(first), starts(second)
    both = [key for key in one if key in two]
    elsewhere = [key[0] for key in both if one[key]["nodes"] != two[key]["nodes"]]
    other = sum(one[key]["scheduler"] != two[key]["scheduler"] for key in both)
    seconds = sorted(abs(float(one[key]["time_s"]) - float(two[key]["time_s"])) for key in both)
    order = swapped(one, two)
    late = f"{seconds[len(seconds) // 2]:.1f} s in the middle, {seconds[-1]:.1f} s at most"
    parts = [f"{len(both)} of {len(one)} starts, {late}", f"{other} by the other scheduler"]
    parts += [f"{len(order)} pairs swapped ({', '.join(order[:6])})"] if order else ["same order"]
    parts += [f"other nodes: {', '.join(elsewhere)}"] if elsewhere else ["same nodes"]
    return "; ".join(parts)


if __name__ == "__main__":
    for other in sys.argv[2:]:
        sys.stdout.write(f"{Path(other).name}: {compare(Path(sys.argv[1]), Path(other))}\n")
