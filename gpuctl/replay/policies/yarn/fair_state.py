"""Memory of the fair scheduler: queues, applications and nodes, as flat arrays.

Amounts of resources are rows of three whole numbers: MB of memory, CPUs (in `unit`-ths), GPUs. Resources that do not
count are 0 everywhere, including in the cluster's total.
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

# ---- results of one search for a container
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
        ("due", "f8"),  # the next update that can have an effect; inf
        ("tried", "i8"),  # whether the last update searched starved applications
        ("updates", "i8"),  # number of updates
        ("preempts", "i8"),
        ("utilization", "f8"),
        ("wait", "f8"),  # seconds between the choice of a victim and its end
        ("check", "f8"),  # seconds until an application with preempted containers is considered again
        ("multiple", "i8"),  # several containers a heartbeat
        ("dynamic", "i8"),  # of them, up to half of what was free
        ("most", "i8"),  # of them, at most this many; 0 or less: any number
        ("node_share", "f8"),  # missed opportunities, as a share of the nodes, after which a level relaxes
        ("rack_share", "f8"),
        ("how", "i8"),  # placement of gangs that no node holds
        ("reservable", "f8"),  # share of the nodes that an application may reserve
        ("sized", "i8"),  # weigh applications by their requests
        ("single", "i8"),  # ratios are of single precision, as Hadoop's with three resource types
        ("by", "i8"),  # the resource of the policies fair and fifo
        ("masters", "i8"),  # the first job of each application is its master
        ("spare_masters", "i8"),  # masters are no victims
        ("least_mem", "i8"),  # least size of a container with a reservation
        ("least_cpu", "i8"),
        ("limited", "i8"),  # some queue has a maximum
        ("reserved", "i8"),  # nodes with a reservation
        ("hungry", "i8"),  # starved applications waiting for preemption
        ("entries", "i8"),  # in use
        ("lives", "i8"),  # entries of `live`
        ("freed", "i8"),  # number of releases
        ("looked", "i8"),  # its value when gangs that no node holds were last tried
        ("fresh", "i8"),  # applications in `touched`
        ("unknown", "i8"),  # lower bound of containers requested since the last update without a demand
        ("asking", "i8"),  # whether an application has made requests since then
        ("awake", "i8"),  # process every heartbeat and update, for checks
        ("missing", "i8"),  # some application waits for better locality
        ("active", "i8"),  # the set of active queues, or the cluster, has changed since the last update
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
        ("waiting", "i8"),  # containers that runnable applications request
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
        ("level", "i8"),  # required level of locality; -1: not yet evaluated
        ("missed", "i8"),  # opportunities since that level applies
        ("master", "i8"),  # its master's job; -1 none
        ("opens", "f8"),  # when its master requests the others
        ("fed", "f8"),  # when it was last at or above its share
        ("full", "i8"),  # the update at which that was found
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
        ("marked", "i8"),  # the attempt to be preempted, + 1
        ("big", "i8"),  # no node that it may use holds it
        ("kind", "i8"),  # kind of its request: if one does not fit, none of the kind does
        ("number", "i8"),  # of its container among those of its application, from 1
        ("requested", "i8"),
    ],
    align=True,
)

NODE = np.dtype(
    [
        ("offset", "f8"),
        ("beaten", "f8"),  # the last heartbeat processed
        ("flag", "i8"),  # its next heartbeat may have an effect
        ("job", "i8"),  # reserved for; -1
        ("app", "i8"),
    ],
    align=True,
)

PART = np.dtype([("job", "i8"), ("mem", "i8"), ("cpu", "i8"), ("gpu", "i8")])


class Fair(Bundle):
    """The memory of the scheduler; amounts are [.., 3]."""

    p = rows(PARAMS)  # one record of `PARAMS`
    cluster = ints()  # total of the nodes that are up [3]
    unit = ints()  # units per CPU [1]
    queues = rows(QUEUE)  # the root is number 0, parents come before children
    children = ints()
    order = ints()  # scratch
    q_min = ints(2)  # of queues: configured: least …
    q_max = ints(2)  # … and most
    q_used = ints(2)  # held
    q_asks = ints(2)  # requested
    q_demand = ints(2)  # demand as of the last update
    q_fair = ints(2)  # fair share, likewise
    q_app = ints(2)  # the fair share of each of its applications
    q_masters = ints(2)  # holdings of masters
    # the fair share of its applications for each unit of weight, as of the last update; if they are weighed
    q_rate = floats(2)
    apps = rows(APP)  # in the order of submission
    # links of `gpuctl.replay.policies.yarn.linked_lists_kernel`, as are `job_lists` and `entry_lists`:
    lines = ints(2)  # the applications of each queue with requests, in the order of its policy
    members = ints(2)  # its runnable ones and, in one more list, those held back
    a_used = ints(2)  # of applications: held
    a_asks = ints(2)  # requested
    a_demand = ints(2)  # demand
    a_marked = ints(2)  # marked for preemption
    a_lack = ints(2)  # starvation by fair share …
    a_low = ints(2)  # … and by minimum share
    a_picked = ints(2)  # scratch
    tasks = rows(TASK)  # one a job
    job_lists = ints(
        2
    )  # the requested jobs of each application and, in as many more lists, those that wait for its master
    j_need = ints(2)  # request of each job
    # CSR of its preferred nodes
    want_first = ints()
    wants = ints()
    nodes = rows(NODE)  # one a node
    n_taken = ints(2)  # amount preempted there for others and not yet assigned
    entry_app = ints()  # a pool of entries: the application of each
    e_left = ints(2)  # remaining amount of each
    entry_lists = ints(2)  # the entries of each node and, in one more list, unused ones
    # jobs by start, including stopped ones
    live = ints()
    live_row = ints()
    touched = ints()  # applications whose demand the next update recomputes
    users = ints()  # runnable applications of each user
    user_most = ints()  # most of them
    hungry = ints()  # a binary heap of starved applications
    # nodes in the order of the search for victims: in Hadoop that of a hash table, here their own
    search = ints()
    # [applications, numbers] rank of a container among the victims on a node, by its number (the last column applies to
    # all higher ones); of equal ones the newest is first, masters are last. Hadoop's order is that of a hash table,
    # here all are 0
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
    gangs = ints()  # of them, number requested
    one_of = ints()  # a job of that shape
