"""``gpuctl report --compare``: two periods of one store, metric by metric, with what each change costs in GPU-hours.

Each metric is a sum over a sum (GPU-hours lost over GPU-hours held) or a quantile of waits. Its interval comes from
resampling the parts of each period with replacement, as for the waits of a replay: jobs of one part share one backlog,
so parts, and not jobs, are the independent observations. The spread of resamples is widened for the few parts by
Student's t (`_widening`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from gpuctl.core.notes import note, untrusted
from gpuctl.core.results import Analysis, Column, ResultTable
from gpuctl.replay.results.comparison import RESAMPLES, SEED, draws, quantile_draws
from gpuctl.replay.results.intervals import LEAST_S, PARTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from gpuctl.analyze.options import Options
    from gpuctl.analyze.period_measures import Measured
    from gpuctl.core.job_filter import JobFilter
    from gpuctl.core.notes import Note
    from gpuctl.core.results import SourceInfo
    from gpuctl.store.database import Store

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Key = tuple[str | None, str | None, str | None]
    _Sums = Callable[["Side", pl.DataFrame], "Sums | None"]

SECTION = ("changes", "Changes")
_DAY_S = 86400.0
_LOST = ("failed", "killed", "retried")
_ALL: Key = (None, None, None)
_KINDS = ("queue", "account", "user")
_SCHEMA = {
    "metric": pl.String, "queue": pl.String, "account": pl.String, "user": pl.String, "unit": pl.String,
    "before": pl.Float64, "after": pl.Float64, "change": pl.Float64, "low": pl.Float64, "high": pl.Float64,
    "cost_gpu_hours": pl.Float64, "verdict": pl.String, "better": pl.String,
}  # fmt: skip


class Metric(NamedTuple):
    """What is compared.

    Attributes:
        name: as in `gpuctl.reports.metrics`, where it has the metric.
        unit: of its values.
        better: ``low`` or ``high``, or empty if neither is.
    """

    name: str
    unit: str
    better: str = ""


OCCUPANCY = Metric("overview.occupancy_pct", "%", "high")
HELD = Metric("overview.gpu_hours_a_day", "GPU-h/day")
LOST = Metric("failures.lost_gpu_hours_pct", "%", "low")
IDLE = Metric("utilization.idle_gpu_hours_pct", "%", "low")
JOBS = Metric("workload.jobs_a_day", "jobs/day")
MEAN_WAIT = Metric("queueing.mean_wait_h", "h", "low")
QUANTILES = ((Metric("queueing.p50_wait_h", "h", "low"), 0.5), (Metric("queueing.p95_wait_h", "h", "low"), 0.95))


@dataclass(frozen=True)
class Sums:
    """One metric of one period, part by part: the metric is a factor times the sum of `over` by that of `under`."""

    over: Floats
    under: Floats
    cost_per: float
    """GPU-hours that a change of the plain ratio by one costs in this period; NaN: it has no cost."""


@dataclass(frozen=True)
class Side:
    """A period in parts of equal length.

    Attributes:
        measured: its rows.
        parts: their number: `PARTS`, or 1 in a period shorter than `LEAST_S`, which has no interval.
        held: GPU-hours by part, owner, whether lost, and whether idle.
    """

    measured: Measured
    parts: int
    held: pl.DataFrame

    @property
    def days(self) -> float:
        """Days that the log covers."""
        return (self.measured.end_s - self.measured.start_s) / _DAY_S

    def part_of(self, at_us: pl.Series) -> Ints:
        """Return the part of each time."""
        share = (at_us.to_numpy() / 1e6 - self.measured.start_s) / (self.measured.end_s - self.measured.start_s)
        return np.clip((share * self.parts).astype(np.int64), 0, self.parts - 1)

    def summed(self, frame: pl.DataFrame, value: str) -> Floats:
        """Return sums by part."""
        return np.bincount(frame["part"].to_numpy(), frame[value].to_numpy(), self.parts).astype(np.float64)


def side_of(measured: Measured) -> Side:
    """Return a period in parts."""
    days = (measured.end_s - measured.start_s) / _DAY_S
    parts = PARTS if days * _DAY_S >= LEAST_S else 1
    edges = np.linspace(measured.start_s * 1e6, measured.end_s * 1e6, parts + 1)
    pieces = []
    for part in range(parts):
        within = pl.min_horizontal("until_us", pl.lit(edges[part + 1])) - pl.max_horizontal(
            "from_us", pl.lit(edges[part])
        )
        # seconds are those of the log's clock
        share = (within / (pl.col("until_us") - pl.col("from_us"))).clip(0, 1)
        mine = measured.spans.with_columns(gpu_hours=pl.col("gpus") * pl.col("held_s") * share / 3600)
        keys = ["user", "queue", "account", "outcome", "is_idle"]
        summed = mine.filter(pl.col("gpu_hours") > 0).group_by(keys, maintain_order=True).agg(pl.sum("gpu_hours"))
        pieces.append(summed.with_columns(part=pl.lit(part, dtype=pl.Int64)))
    return Side(measured, parts, pl.concat(pieces))


def compare(before: Side, after: Side, *, whole: bool) -> pl.DataFrame:
    """Return the changes from one period to another, those that cost most first.

    Args:
        before: the earlier period.
        after: the later one.
        whole: whether all jobs of the cluster count, so that there is a share of its GPUs.
    """
    rows = [
        *_ratios(OCCUPANCY, {_ALL: (_occupied(before), _occupied(after))} if whole else {}, 100),
        *_ratios(HELD, _by_owner(before, after, _held), 1),
        *_ratios(LOST, _by_owner(before, after, _lost), 100),
        *_ratios(IDLE, _by_owner(before, after, _idle), 100),
        *_jobs(before, after),
        *_waits(before, after),
    ]
    frame = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    return frame.sort(
        pl.col("cost_gpu_hours").abs(), "metric", *_KINDS, descending=[True, *[False] * 4], nulls_last=True
    )


def _occupied(side: Side) -> Sums | None:
    if not side.measured.gpus:
        return None
    hours = side.measured.gpus * side.days * 24
    return Sums(side.summed(side.held, "gpu_hours"), np.full(side.parts, hours / side.parts), -hours)


def _held(side: Side, mine: pl.DataFrame) -> Sums:
    return Sums(side.summed(mine, "gpu_hours"), np.full(side.parts, side.days / side.parts), side.days)


def _lost(side: Side, mine: pl.DataFrame) -> Sums | None:
    return _share(side, mine.filter(pl.col("outcome") != "unknown"), pl.col("outcome").is_in(_LOST))


def _idle(side: Side, mine: pl.DataFrame) -> Sums | None:
    return _share(side, mine.filter(pl.col("is_idle").is_not_null()), pl.col("is_idle"))


def _share(side: Side, mine: pl.DataFrame, part: pl.Expr) -> Sums | None:
    held = side.summed(mine, "gpu_hours")
    return Sums(side.summed(mine.filter(part), "gpu_hours"), held, float(held.sum())) if held.any() else None


def _by_owner(before: Side, after: Side, sums: _Sums) -> dict[Key, tuple[Sums | None, Sums | None]]:
    """Return a metric for all jobs, and for each queue, account and user of either period."""
    found: dict[Key, tuple[Sums | None, Sums | None]] = {_ALL: (sums(before, before.held), sums(after, after.held))}
    for k, kind in enumerate(_KINDS):
        parts = [side.held.partition_by(kind, as_dict=True) for side in (before, after)]
        names = sorted({str(name) for frames in parts for (name,) in frames if name is not None})
        for name in names:
            mine = [frames.get((name,), side.held.clear()) for frames, side in zip(parts, (before, after), strict=True)]
            key = tuple(name if at == k else None for at in range(3))
            found[key] = (sums(before, mine[0]), sums(after, mine[1]))  # type: ignore[index]
    return found


def _jobs(before: Side, after: Side) -> Iterator[tuple[object, ...]]:
    counts = [
        np.bincount(side.part_of(side.measured.jobs["submit_us"]), minlength=side.parts) for side in (before, after)
    ]
    sums = [
        Sums(count.astype(np.float64), np.full(side.parts, side.days / side.parts), np.nan)
        for count, side in zip(counts, (before, after), strict=True)
    ]
    yield from _ratios(JOBS, {_ALL: (sums[0], sums[1])}, 1)


def _waits(before: Side, after: Side) -> Iterator[tuple[object, ...]]:
    queues = sorted({*before.measured.waits["queue"].drop_nulls(), *after.measured.waits["queue"].drop_nulls()})
    for queue in [None, *queues]:
        mine = [
            side.measured.waits if queue is None else side.measured.waits.filter(pl.col("queue") == queue)
            for side in (before, after)
        ]
        if not all(frame.height for frame in mine):
            continue
        key: Key = (queue, None, None)
        parts = [side.part_of(frame["submit_us"]) for side, frame in zip((before, after), mine, strict=True)]
        hours = [frame["seconds"].to_numpy().astype(np.float64) / 3600 for frame in mine]
        sums = [
            Sums(
                np.bincount(part, each, side.parts).astype(np.float64),
                np.bincount(part, minlength=side.parts).astype(np.float64), float(frame["gpus"].sum()),
            )
            for part, each, side, frame in zip(parts, hours, (before, after), mine, strict=True)
        ]  # fmt: skip
        yield from _ratios(MEAN_WAIT, {key: (sums[0], sums[1])}, 1)
        fewest = min(before.parts, after.parts)
        for metric, share in QUANTILES:
            drawn = [
                quantile_draws(each, part, share, seed=SEED + k)
                for k, (each, part) in enumerate(zip(hours, parts, strict=True))
            ]
            values = [float(np.quantile(each, share)) for each in hours]
            apart = None if drawn[0] is None or drawn[1] is None else drawn[1] - drawn[0]
            yield _row(metric, key, values, _ends(values[1] - values[0], apart, fewest), None)


def _ratios(
    metric: Metric, sums: dict[Key, tuple[Sums | None, Sums | None]], factor: float
) -> Iterator[tuple[object, ...]]:
    for key, (first, second) in sums.items():
        if first is None or second is None or not first.under.sum() or not second.under.sum():
            continue
        values = [factor * float(each.over.sum() / each.under.sum()) for each in (first, second)]
        if not any(values):
            continue
        change = values[1] - values[0]
        apart = factor * (_drawn(second, SEED + 1) - _drawn(first, SEED))
        ends = _ends(change, apart, min(first.over.size, second.over.size))
        cost = change / factor * second.cost_per
        yield _row(metric, key, values, ends, None if np.isnan(cost) else cost)


def _drawn(sums: Sums, seed: int) -> Floats:
    """Return the ratio in resamples of the parts; the ratio itself where a resample has nothing to divide by."""
    weights = draws(sums.over.size, RESAMPLES, seed).astype(np.float64)
    over, under = weights @ sums.over, weights @ sums.under
    whole = sums.over.sum() / sums.under.sum()
    found: Floats = np.divide(over, under, out=np.full(RESAMPLES, whole), where=under > 0)
    return found


def _ends(change: float, apart: Floats | None, parts: int) -> tuple[float, float] | None:
    """Return the 95 % interval of a change; None if the periods are too short for one."""
    if apart is None or parts < PARTS:
        return None
    low, high = np.quantile(apart, (0.025, 0.975))
    wide = _widening(parts)
    return min(change + wide * (float(low) - change), change), max(change + wide * (float(high) - change), change)


def _widening(parts: int) -> float:
    """Return by how much resamples of so few parts spread too little, and Student's t exceeds the normal law."""
    from scipy.special import stdtrit

    return float(stdtrit(parts - 1, 0.975) / 1.959964 * np.sqrt(parts / (parts - 1)))


def _row(
    metric: Metric, key: Key, values: list[float], ends: tuple[float, float] | None, cost: float | None
) -> tuple[object, ...]:
    change = values[1] - values[0]
    low, high = ends or (None, None)
    verdict = None
    if low is not None and high is not None and (low > 0 or high < 0):
        verdict = "changed" if not metric.better else "worse" if (change > 0) == (metric.better == "low") else "better"
    return (
        metric.name,
        *key,
        metric.unit,
        values[0],
        values[1],
        change,
        low,
        high,
        cost,
        verdict,
        metric.better or None,
    )


def result(
    sides: tuple[Side, Side], frame: pl.DataFrame, *, cluster: Note, sources: tuple[SourceInfo, ...],
    settings: dict[str, Note], command: str,
) -> Analysis:  # fmt: skip
    """Return the comparison as a documented result."""
    before, after = (side.measured.period.label for side in sides)
    clear = frame["verdict"].count()
    table = ResultTable(
        name="changes",
        section=SECTION[0],
        title="What changed, and what it costs",
        question="Which metrics differ between the two periods, for whom, and how many GPU-hours does that cost?",
        population=note(
            "{before} ({first:,} job{first||s} submitted, {covered:.1f} days of the log) and {after} ({second:,} "
            "job{second||s}, {days:.1f} days). GPU-hours are those held in each period; jobs and waits are of jobs "
            "submitted in it. Rows overlap: those of queues, accounts and users are parts of the first.",
            before=untrusted(before),
            first=sides[0].measured.jobs.height,
            covered=sides[0].days,
            after=untrusted(after),
            second=sides[1].measured.jobs.height,
            days=sides[1].days,
        ),
        notes=(
            note(
                "{clear} of {rows} interval{rows||s} exclude 0. About 1 in 20 would do so by chance if nothing had "
                "changed, and 1 in 12 where waits of successive days correlate by 0.5. "
                "Periods also differ by season and demand: a change is not the effect of a measure.",
                clear=clear,
                rows=frame["low"].count(),
            ),
        ),
        columns=_COLUMNS,
        frame=frame,
        key_columns=("metric", *_KINDS, "before", "after", "change", "low", "high", "cost_gpu_hours", "verdict"),
    )
    return Analysis(
        cluster=cluster, tables=(table,), sections=(SECTION,), sources=sources,
        settings={"before": untrusted(before), "after": untrusted(after), **settings}, command=command,
    )  # fmt: skip


_IDLE = "utilization.idle_gpu_hours_pct: share of GPU-hours that jobs held whose mean GPU utilization is below 5 %"
_HELD = "overview.gpu_hours_a_day: GPU-hours held per day"
_COST = (
    "what the change amounts to in the second period, against the first one's value: GPU-hours lost, idle, not "
    "allocated or held more; for mean waits, GPU-hours waited more (the change times the GPUs of the second period's "
    "attempts); negative: fewer; empty: not in GPU-hours"
)
_LOW = "lower end of the change's 95 % interval, from resampling 10 parts of each period; empty: one is under 10 days"
_COLUMNS = (
    Column("metric", "-", f"the metric, as in gpuctl report --metrics; {_IDLE}; {_HELD}"),
    Column("queue", "-", "of this queue only; empty: all"),
    Column("account", "-", "of this account only; empty: all"),
    Column("user", "-", "of this user only; empty: all"),
    Column("unit", "-", "of before, after, change, low and high"),
    Column("before", "-", "in the first period"),
    Column("after", "-", "in the second one"),
    Column("change", "-", "after less before"),
    Column("low", "-", _LOW),
    Column("high", "-", "upper end of it"),
    Column("cost_gpu_hours", "GPU-h", _COST),
    Column("verdict", "-", "better or worse (changed: neither is); empty: the interval includes 0, or there is none"),
    Column("better", "-", "whether low or high values are better; empty: neither"),
)


def compare_periods(
    store: Store, periods: tuple[str, str], options: Options, chosen: JobFilter, notify: Callable[[str], None]
) -> Analysis:
    """Compare two periods of one cluster.

    Args:
        store: open.
        periods: the earlier one and the later one, see `gpuctl.core.periods`.
        options: with the cluster, the zone in which periods begin and the command line.
        chosen: which jobs count, without times.
        notify: called with the current step.

    Raises:
        UsageError: a period is none, the filter has times, or the log has no job of a period.
    """
    from gpuctl.analyze.cluster import cluster_note
    from gpuctl.analyze.period_measures import measure, zone_of
    from gpuctl.core.errors import UsageError
    from gpuctl.core.job_filter import EVERY_JOB
    from gpuctl.store.sources import read_sources

    if chosen.since or chosen.until:
        raise UsageError("--compare names both periods", hint="leave --since and --until out")
    cluster = store.cluster(options.cluster)
    zone = zone_of(store, cluster, options.period_zone)
    sides = []
    for text in periods:
        notify(f"measuring {text}")
        sides.append(side_of(measure(store, options, text, zone, chosen)))
    notify("comparing")
    frame = compare(sides[0], sides[1], whole=chosen == EVERY_JOB)
    settings = {"zone": untrusted(str(zone))}
    if chosen:
        settings["filter"] = note("{chosen}", chosen=chosen.options())
    return result(
        (sides[0], sides[1]), frame, cluster=cluster_note(store, cluster), sources=tuple(read_sources(store, cluster)),
        settings=settings, command=options.command,
    )  # fmt: skip
