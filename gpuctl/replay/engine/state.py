"""The arrays that hold a running simulation, and the numbers that stand for states, events and decisions.

One record per job, node and attempt; fields used together are adjacent. All are plain NumPy, so that a
running simulation is copied by copying arrays, and the same loops run compiled and uncompiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints, opener, rows, words
from gpuctl.replay.models.resources import ASK, STOCK

# ---- states of a job
HELD, WAITING, RUNNING, SUSPENDING, FINISHED, REJECTED = range(6)

# ---- classes of events: at one instant they are handled in this order
C_END, C_SUSPENDED, C_MACHINE, C_ARRIVE, C_LEASE, C_TIMER, C_ROUND = range(7)

# ---- events of an instant for a policy: (kind, job or node or timer)
E_QUEUED, E_FINISHED, E_NODE_DOWN, E_NODE_UP, E_LEASE, E_JOB_TIMER, E_TIMER, E_ROUND, E_RECLAIM = range(9)

# ---- decisions and events in the log
D_START, D_FINISH, D_FAIL, D_PREEMPT, D_SUSPENDED, D_DOWN, D_RESIZE, D_MIGRATE, D_SHARE, D_LEASE = range(10)
D_LEASE_END, D_LOAN, D_REJECT, D_RESERVE, D_GATHER, D_GIVE_UP, D_TIMEOUT, D_NODE_DOWN, D_NODE_UP = range(10, 19)
D_RECLAIM, D_RETURN, D_UNRESERVE = range(19, 22)
DECISIONS = (
    "start", "finish", "fail", "preempt", "suspended", "machine_down", "resize", "migrate", "share", "lease",
    "lease_end", "loan", "reject", "reserve", "gather", "give_up", "time_limit", "node_down", "node_up",
    "reclaim", "return", "unreserve",
)  # fmt: skip

# ---- how an attempt ended
A_RUNNING, A_FINISHED, A_FAILED, A_PREEMPTED, A_DOWN, A_MIGRATED, A_RESIZED, A_LEASE, A_TIMEOUT, A_RECLAIMED = range(10)
ENDS = (
    "running", "finished", "failed", "preempted", "machine_down", "migrated", "resized", "lease", "time_limit",
    "reclaimed",
)  # fmt: skip

# ---- ways to preempt
NOW, EPOCH, ABORT = range(3)
MODES = {"now": NOW, "epoch": EPOCH, "abort": ABORT}

# ---- placements of a gang
ANY, CONSOLIDATE, SPREAD, FILL, RACK, FEWEST, NEAR = range(7)

# ---- status of a step
STEPPED, ENDED, GROW = range(3)
NO_ROOM = -2
"""Status of an action that has done nothing: arrays must grow first."""

INSTANT_S = 1e-6
"""Grain, in seconds, of policies for which events within it are simultaneous; near a whole second, at that second."""

NAMED_TIMERS = 64
"""Timers of a policy in addition to one per job."""

JOB = np.dtype(
    # Each line is a cache line of the processor (64 bytes): fields used together are adjacent, rarely used ones come
    # last.
    [
        # ---- submission and waiting
        ("state", "i8"),
        ("parents", "i8"),  # jobs that must end before it may start; one more if think time must pass after that
        ("eligible", "i8"),  # eligible except for its parents
        ("queued", "f8"),  # when it was queued last
        ("ready", "f8"),  # when it was queued first
        ("seen", "f8"),
        ("attempts", "i8"),
        ("gpus", "i8"),
        # ---- start
        ("mask", "u8"),  # classes of nodes that suit it
        ("queue", "i8"),
        ("share", "i8"),  # its tenant, a queue or a user
        ("row", "i8"),  # of its present attempt
        ("held", "i8"),
        ("counted", "f8"),  # counted GPUs: each one divided by the number of jobs on it
        ("pace", "f8"),  # share of its speed left by turns and sharing on crowded nodes
        ("level", "i8"),  # of its placement: one node, one rack, several
        # ---- running
        ("start", "f8"),  # of the present or last attempt
        ("first_start", "f8"),
        ("last", "f8"),  # progress is counted up to here; later than now: overhead until then
        ("work", "f8"),  # of the segment, seconds at reference speed
        ("done", "f8"),  # of it, up to `last`
        ("rate", "f8"),  # reference seconds a second
        ("speed0", "f8"),  # speed on one node, in one rack, across racks
        ("peak", "i8"),  # the most GPUs that it has held
        # ---- stop
        ("host", "i8"),  # the job whose GPUs it shares; -1 none
        ("guest", "i8"),  # first of the jobs that share its GPUs, the smallest first; -1 none
        ("sharers", "i8"),  # other jobs on its GPUs, if it is the host
        ("preempts", "i8"),
        ("ran", "f8"),  # seconds on GPUs, up to `seen`
        ("attained", "f8"),  # GPU-seconds on GPUs, up to `seen`; of a shared GPU an equal part
        ("tenth", "f8"),  # what `done` is when a tenth of all its work is done; inf: it is
        ("t10", "f8"),  # when it was
        # ---- end
        ("segment", "i8"),
        ("last_segment", "i8"),
        ("lease", "f8"),  # until when; inf
        ("end", "f8"),
        ("overhead", "f8"),  # GPU-seconds held without progress
        ("stopping", "f8"),  # seconds of overhead of the suspension under way
        ("speed1", "f8"),
        ("speed2", "f8"),
        # ---- preemption
        ("lost", "f8"),  # GPU-seconds whose progress was lost
        ("epoch", "f8"),  # seconds of progress between checkpoints; inf: none
        ("suspend", "f8"),  # seconds of overhead …
        ("resume", "f8"),
        ("charge", "f8"),  # seconds of work that a preemption adds
        ("bytes", "f8"),  # of its checkpoint, written when it is suspended and read when it resumes …
        ("link", "f8"),  # … at so many bytes a second, where the storage gives them
        ("moved", "f8"),  # when the last such transfer ends
        # ---- other sizes and places
        ("move", "f8"),  # seconds of overhead of a migration or resize
        ("changes", "i8"),  # times it went from some GPUs to others
        ("alpha", "f8"),  # how badly it scales
        ("least", "i8"),  # GPUs that it may run on, its gang's number among them …
        ("most", "i8"),  # … to
        ("curve", "i8"),  # first of its speeds in `curves` …
        ("points", "i8"),  # … and how many they are; 0: as `alpha` says
        ("phases", "i8"),  # 1: its speeds change with progress …
        ("first_phase", "i8"),  # … by the rows of `phases` from here on …
        ("change", "f8"),  # … next at this progress; inf: no more
        ("row_of_speeds", "i8"),  # its class in `by_type` and `by_pair`
        # ---- rarely used
        ("submit", "f8"),
        ("think", "f8"),  # seconds from the end of its last dependency until it is eligible
        ("limit", "f8"),  # requested seconds of run time; inf
        ("anew", "f8"),  # `ran` when it last began from zero: its time limit counts from there
        ("due", "f8"),  # when its time limit is up, if limits are enforced
        ("goal", "f8"),  # work left that its turns must come down to to be worth their cost
        ("turns", "i8"),  # ended by preemption, of those that the goal is for
        ("goal_of", "i8"),  # the segment whose work the goal is in; -1 none yet
        ("pack", "f8"),  # speed next to a job on the same GPUs
        ("next_guest", "i8"),
        ("sliced", "i8"),  # as a host: time slices rather than packed
        # ---- failures of nodes
        ("every", "f8"),  # seconds of progress between checkpoints that survive them; inf: there are none
        ("write", "f8"),  # seconds without progress to write one
        ("saved", "f8"),  # what `done` was at the last one
        ("written", "f8"),  # seconds into the one that is being written
        ("fresh", "f8"),  # GPU-seconds of progress since
        ("wrote", "f8"),  # GPU-seconds of writes
        ("load", "f8"),  # GPU-seconds of starts after failures, part of `overhead`
        ("stalled", "f8"),  # GPU-seconds held from a failure until it is noticed
        ("undone", "f8"),  # seconds of progress that failures undid
        ("failures", "i8"),  # interruptions by failures
        ("reload", "i8"),  # 1: its last checkpoint is yet to be loaded after a failure
        ("stalls", "i8"),  # 1: a node has failed, which is not noticed yet
    ],
    align=True,
)

NODE = np.dtype(
    [
        ("cap", "i8"),
        ("free", "i8"),
        ("hidden", "i8"),  # free, but hidden from placement
        ("cls", "i8"),
        ("home", "i8"),  # the class that it belongs to while it is not lent
        ("back", "f8"),  # when it must return; inf
        ("rack", "i8"),
        ("up", "i8"),
        ("reserved_for", "i8"),  # the job that has reserved …
        ("reserved_gpus", "i8"),  # … this many GPUs …
        ("reserved_from", "f8"),  # … from this second on
        ("type", "i8"),  # of its GPUs, in `by_type`
        ("kind", "i8"),  # the same, as the cluster numbers types; -1: not known
        ("requested", "i8"),  # GPUs requested of it, if it can be oversubscribed
    ],
    align=True,
)

ATTEMPT = np.dtype(
    [
        ("start", "f8"),
        ("end", "f8"),
        ("own", "f8"),  # from when on it owns its GPUs, rather than the job that it shares with; inf never
        ("first", "i8"),  # of its pieces
        ("pieces", "i4"),
        ("job", "i4"),
        ("gpus", "i4"),
        ("group", "i4"),  # the attempt whose GPUs they were to begin with: itself, or that of the first host
        ("how", "i4"),
    ],
    align=True,
)

PIECE = np.dtype([("node", "i4"), ("gpus", "i4")])

TURN = np.dtype([("t", "f8"), ("counted", "f8"), ("pace", "f8"), ("row", "i8")], align=True)
"""Counted GPUs of an attempt and its job's share of speed, from a second on."""


PHASE = np.dtype([("until", "f8"), ("curve", "i8"), ("points", "i8")], align=True)
"""Work done, in seconds, up to which a speed curve holds; inf: to the job's end."""

NEED = np.dtype([("cpu", "i8"), ("mem", "i8")])


LOG = np.dtype(
    [("t", "f8"), ("job", "i4"), ("gpus", "i4"), ("row", "i4"), ("reason", "i2"), ("what", "i2")], align=True
)

EVENT = np.dtype([("kind", "i8"), ("who", "i8")])

GLOBAL = np.dtype(
    [
        ("now", "f8"),
        ("heap", "i8"),  # events in the heap
        ("sequence", "i8"),
        ("arrival", "i8"),  # next of the arrivals
        ("machine", "i8"),  # next of the node events
        ("attempts", "i8"),
        ("pieces", "i8"),
        ("log", "i8"),
        ("events", "i8"),  # of this instant
        ("carried", "i8"),  # of them, those repeated at the next instant
        ("free", "i8"),  # GPUs of all nodes that are up
        ("total", "i8"),
        ("waiting", "i8"),
        ("running", "i8"),  # jobs that hold GPUs
        ("left", "i8"),  # jobs that have neither finished nor been rejected
        ("reservations", "i8"),  # nodes with a reservation
        ("instants", "i8"),
        ("chosen", "i8"),  # pieces in `choice`
        ("stops", "i8"),  # 1: every segment is an attempt of its own, as recorded
        ("limits", "i8"),  # whether time limits are enforced
        ("slice", "f8"),  # seconds of a time slice …
        ("switch", "f8"),  # … and of the switch between two
        ("span", "f8"),  # seconds from one round to the next; 0: no rounds
        ("decision_phase", "i8"),  # 0: the policy has seen this instant; 2: its hooks have, decide has not
        ("mode", "i8"),  # how jobs are preempted: NOW, EPOCH, ABORT
        ("patience", "i8"),  # turns allowed before they must pay for their cost; 0: any number
        ("storage", "f8"),  # bytes a second for all transfers of checkpoints together
        ("moving", "i8"),  # jobs in `moving`
        ("resources", "i8"),  # 1: CPUs and memory also count
        ("splits", "i8"),  # pieces that jobs without GPUs may hold, in all
        ("at_once", "i8"),  # most nodes that go down and come up at one instant
        ("cpu", "f8"),  # CPUs, in thousandths, and MB of the nodes that are up, if known
        ("mem", "f8"),
        ("typed", "i8"),  # 1: speeds go by GPU types
        ("paired", "i8"),  # 1: speeds of packed jobs go by the pairs of their classes
        ("grain", "f8"),  # seconds within which things happen at one instant; 0: at the very same second
        ("crowded", "i8"),  # most oversubscription of a node by jobs that take turns; 0: none
        ("paced", "i8"),  # 1: the policy sets the speeds of jobs itself, see `crowd_kernel.set_turn`
        ("turns", "i8"),
        ("whole", "i8"),  # GPUs of the largest node, if gangs on the fewest nodes of one rack count as on one; 0: else
        ("failing", "i8"),  # 1: nodes that go down fail, and jobs go back to checkpoints of their own
        ("detect", "f8"),  # seconds until a failure is noticed
        ("restart", "f8"),  # seconds without progress at the start after one
        ("requeue", "i8"),  # how interrupted jobs queue again: `gpuctl.replay.engine.requeue_kernel`
        ("injected", "i8"),  # failures of nodes that were up
    ],
    align=True,
)


class State(Bundle):
    """A simulation at one instant; every field is an array (lengths in brackets)."""

    g = rows(GLOBAL)  # scalars [1]
    jobs = rows(JOB)  # [jobs]
    nodes = rows(NODE)  # [nodes]
    heap_t = floats()  # times of coming events, a binary heap; at most one event a node
    heap_c = ints()  # class and number that order events of one instant
    # owner of the event: job, then the job's timer, its lease, then named timers, the round of a compiled policy (and
    # the second look at an instant), that of a policy written in Python, then nodes that are lent
    heap_node = ints()
    node_at = ints()  # place of each node in the heap; -1 none [3 jobs + named timers + 2 + nodes]
    arrivals = ints()  # jobs by the second from which they are eligible [jobs]
    arrive_t = floats()  # that second
    machine_t = floats()  # seconds at which nodes go down or come up
    machine_node = ints()  # node
    machine_up = (
        ints()
    )  # 1 or 0; 2: its jobs fail, and it is back at once; 3: it takes no new jobs, and keeps those it has
    bits = words(3)  # [classes, most GPUs + 1, words]: a bit per node of a class with this many GPUs free
    count = ints(2)  # [classes, most GPUs + 1]: their number
    class_free = ints()  # [classes]: GPUs free
    class_cap = ints()  # [classes]: GPUs of the largest node
    rack_free = ints(2)  # [classes, racks]
    queue_used = ints()  # [queues]: GPUs that its jobs hold; shared ones count for their owner
    queue_limit = floats()  # [queues]: the most that they may hold
    share_used = ints()  # [queues or users]: the same for each
    segment_s = floats()  # seconds of each segment of each job
    segment_fails = ints()  # whether it ends in a failure
    child_first = ints()  # [jobs + 1]: jobs that wait for this one: `children[child_first[j]:child_first[j + 1]]`
    children = ints()  # job numbers
    choice = rows(PIECE)  # pieces that a placement has chosen [nodes]
    order = ints()  # nodes, scratch [nodes]
    attempts = rows(ATTEMPT)  # every attempt so far
    pieces = rows(PIECE)  # their pieces
    log = rows(LOG)  # decisions
    events = rows(EVENT)  # of this instant
    # newly queued jobs, for policies written in Python; for compiled ones, 1: a job is queued for the first time [jobs]
    fresh = ints()
    moving = ints()  # jobs whose checkpoints are being written or read [jobs]
    asks = rows(ASK)  # per job, if CPUs and memory count [jobs or 1], and so on:
    stock = rows(STOCK)  # of each node
    need = rows(NEED)  # of each piece in `choice`
    needs = rows(NEED)  # of each piece in `pieces`
    share_need = rows(NEED)  # what the jobs of each queue or user hold
    # speeds by class of jobs, GPU type and placement [classes, types, 3]; [1, 1, 1] if types are equal
    by_type = floats(3)
    # speeds by class of a job and of the one packed with it [classes, classes]; [1, 1] without a table
    by_pair = floats(2)
    curves = floats()  # speeds on 1, 2, 3 … GPUs, one curve after the other
    phases = rows(PHASE)  # of jobs whose speeds change, those of one job after the other; [1] without any
    turns = rows(TURN)  # counted GPUs of attempts on crowded nodes, by time


def wanted(g: Any, nodes: int) -> tuple[int, int, int, int, int]:
    """Sizes of log, attempts, pieces, events and turns that suffice for the next step.

    A step is the engine's step, one pass of a compiled policy, or one action of a policy written in Python; the sizes
    are checked before each. None writes more than four lines, attempts or events for each job that waits or runs, and
    two for each node (reserved, down or reclaimed); the pieces of jobs that hold GPUs at one time are at most the GPUs,
    times the oversubscription, and a pass places a job at most twice.
    """
    some = 4 * (g.waiting + g.running) + 2 * nodes + g.at_once + 64
    pieces = g.pieces + 2 * g.total * max(g.crowded, 1) + g.splits + some
    return g.log + some, g.attempts + some, pieces, g.events + some, g.turns + some if g.crowded + g.paced > 0 else 0


state_at = opener(State)
"""For compiled code: the simulation at an address."""
