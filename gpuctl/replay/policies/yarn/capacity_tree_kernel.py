"""The capacity scheduler's state: queues, applications, users, nodes, and the resources of each.

One job is one container. Queues are a tree; applications and users belong to leaves: a user of two leaves counts
separately in each, as in Hadoop's UsersManager.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, floats, ints, rows

FIFO, FAIR, FAIR_SIZED = range(3)

# ---- of an application
NEW, REFUSED, HELD_BACK, PENDING, ACTIVE, OVER = range(6)

# ---- of a job
ABSENT, ASKING, GIVEN, GONE, NOT_REQUESTED = range(5)

CAP, LEAST, LARGEST = range(3)
"""Rows of `sizes`: the cluster's nodes that are up, the smallest container, the largest one."""

SITE = np.dtype(
    [
        ("interval", "f8"),  # seconds between heartbeats of a node
        ("phase", "f8"),  # seconds after its turn at which a node beats
        ("beat", "i8"),  # number of the next heartbeat to process
        ("version", "i8"),  # number of changes relevant to heartbeats
        ("gone", "i8"),  # the one after the last processed
        ("missed", "i8"),  # number of counted opportunities relevant to heartbeats
        ("still", "i8"),  # heartbeats since `version` has changed
        ("quiet", "i8"),  # heartbeats since something has changed
        ("asleep", "i8"),  # 1: a whole round of heartbeats changed nothing
        ("slept", "i8"),  # the first skipped heartbeat
        ("asks", "i8"),  # containers that active applications request
        ("reserved", "i8"),  # nodes that are reserved
        ("sequence", "i8"),
        ("offswitch", "i8"),  # most containers off preferred nodes per heartbeat
        ("batch", "i8"),  # most containers per heartbeat
        ("multiple", "i8"),  # 1: more than one
        ("delay", "i8"),  # node-locality-delay
        ("rack_delay", "i8"),  # rack-locality-additional-delay; -1: by the number of asks
        ("full_reset", "i8"),
        ("look_on", "i8"),  # reservations-continue-look-all-nodes
        ("am_beat", "f8"),  # seconds between heartbeats of a master; 0: it acts at once
        ("wide", "i8"),  # the application that holds nodes for a gang of several nodes; -1 none
        ("monitor", "f8"),  # seconds between rounds of the preemption monitor; 0: none
        ("share", "f8"),  # total_preemption_per_round
        ("ignored", "f8"),  # max_ignored_over_capacity
        ("natural", "f8"),  # natural_termination_factor
        ("wait", "f8"),  # max_wait_before_kill
        ("mode", "i8"),
        ("next_round", "f8"),  # when the next round of the monitor is due; inf none
        ("again", "f8"),  # when a job protected at the last round may be preempted; inf none
        ("looked", "f8"),  # when the last one was
        ("marked", "i8"),  # jobs that are marked
        ("listed", "i8"),  # number of `marks`
        ("changed", "i8"),  # `version` at the last round
        ("refused", "i8"),  # jobs turned away
        ("choices", "i8"),  # number of choices between several requesting queues of a parent
        ("by_share", "i8"),  # number of those decided by guarantees: all queues held something, or none did
        ("plain", "i8"),  # 1: process every heartbeat and round, to check that skipping changes nothing
    ],
    align=True,
)

QUEUE = np.dtype(
    [
        ("parent", "i8"),
        ("first", "i8"),  # of its children in `children`
        ("count", "i8"),
        ("leaf", "i8"),
        ("capacity", "f8"),  # of the whole, 1 is all
        ("maximum", "f8"),
        ("priority", "i8"),
        ("respects", "i8"),  # 1: its children are also ordered by priority
        ("percent", "f8"),  # minimum-user-limit-percent
        ("factor", "f8"),  # user-limit-factor; -1 none
        ("am", "f8"),  # maximum-am-resource-percent, 1 is all
        ("most_apps", "i8"),
        ("most_of_user", "i8"),
        ("most_running", "i8"),
        ("order", "i8"),
        ("no_preemption", "i8"),  # 1: nothing is preempted here
        ("asks", "i8"),
        ("apps", "i8"),
        ("running", "i8"),  # applications that are not held back
        ("active", "i8"),
        ("askers", "i8"),  # users with requests
        ("used_ratio", "f4"),  # the sum of its users' dominant shares, in single precision as in Hadoop
        ("tried", "i8"),  # the last pass that tried it
        ("users", "i8"),  # the first of its users in `users` …
        ("users_end", "i8"),  # … and the one after the last
    ],
    align=True,
)

APP = np.dtype(
    [
        ("queue", "i8"),
        ("user", "i8"),
        ("priority", "f8"),
        ("state", "i8"),
        ("submit", "f8"),
        ("asks", "i8"),
        ("left", "i8"),  # jobs that have not ended
        ("unrequested", "i8"),  # jobs that wait for its master's request
        ("nodes", "i8"),  # that it has reserved
        ("again", "i8"),  # failed attempts of them
        ("missed", "i8"),  # opportunities
        ("names", "i8"),  # preferred nodes, their racks, and 1
        ("master", "i8"),  # its master's job; -1 none
        ("up", "i8"),  # whether its master can request containers
        ("queued", "i8"),  # 1: in the line
        ("counted_pass", "i8"),  # the last pass over pending amounts that has counted its reservations
    ],
    align=True,
)

USER = np.dtype([("queue", "i8"), ("apps", "i8"), ("active", "i8"), ("askers", "i8"), ("am", "i8")], align=True)

JOB_OF = np.dtype(
    [
        ("app", "i8"),
        ("state", "i8"),
        ("mark", "f8"),  # when it was marked for preemption; NaN not
        ("chosen", "i8"),  # the round that chose it
        ("wide", "i8"),  # 1: larger than any node that it may use
        ("never", "i8"),  # 1: larger than its queue's maximum
    ],
    align=True,
)

NODE = np.dtype([("app", "i8"), ("seen", "i8"), ("turn", "i8")], align=True)
"""Per node: the application that it is reserved for, and the sum of `version` and `missed` at its last heartbeat;
unrelated to the node, the node whose reservation is visited at this position when one is to be dropped."""


class Tree(Bundle):
    """Input and memory of the policy (lengths in brackets; 3 is an amount)."""

    p = rows(SITE)  # one record of `SITE`
    queues = rows(QUEUE)  # records of `QUEUE`, parents before children, the root first [queues]
    children = ints()  # queue numbers in the order of the configuration
    apps = rows(APP)  # records of `APP`, in order of submission [applications]
    users = rows(USER)  # records of `USER`, one for each user of each leaf [users]
    jobs = rows(JOB_OF)  # records of `JOB_OF` [jobs]
    nodes = rows(NODE)  # records of `NODE` [nodes]
    sizes = ints(2)  # see `CAP` [3, 3]
    fixed = ints(2)  # absolute guarantees; -1: by `capacity` [queues, 3]
    fixed_most = ints(2)  # the same for maxima [queues, 3]
    due = ints(2)  # guarantees [queues, 3]
    most = ints(2)  # maxima [queues, 3]
    used = ints(2)  # with reservations [queues, 3]
    reserved = ints(2)  # reservations [queues, 3]
    pending = ints(2)  # requested [queues, 3]
    asking = ints(2)  # use of a leaf's users with requests [queues, 3]
    limit = ints(2)  # the limit of a leaf when last visited [queues, 3]
    am_used = ints(2)  # of a leaf's masters [queues, 3]
    app_used = ints(2)  # without reservations [applications, 3]
    app_reserved = ints(2)  # reservations [applications, 3]
    app_am = ints(2)  # of the master [applications, 3]
    app_asks = ints(2)  # requested [applications, 3]
    user_used = ints(2)  # with reservations [users, 3]
    user_am = ints(2)  # [users, 3]
    user_asks = ints(2)  # requested [users, 3]
    user_net = ints(2)  # scratch of the monitor: the same less reservations [users, 3]
    ask = ints(2)  # of each job [jobs, 3]
    held = ints(2)  # reserved amount of a node [nodes, 3]
    want_first = ints()  # [jobs + 1]: preferred nodes of a job: `want[want_first[j]:want_first[j + 1]]`
    want = ints()  # node numbers
    how = ints()  # placement of gangs on several nodes [jobs]
    path = ints()  # scratch of a pass: queue at each level [levels]
    bound = ints(2)  # scratch: limit at each level [levels, 3]
    blocked = ints(2)  # scratch: amount withheld from siblings at each level [levels, 3]
    marks = ints()  # jobs marked for preemption, including some no longer marked [jobs]
    # each queue's active applications with requests, in the order of its policy; this and the next two are links of
    # `gpuctl.replay.policies.yarn.linked_lists_kernel` [applications + queues, 2]
    lines = ints(2)
    # its active applications, those pending for room for their masters (PENDING), and those held back by
    # max-parallel-apps; the number of each list is `those_in` [applications + 3 queues, 2]
    by_state = ints(2)
    job_lists = ints(
        2
    )  # an application's requested and running jobs; `pending_list`, `running_list` [jobs + 2 applications, 2]
    weight = floats(2)  # scratch of the monitor: the share of each resource offered to a queue [queues, 3]
    amounts = ints(3)  # results of the monitor's last round, by `IDEAL` and so on [8, queues, 3]
