"""Series as lanes: the samples of one GPU by one tool, with one job's label or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpuctl.analyze.gpu_usage.holds import short_names

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.analyze.gpu_usage.holds import Holds
    from gpuctl.store.database import Store

PRIORITY = ("dcgm", "nvidia-smi", "dmon", "telegraf")
"""Of tools that cover as much of a node's day the first counts; all others follow, by name."""
_SERIES = """
    SELECT series, reader, machine, gpu, uuid, instance, job, slot, util_kind, node_clock
    FROM gpu_series WHERE cluster = $cluster ORDER BY series
"""
_DAYS = """
    SELECT series, floor(epoch(ts) / 86400)::INTEGER AS day, count(*) AS rows, count(util) AS utils,
           epoch(max(ts) - min(ts)) AS span
    FROM gpu_readings
    WHERE cluster = $cluster AND ($first IS NULL OR ts >= to_timestamp($first) AND ts < to_timestamp($last))
    GROUP BY ALL
"""
_READ = """
    SELECT series, epoch_us(ts) AS us, util, mem_mb, power_w, energy_j, sm_pct, tensor_pct
    FROM gpu_readings
    WHERE cluster = $cluster AND series IN (SELECT unnest($series::BIGINT[]))
      AND ($first IS NULL OR ts >= to_timestamp($first) AND ts < to_timestamp($last))
"""
_SAME = 0.02
"""Coverages that differ by less are the same."""


class Lane(NamedTuple):
    """The common properties of consecutive samples."""

    reader: str
    machine: str
    gpu: int | None
    instance: str | None
    label: str | None
    slot: str | None


class Lanes(NamedTuple):
    """The lanes of a cluster.

    Attributes:
        lanes: distinct lanes.
        series: series, lane (its index), kind, node_clock, and whether its utilization counts.
        days: (node, day) -> the tool that counts there, if several measured.
        rows: samples of each lane.
        labelled: (tool, node) with series that have a job's label.
    """

    lanes: list[Lane]
    series: pl.DataFrame
    days: dict[tuple[str, int], str]
    rows: dict[int, int]
    labelled: set[tuple[str, str]]


def read(store: Store, cluster: str, holds: Holds, days: tuple[float, float] | None = None) -> Lanes:
    """Read the series of a cluster and identify their jobs.

    Args:
        store: an open store.
        cluster: the cluster.
        holds: its holdings.
        days: first and last second of the samples to consider, both at the start of a day; None: all samples.
    """
    import polars as pl

    own = {"cluster": cluster}
    short = short_names(holds.machine_gpus)
    lanes: dict[Lane, int] = {}
    found: list[tuple[int, int, str, bool]] = []
    occupied: set[str] = set()
    for row in store.execute(_SERIES, own).fetchall():
        series, reader, machine, gpu, uuid, instance, job, slot, kind, node_clock = row
        mapped = holds.inventory.by_uuid.get(uuid.upper()) if uuid else None
        if mapped is not None:
            machine, gpu = machine or mapped[0], mapped[1] if gpu is None else gpu
            instance = instance or mapped[2]
        machine = machine or ""
        if machine not in holds.machine_gpus:
            machine = short.get(machine.partition(".")[0], machine)
        if gpu is None and slot is None:
            slot = uuid
        if kind == "occupancy":
            occupied.add(reader)
            continue
        lane = Lane(reader, machine, gpu, instance, job, slot)
        found.append((series, lanes.setdefault(lane, len(lanes)), kind, node_clock))
    kinds = {"series": pl.Int64, "lane": pl.Int32, "kind": pl.String, "node_clock": pl.Boolean}
    series_rows = pl.DataFrame(found, schema=kinds, orient="row")
    of_reader = pl.Series([lane.reader in occupied for lane in lanes], dtype=pl.Boolean)
    series_rows = series_rows.with_columns(
        kind=pl.when(of_reader.gather(series_rows["lane"])).then(pl.lit("sm")).otherwise("kind")
    )
    first, last = days or (None, None)
    by_day = store.frame(_DAYS, {**own, "first": first, "last": last}).join(series_rows, on="series")
    ordered = list(lanes)
    series_rows = _which_count(series_rows, by_day, ordered)
    machines = pl.Series([lane.machine for lane in ordered], dtype=pl.String)
    readers = pl.Series([lane.reader for lane in ordered], dtype=pl.String)
    by_day = by_day.with_columns(machine=machines.gather(by_day["lane"]), reader=readers.gather(by_day["lane"]))
    rows = dict(by_day.group_by("lane").agg(pl.col("rows").sum()).iter_rows())
    labelled = {(lane.reader, lane.machine) for lane in ordered if lane.label is not None}
    return Lanes(ordered, series_rows, _readers(by_day), rows, labelled)


def samples(
    store: Store, cluster: str, known: Lanes, numbers: list[int], days: tuple[float, float] | None = None
) -> tuple[pl.DataFrame, int]:
    """Read the samples of some lanes.

    Args:
        store: an open store.
        cluster: the cluster.
        known: its lanes.
        numbers: which of them.
        days: as for `read`.

    Returns:
        Samples by lane and time (``lane``, ``us``, ``t`` in seconds, ``kind``, ``node_clock``, ``counts``, and the
        metrics), and the number of samples left out: of tools that do not count on their node and day.
    """
    import polars as pl

    series = known.series.filter(pl.col("lane").is_in(numbers))
    first, last = days or (None, None)
    chosen = {"cluster": cluster, "series": series["series"].to_list(), "first": first, "last": last}
    rows = store.frame(_READ, chosen).join(
        series.select("series", pl.col("lane").cast(pl.Int64), "kind", "node_clock", "counts"), on="series"
    )
    found = _of_counting_tools(rows, known, numbers)
    return found.with_columns(t=pl.col("us") / 1e6).sort("lane", "us", maintain_order=True), rows.height - found.height


def _of_counting_tools(rows: pl.DataFrame, known: Lanes, numbers: list[int]) -> pl.DataFrame:
    """Drop samples of tools that do not count on their node and day."""
    import polars as pl

    if not known.days:
        return rows
    chosen = pl.DataFrame(
        [(machine, day, reader) for (machine, day), reader in known.days.items()],
        schema={"machine": pl.String, "day": pl.Int32, "chosen": pl.String}, orient="row",
    )  # fmt: skip
    own = [(at, known.lanes[at].machine, known.lanes[at].reader) for at in numbers]
    names = pl.DataFrame(own, schema={"lane": pl.Int64, "machine": pl.String, "reader": pl.String}, orient="row")
    day = (pl.col("us") // 86_400_000_000).cast(pl.Int32)
    joined = rows.join(names, on="lane").with_columns(day=day).join(chosen, on=["machine", "day"], how="left")
    counting = joined.filter(pl.col("chosen").is_null() | (pl.col("chosen") == pl.col("reader")))
    return counting.drop("machine", "reader", "day", "chosen")


def _which_count(series: pl.DataFrame, days: pl.DataFrame, lanes: list[Lane]) -> pl.DataFrame:
    """Add ``counts``: of several activity counters of a GPU, only one determines its utilization.

    A MIG instance has no kernel time (dcgm-exporter shows 0 or nothing): its engine activity counts. For a whole GPU
    the kernel time counts, if measured.
    """
    import polars as pl

    utils = days.group_by("series").agg(pl.col("utils").sum())
    there = series.join(utils, on="series", how="left").with_columns(pl.col("utils").fill_null(0))
    part = pl.Series([lane.instance is not None for lane in lanes], dtype=pl.Boolean)
    there = there.with_columns(part=part.gather(there["lane"]))
    has_kernel = ((pl.col("kind") != "engine") & (pl.col("utils") > 0)).any().over("lane")
    counts = pl.when("part").then(pl.col("kind") == "engine").otherwise((pl.col("kind") != "engine") | ~has_kernel)
    return there.select("series", "lane", "kind", "node_clock", counts.alias("counts"))


def _readers(days: pl.DataFrame) -> dict[tuple[str, int], str]:
    """Return the tool of each node and day with several: the one with most coverage, then by `PRIORITY`."""
    import polars as pl

    covered = days.with_columns(
        covered=pl.when(pl.col("utils") > 1)
        .then(pl.col("span") * pl.col("utils") / (pl.col("rows").clip(2) - 1))
        .otherwise(0.0)
    )
    # samples of one lane may be in several series, one per metric
    of_lanes = covered.group_by("machine", "day", "reader", "lane").agg(pl.col("covered").max())
    table = of_lanes.group_by("machine", "day", "reader").agg(pl.col("covered").sum())
    chosen: dict[tuple[str, int], str] = {}
    for (machine, day), some in table.group_by(["machine", "day"]):
        if some.height < 2:
            continue
        most = max(some["covered"].to_list())
        best = some.filter(pl.col("covered") >= most * (1 - _SAME))["reader"].to_list()
        chosen[str(machine), int(day)] = min(best, key=lambda name: (_rank(name), name))
    return chosen


def _rank(reader: str) -> int:
    return PRIORITY.index(reader) if reader in PRIORITY else len(PRIORITY)
