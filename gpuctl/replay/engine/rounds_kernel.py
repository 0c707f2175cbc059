"""Rounds at whole multiples of a span of seconds."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.event_heap_kernel import schedule
from gpuctl.replay.engine.job_life_kernel import emit
from gpuctl.replay.engine.state import C_ROUND, E_ROUND, NAMED_TIMERS


@inner
def round_number(now, span):  # type: ignore[no-untyped-def]
    """The number of the round at or next to an instant.

    A multiple of the span, divided by it, may come out a little less or more than whole.
    """
    return np.floor(now / span + 0.5)


@inner
def is_round(s):  # type: ignore[no-untyped-def]
    """Whether this instant is a whole multiple of the span."""
    g = s.g[0]
    return round_number(g.now, g.span) * g.span == g.now


@inner
def next_multiple(now, span):  # type: ignore[no-untyped-def]
    """The first whole multiple of a span after an instant."""
    number = round_number(now, span)
    if number * span <= now:
        number += 1.0
    t = number * span
    return t if t > now else now + span


@inner
def next_round(s):  # type: ignore[no-untyped-def]
    """Schedule the next whole multiple of the span, for a compiled policy that acts only then."""
    g = s.g[0]
    node = 3 * s.jobs.size + NAMED_TIMERS
    if s.node_at[node] < 0:
        schedule(s, node, next_multiple(g.now, g.span), C_ROUND)


@inner
def rounds(s):  # type: ignore[no-untyped-def]
    """Emit the round if this instant is one, and schedule the next while jobs wait or run."""
    g = s.g[0]
    node = 3 * s.jobs.size + NAMED_TIMERS + 1
    if s.node_at[node] >= 0 or g.waiting + g.running == 0:
        return
    if is_round(s) and not _round_emitted(s):
        # no job was present when it would have been scheduled
        emit(s, E_ROUND, 1)
    schedule(s, node, next_multiple(g.now, g.span), C_ROUND)


@inner
def _round_emitted(s):  # type: ignore[no-untyped-def]
    for k in range(s.g[0].events):
        if s.events[k].kind == E_ROUND and s.events[k].who == 1:
            return True
    return False
