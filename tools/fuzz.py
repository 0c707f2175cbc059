"""Looks for inputs that break gpuctl, with other random examples at each round, until its time is over.

python tools/fuzz.py [MINUTES] [PYTEST OPTION ...]

A round that fails prints what reproduces it and ends the search; examples that Hypothesis found are also kept in
.hypothesis and tried first the next time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CASES = "12"
WHERE = ("tests/property", "tests/integration/test_hostile.py")


def main() -> int:
    """Search; returns the exit code of the round that failed, or 0."""
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    until = time.monotonic() + 60 * minutes
    seed = int(os.environ.get("GPUCTL_FUZZ_SEED") or time.time())
    rounds = 0
    while time.monotonic() < until or rounds == 0:
        environment = {**os.environ, "GPUCTL_FUZZ_SEED": str(seed), "GPUCTL_FUZZ_CASES": CASES}
        options = [f"--hypothesis-seed={seed}", "-q", "-x", *sys.argv[2:]]
        command = [sys.executable, "-m", "pytest", *WHERE, *options]
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        rounds += 1
        if code != 0:
            again = f"GPUCTL_FUZZ_SEED={seed} GPUCTL_FUZZ_CASES={CASES} {' '.join(command)}"
            print(f"fuzz: round {rounds} failed. Again: {again}", file=sys.stderr)
            return code
        seed += 1
    print(f"fuzz: {rounds} rounds of new examples, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
