from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from gpuctl.core.memory import give_back_library


def resident(name: str) -> int:
    """KiB of a library that are in memory, but for what was written to."""
    total, mine = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        first, *rest = line.split()
        if not first.endswith(":"):
            mine = len(rest) == 5 and name in rest[4]
        elif mine and first in {"Rss:", "Anonymous:"}:
            total += int(rest[0]) if first == "Rss:" else -int(rest[0])
    return total


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell what of a library is in memory")
def test_the_code_of_a_library_leaves_memory_and_round_trips() -> None:
    name = "_multiarray_umath"
    values = np.arange(1000.0)
    wanted = np.sort(values[::-1]).sum()
    before = resident(name)
    give_back_library(name)
    assert resident(name) < before / 2
    # what its code and its data say is what they said before
    assert np.sort(values[::-1]).sum() == wanted
    assert resident(name) > 0
    give_back_library("no library is called so")
