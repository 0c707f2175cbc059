"""Prints what every policy decides in a few random cases, as one digest a policy.

Uncompiled, an index past an array's end is an IndexError: this looks at the indices of every policy's kernels. With
``NUMBA_BOUNDSCHECK=1`` compiled code does so, too; compiling that takes minutes.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from gpuctl.replay.conformance import random_case, run, violations
from gpuctl.replay.policies import BUILT_IN, find

OWN = str(Path(__file__).resolve().parents[1] / "docs" / "examples" / "my_policies.py") + ":MakeRoom"


def digests(cases: int = 4) -> list[str]:
    """One digest of all decisions for each policy."""
    found = []
    for name in [*(n for n in BUILT_IN if n != "recorded"), OWN]:
        log = hashlib.sha256()
        for seed in range(cases):
            for resources in sorted({False, find(name).resources}):
                case = random_case(seed, resources=resources)
                outcome = run(find(name)(), *case)
                broken = violations(outcome, *case)
                if broken:
                    raise AssertionError(f"{name}, case {seed}: {broken}")
                log.update(outcome.decisions.write_ndjson().encode())
        found.append(log.hexdigest())
    return found


if __name__ == "__main__":
    print(*digests())  # noqa: T201 - the test reads it
