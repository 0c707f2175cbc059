"""How long jobs of a replay shared nodes with others, and waited for locality alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Cluster, Floats, Ints, Outcome, Workload


def shared_s(outcome: Outcome, jobs: int) -> Floats:
    """GPU-seconds that each job held while another one had GPUs on the same node.

    For a gang on several nodes, the node on which it had neighbours for longest counts.
    """
    start, end, job, gpus = _attempts(outcome)
    row, node = (outcome.pieces[name].to_numpy().astype(np.int64) for name in ("row", "node"))
    most = np.zeros(start.size)
    order = np.argsort(node, kind="stable")
    cuts = np.flatnonzero(np.diff(node[order])) + 1
    for some in np.split(order, cuts):
        rows = row[some]
        times, count = _level(start[rows], end[rows], np.ones(rows.size))
        two = _integral(times, (count >= 2).astype(np.float64))
        np.maximum.at(most, rows, _at(times, two, end[rows]) - _at(times, two, start[rows]))
    return np.bincount(job, weights=most * gpus, minlength=jobs).astype(np.float64)


def locality_wait_s(outcome: Outcome, workload: Workload, cluster: Cluster) -> Floats:
    """Seconds that each job waited while as many GPUs as it asks for were free, and its queue within its quota.

    GPUs reserved while a gang is gathered count as free.
    """
    start, end, job, gpus = _attempts(outcome)
    first, last, owner = _waits(outcome, start, end, job)
    times, used = _level(start, end, gpus)
    free = cluster.total_gpus - used
    queue = np.where(workload.queue < 0, -1, workload.queue)
    quota = np.append(cluster.quota, np.inf)[queue] if cluster.quota.size else np.full(workload.size, np.inf)
    bound = np.where(np.isfinite(quota), queue, -1)
    waited = np.zeros(workload.size)
    kinds, kind = np.unique(np.stack([bound, workload.gpus]), axis=1, return_inverse=True)
    kind = kind.reshape(-1)[owner]
    for number, (of, size) in enumerate(kinds.T.tolist()):
        here = kind == number
        if not here.any():
            continue
        room = free >= size
        if of >= 0:
            mine = queue[job] == of
            own = _level_at(times, start[mine], end[mine], gpus[mine])
            room &= own + size <= cluster.quota[of]
        for_it = _integral(times, room.astype(np.float64))
        spent = _at(times, for_it, last[here]) - _at(times, for_it, first[here])
        np.add.at(waited, owner[here], spent)
    return waited


def _attempts(outcome: Outcome) -> tuple[Floats, Floats, Ints, Floats]:
    frame = outcome.attempts
    start = frame["start_s"].to_numpy().astype(np.float64)
    end = frame["end_s"].fill_null(outcome.end_s).to_numpy().astype(np.float64)
    return start, end, frame["job"].to_numpy().astype(np.int64), frame["gpus"].to_numpy().astype(np.float64)


def _waits(outcome: Outcome, start: Floats, end: Floats, job: Ints) -> tuple[Floats, Floats, Ints]:
    """The spells in which jobs waited: from eligibility or the end of an attempt to the start of the next one."""
    order = np.lexsort((start, job))
    owner = job[order]
    last = start[order]
    before = np.concatenate([[0.0], end[order][:-1]])
    eligible = outcome.jobs["eligible_s"].to_numpy().astype(np.float64)
    new = np.concatenate([[True], owner[1:] != owner[:-1]]) if owner.size else np.zeros(0, bool)
    first = np.where(new, eligible[owner], before)
    return first, np.maximum(last, first), owner


def _level(start: Floats, end: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Instants, and what is held from each of them to the next."""
    at = np.concatenate([start, end])
    change = np.concatenate([weight, -weight])
    times, place = np.unique(at, return_inverse=True)
    return times, np.cumsum(np.bincount(place.reshape(-1), weights=change, minlength=times.size))


def _level_at(times: Floats, start: Floats, end: Floats, weight: Floats) -> Floats:
    """Values at instants that include all of their own."""
    change = np.zeros(times.size)
    np.add.at(change, np.searchsorted(times, start), weight)
    np.add.at(change, np.searchsorted(times, end), -weight)
    return np.cumsum(change)


def _integral(times: Floats, so: Floats) -> Floats:
    """Cumulative seconds, up to each instant, in which a condition held."""
    if not times.size:
        return np.zeros(0)
    return np.concatenate([[0.0], np.cumsum(np.diff(times) * so[:-1])])


def _at(times: Floats, integral: Floats, when: Floats) -> Floats:
    return np.interp(when, times, integral) if times.size else np.zeros(when.size)
