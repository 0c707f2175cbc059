"""The compiled clock of node heartbeats: the next node, and skipped idle stretches.

Node ``i`` of ``n`` beats at ``(k + i / n) * interval``, so that beats are numbered ``k * n + i`` in order of time. Ends
within `NEAR` after a beat count as before it: containers start at beats, and sums of floating-point seconds deviate
slightly.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner

NEAR = 1e-7
"""Seconds."""


@inner
def beat_time(number, nodes, interval):  # type: ignore[no-untyped-def]
    """The second of a beat."""
    return (number // nodes) * interval + (number % nodes) * interval / nodes


@inner
def beat_from(t, nodes, interval):  # type: ignore[no-untyped-def]
    """The number of the first beat at or after `t`."""
    number = np.int64(np.floor(t / interval)) * nodes
    number += np.int64(np.ceil((t - number // nodes * interval - NEAR) / interval * nodes - 1e-9))
    number = max(number, 0)
    while number > 0 and beat_time(number - 1, nodes, interval) >= t - NEAR:
        number -= 1
    while beat_time(number, nodes, interval) < t - NEAR:
        number += 1
    return number
