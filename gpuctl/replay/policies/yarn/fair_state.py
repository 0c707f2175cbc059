"""What the fair scheduler remembers of queues, applications and nodes while it replays; flat arrays only.

Amounts of resources are rows of three whole numbers: MB of memory, CPUs (in `unit`-ths), GPUs. What does not count in a
replay is 0 in all of them, the cluster's included.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints, rows
from gpuctl.replay.engine.reasons import REASONS

MEM, CPU, GPU = range(3)
FIFO, FAIR, DRF = range(3)
POLICIES = ("fifo", "fair", "drf")
NODE_LOCAL, RACK_LOCAL, OFF_SWITCH = range(3)

# ---- states of an application
ABSENT, HELD_BACK, RUNNABLE, OVER = range(4)

# ---- what one look for a container came back with
NOTHING, RESERVED, GIVEN = range(3)

UNBOUNDED = 1 << 60

R_GIVEN = len(REASONS)
R_TAKEN, R_RESERVED_START, R_FAIR_STARVED, R_RESERVED = range(R_GIVEN + 1, R_GIVEN + 5)
FAIR_REASONS = (
    "its queue and application are next at this node's heartbeat",
    "it is given what was preempted for its application",
    "the node was reserved for its application",
    "preempted for an application that is starved",
    "the node is reserved for it",
)

PARAMS = np.dtype(
    [
        ("beat", "f8"),  # seconds between two heartbeats of a node
        ("tick", "f8"),  # seconds between two updates of shares and demands
        ("master", "f8"),  # seconds between two heartbeats of an application's master; 0: it acts at once
        ("due", "f8"),  # the next update that can do something; inf
        ("tried", "i8"),  # whether the last update looked for starved applications
        ("updates", "i8"),  # how many were made
        ("preempts", "i8"),
        ("utilization", "f8"),
        ("wait", "f8"),  # seconds between the choice of a victim and its end
        ("check", "f8"),  # seconds until an application for which something was preempted is looked at again
        ("multiple", "i8"),  # several containers a heartbeat
        ("dynamic", "i8"),  # of them, up to half of what was free
        ("most", "i8"),  # of them, at most so many; 0 or less: any number
        ("node_share", "f8"),  # missed opportunities, as a share of the nodes, after which a level relaxes
        ("rack_share", "f8"),
        ("how", "i8"),  # where gangs go that no node holds
        ("reservable", "f8"),  # share of the nodes that an application may reserve
        ("sized", "i8"),  # weigh applications by what they ask for
        ("single", "i8"),  # ratios are of single precision, as Hadoop's with three resource types
        ("by", "i8"),  # the resource that the policies fair and fifo go by
        ("masters", "i8"),  # the first job of each application is its master
        ("spare_masters", "i8"),  # masters are no victims
        ("least_mem", "i8"),  # what a container must have at least to be reserved for
        ("least_cpu", "i8"),
        ("limited", "i8"),  # some queue has a maximum
        ("reserved", "i8"),  # nodes with a reservation
        ("hungry", "i8"),  # applications that wait to be looked at by the preemption
        ("entries", "i8"),  # in use
        ("lives", "i8"),  # entries of `live`
        ("freed", "i8"),  # how often something was given back
        ("looked", "i8"),  # its value when gangs that no node holds were last tried
        ("fresh", "i8"),  # applications in `touched`
        ("unknown", "i8"),  # containers asked for since the last update that no demand shows, or fewer
        ("asking", "i8"),  # whether an application asked since then
        ("awake", "i8"),  # every heartbeat and update is gone through, whether it may do something or not: for checks
        ("missing", "i8"),  # some application waits for a better place
        ("active", "i8"),  # the set of active queues, or the cluster, is another than at the last update
    ],
    align=True,
)

QUEUE = np.dtype(
    [
        ("parent", "i8"),
        ("first", "i8"),  # of its children in `children`
        ("count", "i8"),
        ("policy", "i8"),
        ("weight", "f8"),
        ("most", "i8"),  # applications that may run
        ("masters", "f8"),  # share of its fair share that masters may have; negative: any
        ("min_wait", "f8"),  # seconds below its minimum after which it is starved
        ("fair_wait", "f8"),
        ("threshold", "f8"),
        ("victims", "i8"),  # whether it may be preempted from
        ("rank", "i8"),  # of its name
        ("runnable", "i8"),  # applications
        ("waiting", "i8"),  # containers that runnable applications ask for
        ("fed", "f8"),  # when it was last not below its minimum
        ("above", "i8"),  # whether it was at the last update
        ("low", "i8"),  # applications that were found to lack of its minimum
        ("top", "i8"),  # children to be visited in this pass
        ("at", "i8"),  # of them, visited
    ],
    align=True,
)

APP = np.dtype(
    [
        ("queue", "i8"),
        ("user", "i8"),
        ("start", "f8"),  # its submission
        ("left", "i8"),  # jobs that have not ended
        ("state", "i8"),
        ("asks", "i8"),
        ("lined", "i8"),  # it is in the line of its queue
        ("since", "i8"),  # updates made when it became runnable
        ("level", "i8"),  # of locality that it is held to; -1: not yet looked at
        ("missed", "i8"),  # opportunities since that level holds
        ("master", "i8"),  # its master's job; -1 none
        ("opens", "f8"),  # when its master asks for the others
        ("fed", "f8"),  # when it was last not below its share
        ("full", "i8"),  # the update at which it was found not to be
        ("next", "f8"),  # when its starvation counts again
        ("queued", "i8"),  # it is among the starved
        ("touched", "i8"),
        ("reservations", "i8"),
        ("weight", "f8"),
        ("given", "i8"),  # containers so far
    ],
    align=True,
)

TASK = np.dtype(
    [
        ("app", "i8"),
        ("marked", "i8"),  # the attempt that is to be preempted, + 1
        ("big", "i8"),  # no node that it may use holds it
        ("kind", "i8"),  # of what it asks for: where one does not fit, none of its kind does
        ("number", "i8"),  # of its container among those of its application, from 1
        ("requested", "i8"),
    ],
    align=True,
)

NODE = np.dtype(
    [
        ("offset", "f8"),
        ("beaten", "f8"),  # the last heartbeat that was dealt with
        ("flag", "i8"),  # its next heartbeat may do something
        ("job", "i8"),  # reserved for; -1
        ("app", "i8"),
    ],
    align=True,
)

PART = np.dtype([("job", "i8"), ("mem", "i8"), ("cpu", "i8"), ("gpu", "i8")])


class Fair(Bundle):
    """All of it; amounts are [.., 3]."""

    p = rows(PARAMS)  # one record of `PARAMS`
    cluster = ints()  # what all nodes that are up have [3]
    unit = ints()  # CPUs are counted in so many parts [1]
    queues = rows(QUEUE)  # the root is number 0, parents come before children
    children = ints()
    order = ints()  # scratch
    q_min = ints(2)  # of queues: configured: least …
    q_max = ints(2)  # … and most
    q_used = ints(2)  # held
    q_asks = ints(2)  # asked for
    q_demand = ints(2)  # demand as of the last update
    q_fair = ints(2)  # fair share, likewise
    q_app = ints(2)  # the fair share of each of its applications
    q_masters = ints(2)  # what masters hold
    # the fair share of its applications for each unit of weight, as of the last update; if they are weighed
    q_rate = floats(2)
    apps = rows(APP)  # in the order of submission
    # links of `gpuctl.replay.policies.yarn.linked_lists_kernel`, as are `job_lists` and `entry_lists`:
    lines = ints(2)  # the applications of each queue with asks, in the order of its policy
    members = ints(2)  # its runnable ones and, in one more list, those that are held back
    a_used = ints(2)  # of applications: held
    a_asks = ints(2)  # asked for
    a_demand = ints(2)  # demand
    a_marked = ints(2)  # marked for preemption
    a_lack = ints(2)  # starvation by fair share …
    a_low = ints(2)  # … and by minimum share
    a_picked = ints(2)  # scratch
    tasks = rows(TASK)  # one a job
    job_lists = ints(2)  # the jobs that each application asks for and, in as many more, those that wait for its master
    j_need = ints(2)  # what each job asks for
    # CSR of the nodes that it wants
    want_first = ints()
    wants = ints()
    nodes = rows(NODE)  # one a node
    n_taken = ints(2)  # what was preempted there for others and not yet given
    entry_app = ints()  # a pool of entries: the application of each
    e_left = ints(2)  # what is left of each
    entry_lists = ints(2)  # the entries of each node and, in one more list, unused ones
    # jobs in the order of their starts, dead ones among them
    live = ints()
    live_row = ints()
    touched = ints()  # applications whose demand the next update reckons anew
    users = ints()  # runnable applications of each user
    user_most = ints()  # how many there may be
    hungry = ints()  # a binary heap of starved applications
    # nodes in the order in which victims are looked for. Hadoop's is that of a hash table, ours their own
    search = ints()
    # [applications, numbers] where a container comes among the victims on a node, by its number (the last column
    # holds for all higher ones); of equal ones the newest is first, masters are last. Hadoop's order is that of a hash
    # table, ours has 0 everywhere
    turn = ints(2)
    # containers by node, scratch
    part = rows(PART)
    part_first = ints()
    part_at = ints()
    picked = ints()  # victims on one node, scratch
    # scratch of comparisons
    share = floats(2)
    fair = floats(2)
    sorted = ints(2)
    some = ints()
    bad = ints()  # by shape of gangs that no node holds, `freed` when it last did not fit on all nodes together
    gangs = ints()  # of them, how many are asked for
    one_of = ints()  # a job of that shape
