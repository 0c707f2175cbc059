"""The compiled loop over a log that writes what was known of queue and cluster at some instants."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.background_loop import DONE, STOP
from gpuctl.compiled.jit import compiled, inner
from gpuctl.replay.policies.mirage.slots_kernel import SLOT_MIN, SLOTS, first_slot, free_by_slot, reserve

HOURS = (1, 2, 4, 8, 12, 24, 47)
"""After which it is looked up how much is free."""
ENTER, START, END = 0, 1, 2
"""Kinds of events, in the order in which those of one instant happen to one job."""
GROUPS = 4
"""Jobs that are alike: all, of a queue, of a size class, of a user."""
FAST, SLOW = 0.2, 0.02
"""Weight of a new wait in the two running means of each group."""
PLANNED = 200
"""Waiting jobs that are planned ahead of a new one."""
LOOKED_BACK = 300
"""Submissions, at most, among which a user's own of the last hour are counted."""
OWN, FEATURES = 4, 27 + len(HOURS) + 3 * GROUPS
HOUR_S, DAY_S = 3600.0, 86_400.0


@inner
def _learn(means, row, wait):  # type: ignore[no-untyped-def]
    """Update a group with a wait: the last one, and two running means of log(1 + seconds)."""
    log_wait = np.log(1.0 + max(wait, 0.0))
    if means[row, 0] < 0:
        means[row, 1] = means[row, 2] = log_wait
    means[row, 0] = log_wait
    means[row, 1] += FAST * (log_wait - means[row, 1])
    means[row, 2] += SLOW * (log_wait - means[row, 2])


@inner
def _queue(now, line, length, gone, ready, size, limit, queue, user, own, out):  # type: ignore[no-untyped-def]
    """Write the features of waiting jobs: in total, of the same queue, of the same user, smaller and larger ones."""
    oldest = 0.0
    for k in range(length):
        j = line[k]
        if gone[j]:
            continue
        since = now - ready[j]
        oldest = max(oldest, since)
        out[0] += 1
        out[1] += size[j]
        out[2] += size[j] * limit[j] / HOUR_S
        out[4] += np.log(1.0 + since)
        if queue[j] == own[2]:
            out[5] += 1
            out[6] += size[j]
            out[7] = max(out[7], since / HOUR_S)
        if user[j] == own[3]:
            out[8] += 1
        if size[j] >= own[0]:
            out[9] += 1
        if limit[j] <= own[1]:
            out[10] += 1
    out[3] = oldest / HOUR_S
    if out[0] > 0:
        out[4] /= out[0]


@inner
def _running(now, held, count, leave, size, limit, queue, user, own, most, until, nodes, slots, out):  # type: ignore[no-untyped-def]
    """Write the running and free resources, now and by limits; fill the slots of a plan."""
    for k in range(count):
        j = held[k]
        left = max(leave[j] + limit[j] - now, 0.0)
        until[k] = np.int64(left / 60.0) + 1
        nodes[k] = np.int64(np.ceil(size[j]))
        out[0] += 1
        out[1] += size[j]
        out[2] += size[j] * left / HOUR_S
        if queue[j] == own[2]:
            out[3] += size[j]
        if user[j] == own[3]:
            out[4] += size[j]
    out[5] = most
    out[6] = most - out[1]
    out[7] = out[6] - own[0]
    free_by_slot(slots, np.int64(out[6]), count, nodes, until, 0)
    for k in range(len(HOURS)):
        out[8 + k] = slots[HOURS[k] * 6]


@inner
def _plan(line, length, gone, size, limit, own, slots):  # type: ignore[no-untyped-def]
    """Return the planned wait of a new job behind the first of the waiting jobs, h."""
    done = 0
    for k in range(length):
        j = line[k]
        if gone[j]:
            continue
        minutes = np.int64(min(limit[j], 1e7) / 60.0) + 1
        begin = first_slot(slots, np.int64(np.ceil(size[j])), minutes)
        if begin >= 0:
            reserve(slots, begin, np.int64(np.ceil(size[j])), minutes)
        done += 1
        if done == PLANNED:
            break
    begin = first_slot(slots, np.int64(np.ceil(own[0])), np.int64(min(own[1], 1e7) / 60.0) + 1)
    return SLOTS * SLOT_MIN / 60.0 if begin < 0 else begin * SLOT_MIN / 60.0


@compiled
def sweep(  # type: ignore[no-untyped-def]
    when, kind, of, ready, leave, wait, size, limit, queue, user, keys, means, asks, own, own_keys, own_job, out,
    watched,
):  # fmt: skip
    """Replay a log's events, and write at each query's instant what was known just before it.

    Events at the instant itself are not known yet, except jobs that entered the queue before the queried job.

    Args:
        when: time of each event, s, in order.
        kind: of each event.
        of: job of each event.
        ready: eligibility of each job, s, in order.
        leave: time at which it left the queue, s.
        wait: its wait, s; NaN if it never started.
        size: its size.
        limit: its time limit, s.
        queue: number of its queue.
        user: number of its user.
        keys: groups of each job, rows of `means` [jobs, GROUPS].
        means: last wait and running means of each group, log(1 + s); below 0: none yet. Changed [groups, 3].
        asks: seconds, ascending [asks].
        own: size, limit, queue and user of the queried jobs [asks, OWN].
        own_keys: groups of each of them; below 0: a group that the log lacks [asks, GROUPS].
        own_job: number of each in the log; the number of jobs if it is not in it [asks].
        out: written [asks, FEATURES]; -1 if there is nothing yet.
        watched: steps done are queries (`gpuctl.compiled.background_loop`).
    """
    jobs = ready.size
    line, held, place = np.empty(jobs, np.int64), np.empty(jobs, np.int64), np.empty(jobs, np.int64)
    gone = np.zeros(jobs, np.bool_)
    until, nodes = np.empty(jobs, np.int64), np.empty(jobs, np.int64)
    slots = np.empty(SLOTS, np.int64)
    length = count = waiting = entered = hour = day = at = 0
    work = most = used = 0.0
    last_start = clock = -1.0
    for n in range(asks.size):
        if watched[STOP] != 0:
            return
        watched[DONE] = n
        now = asks[n]
        while at < when.size and (when[at] < now or (when[at] == now and kind[at] == ENTER and of[at] < own_job[n])):
            j = of[at]
            if when[at] > clock:
                # all events before the instant have been processed
                most, clock = max(most, used), when[at]
            if kind[at] == ENTER:
                line[length] = j
                length += 1
                waiting += 1
                entered += 1
                work += size[j] * limit[j] / HOUR_S
            elif kind[at] == START:
                gone[j] = True
                waiting -= 1
                if not np.isnan(wait[j]):
                    place[j] = count
                    held[count] = j
                    count += 1
                    used += size[j]
                    last_start = when[at]
                    for g in range(GROUPS):
                        _learn(means, keys[j, g], wait[j])
                if length > 64 and length > 2 * waiting:
                    kept = 0
                    for k in range(length):
                        if not gone[line[k]]:
                            line[kept] = line[k]
                            kept += 1
                    length = kept
            elif not np.isnan(wait[j]):
                count -= 1
                used -= size[j]
                held[place[j]] = held[count]
                place[held[count]] = place[j]
            at += 1
        while hour < entered and ready[hour] < now - HOUR_S:
            hour += 1
        while day < entered and ready[day] < now - DAY_S:
            work -= size[day] * limit[day] / HOUR_S
            day += 1
        row = out[n]
        row[:] = 0.0
        row[:2] = own[n, :2]
        row[1] /= HOUR_S
        _queue(now, line, length, gone, ready, size, limit, queue, user, own[n], row[2:13])
        most = max(most, used)
        _running(
            now,
            held,
            count,
            leave,
            size,
            limit,
            queue,
            user,
            own[n],
            most,
            until,
            nodes,
            slots,
            row[13 : 21 + len(HOURS)],
        )
        first = 21 + len(HOURS)
        row[first] = _plan(line, length, gone, size, limit, own[n], slots)
        row[first + 1] = entered - hour
        row[first + 2] = entered - day
        row[first + 3] = work
        k = entered - 1
        while k >= hour and entered - k <= LOOKED_BACK:
            row[first + 4] += user[k] == own[n, 3]
            k -= 1
        row[first + 5] = (now - last_start) / HOUR_S if last_start >= 0 else -1.0
        first += 6
        for g in range(GROUPS):
            for k in range(3):
                row[first + 3 * g + k] = means[own_keys[n, g], k] if own_keys[n, g] >= 0 else -1.0
