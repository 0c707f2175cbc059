"""Which machines the attempts ran on, from their node lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpuctl.ingest.slurm.distinct import Distinct
from gpuctl.ingest.slurm.hostlist import count, expand

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

PIECE = 1_000_000
"""Placements made at a time; one record may have 65 536."""


class Sizes(NamedTuple):
    """How many machines the records name.

    Attributes:
        servers: a number for every record; null where the node list cannot be read.
        known: whether it can.
    """

    servers: pl.Series
    known: pl.Series


def sizes(node_list: pl.Series) -> Sizes:
    """Count the names in every node list; a list that is none, or of more than 65 536 names, is not known."""
    import polars as pl

    servers = Distinct(node_list).each(_count, pl.Int32)
    return Sizes(servers, servers.is_not_null())


def placements(records: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the machines of every record that started, one row each, about `PIECE` rows at a time.

    The GPUs of a job are known as a total: on several machines an even share of it is an estimate. GPUs that the
    source does not tell are 0 and an estimate, too.

    Args:
        records: ``job``, ``attempt``, ``start_ts``, ``gpus``, ``node_list`` and ``named`` (from `sizes`).
    """
    import polars as pl

    there = records.lazy().filter((pl.col("named") > 0) & pl.col("start_ts").is_not_null())
    there = there.select("job", "attempt", "gpus", "named", "node_list")
    frame = there.with_columns(piece=(pl.col("named").cast(pl.Int64).cum_sum() - 1) // PIECE).collect()
    if frame.is_empty():
        return
    pieces = [frame] if frame["piece"][-1] == 0 else frame.partition_by("piece", maintain_order=True)
    for piece in pieces:
        yield _rows(piece)


def _rows(piece: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    gpus = pl.col("gpus").fill_null(0.0)
    rows = piece.select(
        "job",
        "attempt",
        (gpus / pl.col("named")).alias("gpus"),
        (pl.col("gpus").is_null() | ((gpus > 0) & (pl.col("named") > 1))).alias("estimated"),
        "node_list",
    )
    single = ~rows["node_list"].str.contains_any(["[", ","])
    machines = rows.filter(single).rename({"node_list": "machine"})
    if machines.height == rows.height:
        return machines
    several = rows.filter(~single)
    names = Distinct(several["node_list"]).each(expand, pl.List(pl.String))
    more = several.drop("node_list").with_columns(names.alias("machine")).explode("machine")
    return pl.concat([machines, more])


def _count(text: str) -> int | None:
    try:
        # names that are written twice are one machine
        return len(expand(text)) if "," in text else count(text)
    except ValueError:
        return None
