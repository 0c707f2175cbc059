"""Input and memory of Themis: jobs and apps."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, ints, rows

INSTANT_S = 1e-6

NONE, COUNT, DEMAND = range(3)
CONTENTION = ("none", "count", "demand")

THEMIS = np.dtype(
    [
        ("lease", "f8"),  # seconds
        ("outside", "f8"),  # share of the bidders that get no offer
        ("payments", "i8"),
        ("contention", "i8"),
        ("gpus", "f8"),  # of the cluster
        ("go", "i8"),  # 1: an auction is due at this instant
        ("line", "i8"),  # jobs in `line`
        ("ended", "i8"),  # jobs in `ended`
        ("apps", "i8"),  # of several jobs, in all
        ("gone", "i8"),  # jobs in `gone`
        ("carried", "i8"),  # rows of `carried`
        ("parts", "i8"),  # and of `parts`
        ("bidders", "i8"),
        ("heap", "i8"),  # jobs in `order` whose rank is not known
        ("jobs", "i8"),  # apps that have not ended
        ("requested", "i8"),  # GPUs that they request
        ("area", "f8"),  # contention integrated over time
        ("until", "f8"),  # up to then
        ("mask", "u8"),  # job for which the next two were computed:
        ("node", "i8"),  # free GPUs of the freest node
        ("rack", "i8"),  # and of the freest rack
    ],
    align=True,
)

BIDDER = np.dtype(
    [
        ("place", "i8"),  # position in the input, which breaks ties
        ("least", "i8"),  # GPUs that it starts on
        ("ideal", "f8"),  # seconds that it takes alone
        ("since", "f8"),  # when it was submitted …
        ("area", "f8"),  # … and what the integral was then
        ("has", "i8"),  # GPUs that it holds, except those whose lease has just ended
        ("lifted", "i8"),  # 1: its lease has just ended
        ("beyond", "f8"),  # seconds of its work that it will not do, as its search kills it
        ("several", "i8"),  # 1: its app has several jobs; the other fields are then the app's, in the row of
        ("head", "i8"),  # its first job in the input, except these of each job:
        ("alone", "f8"),  # seconds that it takes alone
        ("next", "i8"),  # the next submitted, unfinished job of its app, in the input's order; -1: none
        ("counted", "i8"),  # scratch; 0: not a candidate
        ("share", "i8"),  # scratch: GPUs assigned of its app's
        ("left", "f8"),  # scratch: seconds of work
        ("speed", "f8"),  # scratch
        ("first", "i8"),  # of an app: the first of these jobs
        ("listed", "i8"),  # 1: it is in `line`
        ("pushed", "i8"),  # 1: it is in `ended`
        ("altered", "i8"),  # 1: its GPUs must be redivided
        ("asks", "i8"),  # GPUs of all its jobs
        ("until", "f8"),  # its lease's end
        ("submit", "f8"),  # of its first job
        ("longest", "f8"),  # seconds from then to the end of a job, if each had its gang at once
        ("work", "f8"),  # GPU-seconds of its submitted jobs …
        ("gangs", "i8"),  # … and their GPUs
        ("level", "i8"),  # of what it holds
        ("key", "i8"),  # its fairness, millionths
        ("near", "i8"),  # additional GPUs possible at level 0; below 0: none
        ("far", "i8"),  # and at level 1
        ("gets", "i8"),
    ],
    align=True,
)


PART = np.dtype([("who", "i8"), ("node", "i8"), ("gpus", "i8")], align=True)


class Book(Bundle):
    """Input and memory of the policy."""

    p = rows(THEMIS)  # scalars [1]
    bidders = rows(BIDDER)  # [jobs]
    level = ints()  # the best level of each number of GPUs [GPUs + 1]
    line = ints()  # jobs that have not ended [jobs]
    ended = ints()  # jobs whose lease ends at this instant [jobs]
    order = ints()  # bidders: a heap by rank [jobs]
    rank = ints()  # bidders by rank, if known [jobs]
    mine = ints()  # GPUs that a job holds or keeps, scratch [nodes]
    more = ints()  # additional GPUs for it, scratch [nodes]
    racks = ints()  # whether it uses each, scratch [racks]
    gone = ints()  # jobs of apps of several that have ended at this instant, -1: handled [jobs]
    carried = rows(PART)  # their GPUs that their apps keep [GPUs]
    parts = rows(PART)  # GPUs that jobs of an app keep, scratch [GPUs]
    whole = ints()  # GPUs of an app on each node, scratch [nodes]
    turn = ints()  # jobs of an app by most work left, scratch [jobs]
