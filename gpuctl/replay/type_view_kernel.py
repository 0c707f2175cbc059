"""The compiled calls behind what a Python policy sees of GPU types; see `gpuctl.replay.view_kernel` for the manner."""

from __future__ import annotations

from gpuctl.replay.arrays import entry
from gpuctl.replay.state import state_at
from gpuctl.replay.type_kernel import rate_now


@entry
def rate(address, j):  # type: ignore[no-untyped-def]
    """Reference seconds a second that a job comes forward by now."""
    return rate_now(state_at(address), j)
