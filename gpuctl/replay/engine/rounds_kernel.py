"""The rounds of a policy written in Python: at whole multiples of its `every` seconds, while jobs wait or run."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.event_heap_kernel import schedule
from gpuctl.replay.engine.job_life_kernel import tell
from gpuctl.replay.engine.state import C_ROUND, E_ROUND, NAMED_TIMERS


@inner
def rounds(s):  # type: ignore[no-untyped-def]
    """Tell of the round where this instant is one, and call the next one while jobs wait or run."""
    g = s.g[0]
    node = 3 * s.jobs.size + NAMED_TIMERS + 1
    if s.node_at[node] >= 0 or g.waiting + g.running == 0:
        return
    # a multiple of the span, divided by it, may come out a little less or more than whole
    number = np.floor(g.now / g.span + 0.5)
    if number * g.span == g.now and not _told(s):
        # nobody was here when it would have been called
        tell(s, E_ROUND, 1)
    if number * g.span <= g.now:
        number += 1.0
    t = number * g.span
    schedule(s, node, t if t > g.now else g.now + g.span, C_ROUND)


@inner
def _told(s):  # type: ignore[no-untyped-def]
    for k in range(s.g[0].events):
        if s.events[k].kind == E_ROUND and s.events[k].who == 1:
            return True
    return False
