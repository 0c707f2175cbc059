"""Records what small real trainings print, and beside it the values that they had.

    python record.py NAME FOLDER        e.g.  python record.py keras tests/fixtures/progress

writes NAME.log (standard output and error together) and NAME.csv (the truth: epoch, metric, value; the numbers that the
program computed, not those it printed). README.md says which packages each one needs.
"""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"


def record(name: str, folder: Path) -> None:
    truth = folder / f"{name}.csv"
    with (folder / f"{name}.log").open("wb") as log:
        subprocess.run(
            [sys.executable, "-W", "ignore", PROGRAMS / f"{name}.py", truth],
            stdout=log,
            stderr=subprocess.STDOUT,
            check=True,
            cwd="/tmp",
        )
    with truth.open(newline="") as file:
        rows = sum(1 for _ in csv.reader(file))
    sys.stdout.write(f"{name}: {rows - 1} values\n")


if __name__ == "__main__":
    for program in sys.argv[1:-1]:
        record(program, Path(sys.argv[-1]).resolve())
