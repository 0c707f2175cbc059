"""Times in which nodes were out of service: events of Slurm joined to outages, planned and unplanned."""

from __future__ import annotations

import polars as pl

MERGE_S = 60.0
"""Event rows of a node with at most so many seconds between them are one outage: DOWN* becomes DRAIN."""
RACK_NODES, RACK_S = 3, 60.0
"""So many nodes of one leaf switch that go down within so many seconds are one fault of the rack."""
_PLANNED = r"(?i)maint|planned|upgrade|firmware|reserv|reboot (?:for|to)"
COMPONENTS: tuple[tuple[str, str, str], ...] = (
    (r"mount|file ?system|lustre|\bnfs|gpfs", "file system", "software"),
    (r"kill task|slurmd|daemon|prolog|epilog", "daemon", "software"),
    (r"driver|container", "driver", "software"),
    (r"\becc\b|dimm|memory", "memory", "hardware"),
    (r"nvlink", "NVLink", "hardware"),
    (r"\bxid\b|\bgpu|\bgsp\b", "GPU", "hardware"),
    (r"\bpsu\b|power", "power", "hardware"),
    (r"\bib\b|infiniband|mlx|\blink\b|\bnic\b", "network link", "hardware"),
    (r"mainboard|motherboard|\brma\b|pcie", "mainboard", "hardware"),
    (r"therm|\bfan", "cooling", "hardware"),
    (r"\bdisk|\bssd\b|nvme|local-dirs|log-dirs", "disk", "hardware"),
)
"""What the reason of a node event tells: pattern, component, and whether that is hardware or software. Ours."""


def find(events: pl.DataFrame, racks: pl.DataFrame, until: float) -> pl.DataFrame:
    """Join events to outages.

    Args:
        events: ``node``, ``from_s``, ``to_s`` (null: open), ``state``, ``reason``.
        racks: ``node``, ``rack``.
        until: end of the window, seconds since its begin; open outages end there.

    Returns:
        By node and time: ``node``, ``from_s``, ``to_s``, ``open``, ``planned``, ``state``, ``reason`` (the first one),
        ``component`` and ``kind`` (hardware, software), ``rack_fault`` (its number); these may be null.
    """
    cold = pl.col("state").str.contains(r"(?i)^UNK|^PLANNED$") | pl.col("reason").str.contains("cold-start").fill_null(
        False
    )
    rows = events.filter(~cold.fill_null(False)).sort("node", "from_s")
    ends = pl.col("to_s").fill_null(until)
    before = ends.cum_max().shift().over("node")
    planned = pl.col("reason").str.contains(_PLANNED).fill_null(False) | pl.col("state").str.contains(
        "(?i)maint|decommission|^shutdown"
    )
    rows = rows.with_columns(planned=planned)
    apart = (
        before.is_null()
        | (pl.col("from_s") > before + MERGE_S)
        | (pl.col("planned") != pl.col("planned").shift().over("node"))
    )
    rows = rows.with_columns(part=apart.cum_sum())
    every = pl.col("reason").drop_nulls().str.join("; ")
    joined = rows.group_by("part", maintain_order=True).agg(
        pl.col("node", "from_s", "planned", "state", "reason").first(),
        open=pl.col("to_s").is_null().any(),
        to_s=ends.max(),
        every=every,
    )
    kinds = {name: kind for _, name, kind in COMPONENTS}
    component = pl.coalesce(_component(pl.col("reason")), _component(pl.col("every")))
    joined = joined.with_columns(component=component, to_s=pl.min_horizontal("to_s", pl.lit(until)))
    kind = pl.col("component").replace_strict(kinds, default=None, return_dtype=pl.String)
    joined = joined.with_columns(kind=kind).drop("part", "every")
    return _with_rack_faults(joined.join(racks, on="node", how="left", maintain_order="left"))


def _component(reason: pl.Expr) -> pl.Expr:
    return pl.coalesce(
        [pl.when(reason.str.contains(f"(?i){pattern}")).then(pl.lit(name)) for pattern, name, _ in COMPONENTS]
    )


def _with_rack_faults(rows: pl.DataFrame) -> pl.DataFrame:
    """Number the faults of racks: nodes of one leaf that go DOWN together."""
    rows = rows.with_row_index("row")
    down = rows.filter(
        pl.col("rack").is_not_null()
        & ~pl.col("planned")
        & pl.col("state").str.contains("(?i)^(down|fail|no_respond|lost)")
    ).sort("rack", "from_s")
    apart = (pl.col("from_s") - pl.col("from_s").shift().over("rack")).fill_null(float("inf")) > RACK_S
    down = down.with_columns(rack_fault=apart.cum_sum())
    nodes = pl.col("node").n_unique().over("rack_fault")
    down = down.filter(nodes >= RACK_NODES).select("row", pl.col("rack_fault").cast(pl.Int64))
    return rows.join(down, on="row", how="left").sort("row").drop("row", "rack")
