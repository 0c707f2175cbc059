"""The arrays that hold a running simulation, and the numbers that stand for states, events and decisions.

One record a job, a node, an attempt; what is touched together lies together. All of it is plain NumPy, so that a
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

# ---- what a policy is told of an instant: (kind, job or node or timer)
E_QUEUED, E_FINISHED, E_NODE_DOWN, E_NODE_UP, E_LEASE, E_JOB_TIMER, E_TIMER, E_ROUND, E_RECLAIM = range(9)

# ---- decisions and occurrences, as the log has them
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

# ---- where a gang may go
ANY, CONSOLIDATE, SPREAD, FILL, RACK, FEWEST, NEAR = range(7)

# ---- what a step came back with
STEPPED, ENDED, GROW = range(3)
NO_ROOM = -2
"""What an action of a policy comes back with that has done nothing yet: arrays must grow first."""

INSTANT_S = 1e-6
"""The grain of policies for which what happens within a millionth of a second happens at one instant, and within that
of a whole second at that second."""

NAMED_TIMERS = 64
"""Timers that a policy may have beside one a job."""

JOB = np.dtype(
    # Each line is one of the processor's cache (64 bytes): what is read and written together lies together, and what
    # most policies never look at comes last.
    [
        # ---- when it comes and waits
        ("state", "i8"),
        ("parents", "i8"),  # jobs that must end before it may start; one more where time must pass after that
        ("eligible", "i8"),  # its time has come, but for its parents
        ("queued", "f8"),  # when it was queued last
        ("ready", "f8"),  # when it was queued first
        ("seen", "f8"),
        ("attempts", "i8"),
        ("gpus", "i8"),
        # ---- when it starts
        ("mask", "u8"),  # classes of nodes that suit it
        ("queue", "i8"),
        ("share", "i8"),  # whose share of the GPUs its own count in: a queue or a user
        ("row", "i8"),  # of its present attempt
        ("held", "i8"),
        ("counted", "f8"),  # GPUs that count for it: each one that it is on by the number of jobs there
        ("pace", "f8"),  # what turns and company on crowded nodes leave of its speed
        ("level", "i8"),  # of its placement: one node, one rack, several
        # ---- when it runs
        ("start", "f8"),  # of the present or last attempt
        ("first_start", "f8"),
        ("last", "f8"),  # progress is counted up to here; later than now: overhead until then
        ("work", "f8"),  # of the segment, seconds at reference speed
        ("done", "f8"),  # of it, up to `last`
        ("rate", "f8"),  # reference seconds a second
        ("speed0", "f8"),  # speed on one node, in one rack, across racks
        ("peak", "i8"),  # the most GPUs that it has held
        # ---- when it stops
        ("host", "i8"),  # the job whose GPUs it shares; -1 none
        ("guest", "i8"),  # first of the jobs that share its GPUs, the smallest first; -1 none
        ("sharers", "i8"),  # jobs on its GPUs beside itself, where it is the host
        ("preempts", "i8"),
        ("ran", "f8"),  # seconds on GPUs, up to `seen`
        ("attained", "f8"),  # GPU-seconds on GPUs, up to `seen`; of a shared GPU an equal part
        ("tenth", "f8"),  # what `done` is when a tenth of all its work is done; inf: it is
        ("t10", "f8"),  # when it was
        # ---- when it ends
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
        ("phases", "i8"),  # 1: its speeds change as it comes forward …
        ("first_phase", "i8"),  # … by the rows of `phases` from here on …
        ("change", "f8"),  # … next when so much is done; inf: no more
        ("row_of_speeds", "i8"),  # its class in `by_type` and `by_pair`
        # ---- what is asked for seldom
        ("submit", "f8"),
        ("think", "f8"),  # seconds from the end of the last job that it waits for until it may come
        ("limit", "f8"),  # seconds of run time asked for; inf
        ("anew", "f8"),  # `ran` when it last began from zero: its time limit counts from there
        ("due", "f8"),  # when its time limit is up, where limits are enforced
        ("goal", "f8"),  # work left that its turns must come down to to be worth their cost
        ("turns", "i8"),  # ended by preemption, of those that the goal is for
        ("goal_of", "i8"),  # the segment whose work the goal is in; -1 none yet
        ("pack", "f8"),  # speed beside a job on the same GPUs
        ("next_guest", "i8"),
        ("sliced", "i8"),  # as a host: time slices rather than packed
    ],
    align=True,
)

NODE = np.dtype(
    [
        ("cap", "i8"),
        ("free", "i8"),
        ("hidden", "i8"),  # free, but kept from placement for now
        ("cls", "i8"),
        ("home", "i8"),  # the class that it belongs to while it is not lent
        ("back", "f8"),  # when it is to be back there; inf
        ("rack", "i8"),
        ("up", "i8"),
        ("reserved_for", "i8"),  # the job that has reserved …
        ("reserved_gpus", "i8"),  # … so many GPUs …
        ("reserved_from", "f8"),  # … from this second on
        ("type", "i8"),  # of its GPUs, in `by_type`
        ("kind", "i8"),  # the same, as the cluster numbers types; -1: not known
        ("requested", "i8"),  # GPUs that jobs ask of it, where more may than it has
    ],
    align=True,
)

ATTEMPT = np.dtype(
    [
        ("start", "f8"),
        ("end", "f8"),
        ("own", "f8"),  # from when on its GPUs are its own, not those of the job that it shares with; inf never
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
"""From when on so many GPUs count for an attempt, and what is left of its job's speed."""


PHASE = np.dtype([("until", "f8"), ("curve", "i8"), ("points", "i8")], align=True)
"""Up to which work done, in seconds, a job is as fast on other GPUs as a curve says; inf: to its end."""

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
        ("carried", "i8"),  # of them, what the next instant tells, too
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
        ("patience", "i8"),  # turns that jobs are given to get further than these cost; 0: any number
        ("storage", "f8"),  # bytes a second for all transfers of checkpoints together
        ("moving", "i8"),  # jobs in `moving`
        ("resources", "i8"),  # 1: CPUs and memory count, too
        ("splits", "i8"),  # pieces that jobs without GPUs may hold, in all
        ("at_once", "i8"),  # most nodes that go down and come up at one instant
        ("cpu", "f8"),  # CPUs, in thousandths, and MB of the nodes that are up, as far as they are known
        ("mem", "f8"),
        ("typed", "i8"),  # 1: speeds go by GPU types
        ("paired", "i8"),  # 1: speeds of packed jobs go by the pairs of their classes
        ("grain", "f8"),  # seconds within which things happen at one instant; 0: at the very same second
        ("crowded", "i8"),  # jobs take turns, and ask at most so many times its GPUs of a node; 0: none they share
        ("paced", "i8"),  # 1: the policy sets the speeds of jobs itself, see `crowd_kernel.set_turn`
        ("turns", "i8"),
        ("whole", "i8"),  # GPUs of the largest node, where gangs on the fewest of one rack are as on one; 0: else
    ],
    align=True,
)


class State(Bundle):
    """A simulation at one instant; every field is an array (lengths in brackets)."""

    g = rows(GLOBAL)  # what there is one of [1]
    jobs = rows(JOB)  # [jobs]
    nodes = rows(NODE)  # [nodes]
    heap_t = floats()  # times of coming events, a binary heap; at most one event a node
    heap_c = ints()  # class and number that order events of one instant
    # whose event it is: job, then the job's timer, its lease, then named timers, the round of a compiled policy (and
    # the second look at an instant), that of a policy written in Python, then nodes that are lent
    heap_node = ints()
    node_at = ints()  # place of each node in the heap; -1 none [3 jobs + named timers + 2 + nodes]
    arrivals = ints()  # jobs by the second from which they are eligible [jobs]
    arrive_t = floats()  # that second
    machine_t = floats()  # seconds at which nodes go down or come up
    machine_node = ints()  # which
    machine_up = ints()  # 1 or 0
    bits = words(3)  # [classes, most GPUs + 1, words]: the nodes of a class with so many GPUs free, a bit each
    count = ints(2)  # [classes, most GPUs + 1]: how many those are
    class_free = ints()  # [classes]: GPUs free
    class_cap = ints()  # [classes]: GPUs of the largest node
    rack_free = ints(2)  # [classes, racks]
    queue_used = ints()  # [queues]: GPUs that its jobs hold; shared ones count for the job whose they are
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
    # jobs that have come into the queue, for policies written in Python; of compiled ones, 1: a job comes there for
    # the first time [jobs]
    fresh = ints()
    moving = ints()  # jobs whose checkpoints are being written or read [jobs]
    asks = rows(ASK)  # of each job, where CPUs and memory count [jobs or 1], and so on:
    stock = rows(STOCK)  # of each node
    need = rows(NEED)  # of each piece in `choice`
    needs = rows(NEED)  # of each piece in `pieces`
    share_need = rows(NEED)  # what the jobs of each queue or user hold
    # speeds by class of jobs, GPU type and placement [classes, types, 3]; [1, 1, 1] where types are alike
    by_type = floats(3)
    # speeds by class of a job and of the one packed beside it [classes, classes]; [1, 1] without a table
    by_pair = floats(2)
    curves = floats()  # speeds on 1, 2, 3 … GPUs, one curve after the other
    phases = rows(PHASE)  # of jobs whose speeds change, those of one job after the other; [1] without any
    turns = rows(TURN)  # what counts for attempts on crowded nodes, from when on


def wanted(g: Any, nodes: int) -> tuple[int, int, int, int, int]:
    """Sizes of log, attempts, pieces, events and turns with which there is room for what may come next.

    That is the engine's step, one pass of a compiled policy, or one action of a policy written in Python; before each
    of them somebody looks. None writes more than four lines, attempts or events for each job that waits or runs, and
    two for each node (which a job reserves, which goes down, or is wanted back); the pieces of jobs that hold GPUs at
    one time are no more than the GPUs, or so many times as many, and a pass places a job at most twice.
    """
    some = 4 * (g.waiting + g.running) + 2 * nodes + g.at_once + 64
    pieces = g.pieces + 2 * g.total * max(g.crowded, 1) + g.splits + some
    return g.log + some, g.attempts + some, pieces, g.events + some, g.turns + some if g.crowded + g.paced > 0 else 0


state_at = opener(State)
"""For compiled code: the simulation at an address."""
