"""How many examples a property is tried on."""

from __future__ import annotations

import os

SEARCHING = bool(os.environ.get("GPUCTL_FUZZ_SEED"))
"""Whether `make fuzz` runs, which draws other examples each time and has the time for many."""
_PART, _LEAST = 6, 8


def examples(many: int) -> int:
    """As many in a search; with all tests, which draw the same ones each time, the first sixth."""
    return many if SEARCHING else max(_LEAST, many // _PART)
