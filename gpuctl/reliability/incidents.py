"""Faults that ended several attempts, counted once."""

from __future__ import annotations

import numpy as np
import polars as pl

from gpuctl.reliability.causes import HARD, INFRASTRUCTURE
from gpuctl.reliability.outages import RACK_NODES, RACK_S

SAME_S = 900.0
"""Attempts that infrastructure ended on one node within so many seconds of each other met one fault."""


def group(attempts: pl.DataFrame, places: pl.DataFrame, outages: pl.DataFrame, racks: pl.DataFrame) -> pl.DataFrame:
    """Group attempts that infrastructure ended.

    Args:
        attempts: ``row``, ``state``, ``end_s`` and what `gpuctl.reliability.causes.classify` found.
        places: ``row``, ``node``.
        outages: as `gpuctl.reliability.outages.find` returns them.
        racks: ``node``, ``rack``.

    Returns:
        ``row``, ``incident`` (numbered by time), ``shared`` (rack, file system; null: of one node), ``node`` (of the
        earliest evidence; null for what is shared), ``cause`` and ``component``; a rack's fault has its own.
    """
    ended = attempts.filter(pl.col("cause").is_in(INFRASTRUCTURE)).select(
        "row", "state", "cause", "component", "anchor", "anchor_s", "end_s"
    )
    rack_of = _rack_faults(ended, places, outages, racks)
    ended = ended.join(rack_of, on="row", how="left", maintain_order="left")
    files = pl.col("component") == "file system"
    ended = ended.with_columns(
        shared=pl.when(pl.col("fault").is_not_null()).then(pl.lit("rack")).when(files).then(pl.lit("file system")),
        fault=pl.when(files & pl.col("fault").is_null()).then(pl.format("fs {}", "anchor_s")).otherwise("fault"),
    )
    ended = ended.with_columns(at=pl.when(pl.col("shared").is_null()).then("anchor_s").fill_null(pl.col("end_s")))
    alone = ended.filter(pl.col("fault").is_null())
    single = alone.join(places.select("row", "node"), on="row")
    # where evidence points to a node, that one; else all of the attempt's
    single = single.filter(pl.col("anchor").is_null() | (pl.col("anchor") == pl.col("node"))).sort("node", "end_s")
    new = (pl.col("end_s") - pl.col("end_s").shift().over("node")).fill_null(float("inf")) > SAME_S
    links = single.with_columns(link=new.cum_sum()).select("row", "link")
    root = _components(links)
    ended = ended.join(root, on="row", how="left", maintain_order="left")
    label = pl.coalesce("fault", pl.format("node {}", "root"))
    ended = ended.with_columns(label=label).with_columns(first=pl.col("at").min().over("label"))
    order = ended.select("label", "first").unique().sort("first", "label").with_row_index("incident")
    ended = ended.join(order.select("label", "incident"), on="label", how="left", maintain_order="left")
    earliest = (
        ended.filter(pl.col("shared").is_null() & pl.col("anchor").is_not_null())
        .sort("incident", "anchor_s", "anchor")
        .unique("incident", keep="first")
        .select("incident", node="anchor")
    )
    bare = single.group_by("row").agg(nodes=pl.len(), only=pl.col("node").first()).filter(pl.col("nodes") == 1)
    ended = ended.join(earliest, on="incident", how="left", maintain_order="left")
    ended = ended.join(bare.select("row", "only"), on="row", how="left", maintain_order="left")
    only = pl.col("only").drop_nulls().first().over("incident")
    rack = pl.col("shared") == "rack"
    return ended.select(
        "row",
        "incident",
        "shared",
        node=pl.when(pl.col("shared").is_null()).then(pl.coalesce("node", only)),
        cause=pl.when(rack.fill_null(False)).then(pl.lit(HARD)).otherwise("cause"),
        component=pl.when(rack.fill_null(False)).then(pl.lit("switch or power")).otherwise("component"),
        at_s="first",
    )


def _rack_faults(ended: pl.DataFrame, places: pl.DataFrame, outages: pl.DataFrame, racks: pl.DataFrame) -> pl.DataFrame:
    """Which attempts a fault of a rack ended: by nodes that went down together, else by node failures together."""
    lost = (
        ended.filter(pl.col("state") == "node_fail").select("row", "end_s").join(places.select("row", "node"), on="row")
    )
    lost = lost.join(racks.filter(pl.col("rack").is_not_null()), on="node")
    down = outages.filter(pl.col("rack_fault").is_not_null()).select("rack_fault", "node", "from_s")
    spans = down.join(racks, on="node").group_by("rack_fault", "rack").agg(pl.col("from_s").min())
    by_event = (
        lost.sort("end_s")
        .join_asof(
            spans.sort("from_s"),
            left_on="end_s",
            right_on="from_s",
            by="rack",
            strategy="nearest",
            tolerance=RACK_S,
            check_sortedness=False,
        )
        .filter(pl.col("rack_fault").is_not_null())
        .select("row", fault=pl.format("rack {} {}", "rack", "rack_fault"))
    )
    rest = lost.join(by_event, on="row", how="anti").sort("rack", "end_s")
    apart = (pl.col("end_s") - pl.col("end_s").shift().over("rack")).fill_null(float("inf")) > RACK_S
    rest = rest.with_columns(burst=apart.cum_sum(), width=pl.len().over("row"))
    alone = pl.col("node").filter(pl.col("width") == 1)
    gangs = (pl.col("width") > 1).any() & ~pl.col("node").filter(pl.col("width") > 1).is_in(alone.implode()).all()
    counted = rest.group_by("burst").agg(nodes=alone.n_unique() + gangs.cast(pl.Int64))
    seen = rest.join(counted.filter(pl.col("nodes") >= RACK_NODES), on="burst")
    by_state = seen.select("row", fault=pl.format("burst {}", "burst"))
    return pl.concat([by_event, by_state]).unique("row", keep="first", maintain_order=True)


def _components(links: pl.DataFrame) -> pl.DataFrame:
    """Connected parts of rows and links: ``row``, ``root``."""
    rows = links["row"].unique(maintain_order=True)
    if rows.is_empty():
        return pl.DataFrame(schema={"row": links["row"].dtype, "root": pl.Int64})
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    number = pl.DataFrame({"row": rows, "at": np.arange(len(rows))})
    at = links.join(number, on="row", how="left", maintain_order="left")["at"].to_numpy()
    size = len(rows) + int(links["link"].max() or 0) + 1  # type: ignore[arg-type]
    graph = coo_matrix((np.ones(len(at)), (at, len(rows) + links["link"].to_numpy())), shape=(size, size))
    _, label = connected_components(graph, directed=False)
    return pl.DataFrame({"row": rows, "root": label[: len(rows)].astype(np.int64)})
