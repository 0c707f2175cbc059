"""The compiled main pass of Slurm's scheduler.

Sources: SchedMD's page *Scheduling Configuration Guide*, slurm.conf(5); _schedule of src/slurmctld/job_scheduler.c of
22.05.8 was read for what a job that cannot start blocks for later ones: its partition, and all its nodes.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner
from gpuctl.replay.policies.slurm.job_states_kernel import start, take_in
from gpuctl.replay.policies.slurm.limit_kernel import within
from gpuctl.replay.policies.slurm.node_kernel import NOW, fill, place, usable
from gpuctl.replay.policies.slurm.order_kernel import out_of_line
from gpuctl.replay.policies.slurm.preempt_kernel import make_room
from gpuctl.replay.policies.slurm.records_kernel import P_NONE, R_MAIN, R_PREEMPTS

_NONE = np.uint64(0)


@inner
def begin_pass(f):  # type: ignore[no-untyped-def]
    """Start a numbered pass: marks with other numbers are from earlier passes."""
    f.p[0].run += 1
    return f.p[0].run


@inner
def of_partition(f, number, run):  # type: ignore[no-untyped-def]
    """A partition's record, with its counts reset for this pass."""
    part = f.part[number]
    if part.mark != run:
        part.mark, part.tested, part.reserved = run, 0, 0
    return part


@inner
def start_preempting(s, f, r, at, reason):  # type: ignore[no-untyped-def]
    """Preempt for the job at a position in the line, on the nodes in ``ok``; start it if they are free at once.

    Returns:
        whether it could preempt any job, and whether it runs. The line may have changed.
    """
    j = f.line[at]
    if not make_room(s, f, r, j):
        return False, False
    take_in(s, f, r)
    if f.x[j].victims > 0 or not place(s, f, j, NOW):
        return True, False
    place_of = 0
    while f.line[place_of] != j:
        place_of += 1
    out_of_line(f, place_of)
    start(s, f, r, j, reason)
    return True, True


@inner
def _stops_others(s, f, j):  # type: ignore[no-untyped-def]
    """Whether a job that cannot start blocks later jobs of its partition in this pass."""
    p, x = f.p[0], f.x[j]
    if s.g[0].now - x.accrue < p.bf_min_age:
        return False
    return x.prio >= (x.min_prio if x.min_prio > 0 else p.bf_min_prio)


@inner
def main_pass(s, f, r, whole):  # type: ignore[no-untyped-def]
    """Start jobs in order, in each partition up to the first that cannot.

    Args:
        s: the simulation.
        f: the scheduler's memory.
        r: running jobs by planned end.
        whole: visit the whole line rather than ``default_queue_depth`` jobs.

    Returns:
        whether the whole line was visited, and the number of started jobs.
    """
    p = f.p[0]
    run = begin_pass(f)
    fill(f.off, _NONE)
    failed, tested, starts, at = 0, 0, 0, 0
    complete = True
    partitions = 0
    for k in range(f.part.size):
        partitions += f.part[k].waiting > 0
    while at < p.waiting:
        if failed == partitions:
            break
        j = f.line[at]
        x = f.x[j]
        if p.main_starts > 0 and starts >= p.main_starts:
            return False, starts
        if x.victims > 0:
            at += 1
            continue
        part = of_partition(f, x.part, run)
        part.tested += 1
        if p.part_depth > 0 and part.tested > p.part_depth:
            complete = False
            at += 1
            continue
        if not whole and tested > p.depth:
            return False, starts
        tested += 1
        if part.failed == run:
            at += 1
            continue
        stops = False
        if not within(f, j):
            stops = p.assoc_stop == 1
        else:
            ran, stops = _try(s, f, r, at)
            if ran:
                starts += 1
                continue
        if stops and _stops_others(s, f, j):
            part.failed = run
            failed += 1
            for k in range(f.off.size):
                f.off[k] |= f.part_ok[x.part, k]
        at += 1
    return complete, starts


@inner
def _try(s, f, r, at):  # type: ignore[no-untyped-def]
    """Start the job at a position in the line. Returns whether it runs; if not, whether it lacks resources."""
    p = f.p[0]
    j = f.line[at]
    form = f.x[j].form
    known = f.bad[form] == p.freed
    if known and p.preempt == P_NONE:
        return False, True
    usable(f, j)
    cut = False
    for k in range(f.ok.size):
        cut = cut or f.ok[k] & f.off[k] != _NONE
        f.ok[k] &= ~f.off[k]
    if not known:
        if place(s, f, j, NOW):
            out_of_line(f, at)
            start(s, f, r, j, R_MAIN)
            return True, False
        if not cut:
            f.bad[form] = p.freed
    if p.preempt != P_NONE:
        _, ran = start_preempting(s, f, r, at, R_PREEMPTS)
        if ran:
            return True, False
    return False, True
