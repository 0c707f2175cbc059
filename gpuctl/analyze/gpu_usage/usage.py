"""Computes ``job_gpu_usage`` and related tables, after an ingest has loaded something.

Definitions are those of docs/how-to/gpu-telemetry.md: samples are joined to the holders of GPUs, each represents an
interval around it, and a figure based on less than half of the held GPU-time is withheld.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import polars as pl

from gpuctl.analyze.gpu_usage import clocks, counters, faults, lanes, lost, ranges, spans
from gpuctl.analyze.gpu_usage.holds import Holds, NodeHold, read
from gpuctl.analyze.gpu_usage.summaries import Summary, over_time, summaries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gpuctl.analyze.gpu_usage.lanes import Lanes
    from gpuctl.store.database import Store

BATCH_ROWS = 1_000_000
"""Maximum number of samples in memory at a time."""
SHORT = 2
"""A job shorter than this many intervals has no mean."""
CLOSE = 1.0
"""Where the range of a mean is no wider than this (points), its middle is reported."""
COUNTED = 0.999
"""Energy is a counter's where it covers this share of the GPU-time held, else the sum of power samples."""
LONGEST_IDLE_INTERVAL_S = 300.0
"""From means over longer steps, idleness cannot be seen."""
_METRICS = ("util", "mem_mb", "power_w", "sm_pct", "tensor_pct")
_RESULTS = ("job_gpu_usage", "gpu_use_hours", "gpu_use_tenths", "gpu_clocks", "gpu_usage_basis", "gpu_faults")
_SOURCES = ("gpu_series", "job_gpu_summary", "gpu_events")


class Options(NamedTuple):
    """How to compute figures.

    Attributes:
        idle_after_min: minutes at 0 % from which a GPU is idle.
        min_coverage: share of the held GPU-time; below it there are no figures.
        correct_clocks: auto: on strong evidence.
    """

    idle_after_min: float = 10.0
    min_coverage: float = 0.5
    correct_clocks: Literal["auto", "always", "never"] = "auto"


@dataclass
class _Job:
    """Sums over a job's GPUs."""

    held_s: float = 0.0
    run_s: float = 0.0
    last_attempt: int = -1
    covered: float = 0.0
    util: float = 0.0
    low: float = 0.0
    high: float = 0.0
    vague: bool = False
    shared: bool = False
    part_without: bool = False
    idle_s: float = 0.0
    unused: int = 0
    mem_max: float | None = None
    counted_j: float = 0.0
    counted_s: float = 0.0
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    interval: float = 0.0
    samples: int = 0
    how: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    readers: set[str] = field(default_factory=set)
    running: bool = False
    part: bool = False


class _Joined(NamedTuple):
    """Samples joined to holdings.

    Attributes:
        there: which rows have a value of the metric.
        some: the samples.
        holder: of each, the index of its holding; -1: none.
        weight: of each, the seconds that it represents.
    """

    there: NDArray[np.bool_]
    some: spans.Samples
    holder: NDArray[np.int64]
    weight: NDArray[np.float64]


def renew(store: Store, cluster: str, options: Options) -> None:
    """Recompute the GPU usage of a cluster in a store that is open for writing.

    Raises:
        KeyboardInterrupt, StoreError: as for `Store.execute`; the store is as it was before.
    """
    own = {"cluster": cluster}
    there = " + ".join(f"(SELECT count(*) FROM {name} WHERE cluster = $cluster)" for name in _SOURCES)  # noqa: S608
    results = _Usage(store, cluster, options).compute() if store.value(f"SELECT {there}", own) else {}
    store.execute("BEGIN")
    try:
        for table in _RESULTS:
            store.execute(f"DELETE FROM {table} WHERE cluster = $cluster", own)  # noqa: S608 - names of ours
        for table, rows in results.items():
            if rows.height:
                store.view("computed", rows)
                store.execute(f"INSERT INTO {table} BY NAME SELECT $cluster AS cluster, * FROM computed", own)  # noqa: S608
                store.drop_view("computed")
    except BaseException:
        store.execute("ROLLBACK")
        raise
    store.execute("COMMIT")


class _Usage:
    """One computation."""

    def __init__(self, store: Store, cluster: str, options: Options) -> None:
        self._store, self._cluster, self._options = store, cluster, options
        self._holds: Holds = read(store, cluster)
        self._lanes: Lanes = lanes.read(store, cluster, self._holds)
        self._jobs: dict[str, _Job] = defaultdict(_Job)
        self._clocks: list[dict[str, Any]] = []
        self._moved: dict[str, float] = {}
        self._counts: dict[str, int] = defaultdict(int)
        self._lost: list[lost.Lost] = []
        self._hours: list[pl.DataFrame] = []
        self._tenths: list[pl.DataFrame] = []
        self._on_machine: dict[str, list[NodeHold]] = defaultdict(list)
        for hold in self._holds.on_nodes:
            self._on_machine[hold.machine].append(hold)
        self._ends = np.array([np.nan if a.end is None else a.end / 1e6 for a in self._holds.attempts])
        self._starts = np.array([a.start / 1e6 for a in self._holds.attempts])

    def compute(self) -> dict[str, pl.DataFrame]:
        """Return the rows of each table."""
        self._end_running()
        self._held()
        for machines, numbers in self._batches():
            self._batch(machines, numbers)
        usage = self._rows()
        by = ["job", "attempt", "machine", "hour", "colocated"]
        basis = [{"what": name, "value": float(n)} for name, n in self._counts.items()]
        basis += [
            {"what": name, "value": float(value)}
            for name, value in (
                ("idle_after_min", self._options.idle_after_min),
                ("min_coverage", self._options.min_coverage),
            )
        ]
        return {
            "job_gpu_usage": usage,
            "gpu_use_hours": _summed(self._hours, by),
            "gpu_use_tenths": _summed(self._tenths, ["job", "attempt", "colocated", "tenth"]),
            "gpu_faults": faults.found(self._store, self._cluster, self._holds, self._lost),
            "gpu_clocks": pl.DataFrame(self._clocks),
            "gpu_usage_basis": pl.DataFrame(basis, schema={"what": pl.String, "value": pl.Float64}),
        }

    def _end_running(self) -> None:
        """End running attempts at the last sample of all."""
        last = self._store.value("SELECT epoch(max(ts)) FROM gpu_readings WHERE cluster = $c", {"c": self._cluster})
        self._ends = np.where(
            np.isnan(self._ends), self._starts if last is None else np.maximum(self._starts, last), self._ends
        )

    def _held(self) -> None:
        for at, attempt in enumerate(self._holds.attempts):
            job = self._jobs[attempt.job]
            length = max(0.0, float(self._ends[at] - self._starts[at]))
            job.held_s += attempt.gpus * length
            job.run_s += length
            job.last_attempt = max(job.last_attempt, attempt.attempt)
            job.running |= attempt.end is None

    def _batches(self) -> Iterator[tuple[list[str], list[int]]]:
        """Nodes and lanes whose samples are read together; lanes of nodes that nothing else names are left out."""
        of_machine: dict[str, list[int]] = defaultdict(list)
        for at, lane in enumerate(self._lanes.lanes):
            known = lane.label is not None or lane.machine in self._on_machine
            if self._lanes.rows.get(at) and (known or lane.machine in self._holds.machine_gpus):
                of_machine[lane.machine].append(at)
        machines: list[str] = []
        batch: list[int] = []
        rows = 0
        for machine, lanes_there in sorted(of_machine.items()):
            size = sum(self._lanes.rows.get(at, 0) for at in lanes_there)
            # of a node whose holds are ranges the GPUs are compared with one another
            vague = any(hold.devices is None for hold in self._on_machine.get(machine, ()))
            apart = size > BATCH_ROWS and not vague
            if apart and batch:
                yield machines, batch
                machines, batch, rows = [], [], 0
            for part in [[at] for at in lanes_there] if apart else [lanes_there]:
                count = sum(self._lanes.rows.get(at, 0) for at in part)
                if batch and rows + count > BATCH_ROWS:
                    yield machines, batch
                    machines, batch, rows = [], [], 0
                machines += [machine] if machine not in machines else []
                batch += part
                rows += count
        if batch:
            yield machines, batch

    def _batch(self, machines: Sequence[str], numbers: list[int]) -> None:
        """Read the samples of some lanes and add them to their jobs."""
        rows, second = lanes.samples(self._store, self._cluster, self._lanes, numbers)
        self._counts["samples_of_second_tools"] += second
        rows, stuck = counters.without_stuck(rows)
        self._counts["stuck_hours"] += stuck
        rows = rows.with_columns(util=pl.when("counts").then("util").otherwise(None))
        held, who, how = self._held_lanes(numbers)
        clocked = set(self._lanes.series.filter("node_clock", pl.col("lane").is_in(numbers))["lane"].to_list())
        shift = self._shifts(rows, held, machines, clocked)
        if any(shift.values()):
            moved = pl.Series([shift.get(self._lanes.lanes[lane].machine, 0.0) for lane in numbers], dtype=pl.Float64)
            by_lane = pl.DataFrame({"lane": pl.Series(numbers, dtype=pl.Int64), "shift": moved})
            rows = rows.join(by_lane, on="lane", maintain_order="left").with_columns(
                t=pl.col("t") - pl.when("node_clock").then("shift").otherwise(0.0)
            )
        self._lost += lost.find(rows["lane"].to_numpy(), rows["t"].to_numpy(), self._lanes.lanes)
        self._add(rows, held, who, how)
        for machine in machines:
            if any(hold.devices is None for hold in self._on_machine.get(machine, ())):
                self._bounds(machine, rows, numbers)

    def _held_lanes(self, numbers: list[int]) -> tuple[spans.Held, NDArray[np.int64], list[str]]:
        """Return the holdings of lanes, sorted; the attempt of each, and how it is known."""
        found: list[tuple[int, float, float, int, str]] = []
        by_device: dict[tuple[str, int | None, str | None], list[int]] = defaultdict(list)
        for at in numbers:
            lane = self._lanes.lanes[at]
            if lane.label is not None:
                found += [
                    (at, float(self._starts[a]), float(self._ends[a]), a, "label")
                    for a in self._holds.by_label.get(lane.label, ())
                ]
            elif (lane.reader, lane.machine) not in self._lanes.labelled:
                by_device[lane.machine, lane.gpu, lane.instance].append(at)
        for machine in {self._lanes.lanes[at].machine for at in numbers}:
            for hold in self._on_machine.get(machine, ()):
                for gpu, instance in hold.devices or ():
                    whole = by_device.get((machine, gpu, None), [])
                    mine = by_device.get((machine, gpu, instance), [])
                    if instance is not None and whole and not mine:
                        self._jobs[self._holds.attempts[hold.attempt].job].part_without = True
                    span = float(self._starts[hold.attempt]), float(self._ends[hold.attempt])
                    found += [(at, *span, hold.attempt, hold.how) for at in mine]
        found.sort()
        for one, two in pairwise(found):
            if one[0] == two[0] and two[1] < one[2] - 1 and two[3] != one[3]:
                for each in (one, two):
                    self._jobs[self._holds.attempts[each[3]].job].shared = True
        of_lane, start, end, who, how = zip(*found, strict=True) if found else ((), (), (), (), ())
        held = spans.Held(np.array(of_lane, np.int64), np.array(start, np.float64), np.array(end, np.float64))
        return held, np.array(who, np.int64), list(how)

    def _shifts(
        self, rows: pl.DataFrame, held: spans.Held, machines: Sequence[str], clocked: set[int]
    ) -> dict[str, float]:
        """Return offsets of the clocks of nodes, seconds, if they are corrected."""
        if not clocked:
            return {}
        found: dict[str, float] = {}
        busy = rows.filter(pl.col("node_clock") & ((pl.col("util") > 0) | (pl.col("mem_mb") > 1024)))
        busy_lane, busy_t = busy["lane"].to_numpy(), busy["t"].to_numpy()
        for machine in machines:
            if machine in self._moved:
                # the node's first GPUs fill a batch, which is enough to estimate its clock
                found[machine] = self._moved[machine]
                continue
            of_machine = [at for at in clocked if self._lanes.lanes[at].machine == machine]
            times, starts, ends = [], [], []
            steps: list[float] = []
            for at in of_machine:
                mine = held.lane == at
                if not mine.any():
                    continue
                some = np.unique(busy_t[np.searchsorted(busy_lane, at) : np.searchsorted(busy_lane, at, side="right")])
                times.append(some)
                starts.append(held.start[mine])
                ends.append(held.end[mine])
                if len(some) > 1:
                    steps.append(float(np.median(np.diff(some))))
            if not steps:
                continue
            clock = clocks.estimate(times, starts, ends, float(np.median(steps)))
            if clock is None:
                continue
            choice = self._options.correct_clocks
            skewed = 0 < abs(clock.offset) <= clocks.REACH_S
            corrected = choice != "never" and skewed and (clock.strong or choice == "always")
            found[machine] = self._moved[machine] = clock.offset if corrected else 0.0
            self._clocks.append(
                {"machine": machine, "offset_s": clock.offset, "high_s": clock.high, "cost_s": clock.cost,
                 "cost_uncorrected_s": clock.uncorrected, "boundaries": clock.boundaries, "corrected": corrected}
            )  # fmt: skip
        return found

    def _add(self, rows: pl.DataFrame, held: spans.Held, who: NDArray[np.int64], how: list[str]) -> None:
        lane, t = rows["lane"].to_numpy(), rows["t"].to_numpy()
        sums: dict[str, NDArray[np.float64]] = {}
        seconds: dict[str, NDArray[np.float64]] = {}
        util: spans.Samples | None = None
        # most tools measure all metrics at the same times
        before: _Joined | None = None
        for metric in _METRICS:
            there = rows[metric].is_not_null().to_numpy()
            if not there.any():
                continue
            value = rows[metric].cast(pl.Float64).to_numpy()[there]
            if before is not None and np.array_equal(there, before.there):
                some, differ = spans.samples(lane[there], t[there], value, before.some)
                holder, weight = before.holder, before.weight
            else:
                some, differ = spans.samples(lane[there], t[there], value)
                holder = spans.holders(some, held)
                weight = spans.weights(some, holder, held)
                before = _Joined(there, some, holder, weight)
            mine = holder >= 0
            size = len(held.lane)
            sums[metric] = np.bincount(holder[mine], some.value[mine] * weight[mine], size).astype(np.float64)
            seconds[metric] = np.bincount(holder[mine], weight[mine], size).astype(np.float64)
            if metric == "util":
                util = some
                self._counts["duplicates"] += differ
                self._of_util(some, holder, weight, held, who)
            if metric == "mem_mb":
                highest = np.full(size, -1.0)
                np.maximum.at(highest, holder[mine], some.value[mine])
                for at in np.flatnonzero(highest >= 0):
                    job = self._jobs[self._holds.attempts[who[at]].job]
                    job.mem_max = max(job.mem_max or 0.0, float(highest[at]))
        self._of_counter(rows, held, who)
        if util is None:
            return
        self._leftovers(util, held, how)
        for at in np.flatnonzero(seconds["util"] > 0):
            attempt = self._holds.attempts[who[at]]
            job, lane_of = self._jobs[attempt.job], self._lanes.lanes[int(held.lane[at])]
            job.covered += float(seconds["util"][at])
            job.util += float(sums["util"][at])
            job.how.add("uuid" if how[at] == "index" and lane_of.gpu is None else how[at])
            job.readers.add(lane_of.reader)
            job.part |= lane_of.instance is not None
            for metric, of_metric in sums.items():
                job.sums[metric] += float(of_metric[at])
                job.seconds[metric] += float(seconds[metric][at])

    def _of_counter(self, rows: pl.DataFrame, held: spans.Held, who: NDArray[np.int64]) -> None:
        """Add the energy that counters show for holds that their samples bracket."""
        rows = rows.filter(pl.col("energy_j").is_not_null())
        if not rows.height or not len(held.lane):
            return
        lane, t, energy = (rows[name].to_numpy() for name in ("lane", "t", "energy_j"))
        some, _ = spans.samples(lane, t, energy)
        found = counters.energy(some, held)
        self._counts["energy_resets"] += found.resets
        for at in np.flatnonzero(~np.isnan(found.joules)):
            job = self._jobs[self._holds.attempts[who[at]].job]
            job.counted_j += float(found.joules[at])
            job.counted_s += float(held.end[at] - held.start[at])

    def _of_util(
        self, some: spans.Samples, holder: NDArray[np.int64], weights: NDArray[np.float64], held: spans.Held,
        who: NDArray[np.int64],
    ) -> None:  # fmt: skip
        """Compute idleness, unused GPUs, and the input of tables of utilization."""
        size = len(held.lane)
        if not size:
            return
        mine = holder >= 0
        idle = spans.idle(some, holder, held, self._options.idle_after_min * 60)
        counts = np.bincount(holder[mine], minlength=size)
        busy = np.bincount(holder[mine], some.value[mine] > 0, size)
        weight = np.bincount(holder[mine], weights[mine], size)
        interval = np.zeros(size)
        np.maximum.at(interval, holder[mine], np.nan_to_num(some.interval[mine]))
        for at in np.flatnonzero(counts):
            attempt = self._holds.attempts[who[at]]
            job = self._jobs[attempt.job]
            job.idle_s += float(idle[at])
            job.samples += int(counts[at])
            job.interval = max(job.interval, float(interval[at]))
            long = weight[at] >= 0.5 * (held.end[at] - held.start[at])
            job.unused += bool(attempt.attempt == job.last_attempt and long and not busy[at])
        self._tables(some, holder, held, who)

    def _tables(self, some: spans.Samples, holder: NDArray[np.int64], held: spans.Held, who: NDArray[np.int64]) -> None:
        mine = holder >= 0
        if not mine.any():
            return
        of_hold = pl.DataFrame(
            {
                "hold": np.arange(len(held.lane)),
                "job": [self._holds.attempts[at].job for at in who],
                "attempt": [self._holds.attempts[at].attempt for at in who],
                "machine": [self._lanes.lanes[at].machine for at in held.lane],
            },
            schema_overrides={"attempt": pl.Int32, "hold": pl.Int64},
        )
        rows = pl.DataFrame(
            {
                "hold": holder[mine],
                "hour": (some.t[mine] // 3600).astype(np.int64),
                "tenth": np.round(some.value[mine] * 10).astype(np.int16),
                "seconds": np.round(np.nan_to_num(some.interval[mine])).astype(np.int64),
                "total": np.round(some.value[mine] * 1e6).astype(np.int64),
                "colocated": self._neighbours(some, mine),
            }
        )
        sums = (pl.col("seconds").sum(), (pl.col("total") * pl.col("seconds")).sum())
        hours = rows.group_by("hold", "hour", "colocated").agg(*sums).join(of_hold, on="hold")
        self._hours.append(
            hours.with_columns((pl.col("hour") * 3_600_000_000).cast(pl.Datetime("us", "UTC"))).drop("hold")
        )
        tenths = rows.group_by("hold", "colocated", "tenth").agg(*sums).join(of_hold, on="hold").drop("hold", "machine")
        self._tenths.append(_summed([tenths], ["job", "attempt", "colocated", "tenth"]))

    def _neighbours(self, some: spans.Samples, mine: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return, per held sample, whether another attempt was on the node."""
        names = [
            self._lanes.lanes[at].machine for at in some.lane[mine][np.append(True, np.diff(some.lane[mine]) != 0)]
        ]
        cuts = np.append(np.flatnonzero(np.append(True, np.diff(some.lane[mine]) != 0)), int(mine.sum()))
        t = some.t[mine]
        found = np.zeros(len(t), np.bool_)
        for name, first, last in zip(names, cuts[:-1], cuts[1:], strict=True):
            here = [hold.attempt for hold in self._on_machine.get(name, ())]
            if len(here) > 1:
                starts, ends = np.sort(self._starts[here]), np.sort(self._ends[here])
                span = t[first:last]
                found[first:last] = np.searchsorted(starts, span, "right") - np.searchsorted(ends, span, "right") > 1
        return found

    def _leftovers(self, util: spans.Samples, held: spans.Held, how: list[str]) -> None:
        """Count samples whose label names a job that did not run at that time."""
        labelled = np.array([lane.label is not None for lane in self._lanes.lanes], np.bool_)
        of_label = labelled[util.lane]
        if not of_label.any():
            return
        slack = np.nan_to_num(util.interval)
        wide = spans.Held(held.lane, held.start - slack.max(), held.end + slack.max())
        self._counts["leftover_labels"] += int((of_label & (spans.holders(util, wide) < 0)).sum())

    def _bounds(self, machine: str, rows: pl.DataFrame, numbers: list[int]) -> None:
        """Add the range of those who held unknown GPUs of a node."""
        own = [at for at in numbers if self._lanes.lanes[at].machine == machine and self._lanes.lanes[at].label is None]
        own = [at for at in own if (self._lanes.lanes[at].reader, machine) not in self._lanes.labelled]
        some = rows.filter(pl.col("lane").is_in(own) & pl.col("util").is_not_null()).unique(
            ["lane", "t"], keep="last", maintain_order=True
        )
        if not some.height:
            return
        table = some.pivot("lane", index="t", values="util", aggregate_function="last").sort("t")
        t = table["t"].to_numpy()
        columns = [int(name) for name in table.columns if name != "t"]
        values = table.drop("t").cast(pl.Float64).to_numpy()
        interval = float(np.median(np.diff(t))) if len(t) > 1 else 0.0
        holds = self._on_machine[machine]
        vague = [hold for hold in holds if hold.devices is None]
        counts = np.array([hold.number for hold in vague], np.int64)
        begins = self._starts[[hold.attempt for hold in vague]]
        ends = self._ends[[hold.attempt for hold in vague]]
        present = _present(t, begins, counts) - _present(t, ends, counts)
        known = np.zeros(values.shape, np.bool_)
        devices = {(self._lanes.lanes[at].gpu, self._lanes.lanes[at].instance): k for k, at in enumerate(columns)}
        for hold in holds:
            span = slice(
                int(np.searchsorted(t, self._starts[hold.attempt])), int(np.searchsorted(t, self._ends[hold.attempt]))
            )
            for device in hold.devices or ():
                if device in devices:
                    known[span, devices[device]] = True
        node = ranges.Rounds(t, values, interval, known)
        for hold, start, end in zip(vague, begins, ends, strict=True):
            found = ranges.bound(node, (start, end), hold.number, present - hold.number)
            job = self._jobs[self._holds.attempts[hold.attempt].job]
            job.vague = True
            job.low += found.low
            job.high += found.high
            job.covered += found.covered
            job.samples += found.rounds * hold.number
            job.interval = max(job.interval, interval)
            job.how.add("range")
            job.readers |= {self._lanes.lanes[at].reader for at in columns}

    def _rows(self) -> pl.DataFrame:
        found = summaries(self._store, self._cluster)
        rows = [self._row(name, job, found.get(name)) for name, job in self._jobs.items()]
        if not self._lanes.lanes:
            stated = {row["job"] for row in rows if row["gpu_util_mean"] is not None}
            hours, tenths = over_time({job: found[job] for job in found.keys() & stated}, self._holds)
            self._hours.append(hours)
            self._tenths.append(tenths)
        kinds: dict[str, Any] = dict.fromkeys(_ROW, pl.Float64)
        kinds |= dict.fromkeys(("job", "withheld", "join_by", "util_kind", "readers"), pl.String)
        kinds |= {"gpus_unused": pl.Int32, "samples": pl.Int64, "running": pl.Boolean}
        return pl.DataFrame(rows, schema=kinds)

    def _row(self, name: str, job: _Job, summary: Summary | None) -> dict[str, Any]:
        row: dict[str, Any] = dict.fromkeys(_ROW)
        row |= {"job": name, "samples": job.samples, "running": job.running, "gpu_hours": job.held_s / 3600}
        row |= {"interval_s": job.interval or None, "readers": ",".join(sorted(job.readers)) or None}
        row["join_by"] = next((how for how in _JOINS if how in job.how), None)
        coverage = job.covered / job.held_s if job.held_s else None
        row["gpu_util_coverage"] = None if coverage is None else min(1.0, coverage)
        why = self._withheld(job, coverage)
        if why == "no_samples" and summary is not None:
            # samples and sources' summaries are never mixed in one figure
            stated = summary.figures(job.held_s, job.run_s)
            if {"gpu_util_mean", "gpu_util_high"} & stated.keys() or not self._lanes.lanes:
                return row | stated
        if why == "no_samples" and job.part_without:
            why = "mig"
        if why is not None or coverage is None:
            return row | {"withheld": why}
        if job.vague:
            low, high = (job.util + job.low) / job.covered, (job.util + job.high) / job.covered
            row |= {"gpu_util_low": low, "gpu_util_high": high}
            return row | ({"withheld": "ambiguous"} if high - low > CLOSE else {"gpu_util_mean": (low + high) / 2})
        return row | self._figures(job)

    def _withheld(self, job: _Job, coverage: float | None) -> str | None:
        if not job.held_s or coverage is None:
            return "no_gpu"
        if not job.covered:
            return "no_samples"
        if job.run_s < SHORT * job.interval:
            return "short"
        if coverage < self._options.min_coverage:
            return "coverage"
        return "shared" if job.shared else None

    def _figures(self, job: _Job) -> dict[str, Any]:
        def mean(metric: str) -> float | None:
            return job.sums[metric] / job.seconds[metric] if job.seconds[metric] >= 0.5 * job.covered else None

        counted = job.counted_s >= COUNTED * job.held_s > 0 and not job.part
        powered = job.seconds["power_w"] >= 0.95 * job.covered and not job.part
        return {
            "gpu_util_mean": job.util / job.covered,
            "gpus_unused": job.unused,
            "idle_gpu_h": job.idle_s / 3600 if job.interval <= LONGEST_IDLE_INTERVAL_S else None,
            "gpu_mem_max_mb": job.mem_max,
            "gpu_mem_mean_mb": mean("mem_mb"),
            "energy_kwh": job.counted_j / 3.6e6 if counted else job.sums["power_w"] / 3.6e6 if powered else None,
            "sm_mean": mean("sm_pct"),
            "tensor_mean": mean("tensor_pct"),
            "util_kind": "engine"
            if job.part
            else "sm"
            if "slurm-job-exporter" in job.readers and self._sm()
            else "kernel",
        }

    def _sm(self) -> bool:
        return bool((self._lanes.series["kind"] == "sm").any())


_JOINS = ("range", "label", "node", "uuid", "index")
_ROW = (
    "job", "gpu_util_mean", "gpu_util_coverage", "gpus_unused", "idle_gpu_h", "gpu_mem_max_mb", "energy_kwh",
    "gpu_util_low", "gpu_util_high", "withheld", "join_by", "interval_s", "sm_mean", "tensor_mean", "gpu_mem_mean_mb",
    "samples", "gpu_hours", "util_kind", "readers", "running",
)  # fmt: skip


def _present(t: NDArray[np.float64], times: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return, by `t`, the counts whose times are not after it."""
    order = np.argsort(times)
    total = np.concatenate([[0], np.cumsum(counts[order])])
    return total[np.searchsorted(times[order], t, side="right")]


def _summed(frames: list[pl.DataFrame], by: list[str]) -> pl.DataFrame:
    if not frames:
        return pl.DataFrame()
    return pl.concat(frames).group_by(by).agg(pl.col("seconds", "total").sum())
