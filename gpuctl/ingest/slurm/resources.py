"""What a job was allocated, or requested while it has nothing: GPUs, cores, nodes and memory of canonical frames."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from gpuctl.ingest.slurm.distinct_values import Distinct
from gpuctl.slurm.tres import Tres, gres, req_mem, tres

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

_CACHE = 1 << 16
_SOURCES = {
    "AllocTRES": lru_cache(_CACHE)(tres),
    "ReqTRES": lru_cache(_CACHE)(tres),
    "AllocGRES": lru_cache(_CACHE)(gres),
    "ReqGRES": lru_cache(_CACHE)(gres),
}
_ALLOCATIONS = ("AllocTRES", "AllocGRES")
_REQUESTS = ("ReqTRES", "ReqGRES")
_NODES = ("NNodes", "AllocNodes", "ReqNodes")
_CPUS = ("NCPUS", "AllocCPUS", "ReqCPUS")
_req_mem = lru_cache(_CACHE)(req_mem)


def resources(frame: pl.DataFrame) -> pl.DataFrame:
    """Return ``gpus`` (null: not stated), ``gpu_type`` and what is known of its request, ``shared``, ``requested``.

    What was allocated counts; what was requested counts if nothing is allocated (a pending job) or the source has
    no column of allocations (then ``requested``). Sites that did not track GPUs as TRES before 20.11 have them only as
    AllocGRES (of the whole job) and ReqGRES (of each node). ``shared``: MIG instances, shards or MPS are among them.
    Further columns are ``nodes``, ``cpus``, ``mem_mb``, and of the allocation ``billing`` and ``gpus_by_type``.

    Args:
        frame: canonical text, one row per job's record.
    """
    import polars as pl

    columns = {"_": pl.Series(range(frame.height), dtype=pl.UInt32)}
    columns |= {f"n.{name}": _number(frame[name]) for name in (*_NODES, *_CPUS) if name in frame.columns}
    for source, work in _SOURCES.items():
        if source in frame.columns:
            columns |= {f"{source}.{field}": part for field, part in _fields(Distinct(frame[source]), work).items()}
    wide = pl.DataFrame(columns)
    nodes = _first(wide, *(f"n.{name}" for name in _NODES), "AllocTRES.nodes", "ReqTRES.nodes")
    cpus = _first(wide, *(f"n.{name}" for name in _CPUS), "AllocTRES.cpus", "ReqTRES.cpus")
    gpus = _gpus(wide, nodes)
    return wide.with_columns(**_memory(frame)).select(
        gpus=gpus.cast(pl.Float64),
        gpu_type=_first(wide, *(f"{source}.gpu_type" for source in (*_ALLOCATIONS, *_REQUESTS))),
        gpu_type_request=pl.when(gpus > 0).then(_request(wide, frame)),
        shared=pl.any_horizontal([pl.col(c).fill_null(value=False) for c in wide.columns if c.endswith(".shared")])
        if any(c.endswith(".shared") for c in wide.columns)
        else pl.lit(value=False),
        requested=gpus.is_not_null() & pl.lit(not set(_ALLOCATIONS) & set(frame.columns)),
        nodes=nodes.cast(pl.Int32),
        cpus=cpus.cast(pl.Int32),
        mem_mb=pl.coalesce(
            _first(wide, "AllocTRES.mem_mb", "ReqTRES.mem_mb"),
            pl.col("mem") * pl.when(per="core").then(cpus).when(per="node").then(nodes).otherwise(1),
        ).cast(pl.Int64, strict=False),
        billing=_first(wide, "AllocTRES.billing").cast(pl.Float64),
        gpus_by_type=_first(wide, "AllocTRES.gpus_by_type", "AllocGRES.gpus_by_type").cast(pl.String),
    )


def _gpus(wide: pl.DataFrame, nodes: pl.Expr) -> pl.Expr:
    import polars as pl

    by_node = _first(wide, "ReqGRES.gpus") * nodes
    allocated, older = _first(wide, "AllocTRES.gpus"), _first(wide, "AllocGRES.gpus")
    return (
        pl.when(allocated > 0)
        .then(allocated)
        .when(older > 0)
        .then(older)
        .when(by_node > 0)
        .then(by_node)
        # shards and MPS were allocated: how much of a GPU that is, no request states
        .when(allocated.is_null() & _first(wide, "AllocTRES.shared").fill_null(value=False))
        .then(None)
        .otherwise(pl.coalesce(allocated, _first(wide, "ReqTRES.gpus"), older, by_node))
    )


def _request(wide: pl.DataFrame, frame: pl.DataFrame) -> pl.Expr:
    """What is known of the GPU type that a job requested: null that it is ``gpu_type``, ``any`` that it is none.

    An untyped request means ``any`` only for types that the site tracks, whose allocations are typed.
    Jobs also choose types by features of nodes (``--constraint``), which is unknown if no field has them
    (`UNKNOWN_CONSTRAINTS` is not empty).
    """
    import polars as pl

    typed_request = _first(wide, *(f"{source}.gpu_type" for source in _REQUESTS)).is_not_null()
    stated = _first(wide, *(f"{source}.gpus" for source in _REQUESTS)).is_not_null()
    typed_allocation = _first(wide, *(f"{source}.gpu_type" for source in _ALLOCATIONS)).is_not_null()
    free = frame["Constraints"].fill_null("") == "" if "Constraints" in frame.columns else pl.lit(value=False)
    return pl.when(~typed_request).then(
        pl.when(stated & typed_allocation & free).then(pl.lit("any")).otherwise(pl.lit("unknown"))
    )


def _first(wide: pl.DataFrame, *names: str) -> pl.Expr:
    """The first of some columns that has a value; null if none of them is there."""
    import polars as pl

    there = [name for name in names if name in wide.columns]
    return pl.coalesce(there) if there else pl.lit(None)


def _number(column: pl.Series) -> pl.Series:
    import polars as pl

    numbers = column.cast(pl.Int32, strict=False)
    return numbers.set(numbers <= 0, None)


def _fields(column: Distinct, work: Callable[[str], Tres]) -> dict[str, pl.Series]:
    import polars as pl

    dtypes = {
        "gpus": pl.Float64,
        "gpu_type": pl.String,
        "shared": pl.Boolean,
        "cpus": pl.Int32,
        "nodes": pl.Int32,
        "mem_mb": pl.Int64,
        "billing": pl.Float64,
        "gpus_by_type": pl.String,
    }
    return column.fields(work, dtypes)


def _memory(frame: pl.DataFrame) -> dict[str, pl.Series]:
    import polars as pl

    if "ReqMem" not in frame.columns:
        none = pl.Series([None], dtype=pl.Float64).new_from_index(0, frame.height)
        return {"mem": none, "per": none.cast(pl.String)}
    return Distinct(frame["ReqMem"]).fields(_req_mem, {"mem": pl.Float64, "per": pl.String})
