"""The arrays of Slurm's scheduler in addition to those of the simulation: one record per job, partition, limit."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.bundles import Bundle, flags, floats, ints, rows, words
from gpuctl.replay.engine.reasons import REASONS

# ---- preemption
P_NONE, P_PARTITION, P_QOS = range(3)
# ---- fair-share
F_NONE, F_TREE, F_CLASSIC = range(3)
# ---- passes at given seconds
S_MAIN, S_FULL, S_BACKFILL, S_PRIORITY = range(4)
SCRIPTED = {"main": S_MAIN, "main_full": S_FULL, "backfill": S_BACKFILL, "priority": S_PRIORITY}
# ---- actions on a preempted job
M_OFF, M_REQUEUE, M_CANCEL, M_SUSPEND = range(4)
# ---- placements in addition to those of `gpuctl.replay.engine.state`
FIRST = 6
# ---- bounds of a limit
GPU, CPU, MEM, NODE, BILLING = range(5)
RESOURCES = ("gres/gpu", "cpu", "mem", "node", "billing")
"""Trackable resources whose limits are modelled, in the order of the columns of `Slurm.need`."""
NO_LIMIT = 1 << 62

R_MAIN = len(REASONS)
R_BACKFILL, R_PREEMPTS, R_PREEMPTED, R_CANCELLED, R_RESERVED, R_NEVER, R_SUBMIT = range(R_MAIN + 1, R_MAIN + 8)
OWN_REASONS = (
    "main pass: next in the order of its partition",
    "backfill: delays no reservation made in this pass",
    "on GPUs of preempted jobs",
    "preempted",
    "preempted and cancelled (PreemptMode=CANCEL)",
    "backfill plans it for later and keeps whole nodes for it",
    "it asks for more than its partition, QOS or association allows one job",
    "too many jobs of its QOS or association wait or run (MaxSubmit)",
)

SLURM = np.dtype(
    [
        # ---- settings
        ("calc_period", "f8"),
        ("max_age", "f8"),
        ("second", "f8"),  # share of usage left after one second
        ("sched_interval", "f8"),
        ("min_interval", "f8"),  # between two main passes
        ("delay", "f8"),  # the same, as batch_sched_delay has it
        ("bf_interval", "f8"),
        ("bf_window", "f8"),
        ("bf_resolution", "f8"),
        ("bf_min_age", "f8"),
        ("kill_wait", "f8"),
        ("requeue_delay", "f8"),  # seconds that a preempted job is held back
        ("window_add", "f8"),  # seconds by which groups of ends grow; 0: they double
        ("weight_age", "f8"),
        ("weight_fairshare", "f8"),
        ("dampening", "f8"),
        ("bf_tests", "i8"),
        ("bf_user", "i8"),
        ("bf_part", "i8"),
        ("bf_user_part", "i8"),
        ("bf_assoc", "i8"),
        ("bf_starts", "i8"),
        ("bf_part_reserve", "i8"),
        ("bf_records", "i8"),  # of the plan: a pass that has made so many ends
        ("bf_min_prio", "i8"),
        ("depth", "i8"),
        ("part_depth", "i8"),
        ("main_starts", "i8"),
        ("assoc_stop", "i8"),
        ("backfill", "i8"),
        ("preempt", "i8"),
        ("youngest", "i8"),
        ("reorder", "i8"),
        ("fair_share", "i8"),
        ("accrue_always", "i8"),
        ("incr_only", "i8"),
        ("coarse", "i8"),  # 1: ends of running jobs are tried in groups, as in select/cons_tres
        ("counts", "i8"),  # 1: a pool, of which amounts are reserved, not nodes
        # ---- memory
        ("waiting", "i8"),  # jobs in `line`
        ("freed", "i8"),  # number of releases so far
        ("run", "i8"),  # passes so far: they are numbered
        ("alive", "i8"),  # kinds in `alive`
        ("version", "i8"),  # of the plan and of what is free
        ("hopes", "i8"),  # jobs of them that this pass has yet to come to
        ("steps", "i8"),
        ("made", "i8"),  # records of the plan, including merged ones
        ("seen", "i8"),  # events of this instant that have been taken in
        ("held", "i8"),  # preempted jobs that are held back
        ("full_due", "i8"),
        ("bf_due", "i8"),
        ("again", "f8"),  # when a protected job may next be preempted; inf none
        ("main_at", "f8"),
        ("main_last", "f8"),
        ("full_last", "f8"),
        ("bf_last", "f8"),
        ("full_at", "f8"),
        ("bf_at", "f8"),
        ("tick", "f8"),  # next calculation of priorities
        ("tick_last", "f8"),
        ("reset", "i8"),  # next of `resets`
        ("stale", "i8"),  # 1: fair-share factors are older than the last calculation
        ("window_end", "f8"),
        ("active", "i8"),  # jobs in `active`
        ("mode", "i8"),  # preemption mode of running jobs; -1: by their QOS or partition
        ("first", "i8"),  # 1: this pass has reserved nothing yet
        ("later", "f8"),  # when a job held up by limits could be retried; 0: unknown
        ("script", "i8"),  # next of `script_t`
        ("logged_head", "i8"),  # the job whose reservation was logged last
    ],
    align=True,
)

JOBX = np.dtype(
    [
        ("plan", "f8"),  # seconds that it is planned for
        ("site", "f8"),  # parts of its priority, as `gpuctl.replay.policies.slurm.priority` has them
        ("assoc_part", "f8"),
        ("job_size", "f8"),
        ("partition_part", "f8"),
        ("qos_part", "f8"),
        ("tres", "f8"),
        ("nice", "f8"),
        ("accrue", "f8"),  # since when it ages
        ("queued", "f8"),  # its submission, or the last requeue
        ("rate", "f8"),  # its billing per second
        ("exempt", "f8"),  # seconds that it runs before it can be preempted
        ("prio", "i8"),
        ("level", "i8"),  # rank of its QOS: it may preempt later ones
        ("tier", "i8"),
        ("part", "i8"),
        ("assoc", "i8"),
        ("user", "i8"),
        ("qos", "i8"),
        ("form", "i8"),  # jobs of one form have equal requests
        ("kind", "i8"),  # and of one kind are planned alike
        ("nodes", "i8"),  # requested; 0: as many as needed
        ("how", "i8"),
        ("exclusive", "i8"),
        ("lln", "i8"),  # 1: of nodes of equal weight it gets the one with the largest share of idle CPUs
        ("mode", "i8"),  # action when it is preempted
        ("never", "i8"),  # 1: a limit keeps it out for good
        ("min_prio", "i8"),  # below this priority nothing is reserved for it
        ("victims", "i8"),  # jobs that have yet to go for it
        ("gives_way", "i8"),  # the job that it was preempted for; -1 none
        ("in_line", "i8"),
        ("runs", "i8"),
        ("counted", "i8"),  # 1: it is in the numbers of submitted jobs
        ("victim_prio", "i8"),  # the lowest are preempted first
    ],
    align=True,
)

PART = np.dtype(
    [
        ("waiting", "i8"),
        ("failed", "i8"),  # the main pass in which a job of it could not start
        ("tested", "i8"),  # jobs of it that a pass looked at
        ("reserved", "i8"),
        ("mark", "i8"),  # the pass that `tested` and `reserved` are of
    ],
    align=True,
)

KIND = np.dtype(
    [
        ("mark", "i8"),  # the pass that the rest is of
        ("alive", "i8"),  # one of it could start now, besides reservations so far
        ("jobs", "i8"),  # of it that wait and that this pass has yet to come to
        ("job", "i8"),  # one of them
        ("none_at", "i8"),  # the version of the plan in which there was no time for it; -1 none
        ("tested", "i8"),  # whether it counted as tested then
    ],
    align=True,
)

SCOPE = np.dtype([("jobs", "i8"), ("submitted", "i8")])
"""Usage of all jobs of a QOS, an association, a user in a QOS ...; their resources are in `Slurm.used`."""

CAP = np.dtype([("jobs", "i8"), ("submitted", "i8")])
"""Limits of such a scope; of resources in `Slurm.cap_tres`."""


class Slurm(Bundle):
    """Memory of the scheduler."""

    p = rows(SLURM)  # one record of `SLURM`
    x = rows(JOBX)  # records of `JOBX` [jobs]
    line = ints()  # waiting jobs in order [jobs]
    spare = ints()  # scratch for sorting [jobs]
    part = rows(PART)  # records of `PART` [partitions]
    part_ok = words(2)  # nodes of each partition, a bit each [partitions, words]
    qos_preempts = ints(2)  # whether jobs of one QOS preempt those of another [QOS, QOS]
    bad = ints()  # the value of ``freed`` when one of a form was found not to fit on what was free [forms]
    biggest = ints()  # most units of a form on one node of its partition; -1 not known yet [forms]
    kinds = rows(KIND)  # records of `KIND`
    kind_ok = words(2)  # nodes on which one of a kind that is alive would start [kinds, words]
    alive = ints()  # kinds that are alive [kinds]
    gpu = ints(2)  # free GPUs: now, and while ends are tried [2, nodes]; so are:
    cpu = ints(2)  # thousandths of a CPU
    mem = ints(2)  # MB
    busy = ints(2)  # jobs on each node
    sole = ints(2)  # exclusive jobs on it
    weight = ints()  # of each node [nodes]
    by_weight = ints()  # nodes, those of a lower ``Weight`` first [nodes]
    up = words()  # nodes that are up [words]
    ok = words()  # candidate nodes, a bit each [words]
    off = words()  # nodes that the main pass no longer considers [words]
    tmp = words()  # scratch [words]
    step_t = floats()  # when each step of the plan begins [steps]
    step_ok = words(2)  # nodes without reservations in it [steps, words]
    step_took = ints(2)  # of a pool: GPUs, CPUs and memory reserved in it [steps, 3]
    user_mark = ints()  # the pass that ``user_tested`` is of [users]
    user_tested = ints()  # jobs of each user that a pass of backfill looked at [users]
    pair_mark = ints()  # the same of a user in a partition [users * partitions]
    pair_tested = ints()  # see there
    assoc_mark = ints()  # the same of an association
    assoc_tested = ints()  # see there
    scope_first = ints()  # the scopes of job ``j`` are ``scope[scope_first[j]:scope_first[j + 1]]`` [jobs + 1]
    scope = ints()  # numbers of scopes
    cap_of = ints()  # the limits of that job in that scope; -1 none
    scopes = rows(SCOPE)  # records of `SCOPE`
    used = ints(2)  # resources that running jobs of each scope hold [scopes, 5]
    caps = rows(CAP)  # records of `CAP`
    cap_tres = ints(2)  # limits of resources [caps, 5]
    need = ints(2)  # request of each job [jobs, 5]
    active = ints()  # jobs that wait or run, in the order of submission; of classic fair-share only [jobs]
    raw = floats()  # usage of each association; see `gpuctl.replay.policies.slurm.usage`
    parent = ints()  # association above
    # of the tree
    shares = ints()
    level_shares = ints()
    is_user = flags()
    fair_parent = ints()
    level_norm = floats()
    norm = floats()
    first = ints()
    children = ints()
    # arrays for the computation of fair-share
    effective = floats()
    level = floats()
    factor = floats()
    norm_usage = floats()
    fresh = flags()
    resets = floats()  # seconds at which usage is cleared
    # seconds of scripted passes, if they replace those of the settings [passes]
    script_t = floats()
    script_kind = ints()  # of `SCRIPTED` [passes]
    victims = ints()  # candidates for preemption, scratch [jobs]
    victim_key = ints()  # their sort keys [jobs]
