"""The jobs of a trace for models of workloads: flat arrays in order of submission."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.storable_text import plural
from gpuctl.replay.inputs.job_csv import NO_QUEUE
from gpuctl.store.sources import JOBS_CSV

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from gpuctl.store.database import Store

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

HOUR_S, DAY_S, WEEK_S = 3600.0, 86_400.0, 604_800.0
_FIRST_MONDAY_S = 4 * DAY_S
"""1970 began on a Thursday."""

UNITS = {"gpu": "GPUs", "cpu": "CPUs", "node": "nodes"}
"""Units of a job's size, by the value of ``--unit``."""
_COLUMNS = {"gpu": "gpus", "cpu": "cpus", "node": "nodes"}

_JOBS = """
    SELECT job, "user", queue, gpu_type, gpus, cpus, nodes, time_limit_s, state, run_sum_s,
           epoch(timezone($clock, submit_ts)) AS submit_s, epoch(timezone($clock, start_ts)) AS start_s
    FROM jobs WHERE cluster = $cluster
"""
_STOCK = "SELECT sum(gpus) AS gpu, sum(cpus) AS cpu, count(*) AS node FROM machines WHERE cluster = $cluster"


@dataclass(frozen=True)
class Jobs:
    """Jobs in order of submission; arrays have one element per job.

    Attributes:
        name: of the trace.
        submit_s: seconds since a Monday, 00:00 of the trace's own clock, not after its first job; of a trace without a
            calendar, since its second 0, which is taken for one.
        size: GPUs, CPUs or nodes, at least 1.
        run_s: seconds, above 0.
        limit_s: requested seconds of run time; NaN none.
        user: number of its user, 0, 1 ...; -1 unknown.
        queue: number of its queue in `queues`; -1 unknown.
        gpu_type: number of its GPU type in `gpu_types`; -1 unknown.
        state: how it ended, as `gpuctl.core.states` names it; "" unknown.
        queues: names.
        gpu_types: names.
        unit: unit of sizes, a key of `UNITS`.
        capacity: most units held at once; NaN unknown.
        capacity_from: ``machines``, ``held`` (the most that jobs held at once: a lower bound), ``offered`` (the most if
            each job had started at its submission) or ``given``.
        calendar: whether days and hours are real.
        left_out: number of excluded jobs of the trace, by reason.
    """

    name: str
    submit_s: Floats
    size: Ints
    run_s: Floats
    limit_s: Floats
    user: Ints
    queue: Ints
    gpu_type: Ints
    state: NDArray[np.str_]
    queues: tuple[str, ...] = ()
    gpu_types: tuple[str, ...] = ()
    unit: str = "gpu"
    capacity: float = np.nan
    capacity_from: str = "given"
    calendar: bool = True
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Return the number of jobs."""
        return int(self.submit_s.size)

    @property
    def span_s(self) -> float:
        """Return the seconds from the first submission to the last one."""
        return float(self.submit_s[-1] - self.submit_s[0]) if self.count else 0.0

    @property
    def offered(self) -> float:
        """Return the mean units that jobs need between first and last submission; inf if all arrive at once."""
        work = float((self.size * self.run_s).sum())
        return work / self.span_s if self.span_s > 0 else np.inf

    def load(self, capacity: float | None = None) -> float:
        """Return the offered units as a share of the capacity."""
        return self.offered / (self.capacity if capacity is None else capacity)

    def take(self, rows: Ints | NDArray[np.bool_] | slice) -> Jobs:
        """Return some of the jobs, by ascending numbers."""
        names = ("submit_s", "size", "run_s", "limit_s", "user", "queue", "gpu_type", "state")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def at_load(self, load: float, capacity: float) -> Jobs:
        """The same jobs with all times between submissions divided by a factor, to reach a load.

        Their submissions must span some time.

        Args:
            load: share of the capacity, above 0.
            capacity: units that can be held at once.
        """
        factor = load / self.load(capacity)
        first = self.submit_s[0] if self.count else 0.0
        return replace(self, submit_s=first + (self.submit_s - first) / factor)


def from_store(store: Store, cluster: str | None, unit: str | None = None) -> Jobs:
    """Read the jobs of one cluster of an open store.

    Left out, and counted in `Jobs.left_out`: jobs without a submission, a length above 0 s, or a size of at least 1.
    Fractions of a unit are rounded up, which `left_out` also counts, under ``rounded up``.

    Args:
        store: an open store.
        cluster: which cluster of it; may be None if it has only one.
        unit: a key of `UNITS`; None: GPUs if any job has some, else CPUs, else nodes.

    Raises:
        UsageError: the store has no such cluster, or several and none is named; no such unit.
        InputError: no job is left.
    """
    if unit is not None and unit not in UNITS:
        raise UsageError(f"--unit {unit}: not understood", hint=f"expected {', '.join(UNITS)}")
    name = store.cluster(cluster)
    about = store.frame(
        "SELECT timezone, source_format, epoch FROM clusters WHERE cluster = $cluster", {"cluster": name}
    )
    zone, source_format, epoch = about.row(0)
    rows = store.frame(_JOBS, {"cluster": name, "clock": zone or "UTC"})
    # the name given to a CSV's jobs without a queue
    rows = rows.with_columns(pl.col("queue").replace(NO_QUEUE, None))
    stock = store.frame(_STOCK, {"cluster": name}).row(0, named=True)
    calendar = source_format != JOBS_CSV and epoch != "relative"
    return jobs_of(name, rows, unit=unit, stock=stock, calendar=calendar)


def jobs_of(
    name: str,
    rows: pl.DataFrame,
    *,
    unit: str | None = None,
    stock: Mapping[str, float | None] | None = None,
    calendar: bool = True,
) -> Jobs:
    """Make jobs of rows in any order.

    Args:
        name: of the trace.
        rows: ``job``, ``submit_s`` (seconds from 1970 of the trace's own clock), ``run_sum_s``, and any of ``gpus``,
            ``cpus``, ``nodes``, ``user``, ``queue``, ``gpu_type``, ``time_limit_s``, ``state``, ``start_s``.
        unit: see `from_store`.
        stock: units of all nodes, by unit.
        calendar: whether times are those of a calendar.

    Raises:
        InputError: no job is left.
    """
    texts, numbers = ("user", "queue", "gpu_type", "state"), ("gpus", "cpus", "nodes", "time_limit_s", "start_s")
    rows = rows.with_columns(
        *(pl.lit(None, pl.String).alias(c) for c in texts if c not in rows.columns),
        *(pl.lit(None, pl.Float64).alias(c) for c in numbers if c not in rows.columns),
    ).with_columns(pl.col("submit_s", "run_sum_s", *numbers).cast(pl.Float64).fill_nan(None))
    kind = unit or _unit(rows)
    size = pl.col(_COLUMNS[kind])
    known = {
        "no submission": pl.col("submit_s").is_not_null(),
        "no run time": pl.col("run_sum_s").is_not_null(),
        "a run time of 0 s": pl.col("run_sum_s") > 0,
        f"no {UNITS[kind]}": size.is_not_null() & (size > 0),
    }
    left_out: dict[str, int] = {}
    usable = rows
    for reason, good in known.items():
        before = usable.height
        usable = usable.filter(good)
        if before > usable.height:
            left_out[reason] = before - usable.height
    if not usable.height:
        text = ", ".join(f"{n:,} with {reason}" for reason, n in left_out.items())
        raise InputError(
            f"{name}: none of {rows.height:,} jobs can be learnt from ({text})",
            hint="a model of a workload needs submissions, run times and sizes; --unit cpu or node counts those",
        )
    usable = usable.sort("submit_s", "job")
    if usable["submit_s"][0] == usable["submit_s"][-1]:
        raise InputError(
            f"{name}: {plural(usable.height, 'job')} to learn from, submitted at one moment: that shows no arrivals",
            hint="load a longer log; at least a week is needed for a daily pattern",
        )
    rounded = usable.filter(size != size.ceil()).height
    if rounded:
        left_out["rounded up"] = rounded
    submit = usable["submit_s"].to_numpy()
    shift = _FIRST_MONDAY_S if calendar else 0.0
    monday = np.floor((submit[0] - shift) / WEEK_S) * WEEK_S + shift
    sizes = usable[_COLUMNS[kind]].ceil().cast(pl.Int64).to_numpy()
    run = usable["run_sum_s"].to_numpy()
    limit = usable["time_limit_s"].fill_null(np.nan).to_numpy()
    coded = {c: _codes(usable[c]) for c in ("queue", "gpu_type")}
    capacity, origin = _capacity(usable, sizes, (stock or {}).get(kind))
    return Jobs(
        name=name,
        submit_s=submit - monday,
        size=sizes,
        run_s=run,
        limit_s=np.where(limit > 0, limit, np.nan),
        user=_in_order(usable["user"]),
        queue=coded["queue"][0],
        gpu_type=coded["gpu_type"][0],
        state=usable["state"].fill_null("").to_numpy().astype(np.str_),
        queues=coded["queue"][1],
        gpu_types=coded["gpu_type"][1],
        unit=kind,
        capacity=capacity,
        capacity_from=origin,
        calendar=calendar,
        left_out=left_out,
    )


def _unit(rows: pl.DataFrame) -> str:
    return next((kind for kind, column in _COLUMNS.items() if (rows[column] > 0).any()), "gpu")


def _codes(texts: pl.Series) -> tuple[Ints, tuple[str, ...]]:
    names = texts.drop_nulls().unique().sort()
    codes = texts.rank("dense").cast(pl.Int64).fill_null(0).to_numpy() - 1
    return codes.astype(np.int64), tuple(names.to_list())


def _in_order(texts: pl.Series) -> Ints:
    """Numbers in order of appearance, which reveal nothing of the names; -1 for none."""
    names = texts.drop_nulls().unique(maintain_order=True)
    numbers = pl.DataFrame({"name": names}).with_row_index("code")
    found = pl.DataFrame({"name": texts}).join(numbers, on="name", how="left", maintain_order="left")["code"]
    return found.cast(pl.Int64).fill_null(-1).to_numpy().astype(np.int64)


def _capacity(usable: pl.DataFrame, size: Ints, stock: float | None) -> tuple[float, str]:
    if stock and stock > 0:
        return float(stock), "machines"
    start = usable["start_s"].fill_null(np.nan).to_numpy()
    known = np.isfinite(start)
    origin = "held" if known.mean() > 0.5 else "offered"
    begin = start if origin == "held" else usable["submit_s"].to_numpy()
    used = known if origin == "held" else np.ones(size.size, bool)
    return most_at_once(begin[used], usable["run_sum_s"].to_numpy()[used], size[used]), origin


def most_at_once(begin: Floats, run: Floats, size: Ints) -> float:
    """Return the most units held at once by jobs with these starts, lengths and sizes; ends precede starts."""
    times = np.concatenate([begin, begin + run])
    change = np.concatenate([size, -size])
    order = np.lexsort((change, times))
    return float(np.cumsum(change[order]).max()) if size.size else 0.0
