"""The cluster of Tiresias's simulator: ``num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node``.

A row is a kind of node: a number of switches, and a number of nodes on each. gpuctl makes the names of both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.core.job_rows import replace_rows
from gpuctl.ingest.traces.jobs import LINE
from gpuctl.ingest.traces.table import Column, Table

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Sink

MOST = 100_000
"""Nodes per row, at most."""

TABLE = Table(
    what="a cluster of Tiresias's simulator",
    columns={
        "num_switch": Column("switches", "whole", needed=True),
        "num_node_p_switch": Column("nodes", "whole", needed=True),
        "num_gpu_p_node": Column("gpus_labelled", "whole", needed=True),
        "num_cpu_p_node": Column("cpus", "whole"),
        "mem_p_node": Column("mem_mb", "whole", scale=1024),
    },
    faults={f"more than {MOST:,} nodes": f"switches * nodes > {MOST}"},
)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``machines``.

    Raises:
        InputError: the header lacks a column.
    """
    import polars as pl

    for rows, _ in TABLE.rows(stream, sink):
        for row in rows.iter_rows(named=True):
            names = [(f"s{row[LINE] - 2}.{s}", f"s{row[LINE] - 2}.{s}.n{n}")
                     for s in range(row["switches"]) for n in range(row["nodes"])]  # fmt: skip
            frame = pl.DataFrame(names, schema={"rack": pl.String, "machine": pl.String}, orient="row")
            constants = {name: pl.lit(row[name]) for name in ("gpus_labelled", "cpus", "mem_mb")}
            replace_rows(sink, "machines", frame.with_columns(**constants))
            sink.loaded()


FORMAT = Format(
    name="tiresias-cluster",
    title="Tiresias: nodes of a simulator's cluster (num_switch, num_node_p_switch, num_gpu_p_node ...)",
    fills=("machines",),
    file_names=("n32g4.csv",),
    order=10,
    zoned=True,
    sniff=TABLE.sniff,
    load=load,
    epoch="relative",
)
