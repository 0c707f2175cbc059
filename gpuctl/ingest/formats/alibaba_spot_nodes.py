"""Alibaba's trace of spot GPUs, 2026 (``node_info_df.csv``): nodes, their GPUs and CPUs; the columns in any order."""

from __future__ import annotations

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.machines import MachineTable
from gpuctl.ingest.traces.table import Column

TABLE = MachineTable(
    what="a list of nodes of Alibaba's spot trace",
    columns={
        "node_name": Column("machine", needed=True),
        "gpu_model": Column("gpu_type"),
        "gpu_capacity_num": Column("gpus_labelled", "whole", needed=True),
        "cpu_num": Column("cpus", "number"),
    },
)

FORMAT = Format(
    name="alibaba-spot-nodes",
    title="Alibaba spot trace of 2026: nodes (node_info_df.csv)",
    fills=("machines",),
    file_names=("node_info_df.csv",),
    order=10,
    zoned=True,
    sniff=TABLE.sniff,
    load=TABLE.load,
    epoch="relative",
)
