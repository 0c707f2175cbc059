"""The utilization of each GPU that a job held, over time."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from gpuctl.analyze.gpu_usage import holds, lanes, spans
from gpuctl.core.job_explanation import GpuUse

if TYPE_CHECKING:
    from gpuctl.analyze.gpu_usage.holds import Device, Holds
    from gpuctl.store.database import Store

PERIODS = 60
"""Maximum number of periods into which the time of an attempt is divided."""
_LENGTHS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600, 86_400, 2 * 86_400,
    7 * 86_400, 14 * 86_400, 28 * 86_400,
)  # fmt: skip
_BY_NODE = """
    SELECT machine, epoch(ts) AS t, util FROM gpu_samples
    WHERE cluster = $cluster AND machine IN (SELECT unnest($machines::VARCHAR[]))
      AND ts >= to_timestamp($first) AND ts < to_timestamp($last)
    ORDER BY machine, ts
"""
_CLOCKS = "SELECT machine, offset_s FROM gpu_clocks WHERE cluster = $cluster AND corrected ORDER BY machine"
_LAST = """
    SELECT epoch(max(ts)) FROM (
        SELECT max(ts) AS ts FROM gpu_readings WHERE cluster = $cluster
        UNION ALL SELECT max(ts) FROM gpu_samples WHERE cluster = $cluster
    )
"""


class _Gpu(NamedTuple):
    """A GPU that an attempt held, and a number for its samples."""

    attempt: int
    machine: str
    gpu: int | None
    instance: str | None
    slot: str | None
    start: float
    end: float


def gpus_over_time(store: Store, cluster: str, job: str) -> dict[int, tuple[GpuUse, ...]]:
    """Return the utilization of each GPU that each attempt of a job held, by attempt; by node and index.

    Samples are joined to the job as for ``job_gpu_usage``. GPUs are missing if no source states which ones the job
    held, or if they have no samples.

    Args:
        store: an open store.
        cluster: the job's cluster.
        job: its name.
    """
    held = holds.read(store, cluster, job)
    if not held.attempts:
        return {}
    last = store.value(_LAST, {"cluster": cluster})
    if last is None:
        return {}
    ends = [a.start / 1e6 if last is None else max(a.start / 1e6, last) if a.end is None else a.end / 1e6
            for a in held.attempts]  # fmt: skip
    day = spans.DAY
    days = math.floor(min(a.start for a in held.attempts) / 1e6 / day) * day, (math.floor(max(ends) / day) + 1) * day
    found = [*_of_series(store, cluster, held, ends, days), *_of_nodes(store, cluster, held, ends, days)]
    by_attempt: dict[int, dict[tuple[str, int | None, str | None, str | None], GpuUse]] = defaultdict(dict)
    for gpu, t, util in found:
        use = _use(gpu, t, util)
        if use is not None:
            by_attempt[held.attempts[gpu.attempt].attempt].setdefault(gpu[1:5], use)
    return {attempt: tuple(some[key] for key in sorted(some, key=_order)) for attempt, some in by_attempt.items()}


def _order(key: tuple[str, int | None, str | None, str | None]) -> tuple[str, int, str, str]:
    machine, gpu, instance, slot = key
    return machine, -1 if gpu is None else gpu, instance or "", slot or ""


_Found = list[tuple[_Gpu, np.ndarray, np.ndarray]]


def _of_series(store: Store, cluster: str, held: Holds, ends: list[float], days: tuple[float, float]) -> _Found:
    """The samples of GPUs that have a series of their own."""
    known = lanes.read(store, cluster, held, days)
    by_device: dict[tuple[str, Device], list[int]] = defaultdict(list)
    for hold in held.on_nodes:
        for device in hold.devices or ():
            by_device[hold.machine, device].append(hold.attempt)
    gpus: list[tuple[int, _Gpu]] = []
    for number, lane in enumerate(known.lanes):
        attempts: list[int] = []
        if lane.label is not None:
            attempts = held.by_label.get(lane.label, [])
        elif lane.gpu is not None and (lane.reader, lane.machine) not in known.labelled:
            attempts = by_device.get((lane.machine, (lane.gpu, lane.instance)), [])
        gpus += [
            (number, _Gpu(a, *lane[1:4], lane.slot, held.attempts[a].start / 1e6, ends[a]))
            for a in attempts
            if known.rows.get(number)
        ]
    if not gpus:
        return []
    rows, _ = lanes.samples(store, cluster, known, sorted({number for number, _ in gpus}), days)
    rows = rows.filter(pl.col("counts") & pl.col("util").is_not_null())
    ahead = dict(store.execute(_CLOCKS, {"cluster": cluster}).fetchall())
    found: _Found = []
    for number, gpu in gpus:
        own = rows.filter(pl.col("lane") == number)
        late = ahead.get(gpu.machine, 0.0)
        t = own.select(pl.col("t") - pl.when("node_clock").then(late).otherwise(0.0)).to_series().to_numpy()
        found.append((gpu, t, own["util"].cast(pl.Float64).to_numpy()))
    return found


def _of_nodes(store: Store, cluster: str, held: Holds, ends: list[float], days: tuple[float, float]) -> _Found:
    """The samples that list all GPUs of a node."""
    machines = sorted({hold.machine for hold in held.on_nodes if hold.devices})
    span = {"first": days[0], "last": days[1]}
    rows = store.frame(_BY_NODE, {"cluster": cluster, "machines": machines, **span}) if machines else pl.DataFrame()
    if not rows.height:
        return []
    found: _Found = []
    for hold in held.on_nodes:
        own = rows.filter(pl.col("machine") == hold.machine)
        begin, end = held.attempts[hold.attempt].start / 1e6, ends[hold.attempt]
        for gpu, instance in hold.devices or ():
            if instance is None:
                some = own.select("t", util=pl.col("util").list.get(gpu, null_on_oob=True)).drop_nulls()
                device = _Gpu(hold.attempt, hold.machine, gpu, None, None, begin, end)
                found.append((device, some["t"].to_numpy(), some["util"].cast(pl.Float64).to_numpy()))
    return found


def _use(gpu: _Gpu, t: np.ndarray, util: np.ndarray) -> GpuUse | None:
    """Return the means of periods; None if no sample falls into the attempt."""
    lane = np.zeros(len(t), np.int64)
    some, _ = spans.samples(lane, t, util)
    hold = spans.Held(np.zeros(1, np.int64), np.array([gpu.start]), np.array([gpu.end]))
    holder = spans.holders(some, hold)
    weight = spans.weights(some, holder, hold)
    mine = weight > 0
    if not mine.any():
        return None
    t, value, weight = some.t[mine], some.value[mine], weight[mine]
    seconds = gpu.end - gpu.start
    interval = float(np.nan_to_num(some.interval[mine]).max())
    least = max(seconds / PERIODS, interval)
    step = float(next((length for length in _LENGTHS_S if length >= least), math.ceil(least)))
    # a rest that is shorter than an interval may have no sample: it belongs to the period before it
    count = max(1, math.ceil((seconds - interval) / step))
    at = np.minimum(((t - gpu.start) // step).astype(np.int64), count - 1)
    covered = np.bincount(at, weight, count)
    total = np.bincount(at, value * weight, count)
    return GpuUse(
        machine=gpu.machine,
        gpu=gpu.gpu,
        instance=gpu.instance,
        slot=gpu.slot,
        mean_pct=float((value * weight).sum() / weight.sum()),
        coverage=float(min(1.0, weight.sum() / seconds)),
        period_s=step,
        pct=tuple(float(total[k] / covered[k]) if covered[k] > 0 else None for k in range(count)),
    )
