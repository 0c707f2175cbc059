"""Looks for inputs that break gpuctl, with other random examples at each round, until its time is over.

python tools/fuzz.py [MINUTES] [PYTEST OPTION ...]

A round that fails prints what reproduces it and ends the search; examples that Hypothesis found are also kept in
.hypothesis and tried first the next time. The first round of a search of two hours and more
goes through every file of the project, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CASES = "12"
STRUCTURED = "12"
TORN = "2"
TRACES = "50"
EVERY_FILE_MINUTES = 120.0
"""Going through every file takes more than an hour: shorter searches do without."""
WHERE = (
    "tests/property",
    "tests/unit/store/test_database.py",
    "tests/integration/test_hostile.py",
    "tests/integration/test_rules.py",
    "tests/integration/test_every_output.py",
    "tests/integration/test_kill.py",
    "tests/integration/test_report_cli.py",
)


def searched(seed: int, every_file: bool) -> dict[str, str]:
    """What makes the tests of one round search: seeds, and how much is tried."""
    names = {
        "GPUCTL_FUZZ_SEED": str(seed),
        "GPUCTL_FUZZ_CASES": CASES,
        "GPUCTL_STRUCTURED": STRUCTURED,
        "GPUCTL_TORN": TORN,
        "GPUCTL_TORN_SEED": str(seed),
        "GPUCTL_TRACES": TRACES,
        "GPUCTL_TRACES_SEED": str(seed),
    }
    # its inputs are the same in each round
    return names | ({"GPUCTL_EVERY_FILE": "1"} if every_file else {})


def main() -> int:
    """Search; returns the exit code of the round that failed, or 0."""
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    until = time.monotonic() + 60 * minutes
    seed = int(os.environ.get("GPUCTL_FUZZ_SEED") or time.time())
    rounds = 0
    while time.monotonic() < until or rounds == 0:
        names = searched(seed, every_file=rounds == 0 and minutes >= EVERY_FILE_MINUTES)
        print(f"fuzz: round {rounds + 1}, {' '.join(f'{name}={value}' for name, value in names.items())}", flush=True)
        # one fixture searches for as long as the traces that it is given take
        options = [f"--hypothesis-seed={seed}", "-q", "-x", "--timeout=3600", *sys.argv[2:]]
        command = [sys.executable, "-m", "pytest", *WHERE, *options]
        code = subprocess.run(command, cwd=ROOT, env={**os.environ, **names}, check=False).returncode
        rounds += 1
        if code != 0:
            again = " ".join([*(f"{name}={value}" for name, value in names.items()), *command])
            print(f"fuzz: round {rounds} failed. Again: {again}", file=sys.stderr)
            return code
        seed += 1
    print(f"fuzz: {rounds} rounds of new examples, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
