"""What Themis is told of jobs and apps, and what it remembers."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, ints, rows

INSTANT_S = 1e-6

NONE, COUNT, DEMAND = range(3)
CONTENTION = ("none", "count", "demand")

THEMIS = np.dtype(
    [
        ("lease", "f8"),  # seconds
        ("outside", "f8"),  # share of the bidders that is not offered anything
        ("payments", "i8"),
        ("contention", "i8"),
        ("gpus", "f8"),  # of the cluster
        ("go", "i8"),  # 1: there is to be an auction at this instant
        ("line", "i8"),  # jobs in `line`
        ("ended", "i8"),  # jobs in `ended`
        ("apps", "i8"),  # of several jobs, in all
        ("gone", "i8"),  # jobs in `gone`
        ("carried", "i8"),  # rows of `carried`
        ("parts", "i8"),  # and of `parts`
        ("bidders", "i8"),
        ("heap", "i8"),  # jobs in `order` whose place in rank is not known
        ("jobs", "i8"),  # apps that have not ended
        ("requested", "i8"),  # GPUs that they ask for
        ("area", "f8"),  # contention integrated over time
        ("until", "f8"),  # up to then
        ("mask", "u8"),  # of the job for which these two were worked out:
        ("node", "i8"),  # free GPUs of the freest node
        ("rack", "i8"),  # and of the freest rack
    ],
    align=True,
)

BIDDER = np.dtype(
    [
        ("place", "i8"),  # in the input, which breaks ties
        ("least", "i8"),  # GPUs that it starts on
        ("ideal", "f8"),  # seconds that it takes alone
        ("since", "f8"),  # when it was submitted …
        ("area", "f8"),  # … and what the integral was then
        ("has", "i8"),  # GPUs that it holds, beside those whose lease has just ended
        ("lifted", "i8"),  # 1: its lease has just ended
        ("beyond", "f8"),  # seconds of its work that it will not do, as its search kills it before
        ("several", "i8"),  # 1: its app has several jobs. Then those above and below are the app's, in the row of
        ("head", "i8"),  # the job of it that comes first in the input, but for these of each job:
        ("alone", "f8"),  # seconds that it takes alone
        ("next", "i8"),  # the next job of its app, in the input's order, that has come and not ended; -1: none
        ("counted", "i8"),  # scratch: 0: it is not looked at
        ("share", "i8"),  # scratch: GPUs of its app's that it is to have
        ("left", "f8"),  # scratch: seconds of work
        ("speed", "f8"),  # scratch
        ("first", "i8"),  # of an app: the first of these jobs
        ("listed", "i8"),  # 1: it is in `line`
        ("pushed", "i8"),  # 1: it is in `ended`
        ("altered", "i8"),  # 1: its GPUs are to be divided anew
        ("asks", "i8"),  # GPUs of all its jobs
        ("until", "f8"),  # its lease's end
        ("submit", "f8"),  # of its first job
        ("longest", "f8"),  # seconds from then to the end of a job, if each had its gang at once
        ("work", "f8"),  # GPU-seconds of the jobs that have come …
        ("gangs", "i8"),  # … and their GPUs
        ("level", "i8"),  # of what it holds
        ("key", "i8"),  # its fairness, millionths
        ("near", "i8"),  # so many more it can get at level 0, below 0: none
        ("far", "i8"),  # and at level 1
        ("gets", "i8"),
    ],
    align=True,
)


PART = np.dtype([("who", "i8"), ("node", "i8"), ("gpus", "i8")], align=True)


class Book(Bundle):
    """What the policy is told, and what it remembers."""

    p = rows(THEMIS)  # what there is one of [1]
    bidders = rows(BIDDER)  # [jobs]
    level = ints()  # the best level that so many GPUs can have [GPUs + 1]
    line = ints()  # jobs that have not ended [jobs]
    ended = ints()  # jobs whose lease ends at this instant [jobs]
    order = ints()  # bidders: a heap by rank [jobs]
    rank = ints()  # bidders by rank, as far as it is known [jobs]
    mine = ints()  # GPUs that a job holds or is to keep, scratch [nodes]
    more = ints()  # GPUs that it is to get beside, scratch [nodes]
    racks = ints()  # whether it is in each, scratch [racks]
    gone = ints()  # jobs of apps of several that have ended at this instant, -1: done with [jobs]
    carried = rows(PART)  # what they had that their apps keep [GPUs]
    parts = rows(PART)  # what jobs of an app keep of theirs, scratch [GPUs]
    whole = ints()  # GPUs of an app on each node, scratch [nodes]
    turn = ints()  # jobs of an app by most work left, scratch [jobs]
