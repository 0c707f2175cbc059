"""The one loop that every compiled policy runs in: to the next instant, then what the policy does there."""

from __future__ import annotations

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.instant_kernel import next_instant
from gpuctl.replay.engine.state import GROW, STEPPED


@inner
def loop(s, decide, memory, until, steps):  # type: ignore[no-untyped-def]
    """Go on for so many instants, or to the end.

    Args:
        s: the simulation.
        decide: called with it and with all of `memory` at each instant, once all that happens there has been told in
            ``s.events``. It returns true where it must be called again at this instant, after arrays have grown.
        memory: what the policy remembers, a tuple of bundles.
        until: the last instant.
        steps: the most instants.

    Returns:
        As `step` does.
    """
    for _ in range(steps):
        status = next_instant(s, until)
        if status != STEPPED:
            return status
        if decide(s, *memory):
            return GROW
        s.g[0].asked = 0
    return STEPPED
