"""How often the finder of bad nodes is right, on made-up clusters in which some nodes are bad and none is.

python benchmarks/bad_machines.py [CLUSTERS]

Each cluster has 60 nodes of 8 GPUs, 20 users with habits of their own, 30 days, sweeps packed onto nodes, sweeps
with a mistake in them, gangs of up to 4 nodes, up to two retries (tests/unit/analyze/test_bad_machines.py); three
nodes make a share of the attempts on them fail besides.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.unit.analyze.test_bad_machines import blamed

BAD = (3, 17, 40)
SHARES = (0.1, 0.2, 0.3, 0.5)


def main() -> None:
    """Print a Markdown table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print("| attempts that a bad node spoils | bad nodes found | others blamed, of those blamed |")
    print("|---:|---:|---:|")
    print(f"| none is bad | | {sum(bool(blamed(seed, {})) for seed in range(count))} of {count} clusters blame one |")
    for share in SHARES:
        bad = dict.fromkeys(BAD, share)
        names = {f"m{code:03}" for code in BAD}
        found = [blamed(10_000 + seed, bad) for seed in range(count)]
        right, all_blamed = sum(len(one & names) for one in found), sum(map(len, found))
        wrong = f"{all_blamed - right} of {all_blamed}"
        print(f"| {share:.0%} | {right / (count * len(BAD)):.0%} | {wrong} |")


if __name__ == "__main__":
    main()
