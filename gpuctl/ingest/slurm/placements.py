"""Which nodes the attempts ran on, from their node lists."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from gpuctl.ingest.slurm.distinct_values import Distinct
from gpuctl.slurm.hostlist import NOBODY, count, expand

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

PIECE = 1_000_000
"""Placements made at a time; one record may have 65 536."""
_CACHE = 1 << 13
_FEW = 32
"""Lists of more names are not cached."""
_SEVERAL = frozenset("[],")


def sizes(node_list: pl.Series) -> pl.Series:
    """Count the nodes in every node list; null if it is none or has more than 65 536 names."""
    import polars as pl

    return Distinct(node_list).each(_count, pl.Int32)


def placements(records: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield the nodes of every record that started, one row each, about `PIECE` rows at a time.

    The GPUs of a job are known as a total: on several nodes an even share of it is an estimate. GPUs that the
    source does not show are 0 and an estimate, too.

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
    names = Distinct(several["node_list"]).lists(_names)
    more = several.drop("node_list").with_columns(names.alias("machine")).explode("machine")
    return pl.concat([machines, more])


@lru_cache(_CACHE)
def _count(text: str) -> int | None:
    if not _SEVERAL.intersection(text):
        return 0 if text.strip() in NOBODY else 1 if len(text.split()) == 1 else None
    try:
        # names that are written twice are one node
        return len(expand(text)) if "," in text else count(text)
    except ValueError:
        return None


def _names(text: str) -> list[str]:
    number = _count(text)
    return _few(text) if number is not None and number <= _FEW else expand(text)


@lru_cache(_CACHE)
def _few(text: str) -> list[str]:
    return expand(text)
