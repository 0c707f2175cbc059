"""What the containers of the recorded applications run: a few epochs, then a failure that standard error tells."""

from __future__ import annotations

import sys
import time


def load(path: str) -> bytes:
    """Read the next shard of the data."""
    with open(path, "rb") as shard:  # noqa: PTH123 (as a user would write it)
        return shard.read()


def main() -> None:
    """Train three epochs; the fourth shard is not there."""
    sys.stderr.write("WARNING: no GPU found, 0 errors so far\n")
    for epoch in range(1, 4):
        sys.stdout.write(f"epoch {epoch} loss {1.0 / epoch:.4f}\n")
        time.sleep(0.05)
    for line in range(int(sys.argv[1])):
        sys.stdout.write(f"step {line} of the long run, nothing to see\n")
    sys.stdout.write("größe: 3 shards\n")
    sys.stdout.flush()
    load("/data/imagenet/shard-0004.tar")


if __name__ == "__main__":
    main()
