"""The compiled list of running jobs by the second at which they are planned to end, and the GPUs free then."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuctl.compiled.bundles import Bundle, floats, ints, rows
from gpuctl.compiled.jit import inner
from gpuctl.replay.engine.placement_kernel import set_free
from gpuctl.replay.engine.state import NEED


class Running(Bundle):
    """Running jobs by planned end."""

    n = ints()  # [1]: how many
    job = ints()  # the jobs, earliest end first; of several the lowest number
    end = floats()  # that second: start plus planned seconds; a job past it may end at any moment
    until = floats()  # the same by job; NaN if it does not run [jobs]
    plan = floats()  # seconds that each job is planned for [jobs]
    before = ints()  # free GPUs of each node, saved during trials [nodes]
    before_need = rows(NEED)  # CPUs and memory likewise, records of `NEED` [nodes]


def nobody(plan: NDArray[np.float64], nodes: int, most: int) -> Running:
    """No running jobs; `most` is how many may run at a time."""
    return Running(
        n=1,
        job=most + 1,
        end=most + 1,
        until=np.full(plan.size, np.nan),
        plan=plan,
        before=nodes,
        before_need=nodes,
    )


@inner
def _place(r, end, j):  # type: ignore[no-untyped-def]
    a, b = 0, r.n[0]
    while a < b:
        middle = (a + b) >> 1
        if r.end[middle] < end or (r.end[middle] == end and r.job[middle] < j):
            a = middle + 1
        else:
            b = middle
    return a


@inner
def runs(s, r, j):  # type: ignore[no-untyped-def]
    """Add a job that starts now."""
    end = s.g[0].now + r.plan[j]
    at = _place(r, end, j)
    for k in range(r.n[0], at, -1):
        r.job[k], r.end[k] = r.job[k - 1], r.end[k - 1]
    r.job[at], r.end[at] = j, end
    r.until[j] = end
    r.n[0] += 1


@inner
def runs_no_more(r, j):  # type: ignore[no-untyped-def]
    """Remove a job that released its GPUs. Returns its planned end; NaN if it did not run."""
    end = r.until[j]
    if np.isnan(end):
        return end
    at = _place(r, end, j)
    r.n[0] -= 1
    for k in range(at, r.n[0]):
        r.job[k], r.end[k] = r.job[k + 1], r.end[k + 1]
    r.until[j] = np.nan
    return end


@inner
def remember(s, r):  # type: ignore[no-untyped-def]
    """Save the present free amounts before a trial."""
    for number in range(s.nodes.size):
        r.before[number] = s.nodes[number].free
        if s.g[0].resources == 1:
            r.before_need[number].cpu, r.before_need[number].mem = s.stock[number].cpu_free, s.stock[number].mem_free


@inner
def back_to_now(s, r):  # type: ignore[no-untyped-def]
    """Restore the saved free amounts."""
    for number in range(s.nodes.size):
        if s.nodes[number].free != r.before[number]:
            set_free(s, number, r.before[number])
        if s.g[0].resources == 1:
            s.stock[number].cpu_free, s.stock[number].mem_free = r.before_need[number].cpu, r.before_need[number].mem


@inner
def give(s, j):  # type: ignore[no-untyped-def]
    """Count a running job's GPUs as free, to try placements."""
    row = s.attempts[s.jobs[j].row]
    for k in range(row.first, row.first + row.pieces):
        number = s.pieces[k].node
        set_free(s, number, s.nodes[number].free + s.pieces[k].gpus)
        if s.g[0].resources == 1:
            s.stock[number].cpu_free += s.needs[k].cpu
            s.stock[number].mem_free += s.needs[k].mem
