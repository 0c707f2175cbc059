"""List the signatures that explain failures of several tools rightly: `python tools/confirm_signatures.py`.

A root signature states a confidence of 0.95 if it gave the right reason for recordings of at least `LEAST` programs or
libraries, and of the others 0.9. The held-out recordings are not read: they show whether the bound is honest.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from gpuctl.joblogs.table import CONFIRMED, LEAST_CONFIRMED, Tier, load
from tests.failure_corpus import cases, judge

SPLITS = ("dev", "fresh", "gpu", "tools", "another_hand")


def confirmed() -> dict[str, int]:
    """Return how many programs' failures each root signature explained rightly, of those with at least the least."""
    signatures = load().signatures
    programs: dict[str, set[str]] = {}
    for split in SPLITS:
        for case in cases(split):
            outcome = judge(case, with_facts=True)
            name = outcome.verdict.signature
            if case.reason is not None and outcome.right and name in signatures:
                programs.setdefault(str(name), set()).add(case.program)
    return {
        name: len(found)
        for name, found in sorted(programs.items())
        if signatures[name].tier == Tier.ROOT and len(found) >= LEAST_CONFIRMED
    }


if __name__ == "__main__":
    found = confirmed()
    CONFIRMED.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{len(found)} signatures are confirmed by {LEAST_CONFIRMED} programs or more: {CONFIRMED}")
