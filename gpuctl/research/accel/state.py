"""State of the compiled loop of layers: the costs, the requests, and their progress."""

from __future__ import annotations

from gpuctl.compiled.bundles import Bundle, flags, floats, ints

EPS = 1e-6
"""Microseconds within which two times are one."""

NOBODY = -1
PENDING, READY, RUNNING, FINISHED, DROPPED = range(5)
"""What a request is."""

(ARRIVED, READY_COUNT, PLANNED, LOGGED, DECISIONS, CANDIDATES, DROPS, ASKED, ORDER, PLACE, BEHIND, DROP, WATCH, MET,
 MISSED, ROWS, HEAP, HIDDEN) = range(18)  # fmt: skip
"""Places of counters and choices."""
COUNTERS = 18

NOW, ENERGY, OVER, USED, BANDWIDTH, PERIOD = range(6)
"""Places of numbers."""
NUMBERS = 6

FCFS, EDF, LLF, SJF, MIX, RANDOM, FIXED, NET_B, NET_A, OUTSIDE = range(10)
"""Orders of requests: by rules, by keys that are given, by nets, and by what an agent outside says."""

IDLE, EFT, BEST, AFFINITY = range(4)
"""Where a request goes."""

SEEN_REQUESTS = 32
"""Requests that an agent sees, those with the least slack."""
OF_REQUEST, OF_ACCEL, OF_ALL = 8, 3, 4
"""Numbers that it sees of each request, beside three for each sub-accelerator; of each of these; and of all."""


TRAITS = 4
"""log(alone / best), demand / bandwidth (at most 3), log(1 + alone / 100 us), computing time / alone."""
WORK_US, FREE_US, MOST = 3000.0, 100.0, 3.0
"""Scales of what is seen, and where it is cut."""


class State(Bundle):
    """A system, its requests, and their progress.

    The first arrays are the costs, by flat layer and sub-accelerator.
    """

    compute = floats(2)  # microseconds at full speed
    demand = floats(2)  # bytes a microsecond
    alone = floats(2)  # microseconds alone: max(compute, bytes / bandwidth)
    energy = floats(2)  # microjoules
    best = floats()  # least `alone` [layers]
    rest = floats()  # sum of `best` from this layer to the model's last [layers]
    log_rest = floats()  # log(rest / WORK_US) [layers]
    traits = floats(2)  # inputs of nets for a layer: TRAITS numbers for each sub-accelerator [layers, TRAITS accels]
    first = ints()  # flat layer [requests]
    last = ints()  # flat layer [requests]
    arrival = floats()  # [requests]
    deadline = floats()  # [requests]
    arrivals = ints()  # requests by arrival [requests]
    state = ints()  # [requests]
    at = ints()  # flat layer that runs or is next [requests]
    start = floats()  # of its first layer; NaN: none [requests]
    end = floats()  # of its last layer; NaN: none [requests]
    late = flags()  # whether it was found to be late [requests]
    ready = ints()  # requests that wait for a decision, unordered [requests]
    place = ints()  # index of each of these there [requests]
    on = ints()  # request that runs there [accels]
    left = floats()  # computing time [accels]
    speed = floats()  # [accels]
    started = floats()  # time [accels]
    wants = floats()  # demands, ascending; for `share` [accels]
    by = ints()  # request of each of these [accels]
    free = floats()  # microseconds until it is free, filled during a decision [accels]
    taken = flags()  # whether it is idle and a decision has given it a layer [accels]
    plan_request = ints()  # [requests]
    plan_accel = ints()
    plan_layer = ints()
    key = ints()  # order, ascending keys [requests]
    heap = ints()  # requests [requests]
    keys = ints()  # keys of FIXED [requests], or of RANDOM [layers of all requests]
    keys_at = ints()  # of RANDOM: index of each request's first layer [requests]
    weights = floats()  # of a net
    hidden = floats()  # scratch of a net
    features = floats(2)  # of NET_B [requests, OF_REQUEST]
    rows = ints()  # requests that an agent sees, by slack [SEEN_REQUESTS]
    place_seen = ints()  # index of each request there [requests]
    seen = floats(2)  # of these [SEEN_REQUESTS, OF_REQUEST + 3 accels]
    seen_accels = floats(2)  # [accels, OF_ACCEL]
    seen_all = floats()  # [OF_ALL]
    action = floats(2)  # a priority, and an affinity for each sub-accelerator [SEEN_REQUESTS, 1 + accels]
    log_request = ints()  # layers, by their end
    log_layer = ints()  # number in its model
    log_accel = ints()
    log_start = floats()
    log_end = floats()
    c = ints()  # the constants named above
    f = floats()  # the constants named above
