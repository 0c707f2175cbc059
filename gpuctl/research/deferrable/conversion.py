"""A trace as leftover capacity and deferrable jobs: the trace marks the jobs that can wait, or a hash selects them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.core.suggestions import meant
from gpuctl.replay.policies.osdec.deferral_windows import LONGEST_S, SHARE, hashed, put_off, slots_of
from gpuctl.research.deferrable.cases import DAY_S, MOST_SLOTS, Case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.replay.models.records import Workload

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

SPOT = "Spot"
"""Quality of service of deferrable jobs in Alibaba's spot trace; the other jobs have HP."""


class Trace(NamedTuple):
    """Jobs in the order of their input.

    Attributes:
        ids: names.
        submit_s: seconds from second 0; may be negative.
        run_s: seconds.
        gpus: GPUs of each job.
        marked: jobs that the trace marks as deferrable; None: it marks none.
    """

    ids: Sequence[str]
    submit_s: Floats
    run_s: Floats
    gpus: Ints
    marked: Flags | None = None


def deferrable(trace: Trace, share: int = SHARE) -> Flags:
    """Which jobs of a trace are deferrable."""
    wanted = np.array([hashed(job, share) for job in trace.ids], bool) if trace.marked is None else trace.marked
    return wanted & (trace.submit_s >= 0) & (trace.run_s <= LONGEST_S)


def convert(trace: Trace, slot_s: int, share: int = SHARE, gpus: int | None = None) -> Case:
    """Cut a trace into slots, from second 0 to its last submission.

    On-demand jobs start when they are submitted and never wait; a slot's load is the most GPUs that they hold at any
    instant of the slot. Deferrable jobs may use the rest.

    Args:
        trace: the jobs.
        slot_s: length of a slot, s.
        share: per cent of deferrable jobs if the trace does not mark them.
        gpus: GPUs of the cluster; None: the peak of on-demand jobs.

    Raises:
        InputError: no job is submitted at or after second 0, or there are too many slots.
    """
    submit, run = np.round(trace.submit_s, 6), np.round(trace.run_s, 6)
    last = float(submit.max(initial=-1.0))
    if last < 0:
        raise InputError("no job is submitted at or after second 0", hint="times count from second 0 of the trace")
    horizon = int(np.ceil((last + 1) / slot_s))
    if horizon > MOST_SLOTS:
        raise InputError(f"{horizon:,} slots, expected at most {MOST_SLOTS:,}", hint="longer slots: --slot 1h")
    chosen = deferrable(trace._replace(submit_s=submit, run_s=run), share)
    on_demand = peaks(submit[~chosen], run[~chosen], trace.gpus[~chosen], slot_s, horizon)
    total = max(int(on_demand.max()), 1) if gpus is None else gpus
    rows = np.flatnonzero(chosen)
    slots = np.array([slots_of(each, slot_s) for each in run[rows].tolist()], np.int64)
    earliest = np.ceil(submit[rows] / slot_s).astype(np.int64)
    span = np.array([put_off(each, slot_s) for each in run[rows].tolist()], np.int64)
    latest = np.minimum(earliest + span, horizon - slots)
    closed, large = latest < earliest, trace.gpus[rows] > total
    fits = ~(closed | large)
    about = {
        "trace_jobs": len(trace.ids), "on_demand_jobs": int((~chosen).sum()), "deferrable_jobs": int(fits.sum()),
        "marked_by": "hash" if trace.marked is None else "trace", "share_pct": share if trace.marked is None else None,
        "left_out_too_late": int((closed & ~large).sum()), "left_out_too_large": int(large.sum()),
    }  # fmt: skip
    return Case(
        np.maximum(0, total - on_demand), tuple(trace.ids[row] for row in rows[fits].tolist()), earliest[fits],
        latest[fits], trace.gpus[rows][fits], slots[fits], total, max(1, round(DAY_S / slot_s)), slot_s, on_demand,
        about,
    )  # fmt: skip


def peaks(submit_s: Floats, run_s: Floats, gpus: Ints, slot_s: int, horizon: int) -> Ints:
    """The most GPUs that jobs hold at any instant of each slot, if each starts when it is submitted [slots]."""
    times = np.concatenate([submit_s, np.round(submit_s + run_s, 6)])
    instants, place = np.unique(times, return_inverse=True)
    change = np.bincount(place, np.concatenate([gpus, -gpus]), instants.size)
    held = np.concatenate([[0], np.rint(np.cumsum(change))]).astype(np.int64)
    begins = np.arange(horizon) * slot_s
    found = held[np.searchsorted(instants, begins, side="right")]
    slot = (instants // slot_s).astype(np.int64)
    within = (slot >= 0) & (slot < horizon)
    np.maximum.at(found, slot[within], held[1:][within])
    return np.asarray(found, np.int64)


def trace_of(workload: Workload, queues: Sequence[str] = ()) -> Trace:
    """The jobs of a replay's workload, in the order of their input.

    Args:
        workload: the jobs.
        queues: names of queues or qualities of service whose jobs are deferrable. None: the marks of Alibaba's spot
            trace, if present.

    Raises:
        InputError: no job belongs to one of the named queues.
    """
    size = workload.size
    order = np.arange(size) if workload.line is None else np.argsort(workload.line)
    run = np.add.reduceat(workload.segment_s, workload.segment_start[:-1]) if size else np.zeros(0)
    marked = _marked(workload, tuple(queues))
    return Trace(
        [workload.ids[row] for row in order.tolist()], workload.submit[order], run[order], workload.gpus[order],
        None if marked is None else marked[order],
    )  # fmt: skip


def _marked(workload: Workload, queues: tuple[str, ...]) -> Flags | None:
    of_qos = {name: workload.qos == k for k, name in enumerate(workload.qos_names)}
    if not queues and SPOT in of_qos and "HP" in of_qos:
        return np.asarray(of_qos[SPOT], bool)
    if not queues:
        return None
    named = {name: workload.queue == k for k, name in enumerate(workload.queues)}
    found = np.zeros(workload.size, bool)
    for name in queues:
        own = [of[name] for of in (named, of_qos) if name in of]
        if not own:
            raise InputError(
                f"no job has the queue or quality of service {name!r}", hint=meant(name, [*named, *of_qos])
            )
        for each in own:
            found |= each
    return found
