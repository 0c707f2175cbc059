"""Checks jobs and nodes before a replay; all errors are reported at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.core.storable_text import agreeing, plural
from gpuctl.replay.models.resources import GPUS_ONLY, asks, capacity, stocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpuctl.replay.models.records import Cluster, Floats, Ints, Workload
    from gpuctl.replay.models.speed import SpeedTable

    Bools = NDArray[np.bool_]

SHOWN = 5
"""Jobs named per kind of error."""

MOST_GPUS = 10_000_000
"""Most GPUs of all nodes together, or of a pool."""

MOST_GPUS_A_NODE = 10_000


def check(
    workload: Workload, cluster: Cluster, resources: tuple[str, ...] = GPUS_ONLY, speeds: SpeedTable | None = None
) -> None:
    """Check that a replay can run and every job of it can end.

    Args:
        workload: the jobs.
        cluster: the nodes.
        resources: what counts, see `gpuctl.replay.models.resources`.
        speeds: by GPU type, if used: a job cannot run on a type on which its class has speed 0.

    Raises:
        InputError: the cluster has no GPUs, a time is not finite or not above 0, a job's name occurs twice, jobs depend
            on one another in a circle, or a gang fits on no nodes that it may use. One message lists all errors and
            names the first jobs of each kind.
    """
    wrong = _wrong_jobs(workload, resources) + _wrong_nodes(workload, cluster, resources)
    hint = None
    if not wrong:
        wrong = _too_large(workload, cluster, speeds) + _too_much(workload, cluster, resources, speeds)
        hint = "leave these jobs out with --skip-unplaceable, or give a larger cluster" if wrong else None
    wrong += _too_many(cluster)
    if wrong:
        lines = "".join(f"\n  {line}" for line in wrong)
        raise InputError(f"{workload.name}: cannot be replayed on {cluster.name}; nothing ran:{lines}", hint=hint)


def _too_many(cluster: Cluster) -> list[str]:
    most = MOST_GPUS if cluster.pool else MOST_GPUS_A_NODE
    large = np.flatnonzero(cluster.gpus > most)
    if large.size:
        first = int(large[0])
        return [f"{cluster.nodes[first]} has {cluster.gpus[first]:,} GPUs: expected at most {most:,}"]
    if cluster.total_gpus > MOST_GPUS:
        return [f"the nodes have {cluster.total_gpus:,} GPUs: expected at most {MOST_GPUS:,}"]
    return []


def unplaceable(
    workload: Workload, cluster: Cluster, resources: tuple[str, ...] = GPUS_ONLY, speeds: SpeedTable | None = None
) -> Ints:
    """The numbers of the jobs whose gang is larger than all nodes together that it may use, ascending.

    A job may use the nodes of its queue (`Cluster.queue_nodes`) whose GPU type is the one it needs or is not known, and
    on whose GPUs its class does not have speed 0. Nodes down for good from the first submission on do not count, nor do
    quotas: the policy decides what a queue may hold beyond its quota. If CPUs or memory count, they also limit the
    gang.
    """
    large = workload.gpus > room(workload, cluster, speeds=speeds)
    if resources != GPUS_ONLY and workload.size:
        large |= _units_wanted(workload, resources) > room(workload, cluster, resources, speeds)
    return np.flatnonzero(large).astype(np.int64)


def room(
    workload: Workload, cluster: Cluster, resources: tuple[str, ...] = GPUS_ONLY, speeds: SpeedTable | None = None
) -> Ints:
    """GPUs of all nodes that each job may use, shape (jobs,); units of its gang if CPUs or memory count."""
    if not workload.size:
        return np.zeros(0, np.int64)
    more = resources != GPUS_ONLY
    request = workload.queue * (len(workload.gpu_types) + 1) + workload.gpu_type + 1
    if more:
        ask, stock = asks(workload, resources), stocks(cluster, resources)
        for part in (workload.gpus, ask.units, ask.cpu, ask.mem):
            kinds, kind = np.unique(part, return_inverse=True)
            request = np.unique(request * kinds.size + kind, return_inverse=True)[1]
    if speeds is not None:
        table, row, column = speeds.rows(workload, cluster)
        request = request * table.shape[0] + row
    _, first, which = np.unique(request, return_index=True, return_inverse=True)
    usable = _usable(workload, cluster)
    sums = np.zeros(first.size, np.int64)
    for k, job in enumerate(first.tolist()):
        queue, gpu_type = int(workload.queue[job]), int(workload.gpu_type[job])
        nodes = np.flatnonzero(usable)
        own = cluster.queue_nodes[queue] if cluster.queue_nodes else None
        if own is not None:
            nodes = nodes[np.isin(nodes, own)]
        if gpu_type >= 0:
            kind = cluster.gpu_type[nodes]
            nodes = nodes[(kind == gpu_type) | (kind < 0)]
        if speeds is not None:
            nodes = nodes[table[row[job], column[nodes], 0] > 0]
        units = capacity(int(workload.gpus[job]), ask[job], stock, cluster) if more else cluster.gpus
        sums[k] = units[nodes].sum()
    return np.asarray(sums[which.reshape(-1)])


def _units_wanted(workload: Workload, resources: tuple[str, ...]) -> Ints:
    return np.asarray(asks(workload, resources).units, np.int64)


def circular(depends: Ints, size: int) -> Ints:
    """The numbers of the jobs that depend on themselves, directly or not, ascending.

    Args:
        depends: as in `Workload`, shape (k, 2).
        size: how many jobs there are.
    """
    if not depends.size:
        return np.zeros(0, np.int64)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    after, before = depends.T
    graph = coo_array((np.ones(after.size, np.int8), (after, before)), shape=(size, size))
    _, group = connected_components(graph, directed=True, connection="strong")
    inside = np.bincount(group)[group] > 1
    inside[after[after == before]] = True
    return np.flatnonzero(inside).astype(np.int64)


def named(ids: tuple[str, ...], jobs: Ints, what: Floats | Ints | None = None) -> str:
    """The names of the first few of some jobs, with values if given, and the number of further ones."""
    shown = [repr(ids[j]) + ("" if what is None else f" ({what[j]:.12g})") for j in jobs[:SHOWN].tolist()]
    more = len(jobs) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more" if more else "")


def _usable(workload: Workload, cluster: Cluster) -> Bools:
    usable = np.ones(len(cluster.nodes), bool)
    if cluster.down is not None and len(cluster.down):
        never = np.isinf(cluster.down[:, 2]) & (cluster.down[:, 1] <= workload.submit.min())
        usable[cluster.down[never, 0].astype(np.int64)] = False
    return usable


def _wrong_elastic(w: Workload, report: Callable[..., None]) -> None:
    """Report errors in inputs of policies that resize or search."""
    if w.min_gpus is not None:
        few = (w.min_gpus < np.minimum(w.gpus, 1)) | (w.min_gpus > w.gpus)
        report(few, "can run on no GPUs at least, or on more than they ask for", w.min_gpus)
    if w.max_gpus is not None:
        report(w.max_gpus < w.gpus, "can run on fewer GPUs at most than they ask for", w.max_gpus)
    if w.beyond is not None:
        report(~(np.isfinite(w.beyond) & (w.beyond >= 0)), "have work beyond their end that is not finite", w.beyond)
    if w.curve is not None:
        wrong_curves = [k for k, c in enumerate(w.curves) if not (c.size and (np.isfinite(c) & (c > 0)).all())]
        bad_curve = np.isin(w.curve, wrong_curves) | (w.curve < -1) | (w.curve >= len(w.curves))
        report(bad_curve, "have no speed curve of numbers above 0", w.curve)


def _wrong_jobs(workload: Workload, resources: tuple[str, ...]) -> list[str]:
    w = workload
    if not w.size:
        return ["it has no jobs"]
    wrong = []

    def report(bad: Bools, text: str, what: Floats | Ints | None = None) -> None:
        jobs = np.flatnonzero(bad)
        if jobs.size:
            wrong.append(f"{_jobs(jobs.size, text)}: {named(w.ids, jobs, what)}")

    owner = np.repeat(np.arange(w.size), np.diff(w.segment_start))
    none, bad_segment = np.diff(w.segment_start) == 0, np.zeros(w.size, bool)
    bad_segment[owner[~(np.isfinite(w.segment_s) & (w.segment_s > 0))]] = True
    report(~np.isfinite(w.submit), "have a submission time that is not finite", w.submit)
    report(~np.isfinite(w.eligible), "have an eligible time that is not finite", w.eligible)
    report(w.eligible < w.submit, "are eligible before submission", w.eligible)
    report(np.diff(w.submit, prepend=-np.inf) < 0, "come before the job in front of them (not in order)", w.submit)
    report(none, "have no run time")
    report(bad_segment, "have a run time that is not above 0 or not finite")
    if resources == GPUS_ONLY:
        report(w.gpus < 1, "ask for less than one GPU", w.gpus)
    else:
        report(w.gpus < 0, "ask for less than no GPUs", w.gpus)
        for values, text in ((w.cpus, "CPUs"), (w.mem_mb, "MB")):
            if values is not None:
                report(~(np.isnan(values) | ((values >= 0) & (values < 1e12))), f"ask for no possible {text}", values)
    _wrong_elastic(w, report)
    report(~(np.isnan(w.time_limit) | (w.time_limit > 0)), "have a time limit that is not above 0", w.time_limit)
    if len(set(w.ids)) < w.size:
        _, first, count = np.unique(np.asarray(w.ids, dtype=object), return_index=True, return_counts=True)
        twice = first[count > 1]
        wrong.append(f"names of several jobs: {named(w.ids, np.sort(twice))}")
    if w.depends.size and (w.depends.min() < 0 or w.depends.max() >= w.size):
        wrong.append(f"dependencies name jobs {w.depends.min()} to {w.depends.max()}, there are 0 to {w.size - 1}")
    else:
        if w.think is not None:
            report(~((w.think >= 0) & np.isfinite(w.think)), "have no possible time after their dependency", w.think)
        circle = circular(w.depends, w.size)
        if circle.size:
            wrong.append(f"{_jobs(circle.size, 'depend on themselves in a circle')}: {named(w.ids, circle)}")
    return wrong


def _wrong_nodes(workload: Workload, cluster: Cluster, resources: tuple[str, ...]) -> list[str]:
    if not cluster.total_gpus and "cpu" not in resources:
        return ["the cluster has no GPUs; give one with --cluster, for instance 64x8"]
    wrong = []
    if (cluster.gpus < 1).any() and resources == GPUS_ONLY:
        none = int((cluster.gpus < 1).sum())
        wrong.append(f"{plural(none, 'node')} {agreeing(none, 'have no GPUs')}")
    queues = len(workload.queues)
    if len(cluster.quota) != queues or len(cluster.queue_nodes) not in {0, queues}:
        wrong.append(
            f"the cluster has quotas for {plural(len(cluster.quota), 'queue')} and nodes for "
            f"{len(cluster.queue_nodes)}, the jobs have {plural(queues, 'queue')}"
        )
    if np.isnan(cluster.quota).any() or (cluster.quota < 0).any():
        wrong.append("a quota is negative or not a number")
    return wrong


def _too_much(workload: Workload, cluster: Cluster, resources: tuple[str, ...], speeds: SpeedTable | None) -> list[str]:
    """Jobs that do not fit for their CPUs or memory, although their GPUs do."""
    if resources == GPUS_ONLY:
        return []
    jobs = np.setdiff1d(
        unplaceable(workload, cluster, resources, speeds), unplaceable(workload, cluster, speeds=speeds)
    )
    if not jobs.size:
        return []
    text = _jobs(jobs.size, f"ask for more {' and '.join(resources)} than the nodes have that they may use")
    return [f"{text}: {named(workload.ids, jobs)}"]


def _jobs(count: int, predicate: str) -> str:
    """``1 job has ...``, ``2 jobs have ...``."""
    return f"{plural(count, 'job')} {agreeing(count, predicate)}"


def _too_large(workload: Workload, cluster: Cluster, speeds: SpeedTable | None) -> list[str]:
    jobs = unplaceable(workload, cluster, speeds=speeds)
    if not jobs.size:
        return []
    w, fits = workload, room(workload, cluster, speeds=speeds)
    total = cluster.total_gpus
    large = w.gpus[jobs] > total
    typed = ~large & (fits[jobs] == 0) & (w.gpu_type[jobs] >= 0)
    wrong = []
    if large.any():
        wrong.append(
            f"{_jobs(int(large.sum()), 'ask for more GPUs')} than the cluster's {total:,}: "
            f"{named(w.ids, jobs[large], w.gpus)}"
        )
    for kind in np.unique(w.gpu_type[jobs[typed]]).tolist():
        mine = jobs[typed][w.gpu_type[jobs[typed]] == kind]
        wrong.append(
            f"{_jobs(mine.size, 'ask for GPUs')} of type {w.gpu_types[kind]!r}, which no node that their queue may "
            f"use has: {named(w.ids, mine)}"
        )
    rest = jobs[~large & ~typed]
    may = "queue and GPU type" if speeds is None else "queue, GPU type and speed there"
    if rest.size:
        wrong.append(
            f"{_jobs(rest.size, 'ask for more GPUs')} than the nodes have that their {may} allow: "
            + ", ".join(
                f"{w.ids[j]!r} ({w.gpus[j]} of {fits[j]}, queue {w.queues[w.queue[j]]!r})"
                for j in rest[:SHOWN].tolist()
            )
            + (f" and {rest.size - SHOWN:,} more" if rest.size > SHOWN else "")
        )
    return wrong
