"""Inputs of a policy at each look and, for training, how long S would wait if submitted then."""

from __future__ import annotations

from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.policies.mirage.slots_kernel import SLOT_MIN, SLOTS, first_slot, free_by_slot, reserve
from gpuctl.research.chain.episode_kernel import (
    FAR,
    FREE,
    LAST_WAITS,
    NEVER,
    NEXT,
    NOW,
    RUNNING,
    S_START,
    STARTED,
    WAITING,
    copy_to,
    enter_s,
    go_on,
)

HOURS = (1, 2, 4, 8, 12, 24, 47)
"""Hours ahead for which a plan gives free nodes."""

PLANNED, HOUR, WEEKDAY = 9, 10, 11
FEATURES = 12 + 2 * len(HOURS)
"""Waiting jobs, their nodes and node-hours; the longest wait so far, h; free nodes; node-hours that running jobs'
limits leave; mean wait of the last 100 that started, h; submissions of the last hour, and day; planned wait of S, h;
hour of the day; weekday; free nodes after `HOURS`, by running jobs' limits, and in the plan of all jobs."""

NAMES = (
    "queued_jobs", "queued_nodes", "queued_node_h", "longest_wait_h", "free_nodes", "running_node_h", "last_waits_h",
    "submitted_1h", "submitted_24h", "planned_wait_h", "hour", "weekday",
    *(f"free_{by}_{hours}h" for by in ("limits", "plan") for hours in HOURS),
)  # fmt: skip
PRESENT = (0, 1, 2, 3, 4, 5, PLANNED, *range(12, FEATURES))
"""Features of the present running and pending jobs."""


@inner
def _queue(e, row, now):  # type: ignore[no-untyped-def]
    """Write the features of the queue, the running jobs and the trace."""
    row[:9] = 0.0
    row[0] = e.c[WAITING]
    for k in range(e.c[WAITING]):
        j = e.line[k]
        row[1] += e.nodes[j]
        row[2] += e.nodes[j] * e.limit[j] / 60.0
        row[3] = max(row[3], (now - e.minute[j]) / 60.0)
    row[4] = e.c[FREE]
    for k in range(e.c[RUNNING]):
        row[5] += e.held[k] * max(e.until[k] - now, 0) / 60.0
    known = min(e.c[STARTED], LAST_WAITS)
    for k in range(known):
        row[6] += e.waits[k] / 60.0 / known
    k = e.c[NEXT] - 1
    while k >= 0 and e.minute[k] > now - 1440:
        row[7] += e.minute[k] > now - 60
        row[8] += 1
        k -= 1


@inner
def _plan(f, row, now):  # type: ignore[no-untyped-def]
    """Write the planned wait of S, and later free nodes before and after planning all pending jobs."""
    free_by_slot(f.slots, f.c[FREE], f.c[RUNNING], f.held, f.until, now)
    for k in range(len(HOURS)):
        row[12 + k] = f.slots[HOURS[k] * 6]
    row[PLANNED] = SLOTS * SLOT_MIN / 60.0
    for k in range(f.c[WAITING]):
        j = f.line[k]
        begin = first_slot(f.slots, f.nodes[j], f.limit[j])
        if begin >= 0:
            reserve(f.slots, begin, f.nodes[j], f.limit[j])
            if j == f.minute.size - 1:
                row[PLANNED] = begin * SLOT_MIN / 60.0
    for k in range(len(HOURS)):
        row[12 + len(HOURS) + k] = f.slots[HOURS[k] * 6]


@compiled
def look_features(e, f, clock, at, rows, waits):  # type: ignore[no-untyped-def]
    """Compute the features of the cluster in each of several minutes.

    Args:
        e: the episode, not past the first of them.
        f: a copy, for simulations ahead.
        clock: minute of the week, from Monday 0:00, at the episode's start.
        at: the minutes, ascending.
        rows: written, features [minutes, FEATURES].
        waits: written, S's wait if submitted then, minutes [minutes]; empty: not wanted.
    """
    for k in range(at.size):
        go_on(e, at[k], NEVER)
        now = e.c[NOW]
        row = rows[k]
        _queue(e, row, now)
        row[HOUR] = (clock + now) // 60 % 24
        row[WEEKDAY] = (clock + now) // 1440 % 7
        copy_to(e, f)
        enter_s(f, now)
        _plan(f, row, now)
        if waits.size > 0:
            go_on(f, FAR, S_START)
            waits[k] = f.c[S_START] - now
