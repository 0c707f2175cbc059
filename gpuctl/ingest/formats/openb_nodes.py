"""OpenB: the nodes of a production cluster of Alibaba (``openb_node_list_*.csv``; Weng et al., ATC'23)."""

from __future__ import annotations

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces.machines import MachineTable
from gpuctl.ingest.traces.table import Column

TABLE = MachineTable(
    what="a list of nodes of the trace OpenB",
    columns={
        "sn": Column("machine", needed=True),
        "cpu_milli": Column("cpus", "number", scale=0.001),
        "memory_mib": Column("mem_mb", "number"),
        "gpu": Column("gpus_labelled", "whole", needed=True),
        "model": Column("gpu_type"),
    },
)

FORMAT = Format(
    name="openb-nodes",
    title="OpenB trace: nodes (openb_node_list_*.csv)",
    fills=("machines",),
    file_names=("openb_node_list_all_node.csv", "openb_node_list_gpu_node.csv"),
    order=10,
    zoned=True,
    sniff=TABLE.sniff,
    load=TABLE.load,
    epoch="relative",
    unit="pod",
)
